/* MF-GPOEO as released: kinds of kernels and gaps, and the loss of performance that they show. */
#include "policies/mfgpoeo/inside.h"

#include "policies/policy.h"
#include "policies/random.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- kinds ---- */

uint64_t fl_mfg_grid(uint64_t grid, uint64_t block, uint64_t cores) {
    const uint64_t b = block ? block : 1;
    return (grid * b + cores - 1) / cores * cores / b;
}

static uint64_t mix(uint64_t key, uint64_t part) {
    uint64_t x = key ^ part * UINT64_C(0xd1342543de82ef95);
    return fl_random_mix(&x);
}

static uint64_t product(const uint32_t size[3]) { return (uint64_t)size[0] * size[1] * size[2]; }

/* The kind without its stream. Two kinds of one 64-bit key would be taken for one: of 10,000 kinds that happens once in
 * 10^11 runs. */
static uint64_t key_of(const fl_kernel_kind *k, uint64_t cores) {
    const uint64_t block = product(k->block);
    const uint64_t key = mix(mix(k->name_id, block), fl_mfg_grid(product(k->grid), block, cores));
    return key + !key;
}

/* The cell of a key: its own, or a free one; NULL where neither is near. `size` is a power of two. Kinds that have left
 * the table leave holes, so that a key may stand behind a free cell. */
static fl_mfg_kind *cell(fl_mfg_kind *table, uint32_t size, uint64_t key) {
    fl_mfg_kind *free = NULL;
    for (uint32_t i = 0; i < FL_MFG_TRIES; i++) {
        fl_mfg_kind *k = &table[(key + i) & (size - 1)];
        if (k->key == key)
            return k;
        if (!free && !k->key)
            free = k;
    }
    return free;
}

static int take(fl_mfg_kind *table, uint32_t size, uint64_t key, uint32_t stream, double ns) {
    key += !key;
    fl_mfg_kind *k = cell(table, size, key);
    if (!k)
        return 0;
    k->key = key;
    k->stream = stream;
    k->now.n++;
    k->now.ns += ns;
    k->now.ns2 += ns * ns;
    return 1;
}

static fl_mfg_stream *stream_of(fl_mfg_data *data, uint32_t id) {
    for (uint32_t i = 0; i < FL_MFG_STREAMS; i++) {
        fl_mfg_stream *s = &data->stream[i];
        if (!s->used)
            *s = (fl_mfg_stream){.id = id, .used = 1};
        if (s->id == id)
            return s;
    }
    return NULL;
}

static void clear(fl_mfg_kind *table, uint32_t size) {
    for (uint32_t i = 0; i < size; i++) {
        table[i].now = (fl_mfg_sums){.n = 0};
        if (!(table[i].base.n > 0)) /* a kind that no merge has kept makes room */
            table[i].key = 0;
    }
}

void fl_mfg_clear(fl_mfg_data *data) {
    clear(data->kernel, FL_MFG_KERNELS);
    clear(data->gap, FL_MFG_GAPS);
    data->kernels = data->over_ns = 0;
}

void fl_mfg_break(fl_mfg_data *data) {
    for (uint32_t i = 0; i < FL_MFG_STREAMS; i++)
        data->stream[i].last_kind = 0;
}

void fl_mfg_add(fl_mfg_data *data, const fl_mfg_trace *trace, const fl_kernel_kind *kind, const fl_kernel_record *r) {
    if (r->start_ns <= 0 || r->end_ns <= 0 || r->end_ns < r->start_ns)
        return;
    if (r->start_ns < trace->begin_ns || r->end_ns > trace->end_ns)
        return;
    const double ns = (double)(r->end_ns - r->start_ns);
    const uint64_t key = key_of(kind, trace->cores);
    fl_mfg_stream *s = stream_of(data, r->stream);
    const uint32_t stream = s ? (uint32_t)(s - data->stream) : 0;
    data->kernels++;
    if (!s || !take(data->kernel, FL_MFG_KERNELS, mix(key, r->stream), stream, ns)) {
        data->over++;
        data->over_ns += ns;
    }
    if (!s)
        return;
    if (s->last_kind && r->start_ns > s->last_end_ns)
        data->over += !take(data->gap, FL_MFG_GAPS, mix(mix(s->last_kind, key), ~r->stream), stream,
                            (double)(r->start_ns - s->last_end_ns));
    s->last_kind = key;
    s->last_end_ns = r->end_ns;
}

static void merge(fl_mfg_kind *table, uint32_t size, double d) {
    for (uint32_t i = 0; i < size; i++) {
        const fl_mfg_sums *now = &table[i].now;
        fl_mfg_sums *base = &table[i].base;
        if (!(now->n > 0))
            continue;
        const double m = round(d * base->n), share = fl_mfg_over(m, base->n);
        base->n = now->n + m;
        base->ns = now->ns + share * base->ns;
        base->ns2 = now->ns2 + share * base->ns2;
    }
}

