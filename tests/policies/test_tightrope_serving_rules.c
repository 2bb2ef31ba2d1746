/* The rules of tightrope for servers one by one: what it counts, what it keeps of steps and power, when a clock holds
 * both targets, and which of those that do it takes. All by hand: the times of steps are given, not learned. */
#include "policies/policy.h"
#include "policies/server/server.h"
#include "policies/tightrope/inside.h"
#include "tests/support/suite.h"

#include <math.h>

#define S INT64_C(1000000000)
#define MS INT64_C(1000000)
#define NOW (100 * S)

enum { CLOCKS = 4, TOP = CLOCKS - 1 };
static const int32_t ladder[CLOCKS] = {600, 900, 1200, 1500};

/* A server on two GPUs, with eight requests that run and none that wait, at the top clock since the start; each step
 * takes 1/128 s at each clock. No power was seen. */
typedef struct desk {
    fl_gpu_facts gpu[2];
    fl_server_facts server;
    fl_facts facts;
    fl_gpu_sample seen[2];
    fl_server_sample u;
    fl_batch_record batch[256];
    fl_sample sample;
    fl_gpu_command set[2];
    fl_command c;
    fl_tightrope_serving t;
} desk;

static const uint32_t both[] = {0, 1};
static desk d;

static void know(int id, double value) {
    d.u.value[id] = value;
    d.u.valid |= FL_BIT(id);
}

static void forget(int id) { d.u.valid &= ~FL_BIT(id); }

static void power(uint32_t gpu, double watts) {
    d.seen[gpu].value[FL_GPU_POWER_W] = watts;
    d.seen[gpu].valid |= FL_BIT(FL_GPU_POWER_W);
    d.seen[gpu].fresh |= FL_BIT(FL_GPU_POWER_W);
}

/* Every step takes that long at the clock, and each 64 sequences of it so much more. */
static void takes(uint32_t clock, double time_s, double per_64_s) {
    d.t.s.times.line[clock] = (fl_step_line){.steps = 1000, .weight = {time_s, 0, per_64_s, 0}};
}

static void cost_of(uint32_t clock, double watts) {
    d.t.power_w[clock] = watts;
    d.t.power_weight[clock] = !isnan(watts);
    d.t.power_ns[clock] = NOW;
}

static void open_desk(void) {
    memset(&d, 0, sizeof d);
    for (int i = 0; i < 2; i++)
        d.gpu[i] = (fl_gpu_facts){.name = "gpu", .sm = {ladder, CLOCKS}};
    d.server = (fl_server_facts){
        .gpu = both, .gpu_count = 2, .kv_tokens = 10000, .ttft_target_ns = S, .tbt_target_ns = 20 * MS};
    d.facts = (fl_facts){.gpu_count = 2, .gpu = d.gpu, .server_count = 1, .server = &d.server};
    d.sample = (fl_sample){.time_ns = NOW, .gpu_count = 2, .gpu = d.seen, .server_count = 1, .server = &d.u};
    d.c.gpu = d.set;
    fl_tightrope_serving_begin(&d.t, &d.facts, 0);
    CU_ASSERT_FATAL(d.t.s.times.clocks == CLOCKS);
    for (uint32_t k = 0; k < CLOCKS; k++)
        takes(k, 1.0 / 128, 0);
    d.t.s.clock = TOP, d.t.s.mhz = ladder[TOP], d.t.s.force_ns = 0, d.t.s.told = 1;
    d.t.steps = 1, d.t.step[0] = (fl_step_load){0, 8, 1000};
    know(FL_SERVER_WAITING, 0);
    know(FL_SERVER_RUNNING, 8);
    know(FL_SERVER_OLDEST_WAIT_NS, 0);
}

static void serve(void) { fl_tightrope_serve(&d.t, &d.facts, &d.sample, 0, 0.03, &d.c); }

/* Each further sample comes that much later. */
static void serve_after(int64_t ns) {
    d.sample.time_ns += ns;
    serve();
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-12 * fmax(1, fabs(b)); }

