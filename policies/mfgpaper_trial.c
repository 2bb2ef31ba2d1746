#include "policies/mfgpaper_trial.h"

#include "policies/mfgpaper_search.h"

#include <math.h>

enum { SURE = 2 };      /* standard errors */
#define SETTLE_S 0.3    /* from setting a clock to measuring under it (assumed) */
#define ERROR_MOST 0.01 /* standard error of the index above which a further window is measured (assumed) */

static void set_clock(const fl_mfp_frame *f, int control, fl_ladder ladder, int32_t gear, int32_t *now) {
    if (*now != gear)
        fl_set_gpu(f->command, f->gpu, control, gear == FL_MFP_DEFAULT ? FL_DEFAULT : ladder.mhz[gear]);
    *now = gear;
}

void fl_mfp_set_up(const fl_mfp_frame *f, int32_t sm, int32_t mem, uint32_t records) {
    fl_mfp_gpu *g = f->g;
    set_clock(f, FL_SET_SM_MHZ, f->facts->sm, sm, &g->set_sm);
    set_clock(f, FL_SET_MEM_MHZ, f->facts->mem, mem, &g->set_mem);
    if (g->recording != records)
        fl_set_gpu(f->command, f->gpu, FL_SET_RECORDS, records);
    g->recording = records;
}

void fl_mfp_begin_window(const fl_mfp_frame *f, int32_t state, int64_t length_ns) {
    fl_mfp_gpu *g = f->g;
    g->state = state;
    g->begin_ns = f->now_ns + fl_mfp_ns(SETTLE_S);
    g->end_ns = g->begin_ns + length_ns;
    g->meter = (fl_mfp_meter){.counting = 0};
    g->extended = g->looked = 0;
}

void fl_mfp_measure(const fl_mfp_frame *f, int32_t state, int32_t sm, int32_t mem) {
    fl_mfp_set_up(f, sm, mem, 1);
    fl_mfp_begin(&f->g->data);
    fl_mfp_begin_window(f, state, f->g->window_ns);
}

/* A kernel that is bound by a clock takes as much longer as that is lower; none takes longer than that or less long
 * than before, but where the default clocks were held down by the power limit. A kind that does is not compared (not in
 * Algorithm 3). */
static void mark_implausible(const fl_mfp_frame *f, int32_t sm, int32_t mem) {
    const fl_gpu_facts *facts = f->facts;
    double least = 1, most = 1;
    if (sm != FL_MFP_DEFAULT)
        most *= fmax(fl_ladder_max(facts->sm) / facts->sm.mhz[sm], 1);
    if (mem != FL_MFP_DEFAULT)
        most *= fmax(fl_ladder_max(facts->mem) / facts->mem.mhz[mem], 1);
    const double now_mhz = fl_mfp_meter_mean(&f->g->meter, FL_MFP_SM);
    if (now_mhz > 0 && f->g->achieved_mhz > 0)
        least = fmin(1, f->g->achieved_mhz / now_mhz);
    fl_mfp_mark_varying(&f->g->data, &f->p->filter, least, most);
}

void fl_mfp_take_index(const fl_mfp_frame *f) {
    fl_mfp_gpu *g = f->g;
    const fl_mfp_index i = fl_mfp_index_of(&g->data, &f->p->filter);
    g->index = i.index;
    g->error = i.error;
    g->base_error = i.base_error;
    g->matched = i.matched;
    g->loss = i.index - 1;
}

int fl_mfp_evaluate(const fl_mfp_frame *f, int32_t sm, int32_t mem) {
    fl_mfp_gpu *g = f->g;
    const double power_w = fl_mfp_meter_mean(&g->meter, FL_MFP_POWER);
    g->unpowered = !(power_w > 0);
    g->coverage = fl_mfp_coverage(&g->data);
    if (!(g->coverage > f->p->th_cover) || g->unpowered) /* Algorithm 7 line 7 */
        return FL_MFP_UNKNOWN;
    if (f->p->plausible)
        mark_implausible(f, sm, mem);
    fl_mfp_take_index(f);
    if (isnan(g->index))
        return FL_MFP_UNLIKE;
    g->bound = fmax(g->base_bound - f->p->sigma * g->error, 0);
    g->objective = fl_mfp_objective(f->p->objective, power_w, g->index);
    return FL_MFP_COMPARED;
}

int fl_mfp_goes_on(const fl_mfp_frame *f) {
    fl_mfp_gpu *g = f->g;
    if (g->loss - SURE * g->error > g->base_bound)
        return 0;
    const int enough = fl_mfp_seen(&g->data) >= f->p->th_seen && g->error <= ERROR_MOST;
    if (enough || g->extended + 1 >= (uint32_t)f->p->extend)
        return 0;
    g->extended++;
    g->end_ns = f->now_ns + g->window_ns;
    return 1;
}

int fl_mfp_is_hopeless(const fl_mfp_frame *f) {
    fl_mfp_gpu *g = f->g;
    if (g->looked || (g->state != FL_MFP_MEMORY && g->state != FL_MFP_SEARCH) ||
        f->now_ns - g->begin_ns < g->window_ns / 4)
        return 0;
    g->looked = 1;
    const int verdict = g->state == FL_MFP_MEMORY ? fl_mfp_evaluate(f, FL_MFP_DEFAULT, g->next_mem)
                                                  : fl_mfp_evaluate(f, g->gear, g->chosen.mem);
    return verdict == FL_MFP_COMPARED && g->loss - SURE * g->error > f->p->hopeless;
}
