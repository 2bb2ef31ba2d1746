/* What the bound of serving counts, by hand: tokens, parts and steps that no schedule can do without, and what the
 * boards draw until the last request has come. */
#include "models/laws/laws.h"
#include "sim/node/node.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "tests/support/serving_fixture.h"

static fl_serving_bound bound_of(sx_rig *x) {
    fl_serving_bound b;
    sx_finish(x);
    FX_MUST(fl_serving_bound_of(x->r.w, x->r.rates, &x->r.spec, &b, d));
    FL_CHECK(b.steps_j > 0 && fx_near(b.energy_j, b.floor_j + b.steps_j, 1e-12), "%g J of %g and %g", b.energy_j,
             b.floor_j, b.steps_j);
    return b;
}

/* Prompts of 100, 50 and 20 tokens with 3, 5 and 1 tokens out: 102 + 54 + 20 to compute, in 9 parts. The longest takes
 * 5 steps. A step has so many sequences, so many tokens, and blocks of 16 tokens: the requests hold 3 x 100 + 1 + 2, 5
 * x 50 + 10 and 20 tokens, summed over their steps. */
static void test_counts(void) {
    static const struct {
        const char *what;
        uint32_t sequences, budget;
        uint64_t blocks;
        double steps;
    } rows[] = {{"the longest", 8, 200, 4096, 5},
                {"one sequence at a time", 1, 200, 4096, 9},
                {"few tokens", 8, 10, 4096, 17.6},
                {"few blocks", 8, 200, 7, (303 + 260 + 20) / 16.0 / 7}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sx_rig x;
        sx_open(&x, 1, 1);
        fl_batching_rules *rules = &x.server[0].rules;
        rules->max_seqs = rows[i].sequences, rules->token_budget = rows[i].budget, rules->kv_blocks = rows[i].blocks;
        rules->block_tokens = 16, rules->prefix_cache = false;
        sx_request(&x, 0, 100, 3);
        sx_request(&x, 1000, 50, 5);
        sx_request(&x, 2000000000, 20, 1);
        const fl_serving_bound b = bound_of(&x);
        FL_CHECK(b.tokens == 176 && b.parts == 9 && fx_near(b.steps, rows[i].steps, 1e-12),
                 "%s: %g tokens in %g parts, %g steps", rows[i].what, b.tokens, b.parts, b.steps);
        /* 20 W static, 5 W of memory at 400 MHz, 5 W of the clock tree at 500 MHz, for 2 s */
        FL_CHECK(b.floor_j <= 60 && fx_near(b.floor_j, 60, 1e-4), "%s: %g J of the board", rows[i].what, b.floor_j);
        sx_close(&x);
    }
}

/* What an earlier prompt had need not be computed again, but for the last token; nor are its blocks held twice. */
static void test_cached(void) {
    for (int cache = 0; cache < 2; cache++) {
        sx_rig x;
        sx_open(&x, 1, 1);
        fl_batching_rules *rules = &x.server[0].rules;
        rules->max_seqs = 8, rules->token_budget = 1000, rules->kv_blocks = 4, rules->block_tokens = 16;
        rules->prefix_cache = cache;
        sx_request(&x, 0, 60, 2);
        sx_request(&x, 1, 50, 4);
        sx_request(&x, 2, 60, 1);
        x.requests.row[1].cached_tokens = 40;
        x.requests.row[2].cached_tokens = 60;
        const fl_serving_bound b = bound_of(&x);
        FL_CHECK(b.tokens == (cache ? 61 + 13 + 1 : 61 + 53 + 60) && b.parts == 7, "cache %d: %g tokens in %g parts",
                 cache, b.tokens, b.parts);
        const double held = cache ? 121 + 46 + 0 : 121 + 206 + 60;
        FL_CHECK(fx_near(b.steps, fmax(4, held / 16 / 4), 1e-12), "cache %d: %g steps", cache, b.steps);
        sx_close(&x);
    }
}

/* Of several servers the most generous rules count, and every board draws. */
static void test_servers(void) {
    sx_rig x;
    sx_open(&x, 2, 2);
    for (int i = 0; i < 2; i++) {
        fl_batching_rules *rules = &x.server[i].rules;
        rules->max_seqs = i ? 1 : 2, rules->token_budget = i ? 30 : 20, rules->kv_blocks = i ? 64 : 4096;
        rules->block_tokens = 16, rules->prefix_cache = false;
    }
    for (int i = 0; i < 8; i++)
        sx_request(&x, i * INT64_C(500000000), 10, 1);
    const fl_serving_bound b = bound_of(&x);
    FL_CHECK(b.tokens == 80 && b.parts == 8 && b.steps == 4, "%g tokens in %g parts, %g steps", b.tokens, b.parts,
             b.steps);
    FL_CHECK(b.floor_j <= 420 && fx_near(b.floor_j, 420, 1e-4), "%g J of the boards", b.floor_j);
    sx_close(&x);
}

/* A law that does not say at which memory clock it was measured was measured at the board's default. Whatever it says,
 * in whole MHz down to 1, no run takes less than the bound. */
