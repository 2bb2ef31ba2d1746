/* ODPP's model: the period of a trace of NVML readings, straight lines over clocks, and its small networks. The
 * policies of this module, odpp and depo, are rows of policies/registry; this header is for `fit policy odpp`, which trains
 * the networks.
 *
 * Add samples with fl_readings_add, find the period with fl_odpp_period_s, reduce a trace to fl_odpp_run, and predict
 * by fl_odpp_line and fl_mlp_predict. All state is plain bytes of the caller; nothing allocates and nothing fails. */
#pragma once

#include "policies/policy.h"
#include "policies/random.h"

#include <stdint.h>

/* ---- Fourier transforms of traces of any length ---- */

#define FL_FFT_MAX 4096 /* samples */

typedef struct fl_complex {
    double re, im;
} fl_complex;

typedef struct fl_fft { /* scratch; its content means nothing before and after a call */
    fl_complex root[FL_FFT_MAX], out[FL_FFT_MAX], part[FL_FFT_MAX];
} fl_fft;

/* ---- the network ----
 *
 * Five inputs, batch norm over them, hidden layers of 46, 92 and 92 rectified units, one
 * output; trained by Adam on the mean squared error. What ODPP's text leaves open is as PyTorch has it by default:
 * batch norm with momentum 0.1 and 1e-5 under the root, Adam with 1e-3, 0.9, 0.999 and 1e-8, first weights uniform
 * within 1 / sqrt(inputs of the layer).
 *
 * The network is plain bytes, an array of numbers: scale and shift of the batch norm; then for each layer the weights,
 * row by row with one row for each of its units, and the biases; last, running mean and variance of the inputs. */

enum {
    FL_MLP_INPUTS = 5,
    FL_MLP_1 = 46,
    FL_MLP_2 = 92,
    FL_MLP_3 = 92,
    FL_MLP_TRAINED = 2 * FL_MLP_INPUTS + (FL_MLP_INPUTS + 1) * FL_MLP_1 + (FL_MLP_1 + 1) * FL_MLP_2 +
                     (FL_MLP_2 + 1) * FL_MLP_3 + FL_MLP_3 + 1, /* numbers that a gradient moves */
    FL_MLP_SIZE = FL_MLP_TRAINED + 2 * FL_MLP_INPUTS
};

typedef struct fl_mlp {
    double value[FL_MLP_SIZE];
} fl_mlp;

typedef struct fl_mlp_adam { /* zeroed: before the first step */
    double gradient[FL_MLP_TRAINED], first[FL_MLP_TRAINED], second[FL_MLP_TRAINED];
    uint64_t steps;
} fl_mlp_adam;

void fl_mlp_draw(fl_mlp *net, fl_random *random); /* first weights */

/* The output for FL_MLP_INPUTS inputs, by the running mean and variance. */
double fl_mlp_predict(const fl_mlp *net, const double *x);

/* One step of Adam on one batch: x has `count` rows of FL_MLP_INPUTS, y `count` numbers, count >= 1. The batch norm
 * uses mean and variance of the batch, and moves the running ones towards them. Returns the mean squared error before
 * it. */
double fl_mlp_train(fl_mlp *net, fl_mlp_adam *adam, const double *x, const double *y, uint32_t count);

/* ---- readings: a trace of one GPU's power and two utilisations, all that ODPP uses to find a period ---- */

typedef struct fl_readings {
    int64_t first_ns, last_ns;
    uint32_t count;
    float power_w[FL_FFT_MAX], gpu_pct[FL_FFT_MAX], mem_pct[FL_FFT_MAX];
} fl_readings;

#define FL_READINGS_NEEDS (FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_UTIL_GPU_PCT) | FL_BIT(FL_GPU_UTIL_MEM_PCT))

/* Add one sample. Skips it if one of the three is not known, or the trace is full. */
void fl_readings_add(fl_readings *r, const fl_gpu_sample *s, int64_t now_ns);

/* Return the seconds that all samples cover; 0 for fewer than two. */
double fl_readings_length_s(const fl_readings *r);

/* Return the board's power limit as the paper's machines have it: the default one, else the highest known; 0: none. */
double fl_readings_limit_w(const fl_gpu_facts *f);

/* ---- ODPP as its authors ran it beside MF-GPOEO: the period, and its energy and time at other clocks ---- */

enum { FL_ODPP_ENERGY, FL_ODPP_TIME, FL_ODPP_QUANTITIES }; /* columns of the table of weights, too */

#define FL_ODPP_TRACE_S 25.0 /* the shortest trace */

#define FL_ODPP_SETTLE_S 1.0 /* from a set to the trace */
#define FL_ODPP_IDLE_W 30.0  /* of the board that networks are trained on */

typedef struct fl_odpp_run { /* at one clock */
    double mhz, period_s;
    double power_w, gpu_pct, mem_pct; /* means of the last period; power less the idle power */
} fl_odpp_run;

/* Return the period at the highest local maximum of the Fourier magnitude of (100 P / limit + U + V) / 3, over the
 * whole trace, without window or detrending. Without such a maximum: the trace's own length. limit_w 0: without P. */
double fl_odpp_period_s(fl_fft *work, const fl_readings *r, double limit_w);

/* Return how much longer a trace of that length must become; 0: it is long enough. */
double fl_odpp_missing_s(double length_s, double period_s);

fl_odpp_run fl_odpp_measure(const fl_readings *r, double mhz, double period_s, double idle_w);

/* Return energy (J, above the idle power) or time (s) of one period. */
double fl_odpp_quantity(const fl_odpp_run *run, int quantity);

/* Interpolate that quantity at mhz, on straight lines between `count` >= 1 runs of rising clocks. The last line
 * continues beyond the ends. */
double fl_odpp_line(const fl_odpp_run *run, uint32_t count, int quantity, double mhz);

/* Fill the inputs of a network: the value of the lines, the clock over the top clock, and power, U and V of one run. */
void fl_odpp_inputs(double *x, double line, double mhz, double top_mhz, const fl_odpp_run *features);
