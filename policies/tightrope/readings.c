/* tightrope: what the readings of a GPU show, and the lag of its power sensor. */
#include "policies/tightrope/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stdint.h>

/* ---- the lag of power ---- */

void fl_tightrope_lag_begin(fl_tightrope_lag *l, double before_w) {
    l->before_w = before_w;
    l->count = 0;
}

void fl_tightrope_lag_add(fl_tightrope_lag *l, double after_s, double w) {
    if (l->count == FL_TIGHTROPE_READINGS) {
        for (uint32_t i = 0; i < FL_TIGHTROPE_READINGS / 2; i++)
            l->after_s[i] = l->after_s[2 * i], l->w[i] = l->w[2 * i];
        l->count = FL_TIGHTROPE_READINGS / 2;
    }
    l->after_s[l->count] = after_s;
    l->w[l->count++] = w;
}

/* Means of the end and of a time a third before it. */
static int levels(const fl_tightrope_lag *l, double *last, double *third) {
    double number = 0, third_number = 0;
    *last = *third = 0;
    if (l->count < 4)
        return 0;
    const double end_s = l->after_s[l->count - 1];
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->after_s[i] > 0.9 * end_s)
            *last += l->w[i], number++;
        else if (l->after_s[i] >= 0.55 * end_s && l->after_s[i] <= 0.75 * end_s)
            *third += l->w[i], third_number++;
    }
    if (!(number > 0) || !(third_number > 0))
        return 0;
    *last /= number, *third /= third_number;
    return 1;
}

/* A first-order lag has 3 % left when its last third brought less than a twentieth of the change so far; a window of
 * the sensor's own has passed long before. */
double fl_tightrope_lag_seconds(const fl_tightrope_lag *l) {
    double last, third;
    if (!levels(l, &last, &third))
        return NAN;
    const double change = fabs(last - l->before_w);
    if (change < 0.01 * l->before_w || fabs(last - third) > 0.05 * change)
        return NAN;
    for (uint32_t i = l->count; i-- > 0;)
        if (fabs(l->w[i] - last) > 0.06 * change)
            return l->after_s[i + 1 < l->count ? i + 1 : i];
    return l->after_s[0];
}

int fl_tightrope_lag_still(const fl_tightrope_lag *l) {
    double last, third;
    return levels(l, &last, &third) && fabs(last - third) < 0.002 * last;
}

/* tightrope: when readings count, and when the next one comes. */

#define ARRIVAL_NS 1500000000 /* no clock is waited for longer: some never show what was asked for */
#define LAG_MAX_S 4           /* no sensor is waited for longer */
#define EDGE_S 0.1            /* at both ends of a window, where a counter's line is drawn, readings are fine */

static double since(int64_t now, int64_t then) { return (double)(now - then) * 1e-9; }

/* Nothing of a window counts before the clock that was asked for is there, for as long as one may wait for it. */
int fl_tightrope_arrive(fl_tightrope_gpu *g, const fl_gpu_sample *u, int64_t now, double mhz) {
    fl_tightrope_work *w = &g->work;
    if (g->arrived_ns >= 0)
        return 1;
    w->settled_ns = now + (int64_t)(FL_TIGHTROPE_SETTLE_S * 1e9);
    const int late = fl_gpu_known(u, FL_GPU_SM_MHZ) ? fabs(u->value[FL_GPU_SM_MHZ] - mhz) > 1
                                                    : since(now, w->window_ns) < g->settle_s;
    if (late && now - w->window_ns < ARRIVAL_NS)
        return 0;
    g->arrived_ns = now;
    g->react_s = late ? g->react_s : fmax(g->react_s, since(now, w->window_ns));
    g->power_ns = w->settled_ns + (int64_t)((isnan(g->lag_s) ? 0 : g->lag_s) * 1e9);
    return 1;
}

