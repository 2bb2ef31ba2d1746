/* Tables of policies, pairs and workloads. */
#include "harness/report/page/inside.h"

#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/report/picture/picture.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKLOAD_ROWS_MAX = 4000, POLICY_ROWS_MAX = 2000 };

void fl_cell_head(FILE *f, const char *text) {
    fputs("<th scope=\"col\">", f);
    fl_html_text(f, text);
    fputs("</th>", f);
}

void fl_cell_head_text(FILE *f, const char *text) {
    fputs("<th scope=\"col\" class=\"text\">", f);
    fl_html_text(f, text);
    fputs("</th>", f);
}

void fl_cell_text_put(FILE *f, const char *text) {
    fputs("<td class=\"text\">", f);
    fl_html_text(f, text);
    fputs("</td>", f);
}

static void number(FILE *f, double value, int digits) { /* digits < 0: significant digits */
    if (digits < 0) {
        const int whole = value != 0 ? (int)floor(log10(fabs(value))) + 1 : 1;
        if (whole < -3 || whole > 9)
            fprintf(f, "%.*g", -digits, value);
        else
            fprintf(f, "%.*f", -digits > whole ? -digits - whole : 0, value);
    } else
        fprintf(f, "%.*f", digits, fabs(value) < 0.5 * pow(10, -digits) ? 0 : value);
}

void fl_cell_number(FILE *f, double value, int digits) {
    if (!isfinite(value)) {
        fputs("<td data-v=\"\">n/a</td>", f);
        return;
    }
    fprintf(f, "<td data-v=\"%.9g\">", value);
    number(f, value, digits);
    fputs("</td>", f);
}

/* mark: the text after the mean, "" for none */
static void cell_marked(FILE *f, const fl_interval *x, double scale, int digits, const char *mark) {
    if (!isfinite(x->mean)) {
        fl_cell_number(f, x->mean * scale, digits);
        return;
    }
    fprintf(f, "<td data-v=\"%.9g\">", x->mean * scale);
    number(f, x->mean * scale, digits);
    fputs(mark, f);
    if (!isfinite(x->low) || x->low == x->high) { /* no width, so nothing to show */
        fputs("</td>", f);
        return;
    }
    fputs(" <span class=\"ci\">[", f);
    number(f, x->low * scale, digits);
    fputs(", ", f);
    number(f, x->high * scale, digits);
    fputs("]</span></td>", f);
}

static void cell_interval(FILE *f, const fl_interval *x, double scale, int digits) {
    cell_marked(f, x, scale, digits, "");
}

static void begin(FILE *f, const char *id, const char *caption) {
    fprintf(f, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"");
    fl_html_text(f, caption);
    fprintf(f, "\"><table class=\"sortable\" id=\"%s\"><caption>", id);
    fl_html_text(f, caption);
    fputs("</caption><thead><tr>", f);
}

static void end(FILE *f) { fputs("</tbody></table></div>\n", f); }

static void policy_head(FILE *f, const fl_summary *s, size_t item, const fl_look *look) {
    const char *name = fl_summary_name(s, item);
    const bool baseline = s->item[item].baseline;
    fprintf(f, "<tr%s><th scope=\"row\">", baseline ? " class=\"baseline\"" : "");
    if (look)
        fprintf(f, "<span class=\"dot c%d\" aria-hidden=\"true\"></span>", look->colour);
    fl_html_label(f, name);
    fputs(fl_partial_rows(s, &s->item[item]) ? " *</th>" : "</th>", f);
}

/* ---- the table of policies ---- */

typedef struct shown {
    fl_report_column column;
    const char *head; /* @: what is minimised */
    double scale;
    int digits;
} shown;

