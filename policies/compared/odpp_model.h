/* ODPP (as its authors ran it beside MF-GPOEO): the period of a trace, and energy and time of a period at other clocks.
 * The policy and the program that trains its networks share all of it. */
#pragma once

#include "policies/compared/mlp.h"
#include "policies/compared/readings.h"

enum { FL_ODPP_ENERGY, FL_ODPP_TIME, FL_ODPP_QUANTITIES }; /* columns of the table of weights, too */
#define FL_ODPP_COLUMNS "energy|time"

#define FL_ODPP_TRACE_S 25.0      /* the shortest trace */
#define FL_ODPP_TRACE_MAX_S 180.0 /* from here on no trace is made longer */
#define FL_ODPP_PERIODS 3.0       /* so many periods a trace should hold */
#define FL_ODPP_SETTLE_S 1.0      /* from a set to the trace */
#define FL_ODPP_IDLE_W 30.0       /* of the board that networks are trained on */
#define FL_ODPP_EPOCHS 20         /* of retraining */

typedef struct fl_odpp_run { /* at one clock */
    double mhz, period_s;
    double power_w, gpu_pct, mem_pct; /* means of the last period; power less the idle power */
} fl_odpp_run;

/* Period of the highest local maximum of the Fourier magnitude of (100 P / limit + U + V) / 3; of the whole trace,
 * without window or detrending. The trace's own length where there is no such maximum. limit_w 0: without P. */
double fl_odpp_period_s(fl_fft *work, const fl_readings *r, double limit_w);

/* By how much a trace of that length is to be made longer; 0: it is long enough. */
double fl_odpp_missing_s(double length_s, double period_s);

fl_odpp_run fl_odpp_measure(const fl_readings *r, double mhz, double period_s, double idle_w);

/* Energy (J, above the idle power) or time (s) of one period. */
double fl_odpp_quantity(const fl_odpp_run *run, int quantity);

/* That quantity at mhz, on straight lines between `count` >= 1 runs of rising clocks; beyond the ends the last line
 * goes on. */
double fl_odpp_line(const fl_odpp_run *run, uint32_t count, int quantity, double mhz);

/* The inputs of a network: what the lines say, the clock over the top clock, and power, U and V of one run. */
void fl_odpp_inputs(double *x, double line, double mhz, double top_mhz, const fl_odpp_run *features);
