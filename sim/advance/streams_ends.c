/* The start of an island, and the cases in which it never ends: a GPU that fell off the bus, or waits for what cannot
 * come. */
#include "sim/advance/streams.h"
#include "sim/advance/streams_inside.h"

#include <stdio.h>

void fl_streams_begin(fl_course *c) {
    for (uint32_t i = 0; i < c->is->stream_count; i++)
        c->active += c->mine[i]->phase != FL_PHASE_DONE && !c->mine[i]->s->launched;
    for (uint32_t i = 0; i < c->is->thread_count; i++) {
        fl_host_thread *h = &c->thread[i];
        if (!h->t->count) {
            c->done++;
            continue;
        }
        c->active += !h->t->server;
        h->work_ns = h->t->item[0].host_ns;
        h->load = h->t->item[0].load;
        h->computing = true;
        start_host(c, &h->p, h->load, h->work_ns, 0);
    }
}

void fl_streams_lose(fl_course *c, fl_gpu *g) {
    for (uint32_t i = 0; i < c->is->stream_count; i++) {
        fl_lane *l = c->mine[i];
        if (l->gpu != g)
            continue;
        l->spinning = false;
        if (l->phase != FL_PHASE_RUN)
            continue;
        l->phase = FL_PHASE_LOST;
        *l->p.event_ps = FL_TIME_NEVER;
    }
    g->demand_sms = g->demand_memory = g->dyn_now_mw = 0;
    g->active = g->resident = 0;
}

const char *fl_streams_stuck(const fl_course *c, char *buf, size_t size) {
    for (uint32_t i = 0; i < c->is->stream_count + c->is->thread_count; i++)
        if (c->event_ps[i] != FL_TIME_NEVER)
            return NULL;
    for (uint32_t i = 0; i < c->is->stream_count; i++)
        if (c->mine[i]->phase != FL_PHASE_DONE) {
            snprintf(buf, size, "stream %d of GPU %u waits for ever before op %llu", c->mine[i]->s->id,
                     c->mine[i]->gpu->index, (unsigned long long)c->mine[i]->next);
            return buf;
        }
    for (uint32_t i = 0; i < c->is->thread_count; i++)
        if (c->thread[i].next < c->thread[i].t->count) {
            snprintf(buf, size, "host thread %d waits for ever", c->thread[i].t->id);
            return buf;
        }
    return NULL;
}
