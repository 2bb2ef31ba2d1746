/* tightrope: the windows of all GPUs, when one begins and what it teaches when it ends. */
#include "policies/tightrope/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef fl_tightrope_gpu gpu_state;
typedef fl_tightrope_step node;

#define LOOK_EVERY 3 /* decisions from one look at a clock that was not tried to the next */

/* Of rate and power at one clock: a change that means another phase. Sensors and windows of one phase stay within it.
 */
#define DRIFT 0.04

/* The window of all GPUs begins, each at the clock that is next for it. */
static void begin_window(node *n) {
    double share = 1;
    int changed = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        gpu_state *g = &n->gpu[i];
        if (g->next != g->clock) {
            changed = 1;
            fl_set_gpu(n->c, i, FL_SET_SM_MHZ, fl_tightrope_mhz(n, i, g->next));
        }
        g->clock = g->next;
        g->util_sum = g->util_count = 0;
        share = fmin(share, fl_tightrope_mhz(n, i, g->clock) / fl_tightrope_mhz(n, i, fl_tightrope_top(n, i)));
    }
    for (uint32_t i = 0; i < n->count; i++) {
        gpu_state *g = &n->gpu[i];
        g->work.alike = n->p->alike;
        if (changed)
            g->arrived_ns = -1, g->power_ns = INT64_MAX;
        fl_tightrope_window(&g->work, n->now, share, changed);
        if (changed && g->work.thin.share > 0)
            fl_set_gpu(n->c, i, FL_SET_RECORDS, g->work.thin.off != FL_TIGHTROPE_OFF);
    }
    n->state->safe_ns = n->now;
}

void fl_tightrope_turn_to(node *n, uint32_t i, int64_t signal) {
    n->gpu[i].signal_ns = n->now;
    fl_set_gpu(n->c, i, FL_SET_RECORDS, fl_tightrope_by_records(signal));
    fl_tightrope_work_turn(&n->gpu[i].work, signal, n->now);
}

void fl_tightrope_to_reference(node *n) {
    n->state->references++;
    n->state->odd = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        memset(n->gpu[i].seen, 0, sizeof n->gpu[i].seen);
        n->gpu[i].next = fl_tightrope_top(n, i);
    }
    begin_window(n);
}

/* ---- the end of a window ---- */

static double least_slack(const node *n) {
    const double b = n->p->bound - FL_TIGHTROPE_MARGIN;
    double least = INFINITY;
    for (uint32_t i = 0; i < n->count; i++) {
        const fl_tightrope_work *w = &n->gpu[i].work;
        least =
            fmin(least, (1 + b) * fl_tightrope_credit(&n->gpu[i].work) - w->elapsed_s - fl_tightrope_records_kept(w));
    }
    return least;
}

/* The next window begins at the clocks that are best now. */
static void go_on(node *n) {
    const double slack_s = least_slack(n);
    double window_s = 0, first_s = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        n->gpu[i].phase_s = fl_tightrope_phase_time(&n->state->phases, &n->gpu[i].work);
        n->gpu[i].brief = n->state->phases.turns > 1;
        n->gpu[i].error = fl_tightrope_reference_error(&n->gpu[i].work);
        window_s = fmax(window_s, fl_tightrope_length(&n->gpu[i]));
        first_s = fmax(first_s, fmax(window_s, fl_tightrope_power_wait(&n->gpu[i])));
    }
    if (n->count > 1)
        window_s = first_s; /* one GPU's look is a long window for all */
    const int64_t turn = ++n->state->decisions;
    int top_pays = 0;
    n->state->window_s = window_s;
    for (uint32_t i = 0; i < n->count; i++) {
        gpu_state *g = &n->gpu[i];
        const int look = fl_tightrope_phase_hurries(&n->state->phases, &g->work) ||
                         (turn % LOOK_EVERY == 0 && turn / LOOK_EVERY % n->count == i);
        g->next = fl_tightrope_decide(n->p, g, &n->facts->gpu[i], slack_s, window_s, first_s, look, n->count > 1);
        if (!(g->seen[g->next].weight_s > 0))
            n->state->window_s = first_s;
        top_pays |= g->top_pays != 0;
    }
    /* The reference is of all GPUs at the top. */
    for (uint32_t i = 0; i < n->count && (top_pays || n->state->alarm); i++)
        n->gpu[i].next = fl_tightrope_top(n, i);
    if (top_pays && n->count > 1)
        n->state->window_s = fmax(window_s, fmin(FL_TIGHTROPE_REFERENCE_MAX_S, n->gpu->work.elapsed_s / 16));
    begin_window(n);
}

static int changed_power(const gpu_state *g, const fl_tightrope_seen_window *m) {
    const fl_tightrope_seen *s = &g->seen[g->clock];
    return s->weight_s > 0 && !isnan(m->power_w) &&
           fabs(m->power_w / s->power_w - 1) > fmax(1.5 * DRIFT, 5 * m->power_noise + 4 * m->noise);
}

