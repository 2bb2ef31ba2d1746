/* Rows of keys: check a file, print the page about it, make its JSON Schema. */
#include "harness/base/json/json.h"

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 16, WORD_MAX = 32, NAMES_MAX = 64, OBJECTS_MAX = 24 };

/* ---- words ---- */

typedef struct words {
    char text[WORDS_MAX][WORD_MAX];
    const char *item[WORDS_MAX];
    size_t count;
} words;

static void split(const char *list, words *w) {
    w->count = 0;
    for (const char *at = list; at && w->count < WORDS_MAX;) {
        const size_t size = strcspn(at, "|");
        snprintf(w->text[w->count], WORD_MAX, "%.*s", (int)size, at);
        w->item[w->count] = w->text[w->count];
        w->count++;
        at = at[size] ? at + size + 1 : NULL;
    }
}

/* ---- checking ---- */

static fl_status check_word(const fl_key *k, const fl_json *at, fl_diag *d) {
    words w;
    split(k->words, &w);
    const char *text = at->node->valuestring;
    for (size_t i = 0; i < w.count; i++)
        if (!strcmp(text, w.item[i]))
            return FL_OK;
    const char *near = fl_nearest(text, w.item, w.count);
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < w.count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 !i                 ? ""
                                 : i + 1 == w.count ? " or "
                                                    : ", ",
                                 w.item[i]);
    return near ? fl_json_fail(at, d, "'%s', did you mean '%s'?", text, near)
                : fl_json_fail(at, d, "'%s', expected %s", text, list);
}

static fl_status check_number(const fl_key *k, const fl_json *at, fl_diag *d) {
    double value;
    int64_t whole;
    char text[FL_SHARE_TEXT];
    if (k->share && cJSON_IsNumber(at->node) && at->node->valuedouble > 1)
        return fl_json_fail(at, d, "%s", fl_share_text(at->node->valuedouble, text));
    return k->type & FL_KEY_INT ? fl_json_int(at, (int64_t)k->min, (int64_t)k->max, &whole, d)
                                : fl_json_real(at, k->min, k->max, &value, d);
}

static fl_status check_numbers(const fl_json *at, fl_diag *d) {
    double value;
    fl_status s = FL_OK;
    for (fl_json e = fl_json_first(at); !s && e.node; e = fl_json_next(at, &e))
        s = fl_json_real(&e, -HUGE_VAL, HUGE_VAL, &value, d);
    return s;
}

static const char *expected(unsigned type) {
    return type & FL_KEY_OBJECT    ? type & (FL_KEY_TEXT | FL_KEY_FILE) ? "a text or an object" : "an object"
           : type & FL_KEY_BY_NAME ? "a number, or an object with one for each workload"
           : type & FL_KEY_NUMBERS ? "a number, a list of numbers or null"
           : type & FL_KEY_BOOL    ? type & FL_KEY_TEXT ? "true, false or a text" : "true or false"
           : type & (FL_KEY_TEXT | FL_KEY_FILE) ? "a text"
                                                : "a number";
}

static fl_status check_value(const fl_key *k, const fl_json *at, fl_diag *d) {
    const cJSON *n = at->node;
    if (cJSON_IsString(n) && k->type & (FL_KEY_TEXT | FL_KEY_FILE))
        return !*n->valuestring ? fl_json_fail(at, d, "empty, expected a text")
               : k->words       ? check_word(k, at, d)
                                : FL_OK;
    if (cJSON_IsNumber(n) && k->type & (FL_KEY_REAL | FL_KEY_INT))
        return check_number(k, at, d);
    if ((cJSON_IsBool(n) && k->type & FL_KEY_BOOL) || (cJSON_IsNull(n) && k->type & FL_KEY_NULL))
        return FL_OK;
    if (cJSON_IsArray(n) && k->type & FL_KEY_NUMBERS)
        return check_numbers(at, d);
    fl_status s = FL_OK;
    if (cJSON_IsObject(n) && k->type & FL_KEY_BY_NAME) {
        for (fl_json e = fl_json_first(at); !s && e.node; e = fl_json_next(at, &e))
            s = cJSON_IsNumber(e.node) ? check_number(k, &e, d) : fl_json_fail(&e, d, "expected a number");
        return s;
    }
    if (cJSON_IsObject(n) && k->type & FL_KEY_OBJECT)
        return fl_keys_check(k->of, at, d);
    return fl_json_fail(at, d, "%s, expected %s", fl_json_type(n), expected(k->type));
}

static fl_status check_key(const fl_key *k, const fl_json *at, fl_diag *d) {
    if (k->shape == FL_KEY_ONE)
        return check_value(k, at, d);
    const bool list = k->shape == FL_KEY_LIST;
    if (list ? !cJSON_IsArray(at->node) : !cJSON_IsObject(at->node))
        return fl_json_fail(at, d, list ? "expected a list" : "expected an object");
    fl_status s = FL_OK;
    for (fl_json e = fl_json_first(at); !s && e.node; e = fl_json_next(at, &e))
        s = check_value(k, &e, d);
    return s;
}

