/* MF-GPOEO, model-free online energy optimisation of a GPU: kernel times and gaps at the default clocks are the
 * baseline; a synthetic index of the same kinds under other clocks gives the loss of performance; a controller lowers
 * the clocks until the bound on it is reached. Memory clocks come first. Defaults and schedule are those of the
 * released program where its paper prints others. Each GPU of a node is optimised by itself.
 *
 * What a reading that is not known does: a measurement goes on until power is known; without any signal a trial ends
 * after missing_s at the default clocks; a stable configuration is held. */
#include "policies/mfgpoeo_frame.h"

#include <math.h>

typedef struct node_state {
    uint64_t spare[2];
} node_state;

static fl_mfg_gpu *gpus(void *state) { return (fl_mfg_gpu *)((char *)state + sizeof(node_state)); }

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

static double shown_mhz(fl_ladder ladder, int32_t gear) {
    return gear == FL_MFG_DEFAULT ? FL_DEFAULT : ladder.mhz[gear];
}

static void show(const fl_mfg_gpu *gpu, const fl_facts *facts, double *probe) {
    const uint32_t count = facts->gpu_count;
    for (uint32_t i = 0; i < count; i++) {
        const fl_mfg_gpu *g = &gpu[i];
        const double cell[] = {g->state,
                               g->set_sm,
                               shown_mhz(facts->gpu[i].mem, g->set_mem),
                               g->index,
                               100 * g->loss,
                               100 * g->error,
                               g->matched,
                               100 * g->bound,
                               g->objective,
                               g->base_objective,
                               g->coverage,
                               (double)g->window_ns * 1e-9,
                               g->optimised_s,
                               g->blind || g->unpowered,
                               g->baselines,
                               g->adjustments,
                               g->changes,
                               g->distance,
                               g->data.kernel_kinds,
                               g->data.gap_kinds,
                               (double)g->data.over};
        for (uint32_t k = 0; k < sizeof cell / sizeof *cell; k++)
            probe[k * count + i] = cell[k];
    }
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
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        fl_mfg_step(&gpu[i], p, &facts->gpu[i], &sample->gpu[i], sample->time_ns, i, command);
    show(gpu, facts, command->probe);
    command->delay_ns = (int64_t)(p->period_ms * 1e6 + 0.5);
}

#define ROW_AS(name_, member, unit_, type_, standard_, min_, max_, choices_, help_)                                    \
    {                                                                                                                  \
        .name = name_, .unit = unit_, .type = type_, .offset = offsetof(fl_mfg_params, member), .standard = standard_, \
        .min = min_, .max = max_, .choices = choices_, .help = help_                                                   \
    }
