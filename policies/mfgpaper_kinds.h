/* MF-GPOEO, performance data: kinds of kernels and of the gaps between them (Eq. 3, 4, 7), their statistics in the
 * running measurement, and beside them what the baseline database holds of the same kind (Tables III and IV). One table
 * of each per GPU, open addressing, plain bytes. Times in ns. */
#pragma once

#include "policies/policy.h"

enum { FL_MFP_KERNELS = 2048, FL_MFP_GAPS = 4096, FL_MFP_STREAMS = 64, FL_MFP_TRIES = 32, FL_MFP_KNOWN = 64 };

enum {                    /* flags of a kind */
       FL_MFP_BASED = 1,  /* the database knows it */
       FL_MFP_VARIES = 2, /* its average differs from one baseline window to another: not comparable */
};

typedef struct fl_mfp_kind { /* one KnlData or GapData, and its counterpart in the database */
    uint64_t key;            /* 0: the cell is free */
    double mean_ns, m2;      /* of this measurement, Welford: m2 = sum of squared deviations */
    double base_ns;          /* database: average */
    float base_stability;    /* database: deviation over average, Eq. 8 */
    uint32_t base_count;
    uint32_t count;  /* of this measurement */
    uint16_t stream; /* cell of fl_mfp_data.stream */
    uint16_t flags;
} fl_mfp_kind;

typedef struct fl_mfp_stream {
    uint64_t last_kind;  /* of the kernel that ended last, without its stream */
    int64_t last_end_ns; /* < 0: not known, so the next gap is not measured */
    uint32_t id, used;
} fl_mfp_stream;

typedef struct fl_mfp_known { /* a kind whose key is known, of one GPU and so of its cores; 0: none */
    uint64_t key;
    uint32_t name_id, grid[3], block[3];
} fl_mfp_known;

typedef struct fl_mfp_data { /* MeasureData and DataBase, Eq. 5. All zero: both empty. */
    fl_mfp_kind kernel[FL_MFP_KERNELS], gap[FL_MFP_GAPS];
    fl_mfp_stream stream[FL_MFP_STREAMS];
    fl_mfp_known known[FL_MFP_KNOWN];
    uint64_t kernels; /* measured, those over included */
    uint64_t over;    /* kernels and gaps whose table or stream list was full, since the start */
    double over_ns;   /* execution time of such kernels in this measurement: not covered by any database */
    uint32_t kernel_kinds, gap_kinds; /* cells in use */
} fl_mfp_data;

typedef struct fl_mfp_scope { /* what of the records belongs to the measurement */
    int64_t begin_ns;         /* kernels that started earlier do not */
    int64_t gap_max_ns;       /* a longer gap is idleness */
    double cores;             /* of the GPU, for Eq. 7; 0 = not known: grids are not rounded */
} fl_mfp_scope;

/* Blocks of the grid, rounded up to whole rounds of all cores (Eq. 7). grid and block: products of their sizes. */
double fl_mfp_grid(double grid, double block, double cores);

/* Begins a measurement: what was measured goes, the database stays. */
void fl_mfp_begin(fl_mfp_data *data);

/* One finished kernel: its execution time, and the gap before it within its stream. */
void fl_mfp_add(fl_mfp_data *data, const fl_mfp_scope *scope, const fl_kernel_kind *kind,
                const fl_kernel_record *record);

/* Records are missing: the next gap of each stream is not known. */
void fl_mfp_break(fl_mfp_data *data);

/* Deviation over average of what was measured (Eq. 8); 0 where all are alike, so also for a single one. */
double fl_mfp_stability(const fl_mfp_kind *kind);
