/* What was read of a target file, written again: a reader that takes something must take it a second time. */
#pragma once

#include "traces/files/files.h"
#include "traces/io/io.h"

#include <inttypes.h>

static fl_status target_write(const char *path, const fl_target *t, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d ? d->status : FL_IO;
    FILE *file = fl_output_file(o);
    fl_status s = fl_put_head(file, path, "foldline-target", &t->head, d);
    if (s) {
        fl_output_abort(o);
        return s;
    }
    fputs("t_ns,watts\n", file);
    for (size_t i = 0; i < t->count; i++)
        fprintf(file, "%" PRId64 ",%.17g\n", t->t_ns[i], t->watts[i]);
    return fl_output_commit(o, d);
}
