/* tightrope: spends a slowdown budget to the last tick and never more. Foldline's own policy.
 *
 * A ledger holds how long the work done so far would have taken at the top clock (W), and how long it took (tau). The
 * slack (1 + bound - margin) W - tau is never negative, at any instant, for nobody knows when the program ends. What
 * the ledger leaves is spent where it saves most: at the clock, or by turns at the two clocks, that the lower hull of
 * energy over slowdown names. inside.h tells the work, inside.h the clock.
 *
 * The slack belongs to the node: it is the least of its GPUs', all of them begin and end their windows together, and
 * the pace that each is held against was learned while all ran at the top clock. */
#include "policies/tightrope/inside.h"

#include "policies/policy.h"
#include "policies/server/server.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

typedef fl_tightrope_params params;
typedef fl_tightrope_gpu gpu_state;
typedef fl_tightrope_step node;

enum { PROBE_CLOCK, PROBE_SLACK, PROBE_ALLOWED, PROBE_SLOWDOWN, PROBE_ERROR, PROBE_SIGNAL, PROBE_REFERENCES, PROBES };

static const fl_probe probe_rows[PROBES] = {
    [PROBE_CLOCK] = {"clock", "MHz", "chosen clock", 1},
    [PROBE_SLACK] = {"slack", "s", "time that the ledger leaves to spend", 1},
    [PROBE_ALLOWED] = {"allowed", "",
                       "slowdown allowed from now on; of a server with targets: share of tokens that may be late", 1},
    [PROBE_SLOWDOWN] = {"slowdown", "", "of the last window against the top clock", 1},
    [PROBE_ERROR] = {"error", "", "relative error of the reference", 1},
    [PROBE_SIGNAL] =
        {"signal", "",
         "what tells the work: 1 records, 2 markers, 3 kernels, 4 bytes, 5 utilisation, 6 nothing, 7 ends of records",
         1},
    [PROBE_REFERENCES] = {"references", "", "times that the reference was learned", 1},
};

#define HELD_NS 1000000000 /* between steps where nothing is left to decide */
#define REFERENCE_S 0.15   /* least time at the top clock to learn a reference */
#define LAG_S 1            /* assumed without a platform's sensor: recent boards show the mean of a second */

static const char *init(void *state, const void *params_, const fl_facts *facts) {
    gpu_state *gpu = fl_gpu_states(state, sizeof(fl_tightrope_state));
    const char *why = fl_need_ladders(facts);
    (void)params_;
    if (facts->gpu_count > FL_TIGHTROPE_MEMBERS)
        return "drives 64 GPUs of a node at most";
    if (!why && fl_tightrope_serves(facts))
        why = fl_drive_check(facts);
    for (uint32_t i = 0; !why && fl_tightrope_serves(facts) && i < facts->server_count; i++)
        fl_tightrope_serving_begin(&gpu[facts->server[i].gpu[0]].serving, facts, i);
    return why;
}

static int64_t best_signal(const fl_gpu_sample *u) {
    if (fl_gpu_known(u, FL_GPU_ITERATIONS))
        return FL_TIGHTROPE_ITERATIONS;
    if (fl_gpu_known(u, FL_GPU_KERNELS))
        return FL_TIGHTROPE_KERNELS;
    if (fl_gpu_known(u, FL_GPU_DRAM_BYTES))
        return FL_TIGHTROPE_BYTES;
    if (fl_gpu_known(u, FL_GPU_UTIL_MEM_PCT))
        return FL_TIGHTROPE_UTIL;
    return FL_TIGHTROPE_NONE;
}

/* No counter that is read at one clock tells a phase that this clock slows from one that it does not: both may do the
 * same work in a second there. Records name the kernels, and each kind is held against itself at the top clock. Where
 * they would cost half of the bound, and of several GPUs, which may wait for each other unseen, only what is certain
 * counts. */
static int64_t safe_signal(const node *n) {
    const int dear = !n->facts->gpu[0].records_ns && n->p->bound < 2 * fl_tightrope_record_share(n);
    return n->count > 1 || dear ? FL_TIGHTROPE_NONE : FL_TIGHTROPE_RECORDS;
}

/* Markers, a count of kernels and bytes cost nothing, and are enough where their units are alike. Records tell a
 * kernel's length, but not whether the time to the next was spent in waiting for another GPU: of several GPUs they
 * count only as ends, and where there is a counter they are not worth their cost, unless its error holds back more. A
 * counter that nobody has read yet may still come. Who asks for the count has it by records where nothing counts. */
