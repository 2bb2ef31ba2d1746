/* Measured settings become workloads: what was one number per clock is replayed as ops of about 10 ms, so that a policy
 * can change clocks within it. */
#include "sim/build.h"

#include "models/fit_unseen.h"
#include "sim/node.h"
#include "sim/wide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_MAX = 4096 };

typedef struct fl_points { /* settings of one kernel of the workload, ascending clocks, one each */
    fl_fit_point point[POINTS_MAX];
    size_t count;
} fl_points;

fl_status fl_sweep_workloads(const fl_sweep *s, uint32_t **names, size_t *count, fl_diag *d) {
    *count = 0;
    *names = malloc((s->name_count + 1) * sizeof **names);
    bool *seen = calloc(s->name_count + 1, sizeof *seen);
    if (!*names || !seen) {
        free(*names);
        free(seen);
        *names = NULL;
        return fl_no_memory(d, "the sweep");
    }
    for (size_t i = 0; i < s->row_count; i++)
        if (!seen[s->rows[i].workload]) {
            seen[s->rows[i].workload] = true;
            (*names)[(*count)++] = s->rows[i].workload;
        }
    free(seen);
    return FL_OK;
}

/* The memory clock to use: the platform's default where measured, else the highest; NAN where the rows name none. */
static double memory_clock(const fl_sweep *s, uint32_t name, double preferred) {
    double best = NAN;
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (r->workload != name || isnan(r->mem_mhz))
            continue;
        if (r->mem_mhz == preferred)
            return preferred;
        if (isnan(best) || r->mem_mhz > best)
            best = r->mem_mhz;
    }
    return best;
}

static double highest_cap(const fl_sweep *s, uint32_t name) {
    double best = NAN;
    for (size_t i = 0; i < s->row_count; i++)
        if (s->rows[i].workload == name && !isnan(s->rows[i].power_cap_w) && !(s->rows[i].power_cap_w <= best))
            best = s->rows[i].power_cap_w;
    return best;
}

static bool matches(double value, double wanted) { return isnan(wanted) || isnan(value) || value == wanted; }

static int by_clock(const void *a, const void *b) {
    double x = ((const fl_fit_point *)a)->sm_mhz, y = ((const fl_fit_point *)b)->sm_mhz;
    return x < y ? -1 : x > y;
}

/* Repeated measurements of one setting are averaged. */
static fl_status collect(const char *file, const fl_sweep *s, uint32_t name, uint32_t kernel, double mem, double cap,
                         double default_mem, fl_points *p, fl_diag *d) {
    p->count = 0;
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (r->workload != name || r->kernel != kernel || !matches(r->mem_mhz, mem) || !matches(r->power_cap_w, cap))
            continue;
        if (isnan(r->sm_mhz))
            return fl_fail(d, FL_BAD_INPUT, file, r->line, 0, "no sm_mhz, expected the SM clock of the measurement");
        if (!(r->time_s * 1e12 <= (double)FL_TIME_END))
            return fl_fail(d, FL_BAD_INPUT, file, r->line, 0, "time_s is %g, expected at most 26 days", r->time_s);
        if (p->count == POINTS_MAX)
            return fl_fail(d, FL_BAD_INPUT, file, r->line, 0, "more than %d settings of one workload", POINTS_MAX);
        p->point[p->count++] =
            (fl_fit_point){r->sm_mhz, isnan(mem) ? default_mem : mem, r->time_s, r->energy_j / r->time_s};
    }
    qsort(p->point, p->count, sizeof *p->point, by_clock);
    size_t n = 0;
    for (size_t i = 0; i < p->count;) {
        fl_fit_point sum = p->point[i];
        size_t k = i + 1;
        for (; k < p->count && p->point[k].sm_mhz == p->point[i].sm_mhz; k++)
            sum.time_s += p->point[k].time_s, sum.power_w += p->point[k].power_w;
        sum.time_s /= (double)(k - i);
        sum.power_w /= (double)(k - i);
        p->point[n++] = sum;
        i = k;
    }
    p->count = n;
    return FL_OK;
}

