/* Opens platform files, and makes the facts that a policy may know. */
#include "harness/input/platform/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/input/platform/platform.h"
#include "models/laws/device.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- what a policy may know ---- */

/* A first-order lag has less than 2 % of a change left after four of its time constants: its settling time (Ogata,
 * "Modern Control Engineering", 5-3). */
#define LAG_CONSTANTS 4

/* A change just after a refresh shows whole in the first window that begins after it. At least 1 ns: 0 is not known. */
static int64_t lag_of(const fl_sensor_spec *s) {
    const int64_t ns = s->period_ns + s->window_ns + s->delay_ns + LAG_CONSTANTS * s->lag_ns;
    return !s->present ? 0 : ns > 0 ? ns : 1;
}

static int64_t settle_of(const fl_actuator_spec *a) {
    const int64_t ns = a->call_ns + a->settle_ns;
    return ns > 0 ? ns : 1;
}

/* Beside a share a time for each kernel is not the whole cost, and a policy would count too little. */
static int64_t records_of(const fl_device *dev) {
    if (!dev->records_known || dev->records_slowdown > 0)
        return 0;
    return dev->records_kernel_s > 0 ? (int64_t)(dev->records_kernel_s * 1e9 + 0.5) : -1;
}

static fl_status law_of(const fl_device *dev, fl_power_law *law, fl_diag *d) {
    double *volt = calloc(dev->sm_count + 1, sizeof *volt), b0_w = NAN;
    if (!volt)
        return fl_no_memory(d, "the facts");
    for (uint32_t i = 0; i < dev->mem_count; i++)
        if (dev->mem_mhz[i] == dev->default_mem_mhz)
            b0_w = dev->b0_w[i];
    int known = dev->voltage != NULL && !isnan(b0_w);
    for (uint32_t i = 0; known && i < dev->sm_count; i++)
        known = fl_curve_at(dev->voltage, dev->sm_mhz[i], 1, &volt[i]) == FL_MODEL_OK;
    if (!known) {
        free(volt);
        return FL_OK;
    }
    *law = (fl_power_law){volt, dev->a_w, dev->a0_w, dev->b_w, b0_w, dev->c_w};
    return FL_OK;
}

fl_status fl_facts_make(const fl_node_spec *node, uint64_t seed, fl_facts *facts, fl_diag *d) {
    fl_gpu_facts *gpu = calloc(node->gpu_count ? node->gpu_count : 1, sizeof *gpu);
    const fl_host_spec *h = &node->host;
    *facts = (fl_facts){.seed = seed,
                        .gpu_count = node->gpu_count,
                        .gpu = gpu,
                        .host = {.name = h->name,
                                 .cpu = {h->cpu.mhz, h->cpu.count},
                                 .boost = {h->cpu.boost_mhz, h->cpu.boost_count},
                                 .power_min_w = h->cpu.power_min_w,
                                 .power_max_w = h->cpu.power_max_w,
                                 .power_default_w = h->cpu.power_default_w,
                                 .peak_bytes_per_s = h->peak_bytes_per_s,
                                 .cores = h->cores,
                                 .apu = h->apu != 0}};
    fl_status s = gpu ? FL_OK : fl_no_memory(d, NULL);
    for (uint32_t g = 0; !s && g < node->gpu_count; g++) {
        const fl_device *dev = &node->device[node->gpu[g]];
        gpu[g] = (fl_gpu_facts){.name = dev->name,
                                .sm = {dev->sm_mhz, dev->sm_count},
                                .mem = {dev->mem_mhz, dev->mem_count},
                                .power_lag_ns = lag_of(&dev->sensor[FL_SENSOR_POWER]),
                                .settle_ns = settle_of(&dev->actuator),
                                .records_ns = records_of(dev),
                                .default_sm_mhz = dev->default_sm_mhz,
                                .default_mem_mhz = dev->default_mem_mhz,
                                .power_min_w = dev->power_min_w,
                                .power_max_w = dev->power_max_w,
                                .power_default_w = dev->power_default_w,
                                .tdp_w = dev->tdp_w,
                                .peak_bytes_per_s = dev->peak_bytes_per_s,
                                .sm_count = dev->sms,
                                .cores_per_sm = dev->cores_per_sm};
        s = law_of(dev, &gpu[g].law, d);
    }
    if (s)
        fl_facts_free(facts);
    return s;
}