/* Only where every server states both targets are these the bound. */
static void test_serves(void) {
    static const struct {
        uint32_t count;
        int64_t target[2][2];
        int serves;
    } rows[] = {{0, {{0, 0}, {0, 0}}, 0}, {1, {{1, 1}, {0, 0}}, 1}, {1, {{0, 1}, {1, 1}}, 0},
                {1, {{1, 0}, {1, 1}}, 0}, {1, {{0, 0}, {1, 1}}, 0}, {2, {{1, 1}, {1, 1}}, 1},
                {2, {{1, 1}, {0, 1}}, 0}, {2, {{1, 1}, {1, 0}}, 0}, {2, {{1, 0}, {1, 1}}, 0}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        fl_server_facts server[2] = {0};
        for (int k = 0; k < 2; k++)
            server[k].ttft_target_ns = rows[i].target[k][0], server[k].tbt_target_ns = rows[i].target[k][1];
        const fl_facts facts = {.server_count = rows[i].count, .server = server};
        FL_CHECK(fl_tightrope_serves(&facts) == rows[i].serves, "row %zu", i);
    }
}

/* Twelve clocks, from four tenths of the top clock to it; nothing is known at first. */
static void test_begin(void) {
    int32_t fine[151];
    open_desk();
    for (int i = 0; i < 151; i++)
        fine[i] = 10 * i;
    d.gpu[0].sm = (fl_ladder){fine + 1, 150};
    fl_tightrope_serving_begin(&d.t, &d.facts, 0);
    const fl_step_times *t = &d.t.s.times;
    FL_CHECK(t->clocks == 12 && t->mhz[0] == 600 && t->mhz[1] == 690 && t->mhz[11] == 1500, "%u clocks from %g MHz",
             t->clocks, t->mhz[0]);
    FL_CHECK(isnan(d.t.slowdown) && isnan(d.t.ttft.count_at) && isnan(d.t.ttft.missed_at) && isnan(d.t.tbt.count_at) &&
                 isnan(d.t.tbt.missed_at),
             "something is known");
}

/* ---- what is kept ---- */

/* Steps of its own engine are kept, the last 128 of them; where no engine tells of any, a mean one for each sample. */
static void test_steps_kept(void) {
    open_desk();
    d.t.steps = 0;
    for (int i = 0; i < 200; i++)
        d.batch[i] = (fl_batch_record){
            .server = i == 1, .prompt_tokens = 3, .decode_sequences = (uint32_t)i, .kv_tokens = (uint64_t)(10 * i)};
    d.sample.batch = d.batch, d.sample.batch_count = 3;
    serve();
    const fl_step_load *s = d.t.step;
    FL_CHECK(d.t.steps == 2 && s[0].sequences == 0 && s[1].sequences == 2 && s[1].prompt_tokens == 3 &&
                 s[1].kv_tokens == 20,
             "%llu steps", (unsigned long long)d.t.steps);
    d.sample.batch_count = 200;
    serve();
    FL_CHECK(d.t.steps == 201 && s[200 % 128].sequences == 199 && s[71].sequences == 198,
             "the last is not where it should be: %g", s[71].sequences);
    open_desk();
    d.t.s.told = 0;
    know(FL_SERVER_RUNNING, 1);
    know(FL_SERVER_KV_USED_PCT, 25);
    d.t.s.prompt_tokens = 5;
    serve();
    FL_CHECK(d.t.steps == 2 && s[1].sequences == 1 && s[1].kv_tokens == 2500 && s[1].prompt_tokens == 5,
             "a mean step: %llu", (unsigned long long)d.t.steps);
    know(FL_SERVER_RUNNING, 0);
    serve();
    CU_ASSERT(d.t.steps == 2); /* nothing runs, so there is none */
    d.t.s.told = 1;
    know(FL_SERVER_RUNNING, 8);
    serve();
    CU_ASSERT(d.t.steps == 2); /* an engine that told once tells of all */
}

/* Shares of late tokens and the longest step at each clock, over all steps kept. Steps of 8, 16 and 24 sequences: at
 * clock 0 they take 12.5, 25 and 37.5 ms; at clock 1 the longest takes just the target. */
