#include "tests/support/oracle_rig.h"
#include "sim/synth/inside.h"
#include "sim/synth/synth.h"

/* ---- tables ---- */

static void test_columns(void) {
    static const size_t cuts[] = {POSITIONS_MANY, 1, 7, 100};
    printf("(seed %llu) ", (unsigned long long)SEED);
    for (uint64_t n = 0; n < (fl_nightly() ? 24 : 12); n++) {
        fl_random g = fl_random_seed(SEED, n);
        fx_rig r;
        uint32_t gpus = 1 + (uint32_t)(n % 3);
        random_rig(&r, &g, gpus, (uint32_t)(n % gpus), 20 + 40 * n);
        fl_oracle_table t;
        table_of(&r, cuts[n % 4], &t);
        FL_CHECK(t.exact && !fl_oracle_inexact(r.w, r.rates, &r.spec), "instance %d", (int)n);
        FL_CHECK(t.choices == (size_t)r.spec.device->sm_count * 2, "instance %d: %zu choices", (int)n, t.choices);
        FL_CHECK(t.positions <= cuts[n % 4], "instance %d: %zu positions", (int)n, t.positions);
        FL_CHECK(t.op[0] == 0 && t.op[t.positions] == r.w->op_count, "instance %d: every op has a position", (int)n);
        FL_CHECK(t.per_op == (t.positions == r.w->op_count), "instance %d", (int)n);
        fl_static_point *point = fx_alloc(t.choices, sizeof *point);
        fl_oracle_table_points(&t, point);
        for (size_t c = 0; c < t.choices; c++) {
            int64_t ps;
            fl_wide fj;
            column(&t, c, &ps, &fj);
            FL_CHECK(point[c].makespan_ps == ps && point[c].energy_fj == fj, "instance %d, choice %zu: kind by kind",
                     (int)n, c);
            fl_static_point p;
            FX_MUST(fl_static_run(r.w, r.rates, &r.spec, &r.facts, &t.choice[c], &p, d));
            FL_CHECK(p.makespan_ps == ps, "instance %d, choice %zu: %lld ps by the engine, %lld by the table", (int)n,
                     c, (long long)p.makespan_ps, (long long)ps);
            FL_CHECK(p.energy_fj == fj, "instance %d, choice %zu: %.17g fJ by the engine, %.17g by the table", (int)n,
                     c, fx_f(p.energy_fj), fx_f(fj));
        }
        free(point);
        fl_oracle_table_free(&t);
        fx_close(&r);
    }
}

/* The engine, told to switch where the positions end, takes and uses what the table says. */
static void test_executed(void) {
    for (uint64_t n = 0; n < (fl_nightly() ? 24 : 12); n++) {
        fl_random g = fl_random_seed(SEED + 1, n);
        fx_rig r;
        random_rig(&r, &g, 1, 0, 300);
        fl_oracle_table t;
        table_of(&r, n % 2 ? POSITIONS_MANY : 20, &t);
        fl_node *node = fx_node(&r, 0, n % 3 == 2);
        int64_t at = 0;
        fl_wide fj = 0;
        for (size_t i = 0; i < t.positions; i++) {
            size_t c = (size_t)fl_random_below(&g, t.choices);
            fl_node_set(node, 0, at, t.choice[c].sm_mhz, t.choice[c].mem_mhz);
            at += t.time_ps[i * t.choices + c];
            fj += t.energy_fj[i * t.choices + c];
            while (fl_node_now(node) < at)
                fx_advance(node, at);
        }
        fx_to_end(node);
        FL_CHECK(fl_node_now(node) == at, "instance %d: %lld ps, the table says %lld", (int)n,
                 (long long)fl_node_now(node), (long long)at);
        FL_CHECK(fx_energy(node) == fj, "instance %d: %.17g fJ, the table says %.17g", (int)n, fx_f(fx_energy(node)),
                 fx_f(fj));
        fl_node_close(node);
        fl_oracle_table_free(&t);
        fx_close(&r);
    }
}

