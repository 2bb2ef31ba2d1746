/* Moves lanes into vector registers and back (streams_lanes.c). Internal to sim/. */
#pragma once

#include "sim/advance/streams_inside.h"

typedef struct fl_place { /* the state of a lane that the vectors do not hold */
    const fl_stream *s;
    uint64_t next, stop;          /* ops before `next` have finished; at `stop` something besides an op ends too */
    int64_t start;                /* start of its op in progress, or of the gap before it */
    int64_t length;               /* length of its op in progress, alone at these clocks, or of the gap before it */
    int64_t host_time, host_work; /* of the gap in progress, not charged yet */
    int64_t began;
    uint32_t class_id;
    bool in_parts, running, moved; /* moved: an event has passed here */
    /* the op after the one in progress */
    uint32_t then_class;
    int64_t then_gap, then_length;
} fl_place;

typedef struct fl_cells { /* of the lanes, one after the other */
    int64_t event[FL_SHARES_MAX], left[FL_SHARES_MAX], since[FL_SHARES_MAX], charged[FL_SHARES_MAX],
        rate[FL_SHARES_MAX], sms[FL_SHARES_MAX], memory[FL_SHARES_MAX], dyn[FL_SHARES_MAX];
} fl_cells;

static inline void fl_lanes_look_ahead(const fl_course *c, const fl_row *row, fl_place *p, uint64_t i) {
    if (i >= p->s->count)
        return;
    int64_t gap_ns, work_ns;
    fl_workload_op(p->s, i, &gap_ns, &work_ns, &p->then_class);
    p->then_gap = fl_length_ps(gap_ns, c->host ? c->host[host_load(c, p->then_class)].mul : FL_MUL_ONE);
    p->then_length = fl_length_ps(work_ns, row[p->then_class].mul);
}

/* The state of lane i of an island of one GPU, with the op after the one in progress. */
void fl_lanes_read(const fl_course *c, uint32_t i, fl_place *p, fl_cells *x);
/* Writes the state back where the general way expects it. */
void fl_lanes_write(const fl_course *c, uint32_t i, const fl_place *p, const fl_cells *x);
