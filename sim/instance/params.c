/* The parameter struct of a policy, filled from its rows and layers of settings, and its values as text. */
#include "sim/instance/inside.h"

#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct place { /* where a value comes from, for diagnostics */
    const fl_policy *policy;
    const fl_param *row;
    const char *origin;
    fl_diag *d;
} place;

__attribute__((format(printf, 2, 3))) static fl_status wrong(const place *at, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return fl_refuse(at->d, "policy %s: parameter '%s' (%s): %s", at->policy->name, at->row->name, at->origin, text);
}

static bool is_table(const fl_param *row) { return row->type == FL_PARAM_LIST || row->type == FL_PARAM_TABLE; }

static size_t member_size(const fl_param *row) { return is_table(row) ? sizeof(fl_table) : 8; }

/* Members are read and written as bytes: a plug-in's struct is nobody else's type. */
static void put(void *params, const fl_param *row, const void *value) {
    memcpy((char *)params + row->offset, value, member_size(row));
}

static void get(const void *params, const fl_param *row, void *value) {
    memcpy(value, (const char *)params + row->offset, member_size(row));
}

/* ---- tables -------------------------------------------------------------------------------------------------------
 */

static void table_free(fl_table *t) {
    for (uint32_t i = 0; t->key && i < t->row_count; i++)
        free((void *)(uintptr_t)t->key[i]);
    free((void *)(uintptr_t)t->key);
    free((void *)(uintptr_t)t->cell);
    *t = (fl_table){0};
}

static bool table_copy(fl_table *to, const fl_table *from) {
    size_t cells = (size_t)from->row_count * from->column_count;
    *to = (fl_table){.column_count = from->column_count};
    double *cell = calloc(cells ? cells : 1, sizeof *cell);
    if (!cell)
        return false;
    if (cells)
        memcpy(cell, from->cell, cells * sizeof *cell);
    to->cell = cell;
    if (from->key && from->row_count) {
        char **key = calloc(from->row_count, sizeof *key);
        to->key = (const char *const *)key;
        for (; key && to->row_count < from->row_count; to->row_count++)
            if (!(key[to->row_count] = strdup(from->key[to->row_count])))
                break;
        if (to->row_count < from->row_count) {
            table_free(to);
            return false;
        }
    }
    to->row_count = from->row_count;
    return true;
}

static void put_table(void *params, const fl_param *row, const fl_table *t) {
    fl_table old;
    get(params, row, &old);
    table_free(&old);
    put(params, row, t);
}

uint32_t fl_param_columns(const fl_param *row, bool *keyed, const char **columns) {
    const char *text = row->choices ? row->choices : "";
    bool key = strncmp(text, "key:", 4) == 0;
    text += key ? 4 : 0;
    uint32_t count = *text != '\0';
    for (const char *c = text; *c; c++)
        count += *c == '|';
    if (keyed)
        *keyed = key;
    if (columns)
        *columns = text;
    return key && count ? count - 1 : count;
}

/* ---- values -------------------------------------------------------------------------------------------------------
 */

static fl_status check_range(const place *at, double value) {
    char text[FL_REAL_TEXT], low[FL_REAL_TEXT], high[FL_REAL_TEXT];
    if (value >= at->row->min && value <= at->row->max)
        return FL_OK;
    return wrong(at, "%s is out of range, expected %s to %s", fl_real_text(value, text),
                 fl_real_text(at->row->min, low), fl_real_text(at->row->max, high));
}

/* A range or a list of values, as people write them, gets the form that is taken. */
static fl_status not_a(const place *at, const char *what, const char *text) {
    const char after = text[strspn(text, "0123456789.")];
    const bool several = strstr(text, "..") || (after && strchr("/|;:-[", after));
    return several
               ? wrong(at, "'%s' is not %s; %s%s=A/B/C", text, what,
                       is_table(at->row) ? "a list is " : "compare, grid and search try each value of --policy NAME:",
                       at->row->name)
               : wrong(at, "'%s' is not %s", text, what);
}

static fl_status parse_real(const place *at, const char *text, double *value) {
    switch (fl_real_parse(text, value)) {
    case FL_NUMBER_OK:
        return check_range(at, *value);
    case FL_NUMBER_RANGE:
        return wrong(at, "'%s' is too large", text);
    default:
        return not_a(at, "a number", text);
    }
}

