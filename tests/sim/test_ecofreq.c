/* EcoFreq's rule, each case worked by hand: a step of 10 ms at 1500 MHz takes 10 x 1500 / f ms where the clock is all.
 * The clocks are 800, 900, 1100, 1200, 1400 and 1500 MHz; at one not seen yet the bound has a tolerance of 3 %. */
#include "tests/support/serving_rig.h"

typedef struct situation {
    const char *rule;
    double waiting, running, wait_s;
    uint32_t prompt_tokens;
    double clock_s, flat_s; /* of a step at the top clock */
    int64_t ttft_ns, tbt_ns;
    const char *margin;
    double expected_mhz; /* after a second of it */
} situation;

static const situation situations[] = {
    {"a request waits: the top", 3, 8, 0, 0, 0.01, 0, 1000000000, 100000000, "0", 1500},
    {"15 ms: 13.6 at 1100, 16.7 at 900", 0, 8, 0, 0, 0.01, 0, 1000000000, 15000000, "0", 1100},
    {"a margin of 20 %: 16.7 of 18 at 900", 0, 8, 0, 0, 0.01, 0, 1000000000, 15000000, "0.2", 900},
    {"the wait leaves 15 ms", 0, 8, 0.985, 64, 0.01, 0, 1000000000, 100000000, "0", 1100},
    {"the wait leaves nothing", 0, 8, 2, 64, 0.01, 0, 1000000000, 100000000, "0", 1500},
    {"the clock changes nothing: the lowest, once seen", 0, 8, 0, 0, 0, 0.01, 1000000000, 15000000, "0", 800},
    {"half of it: 11.8 at 1100, from where the bound at 900 is 14.9", 0, 8, 0, 0, 0.005, 0.005, 1000000000, 14000000,
     "0", 1100},
    {"nothing meets 5 ms: the top", 0, 8, 0, 0, 0.01, 0, 1000000000, 5000000, "0", 1500},
    {"nothing in the batch: as it was", 0, 0, 0, 0, 0.01, 0, 1000000000, 100000000, "0", 1500},
};

static void run(rig *r, const situation *s, double seconds) {
    const int64_t until = r->now_ns + (int64_t)(seconds * 1e9);
    const fl_batch_record load = {.prompt_tokens = s->prompt_tokens, .prompts = 1, .decode_sequences = 8};
    while (r->now_ns < until) {
        rig_know(r, FL_SERVER_WAITING, s->waiting);
        rig_know(r, FL_SERVER_RUNNING, s->running);
        rig_know(r, FL_SERVER_OLDEST_WAIT_NS, s->wait_s * 1e9);
        if (s->running > 0)
            rig_serve(r, &load, s->clock_s, s->flat_s);
        rig_step(r);
    }
}

static rig r;

static void test_rule(void) {
    for (size_t i = 0; i < FL_COUNT(situations); i++) {
        const situation *s = &situations[i];
        const fl_setting margin = {"margin", s->margin, NULL};
        rig_begin(&r, 2);
        r.server.ttft_target_ns = s->ttft_ns;
        r.server.tbt_target_ns = s->tbt_ns;
        rig_open(&r, "ecofreq", &margin, 1);
        run(&r, s, 1);
        run(&r, s, 2);
        FL_CHECK(r.mhz == s->expected_mhz, "%s: %g MHz, expected %g", s->rule, r.mhz, s->expected_mhz);
        rig_close(&r);
    }
}

/* The released program, by hand: it starts at the lowest of the six clocks and comes back to it 5 s after the last
 * step. Of steps of 200, 8 and 8 sequences the median is 8. A batch of 200 has lines of its own, of which nothing is
 * known yet: the top clock. Back at 8 sequences the lines of the first tile still hold. */
