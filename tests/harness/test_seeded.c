/* The same seed gives the same for ever: synthetic traces and requests, plans, and what could have been achieved, as
 * they are kept in tests/golden/seeded.csv. Times are whole ns or ps, so what is kept of them is a hash; what is a real
 * number stands there with nine digits. Who means to change a result writes it anew with FL_BLESS=1, and says why. */
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "policies/random.h"
#include "sim/oracle/inside.h"
#include "sim/oracle/oracle.h"
#include "sim/pipeline/inside.h"
#include "sim/pipeline/pipeline.h"
#include "sim/synth/inside.h"
#include "sim/synth/synth.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/records.h"
#include "traces/pipeline/pipeline.h"
#include "traces/serving/serving.h"
#include "tests/support/golden.h"
#include "tests/support/oracle_rig.h"
#include "tests/support/random_pipeline.h"

#include <stdarg.h>

enum { TEXT = 1 << 16 };

static char text[TEXT];
static size_t length;

static void __attribute__((format(printf, 1, 2))) say(const char *format, ...) {
    va_list list;
    va_start(list, format);
    length += (size_t)vsnprintf(text + length, TEXT - length, format, list);
    va_end(list);
    CU_ASSERT_FATAL(length < TEXT);
}

static uint64_t mix(uint64_t hash, int64_t value) {
    for (int i = 0; i < 64; i += 8)
        hash = (hash ^ ((uint64_t)value >> i & 0xff)) * UINT64_C(0x100000001b3);
    return hash;
}

#define HASH UINT64_C(0xcbf29ce484222325)

static void kept(const char *name) {
    fl_golden_check(name, text);
    length = 0;
}

/* ---- synthetic traces ---- */

static void say_trace(const char *what, const fl_kernel_trace *t) {
    uint64_t times = HASH, places = HASH, kinds = HASH;
    for (size_t i = 0; i < t->op_count; i++) {
        const fl_trace_op *o = &t->ops[i];
        times = mix(mix(mix(times, o->start_ns), o->end_ns), t->has_launches ? o->launch_ns : 0);
        places = mix(mix(mix(mix(places, o->device), o->process), o->stream), o->type);
        places = mix(mix(places, t->has_launches ? o->host_thread : 0), (int64_t)o->bytes);
        kinds = mix(kinds, o->kind);
    }
    for (size_t i = 0; i < t->kind_count; i++) {
        const fl_trace_kind *k = &t->kinds[i];
        for (int a = 0; a < 3; a++)
            kinds = mix(mix(kinds, k->grid[a]), k->block[a]);
        for (const char *c = t->names[k->name]; *c; c++)
            kinds = mix(kinds, *c);
    }
    say("%s,%zu ops,%zu kinds,%016llx,%016llx,%016llx\n", what, t->op_count, t->kind_count, (unsigned long long)times,
        (unsigned long long)places, (unsigned long long)kinds);
}

/* Many kinds stand there as a hash of what would be said. */
static void say_kinds(const fl_kinds *k) {
    const size_t from = length;
    uint64_t hash = HASH;
    for (size_t i = 0; i < k->count; i++) {
        const fl_kind_load *l = &k->kind[i];
        say("%s,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%g,%g\n", l->name, l->tc, l->tm, l->tl, l->sharpness, l->alpha,
            l->beta, l->sm_demand, l->sm_mhz, l->mem_mhz);
        for (const char *c = text + from; k->count > 20 && *c; c++)
            hash = mix(hash, *c);
        length = k->count > 20 ? from : length;
    }
    if (k->count > 20)
        say("%zu kinds,%016llx\n", k->count, (unsigned long long)hash);
}

static uint64_t hash_of_ops(const fl_workload *w) {
    uint64_t hash = HASH;
    for (uint32_t i = 0; i < w->stream_count; i++) {
        const fl_stream *s = &w->stream[i];
        hash = mix(mix(hash, s->gpu), s->mark_count);
        for (uint64_t k = 0; k < s->count; k++) {
            int64_t gap, work;
            uint32_t id;
            fl_workload_op(s, k, &gap, &work, &id);
            hash = mix(mix(mix(hash, gap), work), id);
        }
    }
    return hash;
}