static fl_status parse_int(const place *at, const char *text, int64_t *value) {
    char low[FL_REAL_TEXT], high[FL_REAL_TEXT];
    switch (fl_int_parse(text, value)) {
    case FL_NUMBER_OK:
        break;
    case FL_NUMBER_RANGE:
        return wrong(at, "'%s' is too large", text);
    default:
        return not_a(at, "a whole number", text);
    }
    if ((double)*value >= at->row->min && (double)*value <= at->row->max)
        return FL_OK;
    return wrong(at, "%" PRId64 " is out of range, expected %s to %s", *value, fl_real_text(at->row->min, low),
                 fl_real_text(at->row->max, high));
}

static fl_status parse_bool(const place *at, const char *text, int64_t *value) {
    static const char *const words[] = {"0", "1", "false", "true", "off", "on"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0) {
            *value = i & 1;
            return FL_OK;
        }
    return wrong(at, "'%s' is not a switch, expected 0, 1, true, false, on or off", text);
}

/* The length of the choice that begins at *choice. */
static size_t choice_length(const char *choice) { return strcspn(choice, "|"); }

static fl_status parse_choice(const place *at, const char *text, int64_t *value) {
    const char *choice = at->row->choices ? at->row->choices : "";
    for (int64_t i = 0;; i++) {
        size_t length = choice_length(choice);
        if (strlen(text) == length && strncmp(text, choice, length) == 0) {
            *value = i;
            return FL_OK;
        }
        if (choice[length] == '\0')
            break;
        choice += length + 1;
    }
    return wrong(at, "'%s' is not a choice, expected one of %s", text, at->row->choices ? at->row->choices : "none");
}

static fl_status parse_list(const place *at, const char *text, fl_table *list) {
    size_t count = *text != '\0';
    for (const char *c = text; *c; c++)
        count += *c == '/';
    *list = (fl_table){.column_count = 1};
    double *cell = calloc(count ? count : 1, sizeof *cell);
    char *copy = strdup(text), *rest = copy;
    fl_status status = cell && copy && count <= UINT32_MAX ? FL_OK : fl_no_memory(at->d, NULL);
    for (size_t i = 0; !status && i < count; i++)
        status = parse_real(at, strsep(&rest, "/"), &cell[i]);
    free(copy);
    if (status) {
        free(cell);
        return status;
    }
    list->cell = cell;
    list->row_count = (uint32_t)count;
    return FL_OK;
}

static fl_status set_text(const place *at, void *params, const char *text) {
    union {
        double real;
        int64_t whole;
        fl_table table;
    } value;
    fl_status status;
    switch (at->row->type) {
    case FL_PARAM_REAL:
        status = parse_real(at, text, &value.real);
        break;
    case FL_PARAM_INT:
        status = parse_int(at, text, &value.whole);
        break;
    case FL_PARAM_BOOL:
        status = parse_bool(at, text, &value.whole);
        break;
    case FL_PARAM_CHOICE:
        status = parse_choice(at, text, &value.whole);
        break;
    case FL_PARAM_LIST:
        status = parse_list(at, text, &value.table);
        if (!status)
            put_table(params, at->row, &value.table);
        return status;
    default:
        return wrong(at, "'%s' is a text, expected a table: the host must read the file and give its content", text);
    }
    if (!status)
        put(params, at->row, &value);
    return status;
}

static fl_status set_table(const place *at, void *params, const fl_table *table) {
    bool keyed = false, list = at->row->type == FL_PARAM_LIST;
    if (!is_table(at->row))
        return wrong(at, "got a table, expected a single value");
    uint32_t columns = list ? 1 : fl_param_columns(at->row, &keyed, NULL);
    if (table->column_count != columns)
        return wrong(at, "the table has %" PRIu32 " columns of numbers, expected %" PRIu32, table->column_count,
                     columns);
    if (keyed && table->row_count && !table->key)
        return wrong(at, "the table has no text key, expected one");
    for (size_t i = 0; i < (size_t)table->row_count * columns; i++) {
        if (!isfinite(table->cell[i]))
            return wrong(at, "row %zu of the table holds a number that is not finite", i / columns + 1);
        if (list && check_range(at, table->cell[i]))
            return FL_BAD_INPUT;
    }
    fl_table own, given = *table;
    given.key = keyed ? given.key : NULL;
    if (!table_copy(&own, &given))
        return fl_no_memory(at->d, NULL);
    put_table(params, at->row, &own);
    return FL_OK;
}

/* ---- the whole struct ---------------------------------------------------------------------------------------------
 */

