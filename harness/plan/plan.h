/* Planning of clocks for pipelined training: `foldline plan`, `foldline fit pipeline`, and the import of executed
 * plans.
 *
 * The commands are rows of base/cli/commands.h; this header has only what other modules use. The import command asks
 * fl_import_is_executed and calls fl_import_executed. fl_pipeline_any_chip is what is expected of any chip before
 * anything was measured; serving starts its fits from it. The caller owns what it passes. FL_BAD_INPUT names the file.
 */
#pragma once

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"

#include <stdbool.h>

typedef struct fl_belief { /* an expected value before anything was measured */
    double mean, sd;
} fl_belief;

typedef struct fl_pipeline_beliefs {
    fl_belief share[2], wall[2]; /* forward, backward */
    fl_belief link_s, tail_s;
    fl_belief power, most, blocked; /* shares of the board's power limit */
    double drawn;                   /* share that a rank draws which computes at the top clock with these walls */
    double rank_sd;                 /* deviation of the ranks' powers from each other, as a share of the limit */
    fl_belief s, knee, rise;
} fl_pipeline_beliefs;

/* The beliefs for any chip; believe.c has their sources. */
extern const fl_pipeline_beliefs fl_pipeline_any_chip;

/* Executed clock plans: pairs of N.sched.json and N.prof.json. */

/* Return true if one of the files has the name of such a pair. */
bool fl_import_is_executed(const fl_texts *files);
/* Read the pairs, write BASE.plans.csv and the other files if base is not NULL, and print what was read. */
fl_status fl_import_executed(const fl_texts *files, const char *base, bool json, fl_diag *d);
