/* Pipelines: files, schedules, closed forms, what a rank burns while it waits, and who waits for whom for ever. */
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/pipeline/pipeline.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"
#include "tests/support/sim_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- a pipeline of equal stages ---- */

#define FORWARD_S 0.010
#define BACKWARD_S 0.025
#define COMPUTE_W 150.0
#define BLOCKED_W 70.0

static void add_row(fl_pipeline *p, int32_t rank, fl_pipeline_what what, double mhz, double time_s, double watts) {
    const fl_pipeline_row row = {
        .rank = rank, .chunk = FL_PIPELINE_ALL, .what = what, .sm_mhz = mhz, .time_s = time_s, .power_w = watts};
    FX_MUST(fl_pipeline_add(p, &row, d));
}

/* Half the clock takes twice the time and half the power above the base. */
static void equal_stages(fl_pipeline *p, fl_pipeline_schedule schedule, uint32_t stages, uint32_t microbatches,
                         uint32_t chunks) {
    *p = (fl_pipeline){.schedule = schedule,
                       .stages = stages,
                       .microbatches = microbatches,
                       .chunks = chunks,
                       .data_parallel = 1,
                       .tensor_parallel = 1,
                       .ranks = stages,
                       .file = strdup("test.pipeline")};
    for (int k = 0; k < 2; k++) {
        const double mhz = k ? 1000 : 500;
        add_row(p, -1, FL_PIPELINE_FORWARD, mhz, FORWARD_S * 1000 / mhz, k ? COMPUTE_W : 90);
        add_row(p, -1, FL_PIPELINE_BACKWARD, mhz, BACKWARD_S * 1000 / mhz, k ? COMPUTE_W : 90);
    }
    add_row(p, -1, FL_PIPELINE_BLOCKED, NAN, NAN, BLOCKED_W);
}

typedef struct run_of {
    double seconds, joules[FX_GPUS_MAX];
    fl_workload *w;
} run_of;

static fl_status try_run(const fl_pipeline *p, uint32_t iterations, double mhz, run_of *out, fl_diag *diag) {
    fx_rig r;
    fx_open(&r, p->ranks);
    r.spec.device->default_sm_mhz = mhz;
    fl_workload_free(r.w);
    fl_pipeline_order o;
    fl_status s = p->schedule == FL_PIPELINE_LIST
                      ? fl_pipeline_order_read(p->order, p->stages, p->microbatches, &o, diag)
                      : fl_pipeline_schedule_make(p, &o, diag);
    r.w = NULL;
    if (!s)
        s = fl_build_pipeline(&r.w, "test", p, &o, &r.spec, iterations, NULL, NULL, diag);
    if (!s) {
        FX_MUST(fl_rates_new(&r.rates, r.w, &r.spec, d));
        fl_node *n = fx_node(&r, 0, false);
        fx_to_end(n);
        out->seconds = fl_seconds(fl_node_now(n));
        for (uint32_t g = 0; g < p->ranks; g++)
            out->joules[g] = fl_joules(fl_node_gpu(n, g)->sums.energy_fj);
        fl_node_close(n);
    }
    fl_pipeline_order_free(&o);
    fl_rates_free(r.rates);
    fl_workload_free(r.w);
    fl_node_spec_free(&r.spec);
    return s;
}

static run_of run_all(const fl_pipeline *p, uint32_t iterations, double mhz) {
    run_of out = {0};
    FX_MUST(try_run(p, iterations, mhz, &out, d));
    return out;
}

