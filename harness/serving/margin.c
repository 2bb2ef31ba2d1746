/* A choice of servers and clocks that also holds for other arrivals, and for the law's error. */
#include "harness/serving/inside.h"

#include "harness/base/work/work.h"
#include "harness/input/scene/scene.h"
#include "harness/serving/serving.h"
#include "harness/study/trial/trial.h"
#include "models/laws/laws.h"
#include "policies/random.h"
#include "sim/node/node.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS_LEAST = 20 };
#define SEED 1
#define SD_OF_MEAN 1.2533 /* a normal's standard deviation over its mean absolute deviation: sqrt(pi / 2) */

/* Draw the requests anew by a local block bootstrap (Paparoditis and Politis, 2002). Each block of n^(1/3) requests,
 * with the gaps before them, is replaced by one that begins at most n^(2/3) requests away. This keeps bursts, and the
 * change of the rate over the day. */
static void redraw(fl_requests *r, fl_random *random) {
    const int64_t n = (int64_t)r->count, block = (int64_t)cbrt((double)n), near = block * block;
    if (n < FL_SERVING_REDRAWN_LEAST)
        return;
    fl_request_row *old = fl_must(malloc(r->count * sizeof *old));
    memcpy(old, r->row, r->count * sizeof *old);
    int64_t t_ns = old[0].t_ns;
    for (int64_t i = 0; i < n; i += block) {
        const int64_t first = i - near > 1 ? i - near : 1, last = i + near < n - block ? i + near : n - block;
        const int64_t from = first + (int64_t)fl_random_below(random, (uint64_t)(last - first) + 1);
        for (int64_t k = 0; k < block && i + k < n; k++) {
            if (i + k)
                t_ns += old[from + k].t_ns - old[from + k - 1].t_ns;
            r->row[i + k] = old[from + k];
            r->row[i + k].t_ns = t_ns;
        }
    }
    free(old);
}

typedef struct draws { /* of one number of servers */
    const fl_serving_oracle_options *o;
    fl_scenes scenes; /* one a draw */
    fl_run_result *standard;
    const fl_serving_point *point; /* the one that is tried */
    double *energy_j;              /* at it */
    bool *broken;
    size_t count, tried; /* tried: at the point, the last ones first */
} draws;

static fl_status run_standard(void *user, size_t k, fl_diag *d) {
    const draws *w = user;
    fl_scene *s = w->scenes.item[k];
    const fl_run_options run = {.w = s->w, .rates = s->rates, .spec = &s->platform.node, .facts = &s->facts};
    return fl_run(&run, &w->standard[k], d);
}

static fl_status run_point(void *user, size_t i, fl_diag *d) {
    const draws *w = user;
    const size_t k = w->count - 1 - w->tried - i;
    const fl_promised_under under = {w->o->promises, w->o->bound, 0, w->o->objective};
    fl_static_point ignored;
    fl_row_result row;
    const fl_status s =
        fl_static_promised(w->scenes.item[k], &w->standard[k], &under, &w->point->at, &ignored, &row, d);
    if (!s) {
        w->energy_j[k] = row.score.energy_j;
        w->broken[k] = row.violated > 0;
    }
    fl_row_free(&row);
    return s;
}

/* Draw k has the same requests and the same error of the law for every number of servers. */
static fl_status open_draws(const fl_serving_oracle_options *o, uint32_t servers, draws *w, fl_diag *d) {
    w->o = o;
    w->standard = fl_must(calloc(w->count, sizeof *w->standard));
    w->energy_j = fl_must(calloc(w->count, sizeof *w->energy_j));
    w->broken = fl_must(calloc(w->count, sizeof *w->broken));
    fl_status s = FL_OK;
    for (size_t k = 0; !s && k < w->count; k++) {
        s = fl_serving_open(o->scene, servers, &w->scenes, d);
        if (s)
            break;
        fl_serving_scene *serving = w->scenes.item[k]->serving;
        fl_random random = fl_random_seed(SEED, k);
        const double sd = SD_OF_MEAN * fmax(0, serving->law.time_error);
        const double off = gsl_cdf_ugaussian_Pinv(((double)k + 0.5) / (double)w->count); /* even, so few draws do */
        fl_serving_scale(&serving->law, (fl_serving_factors){exp(sd * off), 1, 1});
        redraw(&serving->requests, &random);
    }
    return s ? s : fl_pool_run(run_standard, w, w->count, o->threads, "draws of arrivals", d);
}

static void close_draws(draws *w) {
    for (size_t k = 0; k < w->count; k++)
        fl_run_result_free(&w->standard[k]);
    free(w->standard);
    free(w->energy_j);
    free(w->broken);
    fl_scenes_free(&w->scenes);
}

/* Set *broken to the number of draws that break at the point. Give up once they are more than `most`. The slowest laws
 * come first, since they break most often. */
static fl_status try_point(draws *w, const fl_serving_point *p, size_t most, size_t *broken, fl_diag *d) {
    const size_t at_once = fl_threads(w->o->threads);
    fl_status s = FL_OK;
    w->point = p;
    *broken = 0;
    for (w->tried = 0; !s && w->tried < w->count && *broken <= most;) {
        const size_t left = w->count - w->tried, n = left < at_once ? left : at_once;
        s = fl_pool_run(run_point, w, n, w->o->threads, "draws of arrivals", d);
        for (size_t i = 0; i < n; i++)
            *broken += w->broken[left - 1 - i];
        w->tried += n;
    }
    return s;
}

