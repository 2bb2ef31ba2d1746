/* The best clock per kind of kernel: a table whose positions are the kinds, solved as any other. */
#include "sim/oracle/inside.h"

#include "models/laws/device.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/oracle/oracle.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct fl_kinds_at { /* time and energy of the kinds at the choices, and at the default clocks */
    const fl_clock_rates **at;
    const fl_class_sums *sum; /* `own`, or those of a table */
    fl_class_sums own;
    size_t standard; /* column of the default clocks: one of the choices, or the column after them */
    int64_t closed_mw;
} fl_kinds_at;

static fl_wide energy_fj(const fl_kinds_at *k, uint32_t class_id, size_t column) {
    return k->sum->ps[class_id * k->sum->columns + column] *
           ((int64_t)k->at[column]->base.total_mw + k->closed_mw + k->at[column]->row[class_id].dyn_mw);
}

static fl_wide gap_energy_fj(const fl_kinds_at *k, uint32_t class_id, size_t column) {
    return k->sum->gap_ps[class_id] * ((int64_t)k->at[column]->base.total_mw + k->closed_mw);
}

static fl_status fill(const fl_workload *w, const fl_kinds_at *k, fl_oracle_table *t, fl_diag *d) {
    fl_wide longest = 0;
    t->positions = w->class_count;
    t->exact = true;
    t->time_ps = calloc(t->positions * t->choices + 1, sizeof *t->time_ps);
    t->energy_fj = calloc(t->positions * t->choices + 1, sizeof *t->energy_fj);
    if (!t->time_ps || !t->energy_fj)
        return fl_no_memory(d, "the oracle");
    for (uint32_t i = 0; i < w->class_count; i++) {
        fl_wide slowest = 0;
        for (size_t c = 0; c < t->choices; c++) {
            const fl_wide ps = k->sum->ps[i * k->sum->columns + c] + k->sum->gap_ps[i];
            slowest = ps > slowest ? ps : slowest;
            t->time_ps[i * t->choices + c] = ps < INT64_MAX / 2 ? (int64_t)ps : INT64_MAX / 2;
            t->energy_fj[i * t->choices + c] = energy_fj(k, i, c) + gap_energy_fj(k, i, c);
        }
        longest += slowest;
    }
    return longest <= INT64_MAX / 2
               ? FL_OK
               : fl_refuse(d, "%s: longer than 53 days at its slowest clock, expected less", w->name);
}

static fl_status open_kinds(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec, const fl_oracle_table *t,
                            const fl_oracle_table *made, uint32_t gpu, fl_kinds_at *k, fl_diag *d) {
    const fl_device *dev = &spec->device[spec->gpu[gpu]];
    const int sm = fl_ladder_index(dev->sm_mhz, dev->sm_count, dev->default_sm_mhz),
              mem = fl_ladder_index(dev->mem_mhz, dev->mem_count, dev->default_mem_mhz);
    if (sm < 0 || mem < 0)
        return fl_refuse(d, "the default clocks of %s are not on its ladders, expected there", dev->name);
    k->at = calloc(t->choices + 1, sizeof(fl_clock_rates *));
    fl_status s = k->at ? FL_OK : fl_no_memory(d, "the oracle");
    for (size_t c = 0; !s && c <= t->choices; c++) {
        const bool standard = c == t->choices;
        const int sm_at = standard ? sm : fl_ladder_index(dev->sm_mhz, dev->sm_count, t->choice[c].sm_mhz),
                  mem_at = standard ? mem : fl_ladder_index(dev->mem_mhz, dev->mem_count, t->choice[c].mem_mhz);
        s = fl_rates_at(rates, spec->gpu[gpu], (uint32_t)sm_at, (uint32_t)mem_at, &k->at[c], d);
    }
    k->standard = 0;
    while (!s && k->at[k->standard] != k->at[t->choices]) /* there is one set of rates for each pair of clocks */
        k->standard++;
    if (s || (made && made->work && made->choices == t->choices && k->standard < t->choices)) {
        k->sum = s ? &k->own : &made->work->sum;
        return s;
    }
    k->standard = t->choices;
    k->sum = &k->own;
    return fl_class_sums_make(w, k->at, t->choices + 1, &k->own, d);
}

