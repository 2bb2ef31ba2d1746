/* The control law of a board's power limit, from steps of the limit. */
#include "models/fit/inside.h"

#include "models/fit/fit.h"
#include "models/math/math.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define STEP 0.05      /* smallest change of the limit that counts, as a share of it */
#define BEFORE_S 0.15  /* power before a step is the mean over this long */
#define AFTER_S 0.25   /* and after it over this long, before the next step */
#define LONGEST_S 3.0  /* later readings do not answer the step */
#define SHORTEST_S 0.5 /* a step that the next one follows sooner does not count */
#define FALL_S 0.15    /* moves down that answer a step come within this time */
#define DIP_S 0.5      /* power is lowest within this time after a step down */
#define REFRESH 0.35   /* looks and refreshes of the sensor coincide where their periods differ by less */
#define HELD 0.05      /* a limit holds the clock where power is this near to it */
#define NEAR 1.03      /* nearer to the limit the noise of power decides about a move */
#define FILTER_MAX_MS 60

typedef struct list { /* with room for a value of each reading */
    double *value;
    size_t count;
} list;

typedef struct step {
    size_t at, end;       /* the first reading under the new limit, and the first after the answer */
    double from_w, to_w;  /* the limits */
    double before, after; /* mean power, W */
    double before_mhz, after_mhz;
    double overshoot; /* W */
} step;

typedef struct gathered {
    list share;           /* power over the limit that holds the clock */
    list gap, rise_gap;   /* s between moves down, and between moves up */
    list ratio, move;     /* of moves down: ln (P/L), ln (f/f') */
    list rise, rise_room; /* of moves up: MHz, and ln (L/P) */
    list rise_from;       /* MHz */
    step *down;
    size_t downs, ups;
} gathered;

static void put(list *l, double value) { l->value[l->count++] = value; }

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(list *l) {
    if (!l->count)
        return (double)NAN;
    qsort(l->value, l->count, sizeof *l->value, by_size);
    return (l->value[(l->count - 1) / 2] + l->value[l->count / 2]) / 2;
}

/* Mean power of the readings in (from, until]. */
static double mean_power(const fl_limit_log *in, double from, double until) {
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < in->count && in->time_s[i] <= until; i++)
        if (in->time_s[i] > from && !isnan(in->watts[i])) {
            sum += in->watts[i];
            n++;
        }
    return n ? sum / (double)n : (double)NAN;
}

static bool known(const fl_limit_log *in, size_t i) {
    return !isnan(in->watts[i]) && !isnan(in->sm_mhz[i]) && !isnan(in->limit_w[i]);
}

/* ---- steps ---- */

/* Find the readings that answer a change of the limit at reading i. Returns false where power did not follow. */
static bool step_at(const fl_limit_log *in, size_t i, step *s) {
    if (!known(in, i - 1) || !known(in, i) || in->limit_w[i] == in->limit_w[i - 1])
        return false;
    *s = (step){.at = i, .end = i, .from_w = in->limit_w[i - 1], .to_w = in->limit_w[i]};
    while (s->end < in->count && in->limit_w[s->end] == s->to_w && in->time_s[s->end] <= in->time_s[i] + LONGEST_S)
        s->end++;
    const double t = in->time_s[i - 1], until = in->time_s[s->end - 1];
    if (fabs(s->to_w - s->from_w) < STEP * s->from_w || until - t < SHORTEST_S)
        return false;
    s->before = mean_power(in, t - BEFORE_S, t);
    s->after = mean_power(in, until - AFTER_S, until);
    s->before_mhz = in->sm_mhz[i - 1];
    s->after_mhz = in->sm_mhz[s->end - 1];
    const double change = s->to_w - s->from_w;
    return (s->after - s->before) * change > 0 && fabs(s->after - s->before) > STEP * s->before &&
           (s->after_mhz - s->before_mhz) * change > 0;
}

static void take_down(const fl_limit_log *in, step *s, gathered *g) {
    double last = NAN, least = s->before;
    for (size_t i = s->at; i < s->end; i++) {
        if (!known(in, i) || !known(in, i - 1))
            continue;
        if (in->time_s[i] <= in->time_s[s->at] + DIP_S)
            least = fmin(least, in->watts[i]);
        if (in->sm_mhz[i] >= in->sm_mhz[i - 1] || in->time_s[i] > in->time_s[s->at] + FALL_S)
            continue;
        if (!isnan(last))
            put(&g->gap, in->time_s[i] - last);
        last = in->time_s[i];
        if (in->watts[i] > NEAR * s->to_w) {
            put(&g->ratio, log(in->watts[i] / s->to_w));
            put(&g->move, log(in->sm_mhz[i - 1] / in->sm_mhz[i]));
        }
    }
    s->overshoot = s->after - least;
    g->down[g->downs++] = *s;
}

static void take_up(const fl_limit_log *in, const step *s, gathered *g) {
    double last = NAN;
    for (size_t i = s->at; i < s->end; i++) {
        if (!known(in, i) || !known(in, i - 1) || in->sm_mhz[i] <= in->sm_mhz[i - 1])
            continue;
        if (in->watts[i] >= (1 - HELD / 2) * s->to_w)
            return;
        if (!isnan(last))
            put(&g->rise_gap, in->time_s[i] - last);
        last = in->time_s[i];
        put(&g->rise, in->sm_mhz[i] - in->sm_mhz[i - 1]);
        put(&g->rise_room, log(s->to_w / in->watts[i]));
        put(&g->rise_from, in->sm_mhz[i - 1]);
    }
}