void fl_facts_free(fl_facts *facts) {
    for (uint32_t g = 0; facts->gpu && g < facts->gpu_count; g++)
        free((double *)(uintptr_t)facts->gpu[g].law.volt);
    free((void *)(uintptr_t)facts->gpu);
    memset(facts, 0, sizeof *facts);
}

void fl_facts_state(const fl_stated_facts *s, fl_facts *facts) {
    facts->bound = s->bound;
    facts->deadline_ns = (int64_t)(s->deadline_s * 1e9 + 0.5);
    facts->expected_ns = (int64_t)(s->expected_s * 1e9 + 0.5);
    facts->streams = (uint64_t)s->streams;
}

/* ---- platform files ---- */

#define FORMAT_VERSION 1
#define GPU_MAX 1024
#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

static const char suffix[] = ".json";

static bool ends_in_json(const char *name) { return fl_name_ends(name, suffix); }

/* ---- which file ---- */

fl_status fl_platform_list(char ***names, size_t *count, fl_diag *d) {
    return fl_place_list(FL_PLACE_PLATFORMS, names, count, d);
}

/* The name that begins with this text ("v100" of v100-163w), else the nearest. */
static const char *near_name(const char *name, char *const *names, size_t count) {
    for (size_t i = 0; *name && i < count; i++)
        if (!strncasecmp(names[i], name, strlen(name)))
            return names[i];
    return fl_nearest(name, (const char *const *)names, count);
}

/* names: the platforms. */
static fl_status unknown_name(const char *name, char *const *names, size_t count, fl_diag *d) {
    char **board = NULL, all[512] = "";
    size_t boards = 0, used = 0;
    fl_status s = fl_board_list(&board, &boards, d);
    if (s)
        return s;
    const char *found = fl_bundled_find(name, board, boards), *near = near_name(name, names, count),
               *other = near ? NULL : near_name(name, board, boards);
    for (size_t i = 0; i < count && used < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names[i]);
    if (found)
        s = fl_refuse(d,
                      "'%s' is a board whose power model is unknown (foldline list platforms %s), expected a platform; "
                      "foldline fit device --facts %s -o %s.json makes one from similar chips",
                      name, found, found, found);
    else if (near)
        s = fl_refuse(d, "unknown platform '%s', did you mean '%s'? (all: %s)", name, near, all);
    else if (other)
        s = fl_refuse(d, "unknown platform '%s', did you mean the board '%s'? (foldline list platforms lists both)",
                      name, other);
    else
        s = fl_refuse(d, "unknown platform '%s', expected a path, one of %s, or a board (foldline list platforms)",
                      name, all);
    fl_place_list_free(board, boards);
    return s;
}

/* The path and the plain name of a platform given by either. */
static fl_status find_file(const char *name, fl_platform *p, fl_diag *d) {
    if (fl_is_standard(name) || strchr(name, '/') || ends_in_json(name)) {
        const char *shown = fl_is_standard(name) ? "stdin" : name, *slash = strrchr(shown, '/');
        const char *base = slash ? slash + 1 : shown;
        p->path = strdup(name);
        p->name = strndup(base, ends_in_json(base) ? fl_stem_length(base, suffix) : strlen(base));
        return p->path && p->name ? FL_OK : fl_no_memory(d, NULL);
    }
    char folder[PATH_MAX], **names = NULL;
    size_t count = 0;
    fl_status s = fl_platform_list(&names, &count, d);
    const char *found = s ? NULL : fl_bundled_find(name, names, count);
    if (!s && !found)
        s = unknown_name(name, names, count, d);
    if (!s && asprintf(&p->path, "%s/%s%s", fl_place(FL_PLACE_PLATFORMS, folder, sizeof folder), found, suffix) < 0)
        p->path = NULL;
    if (!s && (!p->path || !(p->name = strdup(found))))
        s = fl_no_memory(d, NULL);
    fl_place_list_free(names, count);
    return s;
}

/* ---- notes: where each number comes from ---- */

/* A note on a key speaks for everything below it. */
static bool covers(const char *note, const char *path) {
    const size_t n = strlen(note);
    return strncmp(note, path, n) == 0 && (path[n] == '\0' || path[n] == '.' || path[n] == '[');
}

bool fl_platform_assumed(const fl_platform *p, const char *key) {
    const fl_platform_note *nearest = NULL;
    for (size_t i = 0; i < p->note_count; i++)
        if (covers(p->note[i].key, key) && (!nearest || strlen(p->note[i].key) > strlen(nearest->key)))
            nearest = &p->note[i];
    return nearest && !strncmp(nearest->text, "assumed", 7);
}

