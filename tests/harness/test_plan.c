/* Plans: their files; and the policy that replays one at markers against a pipeline that was built with its clocks. */
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/pipeline/pipeline.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"
#include "tests/support/sim_fixture.h"
#include "tests/support/temp_file.h"

#include <string.h>

extern const fl_policy fl_policy_plan;

#define HEAD "# foldline-plan 1\nrank,instruction,first_microbatch,count,sm_mhz\n"

static fl_pipeline shape(uint32_t stages, uint32_t microbatches, uint32_t chunks) {
    return (fl_pipeline){.schedule = chunks > 1 ? FL_PIPELINE_INTERLEAVED : FL_PIPELINE_1F1B,
                         .stages = stages,
                         .microbatches = microbatches,
                         .chunks = chunks,
                         .data_parallel = 1,
                         .tensor_parallel = 1,
                         .ranks = stages};
}

/* ---- files ---- */

/* Reads the text as a plan and lays its clocks out; what is said where it cannot be, else "". */
static const char *said_of(const char *text, const fl_pipeline *p) {
    static fl_diag d;
    static char said[1600];
    fl_plans plans;
    d = (fl_diag){0};
    fl_status s = fl_plans_read(fl_temp_write("a.plan.csv", text, strlen(text)), &plans, &d);
    fl_pipeline_clocks c = {0};
    if (!s)
        s = fl_plans_clocks(&plans, 0, p, &c, &d);
    static const int32_t LADDER[] = {900, 1000, 1100};
    if (!s)
        s = fl_plans_check_ladder(&plans, 0, 1, LADDER, 3, &d);
    fl_pipeline_clocks_free(&c);
    if (!s || plans.row_count)
        fl_plans_free(&plans);
    snprintf(said, sizeof said, "%lld:%lld: %s", (long long)d.line, (long long)d.column, d.message);
    return s ? said : "";
}

static void test_refused(void) {
    static const struct {
        const char *what, *text, *expected;
    } ROWS[] = {
        {"a whole plan", HEAD "0,forward,0,2,1000\n0,backward,0,2,1000\n", ""},
        {"in any order", HEAD "0,backward,1,1,900\n0,forward,0,2,1000\n0,backward,0,1,1000\n", ""},
        {"no rows", HEAD, "no plans, expected at least one"},
        {"no column", "# foldline-plan 1\nrank,instruction,count,sm_mhz\n", "first_microbatch"},
        {"another instruction", HEAD "0,load,0,2,1000\n", "3:3: instruction is 'load', expected forward or backward"},
        {"a clock between", HEAD "0,forward,0,2,1000.5\n", "3:15: sm_mhz is '1000.5', expected whole MHz"},
        {"a clock of no board", HEAD "1,forward,0,2,1000\n1,backward,0,2,1060\n",
         "4:0: sm_mhz: 1060 MHz is not on the SM ladder of rank 1's board; the next ones are 1000 and 1100"},
        {"above all of them", HEAD "1,forward,0,2,1200\n1,backward,0,2,1000\n", "; the highest is 1100"},
        {"below", HEAD "1,forward,0,2,100\n1,backward,0,2,1000\n", "; the lowest is 900"},
        {"nothing", HEAD "0,forward,0,0,1000\n", "3:13: count"},
        {"twice", HEAD "0,forward,0,2,1000\n0,backward,0,2,1000\n0,forward,1,1,900\n",
         "5:0: plan 0 asks twice for the forward of microbatch 1 of rank 0, expected one clock for each (see line 3)"},
        {"an instruction missing", HEAD "0,forward,0,2,1000\n0,backward,0,1,1000\n",
         "plan 0 asks no clock for the backward of microbatch 1 of rank 0, expected one for each of 2 microbatches"},
        {"a direction missing", HEAD "0,backward,0,2,1000\n",
         "plan 0 asks no clock for the forward of microbatch 0 of rank 0"},
        {"a rank too many", HEAD "2,forward,0,2,1000\n", "3:0: rank is 2, expected 0 to 1: the pipeline has 2"},
        {"a microbatch too many", HEAD "0,forward,0,3,1000\n", "3:0: microbatch 2, expected 0 to 1"},
        {"a chunk too many",
         "# foldline-plan 1\nrank,instruction,chunk,first_microbatch,count,sm_mhz\n0,forward,1,0,2,1000\n",
         "3:0: chunk is 1, expected 0 to 0"},
        {"numbers that fall",
         "# foldline-plan "
         "1\nplan,rank,instruction,first_microbatch,count,sm_mhz\n3,0,forward,0,2,1000\n2,0,forward,0,2,"
         "1000\n",
         "4:1: plan 2 comes after 3, expected ascending numbers"},
    };
    const fl_pipeline p = shape(2, 2, 1);
    for (size_t i = 0; i < FL_COUNT(ROWS); i++) {
        const char *said = said_of(ROWS[i].text, &p);
        FL_CHECK(*ROWS[i].expected ? strstr(said, ROWS[i].expected) != NULL : !*said, "%s: '%s'", ROWS[i].what, said);
    }
}

