/* Compares a result with a recorded baseline. */
#include "harness/study/grid/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/study/compare/compare.h"
#include "harness/study/grid/grid.h"
#include "harness/study/trial/trial.h"
#include "traces/io/io.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a gate found, for other programs. */

static cJSON *finding_json(const fl_gate_finding *f) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "workload", f->row->workload);
    cJSON_AddStringToObject(o, "policy", f->row->policy);
    cJSON_AddStringToObject(o, "platform", f->row->platform);
    cJSON_AddItemToObject(o, "metric", f->rule ? cJSON_CreateString(f->rule->metric) : cJSON_CreateNull());
    cJSON_AddItemToObject(o, "gate", f->rule ? cJSON_CreateString(f->rule->text) : cJSON_CreateNull());
    cJSON_AddBoolToObject(o, "failed", f->failed);
    if (f->rule) {
        fl_json_add_real(o, "recorded", f->old_mean);
        fl_json_add_real(o, "now", f->new_mean);
        fl_json_add_real(o, "change", f->change);
        fl_json_add_real(o, "change_low", f->low);
        fl_json_add_real(o, "change_high", f->high);
        cJSON_AddStringToObject(o, "unit", f->rule->relative ? "%" : "");
    }
    cJSON_AddStringToObject(o, "text", f->text);
    return o;
}

cJSON *fl_gate_result_json(const char *experiment, const fl_gate_result *r) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "experiment", experiment);
    cJSON_AddNumberToObject(root, "gates", (double)r->count);
    cJSON_AddNumberToObject(root, "failed", (double)r->failed);
    cJSON *rows = cJSON_AddArrayToObject(root, "rows");
    for (size_t i = 0; i < r->count; i++)
        cJSON_AddItemToArray(rows, finding_json(&r->finding[i]));
    return root;
}

/* ---- rules ---- */

fl_status fl_gate_parse(const char *text, fl_gate_rule *rule, fl_diag *d) {
    const size_t size = strcspn(text, "<>!");
    fl_row_result none = {0};
    double ignored;
    char *end;
    *rule = (fl_gate_rule){.sign = text[size]};
    if (!size || size >= sizeof rule->metric || !text[size])
        return fl_refuse(d, "gate '%s', expected METRIC>+1%%, METRIC<-1%% or METRIC!1%%", text);
    memcpy(rule->metric, text, size);
    const char *number = text + size + 1;
    const double limit = strtod(number, &end);
    rule->relative = *end == '%';
    if (end == number || end[rule->relative] || !isfinite(limit) || (rule->sign == '<' ? limit > 0 : limit < 0))
        return fl_refuse(d, "gate '%s': '%s', expected a number such as +1%% (>), -1%% (<) or 1%% (!)", text, number);
    rule->limit = fabs(limit);
    const fl_status s = fl_row_value(&none, rule->metric, &ignored, d);
    rule->text = s ? NULL : fl_must(strdup(text));
    return s;
}

/* ---- records ---- */

void fl_gate_record_free(fl_gate_record *r) {
    for (size_t i = 0; i < r->row_count; i++) {
        free(r->row[i].policy);
        free(r->row[i].workload);
        free(r->row[i].platform);
        free(r->row[i].value);
        free(r->row[i].run);
        free(r->row[i].breaks);
    }
    free(r->row);
    free(r->experiment);
    cJSON_Delete(r->provenance);
    fl_place_list_free(r->metric, r->metric_count);
    fl_place_list_free(r->fail_if, r->fail_if_count);
    fl_place_list_free(r->bound, r->bound_count);
    *r = (fl_gate_record){0};
}

static fl_gate_row *find_row(const fl_gate_record *r, const char *policy, const char *workload, const char *platform) {
    for (size_t i = 0; i < r->row_count; i++)
        if (!strcmp(r->row[i].policy, policy) && !strcmp(r->row[i].workload, workload) &&
            !strcmp(r->row[i].platform, platform))
            return &r->row[i];
    return NULL;
}

/* Counts the rows of the policy and platform on a workload with the same last part of its path; *last is one of them.
 */
static size_t count_alike(const fl_gate_record *r, const fl_gate_row *row, fl_gate_row **last) {
    size_t n = 0;
    for (size_t i = 0; i < r->row_count; i++)
        if (!strcmp(r->row[i].policy, row->policy) && !strcmp(r->row[i].platform, row->platform) &&
            !strcmp(basename(r->row[i].workload), basename(row->workload))) {
            *last = &r->row[i];
            n++;
        }
    return n;
}

/* The row of `there` that corresponds to a row of `own`. The path of a trace, which names its workload, depends on the
 * folder in which the gate runs, so its last part suffices where only one workload has it. */
