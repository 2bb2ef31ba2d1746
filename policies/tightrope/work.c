/* tightrope: how much work one GPU has done, in seconds at the top clock. */
#include "policies/tightrope/inside.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DEAR_S 0.01 /* a burst of short kernels may cost so much; two or three readings see more than that */

void fl_tightrope_work_begin(fl_tightrope_work *w, int64_t signal, int64_t now_ns, double tolerance, double sigmas,
                             double cost) {
    const double record_s = w->record_s, afford = w->afford, energy_age_s = w->energy_age_s;
    const fl_random random = w->thin.random;
    memset(w, 0, offsetof(fl_tightrope_work, kind) + (size_t)w->kinds * sizeof *w->kind);
    w->record_s = record_s, w->afford = afford, w->energy_age_s = energy_age_s;
    w->signal = signal;
    w->last_ns = w->begin_ns = w->last_end_ns = w->moved_ns = now_ns;
    w->origin_ns = -1;
    w->tolerance = tolerance;
    w->sigmas = sigmas;
    w->cost = cost;
    w->counter = NAN;
    w->thin.before = NAN;
    w->thin.from_ns = now_ns;
    w->thin.random = random;
    w->share = 1;
    w->busy_share = 1;
}

/* ---- records for a part of the time ----
 *
 * AFFORD, HELD and TOP_RARER are calibrated: they were compared on programs that also judge the policy, 25 of a V100
 * with kernels of 30 us. Their mean saving at bounds of 5 and 10 % is 20.64 and 25.18 %. With half and with twice of
 * AFFORD it is 20.09, 24.94 and 20.64, 24.98; of HELD 20.34, 25.04 and 20.72, 25.33; of TOP_RARER 20.59, 25.11
 * and 20.49, 25.25. No bound breaks with any of them. */

#define BURST_S 0.004 /* least length of a burst: two readings */
#define DEAR_COST 0.1 /* records cost more than they tell while a clock is on its way */
#define SOON_NS 1000000
#define BURST_KERNELS 16
#define BURST_MAX_S 0.2
#define AFFORD 0.0025 /* share of the time that records take where they are on for a part of it, but at most */
#define PART 20       /* such a part of the bound, */
#define HELD 0.15     /* and what is held back for the rest of the time this share of what may be spent */
#define TOP_RARER 4   /* at the top clock stretches are worth their time: bursts only learn kernels there */
#define THIN 0.5      /* records that may be on for a larger share of the time stay on */

static double seconds(int64_t from_ns, int64_t to_ns) { return (double)(to_ns - from_ns) * 1e-9; }

/* Worth of a stretch is decided: by a burst, or as what is certain. */
static void thin_count(fl_tightrope_thin *t, double worth_s) {
    t->off_s += t->wait_s, t->sure_s += t->wait_sure_s, t->worth_s += worth_s;
    t->wait_s = t->wait_sure_s = 0;
}

/* What passed since the burst or the stretch began waits for its worth. */
static void thin_wait(fl_tightrope_work *w, int64_t to_ns) {
    w->thin.wait_s = seconds(w->thin.from_ns, to_ns);
    w->thin.wait_sure_s = fl_tightrope_certain_between(&w->sure, w->thin.from_ns, to_ns);
}

static void thin_begin(fl_tightrope_thin *t, int64_t now_ns, int off) {
    t->from_ns = now_ns, t->off = off;
    t->took_s = t->ref_s = t->kernels = t->paid_s = 0;
}

