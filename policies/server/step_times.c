#include "policies/server/step_times.h"

#include <math.h>
#include <string.h>

/* The terms are scaled to the order of one, so that one prior fits all. */
#define PROMPT_TOKENS 1024
#define SEQUENCES 64
#define KV_TOKENS 65536

#define PRIOR                                                                                                          \
    1e3           /* variance of the weights before anything was seen, in those of a step's noise: some ms to 0.3 ms   \
                   */
#define ENOUGH 24 /* steps, before a line is believed */
#define LEVERAGE 0.5 /* a load further from those seen than this says: not known */

static void terms(const fl_step_load *load, double *x) {
    x[0] = 1;
    x[1] = load->prompt_tokens / PROMPT_TOKENS;
    x[2] = load->sequences / SEQUENCES;
    x[3] = load->kv_tokens / KV_TOKENS;
}

void fl_step_times_begin(fl_step_times *t, const double *mhz, uint32_t clocks) {
    memset(t, 0, sizeof *t);
    t->clocks = clocks < FL_STEP_CLOCKS ? clocks : FL_STEP_CLOCKS;
    for (uint32_t i = 0; i < t->clocks; i++) {
        t->mhz[i] = mhz[i];
        t->line[i].shortest_s = INFINITY;
        for (int k = 0; k < FL_STEP_TERMS; k++)
            t->line[i].spread[k][k] = PRIOR;
    }
}

/* spread x; returns x' spread x. */
static double spread_of(const fl_step_line *l, const double *x, double *sx) {
    double h = 0;
    for (int i = 0; i < FL_STEP_TERMS; i++) {
        sx[i] = 0;
        for (int k = 0; k < FL_STEP_TERMS; k++)
            sx[i] += l->spread[i][k] * x[k];
        h += x[i] * sx[i];
    }
    return h;
}

static double line_at(const fl_step_line *l, const double *x) {
    double y = 0;
    for (int i = 0; i < FL_STEP_TERMS; i++)
        y += l->weight[i] * x[i];
    return y;
}

void fl_step_times_learn(fl_step_times *t, uint32_t clock, const fl_step_load *load, double time_s, double steps) {
    fl_step_line *l = &t->line[clock];
    double x[FL_STEP_TERMS], sx[FL_STEP_TERMS];
    terms(load, x);
    const double h = spread_of(l, x, sx), off = time_s - line_at(l, x);
    if (!(time_s > 0) || !isfinite(time_s) || !isfinite(h) || h < 0 || !(steps > 0))
        return;
    for (int i = 0; i < FL_STEP_TERMS; i++)
        l->weight[i] += sx[i] / (1 + h) * off;
    for (int i = 0; i < FL_STEP_TERMS; i++) /* of both triangles the same number, so that it stays symmetric */
        for (int k = 0; k <= i; k++)
            l->spread[i][k] = l->spread[k][i] = l->spread[i][k] - sx[i] * sx[k] / (1 + h);
    l->steps += steps;
    l->shortest_s = fmin(l->shortest_s, time_s);
}

/* NAN: what was seen at the clock does not say how long such a step takes. Away from the middle of what was seen a line
 * may fall below what any step takes: not under half of the shortest. */
static double known_time(const fl_step_line *l, const double *x) {
    double sx[FL_STEP_TERMS];
    if (l->steps < ENOUGH || !(spread_of(l, x, sx) <= LEVERAGE))
        return NAN;
    return fmax(line_at(l, x), l->shortest_s / 2);
}

void fl_step_times_all(const fl_step_times *t, const fl_step_load *load, double tolerance, double *time_s) {
    double x[FL_STEP_TERMS];
    terms(load, x);
    for (uint32_t i = 0; i < t->clocks; i++)
        time_s[i] = known_time(&t->line[i], x);
    uint32_t above = t->clocks, below = t->clocks; /* the nearest known ones; t->clocks: none */
    double bound[FL_STEP_CLOCKS];
    for (uint32_t i = t->clocks; i-- > 0;) {
        above = isnan(time_s[i]) ? above : i;
        bound[i] = above < t->clocks && above != i ? time_s[above] * (t->mhz[above] / t->mhz[i]) * (1 + tolerance)
                                                   : (double)NAN;
    }
    for (uint32_t i = 0; i < t->clocks; i++) {
        if (!isnan(time_s[i]))
            below = i;
        else
            bound[i] = isnan(bound[i]) && below < t->clocks ? time_s[below] : bound[i];
    }
    for (uint32_t i = 0; i < t->clocks; i++)
        time_s[i] = isnan(time_s[i]) ? bound[i] : time_s[i];
}
