/* What the files that advance an island share: progress at a rate, and the work of host threads. */
#ifndef FL_COURSE_H
#define FL_COURSE_H

#include "models/shares.h"
#include "sim/gpu.h"

static inline int64_t work_done(const fl_progress *p, int64_t t) {
    int64_t dt = t - p->since_ps;
    if (p->rate == FL_SHARE_ONE)
        return dt < p->left_ps ? dt : p->left_ps;
    int64_t done = dt < INT64_C(1) << 46 ? dt * p->rate >> 16 : (int64_t)(((fl_uwide)(uint64_t)dt * p->rate) >> 16);
    return done < p->left_ps ? done : p->left_ps;
}

static inline int64_t finish_time(int64_t since, int64_t left, uint32_t rate) {
    if (rate == FL_SHARE_ONE)
        return since + left;
    if (left <
        INT64_C(1) << 36) { /* exact in doubles: below 2^53, and the quotient is 1/rate away from a wrong floor */
        double up = (double)(left << 16) + (double)(rate - 1);
        return since + (int64_t)(up / (double)rate);
    }
    return since + (int64_t)((((fl_uwide)(uint64_t)left << 16) + rate - 1) / rate);
}

/* ---- waits ---- */

static inline bool wait_over(const fl_course *c, const fl_wait *wait, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (c->lane[wait[i].stream]->next < wait[i].done)
            return false;
    return true;
}

/* ---- host work ---- */

static inline void host_ends(fl_course *c, int64_t t) {
    c->sums.active_ps += c->active-- * (t - c->active_since_ps);
    c->active_since_ps = t;
}

static inline void host_begins(fl_course *c, int64_t t) {
    c->sums.active_ps += c->active++ * (t - c->active_since_ps);
    c->active_since_ps = t;
}

/* Time passes for a thread that computes even while it waits for the bus; work does not. */
static inline void charge_host(fl_course *c, fl_progress *p, uint32_t load, int64_t t, int64_t done) {
    c->sums.time_ps[load] += t - p->start_ps;
    c->sums.work_ps[load] += done - p->charged_ps;
    p->start_ps = t;
    p->charged_ps = done;
}

static inline void start_host(fl_course *c, fl_progress *p, uint32_t load, int64_t ns, int64_t t) {
    p->left_ps = c->host ? fl_length_ps(ns, c->host[load].mul) : ns * FL_PS_PER_NS;
    p->start_ps = p->since_ps = t;
    p->charged_ps = 0;
    p->rate = FL_SHARE_ONE;
    *p->event_ps = t + p->left_ps;
    if (c->shared_bus)
        c->gpu[0]->touched = true;
}

static inline void end_host(fl_course *c, fl_progress *p, uint32_t load, int64_t t) {
    if (c->host)
        charge_host(c, p, load, t, p->left_ps);
    if (c->shared_bus)
        c->gpu[0]->touched = true;
}

/* The gaps of a stream without launches are time of a host thread that nobody recorded. */
static inline bool gap_is_host(const fl_lane *l) { return !l->s->launched || l->s->served; }

#endif
