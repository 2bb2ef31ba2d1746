/* Regret over steps. Policies that keep one clock form one band, so that the policies that leave it stand out. */
#include "harness/report/picture/inside.h"

#include "harness/report/data/data.h"
#include "harness/report/picture/picture.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_MAX = 120, FAR_APART = 50, THOUSANDS = 10000, NAMES_MOST = 200 };

static bool is_fixed(const char *policy) {
    static const char *const name[] = {"fixed", "maxfreq", "nvboost", "efficientfix"};
    char family[128];
    fl_label_family(policy, family);
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (!strcmp(family, name[i]))
            return true;
    return false;
}

static size_t end_of(const fl_curves *c, size_t i) {
    size_t end = i + 1;
    while (end < c->count && c->mark[end].group == c->mark[i].group && c->mark[end].policy == c->mark[i].policy)
        end++;
    return end;
}

static const char *name_of(const fl_curves *c, size_t i) { return c->policy->item[c->mark[i].policy]; }

/* A panel's axes: both logarithmic where the final values differ widely, else both linear from 0. */
static bool panel_of(const fl_curves *c, size_t group, fl_panel *panel) {
    double first = HUGE_VAL, last = 0, least = HUGE_VAL, most = 0, low = HUGE_VAL;
    for (size_t i = 0, end; i < c->count; i = end) {
        end = end_of(c, i);
        if (c->mark[i].group != group)
            continue;
        for (size_t k = i; k < end; k++) {
            if (!isfinite(c->mark[k].mean) || !(c->mark[k].step > 0))
                continue;
            first = fmin(first, c->mark[k].step);
            last = fmax(last, c->mark[k].step);
            if (c->mark[k].mean > 0) {
                low = fmin(low, c->mark[k].mean);
                most = fmax(most, c->mark[k].mean);
            }
        }
        if (c->mark[end - 1].mean > 0)
            least = fmin(least, c->mark[end - 1].mean);
    }
    if (!(last > 0))
        return false;
    const bool log = most > FAR_APART * least && last > first;
    panel->title = c->group.item[group];
    panel->x_label = log ? "steps" : "steps, thousands";
    panel->y_label = !log && most >= THOUSANDS ? "cumulative regret, thousands" : "cumulative regret";
    panel->log_x = panel->log_y = log;
    panel->x0 = log ? first : 0;
    panel->x1 = log ? last : last * 1e-3;
    panel->y0 = log ? pow(10, floor(log10(low))) : 0;
    panel->y1 = log ? pow(10, ceil(log10(most) + 0.05)) : most > 0 ? most * 1.06 * (most >= THOUSANDS ? 1e-3 : 1) : 1;
    return true;
}

static double y_scale_of(const fl_lines *l) { return l->panel.y_label[sizeof "cumulative regret" - 1] ? 1e-3 : 1; }

/* The band of the fixed policies: their minimum and maximum at each step, as long as all of them run. */
static size_t put_band(fl_lines *l, const fl_curves *c, size_t group) {
    const double scale = l->panel.log_x ? 1 : 1e-3, y_scale = y_scale_of(l);
    size_t leader = SIZE_MAX, count = 0;
    double end_high = NAN;
    for (size_t i = 0; i < c->count; i = end_of(c, i))
        if (c->mark[i].group == group && is_fixed(name_of(c, i))) {
            leader = leader == SIZE_MAX || end_of(c, i) - i < end_of(c, leader) - leader ? i : leader;
            count++;
        }
    if (count < 2)
        return 0;
    const size_t n = end_of(c, leader) - leader, every = n / POINTS_MAX + 1;
    fl_lines_point(l, "band", 0, 0, 0, 0, 0); /* the regret is zero before the first step */
    for (size_t k = 0; k < n; k = k + 1 == n ? n : k + every < n ? k + every : n - 1) {
        double low = HUGE_VAL, high = -HUGE_VAL;
        const double step = c->mark[leader + k].step;
        for (size_t i = 0; i < c->count; i = end_of(c, i)) {
            if (c->mark[i].group != group || !is_fixed(name_of(c, i)))
                continue;
            const size_t end = end_of(c, i);
            const fl_curve_mark *at = &c->mark[end - 1];
            for (size_t m = i; m < end; m++)
                if (c->mark[m].step >= step) {
                    at = &c->mark[m];
                    break;
                }
            fl_hold(&low, &high, at->mean);
        }
        low *= y_scale;
        end_high = high *= y_scale;
        fl_lines_point(l, "band", step * scale, high, fmax(low, l->panel.y0), high, 0);
    }
    fl_lines_lift(l);
    char text[64];
    snprintf(text, sizeof text, "%zu fixed clocks", count);
    fl_lines_name(l, end_high, 0, text);
    return count;
}

