/* tightrope: how much work one GPU has done, in seconds at the top clock. */
#include "policies/tightrope/inside.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DEAR_S 0.01 /* a burst of short kernels may cost so much; two or three readings see more than that */

/* All but the kinds and what a record takes, and may take, begins anew. */
static void begin(fl_tightrope_work *w, int64_t signal, int64_t now_ns, double tolerance, double sigmas, double cost) {
    const int64_t kinds = w->kinds;
    const double record_s = w->record_s, afford = w->afford;
    memset(w, 0, offsetof(fl_tightrope_work, kind));
    w->kinds = kinds, w->record_s = record_s, w->afford = afford;
    w->signal = signal;
    w->last_ns = w->begin_ns = w->last_end_ns = w->moved_ns = now_ns;
    w->origin_ns = -1;
    w->tolerance = tolerance;
    w->sigmas = sigmas;
    w->cost = cost;
    w->counter = NAN;
    w->share = 1;
    w->busy_share = 1;
}

void fl_tightrope_work_begin(fl_tightrope_work *w, int64_t signal, int64_t now_ns, double tolerance, double sigmas,
                             double cost) {
    begin(w, signal, now_ns, tolerance, sigmas, cost);
    memset(w->kind, 0, (size_t)w->kinds * sizeof *w->kind);
    w->kinds = 0;
}

void fl_tightrope_to_records(fl_tightrope_work *w, int64_t signal, int64_t now_ns) {
    const double elapsed_s = (double)(now_ns - w->begin_ns) * 1e-9;
    fl_tightrope_work_begin(w, signal, now_ns, w->tolerance, w->sigmas, w->cost);
    w->before_s = w->before_elapsed_s = w->elapsed_s = w->top_s = elapsed_s;
}

void fl_tightrope_from_certain(fl_tightrope_work *w, int64_t now_ns) {
    const double credit_s = fl_tightrope_credit(w), elapsed_s = w->elapsed_s, clock = w->clock, share = w->share;
    const int64_t settled_ns = w->settled_ns;
    const int at_top = w->at_top;
    begin(w, FL_TIGHTROPE_RECORDS, now_ns, w->tolerance, w->sigmas, w->cost);
    for (int64_t i = 0; i < w->kinds; i++) { /* what kinds take at the top clock is known already */
        const fl_tightrope_kind *k = &w->kind[i];
        w->kind[i] = (fl_tightrope_kind){.count = k->count,
                                         .sum_s = k->sum_s,
                                         .square_s = k->square_s,
                                         .visits = k->visits,
                                         .mean_s = k->mean_s,
                                         .mean_square_s = k->mean_square_s,
                                         .visit_square_s = k->visit_square_s};
    }
    w->before_s = w->top_s = credit_s;
    w->before_elapsed_s = w->elapsed_s = elapsed_s;
    w->clock = clock, w->share = share, w->settled_ns = settled_ns, w->at_top = at_top; /* until the next window */
}

/* A counter's line is drawn on over windows at one clock, for so long: a line that never ends sees no change. */
#define STRETCH_S 2

void fl_tightrope_window(fl_tightrope_work *w, int64_t now_ns, double clock, int changed) {
    if (changed || w->rate.last_s > STRETCH_S) {
        if (w->at_top && !w->doubted)
            fl_tightrope_rate_keep(&w->rate);
        fl_tightrope_rate_stretch(&w->rate);
    }
    const double before = now_ns < w->settled_ns ? w->share : w->at_top ? 1 : w->clock; /* or not there yet */
    w->share = changed ? fmin(before, clock) : clock;
    w->window_ns = now_ns;
    w->settled_ns = now_ns;
    w->clock = clock;
    w->at_top = clock >= 1;
    fl_tightrope_certain_from(&w->sure, now_ns, w->at_top && !changed ? 1 : w->share * (1 - w->tolerance));
    w->doubted = 0;
    w->units = w->total;
    w->known_s = w->ref_s = w->unknown_s = 0;
    for (int64_t i = 0; i < w->kinds; i++)
        w->kind[i].window_s = w->kind[i].low = w->kind[i].low_s = w->kind[i].low_floor_s = 0;
    fl_tightrope_forget_power(w);
}

