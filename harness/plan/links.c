/* What transfers and the end of an iteration take, from how long iterations took. */
#include "harness/plan/program.h"

#include "models/math/least.h"

#include <math.h>
#include <stdlib.h>

/* Length of each op of a plan, but for transfers. */
static void lengths_of(const fl_pipeline_fit *f, const fl_pipeline_clocks *c, double *length_s) {
    for (uint32_t rank = 0; rank < f->p.ranks; rank++) {
        double known[2][2] = {{0}}; /* the last clock and its time, forward and backward: plans are runs of one clock */
        for (size_t i = f->path.first[rank]; i < f->path.first[rank + 1]; i++) {
            const fl_pipeline_op *op = &f->op[i];
            const bool backward = op->part == FL_PART_OF_BACKWARD;
            length_s[i] = 0;
            if (op->part == FL_PART_OF_LOAD)
                length_s[i] = f->load_s[rank];
            else if (op->part == FL_PART_OF_LOAD_IN_RECV)
                length_s[i] = f->load_in_recv_s[rank];
            else if (backward || op->part == FL_PART_OF_FORWARD) {
                const double mhz = *fl_pipeline_clock(c, rank, backward, 0, (uint32_t)op->microbatch);
                if (known[backward][0] != mhz) {
                    known[backward][0] = mhz;
                    known[backward][1] = fl_stage_time_at(&f->time[rank][backward], fl_pf_clock(f, mhz));
                }
                length_s[i] = known[backward][1];
            }
        }
    }
}

static double iteration(const fl_pipeline_fit *f, double *length_s, double *end_s, const double *link_s,
                        double tail_s) {
    for (size_t i = 0; i < f->path.count; i++)
        if (f->op[i].part == FL_PART_OF_TRANSFER)
            length_s[i] = link_s[f->op[i].link];
    return fl_critical_ends(&f->path, length_s, end_s, NULL) + tail_s;
}

typedef struct links {
    const fl_pipeline_fit *f;
    const fl_pipeline_beliefs *b;
    double **length_s; /* by plan that is learned from */
    size_t *plan;
    size_t count, pairs;
    double *end_s, *link_s;
} links;

static double take_links(const links *l, const double *x) {
    for (size_t k = 0; k < l->pairs; k++)
        l->link_s[k] = fmax(fl_pf_believed(&l->b->link_s, x[k]), 0);
    return fmax(fl_pf_believed(&l->b->tail_s, x[l->pairs]), 0);
}

static void link_residuals(void *user, const double *x, double *residual) {
    const links *l = user;
    const double tail_s = take_links(l, x);
    for (size_t k = 0; k < l->count; k++) {
        const double got = iteration(l->f, l->length_s[k], l->end_s, l->link_s, tail_s);
        residual[k] = fl_pf_weight(l->f, l->plan[k]) * (got / l->f->r->time_s[l->plan[k]] - 1) / FL_PF_SD_ITERATION;
    }
    for (size_t k = 0; k <= l->pairs; k++)
        residual[l->count + k] = x[k];
}

fl_status fl_pf_learn_links(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *b, fl_diag *d) {
    links l = {.f = f, .b = b, .pairs = f->p.stages - 1, .link_s = f->link_s};
    double *x = calloc(f->p.stages, sizeof *x);
    l.length_s = calloc(f->r->plan_count, sizeof *l.length_s);
    l.plan = calloc(f->r->plan_count, sizeof *l.plan);
    l.end_s = calloc(f->path.count + 1, sizeof *l.end_s);
    fl_status s = x && l.length_s && l.plan && l.end_s ? FL_OK : fl_no_memory(d, "the fit");
    for (size_t plan = 0; !s && plan < f->r->plan_count; plan++) {
        fl_pipeline_clocks c;
        if (!learn[plan])
            continue;
        s = fl_pf_clocks_new(f, plan, &c, d);
        if (!s && !(l.length_s[l.count] = calloc(f->path.count + 1, sizeof **l.length_s)))
            s = fl_no_memory(d, "the fit");
        if (!s) {
            lengths_of(f, &c, l.length_s[l.count]);
            l.plan[l.count++] = plan;
        }
        free(c.mhz);
    }
    if (!s && fl_least_squares(link_residuals, &l, x, l.pairs + 1, l.count + l.pairs + 1))
        s = fl_error(d, FL_MODEL_FAULT, "the transfers cannot be fitted");
    if (!s)
        f->tail_s = take_links(&l, x);
    for (size_t k = 0; l.length_s && k < l.count; k++)
        free(l.length_s[k]);
    free(l.length_s);
    free(l.plan);
    free(l.end_s);
    free(x);
    return s;
}
