/* The law of a serving engine's steps: by hand, at other clocks, and from tables. */
#include "models/laws/inside.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool near(double x, double y) { return fabs(x - y) <= 1e-12 * fmax(fabs(x), fabs(y)); }

/* Round numbers: at 1 GHz a token 1 ms, a sequence 0.5 ms, the weights 10 ms. p = 1 adds up. */
static fl_step_law law_of_hand(void) {
    fl_step_law l = fl_step_law_none();
    l.host_s = 1e-3;
    l.host_sequence_s = 1e-4;
    l.token = 1e-3;
    l.sequence = 5e-4;
    l.weights_s = 10e-3;
    l.weights_clock = 2e-3;
    l.pair = 1e-6;
    l.chunk_key = 1e-7;
    l.kv_s = 1e-6;
    l.kv_clock = 2e-6;
    l.decode = 1e-5;
    l.kv_beside_s = 4e-6;
    l.decode_beside = 3e-5;
    l.sm_mhz[0] = 900;
    l.sm_mhz[1] = 2000;
    l.sm_count = 2;
    return l;
}

static void test_rounding(void) {
    static const uint32_t tiles[][2] = {{0, 0},    {1, 1},     {3, 4},     {64, 64},
                                        {65, 128}, {128, 128}, {129, 256}, {257, 384}};
    static const uint32_t padded[][3] = {{1, 512, 1},     {3, 512, 4},     {5, 512, 8},     {250, 512, 256},
                                         {257, 512, 272}, {512, 512, 512}, {513, 512, 513}, {129, 128, 129},
                                         {100, 0, 100},   {258, 260, 258}, {123, 123, 123}, {120, 123, 120}};
    for (size_t i = 0; i < COUNT(tiles); i++)
        FL_CHECK(fl_step_tiles(tiles[i][0]) == tiles[i][1], "%u tokens: %u", tiles[i][0], fl_step_tiles(tiles[i][0]));
    for (size_t i = 0; i < COUNT(padded); i++)
        FL_CHECK(fl_step_padded(padded[i][0], padded[i][1]) == padded[i][2], "%u of %u: %u", padded[i][0], padded[i][1],
                 fl_step_padded(padded[i][0], padded[i][1]));
    CU_ASSERT(fl_step_tiles(UINT32_MAX) == UINT32_MAX);
}

static void test_shape(void) {
    fl_step_shape s = {0};
    fl_step_add_prompt(&s, 4, 100); /* 101 + 102 + 103 + 104 keys */
    fl_step_add_decode(&s, 10);
    fl_step_add_decode(&s, 20);
    FL_CHECK(s.tokens == 6 && s.sequences == 3 && s.prompts == 1 && s.decodes == 2 && s.prompt_tokens == 4, "counts");
    FL_CHECK(s.pairs == 410, "%llu pairs", (unsigned long long)s.pairs);
    FL_CHECK(s.kv_read == 104 + 11 + 21 && s.kv_decode == 32, "KV %llu, %llu", (unsigned long long)s.kv_read,
             (unsigned long long)s.kv_decode);
}

