/* tightrope: kinds of kernel that took less below the top clock than they take at it have changed, and their reference
 * begins anew. What they were credited before stays; of the window that showed it only what is certain counts. */
#include "policies/policy.h"
#include "policies/tightrope/inside.h"
#include "tests/support/suite.h"

#include <math.h>

#define S INT64_C(1000000000)

static fl_tightrope_work *w;

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(1, fabs(b)); }

/* A window of 100 s at six tenths of the top clock ends. */
static void open_work(void) {
    w = calloc(1, sizeof *w);
    CU_ASSERT_FATAL(w != NULL);
    fl_tightrope_work_begin(w, FL_TIGHTROPE_RECORDS, 0, 0.03, 2, 0);
    fl_tightrope_window(w, 0, 0.6, 0);
    w->busy_s = 1000;
}

static int renews(void) { return fl_tightrope_close(w, 100 * S, 0).renewed; }

/* Durations of that mean and variance at the top clock; in the window so many of that mean, certain of half of it. */
static fl_tightrope_kind kind_of(double count, double mean, double variance, double low, double low_mean) {
    return (fl_tightrope_kind){.count = count,
                               .sum_s = count * mean,
                               .square_s = count * mean * mean + (count - 1) * variance,
                               .done = low,
                               .done_s = low * low_mean,
                               .floor_s = low * low_mean / 2,
                               .low = low,
                               .low_s = low * low_mean,
                               .low_floor_s = low * low_mean / 2};
}

/* Standard errors of so many durations, by Student's law. */
static double held(double count) {
    const double n = fmax(1, count - 1), z = w->sigmas * (8 * n + 3) / (8 * n + 1);
    return sqrt(n * expm1(fmin(z * z / n, 50)));
}

/* A tenth less in eight kernels, where three were seen at the top clock; the means' errors count for it: of 4 durations
 * with a variance of 0.04, and of 16 in the window, 2.72... times sqrt(0.04 / 4 + 0.04 / 16). */
static void test_changed(void) {
    static const struct {
        const char *what;
        double count, variance, low, below; /* in parts of a thousandth, of what is still the same */
        int renewed;
    } rows[] = {{"just the same", 3, 0, 8, 0, 0},
                {"less", 3, 0, 8, 1, 1},
                {"more", 3, 0, 8, -1, 0},
                {"few kernels", 3, 0, 7, 500, 0},
                {"hardly known", 2, 0, 8, 500, 0},
                {"well known", 50, 0, 8, 1, 1},
                {"many kernels", 3, 0, 100, 1, 1},
                {"with errors, just the same", 4, 0.04, 16, -1, 0},
                {"with errors, less", 4, 0.04, 16, 1, 1},
                {"other errors, just the same", 20, 0.04, 8, -1, 0},
                {"other errors, less", 20, 0.04, 8, 1, 1},
                {"no error is less than none, just the same", 5, -0.01, 8, -1, 0},
                {"no error is less than none", 5, -0.01, 8, 1, 1}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_work();
        const double v = fmax(0, rows[i].variance),
                     edge = 1 * (1 - 0.1) - held(rows[i].count) * sqrt(v / rows[i].low + v / rows[i].count);
        w->kinds = 1;
        w->kind[0] = kind_of(rows[i].count, 1, rows[i].variance, rows[i].low, edge - rows[i].below * 1e-3);
        const fl_tightrope_kind before = w->kind[0];
        FL_CHECK(renews() == rows[i].renewed, "%s: %g s each", rows[i].what, edge - rows[i].below * 1e-3);
        if (rows[i].renewed)
            FL_CHECK(w->kind[0].count == 0 && w->kind[0].sum_s == 0 && w->kind[0].square_s == 0 &&
                         w->kind[0].done == 0 && w->kind[0].done_s == 0 && w->kind[0].floor_s == 0 &&
                         w->kind[0].low == 0 && near(w->kind[0].kept_s, before.low_floor_s),
                     "%s: it begins anew, %g s are kept", rows[i].what, w->kind[0].kept_s);
        else
            FL_CHECK(memcmp(&w->kind[0], &before, sizeof before) == 0, "%s: it is another", rows[i].what);
        free(w);
    }
}

