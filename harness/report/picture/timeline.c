/* Telemetry over time: clock, the requests of a server, and power with the limit in force, and the share of time at
 * each clock. */
#include "harness/report/data/data.h"
#include "harness/report/picture/inside.h"
#include "harness/report/picture/picture.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 16, POINTS_MAX = 1200, RED = -1 /* the colour of bounds */ };

/* One device's signal in at most POINTS_MAX points that look like the full drawing. A clock is reduced to its changes
 * or, where these are too many, to the minimum and maximum of equal numbers of rows; power is reduced to their mean. */
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

/* "pot3d on generic, policy assure", as far as the head contains it; else the file's name. */
static void about_of(const fl_telemetry *t, const char *path, char *text, size_t size) {
    const char *workload = fl_head_get(&t->head, "workload"), *platform = fl_head_get(&t->head, "platform"),
               *policy = fl_head_get(&t->head, "policy");
    char name[256];
    snprintf(text, size, "%s%s%s%s%s", fl_lead_short(workload ? workload : path, name), platform ? " on " : "",
             platform ? platform : "", policy ? ", policy " : "", policy ? policy : "");
}

/* The ends of time and of one signal over the devices that are drawn. */
static int extent(const fl_telemetry *t, size_t signal, fl_panel *panel, double *low, double *high) {
    int devices = 0;
    double x0 = HUGE_VAL, x1 = -HUGE_VAL;
    *low = HUGE_VAL;
    *high = -HUGE_VAL;
    for (size_t i = 0; i < t->row_count; i++) {
        if (t->device[i] < 0 || t->device[i] >= DEVICES_MAX)
            continue;
        devices = t->device[i] + 1 > devices ? t->device[i] + 1 : devices;
        fl_hold(&x0, &x1, (double)t->t_ns[i] * 1e-9);
        if (signal != SIZE_MAX)
            fl_hold(low, high, t->value[i * t->signal_count + signal]);
    }
    panel->x0 = x0;
    panel->x1 = x1 > x0 ? x1 : x0 + 1;
    return devices;
}

static double last_of(const double *y, size_t n) {
    while (n && !isfinite(y[n - 1]))
        n--;
    return n ? y[n - 1] : (double)NAN;
}

static void put_devices(fl_lines *l, const fl_telemetry *t, size_t signal, bool clock, int devices, bool names) {
    double x[POINTS_MAX + 2], y[POINTS_MAX + 2];
    for (int k = 0; k < devices; k++) {
        const size_t n = series(t, k, signal, clock, x, y);
        char name[64], key[32];
        snprintf(key, sizeof key, FL_SERIES_KEY "%d", k);
        const char *own = fl_head_get(&t->head, key);
        if (own)
            snprintf(name, sizeof name, "%s", own);
        else
            snprintf(name, sizeof name, "GPU %d", k);
        for (size_t i = 0; i < n; i++)
            if (clock)
                fl_lines_step(l, "line", x[i], y[i], 1 + k % FL_PICTURE_COLOURS);
            else
                fl_lines_point(l, "line", x[i], y[i], NAN, NAN, 1 + k % FL_PICTURE_COLOURS);
        fl_lines_lift(l);
        if (names && devices > 1)
            fl_lines_name(l, last_of(y, n), 1 + k % FL_PICTURE_COLOURS, name);
    }
}

/* The limit in force: one line where all GPUs always have the same limit, else one in the colour of each. */
static void put_wall(fl_lines *l, const fl_telemetry *t, size_t limit, int devices, double low, double high) {
    const bool one = low == high;
    double x[POINTS_MAX + 2], y[POINTS_MAX + 2];
    for (int k = 0; k < (one ? 1 : devices); k++) {
        const size_t n = series(t, k, limit, true, x, y);
        const int colour = one ? RED : 1 + k % FL_PICTURE_COLOURS;
        char name[64];
        if (one) {
            fl_lines_point(l, "wall", l->panel.x0, low, NAN, NAN, RED);
            fl_lines_point(l, "wall", l->panel.x1, low, NAN, NAN, RED);
            snprintf(name, sizeof name, "wall %.4g W", low);
        } else {
            for (size_t i = 0; i < n; i++)
                fl_lines_step(l, "wall", x[i], y[i], colour);
            snprintf(name, sizeof name, devices > 1 ? "wall %d" : "wall", k);
        }
        fl_lines_lift(l);
        fl_lines_name(l, one ? low : last_of(y, n), colour, name);
    }
}

