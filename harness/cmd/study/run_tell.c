/* What `foldline run` prints of one run, as text and as JSON. */
#include "harness/cmd/study/inside.h"

#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "harness/log/log.h"
#include "harness/study/compare/compare.h"
#include "models/laws/device.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/node/node.h"
#include "sim/pipeline/pipeline.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FL_INSTRUCTIONS_EVERY_NS INT64_C(1000000)

/* ---- the instructions of a pipeline over time ---- */

enum { GRID_MAX = 20000000 }; /* points of one GPU: 160 MB */

typedef struct truth { /* of each GPU at the points of a grid */
    uint32_t gpus;
    size_t points, room;
    double *joules, *mhz_s; /* [point][gpu]: energy, and the clock's integral over time */
    double last_s;
} truth;

static fl_status on_truth(void *user, const fl_node *node, int64_t t_ps, fl_diag *d) {
    truth *t = user;
    size_t room = t->room;
    if (t->points == GRID_MAX)
        return fl_refuse(d, "the run is too long for a chart of its instructions, expected fewer iterations");
    fl_must_grow(&t->joules, &room, (t->points + 1) * t->gpus, sizeof *t->joules);
    fl_must_grow(&t->mhz_s, &t->room, (t->points + 1) * t->gpus, sizeof *t->mhz_s);
    const double now = fl_seconds(t_ps);
    for (uint32_t g = 0; g < t->gpus; g++) {
        const fl_gpu *gpu = fl_node_gpu(node, g);
        const size_t at = t->points * t->gpus + g;
        const double before = t->points ? t->mhz_s[at - t->gpus] : 0;
        t->joules[at] = fl_joules(gpu->sums.energy_fj);
        t->mhz_s[at] = before + (now - t->last_s) * gpu->dev->sm_mhz[gpu->sm];
    }
    t->points++;
    t->last_s = now;
    return FL_OK;
}

/* An integral at an instant, between the points of the grid. */
static double at(const truth *t, const double *of, uint32_t gpu, double seconds) {
    const double place = seconds / ((double)FL_INSTRUCTIONS_EVERY_NS * 1e-9);
    size_t k = place > 0 ? (size_t)place : 0;
    if (t->points < 2)
        return 0;
    k = k + 2 > t->points ? t->points - 2 : k;
    const double from = of[k * t->gpus + gpu], to = of[(k + 1) * t->gpus + gpu];
    return from + (place - (double)k) * (to - from);
}

static void put_row(FILE *file, const truth *t, uint32_t rank, const char *what, const fl_pipeline_op *op, double start,
                    double end) {
    if (!(end - start > 0.5e-9)) /* times are in whole nanoseconds */
        return;
    fprintf(file, "%u,%s,", rank, what);
    if (op->chunk >= 0)
        fprintf(file, "%d", op->chunk);
    fputc(',', file);
    if (op->microbatch >= 0)
        fprintf(file, "%d", op->microbatch);
    fprintf(file, ",%.9f,%.9f,%.0f,%.1f\n", start, end,
            (at(t, t->mhz_s, rank, end) - at(t, t->mhz_s, rank, start)) / (end - start),
            (at(t, t->joules, rank, end) - at(t, t->joules, rank, start)) / (end - start));
}

static void put_all(FILE *file, const fl_scene *scene, const truth *t, const fl_run_result *r) {
    static const char *const NAME[] = {[FL_PART_OF_FORWARD] = "forward", [FL_PART_OF_BACKWARD] = "backward",
                                       [FL_PART_OF_LOAD] = "load",       [FL_PART_OF_LOAD_IN_RECV] = "load_in_recv",
                                       [FL_PART_OF_MEETING] = "meeting", [FL_PART_OF_TRANSFER] = "transfer",
                                       [FL_PART_OF_END] = "end",         [FL_PART_OF_MARKER] = ""};
    size_t op = 0;
    for (uint32_t rank = 0; rank < scene->w->stream_count; rank++) {
        const fl_stream *s = &scene->w->stream[rank];
        double start = 0;
        for (uint64_t i = 0; i < s->count; i++, op++) {
            const fl_pipeline_op *what = &scene->op[op];
            const double end = fl_seconds(r->mark_ps[op]);
            int64_t gap_ns, work_ns;
            uint32_t class_id;
            fl_workload_op(s, i, &gap_ns, &work_ns, &class_id);
            /* What spins takes as long at any clock: before that it waited. */
            const double own = scene->w->class[class_id].spins ? (double)work_ns * 1e-9 : end - start;
            const double began = fmax(start, end - own);
            if (what->part != FL_PART_OF_MARKER) {
                put_row(file, t, rank, "wait", what, start, began);
                put_row(file, t, rank, NAME[what->part], what, began, end);
            }
            start = end;
        }
    }
}

