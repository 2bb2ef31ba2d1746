/* The planner of clocks: against every plan of tiny pipelines, against the engine, and what its bound promises. */
#include "policies/random.h"
#include "sim/pipeline/inside.h"
#include "sim/pipeline/pipeline.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/pipeline/pipeline.h"
#include "tests/support/random_pipeline.h"

#include <string.h>

#define SEED 230

static void free_points(fl_plan_point *p, size_t count) {
    for (size_t i = 0; i < count; i++)
        fl_plan_point_free(&p[i]);
    free(p);
}

/* ---- every plan ---- */

typedef struct every { /* all plans of a tiny pipeline */
    double *time_s, *energy_j;
    size_t count;
} every;

static every all_plans(const fl_plan_program *g, uint32_t clocks) {
    every e = {.count = 1};
    for (size_t i = 0; i < g->part_count; i++)
        e.count *= clocks;
    e.time_s = fx_alloc(e.count, sizeof *e.time_s);
    e.energy_j = fx_alloc(e.count, sizeof *e.energy_j);
    double *length = fx_alloc(g->path.count, sizeof *length), *ends = fx_alloc(g->path.count, sizeof *ends);
    uint32_t *at = fx_alloc(g->part_count, sizeof *at);
    for (size_t n = 0; n < e.count; n++) {
        size_t rest = n;
        for (size_t i = 0; i < g->part_count; i++, rest /= clocks)
            at[i] = (uint32_t)(rest % clocks);
        e.time_s[n] = fl_plan_time(g, at, length, ends);
        e.energy_j[n] = fl_plan_energy(g, at, e.time_s[n]);
    }
    free(length);
    free(ends);
    free(at);
    return e;
}

static double least_within(const every *e, double limit_s) {
    double least = INFINITY;
    for (size_t n = 0; n < e->count; n++)
        if (e->time_s[n] <= limit_s * (1 + 1e-12))
            least = fmin(least, e->energy_j[n]);
    return least;
}

static void test_brute_force(void) {
    static const fl_pipeline_shape shapes[] = {{FL_PIPELINE_1F1B, 2, 1, 1, 5},  {FL_PIPELINE_1F1B, 2, 2, 1, 3},
                                               {FL_PIPELINE_GPIPE, 2, 2, 1, 3}, {FL_PIPELINE_1F1B, 4, 1, 1, 3},
                                               {FL_PIPELINE_1F1B, 1, 5, 1, 3},  {FL_PIPELINE_INTERLEAVED, 2, 2, 2, 2}};
    fl_random g = fl_random_seed(SEED, 1);
    double sum = 0, worst = 0;
    size_t plans = 0, optimal = 0;
    for (int n = 0; n < 24; n++) {
        const fl_pipeline_shape *s = &shapes[n % 6];
        fl_pipeline_rig r;
        fl_rig_make(&r, &g, s);
        fl_rig_begin(&r, s->clocks, NULL);
        fl_plan_point *point;
        size_t found;
        FX_MUST(fl_plan_frontier(&r.pl, 12, &point, &found, d));
        const every e = all_plans(&r.g, s->clocks);
        size_t beaten = 0;
        double edp = INFINITY;
        for (size_t k = 0; k < e.count; k++) {
            beaten += e.energy_j[k] < fl_plan_bound(&r.pl, e.time_s[k]) * (1 - 1e-12);
            edp = fmin(edp, e.energy_j[k] * e.time_s[k]);
        }
        FL_CHECK(!beaten, "seed %d, case %d: %zu of %zu plans beat the bound", SEED, n, beaten, e.count);
        FL_CHECK(edp >= fl_plan_product_bound(&r.pl, 1) * (1 - 1e-12), "seed %d, case %d: EDP %.9g, bound %.9g", SEED,
                 n, edp, fl_plan_product_bound(&r.pl, 1));
        for (size_t i = 0; i < found; i++) {
            const double best = least_within(&e, point[i].limit_s), over = point[i].energy_j / best - 1;
            FL_CHECK(point[i].bound_j <= least_within(&e, point[i].time_s) * (1 + 1e-12),
                     "seed %d, case %d: bound %.9g above the optimum %.9g", SEED, n, point[i].bound_j, best);
            FL_CHECK(over > -1e-12, "seed %d, case %d: %.9g J below the optimum %.9g", SEED, n, point[i].energy_j,
                     best);
            sum += over;
            worst = fmax(worst, over);
            optimal += over < 1e-9;
            plans++;
        }
        free(e.time_s);
        free(e.energy_j);
        free_points(point, found);
        fl_rig_end(&r);
    }
    printf("(%zu of %zu plans are the best of all, mean %.2f %% above, worst %.2f %%) ", optimal, plans,
           100 * sum / (double)plans, 100 * worst);
    FL_CHECK(sum / (double)plans < 0.002 && worst < 0.02, "mean %.3g, worst %.3g above the optimum",
             sum / (double)plans, worst);
}

