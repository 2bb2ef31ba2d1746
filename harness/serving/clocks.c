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
#include <string.h>

/* What tables of several clocks tell beyond those of one: the share of the memory's part that goes as 1 / f, and the
 * sharpness, of matrix products, of attention and of experts. */
enum { FOLLOWS, SHARP, KV_FOLLOWS, KV_SHARP, EXPERT_FOLLOWS, EXPERT_SHARP, NUMBERS };

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

typedef struct table { /* a layer table of any kind */
    char *row;
    size_t count, size, time, mhz, watts; /* the last three: where in a row its values stand */
} table;

#define ROWS(of)                                                                                                       \
    ((table){(char *)(of).row, (of).count, sizeof *(of).row, offsetof(__typeof__(*(of).row), time_s),                  \
             offsetof(__typeof__(*(of).row), sm_mhz), offsetof(__typeof__(*(of).row), power_w)})

static double *value(const table *r, size_t i, size_t where) {
    return (double *)(void *)(r->row + i * r->size + where);
}

static double clock_of(const problem *p, const table *r, size_t i) {
    const double sm_mhz = *value(r, i, r->mhz);
    return sm_mhz > 0 ? sm_mhz : p->t->sm_mhz;
}

static bool experts_have_clocks(const problem *p) { return p->t->moe.count && p->t->moe.row[0].sm_mhz > 0; }

/* Replace the rows by a copy of those at the clock. joules: each time becomes the energy of that time, which adds up
 * over layers as times do. */
static void *rows_at(const problem *p, table of, double mhz, bool joules, size_t *count) {
    table one = of;
    one.row = fl_must(malloc((of.count + 1) * of.size));
    *count = 0;
    for (size_t i = 0; i < of.count; i++)
        if (clock_of(p, &of, i) == mhz) {
            memcpy(one.row + *count * of.size, of.row + i * of.size, of.size);
            *value(&one, (*count)++, of.time) *= joules ? *value(&of, i, of.watts) : 1;
        }
    return one.row;
}

/* The rows are to be freed, all else is borrowed. */
static fl_serving_layers tables_at(const problem *p, double mhz, bool joules) {
    fl_serving_layers one = *p->t;
    one.sm_mhz = mhz;
    one.dense.row = rows_at(p, ROWS(one.dense), mhz, joules, &one.dense.count);
    one.per_sequence.row = rows_at(p, ROWS(one.per_sequence), mhz, joules, &one.per_sequence.count);
    one.attention.row = rows_at(p, ROWS(one.attention), mhz, joules, &one.attention.count);
    if (experts_have_clocks(p)) /* else they are taken for those of the reference */
        one.moe.row = rows_at(p, ROWS(one.moe), mhz, joules, &one.moe.count);
    return one;
}

static void tables_free(const problem *p, fl_serving_layers *t) {
    free(t->dense.row);
    free(t->per_sequence.row);
    free(t->attention.row);
    if (experts_have_clocks(p))
        free(t->moe.row);
}

static fl_status find_clocks(problem *p, fl_diag *d) {
    const fl_serving_layers *t = p->t;
    const table all[] = {ROWS(t->dense), ROWS(t->per_sequence), ROWS(t->attention), ROWS(t->moe)};
    for (double last = 0;;) {
        double next = INFINITY;
        for (size_t k = 0; k < (experts_have_clocks(p) ? 4 : 3); k++)
            for (size_t i = 0; i < all[k].count; i++) {
                const double mhz = clock_of(p, &all[k], i);
                next = mhz > last ? fmin(next, mhz) : next;
            }
        if (isinf(next))
            return FL_OK;
        if (p->clocks == FL_STEP_CLOCKS)
            return fl_refuse(d, "layer tables of more than %d clocks, expected fewer", FL_STEP_CLOCKS);
        p->mhz[p->clocks++] = last = next;
    }
}

