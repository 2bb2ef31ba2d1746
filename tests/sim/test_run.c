/* One policy over one workload: what it is called with and when, where the truth is told, and what a run is known by.
 */
#include "tests/support/sim_fixture.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "traces/io/io.h"

/* So many kernels of 1 ms each at the default clocks, where nothing is scarce. */
static void open_rig(fx_rig *r, int kernels) {
    fx_open(r, 1);
    const uint32_t c = fx_class(r, 1, 0, 0, 1, 0, 0.1), s = fx_stream(r, 0, 0);
    for (int i = 0; i < kernels; i++)
        fx_op(r, s, 0, 1000000, c);
    fx_finish(r, 1);
}

static uint64_t hash_of(const fx_rig *r, int mode, int64_t step_us) {
    fl_run_result result;
    fx_run(r, &(fx_how){.mode = mode, .step_us = step_us}, &result);
    const uint64_t hash = result.hash;
    fl_run_result_free(&result);
    return hash;
}

/* The same run has the same hash. Other clocks have another, and so has the same course seen at other instants. */
static void test_hash(void) {
    fx_rig r;
    open_rig(&r, 12);
    const uint64_t still = hash_of(&r, FX_NOTHING, 1000), moved = hash_of(&r, FX_RANDOM, 1000);
    FL_CHECK(still == hash_of(&r, FX_NOTHING, 1000) && moved == hash_of(&r, FX_RANDOM, 1000), "the same again");
    FL_CHECK(still != moved && still != hash_of(&r, FX_NOTHING, 700), "%llx and %llx", (unsigned long long)still,
             (unsigned long long)moved);
    r.facts.seed = 2;
    FL_CHECK(moved != hash_of(&r, FX_RANDOM, 1000), "another seed draws other clocks");
    fx_close(&r);
}

typedef struct seen {
    int64_t at_ps[64];
    double watts[64];
    size_t count, stop_at;
} seen;

static fl_status note_truth(void *user, const fl_node *node, int64_t t_ps, fl_diag *d) {
    seen *s = user;
    s->at_ps[s->count++] = t_ps;
    return s->count == s->stop_at || fl_node_now(node) != t_ps ? fl_refuse(d, "stopped") : FL_OK;
}

static fl_status note_watch(void *user, const fl_gpu_sample *gpu, uint32_t count, int64_t t_ps, fl_diag *d) {
    seen *s = user;
    s->watts[s->count] = gpu->value[FL_GPU_POWER_W];
    s->at_ps[s->count++] = t_ps;
    return count == 1 && s->count != s->stop_at ? FL_OK : fl_refuse(d, "stopped");
}

/* 4 ms, seen each 0.7 ms from time 0 on: six times, whatever the policy's steps. Where no step falls on the end, the
 * end is told too. */
static void test_truth(void) {
    static const int64_t steps[] = {1000, 100, 350, 5000};
    fx_rig r;
    open_rig(&r, 4);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        for (int mode = -1; mode <= FX_NOTHING; mode++) {
            seen s = {0};
            fl_run_result result;
            fx_run(&r,
                   &(fx_how){.mode = mode, .step_us = steps[i], .truth_ns = 700000, .on_truth = note_truth, .user = &s},
                   &result);
            FL_CHECK((s.count == 6 || (s.count == 7 && s.at_ps[6] == 4 * FX_MS_PS)) &&
                         fx_near(result.makespan_s, 4e-3, 1e-9),
                     "mode %d, steps of %lld us: %zu times", mode, (long long)steps[i], s.count);
            for (size_t k = 0; k < 6; k++)
                FL_CHECK(s.at_ps[k] == (int64_t)k * 700 * FX_US_PS, "time %zu: %lld ps", k, (long long)s.at_ps[k]);
            fl_run_result_free(&result);
        }
    fl_run_result result;
    fl_diag diag = {0};
    seen s = {.stop_at = 3};
    FL_CHECK(fx_try(&r, &(fx_how){.mode = -1, .truth_ns = 700000, .on_truth = note_truth, .user = &s}, &result,
                    &diag) == FL_BAD_INPUT &&
                 s.count == 3,
             "who sees it may end the run: %zu times", s.count);
    s = (seen){0};
    FX_MUST(fx_try(&r, &(fx_how){.mode = -1, .on_truth = note_truth, .user = &s}, &result, d));
    FL_CHECK(s.count == 0, "without a spacing it is never told");
    fl_run_result_free(&result);
    fx_close(&r);
}

