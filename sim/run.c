#include "sim/run.h"

#include "sim/cpu.h"
#include "sim/guard.h"
#include "sim/prefix_table.h"
#include "sim/run_servers.h"
#include "sim/sense.h"
#include "sim/serving.h"
#include "traces/stage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct fl_host { /* the simulated host of one policy: time, readings, sets */
    const fl_run_options *o;
    fl_stage stage;
    fl_node *node;
    fl_instance *instance;
    fl_gpu_sample *gpu, *watched;
    fl_kernel_kind *kind;
    fl_run_result *r;
    uint64_t steps;
    bool woken;       /* the step that comes is before its delay is over: a marker was passed */
    int64_t loop_ps;  /* duration of the last loop */
    int64_t began_ps; /* its time 0 */
    fl_faults *faults;
    fl_guard *guard;
    int64_t *lost_ns;   /* per GPU */
    int64_t *free_ps;   /* per GPU, of hosts for each: when its calls have ended; NULL of one host for all */
    int64_t *cost_ps;   /* per GPU: how long its calls took */
    uint64_t *looked;   /* per GPU: markers that its host has come for */
    bool *recording;    /* per GPU: kernel records are on */
    int64_t *switch_ps; /* per GPU: when its calls have ended, and its records are switched; FL_TIME_NEVER: not */
    bool *switch_on;    /* to what */
    bool recorded;      /* records were on on a GPU since the last step */
    uint32_t gpu_records;
    fl_readout_view *view; /* per GPU; NULL without a reader */
    uint64_t *before;      /* per GPU, with a reader: kernels finished before time 0 */
    fl_kernel_record *record;
    size_t record_room;
    fl_run_servers servers;
} fl_host;

static void read_gpu(fl_host *h, uint32_t i, int64_t t_ns, fl_gpu_sample *out) {
    const uint64_t needs = fl_policy_reads(h->o->policy);
    fl_node_read(h->node, i, true, out);
    out->valid &= needs; /* a watcher may have asked for more */
    out->fresh &= needs;
    fl_faults_gpu(h->faults, i, t_ns, out);
    if (!h->view)
        return;
    fl_readout_show(h->o->reader, &h->view[i], needs, t_ns, out, out);
    out->value[FL_GPU_KERNELS] -= (double)h->before[i];
}

/* On the host's time. Of what began before it no record is shown. */
static fl_status take_records(fl_host *h, fl_sample *sample, fl_diag *d) {
    size_t count = 0, kept = 0;
    fl_status s = fl_node_take_records(h->node, &sample->record, &count, d);
    sample->record_count = count;
    if (s || !h->began_ps)
        return s;
    if (fl_grow(&h->record, &h->record_room, count + 1, sizeof *h->record))
        return fl_no_memory(d, "the run");
    for (size_t i = 0; i < count; i++) {
        fl_kernel_record r = sample->record[i];
        r.start_ns -= h->began_ps / FL_PS_PER_NS;
        r.end_ns -= h->began_ps / FL_PS_PER_NS;
        if (r.start_ns >= 0)
            h->record[kept++] = r;
    }
    sample->record = h->record;
    sample->record_count = kept;
    return FL_OK;
}

static fl_status read_signals(fl_host *h, fl_sample *sample, fl_diag *d) {
    uint32_t n = fl_node_gpu_count(h->node);
    const int64_t now = fl_node_now(h->node) - h->began_ps;
    *sample = (fl_sample){.time_ns = now / FL_PS_PER_NS,
                          .step = h->steps,
                          .gpu_count = n,
                          .gpu = h->gpu,
                          .woken = h->woken ? FL_BIT(FL_WAKE_MARKER) : 0};
    for (uint32_t i = 0; i < n; i++) {
        read_gpu(h, i, sample->time_ns, &h->gpu[i]);
        fl_guard_gpu(h->guard, i, sample->time_ns, &h->gpu[i]);
    }
    if (!h->view && h->o->policy->host_needs & ~FL_BIT(FL_HOST_LOOP_NS)) {
        fl_node_read_host(h->node, true, &sample->host);
        fl_faults_host(h->faults, sample->time_ns, &sample->host);
        fl_guard_host(h->guard, sample->time_ns, &sample->host);
    }
    if (h->steps) {
        sample->host.valid |= FL_BIT(FL_HOST_LOOP_NS);
        sample->host.fresh |= FL_BIT(FL_HOST_LOOP_NS);
        sample->host.value[FL_HOST_LOOP_NS] = (double)(h->loop_ps / FL_PS_PER_NS);
    }
    fl_status servers = fl_run_servers_read(&h->servers, h->node, h->began_ps, sample, d);
    if (servers)
        return servers;
    for (uint32_t i = 0; i < h->servers.count; i++) {
        fl_faults_server(h->faults, i, sample->time_ns, &h->servers.sample[i]);
        fl_guard_server(h->guard, i, sample->time_ns, &h->servers.sample[i]);
    }
    if (h->gpu_records || h->recorded) {
        fl_status s = take_records(h, sample, d);
        if (s)
            return s;
        sample->kind = h->kind;
        sample->kind_count = h->o->w->class_count;
    }
    return FL_OK;
}

