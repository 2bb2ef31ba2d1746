/* tightrope's windows by hand: when one begins, what it teaches when it ends, and what ends more than the window:
 * records that pay or do not, kernels beside each other, a phase that turned. */
#include "policies/policy.h"
#include "policies/registry/registry.h"
#include "policies/tightrope/inside.h"
#include "tests/support/suite.h"

#include <math.h>

#define S INT64_C(1000000000)

enum { CLOCKS = 11, TOP = CLOCKS - 1, GPUS = 3 };

typedef struct rig {
    fl_tightrope_params p;
    fl_tightrope_state state;
    fl_tightrope_gpu gpu[GPUS];
    fl_gpu_facts gpu_facts[GPUS];
    fl_facts facts;
    fl_gpu_command set[GPUS];
    fl_command c;
    fl_tightrope_step n;
} rig;

static int32_t ladder[CLOCKS];
static rig *r;

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(1, fabs(b)); }

/* GPUs at the top clock, in a window that began at 10 s and ends at 12 s, with 100 W each. Nothing tells their work,
 * and the reference was learned more than once. */
static void open_rig(uint32_t count) {
    r = calloc(1, sizeof *r);
    CU_ASSERT_FATAL(r != NULL);
    for (int i = 0; i < CLOCKS; i++)
        ladder[i] = 1000 + 50 * i;
    r->p = (fl_tightrope_params){.bound = 0.05,
                                 .tolerance = 0.03,
                                 .sigmas = 3,
                                 .records_cost = 0.02,
                                 .poll_ms = 2,
                                 .signal = FL_TIGHTROPE_AUTO,
                                 .alike = FL_TIGHTROPE_ALIKE_COUNTERS,
                                 .trust = FL_TIGHTROPE_TRUST_COUNTERS};
    r->facts = (fl_facts){.gpu_count = count, .gpu = r->gpu_facts};
    r->c.gpu = r->set;
    r->n = (fl_tightrope_step){
        .p = &r->p, .facts = &r->facts, .c = &r->c, .state = &r->state, .gpu = r->gpu, .count = count, .now = 12 * S};
    r->state.references = 5;
    for (uint32_t i = 0; i < GPUS; i++) {
        fl_tightrope_gpu *g = &r->gpu[i];
        r->gpu_facts[i] = (fl_gpu_facts){.name = "gpu", .sm = {ladder, CLOCKS}};
        g->clock = g->next = TOP;
        g->work.energy_age_s = INFINITY;
        fl_tightrope_work_begin(&g->work, FL_TIGHTROPE_NONE, 0, 0.03, 3, 0.02);
        fl_tightrope_window(&g->work, 10 * S, 1, 0);
        g->work.top_s = g->work.elapsed_s = 10;
        g->work.last_ns = g->work.moved_ns = g->work.last_end_ns = 12 * S;
        g->work.power_sum = 300, g->work.power_count = 3, g->work.power_square = 3e4;
    }
}

static void at(uint32_t i, int64_t clock) {
    r->gpu[i].clock = clock;
    fl_tightrope_window(&r->gpu[i].work, 10 * S, ladder[clock] / 1500.0, 0);
    r->gpu[i].work.power_sum = 300, r->gpu[i].work.power_count = 3, r->gpu[i].work.power_square = 3e4;
}

/* The clock was tried for 10 s. */
static void tried(uint32_t i, int64_t clock, double slowdown, double watts) {
    r->gpu[i].seen[clock] =
        (fl_tightrope_seen){.slowdown = slowdown, .power_w = watts, .ceiling = slowdown, .weight_s = 10};
}

/* Units of 10 ms told the pace at the top clock for 2 s, and then so long ones at the present clock. */
static void counts(uint32_t i, int64_t signal, double unit_s) {
    fl_tightrope_work *w = &r->gpu[i].work;
    w->signal = signal, w->quantum = 1, w->alike = r->p.alike;
    for (int k = 0; k <= 200; k++)
        fl_tightrope_rate_edge(&w->rate, k * S / 100, 1e-6, 1);
    fl_tightrope_rate_keep(&w->rate);
    w->unit_s = fl_tightrope_rate_reference(&w->rate, 0).unit_s, w->rate_s = w->rate.kept_s;
    for (int k = 0; k <= 100; k++)
        fl_tightrope_rate_edge(&w->rate, 10 * S + (int64_t)(k * unit_s * 1e9), 1e-6, 1);
    w->total = 1000, w->units = 800;
}

