/* Building a node and taking it down. */
#include "sim/node/inside.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "sim/advance/advance.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/node/node.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* A node whose workload serves requests. */

static fl_status advance(fl_course *c, int64_t target, int64_t *reached, bool *done, fl_diag *d) {
    *reached = fl_engines_advance(c->serving, c->gpu[0]->now_ps, target);
    *done = fl_engines_done(c->serving);
    return c->serving->status ? fl_engines_refused(c->serving, c->w->name, d) : FL_OK;
}

/* Requests that have not arrived yet keep it going: only a lost server can be waited for. */
static bool stuck(const fl_course *c, char *why, size_t size) {
    (void)size;
    why[0] = '\0';
    return fl_engines_stuck(c->serving);
}

static void rescale(fl_course *c, fl_gpu *g, const fl_clock_rates *before, int64_t t) {
    (void)before;
    fl_engines_rescale(c->serving, g, t);
}

static void lose(fl_course *c, fl_gpu *g) { fl_engines_lose(c->serving, g); }

static int64_t predict_mw(const fl_course *c, const fl_gpu *g, uint32_t sm, const fl_clock_rates *rates) {
    return fl_engines_predict_mw(c->serving, g, sm, rates);
}

static uint64_t hash(const fl_course *c, uint64_t h) { return fl_engines_hash(c->serving, h); }
static void close_servers(fl_course *c) { fl_engines_close(c->serving); }

static const fl_source servers = {.advance = advance,
                                  .stuck = stuck,
                                  .rescale = rescale,
                                  .lose = lose,
                                  .predict_mw = predict_mw,
                                  .hash = hash,
                                  .close = close_servers};

/* An engine's host thread launches step after step and waits for each: it never sleeps. */
static fl_status fl_node_engines_open(fl_node *n, const fl_node_options *o, fl_diag *d) {
    const fl_engines_needs needs = {
        .signals = o->server_needs, .batches = o->batches, .route = o->route, .route_user = o->route_user};
    for (uint32_t k = 0; k < n->w->island_count; k++) {
        fl_course *c = &n->course[k];
        if (!c->is->serves)
            continue;
        if (c->shared_bus)
            return fl_refuse(d, "%s: servers on an APU, whose memory the CPU shares, are not simulated", n->w->name);
        fl_status s = fl_engines_open(&c->serving, n->w, n->gpu, &needs, d);
        if (s)
            return s;
        c->source = &servers;
        c->active = n->w->serving->server_count;
        n->serving = c->serving;
    }
    return FL_OK;
}

void fl_node_read_server(fl_node *n, uint32_t server, bool remember, fl_server_sample *out) {
    fl_engines_read(n->serving, server, n->now, remember, out);
}

void fl_node_take_batches(fl_node *n, const fl_batch_record **batch, size_t *count) {
    *batch = n->serving->batch;
    *count = n->serving->batch_count;
    n->serving->batch_count = 0;
}

uint64_t fl_node_served(const fl_node *n) { return n->serving ? n->serving->finished : 0; }
fl_engines *fl_node_engines(const fl_node *n) { return n->serving; }

fl_batching_counts fl_node_batching(const fl_node *n, uint32_t server) {
    return fl_engine_count(&n->serving->engine[server]);
}

/* ---- opening and closing ---- */

enum { GATHER_AT = 8 }; /* runs of a workload: moving its ops costs as much as some ten runs save by it */

