/* The program that a fit looks at, its boards, and what the parts of a fit ask of the plans. */
#include "harness/plan/inside.h"

#include "harness/base/work/work.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "sim/pipeline/pipeline.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FL_PF_WARM_UP 0.3 /* weight of a first plan at the top clocks: boards are colder then */

/* ---- the program ---- */

fl_status fl_pf_put(fl_pipeline *p, int32_t rank, fl_pipeline_what what, double mhz, double time_s, double power_w,
                    fl_diag *d) {
    const fl_pipeline_row row = {rank, FL_PIPELINE_ALL, what, mhz, time_s, power_w, 0};
    return fl_pipeline_add(p, &row, d);
}

/* Means of what was measured of a kind that does not follow the clock; 0 where nothing was. */
double fl_pf_mean(const fl_pipeline_fit *f, uint32_t rank, fl_pipeline_what what, const bool *learn) {
    double sum = 0, count = 0;
    for (size_t i = 0; i < f->r->part_count; i++) {
        const fl_part_row *p = &f->r->part[i];
        if (p->rank == rank && p->what == what && (!learn || learn[p->plan])) {
            sum += p->mean_s * p->count;
            count += p->count;
        }
    }
    return count > 0 ? sum / count : 0;
}

fl_pipeline fl_pf_program(const fl_pipeline_fit *f) {
    return (fl_pipeline){.schedule = f->p.schedule,
                         .stages = f->p.stages,
                         .microbatches = f->p.microbatches,
                         .chunks = 1,
                         .data_parallel = f->p.data_parallel,
                         .tensor_parallel = f->p.tensor_parallel,
                         .ranks = f->p.ranks,
                         .file = fl_must(strdup("the fit"))};
}

static fl_status make_program(fl_pipeline_fit *f, fl_diag *d) {
    fl_pipeline p = fl_pf_program(f);
    fl_status s = FL_OK;
    for (int k = 0; !s && k < 2; k++)
        s = fl_pf_put(&p, -1, k ? FL_PIPELINE_BACKWARD : FL_PIPELINE_FORWARD, f->r->top_mhz, 1, 1, d);
    if (!s)
        s = fl_pf_put(&p, -1, FL_PIPELINE_BLOCKED, NAN, NAN, 1, d);
    for (uint32_t rank = 0; !s && rank < p.ranks; rank++) /* where one fetches its input while it receives */
        if (fl_pf_mean(f, rank, FL_PIPELINE_LOAD_IN_RECV, NULL) > 0)
            s = fl_pf_put(&p, (int32_t)rank, FL_PIPELINE_LOAD_IN_RECV, NAN, 1, NAN, d);
    if (!s)
        s = fl_pipeline_finish(&p, d);
    if (!s)
        s = fl_build_pipeline(&f->w, "the plans", &p, &f->order, &f->node, 1, NULL, &f->op, d);
    if (!s)
        s = fl_critical_new(&f->path, f->w, d);
    fl_pipeline_free(&p);
    return s;
}

/* A list that says what 1F1B makes is called so. */
static fl_status make_order(fl_pipeline_fit *f, fl_diag *d) {
    fl_pipeline plain = f->p;
    fl_pipeline_order usual;
    plain.schedule = FL_PIPELINE_1F1B;
    if (!f->p.order)
        return fl_pipeline_schedule_make(&plain, &f->order, d);
    fl_status s = fl_pipeline_order_read(f->p.order, f->p.stages, f->p.microbatches, &f->order, d);
    if (!s)
        s = fl_pipeline_schedule_make(&plain, &usual, d);
    if (!s && fl_pipeline_order_same(&usual, &f->order))
        f->p.schedule = FL_PIPELINE_1F1B;
    if (!s)
        fl_pipeline_order_free(&usual);
    return s;
}

fl_status fl_pipeline_fit_open(fl_pipeline_fit *f, const fl_pipeline_runs *r, uint32_t stages, uint32_t tensor_parallel,
                               const char *order_file, double limit_w, fl_diag *d) {
    const uint32_t replicas = r->ranks / stages;
    *f = (fl_pipeline_fit){.r = r, .limit_w = limit_w};
    if (r->ranks % stages || replicas % tensor_parallel)
        return fl_refuse(d, "%u ranks, expected a multiple of %u stages x %u tensor-parallel ranks", r->ranks, stages,
                         tensor_parallel);
    f->p = (fl_pipeline){.schedule = order_file ? FL_PIPELINE_LIST : FL_PIPELINE_1F1B,
                         .stages = stages,
                         .microbatches = r->microbatches,
                         .chunks = 1,
                         .tensor_parallel = tensor_parallel,
                         .data_parallel = replicas / tensor_parallel,
                         .ranks = r->ranks};
    f->p.order = order_file ? fl_must(strdup(order_file)) : NULL;
    f->time = fl_must(calloc(r->ranks, sizeof *f->time));
    f->load_s = fl_must(calloc(r->ranks, sizeof *f->load_s));
    f->load_in_recv_s = fl_must(calloc(r->ranks, sizeof *f->load_in_recv_s));
    f->link_s = fl_must(calloc(stages, sizeof *f->link_s));
    f->power_w = fl_must(calloc(r->ranks, sizeof *f->power_w));
    f->most_w = fl_must(calloc(r->ranks, sizeof *f->most_w));
    fl_status s = make_order(f, d);
    const int32_t top = (int32_t)r->top_mhz;
    if (!s)
        s = fl_pipeline_node(&f->node, r->ranks, &top, 1, d);
    if (!s)
        s = make_program(f, d);
    return s;
}

void fl_pipeline_fit_close(fl_pipeline_fit *f) {
    for (uint32_t rank = 0; f->time && rank < f->p.ranks; rank++)
        for (int k = 0; k < 2; k++)
            fl_stage_time_free(&f->time[rank][k]);
    fl_critical_free(&f->path);
    fl_workload_free(f->w);
    fl_node_spec_free(&f->node);
    fl_pipeline_order_free(&f->order);
    fl_pipeline_free(&f->p);
    free(f->op);
    free(f->time);
    free(f->load_s);
    free(f->load_in_recv_s);
    free(f->link_s);
    free(f->power_w);
    free(f->most_w);
}

bool fl_pipeline_warm_up(const fl_pipeline_runs *r) {
    for (size_t i = 0; i < r->asked_count && r->asked[i].plan == 0; i++)
        if (r->asked[i].sm_mhz != r->top_mhz)
            return false;
    return r->plan_count > 0;
}

double fl_pf_weight(const fl_pipeline_fit *f, size_t plan) {
    return plan == 0 && fl_pipeline_warm_up(f->r) ? FL_PF_WARM_UP : 1;
}

static void clocks_of(const fl_pipeline_fit *f, size_t plan, fl_pipeline_clocks *c) {
    const fl_pipeline_runs *r = f->r;
    for (size_t i = fl_pipeline_runs_asked(r, (uint32_t)plan, 0); i < r->asked_count && r->asked[i].plan == plan; i++) {
        const fl_plan_row *a = &r->asked[i];
        for (uint32_t m = 0; m < a->count; m++)
            *fl_pipeline_clock(c, a->rank, a->backward, 0, a->first + m) = a->sm_mhz;
    }
}

fl_pipeline_clocks fl_pf_clocks_new(const fl_pipeline_fit *f, size_t plan) {
    fl_pipeline_clocks c = {.ranks = f->p.ranks, .chunks = 1, .microbatches = f->p.microbatches};
    c.mhz = fl_must(calloc((size_t)c.ranks * 2 * c.microbatches, sizeof *c.mhz));
    clocks_of(f, plan, &c);
    return c;
}