static int is_set(uint32_t i, int control, double value) {
    return r->set[i].set >> control & 1 && r->set[i].value[control] == value;
}

static int records_set(uint32_t i) { return r->set[i].set >> FL_SET_RECORDS & 1; }

/* ---- the beginning ---- */

/* The reference: all GPUs go to the top, and nothing that was seen of clocks stays. None counts before all are there.
 */
static void test_reference(void) {
    static const int64_t from[][2] = {{TOP, TOP}, {TOP, 3}, {3, TOP}, {0, 0}, {-1, -1}};
    for (size_t row = 0; row < FL_COUNT(from); row++) {
        open_rig(2);
        r->state.odd = 1, r->state.safe_ns = 1;
        const int changed = from[row][0] != TOP || from[row][1] != TOP;
        for (uint32_t i = 0; i < 3; i++) {
            r->gpu[i].clock = i < 2 ? from[row][i] : 5;
            r->gpu[i].next = 7;
            tried(i, TOP, 1, 100);
            tried(i, 4, 1.2, 80);
            r->gpu[i].arrived_ns = 11, r->gpu[i].power_ns = 12;
            r->gpu[i].util_sum = r->gpu[i].util_count = 9;
        }
        fl_tightrope_to_reference(&r->n);
        CU_ASSERT(r->state.references == 6 && r->state.odd == 0 && r->state.safe_ns == 12 * S);
        for (uint32_t i = 0; i < 2; i++) {
            const fl_tightrope_gpu *g = &r->gpu[i];
            FL_CHECK(g->clock == TOP && g->seen[TOP].weight_s == 0 && g->seen[4].weight_s == 0 && g->util_sum == 0 &&
                         g->util_count == 0,
                     "row %zu, GPU %u: clock %lld", row, i, (long long)g->clock);
            FL_CHECK(r->set[i].set == (from[row][i] == TOP ? 0 : FL_BIT(FL_SET_SM_MHZ)) &&
                         (from[row][i] == TOP || is_set(i, FL_SET_SM_MHZ, 1500)),
                     "row %zu, GPU %u: set", row, i);
            FL_CHECK(g->arrived_ns == (changed ? -1 : 11) && g->power_ns == (changed ? INT64_MAX : 12),
                     "row %zu, GPU %u: there", row, i);
            FL_CHECK(g->work.at_top && g->work.window_ns == 12 * S && g->work.alike == FL_TIGHTROPE_ALIKE_COUNTERS,
                     "row %zu, GPU %u: its window", row, i);
        }
        CU_ASSERT(r->gpu[2].clock == 5 && r->gpu[2].next == 7 && r->gpu[2].seen[TOP].weight_s == 10);
        free(r);
    }
}

/* ---- records ---- */

/* Where too many kernels run beside each other, records go off. The top clock stays for who trusts only what is
 * certain; else the best counter tells the work. Records that are dear go off too. */
static void test_stop(void) {
    static const struct {
        const char *what;
        uint32_t count;
        int64_t trust;
        double overlap_s;
        int dear, stops, held;
        int64_t signal;
    } rows[] = {{"beside each other", 1, FL_TIGHTROPE_TRUST_RECORDS, 1, 0, 1, 1, FL_TIGHTROPE_NONE},
                {"who trusts counters goes on", 1, FL_TIGHTROPE_TRUST_COUNTERS, 1, 0, 1, 0, FL_TIGHTROPE_BYTES},
                {"a few", 1, FL_TIGHTROPE_TRUST_COUNTERS, 0.01, 0, 0, 0, FL_TIGHTROPE_RECORDS},
                {"of two GPUs", 2, FL_TIGHTROPE_TRUST_COUNTERS, 1, 0, 0, 0, FL_TIGHTROPE_RECORDS},
                {"dear records", 1, FL_TIGHTROPE_TRUST_COUNTERS, 0, 1, 1, 0, FL_TIGHTROPE_NONE},
                {"dear records of two", 2, FL_TIGHTROPE_TRUST_COUNTERS, 0, 1, 1, 0, FL_TIGHTROPE_NONE}};
    const fl_gpu_sample gpu = {.valid = FL_BIT(FL_GPU_DRAM_BYTES) | FL_BIT(FL_GPU_UTIL_MEM_PCT)};
    const fl_sample sample = {.gpu_count = 1, .gpu = &gpu};
    for (size_t row = 0; row < FL_COUNT(rows); row++) {
        open_rig(rows[row].count);
        r->p.trust = rows[row].trust, r->n.dear = rows[row].dear, r->n.sample = &sample;
        for (uint32_t i = 0; i < rows[row].count; i++) {
            at(i, 7);
            tried(i, TOP, 1, 100);
            tried(i, 7, 1, 100);
            r->gpu[i].work.signal = FL_TIGHTROPE_RECORDS, r->gpu[i].work.alike = FL_TIGHTROPE_ALIKE_COUNTERS;
            r->gpu[i].work.overlap_s = rows[row].overlap_s;
        }
        fl_tightrope_end_window(&r->n);
        for (uint32_t i = 0; i < rows[row].count; i++) {
            FL_CHECK(records_set(i) == rows[row].stops && (!rows[row].stops || is_set(i, FL_SET_RECORDS, 0)),
                     "%s: records of GPU %u", rows[row].what, i);
            FL_CHECK(r->gpu[i].work.signal == rows[row].signal, "%s: GPU %u", rows[row].what, i);
            if (rows[row].stops)
                FL_CHECK(r->gpu[i].clock == TOP && r->gpu[i].seen[7].weight_s == 0, "%s: GPU %u at the top",
                         rows[row].what, i);
        }
        FL_CHECK(r->state.held == rows[row].held && r->state.references == 5 + rows[row].stops, "%s: held %lld",
                 rows[row].what, (long long)r->state.held);
        free(r);
    }
}