fl_status fl_run_instructions(const fl_scene *scene, const fl_run_options *run, const char *path, fl_diag *d) {
    fl_run_options again = *run;
    fl_run_result r = {0};
    truth t = {.gpus = scene->facts.gpu_count};
    fl_output *o = NULL;
    if (!scene->op)
        return fl_refuse(d, "--instructions needs a pipeline, expected one");
    again.on_step = NULL;
    again.on_watch = NULL;
    again.on_truth = on_truth;
    again.truth_ns = FL_INSTRUCTIONS_EVERY_NS;
    again.user = &t;
    fl_status s = fl_workload_mark_ops(scene->w, d);
    if (!s)
        s = fl_run(&again, &r, d);
    if (!s && !(o = fl_output_open(path, d)))
        s = d ? d->status : FL_IO;
    if (!s) {
        fputs("rank,what,chunk,microbatch,start_s,end_s,sm_mhz,power_w\n", fl_output_file(o));
        put_all(fl_output_file(o), scene, &t, &r);
        s = fl_output_commit(o, d);
    }
    fl_run_result_free(&r);
    free(t.joules);
    free(t.mhz_s);
    return s;
}

/* ---- what was asked and what came out ---- */

static double saving_pct(const fl_run_told *t) { return 100 * (1 - t->result->energy_j / t->standard->energy_j); }

static double slowdown(const fl_run_told *t) { return t->result->makespan_s / t->standard->makespan_s - 1; }

static double work_lost_pct(const fl_run_told *t) { return 100 * (1 - 1 / (1 + slowdown(t))); }

/* The sensors whose readings the policy takes. */
static bool is_read(const fl_run_told *t, int sensor) {
    return t->scenes->item[0]->platform.node.device[0].sensor[sensor].present &&
           (fl_reads_of(t->spec->policy).gpu & fl_sense_signals[sensor]) != 0;
}

void fl_put_lost_commands(uint64_t ignored, uint64_t faulty, FILE *out) {
    if (ignored)
        fprintf(out, "note: %llu commands set a control that this simulated node does not have; they had no effect\n",
                (unsigned long long)ignored);
    if (faulty)
        fprintf(out,
                "note: %llu commands were faulty (0, NaN, infinity, a control that the policy does not declare) and "
                "had no effect\n",
                (unsigned long long)faulty);
}

static void put_notes(const void *of, FILE *out) {
    const fl_run_told *t = of;
    const fl_run_result *r = t->result;
    fl_scene_notes(t->scenes, out);
    fl_served_note(r, out);
    fl_put_lost_commands(r->ignored_sets, r->counts.faults, out);
    if (r->refused_sets)
        fprintf(out, "note: %llu sets were refused by an injected fault\n", (unsigned long long)r->refused_sets);
    if (fl_reads_of(t->spec->policy).host_needs & FL_BIT(FL_HOST_TARGET_W) && !fl_scene_target(t->scenes->item[0]))
        fprintf(out, "note: %s reads target_w, which is unknown here: --target FILE gives it\n", t->spec->label);
    if (fl_spec_unstepped(t->spec, r->counts.steps))
        fprintf(out, "note: the run ended before %s looked a second time: its period is longer than all of it\n",
                t->spec->label);
}

/* ---- JSON ---- */

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
        cJSON *at = fl_json_add_row(cpu);
        cJSON_AddNumberToObject(at, "mhz", r->cpu[i].mhz);
        fl_json_add_real(at, "s", fl_seconds(r->cpu[i].ps));
    }
    cJSON *process = cJSON_AddArrayToObject(root, "processes");
    for (size_t i = 0; i < r->process_count; i++) {
        cJSON *at = fl_json_add_row(process);
        cJSON_AddNumberToObject(at, "gpu", r->process[i].gpu);
        cJSON_AddNumberToObject(at, "process", r->process[i].process);
        fl_json_add_real(at, "makespan_s", fl_seconds(r->process[i].end_ps));
    }
}