static const shown policy_column[] = {
    {FL_REPORT_SLOWDOWN, "slowdown, %", 100, 2},
    {FL_REPORT_WORST, "worst 5 %, %", 100, 2},
    {FL_REPORT_ENERGY_J, "energy, J", 1, -5},
    {FL_REPORT_MAKESPAN_S, "time, s", 1, -5},
    {FL_REPORT_POWER_W, "power, W", 1, -4},
    {FL_REPORT_REGRET_STATIC_PCT, "@ above the best static clock, %", 1, 2},
    {FL_REPORT_REGRET_CLAIRVOYANT_PCT, "@ above the best schedule known, %", 1, 2},
    {FL_REPORT_REWARD_REGRET, "regret (Eq. 3)", 1, -4},
    {FL_REPORT_LATENCY_S, "latency, ms", 1e3, -4},
    {FL_REPORT_LATENCY_P99_S, "latency p99, ms", 1e3, -4},
    {FL_REPORT_REQUEST_J, "J per request", 1, -4},
};

static void caption_means(FILE *f, const fl_summary *s, const char *id, const char *what) {
    char caption[256], intervals[128];
    fl_lead_intervals(s, intervals, sizeof intervals);
    snprintf(caption, sizeof caption, "%s: means%s%s", what, *intervals ? "; in brackets " : "", intervals);
    begin(f, id, caption);
    fl_cell_head_text(f, "policy");
}

static void cell_violated(FILE *f, const fl_policy_summary *p) {
    if (isnan(p->violations))
        fputs("<td data-v=\"\">n/a</td>", f);
    else
        fprintf(f, "<td data-v=\"%.9g\">%.0f of %zu</td>", p->violations, p->violations,
                p->value[FL_REPORT_VIOLATED].runs);
}

static const shown *shown_of(fl_report_column column) {
    size_t k = 0;
    while (policy_column[k].column != column)
        k++;
    return &policy_column[k];
}

/* The columns of the first table beside the policy, at most four: the two of the lead; which bounds are broken or,
 * where there is no bound, saving or time; and the regret against the best known schedule. */
typedef struct choice {
    fl_lead lead;
    bool bounded, merit; /* merit: the third column is the ranking quantity */
    const shown *third, *fourth;
} choice;

static void choose(const fl_summary *s, choice *c) {
    static const fl_report_column wanted[] = {FL_REPORT_REGRET_CLAIRVOYANT_PCT, FL_REPORT_REGRET_STATIC_PCT,
                                              FL_REPORT_ENERGY_J};
    *c = (choice){.bounded = isfinite(s->scope->data->bound) || s->scope->data->promises.count};
    fl_lead_of(s, &c->lead);
    for (size_t i = 0; i < s->count; i++)
        c->bounded |= s->item[i].violations > 0;
    c->merit = !c->bounded && c->lead.x.column >= 0 && c->lead.y.column >= 0;
    c->third =
        c->bounded || c->merit || !fl_lead_anywhere(s, FL_REPORT_MAKESPAN_S) ? NULL : shown_of(FL_REPORT_MAKESPAN_S);
    for (size_t i = 0; !c->fourth && i < sizeof wanted / sizeof *wanted; i++)
        c->fourth = fl_lead_anywhere(s, wanted[i]) ? shown_of(wanted[i]) : NULL;
}

static bool chosen(const choice *c, const shown *k) {
    return k == c->third || k == c->fourth || (int)k->column == c->lead.x.column || (int)k->column == c->lead.y.column;
}

static void cell_column(FILE *f, const fl_policy_summary *p, const shown *k) {
    cell_marked(f, &p->value[k->column], k->scale, k->digits, fl_partial(p, k->column) ? "*" : "");
}

static void head_merit(FILE *f, const fl_summary *s) {
    char head[64];
    snprintf(head, sizeof head, "%s, %%", fl_merit_name(s->scope->data));
    fl_cell_head(f, head);
}

static void head_shown(FILE *f, const fl_report_data *r, const shown *k) {
    char head[64];
    const char *merit = fl_merit_name(r); /* "energy saved" */
    const bool of = *k->head == '@';
    snprintf(head, sizeof head, "%.*s%s", of ? (int)strcspn(merit, " ") : 0, merit, k->head + of);
    fl_cell_head(f, head);
}

