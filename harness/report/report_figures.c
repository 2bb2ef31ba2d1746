#include "harness/report/report_figures.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *fl_merit_name(const fl_report_data *r) {
    const char *o = fl_report_objective(r);
    return !strcmp(o, "edp") ? "EDP saved" : !strcmp(o, "ed2p") ? "ED2P saved" : "energy saved";
}

void fl_figure_begin(FILE *f) { fputs("<figure><div class=\"plot\">\n", f); }

void fl_figure_caption(FILE *f, const char *format, ...) {
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    fputs("</div><figcaption>", f);
    fl_html_text(f, text ? text : "");
    fputs("</figcaption></figure>\n", f);
    free(text);
}

/* ---- Pareto ---- */

static double slow_of(const fl_policy_summary *p) { return 100 * p->value[FL_REPORT_SLOWDOWN].mean; }

static bool drawable(const fl_policy_summary *p) { return isfinite(p->merit.mean) && isfinite(slow_of(p)); }

/* No other policy is both faster and saves more, with one of them strictly. */
static bool on_front(const fl_summary *s, size_t i) {
    const fl_policy_summary *a = &s->item[i];
    if (a->baseline || !drawable(a))
        return false;
    for (size_t k = 0; k < s->count; k++) {
        const fl_policy_summary *b = &s->item[k];
        if (b->baseline || !drawable(b))
            continue;
        if (slow_of(b) <= slow_of(a) && b->merit.mean >= a->merit.mean &&
            (slow_of(b) < slow_of(a) || b->merit.mean > a->merit.mean))
            return false;
    }
    return true;
}

