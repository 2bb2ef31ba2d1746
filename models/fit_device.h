/* The part of a device that shows when nothing is at stake but its clocks: V(f) from powers of kernels over the SM
 * clocks, B0(m) from kernels that ignore the memory clock, and the static part and the idle clock tree from readings of
 * an idle GPU. The law is that of models/row.h:
 *
 *   P = alpha A V^2 f + beta B m/m_ref + B0(m) + C V + A0 V^2 f        (power-capping Eq. 2, extended)
 *
 * Clocks are MHz, powers W, V is relative to its floor. Every array is the caller's; nothing is kept. Readings that are
 * NaN are missing ones and are skipped; one that is infinite, or a power <= 0, is INVALID. */
#ifndef FL_FIT_DEVICE_H
#define FL_FIT_DEVICE_H

#include "models/status.h"

#include <stddef.h>

/* ---- V(f) ---- */

typedef struct fl_voltage_fit {
    size_t floor_count;     /* so many of the lowest clocks lie on one line: V = 1. At least 3; where no more, the data
                               show no floor, and V is relative to the line that it touches at the bottom */
    double floor_mhz;       /* the highest of them */
    double floor_rms_pct;   /* of g against f on the floor, in percent of f */
    double rms_pct;         /* of power against c + s g, in percent of the kernel's mean power */
    double uncertainty_pct; /* of V at its worst clock, from that scatter: one standard deviation. NaN where the
                               readings are too few to show any (a single kernel) */
    size_t kernels;         /* with three readings or more; others say nothing */
} fl_voltage_fit;

/* The shared g(f) = V(f)^2 f by which P_k(f) = c_k + s_k g(f): the law at one memory clock, with what C V adds left
 * to g (so V comes out a little high above the floor where the kernels' own slopes are small). Alternating least
 * squares of the relative error with Huber's weights, so neither kernels of tiny slope nor single bad readings matter.
 * The data leave g's offset and scale open: both come from the longest run of lowest clocks over which g is a line
 * (within 1 % of V), taken as the floor of the voltage: g = f on it (power-capping 3.2.2: the Titan X is linear in f up
 * to 975 MHz, then steepens).
 *
 * sm_mhz: `clocks` >= 4 strictly ascending; power_w: kernels x clocks, row by row, all at one memory clock. volt,
 * dynamic_mhz: one per clock, written on success: V, non-decreasing from exactly 1 on the floor, and g as measured,
 * before it was made monotone (so dynamic_mhz[i] / sm_mhz[i] - 1 on the floor shows the noise); either may be NULL.
 * NO_FIT: a clock without a reading, no kernel whose power rises with the clock, V known no better than
 * to 10 %, or a g that goes up and down as no voltage does. */
fl_model_status fl_fit_voltage(const double *sm_mhz, size_t clocks, const double *power_w, size_t kernels, double *volt,
                               double *dynamic_mhz, fl_voltage_fit *out);

/* The highest clock up to which every V is <= 1 + tolerance; NaN where the first already exceeds it. */
double fl_voltage_floor_mhz(const double *sm_mhz, const double *volt, size_t clocks, double tolerance);

/* ---- B0(m) ---- */

/* One kernel at one SM clock and two memory clocks. */
typedef struct fl_memory_pair {
    double low_time_s, low_w;   /* at the lower memory clock */
    double high_time_s, high_w; /* at the higher */
} fl_memory_pair;

typedef struct fl_idle_memory {
    double watts;    /* B0(high) - B0(low): median over the pairs used */
    double mean_w;   /* their mean, for comparison */
    double spread_w; /* their standard deviation, robust: 1.4826 times the median distance from the median */
    size_t used;     /* pairs */
} fl_idle_memory;

/* A kernel whose time differs by less than `tolerance` (a share, 0.01 = 1 %) ignores the memory clock: it moves next to
 * no bytes, beta is about 0, and its power still differs by what idle memory draws. NO_FIT: fewer than 3 such pairs. */
fl_model_status fl_fit_idle_memory(const fl_memory_pair *pair, size_t count, double tolerance, fl_idle_memory *out);

#endif
