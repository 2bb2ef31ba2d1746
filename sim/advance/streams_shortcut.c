/* Chooses the faster way through several streams that applies now. Both give the bits of the general way (streams.c),
 * so the moment of the choice cannot affect the result. */
#include "sim/advance/streams_inside.h"

static bool is_due(fl_shortcut *s) {
    const bool due = s->may && !s->sit_out;
    s->sit_out -= s->sit_out > 0;
    return due;
}

/* Beginning a shortcut costs a look at every lane, and an event of the general way costs one too. A shortcut that
 * passed only a few events twice in a row pauses. */
static inline void after_shortcut(fl_shortcut *s, uint64_t passed) {
    enum { FEW = 24, SHORTS_MAX = 6 };
    s->shorts = passed >= FEW ? 0 : s->shorts + (s->shorts < SHORTS_MAX);
    s->sit_out = s->shorts > 1 ? (uint64_t)FEW << s->shorts : 0;
}

int64_t fl_streams_shortcut(fl_course *c, int64_t t, int64_t until) {
    fl_gpu *g = c->gpu[0];
    uint64_t passed;
    if (g->records.on || g->lost)
        return t;
    if (!g->scarce && (g->active || !g->gate_ps) && is_due(&c->free)) {
        t = fl_streams_free(c, t, until, &passed);
        after_shortcut(&c->free, passed);
    } else if (is_due(&c->lanes)) {
        const uint64_t calm = c->free.may ? 4 * (uint64_t)c->is->stream_count + c->free.sit_out : UINT64_MAX;
        t = fl_streams_lanes(c, t, until, calm, &passed);
        after_shortcut(&c->lanes, passed);
        c->free.sit_out -= passed < c->free.sit_out ? passed : c->free.sit_out;
        g->taken[FL_PATH_VECTOR] += passed > 0;
    }
    return t;
}
