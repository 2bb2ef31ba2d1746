#include "sim/base/poisson.h"

#include "policies/random.h"

bool fl_poisson(uint64_t seed, double per_s, int64_t *t_ns, size_t count) {
    fl_random r = fl_random_seed(seed, UINT64_C(0x706f6973736f6e)); /* "poisson": a stream of its own */
    double t_s = 0;
    for (size_t i = 0; i < count; i++) {
        t_s -= log(1 - fl_random_unit(&r)) / per_s;
        if (!(t_s < 26 * 86400.0))
            return false;
        t_ns[i] = (int64_t)(t_s * 1e9 + 0.5);
    }
    return true;
}