/* Where the library has no range to set in, a live host makes no call. */
static bool settable(const fl_host *h, const fl_device *dev, int control) {
    if (!h->view)
        return true;
    return control == FL_SET_MEM_MHZ ? dev->mem_count > 1
                                     : control != FL_SET_POWER_LIMIT_W || dev->power_min_w < dev->power_max_w;
}

/* Limits are whole steps of the library, too. */
static double limit_of(const fl_host *h, double watts) {
    return h->view && watts != FL_DEFAULT ? fl_readout_whole(h->o->reader, FL_GPU_POWER_W, watts) : watts;
}

static bool refused(fl_host *h, int32_t gpu, int control, int64_t t) {
    const bool r = fl_faults_refuses(h->faults, gpu, control, t / FL_PS_PER_NS);
    h->r->refused_sets += r;
    return r;
}

static void put_records(fl_host *h, uint32_t i, bool on) {
    (h->o->records_free ? fl_node_records_free : fl_node_records)(h->node, i, on);
    h->gpu_records = on ? h->gpu_records + !h->recording[i] : h->gpu_records - h->recording[i];
    h->recording[i] = on;
}

/* Sets of one GPU, one call after the other; returns when the last call ends. A refused call keeps its caller too. */
static int64_t set_gpu(fl_host *h, uint32_t i, const fl_decided *set, int64_t t) {
    const fl_device *dev = fl_node_gpu(h->node, i)->dev;
    const int64_t call = dev->actuator.call_ns * FL_PS_PER_NS;
    const int32_t gpu = (int32_t)i;
    if (set[FL_SET_SM_MHZ].set && !refused(h, gpu, FL_SET_SM_MHZ, t += call))
        fl_node_set(h->node, i, t, set[FL_SET_SM_MHZ].value, NAN);
    if (set[FL_SET_MEM_MHZ].set && settable(h, dev, FL_SET_MEM_MHZ) && !refused(h, gpu, FL_SET_MEM_MHZ, t += call))
        fl_node_set(h->node, i, t, NAN, set[FL_SET_MEM_MHZ].value);
    if (set[FL_SET_POWER_LIMIT_W].set && settable(h, dev, FL_SET_POWER_LIMIT_W) &&
        !refused(h, gpu, FL_SET_POWER_LIMIT_W, t += call))
        h->r->ignored_sets += !fl_node_set_limit(h->node, i, t, limit_of(h, set[FL_SET_POWER_LIMIT_W].value));
    if (set[FL_SET_RECORDS].set && !refused(h, gpu, FL_SET_RECORDS, t)) {
        h->switch_ps[i] = t;
        h->switch_on[i] = set[FL_SET_RECORDS].value > 0;
    }
    return t;
}

