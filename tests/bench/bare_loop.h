/* The ceiling that tests/bench divides by: the loop that anyone would write who wants the time and the energy of a
 * trace under a changing clock, and nothing else. No accounts per kind, no sensors, no host, no exact sums: doubles. */
#pragma once

#include "sim/workload/workload.h"

typedef struct fl_bare_rec { /* a kernel, 24 bytes */
    double length;           /* s, at the reference clocks */
    float core, memory;      /* its length bound by either clock, as a share of the length: the larger is 1 */
    float activity;          /* share of the chip's dynamic power that it draws */
    uint32_t class_id;
} fl_bare_rec;

typedef struct fl_bare_clock {
    float core, memory;              /* reference clock / this clock */
    double base_w, core_w, memory_w; /* board power: base_w + activity x core_w + memory x memory_w */
} fl_bare_clock;

typedef struct fl_bare_sums {
    double time_s, energy_j;
    uint64_t steps; /* policy steps met */
} fl_bare_sums;

/* One pass over `count` kernels. Each step_s of time the next of the `clocks` clocks is set, in turn from the first on,
 * and a kernel that runs across that instant is cut exactly there. */
fl_bare_sums fl_bare_loop(const fl_bare_rec *rec, size_t count, const fl_bare_clock *clock, size_t clocks,
                          double step_s);

/* The same compiled for this CPU, as -march=native would, where a variant of it is in the program: else NULL. On many
 * machines it is no faster: the sums wait for each other. Who looks for the ceiling takes the faster of the two. */
typedef fl_bare_sums (*fl_bare_function)(const fl_bare_rec *, size_t, const fl_bare_clock *, size_t, double);
fl_bare_function fl_bare_wide(void);

/* The first stream of a workload as such an array; free() by the caller, NULL without memory. Gaps are left out. */
fl_bare_rec *fl_bare_records(const fl_workload *w);
