#include "harness/base/command.h"
#include "harness/base/json_out.h"
#include "harness/cmd/commands.h"
#include "harness/input/fault_spec.h"
#include "harness/input/scene_text.h"
#include "harness/log/policy_head.h"
#include "harness/log/probelog.h"
#include "harness/log/sensorlog.h"
#include "harness/log/served.h"
#include "harness/log/steplog.h"
#include "harness/study/provenance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "run", "TRACE.csv | --sweep FILE --workload NAME --platform NAME --policy NAME [--set P=V ...]",
    "Runs one policy over one workload and says what it cost.",
    "--log writes every step, what the policy saw and set; foldline replay reproduces it.\n"
    "--timeline writes the truth (not what sensors showed) over time; foldline plot timeline draws it.\n"
    "--telemetry writes what the sensors showed; runs at several fixed clocks make a sweep (foldline fit logs).\n"
    "--arrivals makes each pass over the workload a request, served in the order of arrival; a latency counts from "
    "the\n"
    "arrival. A list is a CSV with the head '# foldline-arrivals 1' and the column t_ns."};

typedef struct run_options {
    fl_scene_options scene;
    fl_texts traces, set, faults;
    const char *policy, *reader, *log, *timeline, *telemetry, *probes, *requests, *iterations;
    double every_ms, min_set_ms;
    bool json;
} run_options;

/* ---- what is recorded on the way: each where its option names a file ---- */

enum { TIMELINE_COLUMNS = 5 };

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
} recorder;

static fl_status on_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    recorder *r = user;
    fl_status s = r->o->log ? fl_steplog_add(&r->log, sample, decision, d) : FL_OK;
    return !s && r->o->probes ? fl_probelog_add(&r->probes, sample, decision, d) : s;
}

static fl_status on_watch(void *user, const fl_gpu_sample *gpu, uint32_t count, int64_t t_ps, fl_diag *d) {
    return fl_sensorlog_add(&((recorder *)user)->sensors, gpu, count, t_ps, d);
}

/* Mean power and utilisation since the last point, clocks as they stand. */
static fl_status on_truth(void *user, const fl_node *node, int64_t t, fl_diag *d) {
    recorder *r = user;
    fl_telemetry *f = &r->truth;
    uint32_t gpus = fl_node_gpu_count(node);
    if (fl_grow(&f->t_ns, &r->room_t, f->row_count + gpus, sizeof *f->t_ns) ||
        fl_grow(&f->device, &r->room_d, f->row_count + gpus, sizeof *f->device) ||
        fl_grow(&f->value, &r->room_v, (f->row_count + gpus) * TIMELINE_COLUMNS, sizeof *f->value))
        return fl_no_memory(d, "the timeline");
    for (uint32_t i = 0; i < gpus; i++) {
        const fl_gpu *g = fl_node_gpu(node, i);
        double dt = (double)(t - r->last_ps), *v = f->value + f->row_count * TIMELINE_COLUMNS;
        v[0] = g->dev->sm_mhz[g->sm];
        v[1] = g->dev->mem_mhz[g->mem];
        v[2] = dt > 0 ? (double)(g->sums.energy_fj - r->energy_fj[i]) / dt * 1e-3 : NAN;
        v[3] = dt > 0 ? 100.0 * (double)(g->sums.busy_ps - r->busy_ps[i]) / dt : NAN;
        v[4] = fl_node_limit_w(node, i);
        f->t_ns[f->row_count] = t / FL_PS_PER_NS;
        f->device[f->row_count++] = (int32_t)i;
        r->energy_fj[i] = g->sums.energy_fj;
        r->busy_ps[i] = g->sums.busy_ps;
    }
    r->last_ps = t;
    return FL_OK;
}

