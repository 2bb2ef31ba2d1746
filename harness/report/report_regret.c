#include "harness/report/report_figures.h"

#include "traces/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIGURES_MAX = 24, POINTS_MAX = 120 };

typedef struct mark {
    size_t group, policy; /* group: workload, variant and platform */
    double step, mean, low, high;
} mark;

typedef struct curves {
    const fl_report_data *r;
    size_t at[8];
    bool headed;
    fl_names group;
    mark *mark;
    size_t count, room;
} curves;

static const char *const column[8] = {"workload", "policy", "platform",      "variant",
                                      "step",     "low",    "reward_regret", "high"};

static fl_status read_row(void *user, const fl_csv_row *row, fl_diag *d) {
    curves *c = user;
    if (!c->headed) {
        for (size_t k = 0; k < 8; k++) {
            for (c->at[k] = 0; c->at[k] < row->count && strcmp(row->field[c->at[k]].text, column[k]);)
                c->at[k]++;
            if (c->at[k] == row->count)
                return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1, "no column '%s' of a regret file", column[k]);
        }
        c->headed = true;
        return FL_OK;
    }
    for (size_t k = 0; k < 8; k++)
        if (c->at[k] >= row->count)
            return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1, "row has %zu fields", row->count);
    const char *workload = row->field[c->at[0]].text, *platform = row->field[c->at[2]].text,
               *variant = row->field[c->at[3]].text;
    char group[512];
    mark m = {.policy = SIZE_MAX};
    for (size_t p = 0; p < c->r->policy.count; p++)
        if (!strcmp(c->r->policy.item[p], row->field[c->at[1]].text))
            m.policy = p;
    if (m.policy == SIZE_MAX)
        return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1, "policy '%s' is not in the result beside it",
                       row->field[c->at[1]].text);
    const bool tagged = strchr(workload, '[') != NULL; /* the name may tell the variant already */
    snprintf(group, sizeof group, "%s%s%s%s%s%s", workload, *variant && !tagged ? " [" : "", tagged ? "" : variant,
             *variant && !tagged ? "]" : "", c->r->platform.count > 1 ? " on " : "",
             c->r->platform.count > 1 ? platform : "");
    fl_status s = fl_names_index(&c->group, group, &m.group, d);
    double *into[4] = {&m.step, &m.low, &m.mean, &m.high};
    for (size_t k = 0; !s && k < 4; k++) {
        *into[k] = NAN;
        if (strcmp(row->field[c->at[4 + k]].text, "n/a") != 0)
            s = fl_field_real_or_nan(row, c->at[4 + k], column[4 + k], -HUGE_VAL, HUGE_VAL, into[k], d);
    }
    if (!s && fl_grow(&c->mark, &c->room, c->count + 1, sizeof *c->mark))
        s = fl_no_memory(d, "the report");
    if (!s)
        c->mark[c->count++] = m;
    return s;
}

/* Marks of one policy follow each other. */
static void draw_policy(const fl_chart *c, const mark *m, size_t n, const char *name, fl_look look) {
    const size_t every = n / POINTS_MAX + 1;
    double x[POINTS_MAX + 2], y[POINTS_MAX + 2];
    size_t points = 0;
    for (size_t i = 0; i < n; i += every) {
        const size_t at = i + every < n ? i : n - 1; /* the last one is always there */
        x[points] = m[at].step * 1e-3;
        y[points++] = m[at].mean;
    }
    const mark *last = &m[n - 1];
    if (isfinite(last->low))
        fl_chart_group(c, "%s: %.4g after %g steps [%.4g, %.4g]", name, last->mean, last->step, last->low, last->high);
    else
        fl_chart_group(c, "%s: %.4g after %g steps", name, last->mean, last->step);
    fl_chart_path(c, x, y, points, false, "", look);
    if (last->low < last->high && (!c->y.log || last->low > 0))
        fl_chart_line(c, fl_chart_x(c, last->step * 1e-3), fl_chart_y(c, last->low), fl_chart_x(c, last->step * 1e-3),
                      fl_chart_y(c, last->high), "range", look);
    fl_chart_group_end(c);
}

static void draw_curves(FILE *f, const curves *c, size_t group, const fl_looks *looks) {
    fl_chart chart;
    char alt[400];
    double least = HUGE_VAL, most = 0;
    snprintf(alt, sizeof alt, "Line chart: cumulative regret of each policy over the steps of %s.",
             c->group.item[group]);
    fl_figure_begin(f);
    fl_chart_begin(&chart, f, 300, alt);
    chart.x.label = "steps, thousands";
    chart.y.label = "cumulative regret (Eq. 3)";
    for (size_t i = 0; i < c->count; i++)
        if (c->mark[i].group == group && c->mark[i].mean > 0) {
            least = fmin(least, c->mark[i].mean);
            most = fmax(most, c->mark[i].mean);
        }
    chart.y.log = most > 20 * least;
    chart.x.round = false;
    fl_axis_hold(&chart.x, 0);
    for (size_t i = 0; i < c->count; i++)
        if (c->mark[i].group == group) {
            fl_axis_hold(&chart.x, c->mark[i].step * 1e-3);
            fl_axis_hold(&chart.y, c->mark[i].mean);
        }
    fl_chart_axes(&chart, true);
    for (size_t i = 0, end; i < c->count; i = end) {
        for (end = i + 1;
             end < c->count && c->mark[end].group == c->mark[i].group && c->mark[end].policy == c->mark[i].policy;)
            end++;
        if (c->mark[i].group == group)
            draw_policy(&chart, &c->mark[i], end - i, c->r->policy.item[c->mark[i].policy],
                        looks->of[c->mark[i].policy]);
    }
    fl_chart_end(&chart);
    fl_figure_caption(f, "%s%s.", c->group.item[group],
                      chart.y.log ? ", logarithmic: policies without regret are not drawn" : "");
}

fl_status fl_figures_regret(FILE *f, const fl_report_data *r, const fl_looks *looks, size_t *drawn, fl_diag *d) {
    curves c = {.r = r};
    fl_csv_options options = {.trim = true};
    *drawn = 0;
    if (!r->regret_path)
        return FL_OK;
    fl_status s = fl_csv_read(r->regret_path, &options, NULL, read_row, &c, d);
    if (!s && c.count) {
        fl_legend_begin(f);
        for (size_t i = 0; i < looks->legend.count; i++)
            if (strcmp(looks->legend.item[i], "baselines") != 0)
                fl_legend_entry(f, looks->legend_look[i], true, looks->legend.item[i]);
        fl_legend_end(f);
        fputs("<div class=\"figures\">\n", f);
        for (; *drawn < c.group.count && *drawn < FIGURES_MAX; ++*drawn)
            draw_curves(f, &c, *drawn, looks);
        fputs("</div>\n", f);
        if (c.group.count > *drawn)
            fprintf(f, "<p class=\"note\">%zu of %zu workloads and variants are drawn; the file has them all.</p>\n",
                    *drawn, c.group.count);
    }
    fl_names_free(&c.group);
    free(c.mark);
    return s;
}
