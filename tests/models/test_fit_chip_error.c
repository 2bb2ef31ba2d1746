/* How measurements scatter about the law: numbers by hand, and a second computation of the most likely scatter, with
 * determinants and inverted matrices in place of a Cholesky factor. */
#include "models/chip/chip.h"
#include "models/chip/inside.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static fl_chip_row at(double sm_mhz, double mem_mhz) { return (fl_chip_row){0, sm_mhz, mem_mhz, 1, NAN}; }

/* Clocks so far apart that no length of the grid joins them: every shape is plain scatter. */
static double far_mhz(size_t i) { return 100 * pow(1000, (double)(i % 4)); }

static double variance_of(const fl_chip_error *e) { return e->scatter * e->scatter + e->smooth * e->smooth; }

static bool near(double a, double b) { return fabs(a - b) <= 1e-5 * fabs(b); }

/* Each workload's fit took `parts` numbers, so of 4 rows only 4 - parts are free: the variance grows by 4 / (4 -
 * parts). The rows have residuals of 1 and 3 %: 5 squares of a percent on average. */
static void test_variance(void) {
    static const struct { double parts, grows; } rows[] = {{0, 1}, {1, 4.0 / 3}, {2, 2}};
    fl_chip_row row[16];
    double r[16];
    fl_chip_span span[4];
    for (size_t i = 0; i < 16; i++) {
        row[i] = at(far_mhz(i), 800);
        r[i] = (i % 3 ? 1 : -1) * (i % 2 ? 0.03 : 0.01);
        span[i / 4] = (fl_chip_span){i / 4 * 4, 4};
    }
    for (size_t i = 0; i < COUNT(rows); i++) {
        fl_chip_error e = {0};
        CU_ASSERT_FATAL(fl_chip_fit_error(row, r, span, 4, rows[i].parts, &e) == FL_MODEL_OK);
        FL_CHECK(near(variance_of(&e), 0.0005 * rows[i].grows), "%g parts: %.9g", rows[i].parts, variance_of(&e));
    }
    fl_chip_error e = {0}; /* as many parts as rows: no row is free, and the variance is taken times 4 */
    CU_ASSERT_FATAL(fl_chip_fit_error(row, r, span, 4, 2.5, &e) == FL_MODEL_OK);
    FL_CHECK(near(variance_of(&e), 0.0005 * 4 / 1.5), "%.9g", variance_of(&e));
    for (size_t i = 0; i < 16; i++)
        r[i] = i % 4 == 3 ? NAN : 0.02;
    CU_ASSERT_FATAL(fl_chip_fit_error(row, r, span, 4, 2, &e) == FL_MODEL_OK);
    FL_CHECK(near(variance_of(&e), 0.0004 * 2), "rows that were not measured do not count: %.9g", variance_of(&e));
    for (size_t i = 0; i < 16; i++)
        r[i] = 1e-4;
    CU_ASSERT_FATAL(fl_chip_fit_error(row, r, span, 4, 0, &e) == FL_MODEL_OK);
    FL_CHECK(e.scatter == 1e-3, "no meter repeats better: %g", e.scatter);
    for (size_t i = 0; i < 16; i++)
        r[i] = NAN;
    FL_CHECK(fl_chip_fit_error(row, r, span, 4, 0, &e) == FL_MODEL_NO_FIT, "nothing was measured");
}

/* One wild residual counts as 5 deviations: 5 x 1.4826 x the middle one of 1 %. */
static void test_wild(void) {
    fl_chip_row row[16];
    double r[16];
    fl_chip_span span[4];
    for (size_t sign = 0; sign < 2; sign++) {
        for (size_t i = 0; i < 16; i++) {
            row[i] = at(far_mhz(i), 800);
            r[i] = i % 2 ? 0.01 : -0.01;
            span[i / 4] = (fl_chip_span){i / 4 * 4, 4};
        }
        r[6] = sign ? -2 : 2;
        fl_chip_error e = {0};
        CU_ASSERT_FATAL(fl_chip_fit_error(row, r, span, 4, 0, &e) == FL_MODEL_OK);
        const double wild = 5 * 1.4826 * 0.01;
        FL_CHECK(near(variance_of(&e), (15 * 0.0001 + wild * wild) / 16), "%.9g", variance_of(&e));
    }
}

