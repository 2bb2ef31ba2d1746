/* One program without a chip: a law of time and a law of power through its own rows, and the next clock to measure. */
#include "models/chip/chip.h"
#include "models/chip/inside.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Constants of the laws, from 196 programs on nine boards: chosen after those had been seen, so nothing here was tried
 * on a board that had no part in the choice. */
#define SHARPNESS 4 /* of the law of time; of programs with three rows or more a mean of these, weighted */
static const double sharpnesses[] = {1, 1.5, 2, 3, 4, 6, 8}, rises[] = {0, 0.15, 0.3, 0.5, 0.75, 1, 1.4};
#define RISE 0.5         /* of the voltage from 0.4 of the top clock to the top, a share */
#define VOLT_FROM 0.4    /* share of the top clock up to which the voltage is flat */
#define VOLT_BEND 1.5    /* exponent of its rise */
#define SHARPNESS_SD 0.7 /* prior deviation of ln sharpness */
#define RISE_SD 0.35     /* prior deviation of the rise */
#define TIME_OFF 0.01    /* how far rows lie off the law of time, relative */
#define POWER_OFF 0.02   /* the same of power */
#define DRAW_MOST 1.2    /* a program saves no more of its power than this times what the law has */
#define TIME_LEAST 0.5   /* least value of the bracket of time; below it the law has no meaning */
#define POWER_LEAST 0.03 /* the same of power */
#define NEAR_SD 0.003    /* deviation of ln time far enough from a row for the program, not so far that the law errs */
#define NEAR_LN 0.02     /* distance in ln clock at which it is reached */
#define FAR_SD 0.15      /* deviation of ln time by distance and by how much the clock costs at most */
#define BELOW 4          /* below the lowest row the deviation is that many times as large */
#define POWER_SD_PCT 3   /* deviation of power between rows */
#define SAME_MHZ 0.5

/* The share of the power at the top clock that is left at x of it, of a program whose power follows V^2 f whole. */
static double height(double x, double rise) {
    const double up = pow(fmax(0, (x - VOLT_FROM) / (1 - VOLT_FROM)), VOLT_BEND), v = (1 + rise * up) / (1 + rise);
    return x * v * v;
}

double fl_two_laws_height(double x) { return height(x, RISE); }

static int by_clock(const void *a, const void *b) {
    const double x = ((const fl_chip_row *)a)->sm_mhz, y = ((const fl_chip_row *)b)->sm_mhz;
    return (x > y) - (x < y);
}

/* Rows of one clock become their mean. Returns how many are left, ascending. */
static size_t merge(fl_chip_row *row, size_t count) {
    size_t n = 0;
    qsort(row, count, sizeof *row, by_clock);
    for (size_t i = 0, k; i < count; i = k) {
        double time = 0, energy = 0;
        for (k = i; k < count && row[k].sm_mhz < row[i].sm_mhz + SAME_MHZ; k++) {
            time += row[k].time_s;
            energy += row[k].time_s * row[k].power_w;
        }
        row[n] = row[i];
        row[n].time_s = time / (double)(k - i);
        row[n++].power_w = energy / time;
    }
    return n;
}

/* A mean of values, each weighted by exp(likely). */
static double weighted(const double *value, const double *likely, size_t count, bool ln) {
    double most = -INFINITY, sum = 0, all = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, likely[i]);
    for (size_t i = 0; i < count; i++) {
        const double w = exp(likely[i] - most);
        sum += w * (ln ? log(value[i]) : value[i]);
        all += w;
    }
    return ln ? exp(sum / all) : sum / all;
}

static double square(double x) { return x * x; }

static double find_sharpness(const fl_two_laws *l, const fl_chip_row *row) {
    double likely[sizeof sharpnesses / sizeof *sharpnesses];
    for (size_t k = 0; k < sizeof sharpnesses / sizeof *sharpnesses; k++) {
        const double p = sharpnesses[k];
        double up = 0, down = 0;
        for (size_t i = 0; i < l->count; i++) { /* one b for all rows, by least squares */
            const double t = row[i].time_s / l->time_s, h = pow(row[i].sm_mhz / l->top_mhz, -p) - 1;
            const double w = 1 / square(TIME_OFF * p * pow(t, p));
            up += w * h * (pow(t, p) - 1);
            down += w * h * h;
        }
        likely[k] = -square(log(p / SHARPNESS) / SHARPNESS_SD) / 2;
        for (size_t i = 0; i < l->count; i++) {
            const double h = pow(row[i].sm_mhz / l->top_mhz, -p) - 1;
            const double t = pow(fmax(1 + up / down * h, TIME_LEAST), 1 / p);
            likely[k] -= square(log(t / (row[i].time_s / l->time_s)) / TIME_OFF) / 2;
        }
    }
    return weighted(sharpnesses, likely, sizeof sharpnesses / sizeof *sharpnesses, true);
}

