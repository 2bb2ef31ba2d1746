/* Finds rows that did not run at the clock they name. */
#include "models/unsound/inside.h"

#include "models/chip/chip.h"
#include "models/math/math.h"
#include "models/unsound/unsound.h"

#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>

/* ---- texts ---- */

void fl_unsound_free(fl_unsound *found) {
    free(found->row);
    *found = (fl_unsound){0};
}

const char *fl_unsound_text(fl_unsound_kind kind) {
    static const char *const text[] = {"sound",
                                       "time and power are those of a lower clock: throttled, or not reached",
                                       "time and power are those of a higher clock: mislabelled",
                                       "no faster and no hotter than at the next lower clock: not reached",
                                       "out of line, and no clock explains it",
                                       "its clock is wrong in the whole sweep"};
    return text[kind];
}

/* ---- the search ---- */

#define OUT_MAX 4      /* at most one row in this many is taken out of a workload: with more there is no curve left */
#define SCALE_ROWS 5   /* rows or workloads, at least, for a scale of their own */
#define GRID 240       /* clocks tried for a row that is off its curve */
#define GRID_LOW 0.25  /* of the lowest clock of its workload */
#define GRID_HIGH 1.25 /* of the highest */
#define EXPLAINED 3.0  /* deviations: a clock explains a row that lies no farther off there */
#define STEADY 0.5     /* the step below must have at least this share of a step's slope of power */
#define UNMOVED 2.448  /* deviations of time and power together: 95 % of repeated readings lie within */

/* How far a row is off, in deviations of time and power together. */
typedef struct distance {
    double time, power; /* ln; NAN = not known */
    double time_sd, power_sd;
    double sds;
} distance;

static double joint(double time_sds, double power_sds) {
    return hypot(isnan(time_sds) ? 0 : time_sds, isnan(power_sds) ? 0 : power_sds);
}

static distance distance_of(const fl_unsound_load *load, size_t i) {
    distance d = {0};
    fl_row_curve_off(&load->time, i, &d.time, &d.time_sd);
    fl_row_curve_off(&load->power, i, &d.power, &d.power_sd);
    d.sds = joint(d.time / d.time_sd, d.power / d.power_sd);
    return d;
}

static int is_far(const distance *d) { return fabs(d->time) > FL_UNSOUND_FAR || fabs(d->power) > FL_UNSOUND_FAR; }

static int is_sound(const fl_unsound_search *s, size_t row) { return s->found->row[row].kind == FL_SOUND; }

/* Scale of the deviations: 1 where the curves' own deviations hold, more where rows lie farther off than they say. */
static double scale_of(double *sds, size_t n) {
    if (n < SCALE_ROWS)
        return 1;
    return fmax(1, gsl_stats_median(sds, 1, n) / 1.1774); /* the median length of two joint normal deviates */
}

static int is_steep(const fl_unsound_search *s, const fl_unsound_load *load, size_t i) {
    const fl_chip_row *row = &s->row[load->first + i];
    return fl_row_curve_slope(&load->time, i, row->sm_mhz, row->mem_mhz) < FL_UNSOUND_STEEPEST;
}

/* Takes the worst rows out of the curve one after the other, since each distorts the curve that judges its neighbours.
 * Most of them are good and come back. aside: in the order of removal. */
static size_t set_aside(const fl_unsound_search *s, fl_unsound_load *load, size_t *aside) {
    const size_t most = load->count / OUT_MAX;
    size_t out = 0;
    for (; load->time.n && out < most; out++) {
        double worst = 0;
        for (size_t i = 0; i < load->count; i++) {
            const distance d = distance_of(load, i);
            if (load->time.used[i] && d.sds > worst && !is_steep(s, load, i)) {
                worst = d.sds;
                aside[out] = i;
            }
        }
        if (!(worst > 0))
            break;
        fl_row_curve_drop(&load->time, aside[out]);
        fl_row_curve_drop(&load->power, aside[out]);
    }
    return out;
}

/* How far rows are off with the worst ones set aside: sds of each row, and scale, the larger of its workload's and its
 * setting's. */