static void test_choices(void) {
    fx_rig r;
    fx_open(&r, 1);
    double x[3] = {600, 900, 1200}, time[3] = {1.5, 1.1, 1}, power[3] = {80, 90, 120};
    fl_measured m = {0};
    fl_curve_new(&m.time_ratio, x, time, 3);
    fl_curve_new(&m.power_w, x, power, 3);
    fl_load load = {.measured = &m, .sm_demand = 1, .ref_sm_mhz = 1200, .ref_mem_mhz = 800};
    fl_kernel_kind kind = {.name = "measured"};
    uint32_t id;
    FX_MUST(fl_workload_add_class(r.w, &load, &kind, &id, d));
    fx_op(&r, fx_stream(&r, 0, 0), 0, 1000, id);
    fx_finish(&r, 1);
    fl_choice *c;
    size_t count;
    FX_MUST(fl_oracle_choices(r.w, &r.spec, &c, &count, d));
    FL_CHECK(count == 7 && c[0].sm_mhz == 600 && c[6].sm_mhz == 1200, "%zu choices", count);
    FL_CHECK(c[0].mem_mhz == 800 && c[0].mem == 1 && c[0].sm == 1, "measured at one memory clock");
    free(c);
    r.w->sm_min_mhz = 800;
    r.w->sm_max_mhz = 1000;
    FX_MUST(fl_oracle_choices(r.w, &r.spec, &c, &count, d));
    FL_CHECK(count == 3 && c[0].sm_mhz == 800 && c[2].sm_mhz == 1000, "%zu choices", count);
    free(c);
    r.w->sm_min_mhz = 2000;
    fl_diag diag = {0};
    FL_CHECK(fl_oracle_choices(r.w, &r.spec, &c, &count, &diag) == FL_BAD_INPUT, "no choice");
    FL_CHECK(strstr(diag.message, "known from 2000"), "%s", diag.message);
    fx_close(&r);
}

static void test_static_best(void) {
    fl_static_point p[] = {{.at = {.sm_mhz = 500, .mem_mhz = 800}, .makespan_ps = 4000, .energy_fj = 100},
                           {.at = {.sm_mhz = 800, .mem_mhz = 400}, .makespan_ps = 3000, .energy_fj = 150},
                           {.at = {.sm_mhz = 800, .mem_mhz = 800}, .makespan_ps = 3000, .energy_fj = 150},
                           {.at = {.sm_mhz = 1000, .mem_mhz = 800}, .makespan_ps = 1000, .energy_fj = 300}};
    FL_CHECK(fl_static_best(p, 4, FL_MIN_ENERGY, INT64_MAX) == 0, "least energy");
    FL_CHECK(fl_static_best(p, 4, FL_MIN_ENERGY, 4000) == 0, "the limit itself is allowed");
    FL_CHECK(fl_static_best(p, 4, FL_MIN_ENERGY, 3999) == 2, "a tie goes to the higher clock");
    FL_CHECK(fl_static_best(p, 4, FL_MIN_ENERGY, 2999) == 3, "only one holds");
    FL_CHECK(fl_static_best(p, 4, FL_MIN_ENERGY, 999) == 4, "none holds");
    FL_CHECK(fl_static_best(p, 3, FL_MIN_EDP, INT64_MAX) == 0, "400 < 450");
    FL_CHECK(fl_static_best(p, 3, FL_MIN_ED2P, INT64_MAX) == 2, "1600 > 1350");
    FL_CHECK(fl_static_best(p, 4, FL_MIN_EDP, INT64_MAX) == 3, "300 < 400");
    FL_CHECK(fl_limit_ps(10, 0.1) == 11 && fl_limit_ps(1000, 0.7) == 1700 && fl_limit_ps(9, 0.1) == 9, "limits");
    FL_CHECK(fl_limit_ps(5, INFINITY) == INT64_MAX && fl_limit_ps(INT64_MAX - 5, 0.5) == INT64_MAX, "no limit");
    FL_CHECK(fl_limit_ps(INT64_C(1000000000000000), 0) == INT64_C(1000000000000000), "no slack");
}

/* ---- brute force ---- */

#define LIMITS 6
#define SIZE_MAX_P 8
#define SIZE_MAX_C 4

typedef struct brute {
    const fl_oracle_table *t;
    int objectives; /* 1: energy only, as products of large numbers do not fit */
    int64_t limit[LIMITS];
    fl_wide best[LIMITS][3]; /* E T^m; -1 = none */
} brute;

static void enumerate(brute *b, size_t i, size_t last, int64_t ps, fl_wide fj) {
    if (i == b->t->positions) {
        fl_wide f[3] = {fj, 0, 0};
        for (int m = 1; m < b->objectives; m++)
            f[m] = f[m - 1] * ps;
        for (int k = 0; k < LIMITS; k++)
            for (int m = 0; m < b->objectives && ps <= b->limit[k]; m++)
                if (b->best[k][m] < 0 || f[m] < b->best[k][m])
                    b->best[k][m] = f[m];
        return;
    }
    for (size_t c = 0; c < b->t->choices; c++) {
        size_t cell = i * b->t->choices + c;
        bool moves = i && c != last;
        enumerate(b, i + 1, c, ps + b->t->time_ps[cell] + (moves ? b->t->switch_ps : 0),
                  fj + b->t->energy_fj[cell] + (moves ? b->t->switch_fj : 0));
    }
}

