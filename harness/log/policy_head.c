#include "harness/log/policy_head.h"

#include "harness/base/cli/table_file.h"
#include "harness/log/facts_head.h"
#include "harness/log/server_head.h"
#include "sim/instance/params.h"
#include "traces/io/numbers.h"
#include "traces/io/memory.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