static int by_x(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void draw_front(const fl_chart *c, const fl_summary *s) {
    double(*point)[2] = malloc((s->count + 1) * sizeof *point);
    double *x = malloc((s->count + 1) * sizeof *x), *y = malloc((s->count + 1) * sizeof *y);
    size_t n = 0;
    for (size_t i = 0; point && i < s->count; i++)
        if (on_front(s, i)) {
            point[n][0] = slow_of(&s->item[i]);
            point[n++][1] = s->item[i].merit.mean;
        }
    if (point && x && y) {
        qsort(point, n, sizeof *point, by_x);
        for (size_t i = 0; i < n; i++) {
            x[i] = point[i][0];
            y[i] = point[i][1];
        }
        fl_chart_path(c, x, y, n, true, "front", (fl_look){.dash = 1});
    }
    free(point);
    free(x);
    free(y);
}

enum { NAMES_MAX = 14 };

typedef struct box {
    double x1, y1, x2, y2;
} box;

/* A name beside its mark, at the first of four places where it meets neither another name nor the edge. */
static bool put_name(const fl_chart *c, box *taken, size_t *count, double x, double y, const char *name) {
    const double width = 6.0 * (double)strlen(name), height = 12;
    const struct {
        double dx, dy;
        const char *anchor;
    } place[] = {{8, 4, "start"}, {-8, 4, "end"}, {0, -9, "middle"}, {0, 17, "middle"}};
    for (size_t k = 0; k < 4; k++) {
        const double left = x + place[k].dx - (k == 0 ? 0 : k == 1 ? width : width / 2);
        const box b = {left, y + place[k].dy - height, left + width, y + place[k].dy + 2};
        bool free_here = b.x1 >= c->left && b.x2 <= c->right && b.y1 >= c->top - 6 && b.y2 <= c->bottom;
        for (size_t i = 0; i < *count && free_here; i++)
            free_here = b.x2 < taken[i].x1 || b.x1 > taken[i].x2 || b.y2 < taken[i].y1 || b.y1 > taken[i].y2;
        if (!free_here)
            continue;
        taken[(*count)++] = b;
        fl_chart_label(c, x + place[k].dx, y + place[k].dy, place[k].anchor, "direct", name);
        return true;
    }
    return false;
}

static void draw_policy(const fl_chart *c, const fl_summary *s, const fl_looks *looks, size_t i) {
    const fl_policy_summary *p = &s->item[i];
    const fl_look look = looks->of[p->policy];
    const fl_interval *slow = &p->value[FL_REPORT_SLOWDOWN];
    const double x = fl_chart_x(c, slow_of(p)), y = fl_chart_y(c, p->merit.mean);
    fl_chart_group(c, "%s: %s %.2f %%, slowdown %.2f %%", fl_summary_name(s, i), fl_merit_name(s->scope->data),
                   p->merit.mean, slow_of(p));
    if (isfinite(slow->low))
        fl_chart_line(c, fl_chart_x(c, 100 * slow->low), y, fl_chart_x(c, 100 * slow->high), y, "range thin", look);
    if (isfinite(p->merit.low))
        fl_chart_line(c, x, fl_chart_y(c, p->merit.low), x, fl_chart_y(c, p->merit.high), "range thin", look);
    fl_chart_mark(c, x, y, p->baseline ? 4 : s->count > 60 ? 3 : 5, look);
    fl_chart_group_end(c);
}

/* One of those before it lies at the same place. */
static bool named_already(const fl_summary *s, size_t k) {
    const fl_policy_summary *p = &s->item[s->order[k]];
    for (size_t i = 0; i < k; i++) {
        const fl_policy_summary *q = &s->item[s->order[i]];
        if (q->merit.mean == p->merit.mean && slow_of(q) == slow_of(p))
            return true;
    }
    return false;
}

static void draw_names(const fl_chart *c, const fl_summary *s) {
    box *taken = calloc(2 * s->count + 1, sizeof *taken);
    size_t count = 0, named = 0;
    for (size_t i = 0; taken && i < s->count; i++) /* nothing is written over a mark */
        if (drawable(&s->item[i])) {
            const double x = fl_chart_x(c, slow_of(&s->item[i])), y = fl_chart_y(c, s->item[i].merit.mean);
            taken[count++] = (box){x - 5, y - 5, x + 5, y + 5};
        }
    for (int others = 0; others < 2; others++) /* the reference first, while there is room */
        for (size_t k = 0; taken && k < s->count && named < NAMES_MAX; k++) {
            const size_t i = s->order[k];
            const char *name = fl_summary_name(s, i);
            const bool wanted = i == s->reference ? !others : others && (on_front(s, i) || s->item[i].baseline);
            if (wanted && drawable(&s->item[i]) && !named_already(s, k))
                named += put_name(c, taken, &count, fl_chart_x(c, slow_of(&s->item[i])),
                                  fl_chart_y(c, s->item[i].merit.mean), s->item[i].baseline ? name + 9 : name);
        }
    free(taken);
}

static void widen(fl_axis *a) { /* room for the marks at the edge */
    const double room = 0.03 * (a->high - a->low);
    a->low -= room;
    a->high += room;
}

static void put_legend(FILE *f, const fl_looks *looks, bool line) {
    fl_legend_begin(f);
    for (size_t i = 0; i < looks->legend.count; i++)
        if (!line || strcmp(looks->legend.item[i], "baselines") != 0)
            fl_legend_entry(f, looks->legend_look[i], line, looks->legend.item[i]);
    if (!line)
        fl_legend_entry(f, (fl_look){.dash = 1}, true, "Pareto front");
    fl_legend_end(f);
}

void fl_figure_pareto(FILE *f, const fl_summary *s, const fl_looks *looks) {
    fl_chart c;
    char label[64], alt[256];
    size_t shown = 0;
    snprintf(label, sizeof label, "%s, %%", fl_merit_name(s->scope->data));
    snprintf(alt, sizeof alt,
             "Scatter plot of %zu policies and baselines: %s over slowdown; the table has the numbers.", s->count,
             fl_merit_name(s->scope->data));
    fl_figure_begin(f);
    fl_chart_begin(&c, f, 360, alt);
    c.x.label = "slowdown against the driver's default, %";
    c.y.label = label;
    for (size_t i = 0; i < s->count; i++) {
        const fl_policy_summary *p = &s->item[i];
        if (!drawable(p))
            continue;
        const fl_interval *slow = &p->value[FL_REPORT_SLOWDOWN];
        fl_axis_hold(&c.x, slow_of(p));
        fl_axis_hold(&c.x, 100 * slow->low);
        fl_axis_hold(&c.x, 100 * slow->high);
        fl_axis_hold(&c.y, p->merit.mean);
        fl_axis_hold(&c.y, p->merit.low);
        fl_axis_hold(&c.y, p->merit.high);
        shown++;
    }
    c.x.round = c.y.round = false;
    widen(&c.x);
    widen(&c.y);
    fl_chart_axes(&c, true);
    draw_front(&c, s);
    for (int baselines = 1; baselines >= 0; baselines--)
        for (size_t k = s->count; k--;)
            if (s->item[s->order[k]].baseline == (baselines != 0) && drawable(&s->item[s->order[k]]))
                draw_policy(&c, s, looks, s->order[k]);
    draw_names(&c, s);
    fl_chart_end(&c);
    put_legend(f, looks, false);
    fl_figure_caption(f,
                      "Saving against slowdown: up and left is better. Marks are means, bars 95 %% intervals; %zu of "
                      "%zu are drawn. Named: the Pareto front and the baselines.",
                      shown, s->count);
}

/* ---- rows with intervals ---- */

enum { ROWS_MAX = 40, LABEL_MAX = 29 };

typedef struct lane {
    size_t item;
    const fl_interval *x;
} lane;

/* Long labels lose their middle: what differs stands at the end. */
static void shorten(const char *name, char *text, size_t size) {
    const size_t length = strlen(name);
    if (length <= LABEL_MAX)
        snprintf(text, size, "%s", name);
    else
        snprintf(text, size, "%.9s\xe2\x80\xa6%s", name, name + length - (LABEL_MAX - 10));
}

static void forest(FILE *f, const fl_summary *s, const fl_looks *looks, const lane *row, size_t count,
                   const char *x_label, const char *alt) {
    fl_chart c;
    size_t longest = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(fl_summary_name(s, row[i].item));
        longest = length > longest ? length : longest;
    }
    fl_chart_begin(&c, f, 60 + 17 * (double)count, alt);
    c.left = 16 + 7 * (double)(longest < LABEL_MAX ? longest : LABEL_MAX);
    c.x.label = x_label;
    c.y = (fl_axis){.low = 0, .high = (double)count};
    for (size_t i = 0; i < count; i++) {
        fl_axis_hold(&c.x, row[i].x->mean);
        fl_axis_hold(&c.x, row[i].x->low);
        fl_axis_hold(&c.x, row[i].x->high);
    }
    fl_chart_axes(&c, false);
    for (size_t i = 0; i < count; i++) {
        const fl_interval *x = row[i].x;
        const double y = fl_chart_y(&c, (double)count - (double)i - 0.5), at = fl_chart_x(&c, x->mean);
        const fl_look look = looks->of[s->item[row[i].item].policy];
        const char *name = fl_summary_name(s, row[i].item);
        char text[64];
        shorten(name, text, sizeof text);
        fl_chart_label(&c, c.left - 8, y + 4, "end", "row", text);
        if (isfinite(x->low))
            fl_chart_group(&c, "%s: %.3g [%.3g, %.3g]", name, x->mean, x->low, x->high);
        else
            fl_chart_group(&c, "%s: %.3g", name, x->mean);
        if (isfinite(x->low))
            fl_chart_line(&c, fl_chart_x(&c, x->low), y, fl_chart_x(&c, x->high), y, "range", look);
        fl_chart_mark(&c, at, y, 4.5, look);
        fl_chart_group_end(&c);
    }
    fl_chart_end(&c);
}

