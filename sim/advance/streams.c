/* Several streams of one island between two boundaries. Every kernel is work of a length when alone, done at a rate in
 * 1/65536; work done rounds down and finish times round up. A boundary only reads: `left` and `since` move when a rate
 * or a clock changes, so the positions of boundaries cannot affect the result. All completions of one instant are
 * applied before the shares are set once, so the order of simultaneous events cannot affect it either.
 *
 * This is the general way. It defines the results of the faster ways that replace it where they apply: launches.c,
 * free.c and lanes.c. */
#include "sim/advance/inside.h"

#include "models/laws/laws.h"
#include "sim/advance/advance.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/workload/workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Chooses the faster way through several streams that applies now. Both give the bits of the general way (streams.c),
 * so the moment of the choice cannot affect the result. */

static bool is_due(fl_shortcut *s) {
    const bool due = s->may && !s->sit_out;
    s->sit_out -= s->sit_out > 0;
    return due;
}

/* Beginning a shortcut costs a look at every lane, and an event of the general way costs one too. A shortcut that
 * passed only a few events twice in a row pauses. */
static inline void after_shortcut(fl_shortcut *s, uint64_t passed) {
    enum { FEW = 24, SHORTS_MAX = 6 };
    s->shorts = passed >= FEW ? 0 : s->shorts + (s->shorts < SHORTS_MAX);
    s->sit_out = s->shorts > 1 ? (uint64_t)FEW << s->shorts : 0;
}

/* Passes as many events from t on as a faster way can, up to `until`; returns the instant reached. */
static int64_t fl_streams_shortcut(fl_course *c, int64_t t, int64_t until) {
    fl_gpu *g = c->gpu[0];
    uint64_t passed;
    if (g->records.on || g->lost)
        return t;
    if (!g->scarce && (g->active || !g->gate_ps) && is_due(&c->free)) {
        t = fl_streams_free(c, t, until, &passed);
        after_shortcut(&c->free, passed);
    } else if (is_due(&c->lanes)) {
        const uint64_t calm = c->free.may ? 4 * (uint64_t)c->is->stream_count + c->free.sit_out : UINT64_MAX;
        t = fl_streams_lanes(c, t, until, calm, &passed);
        after_shortcut(&c->lanes, passed);
        c->free.sit_out -= passed < c->free.sit_out ? passed : c->free.sit_out;
        g->taken[FL_PATH_VECTOR] += passed > 0;
    }
    return t;
}

/* ---- streams ---- */

static inline void charge(fl_lane *l, int64_t done) {
    fl_gpu_charge(l->gpu, l->class_id, done - l->p.charged_ps);
    l->p.charged_ps = done;
}

static inline int64_t dyn_at_rate(const fl_lane *l) { return ((int64_t)l->dyn_mw * l->p.rate) >> 16; }

/* A power counts only once time passes at it: an op of length 0 draws nothing. */
static inline void note_peaks(fl_course *c) {
    for (uint32_t i = 0; i < c->is->gpu_count; i++) {
        fl_gpu *g = c->gpu[i];
        if (g->peak_due && g->active && fl_gpu_cool_mw(g) > g->peak_mw)
            g->peak_mw = fl_gpu_cool_mw(g);
        g->peak_due = false;
    }
}

/* ---- starting and finishing ---- */

/* spun: the kernel has been on the GPU since began_ps. */
static inline void start_kernel(fl_lane *l, int64_t t, bool spun) {
    fl_gpu *g = l->gpu;
    const fl_row *row = &g->rates->row[l->class_id];
    l->phase = FL_PHASE_RUN;
    l->p.start_ps = l->p.since_ps = t;
    if (!l->in_parts && !spun)
        l->began_ps = t;
    l->length_ps = l->p.left_ps = fl_length_ps(l->length_ps, row->mul);
    l->p.charged_ps = 0;
    l->p.rate = FL_SHARE_ONE;
    *l->p.event_ps = t + l->p.left_ps;
    l->sms = (uint32_t)row->sms * 2;
    l->memory = (uint32_t)row->memory * 2;
    l->dyn_mw = row->dyn_mw;
    g->demand_sms += l->sms;
    g->demand_memory += l->memory;
    if (!g->active++)
        fl_gpu_wake(g, t);
    if (row->resident && !g->resident++)
        g->busy_since_ps = t;
    g->dyn_now_mw += row->dyn_mw;
    g->touched = true;
}

