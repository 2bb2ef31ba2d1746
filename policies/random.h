/* The one random generator of policies, sensors and synthetic workloads: xoshiro256** seeded by splitmix64 (Blackman
 * and Vigna, "Scrambled linear pseudorandom number generators", 2021). Plain state, so it copies with what holds it. */
#ifndef FL_RANDOM_H
#define FL_RANDOM_H

#include <math.h>
#include <stdint.h>

typedef struct fl_random {
    uint64_t s[4];
} fl_random;

static inline uint64_t fl_random_mix(uint64_t *x) { /* one splitmix64 step */
    uint64_t z = (*x += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Streams with the same seed and different components are independent. */
static inline fl_random fl_random_seed(uint64_t seed, uint64_t component) {
    uint64_t x = seed ^ (component * UINT64_C(0xd1342543de82ef95) + UINT64_C(0x2545f4914f6cdd1d));
    fl_random r;
    for (int i = 0; i < 4; i++)
        r.s[i] = fl_random_mix(&x);
    return r;
}

static inline uint64_t fl_random_next(fl_random *r) {
    uint64_t *s = r->s, product = s[1] * 5;
    uint64_t result = (product << 7 | product >> 57) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = s[3] << 45 | s[3] >> 19;
    return result;
}

/* Uniform in [0, 1), 53 bits. */
static inline double fl_random_unit(fl_random *r) { return (double)(fl_random_next(r) >> 11) * 0x1p-53; }

/* Uniform in 0..n-1, without bias. n > 0. */
static inline uint64_t fl_random_below(fl_random *r, uint64_t n) {
    uint64_t limit = -n % n, x;
    do
        x = fl_random_next(r);
    while (x < limit);
    return x % n;
}

/* Standard normal: Box-Muller, one of the pair, so that a copy of the state is a copy of everything. */
static inline double fl_random_normal(fl_random *r) {
    double u = 1.0 - fl_random_unit(r), v = fl_random_unit(r);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

#endif
