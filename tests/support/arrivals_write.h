/* What was read of an arrival file, written again: a reader that takes something must take it a second time. */
#pragma once

#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <inttypes.h>

static fl_status arrivals_write(const char *path, const fl_arrivals *a, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d ? d->status : FL_IO;
    FILE *file = fl_output_file(o);
    fl_status s = fl_put_head(file, path, "foldline-arrivals", &a->head, d);
    if (s) {
        fl_output_abort(o);
        return s;
    }
    fputs("t_ns\n", file);
    for (size_t i = 0; i < a->count; i++)
        fprintf(file, "%" PRId64 "\n", a->t_ns[i]);
    return fl_output_commit(o, d);
}
