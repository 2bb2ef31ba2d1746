/* Means over workloads and seeds that share their bootstrap draws. */
#include "harness/base/work/inside.h"

#include "harness/base/work/work.h"
#include "policies/random.h"
#include "traces/io/io.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LANES ((size_t)8) /* means that are added up side by side */

enum {
    PICKS_MOST = 1 << 18, /* drawn runs stored at a time: they fit the cache of a core */
    DRAWN_MOST = 1 << 21, /* drawn means stored at a time */
    WAITING_MOST =
        4 << 20, /* values that wait for their draws; four times as many where the last group of means is not full */
    AHEAD = 32,  /* picks from one whose values are added to one whose values are fetched */
};

/* ---- quantiles ---- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile_between(double at, double below, double above) {
    return below + (at - floor(at)) * (above - below);
}

double fl_quantile(const double *sorted, size_t count, double q) {
    if (!count)
        return NAN;
    const double at = q * (double)(count - 1);
    const size_t below = (size_t)at;
    return below + 1 >= count ? sorted[count - 1] : quantile_between(at, sorted[below], sorted[below + 1]);
}

/* fl_quantile of values in any order, which it changes. */
static double select_quantile(double *v, size_t count, double q) {
    const double at = q * (double)(count - 1);
    const size_t below = (size_t)at, above = below + 1 < count ? below + 1 : below;
    const double low = gsl_stats_select(v, 1, count, below);
    return quantile_between(at, low, gsl_stats_select(v, 1, count, above));
}

void fl_bootstrap_ends(double *mean, size_t draws, fl_interval *out) {
    const double tail = (1 - 0.95) / 2;
    bool ordered = true; /* interpolation between infinite values may give NaN */
    for (size_t i = 0; i < draws; i++)
        ordered &= !isnan(mean[i]);
    if (!ordered)
        qsort(mean, draws, sizeof *mean, ascending);
    out->low = ordered ? select_quantile(mean, draws, tail) : fl_quantile(mean, draws, tail);
    out->high = ordered ? select_quantile(mean, draws, 1 - tail) : fl_quantile(mean, draws, 1 - tail);
}

/* ---- patterns of runs ---- */

/* Means over the same numbers of runs: those of workload w are first[w] .. first[w + 1] - 1. The values of eight means
 * lie side by side, run by run. */
struct fl_means_pattern {
    size_t *first; /* workloads + 1 */
    size_t workloads, runs;
    bool seeds; /* some workload has several */
    double *value;
    size_t value_room;
    fl_interval **out; /* count */
    size_t count, out_room;
};

static bool same_runs(const void *owner, uint32_t index, const void *key) {
    const fl_means_pattern *a = &((const fl_means *)owner)->pattern[index], *b = key;
    return a->workloads == b->workloads && !memcmp(a->first, b->first, (a->workloads + 1) * sizeof *a->first);
}

/* The pattern equal to *key; the function takes over *key. NULL: out of memory. */
static fl_means_pattern *find_pattern(fl_means *m, fl_means_pattern *key) {
    fl_intern_slot *slot =
        fl_intern_find(&m->by_runs, fl_hash(key->first, (key->workloads + 1) * sizeof *key->first), same_runs, m, key);
    const bool is_new = slot && slot->index == UINT32_MAX;
    if (!slot || (is_new && fl_grow(&m->pattern, &m->room, m->count + 1, sizeof *m->pattern))) {
        free(key->first);
        return NULL;
    }
    if (is_new) {
        slot->index = (uint32_t)m->count;
        m->pattern[m->count++] = *key;
    } else {
        free(key->first);
    }
    return &m->pattern[slot->index];
}

/* Copies the runs that exist. */
static fl_status pattern_of(const double *value, size_t workloads, size_t seeds, fl_means_pattern *p, fl_diag *d) {
    *p = (fl_means_pattern){.first = calloc(workloads + 1, sizeof *p->first)};
    if (!p->first)
        return fl_no_memory(d, "the statistics");
    for (size_t w = 0; w < workloads; w++) {
        const size_t before = p->runs;
        for (size_t k = 0; k < seeds; k++)
            p->runs += isnan(value[w * seeds + k]) ? 0 : 1;
        if (p->runs > before)
            p->first[++p->workloads] = p->runs;
        p->seeds |= p->runs > before + 1;
    }
    return FL_OK;
}

