#include "harness/base/bootstrap.h"

#include "policies/random.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double fl_quantile(const double *sorted, size_t count, double q) {
    if (!count)
        return NAN;
    const double at = q * (double)(count - 1);
    const size_t below = (size_t)at;
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

/* Values that exist, packed: those of workload w are value[first[w]] .. value[first[w + 1] - 1]. */
typedef struct packed {
    double *value;
    size_t *first;
    size_t workloads, runs;
    bool seeds; /* some workload has several */
} packed;

static void packed_free(packed *p) {
    free(p->value);
    free(p->first);
}

static fl_status pack(const double *value, size_t workloads, size_t seeds, packed *p, fl_diag *d) {
    *p = (packed){.value = malloc((workloads * seeds + 1) * sizeof *p->value),
                  .first = calloc(workloads + 1, sizeof *p->first)};
    if (!p->value || !p->first) {
        packed_free(p);
        return fl_no_memory(d, "the statistics");
    }
    for (size_t w = 0; w < workloads; w++) {
        const size_t before = p->runs;
        for (size_t k = 0; k < seeds; k++)
            if (!isnan(value[w * seeds + k]))
                p->value[p->runs++] = value[w * seeds + k];
        if (p->runs > before)
            p->first[++p->workloads] = p->runs;
        p->seeds |= p->runs > before + 1;
    }
    return FL_OK;
}

static double mean_of(const double *v, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return sum / (double)n;
}

static double redraw(const packed *p, fl_random *r) {
    double sum = 0;
    for (size_t i = 0; i < p->workloads; i++) {
        const size_t w = p->workloads > 1 ? (size_t)fl_random_below(r, p->workloads) : 0;
        const double *v = p->value + p->first[w];
        const size_t n = p->first[w + 1] - p->first[w];
        double of_seeds = v[0];
        if (n > 1) {
            of_seeds = 0;
            for (size_t k = 0; k < n; k++)
                of_seeds += v[fl_random_below(r, n)];
            of_seeds /= (double)n;
        }
        sum += of_seeds;
    }
    return sum / (double)p->workloads;
}

static void ends(double *mean, const fl_bootstrap *b, fl_interval *out) {
    const double tail = (1 - 0.95) / 2;
    qsort(mean, b->draws, sizeof *mean, ascending);
    out->low = fl_quantile(mean, b->draws, tail);
    out->high = fl_quantile(mean, b->draws, 1 - tail);
}

fl_status fl_bootstrap_mean(const double *value, size_t workloads, size_t seeds, const fl_bootstrap *b,
                            fl_interval *out, fl_diag *d) {
    packed p;
    *out = (fl_interval){NAN, NAN, NAN, 0, 0};
    fl_status s = pack(value, workloads, seeds, &p, d);
    if (s)
        return s;
    out->workloads = p.workloads;
    out->runs = p.runs;
    double sum = 0;
    for (size_t w = 0; w < p.workloads; w++)
        sum += mean_of(p.value + p.first[w], p.first[w + 1] - p.first[w]);
    if (p.workloads)
        out->mean = sum / (double)p.workloads;
    if (p.workloads > 1 || p.seeds) {
        double *mean = malloc(b->draws * sizeof *mean);
        fl_random r = fl_random_seed(b->seed, 0);
        if (!mean)
            s = fl_no_memory(d, "the statistics");
        for (size_t i = 0; mean && i < b->draws; i++)
            mean[i] = redraw(&p, &r);
        if (mean)
            ends(mean, b, out);
        free(mean);
    }
    packed_free(&p);
    return s;
}

/* The single value of a row, at *single; or how many there are. */
static size_t count_row(const double *row, size_t seeds, double *single) {
    size_t n = 0;
    for (size_t k = 0; k < seeds; k++)
        if (!isnan(row[k]) && ++n)
            *single = row[k];
    return n;
}

fl_status fl_bootstrap_paired(const double *a, const double *b, size_t workloads, size_t seeds, double tie,
                              const fl_bootstrap *o, fl_paired *out, fl_diag *d) {
    double *difference = malloc((workloads * seeds + 1) * sizeof *difference);
    *out = (fl_paired){.difference = {NAN, NAN, NAN, 0, 0}};
    if (!difference)
        return fl_no_memory(d, "the statistics");
    for (size_t w = 0; w < workloads; w++) {
        const double *x = a + w * seeds, *y = b + w * seeds;
        double one_x = NAN, one_y = NAN, sum = 0;
        const bool single_x = count_row(x, seeds, &one_x) == 1, single_y = count_row(y, seeds, &one_y) == 1;
        size_t n = 0;
        for (size_t k = 0; k < seeds; k++) {
            double *at = &difference[w * seeds + k];
            *at = single_x && single_y ? (k ? NAN : one_x - one_y)
                                       : (single_x ? one_x : x[k]) - (single_y ? one_y : y[k]);
            if (!isnan(*at)) {
                sum += *at;
                n++;
            }
        }
        if (!n)
            continue;
        sum /= (double)n;
        out->wins += sum > tie;
        out->losses += sum < -tie;
        out->ties += sum >= -tie && sum <= tie;
    }
    fl_status s = fl_bootstrap_mean(difference, workloads, seeds, o, &out->difference, d);
    free(difference);
    return s;
}

