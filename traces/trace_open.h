/* Any trace file by its path: the format found or given, big kernel traces from their cache where it holds. */
#ifndef FL_TRACE_OPEN_H
#define FL_TRACE_OPEN_H

#include "traces/cache.h"

#define FL_CACHE_FROM (INT64_C(4) << 20) /* bytes; smaller files are read as fast as a cache is opened */

/* Reads path with the reader named by format (NULL: the one that detects it). *o may be NULL: all devices, no interval.
 * Fills *out or leaves it zeroed. Where a regular file of FL_CACHE_FROM bytes or more holds kernels and no telemetry, a
 * cache beside it (traces/cache.h) is used if it is of the very bytes, reader and options, and else written; a cache
 * that cannot be written is no failure. */
fl_status fl_trace_open(const char *path, const char *format, const fl_import_options *o, fl_imported *out, fl_diag *d);
/* The same, and what else may be kept beside the file needs: true in *known where *key is that of the very bytes that
 * were read. */
fl_status fl_trace_open_key(const char *path, const char *format, const fl_import_options *o, fl_imported *out,
                            fl_cache_key *key, bool *known, fl_diag *d);
/* Whether files are kept beside traces, and used where there are any: yes, until somebody says otherwise. For the whole
 * process, and before it has other threads that read. */
void fl_trace_keep(bool keep);
/* True where a file is large enough, and of a kind, that something may be kept beside it, and nobody said otherwise. */
bool fl_trace_may_keep(const char *path);

#endif
