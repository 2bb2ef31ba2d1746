#include "harness/fit/policy/sweetspot_sweep.h"

#include "harness/base/work/pool.h"
#include "harness/chip/sweep_check.h"
#include "sim/oracle/oracle.h"
#include "traces/files/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static fl_status add_spot(fl_spots *all, const char *name, fl_diag *d) {
    if (fl_grow(&all->item, &all->room, all->count + 1, sizeof *all->item))
        return fl_no_memory(d, "the sweep");
    all->item[all->count] = (fl_spot){.name = strdup(name)};
    return all->item[all->count++].name ? FL_OK : fl_no_memory(d, "the sweep");
}

static fl_status add_point(fl_spot *s, double mhz, double time_s, double energy_j, fl_diag *d) {
    if (fl_grow(&s->point, &s->room, s->count + 1, sizeof *s->point))
        return fl_no_memory(d, "the sweep");
    s->point[s->count++] = (fl_slope_point){.mhz = mhz, .time_s = time_s, .power_w = energy_j / time_s};
    return FL_OK;
}

void fl_spots_free(fl_spots *all) {
    for (size_t i = 0; i < all->count; i++) {
        free(all->item[i].name);
        free(all->item[i].point);
    }
    free(all->item);
    *all = (fl_spots){0};
}

static int by_clock(const void *a, const void *b) {
    const double x = ((const fl_slope_point *)a)->mhz, y = ((const fl_slope_point *)b)->mhz;
    return x < y ? -1 : x > y;
}

/* ---- measured -----------------------------------------------------------------------------------------------------
 */

static double or_infinite(double x) {
    return isnan(x) ? (double)INFINITY : x;
} /* a limit that is not set does not limit */

/* The rows of a workload that remain: those of one memory clock, at the highest power limit there. */
typedef struct setting {
    double mem_mhz, cap_w;
} setting;

static bool belongs(const fl_sweep_row *r, uint32_t name, const setting *at) {
    return r->workload == name && (isnan(r->mem_mhz) || r->mem_mhz == at->mem_mhz) &&
           or_infinite(r->power_cap_w) == at->cap_w;
}

static setting choose_setting(const fl_sweep *s, uint32_t name, double mem_mhz) {
    setting at = {mem_mhz, 0};
    for (size_t i = 0; !(mem_mhz > 0) && i < s->row_count; i++)
        if (s->rows[i].workload == name && s->rows[i].mem_mhz > at.mem_mhz)
            at.mem_mhz = s->rows[i].mem_mhz;
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (r->workload == name && (isnan(r->mem_mhz) || r->mem_mhz == at.mem_mhz))
            at.cap_w = fmax(at.cap_w, or_infinite(r->power_cap_w));
    }
    return at;
}

/* Time and energy of the whole workload at one clock: its kernels one after the other, each with the mean of its
 * repeated rows. False where a kernel was not measured at that clock. */
static bool whole(const fl_sweep *s, uint32_t name, const setting *at, double mhz, double *time_s, double *energy_j) {
    *time_s = *energy_j = 0;
    for (size_t i = 0; i < s->row_count; i++) {
        double time = 0, energy = 0, n = 0;
        bool first = s->rows[i].workload == name;
        for (size_t k = 0; first && k < i; k++)
            first = s->rows[k].workload != name || s->rows[k].kernel != s->rows[i].kernel;
        if (!first)
            continue;
        for (size_t k = 0; k < s->row_count; k++)
            if (s->rows[k].kernel == s->rows[i].kernel && belongs(&s->rows[k], name, at) && s->rows[k].sm_mhz == mhz) {
                time += s->rows[k].time_s;
                energy += s->rows[k].energy_j;
                n++;
            }
        if (!(n > 0))
            return false;
        *time_s += time / n;
        *energy_j += energy / n;
    }
    return true;
}

static fl_status measured_one(const fl_sweep *s, const char *path, uint32_t name, double mem_mhz, fl_spot *into,
                              fl_diag *d) {
    const setting at = choose_setting(s, name, mem_mhz);
    fl_status status = FL_OK;
    for (size_t i = 0; !status && i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        double time_s, energy_j;
        bool seen = false;
        if (!belongs(r, name, &at))
            continue;
        if (isnan(r->sm_mhz))
            return fl_fail(d, FL_BAD_INPUT, path, r->line, 0, "no sm_mhz, expected the SM clock of the measurement");
        for (size_t k = 0; !seen && k < into->count; k++)
            seen = into->point[k].mhz == r->sm_mhz;
        if (!seen && whole(s, name, &at, r->sm_mhz, &time_s, &energy_j))
            status = add_point(into, r->sm_mhz, time_s, energy_j, d);
    }
    if (!status && !into->count)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                         "%s: no clock has measurements of all its kernels, expected at least one", s->names[name]);
    if (!status)
        qsort(into->point, into->count, sizeof *into->point, by_clock);
    return status;
}