/* Every term of the equation, one by one. */
static void test_by_hand(void) {
    const fl_step_law l = law_of_hand();
    fl_step_shape decodes = {0}, both = {0}, none = {0};
    fl_step_add_decode(&decodes, 99);
    fl_step_add_decode(&decodes, 99);
    fl_step_add_decode(&decodes, 99);
    both = decodes;
    fl_step_add_prompt(&both, 2, 0); /* 3 pairs, 2 tokens of KV */
    /* 3 tokens are 4; at 2 GHz: 1.3 ms of host, products (4 + 1.5) / 2 + 10 + 1, attention 3e-5 / 2 + 300 (1 + 1) us */
    const double alone = 1.3e-3 + 5.5e-3 / 2 + 10e-3 + 1e-3 + 1.5e-5 + 300 * 2e-6;
    /* 5 tokens are 8, 4 sequences: chunk 3e-6 / 2 + 2 (1 + 1 + 0.05) us, decodes beside it */
    const double mixed = 1.4e-3 + 10e-3 / 2 + 10e-3 + 1e-3 + 1.5e-6 + 2 * 2.05e-6 + 4.5e-5 + 300 * 5e-6;
    FL_CHECK(near(fl_step_time_s(&l, &decodes, 2000, 1), alone), "%.9g, expected %.9g",
             fl_step_time_s(&l, &decodes, 2000, 1), alone);
    FL_CHECK(near(fl_step_time_s(&l, &both, 2000, 1), mixed), "%.9g, expected %.9g", fl_step_time_s(&l, &both, 2000, 1),
             mixed);
    /* a memory clock half as fast doubles the parts that follow it: weights and k */
    FL_CHECK(near(fl_step_time_s(&l, &decodes, 2000, 0.5), alone + 10e-3 + 300e-6), "memory clock");
    CU_ASSERT(fl_step_time_s(&l, &none, 2000, 1) == 0);
    fl_step_point at;
    CU_ASSERT_FATAL(fl_step_at(&l, &decodes, 2000, 1, &at) == FL_MODEL_OK);
    FL_CHECK(near(at.compute, (5.5e-3 / 2 + 1.5e-5) / alone) && near(at.memory, (11e-3 + 600e-6) / alone),
             "shares %g, %g", at.compute, at.memory);
    fl_step_law tp = l;
    tp.reduces = 64;
    tp.reduce_s = 100e-6;
    tp.reduce_token_s = 0.4e-6;
    FL_CHECK(near(fl_step_time_s(&tp, &decodes, 2000, 1), alone + 64 * (100e-6 + 3 * 0.4e-6)), "all-reduces");
    FL_CHECK(near(fl_step_time_s(&tp, &decodes, 1000, 1) - fl_step_time_s(&l, &decodes, 1000, 1), 64 * 101.2e-6),
             "which no clock changes");
}

static void test_overlap(void) {
    fl_step_law l = fl_step_law_none();
    fl_step_shape s = {0};
    l.token = 3e-3;
    l.weights_s = 4e-3;
    l.sharpness = 2;
    fl_step_add_prompt(&s, 1, 0);
    FL_CHECK(near(fl_step_time_s(&l, &s, 1000, 1), 5e-3), "3 and 4 are %g", fl_step_time_s(&l, &s, 1000, 1));
    l.sharpness = INFINITY;
    FL_CHECK(near(fl_step_time_s(&l, &s, 1000, 1), 4e-3), "the longer one");
    fl_step_point at;
    CU_ASSERT(fl_step_at(&l, &s, 1000, 1, &at) == FL_MODEL_OK && near(at.memory, 1) && near(at.compute, 0.75));
}

/* Over random batches: never longer at a higher clock, no jumps, shares within 0..1. */
static void test_over_clocks(void) {
    const uint64_t seed = 20;
    fl_random random = fl_random_seed(seed, 0);
    fl_step_law l = law_of_hand();
    for (int i = 0; i < 200; i++) {
        fl_step_shape s = {0};
        l.sharpness = 1 + 8 * fl_random_unit(&random);
        l.attention_sharpness = 1 + 8 * fl_random_unit(&random);
        for (int k = (int)(1 + 40 * fl_random_unit(&random)); k > 0; k--)
            fl_step_add_decode(&s, (uint64_t)(4000 * fl_random_unit(&random)));
        if (fl_random_unit(&random) < 0.5)
            fl_step_add_prompt(&s, (uint32_t)(1 + 2000 * fl_random_unit(&random)),
                               (uint64_t)(3000 * fl_random_unit(&random)));
        double before = fl_step_time_s(&l, &s, 300, 1);
        for (double mhz = 310; mhz < 3000; mhz += 10) {
            fl_step_point at = {0};
            FL_CHECK(fl_step_at(&l, &s, mhz, 1, &at) == FL_MODEL_OK, "seed %llu", (unsigned long long)seed);
            FL_CHECK(at.time_s <= before && at.time_s >= before * (mhz - 10) / mhz * (1 - 1e-9),
                     "seed %llu, batch %d at %g MHz: %g s after %g", (unsigned long long)seed, i, mhz, at.time_s,
                     before);
            FL_CHECK(at.compute >= 0 && at.compute <= 1 && at.memory >= 0 && at.memory <= 1, "shares %g, %g",
                     at.compute, at.memory);
            before = at.time_s;
        }
    }
}

