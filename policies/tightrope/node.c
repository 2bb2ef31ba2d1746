#include "policies/tightrope/node.h"

#include <math.h>

/* The slowdown that the clocks of the others make by what is known; INFINITY where one of them was not tried. */
static double others(const fl_tightrope_member *m, uint32_t count, uint32_t i) {
    double most = 1;
    for (uint32_t k = 0; k < count; k++)
        if (k != i && !m[k].top)
            most = isnan(m[k].own) ? INFINITY : fmax(most, m[k].own);
    return most;
}

/* What is left of s where the part in which the GPU was idle was waiting for the busiest. */
static double without_waiting(const fl_tightrope_member *m, uint32_t count, uint32_t i) {
    double busiest = m[i].busy;
    for (uint32_t k = 0; k < count; k++)
        busiest = fmax(busiest, m[k].busy); /* of a NAN and a number it is the number */
    return isnan(m[i].busy) || !(busiest > 0) ? m[i].seen : fmax(1, m[i].seen * m[i].busy / busiest);
}

static int is_busiest(const fl_tightrope_member *m, uint32_t count, uint32_t i) {
    for (uint32_t k = 0; k < count; k++)
        if (!m[k].top && m[k].busy > m[i].busy)
            return 0;
    return 1;
}

double fl_tightrope_own(const fl_tightrope_member *m, uint32_t count, uint32_t i) {
    const double most = others(m, count, i), near = 1.005 + 2 * m[i].noise;
    if (m[i].top)
        return 1;
    if (isnan(m[i].seen) || !(most > 1))
        return m[i].seen;
    if (m[i].seen <= most * near)
        return isnan(m[i].own) ? without_waiting(m, count, i) : fmin(m[i].own, without_waiting(m, count, i));
    if (isnan(m[i].own) || m[i].seen <= m[i].own * near || is_busiest(m, count, i))
        return m[i].seen;
    return m[i].own;
}

int fl_tightrope_unexplained(const fl_tightrope_member *m, uint32_t count, uint32_t i, double drift) {
    const double d = fmax(drift, 4 * m[i].noise), own = m[i].top ? 1 : m[i].own;
    if (isnan(m[i].seen) || isnan(own))
        return 0;
    return m[i].seen < own * (1 - d) || m[i].seen > fmax(own, others(m, count, i)) * (1 + d);
}
