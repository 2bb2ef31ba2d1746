/* Host threads of an island: their launches, waits and sleep. */
#include "sim/advance/streams_inside.h"

/* Starts the host time up to the next item; `after_ns`: the time that the previous item still takes. */
static void thread_goes_on(fl_course *c, fl_host_thread *h, int64_t t, int64_t after_ns) {
    const bool more = h->next < h->t->count;
    if (!more && !after_ns) {
        *h->p.event_ps = FL_TIME_NEVER;
        c->done++;
        if (!h->t->server)
            host_ends(c, t);
        return;
    }
    h->work_ns = after_ns + (more ? h->t->item[h->next].host_ns : 0);
    h->load = more ? h->t->item[h->next].load : 0;
    h->computing = true;
    start_host(c, &h->p, h->load, h->work_ns, t);
}

static bool thread_waits(fl_host_thread *h) {
    const bool moved = *h->p.event_ps != FL_TIME_NEVER;
    *h->p.event_ps = FL_TIME_NEVER;
    h->waiting = true;
    return moved;
}

/* Sleeps until the request arrives, and is not active until then: an idle server draws no power. */
static bool thread_sleeps(fl_course *c, fl_host_thread *h, int64_t until, int64_t t) {
    *h->p.event_ps = until;
    h->asleep = true;
    if (!h->t->server)
        host_ends(c, t);
    return true;
}

/* Does the item whose host time is over. True if anything moved; a full queue or an unfinished wait leaves it waiting.
 */
bool fl_streams_thread(fl_course *c, fl_host_thread *h, int64_t t) {
    if (h->computing) {
        end_host(c, &h->p, h->load, t);
        h->computing = false;
    }
    if (h->next == h->t->count) { /* it has left its last synchronisation */
        thread_goes_on(c, h, t, 0);
        return false;
    }
    const fl_item *item = &h->t->item[h->next];
    if (item->type == FL_ITEM_LAUNCH) {
        fl_lane *l = c->lane[item->stream];
        if (l->launched - l->next >=
            c->queue) /* the queue is full: the host blocks until an op of the stream finishes */
            return thread_waits(h);
        if (l->s->served && l->launched == l->next)
            host_begins(c, t);
        l->launched += 1 + item->parts;
        h->waiting = false;
        h->next++;
        thread_goes_on(c, h, t, 0);
        return true;
    }
    if (item->type == FL_ITEM_ARRIVE) {
        const int64_t at = c->w->arrival_ns[item->request] * FL_PS_PER_NS;
        if (t < at)
            return thread_sleeps(c, h, at, t);
        if (h->asleep && !h->t->server)
            host_begins(c, t);
        h->asleep = false;
    } else if (!wait_over(c, h->t->wait + item->wait_first, item->wait_count)) {
        return thread_waits(h);
    }
    if (item->type == FL_ITEM_DONE)
        c->request_ps[item->request] = t; /* with several threads, the time of the last one stays */
    h->waiting = false;
    h->next++;
    thread_goes_on(c, h, t, item->after_ns);
    return true;
}