static void set_scales(const fl_unsound_search *s, double *sds, double *scale) {
    for (size_t k = 0; k < s->loads; k++) {
        const fl_unsound_load *load = &s->load[k];
        size_t n = 0;
        for (size_t i = load->first; i < load->first + load->count; i++) {
            sds[i] = load->time.n && is_sound(s, i) ? distance_of(load, i - load->first).sds : (double)NAN;
            if (!isnan(sds[i]) && load->time.used[i - load->first])
                s->room[n++] = sds[i];
        }
        const double own = scale_of(s->room, n);
        for (size_t i = load->first; i < load->first + load->count; i++)
            scale[i] = own;
    }
    for (size_t i = 0; i < s->count; i++) {
        size_t n = 0;
        for (size_t j = 0; j < s->count; j++)
            if (fabs(s->row[j].sm_mhz - s->row[i].sm_mhz) < 0.5 && fabs(s->row[j].mem_mhz - s->row[i].mem_mhz) < 0.5 &&
                !isnan(sds[j]))
                s->room[n++] = sds[j];
        scale[i] = fmax(scale[i], scale_of(s->room, n));
    }
}

/* The clock that the row fits, by the other rows of its workload; NAN where none explains it. */
static double look_for_clock(const fl_unsound_search *s, const fl_unsound_load *load, size_t i, const distance *d,
                             double scale) {
    const fl_chip_row *row = &s->row[load->first + i];
    double low = INFINITY, high = 0, best = INFINITY, at = NAN;
    for (size_t k = load->first; k < load->first + load->count; k++) {
        low = fmin(low, s->row[k].sm_mhz);
        high = fmax(high, s->row[k].sm_mhz);
    }
    const double from = log(GRID_LOW * low), step = (log(GRID_HIGH * high) - from) / GRID;
    for (int k = 0; k <= GRID; k++) {
        const double mhz = exp(from + step * k);
        const double time = log(row->time_s) - fl_row_curve_at(&load->time, i, mhz, row->mem_mhz);
        const double power = log(row->power_w) - fl_row_curve_at(&load->power, i, mhz, row->mem_mhz);
        const double off = joint(time / d->time_sd, power / d->power_sd) / scale;
        if (off < best) {
            best = off;
            at = mhz;
        }
    }
    return best <= EXPLAINED ? at : (double)NAN;
}

static void take_out(fl_unsound_search *s, size_t row, fl_unsound_kind kind, double ran_mhz, const distance *d) {
    s->found->row[row] = (fl_unsound_row){kind, ran_mhz, 100 * expm1(d->time), 100 * expm1(d->power)};
    s->found->rows++;
}

/* Of the rows set aside, those that are not off come back, the least deviant first; the others are findings. */
static fl_model_status find_rows(fl_unsound_search *s, fl_unsound_load *load, size_t *aside, size_t out,
                                 const double *scale) {
    for (;;) {
        double least = INFINITY;
        size_t at = out;
        for (size_t k = 0; k < out; k++) {
            const distance d = distance_of(load, aside[k]);
            const double sds = d.sds / scale[load->first + aside[k]];
            if ((sds <= FL_UNSOUND_SDS || !is_far(&d) || is_steep(s, load, aside[k])) && sds < least) {
                least = sds;
                at = k;
            }
        }
        if (at == out)
            break;
        const size_t back = aside[at];
        out--;
        aside[at] = aside[out];
        if (fl_row_curve_admit(&load->time, back) != FL_MODEL_OK ||
            (load->power.n && fl_row_curve_admit(&load->power, back) != FL_MODEL_OK))
            return FL_MODEL_NO_FIT;
    }
    for (size_t k = 0; k < out; k++) {
        const size_t row = load->first + aside[k];
        const distance d = distance_of(load, aside[k]);
        const double mhz = look_for_clock(s, load, aside[k], &d, scale[row]);
        take_out(s, row,
                 isnan(mhz)                 ? FL_UNSOUND_LINE
                 : mhz < s->row[row].sm_mhz ? FL_UNSOUND_SLOWER
                                            : FL_UNSOUND_FASTER,
                 mhz, &d);
    }
    return FL_MODEL_OK;
}

/* The sound rows of one memory clock, from row `from` of the workload on. *next: where
 * the next memory clock starts. */
static size_t sound_group(const fl_unsound_search *s, const fl_unsound_load *load, size_t from, size_t *list,
                          size_t *next) {
    size_t n = 0, i = from;
    for (; i < load->count && s->row[load->first + i].mem_mhz < s->row[load->first + from].mem_mhz + 0.5; i++)
        if (is_sound(s, load->first + i))
            list[n++] = load->first + i;
    *next = i;
    return n;
}