/* ---- phases ---- */

/* A pace that no clock makes, for the second time, or a power that is another: the program does something else, and its
 * reference is learned again; once is chance. */
static void test_turns(void) {
    static const struct {
        const char *what;
        int64_t odd, signal;
        double unit_s, watts; /* before this window */
        int turned;
    } rows[] = {
        {"as before", 1, FL_TIGHTROPE_KERNELS, 0.0105, 100, 0},
        {"for the first time", 0, FL_TIGHTROPE_KERNELS, 0.005, 100, 0},
        {"units unlike", 1, FL_TIGHTROPE_KERNELS, 0.005, 100, 1},
        {"iterations", 1, FL_TIGHTROPE_ITERATIONS, 0.005, 100, 1},
        {"bytes", 1, FL_TIGHTROPE_BYTES, 0.005, 100, 1},
        {"ends", 1, FL_TIGHTROPE_ENDS, 0.005, 100, 1},
        {"6 % more power", 1, FL_TIGHTROPE_KERNELS, 0.0105, 106.2, 1},
        {"less of it", 1, FL_TIGHTROPE_KERNELS, 0.0105, 105.8, 0},
        {"6 % less power", 1, FL_TIGHTROPE_KERNELS, 0.0105, 93.8, 1},
    };
    for (size_t row = 0; row < FL_COUNT(rows); row++) {
        open_rig(1);
        r->state.odd = rows[row].odd;
        at(0, 9);
        tried(0, TOP, 1, 120);
        tried(0, 9, 1.05, 100);
        counts(0, rows[row].signal, rows[row].unit_s);
        fl_tightrope_work *w = &r->gpu->work;
        w->power_sum = 3 * rows[row].watts, w->power_square = 3 * rows[row].watts * rows[row].watts;
        w->elapsed_s = 5;
        const double back_s = w->taken_back_s;
        fl_tightrope_end_window(&r->n);
        FL_CHECK(!records_set(0) && w->signal == rows[row].signal, "%s: records", rows[row].what);
        FL_CHECK(r->state.references == 5 + rows[row].turned && (r->gpu->seen[TOP].weight_s == 0) == rows[row].turned,
                 "%s: %lld references", rows[row].what, (long long)r->state.references);
        if (rows[row].turned)
            FL_CHECK(w->unit_s == 0 && w->rate.kept_s == 0 && w->origin == 1000 && w->taken_back_s == 0,
                     "%s: a new phase", rows[row].what);
        const int odd = rows[row].unit_s == 0.005 || fabs(rows[row].watts - 100) > 6;
        if (!rows[row].turned)
            FL_CHECK(r->state.odd == (odd ? rows[row].odd + 1 : 0) && r->gpu->seen[9].weight_s == (odd ? 10 : 12) &&
                         (w->taken_back_s > back_s) == odd,
                     "%s: odd %lld", rows[row].what, (long long)r->state.odd);
        free(r);
    }
}

/* Power says no more than its noise lets it: five times its own, and four of the pace's. Nothing where the clock was
 * not tried, or no power is known. Beside another GPU it says nothing. */
