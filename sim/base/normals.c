/* Logarithm and cosine are series of our own, in the same order of operations in both forms. So a block has the same
 * bits in either, and on every C library: those of libm differ from one version and processor to the next.
 *
 * ln u = k ln 2 + ln m with m in [sqrt(1/2), sqrt(2)), and ln m = 2 artanh s, s = (m - 1) / (m + 1): |s| < 0.172, where
 * ten terms suffice. cos(2 pi v) = sin(2 pi w) with w = |v - 1/2| - 1/4, which has no rounding: the angle is within a
 * quarter turn, where eleven terms suffice. */
#include "sim/base/inside.h"

#include "policies/random.h"
#include "sim/base/base.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LN_2 0.69314718055994530942
#define TURN 6.28318530717958647693
#define ONE UINT64_C(0x3ff0000000000000)       /* the bits of 1.0 */
#define ROOT_HALF UINT64_C(0x3fe6a09e667f3bcd) /* and of sqrt(1/2) */
#define FRACTION UINT64_C(0x000fffffffffffff)
#define TWO_52 UINT64_C(0x4330000000000000) /* and of 2^52: the lowest bits of what lies above it are whole numbers */
#define BIASED (0x1p52 + 1023)

/* Coefficients from the highest power down, as Horner's scheme takes them. */
static const double artanh[] = {1. / 19, 1. / 17, 1. / 15, 1. / 13, 1. / 11, 1. / 9, 1. / 7, 1. / 5, 1. / 3, 1};
static const double sine[] = {1 / 51090942171709440000.,
                              -1 / 121645100408832000.,
                              1 / 355687428096000.,
                              -1 / 1307674368000.,
                              1 / 6227020800.,
                              -1 / 39916800.,
                              1 / 362880.,
                              -1 / 5040.,
                              1 / 120.,
                              -1 / 6.,
                              1};
enum { ARTANH = sizeof artanh / sizeof *artanh, SINE = sizeof sine / sizeof *sine };

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double of_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double ln(double u) {
    const uint64_t bits = bits_of(u) + (ONE - ROOT_HALF);
    const double k = of_bits(bits >> 52 | TWO_52) - BIASED, m = of_bits((bits & FRACTION) + ROOT_HALF);
    const double s = (m - 1) / (m + 1), square = s * s;
    double sum = artanh[0];
    for (int i = 1; i < ARTANH; i++)
        sum = sum * square + artanh[i];
    return k * LN_2 + 2 * s * sum;
}

static double cos_of_turns(double v) {
    const double angle = TURN * (fabs(v - 0.5) - 0.25), square = angle * angle;
    double sum = sine[0];
    for (int i = 1; i < SINE; i++)
        sum = sum * square + sine[i];
    return angle * sum;
}

void fl_normals_plain(const double *u, const double *v, double *value, size_t count) {
    for (size_t i = 0; i < count; i++)
        value[i] = sqrt(-2 * ln(u[i])) * cos_of_turns(v[i]);
}

#ifdef __x86_64__
#include <immintrin.h>
/* Neither has fused multiply-add, which would round otherwise. */
#define BITS 256
#define TARGET "avx2"
#define LANES by_four
#include "sim/base/lanes.inc"
#define BITS 512
#define TARGET "avx512f"
#define LANES by_eight
#include "sim/base/lanes.inc"

bool fl_normals_vector(const double *u, const double *v, double *value, size_t count) {
    if (__builtin_cpu_supports("avx512f") && count % 8 == 0)
        by_eight(u, v, value, count);
    else if (__builtin_cpu_supports("avx2"))
        by_four(u, v, value, count);
    else
        return false;
    return true;
}
#else
bool fl_normals_vector(const double *u, const double *v, double *value, size_t count) {
    (void)u, (void)v, (void)value, (void)count;
    return false;
}
#endif

fl_normals fl_normals_seed(uint64_t seed, uint64_t component) {
    return (fl_normals){.random = fl_random_seed(seed, component), .next = FL_NORMALS};
}

void fl_normals_refill(fl_normals *n) {
    double u[FL_NORMALS], v[FL_NORMALS];
    fl_random random = n->random;
    for (size_t i = 0; i < FL_NORMALS; i++) {
        u[i] = 1 - fl_random_unit(&random);
        v[i] = fl_random_unit(&random);
    }
    n->first = n->random;
    n->random = random;
    n->next = 0;
    if (!fl_normals_vector(u, v, n->value, FL_NORMALS))
        fl_normals_plain(u, v, n->value, FL_NORMALS);
}

fl_random fl_normals_last(const fl_normals *n) {
    fl_random random = n->first;
    for (size_t i = 0; i + 1 < n->next; i++) {
        fl_random_next(&random);
        fl_random_next(&random);
    }
    return random;
}
