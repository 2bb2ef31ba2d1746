/* Costs of positions of work at each choice of clocks. */
#include "sim/oracle/inside.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/oracle/oracle.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void fl_oracle_table_free(fl_oracle_table *t) {
    free(t->choice);
    free(t->time_ps);
    free(t->energy_fj);
    free(t->op);
    free(t->frontier);
    free(t->frontier_first);
    fl_oracle_work_free(t->work);
    *t = (fl_oracle_table){0};
}

/* The one stream with work that only its own predecessor ops delay, or NULL. */
static const fl_stream *lone_stream(const fl_workload *w) {
    for (uint32_t i = 0; i < w->stream_count; i++) {
        const fl_stream *s = &w->stream[i];
        if (s->count)
            return s->count == w->op_count && !s->wait_first && !w->thread_count ? s : NULL;
    }
    return NULL;
}

/* Return whether a power limit can act: whether a kernel draws more than the limit at some clock. */
static bool wall_in_reach(const fl_stream *s, fl_rates *rates, const fl_node_spec *spec) {
    const fl_device *dev = &spec->device[spec->gpu[s->gpu]];
    if (dev->wall.period_ns <= 0 || dev->power_default_w <= 0)
        return false;
    for (uint32_t sm = 0; sm < dev->sm_count; sm++)
        for (uint32_t mem = 0; mem < dev->mem_count; mem++) {
            const fl_clock_rates *at;
            fl_diag ignored = {0};
            if (!fl_rates_at(rates, spec->gpu[s->gpu], sm, mem, &at, &ignored) &&
                at->base.total_mw + at->max_dyn_mw > dev->power_default_w * 1000)
                return true;
        }
    return false;
}

/* All GPUs take the same clocks. Where their ladders differ, a policy can use clocks for which there is no choice. */
static bool same_ladders(const fl_device *a, const fl_device *b) {
    return a->sm_count == b->sm_count && a->mem_count == b->mem_count &&
           !memcmp(a->sm_mhz, b->sm_mhz, a->sm_count * sizeof *a->sm_mhz) &&
           !memcmp(a->mem_mhz, b->mem_mhz, a->mem_count * sizeof *a->mem_mhz);
}

/* By default host time is as recorded, and a policy that sets the CPU can only make it longer. */
static bool host_may_speed_up(const fl_cpu_spec *cpu) {
    fl_cpu_state top = {0};
    const double standard_mhz = fl_cpu_default_mhz(cpu);
    return fl_cpu_ref_mhz(cpu) != standard_mhz ||
           fl_cpu_state_make(cpu, fl_cpu_state_count(cpu) - 1, &top) != FL_MODEL_OK || top.mhz > standard_mhz;
}

const char *fl_oracle_inexact(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec) {
    const fl_stream *s = lone_stream(w);
    const fl_cpu_spec *cpu = &spec->host.cpu;
    if (w->request_count)
        return "requests arrive by the clock";
    if (!s)
        return "several streams";
    for (uint32_t i = 0; i < spec->gpu_count; i++)
        if (!same_ladders(&spec->device[spec->gpu[i]], &spec->device[spec->gpu[s->gpu]]))
            return "GPUs with other clocks";
    if (spec->host.apu)
        return "CPU and GPU share memory and budget";
    if (spec->device[spec->gpu[s->gpu]].thermal.period_ns > 0)
        return "heat";
    if (spec->device[spec->gpu[s->gpu]].gate_ns > 0)
        return "an idle GPU's power is gated";
    if (spec->host.gpu_budget_w > 0)
        return "a budget of all GPUs";
    if (cpu->count && (w->host_load_count || (cpu->bound > 0 && host_may_speed_up(cpu))))
        return "host time depends on the CPU clock";
    return wall_in_reach(s, rates, spec) ? "the power limit" : NULL;
}

/* ---- cutting into positions ---- */

