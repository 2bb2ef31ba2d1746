#include "harness/report/plot_table.h"

#include "harness/base/grid.h"
#include "harness/report/report_sensitivity.h"
#include "harness/report/report_summary.h"
#include "harness/report/report_timeline.h"
#include "traces/csv.h"
#include "traces/tables.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 40, BEST_MAX = 20 };

/* compare ends its files with means; sweep does not. */
static bool has_means(const char *input) {
    FILE *f = fopen(input, "re");
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    while (f && !found && getline(&line, &room, f) >= 0)
        found = !strncmp(line, "mean,", 5);
    free(line);
    if (f)
        fclose(f);
    return found;
}

bool fl_plot_needs_table(const char *kind) { return strcmp(kind, "timeline") && strcmp(kind, "trace"); }

/* ---- what gnuplot reads itself ---- */

/* The next line that is neither empty nor a comment, as gnuplot takes them; its number in *at. False at the end. */
static bool next_row(FILE *f, char **line, size_t *room, int64_t *at) {
    while (getline(line, room, f) >= 0) {
        ++*at;
        (*line)[strcspn(*line, "\r\n")] = 0;
        if (**line && **line != '#')
            return true;
    }
    return false;
}

static bool has_column(const char *head, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = head; *at; at += strcspn(at, ",")) {
        at += *at == ',';
        at += strspn(at, " \"");
        if (!strncmp(at, name, n) && (!at[n] || strchr(" \",", at[n])))
            return true;
    }
    return false;
}

fl_status fl_plot_columns(const char *kind, const char *input, fl_diag *d) {
    static const struct {
        const char *kind, *from, *column[7];
    } row[] = {
        {"timeline", "foldline run --timeline", {"t_ns", "device", "sm_mhz", "power_w"}},
        {"trace", "foldline trace stats -o", {"t_s", "device", "busy_pct", "power_w", "sm_mhz", "util_gpu_pct"}},
        {"regret-curves",
         "foldline compare (RESULTS.regret.csv)",
         {"workload", "policy", "variant", "step", "reward_regret"}},
        {"pareto", "foldline compare --csv", {"workload", "policy", "slowdown", "energy_saving_pct"}},
        {"regret", "foldline compare --csv", {"workload", "policy", "regret_static_pct", "regret_clairvoyant_pct"}},
    };
    size_t k = 0, room = 0;
    while (k < sizeof row / sizeof *row && strcmp(row[k].kind, kind) != 0)
        k++;
    if (k == sizeof row / sizeof *row || (!strncmp(row[k].from, "foldline compare --csv", 22) && !has_means(input)))
        return FL_OK;
    FILE *f = fopen(input, "re");
    if (!f)
        return fl_fail(d, FL_BAD_INPUT, input, 0, 0, "cannot open: %s", fl_reason(errno));
    char *line = NULL;
    int64_t at = 0;
    fl_status s = next_row(f, &line, &room, &at)
                      ? FL_OK
                      : fl_fail(d, FL_BAD_INPUT, input, 0, 0, "empty, expected the file of %s", row[k].from);
    const int64_t head = at;
    for (size_t i = 0; !s && i < 7 && row[k].column[i]; i++)
        if (!has_column(line, row[k].column[i]))
            s = fl_fail(d, FL_BAD_INPUT, input, at, 1, "no column '%s', expected the file of %s", row[k].column[i],
                        row[k].from);
    if (!s && !next_row(f, &line, &room, &at))
        s = fl_fail(d, FL_BAD_INPUT, input, head, 1, "no row below it, nothing to draw");
    free(line);
    fclose(f);
    return s;
}

/* ---- tables ---- */

static void put_label(FILE *out, const char *text) {
    for (; *text; text++)
        fputc(*text == ',' ? ';' : *text == '"' ? '\'' : *text, out);
}

static fl_status copy_row(void *user, const fl_csv_row *row, fl_diag *d) {
    (void)d;
    for (size_t i = 0; i < row->count; i++) {
        if (i)
            fputc(',', user);
        put_label(user, row->field[i].text);
    }
    fputc('\n', user);
    return FL_OK;
}

static void put_scores(FILE *out, const char *workload, const char *policy, const double *value) {
    static const fl_report_column column[] = {FL_REPORT_SLOWDOWN, FL_REPORT_SAVING_PCT, FL_REPORT_REGRET_STATIC_PCT,
                                              FL_REPORT_REGRET_CLAIRVOYANT_PCT};
    char text[32];
    put_label(out, workload);
    fputc(',', out);
    put_label(out, policy);
    for (size_t k = 0; k < sizeof column / sizeof *column; k++)
        fprintf(out, ",%s", fl_cell_text(value[column[k]], text));
    fputc('\n', out);
}

static size_t put_means(const fl_summary *s, FILE *out) {
    const fl_report_data *r = s->scope->data;
    size_t rows = 0, policies = 0;
    fputs("workload,policy,slowdown,energy_saving_pct,regret_static_pct,regret_clairvoyant_pct\n", out);
    for (size_t i = 0; i < r->row_count; i++)
        if (r->row[i].variant == s->scope->variant)
            put_scores(out, r->workload.item[r->row[i].workload], r->policy.item[r->row[i].policy], r->row[i].value);
    for (size_t k = 0; k < s->count; k++) {
        const fl_policy_summary *p = &s->item[s->order[k]];
        double mean[FL_REPORT_COLUMNS];
        if (isnan(p->merit.mean) || (!p->baseline && policies++ >= BEST_MAX))
            continue;
        for (size_t c = 0; c < FL_REPORT_COLUMNS; c++)
            mean[c] = p->value[c].mean;
        put_scores(out, "mean", fl_summary_name(s, s->order[k]), mean);
        rows++;
    }
    return rows;
}