static const fl_key *find(const fl_keys *keys, const char *name) {
    name += keys->behind && name[0] == '+';
    for (size_t i = 0; i < keys->count; i++)
        if (!strcmp(keys->key[i].name, name))
            return &keys->key[i];
    return keys->any;
}

static fl_status refuse_key(const fl_keys *keys, const fl_json *at, fl_diag *d) {
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (; count < keys->count && count < NAMES_MAX; count++)
        names[count] = keys->key[count].name;
    return fl_json_unknown(at, names, count, d);
}

fl_status fl_keys_check(const fl_keys *keys, const fl_json *at, fl_diag *d) {
    fl_json ignored;
    fl_status s = fl_json_object(at, d);
    for (fl_json e = s ? (fl_json){0} : fl_json_first(at); !s && e.node; e = fl_json_next(at, &e)) {
        const fl_key *k = find(keys, e.node->string);
        s = k ? check_key(k, &e, d) : refuse_key(keys, &e, d);
    }
    for (size_t i = 0; !s && i < keys->count; i++)
        if (keys->key[i].required)
            s = fl_json_get(at, keys->key[i].name, &ignored, d);
    return s;
}

/* ---- the page ---- */

enum { KEY_COLUMN = 23 };

static void print_type(const fl_key *k, FILE *out) {
    static const struct {
        unsigned bit;
        const char *name;
    } bits[] = {{FL_KEY_TEXT, "text"},          {FL_KEY_FILE, "path"},
                {FL_KEY_REAL, "number"},        {FL_KEY_INT, "whole number"},
                {FL_KEY_BOOL, "true or false"}, {FL_KEY_NUMBERS, "list of numbers"},
                {FL_KEY_OBJECT, NULL},          {FL_KEY_BY_NAME, "object of numbers by workload"},
                {FL_KEY_NULL, "null"}};
    if (k->shape != FL_KEY_ONE)
        fputs(k->shape == FL_KEY_LIST ? "list, each: " : "object, for each name: ", out);
    const char *before = "";
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        if (!(k->type & bits[i].bit))
            continue;
        fprintf(out, "%s%s", before, bits[i].name ? bits[i].name : "object '");
        if (!bits[i].name)
            fprintf(out, "%s'", k->of->name);
        if (bits[i].bit == FL_KEY_TEXT && k->words) {
            words w;
            split(k->words, &w);
            for (size_t n = 0; n < w.count; n++)
                fprintf(out, "%s%s", n ? ", " : ": ", w.item[n]);
        }
        before = " or ";
    }
    const bool low = k->min > -HUGE_VAL, high = k->max < HUGE_VAL;
    if (k->type & (FL_KEY_REAL | FL_KEY_INT) && (low || high)) {
        char a[FL_REAL_TEXT], b[FL_REAL_TEXT];
        fl_real_text(k->min, a);
        fl_real_text(k->max, b);
        if (k->min < k->max)
            fprintf(out, high ? " from %s to %s" : " from %s", a, b);
        else
            fprintf(out, ": %s", a);
    }
    if (*k->unit)
        fprintf(out, ", in %s", k->unit);
}

/* The type in a line, and below it what the key does. */
static void print_row(const fl_page *page, const char *name, const fl_key *k, bool named) {
    char *type = NULL;
    size_t size;
    FILE *out = open_memstream(&type, &size);
    if (!out)
        return; /* fl_memory_failed() tells */
    print_type(k, out);
    if (named)
        fprintf(out, "%s%s%s", k->required ? "; must be there" : "", k->standard ? "; default: " : "",
                k->standard ? k->standard : "");
    fclose(out);
    if (type) {
        fl_page_row(page, KEY_COLUMN, name, type);
        fl_page_below(page, KEY_COLUMN, k->help);
    }
    free(type);
}

static void print_rows(const fl_keys *keys, const fl_page *page) {
    for (size_t i = 0; i < keys->count; i++)
        print_row(page, keys->key[i].name, &keys->key[i], true);
    if (keys->any)
        print_row(page, "any other name", keys->any, false);
}

/* Adds every object that is reached, once, in the order in which a reader meets them. */
static void collect(const fl_keys *keys, const fl_keys **all, size_t *count) {
    for (size_t i = 0; i < *count; i++)
        if (all[i] == keys)
            return;
    if (*count == OBJECTS_MAX)
        return;
    all[(*count)++] = keys;
    for (size_t i = 0; i < keys->count; i++)
        if (keys->key[i].of)
            collect(keys->key[i].of, all, count);
    if (keys->any && keys->any->of)
        collect(keys->any->of, all, count);
}

void fl_keys_print(const fl_keys *keys, FILE *out) {
    const fl_keys *all[OBJECTS_MAX];
    size_t count = 0;
    collect(keys, all, &count);
    const fl_page page = {.out = out, .width = fl_terminal_width(out)};
    for (size_t i = 0; i < count; i++) {
        char head[1024];
        (void)snprintf(head, sizeof head, "%s: %s", all[i]->name, all[i]->help);
        if (i)
            fl_page_gap(&page);
        fl_page_fill(&page, 0, 4, head);
        print_rows(all[i], &page);
    }
}

/* ---- the schema ---- */