static void test_look(void) {
    open_desk();
    d.t.steps = 3;
    for (int i = 0; i < 3; i++)
        d.t.step[i] = (fl_step_load){0, i == 0 ? 16 : i == 1 ? 24 : 8, 0};
    takes(0, 0, 0.1);
    takes(1, 20e6 * 1e-9, 0);
    serve();
    FL_CHECK(near(d.t.late[0], 40.0 / 48) && near(d.t.longest_s[0], 0.0375), "late %g, longest %g", d.t.late[0],
             d.t.longest_s[0]);
    FL_CHECK(d.t.late[1] == 0 && d.t.late[TOP] == 0 && d.t.longest_s[TOP] == 1.0 / 128, "in time is not late");
    d.server.tbt_target_ns -= 1; /* looked at again after 0.2 s */
    serve_after(200 * MS - 1);
    CU_ASSERT(d.t.late[1] == 0);
    serve_after(1);
    FL_CHECK(d.t.late[1] == 1, "%g", d.t.late[1]);
    serve_after(200 * MS);
    FL_CHECK(near(d.t.late[0], 40.0 / 48) && near(d.t.longest_s[0], 0.0375), "sums begin anew: %g", d.t.late[0]);
    for (int i = 0; i < 3; i++)
        d.t.step[i].sequences = 0;
    takes(0, 1, 0);
    serve_after(200 * MS);
    FL_CHECK(d.t.late[0] == 0 && d.t.longest_s[0] == 1, "steps without tokens: %g late", d.t.late[0]);
    d.t.step[2].sequences = 1;
    serve_after(200 * MS);
    FL_CHECK(d.t.late[0] == 1, "one token: %g late", d.t.late[0]);
}

/* What a step takes where nothing is known counts as late, and there is no longest. */
static void test_look_unknown(void) {
    open_desk();
    d.t.steps = 2, d.t.step[1] = (fl_step_load){0, 8, 1000};
    for (uint32_t k = 0; k < CLOCKS; k++)
        d.t.s.times.line[k].steps = 0;
    serve();
    FL_CHECK(d.t.late[0] == 1 && isnan(d.t.longest_s[0]) && isnan(d.t.slowdown), "%g late", d.t.late[0]);
}

/* Counters count from the first sample that tells both; a rate of tokens follows over 5 s. */
static void test_counts(void) {
    open_desk();
    d.sample.time_ns = d.t.last_ns = 50 * S;
    know(FL_SERVER_TBT_COUNT, 1000);
    serve();
    CU_ASSERT(isnan(d.t.tbt.count_at) && d.t.tbt.count == 0);
    forget(FL_SERVER_TBT_COUNT);
    know(FL_SERVER_TBT_MISSED, 30);
    serve();
    CU_ASSERT(isnan(d.t.tbt.count_at) && d.t.tbt.count == 0);
    know(FL_SERVER_TBT_COUNT, 1000);
    know(FL_SERVER_TTFT_COUNT, 70);
    know(FL_SERVER_TTFT_MISSED, 7);
    serve();
    FL_CHECK(d.t.tbt.count_at == 1000 && d.t.tbt.missed_at == 30 && d.t.tbt.count == 0 && d.t.tbt.missed == 0 &&
                 d.t.ttft.count_at == 70 && d.t.ttft.missed_at == 7,
             "from %g of %g", d.t.tbt.missed_at, d.t.tbt.count_at);
    CU_ASSERT(d.t.tokens_per_s == 0); /* no time passed */
    know(FL_SERVER_TBT_COUNT, 1500);
    know(FL_SERVER_TBT_MISSED, 40);
    know(FL_SERVER_TTFT_COUNT, 90);
    serve_after(S / 2);
    FL_CHECK(d.t.tbt.count == 500 && d.t.tbt.missed == 10 && d.t.ttft.count == 20 && d.t.ttft.missed == 0, "%g of %g",
             d.t.tbt.missed, d.t.tbt.count);
    FL_CHECK(near(d.t.tokens_per_s, 1000 * 0.1), "%g tokens a second", d.t.tokens_per_s);
    know(FL_SERVER_TBT_COUNT, 3500);
    serve_after(S);
    FL_CHECK(near(d.t.tokens_per_s, 100 + 1900 * 0.2), "%g tokens a second", d.t.tokens_per_s);
    know(FL_SERVER_TBT_COUNT, 4500);
    serve_after(10 * S);
    FL_CHECK(near(d.t.tokens_per_s, 100), "after long the mean is forgotten: %g", d.t.tokens_per_s);
    forget(FL_SERVER_TBT_MISSED);
    serve_after(S);
    CU_ASSERT(d.t.tbt.count == 3500 && d.t.tbt.missed == 10); /* as they were */
}

/* What the ledger leaves: of what is to come half the allowance, and what was not used of it so far, spread over the
 * tokens of 5 s, 1,000 at least. */
