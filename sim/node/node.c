/* A node between boundaries: advancing its islands, what all GPUs share (host CPU, bus, budget), reading and setting.
 */
#include "sim/node/inside.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/advance/advance.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What all GPUs of a node share: the host CPU, an APU's memory bus, a budget of power, and the meter at the plug. Each
 * needs an instant at which everything stands still; between two of them the GPUs advance alone. */

#define BUDGET_PERIOD_PS (INT64_C(100) * 1000 * 1000 * 1000) /* 100 ms: a chassis controller, some wall periods */

static int64_t idle_gpus_mw(const fl_node *n) {
    int64_t mw = 0;
    for (uint32_t i = 0; i < n->gpu_count; i++)
        mw += fl_gpu_idle_mw(&n->gpu[i]);
    return mw;
}

fl_status fl_node_host_open(fl_node *n, uint64_t needs, fl_diag *d) {
    const fl_host_spec *host = &n->spec->host;
    n->static_mw = llround(host->static_w * 1000);
    n->comm_mw = llround(host->comm_w * 1000);
    n->bus_ps = n->budget_ps = FL_TIME_NEVER;
    for (uint32_t i = 0; i < n->w->class_count; i++)
        n->copies |= n->w->class[i].copy;
    n->hosted = host->cpu.count > 0;
    if (n->hosted) {
        fl_status s = fl_cpu_open(&n->cpu, host, n->w->host_ref_mhz, n->w->host_load, n->w->host_load_count + 1, d);
        if (s) {
            n->hosted = false;
            return s;
        }
    }
    if (n->hosted && host->apu && host->bus_period_ns > 0)
        n->bus_ps = 0;
    if (host->gpu_budget_w > 0)
        n->budget_ps = 0;
    const int64_t cpu_mw = n->hosted ? fl_cpu_mw(&n->cpu) : 0;
    needs &= ~FL_HOST_KNOWS; /* the host that runs the policy knows that itself */
    n->meets = n->hosted || needs || n->budget_ps == 0;
    return fl_host_sense_open(&n->host_sense, host, n->hosted, needs, n->seed, n->static_mw + cpu_mw + idle_gpus_mw(n),
                              cpu_mw, d);
}

void fl_node_host_close(fl_node *n) {
    if (n->hosted)
        fl_cpu_close(&n->cpu);
    if (n->host_sense)
        fl_host_sense_close(n->host_sense);
}

/* The next instant at which all must stand still, given that nobody reads before read_ps. */
static int64_t fl_node_host_next(fl_node *n, int64_t read_ps) {
    int64_t t = fl_host_sense_next(n->host_sense, n->now, read_ps);
    if (n->hosted)
        t = earlier(t, fl_cpu_next(&n->cpu));
    t = earlier(t, n->bus_ps);
    t = earlier(t, n->budget_ps);
    for (uint32_t i = 0; fl_node_one_die(n) && i < n->gpu_count; i++)
        t = earlier(t, fl_heat_next(&n->heat[i]));
    return t < n->now ? n->now : t;
}

/* ---- host threads ---- */

/* A lone stream computes on its host in its gaps, and waits while its ops run. */
static void charge_lone(fl_node *n, uint32_t k) {
    fl_course *c = &n->course[k];
    const int64_t t = n->finished[k] ? n->ended[k] : n->now, dt = t - c->active_since_ps;
    const int64_t worked = c->mine[0]->worked_ps - c->lone_worked_ps;
    c->sums.time_ps[0] += dt - worked;
    c->sums.work_ps[0] += dt - worked;
    c->sums.active_ps += dt;
    c->active_since_ps = t;
    c->lone_worked_ps += worked;
}

static void charge_cpu(fl_node *n) {
    for (uint32_t k = 0; k < n->w->island_count; k++) {
        if (n->stalled[k])
            continue; /* its host hangs; what it draws then is nobody's model */
        if (fl_node_is_lone(n, k))
            charge_lone(n, k);
        else
            fl_streams_charge_host(&n->course[k], n->finished[k] ? n->ended[k] : n->now);
        fl_cpu_collect(&n->cpu, &n->course[k].sums);
    }
    fl_cpu_charge_to(&n->cpu, n->now);
}

static void rescale_host(fl_node *n, const fl_cpu_row *before) {
    for (uint32_t k = 0; k < n->w->island_count; k++) {
        fl_course *c = &n->course[k];
        c->host = fl_cpu_rows(&n->cpu);
        if (n->finished[k] || n->stalled[k])
            continue;
        if (fl_node_is_lone(n, k))
            fl_scan_rescale_host(c->mine[0], before[0].mul, c->host[0].mul);
        else
            fl_streams_rescale_host(c, before, n->now);
    }
}

/* ---- bus and budget ---- */

