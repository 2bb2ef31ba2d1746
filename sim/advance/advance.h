/* MODULE sim/advance */
#pragma once

#include "models/laws/laws.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One stream and the host thread that launches into it. Between two boundaries the thread, its queue of launches and
 * the stream advance as a recurrence over the records, not from event to event. Internal to sim/.
 *
 * It leaves behind at a boundary exactly the state that fl_streams_advance leaves there. The two may therefore
 * alternate within a run, and the same code handles everything that happens at a boundary (other clocks, sums, stuck
 * lanes). */

/* Makes room for the ends of ops in a course that has its streams, threads and queue. The course stays without room
 * (c->ends_ps is NULL) where the island has no plan, on an APU, and where the queue is too long. */
fl_status fl_launches_open(fl_course *c, fl_diag *d);

/* A lone stream by prefix sums over its ops. The ops' times and energies at a clock are summed once; a stretch between
 * two boundaries is then a difference of two sums, whatever its length. Integers wrap and sums do not depend on their
 * order, so the bits equal those of the scan. Internal to sim/.
 *
 * A table belongs to one stream at one pair of clocks, and all runs share it. The run with which the number of ops
 * scanned there exceeds FL_PREFIX_SCANS times the length of the stream builds it. That many scans cost as much as a
 * table. A single run, with the one at default clocks beside it, builds none. A table is used where a stretch spans
 * more than FL_PREFIX_WORTH ops. */

struct fl_gpu;

/* The highest dyn_mw plus base of all jumps of a GPU, or `peak` where that is higher. In mW. */
int64_t fl_prefix_peak_mw(const struct fl_gpu *g, int64_t peak);

/* Converts the jumps of a GPU into residence per class, by a pass over their ops. For callers that need classes. */
void fl_prefix_settle(struct fl_gpu *g);

/* Advancing a lone stream: nothing can disturb it between two boundaries. Internal to sim/. */

/* The CPU changed to another clock: rescales the rest of a gap. */
void fl_scan_rescale_host(fl_lane *lane, uint32_t mul_before, uint32_t mul_after);

/* What an island's work comes from: one stream by itself, several streams with their host threads, servers of requests.
 * The node advances an island between boundaries and tells it what happened at them; how the work goes on there is the
 * source's to know. Internal to sim/. */

typedef struct fl_source {
    bool stands; /* once its GPU is lost nothing of it moves or draws any more */
    /* From where the island's GPUs stand to `target`, or to the end of the work: *done. *reached: the instant. Charges
     * as fl_scan_advance does. */
    fl_status (*advance)(fl_course *c, int64_t target, int64_t *reached, bool *done, fl_diag *d);
    /* Nothing of it will ever go on by itself. Into `why` what it waits for, or nothing where only the loss of a GPU
     * explains it. */
    bool (*stuck)(const fl_course *c, char *why, size_t size);
    /* Other rates are in force on g since t, up to which all is charged. */
    void (*rescale)(fl_course *c, fl_gpu *g, const fl_clock_rates *before, int64_t t);
    /* g fell off the bus, and is charged up to now. */
    void (*lose)(fl_course *c, fl_gpu *g);
    /* Power above the base with what runs on g now, if its SM clock were `sm`, with these rates; < 0: nothing runs. */
    int64_t (*predict_mw)(const fl_course *c, const fl_gpu *g, uint32_t sm, const fl_clock_rates *rates);
    /* Optional: the sums of g as they will be at t, which lies before the next boundary. False where it has to stop
     * there to tell. busy_only: only busy_ps is wanted, the others may be 0. */
    bool (*foresee)(fl_course *c, const fl_gpu *g, int64_t t, bool busy_only, fl_sums *sums);
    /* Optional: after all that happened at a boundary, before sensors are read. */
    void (*at_boundary)(const fl_course *c, fl_gpu *g);
    /* Optional: continues a hash with what the positions of the lanes do not tell. */
    uint64_t (*hash)(const fl_course *c, uint64_t h);
    /* Optional: frees what it alone has. */
    void (*close)(fl_course *c);
} fl_source;

/* One stream that nothing else can disturb: it is scanned. */
extern const fl_source fl_source_lone;
/* Any number of streams with their host threads. */
extern const fl_source fl_source_streams;

/* Advancing any number of streams of one island, with its host threads. Internal to sim/. */

/* Starts at instant 0: host threads begin. c->host, sums and all else must be set. */
void fl_streams_begin(fl_course *c);

/* No lane and no host thread has an event before this instant; FL_TIME_NEVER: none has one at all. */
int64_t fl_streams_next(const fl_course *c);
/* Charges what host threads did up to t into the sums. */
void fl_streams_charge_host(fl_course *c, int64_t t);
/* The CPU changed from the rows `before` to c->host at t, and its sums are charged up to t. */
void fl_streams_rescale_host(fl_course *c, const fl_cpu_row *before, int64_t t);

/* Shared by the files that advance an island: waits, and the work of host threads. */

bool fl_streams_lanes_here(void); /* whether this CPU has them */

/* Room for so many lanes; NULL where memory is short. The caller frees it. */
fl_ahead *fl_ahead_new(uint32_t lanes);
