/* Shared by the files that advance an island: waits, and the work of host threads. */
#pragma once

#include "sim/gpu/course.h"

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

/* For a thread that computes, time passes even while it waits for the bus; work does not. */
static inline void charge_host(fl_course *c, fl_work *p, uint32_t load, int64_t t, int64_t done) {
    c->sums.time_ps[load] += t - p->start_ps;
    c->sums.work_ps[load] += done - p->charged_ps;
    p->start_ps = t;
    p->charged_ps = done;
}

static inline void start_host(fl_course *c, fl_work *p, uint32_t load, int64_t ns, int64_t t) {
    p->left_ps = c->host ? fl_length_ps(ns, c->host[load].mul) : ns * FL_PS_PER_NS;
    p->start_ps = p->since_ps = t;
    p->charged_ps = 0;
    p->rate = FL_SHARE_ONE;
    *p->event_ps = t + p->left_ps;
    if (c->shared_bus)
        c->gpu[0]->touched = true;
}

static inline void end_host(fl_course *c, fl_work *p, uint32_t load, int64_t t) {
    if (c->host)
        charge_host(c, p, load, t, p->left_ps);
    if (c->shared_bus)
        c->gpu[0]->touched = true;
}

/* The gaps of a stream without launches are the time of a host thread that was not recorded. */
static inline bool gap_is_host(const fl_lane *l) { return !l->s->launched || l->s->served; }

/* ---- one op, for launches.c ---- */

/* Begins a fresh op at t, if everything it waits for has happened. True if it moved. */
bool fl_streams_begin_op(fl_course *c, fl_lane *l, int64_t t);
/* Call it at the instant t at which the gap of an op ends, or the op itself. The stream is launched. */
void fl_streams_pass_op(fl_course *c, fl_lane *l, int64_t t);

/* How host time before ops of a class loads the CPU. Most workloads have one load only, so the class does not matter.
 */
static inline uint32_t host_load(const fl_course *c, uint32_t class_id) {
    return c->w->host_load_count ? c->w->class[class_id].host : 0;
}

/* ---- shortcuts ---- */

/* Passes as many events from t on as a faster way can, up to `until`; returns the instant reached. */
int64_t fl_streams_shortcut(fl_course *c, int64_t t, int64_t until);

/* For streams of one GPU without launches and waits; the GPU keeps no records and is on the bus. Both pass events from
 * t on, up to `until` at most, and return the instant of the last one; *passed: how many. */

/* For times without scarcity. A GPU that may be power-gated must not be idle at t. */
int64_t fl_streams_free(fl_course *c, int64_t t, int64_t until, uint64_t *passed);
/* With the lanes in vector registers; returns where nothing has been scarce for more than `calm` consecutive instants.
 */
int64_t fl_streams_lanes(fl_course *c, int64_t t, int64_t until, uint64_t calm, uint64_t *passed);
bool fl_streams_lanes_here(void); /* whether this CPU has them */

/* ---- host threads ---- */

/* Lets a host thread continue whose event is due at t, or that waits, if it can. True if anything moved. */
bool fl_streams_thread(fl_course *c, fl_host_thread *h, int64_t t);
