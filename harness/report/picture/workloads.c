/* Every run of every policy: a row for each policy with what its runs saved and how much slower they were. The means of
 * `pareto` would hide which policy breaks the bound on which workload. plots/workloads.gp draws it. */
#include "harness/report/picture/inside.h"

#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/report/picture/picture.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lengths in pixels: a row, the column right of the panels, the space between the panels, a
 * tick's number. From more runs of a policy on
 * than DOTS_MAX, only those that break the bound are marks of their own. */
enum { ROW = 22, BESIDE = 96, BETWEEN_PANELS = 26, TICK = 36, DOTS_MAX = 40 };
enum { HOLDS = 1, BASELINE = 0, BREAKS = -1, DOT = 7, RING = 6 };

static bool shown(const fl_report_row *r) {
    return isfinite(r->value[FL_REPORT_SLOWDOWN]) && isfinite(r->value[FL_REPORT_SAVING_PCT]);
}

static double value_of(const fl_report_row *r, int panel) {
    return panel == 1 ? r->value[FL_REPORT_SAVING_PCT] : 100 * r->value[FL_REPORT_SLOWDOWN];
}

typedef struct lane { /* a policy's runs */
    const char *name;
    const fl_report_row **run;
    size_t runs, broken;
    int colour;
} lane;

static void put_text(fl_picture *p, const char *what, int panel, size_t row, double x, int colour, const char *text) {
    fprintf(p->table, "%s,%d,%zu,%.17g,n/a,n/a,0,%d,", what, panel, row, x, colour);
    fl_picture_field(p->table, text);
    fputc('\n', p->table);
}

static void put_span(fl_picture *p, const char *what, int panel, size_t row, double low, double high, int colour) {
    fprintf(p->table, "%s,%d,%zu,n/a,%.17g,%.17g,0,%d,\n", what, panel, row, low, high, colour);
}

/* The line of all runs, the bar of their middle half, the median, and the runs. */
static void put_panel(fl_picture *p, const lane *l, size_t row, int panel) {
    double *x = fl_must(malloc(l->runs * sizeof *x));
    for (size_t i = 0; i < l->runs; i++)
        x[i] = value_of(l->run[i], panel);
    gsl_sort(x, 1, l->runs);
    put_span(p, "all", panel, row, x[0], x[l->runs - 1], l->colour);
    put_span(p, "half", panel, row, gsl_stats_quantile_from_sorted_data(x, 1, l->runs, 0.25),
             gsl_stats_quantile_from_sorted_data(x, 1, l->runs, 0.75), l->colour);
    put_span(p, "median", panel, row, gsl_stats_median_from_sorted_data(x, 1, l->runs), 0, l->colour);
    free(x);
    for (int breaks = 0; breaks < 2; breaks++) /* the runs that break the bound lie on top */
        for (size_t i = 0; i < l->runs; i++) {
            const bool broken = l->run[i]->value[FL_REPORT_VIOLATED] > 0;
            if (broken == (breaks != 0) && (broken || l->runs <= DOTS_MAX))
                fprintf(p->table, "run,%d,%zu,%.17g,n/a,n/a,%d,%d,\n", panel, row, value_of(l->run[i], panel),
                        broken ? RING : DOT, broken ? BREAKS : l->colour);
        }
}

/* The policies in the order of their rank, with the runs that have both values. Free the runs of each. */
static size_t gather(const fl_summary *s, lane *row) {
    const fl_scope *scope = s->scope;
    size_t n = 0;
    for (size_t k = 0; k < s->count && n < FL_ROWS_MAX; k++) {
        const size_t of = s->order[k];
        const bool baseline = s->item[of].baseline;
        lane l = {.name = fl_summary_name(s, of) + (baseline ? sizeof "baseline:" - 1 : 0)};
        l.run = fl_must(calloc(scope->first[of + 1] - scope->first[of] + 1, sizeof *l.run));
        for (size_t i = scope->first[of]; i < scope->first[of + 1]; i++) {
            const fl_report_row *r = &scope->data->row[scope->row[i]];
            if (!shown(r))
                continue;
            l.run[l.runs++] = r;
            l.broken += r->value[FL_REPORT_VIOLATED] > 0;
        }
        l.colour = l.broken ? BREAKS : baseline ? BASELINE : HOLDS;
        if (l.runs)
            row[n++] = l;
        else
            free(l.run);
    }
    return n;
}

/* The least of 1, 2, 5, 10, ... of which at most `most` steps make the span. */
static double step_of(double span, double most) {
    static const double mantissa[] = {1, 2, 5, 10};
    const double least = span / most, power = pow(10, floor(log10(least)));
    size_t k = 0;
    while (mantissa[k] * power < least && k < 3)
        k++;
    return mantissa[k] * power;
}

