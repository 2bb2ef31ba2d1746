/* A chip that was never measured, from its facts and the constants of similar chips. */
#include "models/chip/inside.h"

#include "models/chip/chip.h"
#include "models/fit/fit.h"
#include "models/laws/device.h"
#include "models/math/math.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The law's own parts, and four that platform files do not give. */
enum { SHARP = FL_KIN_COUNT, LINK, SLOPE, REST, DIMS };

#define KIN_MIN 3
#define DRAWS 2048
#define ROUNDS 7
#define TEMPER 0.4 /* a round counts 1 / 0.4 times as much of the likelihood as the one before; the last counts all */
#define WORKLOADS 64
#define STEPS 16 /* SM clocks at which the curve of V is stored */
#define LADDERS 4
#define MEM_LEAST 0.5 /* of the default memory clock: lower ones are for idling */

/* Assumed values. Sharpness is 9, as V100 and PVC prefer, within half either way. Half of the chips have a link; it
 * lies below 0.6 of the top clock, within a quarter (V100: 0.59, Titan X: 0.87). A tenth of B0, between a third of that
 * and three times that, does not scale with the memory clock (RTX 3080 Ti: a tenth, Titan X: nothing). */
static const double other_middle[] = {9, 0.6, 2, 0.1}, other_factor[] = {1.5, 1.25, 1.5, 3};
#define LINKED 0.5

#define IDLE_SD 0.03 /* of the logarithm: covers the errors of the law, the unit and the log */
#define RUN_TIME_SD 0.03
#define RUN_POWER_SD 0.05

#define KIN_WHAT(name, what) what,
const char *const fl_kin_what[FL_KIN_COUNT] = {FL_KIN_PARTS(KIN_WHAT)};

fl_model_status fl_kin_of_device(const fl_device *dev, fl_kin *out) {
    if (!(dev->tdp_w > 0) || dev->sm_count < 2 || !dev->voltage || !dev->b0_w)
        return FL_MODEL_INVALID;
    const double top = dev->sm_mhz[dev->sm_count - 1];
    double high = 1, middle = 1, knee = dev->sm_mhz[0], v = 0;
    for (uint32_t i = 0; i < dev->sm_count; i++)
        if (fl_curve_at(dev->voltage, dev->sm_mhz[i], 1, &v) == FL_MODEL_OK && v <= 1.005)
            knee = dev->sm_mhz[i];
    if (fl_curve_at(dev->voltage, top, 1, &high) != FL_MODEL_OK ||
        fl_curve_at(dev->voltage, (knee + top) / 2, 1, &middle) != FL_MODEL_OK)
        return FL_MODEL_INVALID;
    const int mem = fl_ladder_index(dev->mem_mhz, dev->mem_count, dev->default_mem_mhz);
    const double square = high * high * top / 1000 / dev->tdp_w;
    const double part[FL_KIN_COUNT] = {
        [FL_KIN_A] = dev->a_w * square,
        [FL_KIN_A0] = dev->a0_w * square,
        [FL_KIN_B] = dev->b_w / dev->tdp_w,
        [FL_KIN_B0] = dev->b0_w[mem < 0 ? 0 : mem] / dev->tdp_w,
        [FL_KIN_C] = dev->c_w / dev->tdp_w,
        [FL_KIN_KNEE] = knee / top,
        [FL_KIN_RISE] = high - 1,
        [FL_KIN_BEND] = fmax(1, log(fmax(1e-6, middle - 1) / fmax(1e-6, high - 1)) / log(0.5)),
    };
    for (int i = 0; i < FL_KIN_COUNT; i++)
        out->part[i] = fmax(0.01, part[i]);
    return FL_MODEL_OK;
}

fl_model_status fl_kin_prior(const fl_kin *kin, size_t count, fl_kin_spread *out) {
    const double n = (double)count;
    if (count < KIN_MIN)
        return FL_MODEL_NO_FIT;
    /* The deviation of the next chip, from few chips. */
    const double wider = gsl_cdf_tdist_Pinv(0.975, n - 1) / gsl_cdf_ugaussian_Pinv(0.975) * sqrt(1 + 1 / n);
    for (int i = 0; i < FL_KIN_COUNT; i++) {
        double mean = 0, squares = 0;
        for (size_t k = 0; k < count; k++)
            mean += log(kin[k].part[i]) / n;
        for (size_t k = 0; k < count; k++)
            squares += (log(kin[k].part[i]) - mean) * (log(kin[k].part[i]) - mean);
        out->middle[i] = exp(mean);
        out->factor[i] = exp(fmax(0.05, wider * sqrt(squares / (n - 1))));
    }
    return FL_MODEL_OK;
}

