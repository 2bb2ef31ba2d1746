/* What a run reports: the ledger, requests and iterations, and the result of the whole run. */
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "sim/advance/advance.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- ledger ---- */

#define FL_ROW_PART_NAME(id, name, meaning) #name,
const char *const fl_part_names[FL_PART_COUNT] = {FL_PARTS(FL_ROW_PART_NAME)};

fl_status fl_ledger_add_gpu(fl_ledger *l, const fl_gpu *g, fl_diag *d) {
    fl_wide part[FL_PART_COUNT] = {0}, sum = 0;
    for (uint32_t i = 0; i < g->slot_count; i++) {
        const fl_slot *s = &g->slot[i];
        const fl_base *b = &s->rates->base;
        const fl_wide awake_ps = s->open_ps - s->gated_ps;
        part[FL_PART_STATIC] += awake_ps * b->static_mw;
        part[FL_PART_MEMORY] += (fl_wide)s->open_ps * b->memory_mw;
        part[FL_PART_CLOCK_TREE] += awake_ps * b->tree_mw;
        part[FL_PART_SM] += s->sm_fj;
        part[FL_PART_MEMORY] += s->memory_fj;
        part[FL_PART_UNSPLIT] += s->unsplit_fj;
        for (uint32_t c = 0; c < g->w->class_count; c++) {
            if (!s->class_ps[c])
                continue; /* nearly all of them in a run by tables of sums */
            const fl_row_parts *p = &s->rates->parts[c];
            part[FL_PART_SM] += (fl_wide)s->class_ps[c] * p->sm_mw;
            part[FL_PART_MEMORY] += (fl_wide)s->class_ps[c] * p->memory_mw;
            part[FL_PART_UNSPLIT] += (fl_wide)s->class_ps[c] * p->unsplit_mw;
        }
    }
    part[FL_PART_LEAKAGE] = g->leak_fj;
    part[FL_PART_CLOSED] = (fl_wide)g->closed_ps * g->closed_mw;
    for (int i = 0; i < FL_PART_COUNT; i++) {
        sum += part[i];
        l->part_fj[i] += part[i];
    }
    l->gpu_fj += sum;
    if (sum != g->sums.energy_fj || sum < 0)
        return fl_error(d, FL_MODEL_FAULT,
                        "the ledger of GPU %u does not close: %.17g J by residence, %.17g J by running sum", g->index,
                        fl_joules(sum), fl_joules(g->sums.energy_fj));
    return FL_OK;
}

/* The host's parts, likewise. */
static fl_status fl_ledger_add_host(fl_ledger *l, const fl_node *n, const fl_node_spec *spec, fl_diag *d) {
    const fl_cpu *cpu = fl_node_cpu(n);
    fl_wide part[FL_PART_COUNT] = {0};
    part[FL_PART_CPU] = cpu ? fl_cpu_residence_fj(cpu) : 0;
    part[FL_PART_COMMUNICATION] = fl_node_comm_fj(n);
    part[FL_PART_NODE_STATIC] = (fl_wide)fl_node_now(n) * (int64_t)(spec->host.static_w * 1000 + 0.5);
    for (int i = 0; i < FL_PART_COUNT; i++) {
        l->part_fj[i] += part[i];
        l->host_fj += part[i];
    }
    if (cpu && (part[FL_PART_CPU] != cpu->sums.cpu_fj || part[FL_PART_CPU] < 0))
        return fl_error(d, FL_MODEL_FAULT,
                        "the ledger of the CPU does not close: %.17g J by residence, %.17g J by running sum",
                        fl_joules(part[FL_PART_CPU]), fl_joules(cpu->sums.cpu_fj));
    return FL_OK;
}

/* Adds the energy of the board while each class ran (including the base, as if the class ran alone) and its time, over
 * all clocks of one GPU, to fj and ps, class_count entries each. */
static void fl_ledger_classes(const fl_gpu *g, fl_wide *fj, int64_t *ps) {
    for (uint32_t i = 0; i < g->slot_count; i++)
        for (uint32_t c = 0; c < g->w->class_count; c++) {
            int64_t at = g->slot[i].class_ps[c];
            fj[c] += (fl_wide)at * ((int64_t)g->slot[i].rates->row[c].dyn_mw + g->slot[i].rates->base.total_mw);
            ps[c] += at;
        }
}

