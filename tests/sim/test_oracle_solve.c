/* The parts of the clairvoyant schedule on small tables, of which every schedule is tried. */
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/oracle/inside.h"
#include "sim/oracle/oracle.h"
#include "tests/support/sim_fixture.h"

enum { POSITIONS = 5, CHOICES = 3, SCHEDULES = 243 };
static const uint64_t seed = 88;

typedef struct rig {
    int64_t ps[POSITIONS * CHOICES];
    fl_wide fj[POSITIONS * CHOICES];
    fl_oracle_table t;
    fl_total all[SCHEDULES]; /* cost is not filled */
} rig;

static void choices_of(size_t n, uint32_t *choice) {
    for (size_t i = 0; i < POSITIONS; i++, n /= CHOICES)
        choice[i] = (uint32_t)(n % CHOICES);
}

/* Slower is cheaper as a rule. Small numbers make ties, so that what is equal is tried too. */
static void draw(rig *r, fl_random *g, bool small, bool stalls) {
    const uint64_t most = small ? 6 : 1000000;
    for (size_t k = 0; k < POSITIONS * CHOICES; k++) {
        r->ps[k] = 1 + (int64_t)(fl_random_below(g, most) * (1 + k % CHOICES));
        r->fj[k] = 1 + (fl_wide)(fl_random_below(g, most) * (CHOICES - k % CHOICES) * 3);
    }
    r->t = (fl_oracle_table){.positions = POSITIONS, .choices = CHOICES, .time_ps = r->ps, .energy_fj = r->fj};
    r->t.switch_ps = stalls ? 1 + (int64_t)fl_random_below(g, most) / 2 : 0;
    r->t.switch_fj = stalls ? (int64_t)fl_random_below(g, most) / 2 : 0;
    for (size_t n = 0; n < SCHEDULES; n++) {
        uint32_t choice[POSITIONS];
        uint64_t switches = 0, changes = 0;
        choices_of(n, choice);
        fl_total sum = {0};
        for (size_t i = 0; i < POSITIONS; i++) {
            const bool moves = i && choice[i] != choice[i - 1];
            sum.time_ps += r->ps[i * CHOICES + choice[i]] + (moves ? r->t.switch_ps : 0);
            sum.energy_fj += r->fj[i * CHOICES + choice[i]] + (moves ? r->t.switch_fj : 0);
            changes += moves;
        }
        const fl_total total = fl_oracle_total(&r->t, choice, &switches);
        FL_CHECK(total.time_ps == sum.time_ps && total.energy_fj == sum.energy_fj && switches == changes,
                 "schedule %zu: %lld ps, %llu switches", n, (long long)total.time_ps, (unsigned long long)switches);
        r->all[n] = sum;
    }
}

/* The least priced cost; of equal costs the fastest, then the cheapest. */
static void test_price(void) {
    fl_random g = fl_random_seed(seed, 1);
    printf(" seed %llu ", (unsigned long long)seed);
    for (int n = 0; n < 200; n++) {
        rig r;
        draw(&r, &g, n % 2, n % 4 > 1);
        const fl_price prices[] = {{0, 1},
                                   {1, 0},
                                   {1, 1},
                                   {1, 1 + (int64_t)fl_random_below(&g, 9)},
                                   fl_price_at((int64_t)fl_random_below(&g, 9000000))};
        for (size_t k = 0; k < sizeof prices / sizeof *prices; k++) {
            fl_total best = {0}, found, again;
            for (size_t i = 0; i < SCHEDULES; i++) {
                fl_total at = r.all[i];
                at.cost = at.energy_fj * prices[k].energy + (fl_wide)at.time_ps * prices[k].time;
                if (!i || at.cost < best.cost ||
                    (at.cost == best.cost &&
                     (at.time_ps < best.time_ps || (at.time_ps == best.time_ps && at.energy_fj < best.energy_fj))))
                    best = at;
            }
            uint32_t choice[POSITIONS];
            uint64_t switches;
            FX_MUST(fl_oracle_at_price(&r.t, prices[k], choice, &found, d));
            FX_MUST(fl_oracle_at_price(&r.t, prices[k], NULL, &again, d));
            FL_CHECK(found.cost == best.cost && found.time_ps == best.time_ps && found.energy_fj == best.energy_fj,
                     "case %d, price %zu: %.17g, the least is %.17g", n, k, fx_f(found.cost), fx_f(best.cost));
            FL_CHECK(again.cost == found.cost && again.time_ps == found.time_ps, "case %d: without its choices", n);
            const fl_total told = fl_oracle_total(&r.t, choice, &switches);
            FL_CHECK(told.time_ps == found.time_ps && told.energy_fj == found.energy_fj,
                     "case %d, price %zu: the choices are not those of the total", n, k);
        }
    }
}

