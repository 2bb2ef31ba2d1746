#include "harness/input/scene/stated.h"

#include <math.h>
#include <stdlib.h>

static double or_zero(double x) { return isnan(x) ? 0 : x; }

static double limit_or_none(double limit_w) { return limit_w > 0 ? limit_w : (double)INFINITY; }

static int by_clocks(const void *a, const void *b) {
    const fl_setting_clocks *x = a, *y = b;
    if (fabs(x->mem_mhz - y->mem_mhz) > 0)
        return x->mem_mhz < y->mem_mhz ? -1 : 1;
    if (fabs(x->sm_mhz - y->sm_mhz) > 0)
        return x->sm_mhz < y->sm_mhz ? -1 : 1;
    return (limit_or_none(x->limit_w) > limit_or_none(y->limit_w)) -
           (limit_or_none(x->limit_w) < limit_or_none(y->limit_w));
}

bool fl_stated_same(fl_setting_clocks a, fl_setting_clocks b) {
    return fabs(a.sm_mhz - b.sm_mhz) < 0.5 && fabs(a.mem_mhz - b.mem_mhz) < 0.5 && fabs(a.limit_w - b.limit_w) < 0.5;
}

/* What settings of the rows have where a row names none. */
typedef struct standard {
    double mem_mhz, limit_w; /* limit_w: INFINITY where some row names no limit */
} standard;

static standard standard_of(const fl_sweep *s, uint32_t workload, double mem_mhz) {
    standard k = {mem_mhz, 0};
    for (size_t i = 0; i < s->row_count; i++)
        if (s->rows[i].workload == workload)
            k.limit_w = fmax(k.limit_w, isnan(s->rows[i].power_cap_w) ? (double)INFINITY : s->rows[i].power_cap_w);
    return k;
}

static fl_setting_clocks setting_of(const fl_sweep_row *r, const standard *k) {
    return (fl_setting_clocks){r->sm_mhz, isnan(r->mem_mhz) ? k->mem_mhz : r->mem_mhz,
                               r->power_cap_w < k->limit_w ? r->power_cap_w : 0};
}

/* The settings of the workload, each once. */
static fl_status find_settings(const fl_sweep *s, uint32_t workload, double sm_min, double sm_max, const standard *k,
                               fl_stated *out, fl_diag *d) {
    out->at = calloc(s->row_count + 1, sizeof *out->at);
    out->guess = calloc(s->row_count + 1, sizeof *out->guess);
    if (!out->at || !out->guess)
        return fl_no_memory(d, "the settings");
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (r->workload == workload && r->sm_mhz >= sm_min && r->sm_mhz <= sm_max)
            out->at[out->count++] = setting_of(r, k);
    }
    qsort(out->at, out->count, sizeof *out->at, by_clocks);
    size_t n = 0;
    for (size_t i = 0; i < out->count; i++)
        if (!n || !fl_stated_same(out->at[n - 1], out->at[i]))
            out->at[n++] = out->at[i];
    out->count = n;
    return FL_OK;
}

/* The mean of a kernel's rows at a setting; false where it has none. */
static bool kernel_at(const fl_sweep *s, uint32_t workload, uint32_t kernel, fl_setting_clocks at, const standard *k,
                      fl_chip_guess *g) {
    double n = 0;
    *g = (fl_chip_guess){0};
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (r->workload != workload || r->kernel != kernel || !fl_stated_same(at, setting_of(r, k)))
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
static bool add_up(const fl_sweep *s, uint32_t workload, const uint32_t *kernel, size_t kernels, fl_setting_clocks at,
                   const standard *norm, fl_chip_guess *sum) {
    double time_sd = 0, energy = 0, power_sd = 0;
    *sum = (fl_chip_guess){0};
    for (size_t k = 0; k < kernels; k++) {
        fl_chip_guess g;
        if (!kernel_at(s, workload, kernel[k], at, norm, &g))
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
    const standard k = standard_of(s, workload, mem_mhz);
    uint32_t *kernel = calloc(s->row_count + 1, sizeof *kernel);
    fl_status status =
        kernel ? find_settings(s, workload, sm_min, sm_max, &k, out, d) : fl_no_memory(d, "the settings");
    const size_t kernels = status ? 0 : find_kernels(s, workload, kernel);
    size_t n = 0;
    for (size_t i = 0; !status && i < out->count; i++)
        if (add_up(s, workload, kernel, kernels, out->at[i], &k, &out->guess[n]))
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

fl_chip_row *fl_stated_rows(const fl_stated *s) {
    fl_chip_row *row = calloc(s->count + 1, sizeof *row);
    for (size_t i = 0; row && i < s->count; i++)
        row[i] = (fl_chip_row){.sm_mhz = s->at[i].sm_mhz, .mem_mhz = s->at[i].mem_mhz};
    return row;
}

bool fl_stated_at(const fl_stated *s, fl_setting_clocks at, fl_chip_guess *out) {
    size_t below = s->count, above = s->count;
    for (size_t i = 0; i < s->count; i++) {
        if (fabs(s->at[i].mem_mhz - at.mem_mhz) >= 0.5 || fabs(s->at[i].limit_w - at.limit_w) >= 0.5)
            continue;
        if (s->at[i].sm_mhz <= at.sm_mhz + 0.5)
            below = i;
        if (above == s->count && s->at[i].sm_mhz >= at.sm_mhz - 0.5)
            above = i;
    }
    if (below == s->count || above == s->count)
        return false;
    const fl_chip_guess *a = &s->guess[below], *b = &s->guess[above];
    const double span = s->at[above].sm_mhz - s->at[below].sm_mhz;
    const double x = span > 0 ? (at.sm_mhz - s->at[below].sm_mhz) / span : 0;
    *out = (fl_chip_guess){a->time_s + x * (b->time_s - a->time_s), a->power_w + x * (b->power_w - a->power_w),
                           fmax(a->time_sd_pct, b->time_sd_pct), fmax(a->power_sd_pct, b->power_sd_pct)};
    return true;
}

/* The chosen setting and the reference: one of them where they are the same. */
static bool find_two(const fl_stated *s, fl_setting_clocks chosen, fl_setting_clocks ref, fl_chip_guess two[2],
                     size_t *top) {
    *top = fl_stated_same(chosen, ref) ? 0 : 1;
    return fl_stated_at(s, chosen, &two[0]) && fl_stated_at(s, ref, &two[1]);
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
            if (fl_stated_same((fl_setting_clocks){s->at[i].sm_mhz, s->at[i].mem_mhz, 0}, s->at[i]) &&
                !fl_stated_same(s->at[i], chosen) && !fl_stated_same(s->at[i], ref)) /* who chose set no limit */
                all[n++] = s->guess[i];
        regret = fl_decide_regret(all, n, top, 0, bound, delay);
    }
    free(all);
    return regret;
}