static fl_status cut(const fl_stream *s, size_t positions_max, fl_oracle_table *t, fl_diag *d) {
    size_t room = s->count < positions_max ? (size_t)s->count : positions_max;
    t->op = malloc((room + 1) * sizeof *t->op);
    if (!t->op)
        return fl_no_memory(d, "the oracle");
    t->op[0] = 0;
    t->per_op = s->count <= positions_max;
    if (t->per_op) {
        t->positions = room;
        for (size_t i = 1; i <= room; i++)
            t->op[i] = i;
        return FL_OK;
    }
    int64_t passed = 0;
    for (uint64_t i = 0; i < s->count; i++) {
        int64_t gap_ns, work_ns;
        uint32_t class_id;
        fl_workload_op(s, i, &gap_ns, &work_ns, &class_id);
        passed += gap_ns + work_ns;
        bool due = (fl_wide)passed * (int64_t)room >= (fl_wide)s->span_ns * (int64_t)(t->positions + 1);
        if (due && t->positions + 1 < room)
            t->op[++t->positions] = i + 1;
    }
    if (t->op[t->positions] < s->count)
        t->op[++t->positions] = s->count;
    return FL_OK;
}

/* ---- costs ---- */

static void add_block(const fl_op_block *b, const fl_clock_rates *at, int64_t closed, fl_wide *ps, fl_wide *fj) {
    int64_t base = at->base.total_mw + closed;
    fl_wide time = b->gap_ps, energy = b->gap_ps * base;
    for (size_t k = 0; k < b->class_count; k++) {
        const fl_row *row = &at->row[b->class_id[k]];
        fl_wide length = fl_op_block_length_ps(b, k, row->mul);
        time += length;
        energy += length * (base + row->dyn_mw);
    }
    *ps += time;
    *fj += energy;
}

static fl_status too_long(const fl_workload *w, fl_diag *d) {
    return fl_refuse(d, "%s: longer than 53 days at its slowest clock, expected less", w->name);
}

static fl_status fill(const fl_workload *w, const fl_stream *s, const fl_clock_rates *const *at, int64_t closed,
                      fl_oracle_table *t, fl_diag *d) {
    fl_op_block b;
    fl_status status = fl_op_block_open(&b, w, d);
    fl_wide *ps = calloc(t->choices, sizeof *ps), longest = 0;
    if (!status && !ps)
        status = fl_no_memory(d, "the oracle");
    const fl_stage stage = fl_stage_begin("costs at each position", t->positions);
    for (size_t i = 0; !status && i < t->positions; i++) {
        fl_stage_at(stage, i);
        fl_wide *fj = t->energy_fj + i * t->choices, slowest = 0;
        memset(ps, 0, t->choices * sizeof *ps);
        for (uint64_t from = t->op[i]; !status && from < t->op[i + 1]; from += FL_OP_BLOCK_MAX) {
            uint64_t end = t->op[i + 1] - from < FL_OP_BLOCK_MAX ? t->op[i + 1] : from + FL_OP_BLOCK_MAX;
            status = fl_op_block_fill(&b, s, from, end, d);
            for (size_t c = 0; !status && c < t->choices; c++)
                add_block(&b, at[c], closed, &ps[c], &fj[c]);
        }
        for (size_t c = 0; !status && c < t->choices; c++) {
            if (ps[c] > INT64_MAX / 2)
                status = too_long(w, d);
            else
                t->time_ps[i * t->choices + c] = (int64_t)ps[c];
            slowest = ps[c] > slowest ? ps[c] : slowest;
        }
        longest += slowest;
        if (!status && longest > INT64_MAX / 2)
            status = too_long(w, d);
    }
    fl_stage_end(stage);
    free(ps);
    fl_op_block_close(&b);
    return status;
}

static fl_status make_cells(fl_oracle_table *t, fl_diag *d) {
    t->time_ps = calloc(t->positions * t->choices, sizeof *t->time_ps);
    t->energy_fj = calloc(t->positions * t->choices, sizeof *t->energy_fj);
    return t->time_ps && t->energy_fj ? FL_OK : fl_no_memory(d, "the oracle");
}

/* ---- frontier: the lower convex hull of time and energy at each position ---- */

static fl_status make_frontier(fl_oracle_table *t, fl_diag *d) {
    fl_hull_point *p = malloc(t->choices * sizeof *p);
    size_t room = 0, used = 0;
    t->frontier_first = malloc((t->positions + 1) * sizeof *t->frontier_first);
    fl_status s = p && t->frontier_first ? FL_OK : fl_no_memory(d, "the oracle");
    for (size_t i = 0; !s && i < t->positions; i++) {
        for (uint32_t c = 0; c < t->choices; c++)
            p[c] = (fl_hull_point){t->time_ps[i * t->choices + c], t->energy_fj[i * t->choices + c], c};
        size_t n = fl_hull(p, t->choices);
        t->frontier_first[i] = used;
        if (fl_grow(&t->frontier, &room, used + n, sizeof *t->frontier))
            s = fl_no_memory(d, "the oracle");
        for (size_t k = 0; !s && k < n; k++)
            t->frontier[used++] = p[k].choice;
    }
    if (!s)
        t->frontier_first[t->positions] = used;
    free(p);
    return s;
}

