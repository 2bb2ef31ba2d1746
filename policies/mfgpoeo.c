/* MF-GPOEO, model-free online energy optimisation of a GPU: kernel times and gaps at the default clocks are the
 * baseline; a synthetic index of the same kinds under other clocks gives the loss of performance; a controller lowers
 * the clocks until the bound on it is reached. Memory clocks come first. Defaults and schedule are those of the
 * released program where its paper prints others. Each GPU of a node is optimised by itself.
 *
 * What a reading that is not known does: a measurement goes on until power is known; without any signal a trial ends
 * after missing_s at the default clocks; a stable configuration is held. */
#include "policies/mfgpoeo_frame.h"

#include <math.h>

static fl_mfg_gpu *gpus(void *state) { return fl_gpu_states(state, 0); }

/* A clock that is named must be one of a GPU's: another would quietly be none. */
static const char *off_the_ladders(const fl_mfg_params *p, const fl_facts *facts) {
    uint32_t sm = 0, mem = 0;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        sm += fl_mfg_ladder_index(facts->gpu[i].sm, p->hold_sm_mhz) != FL_MFG_DEFAULT;
        mem += fl_mfg_ladder_index(facts->gpu[i].mem, p->hold_mem_mhz) != FL_MFG_DEFAULT;
    }
    if (p->hold_sm_mhz > 0 && sm < facts->gpu_count)
        return "hold_sm_mhz must be on the SM ladder of every GPU";
    if (p->hold_mem_mhz > 0 && mem < facts->gpu_count)
        return "hold_mem_mhz must be on the memory ladder of every GPU";
    for (uint32_t k = 0; k < p->mem_mhz.row_count; k++) {
        mem = 0;
        for (uint32_t i = 0; i < facts->gpu_count; i++)
            mem += fl_mfg_ladder_index(facts->gpu[i].mem, p->mem_mhz.cell[k]) != FL_MFG_DEFAULT;
        if (!mem)
            return "mem_mhz must be on the memory ladder of a GPU";
    }
    return NULL;
}

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const fl_mfg_params *p = param_bytes;
    if (p->pid.factor_min > p->pid.factor_max || p->low_start_min > p->low_start_max)
        return "a range must not end below its start: factor_min, factor_max; low_start_min, low_start_max";
    if (p->forced_early > p->forced_after)
        return "forced_early must not exceed forced_after";
    const char *wrong = off_the_ladders(p, facts);
    if (wrong)
        return wrong;
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        fl_mfg_open(&gpus(state)[i], p);
    return NULL;
}

enum {
    PROBE_STATE,
    PROBE_SM_GEAR,
    PROBE_MEM_SET_MHZ,
    PROBE_INDEX,
    PROBE_LOSS_PCT,
    PROBE_ERROR_PCT,
    PROBE_MATCHED,
    PROBE_BOUND_PCT,
    PROBE_OBJECTIVE,
    PROBE_BASE_OBJECTIVE,
    PROBE_COVERAGE,
    PROBE_WINDOW_S,
    PROBE_OPTIMISATION_S,
    PROBE_HELD,
    PROBE_BASELINES,
    PROBE_ADJUSTMENTS,
    PROBE_PHASE_CHANGES,
    PROBE_DISTANCE,
    PROBE_KERNEL_KINDS,
    PROBE_GAP_KINDS,
    PROBE_OVER,
    PROBES
};