/* Where nothing holds the limit, the fastest choice: its time is the smallest limit that can be held. */
static fl_status solve(const fl_workload *w, const fl_kinds_at *k, const fl_oracle_table *t, fl_objective objective,
                       double bound, fl_oracle_result *r, bool *held, fl_diag *d) {
    fl_wide standard_ps = 0;
    for (uint32_t i = 0; i < w->class_count; i++)
        standard_ps += k->sum->ps[i * k->sum->columns + k->standard] + k->sum->gap_ps[i];
    int64_t limit_ps = standard_ps < INT64_MAX ? fl_limit_ps((int64_t)standard_ps, bound) : INT64_MAX;
    fl_status s = fl_oracle_clairvoyant(t, objective, limit_ps, true, r, d);
    *held = r->feasible;
    if (!s && !*held)
        s = fl_oracle_fastest(t, &limit_ps, d);
    return !s && !*held ? fl_oracle_clairvoyant(t, objective, limit_ps, true, r, d) : s;
}

static void tell(const fl_workload *w, const fl_kinds_at *k, const fl_oracle_table *t, const fl_oracle_result *r,
                 fl_kernel_choice *choice, fl_kernel_total *total) {
    const size_t standard = k->standard;
    total->energy_j = r->energy_j;
    total->time_s = r->time_s;
    total->energy_fj = r->energy_fj;
    total->time_ps = r->time_ps;
    for (uint32_t i = 0; i < w->class_count; i++) {
        const size_t c = r->schedule[i];
        choice[i] = (fl_kernel_choice){.class_id = i,
                                       .at = t->choice[c],
                                       .energy_j = fl_joules(energy_fj(k, i, c)),
                                       .time_s = (double)k->sum->ps[i * k->sum->columns + c] * 1e-12,
                                       .standard_energy_j = fl_joules(energy_fj(k, i, standard)),
                                       .standard_time_s = (double)k->sum->ps[i * k->sum->columns + standard] * 1e-12};
        total->gap_energy_j += fl_joules(gap_energy_fj(k, i, c));
        total->gap_time_s += (double)k->sum->gap_ps[i] * 1e-12;
        total->standard_gap_energy_j += fl_joules(gap_energy_fj(k, i, standard));
    }
}

fl_status fl_oracle_per_kernel(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec, fl_objective objective,
                               double bound, const fl_oracle_table *table, fl_kernel_choice *choice,
                               fl_kernel_total *total, fl_diag *d) {
    fl_oracle_table t = {0};
    fl_kinds_at k = {0};
    fl_oracle_result r = {0};
    uint32_t gpu = 0;
    const bool whole = !fl_oracle_inexact(w, rates, spec);
    for (uint32_t i = 0; whole && i < w->stream_count; i++)
        gpu = w->stream[i].count ? w->stream[i].gpu : gpu;
    k.closed_mw = whole ? fl_closed_mw(spec, gpu) : 0; /* sums over streams make no statement about idle boards */
    *total = (fl_kernel_total){0};
    fl_status s = fl_oracle_choices(w, spec, &t.choice, &t.choices, d);
    if (!s)
        s = open_kinds(w, rates, spec, &t, table, gpu, &k, d);
    if (!s)
        s = fill(w, &k, &t, d);
    if (!s)
        s = solve(w, &k, &t, objective, bound, &r, &total->held, d);
    if (!s)
        tell(w, &k, &t, &r, choice, total);
    free(r.schedule);
    fl_class_sums_free(&k.own);
    free(k.at);
    fl_oracle_table_free(&t);
    return s;
}
