/* Finds clocks that are wrong in all workloads. Where a row ran at g in place of f, its ln T is off by s ln(g/f), with
 * s the slope of its own curve there. So off / s is the same for all workloads whose time depends on the clock. */
#include "models/unsound/inside.h"

#include "models/chip/chip.h"
#include "models/math/math.h"
#include "models/unsound/unsound.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FL_UNSOUND_ROWS 5 /* rows of a workload, at least, to be judged */

/* ---- deviations and curves ---- */

double fl_unsound_middle(double *x, size_t n, double *spread) {
    const double m = gsl_stats_median(x, 1, n);
    for (size_t i = 0; i < n; i++)
        x[i] = fabs(x[i] - m);
    *spread = 1.4826 * gsl_stats_median(x, 1, n);
    return m;
}

void fl_unsound_close(fl_unsound_load *load) {
    fl_row_curve_close(&load->time);
    fl_row_curve_close(&load->power);
}

fl_model_status fl_unsound_open(const fl_unsound_search *s, fl_unsound_load *load) {
    fl_unsound_close(load);
    if (load->count < FL_UNSOUND_ROWS)
        return FL_MODEL_OK;
    const fl_chip_row *row = s->row + load->first;
    fl_model_status status = fl_row_curve_open(row, load->count, 0, &load->time);
    if (status == FL_MODEL_OK && fl_row_curve_open(row, load->count, 1, &load->power) == FL_MODEL_NO_MEMORY)
        status = FL_MODEL_NO_MEMORY;
    if (status == FL_MODEL_NO_FIT)
        status = FL_MODEL_OK;
    for (size_t i = 0; status == FL_MODEL_OK && i < load->count; i++)
        if (s->found->row[load->first + i].kind != FL_SOUND) {
            fl_row_curve_drop(&load->time, i);
            fl_row_curve_drop(&load->power, i);
        }
    return status;
}

/* ---- clocks that are wrong everywhere ---- */

#define KNOWS_CLOCK (-0.5) /* d ln T / d ln f below this: the clock shows in the time */
#define CORE_BOUND (-0.8)  /* d ln T / d ln f below this: T f is nearly constant */
/* At least HALF of the shift must show in NEARLY_ALL rows whose time depends on the clock: a bend that only some
 * workloads have, for example where the link slows the memory down, is not a wrong clock. */
#define HALF 0.5
#define NEARLY_ALL 0.9
#define STUCK_MAX 4                  /* clocks at the top that may not have been reached */
#define ROUNDS 8                     /* of Newton's method */
#define FURTHEST 1.5                 /* in ln clock */
#define TELLERS_MIN 3                /* workloads */
#define ALIKE 3.0                    /* the shift must be this many times the spread among the workloads */
#define SAME (2 * FL_ROW_NOISE_TIME) /* clocks nearer than this count as one: no time distinguishes them */
#define RISEN 0.5                    /* of a step of the clock: with less, the clock has not risen */

typedef struct verdict {
    double shift, sd, weight; /* of ln(ran/said); weight: how far the shift lies beyond its deviations */
    uint32_t tellers;
} verdict;

static int is_out(const fl_unsound_search *s, size_t row) { return s->found->row[row].kind != FL_SOUND; }

/* ln(ran/said) of a row whose time belongs to another clock of its curve. */
static double ran_at(const fl_row_curve *c, size_t i, const fl_chip_row *r) {
    double shift = 0;
    for (int k = 0; k < ROUNDS; k++) {
        const double mhz = r->sm_mhz * exp(shift);
        const double slope = fmin(KNOWS_CLOCK, fl_row_curve_slope(c, i, mhz, r->mem_mhz));
        shift += (log(r->time_s) - fl_row_curve_at(c, i, mhz, r->mem_mhz)) / slope;
        shift = fmax(-FURTHEST, fmin(FURTHEST, shift));
    }
    return shift;
}

/* What the workloads say about one clock. shift is NAN where too few depend on the clock, or where they disagree. */
static verdict judge(const fl_unsound_search *s, double sm_mhz) {
    verdict v = {.shift = NAN};
    size_t n = 0;
    double weight = 0;
    for (size_t k = 0; k < s->loads; k++) {
        const fl_unsound_load *load = &s->load[k];
        uint32_t told = 0;
        for (size_t i = 0; load->time.n && i < load->count; i++) {
            const fl_chip_row *r = &s->row[load->first + i];
            double off = NAN, sd = NAN;
            if (fabs(r->sm_mhz - sm_mhz) > 0.5 || is_out(s, load->first + i))
                continue;
            const double slope = fl_row_curve_slope(&load->time, i, r->sm_mhz, r->mem_mhz);
            if (!(slope < KNOWS_CLOCK && slope > FL_UNSOUND_STEEPEST))
                continue;
            fl_row_curve_off(&load->time, i, &off, &sd);
            s->room[n++] = ran_at(&load->time, i, r);
            weight += fabs(off) / sd;
            told = 1;
        }
        v.tellers += told;
    }
    if (v.tellers < TELLERS_MIN)
        return v;
    double spread = 0, alike = 0;
    memcpy(s->second, s->room, n * sizeof *s->room);
    const double shift = fl_unsound_middle(s->room, n, &spread);
    for (size_t i = 0; i < n; i++)
        alike += s->second[i] / shift > HALF ? 1 : 0;
    v.sd = 1.2533 * fmax(spread, FL_ROW_NOISE_TIME) / sqrt((double)n); /* standard error of a median */
    v.weight = weight / (double)n;
    /* Workloads share bends, which appear only in each row's own deviation. The mean row must therefore be far off. */
    if (fabs(shift) > FL_UNSOUND_FAR && fabs(shift) > FL_UNSOUND_SDS * v.sd && fabs(shift) > ALIKE * spread &&
        v.weight > FL_UNSOUND_SDS && alike >= NEARLY_ALL * (double)n)
        v.shift = shift;
    return v;
}