/* An expert table with a column of clocks has each clock of the other tables. */
static fl_status check_experts(const problem *p, fl_diag *d) {
    for (uint32_t k = 0; experts_have_clocks(p) && k < p->clocks; k++) {
        size_t count;
        free(rows_at(p, ROWS(p->t->moe), p->mhz[k], false, &count));
        if (!count)
            return fl_refuse(d, "no rows of experts at %g MHz, expected some at each clock of the other tables",
                             p->mhz[k]);
    }
    return FL_OK;
}

static fl_status take_steps(problem *p, fl_diag *d) {
    fl_status s = FL_OK;
    for (uint32_t k = 0; !s && p->clocks > 1 && k < p->clocks; k++) {
        fl_serving_layers one = tables_at(p, p->mhz[k], false), joules = tables_at(p, p->mhz[k], true);
        s = fl_serving_samples(&one, p->server, &p->step[k], &p->count[k], d);
        if (!s)
            s = fl_serving_samples(&joules, p->server, &p->joules[k], &p->count[k], d);
        tables_free(p, &one);
        tables_free(p, &joules);
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
    if (experts_have_clocks(p)) {
        const double expert_s = share(FOLLOWS_GUESS + x[EXPERT_FOLLOWS]) * l.expert_s;
        l.expert_clock = expert_s * ghz;
        l.expert_s -= expert_s;
        l.expert_sharpness = sharper(l.expert_sharpness, x[EXPERT_SHARP]);
    }
    return l;
}

/* Without what no row holds: the host, experts beside other layers, and what ranks send each other. */
static fl_step_point step_at(const fl_step_law *law, const fl_serving_sample *s, double mhz) {
    fl_step_law bare = *law;
    fl_step_point at = {0};
    if (s->experts > 0)
        return fl_step_experts_row(law, s->tokens, s->experts, mhz, 1);
    bare.host_s = 0;
    bare.experts = bare.reduces = bare.exchanges = 0;
    return fl_step_at(&bare, &s->shape, mhz, 1, &at) == FL_MODEL_OK ? at : (fl_step_point){.time_s = NAN};
}

static double measured(const fl_serving_sample *s) { return s->rest_s + s->attention_s; }

/* In W; NAN where a layer has none. */
static double power_of(const problem *p, uint32_t clock, size_t i) {
    const fl_serving_sample *j = &p->joules[clock][i];
    return measured(j) > 0 ? measured(j) / measured(&p->step[clock][i]) : NAN;
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

/* The load of experts over that of products of the same times: least squares of the shares by which powers are off. */
static double load_of_experts(const fl_serving_load *load, size_t count, const fl_serving_power *power) {
    double squares = 0, products = 0;
    for (size_t i = 0; i < count; i++) {
        const double w = load[i].power_w, base = fl_serving_power_at(power, load[i].sm_mhz, 0, 0);
        const double more = fl_serving_power_at(power, load[i].sm_mhz, load[i].compute, load[i].memory) - base;
        squares += more / w * (more / w);
        products += more / w * ((w - base) / w);
    }
    return squares > 0 ? fmax(products / squares, 0.01) : 0;
}

static fl_status fit_power(const problem *p, size_t rows, fl_serving_steps_fit *f, fl_diag *d) {
    fl_serving_load *load = fl_must(malloc((rows + 1) * sizeof *load));
    size_t n = 0, experts = rows; /* those of experts fill the end */
    for (uint32_t k = 0; k < p->clocks; k++)
        for (size_t i = 0; p->mhz[k] != p->leave_out && i < p->count[k]; i++) {
            const fl_step_point at = step_at(&f->law, &p->step[k][i], p->mhz[k]);
            const fl_serving_load one = {p->mhz[k], at.compute, at.memory, power_of(p, k, i)};
            if (one.power_w > 0)
                load[p->step[k][i].experts > 0 ? --experts : n++] = one;
        }
    f->has_power = n >= FL_SERVING_POWERS_LEAST;
    const fl_status s = f->has_power ? fl_serving_power_fit(load, n, p->mhz[p->clocks - 1], &f->power, d) : FL_OK;
    if (!s && f->has_power)
        f->law.expert_load = load_of_experts(load + experts, rows - experts, &f->power);
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
    tables_free(p, &one);
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
        s = check_experts(&p, d);
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
