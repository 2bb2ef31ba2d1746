/* From a serving file to what the simulator takes, and back. */
#pragma once

#include "models/laws/step_law.h"
#include "sim/serving/batching.h"
#include "traces/serving/serving.h"

enum { FL_SERVING_CLOCKS_TEXT = 1024 };

/* The law of a file that was read; fl_step_law_free frees it. FL_BAD_INPUT where the numbers are no law. */
fl_status fl_serving_file_law(const fl_serving *s, fl_step_law *law, fl_diag *d);
/* The limits of its scheduler. kv_blocks: in place of the file's where not 0; where both are 0, FL_BAD_INPUT. */
fl_status fl_serving_file_rules(const fl_serving *s, uint64_t kv_blocks, fl_batching_rules *rules, fl_diag *d);
/* Puts a law into *s, in place of what it holds of one. FL_NO_MEMORY: *s is still to be freed. */
fl_status fl_serving_file_take(fl_serving *s, const fl_step_law *law, fl_diag *d);

/* What every result has to say: "clocks were measured on: 900, 1500 and 2100 MHz", or that they were not, and what is
 * assumed then. Writes into buf and returns it. */
char *fl_serving_clocks_text(const fl_step_law *law, char *buf, size_t size);
/* "steps of more than N tokens were not measured: ..." where steps within the budget lie beyond the law's table; else
 * "". Returns buf. */
char *fl_serving_beyond_text(const fl_step_law *law, uint32_t token_budget, char *buf, size_t size);
