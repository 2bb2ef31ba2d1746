/* Under a table of results: who broke which bound how often, what nobody could judge, and where no static clock holds
 * all. Nothing where the slowdown alone is bounded: the table's column says that. */
#ifndef FL_BROKEN_OUT_H
#define FL_BROKEN_OUT_H

#include "harness/study/comparison.h"

void fl_broken_print(const fl_comparison *c, const fl_comparison_options *o, FILE *out);

#endif
