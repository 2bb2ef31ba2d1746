#include "harness/study/trial/result_row.h"

#include "harness/study/trial/objective.h"

#include <math.h>
#include <stdlib.h>

void fl_kept_free(fl_kept *k) {
    if (!k)
        return;
    fl_run_result_free(&k->run);
    fl_watch_free(&k->watch);
    free(k);
}

void fl_row_free(fl_row_result *row) {
    fl_kept_free(row->kept);
    row->kept = NULL;
}

fl_status fl_kept_watch(fl_kept **kept, int64_t watch_ns, fl_run_options *run, fl_diag *d) {
    if (!watch_ns)
        return FL_OK;
    if (!(*kept = calloc(1, sizeof **kept)))
        return fl_no_memory(d, "the comparison");
    run->on_step = fl_watch_step;
    run->on_truth = fl_watch_truth;
    run->truth_ns = watch_ns;
    run->user = &(*kept)->watch;
    return fl_watch_open(&(*kept)->watch, run->policy, run->spec->gpu_count, d);
}

fl_status fl_kept_take(fl_kept *kept, fl_run_result *r, fl_diag *d) {
    kept->run = *r;
    free(r->mark_ps);
    fl_service_free(&r->service);
    fl_served_free(&r->served);
    kept->run.mark_ps = NULL;
    kept->run.service = (fl_service){0};
    kept->run.served = (fl_served_result){0};
    kept->run.mark_count = 0;
    return fl_watch_end(&kept->watch, d);
}

void fl_row_fill_latency(fl_row_result *row, fl_times latency, double load) {
    const bool any = latency.count > 0;
    row->latency = any ? latency : fl_times_of(NULL, 0);
    row->offered_load = any ? load : (double)NAN;
    row->overloaded = any && fl_service_overloaded(latency.count, load);
    row->energy_per_request_j = any ? row->score.energy_j / (double)latency.count : (double)NAN;
}

void fl_row_fill_served(fl_row_result *row, const fl_run_result *run) {
    const fl_served_summary *s = &run->served.sum;
    const bool any = run->served.request_count > 0;
    const fl_times none = fl_times_of(NULL, 0);
    row->ttft = any ? s->ttft : none;
    row->tbt = any ? s->tbt : none;
    row->tpot = any ? s->tpot : none;
    row->ttft_missed_pct = any ? 100 * s->ttft_missed : (double)NAN;
    row->tbt_missed_pct = any ? 100 * s->tbt_missed : (double)NAN;
    row->offered_rps = any ? s->offered_per_s : (double)NAN;
    row->served_rps = any ? s->requests_per_s : (double)NAN;
    row->goodput_rps = any ? s->goodput : (double)NAN;
    row->energy_per_token_j = any ? s->j_per_token : (double)NAN;
    row->preemptions = any ? (double)s->preemptions : (double)NAN;
    row->worst_minute_missed_pct = any ? 100 * s->worst_minute_missed : (double)NAN;
    row->worst_minute_ttft_s = any ? s->worst_minute_ttft_s : (double)NAN;
    row->worst_minute_at_s = any ? s->worst_minute_s : (double)NAN;
    if (!any)
        return;
    row->latency = s->e2e;
    row->energy_per_request_j = s->j_per_request;
}

void fl_row_take_served(fl_row_result *row, const fl_row_result *from) {
    row->ttft = from->ttft;
    row->tbt = from->tbt;
    row->tpot = from->tpot;
    row->latency = from->latency;
    row->ttft_missed_pct = from->ttft_missed_pct;
    row->tbt_missed_pct = from->tbt_missed_pct;
    row->offered_rps = from->offered_rps;
    row->served_rps = from->served_rps;
    row->goodput_rps = from->goodput_rps;
    row->energy_per_token_j = from->energy_per_token_j;
    row->energy_per_request_j = from->energy_per_request_j;
    row->preemptions = from->preemptions;
    row->worst_minute_missed_pct = from->worst_minute_missed_pct;
    row->worst_minute_ttft_s = from->worst_minute_ttft_s;
    row->worst_minute_at_s = from->worst_minute_at_s;
}

void fl_row_fill(fl_row_result *row, const fl_scene *s, const fl_run_result *run, const char *policy,
                 double standard_j) {
    row->workload = s->w->name;
    row->policy = policy;
    row->variant = s->variant;
    row->platform = s->platform.name;
    row->draw = s->applications;
    row->energy_saving_pct = 100 * (1 - row->score.energy_j / standard_j);
    row->node_energy_j = run->node_energy_j;
    row->policy_cost_s = fl_seconds(run->policy_cost_ps);
    row->oracle_j = row->oracle_bound_j = row->oracle_gap_pct = NAN;
    row->reward_regret = row->bound_break_chance = row->expected_regret = NAN;
    row->violated = row->score.violated;
    fl_row_fill_latency(row, run->service.latency, run->service.load);
    fl_row_fill_served(row, run);
    row->saving_static_pct = row->saving_most_pct = NAN;
    row->sets = (double)run->counts.sets;
}

void fl_row_finish(fl_row_result *row, fl_objective objective, double standard) {
    const double own = fl_objective_value(objective, row->score.energy_j, row->score.makespan_s);
    row->objective_unit = fl_objective_unit[objective];
    row->objective_saving_pct = 100 * (1 - own / standard);
    row->rows = 1;
    fl_row_count_regrets(row);
}

void fl_row_count_regrets(fl_row_result *row) {
    row->regret_static_rows = isfinite(row->score.regret_static_pct);
    row->regret_clairvoyant_rows = isfinite(row->score.regret_clairvoyant_pct);
}

void fl_row_clock(fl_row_result *row, double sm_mhz, double mem_mhz) {
    row->clock_sm_mhz = sm_mhz;
    row->clock_mem_mhz = mem_mhz;
    const int used = snprintf(row->clock, sizeof row->clock, "sm_mhz=%g", sm_mhz);
    if (mem_mhz > 0)
        snprintf(row->clock + used, sizeof row->clock - (size_t)used, ",mem_mhz=%g", mem_mhz);
}