static void test_closed_forms(void) {
    static const struct {
        const char *what;
        fl_pipeline_schedule schedule;
        uint32_t stages, microbatches;
    } rows[] = {
        {"1f1b, one stage", FL_PIPELINE_1F1B, 1, 5},
        {"1f1b, two stages", FL_PIPELINE_1F1B, 2, 1},
        {"1f1b, three stages", FL_PIPELINE_1F1B, 3, 7},
        {"1f1b, four stages", FL_PIPELINE_1F1B, 4, 32},
        {"gpipe", FL_PIPELINE_GPIPE, 4, 9},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int half = 0; half < 2; half++) {
            fl_pipeline p;
            equal_stages(&p, rows[i].schedule, rows[i].stages, rows[i].microbatches, 1);
            FX_MUST(fl_pipeline_finish(&p, d));
            const run_of got = run_all(&p, 1, half ? 500 : 1000);
            const double one = (FORWARD_S + BACKWARD_S) * (half ? 2 : 1), m = rows[i].microbatches;
            const double end = (m + rows[i].stages - 1) * one;
            FL_CHECK(fx_near(got.seconds, end, 1e-9), "%s: %.9g s, expected %.9g", rows[i].what, got.seconds, end);
            for (uint32_t g = 0; g < rows[i].stages; g++) {
                const double joules = m * one * (half ? 90 : COMPUTE_W) + (end - m * one) * BLOCKED_W;
                FL_CHECK(fx_near(got.joules[g], joules, 1e-9), "%s, rank %u: %.9g J, expected %.9g", rows[i].what, g,
                         got.joules[g], joules);
            }
            fl_pipeline_free(&p);
        }
}

/* The bubble shrinks by the number of chunks (Narayanan et al., 2021, section 2.2): chunks of equal time. */
static void test_interleaved(void) {
    for (uint32_t chunks = 1; chunks <= 3; chunks++) {
        fl_pipeline p;
        equal_stages(&p, FL_PIPELINE_INTERLEAVED, 4, 8, chunks);
        FX_MUST(fl_pipeline_finish(&p, d));
        const double end = (8.0 * chunks + 3) * (FORWARD_S + BACKWARD_S), got = run_all(&p, 1, 1000).seconds;
        FL_CHECK(fx_near(got, end, 1e-9), "%u chunks: %.9g s, expected %.9g", chunks, got, end);
        fl_pipeline_free(&p);
    }
}

/* Transfers, loads and the end of an iteration, by hand for two stages and one microbatch: load 3, forward 10, transfer
 * 2, load 3, forward 10, backward 25, transfer 1, backward 25; then reductions and step 4 + 5 + 6 ms. */
static void test_links(void) {
    fl_pipeline p;
    equal_stages(&p, FL_PIPELINE_1F1B, 2, 1, 1);
    add_row(&p, -1, FL_PIPELINE_LOAD, NAN, 0.003, NAN);
    add_row(&p, 0, FL_PIPELINE_ACT, NAN, 0.002, NAN);
    add_row(&p, 1, FL_PIPELINE_GRAD, NAN, 0.001, NAN);
    add_row(&p, -1, FL_PIPELINE_REDUCE_TIED, NAN, 0.004, NAN);
    add_row(&p, -1, FL_PIPELINE_REDUCE_DATA, NAN, 0.005, NAN);
    add_row(&p, -1, FL_PIPELINE_STEP, NAN, 0.006, NAN);
    FX_MUST(fl_pipeline_finish(&p, d));
    const double end = 0.003 + 0.010 + 0.002 + 0.003 + 0.010 + 0.025 + 0.001 + 0.025 + 0.015;
    for (uint32_t n = 1; n <= 3; n++) {
        const run_of got = run_all(&p, n, 1000);
        FL_CHECK(fx_near(got.seconds, n * end, 1e-9), "%u iterations: %.9g s, expected %.9g", n, got.seconds, n * end);
        const double joules = n * (0.035 * COMPUTE_W + (end - 0.035) * BLOCKED_W);
        FL_CHECK(fx_near(got.joules[1], joules, 1e-9), "%.9g J, expected %.9g", got.joules[1], joules);
    }
    fl_pipeline_free(&p);
}

/* A slower rank holds all: the others wait for it at blocked power. Rank 2 waits for two forwards (20 ms), after its
 * second forward for the first gradient, which is there at 20 + 20 + 10 + 25 ms and not at 20 + 2 * 20 ms (15 ms more),
 * and at the end the backwards of ranks 1 and 0 follow (50 ms). */