static int by_energy(const void *a, const void *b) {
    const fl_serving_point *x = *(fl_serving_point *const *)a, *y = *(fl_serving_point *const *)b;
    const double p = x->row.score.energy_j, q = y->row.score.energy_j;
    return p < q ? -1 : p > q ? 1 : (x < y) - (x > y); /* of equals the higher clock, which comes later */
}

static bool is_slower(const fl_choice *a, const fl_choice *than) {
    return a->sm_mhz <= than->sm_mhz && a->mem_mhz <= than->mem_mhz && a->decode_mhz <= than->decode_mhz;
}

/* Collect the points of so many servers that hold, by energy, without those that are slower than a cheaper one. */
static size_t ascend(fl_serving_oracle *r, uint32_t servers, fl_serving_point **list) {
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < r->count; i++)
        if (r->point[i].servers == servers && !r->point[i].standard && !(r->point[i].row.violated > 0))
            list[n++] = &r->point[i];
    qsort(list, n, sizeof *list, by_energy);
    for (size_t i = 0; i < n; i++) {
        bool slower = false;
        for (size_t k = 0; k < kept; k++)
            slower |= is_slower(&list[i]->at, &list[k]->at);
        if (!slower)
            list[kept++] = list[i];
    }
    return kept;
}

/* Find the cheapest point of the list that breaks in at most `most` draws, and its energies. Where none does, leave
 * *best as it is. The list goes up by energy, without points that are slower than a cheaper one. A bisection would not
 * do: with pools a point of more energy may have a lower clock in one pool, and may break although a cheaper one holds.
 */
static fl_status cheapest(draws *w, fl_serving_point **list, size_t count, size_t most, const fl_serving_point **best,
                          fl_serving_margin *m, double *energy_j, fl_diag *d) {
    for (size_t i = 0; i < count; i++) {
        size_t broken;
        const fl_status s = try_point(w, list[i], most, &broken, d);
        if (s)
            return s;
        if (broken <= most) {
            *best = list[i];
            m->broken = broken;
            memcpy(energy_j, w->energy_j, w->count * sizeof *energy_j);
            return FL_OK;
        }
    }
    return FL_OK;
}

/* Two standard deviations of the saving over the draws, with the law's error of power at two clocks. */
static double saving_range(const fl_serving_oracle *r, const fl_serving_point *best, const double *energy_j,
                           const double *all_j, size_t n) {
    double mean = 0, squares = 0;
    for (size_t k = 0; k < n; k++)
        mean += energy_j[k] / all_j[k] / (double)n;
    for (size_t k = 0; k < n; k++)
        squares += pow(energy_j[k] / all_j[k] - mean, 2);
    const double power = SD_OF_MEAN * fmax(0, r->scenes.item[0]->serving->law.power_error);
    const double left = 100 - best->row.energy_saving_pct;
    return 2 * hypot(100 * sqrt(squares / (double)(n - 1)), left * sqrt(2) * power);
}

fl_status fl_serving_margin_choose(const fl_serving_oracle_options *o, double risk, fl_serving_oracle *r,
                                   fl_serving_margin *m, fl_diag *d) {
    const size_t n = (size_t)fmax(DRAWS_LEAST, ceil(1 / risk - 1)), all = r->scenes.count;
    const size_t most = (size_t)(risk * (double)(n + 1) + 1e-9) - 1; /* (most + 1) / (n + 1) <= risk */
    const fl_serving_scene *serving = r->scenes.item[0]->serving;
    const bool few = serving->requests.count < FL_SERVING_REDRAWN_LEAST;
    const fl_serving_point *best = NULL;
    *m = (fl_serving_margin){.recorded = r->best, .saving_range = NAN};
    if (r->best == r->count || (few && !(serving->law.time_error >= 0)))
        return FL_OK;
    m->draws = n;
    fl_serving_point **list = fl_must(malloc((r->count + 1) * sizeof *list));
    double *energy_j = fl_must(calloc(2 * n, sizeof *energy_j)), *all_j = energy_j + n;
    fl_status s = FL_OK;
    for (size_t i = all; !s && i-- > 0;) { /* the first has all servers, which savings are set against */
        draws w = {.count = n};
        s = open_draws(o, (uint32_t)i + 1, &w, d);
        for (size_t k = 0; !s && i + 1 == all && k < n; k++)
            all_j[k] = w.standard[k].energy_j;
        size_t count = s ? 0 : ascend(r, (uint32_t)i + 1, list);
        while (count && best && !(list[count - 1]->row.score.energy_j < best->row.score.energy_j))
            count--;
        if (!s)
            s = cheapest(&w, list, count, most, &best, m, energy_j, d);
        close_draws(&w);
    }
    r->best = best ? (size_t)(best - r->point) : r->count;
    if (best && !few)
        m->saving_range = saving_range(r, best, energy_j, all_j, n);
    free(list);
    free(energy_j);
    return s;
}
