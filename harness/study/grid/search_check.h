/* The check of a search's winner: the whole grid of candidates on a few of the pairs that it was tuned on. */
#pragma once

#include "harness/study/grid/search_pairs.h"

#define FL_SEARCH_CHECK_PAIRS 4   /* of those tuned on, all where there are fewer */
#define FL_SEARCH_CHECK_SEED 1804 /* they are drawn by it, whatever the seed of the search */

typedef struct fl_search_check {
    size_t pairs, of;      /* drawn; of how many */
    size_t compared, held; /* candidates that ran on as many of them as the winner; those that broke no bound there */
    fl_search_sum winner, best; /* there; best: of those that held, the one of the least ratio */
    size_t best_spec;           /* the winner where nobody is better; SIZE_MAX where nobody held */
    fl_search_sum everywhere;   /* of best_spec on all pairs, where it is another than the winner */
} fl_search_check;

fl_status fl_search_check_run(fl_trials *t, const fl_comparison_options *o, const bool *use, size_t winner,
                              fl_search_check *out, fl_diag *d);