static fl_status open_course(fl_node *n, uint32_t k, fl_diag *d) {
    const fl_island *is = &n->w->island[k];
    fl_course *c = &n->course[k];
    *c = (fl_course){.is = is, .w = n->w, .lane = n->lanes, .queue = n->w->launch_queue, .request_ps = n->request_ps};
    c->mine = calloc(is->stream_count + 1, sizeof *c->mine);
    c->gpu = calloc(is->gpu_count, sizeof *c->gpu);
    c->thread = calloc(is->thread_count + 1, sizeof *c->thread);
    c->event_ps = calloc(is->stream_count + is->thread_count + 1, sizeof *c->event_ps);
    if (!c->mine || !c->gpu || !c->thread || !c->event_ps)
        return fl_no_memory(d, "the node");
    c->simple = !is->thread_count;
    for (uint32_t i = 0; i < is->stream_count + is->thread_count; i++)
        c->event_ps[i] = FL_TIME_NEVER;
    for (uint32_t i = 0; i < is->stream_count; i++) {
        c->mine[i] = n->lanes[is->stream[i]];
        c->mine[i]->p.event_ps = &c->event_ps[i];
        c->simple &= !c->mine[i]->s->wait_first && !c->mine[i]->s->launched;
        if (!c->mine[i]->s->count) {
            c->mine[i]->phase = FL_PHASE_DONE;
            c->done++;
        }
    }
    for (uint32_t i = 0; i < is->gpu_count; i++)
        c->gpu[i] = &n->gpu[is->gpu[i]];
    for (uint32_t i = 0; i < is->thread_count; i++)
        c->thread[i] =
            (fl_host_thread){.t = &n->w->thread[is->thread[i]], .p = {.event_ps = &c->event_ps[is->stream_count + i]}};
    c->capacity = FL_SHARE_ONE;
    c->interference = fl_gpu_interference(c->gpu[0]->dev);
    c->sums.time_ps = calloc(n->w->host_load_count + 1, sizeof *c->sums.time_ps);
    c->sums.work_ps = calloc(n->w->host_load_count + 1, sizeof *c->sums.work_ps);
    if (!c->sums.time_ps || !c->sums.work_ps)
        return fl_no_memory(d, "the node");
    if (n->hosted)
        c->host = fl_cpu_rows(&n->cpu);
    c->shared_bus = n->hosted && n->spec->host.apu;
    c->source = fl_node_is_lone(n, k) ? &fl_source_lone : &fl_source_streams;
    if (c->shared_bus && is->stream_count + is->thread_count > FL_SHARES_MAX)
        return fl_refuse(d, "%s: more than %d streams and host threads on one APU", n->w->name, FL_SHARES_MAX);
    const bool shortcuts = c->simple && is->gpu_count == 1 && !c->shared_bus;
    c->free.may = shortcuts && n->path == FL_PATH_AUTO;
    c->lanes.may = shortcuts && fl_path_may(n->path, FL_PATH_VECTOR) && fl_streams_lanes_here();
    c->ahead = c->free.may ? fl_ahead_new(is->stream_count) : NULL;
    if (c->free.may && !c->ahead)
        return fl_no_memory(d, "the node");
    fl_streams_begin(c);
    fl_status s = fl_launches_open(c, d);
    if (s)
        return s;
    n->finished[k] = c->done == is->stream_count + is->thread_count && !is->serves;
    return FL_OK;
}

/* A GPU of an island with work keeps its context until all work of the island is done. */
static bool has_work(const fl_workload *w, uint32_t gpu) {
    for (uint32_t k = 0; k < w->island_count; k++) {
        const fl_island *is = &w->island[k];
        bool here = false, work = is->thread_count > 0 || is->serves;
        for (uint32_t i = 0; i < is->gpu_count; i++)
            here |= is->gpu[i] == gpu;
        for (uint32_t i = 0; i < is->stream_count; i++)
            work |= w->stream[is->stream[i]].count > 0;
        if (here)
            return work;
    }
    return false;
}

static fl_status first_clock(double mhz, const int32_t *ladder, uint32_t count, const char *name, uint32_t *index,
                             fl_diag *d) {
    if (!(mhz > 0))
        return FL_OK;
    char of[96], text[FL_OFF_LADDER_TEXT];
    int k = fl_ladder_index(ladder, count, mhz);
    (void)snprintf(of, sizeof of, "the ladder of %s", name);
    if (k < 0)
        return fl_refuse(d, "%s", fl_off_ladder(mhz, of, ladder, count, text));
    *index = (uint32_t)k;
    return FL_OK;
}

