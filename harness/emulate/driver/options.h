/* The options of a session. */
#pragma once

#include "harness/emulate/driver/confine.h"
#include "harness/emulate/driver/emulate_driver.h"
#include "harness/emulate/driver/errors.h"
#include "harness/emulate/driver/outcome.h"
#include "harness/input/scene/scene.h"
#include "harness/input/platform/smi_xml.h"
#include "sim/instance/fault.h"

typedef enum fl_emulate_time { FL_TIME_WALL, FL_TIME_VIRTUAL } fl_emulate_time;

typedef struct fl_emulate_options {
    const fl_scene *scene;
    fl_emulate_time time;
    double scale;     /* WALL: simulated seconds per second */
    double set_ms[2]; /* a set blocks its caller for a time between these, drawn with the seed; below 0 = the platform's
                         time */
    const fl_fault *fault; /* fault_count faults of sensors and sets, as in fl_run */
    size_t fault_count;
    const fl_refusal *refusal;
    size_t refusal_count;
    fl_driver driver;
    const fl_smi *smi;    /* identities of its GPUs; NULL = the platform's */
    bool anyone;          /* any user may set; else only root, as with the driver */
    const char *rings;    /* folder for a ring of kernel records (harness/live/collector/ring.h); NULL = none */
    char *const *command; /* NULL-terminated */
    fl_confine confine;
    void (*note)(
        const char *text); /* receives messages that the user should see before the command starts; NULL = no one */
    fl_kill kill;
    bool mute;              /* discards the command's output */
    const char *client_dir; /* where the client's libraries lie */
} fl_emulate_options;
