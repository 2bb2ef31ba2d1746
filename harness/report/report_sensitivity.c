#include "harness/report/report_sensitivity.h"

#include "harness/report/report_figures.h"
#include "traces/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_line(const void *a, const void *b) {
    const fl_study_point *p = a, *q = b;
    return p->line != q->line ? (p->line > q->line) - (p->line < q->line) : (p->x > q->x) - (p->x < q->x);
}

/* The label's settings but one, as text; false where the one is missing or no number. */
static bool split(const char *label, const char *name, double *x, char *rest, size_t size) {
    char key[64], value[64];
    bool found = false;
    size_t used = 0;
    rest[0] = 0;
    for (size_t i = 0; fl_label_setting(label, i, key, value); i++) {
        if (!strcmp(key, name))
            found = fl_real_parse(value, x) == FL_NUMBER_OK;
        else if (used < size)
            used += (size_t)snprintf(rest + used, size - used, "%s%s=%s", used ? ", " : "", key, value);
    }
    return found;
}

static fl_status collect(const fl_summary *s, fl_study *t, fl_diag *d) {
    fl_status st = FL_OK;
    t->point = calloc(s->count + 1, sizeof *t->point);
    if (!t->point)
        return fl_no_memory(d, "the report");
    for (size_t i = 0; !st && i < s->count; i++) {
        char family[128], rest[512];
        double x;
        const char *label = fl_summary_name(s, i);
        if (isnan(s->item[i].merit.mean) || strcmp(fl_label_family(label, family), t->family) != 0 ||
            !split(label, t->name, &x, rest, sizeof rest))
            continue;
        st = fl_names_index(&t->rest, rest, &t->point[t->count].line, d);
        t->point[t->count].x = x;
        t->point[t->count++].item = i;
    }
    qsort(t->point, t->count, sizeof *t->point, by_line);
    return st;
}

static bool worth_it(const fl_study *t) { /* some line has two different values */
    for (size_t i = 1; i < t->count; i++)
        if (t->point[i].line == t->point[i - 1].line && t->point[i].x != t->point[i - 1].x)
            return true;
    return false;
}

static fl_interval value_of(const fl_summary *s, const fl_study_point *p, bool slowdown) {
    fl_interval v = slowdown ? s->item[p->item].value[FL_REPORT_SLOWDOWN] : s->item[p->item].merit;
    const double scale = slowdown ? 100 : 1;
    v.mean *= scale;
    v.low *= scale;
    v.high *= scale;
    return v;
}

/* Over all other settings: one point for each value. */
static void draw_mean(const fl_chart *c, const fl_summary *s, const fl_study *t, bool slowdown) {
    double *x = malloc((t->count + 1) * sizeof *x), *y = malloc((t->count + 1) * sizeof *y);
    size_t n = 0;
    for (double last = -HUGE_VAL; x && y;) {
        double next = HUGE_VAL, sum = 0;
        size_t of = 0;
        for (size_t i = 0; i < t->count; i++)
            if (t->point[i].x > last && t->point[i].x < next)
                next = t->point[i].x;
        if (next == HUGE_VAL)
            break;
        for (size_t i = 0; i < t->count; i++)
            if (t->point[i].x == next) {
                sum += value_of(s, &t->point[i], slowdown).mean;
                of++;
            }
        x[n] = last = next;
        y[n++] = sum / (double)of;
    }
    if (x && y)
        fl_chart_path(c, x, y, n, false, "strong", (fl_look){.colour = 1});
    free(x);
    free(y);
}

static void draw_line(const fl_chart *c, const fl_summary *s, const fl_study_point *p, size_t n, bool slowdown,
                      fl_look look, bool marks) {
    double *x = malloc((n + 1) * sizeof *x), *y = malloc((n + 1) * sizeof *y);
    for (size_t i = 0; x && y && i < n; i++) {
        x[i] = p[i].x;
        y[i] = value_of(s, &p[i], slowdown).mean;
    }
    if (x && y)
        fl_chart_path(c, x, y, n, false, marks ? "" : "faint", look);
    for (size_t i = 0; marks && x && y && i < n; i++) {
        const fl_interval v = value_of(s, &p[i], slowdown);
        if (isnan(v.mean))
            continue;
        const double at = fl_chart_x(c, x[i]);
        fl_chart_group(c, "%s: %.3g %%", fl_summary_name(s, p[i].item), v.mean);
        if (isfinite(v.low))
            fl_chart_line(c, at, fl_chart_y(c, v.low), at, fl_chart_y(c, v.high), "range", look);
        fl_chart_mark(c, at, fl_chart_y(c, v.mean), 3.5, look);
        fl_chart_group_end(c);
    }
    free(x);
    free(y);
}