int fl_tightrope_blindfold(const fl_tightrope_work *w) {
    if (w->signal == FL_TIGHTROPE_RECORDS || w->signal == FL_TIGHTROPE_NONE)
        return w->signal == FL_TIGHTROPE_NONE;
    const int counter = w->signal != FL_TIGHTROPE_UTIL && !w->weighed;
    return w->alike > (counter ? FL_TIGHTROPE_ALIKE_COUNTERS : FL_TIGHTROPE_ALIKE_ALL);
}

void fl_tightrope_forget_power(fl_tightrope_work *w) {
    w->power_sum = w->power_count = w->power_square = 0;
    w->energy_ns[0] = w->energy_ns[1] = -1;
}

/* Standard errors to hold back where their size was learned from so many durations: the quantile of Student's t that is
 * as rare as sigmas of the normal law (Wallace, "Bounds on normal approximations to Student's and the chi-square
 * distributions", 1959). */
static double held_back(const fl_tightrope_work *w, double count) {
    const double freedom = fmax(1, count - 1), z = w->sigmas * (8 * freedom + 3) / (8 * freedom + 1);
    return sqrt(freedom * expm1(fmin(z * z / freedom, 50)));
}

/* Of all records at the top clock: the sum of their durations, and its variance by how each kind's differ. */
static void records_spread(const fl_tightrope_work *w, double *variance, double *seconds) {
    *variance = *seconds = 0;
    for (int64_t i = 0; i < w->kinds; i++) {
        const fl_tightrope_kind *k = &w->kind[i];
        const double m = k->count > 1 ? k->sum_s / k->count : 0;
        *seconds += k->sum_s;
        *variance += k->count > 1 ? fmax(0, k->square_s - k->count * m * m) : 0;
    }
}

/* A line through ends each every_s, of that variance, over a time T has a relative error of
 * sqrt(12 every_s variance / T^3). */
#define PACE_ERROR 0.0075

static void learn_rate(fl_tightrope_work *w) {
    if (w->signal == FL_TIGHTROPE_RECORDS) {
        double variance, seconds;
        records_spread(w, &variance, &seconds);
        w->rate_s = seconds;
        w->spread = seconds > 0 ? variance / seconds : 0;
        return;
    }
    const fl_tightrope_pace p = fl_tightrope_rate_reference(&w->rate, w->at_top);
    w->unit_s = p.unit_s;
    w->spread = p.spread;
    w->cycle_s = fmax(cbrt(12 * p.every_s * p.cycle / (PACE_ERROR * PACE_ERROR)), 4 * p.block_s);
    w->rate_s = w->rate.kept_s + (w->at_top ? w->rate.last_s : 0);
}

int fl_tightrope_enough(const fl_tightrope_work *w, double error) {
    if (fl_tightrope_blindfold(w))
        return 1;
    if (w->signal != FL_TIGHTROPE_RECORDS)
        return w->rate.edges >= 6 && fl_tightrope_rate_error(&w->rate, w->sigmas, w->at_top) <= error;
    double variance, seconds, count = 0;
    records_spread(w, &variance, &seconds);
    for (int64_t i = 0; i < w->kinds; i++)
        count += w->kind[i].count;
    return w->known_s > 0 && held_back(w, count) * sqrt(variance) <= error * seconds;
}

double fl_tightrope_reference_error(const fl_tightrope_work *w) {
    if (fl_tightrope_blindfold(w))
        return 1;
    if (w->signal != FL_TIGHTROPE_RECORDS)
        return fl_tightrope_rate_error(&w->rate, w->sigmas, w->at_top) / w->sigmas;
    double all = 0, square = 0;
    for (int64_t i = 0; i < w->kinds; i++) {
        const fl_tightrope_kind *k = &w->kind[i];
        if (!(k->done > 0) || k->count < 3)
            continue;
        const double m = k->sum_s / k->count, v = fmax(0, k->square_s / k->count - m * m) * k->count / (k->count - 1);
        all += k->done * m;
        square += k->done * k->done * v / k->count;
    }
    return all > 0 ? sqrt(square) / all : 0;
}

/* A window at the top clock ends: what it told of each kind is one visit. */
static void end_visit(fl_tightrope_work *w) {
    for (int64_t i = 0; i < w->kinds; i++) {
        fl_tightrope_kind *k = &w->kind[i];
        if (!(k->now > 0))
            continue;
        const double mean = k->now_s / k->now;
        k->visits++, k->mean_s += mean, k->mean_square_s += mean * mean, k->visit_square_s += mean * k->now_s;
        k->now = k->now_s = 0;
    }
}

