/* Policy, parameters and servers, in the head of a decisions log. */
#include "harness/log/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/log/log.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- servers ---- */

enum { NUMBERS = 3, TEXT = 128 };

static fl_status set(fl_head *h, uint32_t server, const char *what, const char *value, fl_diag *d) {
    char key[48];
    snprintf(key, sizeof key, "server%" PRIu32 ".%s", server, what);
    return fl_head_set(h, key, value) ? FL_OK : fl_no_memory(d, "the facts");
}

static fl_status put_gpus(fl_head *h, uint32_t server, const fl_server_facts *f, fl_diag *d) {
    fl_text t;
    size_t size;
    FILE *out = fl_text_open(&t);
    if (!out)
        return fl_no_memory(d, "the facts");
    for (uint32_t i = 0; i < f->gpu_count; i++)
        fprintf(out, "%s%" PRIu32, i ? "/" : "", f->gpu[i]);
    char *text = fl_text_close(&t, &size);
    fl_status s = text ? set(h, server, "gpus", text, d) : fl_no_memory(d, "the facts");
    free(text);
    return s;
}

fl_status fl_server_head_put(const fl_facts *facts, fl_head *h, fl_diag *d) {
    char text[TEXT];
    snprintf(text, sizeof text, "%" PRIu32, facts->server_count);
    fl_status s = FL_OK;
    if (facts->server_count && !fl_head_set(h, "servers", text))
        return fl_no_memory(d, "the facts");
    for (uint32_t i = 0; !s && i < facts->server_count; i++) {
        const fl_server_facts *f = &facts->server[i];
        s = put_gpus(h, i, f, d);
        snprintf(text, sizeof text, "%" PRIu32 "/%" PRIu64 "/%" PRIu64, f->max_seqs, f->token_budget, f->kv_tokens);
        if (!s)
            s = set(h, i, "limits", text, d);
        snprintf(text, sizeof text, "%" PRId64 "/%" PRId64 "/%.17g", f->ttft_target_ns, f->tbt_target_ns,
                 f->target_share);
        if (!s)
            s = set(h, i, "targets", text, d);
        snprintf(text, sizeof text, "%" PRIu32, f->role);
        if (!s && f->role)
            s = set(h, i, "role", text, d);
    }
    return s;
}

typedef struct source {
    const fl_head *head;
    const char *path;
    char key[48];
} source;

static fl_status wrong(const source *from, fl_diag *d) {
    return fl_fail(d, FL_BAD_INPUT, from->path, fl_head_line(from->head, from->key), 0, "head: %s is missing or wrong",
                   from->key);
}

/* Numbers of at least 0 joined by '/': at most `room`, *count of them; whole ones but the last where `real`. */
static fl_status numbers(source *from, uint32_t server, const char *what, double *v, size_t room, size_t *count,
                         fl_diag *d) {
    snprintf(from->key, sizeof from->key, "server%" PRIu32 ".%s", server, what);
    const char *at = fl_head_get(from->head, from->key);
    *count = 0;
    for (bool more = at != NULL; more;) {
        const size_t size = strcspn(at, "/");
        char one[FL_REAL_TEXT] = "";
        if (*count == room || !size || size >= sizeof one)
            return wrong(from, d);
        memcpy(one, at, size);
        if (fl_real_parse(one, &v[*count]) != FL_NUMBER_OK || !(v[*count] >= 0) || v[*count] >= 0x1p62)
            return wrong(from, d);
        ++*count;
        more = at[size] == '/';
        at += size + more;
    }
    return *count ? FL_OK : wrong(from, d);
}

static bool whole(double v, double most) { return v <= most && v == floor(v); }

static fl_status get(source *from, uint32_t server, uint32_t gpus, fl_server_facts *f, fl_diag *d) {
    double limit[NUMBERS], aim[NUMBERS], *index = calloc(gpus, sizeof *index);
    uint32_t *gpu = calloc(gpus, sizeof *gpu);
    size_t count = 0, n = 0;
    f->gpu = gpu;
    fl_status s = index && gpu ? numbers(from, server, "gpus", index, gpus, &count, d) : fl_no_memory(d, "the facts");
    for (size_t i = 0; !s && i < count; i++) {
        if (!whole(index[i], gpus - 1.0))
            s = wrong(from, d);
        else
            gpu[i] = (uint32_t)index[i];
    }
    free(index);
    f->gpu_count = (uint32_t)count;
    if (!s && !(s = numbers(from, server, "limits", limit, NUMBERS, &n, d)) &&
        (n != NUMBERS || !whole(limit[0], UINT32_MAX) || !whole(limit[1], 0x1p53) || !whole(limit[2], 0x1p53)))
        s = wrong(from, d);
    if (!s && !(s = numbers(from, server, "targets", aim, NUMBERS, &n, d)) &&
        (n != NUMBERS || !whole(aim[0], 0x1p53) || !whole(aim[1], 0x1p53) || aim[2] > 1))
        s = wrong(from, d);
    if (s)
        return s;
    f->max_seqs = (uint32_t)limit[0];
    f->token_budget = (uint64_t)limit[1];
    f->kv_tokens = (uint64_t)limit[2];
    f->ttft_target_ns = (int64_t)aim[0];
    f->tbt_target_ns = (int64_t)aim[1];
    f->target_share = aim[2];
    snprintf(from->key, sizeof from->key, "server%" PRIu32 ".role", server);
    if (!fl_head_get(from->head, from->key))
        return FL_OK;
    if ((s = numbers(from, server, "role", limit, 1, &n, d)) || !whole(limit[0], FL_ROLE_DECODE))
        return s ? s : wrong(from, d);
    f->role = (uint32_t)limit[0];
    return FL_OK;
}

