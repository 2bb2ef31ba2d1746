#include "harness/input/spec.h"

#include "harness/base/table_file.h"
#include "harness/input/plugin.h"

#include <stdlib.h>
#include <string.h>

void fl_spec_free(fl_spec *s) {
    for (size_t i = 0; s->table && i < s->layer.count; i++)
        fl_table_file_free(&s->table[i]);
    free(s->table);
    free(s->file);
    free((fl_setting *)(uintptr_t)s->layer.setting);
    free(s->label);
    fl_texts_free(&s->only);
    free(s->text);
    *s = (fl_spec){0};
}

static const fl_param *find_row(const fl_policy *p, const char *name) {
    for (uint32_t i = 0; i < p->param_count; i++)
        if (!strcmp(p->param[i].name, name))
            return &p->param[i];
    return NULL;
}

/* One "parameter=value" in place: the '=' becomes the end of the name. */
static fl_status add(fl_spec *s, char *pair, fl_setting *setting, size_t *count, fl_diag *d) {
    char *equals = strchr(pair, '=');
    if (!equals || equals == pair)
        return fl_fail(d, FL_BAD_INPUT, NULL, 0, 0, "policy %s: '%s', expected parameter=value", s->policy->name, pair);
    *equals = 0;
    fl_setting *at = &setting[(*count)++];
    *at = (fl_setting){.name = pair, .text = equals + 1};
    s->layer.count = *count;
    const fl_param *row = find_row(s->policy, pair);
    if (!row || row->type != FL_PARAM_TABLE)
        return FL_OK;
    fl_status status = fl_table_file_read(equals + 1, row, &s->table[*count - 1], d);
    s->file[*count - 1] = at->text;
    at->text = NULL;
    at->table = &s->table[*count - 1];
    return status;
}

static fl_status open_pairs(const char *label, const char *name, char **pair, size_t pairs, const char *origin,
                            fl_spec *s, fl_diag *d) {
    s->label = strdup(label);
    fl_setting *setting = calloc(pairs + 1, sizeof *setting);
    s->table = calloc(pairs + 1, sizeof *s->table);
    s->file = calloc(pairs + 1, sizeof *s->file);
    s->layer = (fl_layer){.origin = origin, .setting = setting};
    if (!s->label || !setting || !s->table || !s->file)
        return fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory");
    fl_status status = fl_policy_open(name, &s->policy, d);
    s->plugin = !status && strcmp(s->policy->name, name) != 0 ? name : NULL;
    size_t count = 0;
    for (size_t i = 0; !status && i < pairs; i++)
        status = add(s, pair[i], setting, &count, d);
    return status;
}

enum { PAIRS_MAX = 64 };

/* NAME:a=1,b=2 in place: the name ends at the colon, each pair becomes an entry. */
static size_t split(char *text, char **pair) {
    size_t pairs = 0;
    char *colon = strchr(text, ':'), *save = NULL;
    if (colon)
        *colon = 0;
    for (char *p = colon ? strtok_r(colon + 1, ",", &save) : NULL; p && pairs < PAIRS_MAX;
         p = strtok_r(NULL, ",", &save))
        pair[pairs++] = p;
    return pairs;
}

fl_status fl_spec_open_set(const char *text, const fl_texts *set, fl_spec *s, fl_diag *d) {
    *s = (fl_spec){0};
    size_t size = strlen(text) + 1;
    for (size_t i = 0; set && i < set->count; i++)
        size += strlen(set->item[i]) + 1;
    s->text = malloc(size);
    char **pair = calloc(PAIRS_MAX + (set ? set->count : 0), sizeof *pair);
    fl_status status = s->text && pair ? FL_OK : fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory");
    if (!status) {
        char *at = stpcpy(s->text, text) + 1;
        size_t pairs = split(s->text, pair);
        for (size_t i = 0; set && i < set->count; i++) {
            pair[pairs++] = at;
            at = stpcpy(at, set->item[i]) + 1;
        }
        status = open_pairs(text, s->text, pair, pairs, set ? "--set" : "--policy", s, d);
    }
    free(pair);
    if (status)
        fl_spec_free(s);
    return status;
}

fl_status fl_spec_open(const char *text, fl_spec *s, fl_diag *d) { return fl_spec_open_set(text, NULL, s, d); }
