/* Arrival files: the times at which requests reach a server, whether or not the server is free (an open loop).
 *
 * The head is "# foldline-arrivals 1"; its key is source. There is one column, t_ns: ascending from 0, at most 26 days.
 * Equal times are requests that arrive together; the server takes them in the order of their rows. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

typedef struct fl_arrivals {
    fl_head head;
    int64_t *t_ns; /* count */
    size_t count, room;
} fl_arrivals;

/* Fills *a or leaves it zeroed. */
fl_status fl_arrivals_read(const char *path, fl_arrivals *a, fl_diag *d);
void fl_arrivals_free(fl_arrivals *a);
