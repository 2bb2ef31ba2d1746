/* The instructions of a pipeline become streams of ops that wait for each other. */
#include "sim/pipeline.h"

#include "sim/node.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOWHERE = -1, DIRECTIONS = 2 };
enum { ACT, GRAD };

typedef struct fl_place { /* an instruction of a stage */
    int64_t op;           /* its op: how many ops of the stage come before it in one iteration; NOWHERE */
    size_t item;
} fl_place;

typedef struct fl_rank_classes {
    uint32_t *forward, *backward; /* by chunk */
    uint32_t transfer, load, marker, first_fixed;
} fl_rank_classes;

typedef struct fl_fixed_class { /* of a plan: a part at its clock */
    fl_pipeline_what what;
    int32_t chunk;
    double mhz;
} fl_fixed_class;

typedef struct builder {
    const fl_pipeline *p;
    const fl_pipeline_order *o;
    const fl_node_spec *node;
    fl_workload *w;
    fl_place *sender[DIRECTIONS], *receiver[DIRECTIONS]; /* by place_of */
    fl_place **item;                                     /* by stage, then instruction: where its first op stands */
    int64_t *ops;                                        /* by stage: in one iteration */
    fl_rank_classes *class;                              /* by rank */
    bool eager;                                          /* sends do not block */
    const fl_pipeline_clocks *clocks;
    fl_fixed_class *fixed; /* by class; those of a rank follow its others */
    size_t fixed_room;
    fl_pipeline_op *op; /* of all streams */
    size_t op_count, op_room;
    fl_diag *d;
} builder;

/* ---- what an instruction does ---- */

static bool sends(fl_instruction_type t, int direction) {
    return direction == ACT ? t == FL_DO_SEND_ACT || t == FL_DO_SEND_ACT_RECV_GRAD
                            : t == FL_DO_SEND_GRAD || t == FL_DO_SEND_GRAD_RECV_ACT;
}

static bool receives(fl_instruction_type t, int direction) {
    return direction == ACT ? t == FL_DO_RECV_ACT || t == FL_DO_SEND_GRAD_RECV_ACT
                            : t == FL_DO_RECV_GRAD || t == FL_DO_SEND_ACT_RECV_GRAD;
}

static bool computes(fl_instruction_type t) { return t == FL_DO_FORWARD || t == FL_DO_BACKWARD; }

static bool is_pair(fl_instruction_type t) { return t == FL_DO_SEND_ACT_RECV_GRAD || t == FL_DO_SEND_GRAD_RECV_ACT; }

static int32_t received(const fl_instruction *i) { return is_pair(i->type) ? i->microbatch2 : i->microbatch; }

/* Where the parts that a transfer joins lie: activations go on to the next stage, or of the last to the next chunk of
 * the first. Of a gradient it is the other way round. */
static bool peer_of(const builder *b, uint32_t stage, int32_t chunk, bool next, uint32_t *peer, int32_t *peer_chunk) {
    const int32_t chunks = (int32_t)b->p->chunks;
    const uint32_t last = b->p->stages - 1;
    *peer = next ? stage + 1 : stage - 1;
    *peer_chunk = chunk;
    if (next && stage == last) {
        *peer = 0;
        *peer_chunk = chunk + 1;
    } else if (!next && stage == 0) {
        *peer = last;
        *peer_chunk = chunk - 1;
    }
    return *peer_chunk >= 0 && *peer_chunk < chunks;
}

static size_t place_of(const builder *b, uint32_t stage, int32_t chunk, int32_t microbatch) {
    return ((size_t)stage * b->p->chunks + (size_t)chunk) * b->p->microbatches + (size_t)microbatch;
}

static double seconds_of(const builder *b, uint32_t rank, int32_t chunk, fl_pipeline_what what) {
    size_t count;
    const fl_pipeline_row *row = fl_pipeline_rows(b->p, rank, (uint32_t)chunk, what, &count);
    return row ? row->time_s : 0;
}

static int64_t to_ns(double seconds) { return llround(seconds * 1e9); }

/* Some rank of the stage fetches its input while it receives. */
static bool loads_in_recv(const builder *b, uint32_t stage) {
    for (uint32_t rank = stage; rank < b->p->ranks; rank += b->p->stages)
        if (seconds_of(b, rank, 0, FL_PIPELINE_LOAD_IN_RECV) > 0)
            return true;
    return false;
}

