/* Host threads of an island at an instant at which the node stands still: their activity is charged, and another CPU
 * clock takes effect. */
#include "sim/advance/streams.h"
#include "sim/advance/streams_inside.h"

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
