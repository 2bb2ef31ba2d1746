/* The workload of a big trace, built, kept beside it as FILE.foldline-workload: 8 bytes a kernel, read straight to
 * where a run wants them, so that a trace of ten million kernels is there in a tenth of a second and takes no more
 * memory than its records. What a platform makes of it is made anew (sim/outline.h). Like any cache it is never needed.
 */
#pragma once

#include "sim/outline.h"
#include "traces/cache_key.h"

#define FL_OUTLINE_SUFFIX ".foldline-workload"

typedef struct fl_kept_workload {
    fl_kernel_trace t; /* head, names, kinds; no ops */
    char **note;       /* note_count: of its import */
    size_t note_count;
    fl_outline outline;
    fl_workload *w;   /* streams and host threads only */
    fl_cache_key key; /* of the trace that it is of */
} fl_kept_workload;

/* True where a workload is kept that is of this very file, as the reader that detects it reads it. */
bool fl_kept_workload_load(const char *trace, fl_kept_workload *k);
void fl_kept_workload_free(fl_kept_workload *k);

/* Keeps what was built of `in`; key: of the bytes that were read. A file that cannot be written is no failure. */
void fl_kept_workload_save(const char *trace, const fl_cache_key *key, const fl_imported *in, const fl_outline *o,
                           const fl_workload *w);