/* Another phase of the program: the pace is none that the clocks can make, or at one clock rate or power changed.
 * Beside others a GPU's power follows how long it waits for them, so there it tells nothing. */
static int changed_phase(const node *n, const fl_tightrope_seen_window *m, const fl_tightrope_member *member) {
    for (uint32_t i = 0; i < n->count; i++)
        if (n->gpu[i].work.signal != FL_TIGHTROPE_RECORDS &&
            (m[i].doubtful || (n->count == 1 && changed_power(&n->gpu[i], &m[i])) ||
             fl_tightrope_unexplained(member, n->count, i, DRIFT)))
            return 1;
    return 0;
}

static void learn(node *n, fl_tightrope_seen_window *m, const fl_tightrope_member *member) {
    for (uint32_t i = 0; i < n->count; i++) {
        const double seen = fl_tightrope_at_top(n, i) ? 1 : member[i].seen,
                     before = n->gpu[i].seen[n->gpu[i].clock].ceiling;
        m[i].slowdown = fl_tightrope_own(member, n->count, i);
        fl_tightrope_learn(&n->gpu[i], &m[i], before > 0 && m[i].slowdown < seen ? fmin(before, seen) : seen);
    }
}

/* The references of some kinds are learned again. What clocks do to the phase was learned of all its kinds, and stays.
 */
static void learn_anew(node *n) {
    if (!(n->gpu->seen[fl_tightrope_top(n, 0)].weight_s > 0)) {
        fl_tightrope_to_reference(n);
        return;
    }
    n->state->references++;
    n->state->window_s = fl_tightrope_length(n->gpu);
    n->gpu->next = fl_tightrope_top(n, 0);
    begin_window(n);
}

/* Kernels of several streams meet others at each clock, and which ones decides what they take: the second fact may hold
 * at every clock and not where clocks change. Nothing that is read bounds that, so the top clock stays, but for who
 * trusts more than what is certain. */
static void stop_overlapping(node *n) {
    n->state->held = n->p->trust == FL_TIGHTROPE_TRUST_RECORDS;
    fl_tightrope_turn_to(n, 0, n->state->held ? FL_TIGHTROPE_NONE : fl_tightrope_best_counter(n->sample->gpu));
    fl_tightrope_to_reference(n);
}

void fl_tightrope_end_window(node *n) {
    fl_tightrope_seen_window m[FL_TIGHTROPE_MEMBERS];
    fl_tightrope_member member[FL_TIGHTROPE_MEMBERS];
    for (uint32_t i = 0; i < n->count; i++) {
        gpu_state *g = &n->gpu[i];
        const int idle = fl_tightrope_idle(n, i);
        m[i] = fl_tightrope_close(&g->work, n->now, idle);
        if (fl_tightrope_blindfold(&g->work))
            m[i].slowdown = fl_tightrope_mhz(n, i, fl_tightrope_top(n, i)) / fl_tightrope_mhz(n, i, g->clock);
        g->slowdown = m[i].slowdown;
        member[i] = (fl_tightrope_member){.seen = m[i].slowdown,
                                          .noise = m[i].noise,
                                          .own = fl_tightrope_tried(n, i) ? g->seen[g->clock].slowdown : NAN,
                                          .busy = fl_tightrope_busy(g),
                                          .top = fl_tightrope_at_top(n, i)};
    }
    if (n->count == 1 && fl_tightrope_crowded(&n->gpu->work)) {
        stop_overlapping(n);
        return;
    }
    if (n->dear) { /* without records only what is certain counts */
        for (uint32_t i = 0; i < n->count; i++)
            fl_tightrope_turn_to(n, i, FL_TIGHTROPE_NONE);
        fl_tightrope_to_reference(n);
        return;
    }
    if (m->renewed) { /* one GPU: records tell the work of no other */
        learn_anew(n);
        return;
    }
    if (n->count == 1 && n->gpu->work.signal == FL_TIGHTROPE_RECORDS &&
        fl_tightrope_phase_turns(&n->state->phases, &n->gpu->work, n->gpu->seen, m->length_s)) {
        if (n->gpu->seen[fl_tightrope_top(n, 0)].weight_s > 0)
            go_on(n);
        else
            fl_tightrope_to_reference(n);
        return;
    }
    const int changed = changed_phase(n, m, member);
    for (uint32_t i = 0; i < n->count && changed; i++)
        fl_tightrope_distrust(&n->gpu[i].work, &m[i]);
    if (!changed) {
        n->state->odd = 0;
        learn(n, m, member);
    } else if (++n->state->odd >= 2) {
        for (uint32_t i = 0; i < n->count; i++)
            fl_tightrope_new_phase(&n->gpu[i].work);
        fl_tightrope_to_reference(n);
        return;
    }
    go_on(n);
}
