/* A chip's law at a setting, power limits that bind, and how far a choice may be trusted. */
#include "models/chip/inside.h"

#include "models/chip/chip.h"
#include "models/laws/laws.h"
#include "models/math/math.h"

#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- the law at a setting ---- */

static double line_at(const double *x, const double *y, uint32_t n, double at) {
    if (n == 0 || at <= x[0])
        return n ? y[0] : 0;
    for (uint32_t i = 1; i < n; i++)
        if (at <= x[i])
            return y[i - 1] + (y[i] - y[i - 1]) * ((at - x[i - 1]) / (x[i] - x[i - 1]));
    return y[n - 1];
}

double fl_chip_volt(const fl_chip *chip, double sm_mhz, double mem_mhz) {
    return fmax(line_at(chip->knot_mhz, chip->volt, chip->knots, sm_mhz),
                line_at(chip->mem_mhz, chip->volt_floor, chip->mems, mem_mhz));
}

double fl_chip_b0(const fl_chip *chip, double mem_mhz) {
    return line_at(chip->mem_mhz, chip->b0_w, chip->mems, mem_mhz);
}

double fl_chip_memory_ratio(const fl_chip *chip, double sm_mhz, double mem_mhz) {
    const double dram = chip->mem_ref / mem_mhz;
    if (!(chip->link_mhz > 0))
        return dram;
    const double q = chip->link_sharp;
    return fl_time_norm(dram, pow(chip->link_mhz / sm_mhz, chip->link_slope), q) /
           fl_time_norm(1, pow(chip->link_mhz / chip->sm_ref, chip->link_slope), q);
}

double fl_chip_time(const fl_chip *chip, const fl_chip_load *load, double sm_mhz, double mem_mhz) {
    return fl_time_norm(load->tc * chip->sm_ref / sm_mhz, load->tm * fl_chip_memory_ratio(chip, sm_mhz, mem_mhz),
                        chip->sharpness) +
           load->tl;
}

double fl_chip_power(const fl_chip *chip, const fl_chip_load *load, double sm_mhz, double mem_mhz, double time_s) {
    const double v = fl_chip_volt(chip, sm_mhz, mem_mhz), ghz = sm_mhz / 1000, m = mem_mhz / chip->mem_ref;
    const double rate = fl_chip_time(chip, load, chip->sm_ref, chip->mem_ref) / time_s;
    const double core = chip->stall + (1 - chip->stall) * rate * chip->sm_ref / sm_mhz;
    const double memory = chip->stall_memory + (1 - chip->stall_memory) * rate / m;
    return load->alpha * chip->a_w * v * v * ghz * core + load->beta * chip->b_w * m * memory +
           fl_chip_b0(chip, mem_mhz) + chip->c_w * v + chip->a0_w * v * v * ghz;
}

double fl_voltage_floor_mhz(const double *sm_mhz, const double *volt, size_t clocks, double tolerance) {
    double mhz = NAN;
    for (size_t i = 0; i < clocks && volt[i] <= 1 + tolerance; i++)
        mhz = sm_mhz[i];
    return mhz;
}

/* ---- power limits ---- */

#define LEAST 1e-3    /* no meter repeats better */
#define REPEATS_MIN 5 /* fewer do not tell a scatter */
#define CHANGED 4.0   /* deviations of time and power together */
#define FAR                                                                                                            \
    0.03 /* slower than at the highest limit by this share: catches a limit that sets in slowly, step by step          \
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

/* ---- decisions ---- */

static double share(double pct) { return pct > 0 ? pct / 100 : 0; } /* NAN: the value was measured */

/* Standard deviation of the predicted logarithm of the slowdown. */
static double spread(const fl_chip_guess *at, const fl_chip_guess *top) {
    return at == top ? 0 : hypot(share(at->time_sd_pct), share(top->time_sd_pct));
}

/* How many stated deviations below the bound a prediction must lie, so that of choices among the clocks of a board at
 * most 1, 2, 5 and 10 % break the bound: means over boards, under bounds of 5 and 10 %. Sources: OWN_LAWS, 196 programs
 * of nine boards, rows at 60 to 75 % of the top clock and at the top. TWO_ROWS, seven boards of these, the device
 * fitted to half of a board's programs. BESIDE, six boards, the same, rows at 70 % of the top clock and at the top, and
 * with rows at 55 and 85 % too, taken together: under a bound of 5 % and at a risk of 5 % the two rows alone need 0.35,
 * the four 0.05. tests/accuracy.sh --risk prints such a table of any boards. */