static int descending(const void *a, const void *b, void *user) {
    const double *value = user, x = value[*(const size_t *)a], y = value[*(const size_t *)b];
    return isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x < y) - (x > y);
}

void fl_ranks(const double *value, size_t count, size_t *order, double *rank) {
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof *order, descending, (void *)(uintptr_t)value);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && value[order[end]] == value[order[i]];)
            end++;
        for (size_t k = i; k < end; k++)
            rank[order[k]] = isnan(value[order[i]]) ? (double)NAN : (double)(i + end + 1) / 2;
    }
}

/* Ranks in one workload, of the means over all seeds or over seeds drawn anew. r NULL: all. */
typedef struct ranking {
    const double *value;
    size_t policies, workloads, seeds;
    double *mean, *rank;
    size_t *order;
} ranking;

static bool rank_workload(const ranking *g, size_t w, fl_random *r) {
    for (size_t p = 0; p < g->policies; p++) {
        const double *row = g->value + (p * g->workloads + w) * g->seeds;
        double single = NAN, sum = 0;
        const size_t n = count_row(row, g->seeds, &single);
        if (!n)
            return false;
        if (n == 1 || !r) {
            for (size_t k = 0; k < g->seeds; k++)
                sum += isnan(row[k]) ? 0 : row[k];
            g->mean[p] = sum / (double)n;
            continue;
        }
        for (size_t i = 0; i < n; i++) { /* the i-th of those that exist, drawn with replacement */
            size_t at = (size_t)fl_random_below(r, n), k = 0;
            while (isnan(row[k]) || at--)
                k++;
            sum += row[k];
        }
        g->mean[p] = sum / (double)n;
    }
    fl_ranks(g->mean, g->policies, g->order, g->rank);
    return true;
}

/* Workloads where every policy has a value, into list; *several: some policy has several runs of one of them. */
static size_t complete(const ranking *g, size_t *list, bool *several) {
    size_t n = 0;
    *several = false;
    for (size_t w = 0; w < g->workloads; w++) {
        bool all = true;
        for (size_t p = 0; p < g->policies && all; p++) {
            double single;
            const size_t runs = count_row(g->value + (p * g->workloads + w) * g->seeds, g->seeds, &single);
            all = runs > 0;
            *several |= runs > 1;
        }
        if (all)
            list[n++] = w;
    }
    return n;
}

fl_status fl_bootstrap_ranks(const double *value, size_t policies, size_t workloads, size_t seeds,
                             const fl_bootstrap *b, fl_rank_result *out, fl_diag *d) {
    const size_t draws = b->draws;
    ranking g = {value, policies, workloads, seeds, NULL, NULL, NULL};
    size_t *list = calloc(workloads + 1, sizeof *list);
    double *means = calloc(policies * draws + 1, sizeof *means);
    g.mean = calloc(policies + 1, sizeof *g.mean);
    g.rank = calloc(policies + 1, sizeof *g.rank);
    g.order = calloc(policies + 1, sizeof *g.order);
    fl_status s = list && means && g.mean && g.rank && g.order ? FL_OK : fl_no_memory(d, "the statistics");
    bool several = false;
    const size_t n = s ? 0 : complete(&g, list, &several);
    for (size_t p = 0; p < policies; p++)
        out[p] = (fl_rank_result){.rank = {n ? 0 : (double)NAN, NAN, NAN, n, 0}};
    for (size_t i = 0; i < n; i++) {
        rank_workload(&g, list[i], NULL);
        for (size_t p = 0; p < policies; p++) {
            out[p].firsts += g.mean[g.order[0]] == g.mean[p];
            out[p].rank.mean += g.rank[p] / (double)n;
        }
    }
    fl_random r = fl_random_seed(b->seed, 1);
    for (size_t i = 0; (n > 1 || (n && several)) && i < draws; i++)
        for (size_t k = 0; k < n; k++) {
            rank_workload(&g, list[n > 1 ? fl_random_below(&r, n) : 0], &r);
            for (size_t p = 0; p < policies; p++)
                means[p * draws + i] += g.rank[p] / (double)n;
        }
    for (size_t p = 0; (n > 1 || (n && several)) && p < policies; p++)
        ends(means + p * draws, b, &out[p].rank);
    free(list);
    free(means);
    free(g.mean);
    free(g.rank);
    free(g.order);
    return s;
}
