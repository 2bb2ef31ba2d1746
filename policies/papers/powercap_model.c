#include "policies/papers/powercap_model.h"

#include <math.h>

enum { MHZ, VALUE }; /* columns of numbers */

static int same(const char *a, const char *b) {
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static double cell(const fl_table *t, uint32_t row, int column) {
    return t->cell[row * t->column_count + (uint32_t)column];
}

/* The quantity that belongs to no clock; NAN where the table lacks it. */
static double scalar(const fl_table *t, const char *name) {
    for (uint32_t i = 0; i < t->row_count; i++)
        if (same(t->key[i], name))
            return cell(t, i, VALUE);
    return NAN;
}

static double or_zero(double x) { return x > 0 ? x : 0; }

typedef struct side_names {
    const char *volt, *a, *b, *c, *alpha, *beta, *time;
} side_names;

static const side_names gpu_names = {"gpu.volt",  "gpu.a_w",  "gpu.b_w",   "gpu.c_w",
                                     "gpu.alpha", "gpu.beta", "gpu.time_s"};
static const side_names cpu_names = {"cpu.volt",  "cpu.a_w",  "cpu.b_w",   "cpu.c_w",
                                     "cpu.alpha", "cpu.beta", "cpu.time_s"};

/* Lowest and highest clock at which the quantity stands, and its values there; false where there is none. */
static int ends(const fl_table *t, const char *name, double *low, double *low_value, double *high, double *high_value) {
    int any = 0;
    for (uint32_t i = 0; i < t->row_count; i++) {
        if (!same(t->key[i], name))
            continue;
        if (!any || cell(t, i, MHZ) < *low) {
            *low = cell(t, i, MHZ);
            *low_value = cell(t, i, VALUE);
        }
        if (!any || cell(t, i, MHZ) > *high) {
            *high = cell(t, i, MHZ);
            *high_value = cell(t, i, VALUE);
        }
        any = 1;
    }
    return any;
}

/* V between two clocks of the table on a line; beyond its ends what it is there. */
static double volt_at(const fl_table *t, const char *name, double mhz) {
    double below = 0, above = 0, v_below = 1, v_above = 1;
    int has_below = 0, has_above = 0;
    for (uint32_t i = 0; i < t->row_count; i++) {
        if (!same(t->key[i], name))
            continue;
        const double at = cell(t, i, MHZ);
        if (at <= mhz && (!has_below || at > below)) {
            below = at;
            v_below = cell(t, i, VALUE);
            has_below = 1;
        }
        if (at >= mhz && (!has_above || at < above)) {
            above = at;
            v_above = cell(t, i, VALUE);
            has_above = 1;
        }
    }
    if (!has_below)
        return v_above;
    if (!has_above || above == below)
        return v_below;
    return v_below + (v_above - v_below) * ((mhz - below) / (above - below));
}

static int read_side(powercap_side *s, const fl_table *t, const side_names *n) {
    double unused_low, unused_high;
    *s = (powercap_side){.a_w = scalar(t, n->a),
                         .b_w = scalar(t, n->b),
                         .c_w = scalar(t, n->c),
                         .alpha = scalar(t, n->alpha),
                         .beta = scalar(t, n->beta),
                         .volt = n->volt};
    for (uint32_t i = 0; i < t->row_count; i++)
        if (same(t->key[i], n->volt) && !(cell(t, i, VALUE) > 0 && cell(t, i, MHZ) > 0))
            return 0;
    return s->a_w >= 0 && s->b_w >= 0 && s->c_w >= 0 && s->alpha >= 0 && s->beta >= 0 &&
           ends(t, n->volt, &s->volt_low_mhz, &unused_low, &s->volt_high_mhz, &unused_high) &&
           ends(t, n->time, &s->low_mhz, &s->low_s, &s->high_mhz, &s->high_s) && s->low_mhz > 0 && s->low_s >= 0 &&
           s->high_s >= 0;
}

const char *powercap_model_read(powercap_model *m, const fl_table *table) {
    double unused[4];
    *m = (powercap_model){.table = table,
                          .static_w = scalar(table, "static_w"),
                          .comm_w = or_zero(scalar(table, "comm_w")),
                          .comm_s = or_zero(scalar(table, "comm_s")),
                          .idle_s = or_zero(scalar(table, "idle_s"))};
    if (!(m->static_w >= 0))
        return "the model has no static_w, expected one at or above 0";
    if (!read_side(&m->gpu, table, &gpu_names))
        return "the model of the GPU is not whole, expected gpu.volt, a_w, b_w, c_w, alpha, beta and time_s, none "
               "below 0";
    m->has_cpu = ends(table, cpu_names.volt, &unused[0], &unused[1], &unused[2], &unused[3]);
    if (m->has_cpu && !read_side(&m->cpu, table, &cpu_names))
        return "the model of the CPU is not whole, expected cpu.volt, a_w, b_w, c_w, alpha, beta and time_s, none "
               "below 0";
    return 0;
}

double powercap_power(const powercap_model *m, const powercap_side *s, double mhz) {
    const double v = volt_at(m->table, s->volt, mhz);
    return s->alpha * s->a_w * v * v * (mhz / 1000) + s->beta * s->b_w + s->c_w * v;
}

/* T(fmin) fmin/f may exceed T(fmax) at fmax itself, where the highest state is the one from which hardware boosts (a
 * CPU's 2201 MHz is 3 GHz): its clock says less than it does. T(fmax) may exceed T(fmin) at fmin itself, where the two
 * differ by no more than the measurement's noise. */
double powercap_time(const powercap_model *m, const powercap_side *s, double mhz) {
    if (!m->printed && (mhz == s->high_mhz || mhz == s->low_mhz))
        return mhz == s->high_mhz ? s->high_s : s->low_s;
    return fmax(s->low_s * s->low_mhz / mhz, s->high_s);
}

/* Eq. 1, and the largest power: parts of the run do not overlap (3.2.1). cpu_mhz 0: at the model's highest. */
static powercap_choice predict(const powercap_model *m, double gpu_mhz, double cpu_mhz) {
    const double cpu_at = cpu_mhz > 0 ? cpu_mhz : m->cpu.high_mhz;
    const double gpu_w = powercap_power(m, &m->gpu, gpu_mhz), gpu_s = powercap_time(m, &m->gpu, gpu_mhz);
    const double cpu_w = m->has_cpu ? powercap_power(m, &m->cpu, cpu_at) : 0;
    const double cpu_s = m->has_cpu ? powercap_time(m, &m->cpu, cpu_at) : 0;
    powercap_choice c = {.gpu_mhz = gpu_mhz, .cpu_mhz = cpu_mhz};
    c.time_s = gpu_s + cpu_s + m->comm_s + m->idle_s;
    c.energy_j = m->static_w * c.time_s + m->comm_w * m->comm_s + cpu_w * cpu_s + gpu_w * gpu_s;
    c.peak_w = m->static_w + (gpu_s > 0 ? gpu_w : 0);
    if (cpu_s > 0)
        c.peak_w = fmax(c.peak_w, m->static_w + cpu_w);
    if (m->comm_s > 0)
        c.peak_w = fmax(c.peak_w, m->static_w + m->comm_w);
    return c;
}

static int better(const powercap_choice *a, const powercap_choice *b, int objective) {
    const double first = objective == POWERCAP_TIME ? a->time_s - b->time_s : a->energy_j - b->energy_j;
    const double second = objective == POWERCAP_TIME ? a->energy_j - b->energy_j : a->time_s - b->time_s;
    if (a->fits != b->fits)
        return a->fits;
    if (!a->fits && a->peak_w != b->peak_w)
        return a->peak_w < b->peak_w;
    return first < 0 || (first == 0 && second < 0);
}

void powercap_choose(const powercap_model *m, fl_ladder gpu, fl_ladder cpu, double cap_w, int objective,
                     powercap_choice *out) {
    const uint32_t cpus = m->has_cpu && cpu.count ? cpu.count : 1;
    for (uint32_t g = 0; g < gpu.count; g++)
        for (uint32_t c = 0; c < cpus; c++) {
            powercap_choice at = predict(m, gpu.mhz[g], m->has_cpu && cpu.count ? cpu.mhz[c] : 0);
            at.fits = at.peak_w <= cap_w;
            if ((!g && !c) || better(&at, out, objective))
                *out = at;
        }
}