static void test_outside(void) {
    static const struct {
        double mhz;
        bool two, one;
    } rows[] = {{899, true, true},   {899.49, true, true},   {899.51, false, false}, {899.5, false, false},
                {900, false, false}, {900.49, false, false}, {900.5, false, false},  {900.51, false, true},
                {1500, false, true}, {2000.49, false, true}, {2000.5, false, true},  {2000.51, true, true}};
    fl_step_law two = law_of_hand(), one = law_of_hand(), none = law_of_hand();
    fl_step_shape s = {0};
    fl_step_add_decode(&s, 1);
    one.sm_count = 1;
    none.sm_count = 0;
    for (size_t i = 0; i < COUNT(rows); i++) {
        fl_step_point at;
        CU_ASSERT(fl_step_at(&two, &s, rows[i].mhz, 1, &at) == FL_MODEL_OK);
        FL_CHECK(at.outside == rows[i].two, "two clocks, %g MHz", rows[i].mhz);
        FL_CHECK(fl_step_outside(&one, rows[i].mhz) == rows[i].one, "one clock, %g MHz", rows[i].mhz);
        FL_CHECK(fl_step_outside(&none, rows[i].mhz), "no clock, %g MHz", rows[i].mhz);
    }
    fl_step_point at;
    CU_ASSERT(fl_step_at(&two, &s, 0, 1, &at) == FL_MODEL_INVALID);
    CU_ASSERT(fl_step_at(&two, &s, NAN, 1, &at) == FL_MODEL_INVALID);
    CU_ASSERT(fl_step_at(&two, &s, 1000, 0, &at) == FL_MODEL_INVALID);
    CU_ASSERT(fl_step_time_s(&two, &s, -1, 1) == 0);
}

/* ---- tables ---- */

static double tokens[] = {1, 4, 8}, tokens_s[] = {10e-3, 10e-3, 14e-3};
static double decodes[] = {1, 1, 4}, kv[] = {10, 20, 10}, decodes_s[] = {1e-3, 2e-3, 4e-3};
static double chunk[] = {16, 16}, before[] = {0, 64}, chunk_s[] = {3e-3, 4e-3};

static fl_step_law law_of_tables(void) {
    fl_step_law l = fl_step_law_none();
    l.by_tokens = (fl_step_grid){.at = tokens, .time_s = tokens_s, .count = 3};
    l.ref_sm_mhz = 1000;
    l.sharpness = 2;
    return l;
}

static void test_tables(void) {
    fl_step_law l = law_of_tables();
    static const struct {
        uint32_t tokens;
        double at_ref_s;
    } rows[] = {{1, 10e-3}, {2, 10e-3}, {6, 12e-3}, {8, 14e-3}, {16, 28e-3}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        fl_step_shape s = {0};
        fl_step_add_prompt(&s, rows[i].tokens, 0);
        FL_CHECK(near(fl_step_time_s(&l, &s, 1000, 1), rows[i].at_ref_s), "%u tokens: %g", rows[i].tokens,
                 fl_step_time_s(&l, &s, 1000, 1));
        /* 10 ms are memory; what is more is compute, by the norm, and takes half as long at twice the clock */
        const double compute = sqrt(rows[i].at_ref_s * rows[i].at_ref_s - 1e-4);
        FL_CHECK(near(fl_step_time_s(&l, &s, 2000, 1), hypot(compute / 2, 10e-3)), "%u tokens at twice the clock",
                 rows[i].tokens);
        FL_CHECK(near(fl_step_time_s(&l, &s, 1000, 0.5), hypot(compute, 20e-3)), "%u tokens at half the memory's",
                 rows[i].tokens);
    }
    fl_step_shape six = {0};
    fl_step_add_prompt(&six, 5, 0);
    l.graph_tokens = 8;
    FL_CHECK(near(fl_step_time_s(&l, &six, 1000, 1), 14e-3), "padded to 8: %g", fl_step_time_s(&l, &six, 1000, 1));
}

