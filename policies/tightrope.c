/* tightrope: spends a slowdown budget to the last tick and never more. Foldline's own policy.
 *
 * A ledger holds how long the work done so far would have taken at the top clock (W), and how long it took (tau). The
 * slack (1 + bound - margin) W - tau is never negative, at any instant, for nobody knows when the program ends. What
 * the ledger leaves is spent where it saves most: at the clock, or by turns at the two clocks, that the lower hull of
 * energy over slowdown names. tightrope_work.h tells the work, tightrope_curve.h the clock.
 *
 * The slack belongs to the node: it is the least of its GPUs', all of them begin and end their windows together, and
 * the pace that each is held against was learned while all ran at the top clock. */
#include "policies/policy.h"
#include "policies/tightrope_gpu.h"
#include "policies/tightrope_node.h"

#include <math.h>
#include <string.h>

typedef fl_tightrope_params params;
typedef fl_tightrope_gpu gpu_state;

typedef struct node_state {
    int64_t started, odd, references, decisions, alarm;
    double window_s;        /* planned length */
    int64_t safe_ns;        /* until then the slack cannot run out, whatever the program does */
    double apart, compared; /* see is_apart */
} node_state;

enum { PROBE_CLOCK, PROBE_SLACK, PROBE_ALLOWED, PROBE_SLOWDOWN, PROBE_ERROR, PROBE_SIGNAL, PROBE_REFERENCES, PROBES };

static const fl_probe probe_rows[PROBES] = {
    [PROBE_CLOCK] = {"clock", "MHz", "chosen clock", 1},
    [PROBE_SLACK] = {"slack", "s", "time that the ledger leaves to spend", 1},
    [PROBE_ALLOWED] = {"allowed", "", "slowdown allowed from now on; of a server with targets: share of tokens that may be late", 1},
    [PROBE_SLOWDOWN] = {"slowdown", "", "of the last window against the top clock", 1},
    [PROBE_ERROR] = {"error", "", "relative error of the reference", 1},
    [PROBE_SIGNAL] =
        {"signal", "",
         "what tells the work: 1 records, 2 markers, 3 kernels, 4 bytes, 5 utilisation, 6 nothing, 7 ends of records",
         1},
    [PROBE_REFERENCES] = {"references", "", "times that the reference was learned", 1},
};

#define REFERENCE_S 0.15 /* least time at the top clock to learn a reference; longest, where its error stays large */
#define REFERENCE_MAX_S 5
#define LOOK_EVERY 3 /* decisions from one look at a clock that was not tried to the next */
#define SAFE_S 1e6   /* nothing is looked for longer ahead */
#define MEMBERS 64   /* GPUs of a node */
#define IDLE 0.01    /* busy for less of a window, and no unit done: nothing runs there */

/* Of rate and power at one clock: a change that means another phase. Sensors and windows of one phase stay within it.
 */
#define DRIFT 0.04

typedef struct node { /* of one step */
    const params *p;
    const fl_facts *facts;
    const fl_sample *sample;
    fl_command *c;
    node_state *state;
    gpu_state *gpu;
    uint32_t count;
    int64_t now;
} node;

static double mhz_of(const node *n, uint32_t i, int64_t clock) {
    return n->facts->gpu[i].sm.mhz[fl_tightrope_first(&n->facts->gpu[i]) + (uint32_t)clock];
}

static int64_t top_of(const node *n, uint32_t i) { return fl_tightrope_count(&n->facts->gpu[i]) - 1; }
static int is_top(const node *n, uint32_t i) { return n->gpu[i].clock == top_of(n, i); }
static int is_tried(const node *n, uint32_t i) { return n->gpu[i].seen[n->gpu[i].clock].weight_s > 0; }

