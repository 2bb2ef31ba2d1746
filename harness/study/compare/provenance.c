/* The provenance record of a result. */
#include "harness/study/compare/archive_hash.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "harness/study/compare/compare.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <errno.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* SHA-256 of a file as it lies, in hexadecimal: hash. NULL where it cannot be read. "-" too. */
static char *fl_file_sha256(const char *path, char hash[FL_SHA256_TEXT]) {
    unsigned char bytes[8 << 10];
    ssize_t got = 0;
    fl_diag ignored;
    const int fd = fl_open_read(path, &ignored);
    fl_sha256 sum;
    fl_sha256_begin(&sum);
    while (fd >= 0 && ((got = read(fd, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR)))
        fl_sha256_add(&sum, bytes, got > 0 ? (size_t)got : 0);
    if (fd >= 0)
        close(fd);
    return fd >= 0 && !got ? fl_sha256_end(&sum, hash) : NULL;
}

char *fl_result_sha256(const char *path, char hash[65]) {
    unsigned char bytes[8 << 10];
    size_t got = 0;
    fl_diag ignored = {0};
    fl_gunzip *g = fl_gunzip_open(path, &ignored);
    bool read = g != NULL;
    fl_sha256 sum;
    fl_sha256_begin(&sum);
    while (read && (read = !fl_gunzip_read(g, bytes, sizeof bytes, &got, &ignored)) && got)
        fl_sha256_add(&sum, bytes, got);
    fl_gunzip_close(g);
    return read ? fl_sha256_end(&sum, hash) : NULL;
}

/* A file of the project itself is called as the project calls it, wherever it was built. */
static const char *shown(const char *path, char *buf, size_t size) {
    char own[PATH_MAX];
    const size_t length = strlen(fl_place(FL_PLACE_PLATFORMS, own, sizeof own));
    if (strncmp(path, own, length) != 0 || path[length] != '/')
        return fl_input_name(path);
    snprintf(buf, size, "models/platforms%s", path + length);
    return buf;
}

/* NULL where it is there already. */
static cJSON *add_input(cJSON *inputs, const char *path) {
    const cJSON *have;
    char buf[512];
    const char *name = shown(path, buf, sizeof buf);
    cJSON_ArrayForEach(have, inputs) {
        const char *file = cJSON_GetStringValue(cJSON_GetObjectItem(have, "file"));
        if (file && !strcmp(file, name))
            return NULL;
    }
    char hash[FL_SHA256_TEXT];
    cJSON *in = fl_json_add_row(inputs);
    cJSON_AddStringToObject(in, "file", name);
    if (fl_file_sha256(path, hash))
        cJSON_AddStringToObject(in, "sha256", hash);
    else
        cJSON_AddNullToObject(in, "sha256");
    return in;
}

/* A parameter as resolved: however long a list is, all of it. */
static void add_param(cJSON *params, const fl_instance *in, uint32_t index) {
    const fl_param *row = &fl_instance_policy(in)->param[index];
    size_t size = 256;
    if (row->type == FL_PARAM_LIST)
        size += fl_instance_param_table(in, index).row_count * FL_REAL_TEXT;
    char *text = fl_must(malloc(size));
    cJSON_AddStringToObject(params, row->name, fl_instance_param_text(in, index, text, size));
    free(text);
}

/* The policy on the first workload that it is for. */
static void add_policy(cJSON *policies, const fl_scenes *scenes, const fl_spec *spec) {
    size_t at = 0;
    while (at + 1 < scenes->count && !fl_spec_is_for(spec, scenes->item[at]))
        at++;
    const fl_scene *scene = scenes->item[at];
    cJSON *p = cJSON_CreateObject(), *params = cJSON_AddObjectToObject(p, "parameters");
    cJSON_AddStringToObject(p, "label", spec->label);
    cJSON_AddStringToObject(p, "policy", spec->policy->name);
    cJSON_AddStringToObject(p, "source", spec->policy->source);
    if (spec->twin_of)
        cJSON_AddBoolToObject(p, "records_free", true);
    if (spec->plans)
        cJSON_AddNumberToObject(p, "plan", (double)spec->plans->number[spec->plan_place]);
    fl_laid laid;
    const bool lies = !fl_plan_lay(spec, scene, &laid, NULL);
    const fl_layer layer[] = {fl_platform_layer(&scene->platform, spec->policy->name), spec->layer, laid.layer};
    const fl_instance_options o = {
        .policy = spec->policy, .facts = &scene->facts, .layer = layer, .layer_count = FL_COUNT(layer)};
    fl_instance *in = NULL;
    if (lies && !fl_instance_open(&in, &o, NULL))
        for (uint32_t i = 0; i < spec->policy->param_count; i++)
            add_param(params, in, i);
    else
        fl_memory_end(); /* it could be opened to run */
    fl_instance_close(in);
    fl_laid_free(&laid);
    cJSON_AddItemToArray(policies, p);
}

/* The files of a policy's table parameters. */
static void add_tables(cJSON *inputs, const fl_spec *spec) {
    for (size_t i = 0; i < spec->layer.count; i++)
        if (spec->file[i])
            add_input(inputs, spec->file[i]);
}

/* A policy from a plug-in is no part of the archive that FL_ARCHIVE_HASH is of. Marked, for a gate must let it change.
 */
static void add_plugin(cJSON *inputs, const fl_spec *spec) {
    cJSON *in = spec->plugin ? add_input(inputs, spec->plugin) : NULL;
    if (in)
        cJSON_AddBoolToObject(in, "plug_in", true);
}

/* Which parts of the node took part, as far as a user may choose. */
static void add_node(cJSON *into, const fl_scene *s) {
    cJSON *node = cJSON_AddObjectToObject(into, "node");
    const fl_device *dev = &s->platform.node.device[0];
    const fl_wall_spec *w = &dev->wall;
    cJSON_AddStringToObject(node, "wall", w->period_ns <= 0 ? "none" : w->ideal ? "ideal" : "real");
    cJSON_AddBoolToObject(node, "heat", dev->thermal.period_ns > 0);
    cJSON_AddBoolToObject(node, "interference", dev->interference > 0);
    cJSON_AddBoolToObject(node, "cpu", s->platform.node.host.cpu.count > 0);
    cJSON_AddBoolToObject(node, "gating", dev->gate_ns > 0);
    fl_json_add_real(node, "actuator_ms", (double)(dev->actuator.call_ns + dev->actuator.settle_ns) * 1e-6);
    cJSON_AddNumberToObject(node, "units", (double)s->node.units);
    cJSON_AddNumberToObject(node, "records_slowdown_pct", 100 * dev->records_slowdown);
    cJSON_AddNumberToObject(node, "records_kernel_us", 1e6 * dev->records_kernel_s);
    cJSON_AddStringToObject(node, "setting_hosts",
                            s->platform.node.host.hosts_per_gpu ? FL_HOSTS_PER_GPU : FL_HOSTS_ONE);
    fl_json_add_real(node, "gpu_budget_w", s->platform.node.host.gpu_budget_w);
}

/* How often it ran, and what was changed of a pipeline. */
static void add_course(cJSON *into, const fl_scene *s) {
    if (s->repeat > 1)
        cJSON_AddNumberToObject(into, "repeat", (double)s->repeat);
    if (s->slow)
        cJSON_AddStringToObject(into, "slow", s->slow);
}

/* What came when: the list as an input, or what was drawn and by which seed. */
static void add_replay(cJSON *into, const fl_scene *s) {
    if (s->jitter > 0) {
        cJSON_AddNumberToObject(into, "jitter", s->jitter);
        cJSON_AddNumberToObject(into, "jitter_seed", (double)s->facts.seed);
    }
    if (s->iteration_ns)
        cJSON_AddNumberToObject(into, "iteration_s", (double)s->iteration_ns * 1e-9);
    if (s->op_ns)
        cJSON_AddNumberToObject(into, "op_us", (double)s->op_ns * 1e-3);
}

static void add_arrivals(cJSON *into, cJSON *inputs, const fl_scene *s) {
    fl_arrivals_spec spec;
    if (!s->arrivals || fl_arrivals_spec_parse(s->arrivals, &spec, NULL))
        return;
    cJSON_AddStringToObject(into, "arrivals", s->arrivals);
    cJSON_AddNumberToObject(into, "requests", (double)s->w->request_count);
    if (spec.file)
        add_input(inputs, spec.file);
    else
        cJSON_AddNumberToObject(into, "arrivals_seed", (double)(spec.seed ? spec.seed + s->draw : s->facts.seed));
}

static void add_serving(cJSON *into, cJSON *inputs, const fl_scene *s) {
    static const char *const routes[] = {"round-robin", "least-loaded"};
    char clocks[FL_SERVING_CLOCKS_TEXT];
    if (!s->serving)
        return;
    const fl_serving_setup *setup = &s->serving->setup;
    const fl_batching_rules *rules = &setup->server[0].rules;
    add_input(inputs, s->serving->path);
    cJSON *o = cJSON_AddObjectToObject(into, "serving");
    uint32_t prefill = 0;
    for (uint32_t i = 0; i < setup->server_count; i++)
        prefill += setup->server[i].role == FL_ROLE_PREFILL;
    cJSON_AddNumberToObject(o, "servers", setup->server_count);
    cJSON_AddNumberToObject(o, "gpus_each", setup->server[0].gpu_count);
    cJSON_AddNumberToObject(o, "requests", (double)s->serving->requests.count);
    fl_json_add_real(o, "scale", setup->scale);
    cJSON_AddStringToObject(o, "route", routes[setup->route == FL_ROUTE_LEAST_LOADED]);
    cJSON_AddNumberToObject(o, "prefill_servers", prefill);
    if (prefill) {
        fl_json_add_real(o, "link_gb_s", setup->link.bytes_per_s * 1e-9);
        fl_json_add_real(o, "link_latency_s", (double)setup->link.latency_ns * 1e-9);
        fl_json_add_real(o, "kv_bytes", setup->link.bytes_per_token);
    }
    fl_json_add_real(o, "ttft_target_s", setup->ttft_target_ns ? (double)setup->ttft_target_ns * 1e-9 : NAN);
    fl_json_add_real(o, "tbt_target_s", setup->tbt_target_ns ? (double)setup->tbt_target_ns * 1e-9 : NAN);
    fl_json_add_real(o, "target_share", setup->target_share);
    cJSON_AddNumberToObject(o, "max_seqs", rules->max_seqs);
    cJSON_AddNumberToObject(o, "token_budget", rules->token_budget);
    cJSON_AddNumberToObject(o, "kv_blocks", (double)rules->kv_blocks);
    cJSON_AddStringToObject(o, "assumed", fl_scene_assumed_text(s, clocks, sizeof clocks));
    cJSON_AddStringToObject(o, "clocks", fl_serving_scene_clocks(s->serving, clocks, sizeof clocks));
}

cJSON *fl_provenance(const fl_scenes *scenes, const fl_spec *spec, size_t spec_count, uint64_t seed) {
    cJSON *root = fl_must(cJSON_CreateObject());
    cJSON_AddStringToObject(root, "foldline", FL_VERSION);
    cJSON_AddStringToObject(root, "libc", gnu_get_libc_version());
    cJSON_AddStringToObject(root, "policy_archive_sha256", FL_ARCHIVE_HASH);
    cJSON_AddNumberToObject(root, "seed", (double)seed);
    cJSON *inputs = cJSON_AddArrayToObject(root, "inputs"), *workloads = cJSON_AddArrayToObject(root, "workloads");
    for (size_t i = 0; i < scenes->count; i++) {
        const fl_scene *s = scenes->item[i];
        if (!s->applications)
            add_input(inputs, s->source);
        add_input(inputs, s->platform.path);
        if (s->kinds)
            add_input(inputs, s->kinds);
        if (s->order)
            add_input(inputs, s->order);
        if (s->target_path)
            add_input(inputs, s->target_path);
        cJSON *w = fl_json_add_row(workloads);
        cJSON_AddStringToObject(w, "workload", s->w->name);
        cJSON_AddStringToObject(w, "platform", s->platform.name);
        if (s->applications)
            cJSON_AddStringToObject(w, "applications_seed", s->applications);
        cJSON_AddNumberToObject(w, "gpus", s->platform.node.gpu_count);
        cJSON_AddNumberToObject(w, "kernels", (double)s->w->op_count);
        cJSON_AddStringToObject(w, "model", s->w->measured ? "measured table" : "laws");
        add_node(w, s);
        add_course(w, s);
        add_replay(w, s);
        add_arrivals(w, inputs, s);
        add_serving(w, inputs, s);
        if (s->target_path)
            cJSON_AddStringToObject(w, "target", fl_input_name(s->target_path));
        cJSON_AddBoolToObject(w, "assumed_loads", s->w->assumed);
        cJSON_AddBoolToObject(w, "assumed_power", fl_scene_power_assumed(s));
        cJSON_AddBoolToObject(w, "gaps_are_host_time", s->w->gaps_are_host);
        fl_json_add_real(w, "model_time_mape_pct", s->w->model_time_mape_pct);
        fl_json_add_real(w, "model_power_mape_pct", s->w->model_power_mape_pct);
        cJSON *notes = s->note_count ? cJSON_AddArrayToObject(w, "notes") : NULL;
        for (size_t k = 0; k < s->note_count; k++)
            cJSON_AddItemToArray(notes, cJSON_CreateString(s->note[k]));
    }
    for (size_t i = 0; i < spec_count; i++)
        add_tables(inputs, &spec[i]);
    for (size_t i = 0; i < spec_count; i++)
        add_plugin(inputs, &spec[i]);
    cJSON *policies = cJSON_AddArrayToObject(root, "policies");
    for (size_t i = 0; i < spec_count && scenes->count; i++)
        add_policy(policies, scenes, &spec[i]);
    return root;
}

char *fl_provenance_path(const char *csv) {
    size_t stem = fl_plain_length(csv), dot = stem;
    while (dot && csv[dot - 1] != '.' && csv[dot - 1] != '/')
        dot--;
    stem = dot && csv[dot - 1] == '.' ? dot - 1 : stem;
    return fl_must_print("%.*s.provenance.json", (int)stem, csv);
}

/* Remove a result whose record could not be written, and the record of the result before it. */
static void drop_result(const char *csv) {
    struct stat st;
    if (stat(csv, &st) || !S_ISREG(st.st_mode))
        return;
    char *record = fl_provenance_path(csv);
    unlink(record);
    unlink(csv);
    free(record);
}

fl_status fl_provenance_write(const char *csv, cJSON *record, fl_diag *d) {
    if (fl_is_standard(csv))
        return FL_OK;
    char hash[FL_SHA256_TEXT];
    if (!fl_result_sha256(csv, hash)) {
        drop_result(csv);
        return fl_fail(d, FL_IO, csv, 0, 0, "cannot be read again");
    }
    cJSON_DeleteItemFromObject(record, "result_sha256");
    cJSON_AddStringToObject(record, "result_sha256", hash);
    char *path = fl_provenance_path(csv);
    const fl_status s = fl_json_write(path, record, d);
    if (s)
        drop_result(csv);
    free(path);
    return s;
}