/* 2 of the least 10 ms follow the clock: 8 ms + 2 ms / f. A second table has the same share, 1 of its 5 ms. */
static void test_tables_over_clocks(void) {
    double one = 1, five = 5e-3;
    fl_step_law l = law_of_tables();
    l.weights_clock = 2e-3;
    for (uint32_t n = 1; n <= 8; n += 7) {
        const fl_step_shape s = {.tokens = n, .sequences = 1};
        const double whole = n == 1 ? 10e-3 : 14e-3, compute = sqrt(whole * whole - 1e-4);
        FL_CHECK(near(fl_step_time_s(&l, &s, 1000, 1), whole), "%u tokens at the tables' clock", n);
        FL_CHECK(near(fl_step_time_s(&l, &s, 2000, 1), hypot(compute / 2, 9e-3)), "%u tokens at twice the clock", n);
        FL_CHECK(near(fl_step_time_s(&l, &s, 500, 0.5), hypot(2 * compute, 20e-3)), "%u tokens at half of both", n);
    }
    l.by_sequence = (fl_step_grid){.at = &one, .time_s = &five, .count = 1};
    const fl_step_shape s = {.tokens = 1, .sequences = 1};
    FL_CHECK(near(fl_step_time_s(&l, &s, 2000, 1), 9e-3 + 4.5e-3), "%g", fl_step_time_s(&l, &s, 2000, 1));
    l.weights_clock = 11e-3; /* more than there is: all of it */
    FL_CHECK(near(fl_step_time_s(&l, &s, 2000, 1), 7.5e-3), "%g", fl_step_time_s(&l, &s, 2000, 1));
}

/* n decodes of so many tokens of KV each. */
static double attention(const fl_step_law *l, uint32_t n, uint64_t each, uint32_t prompt, double mhz) {
    fl_step_shape s = {0}, rest = {0};
    for (uint32_t i = 0; i < n; i++)
        fl_step_add_decode(&s, each - 1);
    if (prompt)
        fl_step_add_prompt(&s, prompt, 0);
    rest.tokens = s.tokens;
    rest.sequences = s.sequences;
    return fl_step_time_s(l, &s, mhz, 1) - fl_step_time_s(l, &rest, mhz, 1);
}

static void test_grids(void) {
    static const struct {
        uint32_t n;
        uint64_t kv;
        double time_s;
    } rows[] = {{1, 5, 1e-3},  {1, 10, 1e-3}, {1, 15, 1.5e-3}, {1, 40, 4e-3},
                {2, 10, 2e-3}, {4, 10, 4e-3}, {4, 20, 8e-3},   {8, 10, 8e-3}};
    fl_step_law l = law_of_tables();
    l.by_decodes = (fl_step_grid){decodes, kv, decodes_s, 3};
    l.kv_s = 1e-4; /* memory: no SM clock changes it */
    for (size_t i = 0; i < COUNT(rows); i++) {
        FL_CHECK(fabs(attention(&l, rows[i].n, rows[i].kv, 0, 1000) - rows[i].time_s) < 1e-12, "%u of %llu: %g",
                 rows[i].n, (unsigned long long)rows[i].kv, attention(&l, rows[i].n, rows[i].kv, 0, 1000));
        FL_CHECK(fabs(attention(&l, rows[i].n, rows[i].kv, 0, 2000) - rows[i].time_s) < 1e-12, "at twice the clock");
    }
    l.kv_s = 0;
    l.decode = 1e-3; /* compute: it does */
    FL_CHECK(fabs(attention(&l, 2, 10, 0, 2000) - 1e-3) < 1e-12, "compute: %g", attention(&l, 2, 10, 0, 2000));
    fl_step_law prompts = law_of_tables();
    prompts.by_chunk = (fl_step_grid){chunk, before, chunk_s, 2};
    prompts.pair = 1e-6;
    FL_CHECK(fabs(attention(&prompts, 0, 0, 16, 1000) - 3e-3) < 1e-12, "a chunk: %g",
             attention(&prompts, 0, 0, 16, 1000));
    FL_CHECK(fabs(attention(&prompts, 0, 0, 16, 2000) - 1.5e-3) < 1e-12, "at twice the clock");
    /* beside a chunk of 16 tokens decodes take their grid's time, longer by its tokens */
    prompts.by_decodes_beside = l.by_decodes;
    prompts.decode_beside = 1e-3;
    prompts.beside_token = 0.01;
    FL_CHECK(fabs(attention(&prompts, 2, 10, 16, 1000) - 3e-3 - 2e-3 * 1.16) < 1e-12, "beside: %g",
             attention(&prompts, 2, 10, 16, 1000));
}

