/* The law of a server's steps from layer tables at one SM clock or several, and the power of the steps. */
#include "harness/serving/inside.h"

#include "harness/base/work/work.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* What tables of several clocks tell beyond those of one: the share of the memory's part that goes as 1 / f, and the
 * sharpness, of matrix products and of attention. */
enum { FOLLOWS, SHARP, KV_FOLLOWS, KV_SHARP, NUMBERS };

#define FOLLOWS_GUESS (-2) /* as a logit: a share of 0.12 */
#define SHARP_MOST 60

typedef struct problem {
    const fl_serving_layers *t;
    const fl_serving *server;
    double mhz[FL_STEP_CLOCKS];
    uint32_t clocks;
    fl_serving_sample *step[FL_STEP_CLOCKS], *joules[FL_STEP_CLOCKS]; /* of each clock, with times and with energies */
    size_t count[FL_STEP_CLOCKS];
    double leave_out, ref;  /* clock that the fit does not see (0: none), and that at which the law's tables hold */
    const fl_step_law *law; /* fitted to the tables at ref alone */
} problem;

/* ---- the tables of one clock ---- */

static double clock_of(const problem *p, double sm_mhz) { return sm_mhz > 0 ? sm_mhz : p->t->sm_mhz; }

/* joules: each time becomes the energy of that time, which adds up over layers as times do. */
static fl_layers layers_at(const problem *p, const fl_layers *l, double mhz, bool joules) {
    fl_layers one = *l;
    one.row = fl_must(malloc((l->count + 1) * sizeof *one.row));
    one.count = 0;
    for (size_t i = 0; i < l->count; i++)
        if (clock_of(p, l->row[i].sm_mhz) == mhz) {
            one.row[one.count] = l->row[i];
            one.row[one.count++].time_s *= joules ? l->row[i].power_w : 1;
        }
    return one;
}

/* The rows are to be freed, all else is borrowed. */
static fl_serving_layers tables_at(const problem *p, double mhz, bool joules) {
    const fl_attention *a = &p->t->attention;
    fl_serving_layers one = *p->t;
    one.sm_mhz = mhz;
    one.dense = layers_at(p, &p->t->dense, mhz, joules);
    one.per_sequence = layers_at(p, &p->t->per_sequence, mhz, joules);
    one.attention = (fl_attention){.row = fl_must(malloc((a->count + 1) * sizeof *a->row))};
    for (size_t i = 0; i < a->count; i++)
        if (clock_of(p, a->row[i].sm_mhz) == mhz) {
            one.attention.row[one.attention.count] = a->row[i];
            one.attention.row[one.attention.count++].time_s *= joules ? a->row[i].power_w : 1;
        }
    return one;
}

static void tables_free(fl_serving_layers *t) {
    free(t->dense.row);
    free(t->per_sequence.row);
    free(t->attention.row);
}

static double nearer(const problem *p, double sm_mhz, double last, double next) {
    const double mhz = clock_of(p, sm_mhz);
    return mhz > last ? fmin(next, mhz) : next;
}

static fl_status find_clocks(problem *p, fl_diag *d) {
    const fl_serving_layers *t = p->t;
    for (double last = 0;;) {
        double next = INFINITY;
        for (size_t i = 0; i < t->dense.count; i++)
            next = nearer(p, t->dense.row[i].sm_mhz, last, next);
        for (size_t i = 0; i < t->per_sequence.count; i++)
            next = nearer(p, t->per_sequence.row[i].sm_mhz, last, next);
        for (size_t i = 0; i < t->attention.count; i++)
            next = nearer(p, t->attention.row[i].sm_mhz, last, next);
        if (isinf(next))
            return FL_OK;
        if (p->clocks == FL_STEP_CLOCKS)
            return fl_refuse(d, "layer tables of more than %d clocks, expected fewer", FL_STEP_CLOCKS);
        p->mhz[p->clocks++] = last = next;
    }
}