static inline void finish_kernel(fl_course *c, fl_lane *l, int64_t t) {
    fl_gpu *g = l->gpu;
    const fl_row *row = &g->rates->row[l->class_id];
    charge(l, l->p.left_ps);
    g->demand_sms -= l->sms;
    g->demand_memory -= l->memory;
    if (!--g->active)
        fl_gpu_rest(g, t);
    g->dyn_now_mw -= dyn_at_rate(l);
    g->touched = true;
    if (row->resident) {
        if (!--g->resident)
            g->sums.busy_ps += t - g->busy_since_ps;
        l->in_parts = row->resident == FL_RESIDENT_PART;
        g->sums.kernels += !l->in_parts;
        if (g->records.on && !l->in_parts)
            fl_lane_record(l, t);
    } else if (g->w->class[l->class_id].iteration) {
        g->sums.iterations++;
        l->iteration_ps[l->iterations++] = t;
        c->marked = c->stops;
    }
    l->next++;
    l->phase = FL_PHASE_FRESH;
    *l->p.event_ps = FL_TIME_NEVER;
    if (l->marks < l->s->mark_count && l->next == l->s->mark[l->marks])
        l->mark_ps[l->marks++] = t;
    if (l->s->served && l->next == l->launched)
        host_ends(c, t);
    if (l->next == l->s->count) {
        l->phase = FL_PHASE_DONE;
        c->done++;
        if (!l->s->launched)
            host_ends(c, t);
    }
}

/* ---- kernels that spin ----
 * The kernel of a collective is on the GPU before the other GPUs have come. It draws the power of its class and does
 * no work until they are there. Its share of the SMs is small and is not counted. */

static void begin_spin(fl_lane *l, uint32_t class_id, int64_t t) {
    fl_gpu *g = l->gpu;
    const fl_row *row = &g->rates->row[class_id];
    l->spinning = true;
    l->class_id = class_id;
    l->p.since_ps = t;
    if (!l->in_parts)
        l->began_ps = t;
    l->p.charged_ps = 0;
    l->dyn_mw = row->dyn_mw;
    if (!g->active++)
        fl_gpu_wake(g, t);
    if (row->resident && !g->resident++)
        g->busy_since_ps = t;
    g->dyn_now_mw += row->dyn_mw;
    g->touched = true;
}

static void end_spin(fl_lane *l, int64_t t) {
    fl_gpu *g = l->gpu;
    charge(l, t - l->p.since_ps);
    l->spinning = false;
    if (!--g->active)
        fl_gpu_rest(g, t);
    if (g->rates->row[l->class_id].resident && !--g->resident)
        g->sums.busy_ps += t - g->busy_since_ps;
    g->dyn_now_mw -= l->dyn_mw;
    g->touched = true;
}

/* ---- barriers ---- */

/* Time lost at barriers: the op has everything it needs of its own GPU and waits for another. */
static void stand_at_barrier(const fl_course *c, fl_lane *l, const fl_wait *wait, size_t count, int64_t t) {
    fl_gpu *g = l->gpu;
    for (size_t i = 0; i < count; i++) {
        const fl_lane *on = c->lane[wait[i].stream];
        if (on->gpu == g && on->next < wait[i].done)
            return;
    }
    l->at_barrier = true;
    if (!g->at_barrier++)
        g->barrier_since_ps = t;
    int64_t gap_ns, work_ns;
    uint32_t class_id;
    fl_workload_op(l->s, l->next, &gap_ns, &work_ns, &class_id);
    if (c->w->class[class_id].spins && !gap_ns) /* with a gap, the kernel is not launched yet */
        begin_spin(l, class_id, t);
}

