/* The power target of a live host: a file that another program may replace at any time. */
#include "harness/live/host/inside.h"

#include "policies/policy.h"
#include "sim/node/node.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

static bool same(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

fl_status fl_live_target_open(fl_live_target *t, const char *path, fl_diag *d) {
    *t = (fl_live_target){.path = path};
    if (!path)
        return FL_OK;
    if (stat(path, &t->seen))
        t->seen = (struct stat){0};
    return fl_target_read(path, &t->rows, d);
}

static void remark(fl_effect_tell *tell, void *user, const char *path, const char *what) {
    char line[512];
    snprintf(line, sizeof line, "target %s: %s", path, what);
    if (tell)
        tell(user, line, false);
}

static void read_again(fl_live_target *t, fl_effect_tell *tell, void *user) {
    fl_target rows = {0};
    fl_diag d = {0};
    char text[400];
    if (fl_target_read(t->path, &rows, &d)) {
        snprintf(text, sizeof text, "%.300s; the rows before it hold", d.message);
        remark(tell, user, t->path, text);
        return;
    }
    fl_target_free(&t->rows);
    t->rows = rows;
}

void fl_live_target_show(fl_live_target *t, int64_t t_ns, fl_effect_tell *tell, void *user, fl_host_sample *host) {
    struct stat now;
    if (!t->path)
        return;
    const bool gone = stat(t->path, &now) != 0;
    if (gone && !t->gone)
        remark(tell, user, t->path, "is gone; the target is unknown until it is back");
    t->gone = gone;
    if (!gone && !same(&now, &t->seen)) {
        t->seen = now;
        read_again(t, tell, user);
    }
    const double watts = gone ? (double)NAN : fl_target_at(&t->rows, t_ns);
    if (isnan(watts))
        return;
    host->value[FL_HOST_TARGET_W] = watts;
    host->valid |= FL_BIT(FL_HOST_TARGET_W);
    host->fresh |= FL_BIT(FL_HOST_TARGET_W);
}

void fl_live_target_close(fl_live_target *t) { fl_target_free(&t->rows); }