static const char *init(void *state, const void *params_, const fl_facts *facts) {
    gpu_state *gpu = fl_gpu_states(state, sizeof(node_state));
    const char *why = fl_tightrope_serves(facts) ? fl_serving_check(facts) : NULL;
    (void)params_;
    if (facts->gpu_count > MEMBERS)
        return "drives 64 GPUs of a node at most";
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        if (!facts->gpu[i].sm.count)
            return "needs the SM ladder of every GPU";
    for (uint32_t i = 0; !why && fl_tightrope_serves(facts) && i < facts->server_count; i++)
        fl_tightrope_serving_begin(&gpu[facts->server[i].gpu[0]].serving, facts, i);
    return why;
}

static int64_t best_signal(const fl_gpu_sample *u) {
    if (fl_gpu_known(u, FL_GPU_ITERATIONS) && u->value[FL_GPU_ITERATIONS] > 0)
        return FL_TIGHTROPE_ITERATIONS;
    if (fl_gpu_known(u, FL_GPU_KERNELS))
        return FL_TIGHTROPE_KERNELS;
    if (fl_gpu_known(u, FL_GPU_DRAM_BYTES))
        return FL_TIGHTROPE_BYTES;
    if (fl_gpu_known(u, FL_GPU_UTIL_MEM_PCT))
        return FL_TIGHTROPE_UTIL;
    return FL_TIGHTROPE_NONE;
}

/* A count of kernels costs nothing, and is enough where they are alike. Records tell a kernel's length, but not whether
 * the time to the next was spent in waiting for another GPU: of several GPUs they count only as ends, and where
 * something counts kernels they are not worth their cost. */
static int64_t first_signal(const node *n, const fl_gpu_sample *u) {
    const int64_t asked = n->p->signal;
    if (asked == FL_TIGHTROPE_AUTO && best_signal(u) <= FL_TIGHTROPE_KERNELS &&
        (n->count > 1 || n->p->records_cost > 0))
        return best_signal(u);
    if (n->count == 1)
        return asked == FL_TIGHTROPE_AUTO ? FL_TIGHTROPE_RECORDS : asked;
    return asked == FL_TIGHTROPE_AUTO || asked == FL_TIGHTROPE_RECORDS ? FL_TIGHTROPE_ENDS : asked;
}

/* The window of all GPUs begins, each at the clock that is next for it. */
static void begin_window(node *n) {
    double share = 1;
    int changed = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        gpu_state *g = &n->gpu[i];
        if (g->next != g->clock) {
            changed = 1;
            fl_set_gpu(n->c, i, FL_SET_SM_MHZ, mhz_of(n, i, g->next));
            if (g->clock >= 0 && isnan(g->lag_s))
                fl_tightrope_lag_begin(&g->lag, g->power_w);
        }
        g->clock = g->next;
        g->util_sum = g->util_count = 0;
        share = fmin(share, mhz_of(n, i, g->clock) / mhz_of(n, i, top_of(n, i)));
    }
    for (uint32_t i = 0; i < n->count; i++) {
        gpu_state *g = &n->gpu[i];
        g->work.alike = n->p->alike;
        if (changed)
            g->arrived_ns = -1, g->power_ns = INT64_MAX;
        fl_tightrope_window(&g->work, n->now, share, changed);
    }
    n->state->safe_ns = n->now;
}

static void to_reference(node *n) {
    n->state->references++;
    n->state->odd = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        memset(n->gpu[i].seen, 0, sizeof n->gpu[i].seen);
        n->gpu[i].next = top_of(n, i);
    }
    begin_window(n);
}

/* ---- the end of a window ---- */

/* GPUs that meet at barriers are slowed alike. apart: by how much of the largest slowdown they differed, summed over
 * windows; the first is taken for one that did not differ. */
static int is_apart(const node *n) { return n->state->apart > 0.3 * (1 + n->state->compared); }

static void compare(node *n, const fl_tightrope_member *m) {
    double least = INFINITY, most = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        if (isnan(m[i].seen))
            continue;
        least = fmin(least, m[i].seen), most = fmax(most, m[i].seen);
    }
    if (n->count < 2 || most < 1.02)
        return;
    n->state->apart += fmin(1, (most - least) / (most - 1));
    n->state->compared++;
}

