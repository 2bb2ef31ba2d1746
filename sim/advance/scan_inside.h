/* The insides of a scan: the plain loop over whole ops, and its twins in vector registers. Internal to sim/scan*.c.
 *
 * Each takes the ops from l->next on that end by `until` and come before op `stop`. It charges them to the window and
 * the residence of the present clocks, and returns the instant reached. It takes only whole ops: it leaves an op that
 * continues beyond `until`, and it stops at one that needs more than 32 bits. The lane is FRESH before and after; no
 * mark lies before `stop`, and the GPU is never power-gated. It records no kernel: fl_scan_record does, behind it. */
#pragma once

#include "sim/gpu/lane.h"

#ifdef __x86_64__
#define FL_SCAN_X86 1
#else
#define FL_SCAN_X86 0
#endif

typedef int64_t fl_scan_ops(fl_gpu *g, fl_lane *l, int64_t t, int64_t until, uint64_t stop, uint32_t gap_mul);

fl_scan_ops fl_scan_plain;  /* the plain form, which defines the others */
fl_scan_ops fl_scan_avx2;   /* where FL_SCAN_X86, on a CPU that has AVX2; */
fl_scan_ops fl_scan_avx512; /* on one that has AVX-512 F, DQ and VL, BMI2 and POPCNT */

typedef struct fl_scan_place { /* where a lane stood */
    uint64_t op;
    int64_t t;
    bool in_parts;
} fl_scan_place;

/* The records of the kernels that such a loop took: those from `begun` up to where the lane stands now. */
void fl_scan_record(fl_lane *l, const fl_scan_place *begun, uint32_t gap_mul);

/* The fastest vector loop of this CPU; NULL where it has none. */
fl_scan_ops *fl_scan_vector(void);

/* Asks for a record some 0.3 us before a loop over several ops reads it. The processor reads ahead by itself, but stops
 * where a page ends; a page holds no more than 512 records. */
static inline void fl_scan_ahead(const fl_rec *rec, uint64_t i) {
    enum { AHEAD = 256 };
    __builtin_prefetch(rec + i + AHEAD);
}

typedef struct fl_scan_sums { /* of a stretch of whole ops */
    int64_t dyn_fj, memory, worked, busy, alu, sms;
    uint64_t kernels;
} fl_scan_sums;

/* Records that the ops from l->next up to `next` were taken, with these sums. */
static inline void fl_scan_add(fl_gpu *g, fl_lane *l, uint64_t next, const fl_scan_sums *sum) {
    if (next == l->next)
        return;
    g->window.dyn_fj += sum->dyn_fj;
    g->window.memory += sum->memory;
    g->sums.busy_ps += sum->busy;
    g->sums.kernels += sum->kernels;
    if (g->profiled) {
        g->window.alu += sum->alu;
        g->window.sms += sum->sms;
        g->sums.copy_ps += sum->worked - sum->busy;
    }
    l->worked_ps += sum->worked;
    if (l->s->other) {
        int64_t gap_ns, work_ns;
        uint32_t class_id;
        fl_workload_op(l->s, next - 1, &gap_ns, &work_ns, &class_id);
        l->in_parts = g->rates->row[class_id].resident == FL_RESIDENT_PART;
    }
    l->next = next;
}