static void add_standard(cJSON *root, const fl_run_told *t) {
    cJSON *o = cJSON_AddObjectToObject(root, "default");
    fl_json_add_real(o, "energy_j", t->standard->energy_j);
    fl_json_add_real(o, "node_energy_j", t->standard->node_energy_j);
    fl_json_add_real(o, "makespan_s", t->standard->makespan_s);
    fl_json_add_real(o, "mean_power_w", t->standard->mean_power_w);
    fl_json_add_real(o, "peak_power_w", t->standard->peak_power_w);
    fl_json_add_real(root, "energy_saving_pct", saving_pct(t));
    fl_json_add_real(root, "slowdown", slowdown(t));
}

static void add_sensors(cJSON *root, const fl_run_told *t) {
    cJSON *list = cJSON_AddArrayToObject(root, "sensors");
    for (int i = 0; i < FL_SENSOR_COUNT; i++) {
        const fl_sensor_spec *s = &t->scenes->item[0]->platform.node.device[0].sensor[i];
        if (!is_read(t, i))
            continue;
        cJSON *o = fl_json_add_row(list);
        cJSON_AddStringToObject(o, "sensor", fl_platform_sensor_name[i]);
        fl_json_add_real(o, "refresh_ms", (double)s->period_ns * 1e-6);
        fl_json_add_real(o, "window_ms", (double)s->window_ns * 1e-6);
    }
}

cJSON *fl_run_json(const fl_run_told *t) {
    const fl_run_result *r = t->result;
    const fl_scene *scene = t->scenes->item[0];
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "workload", scene->w->name);
    cJSON_AddStringToObject(root, "policy", t->spec->label);
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
    cJSON_AddStringToObject(root, "setting_hosts",
                            scene->platform.node.host.hosts_per_gpu ? FL_HOSTS_PER_GPU : FL_HOSTS_ONE);
    add_node(root, r);
    fl_served_json(root, r);
    add_split(root, r);
    cJSON *residence = cJSON_AddArrayToObject(root, "residence");
    for (size_t i = 0; i < r->residence_count; i++) {
        cJSON *at = fl_json_add_row(residence);
        cJSON_AddNumberToObject(at, "gpu", r->residence[i].gpu);
        cJSON_AddNumberToObject(at, "sm_mhz", r->residence[i].sm_mhz);
        cJSON_AddNumberToObject(at, "mem_mhz", r->residence[i].mem_mhz);
        fl_json_add_real(at, "s", fl_seconds(r->residence[i].ps));
    }
    add_standard(root, t);
    if (fl_scene_target(scene)) {
        fl_json_add_real(root, "target_error_w", r->target_error_w);
        fl_json_add_real(root, "target_above_pct", r->target_above_pct);
        fl_json_add_real(root, "work_lost_pct", work_lost_pct(t));
    }
    add_sensors(root, t);
    fl_json_add_notes(root, put_notes, t);
    cJSON_AddItemToObject(root, "provenance", fl_provenance(t->scenes, t->spec, 1, scene->facts.seed));
    return root;
}

/* ---- text ---- */

static void put_serving(const fl_serving_scene *s) {
    const fl_serving_setup *x = &s->setup;
    uint32_t prefill = 0;
    for (uint32_t i = 0; i < x->server_count; i++)
        prefill += x->server[i].role == FL_ROLE_PREFILL;
    if (prefill)
        printf(", %u prefill and %u decode servers, links of %g GB/s and %g us", prefill, x->server_count - prefill,
               x->link.bytes_per_s * 1e-9, (double)x->link.latency_ns * 1e-3);
    else
        printf(", %u server%s", x->server_count, x->server_count == 1 ? "" : "s");
    if (x->scale < 1 || x->scale > 1)
        printf(", requests %g times as fast", x->scale);
    if (x->ttft_target_ns)
        printf(", TTFT within %g s", (double)x->ttft_target_ns * 1e-9);
    if (x->tbt_target_ns)
        printf(", TBT within %g s", (double)x->tbt_target_ns * 1e-9);
    if (x->ttft_target_ns || x->tbt_target_ns)
        printf(" for %g %%", 100 * x->target_share);
}

