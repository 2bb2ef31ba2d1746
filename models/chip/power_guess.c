/* A workload's powers at settings that were not measured. Bayesian linear regression finds its alpha and beta, with the
 * prior that the chip's other workloads give. Two common parts of its known errors carry over: their smooth part, and a
 * share of the power that by the law all workloads have. That base, B0 + C V + A0 V^2 f, is separated from alpha and
 * beta only as far as the chip's workloads differ. Two busy workloads put it at three quarters of their power, and a
 * third that draws less than that then needs alpha and beta below 0 or a smaller base. */
#include "models/chip/inside.h"

#include "models/chip/chip.h"
#include "models/math/math.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SAME_MHZ 0.5

/* ---- powers ---- */

void fl_chip_columns(const fl_chip *c, double sm_mhz, double mem_mhz, double rate, double *core, double *memory,
                     double *base) {
    const double v = fl_chip_volt(c, sm_mhz, mem_mhz), ghz = sm_mhz / 1000, m = mem_mhz / c->mem_ref;
    *core = v * v * ghz * (c->stall + (1 - c->stall) * rate * c->sm_ref / sm_mhz);
    *memory = m * (c->stall_memory + (1 - c->stall_memory) * rate / m);
    *base = fl_chip_b0(c, mem_mhz) + c->c_w * v + c->a0_w * v * v * ghz;
}

void fl_chip_solve_two(double aa, double ab, double bb, double az, double bz, double *x, double *y) {
    const double det = aa * bb - ab * ab;
    *x = *y = 0;
    if (det > 1e-12 * aa * bb) {
        *x = (az * bb - bz * ab) / det;
        *y = (bz * aa - az * ab) / det;
        if (*x >= 0 && *y >= 0)
            return;
    }
    const double only_x = aa > 0 ? fmax(0, az / aa) : 0, only_y = bb > 0 ? fmax(0, bz / bb) : 0;
    const int first = only_x * az >= only_y * bz;
    *x = first ? only_x : 0;
    *y = first ? 0 : only_y;
}

void fl_chip_load_prior(const fl_chip *c, double mean[2], double cov[3]) {
    const double n = fmax(1, c->shares), w = 1 / n, trust = n / (n + 4);
    mean[0] = mean[1] = cov[0] = cov[1] = cov[2] = 0;
    for (uint32_t k = 0; k < c->shares; k++) {
        mean[0] += w * c->share[k].alpha;
        mean[1] += w * c->share[k].beta;
    }
    for (uint32_t k = 0; k < c->shares; k++) {
        const double a = c->share[k].alpha - mean[0], b = c->share[k].beta - mean[1];
        cov[0] += w * a * a;
        cov[1] += w * a * b;
        cov[2] += w * b * b;
    }
    /* Few workloads say little about others: their covariance is widened and the correlation weakened. */
    cov[0] += (1 - trust) * 0.25 + 1e-4;
    cov[1] *= trust;
    cov[2] += (1 - trust) * 0.25 + 1e-4;
}

/* Deviation of a workload's base, as a share of the chip's. A wide prior costs little, since the known rows decide: on
 * measured chips the errors are nearly the same from 0.05 to 0.15. */
#define BASE_SD 0.1
#define LAW_LEAST 0.1 /* share of the law's power: no prediction is lower, however far outside */

/* The known rows as shares of the measured power, made independent (L^-1) by the covariance of their errors. */
typedef struct regression {
    const fl_chip *chip;
    const fl_chip_row *row;
    size_t n;
    double *core, *memory, *base, *left; /* left: the part that alpha and beta have to explain */
    double *lower, *gain;
    double time_ref;
    double mean[2], cov[3];    /* prior of alpha and beta */
    double aa, ab, bb, az, bz; /* normal equations of alpha and beta, including the prior */
} regression;