/* Until the sensor's lag is known, what it shows at the start and after the first change of the clock tells it. */
static void watch_lag(fl_tightrope_gpu *g, const fl_gpu_sample *u, int64_t now) {
    if (!isnan(g->lag_s) || g->arrived_ns < 0 || !fl_gpu_fresh(u, FL_GPU_POWER_W))
        return;
    fl_tightrope_lag_add(&g->lag, since(now, g->arrived_ns), u->value[FL_GPU_POWER_W]);
    g->lag_s = fl_tightrope_lag_seconds(&g->lag);
    if (isnan(g->lag_s))
        return;
    g->power_ns = now; /* it has come to rest */
    fl_tightrope_forget_power(&g->work);
    g->until_ns = now + (int64_t)(FL_TIGHTROPE_POWER_S * 1e9);
}

void fl_tightrope_take(fl_tightrope_gpu *g, const fl_sample *s, uint32_t gpu) {
    const fl_gpu_sample *u = &s->gpu[gpu];
    watch_lag(g, u, s->time_ns);
    if (fl_gpu_fresh(u, FL_GPU_UTIL_GPU_PCT) && s->time_ns >= g->work.settled_ns)
        g->util_sum += u->value[FL_GPU_UTIL_GPU_PCT], g->util_count++;
    fl_tightrope_read(&g->work, s, gpu, g->power_ns);
}

double fl_tightrope_busy(const fl_tightrope_gpu *g) {
    return g->util_count > 0 ? g->util_sum / g->util_count / 100 : NAN;
}

double fl_tightrope_reaction(const fl_tightrope_params *p, const fl_tightrope_gpu *g) {
    return g->react_s + FL_TIGHTROPE_SETTLE_S + 2e-3 * p->poll_ms;
}

double fl_tightrope_late_s(const fl_tightrope_gpu *g) {
    return fmax(0, since(g->work.settled_ns, g->work.window_ns) - FL_TIGHTROPE_SETTLE_S);
}

int fl_tightrope_over(const fl_tightrope_gpu *g, int64_t now, double length_s, double end_s) {
    const int waits = isnan(g->lag_s) && length_s < LAG_MAX_S && g->lag.count > 0 && !fl_tightrope_lag_still(&g->lag);
    return length_s >= end_s && now >= g->until_ns && !waits;
}

/* Between half of a time and one and a half, by the golden ratio: even readings of even units would see each of them
 * late by the same time, or by a time that drifts unseen. */
static int64_t uneven(fl_tightrope_gpu *g, int64_t mean) {
    const double turn = (double)g->readings++ * 0.6180339887498949;
    return (int64_t)((double)mean * (0.5 + turn - floor(turn)));
}

/* Finely while a counter's line is drawn, coarsely else. A window that goes on past its end waits for something: a
 * program that has not begun, or a sensor. Nobody knows when that comes, so the time between readings grows with the
 * wait: a quarter of it is lost at most. */
int64_t fl_tightrope_wait_ns(const fl_tightrope_params *p, fl_tightrope_gpu *g, int64_t now, double end_s) {
    const fl_tightrope_work *w = &g->work;
    const double left = end_s - since(now, w->window_ns), zone = fmax(EDGE_S, 2.5 * w->unit_s);
    const int64_t fine = (int64_t)(p->poll_ms * 1e6);
    const int exact = w->signal <= FL_TIGHTROPE_RECORDS || w->signal >= FL_TIGHTROPE_NONE; /* or nothing to read */
    if (!exact && (w->at_top || since(now, w->settled_ns) < zone || left <= zone || w->signal >= FL_TIGHTROPE_BYTES))
        return uneven(g, w->at_top ? fine / 4 : fine); /* every credit stands on the little time at the top */
    const double wait = (!exact ? left - zone : left > 0 ? left : -left / 4) * 1e9;
    return wait > FL_TIGHTROPE_COARSE_NS ? FL_TIGHTROPE_COARSE_NS : wait > (double)fine ? (int64_t)wait : fine;
}