static void leave_barrier(fl_lane *l, int64_t t) {
    fl_gpu *g = l->gpu;
    l->at_barrier = false;
    if (l->spinning)
        end_spin(l, t);
    if (!--g->at_barrier)
        g->barrier_ps += t - g->barrier_since_ps;
}

/* Lets a fresh op begin its gap, or the kernel itself, if everything it waits for has happened. True if it moved. */
static inline bool begin_op(fl_course *c, fl_lane *l, int64_t t) {
    const fl_stream *s = l->s;
    bool spun = false;
    if ((s->launched && l->launched <= l->next) || l->gpu->lost)
        return false;
    if (s->wait_first) {
        const uint32_t first = s->wait_first[l->next], count = s->wait_first[l->next + 1] - first;
        if (!wait_over(c, s->wait + first, count)) {
            if (c->w->barriers && !l->at_barrier)
                stand_at_barrier(c, l, s->wait + first, count, t);
            return false;
        }
        spun = l->spinning;
        if (l->at_barrier)
            leave_barrier(l, t);
    }
    int64_t gap_ns;
    fl_workload_op(s, l->next, &gap_ns, &l->length_ps, &l->class_id); /* work in ns until the kernel starts */
    if (gap_ns && c->host && gap_is_host(l)) {
        l->phase = FL_PHASE_GAP;
        start_host(c, &l->p, c->w->class[l->class_id].host, gap_ns, t);
    } else if (gap_ns) {
        l->phase = FL_PHASE_GAP;
        *l->p.event_ps = t + gap_ns * FL_PS_PER_NS;
    } else {
        start_kernel(l, t, spun);
    }
    return true;
}

/* ---- shares ---- */

static inline void set_rate(fl_work *p, uint32_t rate, int64_t t) {
    if (rate == p->rate)
        return;
    if (t > p->since_ps) {
        int64_t done = fl_work_done(p, t);
        p->left_ps -= done;
        p->charged_ps -= done; /* below zero: work done before since_ps and not charged yet */
        p->since_ps = t;
    }
    p->rate = rate;
    *p->event_ps = fl_work_ends(t, p->left_ps, rate);
}

typedef struct fl_sharers { /* the users of one GPU's shares: lanes first, then host work on an APU's bus */
    uint32_t sms[FL_SHARES_MAX], memory[FL_SHARES_MAX], rate[FL_SHARES_MAX];
    fl_work *who[FL_SHARES_MAX];
    size_t count; /* at most FL_SHARES_MAX: fl_workload_finish refuses more streams, fl_node_open more threads */
} fl_sharers;

static inline void add_sharer(fl_sharers *s, fl_work *p, uint32_t sms, uint32_t memory) {
    s->sms[s->count] = sms;
    s->memory[s->count] = memory;
    s->rate[s->count] = FL_SHARE_ONE;
    s->who[s->count++] = p;
}

/* Host work that moves data through the bus of an APU; returns the sum of its demands. */
static int64_t add_host_sharers(const fl_course *c, fl_sharers *s) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < c->is->stream_count; i++) {
        fl_lane *l = c->mine[i];
        if (l->phase != FL_PHASE_GAP || !gap_is_host(l))
            continue;
        const uint32_t traffic = c->host[c->w->class[l->class_id].host].traffic;
        add_sharer(s, &l->p, 0, traffic);
        sum += traffic;
    }
    for (uint32_t i = 0; i < c->is->thread_count; i++) {
        fl_host_thread *h = &c->thread[i];
        if (!h->computing)
            continue;
        add_sharer(s, &h->p, 0, c->host[h->load].traffic);
        sum += c->host[h->load].traffic;
    }
    return sum;
}