fl_status fl_server_head_get(const fl_head *h, const char *path, fl_facts *facts, fl_diag *d) {
    source from = {.head = h, .path = path, .key = "servers"};
    const char *text = fl_head_get(h, "servers");
    int64_t count = 0;
    if (!text)
        return FL_OK;
    if (fl_int_parse(text, &count) != FL_NUMBER_OK || count < 1 ||
        count > (int64_t)h->count) /* each has keys of its own */
        return wrong(&from, d);
    fl_server_facts *server = calloc((size_t)count, sizeof *server);
    if (!server)
        return fl_no_memory(d, "the facts");
    facts->server = server;
    facts->server_count = (uint32_t)count;
    fl_status s = FL_OK;
    for (uint32_t i = 0; !s && i < facts->server_count; i++)
        s = get(&from, i, facts->gpu_count, &server[i], d);
    if (s)
        fl_server_head_free(facts);
    return s;
}

void fl_server_head_free(fl_facts *facts) {
    for (uint32_t i = 0; i < facts->server_count; i++)
        free((uint32_t *)(uintptr_t)facts->server[i].gpu);
    free((fl_server_facts *)(uintptr_t)facts->server);
    facts->server = NULL;
    facts->server_count = 0;
}

/* ---- policy and parameters ---- */

#define SET "set."
#define TABLE "table."

/* ---- writing ---- */

static bool set_pair(fl_head *h, const char *before, const char *name, const char *text) {
    char key[128];
    snprintf(key, sizeof key, "%s%s", before, name);
    return text && fl_head_set(h, key, text);
}

/* malloc'd; NULL when out of memory. */
static char *table_text(const fl_table *t) {
    char number[FL_REAL_TEXT]; /* the shortest text that reads back as the same double; cJSON's own may not */
    cJSON *all = cJSON_CreateArray();
    bool ok = all != NULL;
    for (uint32_t r = 0; ok && r < t->row_count; r++) {
        cJSON *row = cJSON_CreateArray();
        ok = cJSON_AddItemToArray(all, row) && (!t->key || cJSON_AddItemToArray(row, cJSON_CreateString(t->key[r])));
        for (uint32_t c = 0; ok && c < t->column_count; c++)
            ok = cJSON_AddItemToArray(row,
                                      cJSON_CreateRaw(fl_real_text(t->cell[(size_t)r * t->column_count + c], number)));
    }
    char *text = ok ? cJSON_PrintUnformatted(all) : NULL;
    cJSON_Delete(all);
    return text;
}

static char *list_text(const fl_table *t) {
    char *text = malloc(t->row_count * (FL_REAL_TEXT + 1) + 1), *at = text;
    if (!text)
        return NULL;
    *at = 0;
    for (uint32_t i = 0; i < t->row_count; i++) {
        if (i)
            *at++ = '/';
        fl_real_text(t->cell[i], at);
        at += strlen(at);
    }
    return text;
}

static bool put_param(fl_head *h, const fl_instance *in, uint32_t index) {
    const fl_param *row = &fl_instance_policy(in)->param[index];
    char text[512];
    if (row->type == FL_PARAM_TABLE || row->type == FL_PARAM_LIST) {
        const fl_table t = fl_instance_param_table(in, index);
        char *all = row->type == FL_PARAM_TABLE ? table_text(&t) : list_text(&t);
        const bool ok =
            !t.row_count ? all != NULL : set_pair(h, row->type == FL_PARAM_TABLE ? TABLE : SET, row->name, all);
        free(all);
        return ok;
    }
    fl_instance_param_text(in, index, text, sizeof text);
    return !*text || set_pair(h, SET, row->name, text);
}

fl_status fl_policy_head_put(fl_head *h, const fl_policy *policy, const fl_facts *facts, const fl_layer *layer,
                             size_t layer_count, fl_diag *d) {
    char text[32];
    fl_instance_options o = {.policy = policy, .facts = facts, .layer = layer, .layer_count = layer_count};
    fl_instance *in = NULL;
    bool ok = fl_head_set(h, "policy", policy->name);
    snprintf(text, sizeof text, "%llu", (unsigned long long)facts->seed);
    ok = ok && fl_head_set(h, "seed", text);
    snprintf(text, sizeof text, "%u", facts->gpu_count);
    ok = ok && fl_head_set(h, "gpus", text);
    fl_status s = ok ? fl_server_head_put(facts, h, d) : fl_no_memory(d, "the head");
    s = s ? s : fl_instance_open(&in, &o, d);
    for (uint32_t i = 0; !s && i < policy->param_count; i++)
        s = put_param(h, in, i) ? FL_OK : fl_no_memory(d, "the head");
    fl_instance_close(in);
    return s ? s : fl_stated_to_head(facts, h, d);
}

