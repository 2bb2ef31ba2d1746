/* Advancing any number of streams of one island, with its host threads. Internal to sim/. */
#pragma once

#include "sim/gpu/course.h"

/* Starts at instant 0: host threads begin. c->host, sums and all else must be set. */
void fl_streams_begin(fl_course *c);
/* Advances to `until`, or to the end of the island; returns the instant reached. Charges as fl_scan_advance does. Where
 * c->stops, it goes no further than the next instant at which an iteration marker is passed, with all of that instant
 * done, and says so in c->marked. */
int64_t fl_streams_advance(fl_course *c, int64_t until);
/* No lane and no host thread has an event before this instant; FL_TIME_NEVER: none has one at all. */
int64_t fl_streams_next(const fl_course *c);
/* Charges what host threads did up to t into the sums. */
void fl_streams_charge_host(fl_course *c, int64_t t);
/* The CPU changed from the rows `before` to c->host at t, and its sums are charged up to t. */
void fl_streams_rescale_host(fl_course *c, const fl_cpu_row *before, int64_t t);
/* Call it after fl_gpu_clock at instant t. */
void fl_streams_rescale(fl_course *c, fl_gpu *g, const fl_clock_rates *before, int64_t t);
/* g fell off the bus at t, and is charged up to t. Ops that ran on it never end. */
void fl_streams_lose(fl_course *c, fl_gpu *g);
/* Describes the first lane that waits for something that can never come, in buf. NULL: there is none. */
const char *fl_streams_stuck(const fl_course *c, char *buf, size_t size);