static fl_status open_timeline(recorder *r, const fl_scene *scene, const fl_spec *spec, fl_diag *d) {
    static const char *const name[TIMELINE_COLUMNS] = {"sm_mhz", "mem_mhz", "power_w", "util_gpu_pct", "power_limit_w"};
    fl_telemetry *t = &r->truth;
    t->signal = calloc(TIMELINE_COLUMNS, sizeof *t->signal);
    const uint32_t gpus = scene->facts.gpu_count;
    r->energy_fj = calloc(gpus, sizeof *r->energy_fj);
    r->busy_ps = calloc(gpus, sizeof *r->busy_ps);
    bool ok = t->signal && r->energy_fj && r->busy_ps &&
              fl_head_set(&t->head, "source", "foldline run: the simulated truth, means since the row before") &&
              fl_head_set(&t->head, "workload", scene->w->name) && fl_head_set(&t->head, "platform", scene->asked) &&
              fl_head_set(&t->head, "policy", spec->label);
    for (; ok && t->signal_count < TIMELINE_COLUMNS; t->signal_count += ok)
        ok = (t->signal[t->signal_count] = strdup(name[t->signal_count])) != NULL;
    return ok ? FL_OK : fl_no_memory(d, "the timeline");
}

/* The head of a log names the platform, the policy, the seed and every parameter as resolved. */
static fl_status put_log_head(fl_head *head, const fl_scene *scene, const fl_spec *spec, fl_diag *d) {
    char text[512];
    bool ok = fl_head_set(head, "platform", scene->asked);
    if (scene->clipped) {
        const fl_device *dev = &scene->platform.node.device[0];
        snprintf(text, sizeof text, "%d/%d/%d", dev->sm_mhz[0], dev->sm_mhz[dev->sm_count - 1], dev->mem_mhz[0]);
        ok = ok && fl_head_set(head, "clocks", text);
    }
    if (!ok)
        return fl_no_memory(d, "the log");
    fl_layer layer[2] = {fl_platform_layer(&scene->platform, spec->policy->name), spec->layer};
    return fl_policy_head_put(head, spec->policy, &scene->facts, layer, 2, d);
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
        s = open_timeline(r, scene, spec, d);
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
    if (!s && o->requests)
        s = fl_served_write_requests(o->requests, &result->service, d);
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

/* ---- telling ---- */

static void add_split(cJSON *root, const fl_run_result *r) {
    cJSON *parts = cJSON_AddObjectToObject(root, "energy_split_j");
    for (int i = 0; i < FL_PART_COUNT; i++)
        if (r->ledger.part_fj[i])
            fl_json_add_real(parts, fl_part_names[i], fl_joules(r->ledger.part_fj[i]));
}

/* What only a node with such parts has. */
static void add_node(cJSON *root, const fl_run_result *r) {
    fl_json_add_real(root, "wall_held_s", fl_seconds(r->wall_held_ps));
    fl_json_add_real(root, "heat_held_s", fl_seconds(r->heat_held_ps));
    if (!isnan(r->hottest_c))
        fl_json_add_real(root, "hottest_c", r->hottest_c), fl_json_add_real(root, "end_c", r->end_c);
    if (r->refused_sets)
        cJSON_AddNumberToObject(root, "refused_sets", (double)r->refused_sets);
    cJSON *cpu = r->cpu_count ? cJSON_AddArrayToObject(root, "cpu_residence") : NULL;
    for (size_t i = 0; i < r->cpu_count; i++) {
        cJSON *at = cJSON_CreateObject();
        cJSON_AddNumberToObject(at, "mhz", r->cpu[i].mhz);
        fl_json_add_real(at, "s", fl_seconds(r->cpu[i].ps));
        cJSON_AddItemToArray(cpu, at);
    }
    cJSON *process = cJSON_AddArrayToObject(root, "processes");
    for (size_t i = 0; i < r->process_count; i++) {
        cJSON *at = cJSON_CreateObject();
        cJSON_AddNumberToObject(at, "gpu", r->process[i].gpu);
        cJSON_AddNumberToObject(at, "process", r->process[i].process);
        fl_json_add_real(at, "makespan_s", fl_seconds(r->process[i].end_ps));
        cJSON_AddItemToArray(process, at);
    }
}

static void print_json(const fl_scenes *scenes, const fl_spec *spec, const fl_run_result *r) {
    const fl_scene *scene = scenes->item[0];
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "workload", scene->w->name);
    cJSON_AddStringToObject(root, "policy", spec->label);
    fl_json_add_real(root, "energy_j", r->energy_j);
    fl_json_add_real(root, "node_energy_j", r->node_energy_j);
    fl_json_add_real(root, "makespan_s", r->makespan_s);
    fl_json_add_real(root, "mean_power_w", r->mean_power_w);
    fl_json_add_real(root, "peak_power_w", r->peak_power_w);
    cJSON_AddNumberToObject(root, "peak_parts", r->peak_parts);
    cJSON_AddStringToObject(root, "energy_of", scene->platform.node.host.apu ? "node" : "GPUs");
    cJSON_AddNumberToObject(root, "kernels", (double)r->kernels);
    cJSON_AddNumberToObject(root, "switches", (double)r->switches);
    cJSON_AddNumberToObject(root, "steps", (double)r->counts.steps);
    cJSON_AddNumberToObject(root, "faults", (double)r->counts.faults);
    cJSON_AddNumberToObject(root, "ignored_sets", (double)r->ignored_sets);
    fl_json_add_real(root, "policy_cost_s", fl_seconds(r->policy_cost_ps));
    add_node(root, r);
    fl_served_json(root, r);
    add_split(root, r);
    cJSON *residence = cJSON_AddArrayToObject(root, "residence");
    for (size_t i = 0; i < r->residence_count; i++) {
        cJSON *at = cJSON_CreateObject();
        cJSON_AddNumberToObject(at, "gpu", r->residence[i].gpu);
        cJSON_AddNumberToObject(at, "sm_mhz", r->residence[i].sm_mhz);
        cJSON_AddNumberToObject(at, "mem_mhz", r->residence[i].mem_mhz);
        fl_json_add_real(at, "s", fl_seconds(r->residence[i].ps));
        cJSON_AddItemToArray(residence, at);
    }
    cJSON_AddItemToObject(root, "provenance", fl_provenance(scenes, spec, 1, scene->facts.seed));
    fl_json_print(root, stdout);
    cJSON_Delete(root);
}