/* Sets the shares of one GPU on which a resource is, or was, scarce. */
static __attribute__((noinline)) void divide(fl_course *c, fl_gpu *g, bool scarce, int64_t t) {
    fl_sharers s;
    s.count = 0;
    fl_lane *lane[FL_SHARES_MAX];
    for (uint32_t i = 0; i < c->is->stream_count; i++) {
        fl_lane *l = c->mine[i];
        if (l->phase != FL_PHASE_RUN || l->gpu != g)
            continue;
        lane[s.count] = l;
        add_sharer(&s, &l->p, l->sms, l->memory);
    }
    const size_t lanes = s.count;
    if (c->shared_bus)
        g->scarce = scarce |= add_host_sharers(c, &s) + g->demand_memory > c->capacity;
    if (scarce && s.count)
        fl_shares_rates(s.sms, s.memory, s.rate, s.count, c->capacity, c->interference);
    g->dyn_now_mw = 0;
    for (size_t i = 0; i < s.count; i++)
        set_rate(s.who[i], s.rate[i], t);
    for (size_t i = 0; i < lanes; i++)
        g->dyn_now_mw += dyn_at_rate(lane[i]);
    for (uint32_t i = 0; i < c->is->stream_count; i++)
        if (c->mine[i]->spinning && c->mine[i]->gpu == g)
            g->dyn_now_mw += c->mine[i]->dyn_mw;
}

/* Sets the shares of one GPU; true where that moved the end of a kernel. The usual case, where nothing is scarce, must
 * be cheap, so it is handled at once. */
static inline bool set_shares(fl_course *c, fl_gpu *g, int64_t t) {
    const bool scarce = g->demand_sms > FL_SHARE_ONE || g->demand_memory > c->capacity, was = g->scarce;
    g->peak_due = true;
    g->touched = false;
    g->scarce = scarce;
    if (!scarce && !was && !c->shared_bus)
        return false;
    divide(c, g, scarce, t);
    return true;
}

/* ---- the loop ---- */

static inline int64_t earliest(const fl_course *c, uint32_t *who) {
    const int64_t *event = c->event_ps;
    const uint32_t n = c->is->stream_count + c->is->thread_count;
    int64_t t = FL_TIME_NEVER;
    uint32_t first = 0;
    for (uint32_t i = 0; i < n; i++) {
        first = event[i] < t ? i : first;
        t = event[i] < t ? event[i] : t;
    }
    *who = first;
    return t;
}

/* Begins everything that can begin at t, until nothing moves any more. */
static void begin_all(fl_course *c, int64_t t) {
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint32_t i = 0; i < c->is->thread_count; i++) {
            fl_host_thread *h = &c->thread[i];
            while ((*h->p.event_ps == t || h->waiting) && fl_streams_thread(c, h, t))
                moved = true;
        }
        for (uint32_t i = 0; i < c->is->stream_count; i++)
            if (c->mine[i]->phase == FL_PHASE_FRESH)
                moved |= begin_op(c, c->mine[i], t);
    }
}

static inline void pass_event(fl_course *c, uint32_t who, int64_t t) {
    if (who < c->is->stream_count) {
        fl_lane *l = c->mine[who];
        if (l->phase == FL_PHASE_GAP) {
            if (c->host && gap_is_host(l))
                end_host(c, &l->p, c->w->class[l->class_id].host, t);
            if (l->gpu->lost) {
                l->phase = FL_PHASE_LOST;
                *l->p.event_ps = FL_TIME_NEVER;
            } else {
                start_kernel(l, t, false);
            }
        } else {
            finish_kernel(c, l, t);
            if (c->simple && l->phase == FL_PHASE_FRESH)
                begin_op(c, l, t);
        }
    }
    if (!c->simple)
        begin_all(c, t);
}

