/* biscale-decode, each case worked by hand. A step of 10 ms at 1500 MHz takes 10 x 1500 / f ms. The margin is -5 %, so
 * a target of 15 ms leaves 14.25: 13.6 at 1100 MHz is within it, 15 at 1000 is not. */
#include "tests/support/serving_rig.h"

typedef struct situation {
    const char *rule;
    double waiting, running, kv_pct;
    uint32_t prompt_tokens;
    double tbt_ms;
    int law; /* 1: the server's law: at 500 MHz 10 ms + 100 us a sequence, at 1500 MHz 5 ms + 50 us */
    double expected_mhz;
} situation;

static const situation situations[] = {
    {"learned: 13.6 at 1100", 0, 8, 10, 0, 15, 0, 1100},
    {"a request waits: the top", 1, 8, 10, 0, 15, 0, 1500},
    {"a step with a prompt: the top", 0, 8, 10, 64, 15, 0, 1500},
    {"the cache is used to 80 %: the top", 0, 8, 80, 0, 15, 0, 1500},
    {"to 79 %", 0, 8, 79, 0, 15, 0, 1100},
    {"nothing meets 5 ms: the top", 0, 8, 10, 0, 5, 0, 1500},
    {"the law: 10.8 ms at 500", 0, 8, 10, 0, 15, 1, 500},
    {"between its clocks: 10.8 - 5.4 (f - 500) / 1000 is 9.18 at 800, 8.64 at 900; 9.025 may be", 0, 8, 10, 0, 9.5, 1,
     900},
};

static rig r;

static void test_rule(void) {
    static const double cell[] = {500, 10, 100, 0, 1500, 5, 50, 0};
    static const double clocks[] = {500, 600, 700, 800, 900, 1000, 1100, 1300};
    const fl_table law = {.cell = cell, .row_count = 2, .column_count = 4};
    const fl_table list = {.cell = clocks, .row_count = FL_COUNT(clocks), .column_count = 1};
    for (size_t i = 0; i < FL_COUNT(situations); i++) {
        const situation *s = &situations[i];
        const fl_setting setting[] = {{"clocks_mhz", NULL, &list}, {"law", NULL, &law}};
        rig_begin(&r, 2);
        r.server.tbt_target_ns = (int64_t)(s->tbt_ms * 1e6);
        rig_open(&r, "biscale-decode", setting, s->law ? 2 : 1);
        const fl_batch_record load = {.prompt_tokens = s->prompt_tokens, .prompts = 1, .decode_sequences = 8};
        while (r.now_ns < INT64_C(4000000000)) {
            rig_know(&r, FL_SERVER_WAITING, s->waiting);
            rig_know(&r, FL_SERVER_RUNNING, s->running);
            rig_know(&r, FL_SERVER_KV_USED_PCT, s->kv_pct);
            rig_serve(&r, &load, 0.01, 0);
            rig_step(&r);
        }
        FL_CHECK(r.mhz == s->expected_mhz, "%s: %g MHz, expected %g", s->rule, r.mhz, s->expected_mhz);
        rig_close(&r);
    }
}

static void test_refusals(void) {
    static const double cell[] = {1500, 5, 50, 0, 500, 10, 100, 0};
    const fl_table law = {.cell = cell, .row_count = 2, .column_count = 4};
    const fl_setting setting = {"law", NULL, &law};
    fl_diag d = {0};
    rig_begin(&r, 2);
    FL_CHECK(rig_try(&r, "biscale-decode", &setting, 1, &d) == FL_BAD_INPUT && strstr(d.message, "ascending"), "%s",
             d.message);
    r.server.tbt_target_ns = 0;
    FL_CHECK(rig_try(&r, "biscale-decode", NULL, 0, &d) == FL_BAD_INPUT && strstr(d.message, "a TBT target"), "%s",
             d.message);
}

FL_SUITE("biscale", {"rule", test_rule}, {"refusals", test_refusals})
