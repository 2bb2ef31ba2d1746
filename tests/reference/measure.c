#include "tests/reference/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define EXE_RADIUS 10.0 /* largest CV of kernels that are compared: 1000 % */
#define GAP_RADIUS 2.5  /* and of gaps */
#define MERGE_LEAST 0.01

/* Room for one more; a test that runs out of memory ends. */
static void *grown(void *at, size_t count, size_t *room, size_t size) {
    if (count < *room)
        return at;
    *room = *room ? 2 * *room : 64;
    at = realloc(at, *room * size);
    if (!at) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return at;
}

void ref_data_free(ref_data *w) {
    free(w->kernel.at);
    free(w->gap.at);
    *w = (ref_data){0};
}

void ref_products_free(ref_products *p) {
    free(p->at);
    *p = (ref_products){0};
}

/* "B = product of block dims, G = floor(ceil(grid B / cores) cores / B)" */
uint32_t ref_product_of(ref_products *p, uint32_t stream, const fl_kernel_kind *k, uint64_t cores) {
    const uint64_t grid = (uint64_t)k->grid[0] * k->grid[1] * k->grid[2];
    const uint64_t given = (uint64_t)k->block[0] * k->block[1] * k->block[2], block = given ? given : 1;
    const uint64_t rounded = (grid * block + cores - 1) / cores * cores / block;
    for (size_t i = 0; i < p->count; i++) {
        const ref_product *q = &p->at[i];
        if (q->stream == stream && q->name_id == k->name_id && q->grid == rounded && q->block == block)
            return (uint32_t)i;
    }
    p->at = grown(p->at, p->count, &p->room, sizeof *p->at);
    p->at[p->count] = (ref_product){stream, k->name_id, rounded, block};
    return (uint32_t)p->count++;
}

static ref_kind *find(const ref_kinds *kinds, const ref_kind *key) {
    for (size_t i = 0; i < kinds->count; i++)
        if (kinds->at[i].before == key->before && kinds->at[i].after == key->after)
            return &kinds->at[i];
    return NULL;
}

static ref_kind *added(ref_kinds *kinds, const ref_kind *kind) {
    kinds->at = grown(kinds->at, kinds->count, &kinds->room, sizeof *kinds->at);
    kinds->at[kinds->count] = *kind;
    return &kinds->at[kinds->count++];
}

/* "Kept: count n, sum, sum of squares." */
void ref_count(ref_kinds *kinds, ref_kind key, double ns) {
    ref_kind *k = find(kinds, &key);
    if (!k) {
        key.count = key.sum_ns = key.squares = 0;
        k = added(kinds, &key);
    }
    k->count += 1;
    k->sum_ns += ns;
    k->squares += ns * ns;
}

double ref_mean(const ref_data *w, int reading) { return ref_ratio(w->sum[reading], w->samples); }

/* "Kind in both: m = round(d n_old), d' = m/n_old, n = n_new + m, sums = new + d' old. Only new: copied. Only old:
 * unchanged." */
static void merge_kinds(ref_kinds *old, const ref_kinds *fresh, double d) {
    for (size_t i = 0; i < fresh->count; i++) {
        const ref_kind *f = &fresh->at[i];
        ref_kind *k = find(old, f);
        if (!k) {
            added(old, f);
            continue;
        }
        const double m = round(d * k->count), d_kind = m / k->count;
        k->count = f->count + m;
        k->sum_ns = f->sum_ns + d_kind * k->sum_ns;
        k->squares = f->squares + d_kind * k->squares;
    }
}

/* "Merge by d (>= 0.01). Totals (duration, powers, clocks, sample and kernel counts): new + d old. Relative mode: d :=
 * d D_new / (decayed duration of the database)." */
void ref_merge(ref_data *old, const ref_data *fresh, double d, bool relative) {
    if (relative)
        d = ref_ratio(d * fresh->duration_ns, old->duration_ns);
    if (d < MERGE_LEAST)
        d = MERGE_LEAST;
    old->duration_ns = fresh->duration_ns + d * old->duration_ns;
    old->samples = fresh->samples + d * old->samples;
    old->kernels = fresh->kernels + d * old->kernels;
    for (int i = 0; i < REF_READINGS; i++)
        old->sum[i] = fresh->sum[i] + d * old->sum[i];
    merge_kinds(&old->kernel, &fresh->kernel, d);
    merge_kinds(&old->gap, &fresh->gap, d);
}

