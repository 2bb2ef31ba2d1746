/* What simulated runs, searches and drawn workloads come to, number by number, against tests/golden/outcomes.csv.
 * Nothing here says that a number is right. It says that a change is seen, and of what: bless it (FL_BLESS=1) after you
 * know why it moved. Nine digits, so that the last bits of a library's exp do not count. */
#include "harness/base/cli/cli.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/oracle/inside.h"
#include "sim/oracle/oracle.h"
#include "sim/serving/serving.h"
#include "sim/synth/synth.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/serving/serving.h"
#include "tests/support/golden.h"
#include "tests/support/temp_file.h"

#include <math.h>

static FILE *out;
static uint64_t digest;

static void put(const char *name, double value) { fprintf(out, ",%s=%.9g", name, value); }

/* Of what there is too much of to print: FNV-1a of its text. */
static void add(double value) {
    char text[40];
    snprintf(text, sizeof text, "%.9g;", value);
    for (const char *p = text; *p; p++)
        digest = (digest ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
}
static void put_digest(const char *name) {
    fprintf(out, ",%s=%016llx", name, (unsigned long long)digest);
    digest = UINT64_C(0xcbf29ce484222325);
}

static void must(fl_status s, const fl_diag *d) {
    if (s) {
        printf("\n    %s\n", d->message);
        exit(1);
    }
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

typedef struct scene {
    const char *name;
    fl_scene_options how;
    const char *trace, *only, *policies[4];
    enum { DEFAULT_ALONE, RUN, SEARCHED } depth; /* RUN: at a static clock and with sensors too */
} scene;

#define SAMPLE(name) FL_ROOT "/traces/samples/" name
#define SERVING SAMPLE("serving/rtx4090-llama3.1-8b.serving.csv")
#define BOARD FL_ROOT "/harness/experiments/serving/rtx4090-assumed.json"
static const scene SCENES[] = {
    {"one stream",
     {.platform = "rtx4070-laptop", .seed = 3},
     SAMPLE("sweetspot-blackscholes.csv"),
     NULL,
     {"assure"},
     SEARCHED},
    {"launches", {.platform = "rtx3080ti"}, SAMPLE("launches.csv"), NULL, {"depo"}, SEARCHED},
    {"streams of eight GPUs",
     {.platform = "generic", .node = {.units = 5}},
     SAMPLE("mix8.csv"),
     NULL,
     {"utilizscale"},
     DEFAULT_ALONE},
    {"no interference",
     {.platform = "generic", .node = {.no_contention = true, .wall = "off", .no_gating = true}},
     SAMPLE("mix8.csv"),
     NULL,
     {NULL},
     DEFAULT_ALONE},
    {"heat",
     {.platform = "a100", .node = {.heat = true, .wall = "ideal"}},
     SAMPLE("inference.csv"),
     NULL,
     {"assure"},
     RUN},
    {"a budget",
     {.platform = "generic", .node = {.gpu_budget_w = 900, .actuator = "20ms"}},
     SAMPLE("mix8.csv"),
     NULL,
     {"polca"},
     DEFAULT_ALONE},
    {"records that cost",
     {.platform = "rtx3080ti", .programs = SAMPLE("mf-gpoeo.programs.csv"), .seconds = 2},
     NULL,
     "AI_I2T",
     {"odpp"},
     SEARCHED},
    {"a host's clocks",
     {.platform = "k20xm-e5-2660", .programs = SAMPLE("powercap.programs.csv"), .seconds = 3},
     NULL,
     "gpustream",
     {"cap-hybrid1"},
     RUN},
    {"one memory for both",
     {.platform = "apu-a10-5800k",
      .programs = SAMPLE("dynaco.programs.csv"),
      .seconds = 2,
      .node = {.bus_share = 0.8, .bus_spread = 0.1, .cpu_power = 1.5}},
     NULL,
     "miniFE",
     {"multilevelth"},
     RUN},
    {"no CPU",
     {.platform = "k20xm-e5-2660", .programs = SAMPLE("powercap.programs.csv"), .seconds = 2, .node = {.no_cpu = true}},
     NULL,
     "gpustream",
     {NULL},
     RUN},
    {"requests, Poisson",
     {.platform = "a100", .arrivals = "poisson:rate=20,count=60,seed=1"},
     SAMPLE("inference.csv"),
     NULL,
     {"assure"},
     SEARCHED},
    {"a pipeline",
     {.platform = "a100-pcie", .pipeline = SAMPLE("four-stages.pipeline.csv"), .repeat = 2},
     NULL,
     NULL,
     {"nvboost"},
     RUN},
    {"serving",
     {.platform = BOARD,
      .serving = {.server = SERVING, .token_budget = 512, .ttft = "1s", .tbt = "50ms", .target_share = 0.9}},
     NULL,
     NULL,
     {"ecofreq"},
     RUN},
    {"two servers",
     {.platform = BOARD, .serving = {.server = SERVING, .servers = 2, .kv_blocks = 1500, .route = "least-loaded"}},
     NULL,
     NULL,
     {NULL},
     RUN},
};

static void put_times(const char *name, const fl_times *t) {
    fprintf(out, ",%s=%llu/%.9g/%.9g/%.9g/%.9g/%.9g/%.9g", name, (unsigned long long)t->count, t->mean_s, t->p50_s,
            t->p90_s, t->p95_s, t->p99_s, t->max_s);
}

static void put_served(const fl_served_result *s) {
    const fl_served_summary *m = &s->sum;
    for (size_t i = 0; i < s->request_count; i++) {
        const fl_served *r = &s->request[i];
        const double cells[] = {
            (double)r->arrival_ps,   (double)r->taken_ps,      (double)r->first_ps,     (double)r->done_ps,
            (double)r->worst_tbt_ps, fl_joules(r->prefill_fj), fl_joules(r->decode_fj), r->server,
            r->cached_tokens,        r->preemptions,           r->tbt_missed,           r->ttft_missed};
        for (size_t k = 0; k < sizeof cells / sizeof *cells; k++)
            add(cells[k]);
    }
    if (!s->request_count)
        return;
    put_digest("served");
    const double cells[] = {(double)m->requests,
                            (double)m->prompt_tokens,
                            (double)m->cached_tokens,
                            (double)m->output_tokens,
                            (double)m->steps,
                            (double)m->preemptions,
                            (double)m->computed_tokens,
                            m->ttft_missed,
                            m->tbt_missed,
                            m->targets,
                            m->met,
                            m->requests_per_s,
                            m->tokens_per_s,
                            m->goodput,
                            fl_joules(m->serving_fj),
                            fl_joules(m->idle_fj),
                            m->j_per_request,
                            m->j_per_token,
                            m->worst_minute_s,
                            m->worst_minute_missed,
                            m->worst_minute_ttft_s};
    for (size_t k = 0; k < sizeof cells / sizeof *cells; k++)
        put("served", cells[k]);
    put_times("ttft", &m->ttft);
    put_times("tbt", &m->tbt);
    put_times("tpot", &m->tpot);
    put_times("e2e", &m->e2e);
}

static void put_service(const fl_service *s) {
    for (size_t i = 0; i < s->request_count; i++)
        add((double)s->request[i].arrival_ps), add((double)s->request[i].start_ps), add((double)s->request[i].done_ps);
    for (size_t i = 0; i < s->iteration_count; i++)
        add(s->iteration[i].stream), add((double)s->iteration[i].start_ps), add((double)s->iteration[i].end_ps);
    for (uint32_t i = 0; i < s->barrier_count; i++)
        add((double)s->barrier_ps[i]);
    put_digest("service");
    put("load", s->load);
    put("backlog", (double)s->backlog_max);
    put_times("latency", &s->latency);
    put_times("iteration", &s->iteration_time);
}

static void put_run(const fl_run_result *r) {
    const double cells[] = {(double)r->makespan_ps,
                            r->energy_j,
                            r->gpu_energy_j,
                            r->node_energy_j,
                            r->cpu_energy_j,
                            r->mean_power_w,
                            r->peak_power_w,
                            r->peak_parts,
                            (double)r->kernels,
                            (double)r->switches,
                            (double)r->ignored_sets,
                            (double)r->refused_sets,
                            (double)r->cpu_switches,
                            (double)r->wall_held_ps,
                            (double)r->heat_held_ps,
                            r->hottest_c,
                            r->end_c,
                            r->last_sm_mhz,
                            r->last_mem_mhz,
                            r->last_cpu_mhz,
                            (double)r->policy_cost_ps};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        fprintf(out, ",%.9g", cells[i]);
    for (size_t i = 0; i < r->process_count; i++)
        add(r->process[i].gpu), add(r->process[i].process), add((double)r->process[i].end_ps);
    for (size_t i = 0; i < r->cpu_count; i++)
        add(r->cpu[i].mhz), add((double)r->cpu[i].ps);
    for (size_t i = 0; i < r->mark_count; i++)
        add((double)r->mark_ps[i]);
    for (size_t i = 0; i < r->residence_count; i++)
        add(r->residence[i].gpu), add(r->residence[i].sm_mhz), add(r->residence[i].mem_mhz),
            add((double)r->residence[i].ps);
    for (uint32_t i = 0; i < r->class_count; i++)
        add(r->class_energy_j[i]), add(r->class_time_s[i]);
    put_digest("parts");
    put_service(&r->service);
    put_served(&r->served);
}

static fl_run_options plain(const fl_scene *on) {
    return (fl_run_options){
        .w = on->w, .rates = on->rates, .spec = &on->platform.node, .facts = &on->facts, .classes = true};
}

static void run_policy(const char *name, const fl_scene *on, const char *policy) {
    fl_diag d = {0};
    fl_spec spec;
    fl_run_result r = {0};
    must(fl_spec_open(policy, &spec, &d), &d);
    const fl_layer layer[2] = {fl_platform_layer(&on->platform, policy), spec.layer};
    fl_run_options o = plain(on);
    o.policy = spec.policy;
    o.layer = layer;
    o.layer_count = 2;
    must(fl_run(&o, &r, &d), &d);
    fprintf(out, "%s,%s", name, policy);
    put_run(&r);
    fputs("\n", out);
    fl_run_result_free(&r);
    fl_spec_free(&spec);
}

static fl_status on_watch(void *user, const fl_gpu_sample *gpu, uint32_t count, int64_t t_ps, fl_diag *d) {
    (void)user, (void)d;
    add((double)t_ps);
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t left = gpu[i].valid; left; left &= left - 1)
            add(gpu[i].value[__builtin_ctzll(left)]);
    return FL_OK;
}

/* Without a policy: the default, a lower clock, and what the sensors show every 30 ms. */
static void run_plain(const char *name, const fl_scene *on, int count) {
    const fl_ladder *sm = &on->facts.gpu[0].sm;
    for (int i = 0; i < count; i++) {
        fl_diag d = {0};
        fl_run_result r = {0};
        fl_run_options o = plain(on);
        if (i == 1)
            o.first_sm_mhz = sm->mhz[sm->count / 3];
        if (i == 2) {
            o.on_watch = on_watch;
            o.watch_needs = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1;
            o.truth_ns = 30000000;
        }
        must(fl_run(&o, &r, &d), &d);
        fprintf(out, "%s,%s", name, i == 0 ? "default" : i == 1 ? "static" : "watched");
        if (i == 2)
            put_digest("sensors");
        else
            put_run(&r);
        fputs("\n", out);
        fl_run_result_free(&r);
    }
}

/* ---- searches ---------------------------------------------------------------------------------------------------- */

static void put_schedule(const char *name, const fl_oracle_table *t, fl_objective objective, int64_t limit_ps) {
    fl_diag d = {0};
    fl_oracle_result r;
    must(fl_oracle_clairvoyant(t, objective, limit_ps, true, &r, &d), &d);
    fprintf(out, "%s,%s under %.9g s,%d%d%d", name, fl_objective_names[objective], fl_seconds(limit_ps), r.feasible,
            r.bounded, r.solved);
    put("J", r.energy_j), put("s", r.time_s), put("bound", r.bound_j), put("gap", r.gap_pct);
    put("objective", r.objective), put("switches", (double)r.switches);
    for (size_t i = 0; r.schedule && i < t->positions; i++)
        add(r.schedule[i]);
    for (size_t i = 0; r.change && i <= r.switches; i++)
        add((double)r.change[i].at_ps), add(r.change[i].choice);
    put_digest("schedule");
    fputs("\n", out);
    free(r.schedule);
    free(r.change);
}

static void put_best(const char *name, const fl_scene *on, const fl_oracle_table *t, int64_t limit_ps,
                     fl_objective objective) {
    fl_diag d = {0};
    fl_static_point best = {0};
    fl_kernel_total total;
    bool found;
    must(fl_static_search(on->w, on->rates, &on->platform.node, &on->facts, objective, limit_ps, &best, &found, &d),
         &d);
    fprintf(out, "%s,best static %s,%d", name, fl_objective_names[objective], found);
    put("sm", best.at.sm_mhz), put("mem", best.at.mem_mhz), put("J", fl_joules(best.energy_fj)),
        put("ps", (double)best.makespan_ps);
    fputs("\n", out);
    fl_kernel_choice *choice = calloc(on->w->class_count + 1, sizeof *choice);
    if (!choice)
        exit(1);
    must(fl_oracle_per_kernel(on->w, on->rates, &on->platform.node, objective, 0.05, t, choice, &total, &d), &d);
    for (uint32_t i = 0; i < on->w->class_count; i++)
        add(choice[i].at.sm_mhz), add(choice[i].at.mem_mhz), add(choice[i].energy_j), add(choice[i].time_s),
            add(choice[i].standard_energy_j), add(choice[i].standard_time_s);
    fprintf(out, "%s,per kernel %s,%d", name, fl_objective_names[objective], total.held);
    put_digest("choices");
    put("J", total.energy_j), put("s", total.time_s), put("gap J", total.gap_energy_j), put("gap s", total.gap_time_s);
    put("standard gap J", total.standard_gap_energy_j);
    fputs("\n", out);
    free(choice);
}

static void search(const char *name, const fl_scene *on) {
    static const size_t CUTS[] = {FL_POSITIONS_ALL, 1, 9};
    fl_diag d = {0};
    fl_run_result standard = {0};
    const fl_run_options o = plain(on);
    must(fl_run(&o, &standard, &d), &d);
    for (size_t i = 0; i < sizeof CUTS / sizeof *CUTS; i++) {
        fl_oracle_table t;
        int64_t fastest;
        must(fl_oracle_table_make(on->w, on->rates, &on->platform.node, CUTS[i], &t, &d), &d);
        must(fl_oracle_fastest(&t, &fastest, &d), &d);
        fprintf(out, "%s,%zu positions,%zu,%zu,%d%d", name, CUTS[i], t.positions, t.choices, t.exact, t.per_op);
        put("fastest", (double)fastest);
        for (size_t k = 0; k < t.positions * t.choices; k++)
            add((double)t.time_ps[k]), add(fl_joules(t.energy_fj[k]));
        put_digest("table");
        fputs("\n", out);
        for (fl_objective of = FL_MIN_ENERGY; of <= FL_MIN_ED2P; of++) {
            const int64_t limits[] = {fastest - 1, fastest, fl_limit_ps(standard.makespan_ps, 0.05), INT64_MAX};
            for (int k = 0; k < 4; k++)
                put_schedule(name, &t, of, limits[k]);
            if (!i)
                put_best(name, on, &t, fl_limit_ps(standard.makespan_ps, 0.1), of);
        }
        fl_oracle_table_free(&t);
    }
    fl_run_result_free(&standard);
}

/* ---- what is drawn ----------------------------------------------------------------------------------------------- */

static void put_trace(const char *name, const fl_kernel_trace *t, const fl_kinds *k) {
    for (size_t i = 0; i < t->op_count; i++) {
        const fl_trace_op *op = &t->ops[i];
        const double cells[] = {
            (double)op->start_ns, (double)op->end_ns, (double)op->launch_ns, op->kind,   op->device, op->process,
            op->stream,           op->host_thread,    op->waits_count,       op->sm_mhz, op->type};
        for (size_t c = 0; c < sizeof cells / sizeof *cells; c++)
            add(cells[c]);
    }
    for (size_t i = 0; k && i < k->count; i++) {
        const fl_kind_load *l = &k->kind[i];
        const double cells[] = {l->tc,   l->tm,        l->tl,     l->sharpness, l->alpha,
                                l->beta, l->sm_demand, l->sm_mhz, l->mem_mhz,   l->phase};
        for (size_t c = 0; c < sizeof cells / sizeof *cells; c++)
            add(cells[c]);
    }
    fprintf(out, "%s,%zu,%zu", name, t->op_count, t->kind_count);
    put_digest("trace");
    put("end", t->op_count ? (double)t->ops[t->op_count - 1].end_ns : 0);
    fputs("\n", out);
}

static void draw_traces(void) {
    const fl_synth_options s = fl_synth_standard;
    fl_synth_options how[4] = {s, s, s, s};
    fl_diag d = {0};
    for (int i = 0; i < 4; i++)
        how[i].kernels = 400, how[i].kinds = 9, how[i].seed = 11 + (uint64_t)i;
    how[1].streams = 3, how[1].gpus = 2, how[1].burst = 4, how[1].launches = true;
    how[2].memory = 1, how[2].sm_demand = 0.5, how[2].gap_us = 7;
    how[3].memory = 0, how[3].burst = 1, how[3].mean_us = 33;
    for (int i = 0; i < 4; i++) {
        fl_kernel_trace t;
        fl_kinds k;
        must(fl_synth_trace(&how[i], 1000, 800, &t, &k, &d), &d);
        put_trace("synthetic", &t, &k);
        fl_kernel_trace_free(&t);
        must(fl_synth_mix(&k, 3, 0.02, 150, 1000, 800, &t, &d), &d);
        put_trace("a mix", &t, NULL);
        fl_kernel_trace_free(&t);
        fl_kinds_free(&k);
    }
}

static void draw_programs(void) {
    static const double SECONDS[] = {0.05, 0.4, 3};
    fl_diag d = {0};
    fl_programs p;
    must(fl_programs_read(SAMPLE("mf-gpoeo.programs.csv"), &p, &d), &d);
    for (size_t i = 0; i < p.program_count; i += 6) {
        fl_kernel_trace t;
        must(fl_synth_program(&p, i, 7 + i, SECONDS[i % 3], &t, &d), &d);
        put_trace("a program", &t, NULL);
        fl_kernel_trace_free(&t);
    }
    fl_programs_free(&p);
}

static char requests[512]; /* a file of them */

static void draw_requests(void) {
    const fl_synth_requests_options s = fl_synth_requests_standard;
    fl_synth_requests_options how[4] = {s, s, s, s};
    fl_diag d = {0};
    how[1].cv = 3, how[1].shared = 40, how[1].seed = 2;
    how[2].cv = 0.4, how[2].daily = 0.8, how[2].day_s = 300, how[2].rate = 2;
    how[3].seconds = 0, how[3].rate = 2, how[3].most = 80, how[3].prompt_most = 900, how[3].output_most = 100;
    for (int i = 0; i < 4; i++) {
        fl_requests r;
        must(fl_synth_requests(&how[i], &r, &d), &d);
        for (size_t k = 0; k < r.count; k++)
            add((double)r.row[k].t_ns), add(r.row[k].prompt_tokens), add(r.row[k].output_tokens),
                add(r.row[k].cached_tokens);
        fprintf(out, "requests,%zu", r.count);
        put_digest("rows");
        fputs("\n", out);
        snprintf(requests, sizeof requests, "%s", fl_temp_path("requests.csv"));
        must(fl_requests_write(requests, &r, &d), &d);
        fl_requests_free(&r);
    }
}

static void draw_units(void) {
    fl_diag d = {0};
    fl_platform node;
    must(fl_platform_open("a100", 4, &node, &d), &d);
    must(fl_node_vary(&node.node, 9, &d), &d);
    for (uint32_t i = 0; i < node.node.device_count; i++) {
        const fl_device *dev = &node.node.device[i];
        double volts = NAN;
        CU_ASSERT(fl_curve_at(dev->voltage, 1000, 1, &volts) == FL_MODEL_OK);
        fprintf(out, "unit,%u,%.9g,%.9g\n", i, dev->c_w, volts);
    }
    fl_platform_free(&node);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void run_scene(const scene *s) {
    fl_scene_options how = s->how;
    const fl_texts traces = {.item = (const char *[]){s->trace}, .count = s->trace ? 1 : 0};
    fl_scenes scenes = {0};
    fl_diag d = {0};
    how.no_cache = true;
    if (how.serving.server)
        how.serving.requests = requests;
    how.only = (fl_texts){.item = (const char *[]){s->only}, .count = s->only ? 1 : 0};
    must(fl_scenes_open(&how, &traces, &scenes, &d), &d);
    run_plain(s->name, scenes.item[0], s->depth == DEFAULT_ALONE ? 1 : 3);
    for (int i = 0; i < 4 && s->policies[i]; i++)
        run_policy(s->name, scenes.item[0], s->policies[i]);
    if (s->depth == SEARCHED)
        search(s->name, scenes.item[0]);
    fl_scenes_free(&scenes);
}

static void test_outcomes(void) {
    char *text;
    size_t size;
    out = open_memstream(&text, &size);
    CU_ASSERT_FATAL(out != NULL);
    digest = UINT64_C(0xcbf29ce484222325);
    draw_traces();
    draw_programs();
    draw_requests();
    draw_units();
    for (size_t i = 0; i < sizeof SCENES / sizeof *SCENES; i++)
        run_scene(&SCENES[i]);
    fclose(out);
    fl_temp_remove();
    fl_golden_check("outcomes.csv", text);
    free(text);
}

FL_SUITE("outcomes", {"outcomes", test_outcomes})