/* The optimum within a limit, by labels, from any schedule that holds it, and with any price to prune by. */
static void test_labels(void) {
    fl_random g = fl_random_seed(seed, 2);
    for (int n = 0; n < 300; n++) {
        rig r;
        draw(&r, &g, n % 2, n % 4 > 1);
        int64_t fastest = INT64_MAX, slowest = 0;
        for (size_t i = 0; i < SCHEDULES; i++) {
            fastest = r.all[i].time_ps < fastest ? r.all[i].time_ps : fastest;
            slowest = r.all[i].time_ps > slowest ? r.all[i].time_ps : slowest;
        }
        const int64_t limit = fastest + (int64_t)fl_random_below(&g, (uint64_t)(slowest - fastest) + 1);
        for (int m = 0; m < 3; m++) {
            long double least = INFINITY;
            size_t start = SCHEDULES;
            for (size_t i = 0; i < SCHEDULES; i++) {
                const size_t at = (i + (size_t)n * 7) % SCHEDULES;
                if (r.all[at].time_ps > limit)
                    continue;
                const long double f = fl_product(m, r.all[at].energy_fj, r.all[at].time_ps);
                least = f < least ? f : least;
                start = start < SCHEDULES ? start : at;
            }
            static const int64_t fixed[] = {0, 1, FL_PRICE_MAX};
            const int64_t price = n % 5 < 3 ? fixed[n % 5] : (int64_t)fl_random_below(&g, 9000000);
            uint32_t choice[POSITIONS];
            uint64_t switches;
            bool solved = false;
            fl_total total = r.all[start];
            choices_of(start, choice);
            FX_MUST(fl_oracle_labels(&r.t, m, limit, price, choice, &total, &solved, d));
            FL_CHECK(solved && fl_product(m, total.energy_fj, total.time_ps) == least && total.time_ps <= limit,
                     "case %d, E T^%d, price %lld: %.17Lg, the least is %.17Lg", n, m, (long long)price,
                     fl_product(m, total.energy_fj, total.time_ps), least);
            const fl_total told = fl_oracle_total(&r.t, choice, &switches);
            FL_CHECK(told.time_ps == total.time_ps && told.energy_fj == total.energy_fj,
                     "case %d, E T^%d: the choices are not those of the total", n, m);
        }
    }
}

/* A table that is not small is left as it is: more than 65,536 cells. */
static void test_large(void) {
    enum { MOST = 1 << 16 };
    int64_t *ps = fx_alloc(MOST + 1, sizeof *ps);
    fl_wide *fj = fx_alloc(MOST + 1, sizeof *fj);
    uint32_t *choice = fx_alloc(MOST + 1, sizeof *choice);
    for (int over = 0; over < 2; over++) {
        const fl_oracle_table t = {.positions = MOST + (size_t)over, .choices = 1, .time_ps = ps, .energy_fj = fj};
        fl_total total = {.energy_fj = 7, .time_ps = 3};
        bool solved = !over;
        FX_MUST(fl_oracle_labels(&t, 0, 5, 1, choice, &total, &solved, d));
        FL_CHECK(solved == !over && total.energy_fj == (over ? 7 : 0), "%d over: solved %d", over, solved);
    }
    free(ps);
    free(fj);
    free(choice);
}

/* Schedules on one line of time and energy: where the known one is on that line at the limit, none is better, and none
 * is looked at. Their times all differ, so whoever went on with what is equal would find too many labels. */
static void test_equals(void) {
    enum { LONG = 20 };
    int64_t ps[2 * LONG];
    fl_wide fj[2 * LONG];
    uint32_t choice[LONG];
    const uint32_t slow = 699999; /* a bit for each position that takes its slow choice */
    for (size_t i = 0; i < LONG; i++) {
        ps[2 * i] = 1, fj[2 * i] = 1 + (INT64_C(1) << i);
        ps[2 * i + 1] = 1 + (INT64_C(1) << i), fj[2 * i + 1] = 1;
        choice[i] = slow >> i & 1;
    }
    const fl_oracle_table t = {.positions = LONG, .choices = 2, .time_ps = ps, .energy_fj = fj};
    uint64_t switches;
    bool solved = false;
    fl_total total = fl_oracle_total(&t, choice, &switches);
    const fl_total known = total;
    FX_MUST(fl_oracle_labels(&t, 0, known.time_ps, INT64_C(1) << FL_PRICE_BITS, choice, &total, &solved, d));
    FL_CHECK(solved && total.energy_fj == known.energy_fj && total.time_ps == known.time_ps,
             "solved %d, %.17g fJ, %lld ps", solved, fx_f(total.energy_fj), (long long)total.time_ps);
}

