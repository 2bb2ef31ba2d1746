#include "sim/base/base.h"
#include "sim/node/node.h"
#include "sim/oracle/oracle.h"
#include "sim/workload/workload.h"
#include "tests/support/sim_fixture.h"

/* Cases by hand. Times in units of 1 s, energies in J: a default run of 10 s and 1000 J. */
#define S_PS INT64_C(1000000000000)
#define J_FJ INT64_C(1000000000000000)

typedef struct scene {
    fl_run_result standard, run;
    int64_t standard_mark[5], run_mark[5];
    fl_stream stream[2];
    fl_workload w;
    fl_static_point point[3];
    fl_choice choice[2];
    int64_t table_ps[4];
    fl_wide table_fj[4];
    fl_oracle_table table;
    fl_reference ref;
} scene;

static fl_run_result result_of(double s, double j) {
    return (fl_run_result){.makespan_ps = (int64_t)(s * 1e6) * (S_PS / 1000000),
                           .makespan_s = s,
                           .energy_j = j,
                           .mean_power_w = j / s,
                           .peak_power_w = 2 * j / s,
                           .switches = 7};
}

/* Static: 12 s 600 J, 10.5 s 800 J, 10 s 1000 J. Positions: two, each 5 s 500 J or 6 s 300 J. */
static void open_scene(scene *s, fl_objective objective, double bound) {
    *s = (scene){.standard = result_of(10, 1000), .run = result_of(10.8, 820)};
    static const struct { double mhz, s, j; } at[3] = {{500, 12, 600}, {800, 10.5, 800}, {1000, 10, 1000}};
    for (int i = 0; i < 3; i++)
        s->point[i] = (fl_static_point){.at = {.sm_mhz = at[i].mhz},
                                        .makespan_ps = (int64_t)(at[i].s * 10) * (S_PS / 10),
                                        .energy_fj = (fl_wide)at[i].j * J_FJ};
    for (int i = 0; i < 4; i++) {
        s->table_ps[i] = (i % 2 ? 5 : 6) * S_PS;
        s->table_fj[i] = (fl_wide)(i % 2 ? 500 : 300) * J_FJ;
    }
    s->table = (fl_oracle_table){.positions = 2,
                                 .choices = 2,
                                 .choice = s->choice,
                                 .time_ps = s->table_ps,
                                 .energy_fj = s->table_fj,
                                 .exact = true};
    /* two streams: windows end at 4, 10 and at 2, 5, 9 s by default; at 5, 10.8 and 2, 5, 9.5 s in the run */
    static const int standard[5] = {40, 100, 20, 50, 90}, run[5] = {50, 108, 20, 50, 95};
    for (int i = 0; i < 5; i++) {
        s->standard_mark[i] = standard[i] * (S_PS / 10);
        s->run_mark[i] = run[i] * (S_PS / 10);
    }
    s->standard.mark_ps = s->standard_mark;
    s->run.mark_ps = s->run_mark;
    s->standard.mark_count = s->run.mark_count = 5;
    s->stream[0].mark_count = 2;
    s->stream[1].mark_count = 3;
    s->w = (fl_workload){.stream = s->stream, .stream_count = 2};
    s->ref = (fl_reference){.w = &s->w,
                            .standard = &s->standard,
                            .point = s->point,
                            .point_count = 3,
                            .table = &s->table,
                            .objective = objective,
                            .bound = bound};
    FX_MUST(fl_reference_solve(&s->ref, d));
}

static fl_score score_of(const scene *s) {
    fl_score out;
    FX_MUST(fl_score_run(&s->run, &s->ref, &out, d));
    return out;
}