/* Nothing runs on a GPU beside others: its ledger stands still. */
static int is_idle(const node *n, const gpu_state *g) {
    return n->count > 1 && fl_tightrope_busy(g) < IDLE && !(g->work.total > g->work.units);
}

static double least_slack(const node *n) {
    const double b = n->p->bound - FL_TIGHTROPE_MARGIN;
    double least = INFINITY;
    for (uint32_t i = 0; i < n->count; i++) {
        const fl_tightrope_work *w = &n->gpu[i].work;
        least = fmin(least, (1 + b) * fl_tightrope_credit(&n->gpu[i].work) - w->elapsed_s);
    }
    return least;
}

static void decide(node *n) {
    const double slack_s = least_slack(n);
    double window_s = 0, first_s = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        n->gpu[i].error = fl_tightrope_reference_error(&n->gpu[i].work);
        window_s = fmax(window_s, fl_tightrope_length(&n->gpu[i]));
        first_s = fmax(first_s, fl_tightrope_first_length(&n->gpu[i]));
    }
    if (n->count > 1)
        window_s = first_s; /* one GPU's look is a long window for all */
    const int64_t turn = ++n->state->decisions;
    int top_pays = 0;
    n->state->window_s = window_s;
    for (uint32_t i = 0; i < n->count; i++) {
        gpu_state *g = &n->gpu[i];
        const int look = turn % LOOK_EVERY == 0 && turn / LOOK_EVERY % n->count == i;
        g->next = fl_tightrope_decide(n->p, g, &n->facts->gpu[i], slack_s, window_s, first_s, look,
                                      n->count > 1 && !is_apart(n));
        if (!(g->seen[g->next].weight_s > 0))
            n->state->window_s = first_s;
        top_pays |= g->top_pays != 0;
    }
    /* The reference is of all GPUs at the top. */
    for (uint32_t i = 0; i < n->count && (top_pays || n->state->alarm); i++)
        n->gpu[i].next = top_of(n, i);
    if (top_pays && n->count > 1)
        n->state->window_s = fmax(window_s, fmin(REFERENCE_MAX_S, n->gpu->work.elapsed_s / 16));
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
        const double seen = is_top(n, i) ? 1 : member[i].seen, before = n->gpu[i].seen[n->gpu[i].clock].ceiling;
        m[i].slowdown = is_apart(n) ? seen : fl_tightrope_own(member, n->count, i);
        fl_tightrope_learn(&n->gpu[i], &m[i], before > 0 && m[i].slowdown < seen ? fmin(before, seen) : seen,
                           is_top(n, i));
    }
}

/* What the counter's error holds back is more than what records cost. Asked at the end of the first reference only: all
 * ran at the top clock so far. */
static int records_pay(const node *n) {
    const fl_tightrope_work *w = &n->gpu->work;
    return n->count == 1 && n->p->signal == FL_TIGHTROPE_AUTO && n->p->records_cost > 0 && n->state->references == 1 &&
           (w->signal == FL_TIGHTROPE_ITERATIONS || w->signal == FL_TIGHTROPE_KERNELS) && !is_tried(n, 0) &&
           n->p->sigmas * fl_tightrope_reference_error(w) > n->p->records_cost;
}

static int shares(const node *n) { return n->count == 1 && fl_tightrope_overlap(&n->gpu->work); }