static int64_t first_signal(const node *n, const fl_gpu_sample *u) {
    const int64_t asked = n->p->signal, best = best_signal(u);
    if (fl_tightrope_strict(n->p))
        return safe_signal(n);
    if (asked == FL_TIGHTROPE_KERNELS && !fl_gpu_known(u, FL_GPU_KERNELS))
        return FL_TIGHTROPE_ENDS;
    if (asked == FL_TIGHTROPE_AUTO && (n->count > 1 || fl_tightrope_record_share(n) > 0))
        return best <= FL_TIGHTROPE_BYTES ? best : FL_TIGHTROPE_BYTES;
    if (n->count == 1)
        return asked == FL_TIGHTROPE_AUTO ? FL_TIGHTROPE_RECORDS : asked;
    return asked == FL_TIGHTROPE_AUTO || asked == FL_TIGHTROPE_RECORDS ? FL_TIGHTROPE_ENDS : asked;
}

static void start(node *n) {
    for (uint32_t i = 0; i < n->count; i++) {
        gpu_state *g = &n->gpu[i];
        const fl_gpu_sample *u = &n->sample->gpu[i];
        const int64_t signal = first_signal(n, u);
        const fl_gpu_facts *f = &n->facts->gpu[i];
        g->clock = -1;
        g->error = 1;
        g->signal_ns = n->now;
        g->react_s = g->settle_s = (double)f->settle_ns * 1e-9;
        if (signal == FL_TIGHTROPE_RECORDS || signal == FL_TIGHTROPE_ENDS)
            fl_set_gpu(n->c, i, FL_SET_RECORDS, 1);
        g->work.record_s = n->p->records_cost > 0 ? fmax(0, (double)f->records_ns) * 1e-9 : 0;
        g->work.afford = 0.8 * n->p->bound;
        g->work.thin.random = fl_random_seed(n->facts->seed, i);
        fl_tightrope_work_begin(&g->work, signal, n->now, n->p->tolerance, n->p->sigmas, fl_tightrope_record_share(n));
        g->work.energy_age_s = fl_gpu_known(u, FL_GPU_ENERGY_NS) ? 0 : INFINITY;
        g->lag_s = n->p->lag_ms > 0      ? n->p->lag_ms * 1e-3
                   : f->power_lag_ns > 0 ? (double)f->power_lag_ns * 1e-9
                                         : LAG_S;
    }
    n->state->started = 1;
    n->state->stage =
        fl_tightrope_strict(n->p) && safe_signal(n) == FL_TIGHTROPE_RECORDS ? FL_TIGHTROPE_TRIAL : FL_TIGHTROPE_ALWAYS;
    fl_tightrope_to_reference(n);
}

static int no_records(const fl_tightrope_work *w) {
    return w->signal == FL_TIGHTROPE_ENDS
               ? !(w->total > 0)
               : w->signal == FL_TIGHTROPE_RECORDS && !(w->rate_s + w->known_s + w->unknown_s > 0);
}

/* No record came for so long though something ran, so none will: nothing tells the work. A host that loads its data may
 * let the GPU wait. */
static int no_records_at_all(const node *n, const gpu_state *g) {
    const double busy = fl_tightrope_busy(g);
    return g->work.signal == FL_TIGHTROPE_RECORDS && no_records(&g->work) &&
           (double)(n->now - g->signal_ns) * 1e-9 > FL_TIGHTROPE_REFERENCE_MAX_S && !(busy < FL_TIGHTROPE_IDLE);
}

/* All ran at the top clock so far. */
static void turn_to(node *n, uint32_t i, int64_t signal) {
    fl_tightrope_work *w = &n->gpu[i].work;
    n->gpu[i].signal_ns = n->now;
    fl_tightrope_work_begin(w, signal, w->begin_ns, n->p->tolerance, n->p->sigmas, fl_tightrope_record_share(n));
    w->last_ns = n->now;
    fl_tightrope_window(w, w->begin_ns, 1, 0);
}