static void put_curve(fl_lines *l, const fl_curves *c, size_t from, size_t to, int colour) {
    const double scale = l->panel.log_x ? 1 : 1e-3, y_scale = y_scale_of(l);
    const size_t every = (to - from) / POINTS_MAX + 1;
    const fl_curve_mark *last = &c->mark[to - 1];
    char tip[512];
    const char *what = colour % 2 ? "line" : "dashed"; /* both of two equal curves stay visible */
    fl_lines_point(l, what, 0, 0, NAN, NAN, colour);
    for (size_t i = from; i < to; i = i + 1 == to      ? to
                                      : i + every < to ? i + every
                                                       : to - 1) /* always include the last point */
        fl_lines_point(l, what, c->mark[i].step * scale, c->mark[i].mean * y_scale, NAN, NAN, colour);
    fl_lines_lift(l);
    if (last->low < last->high) {
        fl_lines_range(l, last->step * scale, last->low * y_scale, last->high * y_scale, colour);
        snprintf(tip, sizeof tip, "%s: %.4g after %g steps [%.4g; %.4g]", name_of(c, from), last->mean, last->step,
                 last->low, last->high);
    } else {
        snprintf(tip, sizeof tip, "%s: %.4g after %g steps", name_of(c, from), last->mean, last->step);
    }
    fl_lines_tip(l, last->step * scale, last->mean * y_scale, tip);
    fl_lines_name(l, last->mean * y_scale, colour, name_of(c, from));
}

/* The slope of a constant loss per step on two logarithmic axes. */
static void put_slope(fl_lines *l) {
    const fl_panel *a = &l->panel;
    const double rise = a->x1 / a->x0, middle = sqrt(a->y0 * a->y1);
    double from = middle / sqrt(rise), x0 = a->x0, x1 = a->x1;
    if (from < a->y0) {
        x0 *= a->y0 / from;
        from = a->y0;
    }
    if (from * x1 / x0 > a->y1)
        x1 = x0 * a->y1 / from;
    fl_lines_point(l, "slope", x0, from, NAN, NAN, 0);
    fl_lines_point(l, "slope", x1, from * x1 / x0, NAN, NAN, 0);
    fl_lines_lift(l);
}

static void put_group(fl_lines *l, const fl_curves *c, size_t group) {
    fl_panel panel = {0};
    if (!panel_of(c, group, &panel))
        return;
    fl_lines_panel(l, &panel);
    const bool band = put_band(l, c, group) > 0;
    if (panel.log_x)
        put_slope(l);
    int colour = 0;
    for (size_t i = 0, end; i < c->count; i = end) {
        end = end_of(c, i);
        if (c->mark[i].group == group && !(band && is_fixed(name_of(c, i))))
            put_curve(l, c, i, end, ++colour);
    }
}

size_t fl_picture_curves(fl_picture *p, const fl_curves *c, size_t first, size_t count) {
    fl_lines l;
    fl_panel panel;
    double names = fl_text_width("99 fixed clocks");
    size_t n = 0;
    bool log = false;
    for (size_t g = first; g < c->group.count && g < first + count; g++) {
        panel = (fl_panel){0};
        n += panel_of(c, g, &panel);
        log |= panel.log_x;
    }
    for (size_t i = 0; i < c->policy->count; i++)
        if (!is_fixed(c->policy->item[i]) && !fl_report_is_baseline(c->policy->item[i]))
            names = fmax(names, fl_text_width(c->policy->item[i]));
    if (!n)
        return 0;
    const int across = p->width < 600 || n < 2 ? 1 : 2;
    fl_lines_begin(
        &l, p, (int)n, across,
        p->width < 600 ? 260
        : across == 1  ? 360
                       : 220,
        fmin(fmin(names, NAMES_MOST), 0.44 * p->width / across), false, "Cumulative regret",
        log ? "EnergyUCB, Eq. 3, against always playing the best clock; mean over seeds. Where both axes are "
              "logarithmic, the dotted line is a constant loss per step; the curve of a policy that learns is flatter"
            : "EnergyUCB, Eq. 3, against always playing the best clock; mean over seeds. The curve of a policy that "
              "learns gets flatter");
    for (size_t g = first; g < c->group.count && g < first + count; g++)
        put_group(&l, c, g);
    fl_lines_end(&l);
    return n;
}
