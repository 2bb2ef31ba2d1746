/* The model of the power capping policies, fitted to sweeps in two steps. */
#include "harness/fit/policy/inside.h"

#include "harness/base/work/work.h"
#include "harness/input/scene/scene.h"
#include "models/fit/fit.h"
#include "models/laws/device.h"
#include "models/math/math.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The parts of a run that Eq. 1 distinguishes; in a sweep the column kernel names the part of a row. power_w is the
 * node power above P_static during the part, time_s the part's length in the whole run. sm_mhz is the clock of the
 * active processor: the GPU's in rows "gpu", the CPU's in rows "cpu". The row "static" holds P_static: the node at
 * rest, less its idle board. */
#define FL_CAPPING_GPU "gpu"
#define FL_CAPPING_CPU "cpu"
#define FL_CAPPING_COMM "comm"
#define FL_CAPPING_STATIC "static"
/* Workloads that are not applications: the benchmarks of step one and those of the "preliminary power measurement". */
#define FL_CAPPING_MEMORY "memory-bound"
#define FL_CAPPING_COMPUTE "compute-bound"
#define FL_CAPPING_CPU_MEMORY "cpu-memory-bound"
#define FL_CAPPING_CPU_COMPUTE "cpu-compute-bound"
#define FL_CAPPING_REST "rest"
#define FL_CAPPING_COPIES "copies"

/* ---- the runs that the model is fitted to ---- */

#define PIECE_NS 1000000
#define PURE 0.99    /* a piece belongs to a part that fills at least this share of it */
#define LEAST_S 1e-3 /* parts shorter than this in the whole run are ignored */

enum { GPU, CPU, COMM, PARTS };

typedef struct watcher {
    const fl_workload *w;
    int64_t last_ps, busy_ps, copy_ps;
    fl_wide node_fj, board_fj;
    fl_wide part_fj[PARTS], part_board_fj[PARTS];
    int64_t part_ps[PARTS];
} watcher;

static int64_t copying_ps(const fl_node *node, const fl_workload *w) {
    int64_t ps = 0;
    for (uint32_t i = 0; i < fl_node_gpu_count(node); i++) {
        const fl_gpu *g = fl_node_gpu(node, i);
        for (uint32_t k = 0; k < g->slot_count; k++)
            for (uint32_t c = 0; c < w->class_count; c++)
                ps += w->class[c].copy ? g->slot[k].class_ps[c] : 0;
    }
    return ps;
}

static fl_status on_truth(void *user, const fl_node *node, int64_t t, fl_diag *d) {
    watcher *r = user;
    int64_t busy = 0;
    fl_wide board = 0;
    (void)d;
    for (uint32_t i = 0; i < fl_node_gpu_count(node); i++) {
        busy += fl_node_gpu(node, i)->sums.busy_ps;
        board += fl_node_gpu(node, i)->sums.energy_fj;
    }
    const int64_t copy = copying_ps(node, r->w), dt = t - r->last_ps;
    const fl_wide all = fl_node_energy_fj(node);
    const double of_gpu = dt ? (double)(busy - r->busy_ps) / (double)dt : 0,
                 of_comm = dt ? (double)(copy - r->copy_ps) / (double)dt : 0;
    const int part = of_gpu >= PURE ? GPU : of_comm >= PURE ? COMM : of_gpu + of_comm <= 1 - PURE ? CPU : PARTS;
    if (dt && part < PARTS) {
        r->part_ps[part] += dt;
        r->part_fj[part] += all - r->node_fj;
        r->part_board_fj[part] += board - r->board_fj;
    }
    r->last_ps = t;
    r->busy_ps = busy;
    r->copy_ps = copy;
    r->node_fj = all;
    r->board_fj = board;
    return FL_OK;
}

typedef struct parts {                                   /* of one run */
    double time_s[PARTS], node_w[PARTS], board_w[PARTS]; /* NAN where no piece shows it */
} parts;