static fl_gate_row *other_row(const fl_gate_record *own, const fl_gate_row *row, const fl_gate_record *there) {
    fl_gate_row *found = find_row(there, row->policy, row->workload, row->platform), *self;
    if (!found && (count_alike(there, row, &found) != 1 || count_alike(own, row, &self) != 1))
        return NULL;
    return found;
}

fl_gate_row *fl_gate_add_row(fl_gate_record *r, const char *policy, const char *workload, const char *platform) {
    fl_must_grow(&r->row, &r->row_room, r->row_count + 1, sizeof *r->row);
    fl_gate_row *row = &r->row[r->row_count++];
    *row = (fl_gate_row){.policy = fl_must(strdup(policy)),
                         .workload = fl_must(strdup(workload)),
                         .platform = fl_must(strdup(platform))};
    return row;
}

static int by_run(const fl_gate_run *a, const fl_gate_run *b) {
    return a->draw != b->draw ? (a->draw > b->draw) - (a->draw < b->draw) : (a->seed > b->seed) - (a->seed < b->seed);
}

fl_gate_row *fl_gate_add_run(fl_gate_record *r, const char *policy, const char *workload, const char *platform,
                             fl_gate_run run, const double *value) {
    fl_gate_row *row = find_row(r, policy, workload, platform);
    if (!row)
        row = fl_gate_add_row(r, policy, workload, platform);
    const size_t n = row->seeds;
    size_t at = n;
    while (at && by_run(&row->run[at - 1], &run) > 0)
        at--;
    if (at && !by_run(&row->run[at - 1], &run))
        return NULL;
    row->run = fl_must(realloc(row->run, (n + 1) * sizeof *row->run));
    memmove(row->run + at + 1, row->run + at, (n - at) * sizeof *row->run);
    row->run[at] = run;
    double *more = fl_must(malloc((r->metric_count * (n + 1) + 1) * sizeof *more));
    for (size_t m = 0; m < r->metric_count; m++)
        for (size_t i = 0; i <= n; i++)
            more[m * (n + 1) + i] = i == at ? value[m] : row->value[m * n + i - (i > at)];
    free(row->value);
    row->value = more;
    row->seeds = n + 1;
    return row;
}

fl_status fl_gate_take(fl_gate_record *r, const fl_comparison *c, fl_diag *d) {
    double *value = fl_must(malloc((r->metric_count + 1) * sizeof *value));
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < c->mean_first; i++) {
        const fl_row_result *from = &c->row[i];
        for (size_t m = 0; !s && m < r->metric_count; m++)
            s = fl_row_value(from, r->metric[m], &value[m], d);
        if (s)
            break;
        const fl_gate_run run = {from->draw ? strtoull(from->draw, NULL, 10) : 0, from->seed};
        fl_gate_row *row =
            fl_gate_add_run(r, from->policy, from->workload, from->platform ? from->platform : "", run, value);
        if (row && from->breaks[0] && !row->breaks)
            row->breaks = fl_must(strdup(from->breaks));
    }
    free(value);
    return s;
}

/* ---- comparing ---- */

typedef struct spread {
    double mean, half;
} spread;

/* Mean and half-width of the interval at error rate alpha of n values; half 0 where there is nothing to tell it by. */
static spread of(const double *x, size_t n, double alpha) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    if (n < 2 || squares <= 0)
        return (spread){mean, 0};
    return (spread){mean, gsl_cdf_tdist_Qinv(alpha / 2, (double)(n - 1)) * sqrt(squares / (double)(n - 1) / (double)n)};
}

static double variance(const double *x, size_t n, double mean) {
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    return n > 1 ? squares / (double)(n - 1) : 0;
}

/* Welch: no pairs, so both spreads count. */
static spread welch(const double *a, size_t n, const double *b, size_t m, double alpha) {
    const double ma = of(a, n, alpha).mean, mb = of(b, m, alpha).mean, va = variance(a, n, ma) / (double)n,
                 vb = variance(b, m, mb) / (double)m;
    if (va + vb <= 0)
        return (spread){mb - ma, 0};
    const double below = (n > 1 ? va * va / (double)(n - 1) : 0) + (m > 1 ? vb * vb / (double)(m - 1) : 0);
    return (spread){mb - ma, gsl_cdf_tdist_Qinv(alpha / 2, (va + vb) * (va + vb) / below) * sqrt(va + vb)};
}

static bool beyond(const fl_gate_rule *rule, const fl_gate_finding *f) {
    const bool up = f->low > rule->limit, down = f->high < -rule->limit;
    return rule->sign == '>' ? up : rule->sign == '<' ? down : up || down;
}

