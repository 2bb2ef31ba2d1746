/* The choices behind options: parts of the node, ways of advancing, plans, ranks, replay of sweeps. */
#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/inside.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/pipeline/pipeline.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parts of the node ---- */

static fl_status choose_wall(fl_node_spec *node, const char *how, fl_diag *d) {
    static const char *const words[] = {"real", "ideal", "off"};
    if (!how || !strcmp(how, "real"))
        return FL_OK;
    const bool ideal = !strcmp(how, "ideal");
    if (!ideal && strcmp(how, "off") != 0) {
        const char *near = fl_nearest(how, words, 3);
        return fl_refuse(d, "wall '%s', expected real, ideal or off%s%s%s", how, near ? "; did you mean '" : "",
                         near ? near : "", near ? "'?" : "");
    }
    for (uint32_t i = 0; i < node->device_count; i++) {
        fl_wall_spec *w = &node->device[i].wall;
        if (ideal && w->period_ns <= 0)
            return fl_refuse(d, "an ideal wall: platform %s describes no power limit for %s", node->name,
                             node->device[i].name);
        w->ideal = ideal;
        w->period_ns = ideal ? w->period_ns : 0;
    }
    return FL_OK;
}

/* With both, the node is that of cost; a comparison repeats what needs records (harness/study/trial/setup.c). */
static fl_status choose_records(fl_node_spec *node, const char *how, const char *cost, fl_diag *d) {
    static const char *const words[] = {"cost", "free", FL_RECORDS_BOTH};
    size_t i = 0;
    while (how && i < 3 && strcmp(how, words[i]) != 0)
        i++;
    if (i == 3)
        return fl_refuse(d, "records '%s', expected cost, free or both", how);
    double share = 0;
    int64_t ns = 0;
    bool percent = false;
    if (cost && !(fl_share_parse(cost, &share, &percent) && percent && share > 0 && share <= 10) &&
        (fl_duration_parse(cost, &ns, NULL) || ns > 1000000))
        return fl_refuse(d, "record cost '%.40s', expected a share such as 2%% or a time per kernel such as 0.8us",
                         cost);
    for (uint32_t k = 0; (i == 1 || cost) && k < node->device_count; k++) {
        node->device[k].records_known = true;
        node->device[k].records_slowdown = i == 1 || !percent ? 0 : share;
        node->device[k].records_kernel_s = i == 1 ? 0 : (double)ns * 1e-9;
    }
    return FL_OK;
}

static fl_status choose_heat(fl_node_spec *node, bool heat, fl_diag *d) {
    for (uint32_t i = 0; i < node->device_count; i++) {
        fl_thermal_spec *t = &node->device[i].thermal;
        if (heat && t->period_ns <= 0)
            return fl_refuse(d, "heat: platform %s has no thermal model of %s", node->name, node->device[i].name);
        if (!heat)
            t->period_ns = 0;
    }
    return FL_OK;
}

static fl_status choose_bus(fl_node_spec *node, double share, double spread, fl_diag *d) {
    fl_host_spec *host = &node->host;
    if (!host->apu)
        return fl_refuse(d, "--bus-share and --bus-spread: CPU and GPU share a bus only on an APU");
    if (share > 0)
        host->bus_min = host->bus_max = share;
    host->bus_min = fmax(host->bus_min - spread, 0.01);
    host->bus_max = fmin(host->bus_max + spread, 1);
    node->device[0].dram_share = host->bus_max; /* what its full bandwidth is of the peak */
    return FL_OK;
}

/* The time that the call itself takes is a part of it. */
static fl_status choose_actuator(fl_node_spec *node, const char *text, fl_diag *d) {
    int64_t ns = 0;
    const bool none = !strcmp(text, "0") || !strcmp(text, "0s") || !strcmp(text, "0ms");
    if (!none && (fl_duration_parse(text, &ns, NULL) || ns > INT64_C(1000000000000)))
        return fl_refuse(d, "actuator '%.40s', expected a time such as 20ms, at most 1000s, or 0", text);
    for (uint32_t i = 0; i < node->device_count; i++) {
        fl_actuator_spec *a = &node->device[i].actuator;
        a->call_ns = a->call_ns < ns ? a->call_ns : ns;
        a->settle_ns = ns - a->call_ns;
    }
    return FL_OK;
}

