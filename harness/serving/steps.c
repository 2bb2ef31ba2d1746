/* The law of a server's steps and their power from step tables. */
#include "harness/serving/inside.h"

#include "harness/base/work/work.h"
#include "harness/plan/plan.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- the power of steps ---- */

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

/* The residual of a logarithm in units of `sd`, which grows no faster than its root beyond 2 sd: single rows that were
 * measured wrongly do not move a fit. */
static double fl_serving_robust(double log_ratio, double sd) {
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
    double *left = fl_must(malloc((p->count + numbers) * sizeof *left));
    p->numbers = numbers;
    const fl_model_status s = fl_least_squares(residuals, p, x, numbers, p->count + numbers);
    *out = power_of(p, x);
    *cost = 0;
    if (s == FL_MODEL_OK)
        residuals(p, x, left);
    for (size_t i = 0; s == FL_MODEL_OK && i < p->count + numbers; i++)
        *cost += left[i] * left[i];
    free(left);
    fl_must_have(s != FL_MODEL_NO_MEMORY);
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

/* ---- the times of steps ---- */

#define TIME_SD 0.04       /* of a measured step about the law, as a share: L20, 3.9 % */
#define STEPS_GUESS_SD 1.5 /* of the logarithm of each number about where it begins */

enum { HOST, HOST_SEQUENCE, TOKEN, SEQUENCE, WEIGHTS, WEIGHTS_CLOCK, PAIR, KV, KV_CLOCK, SHARP, STEPS_NUMBERS };

typedef struct steps_problem {
    const fl_step_rows *rows;
    const fl_serving *server;
    double leave_out; /* clock of rows that the fit does not see; 0 = none */
    double guess[STEPS_NUMBERS];
} steps_problem;

static bool left_out(const steps_problem *p, const fl_step_row_measured *r) { return r->sm_mhz == p->leave_out; }

/* A measured row on a law: a prompt longer than the token budget takes several steps. Time, and shares of it. */
static fl_step_point row_at(const steps_problem *p, const fl_step_law *law, const fl_step_row_measured *r) {
    fl_step_point sum = {0};
    double done = 0;
    const double whole = r->prefill ? r->tokens : 1;
    while (done < whole) {
        fl_step_shape shape = {0};
        fl_step_point one = {0};
        double chunk = 1;
        if (r->prefill) {
            chunk = p->server->chunked_prefill ? fmin(whole - done, p->server->token_budget) : whole;
            fl_step_add_prompt(&shape, (uint32_t)chunk, (uint64_t)(r->context + done));
        } else {
            shape.tokens = shape.sequences = shape.decodes = (uint32_t)r->batch;
            shape.kv_read = shape.kv_decode = (uint64_t)(r->batch * r->context);
        }
        if (fl_step_at(law, &shape, r->sm_mhz, 1, &one) != FL_MODEL_OK)
            return (fl_step_point){.time_s = NAN};
        sum.time_s += one.time_s;
        sum.compute += one.compute * one.time_s;
        sum.memory += one.memory * one.time_s;
        done += chunk;
    }
    sum.compute /= sum.time_s;
    sum.memory /= sum.time_s;
    return sum;
}

static fl_step_law law_of(const steps_problem *p, const double *x) {
    double n[STEPS_NUMBERS];
    for (size_t k = 0; k < STEPS_NUMBERS; k++)
        n[k] = p->guess[k] * exp(STEPS_GUESS_SD * x[k]);
    fl_step_law l = fl_step_law_none();
    l.host_s = n[HOST];
    l.host_sequence_s = n[HOST_SEQUENCE];
    l.token = n[TOKEN];
    l.sequence = n[SEQUENCE];
    l.weights_s = n[WEIGHTS];
    l.weights_clock = n[WEIGHTS_CLOCK];
    l.pair = n[PAIR];
    l.kv_s = l.kv_beside_s = n[KV]; /* no table has decodes beside a prompt chunk */
    l.kv_clock = n[KV_CLOCK];
    l.sharpness = l.attention_sharpness = 1 + n[SHARP];
    return l;
}

static void steps_residuals(void *user, const double *x, double *residual) {
    const steps_problem *p = user;
    const fl_step_law law = law_of(p, x);
    size_t n = 0;
    for (size_t i = 0; i < p->rows->count; i++) {
        const fl_step_row_measured *r = &p->rows->row[i];
        if (!left_out(p, r))
            residual[n++] = fl_serving_robust(log(row_at(p, &law, r).time_s / r->time_s), TIME_SD);
    }
    for (size_t k = 0; k < STEPS_NUMBERS; k++)
        residual[n++] = x[k];
}

/* A first guess from single rows: the longest prompt is compute, the shortest decode weights, the one with the most KV
 * is that. What no row tells alone begins as a small share of these. */
static fl_status guess(steps_problem *p, fl_diag *d) {
    const fl_step_row_measured *longest = NULL, *shortest = NULL, *most = NULL;
    for (size_t i = 0; i < p->rows->count; i++) {
        const fl_step_row_measured *r = &p->rows->row[i];
        if (left_out(p, r))
            continue;
        if (r->prefill && (!longest || r->tokens > longest->tokens))
            longest = r;
        if (!r->prefill && (!shortest || r->time_s < shortest->time_s))
            shortest = r;
        if (!r->prefill && (!most || r->batch * r->context > most->batch * most->context))
            most = r;
    }
    if (!longest || !shortest)
        return fl_refuse(d, "no %s row to learn from, expected both phases", longest ? "decode" : "prefill");
    const double ghz = longest->sm_mhz / 1000, least = shortest->time_s, kv = fmax(most->batch * most->context, 1);
    p->guess[TOKEN] = 0.9 * longest->time_s * ghz / longest->tokens;
    p->guess[PAIR] = 0.1 * longest->time_s * ghz / (longest->tokens * (longest->tokens + 1) / 2);
    p->guess[SEQUENCE] = 0.1 * p->guess[TOKEN];
    p->guess[WEIGHTS] = 0.7 * least;
    p->guess[WEIGHTS_CLOCK] = 0.1 * least * ghz;
    p->guess[HOST] = 0.1 * least;
    p->guess[HOST_SEQUENCE] = 0.001 * least;
    p->guess[KV] = 0.6 * fmax(most->time_s - least, 0.1 * least) / kv;
    p->guess[KV_CLOCK] = 0.2 * p->guess[KV] * ghz;
    p->guess[SHARP] = 1;
    return FL_OK;
}

/* The law, and the powers of the rows that have them. */
static fl_status steps_fit(steps_problem *p, double top_mhz, fl_serving_steps_fit *out, fl_diag *d) {
    double x[STEPS_NUMBERS] = {0};
    size_t rows = 0, powers = 0;
    fl_status s = guess(p, d);
    if (s)
        return s;
    for (size_t i = 0; i < p->rows->count; i++)
        rows += !left_out(p, &p->rows->row[i]);
    const fl_model_status m = fl_least_squares(steps_residuals, p, x, STEPS_NUMBERS, rows + STEPS_NUMBERS);
    fl_must_have(m != FL_MODEL_NO_MEMORY);
    if (m != FL_MODEL_OK)
        return fl_refuse(d, "no law fits the step table: %s", fl_model_text(m));
    out->law = law_of(p, x);
    fl_serving_load *load = fl_must(malloc((rows + 1) * sizeof *load));
    for (size_t i = 0; i < p->rows->count; i++) {
        const fl_step_row_measured *r = &p->rows->row[i];
        if (left_out(p, r) || !(r->power_w > 0))
            continue;
        const fl_step_point at = row_at(p, &out->law, r);
        load[powers++] = (fl_serving_load){r->sm_mhz, at.compute, at.memory, r->power_w};
    }
    out->has_power = powers >= FL_SERVING_POWERS_LEAST;
    if (out->has_power)
        s = fl_serving_power_fit(load, powers, top_mhz, &out->power, d);
    free(load);
    return s;
}

/* Errors on the rows of one clock, or on those that the fit saw. */
static void score(const steps_problem *p, const fl_serving_steps_fit *f, bool seen, fl_serving_spread *time,
                  fl_serving_spread *power) {
    fl_serving_errors t = {0}, w = {0};
    for (size_t i = 0; i < p->rows->count; i++) {
        const fl_step_row_measured *r = &p->rows->row[i];
        if (left_out(p, r) == seen)
            continue;
        const fl_step_point at = row_at(p, &f->law, r);
        fl_serving_errors_add(&t, at.time_s, r->time_s);
        if (f->has_power && r->power_w > 0)
            fl_serving_errors_add(&w, fl_serving_power_at(&f->power, r->sm_mhz, at.compute, at.memory), r->power_w);
    }
    *time = fl_serving_errors_spread(&t);
    *power = fl_serving_errors_spread(&w);
    fl_serving_errors_free(&t);
    fl_serving_errors_free(&w);
}

static fl_status find_clocks(const fl_step_rows *rows, double *mhz, uint32_t *count, fl_diag *d) {
    *count = 0;
    for (double last = 0;; *count += 1) {
        double next = INFINITY;
        for (size_t i = 0; i < rows->count; i++)
            next = rows->row[i].sm_mhz > last ? fmin(next, rows->row[i].sm_mhz) : next;
        if (isinf(next))
            return FL_OK;
        if (*count == FL_STEP_CLOCKS)
            return fl_refuse(d, "a step table of more than %d clocks, expected fewer", FL_STEP_CLOCKS);
        mhz[*count] = last = next;
    }
}

static fl_status leave_each_out(steps_problem *p, const double *mhz, uint32_t count, fl_serving_steps_fit *f,
                                fl_diag *d) {
    fl_status s = FL_OK;
    for (uint32_t i = 0; !s && i < count; i++) {
        fl_serving_clock_error *e = &f->clock[f->clocks];
        if (f->law.sm_count && p->leave_out > 0 && mhz[i] != p->leave_out)
            continue;
        steps_problem one = *p;
        fl_serving_steps_fit without = {0};
        one.leave_out = mhz[i];
        *e = (fl_serving_clock_error){.sm_mhz = mhz[i], .end = i == 0 || i + 1 == count};
        s = steps_fit(&one, mhz[count - 1], &without, d);
        if (!s)
            score(&one, &without, false, &e->time, &e->power);
        f->clocks += !s;
    }
    return s;
}

void fl_serving_clock_errors_sum(fl_serving_steps_fit *f) {
    double time = 0, power = 0;
    uint32_t inner = 0, n = 0;
    for (uint32_t i = 0; i < f->clocks; i++)
        inner += !f->clock[i].end;
    for (uint32_t i = 0; i < f->clocks; i++)
        if (!inner || !f->clock[i].end) {
            time += f->clock[i].time.mean;
            power += f->clock[i].power.mean;
            n++;
        }
    f->law.time_error = n ? time / n / 100 : -1;
    f->law.power_error = n && f->has_power ? power / n / 100 : -1;
}

fl_status fl_serving_steps_make(const fl_step_rows *rows, const fl_serving *server, double leave_out,
                                fl_serving_steps_fit *f, fl_diag *d) {
    double mhz[FL_STEP_CLOCKS];
    uint32_t count = 0;
    steps_problem p = {.rows = rows, .server = server, .leave_out = leave_out};
    *f = (fl_serving_steps_fit){0};
    fl_status s = find_clocks(rows, mhz, &count, d);
    if (s)
        return s;
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        found += mhz[i] == leave_out;
    if (leave_out > 0 && (!found || count < 2))
        return fl_refuse(d, "--leave-out %g: %s", leave_out,
                         found ? "the table has no other clock, expected more" : "the table has no such clock");
    f->lowest_mhz = mhz[0];
    f->highest_mhz = mhz[count - 1];
    s = steps_fit(&p, f->highest_mhz, f, d);
    if (s)
        return s;
    for (uint32_t i = 0; i < count; i++)
        if (mhz[i] != leave_out)
            f->law.sm_mhz[f->law.sm_count++] = mhz[i];
    f->rows = rows->count;
    score(&p, f, true, &f->seen_time, &f->seen_power);
    if (count > 2 || leave_out > 0)
        s = leave_each_out(&p, mhz, count, f, d);
    if (!s)
        fl_serving_clock_errors_sum(f);
    return s;
}