static void table_first(FILE *f, const fl_summary *s, const choice *c, const fl_looks *looks, const char *id) {
    char head[96];
    caption_means(f, s, id, "Policies and baselines");
    fl_cell_head(f, fl_lead_head(&c->lead.y, head));
    fl_cell_head(f, fl_lead_head(&c->lead.x, head));
    if (c->bounded)
        fl_cell_head(f, "over the bound");
    if (c->merit)
        head_merit(f, s);
    if (c->third)
        head_shown(f, s->scope->data, c->third);
    if (c->fourth)
        head_shown(f, s->scope->data, c->fourth);
    fputs("</tr></thead><tbody>\n", f);
    for (size_t k = 0; k < s->count && k < POLICY_ROWS_MAX; k++) {
        const fl_policy_summary *p = &s->item[s->order[k]];
        const fl_interval y = fl_lead_value(&c->lead.y, p), x = fl_lead_value(&c->lead.x, p);
        policy_head(f, s, s->order[k], &looks->of[p->policy]);
        cell_interval(f, &y, 1, c->lead.y.digits);
        cell_interval(f, &x, 1, c->lead.x.digits);
        if (c->bounded)
            cell_violated(f, p);
        if (c->merit)
            cell_interval(f, &p->merit, 1, 2);
        if (c->third)
            cell_column(f, p, c->third);
        if (c->fourth)
            cell_column(f, p, c->fourth);
        fputs("</tr>\n", f);
    }
    end(f);
}

/* The columns that the first table lacks. */
static void table_more(FILE *f, const fl_summary *s, const choice *c, const char *id) {
    enum { COLUMNS = sizeof policy_column / sizeof *policy_column };
    const bool merit = !c->merit && c->lead.y.column >= 0 && c->lead.x.column >= 0;
    bool there[COLUMNS];
    for (size_t k = 0; k < COLUMNS; k++)
        there[k] = fl_lead_anywhere(s, policy_column[k].column) && !chosen(c, &policy_column[k]);
    fputs("<details class=\"more\"><summary>More columns</summary>\n", f);
    caption_means(f, s, id, "The other columns");
    if (merit)
        head_merit(f, s);
    for (size_t k = 0; k < COLUMNS; k++)
        if (there[k])
            head_shown(f, s->scope->data, &policy_column[k]);
    if (c->bounded)
        fl_cell_head_text(f, "bounds broken");
    fl_cell_head(f, "switches");
    fl_cell_head(f, "runs");
    fputs("</tr></thead><tbody>\n", f);
    for (size_t k = 0; k < s->count && k < POLICY_ROWS_MAX; k++) {
        const fl_policy_summary *p = &s->item[s->order[k]];
        policy_head(f, s, s->order[k], NULL);
        if (merit)
            cell_interval(f, &p->merit, 1, 2);
        for (size_t i = 0; i < COLUMNS; i++)
            if (there[i])
                cell_column(f, p, &policy_column[i]);
        if (c->bounded)
            fl_bounds_cell(f, s->scope, s->order[k]);
        fl_cell_number(f, p->value[FL_REPORT_SWITCHES].mean, 0);
        fl_cell_number(f, (double)p->value[FL_REPORT_ENERGY_J].runs, 0);
        fputs("</tr>\n", f);
    }
    end(f);
    fputs("</details>\n", f);
}

void fl_table_policies(FILE *f, const fl_summary *s, const fl_looks *looks, const char *id) {
    choice c;
    char more[80];
    choose(s, &c);
    snprintf(more, sizeof more, "%s-more", id);
    table_first(f, s, &c, looks, id);
    table_more(f, s, &c, more);
    fl_partial_notes(f, s);
    if (s->count > POLICY_ROWS_MAX)
        fprintf(f, "<p class=\"note\">The best %d of %zu are shown; the CSV has them all.</p>\n", POLICY_ROWS_MAX,
                s->count);
}

/* ---- the table of pairs ---- */

static const char *verdict(const fl_policy_summary *p) {
    const fl_interval *x = &p->merit_pair.difference;
    if (!isfinite(x->low))
        return x->workloads > 0 && isfinite(x->mean) ? "no interval" : "n/a";
    if (x->low > 0 && p->violations > 0)
        return "better, beyond the bound";
    return x->low > 0 ? "better" : x->high < 0 ? "worse" : "no difference shown";
}

