/* What a policy may know of a node: what its platform says, and what a user states of the run. */
#pragma once

#include "harness/base/cli/args.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "traces/io/diag.h"

/* Ladders, limits, law of power, lag of the power sensor and time that a clock takes, as the platform has them. Borrows
 * ladders and names from `node`. Deadline, length and bound are not known. Free with fl_facts_free. */
fl_status fl_facts_make(const fl_node_spec *node, uint64_t seed, fl_facts *facts, fl_diag *d);
void fl_facts_free(fl_facts *facts);

typedef struct fl_stated_facts { /* as a user states them; 0 = not */
    double bound, deadline_s, expected_s;
    int64_t streams;
} fl_stated_facts;

/* Adds them to *facts. */
void fl_facts_state(const fl_stated_facts *s, fl_facts *facts);

/* clang-format off */
#define FL_STREAMS_OPTION(s)                                                                                           \
    {"streams", "N", FL_OPTION_INT, &(s).streams, 1, 1000000,                                                          \
     "tells the policy how many streams use one GPU, at most (not stated)"}
#define FL_STATED_FACTS_OPTIONS(s)                                                                                     \
    {"bound", "X", FL_OPTION_SHARE, &(s).bound, 0.001, 100,                                                            \
     "tells the policy the slowdown that is allowed, 0.10 or 10% (not stated)"},                                       \
    {"deadline", "S", FL_OPTION_REAL, &(s).deadline_s, 1e-3, 1e9,                                                      \
     "tells the policy by when the program is to end (not stated)"},                                                   \
    {"expected", "S", FL_OPTION_REAL, &(s).expected_s, 1e-3, 1e9,                                                      \
     "tells the policy how long the program takes at the default clocks (not stated)"},                                       \
    FL_STREAMS_OPTION(s)
/* clang-format on */