static double mean_of(const double *value, size_t workloads, size_t seeds, size_t with) {
    double all = 0;
    for (size_t w = 0; w < workloads; w++) {
        double sum = 0;
        size_t runs = 0;
        for (size_t k = 0; k < seeds; k++)
            if (!isnan(value[w * seeds + k])) {
                sum += value[w * seeds + k];
                runs++;
            }
        all += runs ? sum / (double)runs : 0;
    }
    return with ? all / (double)with : (double)NAN;
}

static fl_status queue(fl_means *m, fl_means_pattern *p, const double *value, size_t size, fl_interval *out,
                       fl_diag *d) {
    const size_t group = p->count / LANES, lane = p->count % LANES;
    if (fl_grow(&p->out, &p->out_room, p->count + 1, sizeof *p->out) ||
        fl_grow(&p->value, &p->value_room, (group + 1) * p->runs * LANES, sizeof *p->value))
        return fl_no_memory(d, "the statistics");
    double *to = p->value + group * p->runs * LANES;
    if (!lane)
        memset(to, 0, p->runs * LANES * sizeof *to);
    for (size_t i = 0, run = 0; i < size; i++)
        if (!isnan(value[i]))
            to[run++ * LANES + lane] = value[i];
    p->out[p->count++] = out;
    m->held += lane ? 0 : p->runs * LANES;
    return FL_OK;
}

fl_status fl_means_add(fl_means *m, const double *value, size_t workloads, size_t seeds, fl_interval *out, fl_diag *d) {
    fl_means_pattern key;
    *out = (fl_interval){NAN, NAN, NAN, 0, 0};
    fl_status s = pattern_of(value, workloads, seeds, &key, d);
    if (s)
        return s;
    *out = (fl_interval){mean_of(value, workloads, seeds, key.workloads), NAN, NAN, key.workloads, key.runs};
    if (key.workloads < 2 && !key.seeds) {
        free(key.first);
        return FL_OK;
    }
    fl_means_pattern *p = find_pattern(m, &key);
    s = p ? queue(m, p, value, workloads * seeds, out, d) : fl_no_memory(d, "the statistics");
    const size_t most = p && p->count % LANES ? 4 * (size_t)WAITING_MOST : WAITING_MOST;
    return !s && m->held > most ? fl_means_draw(m, d) : s;
}

/* ---- draws ---- */

typedef struct drawing {
    const fl_means_pattern *p;
    fl_random r;
    uint32_t *pick; /* the runs of `block` draws, one draw after the other; where seeds differ, each workload's number
                       of runs precedes them */
    size_t block;
    double *drawn; /* LANES x draws of each group of a chunk */
} drawing;

/* fl_random_below for a constant n. */
static uint64_t below(fl_random *r, uint64_t n, uint64_t limit) {
    uint64_t x;
    do
        x = fl_random_next(r);
    while (x < limit);
    return x % n;
}

static size_t longest(const fl_means_pattern *p) { /* length of a draw's picks, at most */
    size_t most = 0;
    for (size_t w = 0; p->seeds && w < p->workloads; w++)
        most = p->first[w + 1] - p->first[w] > most ? p->first[w + 1] - p->first[w] : most;
    return p->workloads * (1 + most);
}

static void make_picks(drawing *g, size_t draws) {
    const fl_means_pattern *p = g->p;
    const uint64_t n = p->workloads, limit = -n % n;
    uint32_t *to = g->pick;
    for (size_t i = 0; i < draws * p->workloads; i++) {
        const size_t w = n > 1 ? (size_t)below(&g->r, n, limit) : 0;
        if (!p->seeds) {
            *to++ = (uint32_t)p->first[w];
            continue;
        }
        const uint64_t runs = p->first[w + 1] - p->first[w], rest = -runs % runs;
        *to++ = (uint32_t)runs;
        if (runs == 1)
            *to++ = (uint32_t)p->first[w];
        for (size_t k = 0; runs > 1 && k < runs; k++)
            *to++ = (uint32_t)(p->first[w] + below(&g->r, runs, rest));
    }
}

static inline void add(double to[LANES], const double *value) {
#pragma GCC unroll 8
    for (size_t k = 0; k < LANES; k++)
        to[k] += value[k];
}

static inline void divide(double to[LANES], double by) {
    for (size_t k = 0; k < LANES; k++)
        to[k] /= by;
}