/* Durations that differ from visit to visit more than within one change with the program: what visits tell of the time
 * between them has the error of a mean of visits. variance: of one duration. */
static double visit_error(const fl_tightrope_work *w, const fl_tightrope_kind *k, double variance) {
    const double count = k->count - k->now, sum_s = k->sum_s - k->now_s; /* of the visits that ended */
    if (k->visits < 2 ||
        k->visit_square_s - sum_s * sum_s / count <= fl_tightrope_by_chance(k->visits) * (k->visits - 1) * variance)
        return 0;
    const double m = k->mean_s / k->visits,
                 v = fmax(0, k->mean_square_s / k->visits - m * m) * k->visits / (k->visits - 1);
    return fmax(held_back(w, k->visits) / sqrt(k->visits), FL_TIGHTROPE_WANDERS) * k->done * sqrt(v);
}

/* What the kernels of a kind off the top clock are worth, and *held_s, which is held back of it for its error. If that
 * would leave less than what is certain, the certain counts and nothing is held back. Never seen three times at the
 * top: what is certain. */
static double kind_credit(const fl_tightrope_work *w, const fl_tightrope_kind *k, double *held_s) {
    const double certain = k->floor_s;
    *held_s = 0;
    if (!(k->done > 0) || k->count < 3)
        return certain;
    const double m = k->sum_s / k->count, v = fmax(0, k->square_s / k->count - m * m) * k->count / (k->count - 1);
    const double mean = fmin(k->done_s, k->done * m);
    const double variance = k->done * k->done * v / k->count + k->done * v;
    const double error = fmax(held_back(w, k->count) * sqrt(variance), k->visits >= 4 ? visit_error(w, k, v) : 0);
    if (error > mean - certain)
        return fmax(certain, mean - error);
    *held_s = error;
    return mean;
}

/* By the first fact a lower clock is never faster. So a kind whose kernels take clearly less in a window below the top
 * than they took at the top has changed, and at a still lower clock that would not show. What it was credited stays,
 * but for that window, of which only what is certain counts; its reference begins anew. */
#define CHANGED 0.1     /* far beyond what kinds that do not change stray by, windows of few kernels left out */
#define CHANGED_LEAST 8 /* kernels */

static int renew_changed(fl_tightrope_work *w) {
    int renewed = 0;
    for (int64_t i = 0; i < w->kinds; i++) {
        fl_tightrope_kind *k = &w->kind[i];
        if (k->low < CHANGED_LEAST || k->count < 3)
            continue;
        const double m = k->sum_s / k->count, v = fmax(0, k->square_s / k->count - m * m) * k->count / (k->count - 1);
        const double error = held_back(w, k->count) * sqrt(v / k->low + v / k->count);
        if (k->low_s / k->low >= m * (1 - CHANGED) - error)
            continue;
        double held_s;
        k->done -= k->low, k->done_s -= k->low_s, k->floor_s -= k->low_floor_s;
        const double credit_s = kind_credit(w, k, &held_s);
        *k = (fl_tightrope_kind){.kept_s = k->kept_s + credit_s - held_s + k->low_floor_s,
                                 .window_s = k->window_s,
                                 .spell_s = k->spell_s,
                                 .spell = k->spell,
                                 .usual = k->usual};
        renewed = 1;
    }
    return renewed;
}

/* Records: kernel by kernel. One that ran at the top clock counts what it took, the others what their kind takes there;
 * what is not known well counts as much as is certain. The host's time between kernels does not stretch; the kernel
 * that runs now may be stretched; where kernels overlap, their stretch is shared. */