void fl_table_pairs(FILE *f, const fl_summary *s, const char *id) {
    char caption[256], head[64];
    if (!s->paired)
        return;
    bool intervals = false;
    for (size_t i = 0; i < s->count; i++)
        intervals |= s->item[i].merit_pair.difference.low < s->item[i].merit_pair.difference.high;
    snprintf(caption, sizeof caption, "Each policy minus %s, paired by workload and seed%s",
             fl_summary_name(s, s->reference), intervals ? ", with 95 % intervals" : "");
    begin(f, id, caption);
    fl_cell_head_text(f, "policy");
    snprintf(head, sizeof head, "difference in %s, points", fl_merit_name(s->scope->data));
    fl_cell_head(f, head);
    fl_cell_head_text(f, "verdict");
    fl_cell_head(f, "wins");
    fl_cell_head(f, "ties");
    fl_cell_head(f, "losses");
    fl_cell_head(f, "difference in slowdown, points");
    if (s->ranked) {
        fl_cell_head(f, "mean rank");
        fl_cell_head(f, "first in");
    }
    fputs("</tr></thead><tbody>\n", f);
    for (size_t k = 0; k < s->count && k < POLICY_ROWS_MAX; k++) {
        const fl_policy_summary *p = &s->item[s->order[k]];
        const bool self = s->order[k] == s->reference;
        policy_head(f, s, s->order[k], NULL);
        if (self) {
            fputs("<td data-v=\"0\">0</td><td class=\"text\">the reference</td><td data-v=\"\"></td><td data-v=\"\">"
                  "</td><td data-v=\"\"></td><td data-v=\"0\">0</td>",
                  f);
        } else {
            cell_interval(f, &p->merit_pair.difference, 1, 2);
            fl_cell_text_put(f, verdict(p));
            fl_cell_number(f, (double)p->merit_pair.wins, 0);
            fl_cell_number(f, (double)p->merit_pair.ties, 0);
            fl_cell_number(f, (double)p->merit_pair.losses, 0);
            cell_interval(f, &p->slowdown_pair.difference, 1, 2);
        }
        if (s->ranked) {
            cell_interval(f, &p->rank.rank, 1, 2);
            fl_cell_number(f, p->baseline ? (double)NAN : (double)p->rank.firsts, 0);
        }
        fputs("</tr>\n", f);
    }
    end(f);
}

/* ---- the table of workloads ---- */

static const shown workload_column[] = {
    {FL_REPORT_SAVING_PCT, "energy saved, %", 1, 2},
    {FL_REPORT_SLOWDOWN, "slowdown, %", 100, 2},
    {FL_REPORT_ENERGY_J, "energy, J", 1, -5},
    {FL_REPORT_MAKESPAN_S, "time, s", 1, -5},
    {FL_REPORT_REGRET_STATIC_PCT, "@ above the best static clock, %", 1, 2},
    {FL_REPORT_REGRET_CLAIRVOYANT_PCT, "@ above the best schedule known, %", 1, 2},
};
enum { WORKLOAD_COLUMNS = sizeof workload_column / sizeof *workload_column };

static bool same_cell(const fl_report_row *a, const fl_report_row *b) {
    return a->policy == b->policy && a->workload == b->workload && a->platform == b->platform &&
           a->variant == b->variant;
}

static int by_cell(const void *a, const void *b) {
    const fl_report_row *x = a, *y = b;
    const size_t p[5] = {x->variant, x->platform, x->workload, x->policy, x->seed},
                 q[5] = {y->variant, y->platform, y->workload, y->policy, y->seed};
    for (size_t k = 0; k < 5; k++)
        if (p[k] != q[k])
            return p[k] > q[k] ? 1 : -1;
    return 0;
}

/* A row of the table: the runs of one cell, and their column values. */
typedef struct cell {
    const fl_report_row *row;
    size_t count;
    fl_interval x[WORKLOAD_COLUMNS];
} cell;