/* A program of one process reads and sets all GPUs in turn; training has a process for each. */
static fl_status choose_hosts(fl_node_spec *node, const char *how, fl_diag *d) {
    const bool each = !strcmp(how, FL_HOSTS_PER_GPU);
    if (!each && strcmp(how, FL_HOSTS_ONE) != 0)
        return fl_refuse(d, "unknown setting-hosts '%s', expected " FL_HOSTS_ONE " or " FL_HOSTS_PER_GPU, how);
    node->host.hosts_per_gpu = each;
    return FL_OK;
}

/* Limits share it out, and no limit goes below the least that its GPU takes. */
static fl_status check_budget(const fl_node_spec *node, fl_diag *d) {
    double least = 0;
    for (uint32_t g = 0; g < node->gpu_count; g++)
        least += node->device[node->gpu[g]].power_min_w;
    if (least > node->host.gpu_budget_w)
        return fl_refuse(
            d, "a budget of %g W: the power limits of %u GPUs go down to %g W together, expected at least that",
            node->host.gpu_budget_w, node->gpu_count, least);
    return FL_OK;
}

fl_status fl_node_choose(fl_node_spec *node, const fl_node_choice *c, fl_diag *d) {
    fl_status s = choose_wall(node, c->wall, d);
    if (!s)
        s = choose_heat(node, c->heat, d);
    if (!s)
        s = choose_records(node, c->records, c->record_cost, d);
    if (!s && c->actuator)
        s = choose_actuator(node, c->actuator, d);
    if (!s && c->hosts)
        s = choose_hosts(node, c->hosts, d);
    for (uint32_t i = 0; !s && c->no_contention && i < node->device_count; i++)
        node->device[i].interference = 0;
    for (uint32_t i = 0; !s && c->no_gating && i < node->device_count; i++)
        node->device[i].gate_ns = 0;
    if (!s && c->no_cpu && node->host.apu)
        s = fl_refuse(d, "%s is an APU, so its CPU cannot be left out", node->name);
    if (!s && c->no_cpu)
        node->host.cpu.count = 0;
    if (!s && c->cpu_power > 0) { /* how much of a gain hangs on the CPU's share of the power */
        node->host.cpu.static_w *= c->cpu_power;
        node->host.cpu.core_w *= c->cpu_power;
    }
    if (!s && (c->bus_share > 0 || c->bus_spread > 0))
        s = choose_bus(node, c->bus_share, c->bus_spread, d);
    if (!s && c->gpu_budget_w > 0)
        node->host.gpu_budget_w = c->gpu_budget_w;
    for (uint32_t i = 0; !s && node->host.gpu_budget_w > 0 && i < node->device_count; i++)
        if (node->device[i].wall.period_ns <= 0) /* it is held by power limits, and those by walls */
            s = fl_refuse(d, "a budget of all GPUs: %s has no wall that could hold its share", node->device[i].name);
    if (!s && node->host.gpu_budget_w > 0)
        s = check_budget(node, d);
    if (!s && c->units)
        s = fl_node_vary(node, (uint64_t)c->units, d);
    return s;
}

static fl_status get_flag(const fl_json *root, const char *key, bool *into, fl_diag *d) {
    return *into || !fl_json_has(root, key) ? FL_OK : fl_json_get_bool(root, key, into, d);
}

static fl_status get_real(const fl_json *root, const char *key, double *into, fl_diag *d) {
    return *into > 0 || !fl_json_has(root, key) ? FL_OK : fl_json_get_real(root, key, 0, HUGE_VAL, into, d);
}

