#include "models/laws/laws.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#define ONE FL_SHARE_ONE
#define CASES 20000
static const uint64_t seed = 424242;

static void test_fill(void) {
    static const struct {
        uint32_t demand[4], grant[4];
        size_t count;
        uint32_t capacity;
    } rows[] = {
        {{10, 20, 30}, {10, 20, 30}, 3, 60},            /* all fits, exactly */
        {{40, 40}, {30, 30}, 2, 60},                    /* evenly */
        {{10, 100, 100}, {10, 25, 25}, 3, 60},          /* what the small one leaves is shared */
        {{10, 22, 100, 100}, {10, 22, 34, 34}, 4, 100}, /* 22 is met only after 10 has left over: 25, then (100-32)/2 */
        {{28, 10, 100, 100}, {28, 10, 31, 31}, 4, 100}, /* 28 is met only in the second pass */
        {{50, 50, 50}, {33, 33, 33}, 3, 100},           /* rounded down */
        {{0, 200}, {0, 100}, 2, 100},
        {{7}, {5}, 1, 5},
        {{7, 8}, {0, 0}, 2, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t grant[4] = {0};
        fl_shares_fill(rows[i].demand, grant, rows[i].count, rows[i].capacity);
        FL_CHECK(memcmp(grant, rows[i].grant, rows[i].count * sizeof *grant) == 0, "row %zu: %u %u %u %u", i, grant[0],
                 grant[1], grant[2], grant[3]);
    }
    fl_shares_fill(NULL, NULL, 0, ONE);
}

static void test_rates(void) {
    static const struct {
        uint32_t sms[3], memory[3], rate[3];
        size_t count;
        const char *what;
    } rows[] = {
        {{ONE}, {ONE}, {ONE}, 1, "alone"},
        {{ONE / 2, ONE / 2}, {ONE / 2, ONE / 2}, {ONE, ONE}, 2, "everything fits"},
        {{ONE, ONE}, {0, 0}, {ONE / 2, ONE / 2}, 2, "two share the SMs"},
        {{ONE, ONE / 4}, {0, 0}, {3 * ONE / 4, ONE}, 2, "a small one keeps its quarter"},
        {{ONE / 4, ONE / 4}, {ONE, ONE}, {ONE / 2, ONE / 2}, 2, "two share the bandwidth"},
        {{ONE / 4, ONE / 4}, {ONE, ONE / 4}, {3 * ONE / 4, ONE}, 2, "the lighter one is not held back"},
        {{ONE, ONE}, {ONE, ONE}, {ONE / 2, ONE / 2}, 2, "half the SMs ask for half the bandwidth"},
        {{ONE, ONE, 0},
         {ONE / 2, ONE / 2, ONE},
         {ONE / 2, ONE / 2, ONE / 2},
         3,
         "a copy (no SMs) beside two that SMs halve: quarters are met, the copy gets the other half"},
        {{0, 0}, {0, 0}, {ONE, ONE}, 2, "no demand is no bound"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t rate[3] = {0};
        fl_shares_rates(rows[i].sms, rows[i].memory, rate, rows[i].count, ONE, 0);
        for (size_t k = 0; k < rows[i].count; k++)
            FL_CHECK(rate[k] == rows[i].rate[k], "%s: rate %zu is %u, expected %u", rows[i].what, k, rate[k],
                     rows[i].rate[k]);
    }
    fl_shares_rates(NULL, NULL, NULL, 0, ONE, 0);
}

/* Demands of many sizes, zeros, ties and full ones among them. */
static size_t draw(fl_random *random, uint32_t *demand) {
    const size_t count = 1 + fl_random_below(random, fl_random_below(random, 20) ? 12 : FL_SHARES_MAX);
    const uint64_t span = UINT64_C(1) << fl_random_below(random, 17);
    for (size_t i = 0; i < count; i++) {
        const uint64_t kind = fl_random_below(random, 8);
        demand[i] = kind == 0 ? 0 : kind == 1 ? ONE : (uint32_t)fl_random_below(random, span + 1);
    }
    return count;
}

/* What makes a filling max-min fair: within the capacity, nothing left over beyond the rounding, and everybody who gets
 * less than it asked for gets as much as anybody gets. */
static void test_fair(void) {
    printf(" seed %llu ", (unsigned long long)seed);
    fl_random random = fl_random_seed(seed, 1);
    for (int c = 0; c < CASES; c++) {
        uint32_t demand[FL_SHARES_MAX], grant[FL_SHARES_MAX], top = 0;
        const size_t count = draw(&random, demand);
        uint64_t asked = 0, given = 0;
        fl_shares_fill(demand, grant, count, ONE);
        for (size_t i = 0; i < count; i++) {
            asked += demand[i];
            given += grant[i];
            top = grant[i] > top ? grant[i] : top;
            FL_CHECK(grant[i] <= demand[i], "case %d: %u of %u", c, grant[i], demand[i]);
        }
        for (size_t i = 0; i < count; i++)
            FL_CHECK(grant[i] == demand[i] || grant[i] == top, "case %d: %u of %u, another gets %u", c, grant[i],
                     demand[i], top);
        FL_CHECK(given <= ONE, "case %d: %llu given", c, (unsigned long long)given);
        FL_CHECK(asked <= ONE ? given == asked : given + count > ONE, "case %d: %llu given of %llu", c,
                 (unsigned long long)given, (unsigned long long)asked);
    }
}

static void test_order(void) {
    printf(" seed %llu ", (unsigned long long)seed);
    fl_random random = fl_random_seed(seed, 2);
    for (int c = 0; c < CASES; c++) {
        uint32_t sms[FL_SHARES_MAX], memory[FL_SHARES_MAX], rate[FL_SHARES_MAX];
        uint32_t sms2[FL_SHARES_MAX], memory2[FL_SHARES_MAX], rate2[FL_SHARES_MAX];
        size_t place[FL_SHARES_MAX];
        const size_t count = draw(&random, sms);
        for (size_t i = 0; i < count; i++) {
            memory[i] = (uint32_t)fl_random_below(&random, ONE + 1);
            place[i] = i;
        }
        for (size_t i = count - 1; i > 0; i--) {
            const size_t j = fl_random_below(&random, i + 1), kept = place[i];
            place[i] = place[j];
            place[j] = kept;
        }
        for (size_t i = 0; i < count; i++) {
            sms2[i] = sms[place[i]];
            memory2[i] = memory[place[i]];
        }
        fl_shares_rates(sms, memory, rate, count, ONE, 0);
        fl_shares_rates(sms2, memory2, rate2, count, ONE, 0);
        for (size_t i = 0; i < count; i++) {
            FL_CHECK(rate2[i] == rate[place[i]], "case %d: %u and %u for the same kernel", c, rate2[i], rate[place[i]]);
            FL_CHECK(rate[i] >= 1 && rate[i] <= ONE, "case %d: rate %u", c, rate[i]);
        }
    }
}

/* What runs never takes more than there is of either resource, beyond the rounding of one unit each. */
static void test_conserved(void) {
    printf(" seed %llu ", (unsigned long long)seed);
    fl_random random = fl_random_seed(seed, 3);
    for (int c = 0; c < CASES; c++) {
        uint32_t sms[FL_SHARES_MAX], memory[FL_SHARES_MAX], rate[FL_SHARES_MAX];
        const size_t count = draw(&random, sms);
        uint64_t sm_used = 0, memory_used = 0;
        for (size_t i = 0; i < count; i++)
            memory[i] = (uint32_t)fl_random_below(&random, ONE + 1);
        fl_shares_rates(sms, memory, rate, count, ONE, 0);
        for (size_t i = 0; i < count; i++) {
            sm_used += (uint64_t)sms[i] * rate[i] >> 16;
            memory_used += (uint64_t)memory[i] * rate[i] >> 16;
        }
        FL_CHECK(sm_used <= ONE, "case %d: %llu of the SMs", c, (unsigned long long)sm_used);
        FL_CHECK(memory_used <= ONE, "case %d: %llu of the bandwidth", c, (unsigned long long)memory_used);
    }
}

/* 1 / (1 + gamma (D - 1)) of the capacity, and all of it where nothing is scarce: D <= 1, also where the capacity is
 * less than all and something is scarce nevertheless. */
static void test_capacity(void) {
    static const struct {
        uint64_t asked;
        uint32_t capacity, gamma, left;
    } rows[] = {
        {ONE / 2, ONE, ONE, ONE},
        {ONE - 1, ONE, UINT32_MAX, ONE},
        {0, ONE, ONE, ONE},
        {ONE, ONE, ONE, ONE},
        {2 * ONE, ONE, ONE, ONE / 2},
        {2 * ONE, ONE / 2, ONE, ONE / 4},
        {3 * ONE, ONE, ONE / 2, ONE / 2},
        {4 * ONE, ONE, 0, ONE},
        {4 * ONE, ONE, ONE, ONE / 4},
        {FL_SHARES_MAX * (uint64_t)ONE, ONE, ONE, ONE / FL_SHARES_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint32_t left = fl_shares_capacity(rows[i].asked, rows[i].capacity, rows[i].gamma);
        FL_CHECK(left == rows[i].left, "row %zu: %u left, expected %u", i, left, rows[i].left);
    }
    /* an APU's bus at a half, asked for three quarters: scarce, but no interference */
    uint32_t rate[3];
    fl_shares_rates((uint32_t[]){0, 0, 0}, (uint32_t[]){ONE / 4, ONE / 4, ONE / 4}, rate, 3, ONE / 2, ONE);
    FL_CHECK(rate[0] == rate[1] && rate[1] == rate[2] && rate[0] > ONE * 2 / 3 - 4 && rate[0] <= ONE * 2 / 3,
             "each at %u, expected two thirds", rate[0]);
    /* next to nothing left: everybody still moves, or nothing would ever end */
    fl_shares_rates((uint32_t[]){0, 0, 0}, (uint32_t[]){ONE, ONE, ONE}, rate, 3, 2, 0);
    FL_CHECK(rate[0] == 1 && rate[1] == 1 && rate[2] == 1, "at least at 1: %u", rate[0]);
}

FL_SUITE("shares", {"fill", test_fill}, {"rates", test_rates}, {"fair", test_fair}, {"order", test_order},
         {"conserved", test_conserved}, {"capacity", test_capacity})
