/* The fold-line fit of Assure: cases that a rounding decides; and the fit and the choice that follows, on random probes
 * against a second derivation in another style, where no tie is near. */
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/papers/inside.h"
#include "policies/random.h"
#include "sim/instance/instance.h"
#include "tests/support/assure_node.h"

/* ---- what a rounding decides --------------------------------------------------------------------------------------
 * Whole utilisations and clocks make ties. Expected to the last digit: what the daemon's rules give in its order of
 * operations, worked out apart from the code here. In each case another order, a tolerance or another side of an
 * inequality gives something else. */

enum { FLAT, AS_UTIL, AS_CLOCK }; /* power of a sample: 100 W; 1 W per % and at least 1 W; 10 mW per MHz */

typedef struct tie_case {
    const char *name;
    uint32_t m;
    double mhz[PROBES_MAX], util[2 * PROBES_MAX];
    int power;
    double theta;
    int kind;
    double bound, efficient;
} tie_case;

/* clang-format off */
static const tie_case tie_cases[] = {
    {"crosses at the last clock of the low line: two lines still",
     4, {400, 600, 800, 1000}, {0, 1, 1, 1, 1, 1, 1, 0}, FLAT, 0.85, 2, 570, 600},
    {"crosses at the first clock of the high line: two lines still",
     4, {400, 600, 800, 1000}, {0, 1, 2, 0, 0, 2, 1, 0}, FLAT, 0.75, 2, 700, 800},
    {"where they cross at a clock of the high line, its value there is the high line's",
     4, {400, 500, 700, 1000}, {28, 35, 49, 52, 52, 49, 35, 28}, AS_UTIL, 0.75, 2, 557.1428571428571, 400},
    {"at a clock of the low line it is the low line's",
     4, {400, 500, 700, 1000}, {0, 7, 19, 37, 37, 19, 7, 0}, AS_UTIL, 0.85, 3, 907.5, 700},
    {"errors from the moments: from the points the first fold would tie",
     6, {300, 400, 500, 600, 700, 800}, {0, 2, 0, 2, 2, 1, 1, 2, 2, 0, 2, 0}, AS_CLOCK, 0.85, 2, 625, 700},
    {"two folds fit exactly: the first by a rounding",
     5, {300, 500, 700, 800, 1000}, {5, 15, 25, 29, 37, 37, 29, 25, 15, 5}, FLAT, 0.85, 2, 861.25, 1000},
    {"equal errors: the first fold stays",
     5, {300, 500, 700, 800, 1000}, {8, 13, 18, 20, 24, 24, 20, 18, 13, 8}, FLAT, 0.9, 2, 880, 1000},
    {"squares of the points: low ones first",
     6, {300, 400, 500, 600, 700, 800}, {1, 1, 0, 0, 1, 0, 0, 1, 2, 1, 2, 0}, AS_CLOCK, 0.5, 2, -300.00000000000006, 300},
    {"the high line's answer is the crossing itself: the low line's",
     4, {400, 600, 800, 1000}, {10, 24, 36, 48, 48, 36, 24, 10}, AS_CLOCK, 0.5, 3, 599.9999999999999, 1000},
    {"equal slopes do not cross: fixed",
     4, {400, 600, 800, 1000}, {40, 60, 60, 80, 80, 60, 60, 40}, FLAT, 0.9, 3, 846.6666666666666, 1000},
    {"a fixed fold crosses where its lines do, a rounding off its clock",
     4, {400, 600, 800, 1000}, {0, 5, 5, 17, 1, 16, 33, 9}, FLAT, 0.9, 3, 573.25, 800},
    {"offset above a fixed fold",
     4, {400, 600, 800, 1000}, {1, 3, 1, 2, 1, 1, 3, 2}, FLAT, 0.75, 3, 480.7692307692307, 600},
    {"above the fold of a falling high line: the low line's value at the crossing",
     4, {400, 600, 800, 1000}, {1, 2, 0, 0, 0, 0, 2, 1}, FLAT, 0.85, 3, 525, 600},
    {"equal slopes are no fold",
     4, {400, 600, 800, 1000}, {9, 6, 3, 0, 0, 3, 6, 9}, AS_CLOCK, 0.75, 1, 400, 400},
    {"a fold that is better by less than a billionth",
     5, {300, 500, 700, 800, 1000}, {16, 21, 26, 28, 32, 32, 28, 26, 21, 16}, FLAT, 0.75, 3, 620, 1000},
    {"equally efficient everywhere: the first clock",
     4, {400, 600, 800, 1000}, {0, 0, 0, 0, 0, 0, 0, 2}, FLAT, 0.9, 1, 400, 400},
    {"offset of a line: not through the means",
     4, {952, 1147, 1335, 1530}, {5, 2, 5, 4, 2, 6, 9, 6}, FLAT, 0.9, 3, 869.9853191489364, 1147},
};
/* clang-format on */