/* Only by records, and below the top clock. */
static void test_where(void) {
    for (int row = 0; row < 3; row++) {
        open_work();
        w->kinds = 1;
        w->kind[0] = kind_of(3, 1, 0, 8, 0.5);
        w->at_top = row == 1;
        w->signal = row == 2 ? FL_TIGHTROPE_NONE : FL_TIGHTROPE_RECORDS;
        FL_CHECK(renews() == (row == 0), "row %d", row);
        FL_CHECK((w->kind[0].count == 0) == (row == 0), "row %d: %g", row, w->kind[0].count);
        free(w);
    }
}

/* Each kind by itself, the first and the last too. What is no part of the reference stays. */
static void test_each(void) {
    for (int changed = 0; changed < 8; changed++) {
        open_work();
        w->kinds = 3;
        for (int i = 0; i < 3; i++) {
            w->kind[i] = kind_of(3, 1, 0, 8, changed >> i & 1 ? 0.5 : 1.25);
            w->kind[i].window_s = 1 + i, w->kind[i].spell_s = 2, w->kind[i].spell = 3, w->kind[i].usual = 4;
            w->kind[i].visits = 5, w->kind[i].mean_s = 5, w->kind[i].mean_square_s = 5, w->kind[i].visit_square_s = 15;
        }
        w->kind[3] = kind_of(3, 1, 0, 8, 0.5); /* no kind of these */
        FL_CHECK(renews() == (changed > 0), "kinds %d", changed);
        for (int i = 0; i < 3; i++) {
            const fl_tightrope_kind *k = &w->kind[i];
            FL_CHECK(k->count == (changed >> i & 1 ? 0 : 3) && k->visits == (changed >> i & 1 ? 0 : 5), "kinds %d: %d",
                     changed, i);
            CU_ASSERT(k->window_s == 1 + i && k->spell_s == 2 && k->spell == 3 && k->usual == 4);
        }
        CU_ASSERT(w->kind[3].count == 3);
        free(w);
    }
}

/* Twelve other kernels took 18 s before the window, 5 s of them for certain. Known with a variance they are credited
 * 12 s less the error; well known all 12 s; not known well at all what is certain. What was kept before is kept on. */
static void test_credit(void) {
    static const struct {
        const char *what;
        double variance, done_s, floor_s;
        int holds; /* back: the error */
        double credit_s;
    } rows[] = {{"alike", 0, 18, 5, 0, 12},
                {"no more than they took", 0, 11, 5, 0, 11},
                {"with an error", 0.01, 18, 5, 1, 12},
                {"with an error so large that only the certain counts", 0.04, 18, 11.5, 0, 11.5}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_work();
        w->kinds = 1;
        w->kind[0] = kind_of(9, 1, rows[i].variance, 8, 0.25);
        w->kind[0].done += 12, w->kind[0].done_s += rows[i].done_s, w->kind[0].floor_s += rows[i].floor_s;
        w->kind[0].kept_s = 3;
        const double v = rows[i].variance, error = rows[i].holds ? held(9) * sqrt(144 * v / 9 + 12 * v) : 0;
        CU_ASSERT(renews());
        const double kept = 3 + rows[i].credit_s - error + 8 * 0.25 / 2;
        FL_CHECK(near(w->kind[0].kept_s, kept), "%s: %.9f s, expected %.9f", rows[i].what, w->kind[0].kept_s, kept);
        FL_CHECK(near(fl_tightrope_credit(w), (kept) / 10), "%s: %.9f s", rows[i].what, fl_tightrope_credit(w));
        free(w);
    }
}

FL_SUITE("tightrope_renew", {"changed", test_changed}, {"where", test_where}, {"each kind", test_each},
         {"what was credited", test_credit})
