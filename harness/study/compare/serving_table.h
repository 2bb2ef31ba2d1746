/* The table of a comparison of servers of a language model: energy per token and latencies in the place of makespans,
 * which an open loop of requests hardly moves. */
#pragma once

#include "harness/base/cli/grid.h"
#include "harness/study/compare/comparison.h"

/* True where the rows are of servers; scenes with and without servers do not mix (fl_scene_check). */
bool fl_serving_table_is_for(const fl_comparison *c);
/* Behind the columns that name a row. */
void fl_serving_table_heads(fl_grid *g);
/* each: a row of one workload, else a mean. */
void fl_serving_table_row(fl_grid *g, const fl_row_result *r, bool each);
/* What the savings of the table are against. */
void fl_serving_table_note(const fl_comparison *c, const fl_comparison_options *o, FILE *out);
