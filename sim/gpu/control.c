/* What acts on a GPU's clock from outside the trace: clock sets that settle, and the power limit of the board. */
#include "sim/gpu/gpu.h"

#include "models/laws/device.h"
#include "sim/base/base.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* ---- clock sets on their way ---- */

static uint32_t index_of(const int32_t *mhz, uint32_t count, double value) {
    int i = fl_ladder_index(mhz, count, value);
    return i < 0 ? count - 1 : (uint32_t)i;
}

void fl_actuator_open(fl_actuator *a, const fl_device *dev) {
    a->dev = dev;
    a->count = 0;
    a->sm_default = index_of(dev->sm_mhz, dev->sm_count, dev->default_sm_mhz);
    a->mem_default = index_of(dev->mem_mhz, dev->mem_count, dev->default_mem_mhz);
}

void fl_actuator_set(fl_actuator *a, int64_t called_ps, double sm_mhz, double mem_mhz) {
    fl_pending p = {.at_ps = called_ps + a->dev->actuator.settle_ns * FL_PS_PER_NS, .sm = -1, .mem = -1};
    if (!isnan(sm_mhz))
        p.sm = (int32_t)(sm_mhz < 0 ? a->sm_default : index_of(a->dev->sm_mhz, a->dev->sm_count, sm_mhz));
    if (!isnan(mem_mhz))
        p.mem = (int32_t)(mem_mhz < 0 ? a->mem_default : index_of(a->dev->mem_mhz, a->dev->mem_count, mem_mhz));
    if (a->count < FL_PENDING_MAX) {
        a->queue[a->count++] = p;
        return;
    }
    fl_pending *last = &a->queue[FL_PENDING_MAX - 1];
    if (p.sm < 0)
        p.sm = last->sm;
    if (p.mem < 0)
        p.mem = last->mem;
    *last = p;
}

bool fl_actuator_take(fl_actuator *a, int64_t t, uint32_t *sm, uint32_t *mem) {
    uint32_t taken = 0, was_sm = *sm, was_mem = *mem;
    if (!a->count)
        return false;
    while (taken < a->count && a->queue[taken].at_ps <= t) {
        if (a->queue[taken].sm >= 0)
            *sm = (uint32_t)a->queue[taken].sm;
        if (a->queue[taken].mem >= 0)
            *mem = (uint32_t)a->queue[taken].mem;
        taken++;
    }
    a->count -= taken;
    memmove(a->queue, a->queue + taken, a->count * sizeof *a->queue);
    return *sm != was_sm || *mem != was_mem;
}

/* ---- the power limit of a board: a controller with a period, a filter and a power law ---- */

static double keep_after(const fl_wall_spec *spec, double dt_ps) {
    return spec->filter_ns > 0 ? exp(-dt_ps / FL_PS_PER_NS / (double)spec->filter_ns) : 0;
}

void fl_wall_open(fl_wall *w, const fl_gpu *g) {
    const fl_wall_spec *spec = &g->dev->wall;
    *w = (fl_wall){.spec = spec, .next_ps = FL_TIME_NEVER};
    if (spec->period_ns <= 0)
        return;
    w->period_ps = spec->period_ns * FL_PS_PER_NS;
    w->keep = keep_after(spec, (double)w->period_ps);
    w->default_mw = w->set_mw = w->limit_mw = llround(g->dev->power_default_w * 1000);
    w->dealt_mw = INT64_MAX;
    w->filtered_mw = (double)fl_gpu_idle_mw(g);
    fl_wall_wake(w, g, 0);
}

/* Power is below a limit that rises, so nothing is left to recover from. */
static void put_limit(fl_wall *w) {
    const int64_t was = w->limit_mw;
    w->limit_mw = w->set_mw < w->dealt_mw ? w->set_mw : w->dealt_mw;
    if (w->limit_mw > was)
        w->recover_ps = 0;
}

bool fl_wall_limit(fl_wall *w, double watts) {
    if (!w->period_ps)
        return false;
    w->set_mw = watts < 0 ? w->default_mw : llround(watts * 1000);
    put_limit(w);
    return true;
}

void fl_wall_deal(fl_wall *w, int64_t mw) {
    w->dealt_mw = mw;
    put_limit(w);
}

