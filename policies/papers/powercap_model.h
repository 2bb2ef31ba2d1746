/* The static method of hybrid power capping (power-capping 3.2): power and time of one application against the clocks
 * of GPU and CPU, and the pair of clocks that it takes under a cap. Filled from the table that `foldline fit capping`
 * writes. */
#pragma once

#include "policies/policy.h"

/* Columns of the table; quantities: static_w, comm_w, comm_s, and for either processor gpu. or cpu. with volt (one row
 * per clock), a_w, b_w, c_w, alpha, beta, and time_s (two rows: at the lowest and the highest clock). idle_s: both wait
 * (T_idle, part of T_all). The column mhz is 0 where a quantity belongs to no clock. comm_w, comm_s, idle_s and all of
 * the CPU's may be left out; foldline fit capping, whose applications never idle, writes no idle_s. */
#define POWERCAP_COLUMNS "key:quantity|mhz|value"

typedef struct powercap_side { /* one processor */
    double a_w, b_w, c_w;      /* Eq. 2: A in W per V^2 GHz, B in W, C in W per V */
    double alpha, beta;
    double low_mhz, low_s, high_mhz, high_s; /* Eq. 3 */
    double volt_low_mhz, volt_high_mhz;      /* clocks between which V is known */
    const char *volt;                        /* its quantity */
} powercap_side;

typedef struct powercap_model { /* borrows the table */
    const fl_table *table;
    double static_w, comm_w, comm_s, idle_s; /* Eq. 1 */
    powercap_side gpu, cpu;
    int has_cpu;
    int printed; /* Eq. 3 as printed at its two measured clocks too; else what was measured stands there */
} powercap_model;

/* NULL, or static text saying what is wrong with the table. */
const char *powercap_model_read(powercap_model *m, const fl_table *table);

double powercap_power(const powercap_model *m, const powercap_side *s, double mhz); /* Eq. 2; W */
double powercap_time(const powercap_model *m, const powercap_side *s, double mhz);  /* Eq. 3; s */

enum { POWERCAP_ENERGY, POWERCAP_TIME };

typedef struct powercap_choice {
    double gpu_mhz, cpu_mhz;         /* cpu_mhz 0: the CPU's clock is not chosen */
    double peak_w, time_s, energy_j; /* of the node, as predicted: the largest power of any part of the run */
    int fits;                        /* 0: no pair stays under the cap; this is the one of least power */
} powercap_choice;

/* Over all pairs of clocks whose power does not exceed cap_w in any part of the run: the least energy, or the least
 * time; then the other of the two; then the lower clocks. Ladders: gpu not empty; cpu may be. */
void powercap_choose(const powercap_model *m, fl_ladder gpu, fl_ladder cpu, double cap_w, int objective,
                     powercap_choice *out);
