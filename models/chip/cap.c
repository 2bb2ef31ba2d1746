#include "models/chip/cap.h"
#include "models/chip/row_curve.h"

#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>

#define LEAST 1e-3    /* no meter repeats better */
#define REPEATS_MIN 5 /* fewer do not tell a scatter */
#define CHANGED 4.0   /* deviations of time and power together */
#define FAR 0.03 /* slower than at the highest limit by this share: catches a limit that sets in slowly, step by step  \
                  */
#define TO_SIGMA 1.4826

/* By how many standard deviations a cell is slower and draws less than another. An unknown power counts as 0. */
static double change(const fl_cap_cell *cell, const fl_cap_cell *than, const fl_cap_scatter *scatter) {
    const double t = fmax(0, log(cell->time_s / than->time_s)) / (M_SQRT2 * scatter->time);
    const double p = fmax(0, log(than->power_w / cell->power_w)) / (M_SQRT2 * scatter->power);
    return hypot(t, isnan(p) ? 0 : p);
}

static int is_close(const fl_cap_cell *c, double share) { return c->power_w >= share * c->limit_w; }

void fl_cap_test(fl_cap_cell *cell, size_t count, const fl_cap_scatter *scatter) {
    for (size_t i = 0; i < count; i++)
        cell[i].verdict = FL_CAP_FREE;
    if (count == 1 && is_close(cell, FL_CAP_CREST_MOST))
        cell->verdict = FL_CAP_UNTOLD;
    for (size_t i = 1; i < count; i++) {
        const fl_cap_cell *above = &cell[i - 1];
        const int same = !(cell[i].limit_w < above->limit_w);
        const int changed = change(&cell[i], above, scatter) > CHANGED || cell[i].time_s > (1 + FAR) * cell[0].time_s;
        if (same)
            cell[i].verdict = above->verdict;
        else if (above->verdict == FL_CAP_BINDS) /* what binds at a limit binds below it */
            cell[i].verdict = FL_CAP_BINDS;
        else if (changed && is_close(&cell[i], FL_CAP_CREST_LEAST))
            cell[i].verdict = FL_CAP_BINDS;
        if (i == 1 && cell[1].verdict == FL_CAP_BINDS && is_close(&cell[0], FL_CAP_CREST_LEAST))
            cell[0].verdict = FL_CAP_BINDS; /* nothing says that the highest limit is high enough */
    }
}

size_t fl_cap_repeats(const fl_cap_cell *cell, size_t count, double *time, double *power) {
    size_t n = 0;
    for (size_t i = 1; i < count; i++)
        if (cell[i].power_w < FL_CAP_CREST_LEAST * cell[i].limit_w && isfinite(cell[i - 1].limit_w)) {
            time[n] = fabs(log(cell[i].time_s / cell[i - 1].time_s));
            power[n++] = fabs(log(cell[i].power_w / cell[i - 1].power_w));
        }
    return n;
}

fl_cap_scatter fl_cap_scatter_of(double *time, double *power, size_t count) {
    if (count < REPEATS_MIN)
        return (fl_cap_scatter){FL_ROW_NOISE_TIME, FL_ROW_NOISE_POWER};
    return (fl_cap_scatter){fmax(LEAST, TO_SIGMA * gsl_stats_median(time, 1, count) / M_SQRT2),
                            fmax(LEAST, TO_SIGMA * gsl_stats_median(power, 1, count) / M_SQRT2)};
}

fl_model_status fl_cap_clock(const double *mhz, const double *power_w, size_t count, double watts, double *at) {
    for (size_t i = 0; i < count; i++)
        if (!(mhz[i] > 0 && power_w[i] > 0 && isfinite(power_w[i])))
            return FL_MODEL_INVALID;
    if (count == 0 || !(watts > 0))
        return FL_MODEL_INVALID;
    *at = mhz[count - 1];
    for (size_t i = count; i-- > 0 && power_w[i] > watts;) {
        *at = mhz[i];
        if (i == 0)
            return FL_MODEL_RANGE;
        if (power_w[i - 1] <= watts)
            *at = mhz[i - 1] * pow(mhz[i] / mhz[i - 1], log(watts / power_w[i - 1]) / log(power_w[i] / power_w[i - 1]));
    }
    return FL_MODEL_OK;
}

#define HALVINGS 60

/* The alpha with which the chip draws `watts` at its highest clock. */
static double alpha_of(const fl_chip *chip, double beta, double mem_mhz, double watts) {
    const fl_chip_load none = {.beta = beta}, full = {.alpha = 1, .beta = beta};
    const double rest = fl_chip_power(chip, &none, chip->sm_ref, mem_mhz, 1);
    return (watts - rest) / (fl_chip_power(chip, &full, chip->sm_ref, mem_mhz, 1) - rest);
}

fl_model_status fl_cap_latent(const fl_chip *chip, double mem_mhz, double top_w, double watts, double *mhz) {
    fl_chip c = *chip;
    fl_chip_load load = {.beta = fmax(0, chip->load_mean[1])};
    if (!chip->has_power || !(top_w > 0 && watts > 0 && isfinite(top_w + watts)))
        return FL_MODEL_INVALID;
    c.stall = c.stall_memory = 1; /* the times do not matter then */
    load.alpha = alpha_of(&c, load.beta, mem_mhz, top_w);
    if (!(load.alpha > 0)) /* the program draws less than the mean memory load alone would */
        load.alpha = alpha_of(&c, load.beta = 0, mem_mhz, top_w);
    *mhz = NAN;
    if (!(load.alpha > 0))
        return FL_MODEL_RANGE;
    double low = FL_CAP_LATENT_LOW * c.sm_ref, high = FL_CAP_LATENT_HIGH * c.sm_ref;
    if (!(fl_chip_power(&c, &load, low, mem_mhz, 1) <= watts && fl_chip_power(&c, &load, high, mem_mhz, 1) >= watts))
        return FL_MODEL_RANGE;
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = 0.5 * (low + high);
        if (fl_chip_power(&c, &load, middle, mem_mhz, 1) < watts)
            low = middle;
        else
            high = middle;
    }
    *mhz = high;
    return FL_MODEL_OK;
}