/* The next best signal, where the counter is not there after all, or no record came. */
static int other_signal(node *n, uint32_t i) {
    gpu_state *g = &n->gpu[i];
    fl_tightrope_work *w = &g->work;
    if (fl_tightrope_strict(n->p)) {
        if (!no_records_at_all(n, g))
            return 0;
        fl_set_gpu(n->c, i, FL_SET_RECORDS, 0);
        fl_tightrope_to_certain(w);
        n->state->stage = FL_TIGHTROPE_ALWAYS;
        return 1;
    }
    const int64_t best = best_signal(&n->sample->gpu[i]);
    const int no_counter = w->signal == FL_TIGHTROPE_BYTES && best != FL_TIGHTROPE_BYTES;
    if (n->p->signal != FL_TIGHTROPE_AUTO || (double)(n->now - g->signal_ns) * 1e-9 <= REFERENCE_S ||
        !(no_counter || no_records(w)))
        return 0;
    const int records = no_counter && best > FL_TIGHTROPE_BYTES;
    const int64_t signal = !records ? best : n->count > 1 ? FL_TIGHTROPE_ENDS : FL_TIGHTROPE_RECORDS;
    if (records || !no_counter)
        fl_set_gpu(n->c, i, FL_SET_RECORDS, records);
    turn_to(n, i, signal);
    return 1;
}

static void show(const node *n, uint32_t i) {
    const gpu_state *g = &n->gpu[i];
    fl_show_gpu(n->c, i, PROBE_CLOCK, fl_tightrope_mhz(n, i, g->clock));
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
        all &= fl_tightrope_arrive(&n->gpu[i], &n->sample->gpu[i], n->now, fl_tightrope_mhz(n, i, n->gpu[i].clock));
    for (uint32_t i = 0; i < n->count && !all; i++)
        n->gpu[i].arrived_ns = -1, n->gpu[i].power_ns = INT64_MAX;
}

/* The reference is good enough to go on: its error costs a small part of the bound, and less than records would, which
 * a short look at the program would else turn on for all its run. */
static int learned(const node *n) {
    const double part = n->p->bound / (n->count > 1 ? 10 : 4), cost = fl_tightrope_record_share(n);
    if (n->count == 1 && n->state->phases.turns > 0 && n->gpu->work.signal == FL_TIGHTROPE_RECORDS)
        return n->gpu->work.known_s > 0; /* of a further phase: its kinds are learned on all visits */
    for (uint32_t i = 0; i < n->count; i++)
        if (!fl_tightrope_idle(n, i) && !fl_tightrope_enough(&n->gpu[i].work, cost > 0 ? fmin(part, cost) : part))
            return 0;
    return 1;
}

/* The power of a clock that was not tried is known, or was waited for. */
static int shows_power(const node *n, uint32_t i, double length_s) {
    const gpu_state *g = &n->gpu[i];
    double noise;
    return fl_tightrope_tried(n, i) || !isnan(fl_tightrope_power(&g->work, &noise)) ||
           length_s >= fl_tightrope_late_s(g) + fl_tightrope_power_wait(g);
}

/* Servers that state latency targets: those are the bound (inside.h). */
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
        serve(fl_gpu_states(state, sizeof(fl_tightrope_state)), param_bytes, facts, sample, c);
        return;
    }
    node n = {param_bytes,      facts,          sample, c, state, fl_gpu_states(state, sizeof(fl_tightrope_state)),
              facts->gpu_count, sample->time_ns};
    double late_s = 0;
    int learning = 0, over = 1, other = 0;
    if (!n.state->started)
        start(&n);
    if (n.state->held) {
        for (uint32_t i = 0; i < n.count; i++)
            show(&n, i);
        c->delay_ns = HELD_NS;
        return;
    }
    arrive(&n);
    for (uint32_t i = 0; i < n.count; i++) {
        fl_tightrope_take(&n.gpu[i], sample, i);
        late_s = fmax(late_s, fl_tightrope_late_s(&n.gpu[i]));
        learning |= n.gpu[i].work.at_top && !fl_tightrope_tried(&n, i) && !fl_tightrope_idle(&n, i);
    }
    fl_tightrope_work *w = &n.gpu->work;
    if (n.count == 1 && fl_tightrope_thin_turn(w, n.p->bound))
        fl_set_gpu(c, 0, FL_SET_RECORDS, w->thin.off != FL_TIGHTROPE_OFF);
    const double length_s = (double)(n.now - n.gpu->work.window_ns) * 1e-9;
    const double end_s = (learning ? REFERENCE_S : n.state->window_s) + late_s;
    for (uint32_t i = 0; i < n.count; i++) {
        other |= learning && other_signal(&n, i);
        over &= length_s >= end_s && shows_power(&n, i, length_s) && fl_tightrope_thin_told(&n.gpu[i].work);
    }
    n.state->alarm =
        fl_tightrope_guard(&n) || (n.count == 1 && fl_tightrope_crowded(&n.gpu->work)) || fl_tightrope_dear(&n);
    if (n.state->alarm || (n.count == 1 && fl_tightrope_phase_strange(&n.gpu->work)) ||
        (over && !other && (!learning || length_s > FL_TIGHTROPE_REFERENCE_MAX_S || learned(&n))))
        fl_tightrope_end_window(&n);
    const int64_t fine = (int64_t)(n.p->poll_ms * 1e6), safe = n.state->safe_ns - n.now - fine / 2;
    c->delay_ns = safe > FL_TIGHTROPE_COARSE_NS ? FL_TIGHTROPE_COARSE_NS : safe > fine ? safe : fine;
    c->delay_ns = fl_tightrope_thin_left(w) < c->delay_ns ? fl_tightrope_thin_left(w) : c->delay_ns;
    for (uint32_t i = 0; i < n.count; i++) {
        const int64_t next = fl_tightrope_wait_ns(n.p, &n.gpu[i], n.now, end_s);
        c->delay_ns = next < c->delay_ns ? next : c->delay_ns;
        show(&n, i);
    }
}

