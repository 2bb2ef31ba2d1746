/* From laws to the engine's integers: a kind of kernel at a pair of clocks becomes one 16-byte row. Each part of the
 * power is a whole number of milliwatts, and a length is one multiplication. Energy is therefore exact, and every way
 * of advancing the simulation gives the same bits. */
#pragma once

#include "models/laws/power.h"

/* One workload at one memory clock, measured or predicted: its time relative to the reference, and the board's power.
 */
typedef struct fl_measured {
    fl_curve *time_ratio;     /* against SM MHz; the table at ref_mem_mhz has 1 at ref_sm_mhz */
    fl_curve *power_w;        /* power of the whole board while the workload runs */
    double mem_mhz;           /* 0 = the load's reference */
    struct fl_measured *next; /* the same workload at another memory clock; NULL = no more */
} fl_measured;

void fl_measured_free(fl_measured *m); /* frees the curves and all following tables, but not *m itself */
/* The table at a memory clock, or NULL. */
const fl_measured *fl_measured_find(const fl_measured *m, double ref_mem_mhz, double mem_mhz);

/* How one kind of kernel loads a device. */
typedef struct fl_load {
    double tc, tm, tl;              /* terms at the reference clocks; only their ratios matter */
    double sharpness;               /* p; 0 = the device's */
    double alpha, beta;             /* shares of A and B */
    double sm_demand;               /* share of the SMs that it uses when it runs alone, 0..1 */
    double ref_sm_mhz, ref_mem_mhz; /* clocks at which its work was recorded */
    const fl_measured *measured;    /* where given, it supplies time and power; terms give the memory's share */
} fl_load;

typedef struct fl_row {
    uint32_t mul;      /* length in ps = (work_ns * mul + 2^15) >> 16 */
    int32_t dyn_mw;    /* power above the base while the kernel runs alone: sm + memory + unsplit */
    uint16_t memory;   /* memory controller active while it runs alone, in 1/32768 of the time */
    uint16_t sms;      /* SM demand, in 1/32768 */
    uint16_t alu;      /* share of time the ALUs are active, in 1/32768 */
    uint16_t resident; /* FL_RESIDENT_*. The caller sets it; fl_row_make leaves 0 */
} fl_row;

enum {
    FL_RESIDENT_NO,     /* a copy or a marker */
    FL_RESIDENT_KERNEL, /* a kernel, or its last phase */
    FL_RESIDENT_PART    /* a phase of a kernel that continues: not counted as a kernel by itself */
};

typedef struct fl_row_parts {             /* the sum equals dyn_mw exactly */
    int32_t sm_mw, memory_mw, unsplit_mw; /* unsplit: a measured table does not say which part drew the power */
} fl_row_parts;

#define FL_ROW_ONE 32768
#define FL_MUL_ONE 65536000u /* 1000 ps per ns in 16.16 */

/* The row at clocks (sm_mhz, mem_mhz). FL_MODEL_RANGE: the clock lies outside the points of a measured load. */
fl_model_status fl_row_make(const fl_device *dev, const fl_load *load, double sm_mhz, double mem_mhz, fl_row *row,
                            fl_row_parts *parts);
