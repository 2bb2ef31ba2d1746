/* Advancing the servers of a node: event by event, which are arrivals and the ends of steps. All ends of one instant
 * come first, then the arrivals, then the steps that can begin; so where an advance was cut cannot show. A boundary
 * only reads: the end of a step moves when a clock changes, by what is left of it, as that of any op (work.h).
 *
 * A step counts as one kernel on each GPU of its server, and as one iteration. A GPU is busy while it lasts. */
#pragma once

#include "sim/serving/inside.h"

typedef struct fl_engines_needs { /* what will be read */
    uint64_t signals;             /* FL_BIT(FL_SERVER_...) of those that somebody reads */
    bool batches;                 /* records of steps are kept */
} fl_engines_needs;

/* gpu: the node's, by index. */
fl_status fl_engines_open(fl_engines **out, const fl_workload *w, fl_gpu *gpu, const fl_engines_needs *needs,
                          fl_diag *d);
void fl_engines_close(fl_engines *v); /* NULL is allowed */

/* From `now` to `until`, or to the end of the last request; returns the instant reached. Charges the GPUs' windows up
 * to it, not their base. v->status tells of what went wrong: see fl_engines_refused. */
int64_t fl_engines_advance(fl_engines *v, int64_t now, int64_t until);
fl_status fl_engines_refused(const fl_engines *v, const char *name, fl_diag *d);
static inline bool fl_engines_done(const fl_engines *v) { return v->finished == v->u->requests->count; }
/* Only what a lost GPU took with it is left to be done. */
bool fl_engines_stuck(const fl_engines *v);

/* After fl_gpu_clock at t, up to which all is charged. */
void fl_engines_rescale(fl_engines *v, const fl_gpu *g, int64_t t);
/* g fell off the bus: its server's step never ends, and nothing is sent to that server any more. */
void fl_engines_lose(fl_engines *v, fl_gpu *g);
/* Power above the base with what runs on g now, if its SM clock were `sm`, with these rates; < 0: nothing runs. */
int64_t fl_engines_predict_mw(const fl_engines *v, const fl_gpu *g, uint32_t sm, const fl_clock_rates *rates);

/* Continues a hash with where the servers stand. */
uint64_t fl_engines_hash(const fl_engines *v, uint64_t h);