static void test_plain(void) {
    scene s;
    open_scene(&s, FL_MIN_ENERGY, 0.1);
    fl_score o = score_of(&s);
    FL_CHECK(fx_near(o.energy_j, 820, 1e-12) && fx_near(o.makespan_s, 10.8, 1e-12), "%g J, %g s", o.energy_j,
             o.makespan_s);
    FL_CHECK(fx_near(o.mean_power_w, 820 / 10.8, 1e-12) && fx_near(o.peak_power_w, 1640 / 10.8, 1e-12), "power");
    FL_CHECK(fx_near(o.edp, 820 * 10.8, 1e-12) && fx_near(o.ed2p, 820 * 10.8 * 10.8, 1e-12), "%g, %g", o.edp, o.ed2p);
    FL_CHECK(fx_near(o.slowdown, 0.08, 1e-9) && !o.violated && o.switches == 7, "slowdown %g", o.slowdown);
}

static void test_energy(void) {
    scene s;
    open_scene(&s, FL_MIN_ENERGY, 0.1);
    FL_CHECK(s.ref.best_static == 1, "best static %zu: 12 s is too long", s.ref.best_static);
    FL_CHECK(s.ref.clairvoyant.feasible && s.ref.clairvoyant.solved, "clairvoyant");
    FL_CHECK(fx_near(s.ref.clairvoyant.energy_j, 800, 1e-12), "%g J: one position slow, 11 s",
             s.ref.clairvoyant.energy_j);
    fl_score o = score_of(&s);
    FL_CHECK(fx_near(o.regret_static_j, 20, 1e-9) && fx_near(o.regret_static_pct, 2.5, 1e-9), "%g J, %g %%",
             o.regret_static_j, o.regret_static_pct);
    FL_CHECK(fx_near(o.regret_clairvoyant_j, 20, 1e-9) && fx_near(o.regret_clairvoyant_pct, 2.5, 1e-9), "%g J, %g %%",
             o.regret_clairvoyant_j, o.regret_clairvoyant_pct);
    /* in 10.8 s no position can be slow: 1000 J */
    FL_CHECK(fx_near(o.regret_at_own_slowdown_j, -180, 1e-9), "%g J", o.regret_at_own_slowdown_j);
}

static void test_edp(void) {
    scene s;
    open_scene(&s, FL_MIN_EDP, INFINITY);
    FL_CHECK(s.ref.best_static == 0, "7200 < 8400 < 10000");
    fl_score o = score_of(&s);
    FL_CHECK(fx_near(o.regret_static_j, 8856 - 7200, 1e-9) && fx_near(o.regret_static_pct, 23, 1e-9), "%g J s, %g %%",
             o.regret_static_j, o.regret_static_pct);
    FL_CHECK(fx_near(o.regret_clairvoyant_j, 8856 - 7200, 1e-9), "%g J s", o.regret_clairvoyant_j);
    FL_CHECK(fx_near(o.regret_at_own_slowdown_j, 8856 - 10000, 1e-9), "%g J s", o.regret_at_own_slowdown_j);
    open_scene(&s, FL_MIN_ED2P, 0.07);
    FL_CHECK(s.ref.best_static == 1, "800 x 110.25 < 100000");
    s.run = result_of(10.5, 900);
    o = score_of(&s);
    FL_CHECK(fx_near(o.regret_static_j, 100 * 110.25, 1e-9), "%g J s2", o.regret_static_j);
    FL_CHECK(fx_near(s.ref.clairvoyant.objective, 100000, 1e-9) && fx_near(s.ref.known, 800 * 110.25, 1e-9) &&
                 fx_near(o.regret_clairvoyant_j, 100 * 110.25, 1e-9),
             "the static clock is the best known: %g J s2", o.regret_clairvoyant_j);
}

