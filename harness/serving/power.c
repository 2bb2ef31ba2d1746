#include "harness/serving/power.h"

#include "harness/plan/fit_pipeline.h"
#include "models/math/least.h"

#include <math.h>
#include <stdlib.h>

#define POWER_SD 0.04 /* of a measured power about such a law, as a share: L20, 2.7 to 3.8 % */
#define GUESS_SD 0.7  /* of the logarithm of each number about where it begins */

enum { P0, IDLE, COMPUTE, MEMORY, KNEE, RISE, NUMBERS };
enum { FLAT = KNEE }; /* how many numbers a law has whose voltage does not rise */
/* Shares of the highest power that a chip's parts draw at full load and top clock: round numbers, from the platforms
 * of this repository (static and idle memory 0.15 to 0.35, clock tree 0.1 to 0.2, the rest SMs and memory). */
static const double GUESS[] = {0.3, 0.15, 0.3, 0.2};

typedef struct problem {
    const fl_serving_load *load;
    size_t count;
    double top_mhz, highest_w;
    size_t numbers; /* NUMBERS or FLAT */
} problem;

double fl_serving_robust(double log_ratio, double sd) {
    const double bend = 2, z = log_ratio / sd;
    const double r = bend * sqrt(2 * (sqrt(1 + z * z / (bend * bend)) - 1));
    return z < 0 ? -r : r;
}

double fl_serving_power_v(const fl_serving_power *p, double sm_mhz) {
    return 1 + p->rise * fmax(sm_mhz / p->top_mhz - p->knee, 0);
}

double fl_serving_power_at(const fl_serving_power *p, double sm_mhz, double compute, double memory) {
    const double v = fl_serving_power_v(p, sm_mhz);
    return p->p0_w + sm_mhz / 1000 * v * v * (p->idle_w + compute * p->compute_w) + memory * p->memory_w;
}

/* What is expected of any chip's voltage is the same as of a pipeline's (harness/plan/believe.c). */
static fl_serving_power power_of(const problem *p, const double *x) {
    const fl_belief *knee = &fl_pipeline_any_chip.knee, *rise = &fl_pipeline_any_chip.rise;
    const double ghz = p->top_mhz / 1000;
    return (fl_serving_power){.p0_w = GUESS[P0] * p->highest_w * exp(x[P0] * GUESS_SD),
                              .idle_w = GUESS[IDLE] * p->highest_w / ghz * exp(x[IDLE] * GUESS_SD),
                              .compute_w = GUESS[COMPUTE] * p->highest_w / ghz * exp(x[COMPUTE] * GUESS_SD),
                              .memory_w = GUESS[MEMORY] * p->highest_w * exp(x[MEMORY] * GUESS_SD),
                              .knee = p->numbers == FLAT ? 1 : knee->mean + knee->sd * x[KNEE],
                              .rise = p->numbers == FLAT ? 0 : fmax(rise->mean + rise->sd * x[RISE], 0),
                              .top_mhz = p->top_mhz};
}

static void residuals(void *user, const double *x, double *residual) {
    const problem *p = user;
    const fl_serving_power law = power_of(p, x);
    for (size_t i = 0; i < p->count; i++) {
        const fl_serving_load *l = &p->load[i];
        const double w = fl_serving_power_at(&law, l->sm_mhz, l->compute, l->memory);
        residual[i] = fl_serving_robust(log(w / l->power_w), POWER_SD);
    }
    for (size_t k = 0; k < p->numbers; k++)
        residual[p->count + k] = x[k];
}

/* *cost: the sum of squares that is left. */
static fl_status fit(problem *p, size_t numbers, fl_serving_power *out, double *cost, fl_diag *d) {
    double x[NUMBERS] = {0};
    double *left = malloc((p->count + numbers) * sizeof *left);
    if (!left)
        return fl_no_memory(d, "a fit");
    p->numbers = numbers;
    const fl_model_status s = fl_least_squares(residuals, p, x, numbers, p->count + numbers);
    *out = power_of(p, x);
    *cost = 0;
    if (s == FL_MODEL_OK)
        residuals(p, x, left);
    for (size_t i = 0; s == FL_MODEL_OK && i < p->count + numbers; i++)
        *cost += left[i] * left[i];
    free(left);
    if (s == FL_MODEL_NO_MEMORY)
        return fl_no_memory(d, "a fit");
    return s == FL_MODEL_OK ? FL_OK : fl_refuse(d, "no law fits the powers of the step table: %s", fl_model_text(s));
}

/* A voltage that rises is believed where the powers ask for it: where it lowers the squares that are left by more than
 * two for each of its two numbers (Akaike, 1974). Two clocks never do: then P is a line between them. */
fl_status fl_serving_power_fit(const fl_serving_load *load, size_t count, double top_mhz, fl_serving_power *out,
                               fl_diag *d) {
    problem p = {.load = load, .count = count, .top_mhz = top_mhz};
    double flat_cost = 0, cost = 0;
    fl_serving_power rising;
    for (size_t i = 0; i < count; i++)
        p.highest_w = fmax(p.highest_w, load[i].power_w);
    fl_status s = fit(&p, FLAT, out, &flat_cost, d);
    if (!s)
        s = fit(&p, NUMBERS, &rising, &cost, d);
    if (!s && cost + 4 < flat_cost)
        *out = rising;
    return s;
}
