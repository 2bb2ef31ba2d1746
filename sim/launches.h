/* One stream and the host thread that launches into it: between two boundaries the thread, its queue of launches and
 * the stream advance as a recurrence over the records, instead of from event to event. Internal to sim/.
 *
 * Every state that it leaves behind at a boundary is the one that fl_streams_advance leaves there. So the two may take
 * turns within a run, and all that happens at a boundary (other clocks, sums, what is stuck) is the same code. */
#ifndef FL_LAUNCHES_H
#define FL_LAUNCHES_H

#include "sim/course.h"

/* Makes room for the ends of ops in a course that has its streams, threads and queue. Where the island has no plan, on
 * an APU, and where the queue is too long, the course stays without: c->ends_ps is NULL. */
fl_status fl_launches_open(fl_course *c, fl_diag *d);

/* As fl_streams_advance, for a course with c->ends_ps whose GPU is not lost. */
int64_t fl_launches_advance(fl_course *c, int64_t until);

#endif
