/* Policies as rows, the best first: marks with intervals, and pairs of bars. */
#include "harness/report/picture/pictures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    fl_picture_field(p, fl_text_fit(name, p->left - 24, text));
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

fl_status fl_picture_rows(fl_picture *p, const fl_summary *s, const fl_looks *looks, bool ranks, size_t *drawn,
                          fl_diag *d) {
    lane *row = calloc(s->count + 1, sizeof *row);
    *drawn = 0;
    if (!row)
        return fl_no_memory(d, "a picture");
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
        fl_picture_field(p, tip);
        fputc('\n', p->table);
    }
    fl_picture_number(p, "rows", (double)n);
    *drawn = n;
    free(row);
    return FL_OK;
}

static void put_regret(fl_picture *p, const fl_policy_summary *of, fl_report_column column) {
    const double v = of->value[column].mean;
    if (isfinite(v))
        fprintf(p->table, ",%.17g", v);
    else
        fputs(",n/a", p->table);
}

fl_status fl_picture_regret(fl_picture *p, const fl_summary *s, size_t *drawn, fl_diag *d) {
    lane *row = calloc(s->count + 1, sizeof *row);
    size_t n = 0, partial = 0;
    bool both = false; /* a clairvoyant schedule is known */
    char about[640];
    *drawn = 0;
    if (!row)
        return fl_no_memory(d, "a picture");
    for (size_t k = 0; k < s->count && n < FL_ROWS_MAX; k++)
        if (!s->item[s->order[k]].baseline) {
            row[n++] = (lane){s->order[k], s->item[s->order[k]].value[FL_REPORT_REGRET_STATIC_PCT]};
            partial += s->item[s->order[k]].violations > 0;
            both |= isfinite(s->item[s->order[k]].value[FL_REPORT_REGRET_CLAIRVOYANT_PCT].mean);
        }
    fl_picture_plot(p, names_of(p, s, row, n), 60, (both ? BARS : ROW) * (double)n + 6);
    fl_lead_about(s, about, sizeof about);
    if (partial)
        snprintf(about + strlen(about), sizeof about - strlen(about),
                 "; *: over the runs that hold the bound; n/a: there is none");
    fl_picture_title(p, "What each policy left on the table", about);
    fl_picture_legend(p, both ? 2 : 1, fl_text_width("against the clairvoyant schedule"));
    fl_picture_entry(p, "against the best static clock", (fl_look){.colour = 1}, 5);
    if (both)
        fl_picture_entry(p, "against the clairvoyant schedule", (fl_look){.colour = 2}, 5);
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
    *drawn = n;
    free(row);
    return FL_OK;
}