static fl_status unknown(const fl_policy *policy, const fl_setting *s, const char *origin, fl_diag *d) {
    const char **names = calloc(policy->param_count + 1U, sizeof *names);
    if (!names)
        return fl_no_memory(d, NULL);
    for (uint32_t i = 0; i < policy->param_count; i++)
        names[i] = policy->param[i].name;
    const char *near = fl_nearest(s->name, names, policy->param_count);
    char all[256] = "";
    for (size_t i = 0, used = 0; i < policy->param_count && used < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : ", expected one of ", names[i]);
    free(names);
    return fl_refuse(d, "policy %s: parameter '%s' (%s): unknown%s%s%s", policy->name, s->name, origin,
                     near ? ", did you mean '" : "", near ? near : all, near ? "'?" : "");
}

static fl_status apply(void *params, const fl_policy *policy, const fl_setting *s, const char *origin, fl_diag *d) {
    for (uint32_t i = 0; i < policy->param_count; i++) {
        if (strcmp(policy->param[i].name, s->name) != 0)
            continue;
        place at = {policy, &policy->param[i], origin, d};
        return s->table ? set_table(&at, params, s->table) : set_text(&at, params, s->text ? s->text : "");
    }
    return unknown(policy, s, origin, d);
}

static fl_status set_default(void *params, const fl_policy *policy, const fl_param *row, fl_diag *d) {
    place at = {policy, row, "default", d};
    if (row->type != FL_PARAM_TABLE)
        return set_text(&at, params, row->standard ? row->standard : "");
    fl_table empty = {.column_count = fl_param_columns(row, NULL, NULL)};
    return set_table(&at, params, &empty);
}

/* Before anything is written: rows come from a plug-in as well. */
static fl_status check_rows(const fl_policy *policy, fl_diag *d) {
    for (uint32_t i = 0; i < policy->param_count; i++) {
        const fl_param *row = &policy->param[i];
        place at = {policy, row, "row", d};
        if (row->offset > policy->param_size || member_size(row) > policy->param_size - row->offset)
            return wrong(&at, "lies outside the parameter struct of %zu bytes", policy->param_size);
    }
    return FL_OK;
}

fl_status fl_params_resolve(void **out, const fl_policy *policy, const fl_layer *layer, size_t layer_count,
                            fl_diag *d) {
    *out = NULL;
    fl_status status = check_rows(policy, d);
    if (status)
        return status;
    void *params = calloc(1, policy->param_size ? policy->param_size : 1);
    if (!params)
        return fl_no_memory(d, NULL);
    for (uint32_t i = 0; i < policy->param_count && !status; i++)
        status = set_default(params, policy, &policy->param[i], d);
    for (size_t i = 0; i < layer_count && !status; i++)
        for (size_t k = 0; k < layer[i].count && !status; k++)
            status = apply(params, policy, &layer[i].setting[k], layer[i].origin, d);
    if (!status)
        *out = params;
    else
        fl_params_free(policy, params);
    return status;
}

void *fl_params_copy(const fl_policy *policy, const void *params) {
    fl_table empty = {0};
    size_t size = policy->param_size ? policy->param_size : 1;
    void *copy = malloc(size);
    if (!copy)
        return NULL;
    memcpy(copy, params, size);
    for (uint32_t i = 0; i < policy->param_count; i++)
        if (is_table(&policy->param[i]))
            put(copy, &policy->param[i], &empty);
    for (uint32_t i = 0; i < policy->param_count; i++) {
        fl_table from, to;
        if (!is_table(&policy->param[i]))
            continue;
        get(params, &policy->param[i], &from);
        if (!table_copy(&to, &from)) {
            fl_params_free(policy, copy);
            return NULL;
        }
        put(copy, &policy->param[i], &to);
    }
    return copy;
}

void fl_params_free(const fl_policy *policy, void *params) {
    for (uint32_t i = 0; params && i < policy->param_count; i++) {
        fl_table t;
        if (!is_table(&policy->param[i]))
            continue;
        get(params, &policy->param[i], &t);
        table_free(&t);
    }
    free(params);
}

/* ---- text ---------------------------------------------------------------------------------------------------------
 */

static void list_text(const fl_table *t, char *buf, size_t size) {
    char number[FL_REAL_TEXT];
    size_t used = 0;
    for (uint32_t i = 0; i < t->row_count && used < size; i++) {
        int n = snprintf(buf + used, size - used, "%s%s", i ? "/" : "", fl_real_text(t->cell[i], number));
        used += n > 0 ? (size_t)n : 0;
    }
}

