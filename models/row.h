/* From laws to the engine's integers: a kind of kernel at a pair of clocks becomes one 16-byte row. Powers are whole
 * milliwatts per part, a length is one multiplication; so energy is exact and every way of advancing gives the same
 * bits. */
#ifndef FL_ROW_H
#define FL_ROW_H

#include "models/power.h"

/* Settings of one workload at one memory clock, measured or predicted: time relative to the reference, board power. */
typedef struct fl_measured {
    fl_curve *time_ratio;     /* against SM MHz; 1 at ref_sm_mhz, of the first at ref_mem_mhz */
    fl_curve *power_w;        /* whole board while it runs */
    double mem_mhz;           /* 0 = the load's reference */
    struct fl_measured *next; /* at another memory clock; NULL = no more */
} fl_measured;

void fl_measured_free(fl_measured *m); /* its curves and all that follow, not *m itself */
/* Those at a memory clock, or NULL. */
const fl_measured *fl_measured_find(const fl_measured *m, double ref_mem_mhz, double mem_mhz);

/* How one kind of kernel loads a device. */
typedef struct fl_load {
    double tc, tm, tl;              /* terms at the reference clocks; only their ratios count */
    double sharpness;               /* p; 0 = the device's */
    double alpha, beta;             /* shares of A and B */
    double sm_demand;               /* share of the SMs it uses when alone, 0..1 */
    double ref_sm_mhz, ref_mem_mhz; /* clocks at which its work was recorded */
    const fl_measured *measured; /* where given, time and power come from it; terms only split the memory's activity */
} fl_load;

typedef struct fl_row {
    uint32_t mul;      /* length in ps = (work_ns * mul + 2^15) >> 16 */
    int32_t dyn_mw;    /* power above the base while it runs alone: sm + memory + unsplit */
    uint16_t memory;   /* memory controller active while it runs alone, in 1/32768; its bandwidth demand */
    uint16_t sms;      /* SM demand, in 1/32768 */
    uint16_t alu;      /* ALUs active, in 1/32768 */
    uint16_t resident; /* FL_RESIDENT_*. The caller's to set: fl_row_make leaves 0 */
} fl_row;

enum {
    FL_RESIDENT_NO,     /* a copy or a marker */
    FL_RESIDENT_KERNEL, /* a kernel, or its last phase */
    FL_RESIDENT_PART    /* a phase of a kernel that goes on: it is not counted by itself */
};

typedef struct fl_row_parts {             /* sum is dyn_mw exactly */
    int32_t sm_mw, memory_mw, unsplit_mw; /* unsplit: a measured table does not say which part drew it */
} fl_row_parts;

#define FL_ROW_ONE 32768
#define FL_MUL_ONE 65536000u /* 1000 ps per ns in 16.16 */

/* The row at clocks (sm_mhz, mem_mhz). A measured load whose clock lies outside its points: FL_MODEL_RANGE. */
fl_model_status fl_row_make(const fl_device *dev, const fl_load *load, double sm_mhz, double mem_mhz, fl_row *row,
                            fl_row_parts *parts);

#endif