/* What the burst says a second is worth, and with it the stretch before. */
static void thin_tell(fl_tightrope_work *w) {
    fl_tightrope_thin *t = &w->thin;
    const int64_t open_ns = w->last_end_ns > t->from_ns ? w->last_end_ns : t->from_ns;
    /* The kernel that runs now would else be left out, and so would be most long ones. Of it only what is certain
     * counts. */
    t->took_s += seconds(open_ns, w->last_ns), t->ref_s += fl_tightrope_certain_between(&w->sure, open_ns, w->last_ns);
    const double idle_s = fmax(0, seconds(t->from_ns, w->last_ns) - t->took_s - t->paid_s);
    const double all_s = t->took_s + idle_s, worth = all_s > 0 ? fmin(1, (t->ref_s + idle_s) / all_s) : 0;
    const double wide_s = t->wait_s - t->wait_sure_s; /* how wrong it can be */
    if (!(t->wait_s > 0))
        return;
    if (!(worth * t->wait_s > t->wait_sure_s)) {
        thin_count(t, t->wait_sure_s);
        t->before = NAN;
        return;
    }
    if (wide_s > 1e-3 * t->wait_s) {
        const double off_s = t->wait_s * (worth - t->before);
        t->stretches++;
        t->most_s = fmax(t->most_s, wide_s);
        if (!isnan(t->before))
            t->pairs++, t->square += off_s * off_s / 2;
    }
    t->before = worth;
    thin_count(t, worth * t->wait_s);
}

/* Of a bound that fails as rarely as so many standard errors: ln(2 / chance), at least. */
static double thin_likely(const fl_tightrope_work *w) { return w->sigmas * w->sigmas / 2 + log(2); }

/* Return the least work that was done without records, in seconds at the top clock. */
static double thin_credit(const fl_tightrope_work *w) {
    const fl_tightrope_thin *t = &w->thin;
    const double likely = thin_likely(w), on_s = w->elapsed_s - w->before_elapsed_s - t->off_s;
    const double wide = t->pairs > 0 ? t->square * t->stretches / t->pairs : t->stretches * t->most_s * t->most_s / 4;
    const double held_s =
        7.0 / 3 * likely * t->most_s + sqrt(2 * likely * wide) + w->error_s * t->off_s / fmax(on_s, 1e-9);
    const double open_s = t->off ? fl_tightrope_certain_between(&w->sure, t->from_ns, w->last_ns) : 0;
    return fmax(t->sure_s, t->worth_s - held_s) + t->wait_sure_s + open_s;
}

/* Time in which records were off. */
static double thin_off(const fl_tightrope_work *w) {
    return w->thin.off_s + w->thin.wait_s + (w->thin.off ? seconds(w->thin.from_ns, w->last_ns) : 0);
}

static void thin_sleep(fl_tightrope_work *w, double off_s) {
    fl_tightrope_thin *t = &w->thin;
    thin_begin(t, w->last_end_ns > t->from_ns ? w->last_end_ns : t->from_ns, FL_TIGHTROPE_OFF);
    w->quiet_s = fmax(w->quiet_s, 1.5 * off_s + 3 * BURST_S); /* until the next burst has told */
    t->turn_ns = w->last_ns + (int64_t)(off_s * (0.5 + fl_random_unit(&t->random)) * 1e9);
}

/* Records are asked for. While the clock was on its way only what is certain counts. */
static void thin_wake(fl_tightrope_work *w) {
    fl_tightrope_thin *t = &w->thin;
    const int64_t from = w->settled_ns > t->from_ns ? w->settled_ns : t->from_ns;
    thin_wait(w, from);
    thin_count(t, t->wait_sure_s);
    t->from_ns = from, t->off = FL_TIGHTROPE_AWAITED, t->turn_ns = w->last_ns;
}

/* Records take effect late, on and off alike: so long they lengthened kernels that no record shows. */
void fl_tightrope_thin_first(fl_tightrope_work *w, int64_t start_ns) {
    fl_tightrope_thin *t = &w->thin;
    const int64_t from = t->from_ns > t->turn_ns ? t->from_ns : t->turn_ns, to = start_ns > from ? start_ns : from;
    thin_wait(w, to);
    t->worth_s -= t->cost * seconds(t->turn_ns, to);
    w->last_end_ns = to;
    thin_begin(t, to, FL_TIGHTROPE_ON);
}