/* ---- the engine, and what a frontier is ---- */

static void test_engine(void) {
    fl_random g = fl_random_seed(SEED, 2);
    for (int n = 0; n < 12; n++) {
        const uint32_t stages = 2 + (uint32_t)fl_random_below(&g, 3), chunks = 1 + (uint32_t)fl_random_below(&g, 2);
        const fl_pipeline_shape s = {
            chunks > 1 ? FL_PIPELINE_INTERLEAVED : (fl_pipeline_schedule)fl_random_below(&g, 2), stages,
            stages * (1 + (uint32_t)fl_random_below(&g, 4)), chunks, 4 + (uint32_t)fl_random_below(&g, 8)};
        fl_pipeline_rig r;
        fl_rig_make(&r, &g, &s);
        fl_rig_begin(&r, s.clocks, NULL);
        fl_plan_point *point;
        size_t found;
        FX_MUST(fl_plan_frontier(&r.pl, 20, &point, &found, d));
        FL_CHECK(found > 1, "seed %d, case %d: %zu points", SEED, n, found);
        for (size_t i = 0; i < found; i++) {
            fl_pipeline_clocks c;
            double seconds, joules;
            FX_MUST(fl_plan_clocks(&r.g, point[i].at, &c, d));
            FX_MUST(fl_pipeline_run(&r.p, &r.o, &r.node, &c, &seconds, &joules, d));
            FL_CHECK(fx_near(seconds, point[i].time_s, 1e-9) && fx_near(joules, point[i].energy_j, 1e-9),
                     "seed %d, case %d: %.12g s and %.12g J, the engine %.12g and %.12g", SEED, n, point[i].time_s,
                     point[i].energy_j, seconds, joules);
            FL_CHECK(point[i].time_s <= point[i].limit_s * (1 + 1e-9), "%.12g s, asked for %.12g", point[i].time_s,
                     point[i].limit_s);
            FL_CHECK(point[i].bound_j <= point[i].energy_j * (1 + 1e-12), "bound %.9g above %.9g", point[i].bound_j,
                     point[i].energy_j);
            FL_CHECK(!i || (point[i].time_s > point[i - 1].time_s && point[i].energy_j < point[i - 1].energy_j),
                     "seed %d, case %d: point %zu is slower or dearer than the one before", SEED, n, i);
            fl_pipeline_clocks_free(&c);
        }
        free_points(point, found);
        fl_rig_end(&r);
    }
}

