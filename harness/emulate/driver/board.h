/* The GPUs of a session and their node: the state that a driver keeps of each GPU, the sets and the readings. */
#pragma once

#include "harness/emulate/driver/events.h"
#include "harness/emulate/driver/options.h"
#include "harness/emulate/driver/outcome.h"
#include "harness/emulate/driver/rings.h"
#include "policies/random.h"
#include "sim/node/node.h"

typedef struct fl_board {
    uint32_t sm_min, sm_max, mem_min, mem_max; /* locks as requested; max 0 = none */
    uint32_t target_sm, target_mem;            /* application clocks; 0 = the default */
    uint32_t limit_mw;
    int64_t memory_at_ns, memory_seen_ns,
        memory_mw;    /* the memory's power at its last update, and the refresh of that update; < 0: not known */
    double memory_fj; /* energy up to then */
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
    fl_emulated_rings *rings; /* NULL: kernel records are not delivered */
    fl_events events;
    bool halted; /* the work cannot continue because a GPU is lost */
    fl_random random;
    int64_t realtime_ns, now_ns; /* start of the session since the epoch, and time since that start */
} fl_boards;

static inline const fl_device *fl_boards_device(const fl_boards *all, uint32_t gpu) {
    return &all->spec->device[all->spec->gpu[gpu]];
}

/* us since the epoch by the session's clock, at t_ns of the session. */
static inline uint64_t fl_boards_us(const fl_boards *all, int64_t t_ns) {
    return (uint64_t)((all->realtime_ns + t_ns) / 1000);
}

/* Starts the node. Takes o, outcome and realtime_ns; all else must be zeroed. */
fl_status fl_boards_open(fl_boards *all, fl_diag *d);
void fl_boards_close(fl_boards *all);
/* Advances the node to now_ns of the session. */
void fl_boards_go(fl_boards *all, int64_t now_ns);
/* Whether somebody waits for the workload's markers. */
bool fl_boards_wake(const fl_boards *all);
/* Advances the node no further than its next marker, where somebody waits for it. Returns until_ns, or the instant of
 * that marker, which has woken who waits. */
int64_t fl_boards_marker(fl_boards *all, int64_t until_ns);
void fl_boards_sample(fl_boards *all, uint32_t gpu, bool remember, fl_gpu_sample *out);
/* The time of the refresh that the sensor shows now, in ns of the session. */
int64_t fl_boards_refreshed(const fl_boards *all, uint32_t gpu, fl_sensor_id id);

/* Mean power of the memory in mW, between the last two refreshes of the power sensor at which someone asked, from the
 * memory's parts of the ledger. Below 0 where the model does not split power, or no context is open. */
int64_t fl_boards_memory_mw(fl_boards *all, uint32_t gpu);

/* Sets, for an fl_ask whose gpu is one of the boards; results of NVML. The functions return how long the call blocks
 * its caller, check it without making it, and make it at the end of the call. */
int64_t fl_boards_set_ns(fl_boards *all, const fl_ask *q);
int32_t fl_boards_check(const fl_boards *all, const fl_ask *q);
int32_t fl_boards_set(fl_boards *all, const fl_ask *q);

/* Writes the boards' final state into the report. */
void fl_boards_report(const fl_boards *all);
