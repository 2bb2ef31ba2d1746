#include "policies/trees.h"

#include <math.h>

enum { COLUMNS = 2 };

uint32_t fl_trees_count(const fl_table *t, uint32_t models, uint32_t features) {
    const uint32_t trees = t->row_count / (models * FL_TREE_NODES);
    if (trees == 0 || t->row_count != trees * models * FL_TREE_NODES)
        return 0;
    for (uint32_t i = 0; i < t->row_count; i++) {
        const double feature = t->cell[i * COLUMNS];
        const int leaf = i % FL_TREE_NODES >= FL_TREE_SPLITS;
        if (leaf ? feature != -1 : !(feature >= 0 && feature < features && feature == floor(feature)))
            return 0;
    }
    return trees;
}

double fl_trees_predict(const fl_table *t, uint32_t trees, uint32_t model, const double *feature) {
    double sum = 1;
    for (uint32_t k = 0; k < trees; k++) {
        const double *tree = &t->cell[((uint64_t)model * trees + k) * FL_TREE_NODES * COLUMNS];
        uint32_t i = 0;
        while (i < FL_TREE_SPLITS)
            i = feature[(uint32_t)tree[i * COLUMNS]] < tree[i * COLUMNS + 1] ? 2 * i + 1 : 2 * i + 2;
        sum += tree[i * COLUMNS + 1];
    }
    return sum;
}
