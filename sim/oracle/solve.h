/* Shared by the parts of the clairvoyant schedule. Internal to sim/.
 *
 * A price on time is an integer n in fJ/ps (= mW) over 2^20. The priced cost 2^20 E + n T of a schedule, and with it
 * every bound, is therefore an exact 128-bit integer. Sizes: E < 2^94 fJ, T < 2^63 ps, n <= 2^60. */
#pragma once

#include "sim/oracle/oracle.h"

#define FL_PRICE_BITS 20
#define FL_PRICE_MAX (INT64_C(1) << 60)

typedef struct fl_price { /* cost = energy E + time T */
    int64_t energy, time;
} fl_price;

static inline fl_wide fl_priced(fl_price p, int64_t time_ps, fl_wide energy_fj) {
    return energy_fj * p.energy + (fl_wide)time_ps * p.time;
}

static inline fl_price fl_price_at(int64_t n) { return (fl_price){INT64_C(1) << FL_PRICE_BITS, n}; }

typedef struct fl_total { /* of a schedule, switches included */
    fl_wide cost, energy_fj;
    int64_t time_ps;
} fl_total;

/* E T^m in fJ ps^m; m = 0 energy, 1 EDP, 2 ED2P. Exact for energy below 2^64 fJ, else within a relative 2^-62. */
static inline long double fl_product(int m, fl_wide energy_fj, int64_t time_ps) {
    long double f = (long double)energy_fj;
    for (int i = 0; i < m; i++)
        f *= (long double)time_ps;
    return f;
}

static inline bool fl_switch_free(const fl_oracle_table *t) { return !t->switch_ps && !t->switch_fj; }

/* The schedule of least cost at a price by dynamic programming over positions; ties go to the faster, then to the
 * cheaper. choice: positions cells, may be NULL. */
fl_status fl_oracle_at_price(const fl_oracle_table *t, fl_price p, uint32_t *choice, fl_total *total, fl_diag *d);

/* Time and energy of a schedule, and its switches. */
fl_total fl_oracle_total(const fl_oracle_table *t, const uint32_t *choice, uint64_t *switches);

/* Searches for the optimum by labels. incumbent: a schedule (choice, total) that holds the limit; the optimum replaces
 * it. n: the price whose bound prunes best. *solved is false where there were too many labels; the incumbent is then
 * unchanged. */
fl_status fl_oracle_labels(const fl_oracle_table *t, int m, int64_t limit_ps, int64_t n, uint32_t *choice,
                           fl_total *total, bool *solved, fl_diag *d);