#define REAL(member, unit_, standard_, min_, max_, help_)                                                              \
    ROW_AS(#member, member, unit_, FL_PARAM_REAL, standard_, min_, max_, NULL, help_)
#define FILTER(member, standard_, max_, help_)                                                                         \
    ROW_AS(#member, filter.member, "", FL_PARAM_REAL, standard_, 0, max_, NULL, help_)
#define COUNT(member, standard_, min_, max_, help_)                                                                    \
    ROW_AS(#member, member, "", FL_PARAM_INT, standard_, min_, max_, NULL, help_)
#define BOOL(member, standard_, help_) ROW_AS(#member, member, "", FL_PARAM_BOOL, standard_, 0, 1, NULL, help_)
#define PID(member, unit_, standard_, min_, max_, help_)                                                               \
    ROW_AS(#member, pid.member, unit_, FL_PARAM_REAL, standard_, min_, max_, NULL, help_)

static const fl_param param_rows[] = {
    REAL(con_perf, "", "0.05", 0, 10, "Con_perf (Eq. 1): loss of performance that is allowed"),
    ROW_AS("objective", objective, "", FL_PARAM_CHOICE, "energy", 0, 0, "power|energy|edp|ed2p",
           "f_obj (Eq. 1): what is minimised, from power and index"),
    PID(kp, "", "2.8", 0, 1000, "K_P (Eq. 13)"),
    PID(ki, "", "0.002", 0, 1000, "K_I (Eq. 13); zero after a change of sign"),
    PID(kd, "", "0.9", 0, 1000, "K_D (Eq. 13); acts on large swings only (the released program)"),
    ROW_AS("pid", pid.form, "", FL_PARAM_CHOICE, "released", 0, 0, "released|printed",
           "Eq. 13: as the released program has it (gear x (1 - u), scheduled K_P), or as printed (gear + u)"),
    ROW_AS("rollback", pid.back, "", FL_PARAM_CHOICE, "and", 0, 0, "and|or",
           "Alg. 4 line 3: roll back where the bound is broken and (as printed) or (the text) the objective rises"),
    FILTER(th_exe, "10", 1e9, "Th_exe (Eq. 9): deviation over average of execution times that are compared"),
    FILTER(th_gap, "2.5", 1e9, "Th_gap (Eq. 10): the same of gaps"),
    FILTER(th_repeat, "0.03", 1e9,
           "a kind whose averages in two baseline windows differ by more than this share is not compared (assumed)"),
    FILTER(repeat_sigma, "4", 1e9, "and by more than this many standard errors (assumed)"),
    ROW_AS("database", filter.database, "", FL_PARAM_CHOICE, "pooled", 0, 0, "pooled|replaced",
           "Alg. 2 lines 7, 14: a kind that is known is pooled (a fusion, Sec. III-A) or replaced (as printed)"),
    ROW_AS(
        "weights", filter.weights, "", FL_PARAM_CHOICE, "measured", 0, 0, "long_run|measured",
        "count of each kind in the index: in the database, where phases take turns (assumed), or in this measurement "
        "(Alg. 3 lines 8, 15)"),
    REAL(th_cover, "", "0.75", 0, 0.999, "Th_cover (Alg. 2, Alg. 7 line 7): coverage that the database needs"),
    REAL(th_self, "", "0.01", 0, 1e9,
         "the window is also doubled while the baseline's own index is further from 1, or less sure, than this "
         "(assumed)"),
    REAL(sigma, "", "1", 0, 100, "standard errors of the index that are taken off the bound (assumed)"),
    COUNT(extend, "2", 1, 100, "windows that one configuration is measured for at most (assumed; 1: as published)"),
    REAL(th_seen, "", "0.75", 0, 1,
         "a further window is measured while less than this share of the database's time was seen (assumed)"),
    REAL(th_error, "", "0.01", 0, 1e9, "or while the standard error of the index is above this (assumed)"),
    REAL(hopeless, "", "0.2", 0, 1e9,
         "a trial ends after a quarter of its window where its loss is above this by two standard errors (assumed)"),
    REAL(th_ctrl, "", "0.2", 0, 1e9, "Th_ctrl (Alg. 5 line 4): mean control error over the bound"),
    REAL(th_ev, "", "0.1", 0, 1, "Th_EV (Alg. 6): distance of execution vectors that is a phase change"),
    REAL(window_s, "s", "4", 1, 20, "Duration (Alg. 2): the first window; doubled while coverage lacks"),
    REAL(window_max_s, "s", "20", 1, 1000, "the longest window"),
    COUNT(refresh_every, "5", 1, 1000, "configurations measured before the baseline is measured anew (Sec. III-B)"),
    COUNT(stable_last, "3", 1, FL_MFG_TRACE_MAX, "configurations that stability is judged by (Alg. 5)"),
    COUNT(stable_gears, "8", 0, 1000, "largest difference of their SM gears (Alg. 5 line 3)"),
    ROW_AS(
        "stable_at", stable_at, "", FL_PARAM_CHOICE, "best", 0, 0, "best|mean",
        "what a stable search keeps: the best gear seen within the bound, as a forced one does (assumed), or the mean "
        "of the trace (Alg. 5 line 5), rounded up"),
    ROW_AS(
        "trace_gear", trace_gear, "", FL_PARAM_CHOICE, "measured", 0, 0, "measured|next",
        "gear beside an error in that trace: the one it was measured at (assumed), or the one set next (Alg. 7 lines "
        "9-10)"),
    BOOL(monotone, "1",
         "before the best is taken, losses that fall with the gear, and several of one gear, are averaged (assumed; 0: "
         "as measured)"),
    BOOL(plausible, "1",
         "a kind that takes longer than the lower clocks explain, or less long than at the default, is not compared "
         "(assumed)"),
    BOOL(search_again, "1",
         "where no gear holds the bound under a lower memory clock, a second search under the default one, and the "
         "better of both is kept (assumed; 0: that memory clock alone)"),
    COUNT(forced_after, "5", 1, FL_MFG_TRIED_MAX, "SM gears measured after which the best within the bound is kept"),
    COUNT(forced_early, "4", 1, FL_MFG_TRIED_MAX, "the same once forced_early_s have passed"),
    COUNT(confirm, "2", 1, 8, "times that a gear must have been measured before it is kept (assumed; 1: as published)"),
    COUNT(give_up, "10", 1, 1000,
          "measurements in a row that cannot be compared with the baseline, after which the default clocks are kept "
          "(assumed)"),
    REAL(forced_early_s, "s", "75", 0, 1e6, "since the optimisation began"),
    REAL(start, "", "0.95", 0, 1, "where on the SM ladder the search starts, at most what the default achieved"),
    REAL(low_start_min, "", "0.65", 0, 1, "the same under a low memory clock that costs nothing, and"),
    REAL(low_start_max, "", "0.9", 0, 1, "under one that costs the whole bound (linear between: assumed)"),
    ROW_AS(
        "mem_mhz", mem_mhz, "MHz", FL_PARAM_LIST, "", 1, 100000, NULL,
        "memory clocks to try, in this order; empty: those of the ladder below mem_near, but for the lowest (assumed)"),
    REAL(mem_util_pct, "%", "20", 0, 100, "memory clocks are tried at up to this memory utilisation"),
    REAL(mem_near, "", "0.9", 0, 1, "clocks above this share of the default memory clock are not tried (9251: never)"),
    REAL(
        mem_worth, "", "2", 0, 1000,
        "a memory clock must save this many times what it costs, as shares: else the SM clock makes more of the bound, "
        "energy falling as its square (assumed)"),
    REAL(busy_kernels, "1/s", "2000", 0, 1e12, "kernel rate that divides the two rows below"),
    REAL(tighten, "", "0.001", 0, 1, "taken off Con_perf below that rate, to pay for measuring"),
    REAL(tighten_busy, "", "0.003", 0, 1, "and from it on"),
    PID(factor_min, "", "0.7", 0, 1000, "least factor of K_P"),
    PID(factor_max, "", "4", 0, 1000, "largest factor of K_P"),
    PID(kp_max, "", "8", 0, 1000, "largest K_P"),
    PID(raise, "", "1.5", 1, 1000, "of the factor while the loss stays far below the bound, or the curve is flat"),
    PID(raise_more, "", "1.75", 1, 1000, "and where both hold"),
    PID(far, "", "0.5", 0, 1, "share of the bound below which a loss is far below it (assumed)"),
    PID(flat, "", "0.1", 0, 1000, "share of the bound below which a change of loss is flat (assumed)"),
    PID(near, "", "1.2", 1, 1000,
        "past the bound up to this many times it, the factor is 1, beyond factor_min (assumed)"),
    PID(swing, "", "0.2", 0, 1000,
        "change of err_ctrl (Alg. 4 line 10: a share of the bound) above which K_D acts; 0: always, as printed "
        "(assumed)"),
    COUNT(ev_readings, "5", 1, 1000,
          "periods in an execution vector (readings in Alg. 6; here it averages every loop's reading in them)"),
    REAL(hold_sm_mhz, "MHz", "0", 0, 100000, "0: optimise; else only the index is measured, at this SM clock and"),
    REAL(hold_mem_mhz, "MHz", "0", 0, 100000, "at this memory clock (0: the default); probe index is its mean then"),
    REAL(ev_period_s, "s", "1", 0.001, 1e6, "length of such a period (assumed)"),
    REAL(skip_s, "s", "1", 0, 1e6, "from the first kernel to the first baseline: the unstable start (assumed)"),
    REAL(settle_ms, "ms", "300", 0, 1e6, "from setting a clock to measuring under it (assumed)"),
    REAL(gap_max_ms, "ms", "1000", 0, 1e9, "a longer gap is idleness: not measured (Sec. IV-A; assumed)"),
    REAL(missing_s, "s", "1", 0, 1e6, "time without any signal after which a trial ends at the default (assumed)"),
    REAL(period_ms, "ms", "100", 0.001, 3.6e6, "time from one loop to the next (assumed)"),
};

static const fl_probe probe_rows[] = {
    {"state", "", "0 waits for kernels, 1 baseline, 2 memory clocks, 3 SM clocks, 4 stable, 5 held at hold_sm_mhz", 1},
    {"sm_gear", "", "index on the SM ladder; -1 the default", 1},
    {"mem_set_mhz", "MHz", "memory clock that holds; -1 the default", 1},
    {"index", "", "index_perf of the last measurement (Alg. 3)", 1},
    {"loss_pct", "%", "loss of performance by it", 1},
    {"error_pct", "%", "standard error of that loss, from the deviations of kernels and gaps", 1},
    {"matched", "", "share of execution and gap time that was compared (Eq. 9, 10)", 1},
    {"bound_pct", "%", "bound in force", 1},
    {"objective", "", "f_obj of the last measurement", 1},
    {"base_objective", "", "the same of the last baseline", 1},
    {"coverage", "", "index_cover of the last measurement (Alg. 1)", 1},
    {"window_s", "s", "Duration (Alg. 2)", 1},
    {"optimisation_s", "s", "from the first kernel to the first stable configuration", 1},
    {"held", "", "1: decided without readings", 1},
    {"baselines", "", "windows measured at the default clocks", 1},
    {"adjustments", "", "SM gears measured in this optimisation", 1},
    {"phase_changes", "", "times the optimisation began anew", 1},
    {"distance", "", "of the last two execution vectors (Alg. 6)", 1},
    {"kernel_kinds", "", "kinds of kernels in the table", 1},
    {"gap_kinds", "", "kinds of gaps in the table", 1},
    {"over", "", "kernels and gaps that found no room in the tables", 1},
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
    .param_count = sizeof param_rows / sizeof *param_rows,
    .probe = probe_rows,
    .probe_count = sizeof probe_rows / sizeof *probe_rows,
    .param_size = sizeof(fl_mfg_params),
    .state_size = sizeof(node_state),
    .gpu_size = sizeof(fl_mfg_gpu),
    .init = init,
    .step = step};