static fl_status measure(fl_scene *s, double sm_mhz, double cpu_mhz, parts *out, fl_diag *d) {
    fl_node_spec spec = s->platform.node;
    watcher r = {.w = s->w};
    fl_run_result result;
    if (cpu_mhz > 0)
        spec.host.cpu.default_mhz = cpu_mhz;
    const fl_run_options o = {.w = s->w,
                              .rates = s->rates,
                              .spec = &spec,
                              .facts = &s->facts,
                              .first_sm_mhz = sm_mhz,
                              .classes = true,
                              .on_truth = on_truth,
                              .truth_ns = PIECE_NS,
                              .user = &r};
    fl_status status = fl_run(&o, &result, d);
    if (status)
        return status;
    *out = (parts){.time_s = {[CPU] = result.makespan_s}};
    for (uint32_t c = 0; c < result.class_count; c++) {
        out->time_s[s->w->class[c].copy ? COMM : GPU] += result.class_time_s[c];
        out->time_s[CPU] -= result.class_time_s[c];
    }
    for (int k = 0; k < PARTS; k++) {
        out->node_w[k] = r.part_ps[k] ? (double)r.part_fj[k] / (double)r.part_ps[k] * 1e-3 : (double)NAN;
        out->board_w[k] = r.part_ps[k] ? (double)r.part_board_fj[k] / (double)r.part_ps[k] * 1e-3 : (double)NAN;
    }
    fl_run_result_free(&result);
    return FL_OK;
}

static uint32_t name_of(fl_sweep *s, const char *name) {
    for (size_t i = 0; i < s->name_count; i++)
        if (!strcmp(s->names[i], name))
            return (uint32_t)i;
    fl_must_grow(&s->names, &s->name_room, s->name_count + 1, sizeof *s->names);
    s->names[s->name_count] = fl_must(strdup(name));
    return (uint32_t)s->name_count++;
}

static void add_row(fl_sweep *s, const char *workload, const char *part, double mhz, double mem_mhz, double time_s,
                    double power_w) {
    if (!(time_s > LEAST_S) || !(power_w > 0))
        return;
    const fl_sweep_row row = {.workload = name_of(s, workload),
                              .kernel = name_of(s, part),
                              .sm_mhz = mhz,
                              .mem_mhz = mem_mhz,
                              .power_cap_w = (double)NAN,
                              .time_s = time_s,
                              .power_w = power_w,
                              .energy_j = time_s * power_w,
                              .energy_cv = (double)NAN,
                              .ratio = (double)NAN,
                              .ratio_cv = (double)NAN};
    fl_must_grow(&s->rows, &s->row_room, s->row_count + 1, sizeof row);
    s->rows[s->row_count++] = row;
}

static fl_status measure_scene(fl_scene *s, double static_w, fl_sweep *out, fl_diag *d) {
    const fl_device *dev = &s->platform.node.device[s->platform.node.gpu[0]];
    const fl_cpu_spec *cpu = &s->platform.node.host.cpu;
    const char *name = s->w->name;
    fl_status status = FL_OK;
    parts p = {0};
    for (uint32_t i = 0; !status && i < dev->sm_count; i++) {
        status = measure(s, dev->sm_mhz[i], 0, &p, d);
        if (!status)
            add_row(out, name, FL_CAPPING_GPU, dev->sm_mhz[i], dev->default_mem_mhz, p.time_s[GPU],
                    p.node_w[GPU] - static_w);
    }
    if (!status) /* for copies: the run at the highest SM clock, which was the last */
        add_row(out, name, FL_CAPPING_COMM, (double)NAN, (double)NAN, p.time_s[COMM], p.node_w[COMM] - static_w);
    for (uint32_t i = 0; !status && i < cpu->count; i++) {
        status = measure(s, dev->sm_mhz[dev->sm_count - 1], cpu->mhz[i], &p, d);
        if (!status)
            add_row(out, name, FL_CAPPING_CPU, cpu->mhz[i], (double)NAN, p.time_s[CPU], p.node_w[CPU] - static_w);
    }
    return status;
}

/* The node at rest, less its idle board: the remaining power belongs to no part. */
static fl_status measure_static(const fl_scenes *scenes, double *static_w, fl_sweep *out, fl_diag *d) {
    parts p;
    for (size_t i = 0; i < scenes->count; i++) {
        if (strcmp(scenes->item[i]->w->name, FL_CAPPING_REST) != 0)
            continue;
        const fl_status s = measure(scenes->item[i], 0, 0, &p, d);
        *static_w = p.node_w[CPU] - p.board_w[CPU];
        if (!s)
            add_row(out, FL_CAPPING_REST, FL_CAPPING_STATIC, (double)NAN, (double)NAN, p.time_s[CPU], *static_w);
        return s;
    }
    return fl_refuse(d, "no workload '%s', expected one that keeps the node at rest: P_static", FL_CAPPING_REST);
}