/* What is written comes back, as rows that do not grow with the count of microbatches where the clock stays. */
static void test_round_trip(void) {
    const uint64_t seed = 5;
    fl_random g = fl_random_seed(seed, 0);
    for (int round = 0; round < 40; round++) {
        const uint32_t several = 1 + (uint32_t)fl_random_below(&g, 3), chunks = 1 + (uint32_t)fl_random_below(&g, 2);
        const fl_pipeline p = shape(1 + (uint32_t)fl_random_below(&g, 4), 1 + (uint32_t)fl_random_below(&g, 9), chunks);
        fl_plans out = {0}, in;
        fl_pipeline_clocks c[3], back;
        for (uint32_t k = 0; k < several; k++) {
            FX_MUST(fl_pipeline_clocks_new(&p, &c[k], d));
            for (uint32_t rank = 0; rank < p.ranks; rank++)
                for (uint32_t i = 0; (rank || !k) && i < 2 * chunks * p.microbatches; i++) /* some are left out */
                    c[k].mhz[rank * 2 * chunks * p.microbatches + i] = 900 + 100 * (double)fl_random_below(&g, 2);
            const fl_status s = fl_plans_add(&out, round + 10 * (int64_t)k, &c[k], NULL);
            FL_CHECK(!s, "round %d: plan %u is refused", round, k);
        }
        const char *path = fl_temp_path("b.plan.csv");
        FX_MUST(fl_plans_write(path, &out, d));
        FL_CHECK(fl_plans_is(path), "round %d: it is a plan", round);
        FX_MUST(fl_plans_read(path, &in, d));
        FL_CHECK(in.plan_count == (p.ranks > 1 || several == 1 ? several : in.plan_count), "round %d: %zu plans", round,
                 in.plan_count);
        for (size_t k = 0; k < in.plan_count; k++) {
            FX_MUST(fl_plans_clocks(&in, k, &p, &back, d));
            FL_CHECK(!memcmp(back.mhz, c[k].mhz, 2 * sizeof(double) * p.ranks * chunks * p.microbatches),
                     "seed %llu, round %d: plan %zu comes back otherwise", (unsigned long long)seed, round, k);
            fl_pipeline_clocks_free(&back);
        }
        for (uint32_t k = 0; k < several; k++)
            fl_pipeline_clocks_free(&c[k]);
        fl_plans_free(&in);
        fl_plans_free(&out);
    }
    FL_CHECK(!fl_plans_is(FL_ROOT "/traces/samples/four-stages.pipeline.csv"), "a pipeline is no plan");
    FL_CHECK(fl_plans_is(FL_ROOT "/traces/samples/perseus/A100-bert.plans.csv"), "published plans are");
}

/* ---- replayed by the policy ---- */

enum { ROUNDS = 60, CLOCKS = 11 };

/* Times that come out whole in both forms: at the clock i of the ladder k x n ns, with n a whole number of thousandths
 * of the time at the top, whose factor in 1/65536000 is then exact; powers are whole watts. */
static void add_part(fl_pipeline *p, fl_random *g, int32_t rank, fl_pipeline_what what) {
    const double k = 1 + (double)fl_random_below(g, 40000);
    double n = 1000;
    for (int i = CLOCKS - 1; i >= 0; i--) {
        const fl_pipeline_row row = {.rank = rank,
                                     .chunk = FL_PIPELINE_ALL,
                                     .what = what,
                                     .sm_mhz = 500 + 100 * i,
                                     .time_s = k * n * 1e-9,
                                     .power_w = 100 + (double)i * 10 + (double)fl_random_below(g, 10)};
        FX_MUST(fl_pipeline_add(p, &row, d));
        n += 1 + (double)fl_random_below(g, 150);
    }
}

static void add_time(fl_pipeline *p, fl_pipeline_what what, double us) {
    const fl_pipeline_row row = {
        .rank = -1, .chunk = FL_PIPELINE_ALL, .what = what, .sm_mhz = NAN, .time_s = us * 1e-6, .power_w = NAN};
    FX_MUST(fl_pipeline_add(p, &row, d));
}

