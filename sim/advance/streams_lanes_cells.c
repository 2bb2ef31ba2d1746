/* Moves lanes into vector registers and back: plain C, outside the loop. */
#include "sim/advance/streams_lanes_cells.h"

void fl_lanes_read(const fl_course *c, uint32_t i, fl_place *p, fl_cells *x) {
    const fl_lane *l = c->mine[i];
    const fl_row *row = c->gpu[0]->rates->row;
    const bool runs = l->phase == FL_PHASE_RUN, gap = l->phase == FL_PHASE_GAP;
    *p = (fl_place){.s = l->s, .next = l->next, .class_id = l->class_id, .in_parts = l->in_parts, .running = runs};
    p->stop = l->marks < l->s->mark_count ? l->s->mark[l->marks] : l->s->count;
    p->began = l->began_ps;
    p->start = l->p.start_ps;
    p->length = l->length_ps;
    p->host_time = gap ? c->event_ps[i] - l->p.start_ps : 0;
    p->host_work = gap ? l->p.left_ps - l->p.charged_ps : 0;
    p->then_length = gap ? fl_length_ps(l->length_ps, row[l->class_id].mul) : 0;
    if (runs)
        fl_lanes_look_ahead(c, row, p, p->next + 1);
    x->event[i] = c->event_ps[i];
    x->left[i] = runs ? l->p.left_ps : 0;
    x->since[i] = runs ? l->p.since_ps : 0;
    x->charged[i] = runs ? l->p.charged_ps : 0;
    x->rate[i] = runs ? l->p.rate : FL_SHARE_ONE;
    x->sms[i] = runs ? l->sms : 0;
    x->memory[i] = runs ? l->memory : 0;
    x->dyn[i] = runs ? l->dyn_mw : 0;
}

void fl_lanes_write(const fl_course *c, uint32_t i, const fl_place *p, const fl_cells *x) {
    fl_lane *l = c->mine[i];
    if (p->running) {
        l->p.left_ps = x->left[i];
        l->p.since_ps = x->since[i];
        l->p.charged_ps = x->charged[i];
        l->p.rate = (uint32_t)x->rate[i];
        c->event_ps[i] = x->event[i];
    }
    if (!p->moved)
        return;
    l->next = p->next;
    l->class_id = p->class_id;
    l->in_parts = p->in_parts;
    l->began_ps = p->began;
    l->length_ps = p->length;
    l->phase = p->running ? FL_PHASE_RUN : FL_PHASE_GAP;
    l->p.start_ps = p->start;
    if (p->running) {
        l->sms = (uint32_t)x->sms[i];
        l->memory = (uint32_t)x->memory[i];
        l->dyn_mw = (int32_t)x->dyn[i];
        return;
    }
    l->p = (fl_work){.left_ps = p->length,
                     .since_ps = p->start,
                     .start_ps = p->start,
                     .event_ps = l->p.event_ps,
                     .rate = FL_SHARE_ONE};
    c->event_ps[i] = x->event[i];
    int64_t gap_ns; /* its work in ns until the kernel starts */
    fl_workload_op(l->s, l->next, &gap_ns, &l->length_ps, &l->class_id);
}
