/* Where the ops of each instruction stand, and which instructions are the two ends of a transfer. */
#include "sim/pipeline/inside.h"

#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- what an instruction does ---- */

bool fl_pipe_sends(fl_instruction_type t, int direction) {
    return direction == FL_PIPE_ACT ? t == FL_DO_SEND_ACT || t == FL_DO_SEND_ACT_RECV_GRAD
                                    : t == FL_DO_SEND_GRAD || t == FL_DO_SEND_GRAD_RECV_ACT;
}

bool fl_pipe_receives(fl_instruction_type t, int direction) {
    return direction == FL_PIPE_ACT ? t == FL_DO_RECV_ACT || t == FL_DO_SEND_GRAD_RECV_ACT
                                    : t == FL_DO_RECV_GRAD || t == FL_DO_SEND_ACT_RECV_GRAD;
}

static bool computes(fl_instruction_type t) { return t == FL_DO_FORWARD || t == FL_DO_BACKWARD; }

bool fl_pipe_is_pair(fl_instruction_type t) { return t == FL_DO_SEND_ACT_RECV_GRAD || t == FL_DO_SEND_GRAD_RECV_ACT; }

static int32_t received(const fl_instruction *i) { return fl_pipe_is_pair(i->type) ? i->microbatch2 : i->microbatch; }

/* Where the parts that a transfer joins lie: activations go on to the next stage, or of the last to the next chunk of
 * the first. Of a gradient it is the other way round. */
