/* MF-GPOEO as its paper prints it: kernel times and gaps at the default clocks are the baseline; a synthetic index of
 * the same kinds under other clocks gives the loss of performance; a controller lowers the clocks until the bound on it
 * is reached. Memory clocks come first. Each GPU of a node is optimised by itself. Two policies share this machine:
 * mf-gpoeo-printed keeps to the letter of Algorithms 1 to 7, mf-gpoeo-extended adds rules of this project that keep the
 * bound. What the authors' program does is mf-gpoeo (mfgpoeo.c).
 *
 * What a reading that is not known does: a measurement goes on until power is known; without any signal a trial ends
 * after a second at the default clocks; a stable configuration is held. */
#include "policies/mfgpaper_frame.h"

static fl_mfp_gpu *gpus(void *state) { return fl_gpu_states(state, 0); }

/* A clock that is named must be one of a GPU's: another would quietly be none. */
static const char *off_the_ladders(const fl_mfp_params *p, const fl_facts *facts) {
    uint32_t sm = 0, mem = 0;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        sm += fl_mfp_ladder_index(facts->gpu[i].sm, p->hold_sm_mhz) != FL_MFP_DEFAULT;
        mem += fl_mfp_ladder_index(facts->gpu[i].mem, p->hold_mem_mhz) != FL_MFP_DEFAULT;
    }
    if (p->hold_sm_mhz > 0 && sm < facts->gpu_count)
        return "hold_sm_mhz must be on the SM ladder of every GPU";
    if (p->hold_mem_mhz > 0 && mem < facts->gpu_count)
        return "hold_mem_mhz must be on the memory ladder of every GPU";
    for (uint32_t k = 0; k < p->mem_mhz.row_count; k++) {
        mem = 0;
        for (uint32_t i = 0; i < facts->gpu_count; i++)
            mem += fl_mfp_ladder_index(facts->gpu[i].mem, p->mem_mhz.cell[k]) != FL_MFP_DEFAULT;
        if (!mem)
            return "mem_mhz must be on the memory ladder of a GPU";
    }
    return NULL;
}

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const fl_mfp_params *p = param_bytes;
    if (p->low_start_min > p->low_start_max)
        return "low_start_min must not exceed low_start_max";
    if (p->forced_early > p->forced_after)
        return "forced_early must not exceed forced_after";
    const char *wrong = off_the_ladders(p, facts);
    if (wrong)
        return wrong;
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        fl_mfp_open(&gpus(state)[i], p);
    return NULL;
}

#define PROBES(X)                                                                                                      \
    X("state", "", "0 waits for kernels, 1 baseline, 2 memory clocks, 3 SM clocks, 4 stable, 5 held at hold_sm_mhz",   \
      g->state)                                                                                                        \
    X("sm_gear", "", "index on the SM ladder; -1 the default", g->set_sm)                                              \
    X("mem_set_mhz", "MHz", "memory clock that holds; -1 the default", shown_mhz(facts->mem, g->set_mem))              \
    X("index", "", "index_perf of the last measurement (Alg. 3)", g->index)                                            \
    X("loss_pct", "%", "loss of performance by it", 100 * g->loss)                                                     \
    X("error_pct", "%", "standard error of that loss, from the deviations of kernels and gaps", 100 * g->error)        \
    X("matched", "", "share of execution and gap time that was compared (Eq. 9, 10)", g->matched)                      \
    X("bound_pct", "%", "bound in force", 100 * g->bound)                                                              \
    X("objective", "", "f_obj of the last measurement", g->objective)                                                  \
    X("base_objective", "", "the same of the last baseline", g->base_objective)                                        \
    X("coverage", "", "index_cover of the last measurement (Alg. 1)", g->coverage)                                     \
    X("window_s", "s", "Duration (Alg. 2)", (double)g->window_ns * 1e-9)                                               \
    X("optimisation_s", "s", "from the first kernel to the first stable configuration", g->optimised_s)                \
    X("held", "", "1: decided without readings", g->blind || g->unpowered)                                             \
    X("baselines", "", "windows measured at the default clocks", g->baselines)                                         \
    X("adjustments", "", "SM gears measured in this optimisation", g->adjustments)                                     \
    X("phase_changes", "", "times the optimisation began anew", g->changes)                                            \
    X("distance", "", "of the last two execution vectors (Alg. 6)", g->distance)                                       \
    X("kernel_kinds", "", "kinds of kernels in the table", g->data.kernel_kinds)                                       \
    X("gap_kinds", "", "kinds of gaps in the table", g->data.gap_kinds)                                                \
    X("over", "", "kernels and gaps that found no room in the tables", (double)g->data.over)