static void test_straggler(void) {
    fl_pipeline p;
    equal_stages(&p, FL_PIPELINE_1F1B, 4, 16, 1);
    for (int k = 0; k < 2; k++) {
        add_row(&p, 2, FL_PIPELINE_FORWARD, k ? 1000 : 500, 2 * FORWARD_S, COMPUTE_W);
        add_row(&p, 2, FL_PIPELINE_BACKWARD, k ? 1000 : 500, 2 * BACKWARD_S, COMPUTE_W);
    }
    FX_MUST(fl_pipeline_finish(&p, d));
    const run_of got = run_all(&p, 1, 1000);
    const double slow = 2 * 16 * (FORWARD_S + BACKWARD_S), rest = 0.020 + 0.015 + 0.050;
    FL_CHECK(fx_near(got.seconds, slow + rest, 1e-9), "%.9g s, expected %.9g", got.seconds, slow + rest);
    FL_CHECK(fx_near(got.joules[0], slow / 2 * COMPUTE_W + (slow / 2 + rest) * BLOCKED_W, 1e-9), "rank 0: %.9g J",
             got.joules[0]);
    FL_CHECK(fx_near(got.joules[2], slow * COMPUTE_W + rest * BLOCKED_W, 1e-9), "rank 2: %.9g J", got.joules[2]);
    fl_pipeline_free(&p);
}

/* Tensor-parallel ranks meet before each part, data-parallel ones at the end only. */
static void test_replicas(void) {
    for (int tensor = 0; tensor < 2; tensor++) {
        fl_pipeline p;
        equal_stages(&p, FL_PIPELINE_1F1B, 2, 3, 1);
        p.ranks = 4;
        *(tensor ? &p.tensor_parallel : &p.data_parallel) = 2;
        for (int k = 0; k < 2; k++) { /* of the second replica the first stage is fast, the second slow */
            add_row(&p, 3, FL_PIPELINE_FORWARD, k ? 1000 : 500, 2 * FORWARD_S, COMPUTE_W);
            add_row(&p, 3, FL_PIPELINE_BACKWARD, k ? 1000 : 500, 2 * BACKWARD_S, COMPUTE_W);
        }
        FX_MUST(fl_pipeline_finish(&p, d));
        const run_of got = run_all(&p, 1, 1000);
        const double end = 3 * 2 * (FORWARD_S + BACKWARD_S) + FORWARD_S + BACKWARD_S;
        FL_CHECK(fx_near(got.seconds, end, 1e-9), "%.9g s, expected %.9g", got.seconds, end);
        for (uint32_t g = 0; g < 4; g++) {
            const double busy = (g == 3 ? 6 : 3) * (FORWARD_S + BACKWARD_S);
            FL_CHECK(fx_near(got.joules[g], busy * COMPUTE_W + (end - busy) * BLOCKED_W, 1e-9), "rank %u: %.9g J", g,
                     got.joules[g]);
        }
        fl_pipeline_free(&p);
    }
}

/* ---- who waits for whom ---- */

static void write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f))
        exit(1);
}

#define LIST_HEAD "stage,index,instruction,microbatch,microbatch2\n"

