/* Workloads of a sweep: kernels one after the other, cut into ops of about 10 ms, or of the length that the user
 * states. */
#include "sim/workload/inside.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- cutting into ops ---- */

#define OP_NS INT64_C(10000000)    /* length of an op where none is stated */
#define OPS_MAX INT64_C(100000000) /* of a kernel */

fl_sweep_ops fl_sweep_ops_of(fl_workload *w, const fl_sweep_replay *replay, uint32_t stream, const char *name) {
    return (fl_sweep_ops){.w = w,
                          .replay = replay,
                          .stream = stream,
                          .random = fl_random_seed(replay->seed, fl_hash(name, strlen(name))),
                          .spread = fl_spread_of(1, replay->jitter)};
}

fl_status fl_sweep_ops_marker(fl_sweep_ops *o, const fl_load *like, uint32_t *id, fl_diag *d) {
    const fl_load nothing = {.tl = 1, .ref_sm_mhz = like->ref_sm_mhz, .ref_mem_mhz = like->ref_mem_mhz};
    const fl_kernel_kind kind = {.name = "iteration", .grid = {1, 1, 1}, .block = {1, 1, 1}};
    const fl_status s = fl_workload_add_class(o->w, &nothing, &kind, id, d);
    if (!s)
        o->w->class[*id].iteration = true;
    return s;
}

static int64_t at_least_one(int64_t n) { return n < 1 ? 1 : n; }

/* How many ops one iteration has, and the kernel in all. op_ns: length of an op, 0 if none is stated. */
static int64_t cut(int64_t total, int64_t op_ns, int64_t iteration_ns, int64_t *each) {
    const int64_t most = op_ns ? OPS_MAX : 1000000, least = op_ns ? 1 : 100;
    int64_t n = (total + op_ns / 2) / (op_ns ? op_ns : OP_NS);
    n = n < least ? least : n > most ? most : n;
    *each = n + 1; /* none ends */
    if (!iteration_ns)
        return n;
    int64_t iterations = at_least_one((total + iteration_ns / 2) / iteration_ns);
    iterations = iterations > n ? n : iterations;
    *each = at_least_one((n + iterations / 2) / iterations);
    return *each * iterations;
}

fl_status fl_sweep_ops_add(fl_sweep_ops *o, uint32_t class_id, uint32_t marker, int64_t total, fl_diag *d) {
    int64_t each;
    const int64_t n = cut(total, o->replay->op_ns, o->replay->iteration_ns, &each);
    fl_status s = FL_OK;
    for (int64_t i = 0; !s && i < n; i++) {
        const int64_t from = (int64_t)((fl_uwide)(uint64_t)total * (uint64_t)i / (uint64_t)n);
        int64_t work = (int64_t)((fl_uwide)(uint64_t)total * (uint64_t)(i + 1) / (uint64_t)n) - from;
        if (o->replay->jitter > 0)
            work = at_least_one((int64_t)((double)work * fl_spread_draw(&o->spread, &o->random) + 0.5));
        s = fl_workload_add_op(o->w, o->stream, 0, work, class_id, d);
        if (!s && (i + 1) % each == 0)
            s = fl_workload_add_op(o->w, o->stream, 0, 0, marker, d);
    }
    return s;
}

/* Measured settings become workloads: what was one number per clock is replayed as ops of about 10 ms, so that a policy
 * can change clocks within it. */

enum { POINTS_MAX = 4096 };
_Static_assert((int)FL_READINGS == (int)FL_UTILS, "a reading for each column");

typedef struct fl_point {
    double sm_mhz, mem_mhz, time_s, power_w;
    double util[FL_READINGS]; /* NAN = not measured */
} fl_point;

typedef struct fl_points { /* settings of one kernel of the workload, ascending clocks, one each */
    fl_point point[POINTS_MAX];
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
    double x = ((const fl_point *)a)->sm_mhz, y = ((const fl_point *)b)->sm_mhz;
    return x < y ? -1 : x > y;
}

