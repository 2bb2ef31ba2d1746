/* tightrope: spends a slowdown budget to the last tick and never more. Foldline's own policy.
 *
 * A ledger holds how long the work done so far would have taken at the top clock (W), and how long it took (tau). The
 * slack (1 + bound - margin) W - tau is never negative, at any instant, for nobody knows when the program ends. What
 * the ledger leaves is spent where it saves most: at the clock, or by turns at the two clocks, that the lower hull of
 * energy over slowdown names.
 *
 * The slack belongs to the node: it is the least of its GPUs', all of them begin and end their windows together, and
 * the pace that each is held against was learned while all ran at the top clock. */
#include "policies/tightrope/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stdint.h>

typedef fl_tightrope_params params;
typedef fl_tightrope_gpu gpu_state;
typedef fl_tightrope_step node;

enum { PROBE_CLOCK, PROBE_SLACK, PROBE_ALLOWED, PROBE_SLOWDOWN, PROBE_ERROR, PROBE_SIGNAL, PROBE_REFERENCES, PROBES };

static const fl_probe probe_rows[PROBES] = {
    [PROBE_CLOCK] = {"clock", "MHz", "chosen clock", 1},
    [PROBE_SLACK] = {"slack", "s", "time that the ledger leaves to spend", 1},
    [PROBE_ALLOWED] = {"allowed", "", "slowdown allowed from now on", 1},
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
/* The wait for a record, where counters may tell the work instead. Calibrated: MF-GPOEO's applications have kernels so
 * long that with 0.15 s they go by bytes and save 16.7 %; with 1 s 26.3 %. */
#define RECORD_WAIT_S 1
#define LAG_S 1 /* assumed without a platform's sensor: recent boards show the mean of a second */

static const char *init(void *state, const void *params_, const fl_facts *facts) {
    (void)state, (void)params_;
    return facts->gpu_count > FL_TIGHTROPE_MEMBERS ? "drives 64 GPUs of a node at most" : fl_need_ladders(facts);
}

/* Return 1 if no signal may count that a phase can change unseen. */
static int is_strict(const fl_tightrope_params *p) {
    return p->signal == FL_TIGHTROPE_AUTO && p->trust == FL_TIGHTROPE_TRUST_RECORDS;
}

/* Return the share by which records lengthen kernels, to be used where no time per kernel is known. 0: records are
 * free, as the parameter or the host says. */
static double record_share(const node *n) { return n->facts->gpu[0].records_ns < 0 ? 0 : n->p->records_cost; }

/* Return the signal to begin with. A counter that is read at one clock does not show whether this clock slows the
 * phase: a slowed phase and another one may do the same work in a second. Records name the kernels, and the policy
 * compares each kernel class with itself at the top clock. Several GPUs may wait for each other unseen, and a share of
 * record cost that is not known may use up half of the bound. In both cases only a certain signal counts.
 *
 * trust=counters uses counters where records cannot tell everything. On several GPUs records count only as ends,
 * because they do not show whether the time to the next kernel was spent in waiting for another GPU. There markers and
 * a count of kernels come first. signal=kernels counts by records where nothing else counts. */
static int64_t first_signal(const node *n, const fl_gpu_sample *u) {
    const int64_t asked = n->p->signal, best = fl_tightrope_best_counter(u);
    const int dear = !n->facts->gpu[0].records_ns && n->p->bound < 2 * record_share(n);
    if (is_strict(n->p) && (n->count > 1 || dear))
        return FL_TIGHTROPE_NONE;
    if (asked == FL_TIGHTROPE_KERNELS)
        return fl_gpu_known(u, FL_GPU_KERNELS) ? FL_TIGHTROPE_KERNELS : FL_TIGHTROPE_ENDS;
    if (asked > FL_TIGHTROPE_RECORDS)
        return asked;
    if (n->count == 1 && (!dear || asked == FL_TIGHTROPE_RECORDS))
        return FL_TIGHTROPE_RECORDS;
    return asked == FL_TIGHTROPE_AUTO && (dear || best <= FL_TIGHTROPE_KERNELS) ? best : FL_TIGHTROPE_ENDS;
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
        if (fl_tightrope_by_records(signal))
            fl_set_gpu(n->c, i, FL_SET_RECORDS, 1);
        g->work.record_s = n->p->records_cost > 0 ? fmax(0, (double)f->records_ns) * 1e-9 : 0;
        g->work.afford = 0.8 * n->p->bound;
        g->work.thin.random = fl_random_seed(n->facts->seed, i);
        fl_tightrope_work_begin(&g->work, signal, n->now, n->p->tolerance, n->p->sigmas, record_share(n));
        g->work.energy_age_s = fl_gpu_known(u, FL_GPU_ENERGY_NS) ? 0 : INFINITY;
        g->lag_s = n->p->lag_ms > 0      ? n->p->lag_ms * 1e-3
                   : f->power_lag_ns > 0 ? (double)f->power_lag_ns * 1e-9
                                         : LAG_S;
    }
    n->state->started = 1;
    fl_tightrope_to_reference(n);
}

