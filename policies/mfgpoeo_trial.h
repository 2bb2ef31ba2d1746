/* MF-GPOEO, one trial of a GPU: a configuration is set, kernels and power are measured under it, and what was measured
 * is compared with the database (Algorithm 7 lines 3 to 8). */
#ifndef FL_MFGPOEO_TRIAL_H
#define FL_MFGPOEO_TRIAL_H

#include "policies/mfgpoeo_gpu.h"

typedef struct fl_mfg_frame { /* one step of one GPU */
    fl_mfg_gpu *g;
    const fl_mfg_params *p;
    const fl_gpu_facts *facts;
    int64_t now_ns;
    uint32_t gpu;
    fl_command *command;
} fl_mfg_frame;

static inline int64_t fl_mfg_ns(double seconds) { return (int64_t)(seconds * 1e9 + 0.5); }

/* Gears (FL_MFG_DEFAULT: the driver's), and whether kernels are recorded; only what changes is set. */
void fl_mfg_set_up(const fl_mfg_frame *f, int32_t sm, int32_t mem, uint32_t records);

/* Enters a state whose measurement lasts so long, once the clocks have settled. */
void fl_mfg_begin_window(const fl_mfg_frame *f, int32_t state, int64_t length_ns);

/* Sets a configuration and measures kernels under it for Duration. */
void fl_mfg_measure(const fl_mfg_frame *f, int32_t state, int32_t sm, int32_t mem);

/* Index, loss and their errors, of what has been measured. */
void fl_mfg_take_index(const fl_mfg_frame *f);

enum { FL_MFG_UNLIKE = -1, FL_MFG_UNKNOWN, FL_MFG_COMPARED }; /* UNLIKE: no kind is as long as the database says */

/* What the measurement under a configuration says, where it can be compared with the database: FL_MFG_COMPARED, with
 * loss, bound and objective in *f->g. */
int fl_mfg_evaluate(const fl_mfg_frame *f, int32_t sm, int32_t mem);

/* A measurement that has not seen enough of what the database holds, or is not sure enough, goes on for another window:
 * phases that take turns need not fit into one. One that surely breaks the bound does not: it costs. */
int fl_mfg_goes_on(const fl_mfg_frame *f);

/* A quarter of a window shows what costs many times the bound, as a memory clock may; the rest would only cost more. */
int fl_mfg_is_hopeless(const fl_mfg_frame *f);

#endif
