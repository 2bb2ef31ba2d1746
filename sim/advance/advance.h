/* The ways in which an island's work advances between two boundaries. All give the same bits (sim/README.md).
 *
 * sim/node sets up an fl_course, chooses its fl_source, and calls fl_source.advance; at a boundary it calls the other
 * functions of the source. fl_source_lone scans one stream, or takes it by prefix sums; fl_source_streams goes from
 * event to event, with faster forms for one stream with launches and for streams that lack nothing. The course belongs
 * to the node. Only fl_launches_open and fl_ahead_new allocate. */
#pragma once

#include "models/laws/laws.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- launches: one stream and the host thread that launches into it ----
 *
 * Between two boundaries the thread, its queue of launches and the stream advance as a recurrence over the records, not
 * from event to event. At a boundary the state is exactly that of fl_streams_advance. So the two may alternate within a
 * run, and the same code handles what happens at a boundary. */

/* Makes room for the ends of ops in a course that has its streams, threads and queue. The course stays without room
 * (c->ends_ps is NULL) where the island has no plan, on an APU, and where the queue is too long. */
fl_status fl_launches_open(fl_course *c, fl_diag *d);

/* ---- prefix: a lone stream by sums over its ops ----
 *
 * A table sums the times and energies of the ops at one pair of clocks. A stretch between two boundaries is then a
 * difference of two sums, whatever its length. Sums of integers do not depend on their order, so the bits equal those
 * of the scan.
 *
 * A table belongs to one stream at one pair of clocks, and all runs share it. It is built once the ops scanned there
 * exceed FL_PREFIX_SCANS times the length of the stream, since that many scans cost as much as a table. A single run
 * beside the run at default clocks therefore builds none. Stretches of more than FL_PREFIX_WORTH ops use it. */

struct fl_gpu;

/* Return the highest power of all jumps of a GPU, or `peak` if that is higher; mW. */
int64_t fl_prefix_peak_mw(const struct fl_gpu *g, int64_t peak);

/* Converts the jumps of a GPU into residence per class, by a pass over their ops. For callers that need classes. */
void fl_prefix_settle(struct fl_gpu *g);

/* ---- scan: a lone stream, which nothing can disturb between two boundaries ---- */

/* Rescale the rest of a gap after the CPU changed to another clock. */
void fl_scan_rescale_host(fl_lane *lane, uint32_t mul_before, uint32_t mul_after);

/* ---- sources: where an island's work comes from ----
 *
 * A source is one stream by itself, several streams with their host threads, or servers of requests. The node advances
 * the island between boundaries and tells the source what happened at them. */

typedef struct fl_source {
    bool stands; /* once its GPU is lost, its work neither moves nor draws power */
    /* Advance from where the island's GPUs stand to `target`, or to the end of the work, and charge up to there. *done:
     * the work has ended. *reached: the instant. */
    fl_status (*advance)(fl_course *c, int64_t target, int64_t *reached, bool *done, fl_diag *d);
    /* Return whether the work can never continue by itself. Writes into `why` what it waits for, or an empty text where
     * only the loss of a GPU explains it. */
    bool (*stuck)(const fl_course *c, char *why, size_t size);
    /* A clock has landed: other rates are in force on g since t, up to which all is charged. Rescale the kernels that
     * run. */
    void (*rescale)(fl_course *c, fl_gpu *g, const fl_clock_rates *before, int64_t t);
    /* g fell off the bus, and is charged up to now. */
    void (*lose)(fl_course *c, fl_gpu *g);
    /* Power above the base with what runs on g now, if its SM clock were `sm`, with these rates; < 0: nothing runs. */
    int64_t (*predict_mw)(const fl_course *c, const fl_gpu *g, uint32_t sm, const fl_clock_rates *rates);
    /* Optional: compute the sums of g at t, which lies before the next boundary. Returns false if only a stop at t can
     * tell. busy_only: only busy_ps is wanted, the others may be 0. */
    bool (*foresee)(fl_course *c, const fl_gpu *g, int64_t t, bool busy_only, fl_sums *sums);
    /* Optional: after all that happened at a boundary, before sensors are read. */
    void (*at_boundary)(const fl_course *c, fl_gpu *g);
    /* Optional: continues a hash with what the positions of the lanes do not tell. */
    uint64_t (*hash)(const fl_course *c, uint64_t h);
    /* Optional: frees what it alone has. */
    void (*close)(fl_course *c);
} fl_source;

/* One stream that nothing else can disturb: by scan or prefix sums. */
extern const fl_source fl_source_lone;
/* Any number of streams with their host threads. */
extern const fl_source fl_source_streams;

/* ---- streams: any number of streams of one island, with its host threads ---- */

/* Start the host threads at instant 0. c->host, sums and all else must be set. */
void fl_streams_begin(fl_course *c);

/* Return the earliest event of any lane or host thread; FL_TIME_NEVER: none has one. */
int64_t fl_streams_next(const fl_course *c);
/* Charge the work of host threads up to t into the sums. */
void fl_streams_charge_host(fl_course *c, int64_t t);
/* Rescale host work after the CPU changed from the rows `before` to c->host at t. Its sums are charged up to t. */
void fl_streams_rescale_host(fl_course *c, const fl_cpu_row *before, int64_t t);

bool fl_streams_lanes_here(void); /* whether this CPU has the vector registers of lanes.c */

/* Allocate the state of free.c for `lanes` lanes. NULL: no memory. The caller frees it. */
fl_ahead *fl_ahead_new(uint32_t lanes);