static void test_allowed(void) {
    static const struct {
        const char *what;
        double share, count, missed, rate, allowed;
    } rows[] = {{"nobody counts", 0.9, NAN, NAN, 0, 0},
                {"at first", 0.75, 0, 0, 0, 0.125},
                {"no share is stated", 0, 0, 0, 0, 0.005},
                {"what is left of 400 tokens over 1,000", 0.75, 400, 0, 0, 0.5 * (0.25 + 0.1)},
                {"some of it was used", 0.75, 400, 50, 0, 0.5 * (0.25 + 0.05)},
                {"over 5 s of 400 a second", 0.75, 400, 50, 400, 0.5 * (0.25 + 0.025)},
                {"overdrawn", 0.75, 400, 400, 0, 0},
                {"all is left", 0.75, 40000, 0, 0, 1},
                {"half is left", 0.75, 5000, 0, 0, 0.75}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_desk();
        d.server.target_share = rows[i].share;
        d.t.tbt.count_at = d.t.tbt.missed_at = isnan(rows[i].count) ? NAN : 0;
        d.t.tbt.count = rows[i].count, d.t.tbt.missed = rows[i].missed;
        d.t.tokens_per_s = rows[i].rate;
        d.t.last_ns = NOW;
        serve();
        FL_CHECK(near(d.t.allowed, rows[i].allowed), "%s: %g, expected %g", rows[i].what, d.t.allowed, rows[i].allowed);
    }
}

/* Power counts for the clock in force once it was there for 0.3 s, if all GPUs tell it; with nothing to do it is the
 * idle power. */
static void test_power_counts(void) {
    static const struct {
        const char *what;
        double first_w, second_w, running;
        int64_t clock, force_ns;
        int stale, counts; /* which GPU tells no news; 1: for the clock, 2: as idle */
    } rows[] = {{"0.3 s in force", 100, 50, 8, 1, NOW - 300 * MS, -1, 1},
                {"a moment less", 100, 50, 8, 1, NOW - 300 * MS + 1, -1, 0},
                {"since the beginning, at the lowest clock", 100, 50, 8, 0, 0, -1, 1},
                {"one request", 100, 50, 1, 1, 0, -1, 1},
                {"the first GPU tells nothing", 100, 50, 8, 1, 0, 0, 0},
                {"nor the second", 100, 50, 8, 1, 0, 1, 0},
                {"not in force", 100, 50, 8, 1, -1, -1, 0},
                {"not in force, idle", 100, 50, 0, 1, -1, -1, 0},
                {"none of the clocks", 100, 50, 0, -1, 0, -1, 0},
                {"no power", 0, 0, 8, 1, 0, -1, 0},
                {"less than a watt", 0.25, 0.5, 8, 1, 0, -1, 1},
                {"no number", NAN, 50, 8, 1, 0, -1, 0},
                {"no finite number", INFINITY, 50, 8, 1, 0, -1, 0},
                {"idle", 100, 50, 0, 1, 0, -1, 2}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_desk();
        power(0, rows[i].first_w);
        power(1, rows[i].second_w);
        if (rows[i].stale >= 0)
            d.seen[rows[i].stale].fresh = 0;
        know(FL_SERVER_RUNNING, rows[i].running);
        d.t.s.clock = rows[i].clock, d.t.s.force_ns = rows[i].force_ns, d.t.s.set_ns = NOW;
        serve();
        const double watts = rows[i].first_w + rows[i].second_w;
        double sum = 0, weight = 0;
        for (uint32_t k = 0; k < CLOCKS; k++)
            sum += d.t.power_w[k], weight += d.t.power_weight[k];
        FL_CHECK(weight == (rows[i].counts == 1) && near(sum, rows[i].counts == 1 ? watts : 0), "%s: %g W of %g",
                 rows[i].what, sum, weight);
        if (rows[i].counts == 1)
            FL_CHECK(d.t.power_weight[rows[i].clock] == 1 && d.t.power_ns[rows[i].clock] == NOW, "%s", rows[i].what);
        FL_CHECK(d.t.idle_w == (rows[i].counts == 2 ? watts : 0), "%s: %g W idle", rows[i].what, d.t.idle_w);
    }
}