static void test_lists(void) {
    static const struct {
        const char *what, *list, *error;
    } rows[] = {
        {"a whole one",
         LIST_HEAD "0,0,forward,0,-1\n0,1,send_act,0,-1\n0,2,recv_grad,0,-1\n0,3,backward,0,-1\n"
                   "1,0,recv_act,0,-1\n1,1,forward,0,-1\n1,2,backward,0,-1\n1,3,send_grad,0,-1\n",
         NULL},
        {"both receive first",
         LIST_HEAD "0,0,recv_grad,0,-1\n0,1,forward,0,-1\n0,2,send_act,0,-1\n"
                   "1,0,recv_act,0,-1\n1,1,forward,0,-1\n1,2,send_grad,0,-1\n",
         "stage 0, instruction 0 (recv_grad): rank 0 waits here for ever for rank 1, which waits at its instruction 0 "
         "(recv_act)"},
        {"nobody receives", LIST_HEAD "0,0,forward,0,-1\n0,1,send_act,0,-1\n1,0,forward,0,-1\n",
         "stage 0, instruction 1 (send_act): stage 1 does not receive the activation of microbatch 0, expected it to"},
        {"nobody sends", LIST_HEAD "0,0,forward,0,-1\n1,0,recv_act,0,-1\n",
         "stage 1, instruction 0 (recv_act): stage 0 does not send the activation of microbatch 0, expected it to"},
        {"sent twice", LIST_HEAD "0,0,send_act,0,-1\n0,1,send_act,0,-1\n1,0,recv_act,0,-1\n",
         "stage 0, instruction 1 (send_act): the microbatch has been through here, expected each transfer once"},
        {"sent into nothing", LIST_HEAD "0,0,send_grad,0,-1\n1,0,forward,0,-1\n",
         "stage 0, instruction 0 (send_grad): there is no stage at the other end, expected none to be named"},
        {"a hole", LIST_HEAD "0,1,forward,0,-1\n", "index is 1, expected 0, the next of stage 0"},
        {"a microbatch too many", LIST_HEAD "0,0,forward,1,-1\n",
         "microbatch is '1', expected a whole number from 0 to 0"},
        {"a wrong name", LIST_HEAD "0,0,forwards,0,-1\n", "no instruction 'forwards', did you mean 'forward'?"},
        {"no instructions", LIST_HEAD "0,0,forward,0,-1\n", "stage 1 has no instructions, expected some"},
    };
    char path[] = "/tmp/foldline-pipeline-XXXXXX";
    const int fd = mkstemp(path);
    if (fd < 0 || close(fd))
        exit(1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_pipeline p;
        equal_stages(&p, FL_PIPELINE_LIST, 2, 1, 1);
        p.order = strdup(path);
        FX_MUST(fl_pipeline_finish(&p, d));
        write_text(path, rows[i].list);
        fl_pipeline_order none;
        FL_CHECK(fl_pipeline_schedule_make(&p, &none, NULL) == FL_BAD_INPUT && !none.stage, "a list is not made");
        run_of out;
        fl_diag d = {0};
        const fl_status s = try_run(&p, 1, 1000, &out, &d);
        FL_CHECK(s == (rows[i].error ? FL_BAD_INPUT : FL_OK), "%s: status %d, %s", rows[i].what, s, d.message);
        FL_CHECK(!rows[i].error || strstr(d.message, rows[i].error), "%s: '%s', expected '%s'", rows[i].what, d.message,
                 rows[i].error);
        fl_pipeline_free(&p);
    }
    unlink(path);
}

/* ---- files ---- */

#define HEAD "# foldline-pipeline 1\n# schedule: 1f1b\n# stages: 2\n# microbatches: 4\n"
#define COLUMNS "rank,what,sm_mhz,time_s,power_w\n"
#define ROWS "*,forward,1000,0.01,150\n*,backward,1000,0.02,150\n*,blocked,,,70\n"