static void put_interval(FILE *out, const fl_interval *x) {
    char text[3][32];
    fprintf(out, ",%s,%s,%s", fl_cell_text(x->mean, text[0]),
            fl_cell_text(isfinite(x->low) ? x->low : x->mean, text[1]),
            fl_cell_text(isfinite(x->high) ? x->high : x->mean, text[2]));
}

static size_t put_policies(const fl_summary *s, bool ranks, FILE *out) {
    const size_t n = s->count;
    bool *done = calloc(n + 1, sizeof *done);
    size_t rows = 0;
    fputs("policy,mean,low,high,baseline\n", out);
    for (size_t k = 0; done && k < n && rows < ROWS_MAX; k++) {
        size_t next = s->order[k];
        if (ranks) { /* the lowest mean rank of those that are left */
            next = SIZE_MAX;
            for (size_t i = 0; i < n; i++)
                if (!done[i] && !isnan(s->item[i].rank.rank.mean) &&
                    (next == SIZE_MAX || s->item[i].rank.rank.mean < s->item[next].rank.rank.mean))
                    next = i;
            if (next == SIZE_MAX)
                break;
            done[next] = true;
        }
        const fl_interval *x = ranks ? &s->item[next].rank.rank : &s->item[next].merit;
        if (isnan(x->mean))
            continue;
        put_label(out, fl_summary_name(s, next));
        put_interval(out, x);
        fprintf(out, ",%d\n", s->item[next].baseline);
        rows++;
    }
    free(done);
    return rows;
}

typedef struct writer {
    FILE *out;
    const fl_summary *s;
    size_t panels, rows;
} writer;

static void put_study(void *user, const fl_study *t) {
    writer *w = user;
    w->panels++;
    for (size_t i = 0; i < t->count; i++) {
        const fl_study_point *p = &t->point[i];
        if (i && t->point[i - 1].line != p->line)
            fputc('\n', w->out); /* gnuplot lifts its pen */
        fprintf(w->out, "%zu,", w->panels);
        char what[256];
        snprintf(what, sizeof what, "%s of %s", t->name, t->family);
        put_label(w->out, what);
        fprintf(w->out, ",%zu,", p->line);
        put_label(w->out, t->rest.item[p->line]);
        fprintf(w->out, ",%.17g", p->x);
        put_interval(w->out, &w->s->item[p->item].merit);
        fputc('\n', w->out);
        w->rows++;
    }
    fputc('\n', w->out);
}

static fl_status of_result(const char *kind, const char *input, FILE *out, fl_diag *d) {
    fl_report_data data = {0};
    fl_scope *scope = NULL;
    size_t scopes = 0, rows = 0;
    fl_summary s = {0};
    const fl_bootstrap b = {.seed = 1};
    fl_status st = fl_report_read(input, &data, d);
    if (!st)
        st = fl_scopes_make(&data, &scope, &scopes, d);
    if (!st)
        st = fl_summary_make(&scope[0], &b, NULL, &s, d);
    if (!st && !strcmp(kind, "sensitivity")) {
        writer w = {out, &s, 0, 0};
        fputs("panel,what,line,settings,x,mean,low,high\n", out);
        fl_studies(&s, put_study, &w);
        rows = w.rows;
    } else if (!st && (!strcmp(kind, "pareto") || !strcmp(kind, "regret"))) {
        rows = put_means(&s, out);
    } else if (!st) {
        rows = put_policies(&s, !strcmp(kind, "ranks"), out);
    }
    if (!st && !rows)
        st = fl_fail(d, FL_BAD_INPUT, input, 0, 0,
                     !strcmp(kind, "sensitivity")
                         ? "no policy with a parameter of several values, expected labels such as assure:theta=0.9"
                     : !strcmp(kind, "ranks") ? "no two policies ran the same workloads, nothing to rank"
                                              : "no policy with an energy saving");
    fl_summary_free(&s);
    fl_scopes_free(scope, scopes);
    if (data.path)
        fl_report_free(&data);
    return st;
}

static fl_status of_telemetry(const char *input, FILE *out, fl_diag *d) {
    fl_telemetry t = {0};
    fl_share *share = NULL;
    size_t count = 0;
    fl_status s = fl_telemetry_read(input, &t, d);
    if (!s)
        s = fl_residency(&t, input, &share, &count, d);
    if (!s && !count)
        s = fl_fail(d, FL_BAD_INPUT, input, 0, 0, "no clock over any time, nothing to draw");
    fputs("low,high,share\n", out);
    for (size_t i = 0; !s && i < count; i++)
        fprintf(out, "%.9g,%.9g,%.9g\n", share[i].low, share[i].high, share[i].share);
    free(share);
    fl_telemetry_free(&t);
    return s;
}

fl_status fl_plot_table(const char *kind, const char *input, FILE *out, fl_diag *d) {
    const fl_csv_options options = {.trim = true};
    const bool scores = !strcmp(kind, "pareto") || !strcmp(kind, "regret");
    if (!strcmp(kind, "residency"))
        return of_telemetry(input, out, d);
    if (!strcmp(kind, "regret-curves") || (scores && has_means(input)))
        return fl_csv_read(input, &options, NULL, copy_row, out, d);
    return of_result(kind, input, out, d);
}