static void put_asked(const fl_run_told *t) {
    const fl_scene *s = t->scenes->item[0];
    const fl_node_choice *c = &s->node;
    const uint32_t gpus = s->facts.gpu_count;
    char assumed[FL_SERVING_CLOCKS_TEXT];
    fl_scene_assumed_text(s, assumed, sizeof assumed);
    printf("%s under %s on %s%s%s\n\n", s->w->name, t->spec->label, s->platform.name, *assumed ? "; " : "", assumed);
    printf("asked       %u GPU%s, ", gpus, gpus == 1 ? "" : "s");
    if (s->serving)
        printf("%zu request%s", s->serving->requests.count, s->serving->requests.count == 1 ? "" : "s");
    else
        printf("%zu kernels", s->w->op_count);
    printf(", seed %llu, wall %s", (unsigned long long)s->facts.seed, c->wall ? c->wall : "real");
    printf("%s%s%s", c->heat ? ", heat" : "", c->no_cpu ? ", no CPU" : "", c->no_contention ? ", no interference" : "");
    if (s->jitter > 0)
        printf(", jitter %g %%", 100 * s->jitter);
    if (s->op_ns)
        printf(", kernels of %g us", (double)s->op_ns * 1e-3);
    if (s->arrivals)
        printf(", arrivals %s", s->arrivals);
    if (s->target_path)
        printf(", target %s", fl_input_name(s->target_path));
    if (s->serving)
        put_serving(s->serving);
    if (c->actuator)
        printf(", actuator %s", c->actuator);
    if (t->reader)
        printf(", read through %s", t->reader);
    if (t->min_set_ms > 0)
        printf(", sets at least %g ms apart", t->min_set_ms);
    for (size_t i = 0; i < t->faults->count; i++)
        printf(", fault %s", t->faults->item[i]);
    putchar('\n');
}

static double shown(double value, int digits) { return fabs(value) < 0.5 * pow(10, -digits) ? 0 : value; }

/* The answer: what the policy is worth against the clocks that the driver takes by itself. */
static void put_against(const fl_run_told *t) {
    const double more = shown(100 * slowdown(t), 2), saved = shown(saving_pct(t), 2);
    if (!isfinite(more) || !isfinite(saved)) {
        printf("saving      n/a: nothing ran\n\n");
        return;
    }
    printf("saving      %.2f %% of the energy, slowdown %.2f %%: with the default clocks %.6g J in %.6g s\n\n", saved,
           more, t->standard->energy_j, t->standard->makespan_s);
}

/* The first energy is the one that scores use, and the powers are of the same parts. */
static void put_energy(const fl_run_result *r, bool apu) {
    if (apu)
        printf("energy      %.6g J for the node (CPU and GPU are one package), %.6g J of it on the GPU\n", r->energy_j,
               r->gpu_energy_j);
    else
        printf("energy      %.6g J on the GPUs, %.6g J for the node\n", r->energy_j, r->node_energy_j);
    printf("power       %s: %.5g W mean, ", apu ? "node" : "GPUs", r->mean_power_w);
    if (r->peak_parts > 1)
        printf("at most %.5g W (peaks of %s, added)\n", r->peak_power_w, apu ? "GPU, CPU and the rest" : "all GPUs");
    else
        printf("%.5g W peak\n", r->peak_power_w);
    size_t parts = 0;
    printf("split      ");
    for (int i = 0; i < FL_PART_COUNT; i++)
        if (r->ledger.part_fj[i])
            printf("%s %s %.4g J", parts++ ? "," : "", fl_part_names[i], fl_joules(r->ledger.part_fj[i]));
    printf("\n\n");
}

static int by_time(const void *a, const void *b) {
    int64_t x = ((const fl_residence *)a)->ps, y = ((const fl_residence *)b)->ps;
    return x > y ? -1 : x < y;
}

static void print_clock(const fl_residence *at, bool memory, double pct, bool first) {
    printf("%s %u", first ? "" : ",", at->sm_mhz);
    if (memory)
        printf("/%u", at->mem_mhz);
    printf(" MHz %.1f %%", pct);
}