static void test_power_noise(void) {
    static const struct {
        const char *what;
        uint32_t count;
        double mean_w, square; /* of four readings */
        int tried, known, turned;
    } rows[] = {{"no noise", 1, 107, 107.0 * 107, 1, 1, 1},
                {"five times its noise", 1, 110, 110.0 * 110 + 4.39 * 4.39, 1, 1, 1}, /* 0.01995 of the mean */
                {"less", 1, 110, 110.0 * 110 + 4.41 * 4.41, 1, 1, 0},
                {"not tried", 1, 107, 107.0 * 107, 0, 1, 0},
                {"not known", 1, 107, 107.0 * 107, 1, 0, 0},
                {"two GPUs", 2, 107, 107.0 * 107, 1, 1, 0}};
    for (size_t row = 0; row < FL_COUNT(rows); row++) {
        open_rig(rows[row].count);
        r->state.odd = 1;
        for (uint32_t i = 0; i < rows[row].count; i++) {
            at(i, 9);
            tried(i, TOP, 1, 120);
            if (rows[row].tried)
                tried(i, 9, 1500.0 / 1450, 100), r->gpu[i].seen[9].weight_s = 0.5;
            fl_tightrope_work *w = &r->gpu[i].work;
            w->power_count = rows[row].known ? 4 : 0;
            w->power_sum = 4 * rows[row].mean_w, w->power_square = 4 * rows[row].square;
        }
        fl_tightrope_end_window(&r->n);
        FL_CHECK(r->state.references == 5 + rows[row].turned, "%s: %lld references", rows[row].what,
                 (long long)r->state.references);
        free(r);
    }
}

/* ---- what is learned ---- */

/* A clock is charged with what its own tells. The ceiling stays at what was seen before where it was less. */
static void test_learn(void) {
    static const struct {
        const char *what;
        double slowdown, ceiling, before;
    } rows[] = {{"less was seen before, and the other explains it", 1.02, 1.06, 1.06},
                {"it never slowed any", 1.02, 1, 1}};
    for (size_t row = 0; row < FL_COUNT(rows); row++) {
        open_rig(2);
        at(0, 6), at(1, 6);
        tried(0, TOP, 1, 120), tried(1, TOP, 1, 120);
        tried(0, 6, 1.02, 100), tried(1, 6, 1500.0 / 1300, 100);
        r->gpu[0].seen[6].ceiling = rows[row].before;
        fl_tightrope_end_window(&r->n);
        const fl_tightrope_seen *s = &r->gpu[0].seen[6];
        const double mean = (10 * 1.02 + 2 * rows[row].slowdown) / 12,
                     ceiling = (10 * rows[row].before + 2 * rows[row].ceiling) / 12;
        FL_CHECK(near(s->slowdown, mean) && near(s->ceiling, ceiling), "%s: slowdown %g, ceiling %g", rows[row].what,
                 s->slowdown, s->ceiling);
        free(r);
    }
}

/* ---- what is next ---- */

/* A window of all GPUs is as long as the one that needs most. An alarm brings all to the top, and none that is not of
 * the node. */
static void test_decide(void) {
    for (int alarm = 0; alarm < 2; alarm++) {
        open_rig(2);
        for (uint32_t i = 0; i < 2; i++) {
            at(i, 9);
            tried(i, TOP, 1, 200);
            tried(i, 9, 1500.0 / 1450, 150);
            r->gpu[i].slack_s = -1;
        }
        r->gpu[1].lag_s = 0.75;
        r->gpu[0].work.top_s = r->gpu[0].work.elapsed_s = 100;
        r->gpu[1].work.top_s = 95, r->gpu[1].work.elapsed_s = 97;
        r->gpu[2].next = 4;
        r->state.alarm = alarm;
        r->state.decisions = 6, r->state.phases.turns = 2 - alarm, r->state.phases.phase[0].time_s = 33;
        fl_tightrope_end_window(&r->n);
        const double credit = 95 + 2 * 1450.0 / 1500 * 0.97, slack = 1.0495 * credit - 99;
        for (uint32_t i = 0; i < 2; i++)
            FL_CHECK(near(r->gpu[i].slack_s, slack) && r->gpu[i].brief == !alarm && r->gpu[i].error == 1 &&
                         r->gpu[i].phase_s == 33 && (!alarm || r->gpu[i].clock == TOP),
                     "GPU %u: slack %g s of %g", i, r->gpu[i].slack_s, slack);
        FL_CHECK(near(r->state.window_s, 0.75 + 0.03 + 0.08) && r->state.decisions == 7, "%g s", r->state.window_s);
        FL_CHECK(r->gpu[2].next == 4 && r->set[2].set == 0, "a GPU that is none of the node");
        free(r);
    }
}

