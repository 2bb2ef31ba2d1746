/* What the files of sim/advance share, by file: vector helpers; launches; the loops of the scan; prefix sums; streams,
 * host threads and lanes. */
#pragma once

#include "models/laws/laws.h"
#include "sim/advance/advance.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/workload/workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __x86_64__
#define FL_SCAN_X86 1
#else
#define FL_SCAN_X86 0
#endif

/* ---- vector helpers: eight ops in AVX-512 registers ---- */

#if FL_SCAN_X86
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512dq,avx512vl,bmi2,popcnt")))
#define INLINE TARGET static inline __attribute__((always_inline))

enum { BLOCK = 8 };

/* Work and gap of eight records, in ns. */
INLINE __m512i work_of(__m512i rec) { return _mm512_and_si512(rec, _mm512_set1_epi64(FL_WORK_MAX)); }
INLINE __m512i gap_of(__m512i rec) {
    return _mm512_and_si512(_mm512_srli_epi64(rec, FL_WORK_BITS), _mm512_set1_epi64(FL_GAP_MAX));
}

/* 16 bytes from each of eight addresses: their first halves, and their second ones. */
INLINE void transpose(const void *const at[BLOCK], __m512i *first, __m512i *second) {
    __m512i half[2]; /* those of the even ones, and of the odd ones */
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
        const __m256i low =
            _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(at[j])), _mm_loadu_si128(at[j + 2]), 1);
        const __m256i high =
            _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(at[j + 4])), _mm_loadu_si128(at[j + 6]), 1);
        half[j] = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
    *first = _mm512_unpacklo_epi64(half[0], half[1]);
    *second = _mm512_unpackhi_epi64(half[0], half[1]);
}

/* (value * mul + 2^15) >> 16, of values and factors below 2^32. */
INLINE __m512i scaled(__m512i value, __m512i mul) {
    const __m512i half = _mm512_set1_epi64(1 << 15);
    return _mm512_srli_epi64(_mm512_add_epi64(_mm512_mul_epu32(value, mul), half), 16);
}

INLINE uint64_t sum_of(__m512i x) { /* modulo 2^64, which _mm512_reduce_add_epi64 does not promise */
    x = _mm512_add_epi64(x, _mm512_shuffle_i64x2(x, x, 0x4e));
    x = _mm512_add_epi64(x, _mm512_shuffle_i64x2(x, x, 0xb1));
    x = _mm512_add_epi64(x, _mm512_shuffle_epi32(x, _MM_PERM_BADC));
    return (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(x));
}

INLINE __m512i running(__m512i each) { /* the sum of each lane and those before it */
    const __m512i zero = _mm512_setzero_si512();
    each = _mm512_add_epi64(each, _mm512_alignr_epi64(each, zero, 7));
    each = _mm512_add_epi64(each, _mm512_alignr_epi64(each, zero, 6));
    return _mm512_add_epi64(each, _mm512_alignr_epi64(each, zero, 4));
}

INLINE __m512i part_of(__m512i row, unsigned shift) { /* 16 bits of each row */
    return _mm512_and_si512(_mm512_srli_epi64(row, shift), _mm512_set1_epi64(0xffff));
}
#endif

/* ---- launches.c ---- */

/* Advance like fl_streams_advance, for a course with c->ends_ps whose GPU is not lost. */
int64_t fl_launches_advance(fl_course *c, int64_t until);

/* ---- scan.c, scan_avx2.c, scan_avx512.c: the plain loop over whole ops, and its twins in vector registers ----
 *
 * Each loop takes the ops from l->next on that end by `until` and come before op `stop`. It charges them to the window
 * and the residence of the present clocks, and returns the instant reached. It takes only whole ops: it leaves an op
 * that continues beyond `until`, and it stops at one that needs more than 32 bits. The lane is FRESH before and after;
 * no mark lies before `stop`, and the GPU is never power-gated. It records no kernel: fl_scan_record does, behind it.
 */

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

/* ---- the recurrence of launches: its plain loop (launches.c) and its twin in vector registers (twins.c) ---- */

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

/* ---- prefix.c, twins.c ---- */

struct fl_lane;
struct fl_sums;

/* Return whether tables of sums may advance a lone stream now: it has only kernels, gaps are as recorded, and no caller
 * needs single ops. */
bool fl_prefix_applies(const struct fl_gpu *g, const struct fl_lane *l, uint32_t gap_mul);

/* Moves a lane to which fl_prefix_applies, and which stands before an op at t, over whole ops that end by `until`: over
 * all of them where there is a table for its clocks and the stretch is long, else over none. Returns the instant
 * reached. *met: the next op does not end by `until`. */