/* The mean of one number of the points, where they have it; NAN where none has. */
static double mean_of(const fl_point *p, size_t count, size_t offset) {
    double sum = 0, n = 0;
    for (size_t i = 0; i < count; i++) {
        const double *value = (const void *)((const char *)&p[i] + offset);
        if (!isnan(*value))
            sum += *value, n++;
    }
    return n > 0 ? sum / n : (double)NAN;
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
        fl_point *new = &p->point[p->count++];
        *new = (fl_point){r->sm_mhz, isnan(mem) ? default_mem : mem, r->time_s, r->energy_j / r->time_s, {0}};
        for (size_t u = 0; u < FL_READINGS; u++)
            new->util[u] = s->util ? s->util[i * FL_UTILS + u] : (double)NAN;
    }
    qsort(p->point, p->count, sizeof *p->point, by_clock);
    size_t n = 0;
    for (size_t i = 0; i < p->count;) {
        fl_point sum = p->point[i];
        size_t k = i + 1;
        while (k < p->count && p->point[k].sm_mhz == sum.sm_mhz)
            k++;
        sum.time_s = mean_of(&p->point[i], k - i, offsetof(fl_point, time_s));
        sum.power_w = mean_of(&p->point[i], k - i, offsetof(fl_point, power_w));
        for (size_t u = 0; u < FL_READINGS; u++)
            sum.util[u] = mean_of(&p->point[i], k - i, offsetof(fl_point, util) + u * sizeof(double));
        p->point[n++] = sum;
        i = k;
    }
    p->count = n;
    return FL_OK;
}

/* One curve of what the points have. */
static fl_model_status make_reading(const fl_points *p, fl_reading_kind kind, double *x, double *y, fl_curve **out) {
    size_t n = 0;
    for (size_t i = 0; i < p->count; i++)
        if (!isnan(p->point[i].util[kind])) {
            x[n] = p->point[i].sm_mhz;
            y[n++] = p->point[i].util[kind];
        }
    return n ? fl_curve_new(out, x, y, n) : FL_MODEL_OK;
}

/* ref_s: time at the reference. */
static fl_status make_curves(const fl_points *p, double ref_s, fl_measured *m, fl_diag *d) {
    double *x = malloc(p->count * sizeof *x), *t = malloc(p->count * sizeof *t), *w = malloc(p->count * sizeof *w);
    fl_model_status s = x && t && w ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    for (size_t i = 0; s == FL_MODEL_OK && i < p->count; i++) {
        x[i] = p->point[i].sm_mhz;
        t[i] = p->point[i].time_s / ref_s;
        w[i] = p->point[i].power_w;
    }
    if (s == FL_MODEL_OK)
        s = fl_curve_new(&m->time_ratio, x, t, p->count);
    if (s == FL_MODEL_OK)
        s = fl_curve_new(&m->power_w, x, w, p->count);
    for (int i = 0; s == FL_MODEL_OK && i < FL_READINGS; i++)
        s = make_reading(p, (fl_reading_kind)i, x, t, &m->util[i]);
    m->ref_s = ref_s;
    free(x);
    free(t);
    free(w);
    m->mem_mhz = p->point[0].mem_mhz;
    return s == FL_MODEL_OK ? FL_OK
                            : fl_error(d, s == FL_MODEL_NO_MEMORY ? FL_NO_MEMORY : FL_BAD_INPUT,
                                       "settings of a sweep: %s", fl_model_text(s));
}

/* One kernel of the workload, and where its rows are from. */
typedef struct fl_kernel_rows {
    const char *file;
    const fl_sweep *s;
    uint32_t name, kernel;
    double mem, cap, default_mem;
    const double *other; /* memory clocks beside mem, each once */
    size_t other_count;
} fl_kernel_rows;

/* Append the curves at the other memory clocks of the workload. */
static fl_status add_memories(const fl_kernel_rows *k, double ref_s, fl_points *p, fl_measured *first, fl_diag *d) {
    fl_status status = FL_OK;
    fl_measured **end = &first->next;
    for (size_t i = 0; !status && i < k->other_count; i++) {
        status = collect(k->file, k->s, k->name, k->kernel, k->other[i], k->cap, k->default_mem, p, d);
        if (status || !p->count)
            continue;
        *end = calloc(1, sizeof **end);
        status = *end ? make_curves(p, ref_s, *end, d) : fl_no_memory(d, "the sweep");
        end = *end ? &(*end)->next : end;
    }
    return status;
}

/* The highest setting at which the kernel is known. */
static const fl_point *reference(const fl_points *p, const fl_sweep_law *law) {
    size_t i = p->count - 1;
    while (i > 0 && law && law->predicted && p->point[i].sm_mhz > law->sm_max_mhz)
        i--;
    return &p->point[i];
}

/* Time and power are the rows'. What share of the time is the memory's, which the rows do not say, is the law's. */
static fl_load terms_of(fl_workload *w, const fl_sweep_law *law, uint32_t kernel, const fl_point *ref) {
    fl_load load = law && law->load ? law->load[kernel] : (fl_load){0};
    if (!(load.tc + load.tm + load.tl > 0)) {
        load = (fl_load){.tc = 1};
        w->assumed = true;
    } else {
        load.tc *= load.ref_sm_mhz / ref->sm_mhz;
        load.tm *= load.ref_mem_mhz / ref->mem_mhz;
    }
    load.sm_demand = 1;
    load.ref_sm_mhz = ref->sm_mhz;
    load.ref_mem_mhz = ref->mem_mhz;
    return load;
}

