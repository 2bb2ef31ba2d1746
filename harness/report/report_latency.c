#include "harness/report/report_latency.h"

#include "harness/report/report_figures.h"
#include "harness/report/report_tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double p99_ms(const fl_policy_summary *p) { return 1e3 * p->value[FL_REPORT_LATENCY_P99_S].mean; }
static double request_j(const fl_policy_summary *p) { return p->value[FL_REPORT_REQUEST_J].mean; }
static bool drawable(const fl_policy_summary *p) { return isfinite(p99_ms(p)) && isfinite(request_j(p)); }

bool fl_latency_any(const fl_summary *s) {
    for (size_t i = 0; i < s->count; i++)
        if (drawable(&s->item[i]))
            return true;
    return false;
}

/* ---- in words ---- */

void fl_latency_short(FILE *f, const fl_summary *s, size_t item) {
    const fl_policy_summary *p = &s->item[item];
    if (!drawable(p))
        return;
    fprintf(f, "%.4g J per request at a p99 latency of %.4g ms", request_j(p), p99_ms(p));
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(fl_summary_name(s, i), "baseline:default") && drawable(&s->item[i]))
            fprintf(f, " (the driver's default: %.4g J at %.4g ms)", request_j(&s->item[i]), p99_ms(&s->item[i]));
    fputs("; ", f);
}

void fl_bounds_put(FILE *f, const fl_report_data *r) {
    const char *before = ", under the bound of ";
    if (isfinite(r->bound)) {
        fprintf(f, "%s%g %%", before, 100 * r->bound);
        before = ", ";
    }
    for (size_t i = 0; i < r->promises.count; i++) {
        char text[FL_PROMISE_TEXT];
        fputs(before, f);
        fl_html_text(f, fl_promise_text(&r->promises.item[i], text));
        before = ", ";
    }
}

/* ---- the table ---- */

typedef struct order {
    size_t item;
    bool over;
    double j;
} order;

