/* A second simulator for the tests of the engine: seconds and joules in doubles, one step from event to event, no
 * boundaries, no lanes. It reads the workload and the integer rows and shares no line with the engine. `quantised`
 * rounds the shares as the engine says it does (1/65536, down); without it shares are real numbers. */
#pragma once

#include "tests/support/sim_fixture.h"

enum { REF_STREAMS = 8, REF_THREADS = 3 };

typedef struct ref_change {
    double at;
    uint32_t gpu;
    double sm_mhz, mem_mhz;
} ref_change;

typedef struct ref {
    const fx_rig *r;
    bool quantised;
    double t, joules;
    double sm[FX_GPUS_MAX], mem[FX_GPUS_MAX];
    uint64_t done[REF_STREAMS], launched[REF_STREAMS];
    int state[REF_STREAMS];   /* 0: not begun, 1: gap, 2: kernel */
    double left[REF_STREAMS]; /* seconds of gap, or share of the kernel */
    double rate[REF_STREAMS]; /* share per second */
    double last_end[REF_STREAMS];
    size_t item[REF_THREADS];
    double host_at[REF_THREADS]; /* when the host time before the item is over */
} ref;

static inline bool ref_met(const ref *x, const fl_wait *wait, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (x->done[wait[i].stream] < wait[i].done)
            return false;
    return true;
}

/* Max-min fairness from the smallest demand up. */
static inline double ref_level(const double *demand, size_t count, bool quantised) {
    double sorted[REF_STREAMS], sum = 0, free = 1;
    for (size_t i = 0; i < count; i++) {
        sum += demand[i];
        size_t k = i;
        for (; k > 0 && sorted[k - 1] > demand[i]; k--)
            sorted[k] = sorted[k - 1];
        sorted[k] = demand[i];
    }
    if (sum <= 1)
        return 2;
    for (size_t i = 0; i < count; i++) {
        double even = free / (double)(count - i);
        if (quantised)
            even = floor(even * 65536) / 65536;
        if (sorted[i] > even)
            return even;
        free -= sorted[i];
    }
    return 2;
}

static inline double ref_floor(const ref *x, double v) { return x->quantised ? floor(v * 65536) / 65536 : v; }

static inline void ref_rates(ref *x, uint32_t gpu) {
    double sms[REF_STREAMS], mem[REF_STREAMS], rate[REF_STREAMS], left[REF_STREAMS];
    uint32_t who[REF_STREAMS];
    size_t n = 0;
    const fl_clock_rates *now = fx_rates(x->r, x->sm[gpu], x->mem[gpu]);
    for (uint32_t s = 0; s < x->r->w->stream_count; s++)
        if (x->r->w->stream[s].gpu == gpu && x->state[s] == 2) {
            int64_t gap, work;
            uint32_t c;
            fl_workload_op(&x->r->w->stream[s], x->done[s], &gap, &work, &c);
            sms[n] = now->row[c].sms / 32768.0;
            mem[n] = now->row[c].memory / 32768.0;
            who[n++] = s;
        }
    double level = ref_level(sms, n, x->quantised);
    double asked = 0;
    for (size_t i = 0; i < n; i++) {
        rate[i] = sms[i] > level ? ref_floor(x, level / sms[i]) : 1;
        left[i] = mem[i] * rate[i];
        if (x->quantised)
            left[i] = floor(left[i] * 65536 + 0.5) / 65536;
        asked += left[i];
    }
    level = asked > 1 ? ref_level(left, n, x->quantised) : 2;
    for (size_t i = 0; i < n; i++) {
        int64_t gap, work;
        uint32_t c;
        fl_workload_op(&x->r->w->stream[who[i]], x->done[who[i]], &gap, &work, &c);
        if (left[i] > level)
            rate[i] = fmin(rate[i], ref_floor(x, level / mem[i]));
        x->rate[who[i]] = rate[i] / ((double)work * now->row[c].mul / 65536 * 1e-12);
    }
}

