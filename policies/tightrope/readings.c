/* tightrope: when readings of a GPU count, and when the next one comes. */
#include "policies/tightrope/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stdint.h>

#define ARRIVAL_NS 1500000000 /* no clock is waited for longer: some never show what was asked for */
#define ENERGY_S 0.3          /* holds three updates of an energy counter on boards since Volta */
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
    g->power_ns = w->settled_ns + (int64_t)(g->lag_s * 1e9);
    return 1;
}

void fl_tightrope_take(fl_tightrope_gpu *g, const fl_sample *s, uint32_t gpu) {
    const fl_gpu_sample *u = &s->gpu[gpu];
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

double fl_tightrope_power_wait(const fl_tightrope_gpu *g) {
    return FL_TIGHTROPE_SETTLE_S + fmin(g->lag_s + FL_TIGHTROPE_POWER_S, g->work.energy_age_s + ENERGY_S);
}

double fl_tightrope_late_s(const fl_tightrope_gpu *g) {
    return fmax(0, since(g->work.settled_ns, g->work.window_ns) - FL_TIGHTROPE_SETTLE_S);
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