static void end_window(node *n) {
    if (records_pay(n)) {
        fl_set_gpu(n->c, 0, FL_SET_RECORDS, 1);
        fl_tightrope_to_records(&n->gpu->work, n->now);
        n->gpu->clock = -1;
        to_reference(n);
        return;
    }
    fl_tightrope_seen_window m[MEMBERS];
    fl_tightrope_member member[MEMBERS];
    const int first = !is_tried(n, 0);
    for (uint32_t i = 0; i < n->count; i++) {
        gpu_state *g = &n->gpu[i];
        const int idle = is_idle(n, g);
        m[i] = fl_tightrope_close(&g->work, n->now, idle);
        if (fl_tightrope_blindfold(&g->work))
            m[i].slowdown = mhz_of(n, i, top_of(n, i)) / mhz_of(n, i, g->clock);
        g->slowdown = m[i].slowdown;
        g->power_w = isnan(m[i].power_w) ? g->power_w : m[i].power_w;
        g->lag.count = 0;
        member[i] = (fl_tightrope_member){.seen = m[i].slowdown,
                                          .noise = m[i].noise,
                                          .own = is_tried(n, i) ? g->seen[g->clock].slowdown : NAN,
                                          .busy = fl_tightrope_busy(g),
                                          .top = is_top(n, i)};
    }
    if (first && shares(n)) {
        fl_tightrope_weigh(&n->gpu->work);
        to_reference(n);
        return;
    }
    if (n->count == 1 && fl_tightrope_crowded(&n->gpu->work)) {
        fl_set_gpu(n->c, 0, FL_SET_RECORDS, 0);
        fl_tightrope_to_certain(&n->gpu->work);
        to_reference(n);
        return;
    }
    compare(n, member);
    const int changed = changed_phase(n, m, member);
    for (uint32_t i = 0; i < n->count && changed; i++)
        fl_tightrope_distrust(&n->gpu[i].work, &m[i]);
    if (!changed) {
        n->state->odd = 0;
        learn(n, m, member);
    } else if (++n->state->odd >= 2) {
        for (uint32_t i = 0; i < n->count; i++)
            fl_tightrope_new_phase(&n->gpu[i].work);
        to_reference(n);
        return;
    }
    decide(n);
}

/* ---- the guard ---- */

/* Slack that a second of the window may cost, whatever the program does. */
static double burn(const node *n) {
    double most = 0;
    for (uint32_t i = 0; i < n->count; i++)
        most = fmax(most, fl_tightrope_burn(n->p->bound - FL_TIGHTROPE_MARGIN,
                                            (1 + n->p->tolerance) * (1 + fl_tightrope_cost(n->p, &n->gpu[i])) /
                                                n->gpu[i].work.share));
    return most;
}

/* Until when the present clocks are safe whatever the program does: a program that turns to other work in the midst of
 * a window is slowed by all that the clocks can slow it, and what was measured before says nothing of it. What is
 * certain of the slack must pay for that until the next reading, and then for the way back to the top. */
static int64_t safe_until(const node *n) {
    const double b = n->p->bound - FL_TIGHTROPE_MARGIN, loss = burn(n);
    double least = INFINITY, react_s = 0;
    int top = 1;
    for (uint32_t i = 0; i < n->count; i++) {
        gpu_state *g = &n->gpu[i];
        top &= is_top(n, i);
        react_s = fmax(react_s, fl_tightrope_reaction(n->p, g));
        if (is_idle(n, g))
            continue;
        const double length_s = (double)(n->now - g->work.window_ns) * 1e-9;
        least = fmin(least, (1 + b) * fl_tightrope_credit_now(&g->work) - g->work.elapsed_s - length_s);
    }
    const double left_s = top || !(loss > 0) ? SAFE_S : fmin(SAFE_S, least / loss - react_s);
    return n->now + (int64_t)(fmax(0, left_s) * 1e9);
}

/* 1: the clocks must go to the top now. Readings may have shown more work since, so it is asked again in time. */
static int guard(node *n) {
    if (n->state->safe_ns - n->now <= (int64_t)(n->p->poll_ms * 1e6))
        n->state->safe_ns = safe_until(n);
    return n->state->safe_ns <= n->now;
}

/* ---- a step ---- */

static void start(node *n) {
    for (uint32_t i = 0; i < n->count; i++) {
        gpu_state *g = &n->gpu[i];
        const fl_gpu_sample *u = &n->sample->gpu[i];
        const int64_t signal = first_signal(n, u);
        g->clock = -1;
        g->error = 1;
        if (signal == FL_TIGHTROPE_RECORDS || signal == FL_TIGHTROPE_ENDS)
            fl_set_gpu(n->c, i, FL_SET_RECORDS, 1);
        fl_tightrope_work_begin(&g->work, signal, n->now, n->p->tolerance, n->p->sigmas, n->p->records_cost);
        g->lag_s = n->p->lag_ms > 0 ? n->p->lag_ms * 1e-3 : NAN;
        fl_tightrope_lag_begin(&g->lag, fl_gpu_known(u, FL_GPU_POWER_W) ? u->value[FL_GPU_POWER_W] : 0);
    }
    n->state->started = 1;
    to_reference(n);
}

