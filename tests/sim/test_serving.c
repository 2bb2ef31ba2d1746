/* Servers on a simulated node: by hand, and through changes of the clock. */
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "sim/oracle/oracle.h"
#include "sim/serving/inside.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "tests/support/serving_fixture.h"

#include <inttypes.h>

/* ---- by hand ---- */

#define BASE_MW 40000 /* at 1000 and 800 MHz */

/* One request alone: 100 tokens in, 3 out, and 20 ms later another of one token. The prompt takes 128 tiles, 100 tokens
 * of KV and 5050 pairs: 1 + 4 + 1.28 + 0.01 + 0.00505 ms. Its decodes read 101 and 102 tokens of KV. */
static void test_one_at_a_time(void) {
    sx_rig x;
    sx_open(&x, 1, 1);
    sx_request(&x, 1000000, 100, 3);
    sx_request(&x, 21000000, 16, 1);
    sx_finish(&x);
    fl_run_result run;
    fx_run(&x.r, &(fx_how){.mode = -1}, &run);
    const fl_served *a = &run.served.request[0], *b = &run.served.request[1];
    const int64_t us = FX_US_PS, first = 1000 * us + 6295050000, second = first + 5020100000,
                  third = second + 5020200000;
    FL_CHECK(a->arrival_ps == 1000 * us && a->taken_ps == a->arrival_ps && a->first_ps == first && a->done_ps == third,
             "taken %" PRId64 ", first %" PRId64 ", done %" PRId64, a->taken_ps, a->first_ps, a->done_ps);
    FL_CHECK(a->worst_tbt_ps == 5020200000, "worst TBT %" PRId64, a->worst_tbt_ps);
    /* 1 + 4 + 0.16 + 0.0016 + 0.000136 ms */
    FL_CHECK(b->first_ps - b->arrival_ps == 5161736000 && b->done_ps == b->first_ps, "%" PRId64,
             b->first_ps - b->arrival_ps);
    FL_CHECK(run.makespan_ps == b->done_ps, "ends at %" PRId64, run.makespan_ps);
    CU_ASSERT_EQUAL(run.kernels, 4);
    CU_ASSERT_EQUAL(run.served.sum.steps, 4);
    CU_ASSERT_EQUAL(run.served.sum.output_tokens, 4);
    CU_ASSERT_EQUAL(run.served.sum.prompt_tokens, 116);
    CU_ASSERT_EQUAL(run.served.sum.computed_tokens, 118);
    CU_ASSERT_DOUBLE_EQUAL(run.served.sum.tbt.mean_s, 5.02015e-3, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(run.served.sum.tpot.p50_s, 5.02015e-3, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(run.served.sum.ttft.max_s, 6.29505e-3, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(run.served.sum.e2e.max_s, 16.33535e-3, 1e-12);
    /* The prompt computes for 1.28 + 0.00505 ms at 100 W and moves data for 4 + 0.01 ms at 50 W, above 40 W. */
    const double step_s = 6.29505e-3;
    const int64_t sm_mw = llround(1.28505e-3 / step_s * 100000), memory_mw = llround(4.01e-3 / step_s * 50000);
    FL_CHECK(a->prefill_fj == (fl_wide)6295050000 * (BASE_MW + sm_mw + memory_mw), "%.17g J", fl_joules(a->prefill_fj));
    const fl_wide busy = 6295050000 + 5020100000 + 5020200000 + INT64_C(5161736000);
    FL_CHECK(run.served.sum.idle_fj == (run.makespan_ps - busy) * BASE_MW, "idle %.17g J",
             fl_joules(run.served.sum.idle_fj));
    FL_CHECK(run.served.sum.idle_fj + a->prefill_fj + a->decode_fj + b->prefill_fj + b->decode_fj == run.energy_fj,
             "parts do not make the whole");
    fl_run_result_free(&run);
    sx_close(&x);
}

/* The first token comes after 6.29505 ms, the two others 5.0201 and 5.0202 ms later. What takes as long as its target
 * allows is in time; a nanosecond more is not. */
static void test_targets(void) {
    static const struct {
        int64_t ttft_ns, tbt_ns;
        uint64_t ttft_missed, tbt_missed;
    } rows[] = {{6295050, 5020200, 0, 0}, {6295049, 5020199, 1, 1}, {6295051, 5020100, 0, 1}, {6295050, 5020099, 0, 2}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        sx_rig x;
        sx_open(&x, 1, 1);
        x.setup.ttft_target_ns = rows[i].ttft_ns;
        x.setup.tbt_target_ns = rows[i].tbt_ns;
        sx_request(&x, 1000000, 100, 3);
        sx_finish(&x);
        fl_node *n = sx_node(&x, &(fl_node_options){0});
        fx_to_end(n);
        const fl_engine *e = fl_node_engines(n)->engine;
        FL_CHECK(e->ttft_count == 1 && e->ttft_missed == rows[i].ttft_missed && e->tbt_count == 2 &&
                     e->tbt_missed == rows[i].tbt_missed,
                 "row %zu: %d of %d first tokens late, %d of %d others", i, (int)e->ttft_missed, (int)e->ttft_count,
                 (int)e->tbt_missed, (int)e->tbt_count);
        fl_node_close(n);
        sx_close(&x);
    }
}

/* Two decodes beside a prompt: who shares what. */
static void test_shared_step(void) {
    sx_rig x;
    sx_open(&x, 1, 1);
    sx_request(&x, 0, 16, 3);
    sx_request(&x, 0, 32, 3);
    sx_request(&x, 1000000, 64, 1); /* comes while the first step runs, and is in the second */
    sx_finish(&x);
    fl_run_result run;
    fx_run(&x.r, &(fx_how){.mode = -1}, &run);
    const fl_served *s = run.served.request;
    fl_step_shape first = {0}, prompts = {0}, decodes = {0};
    fl_step_add_prompt(&first, 16, 0);
    fl_step_add_prompt(&first, 32, 0);
    fl_step_add_prompt(&prompts, 64, 0);
    fl_step_add_decode(&decodes, 16);
    fl_step_add_decode(&decodes, 32);
    fl_step_shape both = prompts;
    fl_step_add_decode(&both, 16);
    fl_step_add_decode(&both, 32);
    fl_step_point at;
    CU_ASSERT_FATAL(fl_step_at(&x.law, &both, 1000, 1, &at) == FL_MODEL_OK);
    const int64_t length = llround(at.time_s * 1e12), began = llround(1e12 * fl_step_time_s(&x.law, &first, 1000, 1)),
                  alone_p = llround(1e12 * fl_step_time_s(&x.law, &prompts, 1000, 1)),
                  alone_d = llround(1e12 * fl_step_time_s(&x.law, &decodes, 1000, 1));
    FL_CHECK(s[2].taken_ps == began && s[2].first_ps == began + length && s[0].first_ps == began,
             "taken %" PRId64 ", expected %" PRId64, s[2].taken_ps, began);
    const fl_wide all = (fl_wide)length * (BASE_MW + llround(at.compute * 100000) + llround(at.memory * 50000));
    FL_CHECK(s[2].prefill_fj == all * alone_p / (alone_p + alone_d), "prefill %.17g J", fl_joules(s[2].prefill_fj));
    CU_ASSERT(s[2].decode_fj == 0);
    const fl_wide less = s[0].decode_fj - s[1].decode_fj; /* both decoded in the same two steps */
    FL_CHECK(less >= -2 && less <= 2, "decodes differ by %g fJ", fx_f(less));
    const fl_wide third = s[0].prefill_fj * 2 - s[1].prefill_fj; /* 16 tokens against 32 */
    FL_CHECK(third >= -2 && third <= 2, "prompts are off by %g fJ", fx_f(third));
    fl_run_result_free(&run);
    sx_close(&x);
}

/* Three requests decode in the same steps, of which each draws some 9 kJ, more femtojoules than 63 bits hold, or far
 * less. Each gets a third of it, and all parts together are what the node drew, to the last femtojoule. */
static void test_large_steps(void) {
    for (int large = 0; large < 2; large++) {
        sx_rig x;
        sx_open(&x, 1, 1);
        x.law.weights_s = large ? 300 : 3e-3;
        for (int i = 0; i < 3; i++)
            sx_request(&x, 0, 16, 8);
        sx_finish(&x);
        fl_run_result run;
        fx_run(&x.r, &(fx_how){.mode = -1}, &run);
        fl_wide sum = run.served.sum.idle_fj, least = run.served.request[0].decode_fj, most = least;
        for (int i = 0; i < 3; i++) {
            const fl_served *s = &run.served.request[i];
            sum += s->prefill_fj + s->decode_fj;
            least = s->decode_fj < least ? s->decode_fj : least;
            most = s->decode_fj > most ? s->decode_fj : most;
        }
        FL_CHECK(run.served.sum.steps == 8 && (fl_joules(run.energy_fj) / 8 > 9300) == large, "large %d: %g J a step",
                 large, fl_joules(run.energy_fj) / 8);
        FL_CHECK(sum <= run.energy_fj && run.energy_fj - sum < 3, "large %d: %.17g of %.17g J", large, fl_joules(sum),
                 fl_joules(run.energy_fj));
        FL_CHECK(least > 0 && most - least < 3, "large %d: from %.17g to %.17g J", large, fl_joules(least),
                 fl_joules(most));
        fl_run_result_free(&run);
        sx_close(&x);
    }
}

/* The second request comes during the first one's prompt. Its prompt is beside the first one's decode, or, where a step
 * is composed as the one before begins, one step later; a third one that finds the server idle waits for nobody. */
static void test_async(void) {
    for (int async = 0; async < 2; async++) {
        sx_rig x;
        sx_open(&x, 1, 1);
        x.server[0].rules.async_scheduling = async;
        sx_request(&x, 0, 100, 3);
        sx_request(&x, 1000000, 16, 1);
        sx_request(&x, 90000000, 16, 1);
        sx_finish(&x);
        fl_run_result run;
        fx_run(&x.r, &(fx_how){.mode = -1}, &run);
        const fl_served *s = run.served.request;
        FL_CHECK(s[1].taken_ps == 6295050000 + (async ? 5020100000 : 0), "taken at %" PRId64, s[1].taken_ps);
        CU_ASSERT_EQUAL(s[2].taken_ps, s[2].arrival_ps);
        fl_run_result_free(&run);
        sx_close(&x);
    }
}

/* ---- clocks ---- */

static uint32_t sm_index(const sx_rig *x, double mhz) {
    return (uint32_t)fl_ladder_index(x->r.spec.device->sm_mhz, x->r.spec.device->sm_count, mhz);
}

/* The prompt of test_one_at_a_time takes 6.29505 ms at 1000 MHz and 5.01 + 1.28505 x 2 = 7.5801 ms at 500 MHz. At 3 ms
 * the clock falls: 3.29505 ms are left, which become 3.29505 x 7.5801 / 6.29505. A memory clock of 400 MHz then makes
 * it 9.0001 + 2.5701 at 4 ms. */
static void test_change_in_a_step(void) {
    sx_rig x;
    sx_open(&x, 1, 1);
    sx_request(&x, 0, 100, 1);
    sx_finish(&x);
    fl_node *n = sx_node(&x, &(fl_node_options){0});
    fx_advance(n, 3 * FX_MS_PS);
    fl_node_set(n, 0, fl_node_now(n), 500, NAN);
    fx_advance(n, 4 * FX_MS_PS);
    fl_node_set(n, 0, fl_node_now(n), NAN, 400);
    fx_to_end(n);
    const int64_t full[] = {6295050000, 7580100000, 7580100000 + 4010000000};
    const int64_t then = fl_rescale_ps(full[0] - 3 * FX_MS_PS, full[0], full[1]);
    const int64_t last = fl_rescale_ps(then - FX_MS_PS, full[1], full[2]);
    FL_CHECK(fl_node_now(n) == 4 * FX_MS_PS + last, "ends at %" PRId64 ", expected %" PRId64, fl_node_now(n),
             4 * FX_MS_PS + last);
    CU_ASSERT_EQUAL(fl_node_gpu(n, 0)->sm, sm_index(&x, 500));
    fl_node_close(n);
    sx_close(&x);
}

/* Kernel records stretch a step, as they do kernels. */
static void test_records_take_time(void) {
    sx_rig x;
    sx_open(&x, 1, 1);
    x.r.spec.device->records_slowdown = 0.5;
    sx_request(&x, 0, 100, 2);
    sx_finish(&x);
    fl_node *n = sx_node(&x, &(fl_node_options){0});
    fl_node_records(n, 0, true);
    fx_to_end(n);
    const fl_kernel_record *record;
    size_t count;
    FX_MUST(fl_node_take_records(n, &record, &count, d));
    FL_CHECK(fl_node_now(n) == llround(1.5 * (6295050000 + 5020100000.0)), "%" PRId64, fl_node_now(n));
    CU_ASSERT_EQUAL(count, 2);
    FL_CHECK(record[0].start_ns == 0 && record[0].end_ns == 9442575 && record[1].start_ns == 9442575, "%" PRId64,
             record[0].end_ns);
    fl_node_close(n);
    sx_close(&x);
}

/* Two ranks at 1000 and 500 MHz: the slower sets the pace, the other spins at its SM power. */
static void test_slowest_rank(void) {
    sx_rig x;
    sx_open(&x, 1, 2);
    sx_request(&x, 0, 100, 1);
    sx_finish(&x);
    fl_node *n = sx_node(&x, &(fl_node_options){0});
    fl_node_set(n, 1, 0, 500, NAN);
    fx_to_end(n);
    FL_CHECK(fl_node_now(n) == 7580100000, "ends at %" PRId64, fl_node_now(n));
    const int64_t fast_mw = llround(1.28505 / 6.29505 * 100000) + llround(4.01 / 7.5801 * 50000) + BASE_MW,
                  slow_mw = llround(2.5701 / 7.5801 * 50000) + llround(4.01 / 7.5801 * 50000) + BASE_MW - 5000;
    FL_CHECK(fl_node_gpu(n, 0)->sums.energy_fj == (fl_wide)7580100000 * fast_mw, "%.17g J of %.17g",
             fl_joules(fl_node_gpu(n, 0)->sums.energy_fj), 7.5801e-3 * (double)fast_mw * 1e-3);
    FL_CHECK(fl_node_gpu(n, 1)->sums.energy_fj == (fl_wide)7580100000 * slow_mw, "%.17g J of %.17g",
             fl_joules(fl_node_gpu(n, 1)->sums.energy_fj), 7.5801e-3 * (double)slow_mw * 1e-3);
    fl_node_close(n);
    sx_close(&x);
}

/* The requests of test_one_at_a_time on two ranks: each step is a kernel and an iteration of both, busy from its begin
 * to its end, and between steps nothing runs, is resident or draws more than the base. */
static void test_step_ends(void) {
    static const struct {
        int64_t at_us, busy_ps; /* the first steps end at 7.29505, 12.31515 and 17.33535 ms, the next begins at 21 ms */
        uint64_t kernels;
        bool runs;
    } rows[] = {{500, 0, 0, false},
                {2000, 1000000000, 0, true},
                {8000, 7000000000, 1, true},
                {13000, 12000000000, 2, true},
                {18000, 6295050000 + 5020100000 + 5020200000, 3, false},
                {22000, 6295050000 + 5020100000 + 5020200000 + 1000000000, 3, true}};
    sx_rig x;
    sx_open(&x, 1, 2);
    sx_request(&x, 1000000, 100, 3);
    sx_request(&x, 21000000, 16, 1);
    sx_finish(&x);
    fl_node *n = sx_node(&x, &(fl_node_options){0});
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        fx_advance(n, rows[i].at_us * FX_US_PS);
        for (uint32_t k = 0; k < 2; k++) {
            const fl_gpu *g = fl_node_gpu(n, k);
            FL_CHECK(g->active == rows[i].runs && g->resident == rows[i].runs && (g->dyn_now_mw > 0) == rows[i].runs,
                     "%d us, rank %u: %u run, %u resident, %d mW", (int)rows[i].at_us, k, g->active, g->resident,
                     (int)g->dyn_now_mw);
            FL_CHECK(g->sums.kernels == rows[i].kernels && g->sums.iterations == rows[i].kernels &&
                         g->sums.busy_ps == rows[i].busy_ps,
                     "%d us, rank %u: %d kernels, %d iterations, busy for %" PRId64, (int)rows[i].at_us, k,
                     (int)g->sums.kernels, (int)g->sums.iterations, (int64_t)g->sums.busy_ps);
        }
    }
    fx_to_end(n);
    for (uint32_t k = 0; k < 2; k++)
        FL_CHECK(fl_node_gpu(n, k)->sums.kernels == 4 &&
                     fl_node_gpu(n, k)->sums.busy_ps == rows[4].busy_ps + 5161736000,
                 "rank %u: %d kernels, busy for %" PRId64, k, (int)fl_node_gpu(n, k)->sums.kernels,
                 (int64_t)fl_node_gpu(n, k)->sums.busy_ps);
    fl_node_close(n);
    sx_close(&x);
}

/* A step of two seconds at 1500 MHz draws more than the limit: the wall takes the clock down in it. */
static void test_wall(void) {
    for (int ideal = 0; ideal < 2; ideal++) {
        sx_rig x;
        sx_open(&x, 1, 1);
        x.law.token = 1e-2;
        x.law.weights_s = 0;
        nx_wall(&x.r, 120);
        x.r.spec.device->wall.ideal = ideal;
        sx_request(&x, 0, 200, 1);
        sx_finish(&x);
        fl_node *n = sx_node(&x, &(fl_node_options){.first_sm_mhz = 1500});
        fx_advance(n, 50 * FX_MS_PS);
        fl_wide before = fl_node_gpu(n, 0)->sums.energy_fj;
        fx_advance(n, 1500 * FX_MS_PS);
        const fl_gpu *g = fl_node_gpu(n, 0);
        const double watts = fl_joules(g->sums.energy_fj - before) / 1.45;
        FL_CHECK(watts < 121 && watts > 100, "%g W behind a wall of 120 W", watts);
        FL_CHECK(g->wall_held_ps > 1400 * FX_MS_PS, "held for %g s", fl_seconds(g->wall_held_ps));
        fx_to_end(n);
        fl_node_close(n);
        sx_close(&x);
    }
}

/* A model that is wrong: at the reference clock it lasts as long, elsewhere not, and it draws something else. */
static void test_model_error(void) {
    int64_t end_ps[2][2];
    fl_wide fj[2][2];
    for (int wrong = 0; wrong < 2; wrong++)
        for (int slow = 0; slow < 2; slow++) {
            sx_rig x;
            sx_open(&x, 1, 1);
            sx_request(&x, 0, 100, 20);
            sx_finish(&x);
            if (wrong)
                fl_rates_err(x.r.rates, &(fl_model_error){.time_pct = 10, .power_pct = 10, .seed = 3});
            fl_node *n = sx_node(&x, &(fl_node_options){.first_sm_mhz = slow ? 500 : 1000});
            fx_to_end(n);
            end_ps[wrong][slow] = fl_node_now(n);
            fj[wrong][slow] = fx_energy(n);
            fl_node_close(n);
            sx_close(&x);
        }
    CU_ASSERT(end_ps[0][0] == end_ps[1][0] && end_ps[0][1] != end_ps[1][1]);
    CU_ASSERT(fj[0][0] != fj[1][0] && fj[0][1] != fj[1][1]);
}

/* A static memory clock stretches steps whose law does not say at which memory clock it was measured: that is the
 * board's default, also where a run holds another clock from its beginning. By hand as above: 9.0001 ms and more. */
static void test_static_memory_clock(void) {
    sx_rig x;
    sx_open(&x, 1, 1);
    x.law.ref_mem_mhz = 0;
    sx_request(&x, 0, 100, 1);
    sx_finish(&x);
    const fl_choice at[] = {{.sm_mhz = 1000, .mem_mhz = 800}, {.sm_mhz = 1000, .mem_mhz = 400}};
    const int64_t expected[] = {6295050000, 6295050000 + 4010000000};
    for (size_t i = 0; i < 2; i++) {
        fl_static_point point;
        FX_MUST(fl_static_run(x.r.w, x.r.rates, &x.r.spec, &x.r.facts, &at[i], &point, d));
        FL_CHECK(point.makespan_ps == expected[i], "at %g MHz of memory %" PRId64 " ps", at[i].mem_mhz,
                 point.makespan_ps);
    }
    sx_close(&x);
}

/* The workload of servers is known where all their laws are, and assumed where one was measured at a single clock. */
static void test_range(void) {
    sx_rig x;
    sx_open(&x, 3, 1);
    fl_step_law low = sx_law(), high = sx_law(), one = sx_law();
    low.sm_mhz[0] = 400, low.sm_mhz[1] = 1300;
    high.sm_mhz[0] = 700, high.sm_mhz[1] = 1200, high.sm_mhz[2] = 1900, high.sm_count = 3;
    one.sm_count = 1, one.sm_mhz[0] = 900;
    x.server[1].law = &low;
    x.server[2].law = &high;
    sx_request(&x, 0, 100, 1);
    sx_finish(&x);
    const fl_workload *w = x.r.w;
    FL_CHECK(w->sm_min_mhz == 700 && w->sm_max_mhz == 1300 && !w->assumed, "%g to %g MHz", w->sm_min_mhz,
             w->sm_max_mhz);
    FL_CHECK(w->serving == &x.setup && !w->gaps_are_host && w->class_count == 3 && w->gpu_count == 3 &&
                 w->island_count == 1 && w->island->serves && w->island->gpu_count == 3 && w->island->gpu[2] == 2,
             "one island of all GPUs");
    for (uint32_t i = 0; i < 4; i++)
        FL_CHECK(fl_workload_serves(w, i) == (i < 3), "GPU %u", i);
    fl_rates_free(x.r.rates);
    fl_workload_free(x.r.w);
    x.server[2].law = &one;
    sx_finish(&x);
    FL_CHECK(x.r.w->sm_min_mhz == 500 && x.r.w->sm_max_mhz == 1300 && x.r.w->assumed,
             "one clock says nothing of others: %g to %g MHz", x.r.w->sm_min_mhz, x.r.w->sm_max_mhz);
    const fl_server_facts *f = &x.facts[1];
    FL_CHECK(f->gpu_count == 1 && f->gpu[0] == 1 && f->kv_tokens == 4096 * (int64_t)x.server[1].rules.block_tokens &&
                 f->ttft_target_ns == 1000000000 && f->tbt_target_ns == 50000000 && f->target_share == 0.99 &&
                 f->max_seqs == x.server[1].rules.max_seqs && f->token_budget == x.server[1].rules.token_budget,
             "what a policy is told");
    for (size_t i = 0; i < 3; i++) { /* twice the load: everything arrives in half the time */
        static const double scale[] = {0, 1, 2};
        x.setup.scale = scale[i];
        x.requests.row[0].t_ns = 1000;
        FL_CHECK(fl_serving_arrival_ps(&x.setup, 0) == (i == 2 ? 500000 : 1000000), "at %g times the load: %" PRId64,
                 scale[i], fl_serving_arrival_ps(&x.setup, 0));
    }
    sx_close(&x);
}

FL_SUITE("serving", {"range", test_range}, {"one request at a time", test_one_at_a_time}, {"targets", test_targets},
         {"a step shared", test_shared_step}, {"steps that draw much", test_large_steps},
         {"composed ahead", test_async}, {"a clock changes in a step", test_change_in_a_step},
         {"a static memory clock", test_static_memory_clock}, {"records take time", test_records_take_time},
         {"the slowest rank", test_slowest_rank}, {"ends of steps", test_step_ends}, {"the wall", test_wall},
         {"a wrong model", test_model_error})