/* A grid that corrects an equation which gives no time corrects nothing. */
static void test_nothing_to_correct(void) {
    fl_step_law l = law_of_tables();
    l.by_decodes = l.by_decodes_beside = (fl_step_grid){decodes, kv, decodes_s, 3};
    l.by_chunk = (fl_step_grid){chunk, before, chunk_s, 2};
    FL_CHECK(
        attention(&l, 2, 10, 0, 1000) == 0 && attention(&l, 0, 0, 16, 1000) == 0 && attention(&l, 2, 10, 16, 1000) == 0,
        "%g, %g, %g", attention(&l, 2, 10, 0, 1000), attention(&l, 0, 0, 16, 1000), attention(&l, 2, 10, 16, 1000));
}

/* A step that waits for keys one after another: c' holds up the chunk, loads the SMs and not the memory. */
static void test_walk(void) {
    fl_step_law l = fl_step_law_none();
    fl_step_shape s = {0};
    l.host_s = 1e-3;
    l.chunk_key = 1e-6;
    l.kv_s = 2e-6;
    l.kv_clock = 5e-7;
    l.pair = 1e-7;
    fl_step_add_prompt(&s, 4, 100); /* 410 pairs, 104 keys */
    fl_step_point at;
    for (int norm = 1; norm <= 2; norm++) {
        l.attention_sharpness = norm;
        CU_ASSERT_FATAL(fl_step_at(&l, &s, 2000, 0.5, &at) == FL_MODEL_OK);
        const double compute = 410e-7 / 2, memory = 104 * (2e-6 / 0.5 + 5e-7 / 2), walk = 104e-6 / 2;
        const double time = 1e-3 + (norm == 1 ? compute + memory + walk : hypot(compute, memory + walk));
        FL_CHECK(near(at.time_s, time) && near(at.compute, (compute + walk) / time) && near(at.memory, memory / time),
                 "norm %d: %g s, expected %g, shares %g, %g", norm, at.time_s, time, at.compute, at.memory);
    }
}

/* Chunks of a step against the grid of one: the mean chunk, over the mean context that makes as many pairs; between its
 * rows by lines along both, before the first as there, beyond the last in proportion. */
static void test_chunk_grid(void) {
    double size[] = {16, 16, 32, 32}, context[] = {0, 64, 0, 64}, time[] = {3e-3, 4e-3, 5e-3, 9e-3};
    fl_step_law l = law_of_tables();
    l.by_chunk = (fl_step_grid){size, context, time, 4};
    l.pair = 1e-6;
    static const struct {
        uint32_t tokens[2];
        uint64_t context[2];
        double chunk, mean; /* by hand: pairs over tokens, less half of the chunk and one */
    } rows[] = {
        {{16, 0}, {0, 0}, 16, 0},
        {{24, 0}, {32, 0}, 24, 32},
        {{8, 0}, {16, 0}, 8, 16},
        {{64, 0}, {128, 0}, 64, 128},
        {{16, 32}, {0, 0}, 24, (16 * 17 / 2 + 32 * 33 / 2) / 48.0 - 12.5},
        {{16, 16}, {10, 50}, 16, 30},
        {{32, 32}, {64, 0}, 32, 32},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fl_step_shape s = {0}, rest = {0};
        for (int k = 0; k < 2; k++)
            if (rows[i].tokens[k])
                fl_step_add_prompt(&s, rows[i].tokens[k], rows[i].context[k]);
        rest.tokens = s.tokens;
        rest.sequences = s.sequences;
        const double c = rows[i].chunk, x = fmax(fmin(c, 32), 16), y = fmin(rows[i].mean, 64);
        double line[2];
        for (int k = 0; k < 2; k++)
            line[k] = (time[2 * k] + (time[2 * k + 1] - time[2 * k]) * y / 64) * fmax(1, rows[i].mean / 64);
        const double grid = (line[0] + (line[1] - line[0]) * (x - 16) / 16) * fmax(1, c / 32);
        /* the equation's factor at the mean chunk: what the grid says over a GHz us for each of its pairs */
        const double want = (double)s.pairs * 1e-6 * grid / (1e-6 * c * (rows[i].mean + (c + 1) / 2));
        const double got = fl_step_time_s(&l, &s, 1000, 1) - fl_step_time_s(&l, &rest, 1000, 1);
        FL_CHECK(fabs(got / want - 1) < 1e-9, "row %zu: %g, expected %g", i, got, want);
    }
}