/* A mean of power remembers 200 readings, and begins anew after 10 s without one. The idle power is the least seen. */
static void test_power_mean(void) {
    open_desk();
    d.server.tbt_target_ns = MS; /* so that the top clock stays */
    power(0, 100);
    power(1, 0);
    serve();
    power(0, 160);
    serve_after(10 * S);
    FL_CHECK(near(d.t.power_w[TOP], 130) && d.t.power_weight[TOP] == 2, "%g W", d.t.power_w[TOP]);
    power(0, 200);
    serve_after(10 * S + 1);
    FL_CHECK(near(d.t.power_w[TOP], 200) && d.t.power_weight[TOP] == 1, "another load: %g W", d.t.power_w[TOP]);
    for (int i = 0; i < 300; i++)
        serve_after(MS);
    CU_ASSERT(d.t.power_weight[TOP] == 200);
    power(0, 400);
    serve_after(MS);
    FL_CHECK(near(d.t.power_w[TOP], 201), "one of 200: %g W", d.t.power_w[TOP]);
    know(FL_SERVER_RUNNING, 0);
    static const double idle[][2] = {{0.5, 0.5}, {60, 0.5}, {0.25, 0.25}};
    for (size_t i = 0; i < FL_COUNT(idle); i++) {
        power(0, idle[i][0]);
        serve_after(MS);
        FL_CHECK(d.t.idle_w == idle[i][1], "%g W idle", d.t.idle_w);
    }
    CU_ASSERT(near(d.t.power_w[TOP], 201));
}

/* ---- which clock ---- */

/* From the top down the cheapest seen; or the one below it, if that was not seen. NAN: not seen. */
static void test_choice(void) {
    static const struct {
        const char *what;
        double watts[CLOCKS], idle_w;
        int64_t clock;
    } rows[] = {{"nothing was seen", {NAN, NAN, NAN, NAN}, 0, 3},
                {"only the top: the next one", {NAN, NAN, NAN, 200}, 0, 2},
                {"it is cheaper: the next one", {NAN, NAN, 150, 200}, 0, 1},
                {"it is dearer: back", {NAN, NAN, 250, 200}, 0, 3},
                {"a cheaper one beneath those", {100, NAN, 250, 200}, 0, 0},
                {"the lowest", {100, 120, 150, 200}, 0, 0},
                {"the last but one", {130, 120, 150, 200}, 0, 1},
                {"all alike: the fastest", {200, 200, 200, 200}, 0, 3},
                {"a gap is seen first", {NAN, 120, NAN, 200}, 0, 2},
                {"the top was not seen lately", {NAN, 100, NAN, NAN}, 0, 0},
                {"all below what idle takes: the fastest", {60, 60, 60, 60}, 100, 3},
                {"next to nothing above idle is something", {100, 100, 90, 100.5}, 100, 2}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_desk();
        for (uint32_t k = 0; k < CLOCKS; k++)
            cost_of(k, rows[i].watts[k]);
        d.t.idle_w = rows[i].idle_w;
        serve();
        FL_CHECK(d.t.s.clock == rows[i].clock, "%s: %lld", rows[i].what, (long long)d.t.s.clock);
        const int moved = rows[i].clock != TOP;
        for (int k = 0; k < 2; k++)
            FL_CHECK(d.set[k].set == (moved ? FL_BIT(FL_SET_SM_MHZ) : 0) &&
                         (!moved || d.set[k].value[FL_SET_SM_MHZ] == ladder[rows[i].clock]),
                     "%s: GPU %d", rows[i].what, k);
    }
}

/* Energy of a step: what it takes beyond idle, times its time. At 1200 MHz 100 W for 10 / 8 of the time are dearer than
 * 120 W at the top; beyond an idle power of 60 W they are not. */
static void test_energy(void) {
    for (int idle = 0; idle < 2; idle++) {
        open_desk();
        takes(2, 10.0 / 1024, 0);
        cost_of(0, 500);
        cost_of(1, 500);
        cost_of(2, 100);
        cost_of(3, 120);
        d.t.idle_w = idle ? 60 : 0;
        serve();
        FL_CHECK(d.t.s.clock == (idle ? 2 : 3), "idle power %g W: %lld", d.t.idle_w, (long long)d.t.s.clock);
        FL_CHECK(near(d.t.slowdown, idle ? 1.25 : 1), "slower by %g", d.t.slowdown);
    }
    open_desk();
    takes(2, 9.0 / 1024, 0); /* 1 W at 9 would be dearer than 1 W at 8, but beyond idle it takes nothing */
    cost_of(0, 500);
    cost_of(1, 500);
    cost_of(2, 90);
    cost_of(3, 100.5);
    d.t.idle_w = 100;
    serve();
    CU_ASSERT(d.t.s.clock == 2);
}

/* Power is known for 10 s. */
static void test_known(void) {
    for (int old = 0; old < 2; old++) {
        open_desk();
        for (uint32_t k = 0; k < CLOCKS; k++)
            cost_of(k, 100 + 10 * k), d.t.power_ns[k] = NOW - 10 * S;
        d.t.power_ns[1] -= old;
        serve();
        FL_CHECK(d.t.s.clock == (old ? 1 : 0), "%lld", (long long)d.t.s.clock);
    }
}

