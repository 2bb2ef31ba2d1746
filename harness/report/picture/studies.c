/* Savings and cost of the policies of one family over one of their parameters: two panels for each. */
#include "harness/report/picture/lines.h"
#include "harness/report/picture/pictures.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    double *x = malloc((t->count + 1) * sizeof *x);
    if (x && w->at >= w->first && w->at < w->first + w->count) {
        const size_t n = tried(t, x);
        put_panel(w, t, x, n, false);
        put_panel(w, t, x, n, true);
    }
    w->at++;
    free(x);
}

fl_status fl_picture_studies(fl_picture *p, const fl_summary *s, size_t first, size_t count, size_t *drawn,
                             fl_diag *d) {
    drawing w = {.s = s, .first = first, .count = count};
    char about[512], intervals[128];
    (void)d;
    fl_lead_about(s, about, sizeof about);
    fl_lead_intervals(s, intervals, sizeof intervals);
    fl_studies(s, measure, &w);
    p->bars = *intervals && w.bars;
    if (p->bars)
        snprintf(about + strlen(about), sizeof about - strlen(about), "; bars: %s", intervals);
    const size_t there = w.at > first ? w.at - first : 0, n = there < count ? there : count;
    *drawn = n;
    if (!n)
        return FL_OK;
    w.at = 0;
    fl_lines_begin(&w.lines, p, (int)n * 2, p->width < 600 ? 1 : 2, 190, fmin(w.names, NAMES_MOST), false,
                   "Sensitivity to parameters", about);
    fl_studies(s, put_study, &w);
    fl_lines_end(&w.lines);
    return FL_OK;
}