/* Classes that ran alone drew their own power. Where classes shared a GPU, the power was recorded as they ran. */
static int64_t busy_peak_mw(const fl_gpu *g) {
    int64_t peak = g->peak_mw;
    for (uint32_t i = 0; !g->peak_mw && i < g->slot_count; i++)
        for (uint32_t c = 0; c < g->w->class_count; c++)
            if (g->slot[i].class_ps[c] > 0) {
                int64_t mw = (int64_t)g->slot[i].rates->base.total_mw + g->slot[i].rates->row[c].dyn_mw;
                if (mw > peak)
                    peak = mw;
            }
    return g->peak_mw ? peak : fl_prefix_peak_mw(g, peak);
}

int64_t fl_ledger_peak_mw(const fl_gpu *g) {
    int64_t peak = busy_peak_mw(g);
    for (uint32_t i = 0; i < g->slot_count; i++)
        if (g->slot[i].open_ps > 0 && g->slot[i].rates->base.total_mw > peak)
            peak = g->slot[i].rates->base.total_mw;
    peak += g->leak_peak_mw;
    return g->closed_ps > 0 && g->closed_mw > peak ? g->closed_mw : peak;
}

int64_t fl_ledger_host_peak_mw(const fl_node *n, const fl_node_spec *spec) {
    const fl_cpu *cpu = fl_node_cpu(n);
    int64_t mw = (cpu ? cpu->peak_mw : 0) + (int64_t)(spec->host.static_w * 1000 + 0.5);
    return fl_node_comm_fj(n) > 0 ? mw + (int64_t)(spec->host.comm_w * 1000 + 0.5) : mw;
}

/* ---- requests and iterations ---- */

/* Requests are served in the order of arrival, so those that are there when one arrives are the ones after the last
 * that was done by then. */
static size_t backlog(const fl_request *r, size_t count) {
    size_t most = 0;
    for (size_t i = 0, done = 0; i < count; i++) {
        while (done < i && r[done].done_ps <= r[i].arrival_ps)
            done++;
        most = i + 1 - done > most ? i + 1 - done : most;
    }
    return most;
}

static double load_of(const fl_request *r, size_t count) {
    const int64_t span = count > 1 ? r[count - 1].arrival_ps - r[0].arrival_ps : 0;
    fl_wide served = 0;
    for (size_t i = 0; i < count; i++)
        served += r[i].done_ps - r[i].start_ps;
    if (count < 2)
        return NAN;
    return span > 0 ? (double)served / (double)count * (double)(count - 1) / (double)span : HUGE_VAL;
}

static fl_status collect_requests(const fl_node *n, const fl_workload *w, fl_service *out, fl_diag *d) {
    const size_t count = w->request_count;
    const int64_t *done = fl_node_requests(n);
    int64_t *latency = malloc((count + 1) * sizeof *latency);
    out->request = malloc((count + 1) * sizeof *out->request);
    if (!latency || !out->request) {
        free(latency);
        return fl_no_memory(d, "what the run served");
    }
    for (size_t i = 0; i < count; i++) {
        fl_request *r = &out->request[i];
        const int64_t before = i ? r[-1].done_ps : 0;
        *r = (fl_request){.arrival_ps = w->arrival_ns[i] * FL_PS_PER_NS, .done_ps = done[i]};
        r->start_ps = r->arrival_ps > before ? r->arrival_ps : before;
        latency[i] = r->done_ps - r->arrival_ps;
    }
    out->request_count = count;
    out->latency = fl_times_of(latency, count);
    out->load = load_of(out->request, count);
    out->backlog_max = backlog(out->request, count);
    free(latency);
    return FL_OK;
}