/* ---- one made-up chip ---- */

typedef struct asked {
    const fl_kin_facts *facts;
    const fl_idle_point *idle;
    const fl_chip_row *run;
    size_t idle_count, run_count;
    double mean[DIMS], sd[DIMS]; /* prior of the logarithms */
    fl_chip *chip;               /* room for one */
    fl_chip_share load[WORKLOADS];
} asked;

/* Point `index` of a sequence that fills the unit cube evenly (Roberts 2018): frac(1/2 + index / phi^(k + 1)). */
static void even_point(size_t index, size_t dims, double *x) {
    double phi = 2;
    for (int i = 0; i < 40; i++)
        phi = pow(1 + phi, 1 / ((double)dims + 1));
    for (size_t k = 0; k < dims; k++) {
        const double at = 0.5 + (double)index / pow(phi, (double)k + 1);
        x[k] = at - floor(at);
    }
}

/* Assumed workloads of all kinds: memory's part anywhere between none and all, the rest's mostly small; alpha between
 * 0.2 and 1; beta follows memory's part. */
static void make_workloads(fl_chip_share *load) {
    for (size_t k = 0; k < WORKLOADS; k++) {
        double x[4];
        even_point(k + 1, 4, x);
        load[k] = (fl_chip_share){.memory = x[0],
                                  .rest = 0.5 * x[1] * x[1],
                                  .memory_sd = 0.02,
                                  .rest_sd = 0.02,
                                  .alpha = 0.2 + 0.8 * x[2],
                                  .beta = x[0] * (0.3 + 0.7 * x[3])};
    }
}

/* The chip with these logarithms of its parts. linked: whether it has a link. */
static void set_law(const asked *q, const double *ln, int linked, fl_chip *c) {
    const fl_kin_facts *f = q->facts;
    const double top = f->sm_mhz[f->sm_count - 1], low = f->sm_mhz[0], rise = exp(ln[FL_KIN_RISE]);
    const double knee = fmax(low, top * fmin(0.98, exp(ln[FL_KIN_KNEE]))),
                 square = (1 + rise) * (1 + rise) * top / 1000;
    c->sm_ref = top;
    c->sm_min = low;
    c->mem_ref = f->default_mem_mhz;
    c->sharpness = fmax(2, exp(ln[SHARP]));
    c->link_mhz = linked ? top * fmin(0.95, exp(ln[LINK])) : 0;
    c->link_slope = fmin(5, exp(ln[SLOPE]));
    c->link_sharp = 8;
    c->a_w = exp(ln[FL_KIN_A]) * f->tdp_w / square;
    c->a0_w = exp(ln[FL_KIN_A0]) * f->tdp_w / square;
    c->b_w = exp(ln[FL_KIN_B]) * f->tdp_w;
    c->c_w = exp(ln[FL_KIN_C]) * f->tdp_w;
    c->stall = c->stall_memory = 1;
    c->knots = f->sm_count < STEPS ? f->sm_count : STEPS;
    for (uint32_t i = 0; i < c->knots; i++) {
        c->knot_mhz[i] = f->sm_mhz[(uint64_t)i * (f->sm_count - 1) / (c->knots - 1)];
        const double x = fmax(0, c->knot_mhz[i] - knee) / (top - knee);
        c->volt[i] = 1 + rise * pow(x, fmax(1, exp(ln[FL_KIN_BEND])));
    }
    const double rest = fmin(0.9, exp(ln[REST]));
    for (uint32_t i = 0; i < c->mems; i++)
        c->b0_w[i] = exp(ln[FL_KIN_B0]) * f->tdp_w * (rest + (1 - rest) * c->mem_mhz[i] / c->mem_ref);
    c->has_power = 1;
}

static double square(double x) { return x * x; }

/* Log likelihood of the run as one workload; its total length carries no information. */
static double run_likelihood(const asked *q, const fl_chip_share *share) {
    double off[2] = {0, 0}, squares = 0, power = 0;
    const fl_chip_load load = fl_chip_load_of(share);
    for (size_t i = 0; i < q->run_count; i++) {
        const fl_chip_row *r = &q->run[i];
        const double time = fl_chip_time(q->chip, &load, r->sm_mhz, r->mem_mhz), d = log(r->time_s / time);
        off[0] += d;
        squares += d * d;
        if (!isnan(r->power_w))
            power +=
                square(log(r->power_w / fl_chip_power(q->chip, &load, r->sm_mhz, r->mem_mhz, time)) / RUN_POWER_SD);
    }
    squares -= q->run_count ? off[0] * off[0] / (double)q->run_count : 0;
    return -0.5 * (squares / square(RUN_TIME_SD) + power);
}

