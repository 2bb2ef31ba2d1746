/* An island in execution: its lanes, its host threads, and what they share. Internal to sim/. */
#pragma once

#include "models/laws/cpu_row.h"
#include "sim/gpu/lane.h"

typedef struct fl_host_thread {
    const fl_thread *t;
    size_t next;
    fl_work p;
    int64_t work_ns; /* of the stretch of host time in progress */
    uint32_t load;   /* its fl_host_load */
    bool computing;  /* in a stretch of host time */
    bool waiting;    /* in a synchronisation, or for room in a queue */
    bool asleep;     /* until a request arrives */
} fl_host_thread;

typedef struct fl_host_sums {   /* of one island, since the node took them last */
    int64_t *time_ps, *work_ps; /* by host load: time spent computing, and work done in it */
    int64_t active_ps;          /* host threads that have not ended x time: what is not computing is waiting */
} fl_host_sums;

typedef struct fl_ahead fl_ahead; /* what lanes do next (streams_free.c) */

typedef struct fl_shortcut { /* a faster way through several streams, with the bits of the general one */
    bool may;
    uint32_t shorts;  /* tries in a row that were hardly worth their start */
    uint64_t sit_out; /* events to go another way before the next try */
} fl_shortcut;

typedef struct fl_course {          /* an island in execution */
    const struct fl_source *source; /* how its work goes on (source.h) */
    const fl_island *is;
    const fl_workload *w;
    fl_lane **lane; /* by stream index of the workload; only those of the island are used */
    fl_lane **mine; /* the island's, in order */
    fl_gpu **gpu;   /* the island's */
    fl_host_thread *thread;
    int64_t *event_ps; /* next event of each lane, then of each thread: in one place, since every event looks for the
                          earliest */
    uint32_t queue;
    int64_t *request_ps;    /* by request: when it had been served; of the node */
    bool simple;            /* no launches and no waits: an op may begin as soon as the one before it has ended */
    uint32_t done;          /* lanes and threads that have finished */
    const fl_cpu_row *host; /* by host load, at the CPU's present state; NULL: the CPU is not modelled */
    fl_host_sums sums;
    int64_t lone_worked_ps; /* of a lone stream, as of active_since_ps */
    uint32_t active;        /* host threads that have not ended, recorded ones and those of streams without launches */
    int64_t active_since_ps;
    bool shared_bus;       /* an APU: host work takes its share of the GPU's bandwidth */
    uint32_t capacity;     /* of the memory bus now, in 1/65536 */
    uint32_t interference; /* in 1/65536, see fl_device */
    int64_t *ends_ps;      /* one stream with launches: when its last ops ended, op i at i & ends_mask; else NULL */
    uint64_t ends_mask, ends_queue; /* ends_queue: the queue, or more ops than there are */
    bool stops;                     /* it leaves at each instant at which it passed an iteration marker, */
    bool marked;                    /* as it did when it advanced last */
    bool by_events;                 /* it has stopped so: launches.c no longer knows when its last ops ended */
    fl_ahead *ahead;                /* NULL unless free.may */
    struct fl_engines *serving;     /* of the source that serves requests (node_serving.c): there are no lanes */
    fl_shortcut free, lanes;
} fl_course;

/* Room for so many lanes; NULL where memory is short. The caller frees it. */
fl_ahead *fl_ahead_new(uint32_t lanes);
