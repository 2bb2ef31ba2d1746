#include "policies/mfgpaper_kinds.h"

#include "policies/random.h"

#include <string.h>

double fl_mfp_grid(double grid, double block, double cores) {
    return cores > 0 && block > 0 ? ceil(grid * block / cores) * (cores / block) : grid;
}

static uint64_t mix(uint64_t key, uint64_t part) {
    uint64_t x = key ^ part * UINT64_C(0xd1342543de82ef95);
    return fl_random_mix(&x);
}

/* The kind without its stream: name, block sizes, rounded grid (Eq. 3). Two kinds of one 64-bit key would be taken for
 * one: of 10,000 kinds that happens once in 10^11 runs. */
static uint64_t key_of(const fl_kernel_kind *k, double cores) {
    const double block = (double)k->block[0] * k->block[1] * k->block[2];
    const double grid = fl_mfp_grid((double)k->grid[0] * k->grid[1] * k->grid[2], block, cores);
    uint64_t bits;
    memcpy(&bits, &grid, sizeof bits);
    uint64_t key = mix(k->name_id, k->block[0]);
    key = mix(key, (uint64_t)k->block[1] << 32 | k->block[2]);
    return mix(key, bits);
}

static int same_size(const uint32_t a[3], const uint32_t b[3]) { return a[0] == b[0] && a[1] == b[1] && a[2] == b[2]; }

/* The key of a record's kind. Kinds come again and again, and the last one of a cell is known. */
static uint64_t known_key(fl_mfp_known *known, const fl_kernel_kind *k, const fl_kernel_record *r, double cores) {
    fl_mfp_known *of = &known[r->kind % FL_MFP_KNOWN];
    if (!of->key || of->name_id != k->name_id || !same_size(of->grid, k->grid) || !same_size(of->block, k->block))
        *of = (fl_mfp_known){.key = key_of(k, cores),
                             .name_id = k->name_id,
                             .grid = {k->grid[0], k->grid[1], k->grid[2]},
                             .block = {k->block[0], k->block[1], k->block[2]}};
    return of->key;
}

/* The cell of a key: its own, or a free one; NULL where neither is near. `size` is a power of two. Kinds that have left
 * the table leave holes, so that a key may stand behind a free cell. */
static fl_mfp_kind *cell(fl_mfp_kind *table, uint32_t size, uint64_t key) {
    fl_mfp_kind *free = NULL;
    for (uint32_t i = 0; i < FL_MFP_TRIES; i++) {
        fl_mfp_kind *k = &table[(key + i) & (size - 1)];
        if (k->key == key)
            return k;
        if (!free && !k->key)
            free = k;
    }
    return free;
}

static void take(fl_mfp_kind *k, double ns) {
    k->count++;
    const double away = ns - k->mean_ns;
    k->mean_ns += away / k->count;
    k->m2 += away * (ns - k->mean_ns);
}

static int add(fl_mfp_kind *table, uint32_t size, uint32_t *kinds, uint64_t key, uint16_t stream, int64_t ns) {
    key += !key;
    fl_mfp_kind *k = cell(table, size, key);
    if (!k)
        return 0;
    *kinds += !k->key;
    k->key = key;
    k->stream = stream;
    take(k, (double)ns);
    return 1;
}

static fl_mfp_stream *stream_of(fl_mfp_data *data, uint32_t id) {
    for (uint32_t i = 0; i < FL_MFP_STREAMS; i++) {
        fl_mfp_stream *s = &data->stream[i];
        if (!s->used)
            *s = (fl_mfp_stream){.last_end_ns = -1, .id = id, .used = 1};
        if (s->id == id)
            return s;
    }
    return NULL;
}

static void begin(fl_mfp_kind *table, uint32_t size) {
    for (uint32_t i = 0; i < size; i++) {
        table[i].mean_ns = table[i].m2 = 0;
        table[i].count = 0;
    }
}

/* The database grows with the kinds of every phase; where it has filled up, those make room that the measurement before
 * did not see. A program with that many kinds at work keeps them all. */
static void make_room(fl_mfp_kind *table, uint32_t size, uint32_t *kinds) {
    if (*kinds <= size - size / 4)
        return;
    for (uint32_t i = 0; i < size; i++) {
        if (!table[i].key || table[i].count)
            continue;
        memset(&table[i], 0, sizeof table[i]);
        --*kinds;
    }
}

void fl_mfp_begin(fl_mfp_data *data) {
    make_room(data->kernel, FL_MFP_KERNELS, &data->kernel_kinds);
    make_room(data->gap, FL_MFP_GAPS, &data->gap_kinds);
    begin(data->kernel, FL_MFP_KERNELS);
    begin(data->gap, FL_MFP_GAPS);
    data->kernels = 0;
    data->over_ns = 0;
    fl_mfp_break(data);
}

void fl_mfp_break(fl_mfp_data *data) {
    for (uint32_t i = 0; i < FL_MFP_STREAMS; i++)
        data->stream[i].last_end_ns = -1;
}

void fl_mfp_add(fl_mfp_data *data, const fl_mfp_scope *scope, const fl_kernel_kind *kind,
                const fl_kernel_record *record) {
    const int64_t length = record->end_ns - record->start_ns;
    fl_mfp_stream *s = stream_of(data, record->stream);
    if (record->end_ns < 0 || length < 0) { /* its end is missing, and so is the start of the gap behind it */
        if (s)
            s->last_end_ns = -1;
        return;
    }
    if (record->start_ns < scope->begin_ns)
        return;
    data->kernels++;
    if (!s) {
        data->over++;
        data->over_ns += (double)length;
        return;
    }
    const uint16_t stream = (uint16_t)(s - data->stream);
    const uint64_t key = known_key(data->known, kind, record, scope->cores);
    if (!add(data->kernel, FL_MFP_KERNELS, &data->kernel_kinds, mix(key, record->stream), stream, length)) {
        data->over++;
        data->over_ns += (double)length;
    }
    const int64_t gap = record->start_ns - s->last_end_ns;
    if (s->last_end_ns >= 0 && gap >= 0 && gap <= scope->gap_max_ns) /* Eq. 4: the stream and the kernels around it */
        data->over +=
            !add(data->gap, FL_MFP_GAPS, &data->gap_kinds, mix(mix(s->last_kind, key), ~record->stream), stream, gap);
    s->last_kind = key;
    s->last_end_ns = record->end_ns;
}

double fl_mfp_stability(const fl_mfp_kind *k) {
    return k->count > 1 && k->mean_ns > 0 ? sqrt(k->m2 / k->count) / k->mean_ns : 0;
}
