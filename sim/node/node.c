#include "sim/node/node.h"
#include "sim/node/inside.h"
#include "sim/advance/prefix.h"
#include "sim/advance/source.h"
#include "sim/advance/streams.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- markers ---- */

static bool may_pass_marker(const fl_node *n, uint32_t k) {
    return n->course[k].stops && !n->finished[k] && !n->stalled[k];
}

/* Nothing happens on the island before this instant, seen from where it stands. */
static int64_t quiet_until(fl_node *n, uint32_t k, int64_t until, int64_t read_ps) {
    const fl_island *is = &n->w->island[k];
    return earlier(fl_streams_next(&n->course[k]), fl_node_boundary(n, is, n->gpu[is->gpu[0]].now_ps, until, read_ps));
}

/* One island alone may go as far as it gets. Several go on together from one instant at which something happens to the
 * next, so that none of them is beyond the one at which another passes a marker. *until becomes that instant. */
static fl_status advance_to_marker(fl_node *n, int64_t *until, int64_t read_ps, fl_diag *d) {
    uint32_t islands = 0, one = 0;
    for (uint32_t k = 0; k < n->w->island_count; k++)
        if (may_pass_marker(n, k))
            islands++, one = k;
    if (islands == 1) {
        fl_status s = fl_node_advance_island(n, one, *until, read_ps, d);
        n->woken = n->course[one].marked;
        if (n->woken)
            *until = n->finished[one] ? n->ended[one] : n->course[one].gpu[0]->now_ps;
        return s;
    }
    for (int64_t step = n->now; islands;) {
        islands = 0;
        int64_t next = *until;
        for (uint32_t k = 0; k < n->w->island_count; k++) {
            if (!may_pass_marker(n, k))
                continue;
            fl_status s = fl_node_advance_island(n, k, step, read_ps, d);
            if (s)
                return s;
            n->woken |= n->course[k].marked;
            if (!may_pass_marker(n, k))
                continue;
            islands++;
            next = earlier(next, quiet_until(n, k, *until, read_ps));
        }
        if (n->woken)
            *until = step;
        if (n->woken || step == *until)
            break;
        step = next;
    }
    return FL_OK;
}

void fl_node_stop_at_markers(fl_node *n, bool on) {
    if (on == n->stops)
        return;
    n->stops = on;
    for (uint32_t k = 0; k < n->w->island_count; k++) {
        fl_course *c = &n->course[k];
        bool markers = false;
        for (uint32_t i = 0; i < c->is->stream_count; i++)
            markers |= c->mine[i]->s->iterations > 0;
        c->stops = on && markers;
        c->by_events |= c->stops;
    }
}

bool fl_node_woken(const fl_node *n) { return n->woken; }

/* Every GPU to `until`, or all to the end of the last work where that comes first. */
static fl_status advance_all(fl_node *n, int64_t until, int64_t read_ps, fl_diag *d) {
    n->woken = false;
    fl_status marked = n->stops ? advance_to_marker(n, &until, read_ps, d) : FL_OK;
    if (marked)
        return marked;
    bool all = true;
    int64_t last = n->now;
    for (uint32_t k = 0; k < n->w->island_count; k++) {
        fl_status s = fl_node_advance_island(n, k, until, read_ps, d);
        if (s)
            return s;
        all &= n->finished[k];
        if (n->finished[k] && n->ended[k] > last)
            last = n->ended[k];
    }
    int64_t t = all ? last : until;
    for (uint32_t i = 0; i < n->gpu_count; i++) {
        const bool runs = n->gpu[i].open || n->gpu[i].now_ps == t; /* it stands at t already */
        fl_status s = runs && n->gpu[i].open ? FL_OK : fl_node_idle_to(n, i, t, read_ps, d);
        if (s)
            return s;
    }
    n->now = t;
    return FL_OK;
}

/* Whether a lost GPU keeps the work from ever ending, and somebody has had the chance to see that it is gone. */
static fl_status check_lost(const fl_node *n, fl_diag *d) {
    bool waits = true;
    uint32_t lost = n->gpu_count;
    for (uint32_t k = 0; k < n->w->island_count; k++)
        waits &= n->finished[k] || n->stalled[k];
    for (uint32_t i = n->gpu_count; i-- > 0;)
        if (n->gpu[i].lost && n->now > n->lost_ps[i])
            lost = i;
    if (!waits || fl_node_done(n) || lost == n->gpu_count)
        return FL_OK;
    uint64_t kernels = 0;
    for (uint32_t i = 0; i < n->gpu_count; i++)
        kernels += n->gpu[i].sums.kernels;
    return fl_error(d, FL_HARDWARE,
                    "%s: GPU %u fell off the bus at %.9g s; its work can never end (%llu kernels done on all GPUs)",
                    n->w->name, lost, (double)n->lost_ps[lost] * 1e-12, (unsigned long long)kernels);
}