static void put_clocks(fl_run_result *r) {
    printf("clocks     ");
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
        print_clock(&r->residence[i], memories, open ? 100.0 * (double)r->residence[i].ps / (double)open : 0, i == 0);
    printf("%s\n", clocks > 8 ? " ..." : "");
}

static void put_limits(const fl_run_result *r) {
    if (r->wall_held_ps || r->heat_held_ps)
        printf("held        the power limit held the clock below the request for %.4g s, heat for %.4g s\n",
               fl_seconds(r->wall_held_ps), fl_seconds(r->heat_held_ps));
    if (!isnan(r->hottest_c))
        printf("heat        %.4g C at the most, %.4g C at the end\n", r->hottest_c, r->end_c);
    if (r->cpu_count) {
        printf("CPU        ");
        for (size_t i = 0; i < r->cpu_count; i++)
            printf("%s %u MHz %.1f %%", i ? "," : "", r->cpu[i].mhz,
                   100.0 * (double)r->cpu[i].ps / (double)r->makespan_ps);
        fputc('\n', stdout);
    }
    putchar('\n');
}

static void put_processes(const fl_run_result *r, uint32_t gpus) {
    if (r->process_count > 1) {
        printf("processes  ");
        for (size_t i = 0; i < r->process_count && i < 16; i++)
            if (gpus > 1)
                printf("%s GPU %u, %d: %.5g s", i ? ";" : "", r->process[i].gpu, r->process[i].process,
                       fl_seconds(r->process[i].end_ps));
            else
                printf("%s %d: %.5g s", i ? "," : "", r->process[i].process, fl_seconds(r->process[i].end_ps));
        printf("%s\n", r->process_count > 16 ? " ..." : "");
    }
}

static void put_target(const fl_run_told *t) {
    const fl_scene *s = t->scenes->item[0];
    if (!fl_scene_target(s))
        return;
    if (isnan(t->result->target_error_w))
        printf("target      %s: the run ended within %d s, before it counts\n\n", fl_input_name(s->target_path),
               (int)(FL_TARGET_AFTER_NS / 1000000000));
    else
        printf("target      off by %.2f W on average, above it for %.1f %% of the time (power over %d ms, from %d s "
               "on); %.2f %% of the work lost\n\n",
               t->result->target_error_w, t->result->target_above_pct, (int)(FL_TARGET_WINDOW_NS / 1000000),
               (int)(FL_TARGET_AFTER_NS / 1000000000), shown(work_lost_pct(t), 2));
}

static void put_time(const fl_run_told *t) {
    printf("makespan    %.6g s\n", t->result->makespan_s);
    put_processes(t->result, t->scenes->item[0]->facts.gpu_count);
    fl_served_print(t->result, stdout);
    putchar('\n');
}

static void put_policy(const fl_run_told *t) {
    const fl_run_result *r = t->result;
    size_t read = 0;
    const bool each = t->scenes->item[0]->platform.node.host.hosts_per_gpu;
    printf("policy      %llu steps, %llu sets, %llu changes of a clock, %.3g s of %s\nsensors    ",
           (unsigned long long)r->counts.steps, (unsigned long long)r->counts.sets, (unsigned long long)r->switches,
           fl_seconds(r->policy_cost_ps), each ? "the busiest host's time, one for each GPU" : "the host's time");
    for (int i = 0; i < FL_SENSOR_COUNT; i++) {
        const fl_sensor_spec *s = &t->scenes->item[0]->platform.node.device[0].sensor[i];
        if (!is_read(t, i))
            continue;
        printf("%s %s", read++ ? ";" : "", fl_platform_sensor_name[i]);
        if (s->period_ns > 0)
            printf(" each %g ms", (double)s->period_ns * 1e-6);
        else
            printf(" as it is");
        if (s->window_ns > 0)
            printf(", mean of %g ms", (double)s->window_ns * 1e-6);
    }
    printf("%s\n\n", read ? "" : " none of a GPU's are read");
}

void fl_run_tell_text(const fl_run_told *t) {
    put_asked(t);
    put_against(t);
    put_energy(t->result, t->scenes->item[0]->platform.node.host.apu);
    put_target(t);
    put_time(t);
    put_clocks(t->result);
    put_limits(t->result);
    put_policy(t);
    put_notes(t, stdout);
}
