/* fl_run: one policy over one workload on one node, step by step. */
#include "sim/node/inside.h"

#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* True where something counts kernels all along, whether activity records are on or not. Of a policy that needs the
 * count the own program has a counter: the one of DEPO's authors counts launches, in the program that it drives, and
 * takes no record of them. A host that reads as a live one of `reader` is taken to have the collector (--rings). Else
 * the count is that of the records, and known while they are on. */
static inline bool fl_policy_counts(const fl_reads *r, const fl_readout *reader) {
    return reader != NULL || (r->gpu_needs & FL_BIT(FL_GPU_KERNELS)) != 0;
}

/* ---- when signals are stale and where counters wrap ---- */

/* A signal that stopped refreshing is unknown: after a second, or five periods of a slower sensor. */
static int64_t stale_ns(const fl_sensor_spec *s) {
    const int64_t wait = 5 * (s->period_ns > s->delay_ns ? s->period_ns : s->delay_ns);
    return wait > INT64_C(1000000000) ? wait : INT64_C(1000000000);
}

void fl_run_guard(fl_guard *guard, const fl_node_spec *spec) {
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

void fl_run_guard_servers(fl_guard *guard, const fl_serving_setup *u) {
    const int64_t limit_ns = 5 * u->signals_ns > INT64_C(1000000000) ? 5 * u->signals_ns : INT64_C(1000000000);
    for (uint32_t i = 0; i < u->server_count; i++)
        for (int signal = 0; signal < FL_SERVER_SIGNAL_COUNT; signal++)
            fl_guard_server_stale(guard, i, signal, limit_ns);
}

/* ---- the loop of steps ---- */

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
    int64_t *lost_ns; /* per GPU */
    fl_reads reads;   /* what the policy reads; nothing without one */
    fl_run_sets sets;
    bool recorded;         /* records were on on a GPU since the last step */
    fl_readout_view *view; /* per GPU; NULL without a reader */
    uint64_t *before;      /* per GPU, with a reader: kernels finished before time 0 */
    fl_kernel_record *record;
    size_t record_room;
    fl_run_servers servers;
    fl_follow follow;
} fl_host;