static int by_time(const void *a, const void *b) {
    int64_t x = ((const fl_residence *)a)->ps, y = ((const fl_residence *)b)->ps;
    return x > y ? -1 : x < y;
}

static void print_node(const fl_run_result *r, uint32_t gpus) {
    if (r->wall_held_ps || r->heat_held_ps)
        printf("held        %.4g s below what was asked by the power wall, %.4g s by heat\n",
               fl_seconds(r->wall_held_ps), fl_seconds(r->heat_held_ps));
    if (!isnan(r->hottest_c))
        printf("heat        %.4g C at the most, %.4g C at the end\n", r->hottest_c, r->end_c);
    if (r->cpu_count) {
        printf("CPU        ");
        for (size_t i = 0; i < r->cpu_count; i++)
            printf(" %u MHz %.1f %%", r->cpu[i].mhz, 100.0 * (double)r->cpu[i].ps / (double)r->makespan_ps);
        fputc('\n', stdout);
    }
    if (r->process_count > 1) {
        printf("processes  ");
        for (size_t i = 0; i < r->process_count && i < 16; i++)
            if (gpus > 1)
                printf(" GPU %u, %d: %.5g s", r->process[i].gpu, r->process[i].process,
                       fl_seconds(r->process[i].end_ps));
            else
                printf(" %d: %.5g s", r->process[i].process, fl_seconds(r->process[i].end_ps));
        printf("%s\n", r->process_count > 16 ? " ..." : "");
    }
}

/* The first energy is the one that scores use, and the powers are of the same parts. */
static void print_power(const fl_run_result *r, bool apu) {
    if (apu)
        printf("energy      %.6g J for the node (CPU and GPU are one package), %.6g J of it on the GPU\n", r->energy_j,
               r->gpu_energy_j);
    else
        printf("energy      %.6g J on the GPUs, %.6g J for the node\n", r->energy_j, r->node_energy_j);
    printf("makespan    %.6g s\npower       %s: %.5g W mean, ", r->makespan_s, apu ? "node" : "GPUs", r->mean_power_w);
    if (r->peak_parts > 1)
        printf("at most %.5g W (peaks of %s, added)\n", r->peak_power_w, apu ? "GPU, CPU and the rest" : "all GPUs");
    else
        printf("%.5g W peak\n", r->peak_power_w);
}