static fl_model_status whiten(regression *q) {
    const fl_chip *chip = q->chip;
    const fl_chip_error *e = &chip->power_error;
    for (size_t i = 0; i < q->n; i++) {
        const fl_chip_row *row = &q->row[i];
        fl_chip_columns(chip, row->sm_mhz, row->mem_mhz, q->time_ref / row->time_s, &q->core[i], &q->memory[i],
                        &q->base[i]);
        q->core[i] *= chip->a_w / row->power_w;
        q->memory[i] *= chip->b_w / row->power_w;
        q->base[i] /= row->power_w;
        q->left[i] = 1 - q->base[i];
        for (size_t j = 0; j <= i; j++)
            q->lower[i * q->n + j] =
                fl_chip_covariance(e, row, &q->row[j]) + BASE_SD * BASE_SD * q->base[i] * q->base[j];
        q->lower[i * q->n + i] += e->scatter * e->scatter + 1e-10;
    }
    if (!fl_chip_cholesky(q->lower, q->n))
        return FL_MODEL_NO_FIT;
    double *const column[] = {q->core, q->memory, q->base, q->left};
    for (size_t k = 0; k < sizeof column / sizeof *column; k++)
        fl_chip_lower_solve(q->lower, q->n, column[k]);
    return FL_MODEL_OK;
}

static void add_up(regression *q) {
    const double *mean = q->mean, *v = q->cov, det = v[0] * v[2] - v[1] * v[1];
    q->aa = v[2] / det;
    q->ab = -v[1] / det;
    q->bb = v[0] / det;
    q->az = q->aa * mean[0] + q->ab * mean[1];
    q->bz = q->ab * mean[0] + q->bb * mean[1];
    for (size_t i = 0; i < q->n; i++) {
        q->aa += q->core[i] * q->core[i];
        q->ab += q->core[i] * q->memory[i];
        q->bb += q->memory[i] * q->memory[i];
        q->az += q->core[i] * q->left[i];
        q->bz += q->memory[i] * q->left[i];
    }
}

/* Fits alpha and beta. off: how far the law is off for similar workloads, whitened; it is subtracted from the known
 * powers. */
static void take_off(regression *q, const double *off, fl_chip_load *load) {
    for (size_t i = 0; i < q->n; i++) {
        q->left[i] -= off[i];
        q->az -= q->core[i] * off[i];
        q->bz -= q->memory[i] * off[i];
    }
    fl_chip_solve_two(q->aa, q->ab, q->bb, q->az, q->bz, &load->alpha, &load->beta);
    for (size_t i = 0; i < q->n; i++)
        q->left[i] -= load->alpha * q->core[i] + load->beta * q->memory[i];
}

/* W per ln time: the part of the dynamic power that follows the work done per cycle. */
static double time_slope(const regression *q, const fl_chip_load *load, const fl_chip_row *asked, double time_s) {
    const fl_chip *c = q->chip;
    double core = 0, memory = 0, core_still = 0, memory_still = 0, base = 0;
    fl_chip_columns(c, asked->sm_mhz, asked->mem_mhz, q->time_ref / time_s, &core, &memory, &base);
    fl_chip_columns(c, asked->sm_mhz, asked->mem_mhz, 0, &core_still, &memory_still, &base);
    return -load->alpha * c->a_w * (core - core_still) - load->beta * c->b_w * (memory - memory_still);
}

/* base_off: the error of the workload's base, as a share. off: how far the law is off for similar workloads at this
 * row. */
static void guess_one(const regression *q, const fl_chip_load *load, double base_off, double off,
                      const fl_chip_row *asked, fl_chip_guess *guess, double *slope) {
    const fl_chip_error *e = &q->chip->power_error;
    double core = 0, memory = 0, base = 0, shift = off;
    fl_chip_columns(q->chip, asked->sm_mhz, asked->mem_mhz, q->time_ref / guess->time_s, &core, &memory, &base);
    for (size_t i = 0; i < q->n; i++)
        q->gain[i] = fl_chip_covariance(e, asked, &q->row[i]);
    fl_chip_lower_solve(q->lower, q->n, q->gain);
    for (size_t i = 0; i < q->n; i++)
        shift += q->gain[i] * q->left[i];
    const double law = base + load->alpha * q->chip->a_w * core + load->beta * q->chip->b_w * memory;
    /* The base's share may fall below 0 where it is small, because alpha and beta were found together with it. */
    const double watts = fmax(LAW_LEAST * law, law + base_off * base);
    const double steep = time_slope(q, load, asked, guess->time_s) / watts;
    core *= q->chip->a_w / watts;
    memory *= q->chip->b_w / watts;
    base /= watts;
    double variance = e->scatter * e->scatter + e->smooth * e->smooth + BASE_SD * BASE_SD * base * base;
    for (size_t i = 0; i < q->n;
         i++) { /* the uncertainty of alpha and beta counts only as far as the known rows leave it */
        const double gain = q->gain[i] + BASE_SD * BASE_SD * base * q->base[i];
        variance -= gain * gain;
        core -= gain * q->core[i];
        memory -= gain * q->memory[i];
    }
    variance +=
        (core * core * q->bb - 2 * core * memory * q->ab + memory * memory * q->aa) / (q->aa * q->bb - q->ab * q->ab);
    guess->power_w = watts / (1 - fmax(-0.5, fmin(0.5, shift)));
    guess->power_sd_pct = hypot(fl_chip_sd_pct(e, q->row, q->n, asked, variance), steep * guess->time_sd_pct);
    if (slope)
        *slope = steep;
}

