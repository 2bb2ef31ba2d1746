/* Savings and cost of the policies of one family over one of their parameters: two panels for each. */
#include "harness/report/picture/inside.h"

#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/report/picture/picture.h"
#include "traces/io/io.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Policies as rows, the best first: marks with intervals, and pairs of bars. */

enum { ROW = 22, BARS = 34 };

typedef struct lane {
    size_t item;
    fl_interval x;
} lane;

/* Room for the names at the left: their length, up to 45 % of the width. */
static double names_of(const fl_picture *p, const fl_summary *s, const lane *row, size_t count) {
    double longest = 60;
    for (size_t i = 0; i < count; i++)
        longest = fmax(longest, fl_text_width(fl_summary_name(s, row[i].item)));
    return fmin(longest, 0.45 * p->width) + 24;
}

static void put_row_name(fl_picture *p, const char *name) {
    char text[256];
    fl_picture_field(p->table, fl_text_fit(name, p->left - 24, text));
}

static int by_mean(const void *a, const void *b) {
    const lane *x = a, *y = b;
    return x->x.mean != y->x.mean ? (x->x.mean > y->x.mean) - (x->x.mean < y->x.mean) : (x->item > y->item) - 1;
}

static size_t collect(const fl_summary *s, bool ranks, lane *row) {
    size_t n = 0;
    for (size_t k = 0; k < s->count; k++) {
        const fl_policy_summary *p = &s->item[s->order[k]];
        const fl_interval x = ranks ? p->rank.rank : p->merit;
        if (isfinite(x.mean) && !(ranks && (p->baseline || !s->ranked)))
            row[n++] = (lane){s->order[k], x};
    }
    if (ranks)
        qsort(row, n, sizeof *row, by_mean);
    return n < FL_ROWS_MAX ? n : FL_ROWS_MAX;
}

static void title_rows(fl_picture *p, const fl_summary *s, bool ranks) {
    char about[512], intervals[128], label[64];
    const char *merit = fl_merit_name(s->scope->data);
    fl_lead_about(s, about, sizeof about);
    fl_lead_intervals(s, intervals, sizeof intervals);
    p->bars = *intervals;
    if (p->bars)
        snprintf(about + strlen(about), sizeof about - strlen(about), "; bars: %s", intervals);
    snprintf(label, sizeof label, "%s against the driver's default, %%", merit);
    fl_picture_text(p, "x_label", ranks ? "mean rank over workloads (1 = best)" : label);
    fl_picture_title(p, ranks ? "Mean rank of each policy" : "What each policy saves", about);
}

size_t fl_picture_rows(fl_picture *p, const fl_summary *s, const fl_looks *looks, bool ranks) {
    lane *row = fl_must(calloc(s->count + 1, sizeof *row));
    const size_t n = collect(s, ranks, row);
    fl_picture_plot(p, names_of(p, s, row, n), 24, ROW * (double)n + 6);
    title_rows(p, s, ranks);
    fputs("policy,mean,low,high,point,colour,tip\n", p->table);
    for (size_t i = 0; i < n; i++) {
        const fl_policy_summary *of = &s->item[row[i].item];
        const fl_look look = looks->of[of->policy];
        const fl_interval *x = &row[i].x;
        const bool wide = isfinite(x->low) && x->low < x->high;
        char tip[512];
        put_row_name(p, fl_summary_name(s, row[i].item));
        fprintf(p->table, ",%.17g,%.17g,%.17g,%d,%d,", x->mean, wide ? x->low : x->mean, wide ? x->high : x->mean,
                fl_picture_point(look, of->baseline, !of->baseline && of->violations > 0), look.colour);
        if (wide)
            snprintf(tip, sizeof tip, "%s: %.4g [%.4g; %.4g]", fl_summary_name(s, row[i].item), x->mean, x->low,
                     x->high);
        else
            snprintf(tip, sizeof tip, "%s: %.4g", fl_summary_name(s, row[i].item), x->mean);
        fl_picture_field(p->table, tip);
        fputc('\n', p->table);
    }
    fl_picture_number(p, "rows", (double)n);
    free(row);
    return n;
}

static void put_regret(fl_picture *p, const fl_policy_summary *of, fl_report_column column) {
    const double v = of->value[column].mean;
    if (isfinite(v))
        fprintf(p->table, ",%.17g", v);
    else
        fputs(",n/a", p->table);
}

