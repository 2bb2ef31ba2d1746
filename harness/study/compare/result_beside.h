/* What compare writes beside a result for its report. */
#pragma once

#include "harness/study/compare/published.h"
#include "harness/study/trial/setup.h"

/* The provenance of all that was set up; the caller deletes it. FL_NO_MEMORY only. */
fl_status fl_report_record(const fl_setup *u, cJSON **record, fl_diag *d);

/* Adds what a reader of the result asks first to its provenance: experiment, about, and the options of the run where
 * the record does not have them yet. */
void fl_report_about(const fl_setup *u, cJSON *record);

/* RESULT.csv -> RESULT.published.json (where published is not NULL) and RESULT.regret.csv (of a distribution replay).
 * One of an earlier result that does not belong to this one any more is removed. */
fl_status fl_report_beside_write(const fl_setup *u, const fl_comparison *c, const fl_published *published,
                                 const char *csv, fl_diag *d);