static void test_files(void) {
    static const struct {
        const char *what, *text, *error;
    } rows[] = {
        {"a whole one", HEAD COLUMNS ROWS "0,act,,0.001,\n1,forward,800,0.012,120\n1,forward,1000,0.01,150\n", NULL},
        {"no stages", "# foldline-pipeline 1\n# schedule: 1f1b\n# microbatches: 4\n" COLUMNS ROWS, "no stages"},
        {"no schedule", "# foldline-pipeline 1\n# stages: 2\n# microbatches: 4\n" COLUMNS ROWS, "no schedule"},
        {"an unknown schedule",
         "# foldline-pipeline 1\n# schedule: 2f2b\n# stages: 2\n# microbatches: 4\n" COLUMNS ROWS,
         ":2: schedule is '2f2b', expected 1f1b, gpipe, interleaved or list"},
        {"stages out of range",
         "# foldline-pipeline 1\n# schedule: 1f1b\n# stages: 0\n# microbatches: 4\n" COLUMNS ROWS,
         ":3: stages is '0', expected 1 to 1024"},
        {"chunks without need", HEAD "# chunks: 2\n" COLUMNS ROWS, ":5: 2 chunks"},
        {"microbatches that do not fit",
         "# foldline-pipeline 1\n# schedule: interleaved\n# stages: 2\n# microbatches: 3\n"
         "# chunks: 2\n" COLUMNS ROWS,
         ":4: 3 microbatches over 2 stages"},
        {"a list without its file",
         "# foldline-pipeline 1\n# schedule: list\n# stages: 2\n# microbatches: 3\n" COLUMNS ROWS,
         ":2: the schedule is a list"},
        {"a file without a list", HEAD "# order: x.csv\n" COLUMNS ROWS, ":5: order is stated"},
        {"more than memory holds",
         "# foldline-pipeline 1\n# schedule: 1f1b\n# stages: 2\n# microbatches: 1000\n# data_parallel: 501\n" COLUMNS
             ROWS,
         "1002000 forwards in one iteration (ranks x chunks x microbatches), expected at most 1000000"},
        {"as much as memory holds",
         "# foldline-pipeline 1\n# schedule: 1f1b\n# stages: 2\n# microbatches: 1000\n# data_parallel: 500\n" COLUMNS
             ROWS,
         NULL},
        {"more meetings than memory holds",
         "# foldline-pipeline 1\n# schedule: 1f1b\n# stages: 1\n# microbatches: 8000\n# tensor_parallel: 33\n" COLUMNS
             ROWS,
         "8448000 times a forward meets another of its tensor-parallel group, expected at most 8000000"},
        {"an unknown what", HEAD COLUMNS ROWS "*,foward,1000,0.01,150\n", ":9:3: no what 'foward'"},
        {"a rank too many", HEAD COLUMNS ROWS "2,forward,1000,0.01,150\n", ":9:1: rank is '2', expected 0 to 1"},
        {"a clock where none counts", HEAD COLUMNS ROWS "0,act,1000,0.01,\n", ":9:7: sm_mhz of 'act' is '1000'"},
        {"no time", HEAD COLUMNS ROWS "0,forward,1000,,150\n", ":9:16: time_s is empty"},
        {"stated twice", HEAD COLUMNS ROWS "*,forward,1000,0.02,150\n", ":9: 'forward' is stated twice"},
        {"nothing of a rank", HEAD COLUMNS "*,forward,1000,0.01,150\n0,backward,1000,0.02,150\n*,blocked,,,70\n",
         "rank 1 has no 'backward'"},
        {"nothing while it waits", HEAD COLUMNS "*,forward,1000,0.01,150\n*,backward,1000,0.02,150\n",
         "rank 0 has no 'blocked'"},
    };
    char path[] = "/tmp/foldline-pipeline-XXXXXX", again[64];
    const int fd = mkstemp(path);
    if (fd < 0 || close(fd))
        exit(1);
    snprintf(again, sizeof again, "%s.again", path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_pipeline p, q;
        fl_diag said = {0};
        char text[1600];
        write_text(path, rows[i].text);
        const fl_status s = fl_pipeline_read(path, &p, &said);
        fl_diag_text(&said, text, sizeof text);
        FL_CHECK(s == (rows[i].error ? FL_BAD_INPUT : FL_OK), "%s: status %d, %s", rows[i].what, s, text);
        FL_CHECK(!rows[i].error || strstr(text, rows[i].error), "%s: '%s', expected '%s'", rows[i].what, text,
                 rows[i].error);
        if (!s) {
            FX_MUST(fl_pipeline_write(again, &p, d));
            FX_MUST(fl_pipeline_read(again, &q, d));
            FL_CHECK(q.row_count == p.row_count && q.ranks == p.ranks && q.schedule == p.schedule, "it comes back");
            for (size_t k = 0; k < p.row_count && k < q.row_count; k++)
                FL_CHECK(q.row[k].rank == p.row[k].rank && q.row[k].what == p.row[k].what &&
                             (q.row[k].time_s == p.row[k].time_s || isnan(p.row[k].time_s)),
                         "row %zu comes back", k);
            fl_pipeline_free(&q);
            unlink(again);
        }
        fl_pipeline_free(&p);
    }
    unlink(path);
}

/* ---- published lists ---- */