static fl_status require_notes(const fl_json *at, const fl_platform *p, fl_diag *d) {
    fl_status s = FL_OK;
    if (strcmp(at->path, "foldline_platform") == 0 || strcmp(at->path, "notes") == 0)
        return FL_OK;
    if (cJSON_IsNumber(at->node)) {
        for (size_t i = 0; i < p->note_count; i++)
            if (covers(p->note[i].key, at->path))
                return FL_OK;
        return fl_json_fail(at, d, "no source, expected a line in notes; write \"assumed: why\" where it is");
    }
    for (fl_json e = fl_json_first(at); !s && e.node; e = fl_json_next(at, &e))
        s = require_notes(&e, p, d);
    return s;
}

/* Whether a note's key names a value of the file. */
static bool names_value(const fl_json *at, const char *key) {
    if (*at->path && strcmp(at->path, key) == 0)
        return true;
    if (*at->path && !covers(at->path, key))
        return false;
    for (fl_json e = fl_json_first(at); e.node; e = fl_json_next(at, &e))
        if (names_value(&e, key))
            return true;
    return false;
}

static fl_status read_notes(const fl_json *root, fl_platform *p, fl_diag *d) {
    fl_json notes;
    fl_status s = fl_json_get_object(root, "notes", &notes, d);
    if (s)
        return s;
    p->note = calloc(fl_json_count(&notes) + 1, sizeof *p->note);
    if (!p->note)
        return fl_no_memory(d, NULL);
    for (fl_json e = fl_json_first(&notes); !s && e.node; e = fl_json_next(&notes, &e)) {
        const char *text = NULL;
        s = fl_json_get_text(&notes, e.node->string, &text, d);
        if (!s && !names_value(root, e.node->string))
            s = fl_json_fail(&e, d, "names no value of this file, expected a key such as gpu.power.a_w");
        if (s)
            break;
        fl_platform_note *n = &p->note[p->note_count++];
        n->key = strdup(e.node->string);
        n->text = strdup(text);
        if (!n->key || !n->text)
            s = fl_no_memory(d, NULL);
    }
    return s ? s : require_notes(root, p, d);
}

/* ---- policies: defaults that the machine gives to parameters ---- */

static fl_status read_policies(const fl_json *root, fl_platform *p, fl_diag *d) {
    fl_json policies;
    if (!fl_json_has(root, "policies"))
        return FL_OK;
    fl_status s = fl_json_get_object(root, "policies", &policies, d);
    if (s)
        return s;
    p->policy = calloc(fl_json_count(&policies) + 1, sizeof *p->policy);
    if (!p->policy)
        return fl_no_memory(d, NULL);
    for (fl_json e = fl_json_first(&policies); e.node; e = fl_json_next(&policies, &e)) {
        s = fl_json_object(&e, d);
        if (s)
            return s;
        fl_platform_policy *policy = &p->policy[p->policy_count++];
        policy->policy = strdup(e.node->string);
        policy->setting = calloc(fl_json_count(&e) + 1, sizeof *policy->setting);
        if (!policy->policy || !policy->setting)
            return fl_no_memory(d, NULL);
        for (fl_json v = fl_json_first(&e); v.node; v = fl_json_next(&e, &v)) {
            char *text = NULL;
            s = fl_json_param_text(&v, &text, d);
            if (s)
                return s;
            fl_setting *setting = &policy->setting[policy->count++];
            setting->text = text;
            setting->name = strdup(v.node->string);
            if (!setting->name)
                return fl_no_memory(d, NULL);
        }
    }
    return FL_OK;
}

/* ---- the node ---- */

/* The kind of each GPU: as the file counts them; where the caller says how many, that sequence over and over. */
static fl_status place_gpus(fl_node_spec *node, const uint32_t *count, uint32_t wanted, const fl_json *root,
                            fl_diag *d) {
    uint64_t total = 0;
    for (uint32_t k = 0; k < node->device_count; k++)
        total += count[k];
    if (total > GPU_MAX || wanted > GPU_MAX)
        return fl_json_fail(root, d, "%llu GPUs, expected at most %d", (unsigned long long)(wanted ? wanted : total),
                            GPU_MAX);
    node->gpu_count = wanted ? wanted : (uint32_t)total;
    node->gpu = calloc(node->gpu_count, sizeof *node->gpu);
    if (!node->gpu)
        return fl_no_memory(d, NULL);
    for (uint32_t g = 0; g < node->gpu_count; g++) {
        uint32_t place = g % (uint32_t)total, kind = 0;
        while (place >= count[kind])
            place -= count[kind++];
        node->gpu[g] = kind;
    }
    return FL_OK;
}