static fl_fold_data data_of(const tie_case *c) {
    fl_fold_data d = {.probe_count = c->m};
    for (uint32_t i = 0; i < 2 * c->m; i++) {
        const double mhz = c->mhz[fl_fold_probe_of(c->m, i)];
        d.probe_mhz[fl_fold_probe_of(c->m, i)] = mhz;
        d.util_mem_pct[i] = c->util[i];
        d.power_mw[i] = c->power == FLAT ? 100000 : c->power == AS_CLOCK ? 10 * mhz : 1000 * fmax(1, c->util[i]);
    }
    return d;
}

static void test_ties(void) {
    for (size_t i = 0; i < sizeof tie_cases / sizeof *tie_cases; i++) {
        const tie_case *c = &tie_cases[i];
        const fl_fold_data d = data_of(c);
        const fl_fold f = fl_fold_fit(&d, 100);
        const double bound = fl_fold_bound_mhz(&f, &d, c->theta, c->mhz[c->m - 1]);
        const double efficient = fl_fold_efficient_mhz(&f, &d);
        FL_CHECK((int)f.kind == c->kind, "%s: fit %d, expected %d", c->name, f.kind, c->kind);
        FL_CHECK(bound == c->bound, "%s: bound %.17g, expected %.17g", c->name, bound, c->bound);
        FL_CHECK(efficient == c->efficient, "%s: efficient %g, expected %g", c->name, efficient, c->efficient);
    }
}

/* Clocks that a probe cannot have: all of the high line's are the fold's own. The system has no solution, and its error
 * is larger than any of the line's. */
static void test_no_solution(void) {
    const tie_case c = {.m = 4, .mhz = {400, 600, 600, 600}, .util = {0, 60, 0, 60, 60, 0, 60, 0}};
    const fl_fold_data d = data_of(&c);
    const fl_fold f = fl_fold_fit(&d, 1000);
    FL_CHECK(f.kind == FL_FOLD_LINE && f.low.slope == 0.2 && f.error == 4800, "fit %d, slope %.17g, error %.17g",
             f.kind, f.low.slope, f.error);
}

/* ---- a second derivation ------------------------------------------------------------------------------------------
 * Least squares by elimination over basis functions in long double; the model as a curve; the bound by bisection on the
 * curve. */

typedef struct reference {
    int kind;                           /* 0 none, 1 line, 2 fold, 3 fold at a clock */
    long double low, high, turn, level; /* slopes; turn and the value there (for a line: fmax as turn) */
    long double error;
    bool tied; /* a choice on the way was nearer to a tie than roundings are, in double and from moments */
} reference;

static bool tie(long double a, long double b) { return fabsl(a - b) < 1e-7L; }