/* The lists of executed pipelines (FOLDLINE_DATA/pipelines/CELL.order.csv) are what 1f1b makes. */
static void test_published_lists(void) {
    static const struct {
        const char *cell;
        uint32_t stages, microbatches;
    } rows[] = {{"A100-bert", 4, 32}, {"A100-bloom", 4, 128}, {"A40-bert", 8, 32}, {"A40-gpt3-2.7b", 8, 256}};
    const char *data = getenv("FOLDLINE_DATA");
    for (size_t i = 0; data && i < sizeof rows / sizeof *rows; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/pipelines/%s.order.csv", data, rows[i].cell);
        if (access(path, R_OK))
            continue;
        fl_pipeline p;
        equal_stages(&p, FL_PIPELINE_1F1B, rows[i].stages, rows[i].microbatches, 1);
        FX_MUST(fl_pipeline_finish(&p, d));
        fl_pipeline_order mine, theirs;
        FX_MUST(fl_pipeline_schedule_make(&p, &mine, d));
        FX_MUST(fl_pipeline_order_read(path, p.stages, p.microbatches, &theirs, d));
        for (uint32_t s = 0; s < p.stages; s++) {
            FL_CHECK(mine.stage[s].count == theirs.stage[s].count, "%s: %zu instructions of stage %u, expected %zu",
                     rows[i].cell, mine.stage[s].count, s, theirs.stage[s].count);
            for (size_t k = 0; k < mine.stage[s].count && k < theirs.stage[s].count; k++) {
                const fl_instruction *x = &mine.stage[s].item[k], *y = &theirs.stage[s].item[k];
                FL_CHECK(x->type == y->type && x->microbatch == y->microbatch && x->microbatch2 == y->microbatch2,
                         "%s: stage %u, instruction %zu is %s", rows[i].cell, s, k, fl_instruction_name[x->type]);
            }
        }
        fl_pipeline_order_free(&mine);
        fl_pipeline_order_free(&theirs);
        fl_pipeline_free(&p);
    }
}

/* ---- clocks that change while a rank waits ---- */

/* Random clocks at random instants: the ledger closes (fl_run fails where it does not), and twice gives the same. */
static void test_random_clocks(void) {
    for (uint64_t seed = 1; seed <= 20; seed++) {
        fl_wide energy[2] = {0};
        for (int again = 0; again < 2; again++) {
            fl_pipeline p;
            equal_stages(&p, seed % 2 ? FL_PIPELINE_1F1B : FL_PIPELINE_GPIPE, 4, 8, 1);
            add_row(&p, -1, FL_PIPELINE_ACT, NAN, 0.002, NAN);
            FX_MUST(fl_pipeline_finish(&p, d));
            fx_rig r;
            fx_open(&r, 4);
            r.spec.device->sm_count = 6; /* to 1000 MHz */
            fl_workload_free(r.w);
            fl_pipeline_order o;
            FX_MUST(fl_pipeline_schedule_make(&p, &o, d));
            FX_MUST(fl_build_pipeline(&r.w, "test", &p, &o, &r.spec, 2, NULL, NULL, d));
            FX_MUST(fl_rates_new(&r.rates, r.w, &r.spec, d));
            for (uint32_t g = 0; g < 4; g++)
                r.gpu_facts[g].sm.count = 6;
            r.facts.seed = seed;
            const fl_policy policy = fx_policy(0);
            const fl_setting setting[] = {{"step_us", "1500", NULL}, {"mode", "1", NULL}};
            const fl_layer layer[] = {{"test", setting, 2}};
            const fl_run_options options = {.w = r.w,
                                            .rates = r.rates,
                                            .spec = &r.spec,
                                            .facts = &r.facts,
                                            .policy = &policy,
                                            .layer = layer,
                                            .layer_count = 1,
                                            .path = again ? FL_PATH_EVENTS : FL_PATH_AUTO};
            fl_run_result result;
            FX_MUST(fl_run(&options, &result, d));
            energy[again] = result.energy_fj;
            FL_CHECK(result.switches > 50, "%llu switches", (unsigned long long)result.switches);
            fl_run_result_free(&result);
            fl_pipeline_order_free(&o);
            fl_rates_free(r.rates);
            fl_workload_free(r.w);
            fl_node_spec_free(&r.spec);
            fl_pipeline_free(&p);
        }
        FL_CHECK(energy[0] == energy[1], "seed %llu: not the same again", (unsigned long long)seed);
    }
}

FL_SUITE("pipeline", {"closed forms", test_closed_forms}, {"interleaved", test_interleaved}, {"links", test_links},
         {"a straggler", test_straggler}, {"replicas", test_replicas}, {"random clocks", test_random_clocks},
         {"lists", test_lists}, {"files", test_files}, {"published lists", test_published_lists})