static void draw_study(FILE *f, const fl_summary *s, const fl_study *t, bool slowdown) {
    const char *what = slowdown ? "slowdown" : fl_merit_name(s->scope->data);
    char alt[256], label[64], x_label[200];
    const bool many = t->rest.count > FL_CHART_COLOURS;
    fl_chart c;
    snprintf(alt, sizeof alt, "Line chart: %s over %s of %s.", what, t->name, t->family);
    snprintf(label, sizeof label, "%s, %%", what);
    snprintf(x_label, sizeof x_label, "%s of %s", t->name, t->family);
    fl_figure_begin(f);
    fl_chart_begin(&c, f, 300, alt);
    c.x.label = x_label;
    c.y.label = label;
    c.x.round = false;
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (size_t i = 0; i < t->count; i++) {
        low = fmin(low, t->point[i].x);
        high = fmax(high, t->point[i].x);
    }
    c.x.log = low > 0 && high / low >= 50;
    const double room = c.x.log ? pow(high / low, 0.03) : 0.03 * (high - low); /* for the marks at the ends */
    fl_axis_hold(&c.x, c.x.log ? low / room : low - room);
    fl_axis_hold(&c.x, c.x.log ? high * room : high + room);
    for (size_t i = 0; i < t->count; i++) {
        const fl_interval v = value_of(s, &t->point[i], slowdown);
        fl_axis_hold(&c.y, v.mean);
        if (!many) {
            fl_axis_hold(&c.y, v.low);
            fl_axis_hold(&c.y, v.high);
        }
    }
    fl_chart_axes(&c, true);
    for (size_t i = 0, end; i < t->count; i = end) {
        for (end = i + 1; end < t->count && t->point[end].line == t->point[i].line;)
            end++;
        const int line = (int)t->point[i].line;
        draw_line(&c, s, &t->point[i], end - i, slowdown,
                  many ? (fl_look){0} : (fl_look){.colour = 1 + line % FL_CHART_COLOURS, .shape = line, .dash = line},
                  !many);
    }
    if (many)
        draw_mean(&c, s, t, slowdown);
    fl_chart_end(&c);
    if (!many && t->rest.count > 1) {
        fl_legend_begin(f);
        for (size_t i = 0; i < t->rest.count; i++)
            fl_legend_entry(f, (fl_look){.colour = 1 + (int)i % FL_CHART_COLOURS, .shape = (int)i, .dash = (int)i},
                            true, *t->rest.item[i] ? t->rest.item[i] : "nothing else set");
        fl_legend_end(f);
    }
    fl_figure_caption(f, "%s: %s over %s, %s.", t->family, what, t->name,
                      many                ? "a line for each combination of the other parameters; bold, their mean"
                      : t->rest.count > 1 ? "a line for each setting of the others, with 95 % intervals"
                                          : "with 95 % intervals");
}

void fl_studies(const fl_summary *s, void (*each)(void *user, const fl_study *t), void *user) {
    fl_names done = {0};
    for (size_t i = 0; i < s->count; i++) {
        char family[128], name[64], value[64], key[256];
        const char *label = fl_summary_name(s, i);
        fl_label_family(label, family);
        for (size_t k = 0; fl_label_setting(label, k, name, value); k++) {
            const size_t before = done.count;
            size_t index;
            snprintf(key, sizeof key, "%s:%s", family, name);
            if (fl_names_index(&done, key, &index, NULL) || done.count == before)
                continue;
            fl_study t = {.family = family};
            snprintf(t.name, sizeof t.name, "%s", name);
            if (!collect(s, &t, NULL) && worth_it(&t))
                each(user, &t);
            fl_names_free(&t.rest);
            free(t.point);
        }
    }
    fl_names_free(&done);
}

typedef struct drawing {
    FILE *f;
    const fl_summary *s;
    size_t drawn;
} drawing;

static void draw_both(void *user, const fl_study *t) {
    drawing *w = user;
    draw_study(w->f, w->s, t, false);
    draw_study(w->f, w->s, t, true);
    w->drawn += 2;
}

size_t fl_figures_sensitivity(FILE *f, const fl_summary *s) {
    drawing w = {f, s, 0};
    fl_studies(s, draw_both, &w);
    return w.drawn;
}
