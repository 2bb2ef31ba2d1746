#include "harness/input/stated.h"

#include <math.h>
#include <stdlib.h>

static double or_zero(double x) { return isnan(x) ? 0 : x; }

static int by_clocks(const void *a, const void *b) {
    const fl_chip_row *x = a, *y = b;
    if (fabs(x->mem_mhz - y->mem_mhz) > 0)
        return x->mem_mhz < y->mem_mhz ? -1 : 1;
    return (x->sm_mhz > y->sm_mhz) - (x->sm_mhz < y->sm_mhz);
}

static bool same(const fl_chip_row *a, double sm_mhz, double mem_mhz) {
    return fabs(a->sm_mhz - sm_mhz) < 0.5 && fabs(a->mem_mhz - mem_mhz) < 0.5;
}

static double memory_of(const fl_sweep_row *r, double mem_mhz) { return isnan(r->mem_mhz) ? mem_mhz : r->mem_mhz; }

/* The settings of the workload, each once. */
static fl_status find_settings(const fl_sweep *s, uint32_t workload, double sm_min, double sm_max, double mem_mhz,
                               fl_stated *out, fl_diag *d) {
    out->at = calloc(s->row_count + 1, sizeof *out->at);
    out->guess = calloc(s->row_count + 1, sizeof *out->guess);
    if (!out->at || !out->guess)
        return fl_no_memory(d, "the settings");
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (r->workload == workload && r->sm_mhz >= sm_min && r->sm_mhz <= sm_max)
            out->at[out->count++] = (fl_chip_row){.sm_mhz = r->sm_mhz, .mem_mhz = memory_of(r, mem_mhz)};
    }
    qsort(out->at, out->count, sizeof *out->at, by_clocks);
    size_t n = 0;
    for (size_t i = 0; i < out->count; i++)
        if (!n || !same(&out->at[n - 1], out->at[i].sm_mhz, out->at[i].mem_mhz))
            out->at[n++] = out->at[i];
    out->count = n;
    return FL_OK;
}

/* The mean of a kernel's rows at a setting; false where it has none. */
static bool kernel_at(const fl_sweep *s, uint32_t workload, uint32_t kernel, const fl_chip_row *at, double mem_mhz,
                      fl_chip_guess *g) {
    double n = 0;
    *g = (fl_chip_guess){0};
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (r->workload != workload || r->kernel != kernel || !same(at, r->sm_mhz, memory_of(r, mem_mhz)))
            continue;
        g->time_s += r->time_s;
        g->power_w += r->energy_j / r->time_s;
        g->time_sd_pct += or_zero(r->time_sd_pct);
        g->power_sd_pct += or_zero(r->power_sd_pct);
        n++;
    }
    if (!(n > 0))
        return false;
    *g = (fl_chip_guess){g->time_s / n, g->power_w / n, g->time_sd_pct / n, g->power_sd_pct / n};
    return true;
}

/* Adds the workload's kernels up at one setting; false where one is not known there. */
static bool add_up(const fl_sweep *s, uint32_t workload, const uint32_t *kernel, size_t kernels, const fl_chip_row *at,
                   double mem_mhz, fl_chip_guess *sum) {
    double time_sd = 0, energy = 0, power_sd = 0;
    *sum = (fl_chip_guess){0};
    for (size_t k = 0; k < kernels; k++) {
        fl_chip_guess g;
        if (!kernel_at(s, workload, kernel[k], at, mem_mhz, &g))
            return false;
        sum->time_s += g.time_s;
        energy += g.time_s * g.power_w;
        time_sd += g.time_s * g.time_sd_pct;
        power_sd += g.time_s * g.power_w * g.power_sd_pct;
    }
    sum->power_w = energy / sum->time_s;
    sum->time_sd_pct = time_sd / sum->time_s;
    sum->power_sd_pct = power_sd / energy;
    return true;
}

/* Names of the workload's kernels, each once, into kernel; how many. */
static size_t find_kernels(const fl_sweep *s, uint32_t workload, uint32_t *kernel) {
    size_t n = 0;
    for (size_t i = 0; i < s->row_count; i++) {
        size_t k = 0;
        while (k < n && kernel[k] != s->rows[i].kernel)
            k++;
        if (s->rows[i].workload == workload && k == n)
            kernel[n++] = s->rows[i].kernel;
    }
    return n;
}

