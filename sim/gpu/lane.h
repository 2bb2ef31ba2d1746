/* One stream in execution. Internal to sim/. */
#pragma once

#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"

typedef enum fl_phase {
    FL_PHASE_FRESH, /* the next op may not start yet, or nobody has looked */
    FL_PHASE_GAP,
    FL_PHASE_RUN,
    FL_PHASE_DONE,
    FL_PHASE_LOST /* in progress on a GPU that fell off the bus */
} fl_phase;

typedef struct fl_lane { /* one stream in execution */
    const fl_stream *s;
    fl_gpu *gpu;
    uint64_t next; /* ops before it have finished */
    uint64_t launched;
    uint32_t class_id;
    fl_phase phase;
    int64_t length_ps; /* of the kernel in progress, alone at the present clocks; its work in ns before that */
    fl_work p;
    uint32_t sms, memory;     /* demands of the kernel in progress, in 1/65536 */
    int32_t dyn_mw;           /* its power above the base, alone */
    uint32_t marks;           /* passed */
    int64_t *mark_ps;         /* s->mark_count: when each was passed */
    int64_t began_ps;         /* of the kernel in progress, its earlier phases included */
    bool in_parts;            /* the op before was a phase of the same kernel */
    int64_t worked_ps;        /* lone streams: time spent in ops rather than gaps */
    bool at_barrier;          /* only an event of another GPU keeps its next op from starting */
    bool spinning;            /* and that op spins meanwhile: since p.since_ps, or since the clock changed */
    int64_t *iteration_ps;    /* s->iterations: when each marker was passed */
    uint64_t iterations;      /* passed */
    fl_prefix_place place[2]; /* where a lone stream stood last, on a table of its clocks: place[stands] */
    uint32_t stands;
    fl_prefix_look stop, window; /* where it is likely to look next on that table: for a stretch, for foreseen sums */
} fl_lane;

/* The record of the kernel that has just ended, for who reads records; g->records.failed where memory is short. */
void fl_lane_record(const fl_lane *l, int64_t end_ps);
