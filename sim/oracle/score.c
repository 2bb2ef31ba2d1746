/* What a run is worth against the driver's default and the oracles. */
#include "sim/oracle/inside.h"

#include "sim/base/base.h"
#include "sim/node/node.h"
#include "sim/oracle/oracle.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

fl_status fl_reference_solve(fl_reference *ref, fl_diag *d) {
    int64_t limit = fl_limit_ps(ref->standard->makespan_ps, ref->bound);
    ref->best_static = fl_static_best(ref->point, ref->point_count, ref->objective, limit);
    ref->clairvoyant = (fl_oracle_result){0};
    ref->known = NAN;
    fl_status s =
        ref->table ? fl_oracle_clairvoyant(ref->table, ref->objective, limit, false, &ref->clairvoyant, d) : FL_OK;
    if (!s && ref->clairvoyant.feasible && ref->clairvoyant.bounded)
        ref->known = ref->clairvoyant.objective;
    if (!s && ref->best_static < ref->point_count) {
        const fl_static_point *p = &ref->point[ref->best_static];
        fl_reference_offer(ref, fl_joules(p->energy_fj), fl_seconds(p->makespan_ps), p->makespan_ps);
    }
    return s;
}

void fl_reference_offer(fl_reference *ref, double energy_j, double time_s, int64_t time_ps) {
    if (time_ps <= fl_limit_ps(ref->standard->makespan_ps, ref->bound))
        ref->known =
            isnan(ref->known) ? ref->known : fmin(ref->known, fl_objective_value(ref->objective, energy_j, time_s));
}

/* Windows end at the marks of each stream; the first begins at time 0. */
static double worst_window(const fl_workload *w, const fl_run_result *run, const fl_run_result *standard) {
    double worst = NAN;
    size_t at = 0;
    for (uint32_t i = 0; i < w->stream_count; i++)
        for (uint32_t k = 0; k < w->stream[i].mark_count; k++, at++) {
            if (at >= run->mark_count || at >= standard->mark_count)
                return NAN;
            int64_t here = run->mark_ps[at] - (k ? run->mark_ps[at - 1] : 0);
            int64_t there = standard->mark_ps[at] - (k ? standard->mark_ps[at - 1] : 0);
            if (there > 0)
                worst = fmax(worst, (double)here / (double)there - 1);
        }
    return worst;
}

static double percent(double regret, double of) { return of > 0 ? 100 * regret / of : NAN; }

static fl_status own_slowdown(const fl_run_result *run, const fl_reference *ref, double value, double *regret,
                              fl_diag *d) {
    fl_oracle_result oracle;
    fl_status s = fl_oracle_clairvoyant(ref->table, ref->objective, run->makespan_ps, false, &oracle, d);
    if (!s && !oracle.feasible) {
        int64_t fastest = 0;
        s = fl_oracle_fastest(ref->table, &fastest, d);
        if (!s)
            s = fl_oracle_clairvoyant(ref->table, ref->objective, fastest, false, &oracle, d);
    }
    if (!s)
        *regret = value - oracle.objective;
    return s;
}

fl_status fl_score_run(const fl_run_result *run, const fl_reference *ref, fl_score *out, fl_diag *d) {
    const fl_run_result *standard = ref->standard;
    *out = (fl_score){.energy_j = run->energy_j,
                      .makespan_s = run->makespan_s,
                      .mean_power_w = run->mean_power_w,
                      .peak_power_w = run->peak_power_w,
                      .edp = fl_objective_value(FL_MIN_EDP, run->energy_j, run->makespan_s),
                      .ed2p = fl_objective_value(FL_MIN_ED2P, run->energy_j, run->makespan_s),
                      .worst_window_slowdown = ref->w ? worst_window(ref->w, run, standard) : NAN,
                      .regret_static_j = NAN,
                      .regret_static_pct = NAN,
                      .regret_clairvoyant_j = NAN,
                      .regret_clairvoyant_pct = NAN,
                      .regret_at_own_slowdown_j = NAN,
                      .switches = run->switches};
    out->slowdown = standard->makespan_ps > 0 ? (double)run->makespan_ps / (double)standard->makespan_ps - 1 : 0;
    out->violated = run->makespan_ps > fl_limit_ps(standard->makespan_ps, ref->bound);
    double value = fl_objective_value(ref->objective, run->energy_j, run->makespan_s);
    if (!out->violated && ref->best_static < ref->point_count) {
        const fl_static_point *p = &ref->point[ref->best_static];
        double best = fl_objective_value(ref->objective, fl_joules(p->energy_fj), fl_seconds(p->makespan_ps));
        out->regret_static_j = value - best;
        out->regret_static_pct = percent(out->regret_static_j, best);
    }
    if (!out->violated && !isnan(ref->known)) {
        out->regret_clairvoyant_j = value - ref->known;
        out->regret_clairvoyant_pct = percent(out->regret_clairvoyant_j, ref->known);
    }
    return ref->table ? own_slowdown(run, ref, value, &out->regret_at_own_slowdown_j, d) : FL_OK;
}

void fl_mean_interval(const double *value, size_t count, double *mean, double *half) {
    double sum = 0, squares = 0;
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(value[i])) {
            sum += value[i];
            n++;
        }
    *half = NAN;
    *mean = n ? sum / (double)n : NAN;
    if (n < 2)
        return;
    for (size_t i = 0; i < count; i++)
        if (!isnan(value[i]))
            squares += (value[i] - *mean) * (value[i] - *mean);
    double freedom = (double)(n - 1);
    *half = gsl_cdf_tdist_Pinv(0.975, freedom) * sqrt(squares / freedom / (double)n);
}
