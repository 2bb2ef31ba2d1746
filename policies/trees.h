/* Gradient-boosted regression trees of a table parameter: the models of GPOEO. Each tree has three levels of splits, in
 * the order of a heap: node 0 is the root, nodes 2 i + 1 and 2 i + 2 follow node i, nodes 7 to 14 are leaves. */
#pragma once

#include "policies/policy.h"

enum { FL_TREE_SPLITS = 7, FL_TREE_NODES = 15 };

/* One row for each node, model after model and tree after tree; every model has as many trees. feature: what is split,
 * from 0; -1 in a leaf. value: the split goes to node 2 i + 1 where the feature is below it; in a leaf what the tree
 * adds. */
#define FL_TREES_COLUMNS "feature|value"

/* Trees of each of `models` models over `features` features; 0: the table does not hold such trees. */
uint32_t fl_trees_count(const fl_table *t, uint32_t models, uint32_t features);

/* 1 and what all trees of that model add to it: models predict ratios. A feature that is not known (NaN) goes to the
 * second node. trees: fl_trees_count. */
double fl_trees_predict(const fl_table *t, uint32_t trees, uint32_t model, const double *feature);
