/* One program under power limits, without its clocks: mean power by limit, and time by power. */
#include "models/chip/chip.h"
#include "models/chip/inside.h"

#include <math.h>
#include <stdbool.h>

/* Constants from sweeps of limits on ten boards, chosen after those had been seen. */
#define SAME 0.02        /* time and power that differ by less from those under the limit above ... */
#define LOWER 0.97       /* ... which is higher than this ... */
#define DREW 0.9         /* ... and under which the program drew more than this share: the board is at its floor */
#define BINDS 0.99       /* a limit below this share of the free power holds the program down */
#define DEPTH 1.5        /* exponent with which the crest falls below 1 */
#define SHARP 4          /* of the law of time, as in two_laws.c */
#define DRAWS 0.8        /* prior of d, the share of the power that follows the clock */
#define DRAWS_SD 0.15    /* its deviation */
#define FASTER_SD 0.02   /* deviation of ln time by which a program may slow more than its clock */
#define TIME_SD 0.03     /* deviation of ln time of a program from the law of one b */
#define BRACKET 0.1      /* least value of the bracket of time while d is found */
#define LEAST 0.5        /* the same of a prediction */
#define TIME_SD_PCT 3    /* of predictions: their errors were 2.2 and 1.1 % in the mean */
#define POWER_SD_PCT 1.5 /* the same of power */
enum { DRAW_STEPS = FL_CAP_LAW_DRAWS, HALVINGS = 40 };
#define DRAW_FROM 0.3
#define DRAW_STEP 0.02
#define CLOCK_LEAST 0.1 /* of the top clock */
#define CLOCK_BELOW 0.999

size_t fl_cap_held(const fl_cap_cell *cell, size_t count) {
    for (size_t i = 1; i < count; i++) {
        const fl_cap_cell *above = &cell[i - 1];
        const bool frozen = cell[i].limit_w < BINDS * cell[0].power_w && cell[i].limit_w < LOWER * above->limit_w &&
                            above->power_w > DREW * above->limit_w &&
                            fabs(log(cell[i].power_w / above->power_w)) < SAME &&
                            fabs(log(cell[i].time_s / above->time_s)) < SAME;
        if (cell[i].power_w > FL_CAP_HELD_MOST * cell[i].limit_w || frozen)
            return i;
    }
    return count;
}

static double square(double x) { return x * x; }

static double draw_of(size_t k) { return DRAW_FROM + DRAW_STEP * (double)k; }