static double records_credit(fl_tightrope_work *w) {
    double low = 0, held = 0;
    for (int64_t i = 0; i < w->kinds; i++) {
        double held_s;
        low += w->kind[i].kept_s + kind_credit(w, &w->kind[i], &held_s);
        held += held_s * held_s;
    }
    w->error_s = sqrt(held);
    const double elapsed_s = w->elapsed_s - w->before_elapsed_s;
    const double all_s = w->busy_s + w->top_busy_s, over = fmax(1, all_s / elapsed_s);
    const double open_s = fmax(0, fmin(elapsed_s - all_s, (double)(w->last_ns - w->last_end_ns) * 1e-9));
    const double idle_s = fmax(0, elapsed_s - all_s - open_s);
    w->busy_share = elapsed_s > idle_s ? 1 - idle_s / elapsed_s : 1;
    const double kernels_s = (w->top_busy_s + low - w->error_s - w->overlap_s) / over +
                             fl_tightrope_certain_between(&w->sure, w->last_ns - (int64_t)(open_s * 1e9), w->last_ns);
    const double paid_s = w->record_s > 0 ? fmax(0, kernels_s - w->recorded * w->record_s) : kernels_s / (1 + w->cost);
    return w->before_s + paid_s + idle_s;
}

double fl_tightrope_records_cost(const fl_tightrope_work *w) {
    const double paid_s = w->recorded * w->record_s, kernels_s = w->busy_s + w->top_busy_s - paid_s;
    return w->record_s > 0 && w->recorded > 0 ? paid_s / fmax(kernels_s, 1e-9) : w->cost;
}

static int takes_records(const fl_tightrope_work *w) {
    return w->signal == FL_TIGHTROPE_RECORDS || w->signal == FL_TIGHTROPE_ENDS;
}

double fl_tightrope_records_kept(const fl_tightrope_work *w) {
    return takes_records(w) && w->record_s > 0 ? DEAR_S : 0;
}

int fl_tightrope_records_dear(const fl_tightrope_work *w) { return takes_records(w) && w->dear_s > DEAR_S; }

/* What is held back, in seconds, as a utilisation comes in whole percent: of its reading at the top clock for the work
 * below it, and of the readings below it for the time that they were taken in. */
static double rounding(const fl_tightrope_work *w, double work_s, double sure_s) {
    if (w->signal != FL_TIGHTROPE_UTIL)
        return 0;
    const double top_pct = w->quantum / w->unit_s, since_s = (double)(w->last_ns - w->origin_ns) * 1e-9;
    return (fl_tightrope_percent_top(&w->percent) * fmax(0, work_s - sure_s) +
            fl_tightrope_percent_low(&w->percent) * fmax(0, since_s - sure_s)) /
           top_pct;
}

double fl_tightrope_credit(fl_tightrope_work *w) {
    const double cost = w->signal == FL_TIGHTROPE_ENDS ? 1 + fl_tightrope_records_cost(w) : 1;
    const double certain = (w->top_s + w->floor_s * (1 - w->tolerance)) / cost;
    if (w->signal == FL_TIGHTROPE_RECORDS)
        return fmin(w->elapsed_s, records_credit(w));
    const double units = (w->total - w->origin) / w->quantum;
    if (fl_tightrope_blindfold(w) || !(w->unit_s > 0))
        return certain;
    const double work = units * w->unit_s, sure_s = fmax(0, w->top_s - w->base_s);
    const double least = fl_tightrope_rate_least(&w->rate, w->sigmas, w->at_top && !w->doubted, units, sure_s) -
                         rounding(w, work, sure_s);
    const double open_s = fl_tightrope_certain_between(&w->sure, w->moved_ns, w->last_ns);
    const double credit = fmin(w->elapsed_s, w->base_s + (least + open_s) / cost) - w->taken_back_s;
    return work - least > 0.01 * (w->base_s + work - w->top_s) ? fmax(certain, credit) : credit;
}

/* The window's time so far. */
static void count_time(fl_tightrope_work *w, int64_t now_ns) {
    const double length_s = (double)(now_ns - w->window_ns) * 1e-9;
    const double low_s = w->at_top ? fmin(length_s, (double)(w->settled_ns - w->window_ns) * 1e-9) : length_s;
    w->elapsed_s += length_s;
    w->top_s += length_s - low_s;
    w->floor_s += low_s * w->share;
}

double fl_tightrope_credit_now(fl_tightrope_work *w) {
    const double elapsed_s = w->elapsed_s, top_s = w->top_s, floor_s = w->floor_s;
    count_time(w, w->last_ns);
    const double credit = fl_tightrope_credit(w);
    w->elapsed_s = elapsed_s, w->top_s = top_s, w->floor_s = floor_s;
    return credit;
}

