#include "policies/tightrope_context.h"

#include <math.h>
#include <stddef.h>

#define PLACES (2 * FL_TIGHTROPE_CONTEXTS)

/* Half of the places are always free, so a search ends. */
static uint16_t *find(fl_tightrope_contexts *c, uint32_t kind, uint32_t after) {
    uint32_t i = (kind * UINT32_C(2654435761) ^ after * UINT32_C(2246822519)) >> 7;
    for (;; i++) {
        uint16_t *place = &c->place[i % PLACES];
        if (!*place || (c->at[*place - 1].kind == kind && c->at[*place - 1].after == after))
            return place;
    }
}

void fl_tightrope_context_break(fl_tightrope_contexts *c) { c->last = c->before = 0; }

fl_tightrope_kind *fl_tightrope_context_next(fl_tightrope_contexts *c, uint32_t kind) {
    if (kind + 1 != c->last)
        c->before = c->last, c->last = kind + 1;
    if (!c->before)
        return NULL;
    uint16_t *place = find(c, c->last, c->before);
    if (!*place) {
        if (c->count == FL_TIGHTROPE_CONTEXTS)
            return NULL;
        c->at[c->count++] = (fl_tightrope_context){.kind = c->last, .after = c->before, .next = c->first[kind]};
        *place = c->first[kind] = (uint16_t)c->count;
    }
    return &c->at[*place - 1].known;
}

void fl_tightrope_context_visited(fl_tightrope_contexts *c) {
    for (uint32_t i = 0; i < c->count; i++)
        fl_tightrope_kind_visited(&c->at[i].known);
}

void fl_tightrope_context_keep(fl_tightrope_contexts *c) {
    for (uint32_t i = 0; i < c->count; i++)
        c->at[i].known = fl_tightrope_kind_known(&c->at[i].known);
    fl_tightrope_context_break(c);
}

void fl_tightrope_context_credit(const fl_tightrope_contexts *c, const fl_tightrope_kind *all, uint32_t kind,
                                 double sigmas, fl_tightrope_sum *sum) {
    fl_tightrope_sum apart = {all->floor_s, 0};
    for (uint32_t i = c->first[kind]; i; i = c->at[i - 1].next) {
        const fl_tightrope_kind *k = &c->at[i - 1].known;
        apart.low_s -= k->floor_s; /* of what has no context as much stays as is certain */
        fl_tightrope_kind_credit(k, sigmas, &apart);
    }
    if (apart.low_s - sqrt(apart.square) > sum->low_s - sqrt(sum->square))
        *sum = apart;
}
