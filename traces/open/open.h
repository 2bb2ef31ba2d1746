/* Any trace file by its path: its format is detected or given, and a large kernel trace comes from its cache if that
 * holds. Also iteration markers put into a trace, and a trace in numbers.
 *
 * Call fl_trace_open and free the result with fl_imported_free. The table FL_READERS lists all readers; the first that
 * detects a file reads it. FL_BAD_INPUT where none does, or the file is wrong; a cache never causes an error. */
#pragma once

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- the key of a cache: the bytes of its source for which it holds ---- */

typedef struct fl_cache_stamp { /* what the file system reports about a source */
    uint64_t device, inode, size;
    int64_t modified_ns, changed_ns;
    uint64_t settled; /* 1: the source was not touched for two seconds, so a later change gets another time */
} fl_cache_stamp;

typedef struct fl_cache_key {
    fl_cache_stamp stamp;
    uint64_t hash[2]; /* hash of the source */
    uint64_t reader;  /* hash of the reader's name and the options */
} fl_cache_key;

/* ---- iteration markers that the program's threads passed, put into a trace of its GPUs ----
 *
 * A trace has each marker as an op of a stream. So a marker goes into the busiest stream of its device and process,
 * behind the op that ran when the host passed it. The host runs ahead of the GPU. The n-th interval between markers is
 * that of the n-th iteration only if the host waits for the GPU in each, as training that reads its loss does. */

typedef struct fl_trace_mark {
    int64_t time_ns;
    int32_t device, process;
} fl_trace_mark;

typedef struct fl_trace_marks { /* plain zero: none */
    fl_trace_mark *mark;
    size_t count, room;
} fl_trace_marks;

fl_status fl_trace_marks_add(fl_trace_marks *m, int64_t time_ns, int32_t device, int32_t process, fl_diag *d);
/* Add an op [iteration] for each marker. Skips markers of processes that ran nothing on the device. */
fl_status fl_trace_marks_place(fl_trace_marks *m, fl_kernel_trace *t, fl_diag *d);
void fl_trace_marks_free(fl_trace_marks *m);

/* ---- the readers, one row each ----
 *
 * The table declares them, and open.c lists them in this order. */

/* X(ident): its file defines fl_reader_ident. */
#define FL_READERS(X)                                                                                                  \
    X(kernels)                                                                                                         \
    X(telemetry)                                                                                                       \
    X(sweep)                                                                                                           \
    X(requests)                                                                                                        \
    X(rocpd)                                                                                                           \
    X(nsys_sqlite)                                                                                                     \
    X(kineto)                                                                                                          \
    X(nsys_csv)                                                                                                        \
    X(nsys_exec)                                                                                                       \
    X(rocprofv3)                                                                                                       \
    X(nvidia_smi)                                                                                                      \
    X(dmon)                                                                                                            \
    X(dcgm_exporter)                                                                                                   \
    X(prometheus)                                                                                                      \
    X(dcgmi)                                                                                                           \
    X(amd_smi)                                                                                                         \
    X(rocm_smi)                                                                                                        \
    X(geopm)                                                                                                           \
    X(geepafs)                                                                                                         \
    X(dvfs)                                                                                                            \
    X(profile)                                                                                                         \
    X(kernel_tuner)                                                                                                    \
    X(zeus_windows)                                                                                                    \
    X(zeus_power)                                                                                                      \
    X(zeus)                                                                                                            \
    X(burstgpt)                                                                                                        \
    X(mooncake)                                                                                                        \
    X(vllm_bench)                                                                                                      \
    X(azure_llm)                                                                                                       \
    X(wide)

#define FL_READER_DECLARE(ident) extern const fl_reader fl_reader_##ident;
FL_READERS(FL_READER_DECLARE)

/* ---- a trace in numbers: length, kernels, busy time, gaps, power and energy ---- */

enum { FL_STATS_GAPS = 5 }; /* classes of gaps: below 10 us, 100 us, 1 ms, 10 ms, longer */

typedef struct fl_device_stats {
    int32_t device;
    size_t kernels, copies, streams; /* streams: distinct process and stream */
    double span_s;                   /* from the first start to the last end on the device */
    double busy_s, copy_s;           /* time with some kernel (copy) resident */
    double kernel_s;                 /* sum of the kernels' durations; divided by busy_s: how many ran at once */
    size_t gaps;                     /* between kernels, all streams together */
    double gap_s, longest_gap_s;     /* total, and the longest */
    size_t gap_count[FL_STATS_GAPS];
    double gap_class_s[FL_STATS_GAPS];
    /* From the telemetry, NAN where there is none. Over the kernels' span where there are kernels, else over all
     * readings. */
    double power_w, energy_j; /* mean power; energy from the energy counter where there is one, else power over time */
    bool counted;             /* it is the counter's */
    double sm_mhz, sm_mhz_min, sm_mhz_max, util_pct;
    size_t readings;
    double interval_s; /* median between readings */
    double covered_s;  /* from the first reading to the last, without pauses */
} fl_device_stats;