static void make_pipeline(fl_pipeline *p, fl_random *g) {
    const uint32_t stages = 1 + (uint32_t)fl_random_below(g, 3), chunks = stages > 1 && !fl_random_below(g, 3) ? 2 : 1;
    *p = shape(stages, stages * (1 + (uint32_t)fl_random_below(g, 3)), chunks);
    if (chunks == 1 && fl_random_below(g, 2))
        p->schedule = FL_PIPELINE_GPIPE;
    if (stages <= 2)
        p->tensor_parallel = 1 + (uint32_t)fl_random_below(g, 2);
    p->ranks = stages * p->tensor_parallel;
    p->file = strdup("test.pipeline");
    for (uint32_t rank = 0; rank < p->ranks; rank++)
        for (int k = 0; k < 2; k++)
            add_part(p, g, (int32_t)rank, k ? FL_PIPELINE_BACKWARD : FL_PIPELINE_FORWARD);
    add_time(p, FL_PIPELINE_LOAD, (double)fl_random_below(g, 3000));
    add_time(p, FL_PIPELINE_ACT, (double)fl_random_below(g, 500));
    add_time(p, FL_PIPELINE_GRAD, (double)fl_random_below(g, 500));
    add_time(p, FL_PIPELINE_STEP, (double)fl_random_below(g, 5000));
    const fl_pipeline_row blocked = {
        .rank = -1, .chunk = FL_PIPELINE_ALL, .what = FL_PIPELINE_BLOCKED, .sm_mhz = NAN, .time_s = NAN, .power_w = 70};
    FX_MUST(fl_pipeline_add(p, &blocked, d));
    FX_MUST(fl_pipeline_finish(p, d));
}

typedef struct outcome {
    int64_t makespan_ps;
    double joules;
    uint64_t switches, sets, faults;
} outcome;

/* On a node whose clocks are set at once; or, with clocks, each part at its own. */
static outcome run(const fl_pipeline *p, const fl_pipeline_order *o, uint32_t iterations, const fl_pipeline_clocks *c,
                   const fl_plans *plans, int64_t settle_ns, fl_path path) {
    fx_rig r;
    fx_open(&r, p->ranks);
    fl_workload_free(r.w);
    r.spec.device->actuator.settle_ns = settle_ns;
    FX_MUST(fl_build_pipeline(&r.w, "test", p, o, &r.spec, iterations, c, NULL, d));
    FX_MUST(fl_rates_new(&r.rates, r.w, &r.spec, d));
    fl_scene scene = {.pipeline = *p, .instructions = *o, .facts = r.facts};
    fl_spec spec = {.policy = &fl_policy_plan, .plans = (fl_plans *)(uintptr_t)plans, .plan_param = "plan"};
    fl_laid laid;
    FX_MUST(fl_plan_lay(&spec, &scene, &laid, d));
    const fl_run_options options = {.w = r.w,
                                    .rates = r.rates,
                                    .spec = &r.spec,
                                    .facts = &r.facts,
                                    .policy = plans ? &fl_policy_plan : NULL,
                                    .layer = &laid.layer,
                                    .layer_count = 1,
                                    .path = path};
    fl_run_result result;
    FX_MUST(fl_run(&options, &result, d));
    const outcome out = {result.makespan_ps, result.gpu_energy_j, result.switches, result.counts.sets,
                         result.counts.faults};
    fl_run_result_free(&result);
    fl_laid_free(&laid);
    fx_close(&r);
    return out;
}

static void test_replayed(void) {
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        fl_random g = fl_random_seed(seed, 2);
        fl_pipeline p;
        fl_pipeline_order o;
        fl_pipeline_clocks c;
        fl_plans plans = {0};
        make_pipeline(&p, &g);
        FX_MUST(fl_pipeline_schedule_make(&p, &o, d));
        FX_MUST(fl_pipeline_clocks_new(&p, &c, d));
        for (size_t i = 0; i < (size_t)2 * p.ranks * p.chunks * p.microbatches; i++)
            c.mhz[i] = 500 + 100 * (double)fl_random_below(&g, CLOCKS);
        FX_MUST(fl_plans_add(&plans, 0, &c, d));
        const uint32_t iterations = 1 + (uint32_t)fl_random_below(&g, 3);
        const outcome built = run(&p, &o, iterations, &c, NULL, 0, FL_PATH_AUTO);
        const outcome played = run(&p, &o, iterations, NULL, &plans, 0, FL_PATH_AUTO);
        const outcome events = run(&p, &o, iterations, NULL, &plans, 0, FL_PATH_EVENTS);
        FL_CHECK(played.makespan_ps == built.makespan_ps && played.joules == built.joules && !played.faults,
                 "seed %llu: %lld ps and %.17g J, built with its clocks %lld and %.17g", (unsigned long long)seed,
                 (long long)played.makespan_ps, played.joules, (long long)built.makespan_ps, built.joules);
        FL_CHECK(events.makespan_ps == played.makespan_ps && events.joules == played.joules,
                 "seed %llu: another course from event to event", (unsigned long long)seed);
        /* A clock that comes late is a clock of the instruction before. */
        const outcome late = run(&p, &o, iterations, NULL, &plans, 1, FL_PATH_AUTO);
        FL_CHECK(late.sets == played.sets && llabs(late.makespan_ps - built.makespan_ps) < built.makespan_ps / 100,
                 "seed %llu: a settle time of 1 ns changes %lld ps to %lld", (unsigned long long)seed,
                 (long long)built.makespan_ps, (long long)late.makespan_ps);
        fl_plans_free(&plans);
        fl_pipeline_clocks_free(&c);
        fl_pipeline_order_free(&o);
        fl_pipeline_free(&p);
    }
}