fl_status fl_capping_measure(const fl_scenes *scenes, fl_sweep *out, fl_diag *d) {
    double static_w = (double)NAN;
    *out = (fl_sweep){0};
    fl_status s = measure_static(scenes, &static_w, out, d);
    for (size_t i = 0; !s && i < scenes->count; i++)
        if (strcmp(scenes->item[i]->w->name, FL_CAPPING_REST) != 0)
            s = measure_scene(scenes->item[i], static_w, out, d);
    if (s)
        fl_sweep_free(out);
    return s;
}

/* ---- the model ---- */

const char *const fl_capping_part[2] = {FL_CAPPING_GPU, FL_CAPPING_CPU};
static const char *const benchmark[2][2] = {{FL_CAPPING_MEMORY, FL_CAPPING_COMPUTE},
                                            {FL_CAPPING_CPU_MEMORY, FL_CAPPING_CPU_COMPUTE}};

/* ---- the sweep ---- */

static void points_free(fl_capping_points *p) {
    free(p->mhz);
    free(p->time_s);
    free(p->power_w);
    *p = (fl_capping_points){0};
}

static fl_status points_insert(fl_capping_points *p, const fl_capping *c, const fl_sweep_row *r, fl_diag *d) {
    if (isnan(r->sm_mhz))
        return fl_fail(d, FL_BAD_INPUT, c->path, r->line, 0, "no sm_mhz, expected the clock of the processor at work");
    const size_t n = p->count + 1;
    size_t i = p->count;
    p->mhz = fl_must(realloc(p->mhz, n * sizeof *p->mhz));
    p->time_s = fl_must(realloc(p->time_s, n * sizeof *p->time_s));
    p->power_w = fl_must(realloc(p->power_w, n * sizeof *p->power_w));
    for (; i > 0 && p->mhz[i - 1] >= r->sm_mhz; i--) {
        if (p->mhz[i - 1] == r->sm_mhz)
            return fl_fail(d, FL_BAD_INPUT, c->path, r->line, 0, "%s at %g MHz twice, expected one row",
                           c->sweep.names[r->workload], r->sm_mhz);
        p->mhz[i] = p->mhz[i - 1];
        p->time_s[i] = p->time_s[i - 1];
        p->power_w[i] = p->power_w[i - 1];
    }
    p->mhz[i] = r->sm_mhz;
    p->time_s[i] = r->time_s;
    p->power_w[i] = r->power_w;
    p->count = n;
    return FL_OK;
}

static bool is_row(const fl_capping *c, const fl_sweep_row *r, const char *workload, const char *part) {
    return (!workload || !strcmp(c->sweep.names[r->workload], workload)) && !strcmp(c->sweep.names[r->kernel], part);
}

static fl_status take_rows(const fl_capping *c, const char *workload, const char *part, fl_capping_points *p,
                           fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < c->sweep.row_count; i++)
        if (is_row(c, &c->sweep.rows[i], workload, part))
            s = points_insert(p, c, &c->sweep.rows[i], d);
    return s;
}

static bool is_application(const char *name) {
    static const char *const others[] = {FL_CAPPING_MEMORY,      FL_CAPPING_COMPUTE, FL_CAPPING_CPU_MEMORY,
                                         FL_CAPPING_CPU_COMPUTE, FL_CAPPING_REST,    FL_CAPPING_COPIES};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(name, others[i]))
            return false;
    return true;
}

/* ---- step one ---- */