typedef struct small_table {
    fl_oracle_table t;
    int64_t ps[SIZE_MAX_P * SIZE_MAX_C];
    fl_wide fj[SIZE_MAX_P * SIZE_MAX_C];
} small_table;

/* Few or many values, so with ties or without; energy falling with time or unrelated to it; switches free or not. */
static void random_table(small_table *s, fl_random *g, uint64_t n) {
    *s = (small_table){0};
    s->t = (fl_oracle_table){.positions = 1 + (size_t)fl_random_below(g, n % 5 ? 6 : SIZE_MAX_P),
                             .choices = 1 + (size_t)fl_random_below(g, SIZE_MAX_C),
                             .exact = true};
    s->t.time_ps = s->ps;
    s->t.energy_fj = s->fj;
    uint64_t range = n % 3 == 0 ? 5 : n % 3 == 1 ? 60 : 2000;
    for (size_t k = 0; k < s->t.positions * s->t.choices; k++) {
        s->ps[k] = (int64_t)fl_random_below(g, range + 1) + (n % 4 != 0);
        s->fj[k] = n % 2 ? (int64_t)fl_random_below(g, range + 1)
                         : (int64_t)(range + 1) * 3 - 2 * s->ps[k] + (int64_t)fl_random_below(g, range / 2 + 1);
    }
    if (n % 7 >= 3) {
        s->t.switch_ps = (int64_t)fl_random_below(g, range / 2 + 1);
        s->t.switch_fj = (int64_t)fl_random_below(g, range / 2 + 1);
    }
}

static void set_limits(brute *b, fl_random *g) {
    int64_t least = 0, most = 0;
    const fl_oracle_table *t = b->t;
    for (size_t i = 0; i < t->positions; i++) {
        int64_t lo = INT64_MAX, hi = 0;
        for (size_t c = 0; c < t->choices; c++) {
            lo = t->time_ps[i * t->choices + c] < lo ? t->time_ps[i * t->choices + c] : lo;
            hi = t->time_ps[i * t->choices + c] > hi ? t->time_ps[i * t->choices + c] : hi;
        }
        least += lo;
        most += hi;
    }
    b->limit[0] = least - 1; /* nothing holds it */
    b->limit[1] = least;
    b->limit[2] = INT64_MAX;
    for (int k = 3; k < LIMITS; k++)
        b->limit[k] = least + (int64_t)fl_random_below(g, (uint64_t)(most - least + 1));
    for (int k = 0; k < LIMITS; k++)
        for (int m = 0; m < 3; m++)
            b->best[k][m] = -1;
}

static void check_against(const brute *b, const fl_oracle_table *t, int k, int m, int n) {
    fl_oracle_result r = solve(t, (fl_objective)m, b->limit[k]);
    FL_CHECK(r.feasible == (b->best[k][m] >= 0), "instance %d, limit %d: feasible %d", n, k, r.feasible);
    if (r.feasible && b->best[k][m] >= 0) {
        fl_wide f = r.energy_fj;
        for (int j = 0; j < m; j++)
            f *= r.time_ps;
        FL_CHECK(f == b->best[k][m], "instance %d, limit %d, objective %s: %.17g, brute force %.17g", n, k,
                 fl_objective_names[m], fx_f(f), fx_f(b->best[k][m]));
        FL_CHECK(r.solved && r.bounded, "instance %d, limit %d, objective %s: not solved", n, k, fl_objective_names[m]);
        FL_CHECK(r.time_ps <= b->limit[k], "instance %d, limit %d: %lld ps", n, k, (long long)r.time_ps);
        FL_CHECK(r.bound_fj <= b->best[k][0], "instance %d, limit %d: bound %.17g above %.17g", n, k, fx_f(r.bound_fj),
                 fx_f(b->best[k][0]));
        FL_CHECK(r.objective_bound <= r.objective, "instance %d", n);
        int64_t ps = 0;
        fl_wide fj = 0;
        uint64_t switches = 0;
        for (size_t i = 0; i < t->positions; i++) {
            switches += i && r.schedule[i] != r.schedule[i - 1];
            ps += t->time_ps[i * t->choices + r.schedule[i]];
            fj += t->energy_fj[i * t->choices + r.schedule[i]];
        }
        ps += (int64_t)switches * t->switch_ps;
        fj += (int64_t)switches * t->switch_fj;
        FL_CHECK(ps == r.time_ps && fj == r.energy_fj && switches == r.switches, "instance %d: not its schedule", n);
    } else {
        FL_CHECK(isnan(r.energy_j) && !r.schedule && !r.bounded, "instance %d: numbers without a schedule", n);
    }
    free(r.schedule);
}