/* A draw of eight means. Returns where the next draw's picks begin. */
static const uint32_t *redraw(const fl_means_pattern *p, const double *value, const uint32_t *pick, double sum[LANES]) {
    memset(sum, 0, LANES * sizeof *sum);
    if (!p->seeds) {
        for (size_t i = 0; i < p->workloads; i++)
            add(sum, value + (size_t)pick[i] * LANES);
        return pick + p->workloads;
    }
    for (size_t i = 0; i < p->workloads; i++) {
        const uint32_t runs = *pick++;
        double of_seeds[LANES] = {0};
        for (uint32_t k = 0; k < runs; k++, pick++) { /* many runs do not fit a near cache */
            __builtin_prefetch(value + (size_t)pick[k + AHEAD < runs ? AHEAD : 0] * LANES);
            add(of_seeds, value + (size_t)*pick * LANES);
        }
        divide(of_seeds, (double)runs);
        add(sum, of_seeds);
    }
    return pick;
}

static void draw_group(const fl_means *m, const drawing *g, size_t group, size_t from, size_t draws, double *drawn) {
    const fl_means_pattern *p = g->p;
    const uint32_t *pick = g->pick;
    const double *value = p->value + group * p->runs * LANES;
    for (size_t i = from; i < from + draws; i++) {
        double sum[LANES];
        pick = redraw(p, value, pick, sum);
        if (!m->sums)
            divide(sum, (double)p->workloads);
        for (size_t k = 0; k < LANES; k++)
            drawn[k * m->b.draws + i] = sum[k];
    }
}

/* Handles groups `from` to `to`. It draws in blocks; where one block holds all draws, the next groups reuse its picks.
 */
static void draw_chunk(const fl_means *m, drawing *g, size_t from, size_t to) {
    const size_t draws = m->b.draws, whole = LANES * draws;
    if (g->block < draws)
        g->r = fl_random_seed(m->b.seed, m->stream);
    for (size_t i = 0; i < draws; i += g->block) {
        const size_t n = draws - i < g->block ? draws - i : g->block;
        if (g->block < draws || !from)
            make_picks(g, n);
        for (size_t k = from; k < to; k++)
            draw_group(m, g, k, i, n, g->drawn + (k - from) * whole);
    }
    for (size_t k = from * LANES; k < to * LANES && k < g->p->count; k++)
        fl_bootstrap_ends(g->drawn + (k - from * LANES) * draws, draws, g->p->out[k]);
}

static fl_status draw_pattern(const fl_means *m, const fl_means_pattern *p, fl_diag *d) {
    const size_t groups = (p->count + LANES - 1) / LANES, draws = m->b.draws, most = longest(p);
    const size_t fit = PICKS_MOST / most, wide = DRAWN_MOST / LANES / draws;
    const size_t block = fit < 1 ? 1 : fit < draws ? fit : draws, chunk = wide < 1 ? 1 : wide < groups ? wide : groups;
    if (!p->count)
        return FL_OK;
    drawing g = {.p = p,
                 .r = fl_random_seed(m->b.seed, m->stream),
                 .pick = malloc(block * most * sizeof *g.pick),
                 .block = block,
                 .drawn = malloc(chunk * LANES * draws * sizeof *g.drawn)};
    const bool made = g.pick && g.drawn;
    for (size_t k = 0; made && k < groups; k += chunk)
        draw_chunk(m, &g, k, k + chunk < groups ? k + chunk : groups);
    free(g.pick);
    free(g.drawn);
    return made ? FL_OK : fl_no_memory(d, "the statistics");
}

void fl_means_free(fl_means *m) {
    for (size_t i = 0; i < m->count; i++) {
        free(m->pattern[i].first);
        free(m->pattern[i].value);
        free(m->pattern[i].out);
    }
    free(m->pattern);
    fl_intern_free(&m->by_runs);
    *m = (fl_means){.b = m->b, .stream = m->stream, .sums = m->sums};
}

fl_status fl_means_draw(fl_means *m, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < m->count; i++)
        s = draw_pattern(m, &m->pattern[i], d);
    fl_means_free(m);
    return s;
}

fl_status fl_bootstrap_mean(const double *value, size_t workloads, size_t seeds, const fl_bootstrap *b,
                            fl_interval *out, fl_diag *d) {
    fl_means m = {.b = *b};
    fl_status s = fl_means_add(&m, value, workloads, seeds, out, d);
    if (!s)
        s = fl_means_draw(&m, d);
    fl_means_free(&m);
    return s;
}
