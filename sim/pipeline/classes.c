/* The classes of a rank: its forwards and backwards, what blocks it, and parts at the clocks of a plan. */
#include "sim/pipeline/inside.h"

#include <math.h>
#include <stdlib.h>

static fl_status curves_of(const fl_pipe_builder *b, const fl_pipeline_row *row, size_t count, double mem_mhz,
                           fl_measured *m) {
    double *x = malloc(count * sizeof *x), *t = malloc(count * sizeof *t), *w = malloc(count * sizeof *w);
    fl_model_status s = x && t && w ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    for (size_t i = 0; s == FL_MODEL_OK && i < count; i++) {
        x[i] = row[i].sm_mhz;
        t[i] = row[i].time_s / row[count - 1].time_s;
        w[i] = row[i].power_w;
    }
    *m = (fl_measured){.mem_mhz = mem_mhz};
    if (s == FL_MODEL_OK)
        s = fl_curve_new(&m->time_ratio, x, t, count);
    if (s == FL_MODEL_OK)
        s = fl_curve_new(&m->power_w, x, w, count);
    free(x);
    free(t);
    free(w);
    return s == FL_MODEL_OK ? FL_OK
                            : fl_error(b->d, s == FL_MODEL_NO_MEMORY ? FL_NO_MEMORY : FL_BAD_INPUT, "the pipeline: %s",
                                       fl_model_text(s));
}

/* A class whose length and power are those of `row`, count ascending clocks. */
static fl_status add_class(fl_pipe_builder *b, const char *name, const fl_device *dev, const fl_pipeline_row *row,
                           size_t count, uint32_t *id) {
    fl_measured m;
    const fl_kernel_kind kind = {.name = name, .grid = {1, 1, 1}, .block = {1, 1, 1}};
    fl_status s = curves_of(b, row, count, dev->default_mem_mhz, &m);
    const fl_load load = {.tc = 1,
                          .sm_demand = 1,
                          .ref_sm_mhz = row[count - 1].sm_mhz,
                          .ref_mem_mhz = dev->default_mem_mhz,
                          .measured = &m};
    if (!s)
        s = fl_workload_add_class(b->w, &load, &kind, id, b->d);
    if (s)
        fl_measured_free(&m);
    return s;
}

/* A class that takes as long and draws as much at any clock. */
static fl_status add_flat(fl_pipe_builder *b, const char *name, const fl_device *dev, double watts, uint32_t *id) {
    const fl_pipeline_row row[2] = {{.sm_mhz = dev->sm_mhz[0], .time_s = 1, .power_w = watts},
                                    {.sm_mhz = dev->sm_mhz[dev->sm_count - 1], .time_s = 1, .power_w = watts}};
    return add_class(b, name, dev, row, dev->sm_count > 1 ? 2 : 1, id);
}

static fl_status add_fixed(fl_pipe_builder *b, uint32_t rank, fl_pipe_fixed fixed, double watts, uint32_t *id) {
    const fl_device *dev = &b->node->device[b->node->gpu[rank]];
    fl_status s = add_flat(b, fl_pipeline_what_name[fixed.what], dev, watts, id);
    if (!s && fl_grow(&b->fixed, &b->fixed_room, *id + 1, sizeof *b->fixed))
        s = fl_no_memory(b->d, "the pipeline");
    if (!s)
        b->fixed[*id] = fixed;
    return s;
}

fl_status fl_pipe_add_rank_classes(fl_pipe_builder *b, uint32_t rank) {
    const fl_device *dev = &b->node->device[b->node->gpu[rank]];
    fl_pipe_classes *c = &b->class[rank];
    size_t count;
    fl_status s = FL_OK;
    for (uint32_t chunk = 0; !s && chunk < b->p->chunks; chunk++)
        for (int k = 0; !s && k < 2; k++) {
            const fl_pipeline_what what = k ? FL_PIPELINE_BACKWARD : FL_PIPELINE_FORWARD;
            const fl_pipeline_row *row = fl_pipeline_rows(b->p, rank, chunk, what, &count);
            s = add_class(b, fl_pipeline_what_name[what], dev, row, count,
                          k ? &c->backward[chunk] : &c->forward[chunk]);
            b->w->sm_min_mhz = fmax(b->w->sm_min_mhz, row[0].sm_mhz);
            b->w->sm_max_mhz = fmin(b->w->sm_max_mhz, row[count - 1].sm_mhz);
        }
    const double blocked_w = fl_pipeline_rows(b->p, rank, 0, FL_PIPELINE_BLOCKED, &count)->power_w;
    if (!s)
        s = add_flat(b, "transfer", dev, blocked_w, &c->transfer);
    if (!s)
        s = add_flat(b, "load", dev, blocked_w, &c->load);
    if (!s)
        s = add_flat(b, "[iteration]", dev, blocked_w, &c->marker);
    if (!s) {
        b->w->class[c->transfer].spins = true;
        b->w->class[c->marker].iteration = true;
    }
    return s;
}

/* A part at the clock that the plan asks for: a class of its own, which other microbatches at that clock share. */
static fl_status find_fixed(fl_pipe_builder *b, uint32_t rank, fl_pipe_fixed f, uint32_t like, uint32_t *id) {
    for (uint32_t c = b->class[rank].first_fixed; c < b->w->class_count; c++)
        if (b->fixed[c].what == f.what && b->fixed[c].chunk == f.chunk && b->fixed[c].mhz == f.mhz)
            return *id = c, FL_OK;
    size_t count;
    const fl_pipeline_row *row = fl_pipeline_rows(b->p, rank, (uint32_t)f.chunk, f.what, &count);
    const fl_measured *m = &b->w->class[like].measured;
    double ratio, watts;
    if (fl_curve_at(m->time_ratio, f.mhz, 0, &ratio) || fl_curve_at(m->power_w, f.mhz, 0, &watts))
        return fl_fail(b->d, FL_BAD_INPUT, b->p->file, 0, 0,
                       "the plan asks %g MHz of rank %u, expected %g to %g, where its %s is known", f.mhz, rank,
                       row[0].sm_mhz, row[count - 1].sm_mhz, fl_pipeline_what_name[f.what]);
    f.seconds = row[count - 1].time_s * ratio;
    return add_fixed(b, rank, f, watts, id);
}

/* The class of a forward or backward, and its length at the class's reference: that of the clock in force, or of the
 * clock that is asked for. */
fl_status fl_pipe_find_class(fl_pipe_builder *b, uint32_t rank, const fl_instruction *i, uint32_t *id,
                             double *seconds) {
    const bool backward = i->type == FL_DO_BACKWARD;
    const fl_pipeline_what what = backward ? FL_PIPELINE_BACKWARD : FL_PIPELINE_FORWARD;
    *id = (backward ? b->class[rank].backward : b->class[rank].forward)[i->chunk];
    if (!b->clocks) {
        size_t count;
        const fl_pipeline_row *row = fl_pipeline_rows(b->p, rank, (uint32_t)i->chunk, what, &count);
        *seconds = row[count - 1].time_s;
        return FL_OK;
    }
    const fl_pipe_fixed wanted = {
        .what = what,
        .chunk = i->chunk,
        .mhz = *fl_pipeline_clock(b->clocks, rank, backward, (uint32_t)i->chunk, (uint32_t)i->microbatch)};
    const fl_status s = find_fixed(b, rank, wanted, *id, id);
    if (!s)
        *seconds = b->fixed[*id].seconds;
    return s;
}