/* How many ops an instruction becomes; *wait: which of them waits for other ranks. */
static int64_t op_count(const builder *b, uint32_t stage, const fl_instruction *i, int64_t *wait) {
    const bool load = receives(i->type, ACT) && loads_in_recv(b, stage);
    *wait = 0;
    if (computes(i->type)) /* a marker, where tensor-parallel ranks meet, the work */
        return *wait = 1, b->p->tensor_parallel > 1 ? 3 : 2;
    if (b->eager && (i->type == FL_DO_SEND_ACT || i->type == FL_DO_SEND_GRAD))
        return 0;
    *wait = load && !is_pair(i->type);
    return load ? 2 : 1;
}

/* ---- places ---- */

static fl_status make_room(builder *b) {
    const size_t places = (size_t)b->p->stages * b->p->chunks * b->p->microbatches;
    b->item = calloc(b->p->stages, sizeof *b->item);
    b->ops = calloc(b->p->stages, sizeof *b->ops);
    b->class = calloc(b->p->ranks, sizeof *b->class);
    bool full = b->item && b->ops && b->class;
    for (int k = 0; k < DIRECTIONS; k++) {
        b->sender[k] = malloc(places * sizeof **b->sender);
        b->receiver[k] = malloc(places * sizeof **b->receiver);
        full = full && b->sender[k] && b->receiver[k];
        for (size_t i = 0; full && i < places; i++)
            b->sender[k][i].op = b->receiver[k][i].op = NOWHERE;
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

static const char *const CARRIED[DIRECTIONS] = {"activation", "gradient"};

static fl_status wrong(const builder *b, uint32_t stage, size_t item, const char *what) {
    return fl_fail(b->d, FL_BAD_INPUT, b->p->order ? b->p->order : b->p->file, 0, 0,
                   "stage %u, instruction %zu (%s): %s", stage, item,
                   fl_instruction_name[b->o->stage[stage].item[item].type], what);
}

static fl_status note_place(builder *b, uint32_t stage, size_t item, int direction, bool sent) {
    const fl_instruction *i = &b->o->stage[stage].item[item];
    const int32_t microbatch = sent ? i->microbatch : received(i);
    fl_place *place = (sent ? b->sender : b->receiver)[direction] + place_of(b, stage, i->chunk, microbatch);
    int64_t wait;
    uint32_t peer;
    int32_t peer_chunk;
    (void)op_count(b, stage, i, &wait);
    if (!peer_of(b, stage, i->chunk, sent == (direction == ACT), &peer, &peer_chunk))
        return wrong(b, stage, item, "there is no stage at the other end, expected none to be named");
    if (place->op != NOWHERE)
        return wrong(b, stage, item, "the microbatch has been through here, expected each transfer once");
    *place = (fl_place){b->item[stage][item].op + wait, item};
    return FL_OK;
}

static fl_status find_places(builder *b) {
    fl_status s = FL_OK;
    for (uint32_t stage = 0; !s && stage < b->p->stages; stage++) {
        int64_t op = 0, wait;
        for (size_t i = 0; !s && i < b->o->stage[stage].count; i++) {
            const fl_instruction *item = &b->o->stage[stage].item[i];
            b->item[stage][i] = (fl_place){op, i};
            op += op_count(b, stage, item, &wait);
            for (int k = 0; !s && k < DIRECTIONS; k++) {
                if (sends(item->type, k))
                    s = note_place(b, stage, i, k, true);
                if (!s && receives(item->type, k))
                    s = note_place(b, stage, i, k, false);
            }
        }
        b->ops[stage] = op;
    }
    return s;
}

/* The instruction at the other end of a transfer. */
static fl_status find_peer(const builder *b, uint32_t stage, size_t item, int direction, bool sent, uint32_t *peer,
                           fl_place *place) {
    const fl_instruction *i = &b->o->stage[stage].item[item];
    int32_t chunk;
    (void)peer_of(b, stage, i->chunk, sent == (direction == ACT), peer, &chunk);
    *place = (sent ? b->receiver : b->sender)[direction][place_of(b, *peer, chunk, sent ? i->microbatch : received(i))];
    if (place->op != NOWHERE)
        return FL_OK;
    char text[160];
    snprintf(text, sizeof text, "stage %u does not %s the %s of microbatch %d, expected it to", *peer,
             sent ? "receive" : "send", CARRIED[direction], sent ? i->microbatch : received(i));
    return wrong(b, stage, item, text);
}

/* ---- classes ---- */

static fl_status curves_of(const builder *b, const fl_pipeline_row *row, size_t count, double mem_mhz, fl_measured *m) {
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
static fl_status add_class(builder *b, const char *name, const fl_device *dev, const fl_pipeline_row *row, size_t count,
                           uint32_t *id) {
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
static fl_status add_flat(builder *b, const char *name, const fl_device *dev, double watts, uint32_t *id) {
    const fl_pipeline_row row[2] = {{.sm_mhz = dev->sm_mhz[0], .time_s = 1, .power_w = watts},
                                    {.sm_mhz = dev->sm_mhz[dev->sm_count - 1], .time_s = 1, .power_w = watts}};
    return add_class(b, name, dev, row, dev->sm_count > 1 ? 2 : 1, id);
}

static fl_status add_fixed(builder *b, uint32_t rank, fl_fixed_class fixed, double watts, uint32_t *id) {
    const fl_device *dev = &b->node->device[b->node->gpu[rank]];
    fl_status s = add_flat(b, fl_pipeline_what_name[fixed.what], dev, watts, id);
    if (!s && fl_grow(&b->fixed, &b->fixed_room, *id + 1, sizeof *b->fixed))
        s = fl_no_memory(b->d, "the pipeline");
    if (!s)
        b->fixed[*id] = fixed;
    return s;
}

static fl_status add_rank_classes(builder *b, uint32_t rank) {
    const fl_device *dev = &b->node->device[b->node->gpu[rank]];
    fl_rank_classes *c = &b->class[rank];
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

/* ---- ops ---- */

static fl_status add_op(builder *b, uint32_t rank, uint32_t class_id, double seconds, fl_pipeline_op what) {
    if (fl_grow(&b->op, &b->op_room, b->op_count + 1, sizeof *b->op))
        return fl_no_memory(b->d, "the pipeline");
    b->op[b->op_count++] = what;
    return fl_workload_add_op(b->w, rank, 0, to_ns(seconds), class_id, b->d);
}

/* The op added last to `rank` waits until `on` has come to its op number `op` of this iteration. */
static fl_status add_wait(builder *b, uint32_t rank, uint32_t on, int64_t op, uint32_t iteration) {
    const int64_t before = (int64_t)iteration * b->ops[on % b->p->stages];
    return fl_workload_add_wait(b->w, rank, (fl_wait){on, (uint64_t)(before + op)}, b->d);
}

/* It waits for all ranks but its own of which (rank - first) is a multiple of `step`, `count` of them. */
static fl_status add_meeting(builder *b, uint32_t rank, uint32_t first, uint32_t step, uint32_t count, size_t item,
                             int64_t offset, uint32_t iteration) {
    fl_status s = FL_OK;
    for (uint32_t k = 0; !s && k < count; k++) {
        const uint32_t on = first + k * step;
        if (on != rank)
            s = add_wait(b, rank, on, b->item[on % b->p->stages][item].op + offset, iteration);
    }
    return s;
}

/* The class of a forward or backward, and its length at the class's reference: that of the clock in force, or of the
 * clock that is asked for. */
static fl_status find_class(builder *b, uint32_t rank, const fl_instruction *i, uint32_t *id, double *seconds) {
    const bool backward = i->type == FL_DO_BACKWARD;
    const fl_pipeline_what what = backward ? FL_PIPELINE_BACKWARD : FL_PIPELINE_FORWARD;
    size_t count;
    const fl_pipeline_row *row = fl_pipeline_rows(b->p, rank, (uint32_t)i->chunk, what, &count);
    if (!b->clocks) {
        *id = (backward ? b->class[rank].backward : b->class[rank].forward)[i->chunk];
        *seconds = row[count - 1].time_s;
        return FL_OK;
    }
    const double mhz = *fl_pipeline_clock(b->clocks, rank, backward, (uint32_t)i->chunk, (uint32_t)i->microbatch);
    const fl_measured *m =
        &b->w->class[(backward ? b->class[rank].backward : b->class[rank].forward)[i->chunk]].measured;
    double ratio, watts;
    if (fl_curve_at(m->time_ratio, mhz, 0, &ratio) || fl_curve_at(m->power_w, mhz, 0, &watts))
        return fl_fail(b->d, FL_BAD_INPUT, b->p->file, 0, 0,
                       "the plan asks %g MHz of rank %u, expected %g to %g, where its %s is known", mhz, rank,
                       row[0].sm_mhz, row[count - 1].sm_mhz, fl_pipeline_what_name[what]);
    *seconds = row[count - 1].time_s * ratio;
    for (uint32_t c = b->class[rank].first_fixed; c < b->w->class_count; c++)
        if (b->fixed[c].what == what && b->fixed[c].chunk == i->chunk && b->fixed[c].mhz == mhz)
            return *id = c, FL_OK;
    return add_fixed(b, rank, (fl_fixed_class){what, i->chunk, mhz}, watts, id);
}

static fl_status add_compute(builder *b, uint32_t rank, size_t item, uint32_t iteration) {
    const uint32_t stage = rank % b->p->stages, group = b->p->tensor_parallel;
    const fl_instruction *i = &b->o->stage[stage].item[item];
    const fl_rank_classes *c = &b->class[rank];
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
        s = find_class(b, rank, i, &id, &seconds);
    if (!s)
        s = add_op(b, rank, id, seconds,
                   (fl_pipeline_op){forward ? FL_PART_OF_FORWARD : FL_PART_OF_BACKWARD, i->microbatch, i->chunk, -1});
    return s;
}

/* A transfer takes as long as the link from its sender says; a pair, as the longer of its two. */
static fl_status add_transfer(builder *b, uint32_t rank, size_t item, uint32_t iteration) {
    const uint32_t stage = rank % b->p->stages, replica = rank - stage;
    const fl_instruction *i = &b->o->stage[stage].item[item];
    const bool load = receives(i->type, ACT) && loads_in_recv(b, stage);
    const double load_s = load ? seconds_of(b, rank, 0, FL_PIPELINE_LOAD_IN_RECV) : 0;
    fl_wait wait[DIRECTIONS * 2];
    size_t waits = 0;
    double seconds = 0;
    int32_t link = -1;
    fl_status s = FL_OK;
    for (int k = 0; !s && k < DIRECTIONS; k++)
        for (int sent = 0; !s && sent < 2; sent++) {
            uint32_t peer;
            fl_place place;
            if (!(sent ? sends(i->type, k) : receives(i->type, k)))
                continue;
            s = find_peer(b, stage, item, k, sent, &peer, &place);
            link = (sent != 0) == (k == ACT) ? (int32_t)stage : (int32_t)peer;
            const fl_pipeline_what what = k == ACT ? FL_PIPELINE_ACT : FL_PIPELINE_GRAD;
            if (!s)
                seconds = fmax(seconds, seconds_of(b, sent ? rank : replica + peer, i->chunk, what));
            wait[waits++] = (fl_wait){replica + peer, (uint64_t)place.op};
        }
    if (s || (b->eager && (i->type == FL_DO_SEND_ACT || i->type == FL_DO_SEND_GRAD)))
        return s;
    if (load && !is_pair(i->type))
        s = add_op(b, rank, b->class[rank].load, load_s, (fl_pipeline_op){FL_PART_OF_LOAD_IN_RECV, -1, -1, -1});
    if (!s)
        s = add_op(b, rank, b->class[rank].transfer, seconds, (fl_pipeline_op){FL_PART_OF_TRANSFER, -1, -1, link});
    for (size_t k = 0; !s && k < waits; k++)
        s = add_wait(b, rank, wait[k].stream, (int64_t)wait[k].done, iteration);
    if (!s && load && is_pair(i->type))
        s = add_op(b, rank, b->class[rank].load, load_s, (fl_pipeline_op){FL_PART_OF_LOAD_IN_RECV, -1, -1, -1});
    return s;
}

/* The ends of an iteration: first and last stage share tied weights, replicas their gradients, and before the weights
 * change all ranks agree. Lists whose ends differ do not meet. */
static fl_status add_end(builder *b, uint32_t rank, size_t item, uint32_t iteration) {
    const uint32_t stages = b->p->stages, stage = rank % stages, replica = rank - stage, group = b->p->tensor_parallel;
    const fl_instruction_type type = b->o->stage[stage].item[item].type;
    const fl_pipeline_what what = type == FL_DO_REDUCE_TIED   ? FL_PIPELINE_REDUCE_TIED
                                  : type == FL_DO_REDUCE_DATA ? FL_PIPELINE_REDUCE_DATA
                                                              : FL_PIPELINE_STEP;
    const bool tied = stage == 0 || stage == stages - 1;
    fl_status s =
        add_op(b, rank, b->class[rank].transfer, type == FL_DO_REDUCE_TIED && !tied ? 0 : seconds_of(b, rank, 0, what),
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

static fl_status add_instruction(builder *b, uint32_t rank, size_t item, uint32_t iteration) {
    const fl_instruction *i = &b->o->stage[rank % b->p->stages].item[item];
    switch (i->type) {
    case FL_DO_LOAD:
        return add_op(b, rank, b->class[rank].load, seconds_of(b, rank, 0, FL_PIPELINE_LOAD),
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

/* ---- nobody waits for ever ---- */

static size_t item_at(const builder *b, uint32_t stage, uint64_t op) {
    const int64_t within = (int64_t)op % b->ops[stage];
    size_t item = 0;
    while (item + 1 < b->o->stage[stage].count && b->item[stage][item + 1].op <= within)
        item++;
    return item;
}

/* The stream that op `next` of a stream waits for, or FL_NONE. */
static uint32_t held_by(const fl_stream *s, uint64_t next, const uint64_t *at) {
    if (s->wait_first)
        for (uint32_t k = s->wait_first[next]; k < s->wait_first[next + 1]; k++)
            if (at[s->wait[k].stream] < s->wait[k].done)
                return s->wait[k].stream;
    return FL_NONE;
}

static fl_status say_stuck(const builder *b, const uint64_t *at, uint32_t rank) {
    const uint32_t stages = b->p->stages, on = held_by(&b->w->stream[rank], at[rank], at);
    const size_t mine = item_at(b, rank % stages, at[rank]);
    const bool over = at[on] == b->w->stream[on].count;
    const size_t other = over ? 0 : item_at(b, on % stages, at[on]);
    char text[200], name[60];
    snprintf(name, sizeof name, "at its instruction %zu (%s)", other,
             fl_instruction_name[b->o->stage[on % stages].item[other].type]);
    snprintf(text, sizeof text, "rank %u waits here for ever for rank %u, which %s%s", rank, on,
             over ? "has ended" : "waits ", over ? "" : name);
    return wrong(b, rank % stages, mine, text);
}

static fl_status check_waits(const builder *b) {
    uint64_t *at = calloc(b->p->ranks, sizeof *at);
    if (!at)
        return fl_no_memory(b->d, "the pipeline");
    fl_status s = FL_OK;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t r = 0; r < b->p->ranks; r++)
            for (; at[r] < b->w->stream[r].count && held_by(&b->w->stream[r], at[r], at) == FL_NONE; at[r]++)
                moved = true;
    }
    for (uint32_t r = 0; !s && r < b->p->ranks; r++)
        if (at[r] < b->w->stream[r].count)
            s = say_stuck(b, at, r);
    free(at);
    return s;
}

/* ---- all of it ---- */

static void close_builder(builder *b) {
    for (int k = 0; k < DIRECTIONS; k++) {
        free(b->sender[k]);
        free(b->receiver[k]);
    }
    for (uint32_t s = 0; b->item && s < b->p->stages; s++)
        free(b->item[s]);
    for (uint32_t r = 0; b->class && r < b->p->ranks; r++) {
        free(b->class[r].forward);
        free(b->class[r].backward);
    }
    free(b->item);
    free(b->ops);
    free(b->class);
    free(b->fixed);
}

static fl_status add_all(builder *b, uint32_t iterations) {
    fl_status s = FL_OK;
    b->w->sm_min_mhz = 0;
    b->w->sm_max_mhz = INFINITY;
    for (uint32_t r = 0; !s && r < b->p->ranks; r++) {
        uint32_t stream;
        s = fl_workload_add_stream(b->w, r, 0, (int32_t)r, &stream, b->d);
        if (!s)
            s = add_rank_classes(b, r);
    }
    for (uint32_t r = 0; !s && r < b->p->ranks; r++) {
        b->class[r].first_fixed = b->w->class_count;
        for (uint32_t n = 0; !s && n < iterations; n++)
            for (size_t i = 0; !s && i < b->o->stage[r % b->p->stages].count; i++)
                s = add_instruction(b, r, i, n);
    }
    return s;
}

fl_status fl_build_pipeline(fl_workload **out, const char *name, const fl_pipeline *p, const fl_pipeline_order *o,
                            const fl_node_spec *node, uint32_t iterations, const fl_pipeline_clocks *clocks,
                            fl_pipeline_op **op, fl_diag *d) {
    builder b = {
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
        s = find_places(&b);
    if (!s)
        s = add_all(&b, iterations);
    if (!s)
        s = fl_workload_finish(b.w, 0, d);
    if (!s)
        s = check_waits(&b);
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