static void test_violated(void) {
    scene s;
    open_scene(&s, FL_MIN_ENERGY, 0.1);
    s.run = result_of(11, 700);
    FL_CHECK(!score_of(&s).violated, "the bound itself holds");
    s.run.makespan_ps++;
    fl_score o = score_of(&s);
    FL_CHECK(o.violated, "a picosecond too slow");
    FL_CHECK(isnan(o.regret_static_j) && isnan(o.regret_static_pct) && isnan(o.regret_clairvoyant_j) &&
                 isnan(o.regret_clairvoyant_pct),
             "regret of a violating row");
    FL_CHECK(fx_near(o.regret_at_own_slowdown_j, -100, 1e-9), "%g J: defined for every row",
             o.regret_at_own_slowdown_j);
    s.run = result_of(9.9, 1100); /* faster than every schedule: against the fastest, 1000 J */
    o = score_of(&s);
    FL_CHECK(fx_near(o.regret_at_own_slowdown_j, 100, 1e-9), "%g J", o.regret_at_own_slowdown_j);
    FL_CHECK(fx_near(o.slowdown, -0.01, 1e-9), "%g", o.slowdown);
}

/* Another schedule is the reference where it holds the bound and is better, and only then. */
static void test_offers(void) {
    scene s;
    open_scene(&s, FL_MIN_ENERGY, 0.1);
    fl_reference_offer(&s.ref, 790, 11, 11 * S_PS + 1);
    FL_CHECK(fx_near(s.ref.known, 800, 1e-12), "breaks the bound: %g J", s.ref.known);
    fl_reference_offer(&s.ref, 810, 11, 11 * S_PS);
    FL_CHECK(fx_near(s.ref.known, 800, 1e-12), "is worse: %g J", s.ref.known);
    fl_reference_offer(&s.ref, 790, 11, 11 * S_PS);
    fl_score o = score_of(&s);
    FL_CHECK(fx_near(o.regret_clairvoyant_j, 30, 1e-9) && fx_near(o.regret_clairvoyant_pct, 100 * 30 / 790.0, 1e-9),
             "%g J, %g %%", o.regret_clairvoyant_j, o.regret_clairvoyant_pct);
    s.table.exact = false;
    FX_MUST(fl_reference_solve(&s.ref, d));
    fl_reference_offer(&s.ref, 790, 11, 11 * S_PS);
    FL_CHECK(isnan(s.ref.known), "nothing is known where nothing is bounded");
}

static void test_windows(void) {
    scene s;
    open_scene(&s, FL_MIN_ENERGY, 0.1);
    /* 5/4, 5.8/6; 2/2, 3/3, 4.5/4 */
    fl_score o = score_of(&s);
    FL_CHECK(fx_near(o.worst_window_slowdown, 0.25, 1e-12), "%g", o.worst_window_slowdown);
    s.run_mark[0] = s.standard_mark[0]; /* 4/4, 6.8/6; 2/2, 3/3, 4.5/4 */
    o = score_of(&s);
    FL_CHECK(fx_near(o.worst_window_slowdown, 6.8 / 6 - 1, 1e-9), "%g", o.worst_window_slowdown);
    s.run_mark[2] = 3 * S_PS; /* the second stream's first window begins at 0, not at the first's end: 3/2 */
    o = score_of(&s);
    FL_CHECK(fx_near(o.worst_window_slowdown, 0.5, 1e-12), "%g", o.worst_window_slowdown);
    s.ref.w = NULL;
    FL_CHECK(isnan(score_of(&s).worst_window_slowdown), "windows of an unknown workload");
}

/* No static clock holds the bound: what stands behind the points is none of them. */
static void test_none_holds(void) {
    scene s;
    open_scene(&s, FL_MIN_ENERGY, 0.1);
    s.point[1] = (fl_static_point){.makespan_ps = 10 * S_PS, .energy_fj = J_FJ};
    s.ref.point_count = 1;
    FX_MUST(fl_reference_solve(&s.ref, d));
    FL_CHECK(s.ref.best_static == 1 && fx_near(s.ref.known, 800, 1e-12), "known %g J", s.ref.known);
}

