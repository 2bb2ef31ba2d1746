/* Policies over scenes: every run scored against the driver's default and the oracles of its scene. */
#pragma once

#include "harness/study/trial/trial.h"

typedef struct fl_comparison {
    fl_row_result *row; /* scene by scene: the baselines, then policy by policy, seed by seed; at the end the means */
    size_t count, room;
    char **label; /* label_count: policies of the means of variants */
    size_t label_count, label_room;
    size_t mean_first; /* rows from here on are means over workloads and seeds, in the order of the policies */
    uint32_t *mean;    /* of each row before them the mean that it is part of: 0 for the first; NULL: there are none yet */
    uint64_t ignored_sets, faults;
    size_t unstepped; /* runs that ended before their policy looked a second time */
} fl_comparison;

/* Same options, same rows, at any number of threads. */
fl_status fl_comparison_run(const fl_comparison_options *o, fl_comparison *c, fl_diag *d);
/* The rows of the scenes alone, behind those that *c has. The scenes outlive them, but may be forgotten. */
fl_status fl_comparison_scenes(const fl_comparison_options *o, fl_comparison *c, fl_diag *d);
void fl_comparison_free(fl_comparison *c);

/* The parts of it that other replays build their rows with. A row that was added belongs to the comparison. */
fl_status fl_comparison_add(fl_comparison *c, const fl_row_result *row, fl_diag *d);
/* Means over workloads and seeds of all rows so far. */
fl_status fl_comparison_means(fl_comparison *c, fl_diag *d);

/* All rows as CSV, through a temporary file. */
fl_status fl_comparison_write(const fl_comparison *c, const char *path, fl_diag *d);

/* The means (or, of one workload, its rows) as a table for people. */
void fl_comparison_print(const fl_comparison *c, const fl_comparison_options *o, bool each, FILE *out);
/* Below such a table: what the mark of a mean says that leaves out some of its rows; nothing where none does. */
void fl_comparison_note_marks(const fl_comparison *c, FILE *out);
