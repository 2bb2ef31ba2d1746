/* Platform files: models/platforms/NAME.json, or a path to one of the user's own. Everything is checked; an error names
 * file and key ("gpu.power.a_w: -3, expected a number >= 0"). */
#pragma once

#include "harness/input/platform/facts.h"
#include "models/laws/device.h"
#include "sim/instance/instance.h"

typedef struct fl_platform_note { /* where one value comes from, as listed by `foldline platforms NAME` */
    char *key, *text;             /* "gpu.power.a_w", "assumed: TDP with alpha = beta = 1" */
} fl_platform_note;

typedef struct fl_platform_policy { /* defaults that this machine gives to a policy's parameters */
    char *policy;
    fl_setting *setting; /* name, text form */
    size_t count;
} fl_platform_policy;

typedef struct fl_platform {
    char *name, *title, *path;
    char *origin; /* "platform NAME", as its layer is called in diagnostics */
    fl_node_spec node;
    fl_platform_note *note;
    size_t note_count;
    fl_platform_policy *policy;
    size_t policy_count;
} fl_platform;

/* name: of a bundled platform (nearest offered when unknown), or a path (contains '/' or ends in .json). gpu_count > 0
 * overrides the number of GPUs of the file. */
fl_status fl_platform_open(const char *name, uint32_t gpu_count, fl_platform *p, fl_diag *d);
void fl_platform_free(fl_platform *p);

/* Whether the value of a key ("gpu.power.a_w") is marked as assumed in the notes. */
bool fl_platform_assumed(const fl_platform *p, const char *key);

/* The settings of a policy as a layer named after the platform; empty where there are none. Borrows from p. */
fl_layer fl_platform_layer(const fl_platform *p, const char *policy);

/* Names of the bundled platforms, sorted; free each and the array. The folder is $FOLDLINE_SHARE/platforms where set,
 * else the one fixed at build time. */
fl_status fl_platform_list(char ***names, size_t *count, fl_diag *d);