/* Markers of one stream into iterations. A pair with the start of another request between them is none. */
static void add_iterations(const fl_node *n, const fl_workload *w, uint32_t stream, fl_service *out, int64_t *length) {
    const fl_stream *s = &w->stream[stream];
    uint64_t count;
    const int64_t *at = fl_node_iterations(n, stream, &count);
    const uint64_t each = s->request_ops ? s->iterations / w->request_count : count;
    for (uint64_t k = 1; k < count; k++) {
        if (k % each == 0)
            continue;
        length[out->iteration_count] = at[k] - at[k - 1];
        out->iteration[out->iteration_count++] = (fl_iteration){s->gpu, s->process, s->id, at[k - 1], at[k]};
    }
}

static fl_status collect_iterations(const fl_node *n, const fl_workload *w, fl_service *out, fl_diag *d) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < w->stream_count; i++)
        most += w->stream[i].iterations;
    int64_t *length = malloc((most + 1) * sizeof *length);
    out->iteration = malloc((most + 1) * sizeof *out->iteration);
    if (!length || !out->iteration) {
        free(length);
        return fl_no_memory(d, "what the run served");
    }
    for (uint32_t i = 0; most && i < w->stream_count; i++)
        add_iterations(n, w, i, out, length);
    out->iteration_time = fl_times_of(length, out->iteration_count);
    free(length);
    return FL_OK;
}

static fl_status collect_barriers(const fl_node *n, const fl_workload *w, fl_service *out, fl_diag *d) {
    if (!w->barriers)
        return FL_OK;
    out->barrier_ps = malloc((w->gpu_count + 1) * sizeof *out->barrier_ps);
    if (!out->barrier_ps)
        return fl_no_memory(d, "what the run served");
    for (uint32_t i = 0; i < w->gpu_count; i++)
        out->barrier_ps[i] = fl_node_gpu(n, i)->barrier_ps;
    out->barrier_count = w->gpu_count;
    return FL_OK;
}

fl_status fl_service_collect(const fl_node *n, const fl_workload *w, fl_service *out, fl_diag *d) {
    fl_status s = collect_requests(n, w, out, d);
    if (!s)
        s = collect_iterations(n, w, out, d);
    return s ? s : collect_barriers(n, w, out, d);
}

void fl_service_free(fl_service *s) {
    free(s->request);
    free(s->iteration);
    free(s->barrier_ps);
    *s = (fl_service){0};
}

/* ---- run result ---- */

static fl_status collect_processes(const fl_workload *w, fl_node *node, fl_run_result *r, fl_diag *d) {
    r->process = calloc(w->stream_count + 1, sizeof *r->process);
    if (!r->process)
        return fl_no_memory(d, "the run");
    for (uint32_t i = 0; i < w->stream_count; i++) {
        const fl_stream *s = &w->stream[i];
        if (!s->mark_count)
            continue;
        const int64_t end = fl_node_marks(node, i)[s->mark_count - 1];
        size_t k = 0;
        while (k < r->process_count && (r->process[k].gpu != s->gpu || r->process[k].process != s->process))
            k++;
        if (k == r->process_count)
            r->process[r->process_count++] = (fl_process_end){s->gpu, s->process, end};
        else if (end > r->process[k].end_ps)
            r->process[k].end_ps = end;
    }
    return FL_OK;
}

static fl_status collect_cpu(fl_node *node, fl_run_result *r, fl_diag *d) {
    const fl_cpu *cpu = fl_node_cpu(node);
    r->last_cpu_mhz = NAN;
    if (!cpu)
        return FL_OK;
    r->cpu = calloc(cpu->state_count, sizeof *r->cpu);
    if (!r->cpu)
        return fl_no_memory(d, "the run");
    r->cpu_switches = cpu->switches;
    r->last_cpu_mhz = cpu->state[cpu->now].mhz;
    for (uint32_t i = 0; i < cpu->state_count; i++)
        if (cpu->slot[i].open_ps > 0)
            r->cpu[r->cpu_count++] = (fl_cpu_residence){(uint32_t)cpu->state[i].mhz, cpu->slot[i].open_ps};
    return FL_OK;
}

