/* What a run's host reads through a vendor's library or of servers, and how it carries out a decision. */
#include "sim/node/inside.h"

#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- what a vendor's library shows ---- */

/* Refresh: how long a sensor needs at least (notes on each GPU's sensors: 100 ms power, 1/6 s utilisation). */
#define POWER_NS 100000000
#define UTILISATION_NS 166666667

const fl_readout fl_readout_nvml = {
    "nvml",
    {[FL_GPU_POWER_W] = {"nvmlDeviceGetPowerUsage", 1000, POWER_NS},
     [FL_GPU_POWER_INSTANT_W] = {"nvmlDeviceGetFieldValues", 1000, POWER_NS},
     [FL_GPU_ENERGY_J] = {"nvmlDeviceGetTotalEnergyConsumption", 1000, FL_SEEN_MOVES},
     [FL_GPU_ENERGY_NS] = {"nvmlDeviceGetTotalEnergyConsumption", 1, FL_SEEN_MOVES}, /* when it was seen to move */
     [FL_GPU_UTIL_GPU_PCT] = {"nvmlDeviceGetUtilizationRates", 1, UTILISATION_NS},
     [FL_GPU_UTIL_MEM_PCT] = {"nvmlDeviceGetUtilizationRates", 1, UTILISATION_NS},
     [FL_GPU_SM_ACTIVE_PCT] = {"nvmlGpmMetricsGet", 1, POWER_NS}, /* Hopper and later */
     [FL_GPU_DRAM_ACTIVE_PCT] = {"nvmlGpmMetricsGet", 1, POWER_NS},
     [FL_GPU_SM_MHZ] = {"nvmlDeviceGetClockInfo", 1, 0},
     [FL_GPU_MEM_MHZ] = {"nvmlDeviceGetClockInfo", 1, 0},
     [FL_GPU_TEMP_C] = {"nvmlDeviceGetTemperatureV", 1, 0},
     [FL_GPU_THROTTLE] = {"nvmlDeviceGetCurrentClocksEventReasons", 1, 0},
     [FL_GPU_POWER_VIOLATION_NS] = {"nvmlDeviceGetFieldValues", 1, 0},
     [FL_GPU_THERMAL_VIOLATION_NS] = {"nvmlDeviceGetFieldValues", 1, 0}}};

uint64_t fl_readout_offers(const fl_readout *r) {
    uint64_t bits = 0;
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
        bits |= r->rule[id].call ? FL_BIT(id) : 0;
    return bits;
}

double fl_readout_whole(const fl_readout *r, int id, double value) {
    return (double)llround(value * r->rule[id].per_unit) / r->rule[id].per_unit;
}

/* Profiling counters are windows that the host makes itself; no host that is simulated here does (sim/README.md). */
static bool windowed(int id) { return id == FL_GPU_SM_ACTIVE_PCT || id == FL_GPU_DRAM_ACTIVE_PCT; }

void fl_readout_show(const fl_readout *r, fl_readout_view *view, uint64_t needs, int64_t t_ns, const fl_gpu_sample *raw,
                     fl_gpu_sample *out) {
    const fl_gpu_sample from = *raw; /* out may be raw */
    *out = (fl_gpu_sample){0};
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++) {
        if (!(from.valid >> id & 1) || !r->rule[id].call || windowed(id) || id == FL_GPU_ENERGY_NS)
            continue;
        fl_seen_put(&view->last[id], out, id, fl_readout_whole(r, id, from.value[id]), t_ns, r->rule[id].refresh_ns);
        if (id == FL_GPU_ENERGY_J)
            fl_seen_put(&view->last[FL_GPU_ENERGY_NS], out, FL_GPU_ENERGY_NS, (double)view->last[id].fresh_ns, t_ns,
                        r->rule[FL_GPU_ENERGY_NS].refresh_ns);
    }
    if (from.valid >> FL_GPU_KERNELS & 1) { /* counted from records, at each reading */
        out->value[FL_GPU_KERNELS] = from.value[FL_GPU_KERNELS];
        out->valid |= FL_BIT(FL_GPU_KERNELS);
        out->fresh |= FL_BIT(FL_GPU_KERNELS);
    }
    out->valid &= needs;
    out->fresh &= needs;
}

/* ---- servers as a policy sees them ---- */

