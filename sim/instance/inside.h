/* What the files of sim/instance share. Other modules include the public header alone. */
#pragma once

#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <stddef.h>
#include <stdint.h>

/* A second struct that shares nothing with the first. NULL where memory is short. */
void *fl_params_copy(const fl_policy *policy, const void *params);

/* The value of one row in text form, cut to size. Returns buf. */
char *fl_params_text(const fl_policy *policy, const void *params, uint32_t index, char *buf, size_t size);

/* The value of a LIST or TABLE row; cells and keys belong to params. */
fl_table fl_params_table(const fl_policy *policy, const void *params, uint32_t index);

/* A second instance in the same state, by copying bytes: it decides alike. */
fl_status fl_instance_copy(fl_instance **out, const fl_instance *in, fl_diag *d);

/* Cells of decision->probe: per-node probes take one, per-GPU ones gpu_count, in the order of the descriptor. */
size_t fl_instance_probe_count(const fl_instance *in);