static int no_records(const fl_tightrope_work *w) {
    return w->signal == FL_TIGHTROPE_ENDS
               ? !(w->total > 0)
               : w->signal == FL_TIGHTROPE_RECORDS && !(w->rate_s + w->known_s + w->unknown_s > 0);
}

/* The next best signal, where no record came. */
static int other_signal(node *n, uint32_t i, double length_s) {
    fl_tightrope_work *w = &n->gpu[i].work;
    if (n->p->signal != FL_TIGHTROPE_AUTO || !no_records(w) || length_s <= REFERENCE_S)
        return 0;
    fl_set_gpu(n->c, i, FL_SET_RECORDS, 0);
    fl_tightrope_work_begin(w, best_signal(&n->sample->gpu[i]), w->begin_ns, n->p->tolerance, n->p->sigmas,
                            n->p->records_cost);
    w->last_ns = n->now;
    fl_tightrope_window(w, w->begin_ns, 1, 0);
    return 1;
}

static void show(const node *n, uint32_t i) {
    const gpu_state *g = &n->gpu[i];
    fl_show_gpu(n->c, i, PROBE_CLOCK, mhz_of(n, i, g->clock));
    fl_show_gpu(n->c, i, PROBE_SLACK, g->slack_s);
    fl_show_gpu(n->c, i, PROBE_ALLOWED, g->allowed);
    fl_show_gpu(n->c, i, PROBE_SLOWDOWN, g->slowdown);
    fl_show_gpu(n->c, i, PROBE_ERROR, g->error);
    fl_show_gpu(n->c, i, PROBE_SIGNAL, (double)g->work.signal);
    fl_show_gpu(n->c, i, PROBE_REFERENCES, (double)n->state->references);
}

/* No clock counts before all of them are there. */
static void arrive(node *n) {
    int all = 1;
    for (uint32_t i = 0; i < n->count; i++)
        all &= fl_tightrope_arrive(&n->gpu[i], &n->sample->gpu[i], n->now, mhz_of(n, i, n->gpu[i].clock));
    for (uint32_t i = 0; i < n->count && !all; i++)
        n->gpu[i].arrived_ns = -1, n->gpu[i].power_ns = INT64_MAX;
}

/* The reference is good enough to go on. */
static int learned(const node *n) {
    for (uint32_t i = 0; i < n->count; i++)
        if (!is_idle(n, &n->gpu[i]) && !fl_tightrope_enough(&n->gpu[i].work, n->p->bound / (n->count > 1 ? 10 : 4)))
            return 0;
    return 1;
}

