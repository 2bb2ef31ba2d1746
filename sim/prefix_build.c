/* Building a table of prefix sums, and when. */
#include "sim/prefix_build.h"

#include "sim/work.h"

#include <limits.h>

/* One op into the sums. Returns its length. */
static uint64_t add_op(fl_prefix *p, uint64_t i, uint64_t *t, fl_prefix_sums *x) {
    int64_t gap_ns, work_ns;
    uint32_t class_id;
    fl_workload_op(p->s, i, &gap_ns, &work_ns, &class_id);
    const fl_row *k = &p->rates->row[class_id];
    const fl_row_parts *parts = &p->rates->parts[class_id];
    const uint64_t length = (uint64_t)fl_length_ps(work_ns, k->mul);
    *t += (uint64_t)(gap_ns * FL_PS_PER_NS) + length;
    x->busy_ps += length;
    x->dyn_fj += length * (uint64_t)(int64_t)k->dyn_mw;
    x->memory += length * k->memory;
    x->alu += length * k->alu;
    x->sms += length * k->sms;
    x->sm_fj += length * (uint64_t)(int64_t)parts->sm_mw;
    x->memory_fj += length * (uint64_t)(int64_t)parts->memory_mw;
    x->unsplit_fj += length * (uint64_t)(int64_t)parts->unsplit_mw;
    int32_t *peak = &p->peak_mw[i / FL_PREFIX_PEAK];
    if (length && k->dyn_mw > *peak)
        *peak = k->dyn_mw;
    return length;
}

/* Of whole blocks; what is behind them is scanned. A run does not come to what would end too late. */
static void fill(fl_prefix *p, size_t blocks) {
    uint64_t t = 0;
    fl_prefix_sums x = {0};
    for (size_t i = 0; i < fl_prefix_peaks(blocks); i++)
        p->peak_mw[i] = INT32_MIN;
    for (size_t b = 0;; b++) {
        const uint64_t op = (uint64_t)b * FL_PREFIX_BLOCK;
        p->t_ps[b] = t;
        if (op % FL_PREFIX_ROW == 0)
            p->row[op / FL_PREFIX_ROW] = x;
        p->blocks = b;
        for (uint64_t i = op; b < blocks && t < INT64_MAX / 2 && i < op + FL_PREFIX_BLOCK; i++)
            add_op(p, i, &t, &x);
        if (b == blocks || t >= INT64_MAX / 2)
            break;
    }
    const double mean_ps = p->blocks ? (double)p->t_ps[p->blocks] / (double)p->blocks : 0;
    p->blocks_per_ps = mean_ps > 0 ? 1 / mean_ps : 0;
    p->worth_ps = (int64_t)(mean_ps * FL_PREFIX_WORTH / FL_PREFIX_BLOCK);
}

/* The thread with which the count crosses the line builds, the others go on scanning. Where there is no room or no
 * memory nobody builds: the scan does without. */
void fl_prefix_scanned(fl_gpu *g, const fl_stream *s, uint64_t ops) {
    const fl_clock_rates *rates = g->rates;
    fl_prefix_cell *cell = &rates->prefix[s - g->w->stream];
    if (atomic_load_explicit(&cell->scanned, memory_order_relaxed) >= s->count)
        return;
    const uint64_t before = atomic_fetch_add_explicit(&cell->scanned, ops, memory_order_relaxed);
    if (before >= s->count || before + ops < s->count)
        return;
    fl_prefix *p = fl_prefix_new(s, rates);
    if (p)
        fill(p, s->count / FL_PREFIX_BLOCK);
    atomic_store_explicit(&cell->table, p, memory_order_release);
}