static void test_brute_force(void) {
    printf("(seed %llu) ", (unsigned long long)SEED);
    for (int n = 0; n < 420; n++) {
        fl_random g = fl_random_seed(SEED + 2, (uint64_t)n);
        small_table s;
        random_table(&s, &g, (uint64_t)n);
        brute b = {.t = &s.t, .objectives = 3};
        set_limits(&b, &g);
        enumerate(&b, 0, 0, 0, 0);
        for (int k = 0; k < LIMITS; k++)
            for (int m = 0; m < 3; m++)
                check_against(&b, &s.t, k, m, n);
    }
}

/* Energies beyond 64 bits and times of hours: the integers must not wrap. */
static void test_large_numbers(void) {
    for (int n = 0; n < 60; n++) {
        fl_random g = fl_random_seed(SEED + 3, (uint64_t)n);
        small_table s;
        random_table(&s, &g, (uint64_t)n);
        for (size_t k = 0; k < s.t.positions * s.t.choices; k++) {
            s.ps[k] = s.ps[k] * INT64_C(10000000000000) + (int64_t)fl_random_below(&g, 1000);
            s.fj[k] = s.fj[k] * INT64_C(1000000000000000000) + (int64_t)fl_random_below(&g, 1000);
        }
        brute b = {.t = &s.t, .objectives = 1};
        set_limits(&b, &g);
        enumerate(&b, 0, 0, 0, 0);
        for (int k = 0; k < LIMITS; k++)
            check_against(&b, &s.t, k, 0, n);
    }
}

/* ---- bounds ---- */

static void check_bound(const fl_oracle_result *r, int64_t limit, int64_t ps, fl_wide fj, int m, int n,
                        const char *what) {
    if (ps > limit)
        return;
    FL_CHECK(fj >= r->bound_fj, "instance %d, %s: %.17g fJ, below the bound %.17g", n, what, fx_f(fj),
             fx_f(r->bound_fj));
    double value = fl_objective_value((fl_objective)m, fl_joules(fj), fl_seconds(ps));
    FL_CHECK(value >= r->objective_bound * (1 - 1e-14), "instance %d, %s, %s: %.17g, below the bound %.17g", n, what,
             fl_objective_names[m], value, r->objective_bound);
}

/* Random schedules: a random mixture of clocks, a walk towards the limit. */
static void random_schedule(const fl_oracle_table *t, fl_random *g, const fl_oracle_result *r, int64_t *ps,
                            fl_wide *fj) {
    size_t few[3], last = 0;
    uint64_t keep = fl_random_below(g, 100);
    for (int i = 0; i < 3; i++)
        few[i] = (size_t)fl_random_below(g, t->choices);
    *ps = 0, *fj = 0;
    for (size_t i = 0; i < t->positions; i++) {
        size_t c = fl_random_below(g, 100) < keep ? r->schedule[i] : few[fl_random_below(g, 3)];
        *ps += t->time_ps[i * t->choices + c] + (i && c != last ? t->switch_ps : 0);
        *fj += t->energy_fj[i * t->choices + c] + (i && c != last ? t->switch_fj : 0);
        last = c;
    }
}

