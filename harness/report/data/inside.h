/* What the files of harness/report/data share. Other modules include the public header alone. */
#pragma once

#include "harness/report/data/data.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* The ranking quantity of the policies: "energy", "edp" or "ed2p", from the provenance; energy where that does not say.
 */
const char *fl_report_objective(const fl_report_data *r);

/* policy_count x workloads x seeds values of one column, NAN where there is no run; malloc'd. A policy with a single
 * run of a workload has it at the first seed. */
double *fl_scope_panel(const fl_scope *s, fl_report_column column);
/* The values of the ranking quantity, in the same order, larger is better: percent saved of energy, EDP or ED2P against
 * the driver's default. */
double *fl_scope_merit(const fl_scope *s);

/* Splits "NAME:param=value,...": the value of the numeric setting at `index`; false where there is none. name: into 64
 * bytes. */
bool fl_label_setting(const char *label, size_t index, char name[64], char value[64]);
