#include "sim/node/run_result.h"

#include "sim/gpu/cpu.h"
#include "sim/serving/collect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
