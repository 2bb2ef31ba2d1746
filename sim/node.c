#include "sim/node.h"

#include "sim/actuator.h"
#include "sim/sense.h"

#include <stdlib.h>
#include <string.h>

struct fl_node {
    const fl_workload *w;
    const fl_node_spec *spec;
    bool streams_only;
    uint32_t gpu_count;
    fl_gpu *gpu;
    fl_actuator *actuator;
    fl_sense **sense;
    fl_lane *lane;     /* by stream */
    fl_lane **lanes;   /* pointers to them, for the courses */
    fl_course *course; /* by island */
    bool *finished;    /* by island */
    int64_t *ended;    /* by island */
    int64_t now;
    uint64_t switches;
    fl_kernel_record *record;
    size_t record_count, record_room;
};

static fl_status no_memory(fl_diag *d) { return fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the node"); }

static fl_status open_course(fl_node *n, uint32_t k, fl_diag *d) {
    const fl_island *is = &n->w->island[k];
    fl_course *c = &n->course[k];
    *c = (fl_course){.is = is, .w = n->w, .lane = n->lanes, .queue = n->w->launch_queue};
    c->mine = calloc(is->stream_count + 1, sizeof *c->mine);
    c->gpu = calloc(is->gpu_count, sizeof *c->gpu);
    c->thread = calloc(is->thread_count + 1, sizeof *c->thread);
    c->event_ps = calloc(is->stream_count + is->thread_count + 1, sizeof *c->event_ps);
    if (!c->mine || !c->gpu || !c->thread || !c->event_ps)
        return no_memory(d);
    c->simple = !is->thread_count;
    for (uint32_t i = 0; i < is->stream_count + is->thread_count; i++)
        c->event_ps[i] = FL_TIME_NEVER;
    for (uint32_t i = 0; i < is->stream_count; i++) {
        c->mine[i] = n->lanes[is->stream[i]];
        c->mine[i]->event_ps = &c->event_ps[i];
        c->simple &= !c->mine[i]->s->wait_first && !c->mine[i]->s->launched;
        if (!c->mine[i]->s->count) {
            c->mine[i]->phase = FL_PHASE_DONE;
            c->done++;
        }
    }
    for (uint32_t i = 0; i < is->gpu_count; i++)
        c->gpu[i] = &n->gpu[is->gpu[i]];
    for (uint32_t i = 0; i < is->thread_count; i++) {
        const fl_thread *t = &n->w->thread[is->thread[i]];
        c->thread[i] = (fl_host_thread){.t = t, .event_ps = &c->event_ps[is->stream_count + i]};
        if (t->count)
            *c->thread[i].event_ps = t->item[0].host_ns * FL_PS_PER_NS;
        else
            c->done++;
    }
    n->finished[k] = c->done == is->stream_count + is->thread_count;
    return FL_OK;
}

/* A GPU of an island with work keeps its context until all work of the island is done. */
static bool has_work(const fl_workload *w, uint32_t gpu) {
    for (uint32_t k = 0; k < w->island_count; k++) {
        const fl_island *is = &w->island[k];
        bool here = false, work = is->thread_count > 0;
        for (uint32_t i = 0; i < is->gpu_count; i++)
            here |= is->gpu[i] == gpu;
        for (uint32_t i = 0; i < is->stream_count; i++)
            work |= w->stream[is->stream[i]].count > 0;
        if (here)
            return work;
    }
    return false;
}

fl_status fl_node_open(fl_node **out, const fl_node_options *o, fl_diag *d) {
    const fl_workload *w = o->w;
    if (w->gpu_count > o->spec->gpu_count)
        return fl_fail(d, FL_BAD_INPUT, NULL, 0, 0, "%s: uses %u GPUs, the platform %s has %u (see --gpus)", w->name,
                       w->gpu_count, o->spec->name, o->spec->gpu_count);
    fl_node *n = calloc(1, sizeof *n);
    if (!n)
        return no_memory(d);
    n->w = w;
    n->spec = o->spec;
    n->streams_only = o->streams_only;
    n->gpu_count = o->spec->gpu_count;
    n->gpu = calloc(n->gpu_count, sizeof *n->gpu);
    n->actuator = calloc(n->gpu_count, sizeof *n->actuator);
    n->sense = calloc(n->gpu_count, sizeof(fl_sense *));
    n->lane = calloc(w->stream_count + 1, sizeof *n->lane);
    n->lanes = calloc(w->stream_count + 1, sizeof *n->lanes);
    n->course = calloc(w->island_count + 1, sizeof *n->course);
    n->finished = calloc(w->island_count + 1, sizeof *n->finished);
    n->ended = calloc(w->island_count + 1, sizeof *n->ended);
    fl_status s = FL_OK;
    if (!n->gpu || !n->actuator || !n->sense || !n->lane || !n->lanes || !n->course || !n->finished || !n->ended)
        s = no_memory(d);
    for (uint32_t i = 0; !s && i < n->gpu_count; i++) {
        const fl_device *dev = &o->spec->device[o->spec->gpu[i]];
        fl_actuator_open(&n->actuator[i], dev);
        uint32_t sm = n->actuator[i].sm_default;
        if (o->first_sm_mhz > 0) {
            int k = fl_ladder_index(dev->sm_mhz, dev->sm_count, o->first_sm_mhz);
            if (k < 0)
                s = fl_fail(d, FL_BAD_INPUT, NULL, 0, 0, "%g MHz is not on the ladder of %s", o->first_sm_mhz,
                            dev->name);
            else
                sm = (uint32_t)k;
        }
        if (!s)
            s = fl_gpu_open(&n->gpu[i], w, o->rates, o->spec, i, sm, n->actuator[i].mem_default, d);
        if (!s)
            n->gpu[i].open = has_work(w, i);
        if (!s)
            s = fl_sense_open(&n->sense[i], &n->gpu[i], o->gpu_needs, o->seed, d);
        if (!s)
            fl_sense_at(n->sense[i], &n->gpu[i], 0);
    }
    for (uint32_t i = 0; !s && i < w->stream_count; i++) {
        n->lanes[i] = &n->lane[i];
        n->lane[i] = (fl_lane){.s = &w->stream[i], .gpu = &n->gpu[w->stream[i].gpu]};
        n->lane[i].mark_ps = malloc((w->stream[i].mark_count + 1) * sizeof(int64_t));
        if (!n->lane[i].mark_ps)
            s = no_memory(d);
        for (uint32_t k = 0; !s && k < w->stream[i].mark_count; k++)
            n->lane[i].mark_ps[k] = FL_TIME_NEVER;
    }
    for (uint32_t k = 0; !s && k < w->island_count; k++)
        s = open_course(n, k, d);
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
        if (n->gpu)
            fl_gpu_close(&n->gpu[i]);
        if (n->sense)
            fl_sense_close(n->sense[i]);
    }
    for (uint32_t i = 0; n->lane && i < n->w->stream_count; i++)
        free(n->lane[i].mark_ps);
    for (uint32_t k = 0; n->course && k < n->w->island_count; k++) {
        free(n->course[k].mine);
        free(n->course[k].gpu);
        free(n->course[k].thread);
        free(n->course[k].event_ps);
    }
    free(n->gpu);
    free(n->actuator);
    free(n->sense);
    free(n->lane);
    free(n->lanes);
    free(n->course);
    free(n->finished);
    free(n->ended);
    free(n->record);
    free(n);
}

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* The earliest instant at which something must be done to a GPU of the island; until at most. */
static int64_t next_boundary(fl_node *n, const fl_island *is, int64_t now, int64_t until) {
    int64_t t = earlier(until, now + FL_BOUNDARY_MAX_PS);
    for (uint32_t i = 0; i < is->gpu_count; i++) {
        t = earlier(t, fl_actuator_next(&n->actuator[is->gpu[i]]));
        t = earlier(t, fl_sense_next(n->sense[is->gpu[i]], now, until));
    }
    return t < now ? now : t;
}