/* The share of the step from one clock to a higher one that showed in the times of the workloads whose slope below the
 * first clock was less than `known`: 1 is the whole step, below 0 is a lower clock. NAN where the share is `least` or
 * more, too few workloads show it, or they disagree. sd: its standard deviation. */
static double risen(const fl_unsound_search *s, double base_mhz, double mhz, double known, double least,
                    uint32_t *tellers, double *sd) {
    size_t n = 0;
    *tellers = 0;
    for (size_t k = 0; k < s->loads; k++) {
        const fl_unsound_load *load = &s->load[k];
        const fl_chip_row *at = &s->row[load->first];
        uint32_t told = 0;
        for (size_t b = 2; b < load->count;
             b++) { /* the slope over two steps below it, so that one reading weighs less */
            if (fabs(at[b].sm_mhz - base_mhz) > 0.5 || fabs(at[b].mem_mhz - at[b - 2].mem_mhz) > 0.5)
                continue;
            const double before = log(at[b].time_s / at[b - 2].time_s) / log(at[b].sm_mhz / at[b - 2].sm_mhz);
            size_t i = b + 1;
            while (i < load->count && fabs(at[i].sm_mhz - mhz) > 0.5)
                i++;
            if (i == load->count || fabs(at[i].mem_mhz - at[b].mem_mhz) > 0.5 ||
                !(before < known && before > FL_UNSOUND_STEEPEST))
                continue;
            s->room[n++] = log(at[i].time_s / at[b].time_s) / log(mhz / base_mhz) / before;
            told = 1;
        }
        *tellers += told;
    }
    double spread = 0;
    const double share = *tellers >= TELLERS_MIN ? fl_unsound_middle(s->room, n, &spread) : (double)NAN;
    *sd = 1.2533 * spread / sqrt(fmax(1, (double)n));
    return share < least && 1 - share > FL_UNSOUND_SDS * *sd ? share : (double)NAN;
}

/* The sweep's distinct clocks, ascending, of the rows that are still in. */
static size_t list_clocks(const fl_unsound_search *s, double *list) {
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < s->count; i++)
        if (!is_out(s, i))
            list[n++] = s->row[i].sm_mhz;
    gsl_sort(list, 1, n);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || list[i] > list[kept - 1] + 0.5)
            list[kept++] = list[i];
    return kept;
}

/* Takes the clock's rows out, or assigns them the clock at which they ran. */
static fl_model_status settle(fl_unsound_search *s, const fl_unsound_clock *clock) {
    fl_model_status status = FL_MODEL_OK;
    if (s->found->clocks < FL_UNSOUND_CLOCKS)
        s->found->clock[s->found->clocks++] = *clock;
    for (size_t i = 0; i < s->count; i++)
        if (!is_out(s, i) && fabs(s->row[i].sm_mhz - clock->sm_mhz) <= 0.5) {
            s->found->row[i].kind = FL_UNSOUND_CLOCK;
            s->found->row[i].ran_mhz = clock->ran_mhz;
        }
    for (size_t k = 0; status == FL_MODEL_OK && k < s->loads; k++)
        status = fl_unsound_open(s, &s->load[k]);
    return status;
}

/* Whether no other clock of the list equals the one that was found. */
static int is_alone(const double *list, size_t n, size_t at, double ran_mhz) {
    for (size_t i = 0; i < n; i++)
        if (i != at && fabs(log(list[i] / ran_mhz)) < SAME)
            return 0;
    return 1;
}

/* Whether clock `top` of the list was not reached from clock `base`. *clock says what it ran at. */
static int is_stuck(const fl_unsound_search *s, const double *list, size_t n, size_t base, size_t top,
                    fl_unsound_clock *clock) {
    uint32_t tellers = 0;
    double sd = 0;
    const double step = log(list[top] / list[base]);
    double share = risen(s, list[base], list[top], CORE_BOUND, RISEN, &tellers, &sd);
    if (isnan(share)) /* no core-bound workload is left: slower than at a lower clock */
        share = risen(s, list[base], list[top], KNOWS_CLOCK, 0, &tellers, &sd);
    const double ran = list[base] * exp(share * step);
    *clock = (fl_unsound_clock){list[top], ran, 100 * sd * step, tellers, is_alone(list, n, top, ran)};
    return !isnan(share);
}