/* The values that are known, in their order; of pairs those known in both. Returns how many. */
static size_t known_of(const double *x, const double *other, size_t n, double *out) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(x[i]) && !(other && isnan(other[i])))
            out[count++] = x[i];
    return count;
}

/* True where runs have become n/a, or known: of pairs any one, otherwise their share. */
static bool other_unknowns(const double *a, size_t n, const double *b, size_t m, bool paired) {
    size_t then = 0, now = 0;
    bool moved = false;
    for (size_t i = 0; i < n; i++) {
        then += isnan(a[i]) != 0;
        moved |= paired && !isnan(a[i]) != !isnan(b[i]);
    }
    for (size_t i = 0; i < m; i++)
        now += isnan(b[i]) != 0;
    return moved || then * m != now * n;
}

/* On known values. */
static void judge_known(const double *a, size_t n, const double *b, size_t m, bool paired, double alpha,
                        const fl_gate_rule *rule, fl_gate_finding *f) {
    double *difference = fl_must(malloc((n + 1) * sizeof *difference));
    f->old_mean = of(a, n, alpha).mean;
    f->new_mean = of(b, m, alpha).mean;
    for (size_t i = 0; paired && i < n; i++)
        difference[i] = b[i] - a[i];
    const spread x = paired ? of(difference, n, alpha) : welch(a, n, b, m, alpha);
    free(difference);
    const double scale = rule->relative ? (f->old_mean != 0 ? 100 / fabs(f->old_mean) : x.mean != 0 ? HUGE_VAL : 0) : 1;
    f->change = x.mean * scale;
    f->low = (x.mean - x.half) * scale;
    f->high = (x.mean + x.half) * scale;
    f->failed = beyond(rule, f);
}

/* Six, and all of them where six show no difference. */
static int digits(const fl_gate_finding *f) {
    char old[32], now[32];
    snprintf(old, sizeof old, "%.6g", f->old_mean);
    snprintf(now, sizeof now, "%.6g", f->new_mean);
    return strcmp(old, now) != 0 || f->old_mean == f->new_mean ? 6 : 17;
}

/* Start a finding's text with the row that it is about. Returns the text's length. */
static int name_row(fl_gate_finding *f) {
    const fl_gate_row *r = f->row;
    const int n = snprintf(f->text, sizeof f->text, "%s on %s: ", r->policy, r->workload);
    return n < (int)sizeof f->text ? n : (int)sizeof f->text - 1;
}

/* A run that is n/a has no value to compare, but those beside it have. */
static void judge(const double *a, size_t n, const double *b, size_t m, bool paired, double alpha,
                  const fl_gate_rule *rule, fl_gate_finding *f) {
    double *x = fl_must(malloc((n + 1) * sizeof *x)), *y = fl_must(malloc((m + 1) * sizeof *y));
    const size_t unknown = n - known_of(a, NULL, n, x), unknown_now = m - known_of(b, NULL, m, y),
                 left = known_of(a, paired ? b : NULL, n, x), left_now = known_of(b, paired ? a : NULL, m, y);
    f->old_mean = f->new_mean = f->change = f->low = f->high = NAN;
    if (left && left_now)
        judge_known(x, left, y, left_now, paired, alpha, rule, f);
    const bool moved = other_unknowns(a, n, b, m, paired);
    f->failed |= moved || !left != !left_now;
    int at = name_row(f);
    at += snprintf(f->text + at, sizeof f->text - (size_t)at, "%s ", rule->metric);
    at = at < (int)sizeof f->text ? at : (int)sizeof f->text - 1;
    if (unknown || unknown_now)
        at += snprintf(f->text + at, sizeof f->text - (size_t)at, "is n/a in %zu of %zu runs, before in %zu of %zu%s%s",
                       unknown_now, m, unknown, n, moved && unknown == unknown_now && n == m ? ", of other seeds" : "",
                       left && left_now ? "; in the others " : "");
    at = at < (int)sizeof f->text ? at : (int)sizeof f->text - 1;
    if (left && left_now)
        snprintf(f->text + at, sizeof f->text - (size_t)at, "%.*g -> %.*g (%+.3g%s, interval %+.3g to %+.3g), gate %s",
                 digits(f), f->old_mean, digits(f), f->new_mean, f->change, rule->relative ? " %" : "", f->low, f->high,
                 rule->text);
    free(x);
    free(y);
}

static void add_finding(fl_gate_result *out, const fl_gate_finding *f) {
    fl_must_grow(&out->finding, &out->room, out->count + 1, sizeof *out->finding);
    out->finding[out->count++] = *f;
    out->failed += f->failed;
}