/* No record came for so long though something ran, so none will: nothing tells the work. A host that loads its data may
 * let the GPU wait. */
static int no_records(const node *n, const gpu_state *g) {
    const fl_tightrope_work *w = &g->work;
    const double wait_s = is_strict(n->p) ? FL_TIGHTROPE_REFERENCE_MAX_S : RECORD_WAIT_S;
    const int ends = w->signal == FL_TIGHTROPE_ENDS && !(w->total > 0);
    return (ends || (w->signal == FL_TIGHTROPE_RECORDS && !(w->rate_s + w->known_s + w->unknown_s > 0))) &&
           (double)(n->now - g->signal_ns) * 1e-9 > wait_s && !(fl_tightrope_busy(g) < FL_TIGHTROPE_IDLE);
}

/* The next best signal, where no record came. */
static int other_signal(node *n, uint32_t i) {
    if (n->p->signal != FL_TIGHTROPE_AUTO || !no_records(n, &n->gpu[i]))
        return 0;
    fl_tightrope_turn_to(n, i, is_strict(n->p) ? FL_TIGHTROPE_NONE : fl_tightrope_best_counter(&n->sample->gpu[i]));
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

/* The reference is good enough to go on: its error costs a small part of the bound. */
static int learned(const node *n) {
    const double part = n->p->bound / (n->count > 1 ? 10 : 4);
    if (n->count == 1 && n->state->phases.turns > 0 && n->gpu->work.signal == FL_TIGHTROPE_RECORDS)
        return n->gpu->work.known_s > 0; /* of a further phase: its kinds are learned on all visits */
    for (uint32_t i = 0; i < n->count; i++)
        if (!fl_tightrope_idle(n, i) && !fl_tightrope_enough(&n->gpu[i].work, part))
            return 0;
    return 1;
}

/* A window may end: no stretch without records waits for its burst. */
static int is_told(const fl_tightrope_thin *t) { return !(t->share > 0) || t->share >= 1 || t->told; }

/* The power of a clock that was not tried is known, or was waited for. */
static int shows_power(const node *n, uint32_t i, double length_s) {
    const gpu_state *g = &n->gpu[i];
    double noise;
    return fl_tightrope_tried(n, i) || !isnan(fl_tightrope_power(&g->work, &noise)) ||
           length_s >= fl_tightrope_late_s(g) + fl_tightrope_power_wait(g);
}

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    node n = {param_bytes,      facts,           sample, c, state, fl_gpu_states(state, sizeof(fl_tightrope_state)),
              facts->gpu_count, sample->time_ns, 0};
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
        n.dear |= fl_tightrope_records_dear(&n.gpu[i].work);
        over &= length_s >= end_s && shows_power(&n, i, length_s) && is_told(&n.gpu[i].work.thin);
    }
    n.state->alarm = fl_tightrope_guard(&n) || (n.count == 1 && fl_tightrope_crowded(&n.gpu->work)) || n.dear;
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
    FL_PARAM(params, signal, CHOICE("auto|records|iterations|kernels|bytes|util|none"), "", "auto",
             "what tells how much work is done"),
    FL_PARAM(params, alike, CHOICE("all|counters|none"), "", "counters",
             "whose units are alike in all phases: all; iterations, kernels and bytes; or nobody's"),
    FL_PARAM(
        params, trust, CHOICE("records|counters"), "", "records",
        "what signal=auto may count by: records; or also, where records cannot tell, counters whose units are alike"),
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
};

FL_POLICY(tightrope) = {FL_POLICY_ABI,
                        .name = "tightrope",
                        .summary = "spends a slowdown budget exactly, by a ledger of the work done",
                        .source = "Foldline",
                        .gpu_drives = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_RECORDS),
                        .state_size = sizeof(fl_tightrope_state),
                        .gpu_size = sizeof(gpu_state),
                        FL_POLICY_PARTS(params)};