static const fl_probe probe_rows[] = {PROBES(FL_PROBE_ROW)};

static double shown_mhz(fl_ladder ladder, int32_t gear) {
    return gear == FL_MFP_DEFAULT ? FL_DEFAULT : ladder.mhz[gear];
}

static void show(const fl_mfp_gpu *g, const fl_gpu_facts *facts, uint32_t gpu, fl_command *command) {
    fl_show_all(command, gpu, 0, (double[]){PROBES(FL_PROBE_VALUE)}, FL_COUNT(probe_rows));
}

static void take_records(fl_mfp_gpu *gpu, const fl_facts *facts, const fl_sample *s) {
    if (s->record_lost)
        for (uint32_t i = 0; i < facts->gpu_count; i++)
            fl_mfp_break(&gpu[i].data);
    for (uint64_t i = 0; s->record && i < s->record_count; i++) {
        const fl_kernel_record *r = &s->record[i];
        if (r->gpu < facts->gpu_count && r->kind < s->kind_count)
            fl_mfp_record(&gpu[r->gpu], &facts->gpu[r->gpu], &s->kind[r->kind], r);
    }
}

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample,
                 fl_command *command) {
    const fl_mfp_params *p = param_bytes;
    fl_mfp_gpu *gpu = gpus(state);
    take_records(gpu, facts, sample);
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        fl_mfp_step(&gpu[i], p, &facts->gpu[i], &sample->gpu[i], sample->time_ns, i, command);
        show(&gpu[i], &facts->gpu[i], i, command);
    }
    command->delay_ns = (int64_t)(p->period_ms * 1e6 + 0.5);
}

#define PICK(extended, printed) extended
static const fl_param extended_rows[] = {
#include "policies/mfgpaper_rows.h"
};
#undef PICK
#define PICK(extended, printed) printed
static const fl_param printed_rows[] = {
#include "policies/mfgpaper_rows.h"
};

#define MACHINE                                                                                                        \
    .gpu_needs = FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS) | FL_BIT(FL_GPU_POWER_W) |                         \
                 FL_BIT(FL_GPU_UTIL_GPU_PCT) | FL_BIT(FL_GPU_UTIL_MEM_PCT) | FL_BIT(FL_GPU_SM_MHZ) |                   \
                 FL_BIT(FL_GPU_MEM_MHZ),                                                                               \
    .gpu_drives = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_MEM_MHZ) | FL_BIT(FL_SET_RECORDS), .needs_records = 1,         \
    FL_PROBE_ROWS(probe_rows), .gpu_size = sizeof(fl_mfp_gpu), .init = init, .step = step

FL_POLICY(mfgpaper_extended) = {
    FL_POLICY_ABI,
    .name = "mf-gpoeo-extended",
    .summary = "MF-GPOEO's algorithms with a K_P by schedule, standard errors, and trials that are repeated",
    .source = "MF-GPOEO (IEEE TSUSC 2024), Algorithms 1-7, with rules of this project, each marked as assumed",
    FL_PARAM_ROWS(extended_rows, fl_mfp_params),
    MACHINE};

FL_POLICY(mfgpaper_printed) = {FL_POLICY_ABI,
                               .name = "mf-gpoeo-printed",
                               .summary = "MF-GPOEO's algorithms and Eq. 13 to the letter; its controller hardly moves",
                               .source = "MF-GPOEO (IEEE TSUSC 2024), Algorithms 1-7, Eq. 1-13",
                               FL_PARAM_ROWS(printed_rows, fl_mfp_params),
                               MACHINE};
