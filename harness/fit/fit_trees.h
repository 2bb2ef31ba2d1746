/* Gradient boosting of the trees in GPOEO's models (policies/trees.h), on the squared error: XGBoost with exact splits,
 * a rate of 0.3 and 1 added to each count (lambda). */
#pragma once

#include "policies/trees.h"
#include "traces/diag.h"

/* Fits `trees` trees to `count` rows of `features` features (x) and targets (y), count >= 1. out: FL_TREE_NODES rows of
 * the two columns of policies/trees.h for each tree. Of equal gains the first feature and the lowest threshold win, so
 * that the result depends only on the numbers. */
fl_status fl_fit_trees(const double *x, const double *y, size_t count, uint32_t features, uint32_t trees, double *out,
                       fl_diag *d);