static bool decodes(const fl_workload *w, uint32_t gpu) {
    for (uint32_t i = 0; w->serving && i < w->serving->server_count; i++)
        for (uint32_t k = 0; k < w->serving->server[i].gpu_count; k++)
            if (w->serving->server[i].gpu[k] == gpu)
                return w->serving->server[i].role == FL_ROLE_DECODE;
    return false;
}

/* One GPU with its actuator and its wall, at its first clocks. */
static fl_status open_gpu(fl_node *n, const fl_node_options *o, uint32_t i, fl_diag *d) {
    const fl_device *dev = &o->spec->device[o->spec->gpu[i]];
    fl_actuator_open(&n->actuator[i], dev);
    n->limit[i].at_ps = FL_TIME_NEVER;
    n->lost_ps[i] = o->lost_at_ns && o->lost_at_ns[i] < FL_TIME_END / FL_PS_PER_NS ? o->lost_at_ns[i] * FL_PS_PER_NS
                                                                                   : FL_TIME_NEVER;
    uint32_t sm = n->actuator[i].sm_default, mem = n->actuator[i].mem_default;
    const bool apart = o->first_decode_mhz > 0 && decodes(n->w, i);
    fl_status s =
        first_clock(apart ? o->first_decode_mhz : o->first_sm_mhz, dev->sm_mhz, dev->sm_count, dev->name, &sm, d);
    if (!s)
        s = first_clock(o->first_mem_mhz, dev->mem_mhz, dev->mem_count, dev->name, &mem, d);
    if (!s)
        s = fl_gpu_open(&n->gpu[i], n->w, o->rates, o->spec, i, sm, mem, d);
    if (s)
        return s;
    if (apart)
        n->actuator[i].sm_default = sm;
    n->gpu[i].path = n->path;
    n->gpu[i].open = has_work(n->w, i);
    n->gpu[i].counted = o->counted;
    for (uint32_t k = 0; k < n->w->stream_count; k++)
        n->gpu[i].marked |= n->w->stream[k].gpu == i && n->w->stream[k].iterations > 0;
    n->gpu[i].readings = n->w->readings;
    n->gpu[i].profiled = n->w->readings || (o->gpu_needs & fl_sense_signals[FL_SENSOR_PROFILE]) != 0;
    fl_wall_open(&n->wall[i], &n->gpu[i]);
    return FL_OK;
}

