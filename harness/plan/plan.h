/* MODULE harness/plan */
#pragma once

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"

#include <stdbool.h>

/* The program that a pipeline's fit looks at, what is expected of it, and what the parts of a fit ask of its plans. */

typedef struct fl_belief { /* what is expected before a plan has been measured */
    double mean, sd;
} fl_belief;

typedef struct fl_pipeline_beliefs {
    fl_belief share[2], wall[2]; /* forward, backward */
    fl_belief link_s, tail_s;
    fl_belief power, most, blocked; /* shares of the board's limit */
    double drawn;                   /* likewise: by a rank that computes at the top clock and has the walls above */
    double rank_sd;                 /* of the ranks' powers among each other, likewise */
    fl_belief s, knee, rise;
} fl_pipeline_beliefs;

/* Of any chip: see believe.c for where they are from. */
extern const fl_pipeline_beliefs fl_pipeline_any_chip;

/* foldline import of executed plans of clocks: pairs of N.sched.json and N.prof.json. */

/* Whether one of the files is named as one of a pair. */
bool fl_import_is_executed(const fl_texts *files);
/* Reads the pairs, writes BASE.plans.csv and the others where base is not NULL, and prints what was read. */
fl_status fl_import_executed(const fl_texts *files, const char *base, bool json, fl_diag *d);