/* Lets begin what may; true if anything did. A kernel without length ends at once. */
static inline bool ref_begin(ref *x) {
    const fl_workload *w = x->r->w;
    bool moved = false;
    for (uint32_t k = 0; k < w->thread_count; k++) {
        const fl_thread *t = &w->thread[k];
        while (x->item[k] < t->count && x->host_at[k] <= x->t + 1e-15) {
            const fl_item *it = &t->item[x->item[k]];
            double after = 0;
            if (it->type == FL_ITEM_LAUNCH) {
                if (x->launched[it->stream] - x->done[it->stream] >= w->launch_queue)
                    break;
                x->launched[it->stream]++;
            } else {
                if (!ref_met(x, t->wait + it->wait_first, it->wait_count))
                    break;
                after = (double)it->after_ns * 1e-9;
            }
            moved = true;
            x->host_at[k] = x->t + after;
            if (++x->item[k] < t->count)
                x->host_at[k] += (double)t->item[x->item[k]].host_ns * 1e-9;
        }
    }
    for (uint32_t s = 0; s < w->stream_count; s++) {
        const fl_stream *st = &w->stream[s];
        if (x->done[s] == st->count)
            continue;
        int64_t gap, work;
        uint32_t c;
        fl_workload_op(st, x->done[s], &gap, &work, &c);
        if (x->state[s] == 0 && (!st->launched || x->launched[s] > x->done[s]) &&
            (!st->wait_first || ref_met(x, st->wait + st->wait_first[x->done[s]],
                                        st->wait_first[x->done[s] + 1] - st->wait_first[x->done[s]]))) {
            x->state[s] = 1;
            x->left[s] = (double)gap * 1e-9;
            moved = true;
        }
        if (x->state[s] == 1 && x->left[s] < 1e-15) {
            x->state[s] = 2;
            x->left[s] = 1;
            moved = true;
        }
        if (x->state[s] == 2 && (work == 0 || x->left[s] < 1e-12)) {
            x->state[s] = 0;
            x->done[s]++;
            x->last_end[s] = x->t;
            moved = true;
        }
    }
    return moved;
}

/* Runs to the end. False: it hangs. */
static inline bool ref_run(ref *x, const ref_change *change, size_t changes) {
    const fl_workload *w = x->r->w;
    size_t next_change = 0;
    for (uint32_t i = 0; i < FX_GPUS_MAX; i++)
        x->sm[i] = 1000, x->mem[i] = 800;
    for (uint32_t k = 0; k < w->thread_count; k++)
        x->host_at[k] = (double)w->thread[k].item[0].host_ns * 1e-9;
    for (;;) {
        while (ref_begin(x))
            ;
        bool all = true;
        for (uint32_t s = 0; s < w->stream_count; s++)
            all &= x->done[s] == w->stream[s].count;
        for (uint32_t k = 0; k < w->thread_count; k++)
            all &= x->item[k] == w->thread[k].count && x->host_at[k] <= x->t + 1e-15;
        if (all)
            return true;
        for (uint32_t i = 0; i < w->gpu_count; i++)
            ref_rates(x, i);
        double dt = INFINITY;
        for (uint32_t s = 0; s < w->stream_count; s++)
            if (x->state[s])
                dt = fmin(dt, x->state[s] == 1 ? x->left[s] : x->left[s] / x->rate[s]);
        for (uint32_t k = 0; k < w->thread_count; k++)
            if (x->host_at[k] > x->t + 1e-15)
                dt = fmin(dt, x->host_at[k] - x->t);
        if (isinf(dt))
            return false;
        bool change_now = next_change < changes && change[next_change].at <= x->t + dt;
        if (change_now)
            dt = fmax(0, change[next_change].at - x->t);
        double power = 8000 * (double)(x->r->spec.gpu_count - w->gpu_count);
        for (uint32_t i = 0; i < w->gpu_count; i++)
            power += fx_rates(x->r, x->sm[i], x->mem[i])->base.total_mw;
        for (uint32_t s = 0; s < w->stream_count; s++) {
            if (x->state[s] == 2) {
                int64_t gap, work;
                uint32_t c, gpu = w->stream[s].gpu;
                fl_workload_op(&w->stream[s], x->done[s], &gap, &work, &c);
                const fl_row *row = &fx_rates(x->r, x->sm[gpu], x->mem[gpu])->row[c];
                power += row->dyn_mw * x->rate[s] * ((double)work * row->mul / 65536 * 1e-12);
                x->left[s] -= dt * x->rate[s];
            } else if (x->state[s] == 1) {
                x->left[s] -= dt;
            }
        }
        x->joules += power * 1e-3 * dt;
        x->t += dt;
        if (change_now) {
            if (!isnan(change[next_change].sm_mhz))
                x->sm[change[next_change].gpu] = change[next_change].sm_mhz;
            if (!isnan(change[next_change].mem_mhz))
                x->mem[change[next_change].gpu] = change[next_change].mem_mhz;
            next_change++;
        }
    }
}