/* Sensors that a policy does not read are read for who watches: 140 W of a compute-bound kernel at 1000 MHz. */
static void test_watch(void) {
    fx_rig r;
    open_rig(&r, 4);
    r.spec.device->sensor[FL_GPU_POWER_W] = (fl_sensor_spec){.present = 1};
    seen s = {0};
    fl_run_options o = {.w = r.w,
                        .rates = r.rates,
                        .spec = &r.spec,
                        .facts = &r.facts,
                        .on_watch = note_watch,
                        .watch_needs = FL_BIT(FL_GPU_POWER_W),
                        .truth_ns = 1500000,
                        .user = &s};
    fl_run_result result;
    FX_MUST(fl_run(&o, &result, d));
    FL_CHECK(s.count == 4 && s.at_ps[3] == 4 * FX_MS_PS && s.at_ps[2] == 3000 * FX_US_PS &&
                 fx_near(s.watts[1], 140, 1e-6),
             "%zu times, %g W", s.count, s.watts[1]);
    fl_run_result_free(&result);
    fl_diag d = {0};
    s = (seen){.stop_at = 2};
    FL_CHECK(fl_run(&o, &result, &d) == FL_BAD_INPUT && s.count == 2, "who watches may end the run: %zu", s.count);
    fx_close(&r);
}

/* Without a policy the clocks of the whole run: at half the clock a compute-bound kernel takes twice as long. */
static void test_first_clocks(void) {
    static const struct {
        double sm_mhz, mem_mhz, time_s, watts; /* 20 + 10 or 5 + 10 f + 100 f */
    } rows[] = {{0, 0, 4e-3, 140}, {500, 0, 8e-3, 85}, {0, 400, 4e-3, 135}, {1500, 400, 4e-3 / 1.5, 190}};
    fx_rig r;
    open_rig(&r, 4);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const fl_run_options o = {.w = r.w,
                                  .rates = r.rates,
                                  .spec = &r.spec,
                                  .facts = &r.facts,
                                  .first_sm_mhz = rows[i].sm_mhz,
                                  .first_mem_mhz = rows[i].mem_mhz};
        fl_run_result result;
        FX_MUST(fl_run(&o, &result, d));
        FL_CHECK(fx_near(result.makespan_s, rows[i].time_s, 1e-4) && fx_near(result.mean_power_w, rows[i].watts, 1e-4),
                 "row %zu: %g s, %g W", i, result.makespan_s, result.mean_power_w);
        fl_run_result_free(&result);
    }
    fx_close(&r);
}

typedef struct calls {
    uint64_t count, stop_at;
    bool wrong;
} calls;

/* Steps are numbered and 1.5 ms apart; how long the last call took is known from the second on. */
static fl_status note_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    calls *c = user;
    const bool timed = sample->host.valid & FL_BIT(FL_HOST_LOOP_NS),
               fresh = sample->host.fresh & FL_BIT(FL_HOST_LOOP_NS);
    c->wrong |= sample->step != c->count || sample->time_ns != (int64_t)c->count * 1500000 || sample->gpu_count != 1 ||
                timed != (c->count > 0) || fresh != timed || decision->delay_ns != 1500000 || sample->woken;
    c->wrong |= timed && sample->host.value[FL_HOST_LOOP_NS] != 0;
    c->count++;
    return c->count == c->stop_at ? fl_refuse(d, "stopped") : FL_OK;
}

static void test_steps(void) {
    fx_rig r;
    open_rig(&r, 4);
    calls c = {0};
    fl_run_result result;
    fx_run(&r, &(fx_how){.mode = FX_NOTHING, .step_us = 1500, .on_step = note_step, .user = &c}, &result);
    FL_CHECK(c.count == 3 && !c.wrong, "%llu steps in 4 ms", (unsigned long long)c.count);
    fl_run_result_free(&result);
    c = (calls){.stop_at = 2};
    fl_diag d = {0};
    FL_CHECK(fx_try(&r, &(fx_how){.mode = FX_NOTHING, .step_us = 1500, .on_step = note_step, .user = &c}, &result,
                    &d) == FL_BAD_INPUT &&
                 c.count == 2,
             "who sees the steps may end the run: %llu", (unsigned long long)c.count);
    fx_close(&r);
}

static fl_status note_stage(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    const fl_stage_state at = fl_stage_look();
    const int64_t ms = sample->time_ns / 1000000;
    const uint64_t done = (uint64_t)((ms < 10 ? ms : 10) + ms / 2);
    (void)decision, (void)d;
    FL_CHECK(at.what && !strcmp(at.what, "kernels") && at.size == 20 && at.done == done,
             "at %lld ns: %llu of %llu %s, expected %llu of 20", (long long)sample->time_ns,
             (unsigned long long)at.done, (unsigned long long)at.size, at.what ? at.what : "of nothing",
             (unsigned long long)done);
    ++*(int *)user;
    return FL_OK;
}

/* A program that asks is told how many of all kernels have ended: ten of 1 ms on the one GPU, ten of 2 ms on the other.
 * When the run has ended, nothing is in progress. */
static void test_progress(void) {
    fx_rig r;
    fx_open(&r, 2);
    const uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 0.1), one = fx_stream(&r, 0, 0), two = fx_stream(&r, 1, 0);
    for (int i = 0; i < 10; i++) {
        fx_op(&r, one, 0, 1000000, c);
        fx_op(&r, two, 0, 2000000, c);
    }
    fx_finish(&r, 1);
    fl_stage_watch();
    for (int only = 0; only < 2; only++) {
        int steps = 0;
        fl_run_result result;
        fx_run(&r,
               &(fx_how){.mode = FX_NOTHING,
                         .step_us = 1300,
                         .path = only ? FL_PATH_EVENTS : FL_PATH_AUTO,
                         .on_step = note_stage,
                         .user = &steps},
               &result);
        FL_CHECK(steps == 16 && !fl_stage_look().what, "%d steps, then %s", steps,
                 fl_stage_look().what ? fl_stage_look().what : "nothing");
        fl_run_result_free(&result);
    }
    fx_close(&r);
}

