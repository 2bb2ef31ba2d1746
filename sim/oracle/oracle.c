#include "sim/oracle/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const fl_objective_names[] = {"energy", "edp", "ed2p", NULL};

double fl_objective_value(fl_objective objective, double energy_j, double time_s) {
    switch (objective) {
    case FL_MIN_EDP:
        return energy_j * time_s;
    case FL_MIN_ED2P:
        return energy_j * time_s * time_s;
    default:
        return energy_j;
    }
}

int64_t fl_limit_ps(int64_t default_ps, double bound) {
    const int64_t one = INT64_C(1000000000000);
    if (!(bound < 1e6))
        return INT64_MAX;
    fl_wide limit = (fl_wide)default_ps * (one + llround(bound * (double)one)) / one;
    return limit < INT64_MAX ? (int64_t)limit : INT64_MAX;
}

/* ---- choices ---- */

static bool on_every_ladder(const fl_node_spec *spec, double sm_mhz, double mem_mhz) {
    for (uint32_t i = 0; i < spec->gpu_count; i++) {
        const fl_device *dev = &spec->device[spec->gpu[i]];
        if (fl_ladder_index(dev->sm_mhz, dev->sm_count, sm_mhz) < 0 ||
            fl_ladder_index(dev->mem_mhz, dev->mem_count, mem_mhz) < 0)
            return false;
    }
    return true;
}

/* A measured load is known between its first and last point, at its measured memory clocks. */
static bool is_known(const fl_workload *w, double sm_mhz, double mem_mhz) {
    if (sm_mhz < w->sm_min_mhz || sm_mhz > w->sm_max_mhz)
        return false;
    for (uint32_t i = 0; i < w->class_count; i++) {
        const fl_load *l = &w->class[i].load;
        if (!l->measured)
            continue;
        const fl_measured *m = fl_measured_find(l->measured, l->ref_mem_mhz, mem_mhz);
        const fl_curve *time = m ? m->time_ratio : NULL, *power = m ? m->power_w : NULL;
        if (!m || sm_mhz < fl_curve_first(time) || sm_mhz > fl_curve_last(time) || sm_mhz < fl_curve_first(power) ||
            sm_mhz > fl_curve_last(power))
            return false;
    }
    return true;
}

fl_status fl_oracle_choices(const fl_workload *w, const fl_node_spec *spec, fl_choice **choice, size_t *count,
                            fl_diag *d) {
    const fl_device *dev = &spec->device[spec->gpu[0]];
    fl_choice *c = malloc(((size_t)dev->sm_count * dev->mem_count + 1) * sizeof *c);
    if (!c)
        return fl_no_memory(d, "the oracle");
    size_t n = 0;
    for (uint32_t sm = 0; sm < dev->sm_count; sm++)
        for (uint32_t mem = 0; mem < dev->mem_count; mem++) {
            fl_choice at = {sm, mem, dev->sm_mhz[sm], dev->mem_mhz[mem]};
            if (is_known(w, at.sm_mhz, at.mem_mhz) && on_every_ladder(spec, at.sm_mhz, at.mem_mhz))
                c[n++] = at;
        }
    if (!n) {
        free(c);
        return fl_refuse(d,
                         "%s: known from %g to %g MHz, expected at least one such clock that every GPU of %s can set",
                         w->name, w->sm_min_mhz, w->sm_max_mhz, spec->name);
    }
    *choice = c;
    *count = n;
    return FL_OK;
}

/* ---- static clocks ---- */

/* A run without a policy, on devices whose default SM clock is the choice: it therefore holds from time 0. The memory
 * clock holds without that, and the default stays what it is: loads may be stated relative to it. */
fl_status fl_static_result(const fl_run_options *run, const fl_choice *at, fl_run_result *r, fl_diag *d) {
    fl_node_spec local = *run->spec;
    local.device = malloc(local.device_count * sizeof *local.device);
    if (!local.device)
        return fl_no_memory(d, "the oracle");
    memcpy(local.device, run->spec->device, local.device_count * sizeof *local.device);
    for (uint32_t i = 0; i < local.device_count; i++)
        local.device[i].default_sm_mhz = at->sm_mhz;
    fl_run_options o = *run;
    o.spec = &local;
    o.first_sm_mhz = at->sm_mhz;
    o.first_mem_mhz = at->mem_mhz;
    fl_status s = fl_run(&o, r, d);
    free(local.device);
    return s;
}

fl_static_point fl_static_point_of(const fl_run_result *r, const fl_choice *at) {
    return (fl_static_point){.at = *at,
                             .makespan_ps = r->makespan_ps,
                             .energy_fj = r->score_fj,
                             .latency = r->service.latency,
                             .load = r->service.load};
}

fl_status fl_static_run(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec, const fl_facts *facts,
                        const fl_choice *at, fl_static_point *out, fl_diag *d) {
    const fl_run_options run = {.w = w, .rates = rates, .spec = spec, .facts = facts};
    fl_run_result r;
    fl_status s = fl_static_result(&run, at, &r, d);
    if (s)
        return s;
    *out = fl_static_point_of(&r, at);
    fl_run_result_free(&r);
    return FL_OK;
}

static bool is_higher(const fl_choice *a, const fl_choice *b) {
    return a->sm_mhz != b->sm_mhz ? a->sm_mhz > b->sm_mhz : a->mem_mhz > b->mem_mhz;
}

size_t fl_static_best(const fl_static_point *point, size_t count, fl_objective objective, int64_t limit_ps) {
    size_t best = count;
    double least = 0;
    for (size_t i = 0; i < count; i++) {
        if (point[i].makespan_ps > limit_ps)
            continue;
        double value = fl_objective_value(objective, fl_joules(point[i].energy_fj), fl_seconds(point[i].makespan_ps));
        if (best == count || value < least || (value <= least && is_higher(&point[i].at, &point[best].at))) {
            best = i;
            least = value;
        }
    }
    return best;
}
