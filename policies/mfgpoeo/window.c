#include "policies/mfgpoeo/window.h"

#include <math.h>

static const double AFTER_IDLE_S = 1;

/* ---- what is set --------------------------------------------------------------------------------------------------
 */

static void set_clock(const fl_mfg_frame *f, int control, fl_ladder ladder, int32_t gear, int32_t *now) {
    if (*now != gear)
        fl_set_gpu(f->command, f->gpu, control, gear == FL_MFG_DEFAULT ? FL_DEFAULT : ladder.mhz[gear]);
    *now = gear;
}

void fl_mfg_set_clocks(const fl_mfg_frame *f, int32_t sm, int32_t mem) {
    f->g->sm = sm;
    f->g->mem = mem;
    set_clock(f, FL_SET_SM_MHZ, f->facts->sm, sm, &f->g->set_sm);
    set_clock(f, FL_SET_MEM_MHZ, f->facts->mem, mem, &f->g->set_mem);
}

void fl_mfg_set_records(const fl_mfg_frame *f, uint32_t on) {
    if (f->g->recording != on)
        fl_set_gpu(f->command, f->gpu, FL_SET_RECORDS, on);
    f->g->recording = on;
}

void fl_mfg_reset_limit(const fl_mfg_frame *f) { fl_set_gpu(f->command, f->gpu, FL_SET_POWER_LIMIT_W, FL_DEFAULT); }

/* ---- one window ---------------------------------------------------------------------------------------------------
 */

static int passed(const fl_mfg_frame *f, double seconds) {
    return f->now_ns - f->g->window.since_ns >= llround(seconds * 1e9);
}

static void enter(const fl_mfg_frame *f, uint32_t part) {
    fl_mfg_window *w = &f->g->window;
    w->part = part;
    w->since_ns = f->now_ns;
    w->gate = (fl_mfg_gate){.samples = 0};
}

void fl_mfg_begin(const fl_mfg_frame *f, fl_mfg_plan plan) {
    f->g->window = (fl_mfg_window){.plan = plan};
    fl_mfg_clear(&f->g->data);
    enter(f, FL_MFG_REST);
}

static void open_window(const fl_mfg_frame *f) {
    enter(f, FL_MFG_OPEN);
    if (!f->g->window.plan.traced)
        return;
    fl_mfg_break(&f->g->data);
    fl_mfg_set_records(f, 1);
}

/* Returns 1 where nothing comes after the gate. */
static int pass_gate(const fl_mfg_frame *f) {
    fl_mfg_window *w = &f->g->window;
    w->passed++;
    if (w->passed < w->plan.gates)
        enter(f, FL_MFG_GATE);
    else if (w->plan.seconds > 0)
        open_window(f);
    else
        return 1;
    return 0;
}

/* Takes this step's sample. Returns 1 where the gate is left. */
static int watch_gate(const fl_mfg_frame *f) {
    fl_mfg_window *w = &f->g->window;
    if (!fl_gpu_known(f->sample, FL_GPU_UTIL_GPU_PCT))
        return 0;
    const int verdict = fl_mfg_gate_sample(&w->gate, f->sample->value[FL_GPU_UTIL_GPU_PCT] > 0);
    if (verdict == FL_MFG_GATE_LIMITS && !w->plan.untouched) {
        f->g->limits++;
        set_clock(f, FL_SET_SM_MHZ, f->facts->sm, 0, &f->g->set_sm);
    }
    return verdict == FL_MFG_GATE_PASSES;
}

/* The second round of the gate is over: limits back, and a pause. */
static void leave_idleness(const fl_mfg_frame *f) {
    fl_mfg_set_clocks(f, f->g->sm, f->g->mem);
    enter(f, FL_MFG_BACK);
}

static int close_window(const fl_mfg_frame *f) {
    fl_mfg_gpu *g = f->g;
    fl_mfg_window *w = &g->window;
    const int64_t length_ns = f->now_ns - w->since_ns;
    w->totals.seconds += (double)length_ns * 1e-9;
    w->totals.kernels = g->data.kernels;
    if (w->plan.traced)
        g->traced_ns += length_ns;
    fl_mfg_set_records(f, 0);
    if (w->plan.traced ? w->totals.kernels > 0 : w->totals.samples > 0)
        return 1;
    enter(f, FL_MFG_GATE);
    return 0;
}

int fl_mfg_advance(const fl_mfg_frame *f) {
    fl_mfg_window *w = &f->g->window;
    if (w->part == FL_MFG_REST) {
        if (!passed(f, w->plan.rest_s))
            return 0;
        if (w->plan.baseline) {
            fl_mfg_set_clocks(f, FL_MFG_DEFAULT, FL_MFG_DEFAULT);
            fl_mfg_reset_limit(f);
        }
        enter(f, FL_MFG_LEAD);
    }
    if (w->part == FL_MFG_OPEN) {
        fl_mfg_sample(&w->totals, f->sample);
        if (!passed(f, w->plan.seconds))
            return 0;
        if (close_window(f))
            return 1;
    }
    if (w->part == FL_MFG_LEAD && passed(f, w->plan.lead_s))
        enter(f, FL_MFG_GATE);
    if (w->part == FL_MFG_BACK && passed(f, AFTER_IDLE_S) && pass_gate(f))
        return 1;
    /* A gate that passes and the next one look at the same sample. */
    while (w->part == FL_MFG_GATE && watch_gate(f)) {
        if (w->gate.idle)
            leave_idleness(f);
        else if (pass_gate(f))
            return 1;
    }
    return 0;
}

void fl_mfg_record(fl_mfg_gpu *g, const fl_gpu_facts *facts, int64_t now_ns, const fl_kernel_kind *kind,
                   const fl_kernel_record *record) {
    enum { CORES = 10240, CORES_PER_SM = 128 };
    const fl_mfg_window *w = &g->window;
    const fl_mfg_trace trace = {.begin_ns = w->since_ns,
                                .end_ns = now_ns,
                                .cores = facts->sm_count ? (uint64_t)facts->sm_count * CORES_PER_SM : CORES};
    if (w->part == FL_MFG_OPEN && w->plan.traced)
        fl_mfg_add(&g->data, &trace, kind, record);
}