static void test_synth(void) {
    static const struct {
        const char *name;
        fl_synth_options o;
    } rows[] = {
        {"one stream",
         {.seed = 1, .kernels = 200, .kinds = 6, .streams = 1, .gpus = 1, .mean_us = 200, .memory = 0.5, .burst = 1}},
        {"gaps",
         {.seed = 2,
          .kernels = 200,
          .kinds = 3,
          .streams = 1,
          .gpus = 1,
          .mean_us = 50,
          .gap_us = 20,
          .memory = 0,
          .burst = 4}},
        {"streams",
         {.seed = 3,
          .kernels = 201,
          .kinds = 9,
          .streams = 3,
          .gpus = 2,
          .mean_us = 900,
          .gap_us = 5,
          .memory = 1,
          .sm_demand = 0.5,
          .burst = 1}},
        {"launches",
         {.seed = 4,
          .kernels = 150,
          .kinds = 5,
          .streams = 2,
          .gpus = 2,
          .mean_us = 100,
          .gap_us = 10,
          .memory = 0.3,
          .burst = 2,
          .launches = true}},
        {"one kind",
         {.seed = 5, .kernels = 20, .kinds = 1, .streams = 1, .gpus = 1, .mean_us = 1e6, .memory = 0.5, .burst = 1}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_kernel_trace t = {0}, both = {0};
        fl_kinds k = {0};
        fx_rig r;
        fx_open(&r, 2);
        fl_workload *w;
        FX_MUST(fl_synth_trace(&rows[i].o, 1000, 800, &t, &k, d));
        FX_MUST(fl_synth_workload(&rows[i].o, &r.spec, 3, &w, d));
        FX_MUST(fl_synth_mix(&k, rows[i].o.seed, 0.5, 900, 1000, 800, &both, d));
        say_trace(rows[i].name, &t);
        say_trace("mix", &both);
        say_kinds(&k);
        say("workload,%016llx\n", (unsigned long long)hash_of_ops(w));
        for (uint32_t c = 0; c < w->class_count; c++)
            say("%s,%.9g,%.9g,%.9g,%.9g,%.9g\n", w->class[c].kind.name, w->class[c].load.tc, w->class[c].load.tm,
                w->class[c].load.alpha, w->class[c].load.beta, w->class[c].load.sm_demand);
        fl_workload_free(w);
        fl_kernel_trace_free(&t);
        fl_kernel_trace_free(&both);
        fl_kinds_free(&k);
        fx_close(&r);
    }
    kept("seeded-traces.csv");
}

static void test_requests(void) {
    for (int i = 0; i < 6; i++) {
        fl_synth_requests_options o = fl_synth_requests_standard;
        o.seed = 10 + (uint64_t)i;
        o.most = i == 1 ? 0 : 80;
        o.seconds = i == 1 ? 30 : o.seconds;
        o.rate = i == 2 ? 0.25 : 4;
        o.cv = i == 3 ? 2 : i == 4 ? 0.5 : o.cv;
        o.daily = i == 5 ? 0.8 : o.daily;
        o.day_s = i == 5 ? 60 : o.day_s;
        o.shared = i == 2 ? 100 : o.shared;
        fl_requests r = {0};
        FX_MUST(fl_synth_requests(&o, &r, d));
        uint64_t hash = HASH;
        for (size_t k = 0; k < r.count; k++)
            hash = mix(mix(mix(mix(hash, r.row[k].t_ns), r.row[k].prompt_tokens), r.row[k].output_tokens),
                       r.row[k].cached_tokens);
        say("requests %d,%zu,%lld,%016llx\n", i, r.count, r.count ? (long long)r.row[r.count - 1].t_ns : 0,
            (unsigned long long)hash);
        fl_requests_free(&r);
    }
    kept("seeded-requests.csv");
}

/* Applications drawn for a platform, and their first kernels. */
static void test_programs(void) {
    fl_platform platform;
    FX_MUST(fl_platform_open("rtx3080ti", 0, &platform, d));
    FX_MUST(fl_node_choose(&platform.node, &(fl_node_choice){0}, d));
    fl_programs p = {0};
    fl_kinds k = {0};
    FX_MUST(fl_synth_apps(&platform.node.device[0], 4, 7, &p, &k, d));
    say_kinds(&k);
    for (size_t i = 0; i < p.program_count; i++) {
        fl_kernel_trace t = {0};
        FX_MUST(fl_synth_program(&p, i, 3 + i, 2, &t, d));
        say_trace("program", &t);
        fl_kernel_trace_free(&t);
    }
    fl_programs_free(&p);
    fl_kinds_free(&k);
    fl_platform_free(&platform);
    kept("seeded-programs.csv");
}

/* ---- plans ---- */

static void say_point(const char *what, const fl_plan_point *p, const fl_plan_program *g) {
    uint64_t hash = HASH;
    for (size_t i = 0; i < g->part_count; i++)
        hash = mix(hash, p->at[i]);
    say("%s,%.9g,%.9g,%.9g,%016llx\n", what, p->time_s, p->energy_j, p->bound_j, (unsigned long long)hash);
}

static void test_plans(void) {
    static const fl_pipeline_shape shapes[] = {{FL_PIPELINE_1F1B, 4, 6, 1, 12},
                                               {FL_PIPELINE_GPIPE, 3, 4, 1, 7},
                                               {FL_PIPELINE_INTERLEAVED, 2, 4, 2, 5},
                                               {FL_PIPELINE_1F1B, 1, 3, 1, 9}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        fl_random g = fl_random_seed(77, i);
        fl_pipeline_rig r;
        fl_rig_make(&r, &g, &shapes[i]);
        fl_rig_begin(&r, shapes[i].clocks, NULL);
        fl_plan_point *point, within[3];
        size_t found;
        FX_MUST(fl_plan_frontier(&r.pl, 9, &point, &found, d));
        say("shape %zu,%zu points,%.9g,%.9g\n", i, found, r.pl.fastest_s, r.pl.least_s);
        for (size_t k = 0; k < found; k++) {
            say_point("frontier", &point[k], &r.g);
            fl_plan_point_free(&point[k]);
        }
        free(point);
        const double limit_s[] = {r.pl.least_s, r.pl.fastest_s * 1.05, r.pl.fastest_s * 1.01};
        FX_MUST(fl_plan_within(&r.pl, limit_s, 3, within, d));
        for (size_t k = 0; k < 3; k++) {
            say_point("within", &within[k], &r.g);
            fl_plan_point_free(&within[k]);
        }
        say("bounds,%.9g,%.9g,%.9g\n", fl_plan_bound(&r.pl, limit_s[1]), fl_plan_product_bound(&r.pl, 1),
            fl_plan_product_bound(&r.pl, 2));
        fl_plan_same *same;
        size_t clocks;
        FX_MUST(fl_plan_all_same(&r.g, &same, &clocks, d));
        for (size_t k = 0; k < clocks; k++)
            say("same,%d,%.9g,%.9g\n", same[k].mhz, same[k].time_s, same[k].energy_j);
        free(same);
        for (int price = 0; price <= 1200; price += 400) {
            int32_t mhz[8];
            uint32_t *at = fx_alloc(r.g.part_count, sizeof *at);
            double time_s, energy_j;
            for (uint32_t k = 0; k < shapes[i].stages; k++)
                mhz[k] = 1000;
            FX_MUST(fl_plan_rank_clocks(&r.g, price, mhz, at, &time_s, &energy_j, d));
            say("ranks,%d,%d,%.9g,%.9g\n", price, mhz[0], time_s, energy_j);
            free(at);
        }
        fl_rig_end(&r);
    }
    kept("seeded-plans.csv");
}

/* ---- what could have been achieved ---- */

static void say_schedules(const char *what, const fl_oracle_table *t, int64_t default_ps) {
    for (int objective = FL_MIN_ENERGY; objective <= FL_MIN_ED2P; objective++)
        for (int percent = 0; percent <= 30; percent += 10) {
            const int64_t limit = percent == 30 ? INT64_MAX : fl_limit_ps(default_ps, percent * 0.01);
            fl_oracle_result o;
            FX_MUST(fl_oracle_clairvoyant(t, (fl_objective)objective, limit, true, &o, d));
            uint64_t hash = HASH;
            for (size_t i = 0; o.schedule && i < t->positions; i++)
                hash = mix(hash, o.schedule[i]);
            for (uint64_t i = 0; o.change && i <= o.switches; i++)
                hash = mix(mix(hash, o.change[i].at_ps), o.change[i].choice);
            say("%s,%d,%d%%,%d,%.9g,%lld,%.9g,%.9g,%llu,%016llx\n", what, objective, percent, o.feasible, o.energy_j,
                (long long)o.time_ps, o.bound_j, o.objective_bound, (unsigned long long)o.switches,
                (unsigned long long)hash);
            free(o.schedule);
            free(o.change);
        }
}

static void say_kernels(const fx_rig *r, const fl_oracle_table *t) {
    fl_kernel_choice *choice = fx_alloc(r->w->class_count, sizeof *choice);
    for (int objective = FL_MIN_ENERGY; objective <= FL_MIN_ED2P; objective++) {
        fl_kernel_total total;
        FX_MUST(fl_oracle_per_kernel(r->w, r->rates, &r->spec, (fl_objective)objective, 0.08, t, choice, &total, d));
        say("per kernel,%d,%d,%.9g,%.9g,%.9g,%.9g,%.9g\n", objective, total.held, total.energy_j, total.time_s,
            total.gap_energy_j, total.gap_time_s, total.standard_gap_energy_j);
        for (uint32_t c = 0; c < r->w->class_count; c++)
            say("kind,%u,%u,%u,%.9g,%.9g,%.9g\n", c, choice[c].at.sm, choice[c].at.mem, choice[c].energy_j,
                choice[c].time_s, choice[c].standard_time_s);
    }
    free(choice);
}

static void test_oracle(void) {
    fl_random g = fl_random_seed(SEED, 99);
    for (int i = 0; i < 5; i++) {
        fx_rig r;
        random_rig(&r, &g, i == 4 ? 2 : 1, 0, 60);
        fl_static_point base, best;
        bool found;
        const fl_choice standard = {.sm = 0, .mem = 1, .sm_mhz = 500, .mem_mhz = 800};
        FX_MUST(fl_static_run(r.w, r.rates, &r.spec, &r.facts, &standard, &base, d));
        FX_MUST(fl_static_search(r.w, r.rates, &r.spec, &r.facts, FL_MIN_EDP, base.makespan_ps, &best, &found, d));
        say("static,%d,%lld,%d,%u,%u,%lld\n", i, (long long)base.makespan_ps, found, best.at.sm, best.at.mem,
            (long long)best.makespan_ps);
        const size_t positions[] = {FL_POSITIONS_ALL, 9, POSITIONS_MANY};
        for (size_t k = 0; k < 3; k++) {
            fl_oracle_table t;
            table_of(&r, positions[k], &t);
            int64_t fastest;
            FX_MUST(fl_oracle_fastest(&t, &fastest, d));
            say("table,%zu,%zu,%zu,%d,%lld\n", positions[k], t.positions, t.choices, t.exact, (long long)fastest);
            say_schedules("schedule", &t, fastest);
            if (!k)
                say_kernels(&r, &t);
            fl_oracle_table_free(&t);
            if (k) {
                positions_of(&r, positions[k], &t);
                say_schedules("positions alone", &t, fastest);
                fl_oracle_table_free(&t);
            }
        }
        fx_close(&r);
    }
    kept("seeded-oracle.csv");
}

FL_SUITE("seeded", {"traces", test_synth}, {"requests", test_requests}, {"programs", test_programs},
         {"plans", test_plans}, {"oracle", test_oracle})
