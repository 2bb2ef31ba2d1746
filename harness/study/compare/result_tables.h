/* Tables of an experiment: many selections of published.h side by side, which only report.
 *
 * "tables": [{"title": "steps by line", "each": SELECTION, "columns": {"miniMD": SELECTION, ...}, "rows": {"line 4":
 * SELECTION, ...}}, ...]
 *
 * The keys of each, of the column and of the row make one selection, the later over the earlier. A key with a + puts
 * its text behind what that key has from the others: "+policy": ":margin_w=4". */
#pragma once

#include "harness/study/compare/published.h"

typedef struct fl_result_tables fl_result_tables;

/* What the experiment says, which must outlive it; NULL in *out where it has no such key. Refuses what
 * fl_published_open refuses of a selection. */
fl_status fl_result_tables_open(const fl_experiment *e, const fl_texts *policies, fl_result_tables **out, fl_diag *d);
void fl_result_tables_free(fl_result_tables *t);

/* Evaluates every cell. FL_BAD_INPUT where a selection finds no row. */
fl_status fl_result_tables_solve(fl_result_tables *t, const fl_comparison *c, fl_diag *d);
/* One after the other, each followed by an empty line. */
void fl_result_tables_print(const fl_result_tables *t, FILE *out);
/* The same as an array of objects. */
cJSON *fl_result_tables_json(const fl_result_tables *t);
