/* A lone stream by tables of prefix sums: building tables, walks, stretches, sums of an instant without a stop, and
 * classes afterwards. */
#include "sim/advance/inside.h"

#include "models/laws/laws.h"
#include "sim/advance/advance.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of an op at the table's clocks, and the gap before it. */
static inline int64_t fl_prefix_op(const fl_prefix *p, uint64_t i, int64_t *gap_ps, uint32_t *class_id) {
    int64_t work_ns;
    fl_workload_op(p->s, i, gap_ps, &work_ns, class_id);
    *gap_ps *= FL_PS_PER_NS;
    return fl_length_ps(work_ns, p->rates->row[*class_id].mul);
}

/* Moves a place past its op, whose length and gap these are. */
static inline void fl_prefix_pass(fl_prefix_place *at, int64_t gap_ps, int64_t length_ps, uint32_t class_id,
                                  fl_prefix_depth depth) {
    const fl_row *row = &at->table->rates->row[class_id];
    const fl_row_parts *parts = &at->table->rates->parts[class_id];
    const uint64_t length = (uint64_t)length_ps;
    fl_prefix_sums *sums = &at->sums;
    at->op++;
    sums->t_ps += (uint64_t)gap_ps + length;
    sums->busy_ps += length;
    if (depth == FL_PREFIX_BUSY)
        return;
    sums->dyn_fj += length * (uint64_t)(int64_t)row->dyn_mw;
    sums->memory += length * row->memory;
    sums->sm_fj += length * (uint64_t)(int64_t)parts->sm_mw;
    sums->memory_fj += length * (uint64_t)(int64_t)parts->memory_mw;
    if (depth == FL_PREFIX_ENERGY)
        return;
    sums->alu += length * row->alu;
    sums->sms += length * row->sms;
}

/* Builds a table of prefix sums when it becomes due. */

/* Adds one op to the sums. */
static void add_op(fl_prefix *p, uint64_t i, fl_prefix_sums *x) {
    int64_t gap_ns, work_ns;
    uint32_t class_id;
    fl_workload_op(p->s, i, &gap_ns, &work_ns, &class_id);
    const fl_row *k = &p->rates->row[class_id];
    const fl_row_parts *parts = &p->rates->parts[class_id];
    const uint64_t length = (uint64_t)fl_length_ps(work_ns, k->mul);
    x->t_ps += (uint64_t)(gap_ns * FL_PS_PER_NS) + length;
    x->busy_ps += length;
    x->dyn_fj += length * (uint64_t)(int64_t)k->dyn_mw;
    x->memory += length * k->memory;
    x->alu += length * k->alu;
    x->sms += length * k->sms;
    x->sm_fj += length * (uint64_t)(int64_t)parts->sm_mw;
    x->memory_fj += length * (uint64_t)(int64_t)parts->memory_mw;
    int32_t *peak = &p->peak_mw[i / FL_PREFIX_PEAK];
    if (length && k->dyn_mw > *peak)
        *peak = k->dyn_mw;
}

/* The table consists of whole rows; the ops after them are scanned. A run never reaches an op that would end too late.
 */
static void fill(fl_prefix *p, size_t rows) {
    fl_prefix_sums x = {0};
    for (size_t i = 0; i < fl_prefix_peaks(rows); i++)
        p->peak_mw[i] = INT32_MIN;
    for (size_t r = 0;; r++) {
        const uint64_t op = (uint64_t)r * FL_PREFIX_ROW;
        p->row[r] = x;
        if (r % FL_PREFIX_COARSE == 0)
            p->coarse_ps[r / FL_PREFIX_COARSE] = x.t_ps;
        p->rows = r;
        for (uint64_t i = op; r < rows && x.t_ps < INT64_MAX / 2 && i < op + FL_PREFIX_ROW; i++)
            add_op(p, i, &x);
        if (r == rows || x.t_ps >= INT64_MAX / 2)
            break;
    }
    for (size_t c = 1; c * FL_PREFIX_COARSE <= p->rows; c++) {
        const uint64_t span_ps = p->coarse_ps[c] - p->coarse_ps[c - 1];
        p->rows_a_ps[c - 1] = span_ps ? (float)FL_PREFIX_COARSE / (float)span_ps : 0;
    }
    p->most_mw = INT32_MIN;
    for (size_t i = 0; i < fl_prefix_peaks(rows); i++)
        p->most_mw = p->peak_mw[i] > p->most_mw ? p->peak_mw[i] : p->most_mw;
    const double mean_ps = p->rows ? (double)p->row[p->rows].t_ps / (double)p->rows : 0;
    p->worth_ps = (int64_t)(mean_ps * FL_PREFIX_WORTH / FL_PREFIX_ROW);
}