/* Rows at the top that repeat one row, although the steps below say that power must rise. Both of the last two steps
 * must say so, because one of them may involve a bad row. A time may stop falling at a knee, so only the power decides.
 * list: the rows of one memory clock. */
static void find_stuck(fl_unsound_search *s, const size_t *list, size_t n) {
    for (size_t b = 2; b + 1 < n; b++) {
        const fl_chip_row *lowest = &s->row[list[b - 2]], *low = &s->row[list[b - 1]], *base = &s->row[list[b]];
        const double slope = log(base->power_w / low->power_w) / log(base->sm_mhz / low->sm_mhz);
        const double before = log(low->power_w / lowest->power_w) / log(low->sm_mhz / lowest->sm_mhz);
        double time = 0, power = 0;
        int same = before >= STEADY * slope; /* NAN where a power is not known */
        for (size_t i = b + 1; same && i < n; i++) {
            const fl_chip_row *row = &s->row[list[i]];
            const double step = log(row->sm_mhz / base->sm_mhz);
            time = log(base->time_s / low->time_s) / log(base->sm_mhz / low->sm_mhz) * step;
            power = slope * step;
            same = hypot(log(row->time_s / base->time_s) / FL_ROW_NOISE_TIME,
                         log(row->power_w / base->power_w) / FL_ROW_NOISE_POWER) < UNMOVED * M_SQRT2;
        }
        if (!same || !(power > FL_UNSOUND_SDS * FL_ROW_NOISE_POWER))
            continue;
        for (size_t i = b + 1; i < n; i++)
            take_out(s, list[i], FL_UNSOUND_STUCK, base->sm_mhz, &(distance){.time = -time, .power = -power});
        return;
    }
}

static fl_model_status find_all(fl_unsound_search *s) {
    double *sds = malloc((2 * s->count + 1) * sizeof *sds), *scale = sds ? sds + s->count : NULL;
    size_t *aside = malloc((s->count + s->loads + 1) * sizeof *aside), *out = aside ? aside + s->count : NULL;
    fl_model_status status = sds && aside ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    for (size_t k = 0; status == FL_MODEL_OK && k < s->loads; k++)
        status = fl_unsound_open(s, &s->load[k]);
    if (status == FL_MODEL_OK)
        status = fl_unsound_clocks(s);
    for (size_t k = 0; status == FL_MODEL_OK && k < s->loads; k++) {
        for (size_t at = 0, next = 0; s->load[k].power.n && at < s->load[k].count; at = next)
            find_stuck(s, aside, sound_group(s, &s->load[k], at, aside, &next));
        status = fl_unsound_open(s, &s->load[k]);
    }
    for (size_t k = 0; status == FL_MODEL_OK && k < s->loads; k++)
        out[k] = set_aside(s, &s->load[k], aside + s->load[k].first);
    if (status == FL_MODEL_OK)
        set_scales(s, sds, scale);
    for (size_t k = 0; status == FL_MODEL_OK && k < s->loads; k++)
        status = find_rows(s, &s->load[k], aside + s->load[k].first, out[k], scale);
    free(sds);
    free(aside);
    return status;
}

fl_model_status fl_unsound_find(const fl_chip_row *row, size_t count, fl_unsound *found) {
    fl_unsound_search s = {.row = row, .count = count, .found = found};
    *found = (fl_unsound){.row = malloc((count + 1) * sizeof *found->row)};
    s.load = calloc(count + 1, sizeof *s.load);
    s.room = malloc((2 * count + 1) * sizeof *s.room);
    s.second = s.room ? s.room + count : NULL;
    fl_model_status status = found->row && s.load && s.room ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    for (size_t i = 0; status == FL_MODEL_OK && i < count; i++) {
        found->row[i] = (fl_unsound_row){FL_SOUND, NAN, NAN, NAN};
        if (i == 0 || row[i].workload != row[i - 1].workload)
            s.load[s.loads++] = (fl_unsound_load){.first = i};
        s.load[s.loads - 1].count++;
    }
    if (status == FL_MODEL_OK)
        status = find_all(&s);
    for (size_t k = 0; k < s.loads; k++)
        fl_unsound_close(&s.load[k]);
    free(s.load);
    free(s.room);
    if (status != FL_MODEL_OK)
        fl_unsound_free(found);
    return status;
}
