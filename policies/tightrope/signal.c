/* tightrope: how a signal counts work: by records, by a counter, by ends of records. */
#include "policies/tightrope/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stdint.h>

/* Counters from the best on. */
static const int counters[] = {FL_GPU_ITERATIONS, FL_GPU_KERNELS, FL_GPU_DRAM_BYTES, FL_GPU_UTIL_MEM_PCT};

int64_t fl_tightrope_best_counter(const fl_gpu_sample *u) {
    int64_t signal = FL_TIGHTROPE_ITERATIONS;
    while (signal < FL_TIGHTROPE_NONE && !fl_gpu_known(u, counters[signal - FL_TIGHTROPE_ITERATIONS]))
        signal++;
    return signal;
}

#define QUIET_S 10 /* time that the longest quiet is remembered for */

/* Work ended by then. What is quiet for long now and then may be so again: it is forgotten by a tenth at a time. */
static void shows(fl_tightrope_work *w, int64_t then) {
    const double quiet_s = (double)(then - w->moved_ns) * 1e-9;
    if (!(quiet_s > 0))
        return;
    w->quiet_s = fmax(quiet_s, w->quiet_s * exp(-quiet_s / QUIET_S));
    w->moved_ns = then;
}

#define RECORD_S 1e-6 /* a record's end is known to that */

/* It ran already as the ledger began: it tells no whole length, and only what is certain of its rest counts. */
static void read_rest(fl_tightrope_work *w, int64_t begin_ns, int64_t end_ns) {
    const double certain = fl_tightrope_certain_between(&w->sure, begin_ns, end_ns);
    w->top_busy_s += certain;
    w->busy_s += (double)(end_ns - begin_ns) * 1e-9 - certain;
    w->thin.took_s += (double)(end_ns - begin_ns) * 1e-9, w->thin.ref_s += certain;
}

/* Return what its record took of a kernel that took so long, in s. */
static double record_took(const fl_tightrope_work *w, double kernel_s) {
    return w->record_s > 0 ? w->record_s : kernel_s * w->cost / (1 + w->cost);
}

/* What a kernel says of the stretch without records before it. There no record lengthens it. */
static void read_burst(fl_tightrope_work *w, double d, double top_s) {
    fl_tightrope_thin *t = &w->thin;
    const double paid_s = record_took(w, d), ref_s = fmin(d, top_s);
    t->kernels++, t->paid_s += paid_s;
    t->took_s += fmax(0, d - paid_s), t->ref_s += fmax(0, ref_s - record_took(w, ref_s));
}

/* Time of each kind, and of kinds that the phase does not have (inside.h). */
static void count_kind(fl_tightrope_work *w, fl_tightrope_kind *k, double d) {
    k->window_s += d;
    if (!w->phased)
        return;
    const double of_all = w->thin.share > 0 ? d / w->thin.share : d; /* records show a part of the kernels */
    w->strange_s = fmax(0, w->strange_s + (k->usual ? -of_all : of_all));
    w->spell += !(w->strange_s > 0);
    if (k->spell != w->spell)
        k->spell = w->spell, k->spell_s = 0;
    k->spell_s += d;
}

static fl_tightrope_kind *place(fl_tightrope_work *w, uint32_t kind) {
    w->kinds = kind < w->kinds ? w->kinds : kind + 1;
    return &w->kind[kind];
}

/* Kernels that run beside others take the longer for it, here and at the top clock: their lengths tell nothing that is
 * certain. So they count nothing, and what ran beside them is taken back. */
static void read_records(fl_tightrope_work *w, const fl_sample *s, uint32_t gpu) {
    int64_t begin_ns =
        w->thin.from_ns > w->begin_ns && w->thin.share > 0 && w->thin.share < 1 ? w->thin.from_ns : w->begin_ns;
    const double unseen_s = begin_ns > w->begin_ns ? w->record_s : 0; /* no record lengthens most kernels */
    for (uint64_t i = 0; i < s->record_count && w->thin.off != FL_TIGHTROPE_OFF; i++) {
        const fl_kernel_record *r = &s->record[i];
        if (r->gpu != gpu || r->end_ns < r->start_ns || r->end_ns <= begin_ns)
            continue;
        if (w->thin.off == FL_TIGHTROPE_AWAITED)
            fl_tightrope_thin_first(w, r->start_ns), begin_ns = w->thin.from_ns;
        /* The last place is for all kinds that have none of their own: they are unlike, so no mean of theirs counts. */
        const int rest = r->kind >= FL_TIGHTROPE_KINDS - 1;
        fl_tightrope_kind *k = place(w, rest ? FL_TIGHTROPE_KINDS - 1 : r->kind);
        const int64_t start_ns = r->start_ns > begin_ns ? r->start_ns : begin_ns;
        const double d = (double)(r->end_ns - start_ns) * 1e-9;
        const int settled = start_ns >= w->settled_ns;
        const double beside_s = (double)(w->last_end_ns - start_ns) * 1e-9;
        if (beside_s > RECORD_S) {
            w->overlap_s += beside_s;
            w->busy_s += fmax(0, d - beside_s);
            w->thin.took_s += fmax(0, d - beside_s), w->thin.ref_s -= beside_s;
            shows(w, r->end_ns);
            w->last_end_ns = r->end_ns > w->last_end_ns ? r->end_ns : w->last_end_ns;
            continue;
        }
        if (r->end_ns > w->last_end_ns)
            w->last_end_ns = r->end_ns;
        shows(w, r->end_ns);
        if (start_ns > r->start_ns) {
            read_rest(w, start_ns, r->end_ns);
            continue;
        }
        count_kind(w, k, d);
        w->recorded++;
        if (settled && w->at_top) {
            w->top_busy_s += d;
            read_burst(w, d, d);
            if (!rest)
                k->count++, k->sum_s += d, k->square_s += d * d, k->now++, k->now_s += d;
        } else {
            const double certain_s = fl_tightrope_certain_between(&w->sure, start_ns, r->end_ns);
            k->done++, k->done_s += d, k->floor_s += certain_s;
            w->busy_s += d;
            read_burst(w, d, settled && k->count >= 3 && !rest ? fmax(certain_s, k->sum_s / k->count) : certain_s);
            if (settled)
                k->low++, k->low_s += d, k->low_floor_s += certain_s;
        }
        if (!settled)
            continue;
        if (k->count >= 3)
            w->known_s += d - unseen_s, w->ref_s += k->sum_s / k->count - unseen_s;
        else
            w->unknown_s += d;
    }
}