/* Energy, time and power of the whole run; *slots: pairs of clocks visited, over all GPUs. */
static fl_status collect_totals(fl_node *node, const fl_node_spec *spec, fl_run_result *r, size_t *slots, fl_diag *d) {
    uint32_t gpus = fl_node_gpu_count(node);
    r->makespan_ps = fl_node_now(node);
    int64_t peak_mw = 0;
    for (uint32_t i = 0; i < gpus; i++) {
        const fl_gpu *g = fl_node_gpu(node, i);
        fl_status s = fl_ledger_add_gpu(&r->ledger, g, d);
        if (s)
            return s;
        peak_mw += fl_ledger_peak_mw(g);
        r->kernels += g->sums.kernels;
        *slots += g->slot_count;
        r->wall_held_ps += g->wall_held_ps;
        r->heat_held_ps += g->heat_held_ps;
        r->hottest_c = i && !(g->hottest_c > r->hottest_c) ? r->hottest_c : g->hottest_c;
        r->end_c = i && !(g->temp_c > r->end_c) ? r->end_c : g->temp_c;
    }
    fl_status closed = fl_ledger_add_host(&r->ledger, node, spec, d);
    if (closed)
        return closed;
    r->energy_fj = r->ledger.gpu_fj + r->ledger.host_fj;
    r->score_fj = spec->host.apu ? r->energy_fj : r->ledger.gpu_fj;
    r->gpu_energy_j = fl_joules(r->ledger.gpu_fj);
    r->node_energy_j = fl_joules(r->energy_fj);
    r->energy_j = fl_joules(r->score_fj);
    r->cpu_energy_j = fl_joules(r->ledger.part_fj[FL_PART_CPU]);
    r->makespan_s = fl_seconds(r->makespan_ps);
    r->mean_power_w = r->makespan_ps > 0 ? r->energy_j / r->makespan_s : 0;
    const bool apu = spec->host.apu;
    r->peak_power_w = (double)(peak_mw + (apu ? fl_ledger_host_peak_mw(node, spec) : 0)) * 1e-3;
    r->peak_parts = gpus + apu;
    const fl_gpu *first = fl_node_gpu(node, 0);
    r->last_sm_mhz = first->dev->sm_mhz[first->lock_sm];
    r->last_mem_mhz = first->dev->mem_mhz[first->mem];
    return FL_OK;
}

/* Energy and time of each class, over all GPUs. */
static fl_status collect_classes(fl_node *node, const fl_workload *w, fl_run_result *r, fl_diag *d) {
    fl_wide *fj = calloc(w->class_count + 1, sizeof *fj);
    int64_t *ps = calloc(w->class_count + 1, sizeof *ps);
    r->class_energy_j = calloc(w->class_count + 1, sizeof *r->class_energy_j);
    r->class_time_s = calloc(w->class_count + 1, sizeof *r->class_time_s);
    fl_status status = fj && ps && r->class_energy_j && r->class_time_s ? FL_OK : fl_no_memory(d, "the run");
    for (uint32_t i = 0; !status && i < fl_node_gpu_count(node); i++)
        fl_ledger_classes(fl_node_gpu(node, i), fj, ps);
    for (uint32_t c = 0; !status && c < w->class_count; c++) {
        r->class_energy_j[c] = fl_joules(fj[c]);
        r->class_time_s[c] = fl_seconds(ps[c]);
    }
    r->class_count = status ? 0 : w->class_count;
    free(fj);
    free(ps);
    return status;
}