static const fl_probe probe_rows[PROBES] = {
    [PROBE_STATE] = {"state", "",
                     "0 waits for kernels, 1 baseline, 2 memory clocks, 3 SM clocks, 4 stable, 5 held at hold_sm_mhz",
                     1},
    [PROBE_SM_GEAR] = {"sm_gear", "", "index on the SM ladder; -1 the default", 1},
    [PROBE_MEM_SET_MHZ] = {"mem_set_mhz", "MHz", "memory clock that holds; -1 the default", 1},
    [PROBE_INDEX] = {"index", "", "index_perf of the last measurement (Alg. 3)", 1},
    [PROBE_LOSS_PCT] = {"loss_pct", "%", "loss of performance by it", 1},
    [PROBE_ERROR_PCT] = {"error_pct", "%", "standard error of that loss, from the deviations of kernels and gaps", 1},
    [PROBE_MATCHED] = {"matched", "", "share of execution and gap time that was compared (Eq. 9, 10)", 1},
    [PROBE_BOUND_PCT] = {"bound_pct", "%", "bound in force", 1},
    [PROBE_OBJECTIVE] = {"objective", "", "f_obj of the last measurement", 1},
    [PROBE_BASE_OBJECTIVE] = {"base_objective", "", "the same of the last baseline", 1},
    [PROBE_COVERAGE] = {"coverage", "", "index_cover of the last measurement (Alg. 1)", 1},
    [PROBE_WINDOW_S] = {"window_s", "s", "Duration (Alg. 2)", 1},
    [PROBE_OPTIMISATION_S] = {"optimisation_s", "s", "from the first kernel to the first stable configuration", 1},
    [PROBE_HELD] = {"held", "", "1: decided without readings", 1},
    [PROBE_BASELINES] = {"baselines", "", "windows measured at the default clocks", 1},
    [PROBE_ADJUSTMENTS] = {"adjustments", "", "SM gears measured in this optimisation", 1},
    [PROBE_PHASE_CHANGES] = {"phase_changes", "", "times the optimisation began anew", 1},
    [PROBE_DISTANCE] = {"distance", "", "of the last two execution vectors (Alg. 6)", 1},
    [PROBE_KERNEL_KINDS] = {"kernel_kinds", "", "kinds of kernels in the table", 1},
    [PROBE_GAP_KINDS] = {"gap_kinds", "", "kinds of gaps in the table", 1},
    [PROBE_OVER] = {"over", "", "kernels and gaps that found no room in the tables", 1},
};

static double shown_mhz(fl_ladder ladder, int32_t gear) {
    return gear == FL_MFG_DEFAULT ? FL_DEFAULT : ladder.mhz[gear];
}

static void show(const fl_mfg_gpu *g, const fl_gpu_facts *facts, uint32_t gpu, fl_command *command) {
    const double shown[PROBES] = {
        [PROBE_STATE] = g->state,
        [PROBE_SM_GEAR] = g->set_sm,
        [PROBE_MEM_SET_MHZ] = shown_mhz(facts->mem, g->set_mem),
        [PROBE_INDEX] = g->index,
        [PROBE_LOSS_PCT] = 100 * g->loss,
        [PROBE_ERROR_PCT] = 100 * g->error,
        [PROBE_MATCHED] = g->matched,
        [PROBE_BOUND_PCT] = 100 * g->bound,
        [PROBE_OBJECTIVE] = g->objective,
        [PROBE_BASE_OBJECTIVE] = g->base_objective,
        [PROBE_COVERAGE] = g->coverage,
        [PROBE_WINDOW_S] = (double)g->window_ns * 1e-9,
        [PROBE_OPTIMISATION_S] = g->optimised_s,
        [PROBE_HELD] = g->blind || g->unpowered,
        [PROBE_BASELINES] = g->baselines,
        [PROBE_ADJUSTMENTS] = g->adjustments,
        [PROBE_PHASE_CHANGES] = g->changes,
        [PROBE_DISTANCE] = g->distance,
        [PROBE_KERNEL_KINDS] = g->data.kernel_kinds,
        [PROBE_GAP_KINDS] = g->data.gap_kinds,
        [PROBE_OVER] = (double)g->data.over,
    };
    for (int k = 0; k < PROBES; k++)
        fl_show_gpu(command, gpu, k, shown[k]);
}

static void take_records(fl_mfg_gpu *gpu, const fl_mfg_params *p, const fl_facts *facts, const fl_sample *s) {
    if (s->record_lost)
        for (uint32_t i = 0; i < facts->gpu_count; i++)
            fl_mfg_break(&gpu[i].data);
    for (uint64_t i = 0; s->record && i < s->record_count; i++) {
        const fl_kernel_record *r = &s->record[i];
        if (r->gpu < facts->gpu_count && r->kind < s->kind_count)
            fl_mfg_record(&gpu[r->gpu], p, &facts->gpu[r->gpu], &s->kind[r->kind], r);
    }
}

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample,
                 fl_command *command) {
    const fl_mfg_params *p = param_bytes;
    fl_mfg_gpu *gpu = gpus(state);
    take_records(gpu, p, facts, sample);
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        fl_mfg_step(&gpu[i], p, &facts->gpu[i], &sample->gpu[i], sample->time_ns, i, command);
        show(&gpu[i], &facts->gpu[i], i, command);
    }
    command->delay_ns = (int64_t)(p->period_ms * 1e6 + 0.5);
}

