/* Builds a table of prefix sums when it becomes due. */
#include "sim/advance/prefix_build.h"

#include "sim/gpu/work.h"

#include <limits.h>

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