/* Every number may be 0 but not below; a sharpness is 1 at least. */
static void check_every_member(void) {
    fl_step_law l = law_of_hand();
    double *const part[] = {
        &l.host_s,       &l.host_sequence_s, &l.token,          &l.sequence,      &l.weights_s,    &l.weights_clock,
        &l.pair,         &l.chunk_key,       &l.kv_s,           &l.kv_clock,      &l.decode,       &l.kv_beside_s,
        &l.beside_token, &l.reduce_s,        &l.reduce_token_s, &l.decode_beside, &l.ref_sm_mhz,   &l.ref_mem_mhz,
        &l.sm_load,      &l.memory_load,     &l.expert_s,       &l.expert_clock,  &l.expert_token, &l.expert_load};
    for (size_t i = 0; i < COUNT(part); i++) {
        const double kept = *part[i], value[] = {0, -1e-9, INFINITY};
        for (int at = 0; at < 3; at++) {
            *part[i] = value[at];
            FL_CHECK(fl_step_law_check(&l) == (at ? FL_MODEL_INVALID : FL_MODEL_OK), "part %zu is %g", i, value[at]);
        }
        *part[i] = kept;
    }
    double *const sharp[] = {&l.sharpness, &l.attention_sharpness};
    for (size_t i = 0; i < 2; i++) {
        *sharp[i] = 0.999;
        FL_CHECK(fl_step_law_check(&l) == FL_MODEL_INVALID, "sharpness %zu", i);
        *sharp[i] = 1;
        FL_CHECK(fl_step_law_check(&l) == FL_MODEL_OK, "sharpness %zu of 1", i);
    }
    for (uint32_t i = 0; i < FL_STEP_CLOCKS; i++)
        l.sm_mhz[i] = 100 + i;
    l.sm_count = FL_STEP_CLOCKS;
    FL_CHECK(fl_step_law_check(&l) == FL_MODEL_OK, "as many clocks as there is room for");
    l.sm_count++;
    FL_CHECK(fl_step_law_check(&l) == FL_MODEL_INVALID, "one clock more");
    l.sm_count = 2;
    l.sm_mhz[1] = l.sm_mhz[0];
    FL_CHECK(fl_step_law_check(&l) == FL_MODEL_INVALID, "one clock twice");
    l.sm_mhz[1] = INFINITY;
    FL_CHECK(fl_step_law_check(&l) == FL_MODEL_INVALID, "an infinite clock");
}

/* A table of any kind needs the clock at which it holds, positive times, and rows in order. */
static void check_every_table(void) {
    double at[] = {1, 2, 3}, two[] = {2, 2, 3}, again[] = {0, 5, 0}, time[] = {1, 2, 3};
    for (int kind = 0; kind < 6; kind++) {
        fl_step_law l = law_of_hand();
        l.grid[kind] =
            (fl_step_grid){.at = kind < 2 ? at : two, .kv = kind < 2 ? NULL : again, .time_s = time, .count = 3};
        double *const x = kind < 2 ? at : two;
        l.ref_sm_mhz = 1000;
        FL_CHECK(fl_step_law_check(&l) == FL_MODEL_OK, "kind %d", kind);
        l.ref_sm_mhz = 0;
        FL_CHECK(fl_step_law_check(&l) == FL_MODEL_INVALID, "kind %d of no clock", kind);
        l.ref_sm_mhz = 1000;
        struct {
            double *member, value;
        } bad[] = {{&time[0], 0},  {&time[2], -1},        {&time[1], INFINITY}, {&time[1], NAN},
                   {&x[0], 0},     {&x[2], INFINITY},     {&x[2], 1},           {&x[0], NAN},
                   {&again[1], 0}, {&again[1], INFINITY}, {&again[2], -1e-9}};
        for (size_t i = 0; i < (kind < 2 ? 8 : COUNT(bad)); i++) {
            const double kept = *bad[i].member;
            *bad[i].member = bad[i].value;
            FL_CHECK(fl_step_law_check(&l) == FL_MODEL_INVALID, "kind %d, row %zu", kind, i);
            *bad[i].member = kept;
        }
        if (kind < 2) {
            x[1] = x[0];
            FL_CHECK(fl_step_law_check(&l) == FL_MODEL_INVALID, "kind %d: a number of tokens twice", kind);
            x[1] = 2;
        }
    }
}