void fl_figure_merit(FILE *f, const fl_summary *s, const fl_looks *looks) {
    lane row[ROWS_MAX];
    size_t n = 0, all = 0;
    char label[64];
    for (size_t k = 0; k < s->count; k++) {
        const fl_policy_summary *p = &s->item[s->order[k]];
        if (isnan(p->merit.mean))
            continue;
        all++;
        if (n < ROWS_MAX)
            row[n++] = (lane){s->order[k], &p->merit};
    }
    if (!n)
        return;
    snprintf(label, sizeof label, "%s, %%", fl_merit_name(s->scope->data));
    fl_figure_begin(f);
    forest(f, s, looks, row, n, label,
           "Dot plot of the policies, the best first, with intervals; the table has the numbers.");
    fl_figure_caption(f, "%c%s against the driver's default: means with 95 %% intervals, the best first%s.",
                      fl_merit_name(s->scope->data)[0] == 'e' ? 'E' : fl_merit_name(s->scope->data)[0],
                      fl_merit_name(s->scope->data) + 1, all > n ? " (the best 40)" : "");
}

static int by_rank(const void *a, const void *b) {
    const lane *x = a, *y = b;
    return (x->x->mean > y->x->mean) - (x->x->mean < y->x->mean);
}

void fl_figure_ranks(FILE *f, const fl_summary *s, const fl_looks *looks) {
    lane *row = calloc(s->count + 1, sizeof *row);
    size_t n = 0;
    for (size_t i = 0; row && s->ranked && i < s->count; i++)
        if (!s->item[i].baseline)
            row[n++] = (lane){i, &s->item[i].rank.rank};
    if (n > 1) {
        const size_t shown = n < ROWS_MAX ? n : ROWS_MAX;
        qsort(row, n, sizeof *row, by_rank);
        fl_figure_begin(f);
        forest(f, s, looks, row, shown, "mean rank (1 = best)",
               "Dot plot of mean ranks with intervals; the table of pairs has the numbers.");
        fl_figure_caption(f,
                          "Mean rank by %s over the %zu workloads that all %zu policies ran, with 95 %% intervals%s. "
                          "Baselines are not ranked.",
                          fl_merit_name(s->scope->data), row[0].x->workloads, n, n > shown ? " (the best 40)" : "");
    }
    free(row);
}
