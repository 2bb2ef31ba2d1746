#include "harness/report/report_timeline.h"

#include "harness/report/report_figures.h"
#include "traces/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 16, POINTS_MAX = 1200 };

/* Index of a signal, SIZE_MAX where the file does not have it. */
static size_t signal_index(const fl_telemetry *t, const char *name) {
    for (size_t i = 0; i < t->signal_count; i++)
        if (!strcmp(t->signal[i], name))
            return i;
    return SIZE_MAX;
}

static int by_clock(const void *a, const void *b) {
    const fl_share *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

/* Equal clocks together; into classes of equal width where there are many. */
static size_t gather(fl_share *x, size_t n) {
    qsort(x, n, sizeof *x, by_clock);
    size_t distinct = 0;
    for (size_t i = 0; i < n; i++)
        distinct += !i || x[i].low != x[i - 1].low;
    if (!n)
        return 0;
    enum { CLASSES = 16 };
    const double from = x[0].low, width = (x[n - 1].low - from) / CLASSES;
    size_t out = 0;
    double last = -1;
    for (size_t i = 0; i < n; i++) {
        const double class = distinct <= FL_SHARES_MAX ? x[i].low : fmin(CLASSES - 1, floor((x[i].low - from) / width));
        if (out && class == last) {
            x[out - 1].share += x[i].share;
            continue;
        }
        const double share = x[i].share;
        x[out] = distinct <= FL_SHARES_MAX ? (fl_share){x[i].low, x[i].low, share}
                                           : (fl_share){from + class * width, from + (class + 1) * width, share};
        out++;
        last = class;
    }
    return out;
}

fl_status fl_residency(const fl_telemetry *t, const char *path, fl_share **list, size_t *count, fl_diag *d) {
    const size_t clock = signal_index(t, "sm_mhz");
    int64_t last[DEVICES_MAX];
    bool seen[DEVICES_MAX] = {0};
    double all = 0;
    size_t n = 0;
    *count = 0;
    *list = NULL;
    if (clock == SIZE_MAX)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no column sm_mhz, expected the file of foldline run --timeline");
    fl_share *x = malloc((t->row_count + 1) * sizeof *x);
    if (!x)
        return fl_no_memory(d, "the residency");
    for (size_t i = 0; i < t->row_count; i++) {
        const int32_t device = t->device[i];
        const double mhz = t->value[i * t->signal_count + clock];
        if (device < 0 || device >= DEVICES_MAX)
            continue;
        const double span = seen[device] ? (double)(t->t_ns[i] - last[device]) : 0;
        seen[device] = true;
        last[device] = t->t_ns[i];
        if (span <= 0 || isnan(mhz))
            continue;
        x[n++] = (fl_share){mhz, mhz, span};
        all += span;
    }
    for (size_t i = 0; i < n; i++)
        x[i].share /= all;
    *count = gather(x, n);
    *list = x;
    return FL_OK;
}

/* ---- figures ---- */

/* One device's signal in at most POINTS_MAX points, as if it were drawn in full: a clock by where it changes or, where
 * that is too much, by the least and most of equal numbers of rows; power by their mean. */
static size_t series(const fl_telemetry *t, int32_t device, size_t signal, bool clock, double *x, double *y) {
    size_t rows = 0, changes = 0, n = 0, in = 0;
    double last = NAN;
    for (size_t i = 0; i < t->row_count; i++) {
        const double v = t->value[i * t->signal_count + signal];
        if (t->device[i] != device)
            continue;
        rows++;
        changes += v != last;
        last = v;
    }
    const bool all_changes = clock && changes + 1 < POINTS_MAX;
    const size_t each = all_changes ? 1 : rows / (POINTS_MAX / 2 - 1) + 1;
    double sum = 0, least = HUGE_VAL, most = -HUGE_VAL;
    size_t summed = 0;
    last = NAN;
    for (size_t i = 0; i < t->row_count; i++) {
        const double v = t->value[i * t->signal_count + signal], at = (double)t->t_ns[i] * 1e-9;
        if (t->device[i] != device)
            continue;
        in++;
        if (all_changes) {
            if (v != last || in == rows) {
                x[n] = at;
                y[n++] = last = v;
            }
            continue;
        }
        if (!isnan(v)) {
            sum += v;
            summed++;
            least = fmin(least, v);
            most = fmax(most, v);
        }
        if (in % each && in < rows)
            continue;
        x[n] = at;
        y[n++] = !summed ? (double)NAN : clock ? least : sum / (double)summed;
        if (clock && summed && most > least) {
            x[n] = at;
            y[n++] = most;
        }
        sum = 0;
        summed = 0;
        least = HUGE_VAL;
        most = -HUGE_VAL;
    }
    return n;
}

static void draw_signal(FILE *f, const fl_telemetry *t, const char *name, size_t signal, bool clock) {
    fl_chart c;
    double x[POINTS_MAX + 2], y[POINTS_MAX + 2];
    char alt[400];
    int devices = 0;
    snprintf(alt, sizeof alt, "Line chart: %s over time, %s.", clock ? "SM clock" : "power", name);
    fl_figure_begin(f);
    fl_chart_begin(&c, f, 260, alt);
    c.x.label = "time, s";
    c.y.label = clock ? "SM clock, MHz" : "power, W";
    c.x.round = false;
    for (size_t i = 0; i < t->row_count; i++) {
        if (t->device[i] < 0 || t->device[i] >= DEVICES_MAX)
            continue;
        devices = t->device[i] + 1 > devices ? t->device[i] + 1 : devices;
        fl_axis_hold(&c.x, (double)t->t_ns[i] * 1e-9);
        fl_axis_hold(&c.y, t->value[i * t->signal_count + signal]);
    }
    fl_chart_axes(&c, true);
    for (int k = 0; k < devices; k++) {
        const size_t n = series(t, k, signal, clock, x, y);
        fl_chart_group(&c, "GPU %d", k);
        fl_chart_path(&c, x, y, n, clock, "", (fl_look){.colour = 1 + k % FL_CHART_COLOURS, .dash = k});
        fl_chart_group_end(&c);
    }
    fl_chart_end(&c);
    if (devices > 1) {
        fl_legend_begin(f);
        for (int k = 0; k < devices; k++) {
            char gpu[32];
            snprintf(gpu, sizeof gpu, "GPU %d", k);
            fl_legend_entry(f, (fl_look){.colour = 1 + k % FL_CHART_COLOURS, .dash = k}, true, gpu);
        }
        fl_legend_end(f);
    }
    fl_figure_caption(f, "%s: %s over time.", name, clock ? "SM clock" : "power");
}

static void draw_residency(FILE *f, const fl_share *x, size_t count, const char *name) {
    fl_chart c;
    char alt[400];
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, 100 * x[i].share);
    snprintf(alt, sizeof alt, "Bar chart: share of time at each SM clock, %s.", name);
    fl_figure_begin(f);
    fl_chart_begin(&c, f, 56 + 16 * (double)count, alt);
    c.left = 92;
    c.x = (fl_axis){.low = 0, .high = most, .round = true, .label = "share of time, %"};
    c.y = (fl_axis){.low = 0, .high = (double)count};
    fl_chart_axes(&c, false);
    for (size_t i = 0; i < count; i++) {
        const double y = fl_chart_y(&c, (double)i + 0.5), end = fl_chart_x(&c, 100 * x[i].share);
        char text[64];
        if (x[i].low == x[i].high)
            snprintf(text, sizeof text, "%g MHz", x[i].low);
        else
            snprintf(text, sizeof text, "%.0f\xe2\x80\x93%.0f MHz", x[i].low, x[i].high);
        fl_chart_label(&c, c.left - 8, y + 4, "end", "row", text);
        fl_chart_group(&c, "%s: %.2f %%", text, 100 * x[i].share);
        fprintf(f, "<rect class=\"c1 solid\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"10\"/>", c.left, y - 5,
                fmax(end - c.left, 0.5));
        fl_chart_group_end(&c);
    }
    fl_chart_end(&c);
    fl_figure_caption(f, "%s: residency, the share of time at each SM clock, all GPUs together.", name);
}

fl_status fl_figures_timeline(FILE *f, const char *path, fl_diag *d) {
    fl_telemetry t = {0};
    fl_share *share = NULL;
    size_t shares = 0;
    const char *slash = strrchr(path, '/');
    char name[200];
    snprintf(name, sizeof name, "%s", slash ? slash + 1 : path);
    fl_status s = fl_telemetry_read(path, &t, d);
    if (!s)
        s = fl_residency(&t, path, &share, &shares, d);
    if (!s) {
        const size_t power = signal_index(&t, "power_w");
        draw_signal(f, &t, name, signal_index(&t, "sm_mhz"), true);
        if (power != SIZE_MAX)
            draw_signal(f, &t, name, power, false);
        if (shares)
            draw_residency(f, share, shares, name);
    }
    free(share);
    fl_telemetry_free(&t);
    return s;
}