/* The thread whose count crosses the threshold builds; the others continue to scan. Where there is no room or no memory
 * no one builds, and scans do without the table. */
void fl_prefix_scanned(fl_gpu *g, const fl_stream *s, uint64_t ops) {
    const fl_clock_rates *rates = g->rates;
    fl_prefix_cell *cell = &rates->prefix[s - g->w->stream];
    const uint64_t enough = FL_PREFIX_SCANS * s->count;
    if (atomic_load_explicit(&cell->scanned, memory_order_relaxed) > enough)
        return;
    const uint64_t before = atomic_fetch_add_explicit(&cell->scanned, ops, memory_order_relaxed);
    if (before > enough || before + ops <= enough)
        return;
    fl_prefix *p = fl_prefix_new(s, rates);
    if (p)
        fill(p, fl_prefix_rows(s));
    atomic_store_explicit(&cell->table, p, memory_order_release);
}

/* ---- walking over the ops behind a row, one by one or eight at a time ---- */

static inline __attribute__((always_inline)) void walk_by(fl_prefix_place *at, uint64_t stop, uint64_t t_ps,
                                                          const fl_prefix_depth depth) {
    fl_prefix_place place = *at;
    while (place.op < stop) {
        int64_t gap_ps;
        uint32_t class_id;
        const int64_t length_ps = fl_prefix_op(place.table, place.op, &gap_ps, &class_id);
        if ((uint64_t)(gap_ps + length_ps) > t_ps - place.sums.t_ps)
            break;
        fl_prefix_pass(&place, gap_ps, length_ps, class_id, depth);
    }
    *at = place;
}

void fl_prefix_walk_one(fl_prefix_place *at, uint64_t stop, uint64_t t_ps, fl_prefix_depth depth) {
    if (depth == FL_PREFIX_BUSY)
        walk_by(at, stop, t_ps, FL_PREFIX_BUSY);
    else if (depth == FL_PREFIX_ENERGY)
        walk_by(at, stop, t_ps, FL_PREFIX_ENERGY);
    else
        walk_by(at, stop, t_ps, FL_PREFIX_PROFILE);
}

bool fl_prefix_walks_eight(void) {
#if FL_SCAN_X86
    return fl_scan_vector() == fl_scan_avx512;
#else
    return false;
#endif
}

void fl_prefix_walk(fl_prefix_place *at, uint64_t stop, uint64_t t_ps, fl_prefix_depth depth) {
#if FL_SCAN_X86
    if (at->op + 8 <= stop && fl_prefix_walks_eight() && fl_prefix_walk_eight(at, stop, t_ps, depth))
        return;
#endif
    fl_prefix_walk_one(at, stop, t_ps, depth);
}

/* ---- a stretch as the difference of two sums ---- */

bool fl_prefix_applies(const fl_gpu *g, const fl_lane *l, uint32_t gap_mul) {
    const bool kernels = !l->s->other, watched = g->records.on, gated = g->gate_ps > 0;
    return fl_path_may(g->path, FL_PATH_PREFIX) && gap_mul == FL_MUL_ONE && kernels && !watched && !gated;
}