static fl_status take_steps(problem *p, fl_diag *d) {
    fl_status s = FL_OK;
    for (uint32_t k = 0; !s && p->clocks > 1 && k < p->clocks; k++) {
        fl_serving_layers one = tables_at(p, p->mhz[k], false), joules = tables_at(p, p->mhz[k], true);
        s = fl_serving_samples(&one, p->server, &p->step[k], &p->count[k], d);
        if (!s)
            s = fl_serving_samples(&joules, p->server, &p->joules[k], &p->count[k], d);
        tables_free(&one);
        tables_free(&joules);
    }
    return s;
}

/* ---- the fit ---- */

static double share(double logit) { return 1 / (1 + exp(-logit)); }

static double sharper(double sharpness, double x) { return 1 + fmin(fmax(sharpness - 1, 0.1) * exp(x), SHARP_MOST); }

/* At the reference clock the time stays that of the tables, whatever x. */
static fl_step_law law_of(const problem *p, const double *x) {
    fl_step_law l = *p->law;
    const double ghz = p->ref / 1000, kv_s = share(FOLLOWS_GUESS + x[KV_FOLLOWS]) * fmin(l.kv_s, l.kv_beside_s);
    l.weights_clock = share(FOLLOWS_GUESS + x[FOLLOWS]) * l.by_tokens.time_s[0] * ghz;
    l.sharpness = sharper(l.sharpness, x[SHARP]);
    l.kv_clock = kv_s * ghz;
    l.kv_s -= kv_s;
    l.kv_beside_s -= kv_s;
    l.attention_sharpness = sharper(l.attention_sharpness, x[KV_SHARP]);
    return l;
}

/* Without what no row holds: the host, experts, and what ranks send each other. */
static fl_step_point step_at(const fl_step_law *law, const fl_serving_sample *s, double mhz) {
    fl_step_law bare = *law;
    fl_step_point at = {0};
    bare.host_s = 0;
    bare.experts = bare.reduces = bare.exchanges = 0;
    return fl_step_at(&bare, &s->shape, mhz, 1, &at) == FL_MODEL_OK ? at : (fl_step_point){.time_s = NAN};
}

static double measured(const fl_serving_sample *s) { return s->rest_s + s->attention_s; }

/* In W; NAN where a layer has none. */
static double power_of(const problem *p, uint32_t clock, size_t i) {
    const fl_serving_sample *j = &p->joules[clock][i];
    return j->rest_s > 0 && j->attention_s > 0 ? measured(j) / measured(&p->step[clock][i]) : NAN;
}

static void residuals(void *user, const double *x, double *residual) {
    const problem *p = user;
    const fl_step_law law = law_of(p, x);
    size_t n = 0;
    for (uint32_t k = 0; k < p->clocks; k++)
        for (size_t i = 0; p->mhz[k] != p->leave_out && p->mhz[k] != p->ref && i < p->count[k]; i++) {
            const fl_serving_sample *s = &p->step[k][i];
            residual[n++] = s->weight * log(step_at(&law, s, p->mhz[k]).time_s / measured(s));
        }
    for (size_t k = 0; k < NUMBERS; k++) /* what the rows do not tell stays where it began */
        residual[n++] = 1e-3 * x[k];
}

static fl_status fit_power(const problem *p, size_t rows, fl_serving_steps_fit *f, fl_diag *d) {
    fl_serving_load *load = fl_must(malloc((rows + 1) * sizeof *load));
    size_t n = 0;
    for (uint32_t k = 0; k < p->clocks; k++)
        for (size_t i = 0; p->mhz[k] != p->leave_out && i < p->count[k]; i++) {
            const fl_step_point at = step_at(&f->law, &p->step[k][i], p->mhz[k]);
            load[n] = (fl_serving_load){p->mhz[k], at.compute, at.memory, power_of(p, k, i)};
            n += load[n].power_w > 0;
        }
    f->has_power = n >= FL_SERVING_POWERS_LEAST;
    const fl_status s = f->has_power ? fl_serving_power_fit(load, n, p->mhz[p->clocks - 1], &f->power, d) : FL_OK;
    free(load);
    return s;
}