/* A clock that is allowed is left for a lower one only after half a second in force; for a higher one at once. */
static void test_stay(void) {
    static const struct {
        const char *what;
        int64_t clock, force_ns;
        double watts[CLOCKS];
        double tbt_ms; /* target: of 7.8 ms that steps take */
        int64_t then;
    } rows[] = {{"half a second", 2, NOW - S / 2, {100, 110, 120, 130}, 20, 0},
                {"a moment less", 2, NOW - S / 2 + 1, {100, 110, 120, 130}, 20, 2},
                {"not in force", 2, -1, {100, 110, 120, 130}, 20, 2},
                {"since the beginning", 2, 0, {100, 110, 120, 130}, 20, 0},
                {"a higher one at once", 1, NOW, {130, 120, 110, 140}, 20, 2},
                {"late: the top at once", 1, NOW, {100, 110, 120, 130}, 5, 3},
                {"the same", 1, NOW, {130, 100, 120, 140}, 20, 1}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_desk();
        for (uint32_t k = 0; k < CLOCKS; k++)
            cost_of(k, rows[i].watts[k]);
        d.server.tbt_target_ns = (int64_t)(rows[i].tbt_ms * 1e6);
        d.t.s.clock = rows[i].clock, d.t.s.force_ns = rows[i].force_ns, d.t.s.set_ns = NOW;
        serve();
        FL_CHECK(d.t.s.clock == rows[i].then, "%s: %lld", rows[i].what, (long long)d.t.s.clock);
    }
    /* A lower clock holds and would be taken, but the present one does not: by the top clock. */
    open_desk();
    for (uint32_t k = 0; k < CLOCKS; k++)
        cost_of(k, 100 + 10 * k);
    d.t.s.clock = 0, d.t.s.force_ns = NOW;
    takes(0, 1, 0);
    serve();
    FL_CHECK(d.t.s.clock == 1, "too slow: %lld", (long long)d.t.s.clock);
}

/* A clock is waited for 0.1 s where no GPU shows its own. */
static void test_settled(void) {
    for (int late = 0; late < 2; late++) {
        open_desk();
        d.t.s.force_ns = -1, d.t.s.set_ns = NOW - 100 * MS + late;
        serve();
        CU_ASSERT(d.t.s.force_ns == (late ? -1 : NOW));
    }
}

/* ---- what holds ---- */

/* All clocks were seen, and the lower the cheaper: the lowest that holds is taken. */
static void open_cheap(void) {
    open_desk();
    for (uint32_t k = 0; k < CLOCKS; k++)
        cost_of(k, k ? 1 + k : 0.25);
}

/* With nothing known of the load, or no clock in force, the top; with nothing to do all stays as it is. */
static void test_to_do(void) {
    static const struct {
        const char *what;
        double waiting, running; /* NAN: not known */
        int64_t clock, then;
    } rows[] = {{"some run", 0, 8, 2, 0},          {"one runs", 0, 1, 2, 0},
                {"one waits", 1, 0, 2, 0},         {"nothing to do", 0, 0, 2, 2},
                {"nor at the lowest", 0, 0, 0, 0}, {"waiting is not known", NAN, 8, 2, 3},
                {"nor running", 0, NAN, 2, 3},     {"no clock yet", 0, 8, -1, 3},
                {"at the lowest", 0, 8, 0, 0},     {"no clock yet, nothing to do", 0, 0, -1, 3}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_cheap();
        know(FL_SERVER_WAITING, rows[i].waiting);
        know(FL_SERVER_RUNNING, rows[i].running);
        d.t.s.clock = rows[i].clock;
        serve();
        FL_CHECK(d.t.s.clock == rows[i].then, "%s: %lld", rows[i].what, (long long)d.t.s.clock);
    }
    for (int running = 0; running < 2; running++) { /* the lowest clock is too slow, but for nothing to do */
        open_cheap();
        takes(0, 1, 0);
        know(FL_SERVER_RUNNING, running);
        d.t.s.clock = 0;
        serve();
        FL_CHECK(d.t.s.clock == running, "%d run at the lowest: %lld", running, (long long)d.t.s.clock);
    }
}