static fl_status fit_chip(fl_capping *c, int k, fl_diag *d) {
    fl_capping_processor *chip = &c->chip[k];
    fl_capping_points p[2] = {0};
    fl_status s = take_rows(c, benchmark[k][0], fl_capping_part[k], &p[0], d);
    if (!s)
        s = take_rows(c, benchmark[k][1], fl_capping_part[k], &p[1], d);
    const size_t n = p[0].count;
    bool same = n == p[1].count;
    for (size_t i = 0; same && i < n; i++)
        same = p[0].mhz[i] == p[1].mhz[i];
    if (!s && k && !n && !p[1].count) {
        /* the CPU was not measured, so its clock is left alone */
    } else if (!s && (!same || n < 2)) {
        s = fl_fail(d, FL_BAD_INPUT, c->path, 0, 0, "%zu clocks of %s and %zu of %s, expected the same, two or more", n,
                    benchmark[k][0], p[1].count, benchmark[k][1]);
    } else if (!s) {
        chip->volt = fl_must(calloc(n, sizeof *chip->volt));
        chip->mhz = p[0].mhz;
        chip->count = n;
        p[0].mhz = NULL;
        const fl_model_status m = fl_fit_capping_chip(chip->mhz, n, p[0].power_w, p[1].power_w, chip->volt, &chip->fit);
        if (m)
            s = fl_fail(d, FL_BAD_INPUT, c->path, 0, 0, "%s and %s: %s", benchmark[k][0], benchmark[k][1],
                        fl_model_text(m));
    }
    points_free(&p[0]);
    points_free(&p[1]);
    return s;
}

static fl_status fit_node(fl_capping *c, fl_diag *d) {
    double comm_j = 0, comm_s = 0;
    c->static_w = (double)NAN;
    for (size_t i = 0; i < c->sweep.row_count; i++) {
        const fl_sweep_row *r = &c->sweep.rows[i];
        if (is_row(c, r, NULL, FL_CAPPING_STATIC))
            c->static_w = r->power_w;
        if (is_row(c, r, NULL, FL_CAPPING_COMM)) {
            comm_j += r->energy_j;
            comm_s += r->time_s;
        }
    }
    c->comm_w = comm_s > 0 ? comm_j / comm_s : 0;
    if (isnan(c->static_w))
        return fl_fail(d, FL_BAD_INPUT, c->path, 0, 0,
                       "no row whose kernel is static, expected one: it states P_static");
    fl_status s = fit_chip(c, 0, d);
    return s ? s : fit_chip(c, 1, d);
}

/* ---- step two ---- */

static double volt_at(const fl_capping_processor *chip, double mhz) { /* NAN for a clock that step one did not see */
    for (size_t i = 0; i < chip->count; i++)
        if (chip->mhz[i] == mhz)
            return chip->volt[i];
    return (double)NAN;
}

static fl_status fit_app(const fl_capping *c, fl_capping_application *a, fl_diag *d) {
    for (size_t i = 0; i < c->sweep.row_count; i++)
        if (is_row(c, &c->sweep.rows[i], a->name, FL_CAPPING_COMM))
            a->comm_s = c->sweep.rows[i].time_s;
    for (int k = 0; k < 2; k++) {
        const fl_capping_processor *chip = &c->chip[k];
        fl_capping_points *p = &a->at[k];
        fl_status s = take_rows(c, a->name, fl_capping_part[k], p, d);
        if (s)
            return s;
        if (k && (!chip->count || !p->count))
            continue;
        if (p->count < 2 || p->mhz[0] != chip->mhz[0] || p->mhz[p->count - 1] != chip->mhz[chip->count - 1])
            return fl_fail(
                d, FL_BAD_INPUT, c->path, 0, 0,
                "%s: no rows of %s at both %g and %g MHz, expected a run at the lowest and the highest clock", a->name,
                fl_capping_part[k], chip->mhz[0], chip->mhz[chip->count - 1]);
        const size_t last = p->count - 1;
        const fl_model_status m = fl_fit_capping_app(&chip->fit, p->mhz[0], p->power_w[0], p->mhz[last],
                                                     chip->volt[chip->count - 1], p->power_w[last], &a->fit[k]);
        if (m)
            return fl_fail(d, FL_BAD_INPUT, c->path, 0, 0, "%s: %s", a->name, fl_model_text(m));
    }
    return FL_OK;
}

static fl_status fit_apps(fl_capping *c, fl_diag *d) {
    c->app = fl_must(calloc(c->sweep.name_count + 1, sizeof *c->app));
    fl_status s = FL_OK;
    for (size_t n = 0; !s && n < c->sweep.name_count; n++)
        for (size_t i = 0; i < c->sweep.row_count; i++)
            if (c->sweep.rows[i].workload == n && is_application(c->sweep.names[n])) {
                fl_capping_application *a = &c->app[c->app_count++];
                a->name = c->sweep.names[n];
                s = fit_app(c, a, d);
                break;
            }
    return !s && !c->app_count
               ? fl_fail(d, FL_BAD_INPUT, c->path, 0, 0, "no application, expected a workload beside the benchmarks")
               : s;
}