static void read_gpu(fl_host *h, uint32_t i, int64_t t_ns, fl_gpu_sample *out) {
    const uint64_t needs = h->reads.gpu;
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

/* Made where somebody reads records: few policies do, and a workload may have thousands of kinds. */
static fl_status name_kinds(fl_host *h, fl_diag *d) {
    const fl_workload *w = h->o->w;
    if (h->kind)
        return FL_OK;
    if (!(h->kind = calloc(w->class_count + 1, sizeof *h->kind)))
        return fl_no_memory(d, "the run");
    for (uint32_t i = 0; i < w->class_count; i++)
        h->kind[i] = w->class[i].kind;
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
    if (!h->view && h->reads.host_needs & ~FL_HOST_KNOWS) {
        fl_node_read_host(h->node, true, &sample->host);
        fl_faults_host(h->faults, sample->time_ns, &sample->host);
        fl_guard_host(h->guard, sample->time_ns, &sample->host);
    }
    const double target_w = fl_target_at(h->o->target, sample->time_ns);
    if (h->reads.host_needs & FL_BIT(FL_HOST_TARGET_W) && !isnan(target_w)) {
        sample->host.valid |= FL_BIT(FL_HOST_TARGET_W);
        sample->host.fresh |= FL_BIT(FL_HOST_TARGET_W);
        sample->host.value[FL_HOST_TARGET_W] = target_w;
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
    if (h->sets.recording || h->recorded) {
        fl_status s = name_kinds(h, d);
        if (s || (s = take_records(h, sample, d)))
            return s;
        sample->kind = h->kind;
        sample->kind_count = h->o->w->class_count;
    }
    return FL_OK;
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

static fl_status tell_truth(fl_host *h, fl_diag *d) {
    fl_status s = h->o->on_truth ? h->o->on_truth(h->o->user, h->node, fl_node_now(h->node), d) : FL_OK;
    return !s && h->o->on_watch ? watch(h, d) : s;
}

/* To the next step, to a marker that comes before it and is waited for, or to the end of the work; stopping at the
 * points where the truth is wanted, and where the power is held against a target. */
static fl_status go_on(fl_host *h, int64_t until, int64_t *truth_at, fl_diag *d) {
    int64_t stop;
    while ((stop = *truth_at < h->follow.next_ps ? *truth_at : h->follow.next_ps) <= until && !fl_node_done(h->node)) {
        fl_status s = fl_node_advance(h->node, stop, d);
        if (!s && is_woken(h, stop))
            return FL_OK;
        if (!s && stop == h->follow.next_ps && fl_node_now(h->node) == stop)
            fl_follow_look(&h->follow, h->node, h->began_ps);
        if (!s && stop == *truth_at) {
            s = tell_truth(h, d);
            *truth_at += h->o->truth_ns * FL_PS_PER_NS;
        }
        if (s)
            return s;
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
    h->recorded = h->sets.recording > 0;
    for (uint32_t i = 0; i < fl_node_gpu_count(h->node); i++) {
        fl_run_switch *on = &h->sets.records[i];
        if (on->at_ps == FL_TIME_NEVER)
            continue;
        fl_status s = go_on(h, on->at_ps, truth_at, d);
        if (s)
            return s;
        fl_run_record(&h->sets, i, on->to);
        on->at_ps = FL_TIME_NEVER;
    }
    return FL_OK;
}

/* A live host looks before it begins whether its signals can be read, and looks again where one is missing. What it
 * saw counts for nothing afterwards; the time it took is over. */
static fl_status look_first(fl_host *h, int64_t *truth_at, fl_diag *d) {
    const fl_reads *p = &h->reads;
    const uint32_t gpus = fl_node_gpu_count(h->node);
    if (!h->view || !(p->gpu | (p->host_needs & ~FL_HOST_KNOWS)))
        return FL_OK;
    for (int look = 0; look < 2; look++) {
        bool all = !(p->host_needs & ~FL_HOST_KNOWS);
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

static fl_status drive(fl_host *h, fl_diag *d) {
    int64_t truth_at = (h->o->on_truth || h->o->on_watch) && h->o->truth_ns > 0 ? 0 : FL_TIME_NEVER;
    fl_status first = h->instance ? look_first(h, &truth_at, d) : FL_OK;
    if (first)
        return first;
    for (uint32_t i = 0; h->reads.records && i < fl_node_gpu_count(h->node); i++)
        fl_run_record(&h->sets, i, true);
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
        if (h->o->hashed)
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
        h->loop_ps = fl_run_carry_out(&h->sets, decision, h->woken, next) - next;
        h->woken = false;
        const uint64_t passed = decision->wake ? markers_passed(h) : 0;
        if ((s = switch_records(h, &truth_at, d)))
            return s;
        h->steps++;
        int64_t delay =
            decision->delay_ns > INT64_MAX / 2 / FL_PS_PER_NS ? INT64_MAX / 2 : decision->delay_ns * FL_PS_PER_NS;
        const int64_t ready = h->sets.own ? next : next + h->loop_ps; /* another rank's host is ready at once */
        next += delay > h->loop_ps ? delay : h->loop_ps;
        if (next > FL_TIME_END)
            next = FL_TIME_END;
        if (decision->wake && (s = await_marker(h, passed, ready, &next, &truth_at, d)))
            return s;
    }
    h->r->hash = hash;
    return FL_OK;
}

static fl_status open_faults(fl_host *h, fl_diag *d) {
    const fl_run_options *o = h->o;
    const uint32_t gpus = o->spec->gpu_count, servers = o->w->serving ? o->w->serving->server_count : 0;
    fl_status s = fl_guard_open(&h->guard, gpus, d);
    if (!s)
        fl_run_guard(h->guard, o->spec);
    if (!s && servers && !(s = fl_guard_servers(h->guard, servers, d)))
        fl_run_guard_servers(h->guard, o->w->serving);
    if (!s && o->fault_count)
        s = fl_faults_open(&h->faults, o->fault, o->fault_count, gpus, servers, d);
    if (!s && !(h->lost_ns = calloc(gpus, sizeof *h->lost_ns)))
        s = fl_no_memory(d, "the run");
    for (uint32_t i = 0; !s && i < gpus; i++)
        h->lost_ns[i] = fl_faults_lost_at(h->faults, i);
    return s;
}

static uint32_t ask_policy(void *user, const fl_route_query *query) {
    const fl_host *h = user;
    return h->instance ? fl_instance_route(h->instance, query) : query->count;
}

fl_status fl_run(const fl_run_options *o, fl_run_result *r, fl_diag *d) {
    *r = (fl_run_result){0};
    fl_host h = {.o = o, .r = r, .reads = o->policy ? fl_reads_of(o->policy) : (fl_reads){0}};
    fl_follow_open(&h.follow, o->target);
    fl_status s = open_faults(&h, d);
    fl_node_options node = {.w = o->w,
                            .rates = o->rates,
                            .spec = o->spec,
                            .seed = o->facts->seed,
                            .gpu_needs = h.reads.gpu | (o->on_watch ? o->watch_needs : 0),
                            .counted = o->policy && fl_policy_counts(&h.reads, o->reader),
                            .host_needs = h.reads.host_needs,
                            .server_needs = h.reads.server,
                            .batches = h.reads.steps,
                            .route = o->policy && o->policy->route ? ask_policy : NULL,
                            .route_user = &h,
                            .lost_at_ns = h.lost_ns,
                            .path = o->path,
                            .first_sm_mhz = o->policy ? 0 : o->first_sm_mhz,
                            .first_mem_mhz = o->policy ? 0 : o->first_mem_mhz,
                            .first_decode_mhz = o->policy ? 0 : o->first_decode_mhz};
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
                                  .unwatched = !o->on_step,
                                  .min_set_interval_ns = o->min_set_interval_ns};
        s = fl_instance_open(&h.instance, &in, d);
    }
    if (!s) {
        h.gpu = calloc(fl_node_gpu_count(h.node), sizeof *h.gpu);
        h.watched = calloc(fl_node_gpu_count(h.node), sizeof *h.watched);
        if (o->reader && o->policy) {
            h.view = calloc(fl_node_gpu_count(h.node), sizeof *h.view);
            h.before = calloc(fl_node_gpu_count(h.node), sizeof *h.before);
            s = h.view && h.before ? FL_OK : fl_no_memory(d, "the run");
        }
    }
    if (!s)
        s = h.gpu && h.watched ? FL_OK : fl_no_memory(d, "the run");
    if (!s)
        s = fl_run_sets_open(&h.sets, h.node, o->spec, h.view ? o->reader : NULL, h.faults, o->records_free, d);
    if (!s)
        h.stage = o->w->serving ? fl_stage_begin("requests", o->w->serving->requests->count)
                                : fl_stage_begin("kernels", o->w->op_count);
    if (!s)
        s = drive(&h, d);
    fl_stage_end(h.stage);
    if (!s && h.instance)
        r->counts = fl_instance_counts_of(h.instance);
    fl_follow_end(&h.follow, r);
    r->policy_cost_ps = fl_run_sets_cost(&h.sets);
    r->refused_sets = h.sets.refused;
    r->ignored_sets = h.sets.ignored;
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
    fl_run_sets_close(&h.sets);
    free(h.view);
    free(h.before);
    free(h.record);
    fl_run_servers_close(&h.servers);
    if (s)
        fl_run_result_free(r);
    return s;
}

void fl_run_tables_most(int64_t bytes) { fl_prefix_limit(bytes); }