/* Random plans of a pipeline that is too large to try all: none is below the bound. */
static void test_bound(void) {
    fl_random g = fl_random_seed(SEED, 3);
    const fl_pipeline_shape s = {FL_PIPELINE_1F1B, 4, 16, 1, 9};
    fl_pipeline_rig r;
    fl_rig_make(&r, &g, &s);
    fl_rig_begin(&r, s.clocks, NULL);
    fl_plan_point *point;
    size_t found, wide = 0;
    FX_MUST(fl_plan_frontier(&r.pl, 40, &point, &found, d));
    double *length = fx_alloc(r.g.path.count, sizeof *length), *ends = fx_alloc(r.g.path.count, sizeof *ends);
    uint32_t *at = fx_alloc(r.g.part_count, sizeof *at);
    for (int n = 0; n < (fl_nightly() ? 3000 : 600); n++) {
        /* A plan of the frontier, some of its clocks changed. */
        const fl_plan_point *from = &point[fl_random_below(&g, found)];
        const uint64_t change = 1 + fl_random_below(&g, 30);
        for (size_t i = 0; i < r.g.part_count; i++)
            at[i] = fl_random_below(&g, 40) < change ? (uint32_t)fl_random_below(&g, s.clocks) : from->at[i];
        const double t = fl_plan_time(&r.g, at, length, ends), e = fl_plan_energy(&r.g, at, t);
        FL_CHECK(e >= fl_plan_bound(&r.pl, t) * (1 - 1e-12), "seed %d, plan %d: %.12g J, bound %.12g", SEED, n, e,
                 fl_plan_bound(&r.pl, t));
    }
    for (size_t i = 0; i < found; i++)
        wide += point[i].energy_j > 1.005 * point[i].bound_j;
    FL_CHECK(wide * 20 <= found, "%zu of %zu points are more than 0.5 %% above the bound", wide, found);
    free(length);
    free(ends);
    free(at);
    free_points(point, found);
    fl_rig_end(&r);
}

static void test_again(void) {
    double energy[2][10];
    size_t found[2];
    for (int n = 0; n < 2; n++) {
        fl_random g = fl_random_seed(SEED, 4);
        const fl_pipeline_shape s = {FL_PIPELINE_1F1B, 3, 6, 1, 7};
        fl_pipeline_rig r;
        fl_plan_point *point;
        fl_rig_make(&r, &g, &s);
        fl_rig_begin(&r, s.clocks, NULL);
        FX_MUST(fl_plan_frontier(&r.pl, 10, &point, &found[n], d));
        for (size_t i = 0; i < found[n]; i++)
            energy[n][i] = point[i].energy_j;
        fl_plan_point_free(&point[0]);
        FL_CHECK(!point[0].at && !point[0].energy_j, "freed, it is empty");
        free_points(point, found[n]); /* and may be freed again */
        fl_rig_end(&r);
    }
    FL_CHECK(found[0] == found[1] && !memcmp(energy[0], energy[1], found[0] * sizeof **energy), "not the same again");
}

/* ---- what else may be asked ---- */

/* A rank that is slow holds all; the others may run slower for nothing, and a limit keeps clocks out. */
static void test_straggler_and_limit(void) {
    fl_random g = fl_random_seed(SEED, 5);
    const fl_pipeline_shape s = {FL_PIPELINE_1F1B, 3, 6, 1, 9};
    fl_pipeline_rig r, slow = {0};
    fl_rig_make(&r, &g, &s);
    CU_ASSERT(fl_head_set(&r.p.head, "from", "a test"));
    FX_MUST(fl_pipeline_slowed(&r.p, 1, 1.5, &slow.p, d));
    const char *said = fl_head_get(&slow.p.head, "from");
    FL_CHECK(said && strcmp(said, "a test") == 0 && slow.p.row_count == r.p.row_count, "the head and all rows");
    fl_rig_begin(&r, s.clocks, NULL);
    fl_rig_begin(&slow, s.clocks, NULL);
    for (uint32_t k = 0; k < 2; k++) {
        const fl_plan_table *plain = &r.g.table[2 + k], *late = &slow.g.table[2 + k];
        for (size_t i = 0; i < plain->count; i++)
            FL_CHECK(fabs(late->time_s[i] - 1.5 * plain->time_s[i]) < 2e-9 && late->power_w[i] == plain->power_w[i],
                     "half as slow again, at the same power");
        FL_CHECK(slow.g.table[0].time_s[k] == r.g.table[0].time_s[k], "the others as they were");
    }
    FL_CHECK(slow.pl.fastest_s > r.pl.fastest_s, "slower");
    fl_pipeline none;
    FL_CHECK(fl_pipeline_slowed(&r.p, 3, 1.5, &none, NULL) == FL_BAD_INPUT && !none.row, "no such rank");
    fl_rig_end(&slow);

    double limit[3] = {INFINITY, 0.5 * (r.g.table[2].power_w[3] + r.g.table[2].power_w[4]), INFINITY};
    limit[1] = fmax(limit[1], r.g.table[3].power_w[0]);
    fl_plan_program held;
    FX_MUST(fl_plan_program_new(&held, &r.p, &r.o, &r.node, limit, d));
    for (size_t k = 2; k < 4; k++) {
        FL_CHECK(held.table[k].count < s.clocks, "some clocks are kept out");
        for (size_t i = 0; i < held.table[k].count; i++)
            FL_CHECK(held.table[k].power_w[i] <= limit[1], "%g W", held.table[k].power_w[i]);
    }
    fl_plan_program_free(&held);
    limit[1] = 1;
    fl_diag d = {0};
    FL_CHECK(fl_plan_program_new(&held, &r.p, &r.o, &r.node, limit, &d) == FL_BAD_INPUT &&
                 strstr(d.message, "rank 1: its forward draws more than the limit of 1 W at every clock"),
             "'%s'", d.message);
    fl_plan_point p;
    const double soon = 0.9 * r.pl.fastest_s;
    FL_CHECK(fl_plan_within(&r.pl, &soon, 1, &p, &d) == FL_BAD_INPUT && strstr(d.message, "no plan takes"), "'%s'",
             d.message);
    fl_rig_end(&r);
}

