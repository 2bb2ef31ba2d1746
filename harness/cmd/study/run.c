/* `foldline run`. */
#include "harness/cmd/study/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "harness/log/log.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "run", "FILE --platform NAME --policy NAME [--set P=V ...]",
    "Runs one policy over one workload and prints its cost in energy and time.",
    "--log writes every step, what the policy saw and set; foldline verify reproduces it. --timeline writes the truth "
    "(not what sensors showed) over time; foldline plot timeline draws it. --instructions writes what each rank of a "
    "pipeline did; foldline plot gantt draws it. --telemetry writes what the sensors showed; runs at several fixed "
    "clocks make a sweep (foldline fit logs). --arrivals makes each pass over the workload a request, served in the "
    "order of arrival; a latency counts from the arrival. A list is a CSV with the head '# foldline-arrivals 1' and "
    "the column t_ns.\n\nA fixed clock or a fixed power limit is a policy: --policy fixed:sm_mhz=1200, --policy "
    "fixed:power_limit_w=200."};

typedef struct run_options {
    fl_scene_options scene;
    fl_texts traces, set, faults;
    fl_texts policies; /* one: for several there is compare */
    const char *reader, *log, *timeline, *telemetry, *probes, *served, *iterations, *instructions, *path, *out;
    const char *deal; /* of a budget among nodes */
    int64_t nodes, threads;
    double every_ms, min_set_ms, budget_w;
    bool json;
} run_options;

/* ---- what is recorded on the way: each where its option names a file ---- */

enum { GPU_COLUMNS = 5, TIMELINE_COLUMNS = 8 }; /* the rest where a server runs */

typedef struct recorder {
    const run_options *o;
    fl_steplog log;
    fl_probelog probes;
    fl_sensorlog sensors;
    fl_telemetry truth;
    size_t room_t, room_d, room_v;
    fl_wide *energy_fj; /* per GPU, at the last point */
    int64_t *busy_ps;
    int64_t last_ps;
    const fl_serving_setup *serving; /* NULL: none */
    fl_diag unwritten;               /* why the instructions could not be written; status FL_OK: they were */
} recorder;

static fl_status on_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    recorder *r = user;
    fl_status s = r->o->log ? fl_steplog_add(&r->log, sample, decision, d) : FL_OK;
    return !s && r->o->probes ? fl_probelog_add(&r->probes, sample, decision, d) : s;
}

static fl_status on_watch(void *user, const fl_gpu_sample *gpu, uint32_t count, int64_t t_ps, fl_diag *d) {
    return fl_sensorlog_add(&((recorder *)user)->sensors, gpu, count, t_ps, d);
}

/* Each GPU of a server shows all of it. */
static void put_queue(const fl_serving_setup *u, const fl_node *node, uint32_t gpu, double *v) {
    for (uint32_t i = 0; i < u->server_count; i++) {
        const fl_serving_server *s = &u->server[i];
        for (uint32_t k = 0; k < s->gpu_count; k++)
            if (s->gpu[k] == gpu) {
                const fl_batching_counts c = fl_node_batching(node, i);
                v[0] = c.waiting;
                v[1] = c.running;
                v[2] = 100 * (double)c.blocks_used / (double)s->rules.kv_blocks;
            }
    }
}

