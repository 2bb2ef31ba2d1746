/* MF-GPOEO as its authors released it: kernel times and gaps at the default clocks are the database; the same kinds
 * under other clocks give the loss of performance; a controller lowers the SM clock until the bound on it is reached,
 * after memory clocks were tried. Where the program differs from the paper, the program holds. Each GPU of a node is
 * optimised by itself. Parts:
 *
 *     kinds, totals     what one window measures, and how it joins the database
 *     gate, window      the idle gate, and one window after it
 *     index             the loss of a window on the database
 *     base, start, pid, stop, watch    the rules of each part of the course, as functions of numbers
 *     stage, build, course             the course itself
 *
 * A GPU whose utilisation is not known for missing_s begins anew at its default clocks; once a gear is found, it is
 * held. */
#include "policies/mfgpoeo/course.h"

#include <math.h>

static fl_mfg_gpu *gpus(void *state) { return fl_gpu_states(state, 0); }

static int on_ladder(fl_ladder l, double mhz) {
    for (uint32_t i = 0; i < l.count; i++)
        if (l.mhz[i] == mhz)
            return 1;
    return 0;
}

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const fl_mfg_params *p = param_bytes;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        if (p->hold_sm_mhz > 0 && !on_ladder(facts->gpu[i].sm, p->hold_sm_mhz))
            return "hold_sm_mhz must be on the SM ladder of every GPU";
        if (p->hold_mem_mhz > 0 && !on_ladder(facts->gpu[i].mem, p->hold_mem_mhz))
            return "hold_mem_mhz must be on the memory ladder of every GPU";
        fl_mfg_open(&gpus(state)[i]);
    }
    return NULL;
}

#define PROBES(X)                                                                                                      \
    X("state", "",                                                                                                     \
      "what the window that runs is for: 0 start, 1-3 its length, 4-6 database, 7-8 memory clocks, 9 "                 \
      "refresh, 10 SM gear, 11-12 monitoring, 13 held at hold_sm_mhz",                                                 \
      g->stage)                                                                                                        \
    X("sm_gear", "", "index on the SM ladder; -1 the default", g->set_sm)                                              \
    X("mem_set_mhz", "MHz", "memory clock that holds; -1 the default",                                                 \
      g->set_mem == FL_MFG_DEFAULT ? FL_DEFAULT : facts->mem.mhz[g->set_mem])                                          \
    X("loss_pct", "%", "loss of the last comparison; at hold_sm_mhz the mean of all", 100 * g->loss)                   \
    X("exe_pct", "%", "the same of kernel times alone", 100 * g->index.exe)                                            \
    X("gap_pct", "%", "the same of gaps alone", 100 * g->index.gap)                                                    \
    X("covered", "", "share of its kernel time of kinds in the database", g->index.covered)                            \
    X("matched", "", "share of kinds that were compared", g->index.matched)                                            \
    X("unmatched", "", "share in streams in which nothing was", g->index.unmatched)                                    \
    X("bound_pct", "%", "bound in force", 100 * g->bound)                                                              \
    X("objective", "", "power over the default's, times (1 + loss)^k", g->objective)                                   \
    X("gain", "", "K_P of the controller's last call", g->pid.gain)                                                    \
    X("window_s", "s", "length of a window", g->length.seconds)                                                        \
    X("traced_s", "s", "traced windows since the start or the last change of phase", (double)g->traced_ns * 1e-9)      \
    X("optimisation_s", "s", "from the first traced window to the first stable gear", g->optimised_s)                  \
    X("stable_s", "s", "from the first step to it", g->stable_s)                                                       \
    X("adjustments", "", "calls of the controller in this search", g->adjustments)                                     \
    X("baselines", "", "windows that joined the database", g->baselines)                                               \
    X("refreshes", "", "those of them in a search", g->refreshes)                                                      \
    X("phase_changes", "", "times the search began anew", g->changes)                                                  \
    X("idle_limits", "", "times the gate held an idle GPU at its lowest SM clock", g->limits)                          \
    X("distance", "", "of the last monitoring window from the reference", g->distance)                                 \
    X("over", "", "kernels and gaps that found no room in the tables", g->data.over)
static const fl_probe probe_rows[] = {PROBES(FL_PROBE_ROW)};