static void test_check(void) {
    fl_step_law l = law_of_hand();
    CU_ASSERT(fl_step_law_check(&l) == FL_MODEL_OK);
    double *const member[] = {&l.host_s,  &l.token,     &l.weights_clock,       &l.kv_beside_s,  &l.reduce_token_s,
                              &l.sm_load, &l.sharpness, &l.attention_sharpness, &l.beside_token, &l.sm_mhz[1]};
    for (size_t i = 0; i < COUNT(member); i++) {
        const double kept = *member[i];
        *member[i] = -1;
        FL_CHECK(fl_step_law_check(&l) == FL_MODEL_INVALID, "member %zu is negative", i);
        *member[i] = NAN;
        FL_CHECK(fl_step_law_check(&l) == FL_MODEL_INVALID, "member %zu is no number", i);
        *member[i] = kept;
    }
    fl_step_law tables = law_of_tables();
    CU_ASSERT(fl_step_law_check(&tables) == FL_MODEL_OK);
    tables.ref_sm_mhz = 0;
    FL_CHECK(fl_step_law_check(&tables) == FL_MODEL_INVALID, "tables of no clock");
    check_every_member();
    check_every_table();
    fl_step_law none = fl_step_law_none();
    FL_CHECK(fl_step_law_check(&none) == FL_MODEL_INVALID, "a law that takes no time");
    fl_step_law_free(&none);
}

/* ---- mixture of experts ---- */

static fl_step_law law_of_experts(uint32_t ranks, uint32_t slices) {
    fl_step_law l = law_of_hand();
    l.experts = 128;
    l.top_k = 8;
    l.expert_ranks = ranks;
    l.expert_slices = slices;
    l.expert_floor_s = 1e-3;
    l.expert_s = 1e-4;
    l.expert_token = 1e-5;
    l.expert_sharpness = 2;
    return l;
}

/* E = X (1 - (1 - K/X)^n), and even routing over R ranks: each computes n / R tokens' rows with E / R experts, also
 * where it holds a slice of each expert. */
static void test_even_experts(void) {
    static const double touched[][2] = {{1, 8}, {2, 15.5}, {4, 29.1}, {8, 51.6}, {16, 82.4}, {32, 111.8}, {64, 125.9}};
    for (uint32_t ranks = 1; ranks <= 8; ranks *= 2) {
        fl_step_law whole = law_of_experts(ranks, 1), sliced = law_of_experts(1, ranks), none = law_of_hand();
        for (size_t i = 0; i < COUNT(touched); i++) {
            double load;
            const double n = touched[i][0], e = 128 * (1 - pow(1 - 8.0 / 128, n));
            FL_CHECK(fabs(fl_step_touched(&whole, 0, n, &load) * ranks - touched[i][1]) < 0.06 && load == 1, "%g of %u",
                     n, ranks);
            const fl_step_shape s = {.tokens = (uint32_t)n, .sequences = 1};
            const double m = 1e-3 + hypot(1e-5 * n / ranks / 2, 1e-4 * e / ranks);
            const double own = fl_step_time_s(&none, &s, 2000, 1);
            FL_CHECK(near(fl_step_time_s(&whole, &s, 2000, 1), own + m), "%g tokens on %u ranks", n, ranks);
            FL_CHECK(near(fl_step_time_s(&sliced, &s, 2000, 1), own + m), "%g tokens in %u slices", n, ranks);
        }
    }
}

/* Replicas: the experts see the tokens of all of them, and exchange them. */
static void test_replicas(void) {
    fl_step_law l = law_of_experts(2, 1), own = law_of_hand();
    const fl_step_shape s = {.tokens = 10, .sequences = 10, .group_tokens = 30},
                        alone = {.tokens = 10, .sequences = 10};
    l.exchanges = 96;
    l.exchange_s = 5e-5;
    l.exchange_token_s = 1e-7;
    l.replicas = 2;
    const double m = 1e-3 + hypot(1e-5 * 15, 1e-4 * 64 * (1 - pow(0.9375, 30)));
    FL_CHECK(near(fl_step_time_s(&l, &s, 1000, 1), fl_step_time_s(&own, &alone, 1000, 1) + m + 96 * 5.3e-5), "%g",
             fl_step_time_s(&l, &s, 1000, 1));
}

/* Whatever the seed: a token chooses top_k experts, none twice; the ranks' loads add up; skew touches fewer experts,
 * and with many tokens the busiest rank is slower than an even one. */