static bool peer_of(const fl_pipe_builder *b, uint32_t stage, int32_t chunk, bool next, uint32_t *peer,
                    int32_t *peer_chunk) {
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

static size_t place_of(const fl_pipe_builder *b, uint32_t stage, int32_t chunk, int32_t microbatch) {
    return ((size_t)stage * b->p->chunks + (size_t)chunk) * b->p->microbatches + (size_t)microbatch;
}

static bool stated(const fl_pipeline *p, fl_pipeline_what what) {
    for (size_t i = 0; i < p->row_count; i++)
        if (p->row[i].what == what)
            return true;
    return false;
}

fl_status fl_pipe_find_flat(fl_pipe_builder *b) {
    for (fl_pipeline_what what = FL_PIPELINE_LOAD; what <= FL_PIPELINE_STEP; what++) {
        if (!stated(b->p, what))
            continue;
        double *s = b->flat_s[what] = calloc((size_t)b->p->ranks * b->p->chunks, sizeof *s);
        if (!s)
            return fl_no_memory(b->d, "the pipeline");
        for (uint32_t rank = 0; rank < b->p->ranks; rank++)
            for (uint32_t chunk = 0; chunk < b->p->chunks; chunk++) {
                size_t count;
                const fl_pipeline_row *row = fl_pipeline_rows(b->p, rank, chunk, what, &count);
                s[rank * b->p->chunks + chunk] = row ? row->time_s : 0;
            }
    }
    return FL_OK;
}

double fl_pipe_seconds_of(const fl_pipe_builder *b, uint32_t rank, int32_t chunk, fl_pipeline_what what) {
    return b->flat_s[what] ? b->flat_s[what][rank * b->p->chunks + (uint32_t)chunk] : 0;
}

/* Some rank of the stage fetches its input while it receives. */
bool fl_pipe_loads_in_recv(const fl_pipe_builder *b, uint32_t stage) {
    for (uint32_t rank = stage; rank < b->p->ranks; rank += b->p->stages)
        if (fl_pipe_seconds_of(b, rank, 0, FL_PIPELINE_LOAD_IN_RECV) > 0)
            return true;
    return false;
}

/* How many ops an instruction becomes; *wait: which of them waits for other ranks. */
static int64_t op_count(const fl_pipe_builder *b, uint32_t stage, const fl_instruction *i, int64_t *wait) {
    const bool load = fl_pipe_receives(i->type, FL_PIPE_ACT) && fl_pipe_loads_in_recv(b, stage);
    *wait = 0;
    if (computes(i->type)) /* a marker, where tensor-parallel ranks meet, the work */
        return *wait = 1, b->p->tensor_parallel > 1 ? 3 : 2;
    if (b->eager && (i->type == FL_DO_SEND_ACT || i->type == FL_DO_SEND_GRAD))
        return 0;
    *wait = load && !fl_pipe_is_pair(i->type);
    return load ? 2 : 1;
}

/* ---- places ---- */

static const char *const CARRIED[FL_PIPE_DIRECTIONS] = {"activation", "gradient"};

/* FL_BAD_INPUT: what is wrong with an instruction. */
static fl_status fl_pipe_wrong(const fl_pipe_builder *b, uint32_t stage, size_t item, const char *what) {
    return fl_fail(b->d, FL_BAD_INPUT, b->p->order ? b->p->order : b->p->file, 0, 0,
                   "stage %u, instruction %zu (%s): %s", stage, item,
                   fl_instruction_name[b->o->stage[stage].item[item].type], what);
}

static fl_status note_place(fl_pipe_builder *b, uint32_t stage, size_t item, int direction, bool sent) {
    const fl_instruction *i = &b->o->stage[stage].item[item];
    const int32_t microbatch = sent ? i->microbatch : received(i);
    fl_pipe_place *place = (sent ? b->sender : b->receiver)[direction] + place_of(b, stage, i->chunk, microbatch);
    int64_t wait;
    uint32_t peer;
    int32_t peer_chunk;
    (void)op_count(b, stage, i, &wait);
    if (!peer_of(b, stage, i->chunk, sent == (direction == FL_PIPE_ACT), &peer, &peer_chunk))
        return fl_pipe_wrong(b, stage, item, "there is no stage at the other end, expected none to be named");
    if (place->op != FL_PIPE_NOWHERE)
        return fl_pipe_wrong(b, stage, item, "the microbatch has been through here, expected each transfer once");
    *place = (fl_pipe_place){b->item[stage][item].op + wait, item};
    return FL_OK;
}

fl_status fl_pipe_find_places(fl_pipe_builder *b) {
    fl_status s = FL_OK;
    for (uint32_t stage = 0; !s && stage < b->p->stages; stage++) {
        int64_t op = 0, wait;
        for (size_t i = 0; !s && i < b->o->stage[stage].count; i++) {
            const fl_instruction *item = &b->o->stage[stage].item[i];
            b->item[stage][i] = (fl_pipe_place){op, i};
            op += op_count(b, stage, item, &wait);
            for (int k = 0; !s && k < FL_PIPE_DIRECTIONS; k++) {
                if (fl_pipe_sends(item->type, k))
                    s = note_place(b, stage, i, k, true);
                if (!s && fl_pipe_receives(item->type, k))
                    s = note_place(b, stage, i, k, false);
            }
        }
        b->ops[stage] = op;
    }
    return s;
}

/* The instruction at the other end of a transfer. */
fl_status fl_pipe_find_peer(const fl_pipe_builder *b, uint32_t stage, size_t item, int direction, bool sent,
                            uint32_t *peer, fl_pipe_place *place) {
    const fl_instruction *i = &b->o->stage[stage].item[item];
    int32_t chunk;
    (void)peer_of(b, stage, i->chunk, sent == (direction == FL_PIPE_ACT), peer, &chunk);
    *place = (sent ? b->receiver : b->sender)[direction][place_of(b, *peer, chunk, sent ? i->microbatch : received(i))];
    if (place->op != FL_PIPE_NOWHERE)
        return FL_OK;
    char text[160];
    snprintf(text, sizeof text, "stage %u does not %s the %s of microbatch %d, expected it to", *peer,
             sent ? "receive" : "send", CARRIED[direction], sent ? i->microbatch : received(i));
    return fl_pipe_wrong(b, stage, item, text);
}

/* Ranks that wait for each other for ever. */

static size_t item_at(const fl_pipe_builder *b, uint32_t stage, uint64_t op) {
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

static fl_status say_stuck(const fl_pipe_builder *b, const uint64_t *at, uint32_t rank) {
    const uint32_t stages = b->p->stages, on = held_by(&b->w->stream[rank], at[rank], at);
    const size_t mine = item_at(b, rank % stages, at[rank]);
    const bool over = at[on] == b->w->stream[on].count;
    const size_t other = over ? 0 : item_at(b, on % stages, at[on]);
    char text[200], name[60];
    snprintf(name, sizeof name, "at its instruction %zu (%s)", other,
             fl_instruction_name[b->o->stage[on % stages].item[other].type]);
    snprintf(text, sizeof text, "rank %u waits here for ever for rank %u, which %s%s", rank, on,
             over ? "has ended" : "waits ", over ? "" : name);
    return fl_pipe_wrong(b, rank % stages, mine, text);
}

fl_status fl_pipe_check_waits(const fl_pipe_builder *b) {
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
