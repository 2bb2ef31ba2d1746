#include "harness/report/data/bounds.h"

#include "harness/study/compare/provenance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct judge {
    fl_report_data *r;
    size_t at[FL_PROMISES_MAX], workload, breaks, row; /* SIZE_MAX: no such column */
    double scale[FL_PROMISES_MAX];
    bool headed, asked, known[FL_PROMISES_MAX]; /* whether some row has a value */
} judge;

static fl_status recorded_bounds(const fl_report_data *r, fl_promises *p, double *share, fl_diag *d) {
    const cJSON *options = cJSON_GetObjectItem(r->provenance, "options"),
                *bound = cJSON_GetObjectItem(options, "bound"), *text;
    fl_status s = FL_OK;
    fl_diag wrong = {0};
    if (cJSON_IsNumber(bound))
        *share = bound->valuedouble;
    cJSON_ArrayForEach(text, cJSON_GetObjectItem(options, "bounds")) if (!s && cJSON_IsString(text)) s =
        fl_promise_parse(text->valuestring, p, share, &wrong);
    char *path = s ? fl_provenance_path(r->path) : NULL;
    if (s)
        s = path ? fl_fail(d, FL_BAD_INPUT, path, 0, 0, "options.bounds: %s", wrong.message) : fl_no_memory(d, NULL);
    free(path);
    return s;
}

static void header(judge *j, const fl_csv_row *row) {
    j->workload = fl_report_find(row, "workload");
    j->breaks = fl_report_find(row, "breaks");
    for (size_t i = 0; i < j->r->promises.count; i++) {
        const char *column = j->r->promises.item[i].column;
        const bool percent = !strcmp(column, "slowdown_pct"), kilo = !strcmp(column, "energy_kj");
        j->scale[i] = percent ? 100 : kilo ? 1e-3 : 1;
        j->at[i] = fl_report_find(row, percent ? "slowdown" : kilo ? "energy_j" : column);
    }
    j->headed = true;
}

/* Bounds without a column in the CSV were judged when the result was made. */
static bool was_broken(const judge *j, const fl_csv_row *row, size_t i) {
    char text[FL_PROMISE_TEXT];
    return j->breaks < row->count && strstr(row->field[j->breaks].text, fl_promise_text(&j->r->promises.item[i], text));
}

static fl_status judge_row(void *user, const fl_csv_row *row, fl_diag *d) {
    judge *j = user;
    if (!j->headed) {
        header(j, row);
        return FL_OK;
    }
    if (!strcmp(row->field[j->workload].text, "mean"))
        return FL_OK;
    fl_report_row *x = &j->r->row[j->row++];
    x->broken = x->value[FL_REPORT_SLOWDOWN] > j->r->bound + 1e-12; /* the cell is rounded to a double */
    for (size_t i = 0; i < j->r->promises.count; i++) {
        const fl_promise *p = &j->r->promises.item[i];
        double value = NAN;
        if (j->at[i] < row->count && strcmp(row->field[j->at[i]].text, "n/a") != 0) {
            const fl_status s = fl_field_real_or_nan(row, j->at[i], p->column, -HUGE_VAL, HUGE_VAL, &value, d);
            if (s)
                return s;
        }
        j->known[i] |= !isnan(value);
        const bool broken =
            j->at[i] == SIZE_MAX ? was_broken(j, row, i) : fl_promise_test(p, value * j->scale[i]) != FL_PROMISE_HELD;
        x->broken |= (uint32_t)broken << (i + 1);
    }
    if (j->asked)
        x->value[FL_REPORT_VIOLATED] = x->broken != 0;
    return FL_OK;
}

fl_status fl_report_judge(fl_report_data *r, const fl_texts *asked, fl_diag *d) {
    judge j = {.r = r, .asked = asked->count > 0};
    const fl_csv_options options = {.trim = true};
    fl_promises own = {0};
    double share = INFINITY;
    fl_status s = fl_promises_parse(asked, &r->promises, &r->bound, d);
    const size_t given = r->promises.count;
    if (!s)
        s = recorded_bounds(r, &own, &share, d);
    if (!s)
        s = fl_promises_add(&own, share, &r->promises, &r->bound, d);
    if (s || (!r->promises.count && isinf(r->bound)))
        return s;
    s = fl_csv_read(r->path, &options, NULL, judge_row, &j, d);
    for (size_t i = 0; !s && i < given; i++) {
        char text[FL_PROMISE_TEXT];
        if (!j.known[i])
            s = fl_fail(d, FL_BAD_INPUT, r->path, 0, 0, "no row has %s, so '%s' cannot be judged",
                        r->promises.item[i].column, fl_promise_text(&r->promises.item[i], text));
    }
    return s;
}
