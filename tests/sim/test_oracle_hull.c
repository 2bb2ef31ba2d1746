/* The points that some price on time selects, against a look at every pair of others. */
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/oracle/inside.h"
#include "tests/support/exact.h"
#include "tests/support/suite.h"

enum { POINTS = 14 };

/* b strictly above the line from a to c, all in whole numbers. */
static bool above(const fl_hull_point *a, const fl_hull_point *b, const fl_hull_point *c) {
    return (b->fj - a->fj) * (c->ps - a->ps) > (c->fj - a->fj) * (b->ps - a->ps);
}

/* Kept: what no other point is as fast and as cheap as (of equals the lowest choice), and what lies above no line
 * between a faster and a slower one. */
static bool expected(const fl_hull_point *p, size_t count, size_t i) {
    for (size_t a = 0; a < count; a++) {
        const bool equal = p[a].ps == p[i].ps && p[a].fj == p[i].fj;
        if (a != i && p[a].ps <= p[i].ps && p[a].fj <= p[i].fj && (!equal || p[a].choice < p[i].choice))
            return false;
        for (size_t c = 0; c < count; c++)
            if (p[a].ps < p[i].ps && p[c].ps > p[i].ps && above(&p[a], &p[i], &p[c]))
                return false;
    }
    return true;
}

static void check(const fl_hull_point *p, size_t count, int n) {
    fl_hull_point *out = exact(p, count * sizeof *p + (count == 0));
    const size_t kept = fl_hull(out, count);
    size_t want = 0;
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        for (size_t k = 0; k < kept; k++)
            found |= out[k].choice == p[i].choice && out[k].ps == p[i].ps && out[k].fj == p[i].fj;
        FL_CHECK(found == expected(p, count, i), "case %d: point %zu (%d, %d) is %s", n, i, (int)p[i].ps, (int)p[i].fj,
                 found ? "kept" : "dropped");
        want += expected(p, count, i);
    }
    FL_CHECK(kept == want, "case %d: %zu points, expected %zu", n, kept, want);
    for (size_t k = 1; k < kept; k++)
        FL_CHECK(out[k].ps > out[k - 1].ps && out[k].fj < out[k - 1].fj, "case %d: point %zu is not slower and cheaper",
                 n, k);
    free(out);
}

static void test_random(void) {
    const uint64_t seed = 17;
    fl_random g = fl_random_seed(seed, 0);
    printf(" seed %d ", (int)seed);
    for (int n = 0; n < 3000; n++) {
        fl_hull_point p[POINTS];
        const size_t count = (size_t)fl_random_below(&g, POINTS + 1);
        const uint64_t span = n % 3 ? 9 : 40;
        for (size_t i = 0; i < count; i++)
            p[i] = (fl_hull_point){(int64_t)fl_random_below(&g, span), (int64_t)fl_random_below(&g, span) - 5,
                                   (uint32_t)((i * 5 + 3) % POINTS)};
        check(p, count, n);
    }
}

/* The numbers of a run, whose products need more than 64 bits. */
static void test_large(void) {
    const int64_t s = INT64_C(1000000000000);
    const fl_wide j = (fl_wide)1000 * s;
    const fl_hull_point p[] = {{3 * s, 200 * j, 2}, {s, 400 * j, 0},     {2 * s, 301 * j, 1},
                               {4 * s, 150 * j, 3}, {5 * s, 150 * j, 4}, {2 * s + 1, 299 * j, 5}};
    check(p, sizeof p / sizeof *p, -1);
}

FL_SUITE("oracle_hull", {"random", test_random}, {"large", test_large})
