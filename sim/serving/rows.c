/* A step as a kernel of its GPUs. Its length and loads are those of the law of its batch at the clocks in force; what
 * of its power follows from the clocks alone, and what stretches every step, are the row of the server's class. */
#include "sim/serving/inside.h"

#include <math.h>

#define FL_STEP_MOST_S 90000.0 /* 25 hours, as the longest op (FL_DURATION_MAX_NS) */

static double mem_ratio(const fl_step_law *law, const fl_device *dev, uint32_t mem) {
    const double ref = law->ref_mem_mhz > 0 ? law->ref_mem_mhz : dev->default_mem_mhz;
    return dev->mem_mhz[mem] / ref;
}

/* One rank at its own pace. The class's row holds by how much kernel records, or an error, stretch it. */
static fl_model_status alone(const fl_engine *e, const fl_step_shape *shape, const fl_device *dev, uint32_t sm,
                             uint32_t mem, const fl_row *row, fl_step_rank *out) {
    fl_step_point p;
    const fl_model_status s = fl_step_at(e->s->law, shape, dev->sm_mhz[sm], mem_ratio(e->s->law, dev, mem), &p);
    if (s != FL_MODEL_OK)
        return s;
    const double stretch = row->mul == FL_MUL_ONE ? 1 : (double)row->mul / FL_MUL_ONE;
    const double time_s = p.time_s * stretch;
    if (!(time_s >= 0) || time_s > FL_STEP_MOST_S)
        return FL_MODEL_OVERFLOW;
    out->alone_ps = llround(time_s * 1e12);
    out->alone_ps += !out->alone_ps; /* so that time goes on */
    out->compute = p.compute;
    out->memory = p.memory;
    return FL_MODEL_OK;
}

/* Its power and activity when the whole step takes length_ps: a rank that waits for slower ones spins at the SM power
 * of the step, and moves no more bytes for it. */
static void draw(fl_step_rank *r, const fl_row_parts *full, int64_t length_ps) {
    const double share = r->alone_ps == length_ps ? 1 : (double)r->alone_ps / (double)length_ps;
    r->sm_mw = (int32_t)lround(r->compute * full->sm_mw);
    r->memory_mw = (int32_t)lround(r->memory * share * full->memory_mw);
    r->active_memory = lround(r->memory * share * FL_ROW_ONE);
    r->active_alu = lround(r->compute * share * FL_ROW_ONE);
}

static bool same_clocks(const fl_gpu *a, const fl_gpu *b) {
    return a->rates == b->rates; /* one kind of device, one pair of clocks, records alike */
}

bool fl_step_pace(fl_engines *v, fl_engine *e) {
    e->length_ps = 0;
    for (uint32_t i = 0; i < e->s->gpu_count; i++) {
        fl_step_rank *r = &e->rank[i];
        const fl_gpu *g = r->g;
        if (i && same_clocks(g, r[-1].g)) {
            r->alone_ps = r[-1].alone_ps;
            r->compute = r[-1].compute;
            r->memory = r[-1].memory;
            continue;
        }
        v->model = alone(e, &e->shape, g->dev, g->sm, g->mem, &g->rates->row[e->index], r);
        if (v->model != FL_MODEL_OK) {
            v->status = FL_MODEL_FAULT;
            return false;
        }
        e->length_ps = r->alone_ps > e->length_ps ? r->alone_ps : e->length_ps;
    }
    for (uint32_t i = 0; i < e->s->gpu_count; i++) {
        fl_step_rank *r = &e->rank[i];
        draw(r, &r->g->rates->parts[e->index], e->length_ps);
        r->g->dyn_now_mw = r->g->lost ? 0 : r->sm_mw + r->memory_mw;
    }
    return true;
}

int64_t fl_step_alone_ps(const fl_engine *e, const fl_step_shape *shape) {
    fl_step_rank r = {0};
    const fl_gpu *g = e->rank[0].g;
    const fl_model_status s = alone(e, shape, g->dev, g->sm, g->mem, &g->rates->row[e->index], &r);
    return s == FL_MODEL_OK ? r.alone_ps : 1; /* no more than the whole step took, which the law knew */
}

int64_t fl_step_predict_mw(const fl_engine *e, const fl_step_rank *r, uint32_t sm, const fl_clock_rates *rates) {
    fl_step_rank at = *r;
    if (alone(e, &e->shape, r->g->dev, sm, r->g->mem, &rates->row[e->index], &at) != FL_MODEL_OK)
        return -1;
    int64_t length = at.alone_ps;
    for (uint32_t i = 0; i < e->s->gpu_count; i++)
        if (&e->rank[i] != r && e->rank[i].alone_ps > length)
            length = e->rank[i].alone_ps;
    draw(&at, &rates->parts[e->index], length);
    return at.sm_mw + at.memory_mw;
}
