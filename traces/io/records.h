/* The contents of the trace files as plain structs: kernel traces, kinds, telemetry, sweeps, decisions. This is the
 * second public header of traces/io, for code that only looks at data.
 *
 * Readers fill a struct completely or not at all. Each struct has a _free function that also accepts a zeroed struct.
 * Strings and arrays belong to the struct that holds them. Unknown values are NAN, INT64_MIN or -1, as each member
 * says, never 0. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The commented head of a canonical file: "# foldline-kernels 1", then "# key: value" lines, in order. */
typedef struct fl_head_entry {
    char *key, *value;
    int64_t line; /* line in the file that it was read from; 0: not from a file */
} fl_head_entry;

typedef struct fl_head {
    fl_head_entry *entry;
    size_t count, room;
} fl_head;

typedef struct fl_trace_kind { /* one per distinct name, grid and block */
    uint32_t name;             /* index into names */
    uint32_t grid[3], block[3];
} fl_trace_kind;

typedef enum fl_op_type {
    FL_OP_KERNEL,
    FL_OP_COPY,     /* name in brackets: [CUDA memcpy HtoD] and so on; uses no SM */
    FL_OP_SYNC,     /* name [sync]: the host thread waits from start to end, for waits_for or for everything it launched
                       before */
    FL_OP_ITERATION /* name [iteration]: the program passed an iteration marker at start */
} fl_op_type;

typedef struct fl_trace_op {
    int64_t start_ns, end_ns;
    int64_t launch_ns; /* INT64_MIN: not recorded */
    int64_t bytes;     /* -1: not recorded */
    uint32_t kind;     /* index into kinds */
    int32_t device, process, stream;
    int32_t host_thread;  /* -1: not recorded */
    uint32_t waits_first; /* first of waits_count entries in waits; each is an op (row) index lower than its own */
    uint16_t waits_count;
    uint16_t sm_mhz; /* clock at which it was recorded; 0: the head's clock */
    uint8_t type;    /* fl_op_type */
} fl_trace_op;

typedef struct fl_kernel_trace {
    fl_head head; /* keys used: device, sm_mhz, mem_mhz, kinds, source, clock_offset_ns */
    char **names;
    size_t name_count, name_room;
    fl_trace_kind *kinds;
    size_t kind_count, kind_room;
    fl_trace_op *ops; /* in file order; waits_for numbers the data rows from 0 */
    size_t op_count, op_room;
    uint32_t *waits;
    size_t wait_count, wait_room;
    bool has_launches;
} fl_kernel_trace;

typedef struct fl_kind_load {
    char *name;             /* kernel name; "*" = any other kernel */
    double tc, tm, tl;      /* shares of the recorded time: core-bound, memory-bound, and neither */
    double sharpness;       /* p of the p-norm; INFINITY = max */
    double alpha, beta;     /* share of the board's core and memory power */
    double sm_demand;       /* share of the SMs that it can use alone, 0..1; NAN = follows from grid and SM count */
    double sm_mhz, mem_mhz; /* clocks at which the shares hold; 0 = the trace's clocks */
    /* Fold line of bandwidth: the clock of the fold and the slopes below and above it, relative to the fold. fold_mhz 0
     * = the platform's, INFINITY = none: bandwidth does not depend on the SM clock. A fit that uses no fold line states
     * none, so that the platform's does not apply to its result. */
    double fold_mhz, fold_low, fold_high;
    double phase; /* share of the kernel's time that this row describes: 1, or several rows of one name */
    /* For the host time before such a kernel; NAN = the platform's value. The share that scales with the CPU clock, the
     * activity, micro-operations per cycle, and memory traffic in GB/s, all at the CPU clock of the recording. */
    double host_bound, host_alpha, host_upc, host_gb_s;
} fl_kind_load;

typedef struct fl_kinds {
    fl_head head;
    fl_kind_load *kind;
    size_t count, room;
} fl_kinds;

/* Values beyond those of any GPU. */
#define FL_SM_MHZ_MOST 10e3  /* the fastest GPUs reach 3,500 */
#define FL_MEM_MHZ_MOST 50e3 /* some tools state data rates, 28,000 */
#define FL_WATTS_MOST 10e3   /* eight boards of 1,200 W */

typedef struct fl_telemetry {
    fl_head head;
    char **signal; /* column names after t_ns and device */
    size_t signal_count;
    int64_t *t_ns;   /* row_count */
    int32_t *device; /* row_count; -1 = host */
    double *value;   /* row_count x signal_count; NAN = not known */
    size_t row_count, row_room;
    int64_t back_line, back_column; /* the row at which a clock was set back, so that rows were left out; 0 = none */
    double back_s;                  /* by how much */
} fl_telemetry;

typedef struct fl_target { /* a power target over time, as a step function */
    fl_head head;
    int64_t *t_ns; /* count, ascending: from when each target holds */
    double *watts;
    size_t count, room, watts_room;
} fl_target;