/* Another clock was set: what was not told yet stays certain. Records go on until the clock is there, as each of them
 * then tells what its kernel was worth, unless they cost more than that. */
static void thin_change(fl_tightrope_work *w, int64_t now_ns) {
    fl_tightrope_thin *t = &w->thin;
    thin_count(t, t->wait_sure_s);
    t->before = NAN;
    if (!(t->share > 0) || t->share >= 1)
        return;
    if (t->off == FL_TIGHTROPE_ON && t->cost > DEAR_COST)
        thin_sleep(w, 0);
    if (t->off == FL_TIGHTROPE_ON)
        return;
    thin_wait(w, now_ns);
    thin_count(t, t->wait_sure_s);
    t->from_ns = t->turn_ns = now_ns;
    t->off = t->cost > DEAR_COST ? FL_TIGHTROPE_OFF : t->told ? FL_TIGHTROPE_ON : FL_TIGHTROPE_AWAITED;
}

int fl_tightrope_thin_turn(fl_tightrope_work *w, double bound) {
    const double afford = fmin(AFFORD, bound / PART);
    fl_tightrope_thin *t = &w->thin;
    t->told = 0;
    if (w->signal != FL_TIGHTROPE_RECORDS || !(w->record_s + w->cost > 0))
        return 0;
    if (t->off == FL_TIGHTROPE_OFF) {
        if (w->last_ns < t->turn_ns || w->last_ns < w->settled_ns)
            return 0;
        thin_wake(w);
        return 1;
    }
    if (t->off == FL_TIGHTROPE_AWAITED && seconds(t->turn_ns, w->last_ns) < BURST_MAX_S)
        return 0;
    if (t->off == FL_TIGHTROPE_AWAITED) /* nothing runs */
        fl_tightrope_thin_first(w, w->last_ns);
    const double burst_s = seconds(t->from_ns, w->last_ns);
    if (burst_s < BURST_S || (t->kernels < BURST_KERNELS && burst_s < BURST_MAX_S) ||
        (t->share > 0 && w->last_ns < w->settled_ns))
        return 0;
    const double needed_s = fmin(burst_s, fmax(BURST_S, BURST_KERNELS * burst_s / fmax(1, t->kernels)));
    t->told = 1;
    t->cost = t->paid_s / fmax(t->took_s, 1e-9);
    thin_tell(w);
    t->share = t->cost > afford / THIN ? afford / t->cost : 1;
    /* Stretches are so short that what is held back for them stays a small part of what may be spent. */
    const double so_far_s = w->elapsed_s + seconds(w->window_ns, w->last_ns);
    const double wide_s = HELD * bound * so_far_s / (1.5 * 7 / 3 * thin_likely(w));
    const double range = fmax(1e-3, 1 - (w->at_top ? 1 : w->share * (1 - w->tolerance)));
    const double share = w->at_top ? t->share / TOP_RARER : t->share;
    const double off_s = fmax(BURST_S, fmin(needed_s * (1 / share - 1), wide_s / range));
    /* A share may be that of long kernels, whose bursts are long too. */
    if (!(w->record_s > 0) && needed_s > (needed_s + off_s) * THIN)
        t->share = 1;
    if (t->share < 1) {
        thin_sleep(w, off_s);
        return 1;
    }
    thin_begin(t, w->last_end_ns > t->from_ns ? w->last_end_ns : t->from_ns, 0);
    return 0;
}

int64_t fl_tightrope_thin_left(const fl_tightrope_work *w) {
    const fl_tightrope_thin *t = &w->thin;
    if (!(t->share > 0) || t->share >= 1)
        return INT64_MAX;
    int64_t end_ns = t->off == FL_TIGHTROPE_ON ? t->from_ns + (int64_t)(BURST_S * 1e9) : w->last_ns;
    if (t->off == FL_TIGHTROPE_OFF)
        end_ns = t->turn_ns > w->settled_ns ? t->turn_ns : w->settled_ns;
    return end_ns > w->last_ns + SOON_NS ? end_ns - w->last_ns : SOON_NS;
}