static void test_reference(void) {
    static const double mhz[] = {0, 800, 400, 2, 1};
    double first = 0;
    for (size_t i = 0; i < sizeof mhz / sizeof *mhz; i++) {
        sx_rig x;
        sx_open(&x, 1, 1);
        x.law.ref_mem_mhz = mhz[i];
        for (int k = 0; k < 4; k++)
            sx_request(&x, 0, 50, 20);
        const fl_serving_bound b = bound_of(&x);
        fl_run_result run;
        fx_run(&x.r, &(fx_how){.mode = -1}, &run);
        FL_CHECK(b.energy_j <= run.energy_j, "measured at %g MHz: %g J, a run takes %g", mhz[i], b.energy_j,
                 run.energy_j);
        first = i ? first : b.steps_j;
        FL_CHECK(i > 1 ? b.steps_j < first : b.steps_j == first,
                 "measured at %g MHz: %.17g J in steps, at the default %.17g", mhz[i], b.steps_j, first);
        fl_run_result_free(&run);
        sx_close(&x);
    }
}

/* The board draws least where the least is, whichever clock of the memory that is: 20 W static and 5 W of the clock
 * tree at 500 MHz beside 10 and 5, or 3 and 10 W of idle memory, for 2 s. A GPU without a server draws 8 W. */
static void test_boards(void) {
    static const struct {
        double memory_w[2], want_j;
    } rows[] = {{{5, 10}, 60 + 16}, {{10, 5}, 60 + 16}, {{3, 10}, 56 + 16}, {{10, 3}, 56 + 16}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sx_rig x;
        sx_open(&x, 2, 1);
        x.setup.server_count = 1;
        x.gpu[0] = 1;
        memcpy(x.r.spec.device->b0_w, rows[i].memory_w, sizeof rows[i].memory_w);
        sx_request(&x, 0, 100, 3);
        sx_request(&x, 2000000000, 20, 1);
        const fl_serving_bound b = bound_of(&x);
        FL_CHECK(!fl_workload_serves(x.r.w, 0) && fl_workload_serves(x.r.w, 1), "row %zu: GPU 1 serves", i);
        FL_CHECK(b.floor_j <= rows[i].want_j && fx_near(b.floor_j, rows[i].want_j, 1e-4), "row %zu: %g J, expected %g",
                 i, b.floor_j, rows[i].want_j);
        sx_close(&x);
    }
}

/* A law measured at 1 GHz of the SMs and 800 MHz of the memory: nothing takes time yet. */
static void at_one_clock(sx_rig *x) {
    x->law = fl_step_law_none();
    x->law.sm_count = 1;
    x->law.sm_mhz[0] = x->law.ref_sm_mhz = 1000;
    x->law.ref_mem_mhz = 800;
}

/* A step costs 0.05 J, which reading 1 ms of memory at 50 W takes, and each token beyond its first 1 us at 100 W: 0.1
 * mJ. So no schedule of n steps and t tokens takes less than 0.0499 n + 0.0001 t: neither the cheapest step alone nor
 * the cheapest token alone say as much. */
static void test_line(void) {
    static const struct {
        uint32_t prompt, output;
        double want_j;
    } rows[] = {
        {100, 50, 0.0499 * 50 + 1e-4 * 149}, {2000, 50, 0.0499 * 50 + 1e-4 * 2049}, {10, 1, 0.0499 + 1e-4 * 10}};
    double tokens[] = {1, 4097}, token_s[] = {1e-3, 1e-3 + 4096e-6};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sx_rig x;
        sx_open(&x, 1, 1);
        at_one_clock(&x);
        x.law.by_tokens = (fl_step_grid){.at = tokens, .time_s = token_s, .count = 2};
        x.server[0].rules.token_budget = 4096;
        sx_request(&x, 0, rows[i].prompt, rows[i].output);
        const fl_serving_bound b = bound_of(&x);
        FL_CHECK(fx_near(b.steps_j, rows[i].want_j, 1e-6), "row %zu: %.12g J, expected %.12g", i, b.steps_j,
                 rows[i].want_j);
        sx_close(&x);
    }
}

/* Sequences that cost more in company: a step of one takes 1 ms, of two 3 ms, of four 8 ms. The first ms of each reads
 * memory at 50 W, the rest computes at 100 W per GHz, measured at 1 GHz: 0.05, 0.25 and 0.75 J. So each sequence of a
 * step costs 0.05 J or more, which is all that may be said of the ten there are: the line through the first two steps
 * would give a step without sequences less than nothing. Tokens cost next to nothing. */
static void test_dear_company(void) {
    double tokens[] = {1, 4096}, token_s[] = {1e-9, 1e-9}, at[] = {1, 2, 4}, time_s[] = {1e-3, 3e-3, 8e-3};
    sx_rig x;
    sx_open(&x, 1, 1);
    at_one_clock(&x);
    x.law.by_tokens = (fl_step_grid){.at = tokens, .time_s = token_s, .count = 2};
    x.law.by_sequence = (fl_step_grid){.at = at, .time_s = time_s, .count = 3};
    x.server[0].rules.max_seqs = 4;
    for (uint32_t i = 0; i < 4; i++)
        sx_request(&x, 0, 10, 1 + i);
    const fl_serving_bound b = bound_of(&x);
    FL_CHECK(b.parts == 10 && b.steps == 4, "%g parts, %g steps", b.parts, b.steps);
    FL_CHECK(fx_near(b.steps_j, 0.5, 1e-5), "%.12g J, expected 0.5", b.steps_j);
    fl_run_result run;
    fx_run(&x.r, &(fx_how){.mode = -1}, &run);
    FL_CHECK(b.energy_j <= run.energy_j, "a run takes %g J, the bound is %g", run.energy_j, b.energy_j);
    fl_run_result_free(&run);
    sx_close(&x);
}

FL_SUITE("serving_bound", {"counts", test_counts}, {"cached", test_cached}, {"servers", test_servers},
         {"boards", test_boards}, {"a line", test_line}, {"dear company", test_dear_company},
         {"the clock of a law", test_reference})