typedef struct fl_name_stats { /* statistics of all kernels of one name */
    const char *name;          /* borrowed from the trace */
    size_t count, kinds;       /* kinds: distinct grids and blocks */
    double total_s, min_s, max_s;
} fl_name_stats;

typedef struct fl_stats {
    double duration_s, first_s;
    size_t kernels, copies, syncs, iterations, kinds, names, streams, processes;
    bool has_launches, has_clocks;
    fl_device_stats *device;
    size_t device_count;
    fl_name_stats *name; /* kernels only; the longest total first */
    size_t name_count;
} fl_stats;

/* Summarise kernels, telemetry, or both on one clock. Fills *s or leaves it zeroed; it borrows names from run. */
fl_status fl_stats_make(fl_stats *s, const fl_imported *run, fl_diag *d);
void fl_stats_free(fl_stats *s);

/* Write a CSV with a row per device and bin of time: t_s,device,busy_pct,copy_pct,power_w,sm_mhz,util_gpu_pct. An empty
 * cell is not known. The caller checks whether the write succeeded. */
fl_status fl_stats_put_series(FILE *out, const fl_imported *run, size_t bins, fl_diag *d);

/* ---- opening ---- */

/* Reads path with the reader that format names (NULL: the one that detects it). *o may be NULL: all devices, no
 * interval. Fills *out or leaves it zeroed. Where a regular file of FL_CACHE_FROM bytes or more holds kernels and no
 * telemetry, the function uses a cache beside it (traces/open/open.h) if that was made from exactly these bytes, reader
 * and options; otherwise it writes one. A cache that cannot be written is not a failure. */
fl_status fl_trace_open(const char *path, const char *format, const fl_import_options *o, fl_imported *out, fl_diag *d);
/* Open a trace like fl_trace_open, for callers that will read it again. *known: *key belongs to exactly the bytes that
 * were read. */
fl_status fl_trace_open_key(const char *path, const char *format, const fl_import_options *o, fl_imported *out,
                            fl_cache_key *key, bool *known, fl_diag *d);
/* Set whether the process keeps and uses caches beside traces. The default is yes. The setting holds for the whole
 * process; set it before other threads read. */
void fl_trace_keep(bool keep);

extern const fl_reader *const fl_readers[]; /* fl_readers_count */
extern const size_t fl_readers_count;

/* Return the library that a reader needs and this build is without; NULL: it has all. */
const char *fl_reader_missing(const fl_reader *reader);

/* The reader of a file: by name where one is given (FL_BAD_INPUT with the nearest name for an unknown one), else the
 * first that detects the file. FL_BAD_INPUT with a list of the formats where none does. */
fl_status fl_reader_find(const char *path, const char *name, const fl_reader **reader, fl_diag *d);

/* Read the measured settings (requests) of any file: one of ours, or one of another tool that a reader knows. times:
 * power may be unknown. left: as for fl_sweep_read; what a reader of another tool left out stands in its `earlier`. */
fl_status fl_sweep_open(const char *path, bool times, fl_sweep *s, fl_left_out *left, fl_diag *d);
fl_status fl_requests_open(const char *path, fl_requests *r, fl_left_out *left, fl_diag *d);

/* ---- what a file is ---- */

typedef enum fl_file_type {
    FL_FILE_RECORDING, /* kernels, telemetry, or another tool's file, which a reader detects */
    FL_FILE_SWEEP,     /* measured settings */
    FL_FILE_PROGRAMS,
    FL_FILE_PIPELINE,
    FL_FILE_SERVING, /* a server of a language model */
    FL_FILE_REQUESTS,
    FL_FILE_KINDS, /* kernel classes */
    FL_FILE_PLAN,
    FL_FILE_ARRIVALS,
    FL_FILE_LOG, /* of decisions */
    FL_FILE_EXPERIMENT,
    FL_FILE_RESULT, /* of compare or grid */
    FL_FILE_TYPES
} fl_file_type;

/* Find what a file is, by its first bytes. FL_BAD_INPUT, with a list of the formats, where nothing knows it. */
fl_status fl_file_type_find(const char *path, fl_file_type *type, fl_diag *d);
/* Return true if the file can be read and is of that type. */
bool fl_file_is(const char *path, fl_file_type type);
/* Return the name of a type with its article, as in "is a sweep". */
const char *fl_file_type_name(fl_file_type type);