/* Of first tokens no more than a quarter may be late. */
static void test_first_ledger(void) {
    static const struct {
        double share, missed;
        int64_t clock;
    } rows[] = {{0.75, 25, 0}, {0.75, 26, TOP}, {0, 0, 0}, {0, 1, 0}, {0, 2, TOP}, {1, 0, 0}, {1, 1, TOP}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_cheap();
        d.server.target_share = rows[i].share;
        d.t.ttft = (fl_tightrope_late){0, 0, 100, rows[i].missed};
        serve();
        FL_CHECK(d.t.s.clock == rows[i].clock, "%g of 100: %lld", rows[i].missed, (long long)d.t.s.clock);
    }
}

/* The percentiles that a server tells must meet the targets, longer by as much as a step is. That of TTFT counts where
 * it is told; without it the wait says enough. That of other tokens must be told where no steps are. */
static void test_percentiles(void) {
    static const struct {
        const char *what;
        int signal;
        double p99_ns; /* NAN: not known */
        double longer; /* steps at the lowest clock, of what they take at the others */
        int told;
        int64_t from, clock;
    } rows[] = {{"just in time", FL_SERVER_TTFT_P99_NS, 1e9, 1, 1, TOP, 0},
                {"a moment late", FL_SERVER_TTFT_P99_NS, 1e9 + 1, 1, 1, TOP, TOP},
                {"not known", FL_SERVER_TTFT_P99_NS, NAN, 1, 1, TOP, 0},
                {"twice of it, in time", FL_SERVER_TTFT_P99_NS, 5e8, 2, 1, TOP, 0},
                {"twice of it, late", FL_SERVER_TTFT_P99_NS, 5e8 + 1, 2, 1, TOP, 1},
                {"there already", FL_SERVER_TTFT_P99_NS, 1e9, 2, 1, 0, 0},
                {"late there: no other is sure to be faster", FL_SERVER_TTFT_P99_NS, 1.5e9, 2, 1, 0, TOP},
                {"others, just in time", FL_SERVER_TBT_P99_NS, 2e7, 1, 0, TOP, 0},
                {"others, a moment late", FL_SERVER_TBT_P99_NS, 2e7 + 1, 1, 0, TOP, TOP},
                {"others, not known", FL_SERVER_TBT_P99_NS, NAN, 1, 0, TOP, TOP},
                {"others, late, but steps are told", FL_SERVER_TBT_P99_NS, 2e7 + 1, 1, 1, TOP, 0},
                {"others, twice of it", FL_SERVER_TBT_P99_NS, 1e7, 2, 0, TOP, 0},
                {"others, twice of it, late", FL_SERVER_TBT_P99_NS, 1e7 + 1, 2, 0, TOP, 1}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_cheap();
        know(rows[i].signal, rows[i].p99_ns);
        takes(0, rows[i].longer / 128, 0);
        d.t.s.told = (uint32_t)rows[i].told;
        d.t.s.clock = rows[i].from;
        serve();
        FL_CHECK(d.t.s.clock == rows[i].clock, "%s: %lld", rows[i].what, (long long)d.t.s.clock);
    }
}

/* The longest step at a clock for which a first token comes just in time: after its wait, the time to the next sample
 * and to the clock's arrival, and as many of these steps as there are requests. */
static double just_in_time(double wait_s, double react_s, double steps) {
    const double target_s = 1e9 * 1e-9;
    double x = (target_s - wait_s - react_s) / steps;
    while (wait_s + react_s + steps * x > target_s)
        x = nextafter(x, 0);
    while (wait_s + react_s + steps * nextafter(x, 1) <= target_s)
        x = nextafter(x, 1);
    return x;
}

#define REACT (20000000 * 1e-9) /* to the next sample */