static void print_clock(const fl_residence *at, bool memory, double pct) {
    printf(" %u", at->sm_mhz);
    if (memory)
        printf("/%u", at->mem_mhz);
    printf(" MHz %.1f %%", pct);
}

static void print_text(const fl_scenes *scenes, const fl_spec *spec, fl_run_result *r) {
    const fl_workload *w = scenes->item[0]->w;
    printf("%s under %s on %s\n\n", w->name, spec->label, scenes->item[0]->platform.name);
    print_power(r, scenes->item[0]->platform.node.host.apu);
    printf("policy      %llu steps, %llu sets, %llu changes of a clock, %.3g s of the host's time\n",
           (unsigned long long)r->counts.steps, (unsigned long long)r->counts.sets, (unsigned long long)r->switches,
           fl_seconds(r->policy_cost_ps));
    printf("split      ");
    for (int i = 0; i < FL_PART_COUNT; i++)
        if (r->ledger.part_fj[i])
            printf(" %s %.4g J", fl_part_names[i], fl_joules(r->ledger.part_fj[i]));
    printf("\nclocks     ");
    int64_t open = 0;
    size_t clocks = 0; /* one entry per pair of clocks, over all GPUs */
    for (size_t i = 0; i < r->residence_count; i++) {
        size_t k = 0;
        while (k < clocks &&
               (r->residence[k].sm_mhz != r->residence[i].sm_mhz || r->residence[k].mem_mhz != r->residence[i].mem_mhz))
            k++;
        fl_residence at = r->residence[i];
        open += at.ps;
        at.ps += k < clocks ? r->residence[k].ps : 0;
        r->residence[k] = at;
        clocks += k == clocks;
    }
    qsort(r->residence, clocks, sizeof *r->residence, by_time);
    bool memories = false; /* the memory clock is said where there were several */
    for (size_t i = 1; i < clocks; i++)
        memories |= r->residence[i].mem_mhz != r->residence[0].mem_mhz;
    for (size_t i = 0; i < clocks && i < 8; i++)
        print_clock(&r->residence[i], memories, open ? 100.0 * (double)r->residence[i].ps / (double)open : 0);
    printf("%s\n", clocks > 8 ? " ..." : "");
    print_node(r, scenes->item[0]->facts.gpu_count);
    fl_served_print(r, stdout);
    fputc('\n', stdout);
    fl_scene_notes(scenes, stdout);
    fl_served_note(r, stdout);
    if (r->ignored_sets)
        printf("note: %llu sets of controls that this simulated node does not have\n",
               (unsigned long long)r->ignored_sets);
    if (r->refused_sets)
        printf("note: %llu sets were refused, as asked\n", (unsigned long long)r->refused_sets);
    if (r->counts.faults)
        printf("note: %llu faulty commands were counted and left out\n", (unsigned long long)r->counts.faults);
    if (fl_spec_unstepped(spec, r->counts.steps))
        printf("note: the run ended before %s looked a second time: its period is longer than all of it\n",
               spec->label);
}

/* ---- the run ---- */

