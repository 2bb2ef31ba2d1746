/* Locks against power limits, of a sweep that has both. */
#include "harness/report/data/data.h"

#include "harness/base/work/work.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELD 0.98 /* a limit acts where power is below this share of the power without it */

static int by_power(const void *a, const void *b) {
    const double x = ((const fl_lock_point *)a)->power_w, y = ((const fl_lock_point *)b)->power_w;
    return (x > y) - (x < y);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const fl_lock_cap *)a)->workload, ((const fl_lock_cap *)b)->workload);
}

static bool same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* Energy and time of all kernels of a workload at a setting. */
static void add_point(fl_lock_point **list, size_t *count, const fl_sweep_row *r) {
    for (size_t i = 0; i < *count; i++)
        if ((*list)[i].sm_mhz == r->sm_mhz && same((*list)[i].cap_w, r->power_cap_w)) {
            (*list)[i].time_s += r->time_s;
            (*list)[i].energy_j += r->energy_j;
            return;
        }
    *list = fl_must(realloc(*list, (*count + 1) * sizeof **list));
    (*list)[(*count)++] =
        (fl_lock_point){.sm_mhz = r->sm_mhz, .cap_w = r->power_cap_w, .time_s = r->time_s, .energy_j = r->energy_j};
}

/* Split the settings of a workload: locks under its highest limit, and limits at its highest lock. */
static bool split(const fl_sweep *s, uint32_t name, fl_lock_cap *out) {
    double cap = 0, lock = 0, mem = 0;
    for (size_t i = 0; i < s->row_count; i++)
        if (s->rows[i].workload == name) {
            cap = fmax(cap, s->rows[i].power_cap_w);
            lock = fmax(lock, s->rows[i].sm_mhz);
            mem = fmax(mem, s->rows[i].mem_mhz);
        }
    *out = (fl_lock_cap){0};
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (r->workload != name || (mem > 0 && r->mem_mhz != mem) || !(r->energy_j > 0))
            continue;
        if (r->power_cap_w == cap)
            add_point(&out->lock, &out->locks, r);
        if (r->sm_mhz == lock && r->power_cap_w > 0)
            add_point(&out->cap, &out->caps, r);
    }
    for (size_t i = 0; i < out->locks; i++)
        out->lock[i].power_w = out->lock[i].energy_j / out->lock[i].time_s;
    for (size_t i = 0; i < out->caps; i++)
        out->cap[i].power_w = out->cap[i].energy_j / out->cap[i].time_s;
    if (out->locks >= 3 && out->caps >= 2) {
        qsort(out->lock, out->locks, sizeof *out->lock, by_power);
        qsort(out->cap, out->caps, sizeof *out->cap, by_power);
        return out->cap[0].power_w < HELD * out->cap[out->caps - 1].power_w;
    }
    return false;
}

static void free_one(fl_lock_cap *c) {
    free(c->lock);
    free(c->cap);
    free(c->workload);
}

fl_status fl_lock_caps_read(const char *path, fl_lock_caps *out, fl_diag *d) {
    fl_sweep s = {0};
    *out = (fl_lock_caps){0};
    fl_left_out left;
    fl_status status = fl_sweep_read(path, &s, &left, d);
    if (!status)
        fl_left_tell(path, &left);
    out->item = status ? NULL : fl_must(calloc(s.name_count + 1, sizeof *out->item));
    for (uint32_t i = 0; !status && i < s.name_count; i++) {
        fl_lock_cap *c = &out->item[out->count];
        const bool both = split(&s, i, c);
        c->workload = both ? fl_must(strdup(s.names[i])) : NULL;
        if (both)
            out->count++;
        else
            free_one(c);
    }
    if (out->count)
        qsort(out->item, out->count, sizeof *out->item, by_name);
    fl_sweep_free(&s);
    return status;
}

void fl_lock_caps_free(fl_lock_caps *c) {
    for (size_t i = 0; i < c->count; i++)
        free_one(&c->item[i]);
    free(c->item);
    *c = (fl_lock_caps){0};
}

/* Work per second of a lock that draws `watts`, between two that were measured. It is concave over power: the straight
 * line is too low, and the parabola through a third lock bends as far as the rows around say. */
static bool rates_at(const fl_lock_cap *c, double watts, double *line, double *bent) {
    size_t i = 1;
    while (i < c->locks && c->lock[i].power_w < watts)
        i++;
    if (i == c->locks || c->lock[0].power_w > watts)
        return false;
    const size_t k = i >= 2 ? i - 2 : i + 1;
    const fl_lock_point *p[] = {&c->lock[i - 1], &c->lock[i], &c->lock[k]};
    const double x0 = p[0]->power_w, x1 = p[1]->power_w, x2 = p[2]->power_w, y0 = 1 / p[0]->time_s,
                 y1 = 1 / p[1]->time_s, y2 = 1 / p[2]->time_s, slope = (y1 - y0) / (x1 - x0),
                 bend = ((y2 - y1) / (x2 - x1) - slope) / (x2 - x0);
    *line = y0 + slope * (watts - x0);
    *bent = *line + bend * (watts - x0) * (watts - x1);
    return isfinite(*line) && isfinite(*bent) && *line > 0 && *bent > 0;
}

size_t fl_lock_caps_range(const fl_lock_caps *all, double *low_pct, double *high_pct) {
    size_t points = 0;
    double low = 0, high = 0;
    for (size_t i = 0; i < all->count; i++) {
        const fl_lock_cap *c = &all->item[i];
        for (size_t k = 0; k < c->caps; k++) {
            double line, bent;
            if (c->cap[k].power_w >= HELD * c->cap[c->caps - 1].power_w ||
                !rates_at(c, c->cap[k].power_w, &line, &bent))
                continue;
            /* Time of the lock against that of the limit; at equal power that of energy is the same. */
            const double a = 100 * (1 / line / c->cap[k].time_s - 1), b = 100 * (1 / bent / c->cap[k].time_s - 1);
            low += fmin(a, b);
            high += fmax(a, b);
            points++;
        }
    }
    *low_pct = points ? low / (double)points : (double)NAN;
    *high_pct = points ? high / (double)points : (double)NAN;
    return points;
}

void fl_lock_caps_put(const fl_lock_caps *all, FILE *out) {
    double low, high;
    const size_t points = fl_lock_caps_range(all, &low, &high);
    if (!points)
        return;
    fprintf(
        out,
        "lock or cap: at the same mean power a lock costs %+.1f to %+.1f %% of the energy and time of a power limit "
        "(%zu limit%s that act%s, %zu workload%s, locks between measured ones): ",
        low, high, points, points == 1 ? "" : "s", points == 1 ? "s" : "", all->count, all->count == 1 ? "" : "s");
    fputs(low > 0    ? "the power limit costs less\n"
          : high < 0 ? "the lock costs less\n"
                     : "these rows show no difference\n",
          out);
}