/* With fewer than 6 free rows nothing is fitted. */
static void test_assumed(void) {
    static const struct {
        size_t spans, count;
        double parts;
        bool assumed;
    } rows[] = {{1, 6, 0, false},  {1, 5, 0, true}, {2, 5, 2, false},
                {2, 5, 2.1, true}, {4, 4, 3, true}, {0, 0, 0, true}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        fl_chip_row row[16];
        double r[16];
        fl_chip_span span[4];
        for (size_t k = 0; k < 16; k++) {
            row[k] = at(1000 + 10 * (double)k, 800);
            r[k] = k % 2 ? 0.3 : -0.3;
        }
        for (size_t k = 0; k < 4; k++)
            span[k] = (fl_chip_span){k * rows[i].count, rows[i].count};
        fl_chip_error e = {0};
        CU_ASSERT_FATAL(fl_chip_fit_error(row, r, span, rows[i].spans, rows[i].parts, &e) == FL_MODEL_OK);
        const bool assumed = e.scatter == 0.005 && e.smooth == 0.01 && e.length_sm == 0.2 && e.length_mem == 0.4;
        FL_CHECK(assumed == rows[i].assumed && (assumed || e.scatter > 0.1), "row %zu: scatter %g", i, e.scatter);
    }
}

/* ---- the most likely shape ---- */

enum { SPANS = 3, EACH = 8, ROWS = SPANS * EACH };

/* ln of the density of n numbers whose covariance is v: elimination gives the determinant and v^-1 x. */
static double ln_density(double v[EACH][EACH], const double *x, size_t n) {
    double b[EACH], squares = 0, ln_det = 0;
    memcpy(b, x, n * sizeof *b);
    for (size_t p = 0; p < n; p++) {
        ln_det += log(v[p][p]);
        for (size_t i = p + 1; i < n; i++) {
            const double f = v[i][p] / v[p][p];
            for (size_t j = p; j < n; j++)
                v[i][j] -= f * v[p][j];
            b[i] -= f * b[p];
        }
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t j = i + 1; j < n; j++)
            b[i] -= v[i][j] * b[j];
        b[i] /= v[i][i];
        squares += b[i] * x[i];
    }
    return -0.5 * (squares + ln_det);
}

/* At a scale that it looks for by halving, as the density has one maximum there. */
static double best_of(const fl_chip_row *row, const double *r, double part, double sm, double mem, double *scale) {
    double top = -INFINITY, low = log(1e-6), high = log(1);
    for (int round = 0; round < 30; round++) {
        const double probe[2] = {low + (high - low) * 0.49, low + (high - low) * 0.51};
        double value[2] = {0, 0};
        for (int side = 0; side < 2; side++) {
            const double s2 = exp(probe[side]);
            for (size_t k = 0; k < SPANS; k++) {
                double v[EACH][EACH];
                for (size_t i = 0; i < EACH; i++)
                    for (size_t j = 0; j < EACH; j++) {
                        const fl_chip_row *a = &row[k * EACH + i], *b = &row[k * EACH + j];
                        const double x = log(a->sm_mhz / b->sm_mhz) / sm, y = log(a->mem_mhz / b->mem_mhz) / mem;
                        v[i][j] = s2 * (part * exp(-x * x / 2 - y * y / 2) + (i == j ? 1 - part : 0));
                    }
                value[side] += ln_density(v, r + k * EACH, EACH);
            }
        }
        if (value[0] < value[1])
            low = probe[0];
        else
            high = probe[1];
        top = fmax(value[0], value[1]);
    }
    *scale = exp((low + high) / 4);
    return top;
}

static fl_chip_error check_found(const char *what, const fl_chip_row *row, const double *r, bool mems) {
    static const double part[] = {0, 0.3, 0.5, 0.7, 0.85, 0.95}, length[] = {0.05, 0.1, 0.2, 0.4, 0.8};
    double top = -INFINITY, want[4] = {0};
    for (size_t p = 0; p < COUNT(part); p++)
        for (size_t i = 0; i < (p ? COUNT(length) : 1); i++)
            for (size_t j = 0; j < (p && mems ? COUNT(length) : 1); j++) {
                double scale = 0;
                const double found = best_of(row, r, part[p], length[i], mems ? length[j] : 1, &scale);
                if (found > top) {
                    top = found;
                    want[0] = scale * sqrt(1 - part[p]);
                    want[1] = scale * sqrt(part[p]);
                    want[2] = length[i];
                    want[3] = mems ? length[j] : 1;
                }
            }
    fl_chip_span span[SPANS];
    for (size_t k = 0; k < SPANS; k++)
        span[k] = (fl_chip_span){k * EACH, EACH};
    fl_chip_error e = {0};
    CU_ASSERT_FATAL(fl_chip_fit_error(row, r, span, SPANS, 0, &e) == FL_MODEL_OK);
    FL_CHECK(near(e.scatter, want[0]) && fabs(e.smooth - want[1]) < 1e-5 * want[1] + 1e-12 && e.length_sm == want[2] &&
                 e.length_mem == want[3],
             "%s: %.9g %.9g %g %g, expected %.9g %.9g %g %g", what, e.scatter, e.smooth, e.length_sm, e.length_mem,
             want[0], want[1], want[2], want[3]);
    return e;
}