/* ---- reading ---- */

typedef struct where { /* for diagnostics */
    const char *path, *name;
} where;

static fl_status bad(const where *w, fl_diag *d, uint32_t row, const char *what) {
    return fl_fail(d, FL_BAD_INPUT, w->path, 0, 0, "head: " TABLE "%s, row %u: %s", w->name, row + 1, what);
}

static fl_status take_row(const cJSON *row, bool keyed, uint32_t columns, double *cell, char **key, const where *w,
                          uint32_t number, fl_diag *d) {
    if (!cJSON_IsArray(row) || cJSON_GetArraySize(row) != (int)(columns + keyed))
        return bad(w, d, number, "expected a list of as many cells as the policy's table has columns");
    const cJSON *at = row->child;
    if (keyed) {
        if (!cJSON_IsString(at))
            return bad(w, d, number, "the key is no text, expected text first");
        if (!(*key = strdup(at->valuestring)))
            return fl_no_memory(d, "the head");
        at = at->next;
    }
    for (; at; at = at->next, cell++) {
        if (!cJSON_IsNumber(at))
            return bad(w, d, number, "expected numbers");
        *cell = at->valuedouble;
    }
    return FL_OK;
}

static fl_status take_table(const char *text, const fl_param *row, fl_table *t, const char *path, fl_diag *d) {
    bool keyed;
    const uint32_t columns = fl_param_columns(row, &keyed, NULL);
    const where w = {path, row->name};
    cJSON *all = cJSON_Parse(text);
    const int count = cJSON_IsArray(all) ? cJSON_GetArraySize(all) : -1;
    if (count < 0) {
        cJSON_Delete(all);
        if (fl_memory_failed())
            return fl_no_memory(d, "the head");
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "head: " TABLE "%s: expected a list of rows, as JSON", row->name);
    }
    double *cell = calloc((size_t)count * columns + 1, sizeof *cell);
    char **key = keyed ? calloc((size_t)count + 1, sizeof *key) : NULL;
    *t = (fl_table){
        .cell = cell, .key = (const char *const *)key, .row_count = (uint32_t)count, .column_count = columns};
    fl_status s = cell && (key || !keyed) ? FL_OK : fl_no_memory(d, "the head");
    const cJSON *at = all->child;
    for (uint32_t i = 0; !s && at; i++, at = at->next)
        s = take_row(at, keyed, columns, &cell[(size_t)i * columns], keyed ? &key[i] : NULL, &w, i, d);
    cJSON_Delete(all);
    return s;
}

static const fl_param *table_row(const fl_policy *policy, const char *name) {
    for (uint32_t i = 0; i < policy->param_count; i++)
        if (policy->param[i].type == FL_PARAM_TABLE && !strcmp(policy->param[i].name, name))
            return &policy->param[i];
    return NULL;
}

fl_status fl_policy_head_get(fl_policy_head *p, const fl_head *h, const char *path, const fl_policy *policy,
                             fl_diag *d) {
    *p = (fl_policy_head){.setting = calloc(h->count + 1, sizeof *p->setting),
                          .table = calloc(h->count + 1, sizeof *p->table)};
    p->layer = (fl_layer){.origin = path, .setting = p->setting};
    if (!p->setting || !p->table)
        return fl_no_memory(d, "the head");
    for (size_t i = 0; i < h->count; i++) {
        const fl_head_entry *e = &h->entry[i];
        fl_setting *at = &p->setting[p->layer.count];
        if (!strncmp(e->key, SET, strlen(SET))) {
            *at = (fl_setting){.name = e->key + strlen(SET), .text = e->value};
        } else if (!strncmp(e->key, TABLE, strlen(TABLE))) {
            const char *name = e->key + strlen(TABLE);
            const fl_param *row = table_row(policy, name);
            if (!row)
                return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "head: policy %s has no table '%s'", policy->name, name);
            fl_table *t = &p->table[p->layer.count];
            *at = (fl_setting){.name = name, .table = t};
            fl_status s = take_table(e->value, row, t, path, d);
            if (s) {
                p->layer.count++;
                return s;
            }
        } else {
            continue;
        }
        p->layer.count++;
    }
    return FL_OK;
}

void fl_policy_head_free(fl_policy_head *p) {
    for (size_t i = 0; p->table && i < p->layer.count; i++)
        fl_table_file_free(&p->table[i]);
    free(p->table);
    free(p->setting);
    *p = (fl_policy_head){0};
}
