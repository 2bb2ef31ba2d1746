/* Feeds the recorded readings of a policy to the same policy here and checks that it decides the same. */
#pragma once

#include "sim/instance/instance.h"
#include "traces/io/records.h"

typedef struct fl_replay_result {
    uint64_t steps, decisions, differ; /* decisions: one per step and GPU, and one per step that sets a host control */
    /* the first difference */
    uint64_t step;
    int64_t line, t_ns;
    int32_t device; /* -1 = host */
    char control[32];
    double recorded, decided; /* NAN = not set, FL_DEFAULT = handed back */
} fl_replay_result;

/* Signals and controls are matched by name. A column that no table contains is refused. */
fl_status fl_replay(const fl_decisions *log, const char *path, fl_instance *in, fl_replay_result *r, fl_diag *d);
