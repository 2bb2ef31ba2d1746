/* The three laws over the SM clock: time, bandwidth, power; of kernel classes, or of what a sweep measured. */
#include "harness/report/picture/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/input/platform/platform.h"
#include "harness/report/picture/picture.h"
#include "models/fit/fit.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERIES_MAX = 5, LAWS = 3 };
enum { TIME, BANDWIDTH, POWER };

typedef struct series { /* a class of kernels, or a measured workload */
    char name[64];
    fl_load load;
    fl_kernel_point *point; /* measured times, by ascending clock; NULL = none */
    double *power_w;        /* with them */
    size_t points;
    fl_fold_line fold; /* of the measured times */
} series;

typedef struct drawing {
    const fl_device *dev;
    series s[SERIES_MAX];
    size_t count, left_out;
} drawing;

static void add_class(drawing *g, const char *name, fl_load load) {
    if (g->count == SERIES_MAX) {
        g->left_out++;
        return;
    }
    series *s = &g->s[g->count++];
    snprintf(s->name, sizeof s->name, "%s", strcmp(name, "*") ? name : "other kernels");
    load.ref_sm_mhz = load.ref_sm_mhz > 0 ? load.ref_sm_mhz : g->dev->default_sm_mhz;
    load.ref_mem_mhz = load.ref_mem_mhz > 0 ? load.ref_mem_mhz : g->dev->default_mem_mhz;
    load.sm_demand = 1;
    s->load = load;
}

static void add_examples(drawing *g) {
    const fl_fold_line b = g->dev->bandwidth;
    add_class(g, "core-bound", (fl_load){.tc = 1, .tm = 0.2, .alpha = 1, .beta = 0.2, .bandwidth = b});
    add_class(g, "memory-bound", (fl_load){.tc = 0.5, .tm = 1, .alpha = 0.5, .beta = 1, .bandwidth = b});
    add_class(g, "half of both", (fl_load){.tc = 0.9, .tm = 0.9, .alpha = 0.8, .beta = 0.8, .bandwidth = b});
    if (b.fold_mhz > 0)
        return;
    /* The device has no fold line, so one kernel shows what such a line is. */
    const fl_fold_line shown = {0.6 * g->dev->default_sm_mhz, 1, 0.2};
    add_class(g, "with a fold", (fl_load){.tc = 0.3, .tm = 1, .alpha = 0.4, .beta = 1, .bandwidth = shown});
}

static fl_status add_kinds(drawing *g, const char *path, fl_diag *d) {
    fl_kinds k = {0};
    const fl_status s = fl_kinds_read(path, &k, d);
    for (size_t i = 0; !s && i < k.count; i++) {
        const fl_kind_load *l = &k.kind[i];
        const fl_fold_line own = {l->fold_mhz, l->fold_low, l->fold_high};
        add_class(g, l->name,
                  (fl_load){.tc = l->tc,
                            .tm = l->tm,
                            .tl = l->tl,
                            .sharpness = l->sharpness,
                            .alpha = l->alpha,
                            .beta = l->beta,
                            .ref_sm_mhz = l->sm_mhz,
                            .ref_mem_mhz = l->mem_mhz,
                            .bandwidth = isinf(l->fold_mhz) ? (fl_fold_line){0}
                                         : l->fold_mhz > 0  ? own
                                                            : g->dev->bandwidth});
    }
    fl_kinds_free(&k);
    return s;
}

/* ---- a measured workload ---- */

typedef struct setting {
    double sm_mhz, time_s, energy_j;
} setting;

static int by_clock(const void *a, const void *b) {
    const double x = ((const setting *)a)->sm_mhz, y = ((const setting *)b)->sm_mhz;
    return (x > y) - (x < y);
}

/* The shares of A and B with which the law of power comes nearest to the points, by least squares; none below 0. */
static void fit_power(const drawing *g, series *s) {
    double aa = 0, ab = 0, bb = 0, ay = 0, by = 0;
    for (size_t i = 0; i < s->points; i++) {
        fl_base base;
        double a, b, none;
        const double f = s->point[i].sm_mhz, m = s->load.ref_mem_mhz;
        if (fl_base_make(g->dev, f, m, &base) != FL_MODEL_OK ||
            fl_power_dynamic(g->dev, 1, 0, f, m, &a, &none) != FL_MODEL_OK ||
            fl_power_dynamic(g->dev, 0, 1, f, m, &none, &b) != FL_MODEL_OK)
            continue;
        const double y = s->power_w[i] - base.total_mw * 1e-3;
        aa += a * a;
        ab += a * b;
        bb += b * b;
        ay += a * y;
        by += b * y;
    }
    const double under = aa * bb - ab * ab;
    s->load.alpha = under > 0 ? (ay * bb - by * ab) / under : 0;
    s->load.beta = under > 0 ? (by * aa - ay * ab) / under : 0;
    if (s->load.beta < 0) {
        s->load.alpha = aa > 0 ? fmax(0, ay / aa) : 0;
        s->load.beta = 0;
    } else if (s->load.alpha < 0) {
        s->load.beta = bb > 0 ? fmax(0, by / bb) : 0;
        s->load.alpha = 0;
    }
}