static void put_ranges(fl_picture *p, const lane *row, size_t n, double bound, double width) {
    for (int panel = 1; panel <= 2; panel++) {
        double low = HUGE_VAL, high = -HUGE_VAL;
        char name[32];
        for (size_t k = 0; k < n; k++)
            for (size_t i = 0; i < row[k].runs; i++)
                fl_hold(&low, &high, value_of(row[k].run[i], panel));
        if (panel == 2)
            fl_hold(&low, &high, bound);
        fl_loosen(&low, &high);
        snprintf(name, sizeof name, "low[%d]", panel);
        fl_picture_number(p, name, low);
        snprintf(name, sizeof name, "high[%d]", panel);
        fl_picture_number(p, name, high);
        snprintf(name, sizeof name, "step[%d]", panel);
        fl_picture_number(p, name, step_of(high - low, fmax(2, width / TICK)));
    }
}

size_t fl_picture_workloads(fl_picture *p, const fl_summary *s, const fl_looks *looks) {
    static const char holds[] = "a run", breaks[] = "a run that breaks the bound; its policy is red",
                      base[] = "baselines";
    const double bound = isfinite(s->scope->data->bound) ? 100 * s->scope->data->bound : (double)NAN;
    lane *row = fl_must(calloc(FL_ROWS_MAX + 1, sizeof *row));
    char about[768], text[256];
    double longest = 60;
    size_t broken = 0;
    (void)looks; /* a colour says here whether a policy holds the bound */
    const size_t n = gather(s, row);
    if (n) {
        for (size_t k = 0; k < n; k++) {
            longest = fmax(longest, fl_text_width(row[k].name));
            broken += row[k].broken;
        }
        fl_picture_plot(p, fmin(longest, 0.45 * p->width) + 24, broken ? BESIDE : 24, ROW * (double)n + 6);
        fl_lead_about(s, about, sizeof about - 200);
        if (n < s->count)
            snprintf(about + strlen(about), sizeof about - strlen(about), "; the best %zu of %zu policies", n,
                     s->count);
        snprintf(about + strlen(about), sizeof about - strlen(about),
                 "; line: all runs of a policy, bar: the middle half, stroke: the median");
        fl_picture_title(p, "Energy saved and slowdown of every run", about);
        p->top += 18; /* for the bound's name */
        p->bottom += 18;
        p->height += 18;
        fl_picture_legend(p, 2 + (broken > 0), fl_text_width(broken ? breaks : base));
        fl_picture_entry(p, holds, (fl_look){.colour = HOLDS}, DOT);
        fl_picture_entry(p, base, (fl_look){.colour = BASELINE}, DOT);
        if (broken)
            fl_picture_entry(p, breaks, (fl_look){.colour = BREAKS}, RING);
        const double half = (p->right - p->left - BETWEEN_PANELS) / 2;
        fputs("array from[2]\narray to[2]\narray low[2]\narray high[2]\narray label[2]\narray step[2]\n", p->facts);
        for (int k = 0; k < 2; k++) {
            fprintf(p->facts, "from[%d]=%.1f\nto[%d]=%.1f\n", k + 1, p->left + k * (half + BETWEEN_PANELS), k + 1,
                    p->left + k * (half + BETWEEN_PANELS) + half);
        }
        fl_picture_text(p, "label[1]", p->width < 600 ? "saved, %" : "energy saved, %");
        fl_picture_text(p, "label[2]", p->width < 600 ? "slower, %" : "slowdown, %");
        put_ranges(p, row, n, bound, half);
        fl_picture_number(p, "bound", bound);
        snprintf(text, sizeof text, "bound %.4g %%", bound);
        fl_picture_text(p, "bound_text", text);
        fputs("what,panel,row,x,low,high,point,colour,text\n", p->table);
        for (size_t k = 0; k < n; k++) {
            put_panel(p, &row[k], k, 1);
            put_panel(p, &row[k], k, 2);
            put_text(p, "name", 1, k, 0, row[k].colour, fl_text_fit(row[k].name, p->left - 24, text));
            snprintf(text, sizeof text, "breaks %zu of %zu", row[k].broken, row[k].runs);
            if (row[k].broken)
                put_text(p, "beside", 2, k, 0, BREAKS, text);
        }
        fl_picture_number(p, "rows", (double)n);
    }
    for (size_t k = 0; k < n; k++)
        free(row[k].run);
    free(row);
    return n;
}
