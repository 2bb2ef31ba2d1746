/* Locks against power limits: energy and time over mean power. */
#include "harness/report/picture/inside.h"

#include "harness/report/data/data.h"
#include "harness/report/picture/picture.h"
#include "traces/io/io.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