static void test_waits(void) {
    static const struct {
        const char *what;
        double waiting, prompt_tokens, wait_s, p99_s; /* NAN: not known */
        int64_t settle_ns;
        double steps, react_s; /* it takes so many of the longest steps, after that; 0: any; -1: none */
    } rows[] = {{"nobody waits", 0, 0, 0, NAN, 0, 0, 0},
                {"nor does anybody tell of waits", 0, 0, NAN, NAN, 0, 0, 0},
                {"one is served", 0, 1, 0, NAN, 0, 1, REACT + 0.1},
                {"one is served, and has waited", 0, 500, 0.25, NAN, 0, 1, REACT + 0.1},
                {"one waits", 1, 0, 0.5, NAN, 0, 2, REACT + 0.1},
                {"three wait", 3, 100, 0.25, NAN, 0, 4, REACT + 0.1},
                {"clocks take 0.25 s", 1, 0, 0, NAN, S / 4, 2, REACT + 0.25},
                {"clocks take no time", 1, 0, 0, NAN, 1, 2, REACT + 1e-9},
                {"one is served, no wait is told: the percentile is", 0, 1, NAN, 0.25, 0, 0, 0},
                {"nor the percentile", 0, 1, NAN, NAN, 0, -1, 0},
                {"which is nothing", 0, 1, NAN, 0, 0, -1, 0},
                {"one waits, nobody tells for how long", 1, 0, NAN, 0.25, 0, -1, 0}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        const double edge = rows[i].steps > 0
                                ? just_in_time(rows[i].wait_s * 1e9 * 1e-9, rows[i].react_s, rows[i].steps)
                            : rows[i].steps == 0 ? 30
                                                 : 1e-3;
        for (int late = 0; late < 2; late++) {
            open_cheap();
            d.server.tbt_target_ns = 100 * S;
            d.gpu[0].settle_ns = rows[i].settle_ns;
            d.gpu[1].settle_ns = 7 * S; /* those of a server are alike: the first is asked */
            know(FL_SERVER_WAITING, rows[i].waiting);
            know(FL_SERVER_OLDEST_WAIT_NS, rows[i].wait_s * 1e9);
            know(FL_SERVER_TTFT_P99_NS, rows[i].p99_s * 1e9);
            d.t.s.prompt_tokens = rows[i].prompt_tokens;
            for (uint32_t k = 0; k < CLOCKS; k++)
                takes(k, late ? edge * (1 + 1e-9) : edge, 0);
            serve();
            const int holds = rows[i].steps == 0 || (rows[i].steps > 0 && !late);
            FL_CHECK(d.t.s.clock == (holds ? 0 : TOP), "%s, steps of %.17g s: %lld", rows[i].what,
                     late ? edge * (1 + 1e-9) : edge, (long long)d.t.s.clock);
        }
    }
}

/* A share of late tokens at a clock up to what the ledger leaves: 0.125 of them, at first. */
static void test_late_tokens(void) {
    static const struct {
        double late, of;
        int64_t clock;
    } rows[] = {{1, 8, 0}, {2, 8, 1}, {0, 8, 0}, {8, 8, 1}, {126, 1001, 1}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_cheap();
        d.server.target_share = 0.75;
        know(FL_SERVER_TBT_COUNT, 5);
        know(FL_SERVER_TBT_MISSED, 5);
        d.t.steps = 2;
        d.t.step[0] = (fl_step_load){1e6, rows[i].late, 0}; /* of prompts so long that it is late at the lowest clock */
        d.t.step[1] = (fl_step_load){0, rows[i].of - rows[i].late, 0};
        d.t.s.times.line[0].weight[1] = 1;
        serve();
        FL_CHECK(d.t.s.clock == rows[i].clock, "%g of %g: %lld", rows[i].late, rows[i].of, (long long)d.t.s.clock);
    }
    open_cheap(); /* nobody counts them: none */
    d.server.target_share = 0.75;
    d.t.step[0].prompt_tokens = 1e6;
    d.t.s.times.line[0].weight[1] = 1;
    serve();
    CU_ASSERT(d.t.s.clock == 1);
}

/* Where nothing is known of steps the top clock stays, though others were cheap; and a clock that no lower one is
 * reached past is the end. */
static void test_unknown_times(void) {
    open_cheap();
    for (uint32_t k = 0; k < CLOCKS; k++)
        d.t.s.times.line[k].steps = 0;
    d.t.steps = 0;
    serve();
    CU_ASSERT(d.t.s.clock == TOP);
    open_cheap();
    takes(1, 1, 0);
    serve();
    FL_CHECK(d.t.s.clock == 2, "past a clock that is too slow: %lld", (long long)d.t.s.clock);
}

FL_SUITE("tightrope_serving_rules", {"whose bound the targets are", test_serves}, {"begin", test_begin},
         {"steps kept", test_steps_kept}, {"a look at them", test_look}, {"steps of unknown time", test_look_unknown},
         {"tokens counted", test_counts}, {"what the ledger leaves", test_allowed},
         {"which power counts", test_power_counts}, {"means of power", test_power_mean}, {"the choice", test_choice},
         {"energy of a step", test_energy}, {"how long power is known", test_known}, {"who stays", test_stay},
         {"when a clock is there", test_settled}, {"nothing to do", test_to_do},
         {"ledger of first tokens", test_first_ledger}, {"percentiles", test_percentiles}, {"who waits", test_waits},
         {"late tokens", test_late_tokens}, {"times not known", test_unknown_times})