static double mean_ns(const ref_kind *k) { return k->sum_ns / k->count; }

/* "CV = deviation / mean (population)" */
static double cv(const ref_kind *k) {
    const double mean = mean_ns(k), variance = k->squares / k->count - mean * mean;
    return ref_ratio(variance > 0 ? sqrt(variance) : 0, mean);
}

/* ---- the index ---- */

typedef struct stream { /* B, K, Gb, Gc and E of the note */
    uint32_t id;
    bool matched, gap_matched;
    double base, now, gap_base, gap_now, all;
} stream;

typedef struct streams {
    stream *at;
    size_t count, room;
} streams;

static stream *stream_of(streams *s, uint32_t id) {
    for (size_t i = 0; i < s->count; i++)
        if (s->at[i].id == id)
            return &s->at[i];
    s->at = grown(s->at, s->count, &s->room, sizeof *s->at);
    s->at[s->count] = (stream){.id = id};
    return &s->at[s->count++];
}

/* "Kernel kinds match if in both and max(CV_b, CV_c) <= 10 (= 1000 %)", and the shares of kernel time. */
static void compare_kernels(const ref_data *c, const ref_data *b, streams *s, ref_index *x) {
    double all = 0, covered = 0, matched = 0;
    for (size_t i = 0; i < c->kernel.count; i++) {
        const ref_kind *k = &c->kernel.at[i], *base = find(&b->kernel, k);
        stream *st = stream_of(s, k->stream);
        st->all += k->sum_ns;
        all += k->sum_ns;
        if (!base)
            continue;
        covered += k->sum_ns;
        if (fmax(cv(base), cv(k)) > EXE_RADIUS)
            continue;
        matched += k->sum_ns;
        st->matched = true;
        st->base += k->count * mean_ns(base);
        st->now += k->count * mean_ns(k);
    }
    x->covered = ref_ratio(covered, all);
    x->matched = ref_ratio(matched, all);
    double unmatched = 0;
    for (size_t i = 0; i < s->count; i++)
        unmatched += s->at[i].matched ? 0 : s->at[i].all;
    x->unmatched_streams = ref_ratio(unmatched, all);
}

/* "gaps: <= 2.5, and n >= 2 on both sides." */
static void compare_gaps(const ref_data *c, const ref_data *b, streams *s) {
    for (size_t i = 0; i < c->gap.count; i++) {
        const ref_kind *k = &c->gap.at[i], *base = find(&b->gap, k);
        if (!base || base->count < 2 || k->count < 2 || fmax(cv(base), cv(k)) > GAP_RADIUS)
            continue;
        stream *st = stream_of(s, k->stream);
        st->gap_matched = true;
        st->gap_base += k->count * mean_ns(base);
        st->gap_now += k->count * mean_ns(k);
    }
}

/* "P = (E + Gc)/(E B/K + Gb) - 1; exe = K/B - 1; gap = Gc/Gb - 1; weight (E/D)^2; loss = sum w P / (sum w + 1e-12), exe
 * and gap likewise. A stream without matched gap enters with nothing (all such: 0)." */
ref_index ref_compare(const ref_data *c, const ref_data *b) {
    ref_index x = {0};
    streams s = {0};
    compare_kernels(c, b, &s, &x);
    compare_gaps(c, b, &s);
    double weights = 0, gap_weights = 0, loss = 0, exe = 0, gap = 0;
    for (size_t i = 0; i < s.count; i++) {
        const stream *st = &s.at[i];
        if (!st->matched)
            continue;
        const double share = ref_ratio(st->all, c->duration_ns), w = share * share;
        const double p = (st->all + st->gap_now) / (st->all * st->base / st->now + st->gap_base) - 1;
        weights += w;
        loss += w * p;
        exe += w * (st->now / st->base - 1);
        x.streams++;
        if (st->gap_matched) {
            gap_weights += w;
            gap += w * (st->gap_now / st->gap_base - 1);
        } else {
            x.without_gap++;
        }
    }
    x.loss = loss / (weights + 1e-12);
    x.exe = exe / (weights + 1e-12);
    x.gap = gap / (gap_weights + 1e-12);
    if (!x.streams) /* "No matched stream, or a side empty: 0.05 (empty window: covered 0.94)" */
        x.loss = x.exe = x.gap = 0.05;
    if (!c->kernel.count)
        x.covered = 0.94;
    free(s.at);
    return x;
}