static fl_status read_count(const fl_json *object, uint32_t *count, fl_diag *d) {
    int64_t n = 1;
    fl_status s = fl_json_has(object, "count") ? fl_json_get_int(object, "count", 1, GPU_MAX, &n, d) : FL_OK;
    *count = (uint32_t)n;
    return s;
}

/* "gpu": one kind, with "count" beside or in it; or "gpus": a list of kinds, each with its count. */
static fl_status read_gpus(const fl_json *root, fl_node_spec *node, uint32_t wanted, fl_diag *d) {
    fl_json at;
    const bool list = fl_json_has(root, "gpus");
    if (list && (fl_json_has(root, "gpu") || fl_json_has(root, "count")))
        return fl_json_fail(root, d, "gpus beside gpu or count, expected either a list of kinds or one kind");
    fl_status s = list ? fl_json_get_array(root, "gpus", &at, d) : fl_json_get_object(root, "gpu", &at, d);
    if (s)
        return s;
    const size_t kinds = list ? fl_json_count(&at) : 1;
    if (kinds == 0 || kinds > GPU_MAX)
        return fl_json_fail(&at, d, "%zu kinds, expected 1..%d", kinds, GPU_MAX);
    uint32_t *count = calloc(kinds, sizeof *count);
    node->device = calloc(kinds, sizeof *node->device);
    if (!count || !node->device) {
        free(count);
        return fl_no_memory(d, NULL);
    }
    fl_json e = list ? fl_json_first(&at) : at;
    for (; !s && node->device_count < kinds; e = list ? fl_json_next(&at, &e) : e) {
        const uint32_t k = node->device_count++;
        s = fl_platform_device(&e, &node->device[k], d);
        if (!s && !list && fl_json_has(root, "count") && fl_json_has(&e, "count"))
            s = fl_json_fail(&e, d, "count within gpu and beside it, expected one of the two");
        if (!s)
            s = read_count(!list && fl_json_has(root, "count") ? root : &e, &count[k], d);
    }
    if (!s)
        s = place_gpus(node, count, wanted, root, d);
    free(count);
    return s;
}

static fl_status read_root(const fl_json *root, uint32_t gpu_count, fl_platform *p, fl_diag *d) {
    static const char *const known[] = {"foldline_platform", "title",       "count", "gpu", "gpus", "host",
                                        "policies",          "calibration", "notes"};
    int64_t version = 0;
    const char *title = NULL;
    fl_json host;
    fl_status s = fl_json_get_int(root, "foldline_platform", FORMAT_VERSION, FORMAT_VERSION, &version, d);
    if (!s)
        s = fl_json_known(root, known, COUNT_OF(known), d);
    if (!s)
        s = fl_json_get_text(root, "title", &title, d);
    if (!s)
        s = read_gpus(root, &p->node, gpu_count, d);
    if (!s)
        s = fl_json_get_object(root, "host", &host, d);
    if (!s)
        s = fl_platform_host(&host, &p->node.host, d);
    if (!s && p->node.host.apu) {
        if (p->node.gpu_count != 1) /* they share one bus and one budget */
            return fl_json_fail(&host, d, "an APU of %u GPUs, expected one", p->node.gpu_count);
        p->node.device[0].dram_share = p->node.host.bus_max;
    }
    if (!s)
        s = read_policies(root, p, d);
    if (!s)
        s = read_notes(root, p, d);
    if (s)
        return s;
    (void)snprintf(p->node.name, sizeof p->node.name, "%s", p->name);
    p->title = strdup(title);
    if (asprintf(&p->origin, "platform %s", p->name) < 0)
        p->origin = NULL;
    return p->title && p->origin ? FL_OK : fl_no_memory(d, NULL);
}

fl_status fl_platform_open(const char *name, uint32_t gpu_count, fl_platform *p, fl_diag *d) {
    cJSON *tree = NULL;
    fl_platform fresh = {0};
    fl_status s = find_file(name, &fresh, d);
    if (!s)
        s = fl_json_read(fresh.path, &tree, d);
    if (!s) {
        const fl_json root = fl_json_root(tree, fresh.path);
        s = read_root(&root, gpu_count, &fresh, d);
    }
    cJSON_Delete(tree);
    if (s)
        fl_platform_free(&fresh);
    *p = fresh; /* all zero after a failure */
    return s;
}