/* A counter's line is drawn on over windows at one clock, for so long: a line that never ends sees no change. */
#define STRETCH_S 2

void fl_tightrope_window(fl_tightrope_work *w, int64_t now_ns, double clock, int changed) {
    if (changed || w->rate.last_s > STRETCH_S) {
        if (w->at_top && !w->doubted)
            fl_tightrope_rate_keep(&w->rate);
        fl_tightrope_rate_stretch(&w->rate);
    }
    if (changed)
        thin_change(w, now_ns);
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
    w->power_sum = w->power_count = w->power_square = 0;
    w->energy_ns[0] = w->energy_ns[1] = -1;
}

int fl_tightrope_blindfold(const fl_tightrope_work *w) {
    if (w->signal == FL_TIGHTROPE_RECORDS || w->signal == FL_TIGHTROPE_NONE)
        return w->signal == FL_TIGHTROPE_NONE;
    return w->alike > (w->signal == FL_TIGHTROPE_UTIL ? FL_TIGHTROPE_ALIKE_ALL : FL_TIGHTROPE_ALIKE_COUNTERS);
}

/* Standard errors to hold back where their size was learned from so many durations: the quantile of Student's t that is
 * as rare as sigmas of the normal law (Wallace, "Bounds on normal approximations to Student's and the chi-square
 * distributions", 1959). */
static double held_back(const fl_tightrope_work *w, double count) {
    const double freedom = fmax(1, count - 1), z = w->sigmas * (8 * freedom + 3) / (8 * freedom + 1);
    return sqrt(freedom * expm1(fmin(z * z / freedom, 50)));
}

/* Of all records at the top clock: their number, the sum of their durations, and its variance by how each kind's
 * differ. */
