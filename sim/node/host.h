/* What all GPUs of a node share, as others read it: the host CPU, and the energy of the whole node. */
#pragma once

#include "policies/policy.h"
#include "sim/base/wide.h"

#include <stdbool.h>

typedef struct fl_node fl_node;

/* What software reads of the host now. remember: freshness is counted from here. */
void fl_node_read_host(fl_node *n, bool remember, fl_host_sample *out);

const struct fl_cpu *fl_node_cpu(const fl_node *n); /* NULL: not modelled */
fl_wide fl_node_comm_fj(const fl_node *n);          /* copies between host and GPUs */
fl_wide fl_node_energy_fj(const fl_node *n);        /* GPUs, CPU and the rest of the node, so far */
