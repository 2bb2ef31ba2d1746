#include "harness/fit/chip/half.h"

#include "policies/random.h"

void fl_fit_draw_half(const fl_fit_rows *r, uint64_t seed, uint64_t split, bool *half) {
    fl_random random = fl_random_seed(seed, split);
    size_t left = (r->entities + 1) / 2;
    for (size_t i = 0; i < r->entities; i++) { /* each subset of that size is equally likely */
        half[i] = fl_random_unit(&random) * (double)(r->entities - i) < (double)left;
        left -= half[i] ? 1 : 0;
    }
}
