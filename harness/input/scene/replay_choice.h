/* How the workloads of a sweep are replayed, as far as a user may choose: a table of times and powers says neither how
 * alike the parts of a program are nor where its iterations end. */
#pragma once

#include "sim/workload/sweep_ops.h"

typedef struct fl_replay_choice { /* as asked for; NULL and 0 where nobody did */
    const char *jitter;           /* a share as people write it (harness/base/cli/share.h); NULL = 0 */
    double iteration_s;           /* 0 = no markers */
} fl_replay_choice;

/* Fills jitter and iteration_ns of *out. FL_BAD_INPUT where the jitter is no share from 0 to 1. */
fl_status fl_replay_choose(const fl_replay_choice *c, fl_sweep_replay *out, fl_diag *d);
/* True where the work is drawn: other seeds are other scenes. */
bool fl_replay_drawn(const fl_replay_choice *c);
/* Fills what *c leaves open from *rest. */
void fl_replay_merge(fl_replay_choice *c, const fl_replay_choice *rest);

/* clang-format off */
#define FL_REPLAY_OPTIONS(c)                                                                                           \
    {"jitter", "SHARE", FL_OPTION_TEXT, &(c).jitter, 0, 0,                                                             \
     "of a sweep: how much its ops vary, 0.05 or 5%, drawn from the seed (0)"},                                        \
    {"iteration", "S", FL_OPTION_REAL, &(c).iteration_s, 1e-3, 1e6,                                                    \
     "of a sweep: puts an iteration marker about every S seconds of work at the highest clock (none)"}
/* clang-format on */
