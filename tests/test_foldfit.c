/* The fold-line fit of Assure, and the choice that follows, on random probes against a second derivation in another
 * style. */
#include "policies/random.h"
#include "tests/support/assure_node.h"

/* ---- a second derivation ------------------------------------------------------------------------------------------
 * Least squares by elimination over basis functions in long double; the model as a curve; the bound by bisection on the
 * curve. */

typedef struct reference {
    int kind;                           /* 0 none, 1 line, 2 fold, 3 fold at a clock */
    long double low, high, turn, level; /* slopes; turn and the value there (for a line: fmax as turn) */
    long double error;
} reference;

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
        if (!(r.turn >= at - 1e-6L && r.turn <= clock[fold + 1] + 1e-6L)) {
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
        if (r.low > r.high && r.error < best.error - 1e-9L)
            best = r;
    }
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

static void check_random_probe(fl_random *r, long *folds, long *clear) {
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
    bool empty = true, tie = false;
    for (int i = 0; i < 2 * m; i++)
        empty = empty && mem[i] == 0;
    if (f.kind && !empty) {
        bound = reference_bound(&f, clock[0], 1000, theta);
        long double ratio = -1e9L;
        for (int i = 0; i < m; i++) {
            long double mine = curve(&f, clock[0], clock[i]) * 2 / ((long double)power[i] + power[2 * m - 1 - i]);
            tie = tie || fabsl(mine - ratio) < 1e-12L;
            if (mine > ratio) {
                ratio = mine;
                efficient = clock[i];
            }
        }
    }
    long double wish = fmaxl(fminl(bound, cap), efficient);
    double choice = 10 * ceil((double)((fmaxl(250, fminl(wish, 1000)) - 1e-6L) / 10));
    *folds += !empty && f.kind > 1;
    FL_CHECK(shown(&n, 0, FIT) == (empty ? -1 : f.kind), "fit %g, expected %d", shown(&n, 0, FIT), empty ? -1 : f.kind);
    FL_CHECK(near(shown(&n, 0, CAP), (double)cap), "cap %g, expected %g", shown(&n, 0, CAP), (double)cap);
    FL_CHECK(near(shown(&n, 0, BOUND), (double)bound) || fabsl(f.low) < 1e-9L, "bound %g, expected %g",
             shown(&n, 0, BOUND), (double)bound);
    FL_CHECK(near(shown(&n, 0, EFFICIENT), (double)efficient) || tie, "efficient %g, expected %g",
             shown(&n, 0, EFFICIENT), (double)efficient);
    if (!tie) {
        ++*clear;
        FL_CHECK(shown(&n, 0, CHOICE) == choice, "choice %g, expected %g", shown(&n, 0, CHOICE), choice);
    }
    fl_instance_close(n.in);
}

static void test_random_probes(void) {
    uint64_t seed = 20240422;
    fl_random r = fl_random_seed(seed, 1);
    long folds = 0, clear = 0, failed = CU_get_number_of_failures();
    for (int i = 0; i < 3000 && CU_get_number_of_failures() < (unsigned)failed + 5; i++)
        check_random_probe(&r, &folds, &clear);
    FL_CHECK(folds > 500 && clear > 1500, "seed %llu: %ld folds and %ld clear choices, expected more",
             (unsigned long long)seed, folds, clear);
}

FL_SUITE("foldfit", {"random probes against a second derivation", test_random_probes})