fl_status fl_node_advance(fl_node *n, int64_t until, fl_diag *d) {
    if (until > FL_TIME_END)
        return fl_refuse(d, "%s: the run goes beyond 26 days of simulated time", n->w->name);
    fl_status s = check_lost(n, d);
    do {
        int64_t t = n->meets ? earlier(until, fl_node_host_next(n, n->stops ? n->now : until)) : until;
        if (!s)
            s = advance_all(n, t, until, d);
        if (s)
            return s;
        if (n->meets)
            fl_node_host_at(n);
    } while (n->now < until && !n->woken && !fl_node_done(n));
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

bool fl_node_set_limit(fl_node *n, uint32_t gpu, int64_t called_ps, double watts) {
    if (!n->wall[gpu].period_ps)
        return false;
    n->limit[gpu] = (fl_limit_pending){called_ps + n->actuator[gpu].dev->actuator.settle_ns * FL_PS_PER_NS, watts};
    return true;
}

double fl_node_limit_w(const fl_node *n, uint32_t gpu) {
    const fl_wall *w = &n->wall[gpu];
    return w->period_ps && w->limit_mw > 0 ? (double)w->limit_mw * 1e-3 : (double)NAN;
}

bool fl_node_set_cpu(fl_node *n, int64_t called_ps, double mhz, double boost, double limit_w) {
    return n->hosted && fl_cpu_set(&n->cpu, called_ps, mhz, boost, limit_w);
}

static bool holds(const fl_island *is, uint32_t gpu) {
    for (uint32_t i = 0; i < is->gpu_count; i++)
        if (is->gpu[i] == gpu)
            return true;
    return false;
}

/* A count is of the kernels that ended while somebody counted. */
static void count_records(fl_gpu *g, bool on) {
    if (on && !g->records.on)
        g->uncounted += g->sums.kernels - g->stopped;
    else if (!on && g->records.on)
        g->stopped = g->sums.kernels;
    g->records.on = on;
}

void fl_node_records_free(fl_node *n, uint32_t gpu, bool on) { count_records(&n->gpu[gpu], on); }

/* Every GPU stands at n->now here, charged up to it. */
void fl_node_records_slow(fl_node *n, uint32_t gpu, bool slow) {
    fl_gpu *g = &n->gpu[gpu];
    const fl_clock_rates *before = g->rates;
    g->records.slow = slow;
    g->records.failed |= fl_gpu_clock(g, g->sm, g->mem, NULL) != FL_OK;
    for (uint32_t k = 0; g->rates != before && k < n->w->island_count; k++)
        if (holds(&n->w->island[k], gpu) && !n->finished[k] && !n->stalled[k])
            n->course[k].source->rescale(&n->course[k], g, before, n->now);
}

void fl_node_records(fl_node *n, uint32_t gpu, bool on) {
    count_records(&n->gpu[gpu], on);
    fl_node_records_slow(n, gpu, on);
}

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
            return fl_no_memory(d, "the node");
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

const int64_t *fl_node_requests(const fl_node *n) { return n->request_ps; }

const int64_t *fl_node_iterations(const fl_node *n, uint32_t stream, uint64_t *count) {
    *count = n->lane[stream].iterations;
    return n->lane[stream].iteration_ps;
}

void fl_node_settle(fl_node *n) {
    for (uint32_t i = 0; i < n->gpu_count; i++)
        fl_prefix_settle(&n->gpu[i]);
}

uint64_t fl_node_hash(const fl_node *n) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < n->gpu_count; i++) {
        h = (h ^ (uint64_t)n->gpu[i].sums.energy_fj) * UINT64_C(0x100000001b3);
        h = (h ^ (uint64_t)n->gpu[i].sums.busy_ps) * UINT64_C(0x100000001b3);
        h = (h ^ (uint64_t)n->gpu[i].sums.kernels) * UINT64_C(0x100000001b3);
    }
    for (uint32_t i = 0; i < n->w->stream_count; i++)
        h = (h ^ n->lane[i].next) * UINT64_C(0x100000001b3);
    for (uint32_t k = 0; k < n->w->island_count; k++)
        h = n->course[k].source->hash ? n->course[k].source->hash(&n->course[k], h) : h;
    return h;
}
