/* The insides of the recurrence: its plain loop and its twin in vector registers. Internal to sim/launches*.c. */
#ifndef FL_LAUNCHES_INSIDE_H
#define FL_LAUNCHES_INSIDE_H

#include "sim/course.h"
#include "sim/scan_inside.h"

typedef struct fl_launching { /* one stretch between two boundaries */
    fl_course *c;
    fl_gpu *g;
    fl_lane *l;
    fl_host_thread *h;
    const fl_launch_plan *plan;
    int64_t until;
    int64_t free_ps; /* the end of the stream's op before the next, or an instant between that and now */
    int64_t host_ps; /* the last instant at which the thread did an item, likewise */
    bool over;       /* the stream's next op ends beyond the boundary */
} fl_launching;

static inline int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

static inline int64_t scaled_ps(uint32_t ns, uint32_t mul) {
    return (int64_t)(((uint64_t)ns * mul + (1u << 15)) >> 16);
}

static inline uint32_t fl_host_mul(const fl_launching *x) { return x->c->host ? x->c->host[0].mul : FL_MUL_ONE; }

typedef struct fl_chain { /* where the recurrence stands */
    int64_t free_ps, at_ps;
    int64_t waited_ps; /* the thread, since the pass began */
    uint64_t syncs;
    bool over; /* the next op ends beyond the boundary */
} fl_chain;

typedef enum fl_launched {
    FL_LAUNCHED_BEFORE, /* all of the ops have been launched */
    FL_LAUNCHED_FREELY, /* on the way, and the queue has room for all of them at once */
    FL_LAUNCHED_IN_TURN /* on the way; any may have to wait for room */
} fl_launched;

enum { FL_LAUNCHES_BLOCK = 8 };

/* Eight kernels at a time from op i on, as long as all eight are kernels of plain records that end by the boundary,
 * come before op `stop`, and have host time of known length and nothing else before them. What it takes is charged and
 * has its ends in the ring, as the plain loop leaves them; returns the first op that it left. */
typedef uint64_t fl_launches_blocks(fl_launching *x, fl_chain *chain, uint64_t i, uint64_t stop, fl_launched how);

fl_launches_blocks fl_launches_avx512; /* where FL_SCAN_X86, on a CPU that has AVX-512 F, DQ and VL */

/* That of this CPU; NULL where it has none. */
static inline fl_launches_blocks *fl_launches_vector(void) {
#if FL_SCAN_X86
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return fl_launches_avx512;
#endif
    return NULL;
}

#endif