static double idle_watts(const fl_chip *c, double sm_mhz) {
    const double v = fl_chip_volt(c, sm_mhz, c->mem_ref);
    return fl_chip_b0(c, c->mem_ref) + c->c_w * v + c->a0_w * v * v * sm_mhz / 1000;
}

/* Log likelihood of the idle log and the run, given the chip in q->chip. */
static double likelihood(const asked *q) {
    double sum = 0, top = -(double)INFINITY, each[WORKLOADS], weight = 0;
    for (size_t i = 0; i < q->idle_count; i++)
        sum -= 0.5 * square(log(q->idle[i].power_w / idle_watts(q->chip, q->idle[i].sm_mhz)) / IDLE_SD);
    if (!q->run_count)
        return sum;
    for (size_t k = 0; k < WORKLOADS; k++)
        top = fmax(top, each[k] = run_likelihood(q, &q->load[k]));
    for (size_t k = 0; k < WORKLOADS; k++)
        weight += exp(each[k] - top);
    return sum + top + log(weight / WORKLOADS);
}

/* ---- the posterior of the chip ---- */

typedef struct draws {
    double ln[DRAWS][DIMS], weight[DRAWS]; /* weights sum up to 1 */
    double mean[DIMS],
        lower[DIMS * DIMS]; /* mean and covariance factor from which the chips are drawn, then of the drawn chips */
    int linked[DRAWS];
} draws;

static double prior_density(const asked *q, const double *ln) {
    double sum = 0;
    for (int i = 0; i < DIMS; i++)
        sum -= 0.5 * square((ln[i] - q->mean[i]) / q->sd[i]);
    return sum;
}

/* Draws from the normal distribution of mean and lower, and weighs each draw by prior and likelihood over that density.
 */
static void draw_round(const asked *q, size_t round, draws *d) {
    double top = -(double)INFINITY, total = 0;
    for (size_t k = 0; k < DRAWS; k++) {
        double x[DIMS + 1], own = 0;
        even_point(round * DRAWS + k + 1, DIMS + 1, x);
        for (int i = 0; i < DIMS; i++) {
            x[i] = gsl_cdf_ugaussian_Pinv(fmin(1 - 1e-9, fmax(1e-9, x[i])));
            own -= 0.5 * x[i] * x[i];
        }
        for (int i = 0; i < DIMS; i++) {
            d->ln[k][i] = d->mean[i];
            for (int j = 0; j <= i; j++)
                d->ln[k][i] += d->lower[i * DIMS + j] * x[j];
        }
        d->linked[k] = x[DIMS] < LINKED;
        set_law(q, d->ln[k], d->linked[k], q->chip);
        d->weight[k] = prior_density(q, d->ln[k]) + pow(TEMPER, (double)(ROUNDS - 1 - round)) * likelihood(q) - own;
        top = fmax(top, d->weight[k]);
    }
    for (size_t k = 0; k < DRAWS; k++)
        total += d->weight[k] = exp(d->weight[k] - top);
    for (size_t k = 0; k < DRAWS; k++)
        d->weight[k] /= total;
}

/* Mean and covariance of the weighted draws. A hundredth of the prior's variance is added, so that they cannot
 * collapse. */
static void gather(const asked *q, draws *d) {
    double covariance[DIMS * DIMS] = {0};
    memset(d->mean, 0, sizeof d->mean);
    for (size_t k = 0; k < DRAWS; k++)
        for (int i = 0; i < DIMS; i++)
            d->mean[i] += d->weight[k] * d->ln[k][i];
    for (size_t k = 0; k < DRAWS; k++)
        for (int i = 0; i < DIMS; i++)
            for (int j = 0; j < DIMS; j++)
                covariance[i * DIMS + j] += d->weight[k] * (d->ln[k][i] - d->mean[i]) * (d->ln[k][j] - d->mean[j]);
    for (int i = 0; i < DIMS; i++)
        covariance[i * DIMS + i] += 0.01 * q->sd[i] * q->sd[i];
    if (fl_chip_cholesky(covariance, DIMS))
        memcpy(d->lower, covariance, sizeof d->lower);
}

