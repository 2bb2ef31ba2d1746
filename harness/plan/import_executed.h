/* foldline import of executed plans of clocks: pairs of N.sched.json and N.prof.json. */
#pragma once

#include "harness/base/cli/args.h"

/* Whether one of the files is named as one of a pair. */
bool fl_import_is_executed(const fl_texts *files);
/* Reads the pairs, writes BASE.plans.csv and the others where base is not NULL, and prints what was read. */
fl_status fl_import_executed(const fl_texts *files, const char *base, bool json, fl_diag *d);