fl_model_status fl_chip_predict_power(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                      const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess,
                                      fl_chip_load *load, double *slope) {
    const size_t both = known_count + asked_count;
    double *memory = calloc(known_count * (known_count + 5) + both * ((size_t)chip->shares + 1) + 8, sizeof *memory);
    fl_chip_row *power_known = calloc(known_count + 1, sizeof *power_known);
    size_t n = 0;
    if (!memory || !power_known) {
        free(memory);
        free(power_known);
        return FL_MODEL_NO_MEMORY;
    }
    for (size_t i = 0; i < known_count; i++)
        if (!isnan(known[i].power_w))
            power_known[n++] = known[i];
    double *const lower = memory + 5 * n, *const off = lower + n * n, *const offs = off + both;
    regression q = {.chip = chip,
                    .row = power_known,
                    .n = n,
                    .core = memory,
                    .memory = memory + n,
                    .base = memory + 2 * n,
                    .left = memory + 3 * n,
                    .gain = memory + 4 * n,
                    .lower = lower,
                    .time_ref = fl_chip_time(chip, load, chip->sm_ref, chip->mem_ref)};
    memcpy(q.mean, chip->load_mean, sizeof q.mean);
    memcpy(q.cov, chip->load_cov, sizeof q.cov);
    const fl_model_status s = whiten(&q);
    if (s == FL_MODEL_OK) {
        add_up(&q);
        fl_chip_solve_two(q.aa, q.ab, q.bb, q.az, q.bz, &load->alpha, &load->beta);
        const double t = load->tc + load->tm + load->tl;
        const fl_chip_share as = {.memory = load->tm / (load->tc + load->tm + 1e-30),
                                  .rest = load->tl / t,
                                  .alpha = load->alpha,
                                  .beta = load->beta};
        fl_chip_offs_make(chip, 1, power_known, n, offs);
        fl_chip_offs_make(chip, 1, asked, asked_count, offs + n * chip->shares);
        fl_chip_offs_at(chip, 1, offs, n + asked_count, &as, off);
        fl_chip_lower_solve(lower, n, off);
        take_off(&q, off, load);
        double base_off = 0;
        for (size_t i = 0; i < n; i++)
            base_off += BASE_SD * BASE_SD * q.base[i] * q.left[i];
        for (size_t j = 0; j < asked_count; j++)
            guess_one(&q, load, base_off, off[n + j], &asked[j], &guess[j], slope ? &slope[j] : NULL);
    }
    free(memory);
    free(power_known);
    return s;
}

/* ---- the whole prediction ---- */

/* Between two neighbouring known clocks a workload's own laws hold if the lower is at least this share of the higher.
 * It lies below the 70 % on which the risks of FL_CHIP_BESIDE rest (chip.c). It was 0.6 first.
 * It was raised after a V100 with rows at 63 % (757 of 1207 MHz) and 64 % (502 of 802 MHz) had shown larger errors than
 * by the chip, so no board tests it. tests/models/test_two_laws.c has a law on which 0.6 fails. */
#define NEAR 0.66