static void draw_chips(const asked *q, draws *d) {
    memcpy(d->mean, q->mean, sizeof d->mean);
    for (int i = 0; i < DIMS; i++)
        d->lower[i * DIMS + i] = q->sd[i];
    for (size_t round = 0; round < ROUNDS; round++) {
        draw_round(q, round, d);
        if (!q->idle_count && !q->run_count)
            return; /* the prior itself: further rounds would only spread it */
        gather(q, d);
    }
}

/* ---- the resulting chip ---- */

static void place_settings(fl_chip *c) {
    c->mem_min = c->mem_ref;
    for (uint32_t j = 0; j < c->mems; j++) {
        if (c->mem_mhz[j] < MEM_LEAST * c->mem_ref || c->mem_mhz[j] > c->mem_ref)
            continue;
        c->mem_min = fmin(c->mem_min, c->mem_mhz[j]);
        for (uint32_t i = 0; i < c->knots; i++) {
            c->setting_sm[c->settings] = c->knot_mhz[i];
            c->setting_mem[c->settings++] = c->mem_mhz[j];
        }
    }
}

/* How the residuals r of all workloads correlate, as fl_chip_fit_error finds it. That function clips outliers, but none
 * of these is an outlier, so here their whole mean square counts. */
static fl_model_status spread_error(const fl_chip_row *row, const double *r, const fl_chip_span *span, size_t settings,
                                    fl_chip_error *e) {
    const fl_model_status s = fl_chip_fit_error(row, r, span, WORKLOADS, 0, e);
    double squares = 0;
    for (size_t i = 0; i < WORKLOADS * settings; i++)
        squares += r[i] * r[i] / (double)(WORKLOADS * settings);
    e->smooth = sqrt(fmax(e->smooth * e->smooth, squares - e->scatter * e->scatter));
    return s;
}

/* Adds the error of the law itself, as fl_chip_of_device assumes it. */
static void add_law_error(fl_chip_error *e, double scatter, double smooth) {
    e->scatter = hypot(e->scatter, scatter);
    e->smooth = hypot(e->smooth, smooth);
}

/* Stores how far the drawn chips lie from the central one, as a fit stores residuals, and the deviations that follow.
 */
static fl_model_status keep_spread(const asked *q, const draws *d, fl_chip *c) {
    const size_t settings = c->settings;
    fl_chip_row *row = calloc(WORKLOADS * settings + 1, sizeof *row);
    double *off = calloc(2 * WORKLOADS * settings + 2, sizeof *off),
           *power_off = off ? off + WORKLOADS * settings : NULL;
    fl_chip_span span[WORKLOADS];
    double passed = 0;
    size_t at = 0;
    fl_model_status s = row && off ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    for (size_t k = 0; s == FL_MODEL_OK && k < WORKLOADS; k++) {
        while (at + 1 < DRAWS && passed + d->weight[at] < ((double)k + 0.5) / WORKLOADS)
            passed += d->weight[at++];
        const fl_chip_load load = fl_chip_load_of(&q->load[k]);
        c->share[k] = q->load[k];
        set_law(q, d->ln[at], d->linked[at], q->chip);
        span[k] = (fl_chip_span){k * settings, settings};
        for (size_t i = 0; i < settings; i++) {
            const double f = c->setting_sm[i], m = c->setting_mem[i], law = fl_chip_time(c, &load, f, m);
            const double time = fl_chip_time(q->chip, &load, f, m);
            const double watts = fl_chip_power(q->chip, &load, f, m, time);
            row[k * settings + i] =
                (fl_chip_row){.workload = (uint32_t)k, .sm_mhz = f, .mem_mhz = m, .time_s = time, .power_w = watts};
            off[k * settings + i] = c->time_off[k][i] = log(time / law);
            power_off[k * settings + i] = c->power_off[k][i] = 1 - fl_chip_power(c, &load, f, m, time) / watts;
        }
    }
    c->shares = WORKLOADS;
    if (s == FL_MODEL_OK)
        s = spread_error(row, off, span, settings, &c->time_error);
    if (s == FL_MODEL_OK)
        s = spread_error(row, power_off, span, settings, &c->power_error);
    if (s == FL_MODEL_OK) {
        add_law_error(&c->time_error, 0.005, 0.01);
        add_law_error(&c->power_error, 0.01, 0.03);
        fl_chip_load_prior(c, c->load_mean, c->load_cov);
        s = fl_chip_cross(row, span, WORKLOADS, NULL,
                          c); /* the uncertainty of predictions: of each made-up workload by the others */
    }
    free(row);
    free(off);
    return s;
}