/* What happens to one GPU at a boundary, completions past: settled clocks, then (wall, heat,) sensors. */
static fl_status at_boundary(fl_node *n, fl_course *c, bool lone, uint32_t index, int64_t t, fl_diag *d) {
    fl_gpu *g = &n->gpu[index];
    fl_gpu_settle(g, t);
    uint32_t sm = g->sm, mem = g->mem;
    if (fl_actuator_take(&n->actuator[index], t, &sm, &mem)) {
        const fl_clock_rates *before = g->rates;
        fl_status s = fl_gpu_clock(g, sm, mem, d);
        if (s)
            return s;
        n->switches++;
        if (lone)
            fl_scan_rescale(g, c->mine[0], before);
        else if (c)
            fl_streams_rescale(c, g, before, t);
    }
    if (lone) {
        const fl_lane *l = c->mine[0];
        g->dyn_now_mw = l->phase == FL_PHASE_RUN ? g->rates->row[l->class_id].dyn_mw : 0;
    }
    fl_sense_at(n->sense[index], g, t);
    return g->records.failed ? no_memory(d) : FL_OK;
}

static fl_status advance_island(fl_node *n, uint32_t k, int64_t until, fl_diag *d) {
    const fl_island *is = &n->w->island[k];
    fl_course *c = &n->course[k];
    bool lone = is->lone && !n->streams_only;
    fl_gpu *first = &n->gpu[is->gpu[0]];
    while (!n->finished[k]) {
        int64_t target = next_boundary(n, is, first->now_ps, until);
        int64_t t = lone ? fl_scan_advance(first, c->mine[0], target) : fl_streams_advance(c, target);
        bool done = lone ? c->mine[0]->phase == FL_PHASE_DONE : c->done == is->stream_count + is->thread_count;
        if (done) { /* it stands at the instant of its last completion until the node's own end is known */
            for (uint32_t i = 0; i < is->gpu_count; i++)
                fl_gpu_settle(&n->gpu[is->gpu[i]], t);
            for (uint32_t i = 0; i < is->gpu_count; i++) { /* the program has ended there: no context, the idle clock */
                n->gpu[is->gpu[i]].open = false;
                n->gpu[is->gpu[i]].dyn_now_mw = 0;
            }
            n->finished[k] = true;
            n->ended[k] = t;
            return FL_OK;
        }
        char why[128];
        if (!lone && target == until && fl_streams_stuck(c, why, sizeof why))
            return fl_fail(d, FL_BAD_INPUT, NULL, 0, 0, "%s: %s", n->w->name, why);
        for (uint32_t i = 0; i < is->gpu_count; i++) {
            fl_status s = at_boundary(n, c, lone, is->gpu[i], t, d);
            if (s)
                return s;
        }
        if (t >= until)
            return FL_OK;
    }
    return FL_OK;
}

