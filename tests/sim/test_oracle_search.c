/* The clairvoyant schedule over positions where labels do not help: tables of more cells than they take, by hand and
 * against what may not be left undone. */
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/oracle/inside.h"
#include "sim/oracle/oracle.h"
#include "tests/support/oracle_rig.h"

enum { MANY = 16385, PLACES = 4, USEFUL = 5 }; /* PLACES x MANY is more than labels take */

static const uint64_t seed = 131;

static void table_open(fl_oracle_table *t, size_t positions, size_t choices) {
    *t = (fl_oracle_table){.positions = positions, .choices = choices, .exact = true};
    t->time_ps = fx_alloc(positions * choices, sizeof *t->time_ps);
    t->energy_fj = fx_alloc(positions * choices, sizeof *t->energy_fj);
}

static void fill(fl_oracle_table *t, fl_random *g) {
    for (size_t i = 0; i < PLACES; i++)
        for (size_t c = 0; c < MANY; c++) {
            const size_t cell = i * MANY + c;
            t->time_ps[cell] = c < USEFUL ? 1 + (int64_t)fl_random_below(g, 20 * (c + 1)) : 100000;
            t->energy_fj[cell] = c < USEFUL ? 1 + (fl_wide)fl_random_below(g, 100 / (c + 1)) : 100000;
        }
    t->switch_ps = (int64_t)fl_random_below(g, 6);
    t->switch_fj = (int64_t)fl_random_below(g, 12);
}

/* Schedules of the choices that are of use: the least within a limit, and the fastest. */
static long double least_of_all(const fl_oracle_table *t, int m, int64_t limit_ps, int64_t *fastest_ps) {
    long double least = INFINITY;
    *fastest_ps = INT64_MAX;
    for (size_t n = 0; n < USEFUL * USEFUL * USEFUL * USEFUL; n++) {
        uint32_t choice[PLACES];
        uint64_t switches;
        for (size_t i = 0, rest = n; i < PLACES; i++, rest /= USEFUL)
            choice[i] = (uint32_t)(rest % USEFUL);
        const fl_total at = fl_oracle_total(t, choice, &switches);
        const long double f = fl_product(m, at.energy_fj, at.time_ps);
        least = at.time_ps <= limit_ps && f < least ? f : least;
        *fastest_ps = at.time_ps < *fastest_ps ? at.time_ps : *fastest_ps;
    }
    return least;
}

/* What is not known to be the optimum can at least not be improved at one position, and lies above its bound. */
static void test_polished(void) {
    size_t open = 0;
    fl_random g = fl_random_seed(seed, 1);
    fl_oracle_table t;
    table_open(&t, PLACES, MANY);
    printf(" seed %llu ", (unsigned long long)seed);
    for (int n = 0; n < 100; n++) {
        const int m = n % 3;
        int64_t fastest;
        fill(&t, &g);
        least_of_all(&t, m, 0, &fastest);
        const int64_t limit = n % 8 == 7 ? INT64_MAX : fastest + 1 + (int64_t)fl_random_below(&g, 60);
        const long double least = least_of_all(&t, m, limit, &fastest);
        fl_oracle_result o = solve(&t, (fl_objective)m, limit);
        CU_ASSERT_FATAL(o.feasible && o.schedule);
        uint64_t switches;
        const fl_total total = fl_oracle_total(&t, o.schedule, &switches);
        const long double f = fl_product(m, total.energy_fj, total.time_ps);
        FL_CHECK(total.energy_fj == o.energy_fj && total.time_ps == o.time_ps && switches == o.switches &&
                     o.time_ps <= limit,
                 "case %d: %lld ps and %.17g fJ are not its schedule's", n, (long long)o.time_ps, fx_f(o.energy_fj));
        FL_CHECK(o.solved ? f == least : f >= least, "case %d: %.17Lg, of all schedules %.17Lg", n, f, least);
        FL_CHECK(o.bound_fj <= o.energy_fj && o.objective_bound <= o.objective, "case %d: its bound is above it", n);
        open += !o.solved;
        for (size_t i = 0; !o.solved && i < PLACES; i++)
            for (uint32_t c = 0; c < USEFUL; c++) {
                uint64_t moved;
                const uint32_t was = o.schedule[i];
                o.schedule[i] = c;
                const fl_total at = fl_oracle_total(&t, o.schedule, &moved);
                FL_CHECK(at.time_ps > limit || fl_product(m, at.energy_fj, at.time_ps) >= f,
                         "case %d, E T^%d: choice %u at position %zu is better", n, m, c, i);
                o.schedule[i] = was;
            }
        free(o.schedule);
    }
    FL_CHECK(open > 5, "only %zu are not known to be the optimum", open);
    fl_oracle_table_free(&t);
}

