/* Baselines as files. */
#include "harness/study/grid/inside.h"

#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/study/grid/grid.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static fl_status read_texts(const fl_json *root, const char *key, char ***out, size_t *count, fl_diag *d) {
    fl_json list;
    fl_status s = fl_json_get_array(root, key, &list, d);
    if (s)
        return s;
    *out = fl_must(calloc(fl_json_count(&list) + 1, sizeof **out));
    for (fl_json at = fl_json_first(&list); at.node; at = fl_json_next(&list, &at)) {
        const char *text = cJSON_GetStringValue(at.node);
        if (!text)
            return fl_json_fail(&at, d, "not a text, expected one");
        (*out)[(*count)++] = fl_must(strdup(text));
    }
    return FL_OK;
}

static fl_status read_values(const fl_json *list, size_t metrics, fl_gate_row *row, fl_diag *d) {
    size_t m = 0;
    if (fl_json_count(list) != metrics)
        return fl_json_fail(list, d, "%zu lists, expected one for each of %zu metrics", fl_json_count(list), metrics);
    for (fl_json one = fl_json_first(list); one.node; one = fl_json_next(list, &one), m++) {
        if (!cJSON_IsArray(one.node))
            return fl_json_fail(&one, d, "not a list, expected the values of one metric");
        const size_t n = fl_json_count(&one);
        if (!m) {
            row->seeds = n;
            row->value = fl_must(malloc((metrics * n + 1) * sizeof *row->value));
        }
        if (n != row->seeds)
            return fl_json_fail(&one, d, "%zu values, expected %zu, one for each seed", n, row->seeds);
        size_t i = 0;
        for (fl_json x = fl_json_first(&one); x.node; x = fl_json_next(&one, &x)) {
            double *to = &row->value[m * n + i++];
            *to = NAN;
            fl_status s = cJSON_IsNull(x.node) ? FL_OK : fl_json_real(&x, -HUGE_VAL, HUGE_VAL, to, d);
            if (s)
                return s;
        }
    }
    return FL_OK;
}

static fl_status read_row(const fl_json *at, fl_gate_record *r, fl_diag *d) {
    const char *policy, *workload, *platform;
    fl_json values;
    fl_status s = fl_json_object(at, d);
    if (!s)
        s = fl_json_get_text(at, "policy", &policy, d);
    if (!s)
        s = fl_json_get_text(at, "workload", &workload, d);
    if (!s)
        s = fl_json_get_text(at, "platform", &platform, d);
    if (!s)
        s = fl_json_get_array(at, "values", &values, d);
    return s ? s : read_values(&values, r->metric_count, fl_gate_add_row(r, policy, workload, platform), d);
}

fl_status fl_gate_read(const char *path, fl_gate_record *r, fl_diag *d) {
    cJSON *tree = NULL;
    const char *experiment;
    int64_t version;
    fl_json rows;
    *r = (fl_gate_record){0};
    fl_status s = fl_json_read(path, &tree, d);
    if (s)
        return s;
    const fl_json root = fl_json_root(tree, path);
    if ((s = fl_json_get_int(&root, "foldline_baseline", 1, 1, &version, d)) ||
        (s = fl_json_get_text(&root, "experiment", &experiment, d)) ||
        (s = fl_json_get_int(&root, "seed", 1, INT64_C(9000000000000000), &r->seed, d)) ||
        (fl_json_has(&root, "streams") && (s = fl_json_get_int(&root, "streams", 1, 1000000, &r->streams, d))) ||
        (s = read_texts(&root, "metrics", &r->metric, &r->metric_count, d)) ||
        (s = read_texts(&root, "fail_if", &r->fail_if, &r->fail_if_count, d)) ||
        (fl_json_has(&root, "bounds") && (s = read_texts(&root, "bounds", &r->bound, &r->bound_count, d))) ||
        (s = fl_json_get_array(&root, "rows", &rows, d)))
        goto out;
    r->experiment = fl_must(strdup(experiment));
    for (fl_json at = fl_json_first(&rows); !s && at.node; at = fl_json_next(&rows, &at))
        s = read_row(&at, r, d);
    if (!s)
        r->provenance = cJSON_DetachItemFromObject(tree, "provenance");
out:
    cJSON_Delete(tree);
    if (s)
        fl_gate_record_free(r);
    return s;
}