/* A GPU's look at a clock that was not tried comes each third window, in turn: here no clock is expected to save
 * anything, so that only a look leaves the top. */
static void test_looks(void) {
    double volt[CLOCKS];
    for (int64_t decisions = 0; decisions < 13; decisions++) {
        open_rig(2);
        for (int k = 0; k < CLOCKS; k++)
            volt[k] = sqrt(1500.0 / ladder[k]); /* V^2 f is the same at each */
        for (uint32_t i = 0; i < 2; i++) {
            r->gpu_facts[i].law.volt = volt;
            tried(i, TOP, 1, 200);
            tried(i, 4, 1, 200);
            r->gpu[i].work.power_sum = 600;
            r->gpu[i].work.top_s = r->gpu[i].work.elapsed_s = 1000;
        }
        r->state.decisions = decisions;
        r->gpu[0].lag_s = 2;
        fl_tightrope_end_window(&r->n);
        const int64_t turn = decisions + 1;
        for (uint32_t i = 0; i < 2; i++)
            FL_CHECK((r->gpu[i].clock < TOP) == (turn % 3 == 0 && turn / 3 % 2 == i), "turn %lld, GPU %u: %lld",
                     (long long)turn, i, (long long)r->gpu[i].clock);
        FL_CHECK(near(r->state.window_s, 2.11), "%g s", r->state.window_s);
        free(r);
    }
}

/* All clocks of a node are worth what the lowest is. */
static void test_share(void) {
    for (int swap = 0; swap < 2; swap++) {
        open_rig(2);
        r->p.bound = 0.5;
        const uint32_t low = (uint32_t)swap, high = 1 - low;
        for (uint32_t i = 0; i < 2; i++) {
            tried(i, TOP, 1, 200);
            r->gpu[i].work.top_s = r->gpu[i].work.elapsed_s = 1000;
        }
        for (int k = 6; k < TOP; k++) {
            tried(low, k, 1, 100 + 10 * k);
            tried(high, k, 1.4, 190);
        }
        r->gpu[low].seen[6].power_w = 50;
        fl_tightrope_end_window(&r->n);
        const double share = fmin(ladder[r->gpu[0].clock], ladder[r->gpu[1].clock]) / 1500.0;
        FL_CHECK(r->gpu[low].clock < TOP && r->gpu[high].clock > r->gpu[low].clock, "clocks %lld and %lld",
                 (long long)r->gpu[low].clock, (long long)r->gpu[high].clock);
        for (uint32_t i = 0; i < 2; i++)
            FL_CHECK(near(r->gpu[i].work.clock, share) && r->gpu[i].arrived_ns == -1, "GPU %u: %g", i,
                     r->gpu[i].work.clock);
        free(r);
    }
}

/* A kind of kernel that changed: its reference is learned again at the top clock. What clocks do to the phase stays
 * known, if that was learned at all. */
static void test_renewed(void) {
    for (int known = 0; known < 2; known++) {
        open_rig(1);
        at(0, 7);
        if (known)
            tried(0, TOP, 1, 100);
        tried(0, 5, 1.1, 90);
        fl_tightrope_work *w = &r->gpu->work;
        w->signal = FL_TIGHTROPE_RECORDS;
        w->kinds = 1, w->busy_s = 5, w->spread = 4 * 0.0075 * 0.0075;
        w->kind[0] =
            (fl_tightrope_kind){.count = 3, .sum_s = 3, .square_s = 3, .done = 8, .done_s = 4, .low = 8, .low_s = 4};
        fl_tightrope_end_window(&r->n);
        CU_ASSERT(r->state.references == 6 && r->gpu->clock == TOP && r->state.phases.phase[0].decisions == 0);
        FL_CHECK((r->gpu->seen[TOP].weight_s > 0) == known && (r->gpu->seen[5].weight_s > 0) == known,
                 "known %d: %g and %g s", known, r->gpu->seen[TOP].weight_s, r->gpu->seen[5].weight_s);
        if (known)
            FL_CHECK(near(r->state.window_s, 4), "a window of %g s", r->state.window_s);
        free(r);
    }
}