/* Equal positions: the slow choice takes twice as long for a tenth of the energy, so it is best everywhere, for E, E T
 * and E T^2. The bound between the two schedules meets it, whatever the number of positions. */
static void test_bound_meets(void) {
    enum { POSITIONS = 33000, SLOW_PS = 2000000001 };
    fl_oracle_table t;
    table_open(&t, POSITIONS, 2);
    for (size_t i = 0; i < POSITIONS; i++) {
        t.time_ps[2 * i] = 1000000007, t.energy_fj[2 * i] = INT64_C(10000000000); /* no price is their slope exactly */
        t.time_ps[2 * i + 1] = SLOW_PS, t.energy_fj[2 * i + 1] = 1000000000;
    }
    for (int m = 0; m < 3; m++) {
        fl_oracle_result o = solve(&t, (fl_objective)m, INT64_MAX);
        FL_CHECK(o.solved && o.time_ps == (int64_t)SLOW_PS * POSITIONS &&
                     o.energy_fj == INT64_C(1000000000) * POSITIONS && o.gap_pct == 0,
                 "E T^%d: solved %d, %lld ps, gap %g %%", m, o.solved, (long long)o.time_ps, o.gap_pct);
        free(o.schedule);
    }
    fl_oracle_table_free(&t);
}

/* Of schedules that use the same energy the faster one is given: time that saves nothing is not taken. */
static void test_ties(void) {
    enum { POSITIONS = 3 };
    for (uint32_t fast = 0; fast < 2; fast++) {
        fl_oracle_table t;
        table_open(&t, POSITIONS, 2);
        for (size_t i = 0; i < POSITIONS; i++)
            for (uint32_t c = 0; c < 2; c++) {
                t.time_ps[2 * i + c] = c == fast ? 10 : 15;
                t.energy_fj[2 * i + c] = 100;
            }
        fl_oracle_result o = solve(&t, FL_MIN_ENERGY, 1000);
        FL_CHECK(o.solved && o.time_ps == 10 * POSITIONS && o.energy_fj == 100 * POSITIONS && o.switches == 0,
                 "choice %u is faster: %lld ps", fast, (long long)o.time_ps);
        free(o.schedule);
        fl_oracle_table_free(&t);
    }
}

/* Who asks for no schedule has none to free. */
static void test_unasked(void) {
    fl_oracle_table t;
    table_open(&t, 2, 2);
    for (size_t k = 0; k < 4; k++) {
        t.time_ps[k] = 10 + (int64_t)k;
        t.energy_fj[k] = 100 - (fl_wide)(9 * k);
    }
    for (int m = 0; m < 3; m++) {
        fl_oracle_result o;
        FX_MUST(fl_oracle_clairvoyant(&t, (fl_objective)m, 100, false, &o, d));
        FL_CHECK(o.feasible && !o.schedule && !o.change, "E T^%d", m);
        free(o.schedule);
    }
    fl_oracle_table_free(&t);
}

FL_SUITE("oracle_search", {"no single change helps", test_polished}, {"the bound meets the optimum", test_bound_meets},
         {"ties", test_ties}, {"no schedule unasked", test_unasked})