fl_status fl_capping_fit(fl_capping *c, fl_diag *d) {
    fl_status s = fit_node(c, d);
    return s ? s : fit_apps(c, d);
}

/* ---- results ---- */

static void write_quantity(FILE *f, const char *quantity, double mhz, double value, const char *from) {
    fprintf(f, "%s,%g,%.6g,%s\n", quantity, mhz, value, from);
}

static void put_side(FILE *f, const fl_capping_processor *chip, const fl_capping_application *a, int k) {
    static const char *const names[2][7] = {
        {"gpu.volt", "gpu.a_w", "gpu.b_w", "gpu.c_w", "gpu.alpha", "gpu.beta", "gpu.time_s"},
        {"cpu.volt", "cpu.a_w", "cpu.b_w", "cpu.c_w", "cpu.alpha", "cpu.beta", "cpu.time_s"}};
    const fl_capping_points *p = &a->at[k];
    char from[128];
    if (!chip->count || p->count < 2)
        return;
    snprintf(from, sizeof from, "%s and %s", benchmark[k][0], benchmark[k][1]);
    for (size_t i = 0; i < chip->count; i++)
        write_quantity(f, names[k][0], chip->mhz[i], chip->volt[i], from);
    write_quantity(f, names[k][1], 0, chip->fit.a_w, from);
    write_quantity(f, names[k][2], 0, chip->fit.b_w, from);
    write_quantity(f, names[k][3], 0, chip->fit.c_w, from);
    snprintf(from, sizeof from, "%s at %g and %g MHz", a->name, p->mhz[0], p->mhz[p->count - 1]);
    write_quantity(f, names[k][4], 0, a->fit[k].alpha, from);
    write_quantity(f, names[k][5], 0, a->fit[k].beta, from);
    write_quantity(f, names[k][6], p->mhz[0], p->time_s[0], from);
    write_quantity(f, names[k][6], p->mhz[p->count - 1], p->time_s[p->count - 1], from);
}

fl_status fl_capping_write(const fl_capping *c, const fl_capping_application *a, const char *prefix, fl_diag *d) {
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s.%s.csv", prefix, a->name) >= sizeof path)
        return fl_fail(d, FL_BAD_INPUT, prefix, 0, 0, "the path is too long");
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d->status;
    FILE *f = fl_output_file(o);
    fputs("quantity,mhz,value,from\n", f);
    write_quantity(f, "static_w", 0, c->static_w, FL_CAPPING_REST);
    write_quantity(f, "comm_w", 0, c->comm_w, FL_CAPPING_COMM);
    write_quantity(f, "comm_s", 0, a->comm_s, a->name);
    for (int k = 0; k < 2; k++)
        put_side(f, &c->chip[k], a, k);
    return fl_output_commit(o, d);
}

void fl_capping_errors(const fl_capping *c, const fl_capping_application *a, int processor, double *power_w,
                       double *time_pct) {
    const fl_capping_processor *chip = &c->chip[processor];
    const fl_capping_points *p = &a->at[processor];
    *power_w = *time_pct = p->count > 2 ? 0 : (double)NAN;
    for (size_t i = 1; i + 1 < p->count; i++) {
        const double v = volt_at(chip, p->mhz[i]),
                     w = fl_capping_power(&chip->fit, a->fit[processor].alpha, a->fit[processor].beta, p->mhz[i], v) -
                         p->power_w[i],
                     t = fl_capping_time(p->mhz[0], p->time_s[0], p->time_s[p->count - 1], p->mhz[i]) / p->time_s[i];
        if (!isnan(w) && fabs(w) > fabs(*power_w))
            *power_w = w;
        if (fabs(100 * (t - 1)) > fabs(*time_pct))
            *time_pct = 100 * (t - 1);
    }
}

void fl_capping_free(fl_capping *c) {
    for (int k = 0; k < 2; k++) {
        free(c->chip[k].mhz);
        free(c->chip[k].volt);
    }
    for (size_t i = 0; i < c->app_count; i++)
        for (int k = 0; k < 2; k++)
            points_free(&c->app[i].at[k]);
    free(c->app);
    fl_sweep_free(&c->sweep);
    *c = (fl_capping){0};
}