static double window_power(const fl_tightrope_work *w, double *noise) {
    *noise = 0;
    if (w->power_count >= 2) {
        const double n = w->power_count, mean = w->power_sum / n;
        *noise = sqrt(fmax(0, w->power_square / n - mean * mean) / n) / mean;
    }
    if (w->energy_ns[1] - w->energy_ns[0] > 1.5e8 && w->energy_ns[0] >= 0)
        return (w->energy_j[1] - w->energy_j[0]) / (w->energy_ns[1] - w->energy_ns[0]) * 1e9;
    return w->power_count > 0 ? w->power_sum / w->power_count : NAN;
}

/* Since the last unit ended, at most. */
static double open_time(const fl_tightrope_work *w) {
    return (double)(w->last_ns - w->moved_ns) * 1e-9 + w->moved_late_s;
}

/* Only what is certain of the window's work stays. */
static void take_back(fl_tightrope_work *w, double length_s) {
    const double units = w->quantum > 0 ? (w->total - w->units) / w->quantum : 0;
    const double ended_s = fmax(0, length_s - open_time(w)); /* the unit that runs counts when it ends */
    w->taken_back_s += fmax(0, units * w->unit_s - ended_s * w->share * (1 - w->tolerance));
}

static void measure(const fl_tightrope_work *w, fl_tightrope_seen_window *m) {
    if (w->signal == FL_TIGHTROPE_RECORDS) {
        if (!(w->ref_s > 0))
            return;
        const double kernels =
            w->known_s / w->ref_s; /* stretch of the kernels; the time between them does not stretch */
        m->slowdown = 1 + (kernels - 1) * w->busy_share;
        m->noise = sqrt(w->spread / m->length_s);
        return;
    }
    const fl_tightrope_pace p = fl_tightrope_rate_now(&w->rate);
    if (!(w->unit_s > 0) || !(p.unit_s > 0))
        return;
    m->slowdown = p.unit_s / w->unit_s;
    m->noise = p.error;
    const double slack = fmax(0.03, 4 * hypot(m->noise, fl_tightrope_reference_error(w)));
    m->doubtful = m->slowdown < 1 - slack || m->slowdown > (w->at_top ? 1 : 1 / w->share) * (1 + slack);
}

fl_tightrope_seen_window fl_tightrope_close(fl_tightrope_work *w, int64_t now_ns, int idle) {
    fl_tightrope_seen_window m = {.length_s = (double)(now_ns - w->window_ns) * 1e-9};
    m.power_w = window_power(w, &m.power_noise);
    m.slowdown = NAN;
    if (idle)
        return m;
    count_time(w, now_ns);
    /* A pace that is off what the reference says is no part of it: all work before would be told by it too. */
    if (w->at_top && w->rate.kept_s > 0 && !fl_tightrope_blindfold(w))
        measure(w, &m);
    w->doubted = m.doubtful;
    if (w->at_top && !w->doubted) {
        learn_rate(w);
        end_visit(w);
    }
    if (!fl_tightrope_blindfold(w) && !w->doubted)
        measure(w, &m);
    m.renewed = w->signal == FL_TIGHTROPE_RECORDS && !w->at_top && renew_changed(w);
    if (m.doubtful)
        take_back(w, m.length_s);
    return m;
}

void fl_tightrope_to_certain(fl_tightrope_work *w) {
    const double credit = fl_tightrope_credit(w);
    w->signal = FL_TIGHTROPE_NONE;
    w->top_s = credit, w->floor_s = 0;
}

void fl_tightrope_distrust(fl_tightrope_work *w, const fl_tightrope_seen_window *m) {
    if (w->signal != FL_TIGHTROPE_RECORDS && !m->doubtful && !w->at_top)
        take_back(w, m->length_s);
}

void fl_tightrope_new_phase(fl_tightrope_work *w) {
    const double credit = fl_tightrope_credit(w);
    if (w->signal == FL_TIGHTROPE_RECORDS)
        return;
    w->base_s = credit - open_time(w); /* the unit that runs counts when it ends */
    w->taken_back_s = 0;
    w->top_s = credit, w->floor_s = 0;
    w->origin = w->total;
    w->rate = (fl_tightrope_rate){0};
    w->percent = (fl_tightrope_percent){0};
    w->rate_s = w->unit_s = w->spread = 0;
}