fl_status fl_node_choice_read(const fl_json *root, fl_node_choice *c, fl_diag *d) {
    fl_status s = c->wall || !fl_json_has(root, "wall") ? FL_OK : fl_json_get_text(root, "wall", &c->wall, d);
    if (!s && !c->actuator && fl_json_has(root, "actuator"))
        s = fl_json_get_text(root, "actuator", &c->actuator, d);
    if (!s && !c->hosts && fl_json_has(root, "setting_hosts"))
        s = fl_json_get_text(root, "setting_hosts", &c->hosts, d);
    if (!s && !c->record_cost && fl_json_has(root, "record_cost"))
        s = fl_json_get_text(root, "record_cost", &c->record_cost, d);
    if (!s && !c->records && fl_json_has(root, "records"))
        s = fl_json_get_text(root, "records", &c->records, d);
    if (s || (s = get_flag(root, "heat", &c->heat, d)) ||
        (s = get_flag(root, "no_interference", &c->no_contention, d)) ||
        (s = get_flag(root, "no_cpu", &c->no_cpu, d)) || (s = get_flag(root, "no_gating", &c->no_gating, d)))
        return s;
    if (!c->units && fl_json_has(root, "units"))
        s = fl_json_get_int(root, "units", 1, INT64_C(9000000000000000), &c->units, d);
    if (s || (s = get_real(root, "gpu_budget_w", &c->gpu_budget_w, d)) ||
        (s = get_real(root, "cpu_power_scale", &c->cpu_power, d)) ||
        (s = get_real(root, "bus_share", &c->bus_share, d)))
        return s;
    return get_real(root, "bus_spread", &c->bus_spread, d);
}

void fl_node_choice_merge(fl_node_choice *c, const fl_node_choice *rest) {
    c->wall = c->wall ? c->wall : rest->wall;
    c->records = c->records ? c->records : rest->records;
    c->record_cost = c->record_cost ? c->record_cost : rest->record_cost;
    c->actuator = c->actuator ? c->actuator : rest->actuator;
    c->hosts = c->hosts ? c->hosts : rest->hosts;
    c->heat |= rest->heat;
    c->no_contention |= rest->no_contention;
    c->no_cpu |= rest->no_cpu;
    c->no_gating |= rest->no_gating;
    c->units = c->units ? c->units : rest->units;
    c->gpu_budget_w = c->gpu_budget_w > 0 ? c->gpu_budget_w : rest->gpu_budget_w;
    c->cpu_power = c->cpu_power > 0 ? c->cpu_power : rest->cpu_power;
    c->bus_share = c->bus_share > 0 ? c->bus_share : rest->bus_share;
    c->bus_spread = c->bus_spread > 0 ? c->bus_spread : rest->bus_spread;
}

/* ---- ways of advancing ---- */

void fl_path_option_use(const char *name) {
    for (int i = 0; name && i < FL_PATH_COUNT; i++)
        if (!strcmp(name, fl_path_names[i]))
            fl_path_force((fl_path)i);
}

void fl_path_option_tell(const char *name) {
    if (!name)
        return;
    fputs("paths taken:", stderr);
    for (int i = FL_PATH_PLAIN; i < FL_PATH_COUNT; i++)
        fprintf(stderr, "%s %s %llu", i > FL_PATH_PLAIN ? "," : "", fl_path_names[i],
                (unsigned long long)fl_path_taken((fl_path)i));
    fputc('\n', stderr);
}

/* ---- plans by instruction ---- */

enum { GPU, COUNT, SM_MHZ, COLUMNS };

typedef struct rows {
    double *cell;
    size_t count, room; /* of rows; of cells */
} rows;

static fl_status add(rows *to, uint32_t gpu, double mhz, fl_diag *d) {
    double *last = to->count ? to->cell + (to->count - 1) * COLUMNS : NULL;
    if (last && last[GPU] == gpu && last[SM_MHZ] == mhz) {
        last[COUNT]++;
        return FL_OK;
    }
    if (fl_grow(&to->cell, &to->room, (to->count + 1) * COLUMNS, sizeof *to->cell))
        return fl_no_memory(d, "the plan");
    last = to->cell + to->count++ * COLUMNS;
    last[GPU] = gpu;
    last[COUNT] = 1;
    last[SM_MHZ] = mhz;
    return FL_OK;
}

static fl_status lay_rank(const fl_scene *scene, const fl_pipeline_clocks *c, uint32_t rank, rows *to, fl_diag *d) {
    const fl_pipeline_list *list = &scene->instructions.stage[rank % scene->pipeline.stages];
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < list->count; i++) {
        const fl_instruction *in = &list->item[i];
        if (in->type != FL_DO_FORWARD && in->type != FL_DO_BACKWARD)
            continue;
        const double mhz =
            *fl_pipeline_clock(c, rank, in->type == FL_DO_BACKWARD, (uint32_t)in->chunk, (uint32_t)in->microbatch);
        s = mhz > 0 ? add(to, rank, mhz, d) : FL_OK;
    }
    return s;
}