/* One clock for all is a static lock; and a rank without rows is left to the driver. */
static void test_one_clock(void) {
    fl_random g = fl_random_seed(77, 2);
    fl_pipeline p;
    fl_pipeline_order o;
    fl_pipeline_clocks c;
    fl_plans plans = {0}, none = {0};
    make_pipeline(&p, &g);
    FX_MUST(fl_pipeline_schedule_make(&p, &o, d));
    FX_MUST(fl_pipeline_clocks_new(&p, &c, d));
    for (size_t i = 0; i < (size_t)2 * p.ranks * p.chunks * p.microbatches; i++)
        c.mhz[i] = 1000; /* the default of the device */
    FX_MUST(fl_plans_add(&plans, 0, &c, d));
    memset(c.mhz, 0, 2 * sizeof *c.mhz * p.ranks * p.chunks * p.microbatches);
    FX_MUST(fl_plans_add(&none, 0, &c, d));
    const outcome lock = run(&p, &o, 2, NULL, NULL, 0, FL_PATH_AUTO),
                  played = run(&p, &o, 2, NULL, &plans, 0, FL_PATH_AUTO),
                  left = run(&p, &o, 2, NULL, &none, 0, FL_PATH_AUTO);
    FL_CHECK(lock.makespan_ps == played.makespan_ps && lock.joules == played.joules, "one clock is a lock");
    FL_CHECK(played.sets == p.ranks, "%llu sets, expected one a rank", (unsigned long long)played.sets);
    FL_CHECK(left.sets == 0 && left.joules == lock.joules, "%llu sets where nothing is planned",
             (unsigned long long)left.sets);
    fl_plans_free(&plans);
    fl_plans_free(&none);
    fl_pipeline_clocks_free(&c);
    fl_pipeline_order_free(&o);
    fl_pipeline_free(&p);
}

/* ---- the policy's table ---- */

static void test_table(void) {
    static const struct {
        const char *what;
        double cell[9];
        uint32_t rows;
        const char *expected;
    } ROWS[] = {
        {"good", {0, 2, 1000, 1, 3, 1100, 1, 1, 900}, 3, ""},
        {"a GPU too many", {2, 2, 1000}, 1, "names a GPU that the machine does not have"},
        {"half a GPU", {0.5, 2, 1000}, 1, "names a GPU"},
        {"no instructions", {0, 0, 1000}, 1, "no whole number from 1 on"},
        {"off the ladder", {0, 1, 1050}, 1, "the next ones are 1000 and 1100"},
        {"apart", {0, 2, 1000, 1, 3, 1100, 0, 1, 900}, 3, "do not follow each other"},
    };
    fx_rig r;
    fx_open(&r, 2);
    for (size_t i = 0; i < FL_COUNT(ROWS); i++) {
        const fl_table table = {.cell = ROWS[i].cell, .row_count = ROWS[i].rows, .column_count = 3};
        const fl_setting setting = {.name = "plan", .table = &table};
        const fl_layer layer = {.origin = "test", .setting = &setting, .count = 1};
        const fl_instance_options o = {.policy = &fl_policy_plan, .facts = &r.facts, .layer = &layer, .layer_count = 1};
        fl_instance *in;
        fl_diag d = {0};
        const fl_status s = fl_instance_open(&in, &o, &d);
        FL_CHECK(*ROWS[i].expected ? s && strstr(d.message, ROWS[i].expected) : !s, "%s: '%s'", ROWS[i].what,
                 d.message);
        fl_instance_close(in);
    }
    fx_close(&r);
}

static void test_end(void) { fl_temp_remove(); }

FL_SUITE("plan", {"refused", test_refused}, {"round trip", test_round_trip}, {"replayed", test_replayed},
         {"one clock", test_one_clock}, {"table", test_table}, {"end", test_end})