/* A counter of whole units shows the end of one, late by less than the reading's part of a unit. */
static void read_edge(fl_tightrope_work *w, int64_t now, double gap_s, double moved) {
    if (!(w->quantum > 0))
        w->quantum = w->signal <= FL_TIGHTROPE_KERNELS || w->signal == FL_TIGHTROPE_ENDS ? 1 : moved;
    if (w->origin_ns < 0) { /* the ledger's line begins where a unit ends */
        w->origin_ns = now, w->origin = w->total;
        w->base_s = w->before_s + (double)(now - w->begin_ns) * 1e-9 - gap_s;
    }
    if (now < w->settled_ns)
        return;
    fl_tightrope_rate_edge(&w->rate, now, gap_s / fmax(1, moved / w->quantum), (w->total - w->edge_total) / w->quantum);
    w->edge_total = w->total;
}

static void read_counter(fl_tightrope_work *w, const fl_gpu_sample *u, int64_t now, int fine) {
    const int id = w->signal < FL_TIGHTROPE_NONE ? counters[w->signal - FL_TIGHTROPE_ITERATIONS] : -1;
    if (id < 0 || !fl_gpu_known(u, id))
        return;
    const double value = u->value[id], gap_s = (double)(now - w->last_ns) * 1e-9;
    const double moved = id == FL_GPU_UTIL_MEM_PCT ? value * gap_s : value > w->counter ? value - w->counter : 0;
    const int fresh = id == FL_GPU_ITERATIONS || id == FL_GPU_KERNELS || fl_gpu_fresh(u, id);
    w->counter = value;
    w->total += moved;
    if (moved > 0)
        w->moved_late_s = gap_s, shows(w, now);
    if (moved > 0 && fresh && fine)
        read_edge(w, now, gap_s, moved);
}

static void read_ends(fl_tightrope_work *w, const fl_sample *s, uint32_t gpu) {
    for (uint64_t i = 0; i < s->record_count; i++) {
        const fl_kernel_record *r = &s->record[i];
        if (r->gpu != gpu || r->end_ns < r->start_ns)
            continue;
        w->recorded++, w->busy_s += (double)(r->end_ns - r->start_ns) * 1e-9;
        w->total++;
        shows(w, r->end_ns);
        read_edge(w, r->end_ns, RECORD_S, 1);
    }
}

int fl_tightrope_crowded(const fl_tightrope_work *w) {
    const double on_s = (double)(w->last_ns - w->begin_ns) * 1e-9 - w->thin.off_s - w->thin.wait_s;
    return w->signal == FL_TIGHTROPE_RECORDS && w->overlap_s > 0.01 * on_s;
}

static void read_power(fl_tightrope_work *w, const fl_gpu_sample *u, int64_t now, int64_t power_ns) {
    if (fl_gpu_fresh(u, FL_GPU_POWER_W) && now >= power_ns) {
        const double p = u->value[FL_GPU_POWER_W];
        w->power_sum += p, w->power_square += p * p, w->power_count++;
    }
    if (!fl_gpu_fresh(u, FL_GPU_ENERGY_J) || !fl_gpu_known(u, FL_GPU_ENERGY_NS))
        return;
    const double updated_ns = u->value[FL_GPU_ENERGY_NS];
    w->energy_age_s = fmax(w->energy_age_s, ((double)now - updated_ns) * 1e-9);
    if (updated_ns >= (double)w->settled_ns) {
        const int i = w->energy_ns[0] >= 0;
        w->energy_j[i] = u->value[FL_GPU_ENERGY_J];
        w->energy_ns[i] = updated_ns;
    }
}

void fl_tightrope_read(fl_tightrope_work *w, const fl_sample *s, uint32_t gpu, int64_t power_ns) {
    const int64_t now = s->time_ns;
    if (w->at_top && w->settled_ns > w->window_ns) { /* the top clock was on its way until then */
        fl_tightrope_certain_cut(&w->sure, w->window_ns);
        fl_tightrope_certain_from(&w->sure, w->settled_ns, 1);
    }
    if (w->signal == FL_TIGHTROPE_RECORDS)
        read_records(w, s, gpu);
    else if (w->signal == FL_TIGHTROPE_ENDS)
        read_ends(w, s, gpu);
    else
        read_counter(w, &s->gpu[gpu], now, now - w->last_ns <= 6000000);
    read_power(w, &s->gpu[gpu], now, power_ns);
    w->last_ns = now;
}