/* Mean power and utilisation since the last point, clocks as they stand. */
static fl_status on_truth(void *user, const fl_node *node, int64_t t, fl_diag *d) {
    recorder *r = user;
    fl_telemetry *f = &r->truth;
    uint32_t gpus = fl_node_gpu_count(node);
    (void)d;
    fl_must_grow(&f->t_ns, &r->room_t, f->row_count + gpus, sizeof *f->t_ns);
    fl_must_grow(&f->device, &r->room_d, f->row_count + gpus, sizeof *f->device);
    fl_must_grow(&f->value, &r->room_v, (f->row_count + gpus) * f->signal_count, sizeof *f->value);
    for (uint32_t i = 0; i < gpus; i++) {
        const fl_gpu *g = fl_node_gpu(node, i);
        double dt = (double)(t - r->last_ps), *v = f->value + f->row_count * f->signal_count;
        v[0] = g->dev->sm_mhz[g->sm];
        v[1] = g->dev->mem_mhz[g->mem];
        v[2] = dt > 0 ? (double)(g->sums.energy_fj - r->energy_fj[i]) / dt * 1e-3 : NAN;
        v[3] = dt > 0 ? 100.0 * (double)(g->sums.busy_ps - r->busy_ps[i]) / dt : NAN;
        v[4] = fl_node_limit_w(node, i);
        if (r->serving)
            put_queue(r->serving, node, i, v + GPU_COLUMNS);
        f->t_ns[f->row_count] = t / FL_PS_PER_NS;
        f->device[f->row_count++] = (int32_t)i;
        r->energy_fj[i] = g->sums.energy_fj;
        r->busy_ps[i] = g->sums.busy_ps;
    }
    r->last_ps = t;
    return FL_OK;
}

static void open_timeline(recorder *r, const fl_scene *scene, const fl_spec *spec) {
    static const char *const name[TIMELINE_COLUMNS] = {"sm_mhz",        "mem_mhz", "power_w", "util_gpu_pct",
                                                       "power_limit_w", "waiting", "running", "kv_used_pct"};
    const size_t columns = scene->serving ? TIMELINE_COLUMNS : GPU_COLUMNS;
    fl_telemetry *t = &r->truth;
    t->signal = fl_must(calloc(TIMELINE_COLUMNS, sizeof *t->signal));
    const uint32_t gpus = scene->facts.gpu_count;
    r->energy_fj = fl_must(calloc(gpus, sizeof *r->energy_fj));
    r->busy_ps = fl_must(calloc(gpus, sizeof *r->busy_ps));
    fl_must_have(fl_head_set(&t->head, "source", "foldline run: the simulated truth, means since the row before") &&
                 fl_head_set(&t->head, "workload", scene->w->name) && fl_head_set(&t->head, "platform", scene->asked) &&
                 fl_head_set(&t->head, "policy", spec->label));
    r->serving = scene->serving ? &scene->serving->setup : NULL;
    for (; t->signal_count < columns; t->signal_count++)
        t->signal[t->signal_count] = fl_must(strdup(name[t->signal_count]));
}

/* The head of a log names the platform, the policy, the seed and every parameter as resolved. */
static fl_status put_log_head(fl_head *head, const fl_scene *scene, const fl_spec *spec, fl_diag *d) {
    char text[512];
    fl_must_have(fl_head_set(head, "platform", scene->asked));
    if (scene->clipped) {
        const fl_device *dev = &scene->platform.node.device[0];
        int n = snprintf(text, sizeof text, "%d/%d", dev->sm_mhz[0], dev->sm_mhz[dev->sm_count - 1]);
        for (uint32_t i = 0; i < dev->mem_count && (size_t)n < sizeof text; i++)
            n += snprintf(text + n, sizeof text - (size_t)n, "%c%d", i ? ',' : '/', dev->mem_mhz[i]);
        fl_must_have(fl_head_set(head, "clocks", text));
    }
    if (spec->plugin)
        fl_must_have(fl_head_set(head, "plugin", spec->plugin));
    fl_laid laid;
    fl_status s = fl_plan_lay(spec, scene, &laid, d);
    const fl_layer layer[] = {fl_platform_layer(&scene->platform, spec->policy->name), spec->layer, laid.layer};
    if (!s)
        s = fl_policy_head_put(head, spec->policy, &scene->facts, layer, FL_COUNT(layer), d);
    fl_laid_free(&laid);
    return s;
}

static fl_status open_log(fl_steplog *l, const fl_scene *scene, const fl_spec *spec, fl_diag *d) {
    fl_status s = fl_steplog_open(l, spec->policy, scene->facts.gpu_count, d);
    return s ? s : put_log_head(&l->log.head, scene, spec, d);
}

