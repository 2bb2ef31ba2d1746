#include "harness/fit/policy/capping_sweep.h"

#include "sim/node/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    if (fl_grow(&s->names, &s->name_room, s->name_count + 1, sizeof *s->names) ||
        !(s->names[s->name_count] = strdup(name)))
        return UINT32_MAX;
    return (uint32_t)s->name_count++;
}

static fl_status add_row(fl_sweep *s, const char *workload, const char *part, double mhz, double mem_mhz, double time_s,
                         double power_w, fl_diag *d) {
    if (!(time_s > LEAST_S) || !(power_w > 0))
        return FL_OK;
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
    if (row.workload == UINT32_MAX || row.kernel == UINT32_MAX ||
        fl_grow(&s->rows, &s->row_room, s->row_count + 1, sizeof row))
        return fl_no_memory(d, "the sweep");
    s->rows[s->row_count++] = row;
    return FL_OK;
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
            status = add_row(out, name, FL_CAPPING_GPU, dev->sm_mhz[i], dev->default_mem_mhz, p.time_s[GPU],
                             p.node_w[GPU] - static_w, d);
    }
    if (!status) /* for copies: the run at the highest SM clock, which was the last */
        status =
            add_row(out, name, FL_CAPPING_COMM, (double)NAN, (double)NAN, p.time_s[COMM], p.node_w[COMM] - static_w, d);
    for (uint32_t i = 0; !status && i < cpu->count; i++) {
        status = measure(s, dev->sm_mhz[dev->sm_count - 1], cpu->mhz[i], &p, d);
        if (!status)
            status = add_row(out, name, FL_CAPPING_CPU, cpu->mhz[i], (double)NAN, p.time_s[CPU],
                             p.node_w[CPU] - static_w, d);
    }
    return status;
}

/* The node at rest, less its idle board: the remaining power belongs to no part. */
static fl_status measure_static(const fl_scenes *scenes, double *static_w, fl_sweep *out, fl_diag *d) {
    parts p;
    for (size_t i = 0; i < scenes->count; i++) {
        if (strcmp(scenes->item[i]->w->name, FL_CAPPING_REST) != 0)
            continue;
        fl_status s = measure(scenes->item[i], 0, 0, &p, d);
        *static_w = p.node_w[CPU] - p.board_w[CPU];
        return s ? s
                 : add_row(out, FL_CAPPING_REST, FL_CAPPING_STATIC, (double)NAN, (double)NAN, p.time_s[CPU], *static_w,
                           d);
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