static double find_rise(const fl_two_laws *l, const fl_chip_row *row) {
    double likely[sizeof rises / sizeof *rises];
    for (size_t k = 0; k < sizeof rises / sizeof *rises; k++) {
        double up = 0, down = 0;
        for (size_t i = 0; i < l->count; i++) {
            const double p = row[i].power_w / l->power_w, a = 1 - height(row[i].sm_mhz / l->top_mhz, rises[k]);
            const double w = 1 / square(POWER_OFF * p);
            up += w * a * (1 - p);
            down += w * a * a;
        }
        likely[k] = -square((rises[k] - RISE) / RISE_SD) / 2;
        for (size_t i = 0; i < l->count; i++) {
            const double p = row[i].power_w / l->power_w, a = 1 - height(row[i].sm_mhz / l->top_mhz, rises[k]);
            likely[k] -= square((1 - p - up / down * a) / (POWER_OFF * p)) / 2;
        }
    }
    return weighted(rises, likely, sizeof rises / sizeof *rises, false);
}

fl_model_status fl_two_laws_fit(fl_two_laws *l, const fl_chip_row *rows, size_t count) {
    fl_chip_row row[FL_TWO_LAWS_ROWS + 1];
    *l = (fl_two_laws){.sharpness = SHARPNESS, .rise = RISE};
    if (count > sizeof row / sizeof *row)
        return FL_MODEL_INVALID;
    for (size_t i = 0; i < count; i++) {
        if (!(rows[i].sm_mhz > 0 && rows[i].time_s > 0 && rows[i].power_w > 0 &&
              isfinite(rows[i].sm_mhz * rows[i].time_s * rows[i].power_w)))
            return FL_MODEL_INVALID;
        row[i] = rows[i];
    }
    const size_t n = merge(row, count);
    if (n < 2)
        return FL_MODEL_NO_FIT;
    l->count = n - 1;
    l->top_mhz = row[n - 1].sm_mhz;
    l->time_s = row[n - 1].time_s;
    l->power_w = row[n - 1].power_w;
    if (l->count > 1) {
        l->sharpness = find_sharpness(l, row);
        l->rise = find_rise(l, row);
    }
    for (size_t i = 0; i < l->count; i++) {
        const double x = row[i].sm_mhz / l->top_mhz;
        l->ln_x[i] = log(x);
        l->slows[i] = (pow(row[i].time_s / l->time_s, l->sharpness) - 1) / (pow(x, -l->sharpness) - 1);
        l->draws[i] = (1 - row[i].power_w / l->power_w) / (1 - height(x, l->rise));
    }
    return FL_MODEL_OK;
}

/* Linear between the rows, constant outside. */
static double between(const fl_two_laws *l, const double *value, double ln_x) {
    size_t i = 0;
    while (i < l->count && l->ln_x[i] < ln_x)
        i++;
    if (i == 0 || i == l->count)
        return value[i ? i - 1 : 0];
    return value[i - 1] + (value[i] - value[i - 1]) * (ln_x - l->ln_x[i - 1]) / (l->ln_x[i] - l->ln_x[i - 1]);
}

fl_chip_guess fl_two_laws_at(const fl_two_laws *l, double sm_mhz) {
    const double x = sm_mhz / l->top_mhz, ln_x = log(x), p = l->sharpness;
    if (fabs(sm_mhz - l->top_mhz) < SAME_MHZ)
        return (fl_chip_guess){l->time_s, l->power_w, 0, 0, FL_CHIP_OWN_LAWS, 0};
    double near = INFINITY;
    for (size_t i = 0; i < l->count; i++)
        near = fmin(near, fabs(ln_x - l->ln_x[i]));
    const double slow = pow(fmax(1 + between(l, l->slows, ln_x) * (pow(x, -p) - 1), TIME_LEAST), 1 / p);
    const double draw = fmin(between(l, l->draws, ln_x), DRAW_MOST);
    const double far = (ln_x < l->ln_x[0] ? BELOW : 1) * FAR_SD * near * (1 / x - 1) / slow;
    const double sd = hypot(NEAR_SD * fmin(1, near / NEAR_LN), far);
    return (fl_chip_guess){.time_s = l->time_s * slow,
                           .power_w = l->power_w * fmax(1 - draw * (1 - height(x, l->rise)), POWER_LEAST),
                           .time_sd_pct = 100 * sd,
                           .power_sd_pct = POWER_SD_PCT * fmin(1, near / NEAR_LN),
                           .basis = FL_CHIP_OWN_LAWS};
}

/* ---- the same as a chip ---- */

static bool same_memory(const fl_chip_row *a, const fl_chip_row *b) { return fabs(a->mem_mhz - b->mem_mhz) < SAME_MHZ; }

