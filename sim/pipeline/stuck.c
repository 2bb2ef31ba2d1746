/* Ranks that wait for each other for ever. */
#include "sim/pipeline/inside.h"

#include <stdio.h>
#include <stdlib.h>

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