enum { RISKS = 4, BOUNDS = 2 };
static const double normal[RISKS] = {2.326, 2.054, 1.645, 1.282}; /* quantiles of the same risks */
static const double needed[FL_CHIP_BASES][BOUNDS][RISKS] = {
    [FL_CHIP_OWN_LAWS] = {{1.2, 0.7, 0.2, 0}, {1.9, 0.8, 0, 0}},
    [FL_CHIP_BESIDE] = {{0.6, 0.45, 0.2, 0}, {0, 0, 0, 0}},
    [FL_CHIP_TWO_ROWS] = {{1.9, 1.65, 0.35, 0.1}, {2.4, 1.7, 0.5, 0}},
};

/* How many deviations of a normal k stated ones are worth at a row of the table: linear between its entries. Of entries
 * that are alike the one of the least risk counts. */
static double worth(double k, const double need[RISKS]) {
    size_t i = RISKS - 1;
    while (i > 0 && need[i - 1] <= fmax(k, need[RISKS - 1]))
        i--;
    if (k < need[i])
        return normal[i] + k - need[i];            /* nearer to the bound than any choice of the table */
    const size_t a = i > 0 ? i - 1 : 0, b = a + 1; /* beyond the first entry the line goes on */
    const double slope = need[a] > need[b] ? (normal[a] - normal[b]) / (need[a] - need[b]) : 1;
    return normal[i] + slope * (k - need[i]);
}

double fl_decide_chance(const fl_chip_guess *at, const fl_chip_guess *top, double bound) {
    const double room = log1p(bound) - log(at->time_s / top->time_s), sd = spread(at, top);
    if (!(sd > 0))
        return room < -FL_DECIDE_TOLERANCE;
    const double x = fmin(1, fmax(0, log2(bound / 0.05))), noise = hypot(at->noise_pct, top->noise_pct) / 100;
    const fl_chip_basis basis = at->basis ? at->basis : top->basis;
    double z = room / sd;
    if (basis) { /* the table is of predictions; noise is a normal beside it */
        const double k = room / sqrt(fmax(sd * sd - noise * noise, LEAST * LEAST));
        z = (1 - x) * worth(k, needed[basis][0]) + x * worth(k, needed[basis][1]);
        if (z > 0 && noise > 0)
            z = room > 0 ? room / hypot(room / z, noise) : room / noise;
    }
    return 0.5 * erfc(z / sqrt(2));
}

int fl_decide_allows(const fl_chip_guess *at, const fl_chip_guess *top, double bound, double risk) {
    return at->time_s <= (1 + bound + FL_DECIDE_TOLERANCE) * top->time_s && !isnan(at->power_w) &&
           fl_decide_chance(at, top, bound) <= risk;
}

double fl_decide_cost_sd(const fl_chip_guess *at, double delay) {
    return hypot(share(at->power_sd_pct), delay * share(at->time_sd_pct));
}

static double ln_cost(const fl_chip_guess *at, double delay) { return log(at->power_w) + delay * log(at->time_s); }

/* E[max(0, X)] of a normal X. */
static double mean_above(double mean, double sd) {
    if (!(sd > 0))
        return fmax(0, mean);
    const double z = mean / sd;
    return mean * 0.5 * erfc(-z / sqrt(2)) + sd * exp(-0.5 * z * z) / sqrt(2 * M_PI);
}

double fl_decide_regret(const fl_chip_guess *guess, size_t count, size_t top, size_t chosen, double bound,
                        double delay) {
    const fl_chip_guess *c = &guess[chosen];
    const double mine = ln_cost(c, delay), sd = fl_decide_cost_sd(c, delay);
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        if (i == chosen || isnan(guess[i].power_w) || isnan(guess[i].time_s))
            continue;
        const double better =
            mean_above(mine - ln_cost(&guess[i], delay), hypot(sd, fl_decide_cost_sd(&guess[i], delay)));
        most = fmax(most, better * (1 - fl_decide_chance(&guess[i], &guess[top], bound)));
    }
    return most;
}
