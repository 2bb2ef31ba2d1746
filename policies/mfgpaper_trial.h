/* MF-GPOEO, one trial of a GPU: a configuration is set, kernels and power are measured under it, and what was measured
 * is compared with the database (Algorithm 7 lines 3 to 8). */
#pragma once

#include "policies/mfgpaper_gpu.h"

typedef struct fl_mfp_frame { /* one step of one GPU */
    fl_mfp_gpu *g;
    const fl_mfp_params *p;
    const fl_gpu_facts *facts;
    int64_t now_ns;
    uint32_t gpu;
    fl_command *command;
} fl_mfp_frame;

static inline int64_t fl_mfp_ns(double seconds) { return (int64_t)(seconds * 1e9 + 0.5); }

/* Gears (FL_MFP_DEFAULT: the driver's), and whether kernels are recorded; only what changes is set. */
void fl_mfp_set_up(const fl_mfp_frame *f, int32_t sm, int32_t mem, uint32_t records);

/* Enters a state whose measurement lasts so long, once the clocks have settled. */
void fl_mfp_begin_window(const fl_mfp_frame *f, int32_t state, int64_t length_ns);

/* Sets a configuration and measures kernels under it for Duration. */
void fl_mfp_measure(const fl_mfp_frame *f, int32_t state, int32_t sm, int32_t mem);

/* Index, loss and their errors, of what has been measured. */
void fl_mfp_take_index(const fl_mfp_frame *f);

enum { FL_MFP_UNLIKE = -1, FL_MFP_UNKNOWN, FL_MFP_COMPARED }; /* UNLIKE: no kind is as long as the database says */

/* What the measurement under a configuration says, where it can be compared with the database: FL_MFP_COMPARED, with
 * loss, bound and objective in *f->g. */
int fl_mfp_evaluate(const fl_mfp_frame *f, int32_t sm, int32_t mem);

/* A measurement that has not seen enough of what the database holds, or is not sure enough, goes on for another window:
 * phases that take turns need not fit into one. One that surely breaks the bound does not: it costs. */
int fl_mfp_goes_on(const fl_mfp_frame *f);

/* A quarter of a window shows what costs many times the bound, as a memory clock may; the rest would only cost more. */
int fl_mfp_is_hopeless(const fl_mfp_frame *f);