static size_t metric_index(const fl_gate_record *r, const char *name) {
    size_t m = 0;
    while (m < r->metric_count && strcmp(r->metric[m], name) != 0)
        m++;
    return m;
}

/* True where the values of two rows are of the same runs, one by one. */
static bool same_runs(const fl_gate_record *old, const fl_gate_row *a, const fl_gate_record *now,
                      const fl_gate_row *b) {
    if (a->seeds != b->seeds || !a->run || !b->run)
        return a->seeds == b->seeds && old->seed == now->seed;
    return !memcmp(a->run, b->run, a->seeds * sizeof *a->run);
}

static fl_status compare_row(const fl_gate_record *old, const fl_gate_record *now, const fl_gate_row *row,
                             const fl_gate_rule *rule, size_t rules, double alpha, fl_gate_result *out, fl_diag *d) {
    const fl_gate_row *other = other_row(old, row, now);
    fl_gate_finding f = {.row = row, .failed = true};
    if (!other) {
        const int at = name_row(&f);
        snprintf(f.text + at, sizeof f.text - (size_t)at,
                 "recorded, but not there any more; rows are matched by policy and workload (--policy NAME=SPEC names "
                 "one)");
        add_finding(out, &f);
        return FL_OK;
    }
    if (other->seeds < row->seeds) {
        f.failed = false;
        const int at = name_row(&f);
        snprintf(f.text + at, sizeof f.text - (size_t)at, "%zu runs, before %zu", other->seeds, row->seeds);
        add_finding(out, &f);
    }
    for (size_t k = 0; k < rules; k++) {
        const size_t m = metric_index(old, rule[k].metric), at = metric_index(now, rule[k].metric);
        if (m == old->metric_count)
            return fl_refuse(d, "the baseline has no '%s', expected one recorded with it: --bless", rule[k].metric);
        f = (fl_gate_finding){.row = row, .rule = &rule[k]};
        judge(row->value + m * row->seeds, row->seeds, other->value + at * other->seeds, other->seeds,
              same_runs(old, row, now, other), alpha, &rule[k], &f);
        if (f.failed && other->breaks && !strcmp(rule[k].metric, "violated")) {
            const size_t used = strlen(f.text);
            snprintf(f.text + used, sizeof f.text - used, "; breaks %s", other->breaks);
        }
        add_finding(out, &f);
    }
    return FL_OK;
}

fl_status fl_gate_compare(const fl_gate_record *old, const fl_gate_record *now, const fl_gate_rule *rule,
                          size_t rule_count, fl_gate_result *out, fl_diag *d) {
    *out = (fl_gate_result){0};
    const size_t tests = old->row_count * rule_count;
    const double alpha = 0.05 / (double)(tests ? tests : 1);
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < old->row_count; i++)
        s = compare_row(old, now, &old->row[i], rule, rule_count, alpha, out, d);
    for (size_t i = 0; !s && i < now->row_count; i++) {
        const fl_gate_row *row = &now->row[i];
        fl_gate_finding f = {.row = row};
        if (other_row(now, row, old))
            continue;
        const int at = name_row(&f);
        snprintf(f.text + at, sizeof f.text - (size_t)at, "new, not in the baseline");
        add_finding(out, &f);
    }
    if (s)
        fl_gate_result_free(out);
    return s;
}

void fl_gate_result_free(fl_gate_result *r) {
    free(r->finding);
    *r = (fl_gate_result){0};
}

/* ---- JUnit ---- */

static void put_xml(FILE *f, const char *text) {
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", f);
            break;
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        default:
            fputc(*text, f);
        }
}

fl_status fl_gate_junit(const char *path, const char *name, const fl_gate_result *r, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d->status;
    FILE *f = fl_output_file(o);
    fprintf(f, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"");
    put_xml(f, name);
    fprintf(f, "\" tests=\"%zu\" failures=\"%zu\">\n", r->count, r->failed);
    for (size_t i = 0; i < r->count; i++) {
        const fl_gate_finding *x = &r->finding[i];
        fputs("  <testcase classname=\"", f);
        put_xml(f, x->row->workload);
        fputs("\" name=\"", f);
        put_xml(f, x->row->policy);
        fputc(' ', f);
        put_xml(f, x->rule ? x->rule->text : "row");
        if (x->failed) {
            fputs("\"><failure message=\"", f);
            put_xml(f, x->text);
            fputs("\"/></testcase>\n", f);
        } else {
            fputs("\"/>\n", f);
        }
    }
    fputs("</testsuite>\n", f);
    return fl_output_commit(o, d);
}