/* Coefficients of y over `terms` basis columns; n <= 12. Returns the residual sum of squares. */
static long double least_squares(int n, int terms, const long double *basis, const double *y,
                                 long double *coefficient) {
    long double a[3][4] = {{0}};
    for (int r = 0; r < terms; r++)
        for (int i = 0; i < n; i++) {
            for (int c = 0; c < terms; c++)
                a[r][c] += basis[i * 3 + r] * basis[i * 3 + c];
            a[r][terms] += basis[i * 3 + r] * (long double)y[i];
        }
    for (int p = 0; p < terms; p++)
        for (int r = 0; r < terms; r++) {
            long double factor = r == p ? 0 : a[r][p] / a[p][p];
            for (int c = p; c <= terms; c++)
                a[r][c] -= factor * a[p][c];
        }
    long double squares = 0;
    for (int r = 0; r < terms; r++)
        coefficient[r] = a[r][terms] / a[r][r];
    for (int i = 0; i < n; i++) {
        long double left = y[i];
        for (int r = 0; r < terms; r++)
            left -= basis[i * 3 + r] * coefficient[r];
        squares += left * left;
    }
    return squares;
}

/* A line over the samples with `from` <= clock <= `to`: y = c0 + c1 (x - x0). */
static long double line_through(int n, const double *x, const double *y, double from, double to, double x0,
                                long double *c) {
    long double basis[12 * 3];
    double some[12];
    int count = 0;
    for (int i = 0; i < n; i++)
        if (x[i] >= from && x[i] <= to) {
            basis[count * 3] = 1;
            basis[count * 3 + 1] = x[i] - x0;
            some[count++] = y[i];
        }
    return least_squares(count, 2, basis, some, c);
}

static reference refer(int m, const double *clock, const double *x, const double *y, double threshold) {
    int n = 2 * m;
    double bottom = clock[0], top = clock[m - 1];
    long double c[3], a[2], b[2];
    reference best = {.kind = 1, .turn = top};
    best.error = line_through(n, x, y, bottom, top, top, c);
    best.low = best.high = c[1];
    best.level = c[0];
    for (int fold = 1; fold < m - 2; fold++) {
        double at = clock[fold];
        reference r = {.kind = 2};
        r.error = line_through(n, x, y, bottom, at, at, a) + line_through(n, x, y, clock[fold + 1], top, at, b);
        r.turn = at + (b[0] - a[0]) / (a[1] - b[1]);
        r.low = a[1];
        r.high = b[1];
        r.level = a[0] + a[1] * (r.turn - at);
        best.tied = best.tied || tie(r.turn, at) || tie(r.turn, clock[fold + 1]);
        if (!(r.turn >= at && r.turn <= clock[fold + 1])) {
            long double basis[12 * 3];
            for (int i = 0; i < n; i++) {
                basis[i * 3] = 1;
                basis[i * 3 + 1] = x[i] < at ? x[i] - at : 0;
                basis[i * 3 + 2] = x[i] > at ? x[i] - at : 0;
            }
            r.error = least_squares(n, 3, basis, y, c);
            r.kind = 3;
            r.turn = at;
            r.level = c[0];
            r.low = c[1];
            r.high = c[2];
        }
        r.tied = best.tied || tie(r.error, best.error) || fabsl(r.low - r.high) < 1e-12L;
        best.tied = r.tied;
        if (r.low > r.high && r.error < best.error)
            best = r;
    }
    best.tied = best.tied || tie(best.error, threshold * n) || fabsl(best.low) < 1e-12L;
    if (best.error > threshold * n)
        best.kind = 0;
    return best;
}

/* Performance at x: the fold bends at most once, does not fall above its turn, and is flat where nothing rises. */
static long double curve(const reference *r, double bottom, long double x) {
    if (r->low <= 0)
        return r->level + r->low * (bottom - r->turn);
    if (x <= r->turn || r->kind == 1)
        return r->level + r->low * (x - r->turn);
    return r->level + (r->high > 0 ? r->high : 0) * (x - r->turn);
}

static long double reference_bound(const reference *r, double bottom, double top, double theta) {
    if (r->low <= 0)
        return bottom;
    long double target = (long double)theta * curve(r, bottom, top), below = -1e7L, above = 1e7L;
    for (int i = 0; i < 200; i++) {
        long double middle = (below + above) / 2;
        if (curve(r, bottom, middle) < target)
            below = middle;
        else
            above = middle;
    }
    return above;
}