/* Whether known clocks at the row's memory clock stand on both sides of it and near each other. */
static bool is_between(const fl_chip_row *known, size_t known_count, const fl_chip_row *at) {
    double low = 0, high = INFINITY;
    for (size_t k = 0; k < known_count; k++) {
        if (fabs(known[k].mem_mhz - at->mem_mhz) >= SAME_MHZ)
            continue;
        if (known[k].sm_mhz < at->sm_mhz + SAME_MHZ)
            low = fmax(low, known[k].sm_mhz);
        if (known[k].sm_mhz > at->sm_mhz - SAME_MHZ)
            high = fmin(high, known[k].sm_mhz);
    }
    return low >= NEAR * high;
}

/* Put the times of the workload's own laws in place of the chip's between known clocks that are near each other.
 * Choices by them are better there (tests/accuracy.sh). Their own deviation is too small, because it does not know how
 * far the chip disagrees. The stated one is the root mean square error about the workload's time if either prediction,
 * each with its own deviation, is as likely to be right. */
static fl_model_status own_times(const fl_chip_row *known, size_t known_count, const fl_chip_row *asked,
                                 size_t asked_count, fl_chip_guess *guess) {
    fl_chip_guess *own = malloc((asked_count + 1) * sizeof *own);
    const fl_model_status s =
        own ? fl_two_laws_predict(known, known_count, asked, asked_count, own) : FL_MODEL_NO_MEMORY;
    bool any = false;
    for (size_t j = 0; s == FL_MODEL_OK && j < asked_count; j++)
        if (own[j].time_sd_pct > 0 && is_between(known, known_count, &asked[j])) {
            const double apart_pct = 100 * log(own[j].time_s / guess[j].time_s);
            guess[j].time_sd_pct = hypot(hypot(own[j].time_sd_pct, guess[j].time_sd_pct), apart_pct) / M_SQRT2;
            guess[j].time_s = own[j].time_s;
            any = true;
        }
    for (size_t j = 0; any && j < asked_count; j++)
        guess[j].basis = FL_CHIP_BESIDE;
    free(own);
    return s == FL_MODEL_NO_MEMORY ? s : FL_MODEL_OK;
}

/* What choices by the chip's own predictions rest on. */
static fl_chip_basis basis_of(const fl_chip *chip, const fl_chip_row *known, size_t known_count) {
    bool two = false;
    for (size_t i = 1; i < known_count; i++)
        two |= fabs(known[i].sm_mhz - known[0].sm_mhz) >= SAME_MHZ;
    return chip->workloads && two ? FL_CHIP_TWO_ROWS : FL_CHIP_STATED;
}

/* own: times by the workload's own laws, where it has them. */
static fl_model_status predict(const fl_chip *chip, bool own, const fl_chip_row *known, size_t known_count,
                               const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess, fl_chip_load *load,
                               double *slope) {
    fl_chip_load parts = {NAN, NAN, NAN, NAN, NAN};
    if (known_count == 0)
        return FL_MODEL_INVALID;
    for (size_t i = 0; i < known_count; i++)
        if (!fl_chip_row_is_sound(&known[i]))
            return FL_MODEL_INVALID;
    if (load)
        *load = parts;
    if (chip->law == FL_CHIP_OWN)
        return fl_two_laws_predict(known, known_count, asked, asked_count, guess);
    fl_model_status s = fl_chip_predict_time(chip, known, known_count, asked, asked_count, guess, &parts);
    for (size_t j = 0; j < asked_count; j++) {
        guess[j].power_w = guess[j].power_sd_pct = NAN;
        guess[j].basis = basis_of(chip, known, known_count);
    }
    for (size_t j = 0; slope && j < asked_count; j++)
        slope[j] = NAN;
    if (s == FL_MODEL_OK && own)
        s = own_times(known, known_count, asked, asked_count, guess);
    if (s == FL_MODEL_OK && chip->has_power)
        s = fl_chip_predict_power(chip, known, known_count, asked, asked_count, guess, &parts, slope);
    if (s == FL_MODEL_OK && load)
        *load = parts;
    return s;
}

fl_model_status fl_chip_predict(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess,
                                fl_chip_load *load) {
    return predict(chip, chip->workloads > 0, known, known_count, asked, asked_count, guess, load, NULL);
}

fl_model_status fl_chip_predict_slopes(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                       const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess,
                                       fl_chip_load *load, double *slope) {
    return predict(chip, false, known, known_count, asked, asked_count, guess, load, slope);
}