typedef struct fl_sweep_row {
    uint32_t workload, kernel;           /* indices into names; kernel may name the empty string */
    double sm_mhz, mem_mhz, power_cap_w; /* NAN = not set or not known */
    double time_s, power_w, energy_j;
    /* For a distribution replay (sim/draws/draws.h), NAN = not known: the coefficient of variation of the energy of one
     * step, the ratio of core to uncore utilisation, and the coefficient of variation of that ratio. */
    double energy_cv, ratio, ratio_cv;
    /* For a predicted setting, in percent: one standard deviation of time and power; 0 or NAN = measured. */
    double time_sd_pct, power_sd_pct;
    int64_t line;
} fl_sweep_row;

/* Shares of the time in which a part of the GPU works, in percent, named as in DCGM. No fit uses them. */
typedef enum fl_counter {
    FL_COUNTER_DRAM,
    FL_COUNTER_SM,
    FL_COUNTER_OCCUPANCY,
    FL_COUNTER_FP32,
    FL_COUNTER_FP64,
    FL_COUNTER_FP16,
    FL_COUNTER_TENSOR,
    FL_COUNTERS
} fl_counter;

/* Utilisation readings of the board, in percent as NVML reports them: their mean over a run, and the standard deviation
 * of single readings. */
typedef enum fl_utilisation { FL_UTIL_GPU, FL_UTIL_GPU_SD, FL_UTIL_MEM, FL_UTIL_MEM_SD, FL_UTILS } fl_utilisation;

typedef struct fl_sweep {
    fl_head head;
    char **names;
    size_t name_count, name_room;
    fl_sweep_row *rows;
    size_t row_count, row_room;
    double *activity; /* row_count x FL_COUNTERS, NAN = not known; NULL where the sweep has no such column */
    size_t activity_room;
    double *util; /* row_count x FL_UTILS, NAN = not known; NULL where the sweep has no such column */
    size_t util_room;
} fl_sweep;

typedef struct fl_logged_kind {
    char *name;
    uint32_t name_id; /* the number that the host gave the name: equal for equal names */
    uint32_t grid[3], block[3];
} fl_logged_kind;

typedef struct fl_logged_kernel {
    int64_t start_ns, end_ns; /* end_ns -1 = missing */
    uint32_t kind, gpu, stream;
} fl_logged_kernel;

typedef struct fl_logged_batch {
    int64_t start_ns, end_ns;
    uint32_t server, prompt_tokens, prompts, decode_sequences;
    uint64_t kv_tokens;
} fl_logged_batch;

#define FL_STEPS_UNTOLD UINT64_MAX /* the number of missed steps is not known */

typedef struct fl_logged_servers { /* what a policy saw of servers; signal NULL = the columns are not there */
    char **signal;
    size_t signal_count;
    uint32_t count;     /* of servers, the same in every step */
    size_t rows, steps; /* so far; rows of whole steps: steps x count */
    double *value;      /* rows x signal_count; NAN = invalid */
    bool *fresh;        /* rows x signal_count */
    uint64_t *lost;     /* rows: steps of engines that the policy missed, in the row of server 0; FL_STEPS_UNTOLD in
                               the other rows, and where the host reports no such steps */
    fl_logged_batch *batch;
    size_t batch_count;
    size_t *batches_until; /* steps: how many were seen up to this one */
} fl_logged_servers;

typedef struct fl_decisions {
    fl_head
        head; /* keys: platform, policy, seed, set.NAME for each parameter, table.NAME for each table, gpus, source */
    char **signal; /* signal columns, between device and fresh */
    size_t signal_count;
    char **control; /* names of the set_ columns, without the prefix */
    size_t control_count;
    uint32_t gpu_count;
    size_t step_count;
    int64_t *t_ns;     /* step_count */
    int64_t *delay_ns; /* step_count; -1 = not recorded */
    int64_t *line;     /* step_count entries: the line of the file at which the step begins */
    /* step_count x (gpu_count + 1) x columns; entry 0 of each step is the host */
    double *value;     /* x signal_count; NAN = invalid */
    bool *fresh;       /* x signal_count */
    double *set;       /* x control_count; NAN = not set, -1 = default */
    int64_t torn_line; /* line of a torn last row that was skipped, 0 = none */
    bool has_kernels;  /* the file has the ten columns of activity records; without them the members below are empty */
    fl_logged_kind *kind;
    fl_logged_kernel *kernel;
    size_t kind_count, kernel_count;
    uint64_t *lost;                      /* step_count: records lost since the step before */
    size_t *kinds_until, *kernels_until; /* step_count: how many were known, and seen, up to this step */
    fl_logged_servers servers;
} fl_decisions;

void fl_head_free(fl_head *h);
void fl_kernel_trace_free(fl_kernel_trace *t);
void fl_kinds_free(fl_kinds *k);
void fl_telemetry_free(fl_telemetry *t);
void fl_sweep_free(fl_sweep *s);
void fl_target_free(fl_target *t);
void fl_decisions_free(fl_decisions *d);

/* The value of a head key, or NULL. */
const char *fl_head_get(const fl_head *h, const char *key);
int64_t fl_head_line(const fl_head *h, const char *key); /* 0: the head is not from a file, or has no such key */
/* Adds or replaces an entry; copies both texts. False when out of memory. */
bool fl_head_set(fl_head *h, const char *key, const char *value);
/* Add the entries of another head whose keys this one lacks, in time that grows with both. False when out of memory. */
bool fl_head_merge(fl_head *to, const fl_head *from);