/* ---- a result in place of a baseline ---- */

enum { WORKLOAD, POLICY, PLATFORM, SEED, DRAW, NAMES };

typedef struct result {
    fl_gate_record *r;
    double *value;             /* of each metric, in one row */
    size_t at[NAMES], *metric; /* fields of the row; SIZE_MAX: no such column */
    size_t width;              /* 0: the head is still to come */
} result;

static fl_status read_head(result *x, const fl_csv_row *row, fl_diag *d) {
    static const char *const name[NAMES] = {"workload", "policy", "platform", "seed", "draw"};
    x->width = row->count;
    for (size_t k = 0; k < NAMES + x->r->metric_count; k++) {
        const char *wanted = k < NAMES ? name[k] : x->r->metric[k - NAMES];
        size_t i = 0;
        while (i < row->count && strcmp(row->field[i].text, wanted) != 0)
            i++;
        const bool there = i < row->count;
        if (!there && k != DRAW)
            return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 0, "no column '%s', expected a result that has it",
                           wanted);
        *(k < NAMES ? &x->at[k] : &x->metric[k - NAMES]) = there ? i : SIZE_MAX;
    }
    return FL_OK;
}

static fl_status read_result(void *user, const fl_csv_row *row, fl_diag *d) {
    result *x = user;
    fl_gate_record *r = x->r;
    if (!x->width)
        return read_head(x, row, d);
    fl_status s = fl_columns_width(row, x->width, d);
    if (s || !strcmp(row->field[x->at[WORKLOAD]].text, "mean"))
        return s;
    for (size_t m = 0; !s && m < r->metric_count; m++) {
        x->value[m] = NAN;
        if (strcmp(row->field[x->metric[m]].text, "n/a") != 0)
            s = fl_field_real_or_nan(row, x->metric[m], r->metric[m], -HUGE_VAL, HUGE_VAL, &x->value[m], d);
    }
    int64_t seed, draw = 0;
    if (s || (s = fl_field_int(row, x->at[SEED], "seed", 0, INT64_MAX, &seed, d)))
        return s;
    if (x->at[DRAW] != SIZE_MAX && fl_int_parse(row->field[x->at[DRAW]].text, &draw) != FL_NUMBER_OK)
        draw = 0; /* none */
    const char *policy = row->field[x->at[POLICY]].text, *workload = row->field[x->at[WORKLOAD]].text;
    return fl_gate_add_run(r, policy, workload, row->field[x->at[PLATFORM]].text,
                           (fl_gate_run){(uint64_t)draw, (uint64_t)seed}, x->value)
               ? FL_OK
               : fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1,
                         "workload '%.80s' and policy '%.80s' with this platform and seed stand above too, "
                         "expected each row once",
                         workload, policy);
}

fl_status fl_gate_read_result(const char *path, fl_gate_record *r, fl_diag *d) {
    const fl_csv_options options = {.trim = true};
    result x = {.r = r,
                .value = fl_must(calloc(r->metric_count + 1, sizeof *x.value)),
                .metric = fl_must(calloc(r->metric_count + 1, sizeof *x.metric))};
    const fl_status s = fl_csv_read(path, &options, NULL, read_result, &x, d);
    free(x.value);
    free(x.metric);
    return s;
}

/* ---- where a record is from ---- */

static const char *text_of(const cJSON *object, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(object, key));
    return text ? text : "";
}

/* The input `of` of a record among those at hand: by its name, or, where the gate runs in another folder, as often by
 * the last part of the name as it comes in the record. */
