/* A workload's powers at settings that were not measured: its alpha and beta by Bayesian linear regression with the
 * prior that the chip's other workloads give, and the smooth part of its known errors carried over. */
#include "models/fit_chip_parts.h"

#include <math.h>
#include <stdlib.h>

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

fl_model_status fl_chip_predict_power(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                      const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess,
                                      fl_chip_load *load) {
    const double time_ref = fl_chip_time(chip, load, chip->sm_ref, chip->mem_ref);
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
    double *a = memory, *b = a + n, *z = b + n, *gain = z + n, *lower = gain + n;
    double *off = lower + n * n, *offs = off + both;
    const fl_chip_error *e = &chip->power_error;
    for (size_t i = 0; i < n; i++) {
        const fl_chip_row *row = &power_known[i];
        double base = 0;
        fl_chip_columns(chip, row->sm_mhz, row->mem_mhz, time_ref / row->time_s, &a[i], &b[i], &base);
        a[i] *= chip->a_w / row->power_w;
        b[i] *= chip->b_w / row->power_w;
        z[i] = 1 - base / row->power_w;
        for (size_t j = 0; j <= i; j++)
            lower[i * n + j] = fl_chip_covariance(e, row, &power_known[j]);
        lower[i * n + i] += e->scatter * e->scatter + 1e-10;
    }
    fl_model_status s = fl_chip_cholesky(lower, n) ? FL_MODEL_OK : FL_MODEL_NO_FIT;
    if (s == FL_MODEL_OK) {
        fl_chip_lower_solve(lower, n, a);
        fl_chip_lower_solve(lower, n, b);
        fl_chip_lower_solve(lower, n, z);
        const double *v = chip->load_cov, det = v[0] * v[2] - v[1] * v[1];
        const double paa = v[2] / det, pab = -v[1] / det, pbb = v[0] / det;
        double aa = paa, ab = pab, bb = pbb;
        double az = paa * chip->load_mean[0] + pab * chip->load_mean[1];
        double bz = pab * chip->load_mean[0] + pbb * chip->load_mean[1];
        for (size_t i = 0; i < n; i++) {
            aa += a[i] * a[i];
            ab += a[i] * b[i];
            bb += b[i] * b[i];
            az += a[i] * z[i];
            bz += b[i] * z[i];
        }
        fl_chip_solve_two(aa, ab, bb, az, bz, &load->alpha, &load->beta);
        const double t = load->tc + load->tm + load->tl;
        fl_chip_share as = {.memory = load->tm / (load->tc + load->tm + 1e-30),
                            .rest = load->tl / t,
                            .alpha = load->alpha,
                            .beta = load->beta};
        fl_chip_offs_make(chip, 1, power_known, n, offs);
        fl_chip_offs_make(chip, 1, asked, asked_count, offs + n * chip->shares);
        fl_chip_offs_at(chip, 1, offs, n + asked_count, &as, off);
        fl_chip_lower_solve(lower, n, off);
        for (size_t i = 0; i < n; i++) {
            z[i] -= off[i];
            az -= a[i] * off[i];
            bz -= b[i] * off[i];
        }
        fl_chip_solve_two(aa, ab, bb, az, bz, &load->alpha, &load->beta);
        const double d = aa * bb - ab * ab;
        for (size_t i = 0; i < n; i++)
            z[i] -= load->alpha * a[i] + load->beta * b[i];
        for (size_t j = 0; j < asked_count; j++) {
            double core = 0, mem = 0, base = 0, shift = 0, left = e->scatter * e->scatter + e->smooth * e->smooth;
            fl_chip_columns(chip, asked[j].sm_mhz, asked[j].mem_mhz, time_ref / guess[j].time_s, &core, &mem, &base);
            core *= chip->a_w;
            mem *= chip->b_w;
            for (size_t i = 0; i < n; i++)
                gain[i] = fl_chip_covariance(e, &asked[j], &power_known[i]);
            fl_chip_lower_solve(lower, n, gain);
            for (size_t i = 0; i < n; i++) {
                shift += gain[i] * z[i];
                left -= gain[i] * gain[i];
            }
            shift += off[n + j];
            const double watts = base + load->alpha * core + load->beta * mem;
            left += (core * core * bb - 2 * core * mem * ab + mem * mem * aa) / d / (watts * watts);
            guess[j].power_w = watts / (1 - fmax(-0.5, fmin(0.5, shift)));
            const double growth = fl_chip_growth(e, power_known, n, &asked[j]);
            guess[j].power_sd_pct = 100 * sqrt(fmax(0, left) + growth * growth);
        }
    }
    free(memory);
    free(power_known);
    return s;
}
