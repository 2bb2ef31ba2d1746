/* A policy's table parameter from a CSV file. The file's header names the columns that the policy's row declares, in
 * any order. */
#pragma once

#include "policies/policy.h"
#include "traces/io/diag.h"

fl_status fl_table_file_read(const char *path, const fl_param *row, fl_table *t, fl_diag *d);
void fl_table_file_free(fl_table *t); /* accepts a zeroed struct */