/* Records tell another phase: of one that was seen before the clocks are known, of a new one nothing is. */
static void test_phases(void) {
    for (int known = 0; known < 2; known++) {
        open_rig(1);
        fl_tightrope_work *w = &r->gpu->work;
        w->signal = FL_TIGHTROPE_RECORDS;
        w->kinds = 2, w->top_busy_s = 12;
        w->kind[1] = (fl_tightrope_kind){.count = 30, .sum_s = 12, .square_s = 4.8, .window_s = 2};
        w->known_s = w->ref_s = 2;
        tried(0, TOP, 1, 100);
        fl_tightrope_phases *p = &r->state.phases;
        p->phase[0].share[0] = 1, p->phase[0].weight_s = p->phase[0].time_s = 9;
        if (known) {
            p->phase[3].share[1] = 1, p->phase[3].weight_s = p->phase[3].time_s = 9;
            p->phase[3].seen[TOP] = (fl_tightrope_seen){.slowdown = 1, .power_w = 77, .ceiling = 1, .weight_s = 5};
        }
        fl_tightrope_end_window(&r->n);
        FL_CHECK(r->state.references == 5 + !known && p->turns == 1 && p->current == (known ? 3 : 1),
                 "known %d: %lld references", known, (long long)r->state.references);
        FL_CHECK(r->gpu->seen[TOP].power_w == (known ? 77 : 0) && r->state.decisions == known, "known %d: %g W", known,
                 r->gpu->seen[TOP].power_w);
        free(r);
    }
}

/* Records that cost much are on for a part of the time: 100,000 kernels a second cost 0.1 s of records of a microsecond
 * each, where a quarter of a percent may be. They go off at the first reading, and come back for bursts of 4 ms, which
 * are a fortieth of the time once the program is at the top clock. */
static void test_dear_at_once(void) {
    enum { MOST = 4000 };
    static fl_kernel_record record[MOST];
    const fl_policy *policy = NULL;
    for (size_t i = 0; i < fl_policies_count; i++)
        policy = strcmp(fl_policies[i]->name, "tightrope") == 0 ? fl_policies[i] : policy;
    CU_ASSERT_FATAL(policy != NULL && policy->probe_count <= 16);
    double cell[16], *probe[16];
    for (int i = 0; i < 16; i++)
        probe[i] = &cell[i];
    open_rig(1);
    r->p.trust = FL_TIGHTROPE_TRUST_RECORDS;
    r->gpu_facts[0].records_ns = 1000;
    void *state = calloc(1, fl_state_rounded(policy->state_size) + policy->gpu_size);
    CU_ASSERT_FATAL(state != NULL && policy->init(state, &r->p, &r->facts) == NULL);
    fl_gpu_sample u = {.valid = FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_SM_MHZ), .fresh = FL_BIT(FL_GPU_POWER_W)};
    u.value[FL_GPU_POWER_W] = 200, u.value[FL_GPU_SM_MHZ] = 1500;
    int64_t now = 0, told = 0, off_ns = 0, on_ns = 0, bursts = 0;
    int on = 1;
    while (now < 2 * S) {
        uint64_t count = 0;
        for (; told + 10000 <= now && count < MOST; told += 10000)
            record[count++] = (fl_kernel_record){.start_ns = told, .end_ns = told + 10000};
        const fl_sample sample = {
            .time_ns = now, .gpu_count = 1, .gpu = &u, .record = record, .record_count = on ? count : 0};
        fl_gpu_command set = {0};
        fl_command c = {.gpu = &set, .probe = probe};
        policy->step(state, &r->p, &r->facts, &sample, &c);
        if (set.set >> FL_SET_RECORDS & 1) {
            bursts += !on && set.value[FL_SET_RECORDS] > 0;
            on = set.value[FL_SET_RECORDS] > 0;
            off_ns = !on && !off_ns ? now : off_ns;
        }
        on_ns += on ? c.delay_ns : 0;
        now += c.delay_ns;
    }
    FL_CHECK(off_ns > 0 && off_ns <= 20 * S / 1000, "off after %g s", (double)off_ns * 1e-9);
    FL_CHECK(bursts >= 4 && on_ns < 2 * S / 5, "%lld bursts, on for %g s", (long long)bursts, (double)on_ns * 1e-9);
    free(state);
    free(r);
}

FL_SUITE("tightrope_window", {"the reference", test_reference}, {"records that go off", test_stop},
         {"another phase", test_turns}, {"noise of power", test_power_noise}, {"what is learned", test_learn},
         {"what is next", test_decide}, {"looks", test_looks}, {"the least share", test_share},
         {"kinds that changed", test_renewed}, {"phases by records", test_phases}, {"dear records", test_dear_at_once})