static void stand_at_row(fl_prefix_place *at, const fl_prefix *p, uint64_t row) {
    at->table = p;
    at->op = row * FL_PREFIX_ROW;
    at->sums = p->row[row];
}

/* The last entry of `low` .. `high` with t_ps not before it. Entry `low` satisfies that, and `at` is a guess; entry i
 * is t[i * stride]. Searches from the guess in growing steps, then by bisection. */
static inline __attribute__((always_inline)) size_t last_by(const uint64_t *t, const size_t stride, size_t low,
                                                            size_t high, size_t at, uint64_t t_ps) {
    if (t[at * stride] <= t_ps) {
        low = at;
        for (size_t step = 1; low < high; step *= 2) {
            const size_t next = high - low > step ? low + step : high;
            if (t[next * stride] > t_ps) {
                high = next - 1;
                break;
            }
            low = next;
        }
    } else {
        high = at - 1;
        for (size_t step = 1; low < high; step *= 2) {
            const size_t next = high - low > step ? high - step + 1 : low;
            if (t[next * stride] <= t_ps) {
                low = next;
                break;
            }
            high = next - 1;
        }
    }
    while (low < high) {
        const size_t middle = low + (high - low + 1) / 2;
        if (t[middle * stride] <= t_ps)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void fetch(const fl_prefix *p, size_t row) { /* a walk over the ops follows every look at a row */
    const fl_rec *rec = &p->s->rec[row * FL_PREFIX_ROW];
    for (int line = 0; line < 4; line++)
        __builtin_prefetch(rec + line * 8);
}

/* Where to look for t_ps among the rows `low` .. `high`, of which row `low` begins by it. The table of contents is in a
 * near cache, and between two of its instants the row lies approximately where kernels of equal length would put it. */
static void about(fl_prefix_look *look, const fl_prefix *p, size_t low, size_t high, uint64_t t_ps) {
    const uint64_t *coarse = p->coarse_ps;
    const size_t first = low / FL_PREFIX_COARSE, end = high / FL_PREFIX_COARSE;
    const size_t likely = (look->rows < high - low ? low + look->rows : high) / FL_PREFIX_COARSE;
    const size_t c = last_by(coarse, 1, first, end, likely, t_ps), begin = c * FL_PREFIX_COARSE;
    /* rows into it; may be any number where `high` comes first */
    const double into = (double)(int64_t)(t_ps - coarse[c]) * p->rows_a_ps[c];
    look->last = high;
    if (high > begin + FL_PREFIX_COARSE - 1)
        high = begin + FL_PREFIX_COARSE - 1;
    const size_t rows = into < FL_PREFIX_COARSE ? (size_t)into : FL_PREFIX_COARSE;
    const size_t at = begin + rows < high ? begin + rows : high;
    const size_t lowest = low;
    if (low < begin)
        low = begin;
    look->table = p;
    look->t_ps = t_ps;
    look->low = low;
    look->high = high;
    look->at = at < low ? low : at;
    look->rows = look->at - lowest;
    fetch(p, look->at);
}

/* The last row of `low` .. `high` that begins by t_ps; row `low` does. Usually `look` knows already where to look. */
static size_t find(const fl_prefix *p, fl_prefix_look *look, size_t low, size_t high, uint64_t t_ps) {
    if (look->table != p || look->t_ps != t_ps || look->last < high)
        about(look, p, low, high, t_ps);
    if (look->low > high)
        return high;
    if (low < look->low)
        low = look->low;
    if (high > look->high)
        high = look->high;
    size_t at = look->at < low ? low : look->at;
    at = at > high ? high : at;
    return last_by(&p->row->t_ps, sizeof *p->row / sizeof p->row->t_ps, low, high, at, t_ps);
}

/* The cost of a step is the reading of far memory. Boundaries are regular: what is read next lies as far ahead of this
 * one as before. It is therefore prefetched while this stretch is walked. */
static void look_ahead(fl_prefix_look *look, const fl_prefix *p, size_t row, uint64_t now_ps) {
    const uint64_t t_ps = now_ps + (uint64_t)look->ahead_ps;
    if (!look->ahead_ps || t_ps >= p->row[p->rows].t_ps)
        return;
    about(look, p, row, p->rows, t_ps);
    __builtin_prefetch(&p->row[look->at]);
}

static bool note_jump(fl_gpu *g, const fl_prefix *p, uint64_t from, uint64_t to) {
    if (g->jump_count == g->jump_room && fl_grow(&g->jump, &g->jump_room, g->jump_count + 1, sizeof *g->jump))
        return false;
    g->jump[g->jump_count++] = (fl_prefix_jump){p, g->slot_now, from, to};
    return true;
}

static void charge(fl_gpu *g, fl_lane *l, const fl_prefix_place *from, const fl_prefix_place *to) {
    const fl_prefix_sums *a = &from->sums, *b = &to->sums;
    fl_slot *slot = &g->slot[g->slot_now];
    g->window.dyn_fj += (int64_t)(b->dyn_fj - a->dyn_fj);
    g->window.memory += (int64_t)(b->memory - a->memory);
    g->window.alu += g->profiled ? (int64_t)(b->alu - a->alu) : 0;
    g->window.sms += g->profiled ? (int64_t)(b->sms - a->sms) : 0;
    g->sums.busy_ps += (int64_t)(b->busy_ps - a->busy_ps);
    g->sums.kernels += to->op - from->op;
    l->worked_ps += (int64_t)(b->busy_ps - a->busy_ps);
    slot->sm_fj += (int64_t)(b->sm_fj - a->sm_fj);
    slot->memory_fj += (int64_t)(b->memory_fj - a->memory_fj);
    slot->unsplit_fj += (int64_t)(b->dyn_fj - b->sm_fj - b->memory_fj - (a->dyn_fj - a->sm_fj - a->memory_fj));
    l->in_parts = false;
    l->next = to->op;
}

static const fl_prefix *table_of(fl_gpu *g, const fl_stream *s) {
    fl_prefix_cell *cell = &g->rates->prefix[s - g->w->stream];
    const fl_prefix *p = atomic_load_explicit(&cell->table, memory_order_acquire);
    if (p || g->path != FL_PATH_PREFIX)
        return p;
    fl_prefix_scanned(g, s, FL_PREFIX_SCANS * s->count + 1); /* forced: at once */
    return atomic_load_explicit(&cell->table, memory_order_acquire);
}

static fl_prefix_depth depth_of(const fl_gpu *g) { return g->profiled ? FL_PREFIX_PROFILE : FL_PREFIX_ENERGY; }

/* The lane's place moves to an op at which, or some ops before which, the lane stands. */
static fl_prefix_place *place_at(const fl_gpu *g, fl_lane *l, const fl_prefix *p, uint64_t op) {
    fl_prefix_place *at = &l->place[l->stands];
    if (at->table != p || at->op > op || op - at->op > op % FL_PREFIX_ROW)
        stand_at_row(at, p, op / FL_PREFIX_ROW);
    if (at->op + 1 == op) { /* nearly always: past the op that met the last boundary */
        int64_t gap_ps;
        uint32_t class_id;
        const int64_t length_ps = fl_prefix_op(p, at->op, &gap_ps, &class_id);
        fl_prefix_pass(at, gap_ps, length_ps, class_id, FL_PREFIX_PROFILE);
    } else if (at->op < op) {
        fl_prefix_walk(at, op, UINT64_MAX, depth_of(g));
    }
    return at;
}

/* One jump, to op `stop` at most. False where there is nothing to pass, or no memory to record it. */
static bool jump(fl_gpu *g, fl_lane *l, const fl_prefix *p, int64_t *t, int64_t until, uint64_t stop) {
    const size_t low = l->next / FL_PREFIX_ROW, most = stop / FL_PREFIX_ROW, last = most < p->rows ? most : p->rows;
    if (low >= last)
        return false;
    fl_prefix_place *at = place_at(g, l, p, l->next);
    const uint64_t end_ps = at->sums.t_ps + (uint64_t)(until - *t);
    if (p->row[low + 1].t_ps > end_ps)
        return false;
    const size_t row = find(p, &l->stop, low + 1, last, end_ps);
    look_ahead(&l->stop, p, row, end_ps);
    look_ahead(&l->window, p, row, end_ps);
    l->stop.ahead_ps = until - g->now_ps;
    fl_prefix_place *to = &l->place[!l->stands];
    stand_at_row(to, p, row);
    fl_prefix_walk(to, stop, end_ps, depth_of(g));
    if (!note_jump(g, p, l->next, to->op))
        return false;
    charge(g, l, at, to);
    *t += (int64_t)(to->sums.t_ps - at->sums.t_ps);
    l->stands = !l->stands;
    return true;
}

int64_t fl_prefix_advance(fl_gpu *g, fl_lane *l, int64_t t, int64_t until, bool *met) {
    *met = false;
    const fl_prefix *p = table_of(g, l->s);
    if (!p || (until - t < p->worth_ps && g->path != FL_PATH_PREFIX))
        return t;
    const uint64_t from = l->next;
    bool on = true;
    while (on && l->next < l->s->count) {
        const bool mark = l->marks < l->s->mark_count;
        const uint64_t stop = mark ? l->s->mark[l->marks] : l->s->count;
        const bool jumped = jump(g, l, p, &t, until, stop);
        *met = jumped && l->next < stop;
        on = jumped && mark && l->next == stop;
        if (on)
            l->mark_ps[l->marks++] = t;
    }
    g->taken[FL_PATH_PREFIX] += l->next > from;
    return t;
}

/* ---- sums of an instant at which nobody stops ---- */

static void add_work(const fl_gpu *g, uint32_t class_id, int64_t ps, fl_sums *sums) {
    const fl_row *row = &g->rates->row[class_id];
    sums->busy_ps += ps;
    sums->energy_fj += ps * row->dyn_mw;
    sums->memory += ps * row->memory;
    sums->alu += g->profiled ? ps * row->alu : 0;
    sums->sms += g->profiled ? ps * row->sms : 0;
}

/* When the op in progress ends, and what is left of it, which is none where no op is in progress. */
static int64_t in_progress(const fl_gpu *g, const fl_lane *l, int64_t *left) {
    *left = 0;
    if (l->phase == FL_PHASE_RUN)
        *left = l->p.left_ps;
    else if (l->phase == FL_PHASE_GAP)
        *left = fl_length_ps(l->length_ps, g->rates->row[l->class_id].mul);
    return g->now_ps + *left + (l->phase == FL_PHASE_GAP ? l->p.left_ps : 0);
}

bool fl_prefix_foresee(const fl_gpu *g, fl_lane *l, uint32_t gap_mul, int64_t t, bool busy_only, fl_sums *sums) {
    if (!fl_prefix_applies(g, l, gap_mul) || l->phase > FL_PHASE_RUN || !g->open)
        return false;
    const fl_prefix *p = atomic_load_explicit(&g->rates->prefix[l->s - g->w->stream].table, memory_order_acquire);
    if (!p || (t - g->now_ps < p->worth_ps && g->path != FL_PATH_PREFIX))
        return false;
    int64_t left;
    const int64_t ends = in_progress(g, l, &left);
    const uint64_t next = l->next + (l->phase != FL_PHASE_FRESH);
    const size_t low = next / FL_PREFIX_ROW;
    if (ends > t || low >= p->rows)
        return false;
    const fl_prefix_place *at = place_at(g, l, p, next);
    const uint64_t end_ps = at->sums.t_ps + (uint64_t)(t - ends);
    if (p->row[low + 1].t_ps > end_ps)
        return false;
    fl_prefix_place to;
    stand_at_row(&to, p, find(p, &l->window, low + 1, p->rows, end_ps));
    fl_prefix_walk(&to, l->s->count, end_ps, busy_only ? FL_PREFIX_BUSY : depth_of(g));
    if (to.op >= l->s->count)
        return false;
    l->window.ahead_ps = t - g->now_ps;
    int64_t gap_ps;
    uint32_t class_id;
    fl_prefix_op(p, to.op, &gap_ps, &class_id);
    const int64_t since_ps = (int64_t)(end_ps - to.sums.t_ps), into = since_ps > gap_ps ? since_ps - gap_ps : 0;
    const fl_prefix_sums *a = &at->sums, *b = &to.sums;
    const int64_t busy_ps = g->sums.busy_ps + (int64_t)(b->busy_ps - a->busy_ps);
    if (busy_only) {
        *sums = (fl_sums){.busy_ps = busy_ps + left + into};
        return true;
    }
    *sums = g->sums;
    sums->energy_fj +=
        (fl_wide)(t - g->now_ps) * (g->rates->base.total_mw + g->leak_mw) + (int64_t)(b->dyn_fj - a->dyn_fj);
    sums->memory += (int64_t)(b->memory - a->memory);
    sums->alu += g->profiled ? (int64_t)(b->alu - a->alu) : 0;
    sums->sms += g->profiled ? (int64_t)(b->sms - a->sms) : 0;
    sums->busy_ps = busy_ps;
    add_work(g, l->class_id, left, sums);
    add_work(g, class_id, into, sums);
    sums->bytes += (sums->memory - g->sums.memory) * g->dev->mem_mhz[g->mem];
    return true;
}

/* ---- the part that the residence of a slot does not contain ---- */

static int64_t highest(const fl_prefix *p, uint64_t from, uint64_t to, int64_t peak) {
    for (uint64_t i = from; i < to; i++) {
        int64_t gap_ps;
        uint32_t class_id;
        const int64_t length = fl_prefix_op(p, i, &gap_ps, &class_id);
        const int64_t mw = (int64_t)p->rates->base.total_mw + p->rates->row[class_id].dyn_mw;
        peak = length > 0 && mw > peak ? mw : peak;
    }
    return peak;
}

/* Handles the whole entries of all jumps first. The ops at their ends must be examined only where they could be higher.
 */
int64_t fl_prefix_peak_mw(const fl_gpu *g, int64_t peak) {
    for (int ends = 0; ends < 2; ends++)
        for (size_t k = 0; k < g->jump_count; k++) {
            const fl_prefix_jump *j = &g->jump[k];
            const int64_t base = j->table->rates->base.total_mw;
            if (base + j->table->most_mw <= peak)
                continue;
            for (uint64_t e = j->from / FL_PREFIX_PEAK; e * FL_PREFIX_PEAK < j->to; e++) {
                const uint64_t from = e * FL_PREFIX_PEAK, to = from + FL_PREFIX_PEAK;
                if (base + j->table->peak_mw[e] <= peak)
                    continue;
                if (from >= j->from && to <= j->to)
                    peak = base + j->table->peak_mw[e];
                else if (ends)
                    peak = highest(j->table, from > j->from ? from : j->from, to < j->to ? to : j->to, peak);
            }
        }
    return peak;
}

void fl_prefix_settle(fl_gpu *g) {
    for (size_t k = 0; k < g->jump_count; k++) {
        const fl_prefix_jump *j = &g->jump[k];
        fl_slot *slot = &g->slot[j->slot];
        for (uint64_t i = j->from; i < j->to; i++) {
            int64_t gap_ps;
            uint32_t class_id;
            const int64_t length = fl_prefix_op(j->table, i, &gap_ps, &class_id);
            slot->class_ps[class_id] += length;
        }
        slot->sm_fj = slot->memory_fj = slot->unsplit_fj = 0;
    }
    g->jump_count = 0;
}
