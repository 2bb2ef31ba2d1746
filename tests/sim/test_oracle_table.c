/* How ops become positions, and when a power wall is in reach: by hand, at the border and on both sides of it. */
#include "tests/support/oracle_rig.h"

/* So many positions as were asked for, or an op each where there are no more ops. Their ends are where the time as
 * recorded has passed as many equal parts; ops of no length at the end belong to the last position. */
static void test_cut(void) {
    static const struct {
        const char *what;
        int64_t work_us[8];
        size_t ops, asked, positions;
        uint64_t first[9];
        bool per_op;
    } rows[] = {
        {"fewer ops than asked for", {5, 1, 9}, 3, 4, 3, {0, 1, 2, 3}, true},
        {"as many ops, most of the time in the first", {90, 1, 1, 1}, 4, 4, 4, {0, 1, 2, 3, 4}, true},
        {"one op more than asked for", {1, 1, 1, 1}, 4, 3, 3, {0, 2, 3, 4}, false},
        {"halves to the nanosecond", {2, 2, 2, 2}, 4, 2, 2, {0, 2, 4}, false},
        {"most of the time in the first", {90, 1, 1, 1}, 4, 3, 3, {0, 1, 2, 4}, false},
        {"no length at the end", {2, 2, 2, 0, 0}, 5, 3, 3, {0, 1, 2, 5}, false},
        {"and of one position", {1, 1, 0, 0}, 4, 1, 1, {0, 4}, false},
        {"most of the time in the last", {1, 1, 1, 90}, 4, 3, 1, {0, 4}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_rig r;
        fx_open(&r, 1);
        const uint32_t c = fx_light(&r), s = fx_stream(&r, 0, 0);
        for (size_t k = 0; k < rows[i].ops; k++)
            fx_op(&r, s, 0, rows[i].work_us[k] * 1000, c);
        fx_finish(&r, 1);
        fl_oracle_table t;
        table_of(&r, rows[i].asked, &t);
        FL_CHECK(t.exact && t.per_op == rows[i].per_op && t.positions == rows[i].positions,
                 "%s: %zu positions, an op each %d", rows[i].what, t.positions, t.per_op);
        for (size_t k = 0; k <= t.positions && k <= rows[i].positions; k++)
            FL_CHECK(t.op[k] == rows[i].first[k], "%s: position %zu begins at op %d", rows[i].what, k, (int)t.op[k]);
        fl_oracle_table_free(&t);
        fx_close(&r);
    }
}

/* A compute-bound kernel draws 45 W + 150 W at the highest clocks. The wall can act where that is more than the limit,
 * if by a milliwatt, and nowhere else; nor without a controller or a limit. */
static void test_wall_in_reach(void) {
    static const struct {
        double limit_w;
        int64_t period_ns;
        bool in_reach;
    } rows[] = {{195, 1000000, false},  {194.999, 1000000, true}, {195.001, 1000000, false},
                {194.9, 1000000, true}, {100, 1000000, true},     {0, 1000000, false},
                {1e-3, 1000000, true},  {100, 0, false},          {100, 1, true}};
    fx_rig r;
    fx_open(&r, 1);
    fx_op(&r, fx_stream(&r, 0, 0), 0, 1000000, fx_class(&r, 1, 0, 0, 1, 0, 1));
    fx_finish(&r, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        r.spec.device->wall =
            (fl_wall_spec){.period_ns = rows[i].period_ns, .exponent = 0.4, .aim = 0.9, .rise_mhz = 100};
        r.spec.device->power_default_w = rows[i].limit_w;
        const char *why = fl_oracle_inexact(r.w, r.rates, &r.spec);
        FL_CHECK(rows[i].in_reach ? why && !strcmp(why, "the power limit") : !why, "%g W, a look each %lld ns: %s",
                 rows[i].limit_w, (long long)rows[i].period_ns, why ? why : "exact");
    }
    fx_close(&r);
}

FL_SUITE("oracle_table", {"positions", test_cut}, {"the wall in reach", test_wall_in_reach})