/* Traffic reaches now more, now less of the peak, drawn anew each period, where the platform or a run says so. */
static void draw_bus(fl_node *n) {
    const fl_host_spec *host = &n->spec->host;
    const int64_t period = host->bus_period_ns * FL_PS_PER_NS;
    fl_random r = fl_random_seed(n->seed ^ UINT64_C(0x62757362), (uint64_t)(n->bus_ps / period));
    const double least = host->bus_min / host->bus_max;
    const double share = least + (1 - least) * fl_random_unit(&r);
    for (uint32_t k = 0; k < n->w->island_count; k++) {
        n->course[k].capacity = (uint32_t)(share * FL_SHARE_ONE);
        n->course[k].gpu[0]->touched = true;
    }
    n->bus_ps += period;
}

/* Deals the budget out, max-min fair by what each board wants: its own limit where the wall holds it down, else a tenth
 * more than it drew. What is left over is spread evenly. */
static void deal_budget(fl_node *n) {
    uint32_t want[FL_SHARES_MAX] = {0}, grant[FL_SHARES_MAX] = {0};
    const uint32_t count = n->gpu_count < FL_SHARES_MAX ? n->gpu_count : FL_SHARES_MAX;
    const int64_t budget = llround(n->spec->host.gpu_budget_w * 1000);
    int64_t left = budget;
    for (uint32_t i = 0; i < count; i++) {
        const fl_wall *w = &n->wall[i];
        const fl_gpu *g = &n->gpu[i];
        const int64_t drew = (int64_t)((g->sums.energy_fj - n->dealt_fj[i]) / BUDGET_PERIOD_PS);
        const int64_t most = w->set_mw > 0 ? w->set_mw : budget;
        const int64_t wish = w->acts || !n->budget_ps ? most : drew + drew / 10;
        want[i] = (uint32_t)(wish < most ? wish : most);
        n->dealt_fj[i] = g->sums.energy_fj;
    }
    fl_shares_fill(want, grant, count, (uint32_t)budget);
    for (uint32_t i = 0; i < count; i++)
        left -= grant[i];
    for (uint32_t i = 0; i < count; i++) {
        fl_wall_deal(&n->wall[i], grant[i] + left / count);
        fl_wall_wake(&n->wall[i], &n->gpu[i], n->now);
    }
    n->budget_ps += BUDGET_PERIOD_PS;
}

/* ---- the instant ---- */

fl_wide fl_node_comm_fj(const fl_node *n) {
    int64_t ps = 0;
    for (uint32_t i = 0; n->copies && n->comm_mw && i < n->gpu_count; i++)
        for (uint32_t k = 0; k < n->gpu[i].slot_count; k++)
            for (uint32_t c = 0; c < n->w->class_count; c++)
                ps += n->w->class[c].copy ? n->gpu[i].slot[k].class_ps[c] : 0;
    return (fl_wide)ps * n->comm_mw;
}

static fl_wide gpus_fj(const fl_node *n) {
    fl_wide fj = 0;
    for (uint32_t i = 0; i < n->gpu_count; i++)
        fj += n->gpu[i].sums.energy_fj;
    return fj;
}

fl_wide fl_node_energy_fj(const fl_node *n) {
    return gpus_fj(n) + (n->hosted ? n->cpu.sums.cpu_fj : 0) + (fl_wide)n->now * n->static_mw + fl_node_comm_fj(n);
}

/* The CPU's sums are the CPU's own point; the rest of it is the node's. */
static const fl_host_point *point(fl_node *n) {
    fl_host_point *p = &n->cpu.sums;
    p->cpu_mw = n->hosted ? fl_cpu_mw(&n->cpu) : 0;
    p->cpu_mhz = n->hosted ? n->cpu.state[n->cpu.now].mhz : 0;
    p->node_fj = fl_node_energy_fj(n);
    p->node_mw = p->cpu_mw + n->static_mw;
    for (uint32_t i = 0; i < n->gpu_count; i++)
        p->node_mw += fl_gpu_power_mw(&n->gpu[i]);
    return p;
}

void fl_node_host_at(fl_node *n) {
    if (n->hosted)
        charge_cpu(n);
    if (n->hosted) {
        const fl_cpu_row *before = fl_cpu_rows(&n->cpu);
        if (fl_cpu_at(&n->cpu, n->now, gpus_fj(n)))
            rescale_host(n, before);
    }
    if (n->bus_ps <= n->now)
        draw_bus(n);
    if (n->budget_ps <= n->now)
        deal_budget(n);
    if (fl_host_sense_due(n->host_sense, n->now))
        fl_host_sense_at(n->host_sense, point(n), n->now);
}

void fl_node_read_host(fl_node *n, bool remember, fl_host_sample *out) {
    const bool instant = fl_host_sense_instant(n->host_sense);
    fl_host_sense_read(n->host_sense, instant ? point(n) : NULL, n->now, remember, out);
}

const fl_cpu *fl_node_cpu(const fl_node *n) { return n->hosted ? &n->cpu : NULL; }

/* ---- advancing, and stops at markers ---- */

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
    const fl_actuator_spec *a = &n->actuator[gpu].dev->actuator;
    const int64_t after_ns = a->limit_call_ns > 0 ? a->limit_force_ns - a->limit_call_ns : a->settle_ns;
    n->limit[gpu] = (fl_limit_pending){called_ps + after_ns * FL_PS_PER_NS, watts};
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
