/* throttLL'eM's rule, each case worked by hand: steps of 10 x 1500 / f ms whatever is in them; clocks 800, 900, 1100,
 * 1200, 1400 and 1500 MHz, the bound at one not seen yet with a tolerance of 3 %. */
#include "tests/support/serving_rig.h"

static const struct {
    const char *rule;
    double waiting, wait_s, kv_pct;
    bool prompts_seen;
    double expected_mhz;
    const char *margin; /* on both targets; NULL: none */
} situations[] = {
    {"15 ms between tokens: 13.6 at 1100", 0, 0, 10, false, 1100, NULL},
    {"who waits has a second: 1100 still", 4, 0.1, 10, true, 1100, NULL},
    {"the wait leaves 5 ms: nothing meets it, the top", 4, 0.995, 10, true, 1500, NULL},
    {"the wait leaves 12 ms: 10.7 at 1400", 4, 0.988, 10, true, 1400, NULL},
    {"nobody knows how long a prompt takes: the top", 4, 0.1, 10, false, 1500, NULL},
    {"95 % of the cache, and 8 requests with 128 tokens to go: it runs over, the top", 0, 0, 95, false, 1500, NULL},
    {"85 % of it does not", 0, 0, 85, false, 1100, NULL},
    {"a fifth more between tokens, 18 ms: 16.7 at 900", 0, 0, 10, false, 900, "0.2"},
    {"a tenth more for the first: 12 ms are left, 10.7 at 1400", 4, 1.088, 10, true, 1400, "0.1"},
};

enum { BATCH = 1, KV = 2 }; /* places of the probes */

static rig r;

static void test_rule(void) {
    for (size_t i = 0; i < FL_COUNT(situations); i++) {
        rig_begin(&r, 1);
        const fl_setting margin = {.name = "margin", .text = (char *)situations[i].margin};
        rig_open(&r, "throttllem", &margin, situations[i].margin != NULL);
        for (int k = 0; k < 60; k++) {
            const fl_batch_record decode = {.decode_sequences = 8 + (uint32_t)k % 8,
                                            .kv_tokens = 500 + 200 * (uint64_t)k},
                                  prompt = {
                                      .prompt_tokens = 2048, .prompts = 4, .decode_sequences = 8, .kv_tokens = 4000};
            rig_know(&r, FL_SERVER_WAITING, situations[i].waiting);
            rig_know(&r, FL_SERVER_RUNNING, 8);
            rig_know(&r, FL_SERVER_OLDEST_WAIT_NS, situations[i].wait_s * 1e9);
            rig_know(&r, FL_SERVER_KV_USED_PCT, situations[i].kv_pct);
            rig_serve(&r, k % 2 && situations[i].prompts_seen ? &prompt : &decode, 0.01, 0);
            rig_step(&r);
        }
        FL_CHECK(r.mhz == situations[i].expected_mhz, "%s: %g MHz, expected %g", situations[i].rule, r.mhz,
                 situations[i].expected_mhz);
        rig_close(&r);
    }
}

/* All that waits is taken into the batch, as far as the server's most sequences let it; a server that states none takes
 * all. 8 run and 4 wait. With 256 tokens to a request and half of them to go, each of the batch adds 1.28 % of the
 * cache's 10,000 tokens, and the prompts that wait 20.48 %. */
static void test_batch(void) {
    static const struct {
        uint32_t most;
        double batch;
    } rows[] = {{64, 12}, {12, 12}, {11, 11}, {8, 8}, {1, 1}, {0, 12}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        rig_begin(&r, 1);
        r.server.max_seqs = rows[i].most;
        rig_open(&r, "throttllem", NULL, 0);
        for (int k = 0; k < 3; k++) {
            const fl_batch_record decode = {.decode_sequences = 8, .kv_tokens = 1000};
            rig_know(&r, FL_SERVER_WAITING, 4);
            rig_know(&r, FL_SERVER_RUNNING, 8);
            rig_know(&r, FL_SERVER_OLDEST_WAIT_NS, 0);
            rig_know(&r, FL_SERVER_KV_USED_PCT, 10);
            rig_serve(&r, &decode, 0.01, 0);
            rig_step(&r);
        }
        FL_CHECK(r.decision->probe[BATCH] == rows[i].batch, "of at most %u: a batch of %g, expected %g", rows[i].most,
                 r.decision->probe[BATCH], rows[i].batch);
        FL_CHECK(fabs(r.decision->probe[KV] - (10 + 20.48 + 1.28 * rows[i].batch)) < 1e-9,
                 "of at most %u: %g %% of the cache", rows[i].most, r.decision->probe[KV]);
        rig_close(&r);
    }
}

static void test_unknown(void) {
    rig_begin(&r, 2);
    rig_open(&r, "throttllem", NULL, 0);
    rig_step(&r);
    FL_CHECK(r.mhz == FL_DEFAULT, "%g MHz where nothing is known, expected the default", r.mhz);
    rig_close(&r);
}

FL_SUITE("throttllem", {"rule", test_rule}, {"the projected batch", test_batch},
         {"signals that are not known", test_unknown})
