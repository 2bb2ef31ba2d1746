/* Normals in blocks: the vector form gives the bits of the plain one, both what fl_random_normal gives but for
 * rounding, a copy of the state draws the same, and whole parts are those of the C library's normals. */
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/base/inside.h"
#include "tests/support/suite.h"

enum { COUNT = 4096 };

/* Uniform numbers of which every other pair is drawn, and the rest are all pairs of borders. */
static void make(double *u, double *v) {
    static const double us[] = {
        1,       1 - 0x1p-53, 0x1p-53, 0x1p-52, 0.5, 0x1.6a09e667f3bccp-1, 0x1.6a09e667f3bcdp-1, 0x1.6a09e667f3bcep-1,
        0x1p-27, 0.75};
    static const double vs[] = {0,   0x1p-53,       0.25, 0.25 - 0x1p-54, 0.25 + 0x1p-53,
                                0.5, 0.5 - 0x1p-53, 0.75, 1 - 0x1p-53};
    const size_t un = sizeof us / sizeof *us, vn = sizeof vs / sizeof *vs;
    fl_random random = fl_random_seed(19, 1);
    for (size_t i = 0; i < COUNT; i++) {
        u[i] = i % 2 ? us[i / 2 % un] : 1 - fl_random_unit(&random);
        v[i] = i % 2 ? vs[i / 2 / un % vn] : fl_random_unit(&random);
    }
}

static void test_forms(void) {
    static double u[COUNT], v[COUNT], plain[COUNT], vector[COUNT];
    make(u, v);
    fl_normals_plain(u, v, plain, COUNT);
    double worst = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const double off = fabs(plain[i] - sqrt(-2 * log(u[i])) * cos(6.283185307179586 * v[i]));
        worst = off > worst ? off : worst;
    }
    FL_CHECK(worst < 1e-14, "%g off the normal of the C library", worst);
    if (!fl_normals_vector(u, v, vector, COUNT)) {
        puts("no vector form on this processor");
        return;
    }
    FL_CHECK(!memcmp(plain, vector, sizeof plain), "the vector form has other bits");
    for (size_t i = 0; i < COUNT; i += 4) /* four at a time go by the narrower form on every processor */
        fl_normals_vector(u + i, v + i, vector + i, 4);
    FL_CHECK(!memcmp(plain, vector, sizeof plain), "the vector form of four has other bits");
}

static void test_stream(void) {
    fl_normals n = fl_normals_seed(7, 3);
    fl_random one = fl_random_seed(7, 3);
    double sum = 0, square = 0;
    for (size_t i = 0; i < 100000; i++) {
        const double x = fl_normals_next(&n), y = fl_random_normal(&one);
        if (fabs(x - y) > 1e-14) {
            FL_CHECK(false, "normal %zu is %.17g, expected %.17g", i, x, y);
            return;
        }
        sum += x;
        square += x * x;
    }
    FL_CHECK(fabs(sum / 100000) < 0.015 && fabs(square / 100000 - 1) < 0.02, "mean %g, variance %g", sum / 100000,
             square / 100000);
    fl_normals copy = n;
    for (size_t i = 0; i < 3 * FL_NORMALS; i++) {
        const double x = fl_normals_next(&n);
        FL_CHECK(x == fl_normals_next(&copy), "a copy draws otherwise at %zu", i);
    }
}

/* Spreads whose numbers are small, of some digits, near what a double holds of whole numbers, and beyond an int64_t. */
static void test_whole(void) {
    static const double means[] = {1e-3, 0.7, 40, 1e5, 1e10, 1e12, 3e18}, cvs[] = {0, 0.1, 1, 30, 1e9};
    for (size_t k = 0; k < sizeof means / sizeof *means * (sizeof cvs / sizeof *cvs); k++) {
        const fl_spread s = fl_spread_of(means[k / 5], cvs[k % 5]);
        fl_normals quick = fl_normals_seed(k, 5);
        fl_random one = fl_random_seed(k, 5);
        for (size_t i = 0; i < 20000; i++) {
            const double x = fl_spread_whole(&s, 1e3, &quick), y = 1e3 * fl_spread_draw(&s, &one);
            if (floor(x) != floor(y)) {
                FL_CHECK(false, "mean %g, variation %g, number %zu: %.17g, expected %.17g", means[k / 5], cvs[k % 5], i,
                         x, y);
                return;
            }
        }
    }
}

FL_SUITE("normals", {"forms", test_forms}, {"stream", test_stream}, {"whole", test_whole})