/* Servers that state latency targets: those are the bound (tightrope_serving.h). */
static void serve(gpu_state *gpu, const params *p, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    for (uint32_t i = 0; i < facts->server_count; i++) {
        const uint32_t first = facts->server[i].gpu[0];
        fl_tightrope_serving *t = &gpu[first].serving;
        fl_tightrope_serve(t, facts, sample, i, p->tolerance, c);
        fl_show_gpu(c, first, PROBE_CLOCK, t->s.mhz);
        fl_show_gpu(c, first, PROBE_ALLOWED, t->allowed);
        fl_show_gpu(c, first, PROBE_SLOWDOWN, t->slowdown);
    }
    c->delay_ns = FL_TIGHTROPE_SERVING_NS;
}

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    if (fl_tightrope_serves(facts)) {
        serve(fl_gpu_states(state, sizeof(node_state)), param_bytes, facts, sample, c);
        return;
    }
    node n = {param_bytes,      facts,          sample, c, state, fl_gpu_states(state, sizeof(node_state)),
              facts->gpu_count, sample->time_ns};
    double late_s = 0;
    int learning = 0, over = 1, other = 0;
    if (!n.state->started)
        start(&n);
    arrive(&n);
    for (uint32_t i = 0; i < n.count; i++) {
        fl_tightrope_take(&n.gpu[i], sample, i);
        late_s = fmax(late_s, fl_tightrope_late_s(&n.gpu[i]));
        learning |= n.gpu[i].work.at_top && !is_tried(&n, i) && !is_idle(&n, &n.gpu[i]);
    }
    const double length_s = (double)(n.now - n.gpu->work.window_ns) * 1e-9;
    const double end_s = (learning ? REFERENCE_S : n.state->window_s) + late_s;
    for (uint32_t i = 0; i < n.count; i++) {
        other |= learning && other_signal(&n, i, length_s);
        over &= fl_tightrope_over(&n.gpu[i], n.now, length_s, end_s);
    }
    n.state->alarm = guard(&n) || (n.count == 1 && fl_tightrope_crowded(&n.gpu->work));
    if (n.state->alarm || (over && !other && (!learning || length_s > REFERENCE_MAX_S || learned(&n) || shares(&n))))
        end_window(&n);
    const int64_t fine = (int64_t)(n.p->poll_ms * 1e6), safe = n.state->safe_ns - n.now - fine / 2;
    c->delay_ns = safe > FL_TIGHTROPE_COARSE_NS ? FL_TIGHTROPE_COARSE_NS : safe > fine ? safe : fine;
    for (uint32_t i = 0; i < n.count; i++) {
        const int64_t next = fl_tightrope_wait_ns(n.p, &n.gpu[i], n.now, end_s);
        c->delay_ns = next < c->delay_ns ? next : c->delay_ns;
        show(&n, i);
    }
}

static const fl_param param_rows[] = {
    FL_PARAM(params, bound, REAL(0.001, 1), "", "0.05", "slowdown allowed over the whole run"),
    FL_PARAM(params, objective, CHOICE("energy|edp|ed2p"), "", "energy", "what to save"),
    FL_PARAM(params, signal, CHOICE("auto|records|iterations|kernels|bytes|util|none"), "", "auto",
             "what tells how much work is done"),
    FL_PARAM(params, alike, CHOICE("all|counters|none"), "", "counters",
             "whose units are alike in all phases: all; iterations, kernels and bytes; or nobody's"),
    FL_PARAM(params, tolerance, REAL(0, 1), "", "0.03", "by how much a slowdown may pass top / f"),
    FL_PARAM(params, sigmas, REAL(0, 10), "", "4.5", "of the reference's error held back"),
    FL_PARAM(params, records_cost, REAL(0, 1), "", "0.02", "by how much kernel records stretch kernels; 0: free"),
    FL_PARAM(params, poll_ms, REAL(0.1, 1000), "ms", "2", "time between readings where a counter's line is drawn"),
    FL_PARAM(params, lag_ms, REAL(0, 10000), "ms", "0", "age of a power reading; 0: learned at the start"),
};

FL_POLICY(tightrope) = {FL_POLICY_ABI,
                        .name = "tightrope",
                        .summary = "spends a slowdown budget exactly, by a ledger of the work done",
                        .source = "Foldline",
                        .gpu_needs = FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS) |
                                     FL_BIT(FL_GPU_SM_MHZ) | FL_BIT(FL_GPU_KERNELS) | FL_BIT(FL_GPU_ITERATIONS) |
                                     FL_BIT(FL_GPU_DRAM_BYTES) | FL_BIT(FL_GPU_UTIL_MEM_PCT) |
                                     FL_BIT(FL_GPU_UTIL_GPU_PCT),
                        .server_uses = FL_TIGHTROPE_SERVER_USES,
                        .uses_batches = 1,
                        .gpu_drives = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_RECORDS),
                        .param = param_rows,
                        .param_count = FL_COUNT(param_rows),
                        .probe = probe_rows,
                        .probe_count = PROBES,
                        .param_size = sizeof(params),
                        .state_size = sizeof(node_state),
                        .gpu_size = sizeof(gpu_state),
                        .init = init,
                        .step = step};
