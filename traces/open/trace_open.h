/* Opens any trace file by its path: its format is detected or given, and a large kernel trace comes from its cache
 * where that holds. */
#pragma once

#include "traces/open/cache.h"

#define FL_CACHE_FROM (INT64_C(4) << 20) /* bytes; reading a smaller file is as fast as opening a cache */

/* Reads path with the reader that format names (NULL: the one that detects it). *o may be NULL: all devices, no
 * interval. Fills *out or leaves it zeroed. Where a regular file of FL_CACHE_FROM bytes or more holds kernels and no
 * telemetry, the function uses a cache beside it (traces/open/cache.h) if that was made from exactly these bytes, reader and
 * options; otherwise it writes one. A cache that cannot be written is not a failure. */
fl_status fl_trace_open(const char *path, const char *format, const fl_import_options *o, fl_imported *out, fl_diag *d);
/* The same, for callers that read the trace again: *known is true where *key belongs to exactly the bytes
 * that were read. */
fl_status fl_trace_open_key(const char *path, const char *format, const fl_import_options *o, fl_imported *out,
                            fl_cache_key *key, bool *known, fl_diag *d);
/* Whether the process keeps and uses caches beside traces. The default is yes. The setting holds for the whole process;
 * set it before other threads read. */
void fl_trace_keep(bool keep);
