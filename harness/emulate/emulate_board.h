/* The GPUs of a session and the node that they are part of: what a driver remembers of each, the sets, the readings. */
#ifndef FL_EMULATE_BOARD_H
#define FL_EMULATE_BOARD_H

#include "harness/emulate/emulate_events.h"
#include "harness/emulate/emulate_options.h"
#include "harness/emulate/emulate_outcome.h"
#include "harness/emulate/emulate_rings.h"
#include "policies/random.h"
#include "sim/node.h"

typedef struct fl_board {
    uint32_t sm_min, sm_max, mem_min, mem_max; /* locks as they were asked for; max 0 = none */
    uint32_t target_sm, target_mem;            /* application clocks; 0 = the default */
    uint32_t limit_mw;
    int64_t memory_at_ns, memory_seen_ns,
        memory_mw;    /* when its power was last told anew, and of which refresh; < 0: cannot be told */
    double memory_fj; /* drawn up to then */
    bool persistence, restricted[2];
} fl_board;

typedef struct fl_boards {
    const fl_emulate_options *o;
    fl_outcome *outcome;
    const fl_node_spec *spec;
    fl_node *node;
    fl_faults *faults;
    fl_board *board; /* gpu_count */
    uint32_t gpu_count;
    fl_emulated_rings *rings; /* NULL: no kernel records are handed out */
    fl_events events;
    bool halted; /* the work cannot go on: a lost GPU */
    fl_random random;
    int64_t realtime_ns, now_ns; /* of the session's start since the epoch; since then */
} fl_boards;

static inline const fl_device *fl_boards_device(const fl_boards *all, uint32_t gpu) {
    return &all->spec->device[all->spec->gpu[gpu]];
}

/* us since the epoch, as the session counts it, at t_ns of the session. */
static inline uint64_t fl_boards_us(const fl_boards *all, int64_t t_ns) {
    return (uint64_t)((all->realtime_ns + t_ns) / 1000);
}

/* Takes o, outcome and realtime_ns, the rest zeroed. */
fl_status fl_boards_open(fl_boards *all, fl_diag *d);
void fl_boards_close(fl_boards *all);
/* It is now_ns of the session, and the node has come there. */
void fl_boards_go(fl_boards *all, int64_t now_ns);
void fl_boards_sample(fl_boards *all, uint32_t gpu, bool remember, fl_gpu_sample *out);
/* When the sensor last refreshed what it shows now, ns of the session. */
int64_t fl_boards_refreshed(const fl_boards *all, uint32_t gpu, fl_sensor_id id);

/* Mean power of the memory, mW, between the last two refreshes of the power sensor at which somebody asked: of the
 * parts of the ledger that are the memory's. Below 0 where the model does not split power, or no context is open. */
int64_t fl_boards_memory_mw(fl_boards *all, uint32_t gpu);

/* Sets, of an fl_ask whose gpu is one of the boards; results of NVML. How long the call keeps its caller; checks it
 * without making it; makes it now, as the call ends. */
int64_t fl_boards_set_ns(fl_boards *all, const fl_ask *q);
int32_t fl_boards_check(const fl_boards *all, const fl_ask *q);
int32_t fl_boards_set(fl_boards *all, const fl_ask *q);

/* Into the report, at the end. */
void fl_boards_report(const fl_boards *all);

#endif