static fl_status open_records(recorder *r, const fl_scene *scene, const fl_spec *spec, fl_diag *d) {
    const uint32_t gpus = scene->facts.gpu_count;
    fl_status s = r->o->log ? open_log(&r->log, scene, spec, d) : FL_OK;
    if (r->o->probes)
        fl_probelog_open(&r->probes, spec->policy, gpus);
    if (!s && r->o->timeline)
        open_timeline(r, scene, spec);
    return !s && r->o->telemetry ? fl_sensorlog_open(&r->sensors, d) : s;
}

static fl_status write_records(recorder *r, const fl_scene *scene, const fl_run_result *result, fl_diag *d) {
    const run_options *o = r->o;
    fl_status s = o->log ? fl_decisions_write(o->log, &r->log.log, d) : FL_OK;
    if (!s && o->probes)
        s = fl_probelog_write(&r->probes, o->probes, d);
    if (!s && o->timeline)
        s = fl_telemetry_write(o->timeline, &r->truth, d);
    if (!s && o->telemetry)
        s = fl_sensorlog_write(&r->sensors, o->telemetry, scene->w->name, scene->platform.name, result->makespan_ps, d);
    if (!s && o->served)
        s = scene->serving ? fl_served_write_batched(o->served, &result->served, scene->serving->setup.requests, d)
                           : fl_served_write_requests(o->served, &result->service, d);
    return !s && o->iterations ? fl_served_write_iterations(o->iterations, &result->service, d) : s;
}

static void free_records(recorder *r) {
    fl_steplog_free(&r->log);
    fl_probelog_free(&r->probes);
    fl_sensorlog_free(&r->sensors);
    fl_telemetry_free(&r->truth);
    free(r->energy_fj);
    free(r->busy_ps);
}

/* ---- the run ---- */

static fl_status simulate(const run_options *o, const fl_scene *scene, const fl_spec *spec, const fl_fault *fault,
                          recorder *rec, fl_run_result *r, fl_diag *d) {
    fl_laid laid;
    fl_status s = fl_plan_lay(spec, scene, &laid, d);
    const fl_layer layer[] = {fl_platform_layer(&scene->platform, spec->policy->name), spec->layer, laid.layer};
    const fl_run_options run = {.w = scene->w,
                                .rates = scene->rates,
                                .spec = &scene->platform.node,
                                .facts = &scene->facts,
                                .policy = spec->policy,
                                .reader = o->reader ? &fl_readout_nvml : NULL,
                                .target = fl_scene_target(scene),
                                .layer = layer,
                                .layer_count = FL_COUNT(layer),
                                .fault = fault,
                                .fault_count = o->faults.count,
                                .min_set_interval_ns = (int64_t)(o->min_set_ms * 1e6),
                                .on_step = o->log || o->probes ? on_step : NULL,
                                .on_truth = o->timeline ? on_truth : NULL,
                                .on_watch = o->telemetry ? on_watch : NULL,
                                .watch_needs = fl_sensorlog_needs,
                                .truth_ns = (int64_t)(o->every_ms * 1e6),
                                .user = rec};
    if (!s)
        s = fl_run(&run, r, d);
    if (!s && o->instructions && (s = fl_run_instructions(scene, &run, o->instructions, d)) == FL_IO) {
        rec->unwritten = *d; /* after the result */
        s = FL_OK;
    }
    fl_laid_free(&laid);
    return s;
}

/* With nothing set and nothing failing: what the run is held against. */
static fl_status run_standard(const fl_scene *scene, fl_run_result *r, fl_diag *d) {
    const fl_run_options run = {
        .w = scene->w, .rates = scene->rates, .spec = &scene->platform.node, .facts = &scene->facts};
    return fl_run(&run, r, d);
}

static fl_status tell(const run_options *o, const fl_run_told *told, fl_diag *d) {
    cJSON *result = fl_run_json(told);
    if (o->json)
        fl_json_print(result, stdout);
    else
        fl_run_tell_text(told);
    const fl_status s = o->out ? fl_json_write(o->out, result, d) : FL_OK;
    cJSON_Delete(result);
    return s;
}

