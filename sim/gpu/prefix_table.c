/* The memory of the tables of prefix sums: who has which, and how much all of them take. */
#include "sim/gpu/prefix_table.h"

#include "sim/base/huge.h"

#include <stdlib.h>

static _Atomic int64_t most = FL_PREFIX_MOST_BYTES; /* that all tables of the process may take */
static _Atomic int64_t taken;                       /* that they take */

void fl_prefix_limit(int64_t bytes) { atomic_store(&most, bytes); }

size_t fl_prefix_rows(const fl_stream *s) { return s->count / FL_PREFIX_ROW; }
static size_t coarse_of(size_t rows) { return rows / FL_PREFIX_COARSE + 1; }
size_t fl_prefix_peaks(size_t rows) { return rows * FL_PREFIX_ROW / FL_PREFIX_PEAK + 1; }

static int64_t bytes_of(const fl_stream *s) {
    const size_t rows = fl_prefix_rows(s);
    return (int64_t)((rows + 1) * sizeof(fl_prefix_sums) + coarse_of(rows) * (sizeof(uint64_t) + sizeof(float)) +
                     fl_prefix_peaks(rows) * sizeof(int32_t));
}

static void table_free(fl_prefix *p) {
    if (!p)
        return;
    free(p->row);
    free(p->coarse_ps);
    free(p->rows_a_ps);
    free(p->peak_mw);
    free(p);
}

fl_prefix_cell *fl_prefix_cells_new(uint32_t stream_count) {
    fl_prefix_cell *cell = calloc((size_t)stream_count + 1, sizeof *cell);
    for (uint32_t i = 0; cell && i < stream_count; i++) {
        atomic_init(&cell[i].table, NULL);
        atomic_init(&cell[i].scanned, 0);
    }
    return cell;
}

void fl_prefix_cells_free(fl_prefix_cell *cell, uint32_t stream_count) {
    for (uint32_t i = 0; cell && i < stream_count; i++) {
        fl_prefix *p = atomic_load(&cell[i].table);
        if (p)
            atomic_fetch_sub_explicit(&taken, p->bytes, memory_order_relaxed);
        table_free(p);
    }
    free(cell);
}

fl_prefix *fl_prefix_new(const fl_stream *s, const struct fl_clock_rates *rates) {
    const size_t rows = fl_prefix_rows(s);
    const int64_t bytes = bytes_of(s);
    const bool fits = atomic_fetch_add_explicit(&taken, bytes, memory_order_relaxed) + bytes <= atomic_load(&most);
    fl_prefix *p = fits ? calloc(1, sizeof *p) : NULL;
    if (p) {
        *p = (fl_prefix){.s = s, .rates = rates, .bytes = bytes};
        p->row = fl_huge_alloc((rows + 1) * sizeof *p->row);
        p->coarse_ps = malloc(coarse_of(rows) * sizeof *p->coarse_ps);
        p->rows_a_ps = calloc(coarse_of(rows), sizeof *p->rows_a_ps);
        p->peak_mw = malloc(fl_prefix_peaks(rows) * sizeof *p->peak_mw);
    }
    if (p && p->row && p->coarse_ps && p->rows_a_ps && p->peak_mw)
        return p;
    atomic_fetch_sub_explicit(&taken, bytes, memory_order_relaxed);
    table_free(p);
    return NULL;
}