fl_status fl_run_servers_open(fl_run_servers *r, const fl_workload *w, const fl_policy *policy, fl_diag *d) {
    *r = (fl_run_servers){0};
    const fl_reads reads = policy ? fl_reads_of(policy) : (fl_reads){0};
    if (reads.server_needs && !w->serving)
        return fl_refuse(d, "%s: %s reads signals of servers, and there are none", w->name, policy->name);
    if (!policy || !w->serving)
        return FL_OK;
    r->sample = calloc(w->serving->server_count, sizeof *r->sample);
    if (!r->sample)
        return fl_no_memory(d, "the run");
    r->count = w->serving->server_count;
    r->batches = reads.steps;
    return FL_OK;
}

void fl_run_servers_close(fl_run_servers *r) {
    free(r->sample);
    free(r->batch);
    *r = (fl_run_servers){0};
}

static fl_status take_batches(fl_run_servers *r, fl_node *n, int64_t began_ns, fl_sample *sample, fl_diag *d) {
    const fl_batch_record *batch;
    size_t count, kept = 0;
    fl_node_take_batches(n, &batch, &count);
    if (fl_grow(&r->batch, &r->batch_room, count + 1, sizeof *r->batch))
        return fl_no_memory(d, "the run");
    for (size_t i = 0; i < count; i++) {
        r->batch[kept] = batch[i];
        r->batch[kept].start_ns -= began_ns;
        r->batch[kept].end_ns -= began_ns;
        kept += r->batch[kept].start_ns >= 0;
    }
    sample->batch = r->batch;
    sample->batch_count = kept;
    return FL_OK;
}

fl_status fl_run_servers_read(fl_run_servers *r, fl_node *n, int64_t began_ps, fl_sample *sample, fl_diag *d) {
    if (!r->count)
        return FL_OK;
    sample->server = r->sample;
    sample->server_count = r->count;
    for (uint32_t i = 0; i < r->count; i++)
        fl_node_read_server(n, i, true, &r->sample[i]);
    return r->batches ? take_batches(r, n, began_ps / FL_PS_PER_NS, sample, d) : FL_OK;
}

/* ---- the sets of a decision ---- */

fl_status fl_run_sets_open(fl_run_sets *h, fl_node *node, const fl_node_spec *spec, const fl_readout *reader,
                           fl_faults *faults, bool records_free, fl_diag *d) {
    const uint32_t gpus = fl_node_gpu_count(node);
    *h = (fl_run_sets){.node = node, .spec = spec, .reader = reader, .faults = faults, .records_free = records_free};
    h->records = calloc(gpus, sizeof *h->records);
    for (uint32_t i = 0; h->records && i < gpus; i++)
        h->records[i].at_ps = FL_TIME_NEVER;
    if (spec->host.hosts_per_gpu)
        h->own = calloc(gpus, sizeof *h->own);
    return h->records && (h->own || !spec->host.hosts_per_gpu) ? FL_OK : fl_no_memory(d, "the run");
}

void fl_run_sets_close(fl_run_sets *h) {
    free(h->records);
    free(h->own);
}

/* Where the library has no range to set in, a live host makes no call. */
static bool settable(const fl_run_sets *h, const fl_device *dev, int control) {
    if (!h->reader)
        return true;
    return control == FL_SET_MEM_MHZ ? dev->mem_count > 1
                                     : control != FL_SET_POWER_LIMIT_W || dev->power_min_w < dev->power_max_w;
}

/* Limits are whole steps of the library, too. */
static double limit_of(const fl_run_sets *h, double watts) {
    return h->reader && watts != FL_DEFAULT ? fl_readout_whole(h->reader, FL_GPU_POWER_W, watts) : watts;
}

static bool refused(fl_run_sets *h, int32_t gpu, int control, int64_t t) {
    const bool r = fl_faults_refuses(h->faults, gpu, control, t / FL_PS_PER_NS);
    h->refused += r;
    return r;
}

void fl_run_record(fl_run_sets *h, uint32_t gpu, bool on) {
    (h->records_free ? fl_node_records_free : fl_node_records)(h->node, gpu, on);
    h->recording = on ? h->recording + !h->records[gpu].on : h->recording - h->records[gpu].on;
    h->records[gpu].on = on;
}