/* Call it before time passes: gives the running ops their shares. True where that moved the end of a kernel. */
static inline bool share_all(fl_course *c, int64_t t) {
    bool moved = false;
    for (uint32_t i = 0; i < c->is->gpu_count; i++)
        if (c->gpu[i]->touched)
            moved |= set_shares(c, c->gpu[i], t);
    return moved;
}

int64_t fl_streams_advance(fl_course *c, int64_t until) {
    int64_t t = c->gpu[0]->now_ps;
    const uint32_t all = c->is->stream_count + c->is->thread_count;
    c->marked = false;
    begin_all(c, t); /* at the start of a run, and what a boundary's own instant lets begin */
    for (;;) {       /* event by event; those of one instant follow each other before shares are set */
        uint32_t who;
        if ((c->free.may || c->lanes.may) && !c->stops)
            t = fl_streams_shortcut(c, t, until);
        int64_t next = earliest(c, &who);
        if (next > t) {
            if (share_all(c, t))
                next = earliest(c, &who);
            if (next > until || c->done == all || c->marked)
                break;
            note_peaks(c);
            t = next;
        } else if (c->done == all) {
            break;
        }
        pass_event(c, who, t);
    }
    int64_t reached = c->done == all || c->marked ? t : until;
    if (reached > t)
        note_peaks(c);
    for (uint32_t i = 0; i < c->is->stream_count; i++)
        if (c->mine[i]->phase == FL_PHASE_RUN)
            charge(c->mine[i], fl_work_done(&c->mine[i]->p, reached));
        else if (c->mine[i]->spinning)
            charge(c->mine[i], reached - c->mine[i]->p.since_ps);
    return reached;
}

void fl_streams_rescale(fl_course *c, fl_gpu *g, const fl_clock_rates *before, int64_t t) {
    g->demand_sms = g->demand_memory = g->dyn_now_mw = 0;
    for (uint32_t i = 0; i < c->is->stream_count; i++) {
        fl_lane *l = c->mine[i];
        if (l->gpu == g && l->spinning) {
            l->p.since_ps = t;
            l->p.charged_ps = 0;
            l->dyn_mw = g->rates->row[l->class_id].dyn_mw;
            g->dyn_now_mw += l->dyn_mw;
        }
        if (l->gpu != g || l->phase != FL_PHASE_RUN)
            continue;
        int64_t gap_ns, work_ns;
        uint32_t class_id;
        fl_workload_op(l->s, l->next, &gap_ns, &work_ns, &class_id);
        const fl_row *row = &g->rates->row[class_id];
        int64_t was = fl_length_ps(work_ns, before->row[class_id].mul);
        int64_t left = l->p.left_ps - fl_work_done(&l->p, t); /* charged up to t at the boundary, at the old power */
        l->length_ps = fl_length_ps(work_ns, row->mul);
        l->p.left_ps = fl_rescale_ps(left, was, l->length_ps);
        l->p.since_ps = t;
        l->p.charged_ps = 0;
        *l->p.event_ps = fl_work_ends(t, l->p.left_ps, l->p.rate);
        l->sms = (uint32_t)row->sms * 2;
        l->memory = (uint32_t)row->memory * 2;
        l->dyn_mw = row->dyn_mw;
        g->demand_sms += l->sms;
        g->demand_memory += l->memory;
        g->dyn_now_mw += dyn_at_rate(l);
    }
    set_shares(c, g, t);
}

int64_t fl_streams_next(const fl_course *c) {
    uint32_t who;
    return earliest(c, &who);
}

bool fl_streams_begin_op(fl_course *c, fl_lane *l, int64_t t) { return begin_op(c, l, t); }

void fl_streams_pass_op(fl_course *c, fl_lane *l, int64_t t) {
    if (l->phase == FL_PHASE_GAP)
        start_kernel(l, t, false);
    else
        finish_kernel(c, l, t);
}