static void add_measured(drawing *g, const fl_sweep *sweep, uint32_t name) {
    setting *at = fl_must(malloc((sweep->row_count + 1) * sizeof *at));
    size_t n = 0, used = 0;
    double mem = 0, cap = 0;
    for (size_t i = 0; i < sweep->row_count; i++)
        if (sweep->rows[i].workload == name) {
            mem = fmax(mem, sweep->rows[i].mem_mhz);
            cap = fmax(cap, sweep->rows[i].power_cap_w);
        }
    for (size_t i = 0; i < sweep->row_count; i++) {
        const fl_sweep_row *r = &sweep->rows[i];
        if (r->workload == name && r->sm_mhz > 0 && r->time_s > 0 && !(r->mem_mhz < mem) && !(r->power_cap_w < cap))
            at[n++] = (setting){r->sm_mhz, r->time_s, r->energy_j};
    }
    qsort(at, n, sizeof *at, by_clock);
    for (size_t i = 0; i < n; i++) /* the kernels of a workload add up */
        if (used && at[i].sm_mhz <= at[used - 1].sm_mhz) {
            at[used - 1].time_s += at[i].time_s;
            at[used - 1].energy_j += at[i].energy_j;
        } else {
            at[used++] = at[i];
        }
    const double sharpness = g->dev->sharpness >= 1 ? g->dev->sharpness : INFINITY;
    fl_kernel_fit scaling;
    fl_fold_line_fit fold;
    fl_kernel_point *point = fl_must(malloc((used + 1) * sizeof *point));
    double *power = fl_must(malloc((used + 1) * sizeof *power));
    for (size_t i = 0; i < used; i++) {
        point[i] = (fl_kernel_point){at[i].sm_mhz, at[i].time_s, 1};
        power[i] = at[i].energy_j / at[i].time_s;
    }
    free(at);
    const size_t before = g->count;
    if (used >= 3 && fl_fit_kernel(point, used, sharpness, &scaling) == FL_MODEL_OK &&
        fl_fit_fold_line(point, used, &fold) == FL_MODEL_OK)
        add_class(g, sweep->names[name],
                  (fl_load){.tc = scaling.c,
                            .tm = scaling.m,
                            .tl = scaling.l,
                            .sharpness = sharpness,
                            .ref_sm_mhz = point[used - 1].sm_mhz,
                            .ref_mem_mhz = mem > 0 ? mem : 0});
    if (g->count > before) {
        series *s = &g->s[before];
        s->point = point;
        s->power_w = power;
        s->points = used;
        s->fold = fold.line;
        fit_power(g, s);
    } else {
        free(point);
        free(power);
    }
}

static fl_status add_sweep(drawing *g, const char *path, fl_diag *d) {
    fl_sweep sweep = {0};
    fl_left_out left = {0};
    const fl_status s = fl_sweep_open(path, false, &sweep, &left, d);
    if (!s)
        fl_left_tell(path, &left);
    for (uint32_t name = 0; !s && name < sweep.name_count; name++) {
        bool workload = false;
        for (size_t i = 0; i < sweep.row_count; i++)
            workload |= sweep.rows[i].workload == name;
        if (workload)
            add_measured(g, &sweep, name);
    }
    fl_sweep_free(&sweep);
    return s;
}

/* ---- curves ---- */

/* The law's value at a clock: time and bandwidth over those at the series' highest clock, power in W. NAN outside. */
static double law_at(const drawing *g, const series *s, int law, double mhz, double top) {
    fl_row row, last;
    fl_base base;
    if (law == BANDWIDTH) {
        const fl_fold_line *b = s->point ? &s->fold : &s->load.bandwidth;
        return fl_fold_line_at(b, mhz) / fl_fold_line_at(b, top);
    }
    if (fl_row_make(g->dev, &s->load, mhz, s->load.ref_mem_mhz, &row, NULL) != FL_MODEL_OK ||
        fl_row_make(g->dev, &s->load, top, s->load.ref_mem_mhz, &last, NULL) != FL_MODEL_OK ||
        fl_base_make(g->dev, mhz, s->load.ref_mem_mhz, &base) != FL_MODEL_OK)
        return NAN;
    return law == TIME ? (double)row.mul / last.mul : (base.total_mw + row.dyn_mw) * 1e-3;
}

static double measured_at(const series *s, int law, size_t i) {
    const double ratio = s->point[i].time / s->point[s->points - 1].time;
    return law == TIME ? ratio : law == BANDWIDTH ? 1 / ratio : s->power_w[i];
}

static double top_of(const drawing *g, const series *s) {
    return s->point ? s->point[s->points - 1].sm_mhz : g->dev->sm_mhz[g->dev->sm_count - 1];
}

