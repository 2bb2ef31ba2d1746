/* One stream and the host thread that launches into it. Between two boundaries the thread, its queue of launches and
 * the stream advance as a recurrence over the records, not from event to event. Internal to sim/.
 *
 * It leaves behind at a boundary exactly the state that fl_streams_advance leaves there. The two may therefore
 * alternate within a run, and the same code handles everything that happens at a boundary (other clocks, sums, stuck
 * lanes). */
#pragma once

#include "sim/gpu/course.h"

/* Makes room for the ends of ops in a course that has its streams, threads and queue. The course stays without room
 * (c->ends_ps is NULL) where the island has no plan, on an APU, and where the queue is too long. */
fl_status fl_launches_open(fl_course *c, fl_diag *d);

/* As fl_streams_advance, for a course with c->ends_ps whose GPU is not lost. */
int64_t fl_launches_advance(fl_course *c, int64_t until);