static void test_bounds(void) {
    printf("(seed %llu) ", (unsigned long long)SEED);
    double widest = 0;
    for (int n = 0; n < 40; n++) {
        fl_random g = fl_random_seed(SEED + 4, (uint64_t)n);
        fx_rig r;
        random_rig(&r, &g, 1, 0, 400);
        fl_oracle_table t;
        positions_of(&r, 150, &t);
        if (n % 4 == 3) {
            t.switch_ps = t.time_ps[0] / 20;
            t.switch_fj = (int64_t)(t.energy_fj[0] / 20);
        }
        int64_t fastest;
        FX_MUST(fl_oracle_fastest(&t, &fastest, d));
        for (int m = 0; m < 3; m++)
            for (int k = 0; k < 4; k++) {
                int64_t limit = k == 3 ? INT64_MAX : fl_limit_ps(fastest, 0.01 + 0.1 * k);
                fl_oracle_result o = solve(&t, (fl_objective)m, limit);
                FL_CHECK(o.feasible && o.bounded && o.time_ps <= limit, "instance %d", n);
                check_bound(&o, limit, o.time_ps, o.energy_fj, m, n, "itself");
                FL_CHECK(o.gap_pct >= 0 && o.gap_pct < 2, "instance %d, %s, limit %d: gap %g %%", n,
                         fl_objective_names[m], k, o.gap_pct);
                widest = fmax(widest, o.gap_pct);
                for (int i = 0; i < 60; i++) {
                    int64_t ps;
                    fl_wide fj;
                    random_schedule(&t, &g, &o, &ps, &fj);
                    check_bound(&o, limit, ps, fj, m, n, "random");
                }
                for (size_t c = 0; c < t.choices; c++) {
                    fl_static_point p;
                    FX_MUST(fl_static_run(r.w, r.rates, &r.spec, &r.facts, &t.choice[c], &p, d));
                    check_bound(&o, limit, p.makespan_ps, p.energy_fj, m, n, "static");
                }
                free(o.schedule);
            }
        fl_oracle_table_free(&t);
        fx_close(&r);
    }
    printf("(widest gap %.3g %%) ", widest);
}

/* A few thousand positions: the gap is small, and the frontier changes nothing. */
static void test_gap(void) {
    fx_rig r;
    fx_open(&r, 1);
    fl_synth_options o = fl_synth_standard;
    o.kernels = 20000;
    fl_workload_free(r.w);
    FX_MUST(fl_synth_workload(&o, &r.spec, 20, &r.w, d));
    FX_MUST(fl_rates_new(&r.rates, r.w, &r.spec, d));
    fl_oracle_table t;
    positions_of(&r, 2000, &t);
    int64_t fastest;
    FX_MUST(fl_oracle_fastest(&t, &fastest, d));
    for (int m = 0; m < 3; m++)
        for (int k = 0; k < 5; k++) {
            int64_t limit = fl_limit_ps(fastest, 0.002 + 0.05 * k);
            fl_oracle_result a = solve(&t, (fl_objective)m, limit);
            fl_oracle_table plain = t;
            plain.frontier = NULL;
            plain.frontier_first = NULL;
            fl_oracle_result b = solve(&plain, (fl_objective)m, limit);
            FL_CHECK(a.gap_pct >= 0 && a.gap_pct < 0.1, "%s, limit %d: gap %g %%", fl_objective_names[m], k, a.gap_pct);
            FL_CHECK(a.bound_fj == b.bound_fj, "%s, limit %d: bound %.17g, without a frontier %.17g",
                     fl_objective_names[m], k, fx_f(a.bound_fj), fx_f(b.bound_fj));
            free(a.schedule);
            free(b.schedule);
        }
    fl_oracle_table_free(&t);
    fx_close(&r);
}

/* Equal positions: every price picks all fast or all slow. The limit allows 1000 slow ones and 3 ps more, which one
 * middle choice, picked by no price, makes use of. Too large for labels. */
static void test_mixture(void) {
    enum { POSITIONS = 40000 };
    static const int64_t ps[3] = {20, 13, 10}, fj[3] = {50, 90, 100};
    fl_oracle_table t = {.positions = POSITIONS, .choices = 3, .exact = true};
    t.time_ps = fx_alloc(POSITIONS * 3, sizeof *t.time_ps);
    t.energy_fj = fx_alloc(POSITIONS * 3, sizeof *t.energy_fj);
    for (size_t k = 0; k < POSITIONS * 3; k++) {
        t.time_ps[k] = ps[k % 3];
        t.energy_fj[k] = fj[k % 3];
    }
    int64_t limit = POSITIONS * 10 + 1000 * 10 + 3;
    fl_oracle_result o = solve(&t, FL_MIN_ENERGY, limit);
    FL_CHECK(o.energy_fj == POSITIONS * 100 - 1000 * 50 - 10 && o.time_ps == limit, "%.17g fJ, %lld ps",
             fx_f(o.energy_fj), (long long)o.time_ps);
    FL_CHECK(o.bound_fj == POSITIONS * 100 - 1000 * 50 - 15 && !o.solved, "bound %.17g fJ", fx_f(o.bound_fj));
    free(o.schedule);
    t.switch_ps = 1; /* one switch more */
    o = solve(&t, FL_MIN_ENERGY, limit);
    FL_CHECK(o.time_ps <= limit && o.energy_fj <= POSITIONS * 100 - 1000 * 50 && o.switches == 1,
             "%.17g fJ, %lld ps, %llu switches", fx_f(o.energy_fj), (long long)o.time_ps,
             (unsigned long long)o.switches);
    free(o.schedule);
    fl_oracle_table_free(&t);
}

