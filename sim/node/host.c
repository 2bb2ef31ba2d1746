/* What all GPUs of a node share: the host CPU, an APU's memory bus, a budget of power, and the meter at the plug. Each
 * needs an instant at which everything stands still; between two of them the GPUs advance alone. */
#include "sim/node/host.h"
#include "sim/node/inside.h"

#include "models/laws/shares.h"
#include "policies/random.h"
#include "sim/advance/scan.h"
#include "sim/advance/streams.h"

#include <math.h>

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
    needs &= ~FL_BIT(FL_HOST_LOOP_NS); /* the host that runs the policy knows that itself */
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

int64_t fl_node_host_next(fl_node *n, int64_t read_ps) {
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