static cJSON *typed(const char *type) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "type", type);
    return o;
}

static cJSON *number_schema(const fl_key *k) {
    cJSON *o = typed(k->type & FL_KEY_INT ? "integer" : "number");
    if (k->min > -HUGE_VAL)
        cJSON_AddNumberToObject(o, "minimum", k->min);
    if (k->max < HUGE_VAL)
        cJSON_AddNumberToObject(o, "maximum", k->max);
    return o;
}

static cJSON *text_schema(const fl_key *k) {
    cJSON *o = typed("string");
    cJSON_AddNumberToObject(o, "minLength", 1);
    if (k->words) {
        words w;
        split(k->words, &w);
        cJSON_AddItemToObject(o, "enum", cJSON_CreateStringArray(w.item, (int)w.count));
    }
    return o;
}

static cJSON *reference(const fl_keys *of) {
    char text[80];
    snprintf(text, sizeof text, "#/definitions/%s", of->name);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "$ref", text);
    return o;
}

static cJSON *value_schema(const fl_key *k) {
    cJSON *any = cJSON_CreateArray(), *o;
    if (k->type & (FL_KEY_TEXT | FL_KEY_FILE))
        cJSON_AddItemToArray(any, text_schema(k));
    if (k->type & (FL_KEY_REAL | FL_KEY_INT))
        cJSON_AddItemToArray(any, number_schema(k));
    if (k->type & FL_KEY_BOOL)
        cJSON_AddItemToArray(any, typed("boolean"));
    if (k->type & FL_KEY_NULL)
        cJSON_AddItemToArray(any, typed("null"));
    if (k->type & FL_KEY_NUMBERS) {
        cJSON_AddItemToArray(any, o = typed("array"));
        cJSON_AddItemToObject(o, "items", typed("number"));
    }
    if (k->type & FL_KEY_BY_NAME) {
        cJSON_AddItemToArray(any, o = typed("object"));
        cJSON_AddItemToObject(o, "additionalProperties", number_schema(k));
    }
    if (k->type & FL_KEY_OBJECT)
        cJSON_AddItemToArray(any, reference(k->of));
    if (cJSON_GetArraySize(any) == 1) {
        o = cJSON_DetachItemFromArray(any, 0);
        cJSON_Delete(any);
        return o;
    }
    o = cJSON_CreateObject();
    cJSON_AddItemToObject(o, "anyOf", any);
    return o;
}

static cJSON *key_schema(const fl_key *k) {
    char text[1024];
    cJSON *value = value_schema(k), *o = value;
    if (k->shape != FL_KEY_ONE) {
        o = typed(k->shape == FL_KEY_LIST ? "array" : "object");
        cJSON_AddItemToObject(o, k->shape == FL_KEY_LIST ? "items" : "additionalProperties", value);
    } else if (cJSON_HasObjectItem(o, "$ref")) { /* draft 7 reads nothing beside a reference */
        cJSON *all = cJSON_CreateArray();
        cJSON_AddItemToArray(all, o);
        o = cJSON_CreateObject();
        cJSON_AddItemToObject(o, "allOf", all);
    }
    snprintf(text, sizeof text, "%s%s%s%s%s", k->help, *k->unit ? "; in " : "", k->unit,
             k->standard ? "; default: " : "", k->standard ? k->standard : "");
    cJSON_AddStringToObject(o, "description", text);
    return o;
}

static cJSON *keys_schema(const fl_keys *keys) {
    cJSON *o = typed("object"), *required = cJSON_CreateArray();
    cJSON_AddStringToObject(o, "description", keys->help);
    cJSON *properties = cJSON_AddObjectToObject(o, "properties");
    for (size_t i = 0; i < keys->count; i++) {
        char behind[80];
        cJSON_AddItemToObject(properties, keys->key[i].name, key_schema(&keys->key[i]));
        snprintf(behind, sizeof behind, "+%s", keys->key[i].name);
        if (keys->behind)
            cJSON_AddItemToObject(properties, behind, key_schema(&keys->key[i]));
        if (keys->key[i].required)
            cJSON_AddItemToArray(required, cJSON_CreateString(keys->key[i].name));
    }
    if (keys->any)
        cJSON_AddItemToObject(o, "additionalProperties", key_schema(keys->any));
    else
        cJSON_AddBoolToObject(o, "additionalProperties", false);
    if (cJSON_GetArraySize(required))
        cJSON_AddItemToObject(o, "required", required);
    else
        cJSON_Delete(required);
    return o;
}

cJSON *fl_keys_schema(const fl_keys *keys, const char *title) {
    const fl_keys *all[OBJECTS_MAX];
    size_t count = 0;
    collect(keys, all, &count);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "$schema", "http://json-schema.org/draft-07/schema#");
    cJSON_AddStringToObject(o, "title", title);
    cJSON *all_of = cJSON_AddArrayToObject(o, "allOf"), *definitions = cJSON_AddObjectToObject(o, "definitions");
    cJSON_AddItemToArray(all_of, reference(keys));
    for (size_t i = 0; i < count; i++)
        cJSON_AddItemToObject(definitions, all[i]->name, keys_schema(all[i]));
    return o;
}