size_t fl_picture_regret(fl_picture *p, const fl_summary *s) {
    lane *row = fl_must(calloc(s->count + 1, sizeof *row));
    static const char hatched[] = "\xe2\x96\xa8  hatched: mean over the runs that hold the bound";
    size_t n = 0;
    bool both = false, partial = false, none = false; /* both: a clairvoyant schedule is known */
    char about[640];
    for (size_t k = 0; k < s->count && n < FL_ROWS_MAX; k++)
        if (!s->item[s->order[k]].baseline) {
            row[n++] = (lane){s->order[k], s->item[s->order[k]].value[FL_REPORT_REGRET_STATIC_PCT]};
            const bool any = isfinite(row[n - 1].x.mean);
            partial |= any && s->item[s->order[k]].violations > 0;
            none |= !any;
            both |= isfinite(s->item[s->order[k]].value[FL_REPORT_REGRET_CLAIRVOYANT_PCT].mean);
        }
    fl_picture_plot(p, names_of(p, s, row, n), 60, (both ? BARS : ROW) * (double)n + 6);
    fl_lead_about(s, about, sizeof about);
    if (none)
        snprintf(about + strlen(about), sizeof about - strlen(about), "; n/a: no run holds the bound");
    fl_picture_title(p, "What each policy left on the table", about);
    fl_picture_legend(p, 1 + (size_t)both + (size_t)partial,
                      fl_text_width(partial ? hatched : "against the clairvoyant schedule"));
    fl_picture_entry(p, "against the best static clock", (fl_look){.colour = 1}, 5);
    if (both)
        fl_picture_entry(p, "against the clairvoyant schedule", (fl_look){.colour = 2}, 5);
    if (partial)
        fl_picture_entry(p, hatched, (fl_look){0}, -1);
    fputs("policy,static,clairvoyant,partial\n", p->table);
    for (size_t i = 0; i < n; i++) {
        const fl_policy_summary *of = &s->item[row[i].item];
        put_row_name(p, fl_summary_name(s, row[i].item));
        put_regret(p, of, FL_REPORT_REGRET_STATIC_PCT);
        put_regret(p, of, FL_REPORT_REGRET_CLAIRVOYANT_PCT);
        fprintf(p->table, ",%d\n", of->violations > 0);
    }
    fl_picture_number(p, "both", both);
    fl_picture_number(p, "rows", (double)n);
    free(row);
    return n;
}

/* ---- the picture of a parameter ---- */

enum { LINES_MAX = 8, NAMES_MOST = 150 };

typedef struct drawing {
    const fl_summary *s;
    fl_lines lines;
    size_t first, count, at; /* the studies to draw, and the current one */
    double names;            /* pixels of the longest line name */
    bool bars;               /* some panel has intervals */
} drawing;

static fl_interval value_of(const fl_summary *s, const fl_study_point *p, bool slowdown) {
    fl_interval v = slowdown ? s->item[p->item].value[FL_REPORT_SLOWDOWN] : s->item[p->item].merit;
    const double scale = slowdown ? 100 : 1;
    v.mean *= scale;
    v.low *= scale;
    v.high *= scale;
    return v;
}

static bool bundled(const fl_study *t) { return t->rest.count > LINES_MAX; }

static const char *name_of(const fl_study *t, size_t line) {
    return *t->rest.item[line] ? t->rest.item[line] : "nothing else set";
}

static void measure(void *user, const fl_study *t) {
    drawing *w = user;
    if (w->at >= w->first && w->at < w->first + w->count && !bundled(t)) {
        w->bars = true;
        for (size_t i = 0; t->rest.count > 1 && i < t->rest.count; i++)
            w->names = fmax(w->names, fl_text_width(name_of(t, i)));
    }
    w->at++;
}

/* The distinct tested values, ascending. */
static size_t tried(const fl_study *t, double *x) {
    size_t n = 0;
    for (size_t i = 0; i < t->count; i++)
        x[i] = t->point[i].x;
    gsl_sort(x, 1, t->count);
    for (size_t i = 0; i < t->count; i++)
        if (!n || x[i] != x[n - 1])
            x[n++] = x[i];
    return n;
}

/* The mean over all other settings: one point for each value. */
static void put_mean(drawing *w, const fl_study *t, const double *x, size_t n, bool slowdown) {
    for (size_t k = 0; k < n; k++) {
        double sum = 0;
        size_t of = 0;
        for (size_t i = 0; i < t->count; i++)
            if (t->point[i].x == x[k]) {
                sum += value_of(w->s, &t->point[i], slowdown).mean;
                of++;
            }
        fl_lines_point(&w->lines, "strong", x[k], sum / (double)of, NAN, NAN, 1);
    }
    fl_lines_lift(&w->lines);
}

