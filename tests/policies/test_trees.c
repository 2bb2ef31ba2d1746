/* Boosted trees of a table: evaluation by hand, and tables that are none. */
#include "policies/trees.h"
#include "tests/support/suite.h"

#include <math.h>

/* Node i splits feature i % 2 at 10 i; leaf 7 + i adds i + 1. */
static void plain_tree(double *cell, double scale) {
    for (int i = 0; i < FL_TREE_NODES; i++) {
        cell[2 * i] = i < FL_TREE_SPLITS ? i % 2 : -1;
        cell[2 * i + 1] = i < FL_TREE_SPLITS ? 10 * i : scale * (i - FL_TREE_SPLITS + 1);
    }
}

static void test_evaluation(void) {
    /* root: feature 0 at 0; below: node 1, feature 1 at 10; then node 3, feature 1 at 30, or node 4, feature 0 at 40;
     * not below: node 2, feature 0 at 20; then node 5, feature 1 at 50, or node 6, feature 0 at 60 */
    static const struct {
        double x[2], leaf;
    } row[] = {{{-1, 9}, 1}, {{-1, 10}, 3}, {{-50, 10}, 3}, {{0, 49}, 5},  {{0, 50}, 6},
               {{20, 0}, 7}, {{60, 0}, 8},  {{NAN, 0}, 8},  {{19, 51}, 6}, {{-1, NAN}, 3}};
    double cell[3 * FL_TREE_NODES * 2];
    plain_tree(cell, 1);
    plain_tree(cell + FL_TREE_NODES * 2, 100);
    plain_tree(cell + 2 * FL_TREE_NODES * 2, 1000);
    const fl_table one = {.cell = cell, .row_count = FL_TREE_NODES, .column_count = 2};
    const fl_table three = {.cell = cell, .row_count = 3 * FL_TREE_NODES, .column_count = 2};
    FL_CHECK(fl_trees_count(&one, 1, 2) == 1 && fl_trees_count(&three, 1, 2) == 3 && fl_trees_count(&three, 3, 2) == 1,
             "counts %u, %u, %u", fl_trees_count(&one, 1, 2), fl_trees_count(&three, 1, 2),
             fl_trees_count(&three, 3, 2));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const double got = fl_trees_predict(&one, 1, 0, row[i].x), sum = fl_trees_predict(&three, 3, 0, row[i].x),
                     third = fl_trees_predict(&three, 1, 2, row[i].x);
        FL_CHECK(got == 1 + row[i].leaf && sum == 1 + 1101 * row[i].leaf && third == 1 + 1000 * row[i].leaf,
                 "row %zu: %g, %g, %g; leaf %g", i, got, sum, third, row[i].leaf);
    }
}

static void test_no_trees(void) {
    double cell[2 * FL_TREE_NODES * 2];
    fl_table t = {.cell = cell, .row_count = 2 * FL_TREE_NODES, .column_count = 2};
    plain_tree(cell, 1);
    plain_tree(cell + 2 * FL_TREE_NODES, 1);
    FL_CHECK(fl_trees_count(&t, 2, 2) == 1 && fl_trees_count(&t, 3, 2) == 0 && fl_trees_count(&t, 2, 1) == 0,
             "too few rows, or a feature that is not there");
    static const struct {
        int at;
        double value;
    } row[] = {{0, -1}, {0, 0.5}, {2 * FL_TREE_SPLITS, 0}, {2 * (FL_TREE_NODES + 3), 2}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const double kept = cell[row[i].at];
        cell[row[i].at] = row[i].value;
        FL_CHECK(fl_trees_count(&t, 2, 2) == 0, "row %zu is taken for trees", i);
        cell[row[i].at] = kept;
    }
    t.row_count--;
    FL_CHECK(fl_trees_count(&t, 2, 2) == 0, "a row less");
}

FL_SUITE("trees", {"evaluation", test_evaluation}, {"tables that are none", test_no_trees})
