/* Clocks that are wrong in all workloads. ln T of a row at a clock that ran at g in place of f is off by s ln(g/f), s
 * the slope of its own curve there; so off / s is the same for all workloads that know the clock. */
#include "models/unsound_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KNOWS_CLOCK (-0.5) /* d ln T / d ln f below this: the clock shows in the time */
#define CORE_BOUND (-0.8)  /* d ln T / d ln f below this: T f is nearly constant */
#define HALF 0.5       /* of the shift at least shows in NEARLY_ALL rows that know the clock: a bend that only some */
#define NEARLY_ALL 0.9 /* workloads have, as where the link slows the memory down, is no wrong clock */
#define ROUNDS 8       /* of Newton's method */
#define FURTHEST 1.5   /* in ln clock */
#define TELLERS_MIN 3  /* workloads */
#define ALIKE 3.0      /* what they tell must be so many times its own spread */
#define SAME (2 * FL_ROW_NOISE_TIME) /* clocks nearer than this are one: no time tells them apart */
#define RISEN 0.5                    /* of a step of the clock: less has not risen */

typedef struct verdict {
    double shift, sd, weight; /* of ln(ran/said); how far beyond its deviations */
    uint32_t tellers;
} verdict;

static int is_out(const fl_unsound_search *s, size_t row) { return s->found->row[row].kind != FL_SOUND; }

/* ln(ran/said) of a row whose time is that of another clock of its curve. */
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

/* What the workloads say of one clock. shift NAN where too few know it, or they do not agree. */
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
    v.sd = 1.2533 * fmax(spread, FL_ROW_NOISE_TIME) / sqrt((double)n); /* of a median */
    v.weight = weight / (double)n;
    /* Workloads have bends in common, and these are in each row's own deviation only: so the mean row must be far off.
     */
    if (fabs(shift) > FL_UNSOUND_FAR && fabs(shift) > FL_UNSOUND_SDS * v.sd && fabs(shift) > ALIKE * spread &&
        v.weight > FL_UNSOUND_SDS && alike >= NEARLY_ALL * (double)n)
        v.shift = shift;
    return v;
}

/* How much of a step of the clock showed in the times of the workloads whose slope below it was beneath `known`: 1 is
 * all, less than 0 is a lower clock. NAN where it is `least` or more, too few tell, or they do not agree. sd: of it. */
static double risen(const fl_unsound_search *s, double low_mhz, double mhz, double known, double least,
                    uint32_t *tellers, double *sd) {
    size_t n = 0;
    *tellers = 0;
    for (size_t k = 0; k < s->loads; k++) {
        const fl_unsound_load *load = &s->load[k];
        const fl_chip_row *at = &s->row[load->first];
        uint32_t told = 0;
        for (size_t i = 3; i < load->count; i++) { /* two steps below it, so that one reading weighs less */
            if (fabs(at[i].sm_mhz - mhz) > 0.5 || fabs(at[i - 1].sm_mhz - low_mhz) > 0.5 ||
                fabs(at[i].mem_mhz - at[i - 3].mem_mhz) > 0.5)
                continue;
            const double before = log(at[i - 1].time_s / at[i - 3].time_s) / log(at[i - 1].sm_mhz / at[i - 3].sm_mhz);
            if (!(before < known && before > FL_UNSOUND_STEEPEST))
                continue;
            s->room[n++] = log(at[i].time_s / at[i - 1].time_s) / log(mhz / low_mhz) / before;
            told = 1;
        }
        *tellers += told;
    }
    double spread = 0;
    const double share = *tellers >= TELLERS_MIN ? fl_unsound_middle(s->room, n, &spread) : (double)NAN;
    *sd = 1.2533 * spread / sqrt(fmax(1, (double)n));
    return share < least && 1 - share > FL_UNSOUND_SDS * *sd ? share : (double)NAN;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The sweep's clocks, each once, ascending, of rows that are not out. */
static size_t list_clocks(const fl_unsound_search *s, double *list) {
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < s->count; i++)
        if (!is_out(s, i))
            list[n++] = s->row[i].sm_mhz;
    qsort(list, n, sizeof *list, ascending);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || list[i] > list[kept - 1] + 0.5)
            list[kept++] = list[i];
    return kept;
}

/* Takes the clock's rows out, or gives them the clock that they ran at. */
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

/* Whether no other clock of the list is the one that was found. */
static int is_alone(const double *list, size_t n, size_t at, double ran_mhz) {
    for (size_t i = 0; i < n; i++)
        if (i != at && fabs(log(list[i] / ran_mhz)) < SAME)
            return 0;
    return 1;
}

/* From the top: clocks that were asked for and not reached. Several in a row hide each other from judge(). */
static fl_model_status find_stuck(fl_unsound_search *s, double *list) {
    const size_t n = list_clocks(s, list);
    fl_model_status status = FL_MODEL_OK;
    for (size_t top = n; status == FL_MODEL_OK && top-- > 2;) {
        uint32_t tellers = 0;
        double sd = 0;
        const double step = log(list[top] / list[top - 1]);
        double share = risen(s, list[top - 1], list[top], CORE_BOUND, RISEN, &tellers, &sd);
        if (isnan(share)) /* slower than at a lower clock: no workload is */
            share = risen(s, list[top - 1], list[top], KNOWS_CLOCK, 0, &tellers, &sd);
        if (isnan(share))
            break;
        const double ran = list[top - 1] * exp(share * step);
        const fl_unsound_clock clock = {list[top], ran, 100 * sd * step, tellers, is_alone(list, n, top, ran)};
        status = settle(s, &clock);
    }
    return status;
}

fl_model_status fl_unsound_clocks(fl_unsound_search *s) {
    double *list = malloc((s->count + 1) * sizeof *list);
    fl_model_status status = list ? find_stuck(s, list) : FL_MODEL_NO_MEMORY;
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
