/* The idle clock tree, from sweeps: how much power every workload gains with V^2 f. Kernels never do less work at a
 * higher SM clock, so each slope in V^2 f is A0 plus what the kernel's own activity adds. The least slope of all
 * therefore bounds A0 from above; only a GPU that idles with a context open (models/fit/idle.h) bounds it from below.
 * The slopes are taken at one memory clock, so that neither B0(m) nor its voltage enters, and at the floor of V, where
 * the chip has one, so that C does not. */
#include "models/chip/parts.h"

#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>

#define POINTS_MIN 4   /* SM clocks of a slope: two for the line, two to show its scatter */
#define POINTS_MAX 96  /* more are thinned, since all pairs are compared */
#define FLAT 1.01      /* V at its floor */
#define RANGE_MIN 1.15 /* highest over lowest clock */
#define TO_SIGMA 1.4826
#define LEAST 1e-3 /* relative scatter: no meter repeats better */

typedef struct line {
    double slope, scatter; /* W per V^2 GHz; relative standard deviation of a reading */
    double spread, power;  /* root of the sum of squares of V^2 f about its mean; mean power */
} line;

/* Theil-Sen: the median of the slopes of all pairs, which single outliers do not move. room: n (n - 1) / 2 or n. */
static line fit_line(const double *x, const double *watts, size_t n, double *room) {
    line l = {0};
    size_t pairs = 0;
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        mean += x[i] / (double)n;
        l.power += watts[i] / (double)n;
        for (size_t k = 0; k < i; k++)
            if (fabs(x[i] - x[k]) > 1e-6)
                room[pairs++] = (watts[i] - watts[k]) / (x[i] - x[k]);
    }
    l.slope = gsl_stats_median(room, 1, pairs);
    for (size_t i = 0; i < n; i++) {
        room[i] = watts[i] - l.slope * x[i];
        squares += (x[i] - mean) * (x[i] - mean);
    }
    const double level = gsl_stats_median(room, 1, n);
    for (size_t i = 0; i < n; i++)
        room[i] = fabs(watts[i] - level - l.slope * x[i]);
    l.scatter = TO_SIGMA * gsl_stats_median(room, 1, n) / l.power * sqrt((double)n / (double)(n - 2));
    l.spread = sqrt(squares);
    return l;
}

/* Collects V^2 f and power of a span's rows at the highest memory clock. Returns how many. */
static size_t take_points(const fl_chip *c, const fl_chip_row *row, fl_chip_span s, double flat_mhz, double *x,
                          double *watts) {
    const size_t stride = s.count / POINTS_MAX + 1;
    double low = INFINITY, high = 0;
    size_t n = 0;
    for (size_t i = s.first; i < s.first + s.count && n < POINTS_MAX; i += stride) {
        const fl_chip_row *r = &row[i];
        if (r->mem_mhz < 0.99 * c->mem_ref || r->sm_mhz > flat_mhz || isnan(r->power_w))
            continue;
        const double v = fl_chip_volt(c, r->sm_mhz, r->mem_mhz);
        x[n] = v * v * r->sm_mhz / 1000;
        watts[n++] = r->power_w;
        low = fmin(low, r->sm_mhz);
        high = fmax(high, r->sm_mhz);
    }
    return n >= POINTS_MIN && high > RANGE_MIN * low ? n : 0;
}

/* The highest SM clock at which V has not risen, or the highest of all where the floor is too short for a line. */
static double flat_range(const fl_chip *c) {
    double flat = 0;
    size_t points = 0;
    for (uint32_t i = 0; i < c->knots; i++)
        if (fl_chip_volt(c, c->knot_mhz[i], c->mem_ref) <= FLAT * fl_chip_volt(c, c->sm_min, c->mem_ref)) {
            flat = c->knot_mhz[i];
            points++;
        }
    return points >= POINTS_MIN && flat > RANGE_MIN * c->sm_min ? flat + 0.5 : INFINITY;
}

fl_model_status fl_chip_least_slope(const fl_chip_row *row, const fl_chip_span *span, size_t spans, fl_chip *chip) {
    const double flat = flat_range(chip);
    double *room = malloc((POINTS_MAX * POINTS_MAX + 2 * POINTS_MAX + spans) * sizeof *room);
    line *of = calloc(spans + 1, sizeof *of);
    size_t lines = 0;
    chip->slope_w = chip->slope_sd = NAN;
    if (!room || !of) {
        free(room);
        free(of);
        return FL_MODEL_NO_MEMORY;
    }
    double *x = room + POINTS_MAX * POINTS_MAX, *watts = x + POINTS_MAX, *scatter = watts + POINTS_MAX;
    for (size_t k = 0; k < spans; k++) {
        const size_t n = take_points(chip, row, span[k], flat, x, watts);
        if (n > 0) {
            of[lines] = fit_line(x, watts, n, room);
            scatter[lines] = of[lines].scatter;
            lines++;
        }
    }
    const double common = lines ? gsl_stats_median(scatter, 1, lines) : 0; /* a few points may lie on a line by luck */
    const uint32_t top = chip->knots - 1;
    const double v = fl_chip_volt(chip, chip->sm_ref, chip->mem_ref), ghz = chip->sm_ref / 1000;
    const double rise = v * v * ghz - chip->sm_min / 1000;
    double least = INFINITY;
    for (size_t k = 0; k < lines; k++) {
        const double own = fmax(fmax(common, LEAST), of[k].scatter) * of[k].power / of[k].spread;
        const double volt = isfinite(flat) ? 0 : of[k].slope * 2 * v * ghz * chip->volt_sd[top] / rise;
        const double sd = sqrt(own * own + volt * volt);
        if (of[k].slope + 2 * sd < least) { /* choose a slope that is certainly low, not one that scatter made low */
            least = of[k].slope + 2 * sd;
            chip->slope_w = fmax(0, of[k].slope);
            chip->slope_sd = sd;
        }
    }
    free(room);
    free(of);
    return FL_MODEL_OK;
}
