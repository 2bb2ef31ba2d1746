/* MF-GPOEO as released, performance data: kinds of kernels and of the gaps between them, with what the running window
 * measured of each and, beside it, what the database of the default clocks holds. One table of each per GPU, open
 * addressing, plain bytes. Times in ns. */
#pragma once

#include "policies/policy.h"

enum { FL_MFG_KERNELS = 4096, FL_MFG_GAPS = 8192, FL_MFG_STREAMS = 64, FL_MFG_TRIES = 64 };

typedef struct fl_mfg_sums { /* what is kept of one kind; n is whole */
    double n, ns, ns2;       /* count, sum, sum of squares */
} fl_mfg_sums;

typedef struct fl_mfg_kind {
    uint64_t key;          /* 0: the cell is free */
    fl_mfg_sums now, base; /* of the window; of the database */
    uint32_t stream;       /* cell of fl_mfg_data.stream */
} fl_mfg_kind;

typedef struct fl_mfg_stream {
    uint64_t last_kind;  /* of the kernel before, without its stream; 0: none yet in this trace */
    int64_t last_end_ns; /* its end */
    uint32_t id, used;
} fl_mfg_stream;

typedef struct fl_mfg_data { /* all zero: both sides empty */
    fl_mfg_kind kernel[FL_MFG_KERNELS], gap[FL_MFG_GAPS];
    fl_mfg_stream stream[FL_MFG_STREAMS];
    double kernels, over_ns; /* of the window: kernels kept; time of those that found no room */
    double over;             /* kernels and gaps that found no room, since the start */
} fl_mfg_data;

typedef struct fl_mfg_trace { /* what of the records belongs to the window */
    int64_t begin_ns, end_ns; /* kernels that start before or end after do not */
    uint64_t cores;           /* that a grid is rounded to */
} fl_mfg_trace;

/* Blocks of a grid in whole rounds of all cores: the program rounds up to rounds and down to blocks. grid, block:
 * products of their sizes; a block of 0 counts as 1. */
uint64_t fl_mfg_grid(uint64_t grid, uint64_t block, uint64_t cores);

/* A window begins: what was measured before goes, the database stays. */
void fl_mfg_clear(fl_mfg_data *data);

/* A trace begins: no stream has had a kernel yet, so that no gap is measured before its first. */
void fl_mfg_break(fl_mfg_data *data);

/* One kernel record: its time, and the gap before it in its stream. Records without a start or an end are dropped. */
void fl_mfg_add(fl_mfg_data *data, const fl_mfg_trace *trace, const fl_kernel_kind *kind, const fl_kernel_record *r);

/* The window goes into the database, whose counts and sums of the same kinds shrink by d: a kind in both keeps
 * round(d n) of its old n, a new one is copied, one that is only old stays as it is. */
void fl_mfg_merge(fl_mfg_data *data, double d);

double fl_mfg_mean(const fl_mfg_sums *s);

/* Deviation over mean, of the population; 0 where the mean is 0. */
double fl_mfg_cv(const fl_mfg_sums *s);

/* a / b, and 0 where b is 0. */
static inline double fl_mfg_over(double a, double b) { return b == 0 ? 0 : a / b; }