/* Mean of ln (measured over the law's) idle power of the chip in q->chip. */
static double idle_off(const asked *q) {
    double sum = 0;
    for (size_t i = 0; i < q->idle_count; i++)
        sum += log(q->idle[i].power_w / idle_watts(q->chip, q->idle[i].sm_mhz)) / (double)q->idle_count;
    return sum;
}

/* The law at the centre of the draws, as logarithms, and whether it has a link. The centres of A0, B0 and C, taken one
 * by one, need not add up to the idle power of the log, which every draw meets as a sum, so they are scaled to it. */
static int find_middle(const asked *q, const draws *d, double *middle) {
    double linked = 0;
    memset(middle, 0, DIMS * sizeof *middle);
    for (size_t k = 0; k < DRAWS; k++) {
        linked += d->linked[k] ? d->weight[k] : 0;
        for (int i = 0; i < DIMS; i++)
            middle[i] += d->weight[k] * d->ln[k][i];
    }
    set_law(q, middle, linked > 0.5, q->chip);
    const double off = idle_off(q);
    middle[FL_KIN_A0] += off;
    middle[FL_KIN_B0] += off;
    middle[FL_KIN_C] += off;
    return linked > 0.5;
}

static int facts_are_sound(const fl_kin_facts *f) {
    return f->sm_count >= 2 && f->mem_count >= 1 && f->sm_mhz[0] > 0 && f->mem_mhz[0] > 0 && f->tdp_w > 0 &&
           isfinite(f->tdp_w) && fl_ladder_index(f->mem_mhz, f->mem_count, f->default_mem_mhz) >= 0;
}

static void say_spread(const draws *d, fl_kin_spread *after) {
    for (int i = 0; i < FL_KIN_COUNT; i++) {
        double mean = 0, squares = 0;
        for (size_t k = 0; k < DRAWS; k++)
            mean += d->weight[k] * d->ln[k][i];
        for (size_t k = 0; k < DRAWS; k++)
            squares += d->weight[k] * square(d->ln[k][i] - mean);
        after->middle[i] = exp(mean);
        after->factor[i] = exp(sqrt(squares));
    }
}

fl_model_status fl_kin_chip(const fl_kin_facts *facts, const fl_kin_spread *prior, const fl_idle_point *idle,
                            size_t idle_count, const fl_chip_row *run, size_t run_count, fl_chip *chip,
                            fl_kin_spread *after) {
    if (!facts_are_sound(facts))
        return FL_MODEL_INVALID;
    asked *q = calloc(1, sizeof *q);
    draws *d = calloc(1, sizeof *d);
    fl_chip *room = calloc(1, sizeof *room), *c = calloc(1, sizeof *c);
    fl_model_status s = q && d && room && c ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    if (s == FL_MODEL_OK) {
        *q = (asked){facts, idle, run, idle_count, run_count, .chip = room};
        for (int i = 0; i < DIMS; i++) {
            q->mean[i] = log(i < FL_KIN_COUNT ? prior->middle[i] : other_middle[i - FL_KIN_COUNT]);
            q->sd[i] = log(i < FL_KIN_COUNT ? prior->factor[i] : other_factor[i - FL_KIN_COUNT]);
        }
        for (uint32_t i = facts->mem_count > LADDERS ? facts->mem_count - LADDERS : 0; i < facts->mem_count; i++)
            c->mem_mhz[c->mems++] = facts->mem_mhz[i];
        memcpy(room->mem_mhz, c->mem_mhz, sizeof c->mem_mhz);
        room->mems = c->mems;
        make_workloads(q->load);
        draw_chips(q, d);
        double middle[DIMS];
        const int linked = find_middle(q, d, middle);
        set_law(q, middle, linked, c);
        place_settings(c);
        s = keep_spread(q, d, c);
    }
    if (s == FL_MODEL_OK) {
        c->sharpness_sd = c->link_sd = c->c_sd = c->a0_sd = c->slope_w = c->slope_sd = NAN;
        c->stall_sd = c->stall_memory_sd = c->time_rms_pct = c->power_rms_pct = NAN;
        for (uint32_t i = 0; i < c->knots; i++)
            c->volt_sd[i] = NAN;
        *chip = *c;
        if (after)
            say_spread(d, after);
    }
    free(q);
    free(d);
    free(room);
    free(c);
    return s;
}
