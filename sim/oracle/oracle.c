/* Static clocks: choices, limits, one whole run at each choice, and the best of them with few runs. */
#include "sim/oracle/inside.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/node/node.h"
#include "sim/oracle/oracle.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- objectives and limits ---- */

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

/* Replaces single clocks by pairs. */
static fl_status pair_choices(const fl_device *dev, fl_choice **choice, size_t *count, fl_diag *d) {
    fl_choice kept[FL_POOL_CLOCKS], *single = *choice;
    size_t n = 0, clocks = 0;
    for (size_t i = 0; i < *count; i++)
        if (fabs(single[i].mem_mhz - dev->default_mem_mhz) < 0.5)
            single[n++] = single[i];
    for (size_t i = 0; i < FL_POOL_CLOCKS && n; i++) {
        const size_t at = n <= FL_POOL_CLOCKS ? i : (i + 1) * n / FL_POOL_CLOCKS - 1;
        if (at < n)
            kept[clocks++] = single[at];
    }
    fl_choice *pair = malloc((clocks * clocks + 1) * sizeof *pair);
    free(single);
    *choice = pair;
    *count = 0;
    if (!pair)
        return fl_no_memory(d, "the oracle");
    for (size_t i = 0; i < clocks; i++)
        for (size_t k = 0; k < clocks; k++) {
            pair[*count] = kept[i];
            pair[(*count)++].decode_mhz = kept[k].sm_mhz;
        }
    return FL_OK;
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
            fl_choice at = {sm, mem, dev->sm_mhz[sm], dev->mem_mhz[mem], 0};
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
    return w->pools ? pair_choices(dev, choice, count, d) : FL_OK;
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
    o.first_decode_mhz = at->decode_mhz;
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

/* The best static clock without a run at each pair of clocks. Sums over classes give, at every pair, a lower bound of
 * time and energy that is within one picosecond per op of the truth where nothing is shared. The search runs only those
 * pairs that may be the best by their bounds, and those that the wall may slow down. */

typedef struct stream_sums { /* of one stream */
    fl_wide gap_ps;
    uint64_t *work_ns; /* by class */
    uint64_t *ops;     /* by class */
} stream_sums;

typedef struct search {
    const fl_workload *w;
    const fl_node_spec *spec;
    stream_sums *sum; /* by stream */
    uint32_t gpu;
    int64_t closed_mw; /* power of the boards without work */
} search;

/* Streams of one GPU that only their own ops, the GPU's clocks and its shared resources can delay, and that always
 * draws its base: a GPU whose power is gated while it is idle draws less, and the sums would bound no energy. */
static bool sums_apply(const fl_workload *w, const fl_node_spec *spec) {
    const fl_cpu_spec *cpu = &spec->host.cpu;
    bool apply =
        w->stream_count && !w->request_count && !w->thread_count && !spec->host.apu && !(spec->host.gpu_budget_w > 0) &&
        !(cpu->count && (w->host_load_count || (cpu->bound > 0 && fl_cpu_ref_mhz(cpu) != fl_cpu_default_mhz(cpu))));
    for (uint32_t i = 0; apply && i < w->stream_count; i++)
        apply = w->stream[i].gpu == w->stream[0].gpu && !w->stream[i].wait_first && !w->stream[i].launched;
    if (!apply)
        return false;
    const fl_device *dev = &spec->device[spec->gpu[w->stream[0].gpu]];
    return dev->thermal.period_ns <= 0 && dev->gate_ns <= 0;
}

static fl_wide longer(fl_wide a, fl_wide b) { return a > b ? a : b; }

static void search_close(search *s) {
    for (uint32_t i = 0; s->sum && i < s->w->stream_count; i++) {
        free(s->sum[i].work_ns);
        free(s->sum[i].ops);
    }
    free(s->sum);
}

static fl_status search_open(search *s, const fl_workload *w, const fl_node_spec *spec, fl_diag *d) {
    *s = (search){.w = w, .spec = spec, .gpu = w->stream[0].gpu, .sum = calloc(w->stream_count, sizeof *s->sum)};
    bool ok = s->sum != NULL;
    for (uint32_t i = 0; ok && i < w->stream_count; i++) {
        stream_sums *sum = &s->sum[i];
        sum->work_ns = calloc(w->class_count + 1, sizeof *sum->work_ns);
        sum->ops = calloc(w->class_count + 1, sizeof *sum->ops);
        ok = sum->work_ns && sum->ops;
        for (uint64_t k = 0; ok && k < w->stream[i].count; k++) {
            int64_t gap_ns, work_ns;
            uint32_t class_id;
            fl_workload_op(&w->stream[i], k, &gap_ns, &work_ns, &class_id);
            sum->gap_ps += gap_ns * FL_PS_PER_NS;
            sum->work_ns[class_id] += (uint64_t)work_ns;
            sum->ops[class_id]++;
        }
    }
    for (uint32_t i = 0; i < spec->gpu_count; i++)
        if (i != s->gpu)
            s->closed_mw += (int64_t)(spec->device[spec->gpu[i]].no_context_w * 1000 + 0.5);
    return ok ? FL_OK : fl_no_memory(d, "the oracle");
}

/* Lower bounds at one pair of clocks; false where the wall may lower the clock there, which may draw less. Kernels that
 * share take longer and draw the same: what they do together in a time is at most the whole of a resource, but for what
 * models/laws/row.c rounds up, which is less than 1 of FL_SHARE_ONE for each. */
static bool bound_at(const search *s, const fl_clock_rates *at, fl_static_point *p) {
    const fl_device *dev = &s->spec->device[s->spec->gpu[s->gpu]];
    int64_t mw = at->base.total_mw;
    fl_wide longest = 0, dyn_fj = 0, sms = 0, memory = 0;
    for (uint32_t i = 0; i < s->w->stream_count; i++) {
        const stream_sums *sum = &s->sum[i];
        int64_t most_mw = 0;
        fl_wide ps = sum->gap_ps;
        for (uint32_t c = 0; c < s->w->class_count; c++) {
            const fl_row *row = &at->row[c];
            const fl_wide length = (fl_wide)((fl_uwide)sum->work_ns[c] * row->mul >> 16), off = (fl_wide)sum->ops[c];
            if (!off)
                continue;
            const fl_wide least = length > off ? length - off : 0;
            ps += least;
            sms += least * row->sms * 2;
            memory += least * row->memory * 2;
            dyn_fj += (row->dyn_mw < 0 ? length + off : least) * row->dyn_mw;
            most_mw = row->dyn_mw > most_mw ? row->dyn_mw : most_mw;
        }
        longest = longer(ps, longest);
        mw += most_mw;
    }
    const bool wall = dev->wall.period_ns > 0 && dev->power_default_w > 0 && (double)mw > dev->power_default_w * 1000;
    if (!wall) /* a lower clock would ask for other shares */
        longest = longer(longest, longer(sms / FL_SHARE_ONE, memory / (FL_SHARE_ONE + s->w->stream_count)));
    p->makespan_ps = longest < INT64_MAX / 2 ? (int64_t)longest : INT64_MAX / 2;
    p->energy_fj = longest * (at->base.total_mw + s->closed_mw) + dyn_fj;
    return !wall;
}

/* Computes the bounds of every choice. Where they are none and the choice may hold the limit, it makes a run. */
static fl_status bounds(const search *s, fl_rates *rates, const fl_facts *facts, int64_t limit_ps,
                        const fl_choice *choice, size_t count, fl_static_point *point, bool *run, fl_diag *d) {
    const fl_device *dev = &s->spec->device[s->spec->gpu[s->gpu]];
    fl_status status = FL_OK;
    for (size_t i = 0; !status && i < count; i++) {
        const fl_clock_rates *at = NULL;
        const int sm = fl_ladder_index(dev->sm_mhz, dev->sm_count, choice[i].sm_mhz),
                  mem = fl_ladder_index(dev->mem_mhz, dev->mem_count, choice[i].mem_mhz);
        point[i] = (fl_static_point){.at = choice[i]};
        status = fl_rates_at(rates, s->spec->gpu[s->gpu], (uint32_t)sm, (uint32_t)mem, &at, d);
        if (!status && !bound_at(s, at, &point[i]) && point[i].makespan_ps <= limit_ps) {
            run[i] = true;
            status = fl_static_run(s->w, rates, s->spec, facts, &choice[i], &point[i], d);
        }
    }
    return status;
}

fl_status fl_static_search(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec, const fl_facts *facts,
                           fl_objective objective, int64_t limit_ps, fl_static_point *best, bool *found, fl_diag *d) {
    fl_choice *choice = NULL;
    size_t count = 0;
    search s = {.w = w};
    fl_status status = fl_oracle_choices(w, spec, &choice, &count, d);
    if (status)
        return status;
    fl_static_point *point = calloc(count, sizeof *point);
    bool *run = calloc(count, sizeof *run);
    status = point && run ? FL_OK : fl_no_memory(d, "the oracle");
    const bool sums = sums_apply(w, spec);
    if (!status && sums && !(status = search_open(&s, w, spec, d)))
        status = bounds(&s, rates, facts, limit_ps, choice, count, point, run, d);
    for (size_t i = 0; !status && !sums && i < count; i++) {
        run[i] = true;
        status = fl_static_run(w, rates, spec, facts, &choice[i], &point[i], d);
    }
    *found = false;
    while (!status && !*found) { /* if the choice that is best by its bounds was also run, it is the best */
        const size_t at = fl_static_best(point, count, objective, limit_ps);
        if (at == count)
            break;
        *found = run[at];
        if (run[at])
            *best = point[at];
        else
            status = fl_static_run(w, rates, spec, facts, &choice[at], &point[at], d);
        run[at] = true;
    }
    search_close(&s);
    free(choice);
    free(point);
    free(run);
    return status;
}
