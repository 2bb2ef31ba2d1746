/* A workload of a pipeline: classes of each rank, ops of each instruction, transfers that both sides wait for. */
#include "sim/pipeline/inside.h"

#include "sim/base/base.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "sim/pipeline/pipeline.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* The classes of a rank: its forwards and backwards, what blocks it, and parts at the clocks of a plan. */

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

static fl_status fl_pipe_add_rank_classes(fl_pipe_builder *b, uint32_t rank) {
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
/* The class of a forward or backward, and its length at the class's reference: that of the clock in force, or of the
 * clock that is asked for. */
static fl_status fl_pipe_find_class(fl_pipe_builder *b, uint32_t rank, const fl_instruction *i, uint32_t *id,
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

/* The instructions of a pipeline become streams of ops that wait for each other. */

static int64_t to_ns(double seconds) { return llround(seconds * 1e9); }

static fl_status add_op(fl_pipe_builder *b, uint32_t rank, uint32_t class_id, double seconds, fl_pipeline_op what) {
    if (fl_grow(&b->op, &b->op_room, b->op_count + 1, sizeof *b->op))
        return fl_no_memory(b->d, "the pipeline");
    b->op[b->op_count++] = what;
    return fl_workload_add_op(b->w, rank, 0, to_ns(seconds), class_id, b->d);
}

/* The op added last to `rank` waits until `on` has come to its op number `op` of this iteration. */
static fl_status add_wait(fl_pipe_builder *b, uint32_t rank, uint32_t on, int64_t op, uint32_t iteration) {
    const int64_t before = (int64_t)iteration * b->ops[on % b->p->stages];
    return fl_workload_add_wait(b->w, rank, (fl_wait){on, (uint64_t)(before + op)}, b->d);
}

/* It waits for all ranks but its own of which (rank - first) is a multiple of `step`, `count` of them. */
static fl_status add_meeting(fl_pipe_builder *b, uint32_t rank, uint32_t first, uint32_t step, uint32_t count,
                             size_t item, int64_t offset, uint32_t iteration) {
    fl_status s = FL_OK;
    for (uint32_t k = 0; !s && k < count; k++) {
        const uint32_t on = first + k * step;
        if (on != rank)
            s = add_wait(b, rank, on, b->item[on % b->p->stages][item].op + offset, iteration);
    }
    return s;
}

static fl_status add_compute(fl_pipe_builder *b, uint32_t rank, size_t item, uint32_t iteration) {
    const uint32_t stage = rank % b->p->stages, group = b->p->tensor_parallel;
    const fl_instruction *i = &b->o->stage[stage].item[item];
    const fl_pipe_classes *c = &b->class[rank];
    const bool forward = i->type == FL_DO_FORWARD;
    fl_status s = add_op(b, rank, c->marker, 0, (fl_pipeline_op){FL_PART_OF_MARKER, i->microbatch, i->chunk, -1});
    if (!s && group > 1) {
        const uint32_t member = rank / b->p->stages % group;
        s = add_op(b, rank, c->transfer, 0, (fl_pipeline_op){FL_PART_OF_MEETING, -1, -1, -1});
        if (!s)
            s = add_meeting(b, rank, rank - member * b->p->stages, b->p->stages, group, item, 1, iteration);
    }
    uint32_t id = 0;
    double seconds = 0;
    if (!s)
        s = fl_pipe_find_class(b, rank, i, &id, &seconds);
    if (!s)
        s = add_op(b, rank, id, seconds,
                   (fl_pipeline_op){forward ? FL_PART_OF_FORWARD : FL_PART_OF_BACKWARD, i->microbatch, i->chunk, -1});
    return s;
}

/* A transfer takes as long as the link from its sender says; a pair, as the longer of its two. */
static fl_status add_transfer(fl_pipe_builder *b, uint32_t rank, size_t item, uint32_t iteration) {
    const uint32_t stage = rank % b->p->stages, replica = rank - stage;
    const fl_instruction *i = &b->o->stage[stage].item[item];
    const bool load = fl_pipe_receives(i->type, FL_PIPE_ACT) && fl_pipe_loads_in_recv(b, stage);
    const double load_s = load ? fl_pipe_seconds_of(b, rank, 0, FL_PIPELINE_LOAD_IN_RECV) : 0;
    fl_wait wait[FL_PIPE_DIRECTIONS * 2];
    size_t waits = 0;
    double seconds = 0;
    int32_t link = -1;
    fl_status s = FL_OK;
    for (int k = 0; !s && k < FL_PIPE_DIRECTIONS; k++)
        for (int sent = 0; !s && sent < 2; sent++) {
            uint32_t peer;
            fl_pipe_place place;
            if (!(sent ? fl_pipe_sends(i->type, k) : fl_pipe_receives(i->type, k)))
                continue;
            s = fl_pipe_find_peer(b, stage, item, k, sent, &peer, &place);
            link = (sent != 0) == (k == FL_PIPE_ACT) ? (int32_t)stage : (int32_t)peer;
            const fl_pipeline_what what = k == FL_PIPE_ACT ? FL_PIPELINE_ACT : FL_PIPELINE_GRAD;
            if (!s)
                seconds = fmax(seconds, fl_pipe_seconds_of(b, sent ? rank : replica + peer, i->chunk, what));
            wait[waits++] = (fl_wait){replica + peer, (uint64_t)place.op};
        }
    if (s || (b->eager && (i->type == FL_DO_SEND_ACT || i->type == FL_DO_SEND_GRAD)))
        return s;
    if (load && !fl_pipe_is_pair(i->type))
        s = add_op(b, rank, b->class[rank].load, load_s, (fl_pipeline_op){FL_PART_OF_LOAD_IN_RECV, -1, -1, -1});
    if (!s)
        s = add_op(b, rank, b->class[rank].transfer, seconds, (fl_pipeline_op){FL_PART_OF_TRANSFER, -1, -1, link});
    for (size_t k = 0; !s && k < waits; k++)
        s = add_wait(b, rank, wait[k].stream, (int64_t)wait[k].done, iteration);
    if (!s && load && fl_pipe_is_pair(i->type))
        s = add_op(b, rank, b->class[rank].load, load_s, (fl_pipeline_op){FL_PART_OF_LOAD_IN_RECV, -1, -1, -1});
    return s;
}

/* The ends of an iteration: first and last stage share tied weights, replicas their gradients, and before the weights
 * change all ranks agree. Lists whose ends differ do not meet. */
static fl_status add_end(fl_pipe_builder *b, uint32_t rank, size_t item, uint32_t iteration) {
    const uint32_t stages = b->p->stages, stage = rank % stages, replica = rank - stage, group = b->p->tensor_parallel;
    const fl_instruction_type type = b->o->stage[stage].item[item].type;
    const fl_pipeline_what what = type == FL_DO_REDUCE_TIED   ? FL_PIPELINE_REDUCE_TIED
                                  : type == FL_DO_REDUCE_DATA ? FL_PIPELINE_REDUCE_DATA
                                                              : FL_PIPELINE_STEP;
    const bool tied = stage == 0 || stage == stages - 1;
    fl_status s = add_op(b, rank, b->class[rank].transfer,
                         type == FL_DO_REDUCE_TIED && !tied ? 0 : fl_pipe_seconds_of(b, rank, 0, what),
                         (fl_pipeline_op){FL_PART_OF_END, -1, -1, -1});
    const int64_t back = (int64_t)(b->o->stage[stage].count - item);
    for (uint32_t on = 0; !s && on < b->p->ranks; on++) {
        const uint32_t other = on % stages;
        const bool meets = type == FL_DO_REDUCE_TIED
                               ? tied && on - other == replica && (other == 0 || other == stages - 1)
                           : type == FL_DO_REDUCE_DATA ? other == stage && on / stages % group == rank / stages % group
                                                       : true;
        const size_t place = b->o->stage[other].count - (size_t)back;
        if (on == rank || !meets || (size_t)back > b->o->stage[other].count ||
            b->o->stage[other].item[place].type != type)
            continue;
        s = add_wait(b, rank, on, b->item[other][place].op, iteration);
    }
    return s;
}

static fl_status add_instruction(fl_pipe_builder *b, uint32_t rank, size_t item, uint32_t iteration) {
    const fl_instruction *i = &b->o->stage[rank % b->p->stages].item[item];
    switch (i->type) {
    case FL_DO_LOAD:
        return add_op(b, rank, b->class[rank].load, fl_pipe_seconds_of(b, rank, 0, FL_PIPELINE_LOAD),
                      (fl_pipeline_op){FL_PART_OF_LOAD, i->microbatch, -1, -1});
    case FL_DO_FORWARD:
    case FL_DO_BACKWARD:
        return add_compute(b, rank, item, iteration);
    case FL_DO_REDUCE_TIED:
    case FL_DO_REDUCE_DATA:
    case FL_DO_STEP:
        return add_end(b, rank, item, iteration);
    default:
        return add_transfer(b, rank, item, iteration);
    }
}

/* ---- all of it ---- */

static fl_status make_room(fl_pipe_builder *b) {
    const size_t places = (size_t)b->p->stages * b->p->chunks * b->p->microbatches;
    b->item = calloc(b->p->stages, sizeof *b->item);
    b->ops = calloc(b->p->stages, sizeof *b->ops);
    b->class = calloc(b->p->ranks, sizeof *b->class);
    bool full = b->item && b->ops && b->class;
    for (int k = 0; k < FL_PIPE_DIRECTIONS; k++) {
        b->sender[k] = malloc(places * sizeof **b->sender);
        b->receiver[k] = malloc(places * sizeof **b->receiver);
        full = full && b->sender[k] && b->receiver[k];
        for (size_t i = 0; full && i < places; i++)
            b->sender[k][i].op = b->receiver[k][i].op = FL_PIPE_NOWHERE;
    }
    for (uint32_t s = 0; full && s < b->p->stages; s++)
        full = (b->item[s] = calloc(b->o->stage[s].count + 1, sizeof **b->item)) != NULL;
    for (uint32_t r = 0; full && r < b->p->ranks; r++) {
        b->class[r].forward = calloc(b->p->chunks, sizeof *b->class[r].forward);
        b->class[r].backward = calloc(b->p->chunks, sizeof *b->class[r].backward);
        full = b->class[r].forward && b->class[r].backward;
    }
    return full ? FL_OK : fl_no_memory(b->d, "the pipeline");
}

static void close_builder(fl_pipe_builder *b) {
    for (int k = 0; k < FL_PIPE_DIRECTIONS; k++) {
        free(b->sender[k]);
        free(b->receiver[k]);
    }
    for (uint32_t s = 0; b->item && s < b->p->stages; s++)
        free(b->item[s]);
    for (uint32_t r = 0; b->class && r < b->p->ranks; r++) {
        free(b->class[r].forward);
        free(b->class[r].backward);
    }
    for (int what = 0; what < FL_PIPELINE_WHATS; what++)
        free(b->flat_s[what]);
    free(b->item);
    free(b->ops);
    free(b->class);
    free(b->fixed);
}

/* An iteration takes at least as long as all microbatches at the fastest forward and backward pass of the file. */
static fl_status check_length(fl_pipe_builder *b, uint32_t iterations) {
    double forward_s = INFINITY, backward_s = INFINITY;
    for (size_t i = 0; i < b->p->row_count; i++) {
        const fl_pipeline_row *row = &b->p->row[i];
        if (row->what == FL_PIPELINE_FORWARD)
            forward_s = fmin(forward_s, row->time_s);
        else if (row->what == FL_PIPELINE_BACKWARD)
            backward_s = fmin(backward_s, row->time_s);
    }
    const double pass_s = forward_s + (isfinite(backward_s) ? backward_s : 0);
    const double once_s = isfinite(pass_s) ? pass_s * b->p->microbatches : 0;
    return once_s * iterations * 1e12 <= (double)FL_TIME_END
               ? FL_OK
               : fl_refuse(b->d, "--repeat %u: so many iterations, each of %g s or more, take longer than 26 days",
                           iterations, once_s);
}

static fl_status add_all(fl_pipe_builder *b, uint32_t iterations) {
    fl_status s = FL_OK;
    b->w->sm_min_mhz = 0;
    b->w->sm_max_mhz = INFINITY;
    for (uint32_t r = 0; !s && r < b->p->ranks; r++) {
        uint32_t stream;
        s = fl_workload_add_stream(b->w, r, 0, (int32_t)r, &stream, b->d);
        if (!s)
            s = fl_pipe_add_rank_classes(b, r);
    }
    for (uint32_t r = 0; !s && r < b->p->ranks; r++) {
        b->class[r].first_fixed = b->w->class_count;
        for (uint32_t n = 0; !s && n < iterations; n++)
            for (size_t i = 0; !s && i < b->o->stage[r % b->p->stages].count; i++)
                s = add_instruction(b, r, i, n);
    }
    return s;
}

void fl_pipeline_allow_bursts(const fl_pipeline *p, fl_node_spec *node) {
    for (uint32_t i = 0; i < node->device_count; i++) {
        fl_device *dev = &node->device[i];
        dev->wall.measured_w = p->limit_w > 0 ? p->limit_w : dev->power_default_w;
        dev->wall.burst_w = dev->wall.measured_w > 0 ? fl_pipeline_most_w(p) : 0;
    }
}

fl_status fl_build_pipeline(fl_workload **out, const char *name, const fl_pipeline *p, const fl_pipeline_order *o,
                            const fl_node_spec *node, uint32_t iterations, const fl_pipeline_clocks *clocks,
                            fl_pipeline_op **op, fl_diag *d) {
    fl_pipe_builder b = {
        .p = p, .o = o, .node = node, .eager = p->schedule == FL_PIPELINE_INTERLEAVED, .clocks = clocks, .d = d};
    *out = NULL;
    if (op)
        *op = NULL;
    if (node->gpu_count < p->ranks)
        return fl_fail(d, FL_BAD_INPUT, p->file, 0, 0, "%u ranks, expected at most the %u GPUs of %s", p->ranks,
                       node->gpu_count, node->name);
    fl_status s = fl_workload_new(&b.w, name, d);
    if (s)
        return s;
    b.w->measured = true;
    s = make_room(&b);
    if (!s)
        s = fl_pipe_find_flat(&b);
    if (!s)
        s = fl_pipe_find_places(&b);
    if (!s)
        s = check_length(&b, iterations);
    if (!s)
        s = add_all(&b, iterations);
    if (!s)
        s = fl_workload_finish(b.w, 0, d);
    if (!s)
        s = fl_pipe_check_waits(&b);
    close_builder(&b);
    if (s || !op)
        free(b.op);
    else
        *op = b.op;
    if (s)
        fl_workload_free(b.w);
    else
        *out = b.w;
    return s;
}