static fl_status measured_curves(const fl_points *p, fl_measured *m, fl_diag *d) {
    double *x = malloc(p->count * sizeof *x), *t = malloc(p->count * sizeof *t), *w = malloc(p->count * sizeof *w);
    fl_model_status s = x && t && w ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    for (size_t i = 0; s == FL_MODEL_OK && i < p->count; i++) {
        x[i] = p->point[i].sm_mhz;
        t[i] = p->point[i].time_s / p->point[p->count - 1].time_s;
        w[i] = p->point[i].power_w;
    }
    if (s == FL_MODEL_OK)
        s = fl_curve_new(&m->time_ratio, x, t, p->count);
    if (s == FL_MODEL_OK)
        s = fl_curve_new(&m->power_w, x, w, p->count);
    free(x);
    free(t);
    free(w);
    if (s == FL_MODEL_OK)
        return FL_OK;
    fl_curve_free(m->time_ratio);
    return fl_error(d, s == FL_MODEL_NO_MEMORY ? FL_NO_MEMORY : FL_BAD_INPUT, "measured settings: %s",
                    fl_model_text(s));
}

/* Exactly `total` ns in ops of about 10 ms. */
static fl_status add_ops(fl_workload *w, uint32_t stream, uint32_t class_id, int64_t total, fl_diag *d) {
    int64_t n = total / 10000000;
    n = n < 100 ? 100 : n > 1000000 ? 1000000 : n;
    fl_status s = FL_OK;
    for (int64_t i = 0; !s && i < n; i++) {
        int64_t from = (int64_t)((fl_uwide)(uint64_t)total * (uint64_t)i / (uint64_t)n);
        int64_t to = (int64_t)((fl_uwide)(uint64_t)total * (uint64_t)(i + 1) / (uint64_t)n);
        s = fl_workload_add_op(w, stream, 0, to - from, class_id, d);
    }
    return s;
}

typedef struct fl_errors { /* of the fitted models, weighted by time */
    double time, power, weight;
} fl_errors;

static fl_status add_kernel(fl_workload *w, const char *name, const fl_points *p, fl_sweep_model model,
                            const fl_device *dev, uint32_t *id, fl_errors *err, fl_diag *d) {
    fl_fit_result fit;
    const fl_fit_point *top = &p->point[p->count - 1];
    fl_load load = {.tc = 1, .sm_demand = 1, .ref_sm_mhz = top->sm_mhz, .ref_mem_mhz = top->mem_mhz};
    fl_model_status m = p->count < 2 ? FL_MODEL_NO_FIT : fl_fit_workload(dev, p->point, p->count, p->count - 1, &fit);
    if (m == FL_MODEL_OK) {
        load = fit.load;
        /* What the law misses where it was not looked at: errors on its own rows would flatter it. */
        fl_fit_unseen_error unseen = {NAN, NAN};
        if (model == FL_SWEEP_LAW && fl_fit_unseen(dev, p->point, p->count, &unseen) == FL_MODEL_NO_MEMORY)
            return fl_no_memory(d, w->name);
        err->time += unseen.time_pct * top->time_s;
        err->power += unseen.power_pct * top->time_s;
        err->weight += top->time_s;
    } else if (model == FL_SWEEP_LAW) {
        return fl_refuse(d, "%s: no model fits its %zu settings: %s", w->name, p->count, fl_model_text(m));
    } else {
        w->assumed = true; /* what share of the time is memory's cannot be told */
    }
    load.sm_demand = 1;
    fl_measured curves = {NULL, NULL};
    if (model == FL_SWEEP_TABLE) {
        fl_status s = measured_curves(p, &curves, d);
        if (s)
            return s;
        load.measured = &curves;
        w->measured = true;
    }
    fl_kernel_kind kind = {.name = name, .grid = {1, 1, 1}, .block = {1, 1, 1}};
    fl_status s = fl_workload_add_class(w, &load, &kind, id, d);
    if (s) {
        fl_curve_free(curves.time_ratio);
        fl_curve_free(curves.power_w);
    }
    return s;
}

static fl_status head_error(const char *file, const fl_sweep *s, const char *key, double *pct, fl_diag *d) {
    const char *text = fl_head_get(&s->head, key);
    char *end = NULL;
    *pct = NAN;
    if (!text)
        return FL_OK;
    *pct = strtod(text, &end);
    if (end == text || *end || !(*pct >= 0) || isinf(*pct))
        return fl_fail(d, FL_BAD_INPUT, file, 0, 0, "head: %s is '%s', expected an error in percent", key, text);
    return FL_OK;
}

