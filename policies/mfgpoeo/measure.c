/* MF-GPOEO as released: one window, with the idle gate before it, totals, and monitoring. */
#include "policies/mfgpoeo/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stdint.h>

enum { FL_MFG_REST, FL_MFG_LEAD, FL_MFG_GATE, FL_MFG_BACK, FL_MFG_OPEN }; /* parts of a window, in order */

/* ---- the idle gate ---- */

enum { SAMPLES = 15, BUSY_AT_ONCE = 5, BUSY_AGAIN = 7 };

static uint32_t ones(uint32_t bits) {
    uint32_t count = 0;
    for (; bits; bits &= bits - 1)
        count++;
    return count;
}

int fl_mfg_gate_sample(fl_mfg_gate *gate, int busy) {
    if (gate->idle) {
        gate->recent = (gate->recent << 1 | (busy != 0)) & ((UINT32_C(1) << SAMPLES) - 1);
        return ones(gate->recent) >= BUSY_AGAIN ? FL_MFG_GATE_PASSES : FL_MFG_GATE_WAITS;
    }
    gate->samples++;
    gate->busy += busy != 0;
    if (gate->busy >= BUSY_AT_ONCE)
        return FL_MFG_GATE_PASSES;
    gate->idle = gate->samples >= SAMPLES;
    return gate->idle ? FL_MFG_GATE_LIMITS : FL_MFG_GATE_WAITS;
}

/* ---- totals of a window ---- */

void fl_mfg_sample(fl_mfg_totals *t, const fl_gpu_sample *g) {
    static const int signal[FL_MFG_MEANS] = {[FL_MFG_POWER] = FL_GPU_POWER_W,
                                             [FL_MFG_SM] = FL_GPU_SM_MHZ,
                                             [FL_MFG_MEM] = FL_GPU_MEM_MHZ,
                                             [FL_MFG_UTIL_GPU] = FL_GPU_UTIL_GPU_PCT,
                                             [FL_MFG_UTIL_MEM] = FL_GPU_UTIL_MEM_PCT};
    for (int i = 0; i < FL_MFG_MEANS; i++)
        if (!fl_gpu_known(g, signal[i]) || !isfinite(g->value[signal[i]]))
            return;
    if (!(g->value[FL_GPU_UTIL_GPU_PCT] > 0))
        return;
    for (int i = 0; i < FL_MFG_MEANS; i++)
        t->sum[i] += i == FL_MFG_POWER ? floor(g->value[signal[i]]) : g->value[signal[i]];
    t->samples++;
}

void fl_mfg_totals_merge(fl_mfg_totals *old, const fl_mfg_totals *now, double d) {
    old->seconds = now->seconds + d * old->seconds;
    old->kernels = now->kernels + d * old->kernels;
    old->samples = now->samples + d * old->samples;
    for (int i = 0; i < FL_MFG_MEANS; i++)
        old->sum[i] = now->sum[i] + d * old->sum[i];
}

double fl_mfg_mean_of(const fl_mfg_totals *t, int which) { return t->samples > 0 ? t->sum[which] / t->samples : 0; }

double fl_mfg_apart(double a, double b) { return a + b == 0 ? 0 : fabs(a - b) / (a + b); }

/* ---- monitoring ---- */

enum { RECENT = 5, BAD = 3, CLOSE = 4, LONGEST = 8 }; /* CLOSE: windows that follow each other at once */

double fl_mfg_distance(const double a[FL_MFG_MEANS], const double b[FL_MFG_MEANS], const double most[FL_MFG_MEANS]) {
    double away = 0, all = 0;
    for (int i = 0; i < FL_MFG_MEANS; i++) {
        away += fabs(a[i] - b[i]) / most[i];
        all += (a[i] + b[i]) / most[i];
    }
    return all == 0 ? 0 : away / all;
}

int fl_mfg_watched(fl_mfg_watch *w, double distance, double th_ev) {
    const uint32_t bad = distance > th_ev;
    uint32_t count = 0;
    w->windows++;
    w->good = bad || w->windows <= CLOSE ? 0 : w->good + 1;
    w->recent = (w->recent << 1 | bad) & ((UINT32_C(1) << RECENT) - 1);
    for (uint32_t i = 0; i < RECENT; i++)
        count += w->recent >> i & 1;
    return count >= BAD;
}

double fl_mfg_watch_pause(const fl_mfg_watch *w) {
    double pause = w->good > 0;
    for (uint32_t i = 1; i < w->good && pause < LONGEST; i++)
        pause *= 2;
    return pause;
}

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