fl_status fl_plan_lay(const fl_spec *spec, const fl_scene *scene, fl_laid *l, fl_diag *d) {
    *l = (fl_laid){0};
    if (!spec->plans)
        return FL_OK;
    if (!scene || !scene->pipeline.ranks)
        return fl_fail(d, FL_BAD_INPUT, spec->plans->file, 0, 0,
                       "is a plan by instruction, expected it for a scene of a pipeline, whose order lays it out");
    rows laid = {0};
    fl_pipeline_clocks c;
    fl_status s = fl_plans_clocks(spec->plans, spec->plan_place, &scene->pipeline, &c, d);
    if (s)
        return s;
    for (uint32_t rank = 0; !s && rank < scene->pipeline.ranks; rank++) {
        const fl_ladder ladder = scene->facts.gpu[rank].sm;
        s = fl_plans_check_ladder(spec->plans, spec->plan_place, rank, ladder.mhz, ladder.count, d);
        if (!s)
            s = lay_rank(scene, &c, rank, &laid, d);
    }
    fl_pipeline_clocks_free(&c);
    if (s) {
        free(laid.cell);
        return s;
    }
    l->table = (fl_table){.cell = laid.cell, .row_count = (uint32_t)laid.count, .column_count = COLUMNS};
    l->setting = (fl_setting){.name = spec->plan_param, .table = &l->table};
    l->layer = (fl_layer){.origin = spec->plans->file, .setting = &l->setting, .count = 1};
    return FL_OK;
}

void fl_laid_free(fl_laid *l) {
    free((double *)(uintptr_t)l->table.cell);
    *l = (fl_laid){0};
}

/* ---- options about one rank ---- */

fl_status fl_rank_value_parse(const char *what, const char *text, uint32_t *rank, double *value, fl_diag *d) {
    const char *colon = strchr(text, ':');
    char number[24];
    int64_t n = -1;
    if (!strncmp(text, "rank=", 5) && colon && (size_t)(colon - text) < sizeof number + 5) {
        memcpy(number, text + 5, (size_t)(colon - text) - 5);
        number[colon - text - 5] = 0;
        if (fl_int_parse(number, &n) == FL_NUMBER_OK && n >= 0 && n < FL_PIPELINE_RANKS_MAX &&
            fl_real_parse(colon + 1, value) == FL_NUMBER_OK && *value > 0 && *value < 1e9) {
            *rank = (uint32_t)n;
            return FL_OK;
        }
    }
    return fl_refuse(d, "%s is '%s', expected rank=R:X, such as rank=3:%s", what, text,
                     strcmp(what, "--slow") == 0 ? "1.2" : "250");
}

fl_status fl_pipeline_slow_down(fl_pipeline *p, const fl_texts *slow, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; !s && slow && i < slow->count; i++) {
        uint32_t rank;
        double factor;
        fl_pipeline slower;
        s = fl_rank_value_parse("--slow", slow->item[i], &rank, &factor, d);
        if (!s)
            s = fl_pipeline_slowed(p, rank, factor, &slower, d);
        if (!s) {
            fl_pipeline_free(p);
            *p = slower;
        }
    }
    return s;
}

/* ---- replay of sweeps ---- */

fl_status fl_replay_choose(const fl_replay_choice *c, fl_sweep_replay *out, fl_diag *d) {
    bool percent = false;
    out->jitter = 0;
    out->iteration_ns = (int64_t)(c->iteration_s * 1e9 + 0.5);
    out->op_ns = (int64_t)(c->op_us * 1e3 + 0.5);
    if (c->jitter && !(fl_share_parse(c->jitter, &out->jitter, &percent) && out->jitter >= 0 && out->jitter <= 1))
        return fl_refuse(d, "jitter '%s', expected how much an op varies as a share from 0 to 1, such as 0.05 or 5%%",
                         c->jitter);
    return FL_OK;
}

