/* What a run cost, split. The parts come from residence times the rows' integer parts; their sum equals the running
 * total of the node exactly, or the run is an error. */
#ifndef FL_LEDGER_H
#define FL_LEDGER_H

#include "sim/node.h"

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
    fl_wide gpu_fj;  /* sum of the GPUs' parts */
    fl_wide host_fj; /* sum of the host's: CPU, communication, the rest of the node */
} fl_ledger;

/* Residence times parts of one GPU, added to *l. FL_MODEL_FAULT where it differs from the GPU's running sum by one fJ.
 */
fl_status fl_ledger_add_gpu(fl_ledger *l, const fl_gpu *g, fl_diag *d);

/* The host's parts, likewise. */
fl_status fl_ledger_add_host(fl_ledger *l, const fl_node *n, const fl_node_spec *spec, fl_diag *d);

/* Energy of the board while each class ran (base included, as if it ran alone) and its time, over all clocks of one
 * GPU: added to fj and ps, class_count each. */
void fl_ledger_classes(const fl_gpu *g, fl_wide *fj, int64_t *ps);

/* Largest power of a GPU, mW: of the kernels that ran, as they shared it; of the idle board where none did, with a
 * context or without. What heat adds is taken at its most, whenever that was. */
int64_t fl_ledger_peak_mw(const fl_gpu *g);

/* The same of the host: CPU, copies, the rest of the node; each at its most, whenever that was. The CPU's is a mean
 * between two instants at which the node stands still. */
int64_t fl_ledger_host_peak_mw(const fl_node *n, const fl_node_spec *spec);

#endif