static const cJSON *same_input(const cJSON *recorded, const cJSON *of, const cJSON *inputs) {
    const char *name = text_of(of, "file"), *last = basename(name);
    const cJSON *in;
    size_t before = 0;
    cJSON_ArrayForEach(in, inputs) if (!strcmp(text_of(in, "file"), name)) return in;
    for (in = recorded->child; in && in != of; in = in->next)
        before += !strcmp(basename(text_of(in, "file")), last);
    cJSON_ArrayForEach(in, inputs) if (!strcmp(basename(text_of(in, "file")), last) && !before--) return in;
    return NULL;
}

fl_status fl_gate_same_origin(const fl_gate_record *old, const char *path, const cJSON *provenance, fl_diag *d) {
    const char *then = text_of(old->provenance, "foldline"), *now = text_of(provenance, "foldline");
    const cJSON *inputs = cJSON_GetObjectItem(provenance, "inputs"), *in;
    if (!*then)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                       "does not name the experiment it was recorded from, expected a baseline that --bless wrote");
    if (strcmp(then, now) != 0)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                       "recorded by foldline %s, but this is foldline %s, expected the same version; --bless records "
                       "a new baseline",
                       then, now);
    const cJSON *recorded = cJSON_GetObjectItem(old->provenance, "inputs");
    cJSON_ArrayForEach(in, recorded) {
        const char *name = text_of(in, "file");
        const cJSON *other = same_input(recorded, in, inputs);
        if (cJSON_IsTrue(cJSON_GetObjectItem(in, "plug_in")) ||
            (other && !strcmp(text_of(other, "sha256"), text_of(in, "sha256"))))
            continue;
        if (!other)
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                           "recorded from %s as well, which the experiment no longer uses; --bless records a new "
                           "baseline",
                           name);
        return fl_fail(d, FL_BAD_INPUT, text_of(other, "file"), 0, 0,
                       "not the file that %s was recorded from (SHA-256 %.12s..., then %.12s...), expected the same; "
                       "--bless records it anew",
                       path, text_of(other, "sha256"), text_of(in, "sha256"));
    }
    return FL_OK;
}

static void add_texts(cJSON *root, const char *key, char *const *text, size_t count) {
    cJSON *list = cJSON_AddArrayToObject(root, key);
    for (size_t i = 0; i < count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(text[i]));
}

fl_status fl_gate_write(const char *path, const fl_gate_record *r, const cJSON *provenance, fl_diag *d) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "foldline_baseline", 1);
    cJSON_AddStringToObject(root, "experiment", r->experiment);
    cJSON_AddNumberToObject(root, "seed", (double)r->seed);
    if (r->streams)
        cJSON_AddNumberToObject(root, "streams", (double)r->streams);
    add_texts(root, "fail_if", r->fail_if, r->fail_if_count);
    if (r->bound_count)
        add_texts(root, "bounds", r->bound, r->bound_count);
    add_texts(root, "metrics", r->metric, r->metric_count);
    cJSON *rows = cJSON_AddArrayToObject(root, "rows");
    for (size_t i = 0; i < r->row_count; i++) {
        const fl_gate_row *row = &r->row[i];
        cJSON *o = cJSON_CreateObject(), *values;
        cJSON_AddStringToObject(o, "policy", row->policy);
        cJSON_AddStringToObject(o, "workload", row->workload);
        cJSON_AddStringToObject(o, "platform", row->platform);
        values = cJSON_AddArrayToObject(o, "values");
        for (size_t m = 0; m < r->metric_count; m++) {
            cJSON *one = cJSON_CreateArray();
            for (size_t k = 0; k < row->seeds; k++) {
                const double x = row->value[m * row->seeds + k];
                char text[FL_REAL_TEXT]; /* comes back as it is, which cJSON's 15 digits need not */
                cJSON_AddItemToArray(one, isfinite(x) ? cJSON_CreateRaw(fl_real_text(x, text)) : cJSON_CreateNull());
            }
            cJSON_AddItemToArray(values, one);
        }
        cJSON_AddItemToArray(rows, o);
    }
    cJSON_AddItemReferenceToObject(root, "provenance", (cJSON *)(uintptr_t)provenance);
    fl_status s = fl_json_write(path, root, d);
    cJSON_Delete(root);
    return s;
}
