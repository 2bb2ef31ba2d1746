/* Host threads of an island: launches, synchronisations, requests that arrive. */
#include "sim/advance/inside.h"

#include "models/laws/laws.h"
#include "sim/advance/advance.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/workload/workload.h"

#include <stdbool.h>
#include <stdint.h>

static inline void host_begins(fl_course *c, int64_t t) {
    c->sums.active_ps += c->active++ * (t - c->active_since_ps);
    c->active_since_ps = t;
}

/* Host threads of an island at an instant at which the node stands still: their activity is charged, and another CPU
 * clock takes effect. */

void fl_streams_charge_host(fl_course *c, int64_t t) {
    c->sums.active_ps += c->active * (t - c->active_since_ps);
    c->active_since_ps = t;
    for (uint32_t i = 0; i < c->is->stream_count; i++) {
        fl_lane *l = c->mine[i];
        if (l->phase == FL_PHASE_GAP && gap_is_host(l))
            charge_host(c, &l->p, c->w->class[l->class_id].host, t, fl_work_done(&l->p, t));
    }
    for (uint32_t i = 0; i < c->is->thread_count; i++)
        if (c->thread[i].computing)
            charge_host(c, &c->thread[i].p, c->thread[i].load, t, fl_work_done(&c->thread[i].p, t));
}

static void rescale_host(fl_work *p, int64_t work_ns, uint32_t before, uint32_t after, int64_t t) {
    p->left_ps =
        fl_rescale_ps(p->left_ps - fl_work_done(p, t), fl_length_ps(work_ns, before), fl_length_ps(work_ns, after));
    p->since_ps = t;
    p->charged_ps = 0;
    *p->event_ps = fl_work_ends(t, p->left_ps, p->rate);
}

void fl_streams_rescale_host(fl_course *c, const fl_cpu_row *before, int64_t t) {
    for (uint32_t i = 0; i < c->is->stream_count; i++) {
        fl_lane *l = c->mine[i];
        if (l->phase != FL_PHASE_GAP || !gap_is_host(l))
            continue;
        int64_t gap_ns, work_ns;
        uint32_t class_id;
        fl_workload_op(l->s, l->next, &gap_ns, &work_ns, &class_id);
        const uint32_t load = c->w->class[class_id].host;
        rescale_host(&l->p, gap_ns, before[load].mul, c->host[load].mul, t);
    }
    for (uint32_t i = 0; i < c->is->thread_count; i++) {
        fl_host_thread *h = &c->thread[i];
        if (h->computing)
            rescale_host(&h->p, h->work_ns, before[h->load].mul, c->host[h->load].mul, t);
    }
    if (c->shared_bus)
        c->gpu[0]->touched = true;
}

/* Host threads of an island: their launches, waits and sleep. */

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