static void choice_text(const fl_param *row, int64_t index, char *buf, size_t size) {
    const char *choice = row->choices;
    for (int64_t i = 0; i < index; i++)
        choice += choice_length(choice) + 1;
    snprintf(buf, size, "%.*s", (int)choice_length(choice), choice);
}

char *fl_params_text(const fl_policy *policy, const void *params, uint32_t index, char *buf, size_t size) {
    char number[FL_REAL_TEXT];
    const fl_param *row = &policy->param[index];
    double real;
    int64_t whole;
    fl_table table;
    if (size)
        *buf = '\0';
    switch (row->type) {
    case FL_PARAM_REAL:
        get(params, row, &real);
        snprintf(buf, size, "%s", fl_real_text(real, number));
        break;
    case FL_PARAM_INT:
    case FL_PARAM_BOOL:
        get(params, row, &whole);
        snprintf(buf, size, "%" PRId64, whole);
        break;
    case FL_PARAM_CHOICE:
        get(params, row, &whole);
        choice_text(row, whole, buf, size);
        break;
    case FL_PARAM_LIST:
        get(params, row, &table);
        list_text(&table, buf, size);
        break;
    case FL_PARAM_TABLE:
        get(params, row, &table);
        snprintf(buf, size, "%" PRIu32 "x%" PRIu32 " table", table.row_count, table.column_count);
        break;
    }
    return buf;
}

fl_table fl_params_table(const fl_policy *policy, const void *params, uint32_t index) {
    fl_table table;
    get(params, &policy->param[index], &table);
    return table;
}

/* The ladder of a parameter's clocks, by its name. */
static fl_ladder ladder_of(const fl_facts *facts, const char *name, uint32_t gpu, char of[48]) {
    const bool cpu = strstr(name, "cpu_"), mem = strstr(name, "mem_");
    const int used = snprintf(of, 48, "the %s ladder", cpu ? "CPU's" : mem ? "memory" : "SM");
    if (!cpu && facts->gpu_count > 1)
        snprintf(of + used, 48 - (size_t)used, " of GPU %" PRIu32, gpu);
    return cpu ? facts->host.cpu : mem ? facts->gpu[gpu].mem : facts->gpu[gpu].sm;
}

/* Writes which clock of a parameter is off its ladder. False: each is on it. The clock of a table is its last column;
 * "gpu" as the first says whose it is. */
static bool is_off(const fl_facts *facts, const void *params, const fl_param *row, char buf[FL_OFF_LADDER_TEXT]) {
    double real;
    fl_table t = {.cell = &real, .row_count = 1, .column_count = 1};
    if (is_table(row))
        get(params, row, &t);
    else
        get(params, row, &real);
    const bool own = row->choices && !strncmp(row->choices, "gpu|", 4);
    for (uint32_t i = 0; i < t.row_count; i++) {
        const double *cell = t.cell + (size_t)i * t.column_count, mhz = cell[t.column_count - 1];
        for (uint32_t gpu = 0; gpu < facts->gpu_count; gpu++) {
            char of[48];
            const fl_ladder l = ladder_of(facts, row->name, gpu, of);
            if ((own && cell[0] != gpu) || !(mhz > 0) || !l.count || fl_ladder_has(l, mhz))
                continue;
            fl_off_ladder(mhz, of, l.mhz, l.count, buf);
            return true;
        }
    }
    return false;
}

char *fl_params_refusal(const fl_policy *policy, const void *params, const fl_facts *facts, const char *refusal,
                        char buf[FL_REFUSAL_TEXT]) {
    char text[FL_OFF_LADDER_TEXT];
    for (uint32_t i = 0; i < policy->param_count && strstr(refusal, "ladder"); i++) {
        const fl_param *row = &policy->param[i];
        const size_t named = strlen(row->name);
        const bool clocks = !strcmp(row->unit, "MHz") && (row->type == FL_PARAM_REAL || is_table(row));
        if (!clocks || strncmp(refusal, row->name, named) != 0 || refusal[named] != ' ' ||
            !is_off(facts, params, row, text))
            continue;
        snprintf(buf, FL_REFUSAL_TEXT, "%s: %s", row->name, text);
        return buf;
    }
    const fl_gpu_facts *gpu = facts->gpu_count ? &facts->gpu[0] : NULL;
    if (strstr(refusal, "in its range") && gpu && gpu->power_max_w > 0)
        snprintf(buf, FL_REFUSAL_TEXT, "%s: %g to %g W", refusal, gpu->power_min_w, gpu->power_max_w);
    else
        snprintf(buf, FL_REFUSAL_TEXT, "%s", refusal);
    return buf;
}
