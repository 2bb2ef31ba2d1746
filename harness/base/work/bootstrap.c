/* Bootstrap of paired differences and of ranks. */
#include "harness/base/work/inside.h"

#include "harness/base/work/work.h"
#include "policies/random.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Returns how many values a row has; *single is the value where there is only one. */
static size_t count_row(const double *row, size_t seeds, double *single) {
    size_t n = 0;
    for (size_t k = 0; k < seeds; k++)
        if (!isnan(row[k]) && ++n)
            *single = row[k];
    return n;
}

fl_status fl_means_add_paired(fl_means *m, const double *a, const double *b, size_t workloads, size_t seeds, double tie,
                              fl_paired *out, fl_diag *d) {
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
    fl_status s = fl_means_add(m, difference, workloads, seeds, &out->difference, d);
    free(difference);
    return s;
}

/* ---- ranks ---- */

/* The largest first, NAN last; equal values keep their order. */
static int by_value(const void *pa, const void *pb) {
    const fl_ranked *a = pa, *b = pb;
    const int before = (a->value > b->value) - (a->value < b->value) + !!isnan(b->value) - !!isnan(a->value);
    return before ? -before : (a->index > b->index) - (a->index < b->index);
}

const fl_ranked *fl_ranks(const double *value, size_t count, fl_ranked *room, double *rank) {
    for (size_t i = 0; i < count; i++)
        room[i] = (fl_ranked){value[i], i};
    if (count)
        qsort(room, count, sizeof *room, by_value);
    const fl_ranked *r = room;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && r[end].value == r[i].value;)
            end++;
        for (size_t k = i; k < end; k++)
            rank[r[k].index] = isnan(r[i].value) ? (double)NAN : (double)(i + end + 1) / 2;
    }
    return r;
}

/* Values of policies x workloads. Only existing runs are stored, packed: those of policy p under workload w start at
 * run[first[p * workloads + w]]. */
typedef struct ranking {
    double *run;
    size_t *first;
    size_t policies, workloads, *list, listed; /* list: workloads where every policy has a value */
    bool several;                              /* some policy has several runs of one of these workloads */
    double *mean, *rank;                       /* one per policy */
    fl_ranked *room;
} ranking;

static fl_status ranking_open(ranking *g, const double *value, size_t policies, size_t workloads, size_t seeds,
                              fl_diag *d) {
    *g = (ranking){.run = malloc((policies * workloads * seeds + 1) * sizeof *g->run),
                   .first = calloc(policies * workloads + 1, sizeof *g->first),
                   .policies = policies,
                   .workloads = workloads,
                   .list = calloc(workloads + 1, sizeof *g->list),
                   .mean = calloc(policies + 1, sizeof *g->mean),
                   .rank = calloc(policies + 1, sizeof *g->rank),
                   .room = calloc(policies + 1, sizeof *g->room)};
    if (!g->run || !g->first || !g->list || !g->mean || !g->rank || !g->room)
        return fl_no_memory(d, "the statistics");
    size_t runs = 0;
    for (size_t i = 0; i < policies * workloads; i++) {
        for (size_t k = 0; k < seeds; k++)
            if (!isnan(value[i * seeds + k]))
                g->run[runs++] = value[i * seeds + k];
        g->first[i + 1] = runs;
    }
    for (size_t w = 0; w < workloads; w++) {
        bool all = true;
        for (size_t p = 0; p < policies && all; p++) {
            const size_t *first = &g->first[p * workloads + w], n = first[1] - first[0];
            all = n > 0;
            g->several |= n > 1;
        }
        if (all)
            g->list[g->listed++] = w;
    }
    return FL_OK;
}

static void ranking_close(ranking *g) {
    free(g->run);
    free(g->first);
    free(g->list);
    free(g->mean);
    free(g->rank);
    free(g->room);
}

/* Ranks in one workload, by the means over all seeds (r NULL) or over newly drawn seeds. */
static void rank_workload(ranking *g, size_t w, fl_random *r) {
    for (size_t p = 0; p < g->policies; p++) {
        const size_t *first = &g->first[p * g->workloads + w], n = first[1] - first[0];
        const double *run = g->run + first[0];
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += run[n > 1 && r ? (size_t)fl_random_below(r, n) : i];
        g->mean[p] = sum / (double)n;
    }
    fl_ranks(g->mean, g->policies, g->room, g->rank);
}

/* Ranks of all runs. share: policies x listed, each rank as its share of the mean. */
static void rank_all(ranking *g, double *share, fl_rank_result *out) {
    for (size_t i = 0; i < g->listed; i++) {
        double most = -HUGE_VAL;
        rank_workload(g, g->list[i], NULL);
        for (size_t p = 0; p < g->policies; p++)
            most = fmax(most, g->mean[p]);
        for (size_t p = 0; p < g->policies; p++) {
            out[p].firsts += g->mean[p] == most;
            share[p * g->listed + i] = g->rank[p] / (double)g->listed;
            out[p].rank.mean += share[p * g->listed + i];
        }
    }
}

/* Where no workload has several runs, its ranks are the same in every draw. */
static fl_status draw_shares(const ranking *g, const double *share, const fl_bootstrap *b, fl_rank_result *out,
                             fl_diag *d) {
    fl_means m = {.b = *b, .stream = 1, .sums = true};
    fl_status s = FL_OK;
    for (size_t p = 0; !s && p < g->policies; p++) {
        const fl_interval known = out[p].rank; /* all but the ends of the interval */
        s = fl_means_add(&m, share + p * g->listed, g->listed, 1, &out[p].rank, d);
        out[p].rank = known;
    }
    if (!s)
        s = fl_means_draw(&m, d);
    fl_means_free(&m);
    return s;
}

/* Draws the same runs of all policies and ranks them together. */
static fl_status draw_ranks(ranking *g, const fl_bootstrap *b, fl_rank_result *out, fl_diag *d) {
    const size_t draws = b->draws, n = g->listed;
    double *means = calloc(g->policies * draws + 1, sizeof *means);
    fl_random r = fl_random_seed(b->seed, 1);
    if (!means)
        return fl_no_memory(d, "the statistics");
    for (size_t i = 0; i < draws; i++)
        for (size_t k = 0; k < n; k++) {
            rank_workload(g, g->list[n > 1 ? fl_random_below(&r, n) : 0], &r);
            for (size_t p = 0; p < g->policies; p++)
                means[p * draws + i] += g->rank[p] / (double)n;
        }
    for (size_t p = 0; p < g->policies; p++)
        fl_bootstrap_ends(means + p * draws, draws, &out[p].rank);
    free(means);
    return FL_OK;
}

fl_status fl_bootstrap_ranks(const double *value, size_t policies, size_t workloads, size_t seeds,
                             const fl_bootstrap *b, fl_rank_result *out, fl_diag *d) {
    ranking g;
    fl_status s = ranking_open(&g, value, policies, workloads, seeds, d);
    double *share = s ? NULL : malloc((policies * g.listed + 1) * sizeof *share);
    if (!s && !share)
        s = fl_no_memory(d, "the statistics");
    for (size_t p = 0; p < policies; p++)
        out[p] = (fl_rank_result){.rank = {g.listed ? 0 : (double)NAN, NAN, NAN, g.listed, 0}};
    if (!s)
        rank_all(&g, share, out);
    if (!s && g.listed && g.several)
        s = draw_ranks(&g, b, out, d);
    else if (!s && g.listed > 1)
        s = draw_shares(&g, share, b, out, d);
    free(share);
    ranking_close(&g);
    return s;
}