static void show(const fl_mfg_gpu *g, const fl_gpu_facts *facts, uint32_t gpu, fl_command *command) {
    fl_show_all(command, gpu, 0, (double[]){PROBES(FL_PROBE_VALUE)}, FL_COUNT(probe_rows));
}

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *s, fl_command *command) {
    const fl_mfg_params *p = param_bytes;
    fl_mfg_gpu *gpu = gpus(state);
    for (uint64_t i = 0; s->record && i < s->record_count; i++) {
        const fl_kernel_record *r = &s->record[i];
        if (r->gpu < facts->gpu_count && r->kind < s->kind_count)
            fl_mfg_record(&gpu[r->gpu], &facts->gpu[r->gpu], s->time_ns, &s->kind[r->kind], r);
    }
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        const fl_mfg_frame f = {&gpu[i], p, &facts->gpu[i], &s->gpu[i], s->time_ns, i, command};
        fl_mfg_step(&f);
        show(&gpu[i], &facts->gpu[i], i, command);
    }
    command->delay_ns = llround(p->period_ms * 1e6);
}

static const fl_param param_rows[] = {
    FL_PARAM(fl_mfg_params, con_perf, REAL(0, 10), "", "0.05", "Con_perf: loss of performance that is allowed"),
    FL_PARAM(fl_mfg_params, objective, CHOICE("energy|edp|ed2p"), "", "energy",
             "what is minimised: power times the power 1, 2 or 3 of the index"),
    FL_PARAM_AS("kp", fl_mfg_params, gains.kp, REAL(0, 1000), "", "2.8", "K_P, before the controller's table of gains"),
    FL_PARAM_AS("ki", fl_mfg_params, gains.ki, REAL(0, 1000), "", "0.002", "K_I; none after a change of sign"),
    FL_PARAM_AS("kd", fl_mfg_params, gains.kd, REAL(0, 1000), "", "0.9", "K_D; damps large swings only"),
    FL_PARAM(fl_mfg_params, th_exe, REAL(0, 1e9), "", "10",
             "largest deviation over mean of execution times that are compared"),
    FL_PARAM(fl_mfg_params, th_gap, REAL(0, 1e9), "", "2.5", "the same of gaps"),
    FL_PARAM(fl_mfg_params, th_cover, REAL(0, 0.999), "", "0.75",
             "share of kernel time that the database must cover, and match"),
    FL_PARAM(fl_mfg_params, th_ev, REAL(0, 1), "", "0.1", "distance from the reference that is a bad window"),
    FL_PARAM(fl_mfg_params, window_s, REAL(0.25, 1000), "s", "4", "the first window, and what it grows by"),
    FL_PARAM(fl_mfg_params, window_max_s, REAL(0.25, 1000), "s", "20", "the longest window"),
    FL_PARAM(fl_mfg_params, memory, BOOL, "", "1", "memory clocks are tried"),
    FL_PARAM(fl_mfg_params, hold_sm_mhz, REAL(0, 100000), "MHz", "0",
             "0: optimise; else only the index is measured, at this SM clock and"),
    FL_PARAM(fl_mfg_params, hold_mem_mhz, REAL(0, 100000), "MHz", "0",
             "at this memory clock (0: the default); probe loss_pct is the mean then"),
    FL_PARAM(fl_mfg_params, missing_s, REAL(0, 1e6), "s", "10",
             "time without GPU utilisation after which all begins anew (assumed; the program ends)"),
    FL_PARAM(fl_mfg_params, period_ms, REAL(0.001, 3.6e6), "ms", "100", "time from one sample to the next"),
};

FL_POLICY(mfgpoeo) = {
    FL_POLICY_ABI,
    .name = "mf-gpoeo",
    .summary = "lowers memory and SM clocks until kernel times and gaps reach a bound on the loss of performance",
    .source = "MF-GPOEO (IEEE TSUSC 2024), as the program that its authors released does it",
    .gpu_needs = FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_UTIL_GPU_PCT) | FL_BIT(FL_GPU_UTIL_MEM_PCT) |
                 FL_BIT(FL_GPU_SM_MHZ) | FL_BIT(FL_GPU_MEM_MHZ),
    .gpu_drives = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_MEM_MHZ) | FL_BIT(FL_SET_POWER_LIMIT_W) |
                  FL_BIT(FL_SET_RECORDS),
    .needs_records = 1,
    .gpu_size = sizeof(fl_mfg_gpu),
    FL_POLICY_PARTS(fl_mfg_params)};
