/* tightrope with latency targets as its bound. The server's steps take 10 x 1500 / f ms, its power is 50 + 250 (f /
 * 1500)^3 W: the lowest clock that meets a target is the cheapest. */
#include "tests/support/serving_rig.h"

static rig r;

typedef struct load {
    double waiting, running, wait_s, p99_ttft_s, p99_tbt_s; /* NAN: not known */
    double clock_s, flat_s;
    bool records;
} load;

static void put(int id, double v) {
    rig_know(&r, id, v);
    if (isnan(v))
        r.u.valid &= ~FL_BIT(id);
}

static void run(const load *l, double seconds) {
    const int64_t until = r.now_ns + (int64_t)(seconds * 1e9);
    const fl_batch_record step = {.decode_sequences = 8, .kv_tokens = 1000};
    while (r.now_ns < until) {
        const double mhz = r.mhz > 0 ? r.mhz : RIG_TOP;
        put(FL_SERVER_WAITING, l->waiting);
        put(FL_SERVER_RUNNING, l->running);
        put(FL_SERVER_OLDEST_WAIT_NS, l->wait_s * 1e9);
        put(FL_SERVER_TTFT_P99_NS, l->p99_ttft_s * 1e9);
        put(FL_SERVER_TBT_P99_NS, l->p99_tbt_s * 1e9);
        rig_add(&r, FL_SERVER_TBT_MISSED, 0);
        rig_gpu(&r, FL_GPU_POWER_W, 50 + 250 * pow(mhz / RIG_TOP, 3));
        if (l->running > 0)
            rig_serve(&r, &step, l->clock_s, l->flat_s);
        if (!l->records)
            r.batches = 0;
        rig_step(&r);
    }
}

static const load busy = {0, 8, 0, 0.1, NAN, 0.01, 0, true};

static void open(int64_t tbt_ns) {
    rig_begin(&r, 2);
    r.server.tbt_target_ns = tbt_ns;
    rig_open(&r, "tightrope", NULL, 0);
}

/* Clocks: 600 700 800 900 1000 1100 1200 1300 1400 1500. */
static void test_targets(void) {
    static const struct {
        int64_t tbt_ns;
        double expected_mhz;
    } cases[] = {{20000000, 800}, {15500000, 1000}, {12000000, 1300}, {9000000, 1500}};
    for (size_t i = 0; i < FL_COUNT(cases); i++) {
        open(cases[i].tbt_ns);
        run(&busy, 20);
        FL_CHECK(r.mhz == cases[i].expected_mhz, "%g ms: %g MHz, expected %g", (double)cases[i].tbt_ns * 1e-6, r.mhz,
                 cases[i].expected_mhz);
        FL_CHECK(r.u.value[FL_SERVER_TBT_MISSED] == 0 || i == 3, "%g tokens were late",
                 r.u.value[FL_SERVER_TBT_MISSED]);
        rig_close(&r);
    }
}

/* Where no clock changes a step, lower ones save still; where power hardly falls, they do not. */
static void test_cheapest(void) {
    const load memory = {0, 8, 0, 0.1, NAN, 0, 0.01, true};
    open(20000000);
    run(&memory, 20);
    FL_CHECK(r.mhz == 600, "%g MHz where the clock changes nothing, expected the lowest of the list", r.mhz);
    rig_close(&r);
}

static const struct {
    const char *what;
    load l;
} unsafe[] = {
    {"a request waits, and nobody tells how long", {5, 8, NAN, 0.1, NAN, 0.01, 0, true}},
    {"the oldest request has waited for all of its time", {1, 8, 0.99, 0.1, NAN, 0.01, 0, true}},
    {"the 99th percentile of TTFT is past its target", {0, 8, 0, 1.2, NAN, 0.01, 0, true}},
    {"running is not known", {0, NAN, 0, 0.1, NAN, 0.01, 0, true}},
    {"waiting is not known", {NAN, 8, 0, 0.1, NAN, 0.01, 0, true}},
};

static void test_not_safe(void) {
    for (size_t i = 0; i < FL_COUNT(unsafe); i++) {
        open(20000000);
        run(&busy, 20);
        FL_CHECK(r.mhz == 800, "%g MHz, expected 800", r.mhz);
        run(&unsafe[i].l, 0.05);
        FL_CHECK(r.mhz == 1500, "%s: %g MHz, expected the top", unsafe[i].what, r.mhz);
        rig_close(&r);
    }
}

/* A share of late tokens is allowed, and a ledger that is overdrawn calls for the top clock. */
static void test_ledger(void) {
    open(20000000);
    run(&busy, 20);
    rig_add(&r, FL_SERVER_TTFT_COUNT, 100);
    rig_add(&r, FL_SERVER_TTFT_MISSED, 0);
    run(&busy, 1);
    FL_CHECK(r.mhz == 800, "%g MHz, expected 800", r.mhz);
    rig_add(&r, FL_SERVER_TTFT_COUNT, 100);
    rig_add(&r, FL_SERVER_TTFT_MISSED, 2);
    run(&busy, 0.1);
    FL_CHECK(r.mhz == 1500, "two of a hundred first tokens were late: %g MHz, expected the top", r.mhz);
    rig_close(&r);
}

/* Without records of steps the server's own 99th percentile must tell the tail. */
static void test_no_records(void) {
    load l = busy;
    l.records = false;
    open(20000000);
    run(&l, 10);
    FL_CHECK(r.mhz == 1500, "no percentile: %g MHz, expected the top", r.mhz);
    l.p99_tbt_s = 0.010;
    run(&l, 2);
    FL_CHECK(r.mhz < 1500, "a percentile well below the target: %g MHz, expected less than the top", r.mhz);
    l.p99_tbt_s = 0.021;
    run(&l, 2);
    FL_CHECK(r.mhz == 1500, "a percentile beyond the target: %g MHz, expected the top", r.mhz);
    rig_close(&r);
}

/* A server that states no targets leaves the slowdown as the bound. */
static void test_no_targets(void) {
    rig_begin(&r, 1);
    r.server.tbt_target_ns = 0;
    rig_open(&r, "tightrope", NULL, 0);
    rig_step(&r);
    FL_CHECK(r.decision->gpu[0][FL_SET_RECORDS].set || r.decision->delay_ns != 20000000,
             "it counts work as it does without servers");
    rig_close(&r);
}

FL_SUITE("tightrope_serving", {"targets", test_targets}, {"the cheapest clock", test_cheapest},
         {"what is not safe", test_not_safe}, {"ledger", test_ledger}, {"without records", test_no_records},
         {"no targets", test_no_targets})
