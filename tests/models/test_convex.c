/* The hull that prices pick from: by hand, and against a look at every point. */
#include "models/math/math.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#include <math.h>

static void test_by_hand(void) {
    /* The third lies above the line from the first to the fourth; the fifth is slower and no cheaper. */
    const double x[] = {1, 3, 2, 4, 5, 1}, y[] = {10, 4, 8, 3, 3, 12};
    fl_convex c;
    FL_CHECK(fl_convex_new(&c, x, y, 6) == FL_MODEL_OK && c.count == 3, "%zu vertices", c.count);
    FL_CHECK(c.choice[0] == 0 && c.choice[1] == 1 && c.choice[2] == 3, "%u %u %u", c.choice[0], c.choice[1],
             c.choice[2]);
    FL_CHECK(c.slope[0] == 3 && c.slope[1] == 1 && c.slope[2] == 0, "%g %g %g", c.slope[0], c.slope[1], c.slope[2]);
    FL_CHECK(fl_convex_at(&c, 0) == 10 && fl_convex_at(&c, 2) == 7 && fl_convex_at(&c, 9) == 3, "on the hull");
    FL_CHECK(fl_convex_pick(&c, 5, 2) == 0 && fl_convex_pick(&c, 3, 2) == 0 && fl_convex_pick(&c, 2, 0) == 1 &&
                 fl_convex_pick(&c, 0.5, 1) == 2,
             "what a price picks");
    fl_convex_free(&c);
}

static void test_every_point(void) {
    const uint64_t seed = 2302;
    fl_random g = fl_random_seed(seed, 1);
    for (int n = 0; n < 300; n++) {
        double x[24], y[24];
        const size_t count = 1 + (size_t)fl_random_below(&g, 24);
        for (size_t i = 0; i < count; i++) {
            x[i] = (double)fl_random_below(&g, 12);
            y[i] = (double)fl_random_below(&g, 12) - 4;
        }
        fl_convex c;
        FL_CHECK(fl_convex_new(&c, x, y, count) == FL_MODEL_OK, "memory");
        for (int k = 0; k < 20; k++) {
            const double price = 4 * fl_random_unit(&g);
            const size_t v = fl_convex_pick(&c, price, (size_t)fl_random_below(&g, c.count));
            double least = INFINITY;
            for (size_t i = 0; i < count; i++)
                least = fmin(least, y[i] + price * x[i]);
            FL_CHECK(fabs(c.y[v] + price * c.x[v] - least) < 1e-12, "seed %llu, case %d: %.17g, expected %.17g",
                     (unsigned long long)seed, n, c.y[v] + price * c.x[v], least);
            /* the hull is the highest of all lines that lie below every point */
            const double at = c.x[0] + (c.x[c.count - 1] - c.x[0]) * fl_random_unit(&g);
            double hull = -INFINITY;
            for (size_t i = 0; i < c.count; i++) {
                double low = INFINITY;
                for (size_t j = 0; j < count; j++)
                    low = fmin(low, y[j] + c.slope[i] * (x[j] - at));
                hull = fmax(hull, low);
            }
            FL_CHECK(fabs(fl_convex_at(&c, at) - hull) < 1e-9, "seed %llu, case %d: %.17g at %g, expected %.17g",
                     (unsigned long long)seed, n, fl_convex_at(&c, at), at, hull);
        }
        fl_convex_free(&c);
    }
}

FL_SUITE("convex", {"by hand", test_by_hand}, {"every point", test_every_point})