/* Two positions, too many choices for labels. The optimum is one choice for both, picked by no price and two changes
 * away from what prices pick: the first alone breaks the limit, the second alone costs energy. */
static void test_one_for_all(void) {
    enum { CHOICES = 40000 };
    static const int64_t ps[2][3] = {{10, 13, 20}, {10, 8, 10}}, fj[2][3] = {{100, 87, 50}, {10, 21, 10}};
    fl_oracle_table t = {.positions = 2, .choices = CHOICES, .exact = true};
    t.time_ps = fx_alloc(2 * CHOICES, sizeof *t.time_ps);
    t.energy_fj = fx_alloc(2 * CHOICES, sizeof *t.energy_fj);
    for (size_t i = 0; i < 2; i++)
        for (size_t c = 0; c < CHOICES; c++) {
            t.time_ps[i * CHOICES + c] = c < 3 ? ps[i][c] : 1000;
            t.energy_fj[i * CHOICES + c] = c < 3 ? fj[i][c] : 1000;
        }
    fl_oracle_result o = solve(&t, FL_MIN_ENERGY, 21);
    FL_CHECK(o.energy_fj == 108 && o.time_ps == 21 && o.switches == 0, "%.17g fJ, %lld ps", fx_f(o.energy_fj),
             (long long)o.time_ps);
    free(o.schedule);
    fl_oracle_table_free(&t);
}

enum { CHOICES = 22 }; /* of the rig's device */

/* A run at every choice of clocks. Returns how many there are. */
static size_t run_all(fx_rig *r, fl_static_point point[CHOICES]) {
    fl_choice *choice;
    size_t count;
    FX_MUST(fl_oracle_choices(r->w, &r->spec, &choice, &count, d));
    for (size_t c = 0; c < count && c < CHOICES; c++)
        FX_MUST(fl_static_run(r->w, r->rates, &r->spec, &r->facts, &choice[c], &point[c], d));
    free(choice);
    FL_CHECK(count <= CHOICES, "%zu choices", count);
    return count < CHOICES ? count : CHOICES;
}

/* What bounds and few runs find is what runs at all choices find: alone, side by side, on two GPUs, with a wall in
 * reach, under any limit. */
static void test_static_search(void) {
    size_t held = 0;
    for (int n = 0; n < 24; n++) {
        fl_random g = fl_random_seed(SEED + 6, (uint64_t)n);
        fx_rig r;
        fx_open(&r, 1 + (n % 6 == 5));
        if (n % 4 == 3) {
            r.spec.device[0].wall = (fl_wall_spec){
                .period_ns = 1000000, .filter_ns = 1000000, .exponent = 0.4, .aim = 0.98, .rise_mhz = 100};
            r.spec.device[0].power_default_w = r.spec.device[0].power_max_w = n % 8 == 3 ? 70 : 50;
        }
        fx_random_classes(&r, &g, 4, 1);
        for (uint32_t i = 0; i < 1 + (uint32_t)n % 3; i++)
            fx_random_ops(&r, &g, fx_stream(&r, n % 6 == 5 ? i % 2 : 0, (int32_t)i), 200, 50000);
        fx_finish(&r, 5);
        fl_static_point point[CHOICES], best;
        const size_t count = run_all(&r, point);
        for (int k = 0; k < 12; k++) {
            const int64_t top = point[count - 1].makespan_ps, limit = k == 11 ? INT64_MAX : top * (98 + 4 * k) / 100;
            const fl_objective objective = (fl_objective)(k % 3);
            const size_t want = fl_static_best(point, count, objective, limit);
            bool found;
            FX_MUST(fl_static_search(r.w, r.rates, &r.spec, &r.facts, objective, limit, &best, &found, d));
            held += found;
            FL_CHECK(found == (want < count), "instance %d, limit %d: found %d", n, k, found);
            FL_CHECK(!found || (best.at.sm_mhz == point[want].at.sm_mhz && best.at.mem_mhz == point[want].at.mem_mhz &&
                                best.energy_fj == point[want].energy_fj && best.makespan_ps == point[want].makespan_ps),
                     "instance %d, limit %d: %g/%g MHz, all runs say %g/%g", n, k, best.at.sm_mhz, best.at.mem_mhz,
                     point[want].at.sm_mhz, point[want].at.mem_mhz);
        }
        fx_close(&r);
    }
    FL_CHECK(held > 200, "only %zu limits held", held);
}