static const double random_clocks[5][PROBES_MAX] = {
    {500, 1000}, {400, 700, 1000}, {400, 600, 800, 1000}, {300, 510, 640, 890, 1000}, {300, 410, 540, 690, 850, 1000}};

typedef struct counts {
    long folds, fits, choices; /* folds among the fits; fits and choices that are no tie, and so were compared */
} counts;

static void check_random_probe(fl_random *r, counts *seen) {
    char list[64] = "", theta_text[8];
    int m = 2 + (int)fl_random_below(r, 5);
    const double *clock = random_clocks[m - 2];
    for (int i = 0; i < m; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%g", i ? "/" : "", clock[i]);
    snprintf(theta_text, sizeof theta_text, "%.2f", 0.6 + 0.01 * (double)fl_random_below(r, 40));
    const char *settings[] = {"probe_mhz",     list,  "theta", theta_text, "lowest_mhz", "250",
                              "efficient_mhz", "470", NULL};
    double theta = strtod(theta_text, NULL), x[12], mem[12], util[12], power[12];
    double slope = 0.15 * fl_random_unit(r) - 0.03, bend = 300 + 700 * fl_random_unit(r);
    double noise = 20 * fl_random_unit(r) * fl_random_unit(r) * (double)(1 + 2 * fl_random_below(r, 2));
    long double cap = 0;
    for (int i = 0; i < 2 * m; i++) {
        x[i] = clock[i < m ? i : 2 * m - 1 - i];
        mem[i] = rint(fmin(100, fmax(0, 10 + slope * fmin(x[i], bend) + noise * (fl_random_unit(r) - 0.5))));
        util[i] = rint(100 * sqrt(fl_random_unit(r)));
        power[i] = 20 + rint(x[i] * (0.1 + 0.1 * fl_random_unit(r)));
        cap = fmaxl(
            cap, 1 / ((1 - (long double)theta) * (1 / 1000.0L + (100 / fmaxl(1, util[i]) - 1) / x[i]) + 1 / 1000.0L));
    }
    node n;
    node_open(&n, &fl_policy_assure, 1, settings);
    run_probe(&n, (uint32_t)(2 * m), clock, mem, util, power, NULL);

    reference f = refer(m, clock, x, mem, 100);
    long double bound = 1000, efficient = 470;
    bool empty = true, tied = f.tied;
    for (int i = 0; i < 2 * m; i++)
        empty = empty && mem[i] == 0;
    if (f.kind && !empty) {
        bound = reference_bound(&f, clock[0], 1000, theta);
        long double ratio = -1e9L;
        for (int i = 0; i < m; i++) {
            long double mine = curve(&f, clock[0], clock[i]) * 2 / ((long double)power[i] + power[2 * m - 1 - i]);
            tied = tied || fabsl(mine - ratio) < 1e-12L;
            if (mine > ratio) {
                ratio = mine;
                efficient = clock[i];
            }
        }
    }
    const long double wish = fmaxl(250, fminl(fmaxl(fminl(bound, cap), efficient), 1000));
    const double choice = 10 * ceil((double)(wish / 10));
    FL_CHECK(near(shown(&n, 0, CAP), (double)cap), "cap %g, expected %g", shown(&n, 0, CAP), (double)cap);
    if (!f.tied || empty) {
        seen->fits++;
        seen->folds += !empty && f.kind > 1;
        FL_CHECK(shown(&n, 0, FIT) == (empty ? -1 : f.kind), "fit %g, expected %d", shown(&n, 0, FIT),
                 empty ? -1 : f.kind);
        FL_CHECK(near(shown(&n, 0, BOUND), (double)bound), "bound %g, expected %g", shown(&n, 0, BOUND), (double)bound);
    }
    if (!tied || empty) {
        FL_CHECK(near(shown(&n, 0, EFFICIENT), (double)efficient), "efficient %g, expected %g", shown(&n, 0, EFFICIENT),
                 (double)efficient);
        /* A bound that is a clock of the ladder may miss it by a rounding; a clock that was chosen as such does not. */
        if (!tie(wish / 10, rintl(wish / 10)) || wish == efficient) {
            seen->choices++;
            FL_CHECK(shown(&n, 0, CHOICE) == choice, "choice %g, expected %g", shown(&n, 0, CHOICE), choice);
        }
    }
    fl_instance_close(n.in);
}

static void test_random_probes(void) {
    const uint64_t seed = 20240422;
    const long all = 3000;
    const unsigned failed = CU_get_number_of_failures();
    fl_random r = fl_random_seed(seed, 1);
    counts seen = {0};
    for (long i = 0; i < all && CU_get_number_of_failures() < failed + 5; i++)
        check_random_probe(&r, &seen);
    FL_CHECK(seen.folds > 500 && all - seen.fits < all / 10 && all - seen.choices < all / 8,
             "seed %llu: of %ld probes %ld fits (%ld folds) and %ld choices were compared, expected more",
             (unsigned long long)seed, all, seen.fits, seen.folds, seen.choices);
    printf("(%ld of %ld fits and %ld choices were ties) ", all - seen.fits, all, all - seen.choices);
}

/* A memory-bound kernel on a GPU whose bandwidth has a fold: from readings free of noise the policy finds that fold,
 * and with readings in whole percent it finds it within half a step of the probe clocks. */
static void test_of_simulator(void) {
    static const fl_fold_line row[] = {{1000, 0.9, 0.2}, {1100, 1, 0}, {1230, 1.2, 0.5}};
    int32_t clocks[] = {700, 1500}, memory[] = {1000};
    double idle[] = {10};
    const double mhz[] = {700, 1500}, volt[] = {1, 1.2};
    fl_device dev = {.sm_mhz = clocks,
                     .mem_mhz = memory,
                     .sm_count = 2,
                     .mem_count = 1,
                     .default_sm_mhz = 1500,
                     .default_mem_mhz = 1000,
                     .a_w = 100,
                     .b_w = 50,
                     .b0_w = idle,
                     .c_w = 30,
                     .sharpness = 9};
    CU_ASSERT_FATAL(fl_curve_new(&dev.voltage, mhz, volt, 2) == FL_MODEL_OK);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int whole = 0; whole < 2; whole++) {
            const fl_load load = {.tm = 1, .beta = 1, .ref_sm_mhz = 1500, .ref_mem_mhz = 1000, .bandwidth = row[i]};
            fl_fold_data data = {.probe_count = 9};
            for (uint32_t p = 0; p < data.probe_count; p++) {
                fl_row r;
                data.probe_mhz[p] = 700 + 100 * p;
                CU_ASSERT_FATAL(fl_row_make(&dev, &load, data.probe_mhz[p], 1000, &r, NULL) == FL_MODEL_OK);
                const double pct = 100.0 * r.memory / FL_ROW_ONE;
                data.util_mem_pct[p] = data.util_mem_pct[2 * data.probe_count - 1 - p] = whole ? round(pct) : pct;
                data.power_mw[p] = data.power_mw[2 * data.probe_count - 1 - p] = 1e5;
            }
            const fl_fold fold = fl_fold_fit(&data, 100);
            FL_CHECK(fold.turn_mhz > 0 && fabs(fold.turn_mhz - row[i].fold_mhz) < (whole ? 50 : 0.5),
                     "row %zu%s: fold at %g MHz", i, whole ? " in whole percent" : "", fold.turn_mhz);
            const double ratio = fold.high.slope / fold.low.slope;
            FL_CHECK(fabs(ratio - row[i].high / row[i].low) < (whole ? 0.08 : 0.002), "row %zu: slopes' ratio %g", i,
                     ratio);
        }
    fl_curve_free(dev.voltage);
}

FL_SUITE("foldfit", {"fold of the simulator", test_of_simulator}, {"what a rounding decides", test_ties},
         {"no solution", test_no_solution}, {"random probes against a second derivation", test_random_probes})
