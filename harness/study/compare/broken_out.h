/* Under a table of results: who broke which bound how often, what nobody could judge, and where no static clock holds
 * all. Nothing where the slowdown alone is bounded: the table's column says that. */
#pragma once

#include "harness/study/compare/comparison.h"

/* Scenes that have no baseline:static: no static clock is allowed there. *all: how many scenes there are; *first: the
 * first without one, NULL = none. */
size_t fl_scenes_without_static(const fl_comparison *c, size_t *all, const char **first);
void fl_broken_print(const fl_comparison *c, const fl_comparison_options *o, FILE *out);