/* One clock for all, and one for each rank: never below the bound, and the second no worse than what it began with. */
static void test_few_clocks(void) {
    fl_random g = fl_random_seed(SEED, 6);
    const fl_pipeline_shape s = {FL_PIPELINE_1F1B, 4, 8, 1, 9};
    fl_pipeline_rig r;
    fl_plan_point *point;
    size_t found;
    fl_rig_make(&r, &g, &s);
    fl_rig_begin(&r, s.clocks, NULL);
    FX_MUST(fl_plan_frontier(&r.pl, 10, &point, &found, d));
    double *length = fx_alloc(r.g.path.count, sizeof *length), *ends = fx_alloc(r.g.path.count, sizeof *ends);
    uint32_t *at = fx_alloc(r.g.part_count, sizeof *at);
    for (int k = 0; k < 9; k++) {
        int32_t mhz[4] = {1000 + 50 * k, 1000 + 50 * k, 1000 + 50 * k, 1000 + 50 * k};
        fl_plan_at_clocks(&r.g, mhz, at);
        const double t = fl_plan_time(&r.g, at, length, ends), e = fl_plan_energy(&r.g, at, t), price = 300;
        double time_s, energy_j;
        FL_CHECK(e >= fl_plan_bound(&r.pl, t), "static %d MHz beats the bound", mhz[0]);
        FX_MUST(fl_plan_rank_clocks(&r.g, price, mhz, at, &time_s, &energy_j, d));
        FL_CHECK(energy_j + price * time_s <= e + price * t, "no worse than one clock");
        FL_CHECK(energy_j >= fl_plan_bound(&r.pl, time_s), "clocks by rank beat the bound");
    }
    free(length);
    free(ends);
    free(at);
    free_points(point, found);
    fl_rig_end(&r);
}

/* On a ladder of few clocks, too, a plan takes no more than one clock for all that is as fast does, nor the plan of
 * least energy more than any; and whether a plan may have its clocks is known. */