/* Of the law, of the rows themselves where `fit workload` predicted them (its head says how well), or of both. */
static fl_status set_errors(fl_workload *w, const char *file, const fl_sweep *s, fl_sweep_model model,
                            const fl_errors *err, fl_diag *d) {
    double time = 0, power = 0;
    fl_status status = head_error(file, s, "model_time_mape_pct", &time, d);
    if (!status)
        status = head_error(file, s, "model_power_mape_pct", &power, d);
    if (status)
        return status;
    const bool law = model == FL_SWEEP_LAW && err->weight > 0;
    if (law) {
        time = hypot(err->time / err->weight, isnan(time) ? 0 : time);
        power = hypot(err->power / err->weight, isnan(power) ? 0 : power);
    }
    w->model_time_mape_pct = time;
    w->model_power_mape_pct = power;
    return FL_OK;
}

static int64_t line_at(const fl_sweep *s, uint32_t name, double mem) {
    for (size_t i = 0; i < s->row_count; i++)
        if (s->rows[i].workload == name && s->rows[i].mem_mhz == mem)
            return s->rows[i].line;
    return 0;
}

fl_status fl_build_sweep(fl_workload **out, const char *file, const fl_sweep *s, uint32_t name, fl_sweep_model model,
                         uint32_t repeat, const fl_node_spec *node, uint32_t windows, fl_diag *d) {
    const fl_device *dev = &node->device[node->gpu[0]];
    double mem = memory_clock(s, name, dev->default_mem_mhz), cap = highest_cap(s, name);
    if (!isnan(mem) && fl_ladder_index(dev->mem_mhz, dev->mem_count, mem) < 0)
        return fl_fail(d, FL_BAD_INPUT, file, line_at(s, name, mem), 0,
                       "%s was measured at memory clock %g MHz, expected one of %s: %d%s%d MHz", s->names[name], mem,
                       node->name, dev->mem_mhz[0], dev->mem_count > 2 ? " .. " : " or ",
                       dev->mem_mhz[dev->mem_count - 1]);
    fl_workload *w;
    fl_status status = fl_workload_new(&w, s->names[name], d);
    if (status)
        return status;
    fl_points *p = malloc(sizeof *p);
    bool *done = calloc(s->name_count + 1, sizeof *done);
    uint32_t stream = 0, *id = calloc(s->name_count + 1, sizeof *id);
    int64_t *work = calloc(s->name_count + 1, sizeof *work);
    size_t kernels = 0;
    fl_errors err = {0};
    if (!p || !done || !id || !work)
        status = fl_no_memory(d, "the sweep");
    else
        status = fl_workload_add_stream(w, 0, 0, 0, &stream, d);
    for (size_t i = 0; !status && i < s->row_count; i++) {
        uint32_t kernel = s->rows[i].kernel;
        if (s->rows[i].workload != name || done[kernel])
            continue;
        done[kernel] = true;
        status = collect(file, s, name, kernel, mem, cap, dev->default_mem_mhz, p, d);
        if (status || !p->count)
            continue;
        const char *label = s->names[kernel][0] ? s->names[kernel] : s->names[name];
        status = add_kernel(w, label, p, model, dev, &id[kernels], &err, d);
        work[kernels++] = (int64_t)(p->point[p->count - 1].time_s * 1e9 + 0.5);
        w->sm_min_mhz = fmax(w->sm_min_mhz, p->point[0].sm_mhz);
        w->sm_max_mhz = fmin(w->sm_max_mhz, p->point[p->count - 1].sm_mhz);
    }
    for (uint32_t r = 0; r < repeat; r++)
        for (size_t k = 0; !status && k < kernels; k++)
            status = add_ops(w, stream, id[k], work[k], d);
    if (!status)
        status = set_errors(w, file, s, model, &err, d);
    if (!status)
        status = fl_workload_finish(w, windows, d);
    free(p);
    free(done);
    free(id);
    free(work);
    if (status)
        fl_workload_free(w);
    else
        *out = w;
    return status;
}
