/* What recorded kernels did while they shared a GPU. Overlapping kernels slowed each other when they were recorded;
 * replayed as they stand they would be slowed twice. Their work is the integral of the rates that sharing gave them
 * then. */
#pragma once

#include "models/laws/row.h"
#include "traces/io/diag.h"

#include <stdbool.h>

typedef struct fl_edge { /* the start or end of an op of one GPU */
    int64_t at_ns;
    uint32_t op;
    bool end;
} fl_edge;

/* Sorts edge. Adds to work[op] the ns that the op would have taken alone; row[class] holds its demands at the clocks of
 * the recording; interference in 1/65536, see fl_shares_capacity. Sets *shared where any two had to share. FL_BAD_INPUT
 * for more than 256 at once. */
fl_status fl_untangle(fl_edge *edge, size_t count, const uint32_t *class_of_op, const fl_row *row, double *work,
                      uint32_t interference, bool *shared, fl_diag *d);