static void gather(const fl_limit_log *in, gathered *g) {
    double top = 0, since = -INFINITY;
    for (size_t i = 0; i < in->count; i++)
        top = fmax(top, isnan(in->sm_mhz[i]) ? 0 : in->sm_mhz[i]);
    for (size_t i = 1; i < in->count; i++) {
        step s;
        if (in->limit_w[i] != in->limit_w[i - 1])
            since = in->time_s[i];
        if (known(in, i) && in->sm_mhz[i] < top && in->time_s[i] > since + SHORTEST_S &&
            fabs(in->watts[i] / in->limit_w[i] - 1) < HELD)
            put(&g->share, in->watts[i] / in->limit_w[i]);
        if (!step_at(in, i, &s))
            continue;
        if (s.to_w < s.from_w) {
            take_down(in, &s, g);
        } else {
            take_up(in, &s, g);
            g->ups++;
        }
    }
}

/* ---- the law ---- */

/* Compute the overshoot of the law with this filter, W, where power follows the clock as a power law between the two
 * ends. */
static double overshoot_of(const step *s, const fl_limit_learnt *l, double filter_s) {
    const double keep = filter_s > 0 ? exp(-l->period_s / filter_s) : 0;
    const double slope = log(s->before / s->after) / log(s->before_mhz / s->after_mhz);
    double f = s->before_mhz, power = s->before, seen = power, least = power;
    for (int i = 0; i < 8; i++) {
        seen = keep * seen + (1 - keep) * power;
        if (seen > s->to_w)
            f *= pow(l->aim * s->to_w / seen, l->exponent);
        power = s->before * pow(f / s->before_mhz, slope);
        least = fmin(least, power);
    }
    return s->after - least;
}

/* A share of all steps together, so that small ones, which are noise, count little. */
static void find_filter(const gathered *g, fl_limit_learnt *l) {
    double best = INFINITY, size = 0, seen = 0;
    for (size_t i = 0; i < g->downs; i++) {
        size += g->down[i].before - g->down[i].after;
        seen += g->down[i].overshoot;
    }
    l->overshoot = seen / size;
    for (int ms = 0; ms <= FILTER_MAX_MS; ms++) {
        double sum = 0;
        for (size_t i = 0; i < g->downs; i++)
            sum += overshoot_of(&g->down[i], l, ms * 1e-3);
        if (fabs(sum - seen) < best) {
            best = fabs(sum - seen);
            l->filter_s = ms * 1e-3;
        }
    }
}

static void find_exponent(const gathered *g, fl_limit_learnt *l) {
    double xx = 0, xy = 0;
    l->low = INFINITY;
    l->high = -INFINITY;
    for (size_t i = 0; i < g->ratio.count; i++) {
        const double x = g->ratio.value[i] - log(l->aim), y = g->move.value[i];
        xx += x * x;
        xy += x * y;
        l->low = fmin(l->low, y / x);
        l->high = fmax(l->high, y / x);
    }
    l->exponent = xy / xx;
    l->moves = g->ratio.count;
}

static void find_rise(gathered *g, fl_limit_learnt *l) {
    l->rise_mhz = l->rise_s = (double)NAN;
    l->rises = g->rise.count;
    for (size_t i = 0; i < g->rise.count; i++) {
        if (g->rise.value[i] <= l->rise_mhz)
            continue;
        const double law = exp(l->exponent * (g->rise_room.value[i] + log(l->aim))) - 1;
        l->rise_mhz = g->rise.value[i];
        l->rise_bound = law * g->rise_from.value[i] > 1.1 * l->rise_mhz;
    }
    l->rise_s = median(&g->rise_gap);
}

/* A board that moves the clock at the refreshes of its sensor has their period, which is exact. */
static double period_of(const fl_limit_log *log, size_t count, list *gaps) {
    const double seen = median(gaps);
    for (size_t i = 0; i < count; i++) {
        const fl_sensor_log readings = {log[i].time_s, log[i].watts, log[i].count};
        double period = 0, phase = 0;
        if (fl_sensor_refreshes(&readings, &period, &phase) == FL_MODEL_OK && fabs(seen / period - 1) < REFRESH)
            return period;
    }
    return seen;
}

fl_model_status fl_limit_learn(const fl_limit_log *log, size_t count, fl_limit_learnt *out) {
    size_t rows = 1;
    for (size_t i = 0; i < count; i++)
        rows += log[i].count;
    gathered g = {0};
    list *const lists[] = {&g.share, &g.gap, &g.rise_gap, &g.ratio, &g.move, &g.rise, &g.rise_room, &g.rise_from};
    const size_t kinds = sizeof lists / sizeof *lists;
    double *room = malloc(kinds * rows * sizeof *room);
    g.down = malloc(rows * sizeof *g.down);
    fl_limit_learnt l = {0};
    fl_model_status status = room && g.down ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    for (size_t i = 0; !status && i < kinds; i++)
        lists[i]->value = room + i * rows;
    for (size_t i = 0; !status && i < count; i++)
        gather(&log[i], &g);
    if (!status) {
        l.downs = g.downs;
        l.ups = g.ups;
        l.period_s = period_of(log, count, &g.gap);
        l.aim = g.share.count ? fmin(median(&g.share), 1) : 0;
        status = g.ratio.count && l.period_s > 0 && l.aim > 0 ? FL_MODEL_OK : FL_MODEL_NO_FIT;
    }
    if (!status) {
        find_exponent(&g, &l);
        find_filter(&g, &l);
        find_rise(&g, &l);
        *out = l;
    }
    free(room);
    free(g.down);
    return status;
}
