/* Gradient boosting: one tree by hand, and that many learn. */
#include "harness/fit/fit_trees.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#include <math.h>

/* One step: a tree moves each side by 0.3 of its sum over its count and one. */
static void test_one_tree(void) {
    static const double x[] = {1, 1, 1, 2, 2}, y[] = {2, 2, 2, 0.5, 0.5};
    double cell[FL_TREE_NODES * 2];
    fl_diag d;
    CU_ASSERT_FATAL(fl_fit_trees(x, y, 5, 1, 1, cell, &d) == FL_OK);
    const fl_table t = {.cell = cell, .row_count = FL_TREE_NODES, .column_count = 2};
    FL_CHECK(fl_trees_count(&t, 1, 1) == 1 && cell[1] == 1.5, "split at %g", cell[1]);
    const double low = fl_trees_predict(&t, 1, 0, &x[0]), high = fl_trees_predict(&t, 1, 0, &x[3]);
    FL_CHECK(fabs(low - (1 + 0.3 * 3 / 4)) < 1e-12 && fabs(high - (1 - 0.3 * 1 / 3)) < 1e-12, "%.12g and %.12g", low,
             high);
}

static void test_learns(void) {
    enum { ROWS = 400, TREES = 60 };
    static double x[ROWS * 2], y[ROWS], cell[TREES * FL_TREE_NODES * 2], again[TREES * FL_TREE_NODES * 2];
    fl_random r = fl_random_seed(17, 0);
    fl_diag d;
    for (int i = 0; i < ROWS; i++) {
        x[2 * i] = fl_random_unit(&r);
        x[2 * i + 1] = fl_random_unit(&r);
        y[i] = 1 + 0.5 * (x[2 * i] > 0.4) - 0.3 * x[2 * i + 1];
    }
    CU_ASSERT_FATAL(fl_fit_trees(x, y, ROWS, 2, TREES, cell, &d) == FL_OK);
    CU_ASSERT_FATAL(fl_fit_trees(x, y, ROWS, 2, TREES, again, &d) == FL_OK);
    const fl_table t = {.cell = cell, .row_count = TREES * FL_TREE_NODES, .column_count = 2};
    double worst = 0;
    for (int i = 0; i < ROWS; i++)
        worst = fmax(worst, fabs(fl_trees_predict(&t, TREES, 0, &x[2 * i]) - y[i]));
    FL_CHECK(worst < 0.03 && memcmp(cell, again, sizeof cell) == 0, "off by up to %g", worst);
}

FL_SUITE("fit_trees", {"one tree", test_one_tree}, {"it learns", test_learns})
