/* The simulated NVML's server: one process owns simulator, clock, audit of set calls and the report; a command and all
 * its children reach it through the client library (harness/live/client/), which holds no state. */
#ifndef FL_EMULATE_H
#define FL_EMULATE_H

#include "harness/input/scene.h"
#include "sim/fault.h"

#include <sys/types.h>

typedef struct fl_refusal { /* an error on request */
    int32_t result;         /* of nvmlReturn_t */
    int32_t gpu;            /* -1 = every */
    char call[64];          /* pattern of function names; empty = all of one GPU */
    int64_t from_ns, until_ns;
} fl_refusal;

typedef enum fl_emulate_time { FL_TIME_WALL, FL_TIME_VIRTUAL } fl_emulate_time;

typedef struct fl_emulate_options {
    const fl_scene *scene;
    fl_emulate_time time;
    double scale;          /* WALL: simulated seconds per second */
    double set_ms[2];      /* a set takes between these, drawn with the seed; below 0 = as the platform says */
    const fl_fault *fault; /* fault_count: into sensors and sets, as in fl_run */
    size_t fault_count;
    const fl_refusal *refusal;
    size_t refusal_count;
    const char *rings;      /* folder for a ring of kernel records (harness/live/collector/ring.h); NULL = none */
    char *const *command;   /* NULL-terminated */
    const char *client_dir; /* where the client's libraries lie */
} fl_emulate_options;

typedef struct fl_emulated_process {
    pid_t pid;
    char name[16];
    uint64_t calls, sets, refused; /* sets that were made, and that were answered with an error */
} fl_emulated_process;

typedef struct fl_emulated_set {
    int64_t at_ns; /* end of the call, of the session's time */
    pid_t pid;
    uint32_t gpu, b, c; /* arguments as the call gave them */
    int32_t result;
    char call[48];
} fl_emulated_set;

typedef struct fl_emulated_state { /* of one GPU at the end; 0 = nothing locked, or not known */
    uint32_t sm_min, sm_max, mem_min, mem_max, limit_mw, default_limit_mw;
    double energy_j;
} fl_emulated_state;

typedef struct fl_emulate_result {
    int command_status;                         /* as waitpid gives it */
    int64_t time_ns;                            /* the session's, when the last client went */
    bool done;                                  /* all work had ended by then */
    double energy_j, node_energy_j, makespan_s; /* of the work so far; as fl_run_result where it is done */
    double after_j;                             /* drawn by the boards after the end of the work */
    uint64_t kernels, switches, calls, hash;
    fl_emulated_process *process;
    size_t process_count, process_room;
    fl_emulated_set *set;
    size_t set_count, set_room;
    fl_emulated_state *gpu;
    uint32_t gpu_count;
} fl_emulate_result;

/* Runs the command to its end, and what it left behind for a while longer. FL_HARDWARE where it could not be emulated:
 * with the reason; what it started has been killed. */
fl_status fl_emulate(const fl_emulate_options *o, fl_emulate_result *r, fl_diag *d);
void fl_emulate_result_free(fl_emulate_result *r);

/* "no-permission", "lost:gpu=1,from_s=5", "not-supported:call=nvmlDeviceGetPowerUsage", ... FL_BAD_INPUT with what was
 * expected. */
fl_status fl_refusal_parse(const char *text, fl_refusal *out, fl_diag *d);
#define FL_REFUSAL_HELP                                                                                                \
    "answers with no-permission, not-supported, lost, timeout, driver-gone, in-use or unknown; then "                  \
    ":gpu=,call=,from_s=,for_s= (may be repeated)"

#endif