static double records_spread(const fl_tightrope_work *w, double *variance, double *seconds) {
    double count = *variance = *seconds = 0;
    for (int64_t i = 0; i < w->kinds; i++) {
        const fl_tightrope_kind *k = &w->kind[i];
        const double m = k->count > 1 ? k->sum_s / k->count : 0;
        *seconds += k->sum_s;
        *variance += k->count > 1 ? fmax(0, k->square_s - k->count * m * m) : 0;
        count += k->count;
    }
    return count;
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
    double variance, seconds;
    const double count = records_spread(w, &variance, &seconds);
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
 * that runs now may be stretched. */
static double records_credit(fl_tightrope_work *w) {
    double low = 0, held = 0;
    for (int64_t i = 0; i < w->kinds; i++) {
        double held_s;
        low += w->kind[i].kept_s + kind_credit(w, &w->kind[i], &held_s);
        held += held_s * held_s;
    }
    w->error_s = sqrt(held);
    const double elapsed_s = fmax(1e-9, w->elapsed_s - w->before_elapsed_s - thin_off(w));
    const double all_s = w->busy_s + w->top_busy_s, over = fmax(1, all_s / elapsed_s);
    const double open_s =
        w->thin.off ? 0 : fmax(0, fmin(elapsed_s - all_s, (double)(w->last_ns - w->last_end_ns) * 1e-9));
    const double idle_s = fmax(0, elapsed_s - all_s - open_s);
    w->busy_share = elapsed_s > idle_s ? 1 - idle_s / elapsed_s : 1;
    const double kernels_s = (w->top_busy_s + low - w->error_s - w->overlap_s) / over +
                             fl_tightrope_certain_between(&w->sure, w->last_ns - (int64_t)(open_s * 1e9), w->last_ns);
    const double paid_s = w->record_s > 0 ? fmax(0, kernels_s - w->recorded * w->record_s) : kernels_s / (1 + w->cost);
    return w->before_s + paid_s + idle_s + thin_credit(w);
}

double fl_tightrope_records_cost(const fl_tightrope_work *w) {
    const double paid_s = w->recorded * w->record_s, kernels_s = w->busy_s + w->top_busy_s - paid_s;
    return w->record_s > 0 && w->recorded > 0 ? paid_s / fmax(kernels_s, 1e-9) : w->cost;
}

double fl_tightrope_records_kept(const fl_tightrope_work *w) {
    return fl_tightrope_by_records(w->signal) && w->record_s > 0 ? DEAR_S : 0;
}

int fl_tightrope_records_dear(const fl_tightrope_work *w) {
    return w->signal == FL_TIGHTROPE_ENDS &&
           w->recorded * w->record_s > w->afford * seconds(w->begin_ns, w->last_ns) + DEAR_S;
}

/* What is held back, in seconds, as a utilisation comes in whole percent: of its reading at the top clock for the work
 * below it, and of the readings below it for the time that they were taken in. Rounding makes a mean wrong by half a
 * percent at most, and what noise would show above 100 by about as much. */
static double rounding(const fl_tightrope_work *w, double work_s, double sure_s) {
    const double top_pct = w->quantum / w->unit_s, since_s = (double)(w->last_ns - w->origin_ns) * 1e-9;
    return w->signal == FL_TIGHTROPE_UTIL ? (fmax(0, work_s - sure_s) + fmax(0, since_s - sure_s)) / top_pct : 0;
}

/* By how much records that only count kernels stretch the time. */
static double ends_cost(const fl_tightrope_work *w) {
    return w->signal == FL_TIGHTROPE_ENDS ? 1 + fl_tightrope_records_cost(w) : 1;
}

static double certain_credit(const fl_tightrope_work *w) {
    return (w->top_s + w->floor_s * (1 - w->tolerance)) / ends_cost(w);
}

double fl_tightrope_credit(fl_tightrope_work *w) {
    const double certain = certain_credit(w);
    if (w->signal == FL_TIGHTROPE_RECORDS)
        return fmin(w->elapsed_s, records_credit(w));
    const double units = (w->total - w->origin) / w->quantum;
    if (fl_tightrope_blindfold(w) || !(w->unit_s > 0))
        return certain;
    const double work = units * w->unit_s, sure_s = fmax(0, w->top_s - w->base_s);
    const double least = fl_tightrope_rate_least(&w->rate, w->sigmas, w->at_top && !w->doubted, units, sure_s) -
                         rounding(w, work, sure_s);
    const double open_s = fl_tightrope_certain_between(&w->sure, w->moved_ns, w->last_ns);
    const double credit = fmin(w->elapsed_s, w->base_s + (least + open_s) / ends_cost(w)) - w->taken_back_s;
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

double fl_tightrope_power(const fl_tightrope_work *w, double *noise) {
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
    m.power_w = fl_tightrope_power(w, &m.power_noise);
    m.slowdown = NAN;
    if (!idle)
        count_time(w, now_ns);
    w->window_ns = now_ns;
    if (idle)
        return m;
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

void fl_tightrope_work_turn(fl_tightrope_work *w, int64_t signal, int64_t now_ns) {
    count_time(w, now_ns);
    const double credit_s = fmax(fl_tightrope_credit(w), certain_credit(w)), elapsed_s = w->elapsed_s;
    const double clock = w->clock, share = w->share;
    const int64_t settled_ns = w->settled_ns;
    const int at_top = w->at_top;
    fl_tightrope_work_begin(w, signal, now_ns, w->tolerance, w->sigmas, w->cost);
    w->before_s = w->top_s = credit_s;
    w->before_elapsed_s = w->elapsed_s = elapsed_s;
    w->clock = clock, w->share = share, w->settled_ns = settled_ns, w->at_top = at_top;
    fl_tightrope_window(w, now_ns, clock, 0);
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
    w->rate_s = w->unit_s = w->spread = 0;
}
