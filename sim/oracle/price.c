/* The schedule of least priced cost: dynamic programming over positions x choices. */
#include "sim/oracle/solve.h"

#include <stdlib.h>

/* Order by cost; of equal costs the faster, then the cheaper first. Adding the same value to both sides keeps the
 * order, so ties stay optimal too. */
static bool is_less(const fl_total *a, const fl_total *b) {
    if (a->cost != b->cost)
        return a->cost < b->cost;
    return a->time_ps != b->time_ps ? a->time_ps < b->time_ps : a->energy_fj < b->energy_fj;
}

static fl_total plus(const fl_total *a, fl_price p, int64_t time_ps, fl_wide energy_fj) {
    return (fl_total){a->cost + fl_priced(p, time_ps, energy_fj), a->energy_fj + energy_fj, a->time_ps + time_ps};
}

fl_total fl_oracle_total(const fl_oracle_table *t, const uint32_t *choice, uint64_t *switches) {
    fl_total sum = {0};
    *switches = 0;
    for (size_t i = 0; i < t->positions; i++) {
        size_t cell = i * t->choices + choice[i];
        sum.time_ps += t->time_ps[cell];
        sum.energy_fj += t->energy_fj[cell];
        if (i && choice[i] != choice[i - 1]) {
            sum.time_ps += t->switch_ps;
            sum.energy_fj += t->switch_fj;
            ++*switches;
        }
    }
    return sum;
}

/* Where a switch is free, each position is independent. */
static void each_alone(const fl_oracle_table *t, fl_price p, uint32_t *choice, fl_total *total) {
    const fl_total nothing = {0};
    *total = nothing;
    for (size_t i = 0; i < t->positions; i++) {
        const int64_t *ps = t->time_ps + i * t->choices;
        const fl_wide *fj = t->energy_fj + i * t->choices;
        size_t from = t->frontier ? t->frontier_first[i] : 0;
        size_t to = t->frontier ? t->frontier_first[i + 1] : t->choices;
        fl_total best = {0};
        uint32_t pick = 0;
        for (size_t k = from; k < to; k++) {
            uint32_t c = t->frontier ? t->frontier[k] : (uint32_t)k;
            fl_total at = {fl_priced(p, ps[c], fj[c]), fj[c], ps[c]};
            if (k == from || is_less(&at, &best)) {
                best = at;
                pick = c;
            }
        }
        if (choice)
            choice[i] = pick;
        total->cost += best.cost;
        total->energy_fj += best.energy_fj;
        total->time_ps += best.time_ps;
    }
}

fl_status fl_oracle_at_price(const fl_oracle_table *t, fl_price p, uint32_t *choice, fl_total *total, fl_diag *d) {
    if (fl_switch_free(t)) {
        each_alone(t, p, choice, total);
        return FL_OK;
    }
    fl_total *state = calloc(t->choices, sizeof *state); /* of the best schedule that ends at each choice */
    uint32_t *from = choice ? malloc(t->positions * t->choices * sizeof *from) : NULL;
    if (!state || (choice && !from)) {
        free(state);
        free(from);
        return fl_no_memory(d, "the oracle");
    }
    uint32_t best = 0;
    for (size_t i = 0; i < t->positions; i++) {
        fl_total moved = {0};
        if (i)
            moved = plus(&state[best], p, t->switch_ps, t->switch_fj);
        uint32_t next_best = 0, was = best;
        for (uint32_t c = 0; c < t->choices; c++) {
            size_t cell = i * t->choices + c;
            bool moves = i && c != was && is_less(&moved, &state[c]);
            const fl_total nothing = {0};
            const fl_total *before = !i ? &nothing : moves ? &moved : &state[c];
            state[c] = plus(before, p, t->time_ps[cell], t->energy_fj[cell]);
            if (from)
                from[cell] = moves ? was : c;
            if (is_less(&state[c], &state[next_best]))
                next_best = c;
        }
        best = next_best;
    }
    *total = state[best];
    for (size_t i = t->positions; choice && i-- > 0; best = from[i * t->choices + best])
        choice[i] = best;
    free(state);
    free(from);
    return FL_OK;
}