/* Open the policy, and check it and the scene before any file is read. */
static fl_status open_asked(run_options *o, bool nodes, fl_spec *spec, fl_diag *d) {
    if (!o->policies.count)
        return fl_refuse(d, "no policy given, expected --policy NAME (foldline list policies lists them)");
    if (o->policies.count > 1)
        return fl_refuse(d, "%zu policies, expected one --policy; compare takes several", o->policies.count);
    fl_status s = fl_spec_open_set(o->policies.item[0], &o->set, spec, d);
    if (!s)
        s = fl_scene_sort(&o->scene, &o->traces, d);
    if (!s)
        s = fl_scene_check(&o->scene, &o->traces, d);
    return s ? s : fl_scene_check_policies(&o->scene, spec, 1, nodes, d);
}

/* Many nodes under one budget. */
static fl_status run_nodes(run_options *o, const fl_option *option, size_t count, fl_diag *d) {
    fl_spec spec = {0};
    fl_status s = fl_command_allow(option, count, false,
                                   "log telemetry probes served iterations instructions fault reader min-set-ms units "
                                   "target gpu-budget",
                                   "with --nodes", d);
    if (!s && !(o->budget_w > 0))
        s = fl_refuse(d, "no --budget given, expected the power of all nodes in W");
    if (!s)
        s = open_asked(o, true, &spec, d);
    const fl_nodes_how how = {.scene = &o->scene,
                              .traces = &o->traces,
                              .nodes = o->nodes,
                              .budget_w = o->budget_w,
                              .deal = o->deal ? o->deal : "equal",
                              .every_ms = o->every_ms > 0 ? o->every_ms : 1000,
                              .threads = (unsigned)o->threads,
                              .timeline = o->timeline,
                              .out = o->out,
                              .json = o->json};
    if (!s)
        s = fl_run_nodes(&how, &spec, option, count, d);
    fl_spec_free(&spec);
    return s;
}

static fl_status run_and_tell(run_options *o, const fl_option *option, size_t count, fl_diag *d) {
    if (o->nodes)
        return run_nodes(o, option, count, d);
    fl_status given = fl_command_allow(option, count, false, "budget deal threads", "without --nodes", d);
    if (given)
        return given;
    o->every_ms = o->every_ms > 0 ? o->every_ms : 100;
    fl_scenes scenes = {0};
    fl_spec spec = {0};
    fl_policy here;
    fl_signal_row row[FL_SIGNAL_ROWS_MAX];
    fl_fault *fault = NULL;
    recorder rec = {.o = o};
    fl_run_result r = {0}, standard = {0};
    fl_status s = open_asked(o, false, &spec, d);
    if (s || (s = fl_fault_specs_parse(&o->faults, &fault, d)) ||
        (s = fl_scenes_open(&o->scene, &o->traces, &scenes, d)))
        goto out;
    const fl_scene *scene = scenes.item[0];
    if (o->reader) {
        here = fl_policy_where(spec.policy, fl_readout_offers(&fl_readout_nvml) | FL_BIT(FL_GPU_KERNELS), row);
        spec.policy = &here;
    }
    if (scenes.count != 1)
        s = fl_refuse(d, "%zu workloads, expected one (--workload NAME chooses; compare takes many)", scenes.count);
    if (s || (s = fl_scenes_spare(&scenes, &spec, 1, option, count, d)))
        goto out;
    if ((s = open_records(&rec, scene, &spec, d)) || (s = simulate(o, scene, &spec, fault, &rec, &r, d)) ||
        (s = run_standard(scene, &standard, d)))
        goto out;
    fl_scene_warnings(&scenes); /* before the result; a refusal stands alone */
    s = tell(o, &(fl_run_told){&scenes, &spec, &r, &standard, o->reader, &o->faults, o->min_set_ms}, d);
    if (!s)
        s = write_records(&rec, scene, &r, d);
    if (!s && rec.unwritten.status)
        s = (*d = rec.unwritten).status;
out:
    fl_run_result_free(&r);
    fl_run_result_free(&standard);
    free_records(&rec);
    free(fault);
    fl_spec_free(&spec);
    fl_scenes_free(&scenes);
    return s;
}

