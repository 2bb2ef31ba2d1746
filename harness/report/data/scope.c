/* The bounds of a report, and the rows behind each mean. */
#include "harness/report/data/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/study/compare/compare.h"
#include "harness/study/trial/trial.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- bounds that judge rows ---- */

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
    if (s) {
        char *path = fl_provenance_path(r->path);
        fl_fail(d, FL_BAD_INPUT, path, 0, 0, "options.bounds: %s", wrong.message);
        free(path);
    }
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

/* ---- the rows behind a mean ---- */

/* The rows of each variant, one variant after the other: those of v start at row[first[v]]. */
typedef struct sorted {
    size_t *row, *first, *runs; /* runs: of each policy, all 0 between two scopes */
} sorted;

static void unsort(sorted *x) {
    free(x->row);
    free(x->first);
    free(x->runs);
}

static sorted sort(const fl_report_data *r) {
    const sorted x = {.row = fl_must(malloc((r->row_count + 1) * sizeof *x.row)),
                      .first = fl_must(calloc(r->variant.count + 2, sizeof *x.first)),
                      .runs = fl_must(calloc(r->policy.count + 1, sizeof *x.runs))};
    size_t *next = x.first + 1; /* first the count, then the place of the next row; at the end first[v + 1] */
    for (size_t i = 0; i < r->row_count; i++)
        if (r->row[i].variant + 1 < r->variant.count)
            next[r->row[i].variant + 1]++;
    for (size_t v = 1; v < r->variant.count; v++)
        next[v] += next[v - 1];
    for (size_t i = 0; i < r->row_count; i++)
        x.row[next[r->row[i].variant]++] = i;
    return x;
}

static int by_index(const void *a, const void *b) {
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static bool holds(const fl_scope *s, const fl_report_row *row) {
    return s->platform == FL_REPORT_ALL || row->platform == (size_t)s->platform;
}

/* Finds the policies of the scope and their rows. */
static void make(const fl_report_data *r, const sorted *x, int platform, size_t variant, fl_scope *s) {
    const size_t *row = x->row + x->first[variant], count = x->first[variant + 1] - x->first[variant];
    const size_t most = count < r->policy.count ? count : r->policy.count;
    *s = (fl_scope){.data = r,
                    .platform = platform,
                    .variant = variant,
                    .policy = fl_must(malloc((most + 1) * sizeof *s->policy)),
                    .row = fl_must(malloc((count + 1) * sizeof *s->row)),
                    .first = fl_must(calloc(most + 2, sizeof *s->first)),
                    .workloads = r->workload.count * (platform == FL_REPORT_ALL ? r->platform.count : 1),
                    .seeds = r->seed_count};
    for (size_t i = 0; i < count; i++)
        if (holds(s, &r->row[row[i]]) && !x->runs[r->row[row[i]].policy]++)
            s->policy[s->policy_count++] = r->row[row[i]].policy;
    qsort(s->policy, s->policy_count, sizeof *s->policy, by_index);
    for (size_t p = 0; p < s->policy_count; p++) {
        s->first[p + 1] = s->first[p] + x->runs[s->policy[p]];
        x->runs[s->policy[p]] = s->first[p]; /* the place of its next row */
    }
    for (size_t i = 0; i < count; i++)
        if (holds(s, &r->row[row[i]]))
            s->row[x->runs[r->row[row[i]].policy]++] = row[i];
    for (size_t p = 0; p < s->policy_count; p++)
        x->runs[s->policy[p]] = 0;
}

static void free_scope(fl_scope *s) {
    free(s->policy);
    free(s->row);
    free(s->first);
}

void fl_scopes_make(const fl_report_data *r, fl_scope **list, size_t *count) {
    const size_t each = r->platform.count > 1 ? 1 + r->platform.count : 1;
    sorted x = sort(r);
    *count = 0;
    *list = fl_must(calloc(r->variant.count * each + 1, sizeof **list));
    for (size_t v = 0; v < r->variant.count; v++)
        for (size_t k = 0; k < each; k++) {
            fl_scope *at = &(*list)[(*count)++];
            make(r, &x, k ? (int)k - 1 : FL_REPORT_ALL, v, at);
            if (!at->policy_count) { /* not every variant is on every platform */
                free_scope(at);
                --*count;
            }
        }
    unsort(&x);
}

void fl_scopes_free(fl_scope *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        free_scope(&list[i]);
    free(list);
}

double *fl_scope_panel(const fl_scope *s, fl_report_column column) {
    const fl_report_data *r = s->data;
    const size_t each = s->workloads * s->seeds, total = s->policy_count * each;
    double *panel = fl_must(malloc((total + 1) * sizeof *panel));
    for (size_t i = 0; i < total; i++)
        panel[i] = NAN;
    for (size_t p = 0; p < s->policy_count; p++)
        for (size_t i = s->first[p]; i < s->first[p + 1]; i++) {
            const fl_report_row *row = &r->row[s->row[i]];
            const size_t w = row->workload + (s->platform == FL_REPORT_ALL ? row->platform * r->workload.count : 0);
            panel[p * each + w * s->seeds + row->seed_at] = row->value[column];
        }
    return panel;
}

/* The percentage of the driver's default, workload by workload, for a quantity without a separate column. */
static double *against_default(const fl_scope *s, fl_report_column column) {
    double *panel = fl_scope_panel(s, column);
    size_t standard = 0;
    while (standard < s->policy_count && strcmp(s->data->policy.item[s->policy[standard]], "baseline:default"))
        standard++;
    double *of = fl_must(malloc((s->seeds + 1) * sizeof *of));
    for (size_t w = 0; w < s->workloads; w++) {
        double any = NAN; /* with random arrivals, each seed has a separate default */
        for (size_t k = 0; k < s->seeds; k++) {
            of[k] = standard < s->policy_count ? panel[(standard * s->workloads + w) * s->seeds + k] : (double)NAN;
            any = isnan(any) ? of[k] : any;
        }
        for (size_t p = 0; p < s->policy_count; p++)
            for (size_t k = 0; k < s->seeds; k++) {
                double *at = &panel[(p * s->workloads + w) * s->seeds + k];
                *at = 100 * (1 - *at / (isnan(of[k]) ? any : of[k]));
            }
    }
    free(of);
    return panel;
}

double *fl_scope_merit(const fl_scope *s) {
    const char *objective = fl_report_objective(s->data);
    if (!strcmp(objective, "energy"))
        return fl_scope_panel(s, FL_REPORT_SAVING_PCT);
    return against_default(s, strcmp(objective, "edp") ? FL_REPORT_ED2P : FL_REPORT_EDP);
}