bool fl_replay_drawn(const fl_replay_choice *c) {
    fl_sweep_replay r;
    fl_diag ignored = {0}; /* told when the scenes are opened */
    return !fl_replay_choose(c, &r, &ignored) && r.jitter > 0;
}

const char *fl_replay_chosen(const fl_replay_choice *c, bool key) {
    return c->jitter            ? (key ? "jitter" : "--jitter")
           : c->iteration_s > 0 ? (key ? "iteration_s" : "--iteration")
           : c->op_us > 0       ? (key ? "op_us" : "--op-us")
                                : NULL;
}

void fl_replay_merge(fl_replay_choice *c, const fl_replay_choice *rest) {
    c->jitter = c->jitter ? c->jitter : rest->jitter;
    c->iteration_s = c->iteration_s > 0 ? c->iteration_s : rest->iteration_s;
    c->op_us = c->op_us > 0 ? c->op_us : rest->op_us;
}

/* ---- policies, before any trace is read ---- */

enum { GPUS_TRIED = 16 };

typedef struct early { /* what is known of the node before the input is */
    fl_platform p;
    fl_facts facts;
} early;

static void early_close(early *e) {
    fl_facts_free(&e->facts);
    fl_platform_free(&e->p);
    *e = (early){0};
}

/* gpus 0: as many as the platform has. */
static fl_status early_open(early *e, const fl_scene_options *o, uint32_t gpus, fl_diag *d) {
    *e = (early){0};
    fl_status s = fl_platform_open(o->platform, gpus, &e->p, d);
    if (!s)
        s = fl_node_choose(&e->p.node, &o->node, d);
    if (!s)
        s = fl_facts_make(&e->p.node, (uint64_t)o->seed, &e->facts, d);
    if (!s)
        fl_facts_state(&o->stated, &e->facts);
    if (s)
        early_close(e);
    return s;
}

static fl_status check_parameters(const early *e, const fl_spec *spec, fl_diag *d) {
    const fl_layer layer[] = {fl_platform_layer(&e->p, spec->policy->name), spec->layer};
    void *params = NULL;
    const fl_status s = fl_params_resolve(&params, spec->policy, layer, FL_COUNT(layer), d);
    fl_params_free(spec->policy, params);
    return s;
}

static fl_status check_init(const early *e, const fl_spec *spec, fl_diag *d) {
    const fl_layer layer[] = {fl_platform_layer(&e->p, spec->policy->name), spec->layer};
    const fl_instance_options how = {
        .policy = spec->policy, .facts = &e->facts, .layer = layer, .layer_count = FL_COUNT(layer)};
    fl_instance *in = NULL;
    const fl_status s = fl_instance_open(&in, &how, d);
    fl_instance_close(in);
    return s;
}

/* Whether init accepts another number of GPUs: a recording may use more than the platform has. */
static bool accepts_more(const fl_scene_options *o, const fl_spec *spec) {
    bool accepts = false;
    fl_diag ignored = {0};
    for (uint32_t n = 1; !accepts && !o->gpus && n <= GPUS_TRIED; n++) {
        early e;
        if (!early_open(&e, o, n, &ignored))
            accepts = !check_init(&e, spec, &ignored);
        early_close(&e);
    }
    return accepts;
}

fl_status fl_scene_check_policies(const fl_scene_options *o, const fl_spec *spec, size_t count, bool varies,
                                  fl_diag *d) {
    early e;
    if (!o->platform)
        return FL_OK; /* fl_scenes_open tells */
    /* The ladder ends where a sweep does, and a pipeline and servers bring facts of their own. */
    const bool init = !varies && !o->sweep && !o->pipeline && !o->serving.server;
    fl_status s = early_open(&e, o, (uint32_t)o->gpus, d);
    for (size_t i = 0; !s && i < count; i++) {
        s = check_parameters(&e, &spec[i], d);
        if (s || !init || spec[i].plans || spec[i].only.count)
            continue;
        s = check_init(&e, &spec[i], d);
        if (s == FL_BAD_INPUT && accepts_more(o, &spec[i]))
            s = FL_OK;
    }
    early_close(&e);
    return s;
}