fl_status fl_run_collect(fl_node *node, const fl_workload *w, const fl_node_spec *spec, bool classes, fl_run_result *r,
                         fl_diag *d) {
    const uint32_t gpus = fl_node_gpu_count(node);
    size_t slots = 0;
    if (classes)
        fl_node_settle(node);
    fl_status totals = collect_totals(node, spec, r, &slots, d);
    if (totals)
        return totals;
    r->switches = fl_node_switches(node);
    for (uint32_t i = 0; i < w->stream_count; i++)
        r->mark_count += w->stream[i].mark_count;
    r->mark_ps = calloc(r->mark_count + 1, sizeof *r->mark_ps);
    r->residence = calloc(slots + 1, sizeof *r->residence);
    fl_status status = r->mark_ps && r->residence ? FL_OK : fl_no_memory(d, "the run");
    for (uint32_t i = 0, at = 0; !status && i < w->stream_count; at += w->stream[i++].mark_count)
        memcpy(r->mark_ps + at, fl_node_marks(node, i), w->stream[i].mark_count * sizeof *r->mark_ps);
    for (uint32_t i = 0; !status && i < gpus; i++) {
        const fl_gpu *g = fl_node_gpu(node, i);
        for (uint32_t k = 0; k < g->slot_count; k++)
            r->residence[r->residence_count++] = (fl_residence){.gpu = i,
                                                                .sm_mhz = (uint32_t)g->dev->sm_mhz[g->slot[k].sm],
                                                                .mem_mhz = (uint32_t)g->dev->mem_mhz[g->slot[k].mem],
                                                                .ps = g->slot[k].open_ps};
    }
    if (!status && classes)
        status = collect_classes(node, w, r, d);
    if (!status)
        status = collect_processes(w, node, r, d);
    if (!status)
        status = fl_service_collect(node, w, &r->service, d);
    if (!status && fl_node_engines(node))
        status = fl_served_collect(fl_node_engines(node), r->makespan_ps, r->energy_fj, r->energy_j, &r->served, d);
    return status ? status : collect_cpu(node, r, d);
}

void fl_run_result_free(fl_run_result *r) {
    free(r->mark_ps);
    free(r->residence);
    free(r->process);
    free(r->cpu);
    free(r->class_energy_j);
    free(r->class_time_s);
    fl_service_free(&r->service);
    fl_served_free(&r->served);
    *r = (fl_run_result){0};
}

/* ---- a power target over time, and how well a run followed it ---- */

/* The row that holds at t_ns; SIZE_MAX: none does yet. */
static size_t row_at(const fl_target *t, int64_t t_ns) {
    size_t from = 0, to = t->count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (t->t_ns[middle] <= t_ns)
            from = middle + 1;
        else
            to = middle;
    }
    return from - 1;
}

double fl_target_at(const fl_target *t, int64_t t_ns) {
    const size_t row = t ? row_at(t, t_ns) : SIZE_MAX;
    return row == SIZE_MAX ? (double)NAN : t->watts[row];
}

/* The mean from `from` to `to`; NAN where there is no target at `from`. */
static double mean_of(const fl_target *t, int64_t from, int64_t to) {
    size_t row = row_at(t, from);
    double sum = 0;
    if (row == SIZE_MAX)
        return NAN;
    for (int64_t at = from; at < to; row++) {
        const int64_t end = row + 1 < t->count && t->t_ns[row + 1] < to ? t->t_ns[row + 1] : to;
        sum += t->watts[row] * (double)(end - at);
        at = end;
    }
    return sum / (double)(to - from);
}

#define WINDOW_PS (FL_TARGET_WINDOW_NS * FL_PS_PER_NS)

void fl_follow_open(fl_follow *f, const fl_target *target) {
    *f = (fl_follow){.target = target, .next_ps = target ? WINDOW_PS : FL_TIME_NEVER};
}

void fl_follow_look(fl_follow *f, const fl_node *node, int64_t began_ps) {
    const int64_t now = fl_node_now(node), before = now - WINDOW_PS;
    fl_wide fj = 0;
    for (uint32_t i = 0; i < fl_node_gpu_count(node); i++)
        fj += fl_node_gpu(node, i)->sums.energy_fj;
    const double watts = (double)(fj - f->energy_fj) / (double)WINDOW_PS * 1e-3;
    f->energy_fj = fj;
    f->next_ps = now + WINDOW_PS;
    if (before < began_ps + FL_TARGET_AFTER_NS * FL_PS_PER_NS)
        return;
    const double want = mean_of(f->target, (before - began_ps) / FL_PS_PER_NS, (now - began_ps) / FL_PS_PER_NS);
    if (isnan(want))
        return;
    f->windows++;
    f->error_w += fabs(watts - want);
    f->above += watts > want;
}

void fl_follow_end(const fl_follow *f, fl_run_result *r) {
    r->target_error_w = f->windows ? f->error_w / (double)f->windows : (double)NAN;
    r->target_above_pct = f->windows ? 100 * (double)f->above / (double)f->windows : (double)NAN;
}