static fl_status unknown_workload(const fl_sweep *s, const char *path, const uint32_t *names, size_t count,
                                  const char *wanted, fl_diag *d) {
    const char **all = malloc((count + 1) * sizeof *all);
    for (size_t i = 0; all && i < count; i++)
        all[i] = s->names[names[i]];
    const fl_status status = fl_fail_unknown(d, path, "workload", wanted, all, all ? count : 0);
    free(all);
    return status;
}

fl_status fl_spots_measured(const char *path, const fl_texts *only, double mem_mhz, fl_spots *all, fl_diag *d) {
    fl_sweep sweep = {0};
    uint32_t *names = NULL;
    size_t count = 0;
    fl_status s = fl_sweep_read(path, &sweep, d);
    if (!s)
        s = fl_sweep_check_units(path, &sweep, d);
    if (!s)
        s = fl_sweep_workloads(&sweep, &names, &count, d);
    for (size_t k = 0; !s && k < only->count; k++) {
        size_t i = 0;
        while (i < count && strcmp(sweep.names[names[i]], only->item[k]) != 0)
            i++;
        if (i == count)
            s = unknown_workload(&sweep, path, names, count, only->item[k], d);
    }
    for (size_t i = 0; !s && i < count; i++) {
        bool wanted = !only->count;
        for (size_t k = 0; !wanted && k < only->count; k++)
            wanted = strcmp(sweep.names[names[i]], only->item[k]) == 0;
        if (wanted && !(s = add_spot(all, sweep.names[names[i]], d)))
            s = measured_one(&sweep, path, names[i], mem_mhz, &all->item[all->count - 1], d);
    }
    free(names);
    fl_sweep_free(&sweep);
    return s;
}

/* ---- simulated ----------------------------------------------------------------------------------------------------
 */

typedef struct run_place {
    size_t spot, point;
    fl_choice at;
} run_place;

typedef struct simulation {
    const fl_scenes *scenes;
    fl_spots *all;
    run_place *run;
    size_t run_count, run_room;
} simulation;

static fl_status plan(simulation *m, size_t scene, double mem_mhz, fl_diag *d) {
    const fl_scene *s = m->scenes->item[scene];
    const fl_device *dev = &s->platform.node.device[s->platform.node.gpu[0]];
    const double mem = mem_mhz > 0 ? mem_mhz : dev->default_mem_mhz;
    fl_choice *choice = NULL;
    size_t choices = 0;
    fl_status status = add_spot(m->all, s->w->name, d);
    if (!status)
        status = fl_oracle_choices(s->w, &s->platform.node, &choice, &choices, d);
    for (size_t i = 0; !status && i < choices; i++) {
        fl_spot *into = &m->all->item[scene];
        if (choice[i].mem_mhz != mem)
            continue;
        if (fl_grow(&m->run, &m->run_room, m->run_count + 1, sizeof *m->run))
            status = fl_no_memory(d, "the sweep");
        else
            m->run[m->run_count++] = (run_place){scene, into->count, choice[i]};
        if (!status)
            status = add_point(into, choice[i].sm_mhz, 1, 1, d);
    }
    free(choice);
    if (!status && !m->all->item[scene].count)
        status = fl_fail(d, FL_BAD_INPUT, s->source, 0, 0, "%s has no data at the memory clock of %g MHz of %s",
                         s->w->name, mem, s->platform.name);
    return status;
}

static fl_status simulate_one(void *user, size_t i, fl_diag *d) {
    const simulation *m = user;
    const run_place *at = &m->run[i];
    const fl_scene *s = m->scenes->item[at->spot];
    fl_static_point out = {0};
    const fl_status status = fl_static_run(s->w, s->rates, &s->platform.node, &s->facts, &at->at, &out, d);
    if (status)
        return status;
    fl_slope_point *p = &m->all->item[at->spot].point[at->point];
    p->time_s = fl_seconds(out.makespan_ps);
    p->power_w = fl_joules(out.energy_fj) / p->time_s;
    return FL_OK;
}

fl_status fl_spots_simulated(const fl_scenes *scenes, double mem_mhz, unsigned threads, fl_spots *all, fl_diag *d) {
    simulation m = {.scenes = scenes, .all = all};
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < scenes->count; i++)
        s = plan(&m, i, mem_mhz, d);
    if (!s)
        s = fl_pool_run(simulate_one, &m, m.run_count, threads, "clocks", d);
    free(m.run);
    return s;
}
