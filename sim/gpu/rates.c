/* Rows of a workload at each pair of clocks, built at first use and shared by all runs; model errors; what kernel
 * records cost. */
#include "sim/gpu/inside.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The memory of the tables of prefix sums: who has which, and how much all of them take. */

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

/* stream_count cells, or NULL for want of memory. */
static fl_prefix_cell *fl_prefix_cells_new(uint32_t stream_count) {
    fl_prefix_cell *cell = calloc((size_t)stream_count + 1, sizeof *cell);
    for (uint32_t i = 0; cell && i < stream_count; i++) {
        atomic_init(&cell[i].table, NULL);
        atomic_init(&cell[i].scanned, 0);
    }
    return cell;
}

static void fl_prefix_cells_free(fl_prefix_cell *cell, uint32_t stream_count) {
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

/* ---- rows at a pair of clocks ---- */

struct fl_rates {
    const fl_workload *w;
    const fl_node_spec *node;
    pthread_mutex_t lock;
    fl_model_error error;
    _Atomic uint32_t used;
    double *mean_ns; /* per class: length of its ops at their reference clock; NULL until records cost per kernel */
    _Atomic(fl_clock_rates *) **table; /* per device: sm_count x mem_count cells, NULL until built; and as many again
                                          with activity records on */
};

static size_t cells_of(const fl_device *dev) { return (size_t)dev->sm_count * dev->mem_count; }

fl_status fl_rates_new(fl_rates **out, const fl_workload *w, const fl_node_spec *node, fl_diag *d) {
    fl_rates *r = calloc(1, sizeof *r);
    if (!r)
        return fl_no_memory(d, "the rates");
    r->w = w;
    r->node = node;
    pthread_mutex_init(&r->lock, NULL);
    r->table = calloc(node->device_count, sizeof *r->table);
    bool ok = r->table != NULL;
    for (uint32_t i = 0; ok && i < node->device_count; i++) {
        r->table[i] = calloc(2 * cells_of(&node->device[i]), sizeof *r->table[i]);
        ok = r->table[i] != NULL;
    }
    if (!ok) {
        fl_rates_free(r);
        return fl_no_memory(d, "the rates");
    }
    *out = r;
    return FL_OK;
}

uint32_t fl_rates_used(fl_rates *r) { return atomic_fetch_add_explicit(&r->used, 1, memory_order_relaxed) + 1; }

static void cell_free(fl_clock_rates *c, uint32_t streams) {
    if (c) {
        fl_prefix_cells_free(c->prefix, streams);
        free((fl_row *)(uintptr_t)c->row);
        free((fl_row_parts *)(uintptr_t)c->parts);
        free(c);
    }
}

void fl_rates_free(fl_rates *r) {
    if (!r)
        return;
    for (uint32_t i = 0; r->table && i < r->node->device_count; i++) {
        const size_t cells = 2 * cells_of(&r->node->device[i]);
        for (size_t k = 0; r->table[i] && k < cells; k++)
            cell_free(atomic_load(&r->table[i][k]), r->w->stream_count);
        free(r->table[i]);
    }
    free(r->table);
    free(r->mean_ns);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* ---- errors ---- */

void fl_rates_err(fl_rates *r, const fl_model_error *e) { r->error = *e; }

/* Where a clock stands on the way from the reference to the far end of the ladder: 0 at the reference, -1..1. */
static double away(double mhz, double ref, const int32_t *ladder, uint32_t count) {
    const double span = count > 1 ? (double)ladder[count - 1] - ladder[0] : 0;
    return span > 0 && ref > 0 ? (mhz - ref) / span : 0;
}

/* A normal deviate's mean absolute value is sqrt(2/pi) of its deviation. */
#define FL_SIGMA(pct) ((pct) / 100 * 1.2533141373155003)

/* Scales the parts of a power and sums them. FL_MODEL_OVERFLOW beyond what the engine's 32-bit milliwatts hold. */
static fl_model_status scale(int32_t *const part[3], double by, int32_t *sum_mw) {
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += fabs(*part[i] * by);
    if (!(sum <= FL_POWER_MAX_MW))
        return FL_MODEL_OVERFLOW;
    *sum_mw = 0;
    for (int i = 0; i < 3; i++)
        *sum_mw += *part[i] = (int32_t)lround(*part[i] * by);
    return FL_MODEL_OK;
}

/* From the reference at one end of the ladder, x is 0.5 on average and the root of 1 + 4 x^2 is 1.4789: so that the
 * mean absolute errors come out as asked. */
static fl_model_status err_row(const fl_rates *r, const fl_device *dev, uint32_t id, double f, double m, fl_row *row,
                               fl_row_parts *parts) {
    const fl_load *load = &r->w->class[id].load;
    fl_random random = fl_random_seed(r->error.seed, id);
    const double x = away(f, load->ref_sm_mhz, dev->sm_mhz, dev->sm_count),
                 y = away(m, load->ref_mem_mhz, dev->mem_mhz, dev->mem_count);
    const double slope = fl_random_normal(&random), memory = fl_random_normal(&random),
                 level = fl_random_normal(&random), tilt = fl_random_normal(&random);
    const double longer = exp(FL_SIGMA(r->error.time_pct) * 2 * (slope * x + memory * y)),
                 more = exp(FL_SIGMA(r->error.power_pct) * (level + 2 * tilt * x) / 1.4789);
    row->mul = (uint32_t)fmin(fmax(1, round(row->mul * longer)), UINT32_MAX);
    return scale((int32_t *const[]){&parts->sm_mw, &parts->memory_mw, &parts->unsplit_mw}, more, &row->dyn_mw);
}

static fl_model_status err_base(const fl_rates *r, uint32_t device, fl_base *base) {
    fl_random random = fl_random_seed(r->error.seed, (UINT64_C(1) << 32) + device);
    const double more = exp(FL_SIGMA(r->error.power_pct) * fl_random_normal(&random));
    return scale((int32_t *const[]){&base->static_mw, &base->memory_mw, &base->tree_mw}, more, &base->total_mw);
}

static bool errs(const fl_rates *r) { return r->error.time_pct > 0 || r->error.power_pct > 0; }

/* ---- what activity records cost ---- */

/* Under the lock. A server's steps are no ops of the workload: their classes stay at 0. */
static fl_status find_means(fl_rates *r, fl_diag *d) {
    const fl_workload *w = r->w;
    uint64_t *count = calloc(w->class_count + 1, sizeof *count);
    double *sum = calloc(w->class_count + 1, sizeof *sum);
    if (!count || !sum) {
        free(count);
        free(sum);
        return fl_no_memory(d, "the rates");
    }
    for (uint32_t k = 0; k < w->stream_count; k++)
        for (size_t i = 0; i < w->stream[k].count; i++) {
            int64_t gap_ns, work_ns;
            uint32_t id;
            fl_workload_op(&w->stream[k], i, &gap_ns, &work_ns, &id);
            sum[id] += (double)work_ns;
            count[id]++;
        }
    for (uint32_t i = 0; i < w->class_count; i++)
        sum[i] = count[i] ? sum[i] / (double)count[i] : 0;
    free(count);
    r->mean_ns = sum;
    return FL_OK;
}

/* The time per kernel is spread over the kernels of a class in proportion to their length, so that a row stays one
 * multiplication: the class as a whole costs what it should at every clock. A kernel in phases pays in its last one. */
static fl_model_status record_row(const fl_rates *r, const fl_device *dev, uint32_t id, fl_row *row) {
    const double mean_ns = r->mean_ns && row->resident == FL_RESIDENT_KERNEL ? r->mean_ns[id] : 0;
    const double each = mean_ns > 0 ? dev->records_kernel_s * 1e9 / mean_ns : 0;
    const double mul = round(row->mul * (1 + dev->records_slowdown) + each * FL_MUL_ONE);
    if (mul > (double)UINT32_MAX)
        return FL_MODEL_OVERFLOW;
    row->mul = (uint32_t)mul;
    return FL_MODEL_OK;
}

/* The measured deviation of a utilisation reading over the kernels of the workload, each by its time. NAN: not
 * measured.
 */
static double scatter_of(const fl_workload *w, fl_reading_kind kind, double f, double m) {
    double squares = 0, time = 0;
    for (uint32_t i = 0; w->readings && i < w->class_count; i++) {
        const fl_load *load = &w->class[i].load;
        const double sd = fl_reading_at(load, kind, f, m);
        if (isnan(sd))
            continue;
        squares += load->measured->ref_s * sd * sd;
        time += load->measured->ref_s;
    }
    return time > 0 ? sqrt(squares / time) : (double)NAN;
}

static fl_status build_cell(const fl_rates *r, const fl_device *dev, uint32_t sm, uint32_t mem, bool recorded,
                            fl_clock_rates **out, fl_diag *d) {
    uint32_t n = r->w->class_count;
    fl_clock_rates *c = calloc(1, sizeof *c);
    fl_row *row = calloc(n ? n : 1, sizeof *row);
    fl_row_parts *parts = calloc(n ? n : 1, sizeof *parts);
    fl_prefix_cell *prefix = fl_prefix_cells_new(r->w->stream_count);
    if (!c || !row || !parts || !prefix) {
        free(c);
        free(row);
        free(parts);
        free(prefix);
        return fl_no_memory(d, "the rates");
    }
    c->row = row;
    c->parts = parts;
    c->prefix = prefix;
    const char *what = "base power";
    double f = dev->sm_mhz[sm], m = dev->mem_mhz[mem];
    fl_model_status s = fl_base_make(dev, f, m, &c->base);
    if (s == FL_MODEL_OK && errs(r))
        s = err_base(r, (uint32_t)(dev - r->node->device), &c->base);
    for (uint32_t i = 0; s == FL_MODEL_OK && i < n; i++) {
        const fl_class *k = &r->w->class[i];
        what = k->kind.name;
        s = fl_row_make(dev, &k->load, f, m, &row[i], &parts[i]);
        if (s == FL_MODEL_OK && errs(r))
            s = err_row(r, dev, i, f, m, &row[i], &parts[i]);
        row[i].resident = k->copy || k->iteration ? FL_RESIDENT_NO : k->part ? FL_RESIDENT_PART : FL_RESIDENT_KERNEL;
        if (!row[i].resident)
            row[i].sms = row[i].alu = 0;
        else if (s == FL_MODEL_OK && recorded)
            s = record_row(r, dev, i, &row[i]);
        if (s == FL_MODEL_OK && (row[i].dyn_mw > 9000000 || row[i].dyn_mw < -9000000))
            s = FL_MODEL_OVERFLOW; /* one second of it must fit the scan's 64-bit sums of femtojoules */
        if (s == FL_MODEL_OK && (c->base.total_mw < 0 || c->base.total_mw < -row[i].dyn_mw || !row[i].mul))
            s = FL_MODEL_INVALID;
    }
    if (s != FL_MODEL_OK) {
        cell_free(c, r->w->stream_count);
        /* What is too large comes from a file, too: a slowdown from a sweep, a power from a platform. */
        return fl_error(d, s == FL_MODEL_RANGE || s == FL_MODEL_OVERFLOW ? FL_BAD_INPUT : FL_MODEL_FAULT,
                        "%s: '%s' at %g MHz (memory %g MHz) on %s: %s", r->w->name, what, f, m, dev->name,
                        fl_model_text(s));
    }
    c->gpu_sd = scatter_of(r->w, FL_READING_GPU_SD, f, m);
    c->mem_sd = scatter_of(r->w, FL_READING_MEM_SD, f, m);
    for (uint32_t i = 0; i < n; i++)
        c->max_dyn_mw = row[i].dyn_mw > c->max_dyn_mw ? row[i].dyn_mw : c->max_dyn_mw;
    *out = c;
    return FL_OK;
}

static fl_status find(fl_rates *r, uint32_t device, uint32_t sm, uint32_t mem, bool recorded,
                      const fl_clock_rates **out, fl_diag *d) {
    const fl_device *dev = &r->node->device[device];
    _Atomic(fl_clock_rates *) *cell =
        &r->table[device][(recorded ? cells_of(dev) : 0) + (size_t)sm * dev->mem_count + mem];
    fl_clock_rates *c = atomic_load_explicit(cell, memory_order_acquire);
    if (c) {
        *out = c;
        return FL_OK;
    }
    pthread_mutex_lock(&r->lock); /* which thread builds cannot show: a cell depends on nothing but its clocks */
    fl_status status = FL_OK;
    c = atomic_load_explicit(cell, memory_order_relaxed);
    if (!c) {
        if (recorded && dev->records_kernel_s > 0 && !r->mean_ns)
            status = find_means(r, d);
        if (!status)
            status = build_cell(r, dev, sm, mem, recorded, &c, d);
        if (!status)
            atomic_store_explicit(cell, c, memory_order_release);
    }
    pthread_mutex_unlock(&r->lock);
    if (!status)
        *out = c;
    return status;
}

fl_status fl_rates_at(fl_rates *r, uint32_t device, uint32_t sm, uint32_t mem, const fl_clock_rates **out, fl_diag *d) {
    return find(r, device, sm, mem, false, out, d);
}

fl_status fl_rates_recorded(fl_rates *r, uint32_t device, uint32_t sm, uint32_t mem, const fl_clock_rates **out,
                            fl_diag *d) {
    return find(r, device, sm, mem, fl_device_records_cost(&r->node->device[device]), out, d);
}
