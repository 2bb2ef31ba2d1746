/* Where the kinds of a written trace or of written programs go. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

/* x.kinds.csv for x.programs.csv and for x.csv; the head of what is written names it. The caller frees *kinds. */
fl_status fl_kinds_beside(const char *path, fl_head *head, char **kinds, fl_diag *d);