fl_status fl_stated_make(const fl_sweep *s, uint32_t workload, bool predicted, double sm_min, double sm_max,
                         double mem_mhz, fl_stated *out, fl_diag *d) {
    *out = (fl_stated){0};
    bool any = predicted;
    for (size_t i = 0; i < s->row_count; i++)
        any |= s->rows[i].workload == workload && (s->rows[i].time_sd_pct > 0 || s->rows[i].power_sd_pct > 0);
    if (!any)
        return FL_OK;
    uint32_t *kernel = calloc(s->row_count + 1, sizeof *kernel);
    fl_status status =
        kernel ? find_settings(s, workload, sm_min, sm_max, mem_mhz, out, d) : fl_no_memory(d, "the settings");
    const size_t kernels = status ? 0 : find_kernels(s, workload, kernel);
    size_t n = 0;
    for (size_t i = 0; !status && i < out->count; i++)
        if (add_up(s, workload, kernel, kernels, &out->at[i], mem_mhz, &out->guess[n]))
            out->at[n++] = out->at[i];
    out->count = n;
    out->fitted = true;
    free(kernel);
    if (status)
        fl_stated_free(out);
    return status;
}

void fl_stated_free(fl_stated *s) {
    free(s->at);
    free(s->guess);
    *s = (fl_stated){0};
}

bool fl_stated_at(const fl_stated *s, double sm_mhz, double mem_mhz, fl_chip_guess *out) {
    size_t below = s->count, above = s->count;
    for (size_t i = 0; i < s->count; i++) {
        if (fabs(s->at[i].mem_mhz - mem_mhz) >= 0.5)
            continue;
        if (s->at[i].sm_mhz <= sm_mhz + 0.5)
            below = i;
        if (above == s->count && s->at[i].sm_mhz >= sm_mhz - 0.5)
            above = i;
    }
    if (below == s->count || above == s->count)
        return false;
    const fl_chip_guess *a = &s->guess[below], *b = &s->guess[above];
    const double span = s->at[above].sm_mhz - s->at[below].sm_mhz;
    const double x = span > 0 ? (sm_mhz - s->at[below].sm_mhz) / span : 0;
    *out = (fl_chip_guess){a->time_s + x * (b->time_s - a->time_s), a->power_w + x * (b->power_w - a->power_w),
                           fmax(a->time_sd_pct, b->time_sd_pct), fmax(a->power_sd_pct, b->power_sd_pct)};
    return true;
}

/* The chosen setting and the reference: one of them where they are the same. */
static bool find_two(const fl_stated *s, fl_setting_clocks chosen, fl_setting_clocks ref, fl_chip_guess two[2],
                     size_t *top) {
    *top = fabs(chosen.sm_mhz - ref.sm_mhz) < 0.5 && fabs(chosen.mem_mhz - ref.mem_mhz) < 0.5 ? 0 : 1;
    return fl_stated_at(s, chosen.sm_mhz, chosen.mem_mhz, &two[0]) && fl_stated_at(s, ref.sm_mhz, ref.mem_mhz, &two[1]);
}

double fl_stated_chance(const fl_stated *s, fl_setting_clocks chosen, fl_setting_clocks ref, double bound) {
    fl_chip_guess two[2];
    size_t top;
    return find_two(s, chosen, ref, two, &top) ? fl_decide_chance(&two[0], &two[top], bound) : (double)NAN;
}

double fl_stated_regret(const fl_stated *s, fl_setting_clocks chosen, fl_setting_clocks ref, double bound,
                        double delay) {
    fl_chip_guess two[2], *all = malloc((s->count + 2) * sizeof *all);
    size_t top;
    double regret = NAN;
    if (all && find_two(s, chosen, ref, two, &top)) {
        size_t n = 0;
        all[n++] = two[0];
        all[n++] = two[top];
        for (size_t i = 0; i < s->count; i++)
            if (!same(&s->at[i], chosen.sm_mhz, chosen.mem_mhz) && !same(&s->at[i], ref.sm_mhz, ref.mem_mhz))
                all[n++] = s->guess[i];
        regret = fl_decide_regret(all, n, top, 0, bound, delay);
    }
    free(all);
    return regret;
}