static int64_t held_to_mw(const fl_wall *w) {
    return llround(1000 * fl_wall_allows_w(w->spec, (double)w->limit_mw / 1000));
}

/* An upper bound: every stream of the GPU runs the class of highest power at full speed. */
static bool in_reach(const fl_wall *w, const fl_gpu *g) {
    const int64_t most = fl_gpu_base_mw(g) + g->leak_mw + (int64_t)g->rates->max_dyn_mw * g->stream_count;
    return w->acts || most > held_to_mw(w) || w->filtered_mw > (double)held_to_mw(w);
}

/* The filter resumes with the mean power of the time that it slept through. */
void fl_wall_wake(fl_wall *w, const fl_gpu *g, int64_t t) {
    if (w->next_ps != FL_TIME_NEVER || w->limit_mw <= 0 || !w->period_ps || !g->open || !in_reach(w, g))
        return;
    if (t > w->seen_ps)
        w->filtered_mw = fl_real(g->sums.energy_fj - w->seen_fj) / (double)(t - w->seen_ps);
    w->seen_fj = g->sums.energy_fj;
    w->seen_ps = t;
    w->next_ps = (t / w->period_ps + 1) * w->period_ps;
}

static uint32_t index_below(const fl_device *dev, double mhz) {
    uint32_t i = dev->sm_count;
    while (i > 1 && dev->sm_mhz[i - 1] > mhz)
        i--;
    return i - 1;
}

/* Return whether an instant of the slower grid lies between the last look and t. */
static bool may_rise(const fl_wall *w, int64_t t) {
    const int64_t grid = w->spec->rise_ns * FL_PS_PER_NS;
    return t < w->recover_ps || grid <= 0 || t / grid > w->seen_ps / grid;
}

static void move_ceiling(fl_wall *w, const fl_gpu *g, int64_t t) {
    const fl_wall_spec *spec = w->spec;
    const double asked = g->dev->sm_mhz[g->lock_sm], limit = (double)held_to_mw(w), aim = spec->aim * limit;
    const bool over = w->filtered_mw > limit;
    if (over)
        w->recover_ps = t + spec->recover_ns * FL_PS_PER_NS;
    if (over && (!w->acts || w->ceiling_mhz > asked))
        w->ceiling_mhz = asked;
    if (over || (w->acts && w->filtered_mw < aim && may_rise(w, t))) {
        const double moved = w->ceiling_mhz * pow(aim / w->filtered_mw, spec->exponent);
        w->ceiling_mhz = fmax(fmin(moved, w->ceiling_mhz + spec->rise_mhz), g->dev->sm_mhz[0]);
    }
    w->acts = (over || w->acts) && w->ceiling_mhz < asked;
}

static void jump_to_fit(fl_wall *w, const fl_gpu *g, fl_wall_predict predict, void *user) {
    uint32_t sm = g->lock_sm;
    int64_t mw = predict(user, sm);
    if (mw < 0)
        return;
    while (sm > 0 && mw > held_to_mw(w))
        mw = predict(user, --sm);
    w->acts = sm < g->lock_sm;
    w->ceiling_mhz = g->dev->sm_mhz[sm];
}

void fl_wall_at(fl_wall *w, fl_gpu *g, int64_t t, fl_wall_predict predict, void *user) {
    if (w->next_ps > t)
        return;
    if (!g->open) { /* the program has ended, and with it the work that the wall held down */
        w->acts = false;
        w->next_ps = FL_TIME_NEVER;
        g->wall_sm = g->dev->sm_count - 1;
        return;
    }
    const double dt = (double)(t - w->seen_ps), mean = fl_real(g->sums.energy_fj - w->seen_fj) / dt;
    const double keep = t - w->seen_ps == w->period_ps ? w->keep : keep_after(w->spec, dt);
    w->filtered_mw = keep * w->filtered_mw + (1 - keep) * mean;
    if (w->spec->ideal)
        jump_to_fit(w, g, predict, user);
    else
        move_ceiling(w, g, t);
    w->seen_fj = g->sums.energy_fj;
    w->seen_ps = t;
    g->wall_sm = w->acts ? index_below(g->dev, w->ceiling_mhz) : g->dev->sm_count - 1;
    w->next_ps = in_reach(w, g) ? t + w->period_ps : FL_TIME_NEVER;
}