static const fl_param param_rows[] = {
    FL_PARAM(fl_mfg_params, con_perf, REAL(0, 10), "", "0.05", "Con_perf (Eq. 1): loss of performance that is allowed"),
    FL_PARAM(fl_mfg_params, objective, CHOICE("power|energy|edp|ed2p"), "", "energy",
             "f_obj (Eq. 1): what is minimised, from power and index"),
    FL_PARAM_AS("kp", fl_mfg_params, pid.kp, REAL(0, 1000), "", "2.8", "K_P (Eq. 13)"),
    FL_PARAM_AS("ki", fl_mfg_params, pid.ki, REAL(0, 1000), "", "0.002", "K_I (Eq. 13); zero after a change of sign"),
    FL_PARAM_AS("kd", fl_mfg_params, pid.kd, REAL(0, 1000), "", "0.9",
                "K_D (Eq. 13); acts on large swings only (the released program)"),
    FL_PARAM_AS("pid", fl_mfg_params, pid.form, CHOICE("released|printed"), "", "released",
                "Eq. 13: as the released program has it (gear x (1 - u), scheduled K_P), or as printed (gear + u)"),
    FL_PARAM_AS(
        "rollback", fl_mfg_params, pid.back, CHOICE("and|or"), "", "and",
        "Alg. 4 line 3: roll back where the bound is broken and (as printed) or (the text) the objective rises"),
    FL_PARAM_AS("th_exe", fl_mfg_params, filter.th_exe, REAL(0, 1e9), "", "10",
                "Th_exe (Eq. 9): deviation over average of execution times that are compared"),
    FL_PARAM_AS("th_gap", fl_mfg_params, filter.th_gap, REAL(0, 1e9), "", "2.5", "Th_gap (Eq. 10): the same of gaps"),
    FL_PARAM_AS(
        "th_repeat", fl_mfg_params, filter.th_repeat, REAL(0, 1e9), "", "0.03",
        "a kind whose averages in two baseline windows differ by more than this share is not compared (assumed)"),
    FL_PARAM_AS("repeat_sigma", fl_mfg_params, filter.repeat_sigma, REAL(0, 1e9), "", "4",
                "and by more than this many standard errors (assumed)"),
    FL_PARAM_AS("database", fl_mfg_params, filter.database, CHOICE("pooled|replaced"), "", "pooled",
                "Alg. 2 lines 7, 14: a kind that is known is pooled (a fusion, Sec. III-A) or replaced (as printed)"),
    FL_PARAM_AS("weights", fl_mfg_params, filter.weights, CHOICE("long_run|measured"), "", "measured",
                "count of each kind in the index: in the database, where phases take turns (assumed), or in this "
                "measurement (Alg. 3 lines 8, 15)"),
    FL_PARAM(fl_mfg_params, th_cover, REAL(0, 0.999), "", "0.75",
             "Th_cover (Alg. 2, Alg. 7 line 7): coverage that the database needs"),
    FL_PARAM(fl_mfg_params, th_self, REAL(0, 1e9), "", "0.01",
             "the window is also doubled while the baseline's own index is further from 1, or less sure, than this "
             "(assumed)"),
    FL_PARAM(fl_mfg_params, sigma, REAL(0, 100), "", "1",
             "standard errors of the index that are taken off the bound (assumed)"),
    FL_PARAM(fl_mfg_params, extend, INT(1, 100), "", "2",
             "windows that one configuration is measured for at most (assumed; 1: as published)"),
    FL_PARAM(fl_mfg_params, th_seen, REAL(0, 1), "", "0.75",
             "a further window is measured while less than this share of the database's time was seen (assumed)"),
    FL_PARAM(fl_mfg_params, th_error, REAL(0, 1e9), "", "0.01",
             "or while the standard error of the index is above this (assumed)"),
    FL_PARAM(
        fl_mfg_params, hopeless, REAL(0, 1e9), "", "0.2",
        "a trial ends after a quarter of its window where its loss is above this by two standard errors (assumed)"),
    FL_PARAM(fl_mfg_params, th_ctrl, REAL(0, 1e9), "", "0.2",
             "Th_ctrl (Alg. 5 line 4): mean control error over the bound"),
    FL_PARAM(fl_mfg_params, th_ev, REAL(0, 1), "", "0.1",
             "Th_EV (Alg. 6): distance of execution vectors that is a phase change"),
    FL_PARAM(fl_mfg_params, window_s, REAL(1, 20), "s", "4",
             "Duration (Alg. 2): the first window; doubled while coverage lacks"),
    FL_PARAM(fl_mfg_params, window_max_s, REAL(1, 1000), "s", "20", "the longest window"),
    FL_PARAM(fl_mfg_params, refresh_every, INT(1, 1000), "", "5",
             "configurations measured before the baseline is measured anew (Sec. III-B)"),
    FL_PARAM(fl_mfg_params, stable_last, INT(1, FL_MFG_TRACE_MAX), "", "3",
             "configurations that stability is judged by (Alg. 5)"),
    FL_PARAM(fl_mfg_params, stable_gears, INT(0, 1000), "", "8",
             "largest difference of their SM gears (Alg. 5 line 3)"),
    FL_PARAM(fl_mfg_params, stable_at, CHOICE("best|mean"), "", "best",
             "what a stable search keeps: the best gear seen within the bound, as a forced one does (assumed), or the "
             "mean of the trace (Alg. 5 line 5), rounded up"),
    FL_PARAM(fl_mfg_params, trace_gear, CHOICE("measured|next"), "", "measured",
             "gear beside an error in that trace: the one it was measured at (assumed), or the one set next (Alg. 7 "
             "lines 9-10)"),
    FL_PARAM(fl_mfg_params, monotone, BOOL, "", "1",
             "before the best is taken, losses that fall with the gear, and several of one gear, are averaged "
             "(assumed; 0: as measured)"),
    FL_PARAM(fl_mfg_params, plausible, BOOL, "", "1",
             "a kind that takes longer than the lower clocks explain, or less long than at the default, is not "
             "compared (assumed)"),
    FL_PARAM(fl_mfg_params, search_again, BOOL, "", "1",
             "where no gear holds the bound under a lower memory clock, a second search under the default one, and the "
             "better of both is kept (assumed; 0: that memory clock alone)"),
    FL_PARAM(fl_mfg_params, forced_after, INT(1, FL_MFG_TRIED_MAX), "", "5",
             "SM gears measured after which the best within the bound is kept"),
    FL_PARAM(fl_mfg_params, forced_early, INT(1, FL_MFG_TRIED_MAX), "", "4",
             "the same once forced_early_s have passed"),
    FL_PARAM(fl_mfg_params, confirm, INT(1, 8), "", "2",
             "times that a gear must have been measured before it is kept (assumed; 1: as published)"),
    FL_PARAM(fl_mfg_params, give_up, INT(1, 1000), "", "10",
             "measurements in a row that cannot be compared with the baseline, after which the default clocks are kept "
             "(assumed)"),
    FL_PARAM(fl_mfg_params, forced_early_s, REAL(0, 1e6), "s", "75", "since the optimisation began"),
    FL_PARAM(fl_mfg_params, start, REAL(0, 1), "", "0.95",
             "where on the SM ladder the search starts, at most what the default achieved"),
    FL_PARAM(fl_mfg_params, low_start_min, REAL(0, 1), "", "0.65",
             "the same under a low memory clock that costs nothing, and"),
    FL_PARAM(fl_mfg_params, low_start_max, REAL(0, 1), "", "0.9",
             "under one that costs the whole bound (linear between: assumed)"),
    FL_PARAM(
        fl_mfg_params, mem_mhz, LIST(1, 100000), "MHz", "",
        "memory clocks to try, in this order; empty: those of the ladder below mem_near, but for the lowest (assumed)"),
    FL_PARAM(fl_mfg_params, mem_util_pct, REAL(0, 100), "%", "20",
             "memory clocks are tried at up to this memory utilisation"),
    FL_PARAM(fl_mfg_params, mem_near, REAL(0, 1), "", "0.9",
             "clocks above this share of the default memory clock are not tried (9251: never)"),
    FL_PARAM(fl_mfg_params, mem_worth, REAL(0, 1000), "", "2",
             "a memory clock must save this many times what it costs, as shares: else the SM clock makes more of the "
             "bound, energy falling as its square (assumed)"),
    FL_PARAM(fl_mfg_params, busy_kernels, REAL(0, 1e12), "1/s", "2000", "kernel rate that divides the two rows below"),
    FL_PARAM(fl_mfg_params, tighten, REAL(0, 1), "", "0.001",
             "taken off Con_perf below that rate, to pay for measuring"),
    FL_PARAM(fl_mfg_params, tighten_busy, REAL(0, 1), "", "0.003", "and from it on"),
    FL_PARAM_AS("factor_min", fl_mfg_params, pid.factor_min, REAL(0, 1000), "", "0.7", "least factor of K_P"),
    FL_PARAM_AS("factor_max", fl_mfg_params, pid.factor_max, REAL(0, 1000), "", "4", "largest factor of K_P"),
    FL_PARAM_AS("kp_max", fl_mfg_params, pid.kp_max, REAL(0, 1000), "", "8", "largest K_P"),
    FL_PARAM_AS("raise", fl_mfg_params, pid.raise, REAL(1, 1000), "", "1.5",
                "of the factor while the loss stays far below the bound, or the curve is flat"),
    FL_PARAM_AS("raise_more", fl_mfg_params, pid.raise_more, REAL(1, 1000), "", "1.75", "and where both hold"),
    FL_PARAM_AS("far", fl_mfg_params, pid.far, REAL(0, 1), "", "0.5",
                "share of the bound below which a loss is far below it (assumed)"),
    FL_PARAM_AS("flat", fl_mfg_params, pid.flat, REAL(0, 1000), "", "0.1",
                "share of the bound below which a change of loss is flat (assumed)"),
    FL_PARAM_AS("near", fl_mfg_params, pid.near, REAL(1, 1000), "", "1.2",
                "past the bound up to this many times it, the factor is 1, beyond factor_min (assumed)"),
    FL_PARAM_AS("swing", fl_mfg_params, pid.swing, REAL(0, 1000), "", "0.2",
                "change of err_ctrl (Alg. 4 line 10: a share of the bound) above which K_D acts; 0: always, as printed "
                "(assumed)"),
    FL_PARAM(fl_mfg_params, ev_readings, INT(1, 1000), "", "5",
             "periods in an execution vector (readings in Alg. 6; here it averages every loop's reading in them)"),
    FL_PARAM(fl_mfg_params, hold_sm_mhz, REAL(0, 100000), "MHz", "0",
             "0: optimise; else only the index is measured, at this SM clock and"),
    FL_PARAM(fl_mfg_params, hold_mem_mhz, REAL(0, 100000), "MHz", "0",
             "at this memory clock (0: the default); probe index is its mean then"),
    FL_PARAM(fl_mfg_params, ev_period_s, REAL(0.001, 1e6), "s", "1", "length of such a period (assumed)"),
    FL_PARAM(fl_mfg_params, skip_s, REAL(0, 1e6), "s", "1",
             "from the first kernel to the first baseline: the unstable start (assumed)"),
    FL_PARAM(fl_mfg_params, settle_ms, REAL(0, 1e6), "ms", "300",
             "from setting a clock to measuring under it (assumed)"),
    FL_PARAM(fl_mfg_params, gap_max_ms, REAL(0, 1e9), "ms", "1000",
             "a longer gap is idleness: not measured (Sec. IV-A; assumed)"),
    FL_PARAM(fl_mfg_params, missing_s, REAL(0, 1e6), "s", "1",
             "time without any signal after which a trial ends at the default (assumed)"),
    FL_PARAM(fl_mfg_params, period_ms, REAL(0.001, 3.6e6), "ms", "100", "time from one loop to the next (assumed)"),
};

FL_POLICY(mfgpoeo) = {
    FL_POLICY_ABI,
    .name = "mf-gpoeo",
    .summary = "lowers memory and SM clocks until kernel times and gaps reach a bound on the loss of performance",
    .source = "MF-GPOEO (IEEE TSUSC 2024), Algorithms 1-7, with the released program's defaults and schedule",
    .gpu_needs = FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS) | FL_BIT(FL_GPU_POWER_W) |
                 FL_BIT(FL_GPU_UTIL_GPU_PCT) | FL_BIT(FL_GPU_UTIL_MEM_PCT) | FL_BIT(FL_GPU_SM_MHZ) |
                 FL_BIT(FL_GPU_MEM_MHZ),
    .gpu_drives = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_MEM_MHZ) | FL_BIT(FL_SET_RECORDS),
    .needs_records = 1,
    .param = param_rows,
    .param_count = FL_COUNT(param_rows),
    .probe = probe_rows,
    .probe_count = PROBES,
    .param_size = sizeof(fl_mfg_params),
    .gpu_size = sizeof(fl_mfg_gpu),
    .init = init,
    .step = step};
