/* The clock offset by correlation: first on a grid over all offsets at which the two overlap, then exactly around the
 * best. r(o) is Pearson's correlation of the readings with the share of time that kernels were active in the interval
 * before each, per device. */
#include "traces/profiler/profiler.h"

#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CELLS_MAX = 4096, /* of the grid, over the telemetry */
    DEVICES_MAX = 64,
    FINE = 64, /* steps to either side in the second pass */
};

#define SURE_R 0.7
#define SURE_RATIO 1.3 /* of the variance left unexplained: at the runner-up over at the best */

typedef struct device {
    int32_t number;
    fl_activity activity;
    int64_t *t_ns; /* readings: time, and value less its mean */
    double *value;
    size_t count;
    double *cell;  /* of the grid: mean of the readings; NAN = none */
    double *share; /* activity on the grid, from the kernels' first on */
} device;

typedef struct search {
    device device[DEVICES_MAX];
    size_t devices, cells, k_cells; /* of the grid: under readings, under kernels */
    int64_t first_ns, last_ns;      /* readings */
    int64_t k_first_ns, k_last_ns;  /* kernels */
    double interval_ns, cell_ns;
} search;

static void search_free(search *s) {
    for (size_t i = 0; i < s->devices; i++) {
        fl_activity_free(&s->device[i].activity);
        free(s->device[i].t_ns);
        free(s->device[i].value);
        free(s->device[i].cell);
        free(s->device[i].share);
    }
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Readings of one device and signal, less their mean. */
static fl_status take_readings(device *v, const fl_telemetry *t, size_t signal, fl_diag *d) {
    double sum = 0;
    v->t_ns = malloc(t->row_count * sizeof *v->t_ns);
    v->value = malloc(t->row_count * sizeof *v->value);
    if (!v->t_ns || !v->value)
        return fl_no_memory(d, NULL);
    for (size_t n = 0; n < t->row_count; n++) {
        double x = t->value[n * t->signal_count + signal];
        if (t->device[n] != v->number || isnan(x))
            continue;
        v->t_ns[v->count] = t->t_ns[n];
        v->value[v->count++] = x;
        sum += x;
    }
    for (size_t i = 0; i < v->count; i++)
        v->value[i] -= sum / (double)v->count;
    return FL_OK;
}

static bool has_readings(const fl_telemetry *t, int32_t number) {
    for (size_t n = 0; n < t->row_count; n++)
        if (t->device[n] == number)
            return true;
    return false;
}

/* The devices of the kernels that have readings. */
static size_t common_devices(const fl_kernel_trace *k, const fl_telemetry *t, int32_t *number) {
    enum { ALL = 1024 };
    int32_t all[ALL];
    const size_t count = fl_activity_devices(k, all, ALL);
    size_t n = 0;
    for (size_t i = 0; i < count && n < DEVICES_MAX; i++)
        if (has_readings(t, all[i]))
            number[n++] = all[i];
    return n;
}

static fl_status open_devices(search *s, const fl_kernel_trace *k, const fl_telemetry *t, size_t signal, fl_diag *d) {
    s->first_ns = s->k_first_ns = INT64_MAX;
    s->last_ns = s->k_last_ns = INT64_MIN;
    int32_t number[DEVICES_MAX];
    const size_t count = common_devices(k, t, number);
    for (size_t i = 0; i < count; i++) {
        device *new = &s->device[s->devices++];
        *new = (device){.number = number[i]};
        fl_status status = fl_activity_make(&new->activity, k, new->number, FL_OP_KERNEL);
        if (!status && !new->activity.count) { /* copies alone */
            fl_activity_free(&new->activity);
            s->devices--;
            continue;
        }
        if (!status)
            status = take_readings(new, t, signal, d);
        if (status)
            return status == FL_NO_MEMORY ? fl_no_memory(d, NULL) : status;
        const fl_activity *a = &new->activity;
        s->k_first_ns = a->start_ns[0] < s->k_first_ns ? a->start_ns[0] : s->k_first_ns;
        s->k_last_ns = a->end_ns[a->count - 1] > s->k_last_ns ? a->end_ns[a->count - 1] : s->k_last_ns;
        if (!new->count)
            continue;
        s->first_ns = new->t_ns[0] < s->first_ns ? new->t_ns[0] : s->first_ns;
        s->last_ns = new->t_ns[new->count - 1] > s->last_ns ? new->t_ns[new->count - 1] : s->last_ns;
    }
    return FL_OK;
}

/* The median interval of the device with most readings. */
static fl_status find_interval(search *s, fl_diag *d) {
    const device *v = &s->device[0];
    for (size_t i = 1; i < s->devices; i++)
        v = s->device[i].count > v->count ? &s->device[i] : v;
    double *gap = malloc((v->count ? v->count : 1) * sizeof *gap);
    if (!gap)
        return fl_no_memory(d, NULL);
    size_t n = 0;
    for (size_t i = 1; i < v->count; i++)
        if (v->t_ns[i] > v->t_ns[i - 1])
            gap[n++] = (double)(v->t_ns[i] - v->t_ns[i - 1]);
    qsort(gap, n, sizeof *gap, by_value);
    s->interval_ns = n ? gap[n / 2] : 0;
    free(gap);
    return FL_OK;
}

static fl_status fill_grid(search *s, fl_diag *d) {
    double span = (double)(s->last_ns - s->first_ns), k_span = (double)(s->k_last_ns - s->k_first_ns);
    s->cell_ns = fmax(s->interval_ns, fmax(span, k_span) / CELLS_MAX);
    s->cells = (size_t)(span / s->cell_ns) + 1;
    s->k_cells = (size_t)(k_span / s->cell_ns) + 1;
    size_t *n = malloc(s->cells * sizeof *n);
    bool good = n != NULL;
    for (size_t i = 0; good && i < s->devices; i++) {
        device *v = &s->device[i];
        v->cell = calloc(s->cells, sizeof *v->cell);
        v->share = malloc(s->k_cells * sizeof *v->share);
        if (!(good = v->cell && v->share))
            break;
        memset(n, 0, s->cells * sizeof *n);
        for (size_t k = 0; k < v->count; k++) {
            size_t c = (size_t)((double)(v->t_ns[k] - s->first_ns) / s->cell_ns);
            v->cell[c] += v->value[k];
            n[c]++;
        }
        for (size_t c = 0; c < s->cells; c++)
            v->cell[c] = n[c] ? v->cell[c] / (double)n[c] : NAN;
        double before = 0;
        for (size_t c = 0; c < s->k_cells; c++) {
            double until = fl_activity_until(&v->activity, (double)s->k_first_ns + (double)(c + 1) * s->cell_ns);
            v->share[c] = (until - before) / s->cell_ns;
            before = until;
        }
    }
    free(n);
    return good ? FL_OK : fl_no_memory(d, NULL);
}

/* Sums for Pearson's r, added up over devices after centring each. */
typedef struct sums {
    double n, x, y, xx, yy, xy; /* of the device at hand */
    double vx, vy, cov, all;    /* of all; all: readings */
} sums;

static void add_pair(sums *m, double x, double y) {
    m->n += 1;
    m->x += x;
    m->y += y;
    m->xx += x * x;
    m->yy += y * y;
    m->xy += x * y;
}

static void end_device(sums *m) {
    if (m->n > 1) {
        m->vx += m->xx - m->x * m->x / m->n;
        m->vy += m->yy - m->y * m->y / m->n;
        m->cov += m->xy - m->x * m->y / m->n;
    }
    m->all += m->n;
    m->n = m->x = m->y = m->xx = m->yy = m->xy = 0;
}

/* -1 where readings and kernels overlap by less than half of the shorter of the two, or too little varies. */
static double correlation(const search *s, const sums *m, double offset_ns) {
    double first = (double)s->first_ns - offset_ns, last = (double)s->last_ns - offset_ns;
    double span = last - first, k_span = (double)(s->k_last_ns - s->k_first_ns);
    double overlap = fmin(last, (double)s->k_last_ns) - fmax(first, (double)s->k_first_ns);
    if (overlap < 0.5 * fmin(span, k_span) || m->all < 8 || !(m->vx > 0) || !(m->vy > 1e-9 * m->all))
        return -1;
    return m->cov / sqrt(m->vx * m->vy);
}

/* lag: the cell of the readings on which the kernels' first lies; may be below 0. */
static double r_on_grid(const search *s, int64_t lag) {
    sums m = {0};
    for (size_t i = 0; i < s->devices; i++) {
        const device *v = &s->device[i];
        for (int64_t c = 0; c < (int64_t)s->cells; c++) {
            if (isnan(v->cell[c]))
                continue;
            double share = c >= lag && c - lag < (int64_t)s->k_cells ? v->share[c - lag] : 0;
            add_pair(&m, v->cell[c], share);
        }
        end_device(&m);
    }
    return correlation(s, &m, (double)s->first_ns + (double)lag * s->cell_ns - (double)s->k_first_ns);
}

/* With each reading against the interval before it. */
static double r_exact(const search *s, double offset_ns, size_t *readings) {
    sums m = {0};
    for (size_t i = 0; i < s->devices; i++) {
        const device *v = &s->device[i];
        size_t stride = v->count / 20000 + 1;
        for (size_t k = 0; k < v->count; k++) {
            double t = (double)v->t_ns[k] - offset_ns;
            double before = k ? (double)(v->t_ns[k] - v->t_ns[k - 1]) : s->interval_ns;
            before = before > 2 * s->interval_ns || before <= 0 ? s->interval_ns : before;
            if (k % stride)
                continue;
            double busy = fl_activity_until(&v->activity, t) - fl_activity_until(&v->activity, t - before);
            add_pair(&m, v->value[k], busy / before);
        }
        end_device(&m);
    }
    *readings = (size_t)m.all;
    return correlation(s, &m, offset_ns);
}

/* The second pass: the best offset within a cell or two of `around`, and how far r stays within what chance allows
 * (a likelihood ratio of e^2 for residuals that are normal and independent; every fourth reading counted as such). */
static void refine(const search *s, double around, fl_clock_offset *f) {
    double r[2 * FINE + 1], step = 2 * s->cell_ns / FINE;
    size_t n = 0;
    int best = FINE;
    for (int pass = 0; pass < 2; pass++) {
        best = FINE;
        for (int i = 0; i <= 2 * FINE; i++)
            r[i] = r_exact(s, around + (i - FINE) * step, &n);
        for (int i = 0; i <= 2 * FINE; i++) /* all are known by then; of equals the middle one stays */
            best = r[i] > r[best] ? i : best;
        around += (best - FINE) * step;
        if (pass == 0 && step > s->interval_ns / 16)
            step /= 8;
        else
            break;
    }
    double allowed = (1 - r[best] * r[best]) * exp(4.0 / fmax((double)n / 4, 1));
    int low = best, high = best;
    while (low > 0 && r[low - 1] > 0 && 1 - r[low - 1] * r[low - 1] <= allowed)
        low--;
    while (high < 2 * FINE && r[high + 1] > 0 && 1 - r[high + 1] * r[high + 1] <= allowed)
        high++;
    f->r = r[best];
    f->offset_ns = (int64_t)llround(around + (low + high - 2 * best) / 2.0 * step);
    f->error_ns = fmax(s->interval_ns / 2, (high - low) / 2.0 * step);
}

/* The best correlation at offsets apart from the best: where r has fallen below half of it in between. */
static double runner_up(const double *r, size_t count, size_t best) {
    double next = 0;
    bool apart = false;
    for (size_t i = best; i-- > 0;) {
        apart = apart || r[i] < r[best] / 2;
        next = apart && r[i] > next ? r[i] : next;
    }
    apart = false;
    for (size_t i = best + 1; i < count; i++) {
        apart = apart || r[i] < r[best] / 2;
        next = apart && r[i] > next ? r[i] : next;
    }
    return next;
}

static fl_status find_by(const fl_kernel_trace *k, const fl_telemetry *t, size_t signal, fl_clock_offset *f,
                         fl_diag *d) {
    search s = {0};
    double *r = NULL;
    *f = (fl_clock_offset){.signal = t->signal[signal]};
    fl_status status = open_devices(&s, k, t, signal, d);
    if (!status && s.devices)
        status = find_interval(&s, d);
    if (!status && s.interval_ns > 0)
        status = fill_grid(&s, d);
    if (!status && s.interval_ns > 0) {
        int64_t count = (int64_t)s.k_cells;
        size_t lags = s.cells + s.k_cells, best = 0;
        r = calloc(lags, sizeof *r);
        status = r ? FL_OK : fl_no_memory(d, NULL);
        for (size_t i = 0; r && i < lags; i++) {
            r[i] = r_on_grid(&s, (int64_t)i - count);
            best = r[i] > r[best] ? i : best;
        }
        if (r && r[best] > 0) {
            f->next_r = runner_up(r, lags, best);
            refine(&s, (double)s.first_ns - (double)s.k_first_ns + (double)((int64_t)best - count) * s.cell_ns, f);
            f->sure = f->r >= SURE_R && 1 - f->next_r * f->next_r >= SURE_RATIO * (1 - f->r * f->r);
        }
    }
    free(r);
    search_free(&s);
    return status;
}

fl_status fl_join_find(const fl_kernel_trace *k, const fl_telemetry *t, fl_clock_offset *found, fl_diag *d) {
    static const char *const SIGNAL[] = {"power_instant_w", "power_w", "util_gpu_pct", "sm_active_pct"};
    bool any = false;
    *found = (fl_clock_offset){0};
    for (size_t c = 0; c < sizeof SIGNAL / sizeof *SIGNAL; c++)
        for (size_t i = 0; i < t->signal_count; i++) {
            fl_clock_offset f;
            if (strcmp(t->signal[i], SIGNAL[c]) != 0)
                continue;
            fl_status status = find_by(k, t, i, &f, d);
            if (status)
                return status;
            any = true;
            if (f.r > found->r)
                *found = f;
        }
    if (found->r > 0)
        return FL_OK;
    return fl_refuse(d, "%s, expected --offset S (telemetry time minus kernel time)",
                     any ? "the clock offset cannot be found: power and utilisation do not vary with the kernels"
                         : "the clock offset cannot be found without readings of power or utilisation");
}
