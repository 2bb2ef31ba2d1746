/* The insides of the recurrence: its plain loop and its twin in vector registers. Internal to sim/launches*.c. */
#pragma once

#include "sim/gpu/course.h"
#include "sim/advance/scan_inside.h"

typedef struct fl_launching { /* one stretch between two boundaries */
    fl_course *c;
    fl_gpu *g;
    fl_lane *l;
    fl_host_thread *h;
    const fl_launch_plan *plan;
    int64_t until;
    int64_t free_ps; /* the end of the op before the stream's next one, or an instant between that end and now */
    int64_t host_ps; /* the last instant at which the thread did an item, or likewise a later instant */
    bool over;       /* the stream's next op ends beyond the boundary */
} fl_launching;

static inline int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

static inline int64_t scaled_ps(uint32_t ns, uint32_t mul) {
    return (int64_t)(((uint64_t)ns * mul + (1u << 15)) >> 16);
}

static inline uint32_t fl_host_mul(const fl_launching *x) { return x->c->host ? x->c->host[0].mul : FL_MUL_ONE; }

typedef struct fl_chain { /* the state of the recurrence */
    int64_t free_ps, at_ps;
    int64_t waited_ps; /* waiting time of the thread since the pass began */
    uint64_t syncs;
    bool over; /* the next op ends beyond the boundary */
} fl_chain;

typedef enum fl_launched {
    FL_LAUNCHED_BEFORE, /* all ops were launched before the pass */
    FL_LAUNCHED_FREELY, /* launched during the pass; the queue has room for all at once */
    FL_LAUNCHED_IN_TURN /* launched during the pass; any op may have to wait for room */
} fl_launched;

enum { FL_LAUNCHES_BLOCK = 8 };

/* The loops over eight at a time. Each charges or counts what it takes exactly as the plain loop does, and returns the
 * first op that remains. Both need host time of known length and nothing else before all eight. */
typedef struct fl_launches_loops {
    /* Kernels from op i on, stored in the ring: of plain records, ending by the boundary, before op `stop`. */
    uint64_t (*ops)(fl_launching *x, fl_chain *chain, uint64_t i, uint64_t stop, fl_launched how);
    /* Launches from op i on by the thread alone, all of them by the boundary. */
    uint64_t (*host)(const fl_launching *x, fl_chain *chain, uint64_t i, uint64_t stop);
} fl_launches_loops;

extern const fl_launches_loops fl_launches_avx512; /* where FL_SCAN_X86, on a CPU that has AVX-512 F, DQ and VL */

/* Those for this CPU; NULL where it has none, or where the path excludes them. */
static inline const fl_launches_loops *fl_launches_vector(const fl_launching *x) {
#if FL_SCAN_X86
    if (fl_path_may(x->g->path, FL_PATH_VECTOR) && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return &fl_launches_avx512;
#endif
    (void)x;
    return NULL;
}
