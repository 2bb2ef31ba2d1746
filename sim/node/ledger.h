/* The cost of a run, split into parts. Each part is the sum of residence times multiplied by the rows' integer power.
 * The parts sum exactly to the running total of the node; otherwise the run is an error. */
#pragma once

#include "sim/node/node.h"

#define FL_PARTS(X)                                                                                                    \
    X(STATIC, static, "C V while a context is open")                                                                   \
    X(LEAKAGE, leakage, "what heat adds")                                                                              \
    X(SM, sm, "alpha A V^2 f")                                                                                         \
    X(MEMORY, memory, "beta B m/m_ref, and B0(m) of idle memory")                                                      \
    X(CLOCK_TREE, clock_tree, "A0 V^2 f while a context is open")                                                      \
    X(UNSPLIT, unsplit, "above the base, from a measured table that does not say which part drew it")                  \
    X(CLOSED, closed, "boards without a context")                                                                      \
    X(CPU, cpu, "host CPU")                                                                                            \
    X(COMMUNICATION, communication, "copies between host and GPU")                                                     \
    X(NODE_STATIC, node_static, "the node without its GPUs")

#define FL_ROW_PART_ID(id, name, meaning) FL_PART_##id,
typedef enum fl_part { FL_PARTS(FL_ROW_PART_ID) FL_PART_COUNT } fl_part;
extern const char *const fl_part_names[FL_PART_COUNT];

typedef struct fl_ledger {
    fl_wide part_fj[FL_PART_COUNT];
    fl_wide gpu_fj;  /* sum of the parts of all GPUs */
    fl_wide host_fj; /* sum of the host's parts: CPU, communication, the rest of the node */
} fl_ledger;

/* Adds one GPU's residence times multiplied by its parts to *l. FL_MODEL_FAULT where the result differs from the GPU's
 * running sum by even one fJ. */
fl_status fl_ledger_add_gpu(fl_ledger *l, const fl_gpu *g, fl_diag *d);

/* The host's parts, likewise. */
fl_status fl_ledger_add_host(fl_ledger *l, const fl_node *n, const fl_node_spec *spec, fl_diag *d);

/* Adds the energy of the board while each class ran (including the base, as if the class ran alone) and its time, over
 * all clocks of one GPU, to fj and ps, class_count entries each. */
void fl_ledger_classes(const fl_gpu *g, fl_wide *fj, int64_t *ps);

/* Largest power of a GPU in mW: of the kernels that ran, in the way they shared it; where none ran, of the idle board,
 * with or without a context. The contribution of heat counts with its maximum, whenever that occurred. */
int64_t fl_ledger_peak_mw(const fl_gpu *g);

/* The same for the host: CPU, copies, the rest of the node, each at its maximum, whenever that occurred. The CPU's
 * value is a mean between two instants at which the node stands still. */
int64_t fl_ledger_host_peak_mw(const fl_node *n, const fl_node_spec *spec);