static fl_status add_kernel(fl_workload *w, const fl_kernel_rows *k, fl_points *p, const fl_sweep_law *law,
                            fl_point *ref, uint32_t *id, fl_diag *d) {
    const char *label = k->s->names[k->kernel][0] ? k->s->names[k->kernel] : k->s->names[k->name];
    const fl_kernel_kind kind = {.name = label, .grid = {1, 1, 1}, .block = {1, 1, 1}};
    fl_measured curves = {0};
    *ref = *reference(p, law);
    fl_load load = terms_of(w, law, k->kernel, ref);
    fl_status s = make_curves(p, ref->time_s, &curves, d);
    if (!s)
        s = add_memories(k, ref->time_s, p, &curves, d);
    load.measured = &curves;
    if (!s)
        s = fl_workload_add_class(w, &load, &kind, id, d);
    if (s)
        fl_measured_free(&curves);
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
static fl_status set_errors(fl_workload *w, const char *file, const fl_sweep *s, const fl_sweep_law *law, fl_diag *d) {
    double time = 0, power = 0;
    fl_status status = head_error(file, s, "model_time_mape_pct", &time, d);
    if (!status)
        status = head_error(file, s, "model_power_mape_pct", &power, d);
    if (status)
        return status;
    if (law && law->predicted && !isnan(law->time_pct)) {
        time = hypot(law->time_pct, isnan(time) ? 0 : time);
        power = hypot(law->power_pct, isnan(power) ? 0 : power);
    }
    w->model_time_mape_pct = time;
    w->model_power_mape_pct = power;
    return FL_OK;
}

static const fl_sweep_row *row_at(const fl_sweep *s, uint32_t name, double mem) {
    for (size_t i = 0; i < s->row_count; i++)
        if (s->rows[i].workload == name && s->rows[i].mem_mhz == mem)
            return &s->rows[i];
    return NULL;
}

/* The kernels of the workload, each once. */
static size_t find_kernels(const fl_sweep *s, uint32_t name, uint32_t *kernel, bool *done) {
    size_t count = 0;
    for (size_t i = 0; i < s->row_count; i++)
        if (s->rows[i].workload == name && !done[s->rows[i].kernel]) {
            done[s->rows[i].kernel] = true;
            kernel[count++] = s->rows[i].kernel;
        }
    return count;
}

/* The memory clocks of the workload beside k->mem that the board has, each once. */
static size_t find_memories(const fl_kernel_rows *k, const fl_device *dev, double *other) {
    size_t count = 0;
    for (uint32_t m = 0; m < dev->mem_count; m++)
        if (dev->mem_mhz[m] != k->mem && row_at(k->s, k->name, dev->mem_mhz[m]))
            other[count++] = dev->mem_mhz[m];
    return count;
}

/* Keep the other memory clocks at which every kernel was measured over all SM clocks of the replay. A ladder is one
 * list for all memory clocks, and a measured table is never extrapolated. */
static fl_status keep_covered(const fl_workload *w, fl_kernel_rows *k, double *other, const uint32_t *kernel,
                              size_t kernels, fl_points *p, fl_diag *d) {
    size_t kept = 0;
    for (size_t m = 0; m < k->other_count; m++) {
        bool covered = true;
        for (size_t i = 0; covered && i < kernels; i++) {
            const fl_status s = collect(k->file, k->s, k->name, kernel[i], other[m], k->cap, k->default_mem, p, d);
            if (s)
                return s;
            covered = p->count && p->point[0].sm_mhz <= w->sm_min_mhz && p->point[p->count - 1].sm_mhz >= w->sm_max_mhz;
        }
        if (covered)
            other[kept++] = other[m];
    }
    k->other_count = kept;
    return FL_OK;
}

/* Narrow the SM clocks of the workload to those that each of its kernels was measured at. Drop kernels without rows. */
static fl_status find_range(fl_workload *w, const fl_kernel_rows *k, uint32_t *kernel, size_t *kernels, fl_points *p,
                            fl_diag *d) {
    size_t kept = 0;
    for (size_t i = 0; i < *kernels; i++) {
        const fl_status s = collect(k->file, k->s, k->name, kernel[i], k->mem, k->cap, k->default_mem, p, d);
        if (s)
            return s;
        if (!p->count)
            continue;
        kernel[kept++] = kernel[i];
        if (w->measured) {
            w->sm_min_mhz = fmax(w->sm_min_mhz, p->point[0].sm_mhz);
            w->sm_max_mhz = fmin(w->sm_max_mhz, p->point[p->count - 1].sm_mhz);
        }
    }
    *kernels = kept;
    return FL_OK;
}

/* Add the kernels of the workload, each once, with the time that each takes at its reference. */
static fl_status add_kernels(fl_workload *w, fl_kernel_rows k, const fl_sweep_law *law, const fl_device *dev,
                             uint32_t *id, int64_t *work, size_t *kernels, fl_diag *d) {
    fl_points *p = malloc(sizeof *p);
    bool *done = calloc(k.s->name_count + 1, sizeof *done);
    double *other = malloc((dev->mem_count + 1) * sizeof *other);
    fl_status status = p && done && other ? FL_OK : fl_no_memory(d, "the sweep");
    if (!status) {
        *kernels = find_kernels(k.s, k.name, id, done);
        status = find_range(w, &k, id, kernels, p, d);
        k.other = other;
        k.other_count = find_memories(&k, dev, other);
    }
    if (!status && w->measured)
        status = keep_covered(w, &k, other, id, *kernels, p, d);
    for (size_t i = 0; !status && i < *kernels; i++) {
        fl_point ref;
        k.kernel = id[i];
        status = collect(k.file, k.s, k.name, k.kernel, k.mem, k.cap, k.default_mem, p, d);
        if (!status)
            status = add_kernel(w, &k, p, law, &ref, &id[i], d);
        if (!status)
            work[i] = (int64_t)(ref.time_s * 1e9 + 0.5);
    }
    free(p);
    free(done);
    free(other);
    return status;
}

/* The kernels one after the other, all of it as often as asked for. */
static fl_status replay_kernels(fl_workload *w, const fl_sweep_replay *replay, uint32_t stream, const char *name,
                                const uint32_t *id, const int64_t *work, size_t kernels, fl_diag *d) {
    fl_sweep_ops ops = fl_sweep_ops_of(w, replay, stream, name);
    uint32_t marker = 0;
    double once_s = 0;
    for (size_t k = 0; k < kernels; k++)
        once_s += (double)work[k] * 1e-9;
    fl_status status = once_s * replay->repeat * 1e12 <= (double)FL_TIME_END
                           ? FL_OK
                           : fl_refuse(d,
                                       "--repeat %u: so many runs of %g s take longer than 26 days, expected at most "
                                       "%.0f",
                                       replay->repeat, once_s, floor((double)FL_TIME_END / 1e12 / once_s));
    if (!status && replay->iteration_ns && kernels)
        status = fl_sweep_ops_marker(&ops, &w->class[id[0]].load, &marker, d);
    for (uint32_t r = 0; r < replay->repeat; r++)
        for (size_t k = 0; !status && k < kernels; k++)
            status = fl_sweep_ops_add(&ops, id[k], marker, work[k], d);
    return status;
}

fl_status fl_build_sweep(fl_workload **out, const char *file, const fl_sweep *s, uint32_t name, const fl_sweep_law *law,
                         const fl_sweep_replay *replay, const fl_node_spec *node, fl_diag *d) {
    const fl_device *dev = &node->device[node->gpu[0]];
    double mem = memory_clock(s, name, dev->default_mem_mhz), cap = highest_cap(s, name);
    char of[96], text[FL_OFF_LADDER_TEXT];
    (void)snprintf(of, sizeof of, "the memory ladder of %s", node->name);
    if (!isnan(mem) && fl_ladder_index(dev->mem_mhz, dev->mem_count, mem) < 0)
        return fl_fail(d, FL_BAD_INPUT, file, row_at(s, name, mem)->line, 0, "memory clock of %s: %s", s->names[name],
                       fl_off_ladder(mem, of, dev->mem_mhz, dev->mem_count, text));
    fl_workload *w;
    fl_status status = fl_workload_new(&w, s->names[name], d);
    if (status)
        return status;
    uint32_t stream = 0, *id = calloc(s->name_count + 1, sizeof *id);
    int64_t *work = calloc(s->name_count + 1, sizeof *work);
    size_t kernels = 0;
    w->predicted = law && law->predicted;
    w->measured = !w->predicted;
    if (w->predicted) {
        w->sm_min_mhz = law->sm_min_mhz;
        w->sm_max_mhz = law->sm_max_mhz;
    }
    status = id && work ? fl_workload_add_stream(w, 0, 0, 0, &stream, d) : fl_no_memory(d, "the sweep");
    const fl_kernel_rows rows = {file, s, name, 0, mem, cap, dev->default_mem_mhz, NULL, 0};
    if (!status)
        status = add_kernels(w, rows, law, dev, id, work, &kernels, d);
    if (!status)
        status = replay_kernels(w, replay, stream, s->names[name], id, work, kernels, d);
    if (!status)
        status = set_errors(w, file, s, law, d);
    if (!status)
        status = fl_workload_finish(w, replay->windows, d);
    free(id);
    free(work);
    if (status)
        fl_workload_free(w);
    else
        *out = w;
    return status;
}