/* Fits to all clocks but leave_out. The highest of them becomes the law's reference. */
static fl_status fit(problem *p, double leave_out, fl_serving_steps_fit *f, fl_serving_errors *batches,
                     fl_serving_errors *experts, fl_diag *d) {
    double x[NUMBERS] = {0};
    size_t rows = 0, all = 0;
    p->leave_out = leave_out;
    for (uint32_t k = 0; k < p->clocks; k++)
        p->ref = p->mhz[k] == leave_out ? p->ref : p->mhz[k];
    fl_serving_layers one = tables_at(p, p->ref, false);
    fl_step_law law;
    fl_status s = fl_serving_layers_fit(&one, p->server, &law, batches, experts, d);
    tables_free(&one);
    f->law = law;
    if (s || p->clocks == 1)
        return s;
    for (uint32_t k = 0; k < p->clocks; k++) {
        all += p->count[k];
        rows += p->mhz[k] == leave_out || p->mhz[k] == p->ref ? 0 : p->count[k];
    }
    p->law = &law;
    const fl_model_status m = fl_least_squares(residuals, p, x, NUMBERS, rows + NUMBERS);
    fl_must_have(m != FL_MODEL_NO_MEMORY);
    if (m != FL_MODEL_OK)
        return fl_refuse(d, "no law fits the layer tables over clocks: %s", fl_model_text(m));
    f->law = law_of(p, x);
    f->law.sm_count = 0;
    for (uint32_t k = 0; k < p->clocks; k++)
        if (p->mhz[k] != leave_out)
            f->law.sm_mhz[f->law.sm_count++] = p->mhz[k];
    return fit_power(p, all, f, d);
}

/* Errors at the clock left out, or at those that the fit saw besides the reference. */
static void score(const problem *p, const fl_serving_steps_fit *f, bool seen, fl_serving_spread *time,
                  fl_serving_spread *power) {
    fl_serving_errors t = {0}, w = {0};
    for (uint32_t k = 0; k < p->clocks; k++)
        for (size_t i = 0; (p->mhz[k] == p->leave_out) != seen && i < p->count[k]; i++) {
            const fl_step_point at = step_at(&f->law, &p->step[k][i], p->mhz[k]);
            const double watts = power_of(p, k, i);
            if (p->mhz[k] != p->ref)
                fl_serving_errors_add(&t, at.time_s, measured(&p->step[k][i]));
            if (f->has_power && watts > 0)
                fl_serving_errors_add(&w, fl_serving_power_at(&f->power, p->mhz[k], at.compute, at.memory), watts);
        }
    *time = fl_serving_errors_spread(&t);
    *power = fl_serving_errors_spread(&w);
    fl_serving_errors_free(&t);
    fl_serving_errors_free(&w);
}

fl_status fl_serving_clocks_fit(const fl_serving_layers *t, const fl_serving *server, fl_serving_steps_fit *f,
                                fl_serving_errors *batches, fl_serving_errors *experts, fl_diag *d) {
    problem p = {.t = t, .server = server};
    fl_status s = find_clocks(&p, d);
    if (!s && !p.clocks)
        s = fl_refuse(d, "the layer tables do not state their SM clock, expected --sm-mhz MHZ or a column sm_mhz; "
                         "if nobody recorded it, assume the board's boost clock");
    if (!s)
        s = take_steps(&p, d);
    if (!s)
        s = fit(&p, 0, f, batches, experts, d);
    if (!s && p.clocks > 1) {
        f->lowest_mhz = p.mhz[0];
        f->highest_mhz = p.mhz[p.clocks - 1];
        f->rows = t->attention.count;
        score(&p, f, true, &f->seen_time, &f->seen_power);
    }
    for (uint32_t k = 0; !s && p.clocks > 2 && k < p.clocks; k++) {
        fl_serving_steps_fit without = {0};
        fl_serving_errors unused = {0};
        fl_serving_clock_error *e = &f->clock[f->clocks++];
        *e = (fl_serving_clock_error){.sm_mhz = p.mhz[k], .end = k == 0 || k + 1 == p.clocks};
        s = fit(&p, p.mhz[k], &without, NULL, &unused, d);
        if (!s)
            score(&p, &without, false, &e->time, &e->power);
        fl_step_law_free(&without.law);
        fl_serving_errors_free(&unused);
    }
    if (p.clocks > 1)
        fl_serving_clock_errors_sum(f);
    for (uint32_t k = 0; k < p.clocks; k++) {
        free(p.step[k]);
        free(p.joules[k]);
    }
    return s;
}
