/* The curve through a workload's rows, held to a second computation of the same Gaussian process: the covariance of
 * models/chip/chip.h over the rows in use, one elimination for each prediction, and no inverse that is kept up to date.
 */
#include "models/chip/chip.h"
#include "models/math/math.h"
#include "tests/support/exact.h"
#include "tests/support/suite.h"

#include <math.h>

enum { ROWS = 9 };

typedef struct rows {
    double x[ROWS], z[ROWS], y[ROWS]; /* ln of SM clock, memory clock, and time or power */
    bool known[ROWS], used[ROWS];
    double noise, x_mean, z_mean, y_mean;
} rows;

/* A free level of 3, free slopes of 2, and a bend of 0.1 that reaches 0.3. */
static double alike(double xa, double za, double xb, double zb) {
    return 9 + 4 * (xa * xb + za * zb) + 0.01 * exp(-(pow(xa - xb, 2) + pow(za - zb, 2)) / (2 * 0.09));
}

/* Mean and variance at a place, from the rows in use but one (Rasmussen and Williams, Eq. 2.25 and 2.26). */
static double predict(const rows *r, size_t without, double x, double z, double *variance) {
    double m[ROWS][ROWS + 2], mean = r->y_mean;
    size_t of[ROWS], n = 0;
    x -= r->x_mean;
    z -= r->z_mean;
    for (size_t i = 0; i < ROWS; i++)
        if (r->used[i] && i != without)
            of[n++] = i;
    for (size_t i = 0; i < n; i++) {
        const double xi = r->x[of[i]] - r->x_mean, zi = r->z[of[i]] - r->z_mean;
        for (size_t j = 0; j < n; j++)
            m[i][j] =
                alike(xi, zi, r->x[of[j]] - r->x_mean, r->z[of[j]] - r->z_mean) + (i == j ? r->noise * r->noise : 0);
        m[i][n] = r->y[of[i]] - r->y_mean;
        m[i][n + 1] = alike(x, z, xi, zi);
    }
    for (size_t i = 0; i < n; i++) {
        size_t pivot = i;
        for (size_t k = i; k < n; k++)
            pivot = fabs(m[k][i]) > fabs(m[pivot][i]) ? k : pivot;
        for (size_t j = 0; j < n + 2; j++) {
            const double kept = m[i][j];
            m[i][j] = m[pivot][j];
            m[pivot][j] = kept;
        }
        for (size_t k = 0; k < n; k++) {
            const double factor = m[k][i] / m[i][i];
            for (size_t j = i; k != i && j < n + 2; j++)
                m[k][j] -= factor * m[i][j];
        }
    }
    double var = alike(x, z, x, z) + r->noise * r->noise;
    for (size_t i = 0; i < n; i++) {
        const double k = alike(x, z, r->x[of[i]] - r->x_mean, r->z[of[i]] - r->z_mean);
        mean += k * m[i][n] / m[i][i];
        var -= k * m[i][n + 1] / m[i][i];
    }
    if (variance)
        *variance = fmax(var, r->noise * r->noise);
    return mean;
}

static fl_chip_row *make(rows *r, bool power) {
    static const double sm[ROWS] = {500, 700, 900, 1100, 1300, 600, 850, 1200, 1000},
                        mem[ROWS] = {800, 800, 800, 800, 800, 1600, 1600, 1600, 400};
    fl_chip_row *row = exact(NULL, ROWS * sizeof *row);
    double n = 0;
    *r = (rows){.noise = power ? FL_ROW_NOISE_POWER : FL_ROW_NOISE_TIME};
    for (size_t i = 0; i < ROWS; i++) {
        row[i] = (fl_chip_row){.sm_mhz = sm[i],
                               .mem_mhz = mem[i],
                               .time_s = 3 * pow(1000 / sm[i], 0.8) * pow(800 / mem[i], 0.2) *
                                         (1 + 0.02 * sin(5.0 * (double)i)),
                               .power_w = 80 * pow(sm[i] / 1000, 1.7) * (1 + 0.03 * cos(7.0 * (double)i))};
        if (i == 3)
            row[i].power_w = NAN; /* not known */
        r->x[i] = log(sm[i]);
        r->z[i] = log(mem[i]);
        r->y[i] = log(power ? row[i].power_w : row[i].time_s);
        r->known[i] = r->used[i] = !isnan(r->y[i]);
        if (!r->known[i])
            continue;
        n++;
        r->x_mean += r->x[i];
        r->z_mean += r->z[i];
        r->y_mean += r->y[i];
    }
    r->x_mean /= n;
    r->z_mean /= n;
    r->y_mean /= n;
    return row;
}