/* After 20 ms of idling an op of 1 ms. The base is 25 W + 10 W/GHz beside 400 MHz of memory, and the op itself takes
 * 100 mJ at any clock. Where the idle GPU draws its base all the time, the lowest clock is the best: 30 W for 22 ms.
 * Where all but memory's 5 W is gated after 2 ms, a clock at which the op ends sooner is: 35 W for 3 ms instead of 30 W
 * for 4 ms. */
static void test_gated_search(void) {
    static const struct {
        int64_t gate_ns;
        double sm_mhz;
        int64_t mj;
    } rows[] = {{0, 500, 760}, {20000000, 500, 760}, {2000000, 1100, 0}, {1, 1500, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_rig r;
        fx_open(&r, 1);
        r.spec.device->gate_ns = rows[i].gate_ns;
        const uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 1);
        fx_op(&r, fx_stream(&r, 0, 0), 20000000, 1000000, c);
        fx_finish(&r, 0);
        fl_static_point point[CHOICES], best;
        const size_t count = run_all(&r, point);
        const size_t want = fl_static_best(point, count, FL_MIN_ENERGY, INT64_MAX);
        bool found;
        FX_MUST(fl_static_search(r.w, r.rates, &r.spec, &r.facts, FL_MIN_ENERGY, INT64_MAX, &best, &found, d));
        FL_CHECK(found && best.at.sm_mhz == point[want].at.sm_mhz && best.at.mem_mhz == point[want].at.mem_mhz &&
                     best.energy_fj == point[want].energy_fj,
                 "gated after %lld ns: %g MHz, all runs say %g", (long long)rows[i].gate_ns, best.at.sm_mhz,
                 point[want].at.sm_mhz);
        FL_CHECK(best.at.sm_mhz == rows[i].sm_mhz && best.at.mem_mhz == 400, "gated after %lld ns: %g MHz, by hand %g",
                 (long long)rows[i].gate_ns, best.at.sm_mhz, rows[i].sm_mhz);
        FL_CHECK(!rows[i].mj || best.energy_fj == (fl_wide)rows[i].mj * 1000000000000, "gated after %lld ns: %g fJ",
                 (long long)rows[i].gate_ns, fx_f(best.energy_fj));
        fx_close(&r);
    }
}

/* ---- kind by kind ---- */

/* One kind, static power 1 W only where it is fast: by hand. 10 ops of 1 ms at 1000 MHz, compute-bound. Within 1.5
 * times, the hull goes from one pair of clocks to another, and the schedule ends at the limit to the picosecond. */
static void test_divided(void) {
    fx_rig r;
    fx_open(&r, 1);
    fl_device *dev = r.spec.device;
    dev->c_w = dev->b0_w[0] = dev->b0_w[1] = 0;
    fl_curve_free(dev->voltage);
    double x[2] = {500, 1500}, y[2] = {1, 2};
    fl_curve_new(&dev->voltage, x, y, 2);
    uint32_t c = fx_class(&r, 1, 0, 0, 1, 0, 1), s = fx_stream(&r, 0, 0);
    for (int i = 0; i < 10; i++)
        fx_op(&r, s, 100000, 1000000, c);
    fx_finish(&r, 1);
    fl_oracle_table t;
    table_of(&r, FL_POSITIONS_ALL, &t);
    FL_CHECK(t.exact && t.positions == 0 && t.work, "all work");
    const int64_t limit = INT64_C(11000000000) + INT64_C(1234567891); /* between 900 and 800 MHz */
    fl_oracle_result o = solve(&t, FL_MIN_ENERGY, limit);
    FL_CHECK(o.time_ps <= limit && o.time_ps >= limit - 1, "%lld ps", (long long)o.time_ps);
    /* ops take 1.111 and 1.25 ms; of each op 110 V^2 mJ, V = 1.4 and 1.3 */
    const double slow_ops = ((double)limit * 1e-9 - 1 - 10 / 0.9) / (1 / 0.8 - 1 / 0.9);
    const double kernels = 0.110 * (slow_ops * 1.3 * 1.3 + (10 - slow_ops) * 1.4 * 1.4), host = 1e-3 * 5;
    FL_CHECK(fx_near(o.energy_j, kernels + host, 1e-4), "%.9g J, by hand %.9g", o.energy_j, kernels + host);
    FL_CHECK(o.gap_pct >= 0 && o.gap_pct < 1e-5, "gap %g %%", o.gap_pct);
    FL_CHECK(o.change && o.change[0].at_ps == 0, "begins at time 0");
    free(o.change);
    fl_oracle_table_free(&t);
    fx_close(&r);
}