int fl_cmd_run(int argc, char **argv) {
    run_options o = {0};
    const fl_option option[] = {
        FL_SCENE_OPTIONS(o.scene),
        FL_SERVING_OPTIONS(o.scene.serving),
        FL_TARGET_OPTION(&o.scene.target),
        {"policy", "SPEC", FL_OPTION_LIST, &o.policies, 0, 0,
         "policy, or a path to a .so; parameters may follow a colon", FL_FOR_POLICIES | FL_MOST_USED},
        {"set", "P=V", FL_OPTION_LIST, &o.set, 0, 0, "parameter of the policy (may be repeated)",
         FL_FOR_POLICIES | FL_MOST_USED},
        FL_STATED_FACTS_OPTIONS(o.scene.stated),
        FL_STEP_LIMIT_OPTION,
        FL_PATH_OPTION(&o.path),
        {"reader", "nvml", FL_OPTION_CHOICE, &o.reader, 0, 0,
         "the policy sees and sets what a live host does through NVML (what the sensors show)", FL_FOR_POLICIES},
        {"min-set-ms", "X", FL_OPTION_REAL, &o.min_set_ms, 0, 1e6, "a control is set at most this often (0 = no limit)",
         FL_FOR_POLICIES},
        {"log", "FILE", FL_OPTION_OUTPUT, &o.log, 0, 0, "writes the decisions, step by step",
         FL_FOR_OUTPUT | FL_MOST_USED},
        {"timeline", "FILE", FL_OPTION_OUTPUT, &o.timeline, 0, 0,
         "writes clocks, power, its limit and utilisation over time; of servers also their queues",
         FL_FOR_OUTPUT | FL_MOST_USED},
        {"telemetry", "FILE", FL_OPTION_OUTPUT, &o.telemetry, 0, 0, "writes what the sensors show over time",
         FL_FOR_OUTPUT},
        {"probes", "FILE", FL_OPTION_OUTPUT, &o.probes, 0, 0, "writes the policy's internals, step by step",
         FL_FOR_OUTPUT},
        {"served", "FILE", FL_OPTION_OUTPUT, &o.served, 0, 0,
         "writes when each request came, began and ended; of a server also its latencies and energy", FL_FOR_OUTPUT},
        {"iterations", "FILE", FL_OPTION_OUTPUT, &o.iterations, 0, 0, "writes the times between iteration markers",
         FL_FOR_OUTPUT},
        {"instructions", "FILE", FL_OPTION_OUTPUT, &o.instructions, 0, 0,
         "of a pipeline: writes what each rank did and waited, with clock and power", FL_FOR_OUTPUT},
        {"every-ms", "X", FL_OPTION_REAL, &o.every_ms, 0.001, 1e9,
         "spacing of the timeline and the telemetry (100; with --nodes 1000)", FL_FOR_OUTPUT},
        {"nodes", "N", FL_OPTION_INT, &o.nodes, 1, 100000,
         "so many nodes side by side: boards, programs and seeds differ, and nothing couples them over time",
         FL_FOR_MACHINE},
        {"budget", "W", FL_OPTION_REAL, &o.budget_w, 1, 1e10, "power of all nodes' GPUs together, dealt out once",
         FL_FOR_MACHINE},
        {"deal", "equal|need|sensitivity", FL_OPTION_CHOICE, &o.deal, 0, 0,
         "how the budget is dealt out: equally, by mean power, or so that a cut slows all about the same (equal)",
         FL_FOR_MACHINE},
        FL_THREADS_OPTION(&o.threads),
        {"fault", "SPEC", FL_OPTION_LIST, &o.faults, 0, 0, FL_FAULT_SPEC_HELP, FL_FOR_MACHINE},
        {"o", "FILE", FL_OPTION_OUTPUT, &o.out, 0, 0, "writes the result as JSON", FL_FOR_OUTPUT},
        FL_JSON_OPTION(&o.json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, FL_COUNT(option), &o.traces, &status))
        return status;
    fl_diag d = {0};
    fl_path_option_use(o.path);
    if (run_and_tell(&o, option, FL_COUNT(option), &d))
        status = fl_command_fail("run", &d);
    else
        fl_path_option_tell(o.path);
    fl_command_end(option, FL_COUNT(option), &o.traces);
    return status;
}