void fl_mfg_merge(fl_mfg_data *data, double d) {
    merge(data->kernel, FL_MFG_KERNELS, d);
    merge(data->gap, FL_MFG_GAPS, d);
}

static double fl_mfg_mean(const fl_mfg_sums *s) { return fl_mfg_over(s->ns, s->n); }

/* Deviation over mean, of the population; 0 where the mean is 0. */
static double fl_mfg_cv(const fl_mfg_sums *s) {
    const double mean = fl_mfg_mean(s);
    return fl_mfg_over(sqrt(fmax(fl_mfg_over(s->ns2, s->n) - mean * mean, 0)), mean);
}

/* ---- the loss of performance ---- */

static const double NOTHING_LOSS = 0.05, EMPTY_COVERED = 0.94;

typedef struct part {     /* of one stream; ns */
    double base, now;     /* B, K: matched kernels as long as in the database, and as they were */
    double base_gap, gap; /* Gb, Gc: the same of gaps */
    double kernels;       /* E: all kernel time */
    uint32_t matched, matched_gaps;
} part;

static int matches(const fl_mfg_kind *k, double radius, double least) {
    return k->now.n >= least && k->base.n >= least && fmax(fl_mfg_cv(&k->base), fl_mfg_cv(&k->now)) <= radius;
}

/* Kernels, stream by stream; what the shares count goes to *index. Returns 0 where a side is empty. */
static int sum_kernels(const fl_mfg_data *data, double radius, part *stream, fl_mfg_index *index) {
    double all = data->over_ns, known = 0;
    for (uint32_t i = 0; i < FL_MFG_KERNELS; i++) {
        const fl_mfg_kind *k = &data->kernel[i];
        known += k->base.n;
        if (!(k->now.n > 0))
            continue;
        part *s = &stream[k->stream];
        all += k->now.ns;
        s->kernels += k->now.ns;
        index->covered += k->base.n > 0 ? k->now.ns : 0;
        if (!matches(k, radius, 1))
            continue;
        index->matched += k->now.ns;
        s->base += k->now.n * fl_mfg_mean(&k->base);
        s->now += k->now.n * fl_mfg_mean(&k->now);
        s->matched++;
    }
    for (uint32_t i = 0; i < FL_MFG_STREAMS; i++)
        index->unmatched += stream[i].matched ? 0 : stream[i].kernels;
    index->covered = fl_mfg_over(index->covered, all);
    index->matched = fl_mfg_over(index->matched, all);
    index->unmatched = fl_mfg_over(index->unmatched, all);
    if (!(data->kernels > 0))
        index->covered = EMPTY_COVERED;
    return data->kernels > 0 && known > 0;
}

static void sum_gaps(const fl_mfg_data *data, double radius, part *stream) {
    for (uint32_t i = 0; i < FL_MFG_GAPS; i++) {
        const fl_mfg_kind *k = &data->gap[i];
        if (!matches(k, radius, 2))
            continue;
        part *s = &stream[k->stream];
        s->base_gap += k->now.n * fl_mfg_mean(&k->base);
        s->gap += k->now.n * fl_mfg_mean(&k->now);
        s->matched_gaps++;
    }
}

fl_mfg_index fl_mfg_compare(const fl_mfg_data *data, double th_exe, double th_gap, double window_s) {
    part stream[FL_MFG_STREAMS] = {{.base = 0}};
    fl_mfg_index index = {.loss = 0};
    const int sides = sum_kernels(data, th_exe, stream, &index);
    double weights = 0, gap_weights = 0;
    uint32_t streams = 0;
    sum_gaps(data, th_gap, stream);
    for (uint32_t i = 0; i < FL_MFG_STREAMS; i++) {
        const part *s = &stream[i];
        if (!s->matched)
            continue;
        const double share = s->kernels / (window_s * 1e9), w = share * share;
        const double default_ns = fl_mfg_over(s->kernels * s->base, s->now) + s->base_gap;
        index.loss += w * (fl_mfg_over(s->kernels + s->gap, default_ns) - 1);
        index.exe += w * (fl_mfg_over(s->now, s->base) - 1);
        weights += w;
        streams++;
        if (!s->matched_gaps)
            continue;
        index.gap += w * (s->gap / s->base_gap - 1);
        gap_weights += w;
    }
    if (!sides || !streams) {
        index.loss = index.exe = index.gap = NOTHING_LOSS;
        return index;
    }
    index.loss /= weights + 1e-12;
    index.exe /= weights + 1e-12;
    index.gap /= gap_weights + 1e-12;
    return index;
}

double fl_mfg_objective(double power_w, double base_power_w, double loss, int64_t k) {
    double value = fl_mfg_over(power_w, base_power_w);
    for (int64_t i = 0; i < k; i++)
        value *= 1 + loss;
    return value;
}
