/* What every host does to raw readings before a policy sees them. Unknown is not zero: what cannot be right becomes
 * invalid, and stays so only as long as it must. In this order, for each signal that was read:
 *
 * 1. Not finite, negative (no signal of the contract can be; a board below 0 C is taken for a broken sensor), or beyond
 *    the bounds that the host knows of: invalid at this step, and as if it had not been read.
 * 2. Stale: not fresh for longer than its limit, counted from when it was last fresh, or first read: invalid until it
 *    is fresh again. A counter that stands still because its sensor does must not look like zero use.
 * 3. COUNTER: what is shown never falls.
 *    A wrap: the counter starts again at 0 when it reaches the wrap that the host knows of; that much is carried over.
 *    A reset: any other fall, e.g. a driver loaded anew. Invalid at that step, then counts on from the last value
 * shown; what was used in between is unknown and left out.
 *
 * A fall is taken for a wrap where both values lie below the wrap and the use that it means is at most half of it; else
 * for a reset. So a counter must be read at least twice per wrap. Two wraps between two readings cannot be told from
 * one, nor one wrap from none where the value did not fall: both lose a multiple of the wrap, silently. Nor can a reset
 * from just below the wrap to a small value be told from a wrap. */
#pragma once

#include "policies/policy.h"
#include "traces/io/diag.h"

typedef struct fl_guard fl_guard; /* state of one node's signals over one run */

/* At first no wrap is known and nothing goes stale. */
fl_status fl_guard_open(fl_guard **out, uint32_t gpu_count, fl_diag *d);
/* Once, after fl_guard_open: the signals of so many servers are guarded too. Until then there is no server. */
fl_status fl_guard_servers(fl_guard *g, uint32_t count, fl_diag *d);
void fl_guard_close(fl_guard *g); /* NULL is allowed */

/* The value at which a counter starts again at 0, in its unit; 0 = none known. Read for COUNTER signals only. A GPU or
 * signal that there is not is passed over, here and below. */
void fl_guard_gpu_wrap(fl_guard *g, uint32_t gpu, int signal, double wrap);
void fl_guard_host_wrap(fl_guard *g, int signal, double wrap);

/* What a signal can be, both ends included; until then anything from 0 on. And how often one was none of it. */
void fl_guard_gpu_bounds(fl_guard *g, uint32_t gpu, int signal, double low, double high);
uint64_t fl_guard_gpu_absurd(const fl_guard *g, uint32_t gpu, int signal);

/* How long a signal may go without being fresh; 0 = for ever. */
void fl_guard_gpu_stale(fl_guard *g, uint32_t gpu, int signal, int64_t limit_ns);
void fl_guard_host_stale(fl_guard *g, int signal, int64_t limit_ns);
void fl_guard_server_stale(fl_guard *g, uint32_t server, int signal, int64_t limit_ns);

/* One reading, in place, at t_ns, which never falls. Signals that are not valid are left alone; nothing is fresh that
 * is not valid. No allocation. */
void fl_guard_gpu(fl_guard *g, uint32_t gpu, int64_t t_ns, fl_gpu_sample *sample);
void fl_guard_host(fl_guard *g, int64_t t_ns, fl_host_sample *sample);
void fl_guard_server(fl_guard *g, uint32_t server, int64_t t_ns, fl_server_sample *sample);