int64_t fl_prefix_advance(struct fl_gpu *g, struct fl_lane *l, int64_t t, int64_t until, bool *met);

/* Compute the sums of a GPU at a later instant t, if such a lane is all that runs there and nothing changes before.
 * Returns false where a stop at t is as fast. busy_only: only busy_ps is wanted, the others are 0. */
bool fl_prefix_foresee(const struct fl_gpu *g, struct fl_lane *l, uint32_t gap_mul, int64_t t, bool busy_only,
                       struct fl_sums *sums);

/* Reports that this many ops of a stream to which fl_prefix_applies were scanned in one stretch at the current clocks.
 * Builds the table where that makes it due. */
void fl_prefix_scanned(fl_gpu *g, const fl_stream *s, uint64_t ops);

/* The two forms of fl_prefix_walk, which a test compares. Use the second only where fl_prefix_walks_eight allows it; it
 * stops before the last ops that are fewer than eight, and at one that needs more than 32 bits. Returns true if an op
 * did not end by t_ps. */
void fl_prefix_walk_one(fl_prefix_place *at, uint64_t stop, uint64_t t_ps, fl_prefix_depth depth);
bool fl_prefix_walk_eight(fl_prefix_place *at, uint64_t stop, uint64_t t_ps, fl_prefix_depth depth);
bool fl_prefix_walks_eight(void);

/* Adds ops to a place while they end by t_ps on the table's own time, and before op `stop`. Sums beyond `depth`
 * stay as they are. Uses vector registers where the CPU has AVX-512. */
void fl_prefix_walk(fl_prefix_place *at, uint64_t stop, uint64_t t_ps, fl_prefix_depth depth);

/* ---- scan.c ---- */

/* Advance to `until`, or to the end of the stream. Returns the instant reached. Charges into g->window; the caller
 * charges the rest up to that instant. */
int64_t fl_scan_advance(fl_gpu *g, fl_lane *lane, int64_t until, uint32_t gap_mul);

/* Call it after fl_gpu_clock: rescales the rest of a kernel. */
void fl_scan_rescale(fl_gpu *g, fl_lane *lane, const fl_clock_rates *before);

/* ---- streams.c, thread.c ---- */

/* Advance to `until`, or to the end of the island. Returns the instant reached. Charges as fl_scan_advance does. With
 * c->stops it stops at the next instant at which an iteration marker is passed, with all of that instant done, and sets
 * c->marked. */
int64_t fl_streams_advance(fl_course *c, int64_t until);

/* Call it after fl_gpu_clock at instant t. */
void fl_streams_rescale(fl_course *c, fl_gpu *g, const fl_clock_rates *before, int64_t t);
/* g fell off the bus at t, and is charged up to t. Ops that ran on it never end. */
void fl_streams_lose(fl_course *c, fl_gpu *g);
/* Describes the first lane that waits for something that can never come, in buf. NULL: there is none. */
const char *fl_streams_stuck(const fl_course *c, char *buf, size_t size);

static inline bool wait_over(const fl_course *c, const fl_wait *wait, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (c->lane[wait[i].stream]->next < wait[i].done)
            return false;
    return true;
}

static inline void host_ends(fl_course *c, int64_t t) {
    c->sums.active_ps += c->active-- * (t - c->active_since_ps);
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

/* Begins a fresh op at t, if everything it waits for has happened. True if it moved. */
bool fl_streams_begin_op(fl_course *c, fl_lane *l, int64_t t);
/* Call it at the instant t at which the gap of an op ends, or the op itself. The stream is launched. */
void fl_streams_pass_op(fl_course *c, fl_lane *l, int64_t t);

/* How host time before ops of a class loads the CPU. Most workloads have one load only, so the class does not matter.
 */
static inline uint32_t host_load(const fl_course *c, uint32_t class_id) {
    return c->w->host_load_count ? c->w->class[class_id].host : 0;
}

/* ---- free.c, lanes.c ---- */

/* Advance while nothing is scarce. A GPU that may be power-gated must not be idle at t. */
int64_t fl_streams_free(fl_course *c, int64_t t, int64_t until, uint64_t *passed);
/* Advance with the lanes in vector registers. Returns where nothing has been scarce for more than `calm` consecutive
 * instants. */
int64_t fl_streams_lanes(fl_course *c, int64_t t, int64_t until, uint64_t calm, uint64_t *passed);

/* Lets a host thread continue whose event is due at t, or that waits, if it can. True if anything moved. */
bool fl_streams_thread(fl_course *c, fl_host_thread *h, int64_t t);

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