fl_model_status fl_two_laws_predict(const fl_chip_row *known, size_t known_count, const fl_chip_row *asked,
                                    size_t asked_count, fl_chip_guess *guess) {
    fl_chip_row *row = malloc((known_count + 1) * sizeof *row);
    fl_two_laws *l = malloc(sizeof *l);
    fl_model_status s = row && l ? FL_MODEL_OK : FL_MODEL_NO_MEMORY, fit = FL_MODEL_NO_FIT;
    bool powers = true; /* are known of all rows */
    size_t n = 0;
    for (size_t i = 0; i < known_count; i++)
        powers &= !isnan(known[i].power_w);
    for (size_t i = 0; s == FL_MODEL_OK && i < asked_count; i++) {
        if (!i || !same_memory(&asked[i], &asked[i - 1])) {
            n = 0;
            for (size_t k = 0; k < known_count; k++)
                if (same_memory(&known[k], &asked[i])) {
                    row[n] = known[k];
                    row[n].power_w = powers ? row[n].power_w : 1;
                    n++;
                }
            fit = n ? fl_two_laws_fit(l, row, n) : FL_MODEL_NO_FIT;
            s = fit == FL_MODEL_INVALID ? fit : s;
            n = merge(row, n);
        }
        guess[i] = (fl_chip_guess){NAN, NAN, NAN, NAN, FL_CHIP_OWN_LAWS, 0};
        if (fit == FL_MODEL_OK)
            guess[i] = fl_two_laws_at(l, asked[i].sm_mhz);
        else if (n && fabs(row->sm_mhz - asked[i].sm_mhz) < SAME_MHZ)
            guess[i] = (fl_chip_guess){row->time_s, row->power_w, 0, 0, FL_CHIP_OWN_LAWS, 0};
        if (!powers)
            guess[i].power_w = guess[i].power_sd_pct = NAN;
    }
    free(row);
    free(l);
    return s;
}

fl_model_status fl_chip_of_rows(const fl_chip_row *row, size_t count, fl_chip *chip) {
    bool two = false;
    fl_chip c = {.sm_min = INFINITY,
                 .mem_min = INFINITY,
                 .sharpness = SHARPNESS,
                 .has_power = 1,
                 .law = FL_CHIP_OWN,
                 .time_error = {.scatter = FL_ROW_NOISE_TIME},
                 .power_error = {.scatter = FL_ROW_NOISE_POWER}};
    for (size_t i = 0; i < count; i++) {
        c.sm_min = fmin(c.sm_min, row[i].sm_mhz);
        c.sm_ref = fmax(c.sm_ref, row[i].sm_mhz);
        c.mem_min = fmin(c.mem_min, row[i].mem_mhz);
        c.mem_ref = fmax(c.mem_ref, row[i].mem_mhz);
        for (size_t k = 0; k < i && !two; k++)
            two = row[k].workload == row[i].workload && same_memory(&row[k], &row[i]) &&
                  fabs(row[k].sm_mhz - row[i].sm_mhz) >= SAME_MHZ;
    }
    *chip = c;
    return two ? FL_MODEL_OK : FL_MODEL_NO_FIT;
}

/* ---- measuring in turn ---- */

static double nearest(const double *ladder, size_t clocks, double mhz) {
    double best = ladder[0];
    for (size_t i = 1; i < clocks; i++)
        best = fabs(ladder[i] - mhz) < fabs(best - mhz) ? ladder[i] : best;
    return best;
}

static bool has(const fl_chip_row *row, size_t count, double mhz) {
    for (size_t i = 0; i < count; i++)
        if (fabs(row[i].sm_mhz - mhz) < SAME_MHZ)
            return true;
    return false;
}

static double lowest(const fl_chip_row *row, size_t count) {
    double least = row[0].sm_mhz;
    for (size_t i = 1; i < count; i++)
        least = fmin(least, row[i].sm_mhz);
    return least;
}

/* The clock of least predicted energy within the bound, from the lowest row up. */
static double choice(const fl_two_laws *l, const double *ladder, size_t clocks, double bound) {
    const double floor_mhz = l->top_mhz * exp(l->ln_x[0]);
    double best = l->top_mhz, least = l->time_s * l->power_w;
    for (size_t i = 0; i < clocks + l->count; i++) { /* a row may lie off the ladder */
        const double mhz = i < clocks ? ladder[i] : l->top_mhz * exp(l->ln_x[i - clocks]);
        if (mhz < floor_mhz - SAME_MHZ || mhz > l->top_mhz)
            continue;
        const fl_chip_guess g = fl_two_laws_at(l, mhz);
        const double energy = g.time_s * g.power_w;
        if (g.time_s <= (1 + bound + FL_DECIDE_TOLERANCE) * l->time_s && energy < least) {
            least = energy;
            best = mhz;
        }
    }
    return best;
}

double fl_two_laws_next(const fl_chip_row *row, size_t count, const double *ladder, size_t clocks, double bound) {
    fl_two_laws l;
    const double top = ladder[clocks - 1];
    if (!has(row, count, top))
        return top;
    if (fl_two_laws_fit(&l, row, count)) {
        const double first = nearest(ladder, clocks, FL_TWO_LAWS_FIRST * top);
        return has(row, count, first) ? NAN : first;
    }
    const double best = choice(&l, ladder, clocks, bound), least = lowest(row, count);
    if (fabs(best - least) >= SAME_MHZ)
        return has(row, count, best) ? NAN : best;
    double next = NAN; /* the lowest row is the best so far: one step down at least */
    for (size_t i = 0; i < clocks && ladder[i] < least - SAME_MHZ; i++)
        if (isnan(next) || fabs(ladder[i] - FL_TWO_LAWS_FIRST * least) < fabs(next - FL_TWO_LAWS_FIRST * least))
            next = ladder[i];
    return next;
}