static int by_request(const void *a, const void *b) {
    const order *x = a, *y = b;
    if (x->over != y->over)
        return x->over - y->over;
    if (x->j != y->j)
        return x->j < y->j ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

/* "slowdown<=0.05 in 2 of 9, ..." of one policy in the scope; "holds" where it breaks none. */
static void put_broken(FILE *f, const fl_scope *sc, size_t policy) {
    const fl_report_data *r = sc->data;
    char text[FL_PROMISE_TEXT];
    size_t told = 0;
    fputs("<td class=\"text\">", f);
    for (size_t bit = 0; bit <= r->promises.count; bit++) {
        size_t runs = 0, broken = 0;
        for (size_t i = 0; i < r->row_count; i++) {
            const fl_report_row *row = &r->row[i];
            if (row->policy != policy || row->variant != sc->variant ||
                (sc->platform != FL_REPORT_ALL && row->platform != (size_t)sc->platform))
                continue;
            runs++;
            broken += row->broken >> bit & 1;
        }
        if (!broken)
            continue;
        fl_html_text(f, told++ ? ", " : "");
        fl_html_text(f, fl_promises_name(&r->promises, r->bound, bit, text));
        fprintf(f, " in %zu of %zu", broken, runs);
    }
    fputs(told ? "</td>" : "none</td>", f);
}

static void put_table(FILE *f, const fl_summary *s, const order *row, size_t count, const char *id) {
    const fl_report_data *r = s->scope->data;
    const bool bounded = r->promises.count || isfinite(r->bound);
    const char *caption = bounded ? "Latency and energy of a request: the least energy first, of those that hold all "
                                    "bounds in every run; then the others"
                                  : "Latency and energy of a request: the least energy first";
    fputs("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Latency\"><table class=\"sortable\" id=\"",
          f);
    fl_html_text(f, id);
    fputs("\"><caption>", f);
    fl_html_text(f, caption);
    fputs("</caption><thead><tr>", f);
    fl_cell_head_text(f, "policy");
    fl_cell_head(f, "latency p99, ms");
    fl_cell_head(f, "J per request");
    fl_cell_head(f, "energy saved, %");
    if (bounded)
        fl_cell_head_text(f, "bounds broken");
    fputs("</tr></thead><tbody>\n", f);
    for (size_t k = 0; k < count; k++) {
        const fl_policy_summary *p = &s->item[row[k].item];
        fprintf(f, "<tr%s><th scope=\"row\">", p->baseline ? " class=\"baseline\"" : "");
        fl_html_label(f, fl_summary_name(s, row[k].item));
        fputs("</th>", f);
        fl_cell_number(f, p99_ms(p), -4);
        fl_cell_number(f, request_j(p), -4);
        fl_cell_number(f, p->value[FL_REPORT_SAVING_PCT].mean, 2);
        if (bounded)
            put_broken(f, s->scope, p->policy);
        fputs("</tr>\n", f);
    }
    fputs("</tbody></table></div>\n", f);
}

/* ---- the figure ---- */

/* No other policy has both less latency and less energy, with one of them strictly. */
static bool on_front(const fl_summary *s, size_t i) {
    const fl_policy_summary *a = &s->item[i];
    for (size_t k = 0; k < s->count; k++) {
        const fl_policy_summary *b = &s->item[k];
        if (!b->baseline && drawable(b) && p99_ms(b) <= p99_ms(a) && request_j(b) <= request_j(a) &&
            (p99_ms(b) < p99_ms(a) || request_j(b) < request_j(a)))
            return false;
    }
    return !a->baseline && drawable(a);
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
            point[n][0] = p99_ms(&s->item[i]);
            point[n++][1] = request_j(&s->item[i]);
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

static bool limits(const fl_promise *p, const char *column) { return p->below && !strcmp(p->column, column); }

static void draw_bounds(const fl_chart *c, const fl_report_data *r) {
    for (size_t i = 0; i < r->promises.count; i++) {
        const fl_promise *p = &r->promises.item[i];
        char text[FL_PROMISE_TEXT];
        fl_promise_text(p, text);
        if (limits(p, "latency_p99_s")) {
            const double x = fl_chart_x(c, 1e3 * p->limit);
            fl_chart_line(c, x, c->top, x, c->bottom, "range", (fl_look){0});
            fl_chart_label(c, x + 4, c->top + 12, "start", "direct", text);
        } else if (limits(p, "energy_per_request_j")) {
            const double y = fl_chart_y(c, p->limit);
            fl_chart_line(c, c->left, y, c->right, y, "range", (fl_look){0});
            fl_chart_label(c, c->right - 4, y - 4, "end", "direct", text);
        }
    }
}

enum { NAMES_MAX = 14 };

/* Beside its mark, right or left of it, where no name before comes near. */
static bool put_name(const fl_chart *c, double taken[][3], size_t named, double x, double y, const char *name) {
    const double width = 6.0 * (double)strlen(name);
    for (int side = 0; side < 2; side++) {
        const double left = side ? x - 8 - width : x + 8;
        bool free_here = left >= c->left && left + width <= c->right;
        for (size_t t = 0; t < named && free_here; t++)
            free_here = left > taken[t][1] || left + width < taken[t][0] || fabs(y - taken[t][2]) > 13;
        if (!free_here)
            continue;
        fl_chart_label(c, side ? x - 8 : x + 8, y + 4, side ? "end" : "start", "direct", name);
        taken[named][0] = left;
        taken[named][1] = left + width;
        taken[named][2] = y;
        return true;
    }
    return false;
}

static void draw_names(const fl_chart *c, const fl_summary *s) {
    double taken[NAMES_MAX][3]; /* left, right, y */
    size_t named = 0;
    for (int others = 0; others < 2; others++) /* the reference first, while there is room */
        for (size_t k = 0; k < s->count && named < NAMES_MAX; k++) {
            const size_t i = s->order[k];
            const bool wanted = i == s->reference ? !others : others && (on_front(s, i) || s->item[i].baseline);
            if (wanted && drawable(&s->item[i]))
                named += put_name(c, taken, named, fl_chart_x(c, p99_ms(&s->item[i])),
                                  fl_chart_y(c, request_j(&s->item[i])), fl_summary_name(s, i));
        }
}

static void hold(fl_chart *c, const fl_summary *s) {
    for (size_t i = 0; i < s->count; i++) {
        if (!drawable(&s->item[i]))
            continue;
        fl_axis_hold(&c->x, p99_ms(&s->item[i]));
        fl_axis_hold(&c->y, request_j(&s->item[i]));
    }
    for (size_t i = 0; i < s->scope->data->promises.count; i++) {
        const fl_promise *p = &s->scope->data->promises.item[i];
        if (limits(p, "latency_p99_s"))
            fl_axis_hold(&c->x, 1e3 * p->limit);
        if (limits(p, "energy_per_request_j"))
            fl_axis_hold(&c->y, p->limit);
    }
    fl_axis *axis[] = {&c->x, &c->y};
    for (size_t k = 0; k < 2; k++) { /* room for the marks at the edge */
        const double room = 0.05 * (axis[k]->high - axis[k]->low);
        axis[k]->low -= room;
        axis[k]->high += room;
        axis[k]->round = false;
    }
}

static void put_figure(FILE *f, const fl_summary *s, const fl_looks *looks, const order *row, size_t count) {
    fl_chart c;
    fl_figure_begin(f);
    fl_chart_begin(&c, f, 360,
                   "Scatter plot of the policies: joules per request over p99 latency; the table has the numbers.");
    c.x.label = "p99 latency, ms";
    c.y.label = "J per request";
    hold(&c, s);
    fl_chart_axes(&c, true);
    draw_bounds(&c, s->scope->data);
    draw_front(&c, s);
    for (size_t k = count; k--;) {
        const fl_policy_summary *p = &s->item[row[k].item];
        fl_chart_group(&c, "%s: p99 latency %.4g ms, %.4g J per request%s", fl_summary_name(s, row[k].item), p99_ms(p),
                       request_j(p), row[k].over ? ", breaks a bound" : "");
        if (row[k].over)
            fputs("<g fill-opacity=\".15\" stroke-width=\"1.5\" stroke=\"currentColor\">", f);
        fl_chart_mark(&c, fl_chart_x(&c, p99_ms(p)), fl_chart_y(&c, request_j(p)), p->baseline ? 4 : 5,
                      looks->of[p->policy]);
        if (row[k].over)
            fputs("</g>", f);
        fl_chart_group_end(&c);
    }
    draw_names(&c, s);
    fl_chart_end(&c);
    fl_figure_caption(f,
                      "Joules per request against p99 latency: down and left is better. Marks are means over the runs, "
                      "pale ones break a bound in some run. Named: the Pareto front and the baselines.");
}

void fl_latency_section(FILE *f, const fl_summary *s, const fl_looks *looks, const char *id) {
    order *row = calloc(s->count + 1, sizeof *row);
    size_t count = 0;
    for (size_t i = 0; row && i < s->count; i++)
        if (drawable(&s->item[i]))
            row[count++] = (order){i, s->item[i].violations > 0, request_j(&s->item[i])};
    if (count) {
        qsort(row, count, sizeof *row, by_request);
        put_table(f, s, row, count, id);
        fputs("<div class=\"figures\">\n", f);
        put_figure(f, s, looks, row, count);
        fputs("</div>\n", f);
    }
    free(row);
}