void fl_platform_free(fl_platform *p) {
    fl_node_spec_free(&p->node);
    for (size_t i = 0; i < p->note_count; i++) {
        free(p->note[i].key);
        free(p->note[i].text);
    }
    for (size_t i = 0; i < p->policy_count; i++) {
        for (size_t k = 0; k < p->policy[i].count; k++) {
            free((void *)p->policy[i].setting[k].name);
            free((void *)p->policy[i].setting[k].text);
        }
        free(p->policy[i].setting);
        free(p->policy[i].policy);
    }
    free(p->note);
    free(p->policy);
    free(p->name);
    free(p->title);
    free(p->path);
    free(p->origin);
    memset(p, 0, sizeof *p);
}

fl_layer fl_platform_layer(const fl_platform *p, const char *policy) {
    fl_layer layer = {.origin = p->origin};
    for (size_t i = 0; i < p->policy_count; i++)
        if (strcmp(p->policy[i].policy, policy) == 0) {
            layer.setting = p->policy[i].setting;
            layer.count = p->policy[i].count;
        }
    return layer;
}

/* ---- the ladder of a GPU that is known by its name ---- */

/* Words that tell no model: "NVIDIA A30" is an A30, and an A100 of 40 GB has the ladder of one of 80 GB. */
static bool is_plain(const char *word) {
    static const char *const plain[] = {"NVIDIA", "AMD", "Intel", "Tesla", "GeForce", "Quadro", "Instinct", "GPU"};
    for (size_t i = 0; i < COUNT_OF(plain); i++)
        if (!strcasecmp(word, plain[i]))
            return true;
    return !strcasecmp(word + strspn(word, "0123456789"), "GB");
}

/* Whether each word of one name that tells a model is in the other. */
static bool has_words(const char *name, const char *of) {
    char words[128], *rest = NULL;
    (void)snprintf(words, sizeof words, "%s", of);
    for (char *w = strtok_r(words, " -_()", &rest); w; w = strtok_r(NULL, " -_()", &rest)) {
        char names[128], *left = NULL;
        bool found = is_plain(w);
        (void)snprintf(names, sizeof names, "%s", name);
        for (char *n = strtok_r(names, " -_()", &left); n && !found; n = strtok_r(NULL, " -_()", &left))
            found = !strcasecmp(n, w);
        if (!found)
            return false;
    }
    return true;
}

static bool is_same_gpu(const char *a, const char *b) { return *a && *b && has_words(a, b) && has_words(b, a); }

static fl_status take_ladder(const fl_device *dev, int32_t **mhz, uint32_t *count, fl_diag *d) {
    if (!(*mhz = calloc(dev->sm_count, sizeof **mhz)))
        return fl_no_memory(d, NULL);
    memcpy(*mhz, dev->sm_mhz, dev->sm_count * sizeof **mhz);
    *count = dev->sm_count;
    return FL_OK;
}

fl_status fl_ladder_find(const char *gpu, int32_t **mhz, uint32_t *count, char **from, fl_diag *d) {
    fl_status s = FL_OK;
    *mhz = NULL;
    *from = NULL;
    *count = 0;
    for (int boards = 0; boards < 2 && !s && !*count; boards++) {
        char **names = NULL;
        size_t all = 0;
        s = boards ? fl_board_list(&names, &all, d) : fl_platform_list(&names, &all, d);
        for (size_t i = 0; i < all && s != FL_NO_MEMORY && !*count; i++) {
            fl_board b = {0};
            fl_platform p = {0};
            char text[128];
            s = boards ? fl_board_open(names[i], &b, d) : fl_platform_open(names[i], 0, &p, d);
            if (!s && boards && is_same_gpu(gpu, b.gpu) && !fl_board_lacks(&b, text, sizeof text))
                s = fl_board_ladder(&b, mhz, count, d);
            else if (!s && !boards && is_same_gpu(gpu, p.node.device[p.node.gpu[0]].name))
                s = take_ladder(&p.node.device[p.node.gpu[0]], mhz, count, d);
            if (!s && *count && asprintf(from, "%s %s", boards ? "board" : "platform", names[i]) < 0)
                s = fl_no_memory(d, NULL);
            fl_board_free(&b);
            fl_platform_free(&p);
        }
        fl_place_list_free(names, all);
        s = s == FL_NO_MEMORY ? s : FL_OK; /* without a readable file of it, the ladder is not known */
    }
    return s;
}
