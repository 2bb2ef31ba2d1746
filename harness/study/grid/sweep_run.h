/* A grid run durably: every row goes into a journal beside the results as it comes, so that what was killed goes on
 * where it stopped. The finished file is the same bytes whatever the threads, the order, the shards or the number of
 * starts. */
#pragma once

#include "harness/base/cli/args.h"
#include "harness/study/trial/setup.h"

typedef struct fl_sweep_options {
    const char *out;         /* the results; its journal is OUT.journal, its record stands beside it */
    const char *shard;       /* "I/N": every N-th job from the I-th on, into OUT.shard-I-of-N; NULL: all */
    const fl_option *option; /* what the caller was asked for: part of the journal's key, save what changes no byte */
    size_t option_count;
} fl_sweep_options;

typedef struct fl_sweep_result {
    char *path;          /* what was written; owned */
    size_t jobs, before; /* of this shard, and how many of them an earlier start had done */
} fl_sweep_result;

/* FL_BAD_INPUT where the journal is of another grid, the shard is none, or the experiment replays distributions. After
 * an error what was run is in the journal. *r is to be freed either way. */
fl_status fl_sweep_run(fl_setup *u, const fl_sweep_options *o, fl_sweep_result *r, fl_diag *d);
void fl_sweep_result_free(fl_sweep_result *r);