/* ---- making ---- */

void fl_oracle_table_points(const fl_oracle_table *t, fl_static_point *point) {
    for (size_t c = 0; c < t->choices; c++)
        point[c] =
            (fl_static_point){.at = t->choice[c], .makespan_ps = t->work->all[c].ps, .energy_fj = t->work->all[c].fj};
}

fl_status fl_oracle_table_static(const fl_static_point *point, size_t count, fl_oracle_table *t, fl_diag *d) {
    *t = (fl_oracle_table){.positions = 1, .choices = count};
    if (!count)
        return fl_refuse(d, "no static run for the oracle, expected at least one");
    t->choice = malloc(count * sizeof *t->choice);
    fl_status s = t->choice ? make_cells(t, d) : fl_no_memory(d, "the oracle");
    for (size_t c = 0; !s && c < count; c++) {
        t->choice[c] = point[c].at;
        t->time_ps[c] = point[c].makespan_ps;
        t->energy_fj[c] = point[c].energy_fj;
    }
    if (s)
        fl_oracle_table_free(t);
    return s;
}

static fl_status make_static(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec, const fl_choice *choice,
                             size_t count, fl_oracle_table *t, fl_diag *d) {
    fl_static_point *point = malloc(count * sizeof *point);
    fl_facts facts = {.seed = 1}; /* nothing in a run without a policy is random */
    fl_status s = point ? FL_OK : fl_no_memory(d, "the oracle");
    for (size_t c = 0; !s && c < count; c++)
        s = fl_static_run(w, rates, spec, &facts, &choice[c], &point[c], d);
    if (!s)
        s = fl_oracle_table_static(point, count, t, d);
    free(point);
    return s;
}

static fl_status make_exact(const fl_workload *w, const fl_stream *s, fl_rates *rates, const fl_node_spec *spec,
                            size_t positions, fl_oracle_table *t, fl_diag *d) {
    const fl_device *dev = &spec->device[spec->gpu[s->gpu]];
    const int64_t closed_mw = fl_closed_mw(spec, s->gpu);
    const fl_clock_rates **at = calloc(t->choices, sizeof(fl_clock_rates *));
    fl_status status = at ? FL_OK : fl_no_memory(d, "the oracle");
    for (size_t c = 0; !status && c < t->choices; c++) {
        int sm = fl_ladder_index(dev->sm_mhz, dev->sm_count, t->choice[c].sm_mhz);
        int mem = fl_ladder_index(dev->mem_mhz, dev->mem_count, t->choice[c].mem_mhz);
        status = fl_rates_at(rates, spec->gpu[s->gpu], (uint32_t)sm, (uint32_t)mem, &at[c], d);
    }
    if (!status)
        status = fl_oracle_work_make(w, s, at, t->choices, closed_mw, &t->work, d);
    else
        free(at);
    t->exact = true;
    if (status || positions == FL_POSITIONS_ALL)
        return status;
    status = cut(s, positions, t, d);
    if (!status)
        status = make_cells(t, d);
    if (!status)
        status = fill(w, s, t->work->at, closed_mw, t, d);
    return status ? status : make_frontier(t, d);
}

fl_status fl_oracle_table_make(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec, size_t positions,
                               fl_oracle_table *t, fl_diag *d) {
    *t = (fl_oracle_table){0};
    fl_choice *choice;
    size_t count;
    fl_status status = fl_oracle_choices(w, spec, &choice, &count, d);
    if (status)
        return status;
    const fl_stream *s = lone_stream(w);
    if (fl_oracle_inexact(w, rates, spec)) {
        status = make_static(w, rates, spec, choice, count, t, d);
        free(choice);
        return status;
    }
    t->choice = choice;
    t->choices = count;
    status = make_exact(w, s, rates, spec, positions, t, d);
    if (status)
        fl_oracle_table_free(t);
    return status;
}