/* A GPU with nothing to do: idles to `until`, its sensors and actuators going on. Where it stands there already, what
 * is due at that instant still happens. */
static fl_status idle_to(fl_node *n, uint32_t index, int64_t until, fl_diag *d) {
    fl_gpu *g = &n->gpu[index];
    fl_island alone = {.gpu = &index, .gpu_count = 1};
    do {
        fl_status s = at_boundary(n, NULL, false, index, next_boundary(n, &alone, g->now_ps, until), d);
        if (s)
            return s;
    } while (g->now_ps < until);
    return FL_OK;
}

fl_status fl_node_advance(fl_node *n, int64_t until, fl_diag *d) {
    bool all = true;
    int64_t last = n->now;
    if (until > FL_TIME_END)
        return fl_fail(d, FL_BAD_INPUT, NULL, 0, 0, "%s: the run goes beyond 26 days of simulated time", n->w->name);
    for (uint32_t k = 0; k < n->w->island_count; k++) {
        fl_status s = advance_island(n, k, until, d);
        if (s)
            return s;
        all &= n->finished[k];
        if (n->finished[k] && n->ended[k] > last)
            last = n->ended[k];
    }
    int64_t t = all ? last : until;
    for (uint32_t i = 0; i < n->gpu_count; i++) {
        fl_status s = n->gpu[i].open ? FL_OK : idle_to(n, i, t, d); /* those that still run stand at t already */
        if (s)
            return s;
    }
    n->now = t;
    return FL_OK;
}

int64_t fl_node_now(const fl_node *n) { return n->now; }

bool fl_node_done(const fl_node *n) {
    for (uint32_t k = 0; k < n->w->island_count; k++)
        if (!n->finished[k])
            return false;
    return true;
}

void fl_node_read(fl_node *n, uint32_t gpu, bool remember, fl_gpu_sample *out) {
    fl_sense_read(n->sense[gpu], &n->gpu[gpu], n->now, remember, out);
}

void fl_node_set(fl_node *n, uint32_t gpu, int64_t called_ps, double sm_mhz, double mem_mhz) {
    fl_actuator_set(&n->actuator[gpu], called_ps, sm_mhz, mem_mhz);
}

void fl_node_records(fl_node *n, uint32_t gpu, bool on) { n->gpu[gpu].records.on = on; }

static int by_end(const void *a, const void *b) {
    const fl_kernel_record *x = a, *y = b;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->kind < y->kind ? -1 : x->kind > y->kind;
}

fl_status fl_node_take_records(fl_node *n, const fl_kernel_record **record, size_t *count, fl_diag *d) {
    n->record_count = 0;
    bool many = false;
    for (uint32_t i = 0; i < n->gpu_count; i++) {
        fl_record_buffer *b = &n->gpu[i].records;
        if (!b->count)
            continue;
        if (fl_grow(&n->record, &n->record_room, n->record_count + b->count, sizeof *n->record))
            return no_memory(d);
        many |= n->record_count > 0 || n->w->stream_count > 1;
        memcpy(n->record + n->record_count, b->record, b->count * sizeof *b->record);
        n->record_count += b->count;
        b->count = 0;
    }
    if (many)
        qsort(n->record, n->record_count, sizeof *n->record, by_end);
    *record = n->record;
    *count = n->record_count;
    return FL_OK;
}

uint32_t fl_node_gpu_count(const fl_node *n) { return n->gpu_count; }
const fl_gpu *fl_node_gpu(const fl_node *n, uint32_t gpu) { return &n->gpu[gpu]; }
uint64_t fl_node_switches(const fl_node *n) { return n->switches; }
const int64_t *fl_node_marks(const fl_node *n, uint32_t stream) { return n->lane[stream].mark_ps; }

uint64_t fl_node_hash(const fl_node *n) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < n->gpu_count; i++) {
        h = (h ^ (uint64_t)n->gpu[i].sums.energy_fj) * UINT64_C(0x100000001b3);
        h = (h ^ (uint64_t)n->gpu[i].sums.busy_ps) * UINT64_C(0x100000001b3);
        h = (h ^ (uint64_t)n->gpu[i].sums.kernels) * UINT64_C(0x100000001b3);
    }
    for (uint32_t i = 0; i < n->w->stream_count; i++)
        h = (h ^ n->lane[i].next) * UINT64_C(0x100000001b3);
    return h;
}