/* The clocks at the top that were requested but not reached. Several in a row hide each other from judge(). The
 * function therefore compares all clocks above one clock with that one, and takes the lowest above which none rises. */
static fl_model_status find_stuck(fl_unsound_search *s, double *list) {
    const size_t n = list_clocks(s, list);
    fl_unsound_clock clock[STUCK_MAX], found[STUCK_MAX];
    fl_model_status status = FL_MODEL_OK;
    size_t stuck = 0;
    for (size_t many = 1; many <= STUCK_MAX && many + 2 < n; many++) {
        size_t top = 0;
        while (top < many && is_stuck(s, list, n, n - 1 - many, n - 1 - top, &clock[top]))
            top++;
        if (top < many)
            continue;
        stuck = many;
        for (size_t i = 0; i < many; i++)
            found[i] = clock[i];
    }
    for (size_t i = 0; status == FL_MODEL_OK && i < stuck; i++)
        status = settle(s, &found[i]);
    return status;
}

/* ---- the lowest of few clocks ---- */

#define IMPOSSIBLE                                                                                                     \
    1.3 /* T f at the lowest clock is this many times that at the next: no change of memory does that                  \
         */

/* Return the row of a workload at a clock, at the memory clock of `like` unless that is NULL; NULL: there is none. */
static const fl_chip_row *row_at(const fl_unsound_search *s, const fl_unsound_load *load, double sm_mhz,
                                 const fl_chip_row *like) {
    for (size_t i = load->first; i < load->first + load->count; i++)
        if (fabs(s->row[i].sm_mhz - sm_mhz) <= 0.5 && !is_out(s, i) &&
            (!like || fabs(s->row[i].mem_mhz - like->mem_mhz) <= 0.5))
            return &s->row[i];
    return NULL;
}

/* Three clocks of a workload give no curve. They show a lowest clock that was not the one named, because no time grows
 * faster than the clock falls. The clock it ran at follows from the workloads whose T f is constant above it; where
 * none is core-bound, from all. */
static fl_model_status find_low(fl_unsound_search *s, double *list) {
    const size_t clocks = list_clocks(s, list);
    size_t bound = 0, all = 0;
    if (clocks < 3)
        return FL_MODEL_OK;
    for (size_t k = 0; k < s->loads; k++) {
        const fl_unsound_load *load = &s->load[k];
        const fl_chip_row *low = load->time.n ? NULL : row_at(s, load, list[0], NULL);
        const fl_chip_row *next = low ? row_at(s, load, list[1], low) : NULL;
        const fl_chip_row *third = next ? row_at(s, load, list[2], low) : NULL;
        if (!third)
            continue;
        const double grown = low->time_s * low->sm_mhz / (next->time_s * next->sm_mhz);
        const double slope = log(next->time_s / third->time_s) / log(next->sm_mhz / third->sm_mhz);
        if (slope < FL_UNSOUND_STEEPEST || (slope < CORE_BOUND && grown < IMPOSSIBLE))
            return FL_MODEL_OK;
        if (grown < IMPOSSIBLE)
            continue;
        s->second[all++] = -log(grown);
        if (slope < CORE_BOUND)
            s->room[bound++] = -log(grown);
    }
    double *shift = bound ? s->room : s->second, spread = 0;
    const size_t n = bound ? bound : all;
    if (!n)
        return FL_MODEL_OK;
    const double ran = list[0] * exp(fl_unsound_middle(shift, n, &spread));
    const double sd = 1.2533 * fmax(spread, FL_ROW_NOISE_TIME) / sqrt((double)n);
    return settle(s, &(fl_unsound_clock){list[0], ran, 100 * sd, (uint32_t)n, is_alone(list, clocks, 0, ran)});
}

fl_model_status fl_unsound_clocks(fl_unsound_search *s) {
    double *list = malloc((s->count + 1) * sizeof *list);
    fl_model_status status = list ? find_stuck(s, list) : FL_MODEL_NO_MEMORY;
    if (status == FL_MODEL_OK)
        status = find_low(s, list);
    for (int round = 0; status == FL_MODEL_OK && round < FL_UNSOUND_CLOCKS; round++) {
        const size_t n = list_clocks(s, list);
        verdict worst = {.shift = NAN};
        size_t at = 0;
        for (size_t i = 0; i < n; i++) {
            const verdict v = judge(s, list[i]);
            if (!isnan(v.shift) && !(v.weight <= worst.weight)) {
                worst = v;
                at = i;
            }
        }
        if (isnan(worst.shift))
            break;
        const double ran = list[at] * exp(worst.shift);
        const fl_unsound_clock clock = {list[at], ran, 100 * worst.sd, worst.tellers, is_alone(list, n, at, ran)};
        status = settle(s, &clock);
    }
    free(list);
    return status;
}