/* The shortest time between two looks is a nanosecond: a kernel of 3 ns is seen at 0, 1, 2 and 3. */
static void test_each_nanosecond(void) {
    static const struct {
        int64_t truth_ns;
        size_t times;
    } rows[] = {{1, 4}, {2, 3}, {3, 2}, {0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_rig r;
        fx_open(&r, 1);
        fx_op(&r, fx_stream(&r, 0, 0), 0, 3, fx_light(&r));
        fx_finish(&r, 0);
        seen s = {0};
        fl_run_result result;
        fx_run(&r, &(fx_how){.mode = -1, .truth_ns = rows[i].truth_ns, .on_truth = note_truth, .user = &s}, &result);
        FL_CHECK(s.count == rows[i].times, "each %lld ns: told %zu times, expected %zu", (long long)rows[i].truth_ns,
                 s.count, rows[i].times);
        for (size_t k = 0; k < s.count && k < rows[i].times; k++)
            FL_CHECK(s.at_ps[k] == (k * (size_t)rows[i].truth_ns < 3 ? (int64_t)k * rows[i].truth_ns * 1000 : 3000),
                     "each %lld ns: told at %lld ps", (long long)rows[i].truth_ns, (long long)s.at_ps[k]);
        fl_run_result_free(&result);
        fx_close(&r);
    }
}

/* A run that takes no time has no mean power that anybody could state: 0, and no result of a division by 0. */
static void test_no_time(void) {
    fx_rig r;
    fx_open(&r, 1);
    fx_op(&r, fx_stream(&r, 0, 0), 0, 0, fx_light(&r));
    fx_finish(&r, 0);
    fl_run_result result;
    fx_run(&r, &(fx_how){.mode = -1}, &result);
    FL_CHECK(result.makespan_ps == 0 && result.energy_j == 0 && result.mean_power_w == 0 && result.kernels == 1,
             "%lld ps, %g J, %g W", (long long)result.makespan_ps, result.energy_j, result.mean_power_w);
    fl_run_result_free(&result);
    fx_close(&r);
}

/* 7 s at P. From 5 s on: 0.8 s with a target of P + 10, 1.19 s of P - 30, and a last window of 20 ms in which the
 * target falls from P - 30 to P - 40 half-way. */
static void test_target(void) {
    fx_rig r;
    open_rig(&r, 7000);
    fl_run_result plain, followed;
    fx_run(&r, &(fx_how){.mode = FX_NOTHING, .step_us = 333000}, &plain);
    const double watts = plain.mean_power_w;
    int64_t at[] = {0, 5800000000, 6990000000};
    double asked[] = {watts + 10, watts - 30, watts - 40};
    const fl_target target = {.t_ns = at, .watts = asked, .count = 3};
    fx_run(&r, &(fx_how){.mode = FX_NOTHING, .step_us = 333000, .target = &target}, &followed);
    FL_CHECK(fx_near(followed.target_error_w, (40 * 10 + 59 * 30 + 35) / 100.0, 1e-6) &&
                 followed.target_above_pct == 60,
             "off by %.9g W, above for %.9g %%", followed.target_error_w, followed.target_above_pct);
    FL_CHECK(isnan(plain.target_error_w) && isnan(plain.target_above_pct), "without a target");
    FL_CHECK(plain.hash == followed.hash && plain.energy_j == followed.energy_j &&
                 plain.makespan_ps == followed.makespan_ps,
             "the course is the same");
    fl_run_result_free(&plain);
    fl_run_result_free(&followed);
    fx_close(&r);
}

static const struct {
    int64_t t_ns;
    double watts; /* 0: unknown */
} asked_at[] = {{0, 0}, {99, 0}, {100, 50}, {101, 50}, {199, 50}, {200, 60}, {INT64_MAX, 60}};

static void test_target_at(void) {
    int64_t at[] = {100, 200};
    double asked[] = {50, 60};
    const fl_target target = {.t_ns = at, .watts = asked, .count = 2};
    for (size_t i = 0; i < FL_COUNT(asked_at); i++) {
        const double watts = fl_target_at(&target, asked_at[i].t_ns);
        FL_CHECK(asked_at[i].watts > 0 ? watts == asked_at[i].watts : isnan(watts), "at %lld ns: %g W",
                 (long long)asked_at[i].t_ns, watts);
    }
    FL_CHECK(isnan(fl_target_at(NULL, 5)), "no target");
}

FL_SUITE("run", {"target", test_target}, {"target at an instant", test_target_at}, {"hash", test_hash},
         {"truth", test_truth}, {"each nanosecond", test_each_nanosecond}, {"no time", test_no_time},
         {"watch", test_watch}, {"first clocks", test_first_clocks}, {"steps", test_steps}, {"progress", test_progress})