static bool near(double got, double want, double within) {
    return isnan(want) ? isnan(got) : fabs(got - want) <= within;
}

static void compare(const rows *r, const fl_row_curve *c, const char *what) {
    for (size_t i = 0; i < ROWS; i++) {
        double off = 7, sd = 7, variance = NAN;
        const double mean = predict(r, i, r->x[i], r->z[i], &variance);
        fl_row_curve_off(c, i, &off, &sd);
        FL_CHECK(near(off, r->known[i] ? r->y[i] - mean : (double)NAN, 1e-8) &&
                     near(sd, r->known[i] ? sqrt(variance) : (double)NAN, 1e-7),
                 "%s: row %zu is off by %.9f, expected %.9f, sd %.9f, expected %.9f", what, i, off, r->y[i] - mean, sd,
                 sqrt(variance));
    }
    static const double at[][2] = {{450, 800}, {700, 800}, {1000, 1200}, {1500, 500}, {800, 1600}};
    for (size_t k = 0; k < sizeof at / sizeof *at; k++)
        for (size_t without = 0; without <= ROWS; without++) {
            const double x = log(at[k][0]), z = log(at[k][1]), want = predict(r, without, x, z, NULL);
            const double slope =
                (predict(r, without, x + 0.01, z, NULL) - predict(r, without, x - 0.01, z, NULL)) / 0.02;
            const double got = fl_row_curve_at(c, without, at[k][0], at[k][1]);
            const double got_slope = fl_row_curve_slope(c, without, at[k][0], at[k][1]);
            FL_CHECK(near(got, want, 1e-8) && near(got_slope, slope, 1e-6),
                     "%s: %g/%g without %zu: %.9f, expected %.9f, slope %.9f, expected %.9f", what, at[k][0], at[k][1],
                     without, got, want, got_slope, slope);
        }
}

/* All rows, then without some of them, taken out in another order than they stand, then with one again. */
static void test_curve(void) {
    for (int power = 0; power < 2; power++) {
        rows r;
        fl_chip_row *row = make(&r, power);
        fl_row_curve c;
        CU_ASSERT_FATAL(fl_row_curve_open(row, ROWS, power, &c) == FL_MODEL_OK);
        free(row); /* it keeps none of them */
        compare(&r, &c, "all");
        static const size_t out[] = {6, 0, 4};
        for (size_t k = 0; k < 3; k++) {
            fl_row_curve_drop(&c, out[k]);
            fl_row_curve_drop(&c, out[k]); /* twice is once */
            r.used[out[k]] = false;
            compare(&r, &c, "without some");
        }
        for (int k = 0; k < 2; k++) {
            CU_ASSERT_FATAL(fl_row_curve_admit(&c, 0) == FL_MODEL_OK);
            r.used[0] = true;
            compare(&r, &c, "with one again");
        }
        if (power) { /* what is not known comes in as little as it goes out */
            CU_ASSERT_FATAL(fl_row_curve_admit(&c, 3) == FL_MODEL_OK);
            fl_row_curve_drop(&c, 3);
            compare(&r, &c, "one that is not known");
        }
        fl_row_curve_close(&c);
        fl_row_curve_close(&c); /* nothing is left of it */
        double off = 7, sd = 7;
        fl_row_curve_off(&c, 0, &off, &sd);
        fl_row_curve_drop(&c, 0);
        FL_CHECK(isnan(off) && isnan(sd) && isnan(fl_row_curve_at(&c, 0, 500, 800)) &&
                     fl_row_curve_admit(&c, 0) == FL_MODEL_OK,
                 "a closed curve: %g, %g", off, sd);
    }
}

/* Three values make a curve, two make none; a value of 0 or less is none. */
static void test_least(void) {
    for (size_t known = 0; known <= 4; known++) {
        rows r;
        fl_chip_row *row = make(&r, false);
        for (size_t i = 0; i < ROWS; i++)
            if (i >= known)
                row[i].time_s = i % 3 == 0 ? (double)NAN : i % 3 == 1 ? 0 : -1;
        fl_row_curve c;
        const fl_model_status s = fl_row_curve_open(row, ROWS, 0, &c);
        FL_CHECK(s == (known < 3 ? FL_MODEL_NO_FIT : FL_MODEL_OK) && (c.n > 0) == (known >= 3), "%zu values: %s", known,
                 fl_model_text(s));
        fl_row_curve_close(&c);
        free(row);
    }
}

FL_SUITE("row_curve", {"the same process", test_curve}, {"values", test_least})