static int64_t set_host(fl_host *h, const fl_decided *set, int64_t t) {
    const int64_t call = h->o->spec->host.cpu.call_ns * FL_PS_PER_NS;
    for (int i = 0; i < FL_HOST_CONTROL_COUNT; i++) {
        if (!set[i].set)
            continue;
        if (h->view) { /* the library knows GPUs only */
            h->r->ignored_sets++;
            continue;
        }
        t += fl_node_cpu(h->node) ? call : 0;
        if (refused(h, FL_FAULT_HOST, i, t))
            continue;
        const double v = set[i].value;
        h->r->ignored_sets += !fl_node_set_cpu(h->node, t, i == FL_SET_HOST_CPU_MHZ ? v : (double)NAN,
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

/* Each GPU's own host, beside the others: one that is woken, or has something to set, once its calls before have ended.
 * Returns when those of this step have. */
static int64_t carry_out_each(fl_host *h, const fl_decision *dec, int64_t t) {
    int64_t last = t;
    for (uint32_t i = 0; i < dec->gpu_count; i++) {
        const fl_gpu *g = fl_node_gpu(h->node, i);
        const bool passed = g->sums.iterations != h->looked[i];
        h->looked[i] = g->sums.iterations;
        if (h->woken && !passed && !sets_any(dec->gpu[i]))
            continue;
        const int64_t from = t > h->free_ps[i] ? t : h->free_ps[i];
        h->free_ps[i] = set_gpu(h, i, dec->gpu[i], from + g->dev->actuator.read_ns * FL_PS_PER_NS);
        h->cost_ps[i] += h->free_ps[i] - from;
        last = h->free_ps[i] > last ? h->free_ps[i] : last;
    }
    return last;
}

/* Carries a decision out, one call after the other; returns when the last call ends. */
static int64_t carry_out(fl_host *h, const fl_decision *dec, int64_t t) {
    if (h->free_ps)
        return set_host(h, dec->host, carry_out_each(h, dec, t));
    for (uint32_t i = 0; i < dec->gpu_count; i++)
        t += fl_node_gpu(h->node, i)->dev->actuator.read_ns * FL_PS_PER_NS;
    for (uint32_t i = 0; i < dec->gpu_count; i++)
        t = set_gpu(h, i, dec->gpu[i], t);
    return set_host(h, dec->host, t);
}

static fl_status watch(fl_host *h, fl_diag *d) {
    const uint32_t gpus = fl_node_gpu_count(h->node);
    for (uint32_t i = 0; i < gpus; i++)
        fl_node_read(h->node, i, false, &h->watched[i]);
    return h->o->on_watch(h->o->user, h->watched, gpus, fl_node_now(h->node), d);
}

/* A marker that the policy waits for was passed before `until`. */
static bool is_woken(const fl_host *h, int64_t until) {
    return fl_node_woken(h->node) && fl_node_now(h->node) < until && !fl_node_done(h->node);
}

/* To the next step, to a marker that comes before it and is waited for, or to the end of the work; stopping at the
 * points where the truth is wanted. */
static fl_status go_on(fl_host *h, int64_t until, int64_t *truth_at, fl_diag *d) {
    while (*truth_at <= until && !fl_node_done(h->node)) {
        fl_status s = fl_node_advance(h->node, *truth_at, d);
        if (!s && is_woken(h, *truth_at))
            return FL_OK;
        if (!s && h->o->on_truth)
            s = h->o->on_truth(h->o->user, h->node, fl_node_now(h->node), d);
        if (!s && h->o->on_watch)
            s = watch(h, d);
        if (s)
            return s;
        *truth_at += h->o->truth_ns * FL_PS_PER_NS;
        if (is_woken(h, until))
            return FL_OK;
    }
    return fl_node_done(h->node) ? FL_OK : fl_node_advance(h->node, until, d);
}

static uint64_t markers_passed(const fl_host *h) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < fl_node_gpu_count(h->node); i++)
        count += fl_node_gpu(h->node, i)->sums.iterations;
    return count;
}

/* The step after one that asks to be woken is due at *next. Until `ready` the calls of that one keep the host: markers
 * that are passed up to then, more than `passed`, wake it as soon as it is ready. *next becomes the time of the step,
 * unless a marker comes first. */
static fl_status await_marker(fl_host *h, uint64_t passed, int64_t ready, int64_t *next, int64_t *truth_at,
                              fl_diag *d) {
    fl_status s = ready > fl_node_now(h->node) ? go_on(h, ready, truth_at, d) : FL_OK;
    h->woken = ready < *next && markers_passed(h) > passed;
    *next = h->woken ? ready : *next;
    fl_node_stop_at_markers(h->node, !h->woken);
    return s;
}

/* Kernel records are switched once the calls before that have ended, as on a live host: what ends until then is still
 * recorded, or is not yet. */
static fl_status switch_records(fl_host *h, int64_t *truth_at, fl_diag *d) {
    h->recorded = h->gpu_records > 0;
    for (uint32_t i = 0; i < fl_node_gpu_count(h->node); i++) {
        if (h->switch_ps[i] == FL_TIME_NEVER)
            continue;
        fl_status s = go_on(h, h->switch_ps[i], truth_at, d);
        if (s)
            return s;
        put_records(h, i, h->switch_on[i]);
        h->switch_ps[i] = FL_TIME_NEVER;
    }
    return FL_OK;
}

/* A live host looks before it begins whether its signals can be read, and looks again where one is missing. What it
 * saw counts for nothing afterwards; the time it took is over. */
static fl_status look_first(fl_host *h, int64_t *truth_at, fl_diag *d) {
    const fl_policy *p = h->o->policy;
    const uint32_t gpus = fl_node_gpu_count(h->node);
    if (!h->view || !(fl_policy_reads(p) | (p->host_needs & ~FL_BIT(FL_HOST_LOOP_NS))))
        return FL_OK;
    for (int look = 0; look < 2; look++) {
        bool all = !(p->host_needs & ~FL_BIT(FL_HOST_LOOP_NS));
        fl_status s = go_on(h, h->began_ps, truth_at, d);
        if (s)
            return s;
        for (uint32_t i = 0; i < gpus; i++) {
            read_gpu(h, i, h->began_ps / FL_PS_PER_NS, &h->gpu[i]);
            all = all && !(p->gpu_needs & ~FL_BIT(FL_GPU_KERNELS) & ~h->gpu[i].valid);
        }
        for (uint32_t i = 0; i < gpus; i++)
            h->began_ps += fl_node_gpu(h->node, i)->dev->actuator.read_ns * FL_PS_PER_NS;
        if (all)
            break;
        h->began_ps += look ? 0 : FL_READOUT_APART_NS * FL_PS_PER_NS;
    }
    memset(h->view, 0, gpus * sizeof *h->view);
    fl_status s = go_on(h, h->began_ps, truth_at, d);
    for (uint32_t i = 0; i < gpus; i++)
        h->before[i] = fl_node_gpu(h->node, i)->sums.kernels;
    return s;
}

static void note_stage(const fl_host *h) {
    uint64_t done = 0;
    for (uint32_t i = 0; h->stage != FL_STAGE_NONE && i < fl_node_gpu_count(h->node); i++)
        done += fl_node_gpu(h->node, i)->sums.kernels;
    fl_stage_at(h->stage, h->o->w->serving ? fl_node_served(h->node) : done);
}

static int64_t busiest(const fl_host *h) {
    int64_t most = 0;
    for (uint32_t i = 0; i < fl_node_gpu_count(h->node); i++)
        most = h->cost_ps[i] > most ? h->cost_ps[i] : most;
    return most;
}

static fl_status drive(fl_host *h, fl_diag *d) {
    int64_t truth_at = (h->o->on_truth || h->o->on_watch) && h->o->truth_ns > 0 ? 0 : FL_TIME_NEVER;
    fl_status first = h->instance ? look_first(h, &truth_at, d) : FL_OK;
    if (first)
        return first;
    for (uint32_t i = 0; h->o->policy && h->o->policy->needs_records && i < fl_node_gpu_count(h->node); i++)
        put_records(h, i, true);
    int64_t next = h->began_ps;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (;;) {
        fl_status s = go_on(h, next, &truth_at, d);
        if (s)
            return s;
        if (is_woken(h, next)) {
            h->woken = true;
            next = fl_node_now(h->node);
        }
        fl_node_stop_at_markers(h->node, false);
        note_stage(h);
        hash = (hash ^ fl_node_hash(h->node)) * UINT64_C(0x100000001b3);
        if (fl_node_done(h->node))
            break;
        if (next >= FL_TIME_END)
            return fl_refuse(d, "%s: the run goes beyond 26 days of simulated time", h->o->w->name);
        if (!h->instance) {
            next += FL_BOUNDARY_MAX_PS;
            continue;
        }
        fl_sample sample;
        const fl_decision *decision;
        if ((s = read_signals(h, &sample, d)) || (s = fl_instance_step(h->instance, &sample, &decision, d)))
            return s;
        if (h->o->on_step && (s = h->o->on_step(h->o->user, &sample, decision, d)))
            return s;
        h->loop_ps = carry_out(h, decision, next) - next;
        h->r->policy_cost_ps = h->free_ps ? busiest(h) : h->r->policy_cost_ps + h->loop_ps;
        h->woken = false;
        const uint64_t passed = decision->wake ? markers_passed(h) : 0;
        if ((s = switch_records(h, &truth_at, d)))
            return s;
        h->steps++;
        int64_t delay =
            decision->delay_ns > INT64_MAX / 2 / FL_PS_PER_NS ? INT64_MAX / 2 : decision->delay_ns * FL_PS_PER_NS;
        const int64_t ready = h->free_ps ? next : next + h->loop_ps; /* another rank's host is ready at once */
        next += delay > h->loop_ps ? delay : h->loop_ps;
        if (next > FL_TIME_END)
            next = FL_TIME_END;
        if (decision->wake && (s = await_marker(h, passed, ready, &next, &truth_at, d)))
            return s;
    }
    h->r->hash = hash;
    return FL_OK;
}

/* A signal that stopped refreshing is unknown: after a second, or five periods of a slower sensor. */
static int64_t stale_ns(const fl_sensor_spec *s) {
    const int64_t wait = 5 * (s->period_ns > s->delay_ns ? s->period_ns : s->delay_ns);
    return wait > INT64_C(1000000000) ? wait : INT64_C(1000000000);
}

static void set_guard(fl_guard *guard, const fl_node_spec *spec) {
    for (uint32_t i = 0; i < spec->gpu_count; i++) {
        const fl_device *dev = &spec->device[spec->gpu[i]];
        for (int id = 0; id < FL_SENSOR_COUNT; id++)
            for (int signal = 0; signal < FL_GPU_SIGNAL_COUNT; signal++)
                if (fl_sense_signals[id] & FL_BIT(signal)) {
                    fl_guard_gpu_stale(guard, i, signal, stale_ns(&dev->sensor[id]));
                    fl_guard_gpu_wrap(guard, i, signal, dev->sensor[id].wrap);
                }
    }
    for (int id = 0; id < FL_HOST_SENSOR_COUNT; id++)
        for (int signal = 0; signal < FL_HOST_SIGNAL_COUNT; signal++)
            if (fl_host_sense_signals[id] & FL_BIT(signal)) {
                fl_guard_host_stale(guard, signal, stale_ns(&spec->host.sensor[id]));
                fl_guard_host_wrap(guard, signal, spec->host.sensor[id].wrap);
            }
}

/* Servers tell their signals every signals_ns: unknown after a second without any, or after five such times. */
static void set_server_guard(fl_guard *guard, const fl_serving_setup *u) {
    const int64_t limit_ns = 5 * u->signals_ns > INT64_C(1000000000) ? 5 * u->signals_ns : INT64_C(1000000000);
    for (uint32_t i = 0; i < u->server_count; i++)
        for (int signal = 0; signal < FL_SERVER_SIGNAL_COUNT; signal++)
            fl_guard_server_stale(guard, i, signal, limit_ns);
}

static fl_status open_faults(fl_host *h, fl_diag *d) {
    const fl_run_options *o = h->o;
    const uint32_t gpus = o->spec->gpu_count, servers = o->w->serving ? o->w->serving->server_count : 0;
    fl_status s = fl_guard_open(&h->guard, gpus, d);
    if (!s)
        set_guard(h->guard, o->spec);
    if (!s && servers && !(s = fl_guard_servers(h->guard, servers, d)))
        set_server_guard(h->guard, o->w->serving);
    if (!s && o->fault_count)
        s = fl_faults_open(&h->faults, o->fault, o->fault_count, gpus, servers, d);
    if (!s && !(h->lost_ns = calloc(gpus, sizeof *h->lost_ns)))
        s = fl_no_memory(d, "the run");
    for (uint32_t i = 0; !s && i < gpus; i++)
        h->lost_ns[i] = fl_faults_lost_at(h->faults, i);
    return s;
}

fl_status fl_run(const fl_run_options *o, fl_run_result *r, fl_diag *d) {
    *r = (fl_run_result){0};
    fl_host h = {.o = o, .r = r};
    fl_status s = open_faults(&h, d);
    fl_node_options node = {.w = o->w,
                            .rates = o->rates,
                            .spec = o->spec,
                            .seed = o->facts->seed,
                            .gpu_needs =
                                (o->policy ? fl_policy_reads(o->policy) : 0) | (o->on_watch ? o->watch_needs : 0),
                            .counted = o->policy && fl_policy_counts(o->policy, o->reader),
                            .host_needs = o->policy ? o->policy->host_needs : 0,
                            .server_needs = o->policy ? o->policy->server_needs | o->policy->server_uses : 0,
                            .batches = o->policy && o->policy->uses_batches,
                            .lost_at_ns = h.lost_ns,
                            .path = o->path,
                            .first_sm_mhz = o->policy ? 0 : o->first_sm_mhz,
                            .first_mem_mhz = o->policy ? 0 : o->first_mem_mhz};
    if (!s)
        s = fl_run_servers_open(&h.servers, o->w, o->policy, d);
    if (!s)
        s = fl_node_open(&h.node, &node, d);
    if (!s && o->policy) {
        fl_instance_options in = {.policy = o->policy,
                                  .facts = o->facts,
                                  .layer = o->layer,
                                  .layer_count = o->layer_count,
                                  .label = o->label,
                                  .run = o->w->name,
                                  .min_set_interval_ns = o->min_set_interval_ns};
        s = fl_instance_open(&h.instance, &in, d);
    }
    if (!s) {
        h.gpu = calloc(fl_node_gpu_count(h.node), sizeof *h.gpu);
        h.watched = calloc(fl_node_gpu_count(h.node), sizeof *h.watched);
        h.kind = calloc(o->w->class_count + 1, sizeof *h.kind);
        h.recording = calloc(fl_node_gpu_count(h.node), sizeof *h.recording);
        if (o->spec->host.hosts_per_gpu) {
            h.free_ps = calloc(fl_node_gpu_count(h.node), sizeof *h.free_ps);
            h.cost_ps = calloc(fl_node_gpu_count(h.node), sizeof *h.cost_ps);
            h.looked = calloc(fl_node_gpu_count(h.node), sizeof *h.looked);
            s = h.free_ps && h.cost_ps && h.looked ? FL_OK : fl_no_memory(d, "the run");
        }
        h.switch_on = calloc(fl_node_gpu_count(h.node), sizeof *h.switch_on);
        h.switch_ps = calloc(fl_node_gpu_count(h.node), sizeof *h.switch_ps);
        for (uint32_t i = 0; h.switch_ps && i < fl_node_gpu_count(h.node); i++)
            h.switch_ps[i] = FL_TIME_NEVER;
        if (!s && o->reader && o->policy) {
            h.view = calloc(fl_node_gpu_count(h.node), sizeof *h.view);
            h.before = calloc(fl_node_gpu_count(h.node), sizeof *h.before);
            s = h.view && h.before ? FL_OK : fl_no_memory(d, "the run");
        }
    }
    if (!s) {
        s = h.gpu && h.watched && h.kind && h.recording && h.switch_on && h.switch_ps ? FL_OK
                                                                                      : fl_no_memory(d, "the run");
    }
    for (uint32_t i = 0; !s && i < o->w->class_count; i++)
        h.kind[i] = o->w->class[i].kind;
    if (!s)
        h.stage = o->w->serving ? fl_stage_begin("requests", o->w->serving->requests->count)
                                : fl_stage_begin("kernels", o->w->op_count);
    if (!s)
        s = drive(&h, d);
    fl_stage_end(h.stage);
    if (!s && h.instance)
        r->counts = fl_instance_counts_of(h.instance);
    if (!s)
        s = fl_run_collect(h.node, o->w, o->spec, o->classes, r, d);
    fl_instance_close(h.instance);
    fl_node_close(h.node);
    fl_faults_close(h.faults);
    fl_guard_close(h.guard);
    free(h.lost_ns);
    free(h.gpu);
    free(h.watched);
    free(h.kind);
    free(h.recording);
    free(h.free_ps);
    free(h.cost_ps);
    free(h.looked);
    free(h.switch_on);
    free(h.switch_ps);
    free(h.view);
    free(h.before);
    free(h.record);
    fl_run_servers_close(&h.servers);
    if (s)
        fl_run_result_free(r);
    return s;
}

void fl_run_tables_most(int64_t bytes) { fl_prefix_limit(bytes); }