static void test_one_clock(void) {
    fl_random g = fl_random_seed(SEED, 7);
    for (int n = 0; n < (fl_nightly() ? 40 : 10); n++) {
        const fl_pipeline_shape s = {n % 2 ? FL_PIPELINE_1F1B : FL_PIPELINE_GPIPE, 1 + (uint32_t)fl_random_below(&g, 4),
                                     1 + (uint32_t)fl_random_below(&g, 12), 1, 2 + (uint32_t)fl_random_below(&g, 3)};
        fl_pipeline_rig r;
        fl_rig_make(&r, &g, &s);
        fl_rig_begin(&r, s.clocks, NULL);
        for (size_t k = 0; k <= r.pl.same_count; k++) {
            const double limit = k < r.pl.same_count ? r.pl.same[k].time_s : (double)INFINITY;
            fl_plan_point p;
            FX_MUST(fl_plan_within(&r.pl, &limit, 1, &p, d));
            for (size_t i = 0; i < r.pl.same_count; i++)
                FL_CHECK(r.pl.same[i].time_s > limit || p.energy_j <= r.pl.same[i].energy_j * (1 + 1e-12),
                         "seed %d, case %d: %.9g J within %.9g s, %d MHz for all %.9g J", SEED, n, p.energy_j, limit,
                         r.pl.same[i].mhz, r.pl.same[i].energy_j);
            FL_CHECK(p.energy_j >= p.bound_j * (1 - 1e-12) && p.time_s <= limit * (1 + 1e-12), "%.9g J in %.9g s",
                     p.energy_j, p.time_s);
            fl_pipeline_clocks c;
            FX_MUST(fl_plan_clocks(&r.g, p.at, &c, d));
            FL_CHECK(fl_plan_allows(&r.g, &c), "its own clocks");
            *fl_pipeline_clock(&c, r.p.ranks - 1, true, 0, 0) += 1;
            FL_CHECK(!fl_plan_allows(&r.g, &c), "a clock off the ladder");
            fl_pipeline_clocks_free(&c);
            fl_plan_point_free(&p);
        }
        fl_rig_end(&r);
    }
}

/* What is far from its bound begins at the plan of the next faster time, too, and is polished, the slowest of all that
 * are asked for like the others: of two that are asked for within all but the same time, the first is no worse. */
static void test_next_faster(void) {
    fl_random g = fl_random_seed(SEED, 8);
    int far = 0;
    for (int n = 0; n < 24; n++) {
        const fl_pipeline_shape s = {n % 2 ? FL_PIPELINE_1F1B : FL_PIPELINE_GPIPE, 2 + (uint32_t)n % 3,
                                     4 + (uint32_t)fl_random_below(&g, 6), 1, 2 + (uint32_t)n % 2};
        fl_pipeline_rig r;
        fl_rig_make(&r, &g, &s);
        fl_rig_begin(&r, s.clocks, NULL);
        for (int k = 1; k <= 6; k++) {
            const double t = r.pl.fastest_s * (1 + 0.005 * k), limit[] = {t * (1 + 1e-9), t};
            fl_plan_point p[2];
            FX_MUST(fl_plan_within(&r.pl, limit, 2, p, d));
            for (int i = 0; i < 2; i++)
                FL_CHECK(p[i].time_s <= limit[i] * (1 + 1e-12) && p[i].energy_j >= p[i].bound_j * (1 - 1e-12),
                         "case %d, half percent %d: %.9g J in %.9g s", n, k, p[i].energy_j, p[i].time_s);
            far += p[1].energy_j - p[1].bound_j > 2e-3 * p[1].energy_j;
            FL_CHECK(p[0].energy_j <= p[1].energy_j * (1 + 1e-12) ||
                         p[0].energy_j - p[0].bound_j <= 2e-3 * p[0].energy_j,
                     "case %d, half percent %d: %.9g J, with less time %.9g J", n, k, p[0].energy_j, p[1].energy_j);
            fl_plan_point_free(&p[0]);
            fl_plan_point_free(&p[1]);
        }
        fl_rig_end(&r);
    }
    FL_CHECK(far > 0, "only %d plans are far from their bound", far);
}

FL_SUITE("planner", {"every plan of tiny pipelines", test_brute_force}, {"the engine", test_engine},
         {"the bound", test_bound}, {"the same again", test_again}, {"stragglers and limits", test_straggler_and_limit},
         {"one clock for all", test_one_clock}, {"the next faster plan", test_next_faster},
         {"few clocks", test_few_clocks})