static fl_status simulate(const run_options *o, const fl_scene *scene, const fl_spec *spec, const fl_fault *fault,
                          recorder *rec, fl_run_result *r, fl_diag *d) {
    const fl_layer layer[] = {fl_platform_layer(&scene->platform, spec->policy->name), spec->layer};
    const fl_run_options run = {.w = scene->w,
                                .rates = scene->rates,
                                .spec = &scene->platform.node,
                                .facts = &scene->facts,
                                .policy = spec->policy,
                                .reader = o->reader ? &fl_readout_nvml : NULL,
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
    return fl_run(&run, r, d);
}

static fl_status run_and_tell(const run_options *o, const fl_option *option, size_t count, fl_diag *d) {
    fl_scenes scenes = {0};
    fl_spec spec = {0};
    fl_policy here;
    fl_fault *fault = NULL;
    recorder rec = {.o = o};
    fl_run_result r = {0};
    fl_status s = o->policy ? fl_spec_open_set(o->policy, &o->set, &spec, d)
                            : fl_refuse(d, "no policy given, expected --policy NAME (foldline policies lists them)");
    if (!s && o->reader && strcmp(o->reader, fl_readout_nvml.name) != 0)
        s = fl_refuse(d, "--reader '%s', expected nvml", o->reader);
    if (!s)
        s = fl_scene_check(&o->scene, &o->traces, d);
    if (s || (s = fl_fault_specs_parse(&o->faults, &fault, d)) ||
        (s = fl_scenes_open(&o->scene, &o->traces, &scenes, d)))
        goto out;
    const fl_scene *scene = scenes.item[0];
    if (o->reader) {
        here = fl_policy_where(spec.policy, fl_readout_offers(&fl_readout_nvml) | FL_BIT(FL_GPU_KERNELS));
        spec.policy = &here;
    }
    if (scenes.count != 1)
        s = fl_refuse(d, "%zu workloads, expected one (--workload NAME chooses; compare takes many)", scenes.count);
    if (s || (s = fl_scenes_spare(&scenes, option, count, d)))
        goto out;
    fl_scene_warnings(&scenes);
    if ((s = open_records(&rec, scene, &spec, d)) || (s = simulate(o, scene, &spec, fault, &rec, &r, d)) ||
        (s = write_records(&rec, scene, &r, d)))
        goto out;
    if (o->json)
        print_json(&scenes, &spec, &r);
    else
        print_text(&scenes, &spec, &r);
out:
    fl_run_result_free(&r);
    free_records(&rec);
    free(fault);
    fl_spec_free(&spec);
    fl_scenes_free(&scenes);
    return s;
}

int fl_cmd_run(int argc, char **argv) {
    run_options o = {.every_ms = 100};
    const fl_option option[] = {
        FL_SCENE_OPTIONS(o.scene),
        {"policy", "SPEC", FL_OPTION_TEXT, &o.policy, 0, 0,
         "policy, or a path to a .so; parameters may follow a colon"},
        {"set", "P=V", FL_OPTION_LIST, &o.set, 0, 0, "parameter of the policy (may be repeated)"},
        {"reader", "NAME", FL_OPTION_TEXT, &o.reader, 0, 0,
         "nvml: the policy sees and sets what a live host does through NVML (what the sensors show)"},
        {"min-set-ms", "X", FL_OPTION_REAL, &o.min_set_ms, 0, 1e6,
         "a control is set at most this often (0 = no limit)"},
        {"log", "FILE", FL_OPTION_OUTPUT, &o.log, 0, 0, "writes the decisions, step by step"},
        {"timeline", "FILE", FL_OPTION_OUTPUT, &o.timeline, 0, 0, "writes clocks, power, its limit and utilisation over time"},
        {"telemetry", "FILE", FL_OPTION_OUTPUT, &o.telemetry, 0, 0, "writes what the sensors show over time"},
        {"probes", "FILE", FL_OPTION_OUTPUT, &o.probes, 0, 0, "writes the policy's internals, step by step"},
        {"requests", "FILE", FL_OPTION_OUTPUT, &o.requests, 0, 0, "writes when each request came, began and ended"},
        {"iterations", "FILE", FL_OPTION_OUTPUT, &o.iterations, 0, 0, "writes the times between iteration markers"},
        {"every-ms", "X", FL_OPTION_REAL, &o.every_ms, 0.001, 1e9, "spacing of the timeline and the telemetry (100)"},
        {"fault", "SPEC", FL_OPTION_LIST, &o.faults, 0, 0, FL_FAULT_SPEC_HELP},
        {"json", NULL, FL_OPTION_FLAG, &o.json, 0, 0, "prints the result as JSON"},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, FL_COUNT(option), &o.traces, &status))
        return status;
    fl_diag d = {0};
    if (run_and_tell(&o, option, FL_COUNT(option), &d))
        status = fl_command_fail("run", &d);
    fl_command_end(option, FL_COUNT(option), &o.traces);
    return status;
}