static bool in_range(const drawing *g, const series *s, uint32_t i) {
    return !s->point || (g->dev->sm_mhz[i] >= s->point[0].sm_mhz && g->dev->sm_mhz[i] <= top_of(g, s));
}

static fl_panel panel_of(const drawing *g, int law) {
    static const char *const title[] = {"time: max-scaling", "bandwidth: fold line", "power: V²f"},
                             *const label[] = {"time over that at the top clock", "bandwidth over that at the top",
                                               "board power, W"};
    fl_panel panel = {.title = title[law],
                      .x_label = "SM clock, MHz",
                      .y_label = label[law],
                      .x0 = HUGE_VAL,
                      .x1 = -HUGE_VAL,
                      .y0 = law == TIME ? 1 : 0,
                      .y1 = 1};
    for (size_t k = 0; k < g->count; k++) {
        const series *s = &g->s[k];
        for (uint32_t i = 0; i < g->dev->sm_count; i++)
            if (in_range(g, s, i)) {
                fl_hold(&panel.x0, &panel.x1, g->dev->sm_mhz[i]);
                fl_hold(&panel.y0, &panel.y1, law_at(g, s, law, g->dev->sm_mhz[i], top_of(g, s)));
            }
        for (size_t i = 0; i < s->points; i++) {
            fl_hold(&panel.x0, &panel.x1, s->point[i].sm_mhz);
            fl_hold(&panel.y0, &panel.y1, measured_at(s, law, i));
        }
    }
    fl_loosen(&panel.x0, &panel.x1);
    panel.y1 += 0.06 * (panel.y1 - panel.y0);
    return panel;
}

static void put_series(fl_lines *l, const drawing *g, size_t k, int law) {
    const series *s = &g->s[k];
    const int colour = (int)k + 1;
    double last = NAN;
    char text[128];
    for (uint32_t i = 0; i < g->dev->sm_count; i++) {
        const double y = in_range(g, s, i) ? law_at(g, s, law, g->dev->sm_mhz[i], top_of(g, s)) : (double)NAN;
        if (!isnan(y))
            fl_lines_point(l, "line", g->dev->sm_mhz[i], last = y, NAN, NAN, colour);
    }
    fl_lines_lift(l);
    for (size_t i = 0; i < s->points; i++) {
        fl_lines_point(l, "point", s->point[i].sm_mhz, measured_at(s, law, i), NAN, NAN, colour);
        fl_lines_lift(l);
        snprintf(text, sizeof text, "%s at %g MHz: %.4g", s->name, s->point[i].sm_mhz, measured_at(s, law, i));
        fl_lines_tip(l, s->point[i].sm_mhz, measured_at(s, law, i), text);
    }
    if (!isnan(last))
        fl_lines_name(l, last, colour, s->name);
}

fl_status fl_picture_models(fl_picture *p, const char *name, const char *const *inputs, size_t count, size_t *drawn,
                            fl_diag *d) {
    fl_platform platform = {0};
    drawing g = {0};
    bool measured = false;
    fl_status s = name ? fl_platform_open(name, 1, &platform, d)
                       : fl_refuse(d, "plot models: no platform, expected --platform NAME");
    if (!s)
        g.dev = &platform.node.device[0];
    for (size_t i = 0; !s && i < count; i++) {
        fl_file_type type;
        if ((s = fl_file_type_find(inputs[i], &type, d)))
            break;
        measured |= type == FL_FILE_SWEEP;
        s = type == FL_FILE_KINDS   ? add_kinds(&g, inputs[i], d)
            : type == FL_FILE_SWEEP ? add_sweep(&g, inputs[i], d)
                                    : fl_fail(d, FL_BAD_INPUT, inputs[i], 1, 0,
                                              "is %s, expected kernel classes or a sweep", fl_file_type_name(type));
    }
    if (!s && !count)
        add_examples(&g);
    *drawn = s ? 0 : g.count;
    if (*drawn) {
        char about[256], more[48] = "";
        fl_lines l;
        if (g.left_out)
            snprintf(more, sizeof more, "; %zu more are left out", g.left_out);
        snprintf(about, sizeof about, "%s; %s%s", g.dev->name,
                 measured ? "points are measured, lines are the laws fitted to them"
                 : count  ? "lines are the classes of kernels"
                          : "lines are examples of kernels",
                 more);
        double names = 0;
        for (size_t k = 0; k < g.count; k++)
            names = fmax(names, fl_text_width(g.s[k].name));
        fl_lines_begin(&l, p, LAWS, 1, 150, fmin(names, 160) + 8, false, "The three laws over the SM clock", about);
        for (int law = 0; law < LAWS; law++) {
            const fl_panel panel = panel_of(&g, law);
            fl_lines_panel(&l, &panel);
            for (size_t k = 0; k < g.count; k++)
                put_series(&l, &g, k, law);
        }
        fl_lines_end(&l);
    }
    for (size_t k = 0; k < g.count; k++) {
        free(g.s[k].point);
        free(g.s[k].power_w);
    }
    fl_platform_free(&platform);
    return s;
}