static void put_cell(FILE *f, const fl_report_data *r, const cell *c, const bool *there) {
    const fl_report_row *row = c->row;
    const char *policy = r->policy.item[row->policy], *clock = r->clock.item[row->clock];
    fprintf(f, "<tr%s><th scope=\"row\">", fl_report_is_baseline(policy) ? " class=\"baseline\"" : "");
    fl_html_text(f, r->workload.item[row->workload]);
    fputs("</th>", f);
    if (r->platform.count > 1)
        fl_cell_text_put(f, r->platform.item[row->platform]);
    if (r->variant.count > 1)
        fl_cell_text_put(f, *r->variant.item[row->variant] ? r->variant.item[row->variant] : "plain");
    fputs("<td class=\"text\">", f);
    fl_html_label(f, policy);
    if (*clock) {
        fputc(' ', f);
        fl_html_label(f, clock);
    }
    fputs("</td>", f);
    for (size_t k = 0; k < WORKLOAD_COLUMNS; k++)
        if (there[k])
            cell_interval(f, &c->x[k], workload_column[k].scale, workload_column[k].digits);
    fputs("</tr>\n", f);
}

/* Means of the first `listed` cells, with common draws. value: room for the runs of a cell. */
static void fill_cells(cell *c, size_t listed, const bool *there, double *value, const fl_bootstrap *b) {
    fl_means m = {.b = *b};
    for (size_t i = 0; i < listed; i++)
        for (size_t k = 0; k < WORKLOAD_COLUMNS; k++) {
            for (size_t n = 0; there[k] && n < c[i].count; n++)
                value[n] = c[i].row[n].value[workload_column[k].column];
            if (there[k])
                fl_must_have(!fl_means_add(&m, value, 1, c[i].count, &c[i].x[k], NULL));
        }
    fl_must_have(!fl_means_draw(&m, NULL));
    fl_means_free(&m);
}

static void head_workloads(FILE *f, const fl_report_data *r, const bool *there) {
    begin(f, "workloads",
          r->seed_count > 1
              ? "Every workload under every policy: means over the seeds with 95 % intervals where seeds differ"
              : "Every workload under every policy, one run each");
    fl_cell_head_text(f, "workload");
    if (r->platform.count > 1)
        fl_cell_head_text(f, "platform");
    if (r->variant.count > 1)
        fl_cell_head_text(f, "variant");
    fl_cell_head_text(f, "policy");
    for (size_t k = 0; k < WORKLOAD_COLUMNS; k++)
        if (there[k])
            head_shown(f, r, &workload_column[k]);
    fputs("</tr></thead><tbody>\n", f);
}

void fl_table_workloads(FILE *f, const fl_report_data *r, const fl_bootstrap *b) {
    const fl_bootstrap quick = {.seed = b->seed, .draws = b->draws ? b->draws : FL_DRAWS_WORKLOAD};
    fl_report_row *row = fl_must(malloc((r->row_count + 1) * sizeof *row));
    double *value = fl_must(malloc((r->row_count + 1) * sizeof *value));
    cell *c = fl_must(calloc(WORKLOAD_ROWS_MAX, sizeof *c));
    bool there[WORKLOAD_COLUMNS] = {0};
    size_t all = 0;
    memcpy(row, r->row, r->row_count * sizeof *row);
    qsort(row, r->row_count, sizeof *row, by_cell);
    for (size_t i = 0, last; i < r->row_count; i = last) {
        for (last = i; last < r->row_count && same_cell(&row[i], &row[last]); last++)
            for (size_t k = 0; k < WORKLOAD_COLUMNS; k++)
                there[k] |= isfinite(row[last].value[workload_column[k].column]);
        if (all++ < WORKLOAD_ROWS_MAX)
            c[all - 1] = (cell){.row = &row[i], .count = last - i};
    }
    const size_t listed = all < WORKLOAD_ROWS_MAX ? all : WORKLOAD_ROWS_MAX;
    fill_cells(c, listed, there, value, &quick);
    head_workloads(f, r, there);
    for (size_t i = 0; i < listed; i++)
        put_cell(f, r, &c[i], there);
    end(f);
    if (all > listed)
        fprintf(f, "<p class=\"note\">%zu of %zu rows are shown; the CSV has them all.</p>\n", listed, all);
    free(row);
    free(value);
    free(c);
}