/* Requests in the batch and before it, over all servers. GPUs of one server show the same. */
static void put_queue(fl_lines *l, const fl_telemetry *t, fl_panel *panel, size_t waiting, size_t running,
                      int devices) {
    const struct {
        size_t signal;
        const char *name;
        int colour;
    } line[] = {{running, "running", 1}, {waiting, "waiting", 2}};
    double x[POINTS_MAX + 2], y[POINTS_MAX + 2], low, high, most = 1;
    for (size_t i = 0; i < 2; i++) {
        extent(t, line[i].signal, panel, &low, &high);
        most = fmax(most, high);
    }
    panel->y0 = 0;
    panel->y1 = 1.08 * most;
    fl_lines_panel(l, panel);
    for (size_t i = 0; i < 2; i++)
        for (int k = 0; k < devices; k++) {
            const size_t n = series(t, k, line[i].signal, false, x, y);
            for (size_t j = 0; j < n; j++)
                fl_lines_point(l, "line", x[j], y[j], NAN, NAN, line[i].colour);
            fl_lines_lift(l);
            if (!k)
                fl_lines_name(l, last_of(y, n), line[i].colour, line[i].name);
        }
}

fl_status fl_picture_timeline(fl_picture *p, const fl_telemetry *t, const char *path, size_t *drawn, fl_diag *d) {
    const size_t clock = fl_signal_index(t, "sm_mhz"), power = fl_signal_index(t, "power_w"),
                 limit = fl_signal_index(t, "power_limit_w"), waiting = fl_signal_index(t, "waiting"),
                 running = fl_signal_index(t, "running");
    char about[512];
    double low, high, least = 0, most = 0;
    fl_lines l;
    fl_panel panel = {.x_label = "time, s", .y_label = "SM clock, MHz", .title = "", .quiet_x = power != SIZE_MAX};
    *drawn = 0;
    const bool clocks = clock != SIZE_MAX;
    if (!clocks && power == SIZE_MAX)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                       "no column sm_mhz or power_w, expected the file of foldline run --timeline");
    about_of(t, path, about, sizeof about);
    const int devices = extent(t, clocks ? clock : power, &panel, &panel.y0, &panel.y1);
    if (!devices)
        return FL_OK;
    fl_loosen(&panel.y0, &panel.y1);
    panel.y0 = fmax(panel.y0, 0);
    if (limit != SIZE_MAX)
        extent(t, limit, &panel, &least, &most);
    const bool wall = limit != SIZE_MAX && least <= most && least > 0;
    const bool served = waiting != SIZE_MAX && running != SIZE_MAX;
    fl_lines_begin(&l, p, (power != SIZE_MAX) + clocks + served, 1, p->width < 600 ? 130 : 170,
                   wall          ? 84
                   : served      ? 84
                   : devices > 1 ? (fl_head_get(&t->head, FL_SERIES_KEY "0") ? 130 : 50)
                                 : 4,
                   true,
                   served    ? "Clock, requests and power over time"
                   : !clocks ? "Power over time"
                             : "Clock and power over time",
                   about);
    if (clocks) {
        fl_lines_panel(&l, &panel);
        put_devices(&l, t, clock, true, devices, true);
    }
    if (served) {
        panel.y_label = "requests";
        panel.quiet_x = power != SIZE_MAX;
        put_queue(&l, t, &panel, waiting, running, devices);
    }
    if (power != SIZE_MAX) {
        extent(t, power, &panel, &low, &high);
        panel.quiet_x = false;
        panel.y_label = "power, W";
        panel.y0 = 0;
        panel.y1 = 1.08 * fmax(high > 0 ? high : 1, wall ? most : 0);
        fl_lines_panel(&l, &panel);
        put_devices(&l, t, power, false, devices, true);
        if (wall)
            put_wall(&l, t, limit, devices, least, most);
    }
    fl_lines_end(&l);
    *drawn = (size_t)devices;
    return FL_OK;
}

