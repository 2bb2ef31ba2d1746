/* Arrival files: when requests reach a server, whether it has time for them or not (an open loop).
 *
 * Head "# foldline-arrivals 1"; key source. One column, t_ns: ascending from 0 on, at most 26 days; equal times are
 * requests that arrive together, served in the order of their rows. */
#ifndef FL_ARRIVALS_H
#define FL_ARRIVALS_H

#include "traces/diag.h"
#include "traces/records.h"

typedef struct fl_arrivals {
    fl_head head;
    int64_t *t_ns; /* count */
    size_t count, room;
} fl_arrivals;

/* Fills *a or leaves it zeroed. */
fl_status fl_arrivals_read(const char *path, fl_arrivals *a, fl_diag *d);
void fl_arrivals_free(fl_arrivals *a);

#endif
