/* What every policy that steps by a server's signals makes of a seeded load, number by number: the clocks that it sets
 * and all that it shows, each half second of 60. Kept in tests/golden/seeded-serving.csv with six digits; who means to
 * change one writes it anew with FL_BLESS=1, and says why. */
#include "policies/random.h"
#include "sim/instance/inside.h"
#include "tests/support/golden.h"
#include "tests/support/serving_rig.h"

#include <stdarg.h>

enum { TEXT = 1 << 17 };

static char text[TEXT];
static size_t length;
static rig r;

static void __attribute__((format(printf, 1, 2))) say(const char *format, ...) {
    va_list list;
    va_start(list, format);
    length += (size_t)vsnprintf(text + length, TEXT - length, format, list);
    va_end(list);
    CU_ASSERT_FATAL(length < TEXT);
}

/* Load rises and falls over 20 s; now and then the queue fills, or a percentile is missing. */
static void tell(fl_random *g, double now_s, bool told) {
    const double level = 0.5 - 0.5 * cos(now_s * 0.314), burst = fl_random_below(g, 40) ? 0 : 6;
    const double running = floor(24 * level), waiting = floor(3 * level * fl_random_unit(g) + burst);
    rig_know(&r, FL_SERVER_RUNNING, running);
    rig_know(&r, FL_SERVER_WAITING, waiting);
    rig_know(&r, FL_SERVER_KV_USED_PCT, 80 * level);
    rig_know(&r, FL_SERVER_OLDEST_WAIT_NS, waiting > 0 ? 2e8 * fl_random_unit(g) : 0);
    rig_add(&r, FL_SERVER_ARRIVED, floor(4 * level));
    rig_add(&r, FL_SERVER_FINISHED, floor(4 * level));
    rig_add(&r, FL_SERVER_PROMPT_TOKENS, floor(900 * level));
    rig_add(&r, FL_SERVER_OUTPUT_TOKENS, floor(60 * level));
    rig_add(&r, FL_SERVER_BATCHES, 3);
    rig_add(&r, FL_SERVER_BATCH_TOKENS, floor(1000 * level));
    rig_add(&r, FL_SERVER_TTFT_COUNT, floor(4 * level));
    rig_add(&r, FL_SERVER_TTFT_SUM_NS, 4e8 * level);
    rig_add(&r, FL_SERVER_TTFT_MISSED, !told && burst > 0 ? 1 : 0);
    rig_add(&r, FL_SERVER_TBT_MISSED, 0);
    const double ttft = 2e8 + 6e8 * level, tbt = 6e6 + 8e6 * level * fl_random_unit(g);
    const int rows[] = {FL_SERVER_TTFT_P50_NS, FL_SERVER_TTFT_P95_NS, FL_SERVER_TTFT_P99_NS,
                        FL_SERVER_TBT_P50_NS,  FL_SERVER_TBT_P95_NS,  FL_SERVER_TBT_P99_NS};
    for (int i = 0; i < 6; i++) {
        rig_know(&r, rows[i], (i < 3 ? ttft : tbt) * (0.6 + 0.2 * (i % 3)));
        if (!told)
            r.u.valid &= ~FL_BIT(rows[i]);
    }
}

static void sense(fl_random *g) {
    const double mhz = r.mhz > 0 ? r.mhz : RIG_TOP, x = mhz / RIG_TOP;
    const double watts = 60 + 200 * x * x * x + 4 * fl_random_unit(g);
    rig_gpu(&r, FL_GPU_POWER_W, watts);
    rig_gpu(&r, FL_GPU_POWER_INSTANT_W, watts);
    rig_gpu(&r, FL_GPU_ENERGY_J, (double)r.now_ns * 2e-7);
    rig_gpu(&r, FL_GPU_ENERGY_NS, (double)r.now_ns);
    rig_gpu(&r, FL_GPU_UTIL_GPU_PCT, 70 + 20 * fl_random_unit(g));
    rig_gpu(&r, FL_GPU_UTIL_MEM_PCT, 40);
    rig_gpu(&r, FL_GPU_TEMP_C, 60);
}

static void course(const fl_policy *p, int way) {
    fl_random g = fl_random_seed(31, (uint64_t)way);
    rig_begin(&r, way == 1 ? 1 : 2);
    r.server.tbt_target_ns = way == 2 ? 11000000 : 18000000;
    r.server.target_share = way == 2 ? 0 : 0.99;
    rig_open(&r, p->name, NULL, 0);
    int64_t shown_ns = 0;
    while (r.now_ns < INT64_C(60000000000)) {
        const double now_s = (double)r.now_ns * 1e-9, level = 0.5 - 0.5 * cos(now_s * 0.314);
        const fl_batch_record decode = {.decode_sequences = 1 + (uint32_t)(24 * level),
                                        .kv_tokens = (uint64_t)(20000 * level)};
        const fl_batch_record prompt = {.prompt_tokens = 500, .prompts = 1, .decode_sequences = 4, .kv_tokens = 3000};
        tell(&g, now_s, way != 1);
        sense(&g);
        rig_serve(&r, fl_random_below(&g, 4) ? &decode : &prompt, 0.004 + 0.005 * level, 0.002);
        if (way == 1)
            r.batches = 0; /* nobody tells of steps */
        rig_step(&r);
        if (r.now_ns - shown_ns < 500000000)
            continue;
        shown_ns = r.now_ns;
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        for (size_t i = 0; i < fl_instance_probe_count(r.in); i++) {
            char cell[32];
            snprintf(cell, sizeof cell, "%.6g;", r.decision->probe[i]);
            for (const char *c = cell; *c; c++)
                hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
        }
        say("%.6g,%g,%llu,%08llx\n", (double)shown_ns * 1e-9, r.mhz, (unsigned long long)r.sets,
            (unsigned long long)(hash & 0xffffffff));
    }
    rig_close(&r);
}

static void test_courses(void) {
    static const char *const names[] = {"throttllem", "agft", "ecofreq"};
    for (size_t i = 0; i < FL_COUNT(names); i++)
        for (size_t k = 0; k < fl_policies_count; k++)
            for (int way = 0; way < 3 && !strcmp(fl_policies[k]->name, names[i]); way++) {
                say("%s,%d\n", names[i], way);
                course(fl_policies[k], way);
            }
    fl_golden_check("seeded-serving.csv", text);
    length = 0;
}

FL_SUITE("seeded_serving", {"courses", test_courses})