static void check_shape(const char *what, const fl_chip_row *row, const double *r, bool mems, bool smooth) {
    const fl_chip_error e = check_found(what, row, r, mems);
    FL_CHECK((e.smooth > e.scatter && e.length_sm >= 0.1) == smooth, "%s: scatter %g, smooth %g over %g", what,
             e.scatter, e.smooth, e.length_sm);
}

static void test_shapes(void) {
    static const uint64_t seed = 4;
    fl_random random = fl_random_seed(seed, 1);
    fl_chip_row row[ROWS];
    double noise[ROWS], slow[ROWS], slow_in_both[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        const double along = (double)(i % EACH), level = i / EACH == 1 ? -0.02 : 0.02;
        row[i] = at(700 + 90 * along, 900);
        noise[i] = 0.01 * fl_random_normal(&random);
        slow[i] = level * cos(along / 3 + (double)(i / EACH)) + 0.1 * noise[i];
        slow_in_both[i] = level * (i % 2 ? 1 : 0.8) * cos(along / 4) + 0.05 * noise[i];
    }
    printf(" seed %llu ", (unsigned long long)seed);
    check_shape("noise", row, noise, false, false);
    check_shape("a slow wave", row, slow, false, true);
    for (size_t i = 0; i < ROWS; i++)
        row[i].mem_mhz = i % 2 ? 1000 : 700;
    check_shape("noise at two memory clocks", row, noise, true, false);
    check_shape("alike at both memory clocks", row, slow_in_both, true, true);
    for (size_t i = 0; i < ROWS; i++)
        slow_in_both[i] = (i % 2 ? 1 : -1) * 0.02 * cos((double)(i % EACH) / 4) + 0.05 * noise[i];
    check_shape("unlike at both memory clocks", row, slow_in_both, true, true);
}

/* Each share and length of the grid is the most likely somewhere: residuals drawn from that very process. */
static void test_drawn(void) {
    static const double part[] = {0.3, 0.5, 0.7, 0.85, 0.95}, length[] = {0.05, 0.1, 0.2, 0.4, 0.8};
    fl_random random = fl_random_seed(9, 1);
    for (size_t n = 0; n < 10; n++) {
        const fl_chip_error e = {.smooth = sqrt(part[n % 5]), .length_sm = length[n / 2], .length_mem = 1};
        fl_chip_row row[ROWS];
        double r[ROWS];
        for (size_t k = 0; k < SPANS; k++) {
            double a[EACH * EACH], draw[EACH];
            for (size_t i = 0; i < EACH; i++) {
                row[k * EACH + i] = at(600 * pow(1.12, (double)i), 900);
                draw[i] = fl_random_normal(&random);
            }
            for (size_t i = 0; i < EACH; i++)
                for (size_t j = 0; j < EACH; j++)
                    a[i * EACH + j] =
                        fl_chip_covariance(&e, &row[k * EACH + i], &row[k * EACH + j]) + (i == j ? 1 - part[n % 5] : 0);
            CU_ASSERT_FATAL(fl_chip_cholesky(a, EACH));
            for (size_t i = 0; i < EACH; i++) {
                r[k * EACH + i] = 0;
                for (size_t j = 0; j <= i; j++)
                    r[k * EACH + i] += 0.01 * a[i * EACH + j] * draw[j];
            }
        }
        check_found("drawn", row, r, false);
    }
}

/* Of a workload with 50 rows every second counts. */
static void test_thinned(void) {
    static fl_chip_row row[50];
    static double r[50];
    const fl_chip_span span = {0, 50};
    for (size_t i = 0; i < 50; i++) {
        row[i] = at(1000, 800);
        row[i].sm_mhz *= pow(100, (double)i);
        r[i] = i % 2 ? 0.5 : 0.02;
    }
    fl_chip_error e = {0};
    CU_ASSERT_FATAL(fl_chip_fit_error(row, r, &span, 1, 0, &e) == FL_MODEL_OK);
    FL_CHECK(near(variance_of(&e), 0.0004), "%.9g", variance_of(&e));
}

FL_SUITE("fit_chip_error", {"variance", test_variance}, {"wild readings", test_wild}, {"assumed", test_assumed},
         {"shapes", test_shapes}, {"drawn", test_drawn}, {"thinned", test_thinned})