/* The least price that is none: a fJ for each 2^20 ps. All lie on its line, and E T is least at the slow end of it. */
static void test_least_price(void) {
    enum { UNIT = 1 << FL_PRICE_BITS };
    static const int64_t slow[2][3] = {{0, 0, 0}, {5, 13, 14}}; /* of UNIT ps; the energies add up to 15 with them */
    int64_t ps[6];
    fl_wide fj[6];
    for (size_t k = 0; k < 6; k++) {
        ps[k] = slow[k / 3][k % 3] * UNIT;
        fj[k] = k < 3 ? 0 : 15 - slow[1][k % 3];
    }
    const fl_oracle_table t = {.positions = 2, .choices = 3, .time_ps = ps, .energy_fj = fj};
    uint32_t choice[] = {1, 1};
    uint64_t switches;
    bool solved = false;
    fl_total total = fl_oracle_total(&t, choice, &switches);
    FX_MUST(fl_oracle_labels(&t, 1, INT64_C(100) * UNIT, 1, choice, &total, &solved, d));
    FL_CHECK(solved && total.energy_fj == 1 && total.time_ps == INT64_C(14) * UNIT && choice[1] == 2,
             "%.17g fJ, %lld ps", fx_f(total.energy_fj), (long long)total.time_ps);
}

/* What cannot hold the limit any more with all that is to come is not looked at: of a million schedules whose times all
 * differ three can, whatever the energy of what is known, and so they are found. */
static void test_late(void) {
    enum { LONG = 20, FAST_PS = 1 << 21 };
    int64_t ps[2 * LONG];
    fl_wide fj[2 * LONG];
    uint32_t choice[LONG] = {0};
    for (size_t i = 0; i < LONG; i++) {
        ps[2 * i] = FAST_PS, fj[2 * i] = INT64_C(1) << 40;
        ps[2 * i + 1] = FAST_PS + (INT64_C(1) << i), fj[2 * i + 1] = (INT64_C(1) << 40) - (INT64_C(1) << i);
    }
    const fl_oracle_table t = {.positions = LONG, .choices = 2, .time_ps = ps, .energy_fj = fj};
    uint64_t switches;
    bool solved = false;
    fl_total total = fl_oracle_total(&t, choice, &switches);
    const fl_wide dearest = total.energy_fj;
    const int64_t limit_ps = (int64_t)LONG * FAST_PS + 2;
    FX_MUST(fl_oracle_labels(&t, 0, limit_ps, 0, choice, &total, &solved, d));
    FL_CHECK(solved && total.time_ps == limit_ps && total.energy_fj == dearest - 2 && choice[1] == 1,
             "solved %d, %.17g fJ less, %lld ps", solved, fx_f(dearest - total.energy_fj), (long long)total.time_ps);
}

/* It gives up after 2^20 looks, however few labels it keeps: at most 1,024 of them at each position, of 64 choices that
 * are all the same but one. With 2 labels after the second position, and twice as many after each up to the eleventh,
 * the first eleven take 64 x 1,024 looks and each further one as many: 26 positions take 2^20. */
static void test_looks(void) {
    enum { LONG = 40, WIDE = 64, BITS = 11 };
    int64_t *ps = fx_alloc(LONG * WIDE, sizeof *ps);
    fl_wide *fj = fx_alloc(LONG * WIDE, sizeof *fj);
    for (size_t i = 0; i < LONG; i++)
        for (size_t c = 0; c < WIDE; c++) {
            const bool slow = i < BITS && i != 1 && c == 1;
            const int bit = i ? (int)i - 1 : 0;
            ps[i * WIDE + c] = 1 + (slow ? INT64_C(1) << bit : 0);
            fj[i * WIDE + c] = 2000 - (slow ? 1 << bit : 0);
        }
    static const struct {
        size_t positions;
        bool solved;
    } rows[] = {{20, true}, {26, true}, {27, false}, {40, false}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const fl_oracle_table t = {.positions = rows[k].positions, .choices = WIDE, .time_ps = ps, .energy_fj = fj};
        uint32_t choice[LONG] = {0};
        bool solved = !rows[k].solved;
        fl_total total = {.energy_fj = 1000000, .time_ps = 1000000};
        FX_MUST(fl_oracle_labels(&t, 0, 1000000, 0, choice, &total, &solved, d));
        FL_CHECK(solved == rows[k].solved, "%zu positions: solved %d", rows[k].positions, solved);
        FL_CHECK(total.energy_fj == (solved ? (fl_wide)(2000 * rows[k].positions - 1023) : 1000000),
                 "%zu positions: %.17g fJ", rows[k].positions, fx_f(total.energy_fj));
    }
    free(ps);
    free(fj);
}

FL_SUITE("oracle_solve", {"at a price", test_price}, {"labels", test_labels}, {"large", test_large},
         {"equals", test_equals}, {"the least price", test_least_price}, {"late", test_late}, {"looks", test_looks})
