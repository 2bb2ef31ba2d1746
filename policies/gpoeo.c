/* GPOEO (Wang et al., TPDS 2022) as its authors ran it beside MF-GPOEO, with what can be had of it: its models were
 * never published, and most of the performance counters that they take are in no kernel record (gpoeo_model.h says what
 * stands for which). It finds the period of the program (gpoeo_period.c), reads counters at one clock, takes energy and
 * time of a period at the default clocks, lets its models propose clocks, and searches around them by measuring
 * (gpoeo_search.c). Then it watches the power. Each GPU of a node by itself.
 *
 * A program without a stable period is measured by instructions per second; here recorded kernels per second stand for
 * these, as no signal counts instructions. Without the table of trees the search begins at start_mhz and the default
 * memory clock, for it needs no model. */
#include "policies/gpoeo_course.h"

#include <math.h>

static fl_gpoeo_gpu *gpus(void *state) { return fl_gpu_states(state, 0); }

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const fl_gpoeo_params *p = param_bytes;
    if (p->trees.row_count && !fl_trees_count(&p->trees, FL_GPOEO_MODELS, FL_GPOEO_FEATURES))
        return "trees must hold GPOEO's six models; foldline fit gpoeo makes them";
    if (p->lowest_mhz > p->top_mhz)
        return "lowest_mhz must not exceed top_mhz";
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        if (!facts->gpu[i].sm.count)
            return "needs the SM ladder of every GPU";
        fl_gpoeo_open(&gpus(state)[i], &facts->gpu[i]);
    }
    return NULL;
}

#define PROBES(X)                                                                                                      \
    X("state", "", "0 waits, 1 looks for a period, 2 reads counters, 3 default clocks, 4 searches, 5 watches",         \
      g->state)                                                                                                        \
    X("set_sm_mhz", "MHz", "SM clock that holds; -1 the default", g->set_sm)                                           \
    X("set_mem_mhz", "MHz", "memory clock that holds; -1 the default", g->set_mem)                                     \
    X("period_s", "s", "period that was found last", g->period_s)                                                      \
    X("aperiodic", "", "1: no stable period, measured by kernels per second", g->aperiodic)                            \
    X("points", "", "clocks measured in this search", s->count)                                                        \
    X("loss_pct", "%", "loss of performance, of the clocks measured last",                                             \
      s->count ? 100 * (s->point[s->count - 1].time - 1) : (double)NAN)                                                \
    X("tensor_pct", "%", "share of kernel time of kernels called after tensor work",                                   \
      g->counters.busy_s > 0 ? 100 * g->counters.tensor_s / g->counters.busy_s : (double)NAN)                          \
    X("optimisation_s", "s", "from the first clock set to the choice", g->optimised_s)                                 \
    X("held", "", "1: decided without readings", g->blind)
static const fl_probe probe_rows[] = {PROBES(FL_PROBE_ROW)};

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample,
                 fl_command *command) {
    const fl_gpoeo_params *p = param_bytes;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        fl_gpoeo_gpu *g = &gpus(state)[i];
        const fl_gpoeo_place at = {p, g, &facts->gpu[i], &sample->gpu[i], sample, command, i};
        fl_gpoeo_step(&at);
        const fl_gpoeo_search *s = &g->search;
        fl_show_all(command, i, 0, (double[]){PROBES(FL_PROBE_VALUE)}, FL_COUNT(probe_rows));
    }
    command->delay_ns = (int64_t)(p->period_ms * 1e6 + 0.5);
}

static const fl_param param_rows[] = {
    FL_PARAM(
        fl_gpoeo_params, trees, TABLE(FL_TREES_COLUMNS), "", "",
        "the six models, by foldline fit gpoeo; harness/experiments/gpoeo.trees.csv are some for an RTX 3080 Ti. They "
        "take the clock, the sum of kernel times over the time (at most 1), and the shares of kernels called after "
        "tensor (gemm, conv, attention, mma) and FP64 work (dgemm, double, fp64, f64); the other thirteen counters are "
        "in no kernel record. Without: the search begins at start_mhz (the authors' models were never published)"),
    FL_PARAM(fl_gpoeo_params, con_perf, REAL(0, 10), "", "0.045", "loss of performance that is allowed"),
    FL_PARAM(fl_gpoeo_params, lowest_mhz, REAL(1, 1e5), "MHz", "450",
             "lowest SM clock that is predicted; the search may go below"),
    FL_PARAM(fl_gpoeo_params, top_mhz, REAL(1, 1e5), "MHz", "1995", "highest: gear 119"),
    FL_PARAM(fl_gpoeo_params, start_mhz, REAL(1, 1e5), "MHz", "1800",
             "where the search begins without trees (assumed)"),
    FL_PARAM(
        fl_gpoeo_params, spread, REAL(0, 10), "", "0.15",
        "spread of the periods of parts of a trace, over their mean, below which it is stable (strict 0.10, relaxed "
        "0.30)"),
    FL_PARAM(fl_gpoeo_params, phase, REAL(0, 100), "", "0.18",
             "range of the watched power over its mean that starts a new search"),
    FL_PARAM(fl_gpoeo_params, phase_model, REAL(0, 100), "", "0.5", "range that starts a new prediction"),
    FL_PARAM(fl_gpoeo_params, window_s, REAL(0.001, 1e6), "s", "10",
             "shortest window of the watch, and of the counters of a program without a period (assumed)"),
    FL_PARAM(fl_gpoeo_params, start_s, REAL(0, 1e6), "s", "16",
             "from the first busy sample to the first clock: the unstable start (assumed, as the authors' DEPO)"),
    FL_PARAM(fl_gpoeo_params, missing_s, REAL(0, 1e6), "s", "1",
             "time without readings after which a search ends and the default clocks hold (assumed)"),
    FL_PARAM(fl_gpoeo_params, period_ms, REAL(10, 1e5), "ms", "100", "time from one sample to the next"),
};

FL_POLICY(gpoeo) = {FL_POLICY_ABI,
                    .name = "gpoeo",
                    .summary = "finds the program's period, proposes clocks by boosted trees, searches around them",
                    .source = "GPOEO (IEEE TPDS 2022) as run beside MF-GPOEO (IEEE TSUSC 2024, Sec. V-C, Table V)",
                    .gpu_needs = FL_READINGS_NEEDS,
                    .gpu_drives = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_MEM_MHZ) | FL_BIT(FL_SET_RECORDS),
                    .needs_records = 1,
                    .gpu_size = sizeof(fl_gpoeo_gpu),
                    FL_POLICY_PARTS(fl_gpoeo_params)};