static void test_released(void) {
    const fl_setting rules = {"rules", "released", NULL};
    const situation *s = &situations[1]; /* 15 ms: 13.6 at 1100 */
    rig_begin(&r, 1);
    rig_open(&r, "ecofreq", &rules, 1);
    rig_know(&r, FL_SERVER_WAITING, 0);
    rig_know(&r, FL_SERVER_RUNNING, 0);
    rig_step(&r);
    FL_CHECK(r.mhz == 800, "it starts at %g MHz, expected 800", r.mhz);
    r.server.ttft_target_ns = s->ttft_ns, r.server.tbt_target_ns = s->tbt_ns;
    rig_know(&r, FL_SERVER_WAITING, 1);
    rig_step(&r);
    FL_CHECK(r.mhz == 1500, "%g MHz while a request waits, expected 1500", r.mhz);
    run(&r, s, 3);
    FL_CHECK(r.mhz == 1100, "%g MHz, expected 1100", r.mhz);
    const fl_batch_record large = {.decode_sequences = 200}, small = {.decode_sequences = 8};
    rig_batch(&r, &large, 0.0136);
    rig_step(&r);
    FL_CHECK(r.mhz == 1500, "%g MHz in a tile that is not known, expected 1500", r.mhz);
    rig_batch(&r, &large, 0.01), rig_batch(&r, &small, 0.01), rig_batch(&r, &small, 0.01);
    rig_step(&r);
    FL_CHECK(r.mhz == 1100, "%g MHz by the median of three steps, expected 1100", r.mhz);
    rig_know(&r, FL_SERVER_RUNNING, 0);
    for (const int64_t until = r.now_ns + INT64_C(4900000000); r.now_ns < until;)
        rig_step(&r);
    FL_CHECK(r.mhz == 1100, "%g MHz after 4.9 s, expected 1100", r.mhz);
    for (const int64_t until = r.now_ns + INT64_C(200000000); r.now_ns < until;)
        rig_step(&r);
    FL_CHECK(r.mhz == 800, "%g MHz after 5.1 s, expected 800", r.mhz);
    rig_close(&r);
}

/* The default holds as long as a signal is not known, and the rule after that. */
static void test_unknown(void) {
    rig_begin(&r, 1);
    rig_open(&r, "ecofreq", NULL, 0);
    run(&r, &situations[1], 1);
    FL_CHECK(r.mhz == 1100, "%g MHz, expected 1100", r.mhz);
    r.u.valid = 0;
    rig_step(&r);
    FL_CHECK(r.mhz == FL_DEFAULT, "%g MHz where nothing is known, expected the default", r.mhz);
    const uint64_t sets = r.sets;
    for (int i = 0; i < 10; i++)
        rig_step(&r);
    FL_CHECK(r.sets == sets, "it sets the default again and again");
    run(&r, &situations[1], 1);
    FL_CHECK(r.mhz == 1100, "%g MHz once signals are back, expected 1100", r.mhz);
    rig_close(&r);
}

/* Without records of steps the mean time between tokens tells them. */
static void test_no_records(void) {
    const fl_batch_record load = {.decode_sequences = 8};
    rig_begin(&r, 1);
    rig_open(&r, "ecofreq", NULL, 0);
    for (int i = 0; i < 200; i++) {
        rig_know(&r, FL_SERVER_WAITING, 0);
        rig_know(&r, FL_SERVER_RUNNING, 8);
        rig_serve(&r, &load, 0.01, 0);
        r.batches = 0;
        rig_step(&r);
    }
    FL_CHECK(r.mhz == 1100, "%g MHz, expected 1100", r.mhz);
    rig_close(&r);
}

/* A step that began before its clock was in force says nothing of that clock. */
static void test_between(void) {
    const fl_batch_record slow = {.decode_sequences = 8};
    rig_begin(&r, 1);
    rig_open(&r, "ecofreq", NULL, 0);
    run(&r, &situations[1], 1);
    rig_know(&r, FL_SERVER_WAITING, 1);
    rig_step(&r);
    FL_CHECK(r.mhz == 1500, "%g MHz, expected 1500", r.mhz);
    const int64_t set_ns = r.now_ns - r.decision->delay_ns;
    for (int i = 0; i < 200; i++) {
        r.engine_ns = set_ns - 1000000;
        rig_batch(&r, &slow, 0.05);
    }
    rig_step(&r);
    const double predicted = r.decision->probe[1];
    FL_CHECK(fabs(predicted / 0.01 - 1) < 0.01, "a step at 1500 MHz is predicted to take %g s, expected 0.01",
             predicted);
    rig_close(&r);
}

static void test_refusals(void) {
    fl_diag d = {0};
    rig_begin(&r, 2);
    r.server.tbt_target_ns = 0;
    FL_CHECK(rig_try(&r, "ecofreq", NULL, 0, &d) == FL_BAD_INPUT && strstr(d.message, "a TTFT and a TBT target"), "%s",
             d.message);
    rig_begin(&r, 2);
    r.index[1] = 0;
    FL_CHECK(rig_try(&r, "ecofreq", NULL, 0, &d) == FL_BAD_INPUT && strstr(d.message, "share no GPU"), "%s", d.message);
    rig_begin(&r, 2);
    r.server.gpu_count = 0;
    FL_CHECK(rig_try(&r, "ecofreq", NULL, 0, &d) == FL_BAD_INPUT && strstr(d.message, "which GPUs"), "%s", d.message);
}

FL_SUITE("ecofreq", {"rule", test_rule}, {"the released program", test_released},
         {"signals that are not known", test_unknown}, {"without records of steps", test_no_records},
         {"steps between clocks", test_between}, {"refusals", test_refusals})
