#include "policies/mfgpoeo_trial.h"

#include "policies/mfgpoeo_search.h"

#include <math.h>

enum { SURE = 2 }; /* standard errors */

static void set_clock(const fl_mfg_frame *f, int control, fl_ladder ladder, int32_t gear, int32_t *now) {
    if (*now != gear)
        fl_set_gpu(f->command, f->gpu, control, gear == FL_MFG_DEFAULT ? FL_DEFAULT : ladder.mhz[gear]);
    *now = gear;
}

void fl_mfg_set_up(const fl_mfg_frame *f, int32_t sm, int32_t mem, uint32_t records) {
    fl_mfg_gpu *g = f->g;
    set_clock(f, FL_SET_SM_MHZ, f->facts->sm, sm, &g->set_sm);
    set_clock(f, FL_SET_MEM_MHZ, f->facts->mem, mem, &g->set_mem);
    if (g->recording != records)
        fl_set_gpu(f->command, f->gpu, FL_SET_RECORDS, records);
    g->recording = records;
}

void fl_mfg_begin_window(const fl_mfg_frame *f, int32_t state, int64_t length_ns) {
    fl_mfg_gpu *g = f->g;
    g->state = state;
    g->begin_ns = f->now_ns + fl_mfg_ns(f->p->settle_ms * 1e-3);
    g->end_ns = g->begin_ns + length_ns;
    g->meter = (fl_mfg_meter){.counting = 0};
    g->extended = g->looked = 0;
}

void fl_mfg_measure(const fl_mfg_frame *f, int32_t state, int32_t sm, int32_t mem) {
    fl_mfg_set_up(f, sm, mem, 1);
    fl_mfg_begin(&f->g->data);
    fl_mfg_begin_window(f, state, f->g->window_ns);
}

/* A kernel that is bound by a clock takes as much longer as that is lower; none takes longer than that or less long
 * than before, but where the default clocks were held down by the power limit. A kind that does is not compared (not in
 * Algorithm 3). */
static void mark_implausible(const fl_mfg_frame *f, int32_t sm, int32_t mem) {
    const fl_gpu_facts *facts = f->facts;
    double least = 1, most = 1;
    if (sm != FL_MFG_DEFAULT)
        most *= fmax(fl_ladder_max(facts->sm) / facts->sm.mhz[sm], 1);
    if (mem != FL_MFG_DEFAULT)
        most *= fmax(fl_ladder_max(facts->mem) / facts->mem.mhz[mem], 1);
    const double now_mhz = fl_mfg_meter_mean(&f->g->meter, FL_MFG_SM);
    if (now_mhz > 0 && f->g->achieved_mhz > 0)
        least = fmin(1, f->g->achieved_mhz / now_mhz);
    fl_mfg_mark_varying(&f->g->data, &f->p->filter, least, most);
}

void fl_mfg_take_index(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    const fl_mfg_index i = fl_mfg_index_of(&g->data, &f->p->filter);
    g->index = i.index;
    g->error = i.error;
    g->base_error = i.base_error;
    g->matched = i.matched;
    g->loss = i.index - 1;
}

int fl_mfg_evaluate(const fl_mfg_frame *f, int32_t sm, int32_t mem) {
    fl_mfg_gpu *g = f->g;
    const double power_w = fl_mfg_meter_mean(&g->meter, FL_MFG_POWER);
    g->unpowered = !(power_w > 0);
    g->coverage = fl_mfg_coverage(&g->data);
    if (!(g->coverage > f->p->th_cover) || g->unpowered) /* Algorithm 7 line 7 */
        return FL_MFG_UNKNOWN;
    if (f->p->plausible)
        mark_implausible(f, sm, mem);
    fl_mfg_take_index(f);
    if (isnan(g->index))
        return FL_MFG_UNLIKE;
    g->bound = fmax(g->base_bound - f->p->sigma * g->error, 0);
    g->objective = fl_mfg_objective(f->p->objective, power_w, g->index);
    return FL_MFG_COMPARED;
}

int fl_mfg_goes_on(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    if (g->loss - SURE * g->error > g->base_bound)
        return 0;
    const int enough = fl_mfg_seen(&g->data) >= f->p->th_seen && g->error <= f->p->th_error;
    if (enough || g->extended + 1 >= (uint32_t)f->p->extend)
        return 0;
    g->extended++;
    g->end_ns = f->now_ns + g->window_ns;
    return 1;
}

int fl_mfg_is_hopeless(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    if (g->looked || (g->state != FL_MFG_MEMORY && g->state != FL_MFG_SEARCH) ||
        f->now_ns - g->begin_ns < g->window_ns / 4)
        return 0;
    g->looked = 1;
    const int verdict = g->state == FL_MFG_MEMORY ? fl_mfg_evaluate(f, FL_MFG_DEFAULT, g->next_mem)
                                                  : fl_mfg_evaluate(f, g->gear, g->chosen.mem);
    return verdict == FL_MFG_COMPARED && g->loss - SURE * g->error > f->p->hopeless;
}