/* The clock, as a share of the top one, at which a program of d draws a share of its power at the top. */
static double clock_at(double power, double d) {
    double low = CLOCK_LEAST, high = 1;
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = 0.5 * (low + high);
        if (1 - d * (1 - fl_two_laws_height(middle)) < power)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* b of a row: (T/T0)^4 = 1 + b (x^-4 - 1). */
static double slows_at(const fl_cap_law *l, size_t i, double d) {
    const double x = fmin(clock_at(l->power[i], d), CLOCK_BELOW);
    return (pow(l->time[i], SHARP) - 1) / (pow(x, -SHARP) - 1);
}

/* How unlikely d is: by its prior, by rows that would slow more than their clock, and by how far the rows are from one
 * b. */
static double unlikely(const fl_cap_law *l, double d) {
    double off = square((d - DRAWS) / DRAWS_SD) / 2, mean = 0;
    for (size_t i = 0; i < l->count; i++) {
        const double x = fmin(clock_at(l->power[i], d), CLOCK_BELOW);
        off += square(fmax(0, log(fmax(l->time[i], 1) * x)) / FASTER_SD) / 2;
        mean += log(fmax(slows_at(l, i, d), 1e-3)) / (double)l->count;
    }
    for (size_t i = 0; l->count > 1 && i < l->count; i++) {
        const double x = fmin(clock_at(l->power[i], d), CLOCK_BELOW);
        const double slow = fmax(1 + exp(mean) * (pow(x, -SHARP) - 1), BRACKET);
        off += square((log(slow) / SHARP - log(l->time[i])) / TIME_SD) / 2;
    }
    return off;
}

fl_model_status fl_cap_law_fit(fl_cap_law *l, const fl_cap_cell *cell, size_t count) {
    double least = INFINITY, sum = 0;
    *l = (fl_cap_law){0};
    for (size_t i = 0; i < count; i++)
        if (!(cell[i].limit_w > 0 && cell[i].time_s > 0 && cell[i].power_w > 0 &&
              isfinite(cell[i].time_s * cell[i].power_w)) ||
            (i && !(cell[i].limit_w <= cell[i - 1].limit_w)))
            return FL_MODEL_INVALID;
    if (!count)
        return FL_MODEL_NO_FIT;
    l->time_s = cell[0].time_s;
    l->power_w = cell[0].power_w;
    for (size_t i = count; i-- > 1 && l->count < FL_CAP_LAW_ROWS;) { /* ascending */
        if (!(cell[i].limit_w < BINDS * l->power_w))
            continue;
        l->limit[l->count] = cell[i].limit_w / l->power_w;
        l->power[l->count] = fmin(cell[i].power_w / l->power_w, 1);
        l->time[l->count++] = cell[i].time_s / l->time_s;
    }
    if (!l->count)
        return FL_MODEL_NO_FIT;
    for (size_t k = 0; k < DRAW_STEPS; k++)
        least = fmin(least, l->weight[k] = unlikely(l, draw_of(k)));
    for (size_t k = 0; k < DRAW_STEPS; k++)
        sum += l->weight[k] = exp(least - l->weight[k]);
    for (size_t k = 0; k < DRAW_STEPS; k++)
        l->weight[k] /= sum;
    return FL_MODEL_OK;
}

/* Mean power over limit: linear in ln limit between rows. Beyond them it follows the nearest row's depth. */
static double crest_at(const fl_cap_law *l, double limit) {
    size_t i = 0;
    while (i < l->count && l->limit[i] < limit)
        i++;
    const double high = i < l->count ? l->power[i] / l->limit[i] : 0, low = i ? l->power[i - 1] / l->limit[i - 1] : 0;
    if (i && i < l->count)
        return low + (high - low) * log(limit / l->limit[i - 1]) / log(l->limit[i] / l->limit[i - 1]);
    const size_t near = i ? i - 1 : 0;
    const double run = i ? low : high;
    return run < 1 ? 1 - (1 - run) * pow(limit / l->limit[near], DEPTH) : run;
}

/* Of two rows or more b is linear in power between them, and constant beyond. */
static double slows(const fl_cap_law *l, double power, double d) {
    size_t i = 0;
    while (i < l->count && l->power[i] < power)
        i++;
    if (i == 0 || i == l->count)
        return slows_at(l, i ? i - 1 : 0, d);
    const double span = l->power[i] - l->power[i - 1], w = span > 0 ? (power - l->power[i - 1]) / span : 1;
    return (1 - w) * slows_at(l, i - 1, d) + w * slows_at(l, i, d);
}

fl_chip_guess fl_cap_law_at(const fl_cap_law *l, double limit_w) {
    const double limit = limit_w / l->power_w, power = fmin(1, fmax(crest_at(l, limit), 0.1) * limit);
    double ln_time = 0;
    for (size_t k = 0; power < 1 && k < DRAW_STEPS; k++) {
        const double d = draw_of(k), x = clock_at(power, d);
        ln_time += l->weight[k] * log(fmax(1 + slows(l, power, d) * (pow(x, -SHARP) - 1), LEAST)) / SHARP;
    }
    return (fl_chip_guess){.time_s = l->time_s * exp(ln_time),
                           .power_w = l->power_w * power,
                           .time_sd_pct = power < 1 ? TIME_SD_PCT : 100 * FL_ROW_NOISE_TIME,
                           .power_sd_pct = power < 1 ? POWER_SD_PCT : 100 * FL_ROW_NOISE_POWER};
}

double fl_cap_law_clock(const fl_cap_law *l, double watts) {
    double ln_x = 0;
    for (size_t k = 0; k < DRAW_STEPS; k++)
        ln_x += l->weight[k] * log(clock_at(fmin(1, watts / l->power_w), draw_of(k)));
    return exp(ln_x);
}