static void put_line(drawing *w, const fl_study *t, size_t from, size_t to, bool slowdown) {
    const bool many = bundled(t);
    const int colour = 1 + (int)(t->point[from].line % FL_PICTURE_COLOURS);
    for (size_t i = from; i < to; i++)
        fl_lines_point(&w->lines, many ? "faint" : "line", t->point[i].x, value_of(w->s, &t->point[i], slowdown).mean,
                       NAN, NAN, colour);
    fl_lines_lift(&w->lines);
    for (size_t i = from; !many && i < to; i++) {
        const fl_interval v = value_of(w->s, &t->point[i], slowdown);
        char tip[512];
        if (!isfinite(v.mean))
            continue;
        if (v.low < v.high)
            fl_lines_range(&w->lines, t->point[i].x, v.low, v.high, colour);
        fl_lines_point(&w->lines, "point", t->point[i].x, v.mean, NAN, NAN, colour);
        snprintf(tip, sizeof tip, "%s: %.4g %%", fl_summary_name(w->s, t->point[i].item), v.mean);
        fl_lines_tip(&w->lines, t->point[i].x, v.mean, tip);
    }
    if (!many && t->rest.count > 1)
        fl_lines_name(&w->lines, value_of(w->s, &t->point[to - 1], slowdown).mean, colour,
                      name_of(t, t->point[from].line));
}

static void put_panel(drawing *w, const fl_study *t, const double *x, size_t n, bool slowdown) {
    char title[256], label[64];
    fl_panel panel = {.x_label = t->name, .y_label = label, .title = title, .tick = x, .ticks = n};
    snprintf(title, sizeof title, "%s", t->family);
    snprintf(label, sizeof label, "%s, %%", slowdown ? "slowdown" : fl_merit_name(w->s->scope->data));
    panel.log_x = x[0] > 0 && x[n - 1] / x[0] >= 50;
    const double room = panel.log_x ? pow(x[n - 1] / x[0], 0.04) : 0.04 * (x[n - 1] - x[0]);
    panel.x0 = panel.log_x ? x[0] / room : x[0] - room;
    panel.x1 = panel.log_x ? x[n - 1] * room : x[n - 1] + room;
    panel.y0 = HUGE_VAL;
    panel.y1 = -HUGE_VAL;
    for (size_t i = 0; i < t->count; i++) {
        const fl_interval v = value_of(w->s, &t->point[i], slowdown);
        fl_hold(&panel.y0, &panel.y1, v.mean);
        fl_hold(&panel.y0, &panel.y1, bundled(t) ? v.mean : v.low);
        fl_hold(&panel.y0, &panel.y1, bundled(t) ? v.mean : v.high);
    }
    fl_loosen(&panel.y0, &panel.y1);
    fl_lines_panel(&w->lines, &panel);
    for (size_t i = 0, end; i < t->count; i = end) {
        for (end = i + 1; end < t->count && t->point[end].line == t->point[i].line;)
            end++;
        put_line(w, t, i, end, slowdown);
    }
    if (bundled(t))
        put_mean(w, t, x, n, slowdown);
}

static void put_study(void *user, const fl_study *t) {
    drawing *w = user;
    double *x = fl_must(malloc((t->count + 1) * sizeof *x));
    if (w->at >= w->first && w->at < w->first + w->count) {
        const size_t n = tried(t, x);
        put_panel(w, t, x, n, false);
        put_panel(w, t, x, n, true);
    }
    w->at++;
    free(x);
}

size_t fl_picture_studies(fl_picture *p, const fl_summary *s, size_t first, size_t count) {
    drawing w = {.s = s, .first = first, .count = count};
    char about[512], intervals[128];
    fl_lead_about(s, about, sizeof about);
    fl_lead_intervals(s, intervals, sizeof intervals);
    fl_studies(s, measure, &w);
    p->bars = *intervals && w.bars;
    if (p->bars)
        snprintf(about + strlen(about), sizeof about - strlen(about), "; bars: %s", intervals);
    const size_t there = w.at > first ? w.at - first : 0, n = there < count ? there : count;
    if (!n)
        return 0;
    w.at = 0;
    fl_lines_begin(&w.lines, p, (int)n * 2, p->width < 600 ? 1 : 2, 190, fmin(w.names, NAMES_MOST), false,
                   "Sensitivity to parameters", about);
    fl_studies(s, put_study, &w);
    fl_lines_end(&w.lines);
    return n;
}
