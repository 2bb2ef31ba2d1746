/* Time and energy of the iterations of an executed plan. For harness/plan/executed.c. */
#pragma once

#include "harness/base/json/json.h"
#include "harness/plan/executed_tables.h"

/* How many of the first iterations are on boards that are still cold. Less than iterations, which are 2 at least. */
size_t fl_executed_left_out(size_t iterations);

/* The number at `node`, an entry of `array`; refuses one beyond min and max at its place. Unlike a walk with
 * fl_json_next it makes no path for entries that are right: there are many. */
fl_status fl_executed_real(const fl_json *array, const cJSON *node, double min, double max, double *value, fl_diag *d);

/* Adds means and deviations of iter_time and iter_energy of a plan; rank_at: the object of each rank. */
fl_status fl_executed_add_runs(const fl_json *rank_at, int64_t plan, fl_executed *e, size_t iterations, fl_diag *d);
