/* Mixture of experts in a serving engine's step: who is touched, and what that takes. */
#include "models/laws/inside.h"

#include "models/laws/laws.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

bool fl_step_experts_sound(const fl_step_law *law) {
    if (!law->replicas || !law->expert_ranks || !law->expert_slices || !(law->expert_sharpness >= 1))
        return false;
    return !law->experts || (law->top_k && law->top_k <= law->experts && law->expert_ranks <= law->experts);
}

/* ---- routing ---- */

static uint64_t mix(uint64_t *x) { /* splitmix64 */
    uint64_t z = (*x += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Scale to a sum of top_k with no probability above 1: those that would be above stay at 1, the others share the rest.
 */
static void scale_to(double *p, uint32_t count, uint32_t top_k) {
    for (uint32_t pass = 0; pass < count; pass++) {
        double whole = 0, rest = 0;
        for (uint32_t i = 0; i < count; i++)
            *(p[i] < 1 ? &rest : &whole) += p[i];
        const double factor = rest > 0 ? (top_k - whole) / rest : 1;
        bool above = false;
        for (uint32_t i = 0; i < count; i++)
            if (p[i] < 1) {
                p[i] *= factor;
                above |= p[i] > 1;
                p[i] = fmin(p[i], 1);
            }
        if (!above)
            return;
    }
}

fl_model_status fl_step_law_skew(fl_step_law *law) {
    uint64_t state = law->expert_seed;
    free(law->popularity);
    law->popularity = NULL;
    if (!law->experts || !(law->expert_skew > 0))
        return FL_MODEL_OK;
    double *p = law->popularity = malloc(law->experts * sizeof *p), sum = 0;
    if (!p)
        return FL_MODEL_NO_MEMORY;
    for (uint32_t i = 0; i < law->experts; i++)
        sum += p[i] = pow(i + 1, -law->expert_skew);
    for (uint32_t i = 0; i < law->experts; i++)
        p[i] = fmin(p[i] / sum * law->top_k, 1);
    scale_to(p, law->experts, law->top_k);
    for (uint32_t i = law->experts; i > 1; i--) { /* Fisher and Yates */
        const uint32_t k = (uint32_t)(mix(&state) % i);
        const double other = p[k];
        p[k] = p[i - 1];
        p[i - 1] = other;
    }
    return FL_MODEL_OK;
}

double fl_step_touched(const fl_step_law *law, uint32_t rank, double tokens, double *load) {
    const double experts = law->experts, ranks = law->expert_ranks;
    if (!law->popularity) {
        *load = 1;
        return experts / ranks * (1 - pow(1 - law->top_k / experts, tokens));
    }
    double touched = 0, rows = 0;
    for (uint32_t e = 0; e < law->experts; e++)
        if ((uint64_t)e * law->expert_ranks / law->experts == rank) {
            touched += 1 - pow(1 - law->popularity[e], tokens);
            rows += law->popularity[e];
        }
    *load = rows * ranks / law->top_k;
    return touched;
}

/* ---- time ---- */

/* M(n, E) without the correction. */
static fl_step_part by_law(const fl_step_law *law, double n, double touched, double ghz, double m) {
    fl_step_part one = {.compute_s = law->expert_token * n / ghz,
                        .memory_s = touched * (law->expert_s / m + law->expert_clock / ghz)};
    one.time_s = law->expert_floor_s + fl_time_norm(one.compute_s, one.memory_s, law->expert_sharpness);
    return one;
}

/* Measured over the law at row i of the table. */
static double ratio_at(const fl_step_law *law, size_t i) {
    const fl_step_grid *g = &law->by_experts;
    return g->time_s[i] / by_law(law, g->at[i], g->kv[i], law->ref_sm_mhz / 1000, 1).time_s;
}

/* Between the rows [from, to) of one number of tokens; beyond them as at the nearest. */
static double ratio_along(const fl_step_law *law, size_t from, size_t to, double touched) {
    const double *experts = law->by_experts.kv;
    size_t i = from;
    while (i + 1 < to && experts[i + 1] <= touched)
        i++;
    if (i + 1 == to || touched <= experts[i])
        return ratio_at(law, i);
    const double here = ratio_at(law, i);
    return here + (ratio_at(law, i + 1) - here) * (touched - experts[i]) / (experts[i + 1] - experts[i]);
}

size_t fl_step_line_end(const fl_step_grid *g, size_t from) {
    size_t to = from;
    while (to < g->count && g->at[to] == g->at[from])
        to++;
    return to;
}

static double ratio(const fl_step_law *law, double n, double touched) {
    const fl_step_grid *g = &law->by_experts;
    if (!g->count)
        return 1;
    size_t from = 0, to = fl_step_line_end(g, 0);
    while (to < g->count && g->at[to] <= n) {
        from = to;
        to = fl_step_line_end(g, from);
    }
    const double here = ratio_along(law, from, to, touched);
    if (n <= g->at[from] || to == g->count)
        return here;
    const double next = ratio_along(law, to, fl_step_line_end(g, to), touched);
    return here + (next - here) * (n - g->at[from]) / (g->at[to] - g->at[from]);
}

static fl_step_part corrected(const fl_step_law *law, double n, double touched, double ghz, double m) {
    fl_step_part one = by_law(law, n, touched, ghz, m);
    const double factor = ratio(law, n, touched), load = law->expert_load > 0 ? law->expert_load : 1;
    one.time_s *= factor;
    one.compute_s *= factor * load;
    one.memory_s *= factor * load;
    return one;
}

fl_step_point fl_step_experts_row(const fl_step_law *law, double n, double touched, double sm_mhz, double mem_ratio) {
    const fl_step_part one = corrected(law, n, touched, sm_mhz / 1000, mem_ratio);
    return (fl_step_point){.time_s = one.time_s,
                           .compute = fmin(1, one.compute_s / one.time_s),
                           .memory = fmin(1, one.memory_s / one.time_s)};
}

fl_step_part fl_step_experts_at(const fl_step_law *law, double tokens, double ghz, double m) {
    fl_step_part slowest = {0};
    for (uint32_t r = 0; r < (law->popularity ? law->expert_ranks : 1); r++) {
        double load;
        const double touched = fl_step_touched(law, r, tokens, &load) / law->expert_slices;
        const double n = load * tokens / law->expert_ranks / law->expert_slices;
        const fl_step_part one = corrected(law, n, touched, ghz, m);
        if (one.time_s > slowest.time_s)
            slowest = one;
    }
    return slowest;
}