/* Every op at any choice: with as much time as wanted the best of all these for each objective is what is found, and
 * under a limit nothing of them is better. */
static void test_kinds_brute_force(void) {
    for (int n = 0; n < 40; n++) {
        fl_random g = fl_random_seed(SEED + 7, (uint64_t)n);
        fx_rig r;
        fx_open(&r, 1);
        r.spec.device->sm_count = 2;
        fx_random_classes(&r, &g, 1 + (uint32_t)fl_random_below(&g, 3), 1);
        fx_random_ops(&r, &g, fx_stream(&r, 0, 0), 5, 50000);
        fx_op(&r, 0, 0, 1000, 0);
        r.spec.device->default_sm_mhz = 500;
        fx_finish(&r, 1);
        fl_oracle_table t, ops;
        table_of(&r, FL_POSITIONS_ALL, &t);
        positions_of(&r, 10, &ops);
        brute b = {.t = &ops, .objectives = 1};
        set_limits(&b, &g);
        enumerate(&b, 0, 0, 0, 0);
        for (int k = 0; k < LIMITS; k++) {
            fl_oracle_result o = solve(&t, FL_MIN_ENERGY, b.limit[k]);
            FL_CHECK(o.feasible == (b.best[k][0] >= 0), "instance %d, limit %d: feasible %d", n, k, o.feasible);
            if (o.feasible) {
                FL_CHECK(b.best[k][0] >= o.bound_fj, "instance %d, limit %d: below the bound", n, k);
                FL_CHECK(fx_f(b.best[k][0]) >= fx_f(o.energy_fj) * (1 - 1e-4),
                         "instance %d, limit %d: %.17g beats %.17g", n, k, fx_f(b.best[k][0]), fx_f(o.energy_fj));
                FL_CHECK(o.time_ps <= b.limit[k], "instance %d, limit %d", n, k);
            }
            free(o.change);
        }
        fl_oracle_table_free(&ops);
        fl_oracle_table_free(&t);
        fx_close(&r);
    }
}

/* A schedule of few positions is held against what any schedule may do: its gap tells what they cost. */
static void test_bound_of_positions(void) {
    for (int n = 0; n < 12; n++) {
        fl_random g = fl_random_seed(SEED + 8, (uint64_t)n);
        fx_rig r;
        random_rig(&r, &g, 1, 0, 300);
        fl_oracle_table all, few;
        table_of(&r, FL_POSITIONS_ALL, &all);
        table_of(&r, 5, &few);
        int64_t fastest;
        FX_MUST(fl_oracle_fastest(&few, &fastest, d));
        for (int m = 0; m < 3; m++) {
            const int64_t limit = fl_limit_ps(fastest, 0.05);
            fl_oracle_result a = solve(&all, (fl_objective)m, limit), f = solve(&few, (fl_objective)m, limit);
            FL_CHECK(a.objective <= f.objective * (1 + 1e-9) && a.objective_bound == f.objective_bound,
                     "instance %d, %s: %.17g with a bound of %.17g, five positions %.17g with %.17g", n,
                     fl_objective_names[m], a.objective, a.objective_bound, f.objective, f.objective_bound);
            FL_CHECK(a.gap_pct <= f.gap_pct && a.gap_pct < 1e-3, "instance %d: gaps %g and %g %%", n, a.gap_pct,
                     f.gap_pct);
            free(a.change);
            free(f.schedule);
        }
        fl_oracle_table_free(&all);
        fl_oracle_table_free(&few);
        fx_close(&r);
    }
}
FL_SUITE("oracle", {"choices", test_choices}, {"static best", test_static_best}, {"static search", test_static_search},
         {"static search where idle power is gated", test_gated_search}, {"columns are static runs", test_columns},
         {"the engine executes a schedule as the table says", test_executed}, {"brute force", test_brute_force},
         {"large numbers", test_large_numbers}, {"bounds hold", test_bounds}, {"gap of a long table", test_gap},
         {"mixture", test_mixture}, {"one choice for all", test_one_for_all}, {"divided kind", test_divided},
         {"kind by kind is brute force", test_kinds_brute_force}, {"bound by kinds", test_bound_of_positions})
