/* What the files of sim/instance share: checks of signal rows, copies of instances and of parameter structs, and
 * parameters as text. */
#pragma once

#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <stddef.h>
#include <stdint.h>

/* FL_BAD_INPUT: a signal row of the policy says what the contract does not allow, or there are too many. */
fl_status fl_reads_check(const fl_policy *policy, fl_diag *d);

/* Return a second struct that shares nothing with the first. NULL: no memory. */
void *fl_params_copy(const fl_policy *policy, const void *params);

/* Write the value of one row as text into buf, cut to size. Returns buf. */
char *fl_params_text(const fl_policy *policy, const void *params, uint32_t index, char *buf, size_t size);

/* Write why a policy refuses its parameters into buf, and return buf. A policy has only fixed texts. So where its text
 * begins with a parameter in MHz and speaks of a ladder, this names the value that is off the ladder, and its
 * neighbours. */
enum { FL_REFUSAL_TEXT = 512 };
char *fl_params_refusal(const fl_policy *policy, const void *params, const fl_facts *facts, const char *refusal,
                        char buf[FL_REFUSAL_TEXT]);

/* Return the value of a LIST or TABLE row. Cells and keys belong to params. */
fl_table fl_params_table(const fl_policy *policy, const void *params, uint32_t index);

/* Make a second instance in the same state, by copying bytes: both decide alike from here on. */
fl_status fl_instance_copy(fl_instance **out, const fl_instance *in, fl_diag *d);

/* Return the number of cells of decision->probe: one for a per-node probe, gpu_count for a per-GPU one, in the order of
 * the descriptor. */
size_t fl_instance_probe_count(const fl_instance *in);
