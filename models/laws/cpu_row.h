/* The host CPU's laws as integers, one row per host load and state; see fl_cpu_spec. */
#pragma once

#include "models/laws/device.h"
#include "models/laws/row.h"

typedef struct fl_host_load { /* how a thread's host time loads the CPU */
    double bound;             /* share of host time that scales with 1 / CPU clock, 0..1 */
    double alpha;             /* activity of a thread that computes */
    double upc;               /* micro-operations per cycle, at the reference clock */
    double bytes_per_s;       /* memory traffic, at the reference clock */
} fl_host_load;

typedef struct fl_cpu_row {
    uint32_t mul;     /* length in ps = (host_ns * mul + 2^15) >> 16 */
    int32_t mw;       /* power of a thread that computes */
    uint32_t uops;    /* per ps of work, in 2^-20 */
    uint32_t bytes;   /* per ps of work, in 2^-20 */
    uint32_t traffic; /* APU: share of the bus in 1/65536 */
} fl_cpu_row;

typedef struct fl_cpu_state {
    int32_t mhz;
    int32_t static_mw; /* static power of the package */
    int32_t wait_mw;   /* power of a thread that waits */
    uint32_t cycles;   /* per ps of a thread not asleep, in 2^-20 */
    uint32_t wait_uops;
} fl_cpu_state;

/* Number of states, in this order: those that software may set, then the boost states. */
uint32_t fl_cpu_state_count(const fl_cpu_spec *cpu);
double fl_cpu_ref_mhz(const fl_cpu_spec *cpu);
/* The clock of a node where nothing is set. Where the default is the highest state that software may set, it is the
 * highest boost state. */
double fl_cpu_default_mhz(const fl_cpu_spec *cpu);

/* The load that the platform assumes for host time. */
fl_host_load fl_cpu_default_load(const fl_cpu_spec *cpu);

fl_model_status fl_cpu_state_make(const fl_cpu_spec *cpu, uint32_t state, fl_cpu_state *out);
/* bus_bytes_per_s: bandwidth of the bus that CPU and GPU share; 0 = none. */
fl_model_status fl_cpu_row_make(const fl_cpu_spec *cpu, const fl_host_load *load, uint32_t state,
                                double bus_bytes_per_s, fl_cpu_row *row);