static void test_references(void) {
    scene s;
    open_scene(&s, FL_MIN_ENERGY, 0.1);
    s.table.exact = false;
    FX_MUST(fl_reference_solve(&s.ref, d));
    fl_score o = score_of(&s);
    FL_CHECK(isnan(o.regret_clairvoyant_j) && isnan(o.regret_clairvoyant_pct), "a reference passes for a bound");
    FL_CHECK(fx_near(o.regret_at_own_slowdown_j, -180, 1e-9), "%g J", o.regret_at_own_slowdown_j);
    s.ref.table = NULL;
    s.ref.point_count = 0;
    FX_MUST(fl_reference_solve(&s.ref, d));
    o = score_of(&s);
    FL_CHECK(isnan(o.regret_static_j) && isnan(o.regret_clairvoyant_j) && isnan(o.regret_at_own_slowdown_j),
             "regret against nothing");
}

/* A policy's run through the engine: what the default does, it is held against itself. */
static void test_default(void) {
    fx_rig r;
    fx_open(&r, 1);
    uint32_t c = fx_class(&r, 1, 0.8, 0.01, 0.7, 0.6, 1), s = fx_stream(&r, 0, 0);
    for (int i = 0; i < 100; i++)
        fx_op(&r, s, 100, 50000, c);
    fx_finish(&r, 10);
    fx_how how = {.mode = -1};
    fl_run_result standard;
    fx_run(&r, &how, &standard);
    fl_oracle_table t;
    FX_MUST(fl_oracle_table_make(r.w, r.rates, &r.spec, FL_POSITIONS_ALL, &t, d));
    fl_static_point *point = fx_alloc(t.choices, sizeof *point);
    for (size_t i = 0; i < t.choices; i++)
        FX_MUST(fl_static_run(r.w, r.rates, &r.spec, &r.facts, &t.choice[i], &point[i], d));
    fl_reference ref = {.w = r.w,
                        .standard = &standard,
                        .point = point,
                        .point_count = t.choices,
                        .table = &t,
                        .objective = FL_MIN_ENERGY,
                        .bound = 0};
    FX_MUST(fl_reference_solve(&ref, d));
    fl_score o;
    FX_MUST(fl_score_run(&standard, &ref, &o, d));
    FL_CHECK(o.slowdown == 0 && o.worst_window_slowdown == 0 && !o.violated, "%g, %g", o.slowdown,
             o.worst_window_slowdown);
    FL_CHECK(o.regret_clairvoyant_j >= o.regret_static_j && o.regret_static_j >= 0, "%g, %g", o.regret_clairvoyant_j,
             o.regret_static_j);
    FL_CHECK(fx_near(o.regret_at_own_slowdown_j, o.regret_clairvoyant_j, 1e-12), "bound 0 is its own slowdown");
    free(point);
    fl_oracle_table_free(&t);
    fl_run_result_free(&standard);
    fx_close(&r);
}

static void test_interval(void) {
    static const struct {
        double value[4];
        size_t count;
        double mean, half;
    } rows[] = {
        {{1, 2, 3, 4}, 4, 2.5, 3.182446305 * 1.290994449 / 2}, /* t of 3 degrees of freedom; s = sqrt(5/3) */
        {{1, 3}, 2, 2, 12.70620474 * 1.414213562 / 1.414213562},
        {{5}, 1, 5, NAN},
        {{NAN, 1, NAN, 3}, 4, 2, 12.70620474},
        {{NAN, 7}, 2, 7, NAN},
        {{NAN}, 1, NAN, NAN},
        {{2, 2, 2}, 3, 2, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double mean, half;
        fl_mean_interval(rows[i].value, rows[i].count, &mean, &half);
        FL_CHECK(isnan(rows[i].mean) ? isnan(mean) : fx_near(mean, rows[i].mean, 1e-12), "row %zu: mean %g", i, mean);
        FL_CHECK(isnan(rows[i].half) ? isnan(half) : fx_near(half, rows[i].half, 1e-8), "row %zu: half %.10g", i, half);
    }
}

FL_SUITE("score", {"plain figures", test_plain}, {"energy", test_energy}, {"edp and ed2p", test_edp},
         {"violated", test_violated}, {"offers", test_offers}, {"windows", test_windows},
         {"none holds", test_none_holds}, {"references", test_references}, {"the default", test_default},
         {"interval", test_interval})