static void test_skewed_experts(void) {
    for (uint32_t seed = 1; seed <= 20; seed++) {
        fl_step_law even = law_of_experts(4, 1), l = even;
        double load, rows = 0, touched = 0, chosen = 0;
        l.expert_skew = 0.25 * seed;
        l.expert_seed = seed;
        CU_ASSERT_FATAL(fl_step_law_skew(&l) == FL_MODEL_OK);
        for (uint32_t i = 0; i < 128; i++) {
            FL_CHECK(l.popularity[i] >= 0 && l.popularity[i] <= 1, "seed %u: %g", seed, l.popularity[i]);
            chosen += l.popularity[i];
        }
        for (uint32_t r = 0; r < 4; r++) {
            touched += fl_step_touched(&l, r, 16, &load);
            rows += load;
        }
        FL_CHECK(fabs(chosen - 8) < 1e-9 && fabs(rows - 4) < 1e-9, "seed %u: %g chosen, %g rows", seed, chosen, rows);
        FL_CHECK(touched < 128 * (1 - pow(0.9375, 16)), "seed %u: %g touched", seed, touched);
        const fl_step_shape many = {.tokens = 100000, .sequences = 1};
        FL_CHECK(fl_step_time_s(&l, &many, 1000, 1) > fl_step_time_s(&even, &many, 1000, 1), "seed %u", seed);
        free(l.popularity);
    }
}

/* One GPU's experts alone: a share of the weights' time follows the SM clock, and the load counts in what they draw. */
static void test_experts_over_clocks(void) {
    fl_step_law l = law_of_experts(1, 1);
    l.expert_clock = 5e-5;
    for (double mhz = 500; mhz <= 2000; mhz *= 2)
        for (double m = 0.5; m <= 1; m *= 2)
            for (double load = 0; load < 1; load += 0.5) {
                l.expert_load = load;
                const double f = mhz / 1000, c = 1e-5 * 100 / f, w = 40 * (1e-4 / m + 5e-5 / f);
                const fl_step_point at = fl_step_experts_row(&l, 100, 40, mhz, m);
                const double part = load > 0 ? load : 1, time = 1e-3 + hypot(c, w);
                FL_CHECK(near(at.time_s, time) && near(at.compute, part * c / time) && near(at.memory, part * w / time),
                         "%g MHz, memory %g, load %g: %g s, %g, %g", mhz, m, load, at.time_s, at.compute, at.memory);
            }
}

/* At its points the table holds: here every token touches all 4 experts. */
static void test_experts_table(void) {
    double at[] = {1, 1, 8, 8}, experts[] = {2, 4, 2, 4}, time[] = {1e-3, 3e-3, 5e-3, 9e-3};
    fl_step_law l = law_of_experts(1, 1), own = law_of_hand();
    l.experts = l.top_k = 4;
    l.ref_sm_mhz = 1500;
    l.by_experts = (fl_step_grid){.at = at, .kv = experts, .time_s = time, .count = 4};
    CU_ASSERT(fl_step_law_check(&l) == FL_MODEL_OK);
    for (uint32_t n = 1; n <= 8; n += 7) {
        const fl_step_shape s = {.tokens = n, .sequences = 1};
        const double experts_s = fl_step_time_s(&l, &s, 1500, 1) - fl_step_time_s(&own, &s, 1500, 1);
        FL_CHECK(fabs(experts_s - (n == 1 ? 3e-3 : 9e-3)) < 1e-12, "%u tokens: %g", n, experts_s);
    }
    l.top_k = 5;
    CU_ASSERT(fl_step_law_check(&l) == FL_MODEL_INVALID);
    l.top_k = 4;
    l.expert_ranks = 5;
    CU_ASSERT(fl_step_law_check(&l) == FL_MODEL_INVALID);
}

FL_SUITE("step_law", {"rounding", test_rounding}, {"shape", test_shape}, {"by hand", test_by_hand},
         {"overlap", test_overlap}, {"over clocks", test_over_clocks}, {"outside", test_outside},
         {"tables", test_tables}, {"tables over clocks", test_tables_over_clocks}, {"grids", test_grids},
         {"nothing to correct", test_nothing_to_correct}, {"walk", test_walk}, {"chunks", test_chunk_grid},
         {"check", test_check}, {"even experts", test_even_experts}, {"replicas", test_replicas},
         {"skewed experts", test_skewed_experts}, {"table of experts", test_experts_table},
         {"experts over clocks", test_experts_over_clocks})