static const fl_param param_rows[] = {
    FL_PARAM(params, bound, REAL(0.001, 1), "", "0.05",
             "slowdown allowed over the whole run; what --bound states is not read"),
    FL_PARAM(params, objective, CHOICE("energy|edp|ed2p"), "", "energy", "what to save"),
    FL_PARAM(params, signal, CHOICE("auto|records|iterations|kernels|bytes|util|none"), "", "auto",
             "what tells how much work is done"),
    FL_PARAM(params, alike, CHOICE("all|counters|none"), "", "counters",
             "whose units are alike in all phases: all; iterations, kernels and bytes; or nobody's"),
    FL_PARAM(
        params, trust, CHOICE("records|counters"), "", "records",
        "what signal=auto may count by: records; or markers, kernels and bytes first, where their units are alike"),
    FL_PARAM(params, tolerance, REAL(0, 1), "", "0.03", "by how much a slowdown may pass top / f"),
    FL_PARAM(params, sigmas, REAL(0, 10), "", "4.5", "of the reference's error held back"),
    FL_PARAM(
        params, records_cost, REAL(0, 1), "", "0.02",
        "by how much activity records stretch kernels, where the host states no time per kernel; 0: they are free"),
    FL_PARAM(params, poll_ms, REAL(0.1, 1000), "ms", "2", "time between readings where a counter's line is drawn"),
    FL_PARAM(params, lag_ms, REAL(0, 10000), "ms", "0", "age of a power reading; 0: as the platform says, else 1 s"),
};

static const fl_signal_row signal_rows[] = {
    FL_NEEDS(GPU_POWER_W),
    FL_INSTEAD(GPU_ENERGY_J, GPU_POWER_W),
    FL_INSTEAD(GPU_ENERGY_NS, GPU_POWER_W),
    FL_USES(GPU_ENERGY_J),
    FL_USES(GPU_ENERGY_NS),
    FL_USES(GPU_SM_MHZ),
    FL_USES(GPU_KERNELS),
    FL_USES(GPU_ITERATIONS),
    FL_USES(GPU_DRAM_BYTES),
    FL_USES(GPU_UTIL_MEM_PCT),
    FL_USES(GPU_UTIL_GPU_PCT),
    FL_USES(SERVER_WAITING),
    FL_USES(SERVER_RUNNING),
    FL_USES(SERVER_KV_USED_PCT),
    FL_USES(SERVER_OLDEST_WAIT_NS),
    FL_USES(SERVER_PROMPT_TOKENS),
    FL_USES(SERVER_BATCHES),
    FL_USES(SERVER_TTFT_COUNT),
    FL_USES(SERVER_TTFT_MISSED),
    FL_USES(SERVER_TTFT_P99_NS),
    FL_USES(SERVER_TBT_SUM_NS),
    FL_USES(SERVER_TBT_COUNT),
    FL_USES(SERVER_TBT_MISSED),
    FL_USES(SERVER_TBT_P99_NS),
    FL_USES(ENGINE_STEPS),
};

FL_POLICY(tightrope) = {FL_POLICY_ABI,
                        .name = "tightrope",
                        .summary = "spends a slowdown budget exactly, by a ledger of the work done",
                        .source = "Foldline",
                        .gpu_drives = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_RECORDS),
                        .state_size = sizeof(fl_tightrope_state),
                        .gpu_size = sizeof(gpu_state),
                        FL_POLICY_PARTS(params)};
