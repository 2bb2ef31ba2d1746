/* The middle of some values and their spread: the median, and 1.4826 times the median distance from it, which is the
 * standard deviation where the values are normal. By hand. */
#include "models/unsound/inside.h"
#include "tests/support/suite.h"

#include <math.h>

static void test_middle(void) {
    static const struct {
        double x[5], middle, distance;
        size_t n;
    } rows[] = {
        {{1, 2, 3, 4, 100}, 3, 1, 5},  /* distances 2 1 0 1 97: one value far off moves neither */
        {{-9, 4, 5, 6, 7}, 5, 1, 5},   /* the far one stands first, and its distance counts as any other: 14 1 0 1 2 */
        {{2, 4, 6, 0, 0}, 4, 2, 3},    /* distances 2 0 2 */
        {{7, 0, 0, 0, 0}, 7, 0, 1},    /* one value has no spread */
        {{10, 12, 0, 0, 0}, 11, 1, 2}, /* of two the mean */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double x[5], spread = NAN;
        memcpy(x, rows[i].x, sizeof x);
        const double middle = fl_unsound_middle(x, rows[i].n, &spread);
        FL_CHECK(middle == rows[i].middle, "row %zu: middle %g", i, middle);
        FL_CHECK(fabs(spread - 1.4826 * rows[i].distance) < 1e-12, "row %zu: spread %g", i, spread);
    }
}

FL_SUITE("unsound_parts", {"middle", test_middle})