/* Sets of one GPU, one call after the other; returns when the last call ends. A refused call keeps its caller too. */
static int64_t set_gpu(fl_run_sets *h, uint32_t i, const fl_decided *set, int64_t t) {
    const fl_device *dev = fl_node_gpu(h->node, i)->dev;
    const int64_t call = dev->actuator.call_ns * FL_PS_PER_NS;
    const int64_t limit_call = dev->actuator.limit_call_ns > 0 ? dev->actuator.limit_call_ns * FL_PS_PER_NS : call;
    const int32_t gpu = (int32_t)i;
    if (set[FL_SET_SM_MHZ].set && !refused(h, gpu, FL_SET_SM_MHZ, t += call))
        fl_node_set(h->node, i, t, set[FL_SET_SM_MHZ].value, NAN);
    if (set[FL_SET_MEM_MHZ].set && settable(h, dev, FL_SET_MEM_MHZ) && !refused(h, gpu, FL_SET_MEM_MHZ, t += call))
        fl_node_set(h->node, i, t, NAN, set[FL_SET_MEM_MHZ].value);
    if (set[FL_SET_POWER_LIMIT_W].set && settable(h, dev, FL_SET_POWER_LIMIT_W) &&
        !refused(h, gpu, FL_SET_POWER_LIMIT_W, t += limit_call))
        h->ignored += !fl_node_set_limit(h->node, i, t, limit_of(h, set[FL_SET_POWER_LIMIT_W].value));
    if (set[FL_SET_RECORDS].set && !refused(h, gpu, FL_SET_RECORDS, t)) {
        h->records[i].at_ps = t;
        h->records[i].to = set[FL_SET_RECORDS].value > 0;
    }
    return t;
}

static int64_t set_host(fl_run_sets *h, const fl_decided *set, int64_t t) {
    const int64_t call = h->spec->host.cpu.call_ns * FL_PS_PER_NS;
    for (int i = 0; i < FL_HOST_CONTROL_COUNT; i++) {
        if (!set[i].set)
            continue;
        if (h->reader) { /* the library knows GPUs only */
            h->ignored++;
            continue;
        }
        t += fl_node_cpu(h->node) ? call : 0;
        if (refused(h, FL_FAULT_HOST, i, t))
            continue;
        const double v = set[i].value;
        h->ignored += !fl_node_set_cpu(h->node, t, i == FL_SET_HOST_CPU_MHZ ? v : (double)NAN,
                                       i == FL_SET_HOST_CPU_BOOST ? v : (double)NAN,
                                       i == FL_SET_HOST_CPU_POWER_LIMIT_W ? v : (double)NAN);
    }
    return t;
}

static bool sets_any(const fl_decided *set) {
    bool any = false;
    for (int i = 0; i < FL_GPU_CONTROL_COUNT; i++)
        any |= set[i].set;
    return any;
}

/* Each GPU's own host, beside the others, once its calls before have ended. Returns when those of this step have. */
static int64_t carry_out_each(fl_run_sets *h, const fl_decision *dec, bool woken, int64_t t) {
    int64_t last = t;
    for (uint32_t i = 0; i < dec->gpu_count; i++) {
        const fl_gpu *g = fl_node_gpu(h->node, i);
        fl_run_own *own = &h->own[i];
        const bool passed = g->sums.iterations != own->looked;
        own->looked = g->sums.iterations;
        if (woken && !passed && !sets_any(dec->gpu[i]))
            continue;
        const int64_t from = t > own->free_ps ? t : own->free_ps;
        own->free_ps = set_gpu(h, i, dec->gpu[i], from + g->dev->actuator.read_ns * FL_PS_PER_NS);
        own->cost_ps += own->free_ps - from;
        last = own->free_ps > last ? own->free_ps : last;
    }
    return last;
}

static int64_t carry_out_all(fl_run_sets *h, const fl_decision *dec, int64_t t) {
    for (uint32_t i = 0; i < dec->gpu_count; i++)
        t += fl_node_gpu(h->node, i)->dev->actuator.read_ns * FL_PS_PER_NS;
    for (uint32_t i = 0; i < dec->gpu_count; i++)
        t = set_gpu(h, i, dec->gpu[i], t);
    return t;
}

int64_t fl_run_carry_out(fl_run_sets *h, const fl_decision *dec, bool woken, int64_t t) {
    const int64_t gpus = h->own ? carry_out_each(h, dec, woken, t) : carry_out_all(h, dec, t);
    const int64_t end = set_host(h, dec->host, gpus);
    h->cost_ps += end - t;
    return end;
}

int64_t fl_run_sets_cost(const fl_run_sets *h) {
    if (!h->own)
        return h->cost_ps;
    int64_t most = 0;
    for (uint32_t i = 0; i < fl_node_gpu_count(h->node); i++)
        most = h->own[i].cost_ps > most ? h->own[i].cost_ps : most;
    return most;
}