fl_status fl_picture_residency(fl_picture *p, const fl_telemetry *t, const char *path, size_t *drawn, fl_diag *d) {
    fl_share *share = NULL;
    char about[512];
    double most = 0;
    *drawn = 0;
    fl_status s = fl_residency(t, path, &share, drawn, d);
    if (s)
        return s;
    about_of(t, path, about, sizeof about);
    fl_picture_plot(p, 110, 56, 22 * (double)*drawn + 6);
    fl_picture_title(p, "Where the time went", about);
    fputs("clock,share\n", p->table);
    for (size_t i = *drawn; i--;) { /* the highest clock on top */
        most = fmax(most, share[i].share);
        if (share[i].low == share[i].high)
            fprintf(p->table, "%g MHz,%.9g\n", share[i].low, 100 * share[i].share);
        else
            fprintf(p->table, "%.0f\xe2\x80\x93%.0f MHz,%.9g\n", share[i].low, share[i].high, 100 * share[i].share);
    }
    fl_picture_number(p, "rows", (double)*drawn);
    fl_picture_number(p, "most", 100 * most);
    free(share);
    return FL_OK;
}

/* ---- locks against power limits ---- */

/* Locks against power limits: energy and time over mean power. */

enum { WORKLOADS_MAX = 4, LOCK = 1, CAP = 2 };

static double value_of(const fl_lock_point *p, size_t what) { return what ? p->time_s : p->energy_j * 1e-3; }

static void put_curve(fl_lines *l, const fl_lock_point *p, size_t count, size_t what, int colour, const char *name) {
    char text[96];
    for (size_t i = 0; i < count; i++)
        fl_lines_point(l, colour == LOCK ? "line" : "dashed", p[i].power_w, value_of(&p[i], what), NAN, NAN, colour);
    fl_lines_lift(l);
    for (size_t i = 0; i < count; i++) {
        fl_lines_point(l, colour == LOCK ? "point" : "ring", p[i].power_w, value_of(&p[i], what), NAN, NAN, colour);
        fl_lines_lift(l);
        snprintf(text, sizeof text, "%g MHz, limit %g W", p[i].sm_mhz, p[i].cap_w);
        fl_lines_tip(l, p[i].power_w, value_of(&p[i], what), text);
    }
    fl_lines_name(l, value_of(&p[count - 1], what), colour, name);
}

fl_status fl_picture_locks(fl_picture *p, const char *input, size_t *drawn, fl_diag *d) {
    static const char *const label[] = {"energy, kJ", "time, s"};
    fl_lock_caps all;
    fl_lines l;
    char *about = NULL;
    size_t size = 0;
    fl_status s = fl_lock_caps_read(input, &all, d);
    *drawn = s ? 0 : all.count < WORKLOADS_MAX ? all.count : WORKLOADS_MAX;
    FILE *text = *drawn ? open_memstream(&about, &size) : NULL;
    if (*drawn && !text)
        s = fl_no_memory(d, input);
    if (text) {
        fl_lock_caps_put(&all, text);
        fclose(text);
        about[strcspn(about, "\n")] = '\0';
    }
    if (!s && *drawn)
        fl_lines_begin(&l, p, (int)*drawn * 2, 2, 170, 62, false, "Locks and power limits at the same mean power",
                       about);
    for (size_t i = 0; !s && i < *drawn; i++)
        for (size_t what = 0; what < 2; what++) {
            const fl_lock_cap *c = &all.item[i];
            fl_panel panel = {.title = c->workload,
                              .x_label = "mean power, W",
                              .y_label = label[what],
                              .x0 = HUGE_VAL,
                              .x1 = -HUGE_VAL,
                              .y0 = HUGE_VAL,
                              .y1 = -HUGE_VAL};
            for (size_t k = 0; k < c->locks + c->caps; k++) {
                const fl_lock_point *at = k < c->locks ? &c->lock[k] : &c->cap[k - c->locks];
                fl_hold(&panel.x0, &panel.x1, at->power_w);
                fl_hold(&panel.y0, &panel.y1, value_of(at, what));
            }
            fl_loosen(&panel.x0, &panel.x1);
            fl_loosen(&panel.y0, &panel.y1);
            fl_lines_panel(&l, &panel);
            put_curve(&l, c->lock, c->locks, what, LOCK, "lock");
            put_curve(&l, c->cap, c->caps, what, CAP, "limit");
        }
    if (!s && *drawn)
        fl_lines_end(&l);
    free(about);
    fl_lock_caps_free(&all);
    return s;
}