fl_status fl_node_open(fl_node **out, const fl_node_options *o, fl_diag *d) {
    const fl_workload *w = o->w;
    if (w->gpu_count > o->spec->gpu_count)
        return fl_refuse(d, "%s: uses %u GPUs, the platform %s has %u (see --gpus)", w->name, w->gpu_count,
                         o->spec->name, o->spec->gpu_count);
    fl_node *n = calloc(1, sizeof *n);
    if (!n)
        return fl_no_memory(d, "the node");
    n->w = w;
    n->spec = o->spec;
    n->rates = o->rates;
    n->seed = o->seed;
    n->path = o->path ? o->path : fl_path_forced();
    n->gpu_count = o->spec->gpu_count;
    n->gpu = calloc(n->gpu_count, sizeof *n->gpu);
    n->actuator = calloc(n->gpu_count, sizeof *n->actuator);
    n->limit = calloc(n->gpu_count, sizeof *n->limit);
    n->wall = calloc(n->gpu_count, sizeof *n->wall);
    n->heat = calloc(n->gpu_count, sizeof *n->heat);
    n->lost_ps = calloc(n->gpu_count, sizeof *n->lost_ps);
    n->dealt_fj = calloc(n->gpu_count, sizeof *n->dealt_fj);
    n->stalled = calloc(w->island_count + 1, sizeof *n->stalled);
    n->sense = calloc(n->gpu_count, sizeof(fl_sense *));
    n->lane = calloc(w->stream_count + 1, sizeof *n->lane);
    n->lanes = calloc(w->stream_count + 1, sizeof *n->lanes);
    n->course = calloc(w->island_count + 1, sizeof *n->course);
    n->finished = calloc(w->island_count + 1, sizeof *n->finished);
    n->ended = calloc(w->island_count + 1, sizeof *n->ended);
    n->request_ps = calloc(w->request_count + 1, sizeof *n->request_ps);
    const bool often = fl_rates_used(n->rates) == GATHER_AT;
    for (uint32_t i = 0; often && i < w->stream_count; i++)
        fl_huge_gather(w->stream[i].rec, w->stream[i].count * sizeof *w->stream[i].rec);
    fl_status s = FL_OK;
    if (!n->gpu || !n->actuator || !n->sense || !n->lane || !n->lanes || !n->course || !n->finished || !n->ended ||
        !n->limit || !n->wall || !n->heat || !n->lost_ps || !n->dealt_fj || !n->stalled || !n->request_ps)
        s = fl_no_memory(d, "the node");
    for (uint32_t i = 0; !s && i < n->gpu_count; i++)
        s = open_gpu(n, o, i, d);
    if (!s)
        s = fl_node_host_open(n, o->host_needs, d);
    for (uint32_t i = 0; !s && i < n->gpu_count; i++) {
        fl_heat_open(&n->heat[i], &n->gpu[i], fl_node_one_die(n) ? fl_cpu_mw(&n->cpu) : 0);
        s = fl_sense_open(&n->sense[i], &n->gpu[i], o->gpu_needs, o->seed, d);
        if (!s)
            fl_sense_at(n->sense[i], &n->gpu[i], 0);
    }
    for (uint32_t i = 0; !s && i < w->stream_count; i++) {
        n->lanes[i] = &n->lane[i];
        n->lane[i] = (fl_lane){.s = &w->stream[i], .gpu = &n->gpu[w->stream[i].gpu]};
        n->lane[i].mark_ps = malloc((w->stream[i].mark_count + 1) * sizeof(int64_t));
        n->lane[i].iteration_ps = malloc((w->stream[i].iterations + 1) * sizeof(int64_t));
        if (!n->lane[i].mark_ps || !n->lane[i].iteration_ps)
            s = fl_no_memory(d, "the node");
        for (uint32_t k = 0; !s && k < w->stream[i].mark_count; k++)
            n->lane[i].mark_ps[k] = FL_TIME_NEVER;
    }
    for (uint32_t k = 0; !s && k < w->island_count; k++)
        s = open_course(n, k, d);
    if (!s)
        s = fl_node_engines_open(n, o, d);
    if (s) {
        fl_node_close(n);
        return s;
    }
    *out = n;
    return FL_OK;
}

void fl_node_close(fl_node *n) {
    if (!n)
        return;
    for (uint32_t i = 0; i < n->gpu_count; i++) {
        if (n->gpu) {
            fl_path_count(n->gpu[i].taken);
            fl_gpu_close(&n->gpu[i]);
        }
        if (n->sense)
            fl_sense_close(n->sense[i]);
    }
    for (uint32_t i = 0; n->lane && i < n->w->stream_count; i++) {
        free(n->lane[i].mark_ps);
        free(n->lane[i].iteration_ps);
    }
    for (uint32_t k = 0; n->course && k < n->w->island_count; k++) {
        free(n->course[k].mine);
        free(n->course[k].gpu);
        free(n->course[k].thread);
        free(n->course[k].event_ps);
        free(n->course[k].ends_ps);
        free(n->course[k].ahead);
        free(n->course[k].sums.time_ps);
        free(n->course[k].sums.work_ps);
        if (n->course[k].source && n->course[k].source->close)
            n->course[k].source->close(&n->course[k]);
    }
    fl_node_host_close(n);
    free(n->gpu);
    free(n->limit);
    free(n->wall);
    free(n->heat);
    free(n->lost_ps);
    free(n->dealt_fj);
    free(n->stalled);
    free(n->actuator);
    free(n->sense);
    free(n->lane);
    free(n->lanes);
    free(n->course);
    free(n->finished);
    free(n->ended);
    free(n->request_ps);
    free(n->record);
    free(n);
}
