/* Work on its way, and the integer arithmetic that every way of advancing shares. Work is counted in the picoseconds
 * that it takes alone at the present clocks. Work done rounds down and ends round up, so that work never ends early. */
#pragma once

#include "models/laws/shares.h"
#include "sim/base/wide.h"

/* Length of an op in ps: work_ns x mul in 16.16, rounded; mul is FL_MUL_ONE (models/laws/row.h) at the reference clock. */
static inline int64_t fl_length_ps(int64_t work_ns, uint32_t mul) {
    return (int64_t)(((fl_uwide)(uint64_t)work_ns * mul + (1u << 15)) >> 16);
}

typedef struct fl_work { /* a kernel, or a stretch of host time, on its way */
    int64_t left_ps;     /* as of since_ps */
    int64_t charged_ps;  /* of the work since since_ps; below zero: work before it that has not been charged */
    int64_t since_ps;    /* last change of rate or clock */
    int64_t start_ps;    /* when a kernel began; up to when the time of host work is charged */
    int64_t *event_ps;   /* when it ends, FL_TIME_NEVER while waiting: a cell of its course */
    uint32_t rate;       /* in 1/65536 */
} fl_work;

/* Of it, work done at t. */
static inline int64_t fl_work_done(const fl_work *p, int64_t t) {
    int64_t dt = t - p->since_ps;
    if (p->rate == FL_SHARE_ONE)
        return dt < p->left_ps ? dt : p->left_ps;
    int64_t done = dt < INT64_C(1) << 46 ? dt * p->rate >> 16 : (int64_t)(((fl_uwide)(uint64_t)dt * p->rate) >> 16);
    return done < p->left_ps ? done : p->left_ps;
}

/* When `left` ends, at a rate in 1/65536 that holds since `since`; what ends beyond all time ends just before never. */
static inline int64_t fl_work_ends(int64_t since, int64_t left, uint32_t rate) {
    if (rate == FL_SHARE_ONE)
        return since + left;
    if (left <
        INT64_C(1) << 36) { /* exact in doubles: below 2^53, and the quotient is 1/rate away from a wrong floor */
        double up = (double)(left << 16) + (double)(rate - 1);
        return since + (int64_t)(up / (double)rate);
    }
    const fl_uwide takes = (((fl_uwide)(uint64_t)left << 16) + rate - 1) / rate;
    return takes < (fl_uwide)(FL_TIME_NEVER - since) ? since + (int64_t)takes : FL_TIME_NEVER - 1;
}

/* What is left of an op after a change of its length, rounded; untouched when the length stays. */
static inline int64_t fl_rescale_ps(int64_t left, int64_t before, int64_t after) {
    if (before == after || before <= 0)
        return before <= 0 ? after : left;
    return (int64_t)(((fl_wide)left * after + before / 2) / before);
}
