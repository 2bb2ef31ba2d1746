/* What a profiler recorded on the host besides the ops: launches, recorded events and waits. A correlation id joins
 * them with the ops once all are known. For the readers of profilers' files. */
#pragma once

#include "traces/import/import.h"

typedef struct fl_host_call { /* a call that launches ops or records an event */
    int64_t ns;
    uint32_t correlation;
    int32_t thread;
} fl_host_call;

typedef enum fl_wait_kind {
    FL_WAIT_ALL,  /* for all work of the device or context */
    FL_WAIT_SOME, /* for a stream or event; fl_sync_detail says which */
    FL_WAIT_COPY  /* a blocking copy: waits for the op of its own correlation id */
} fl_wait_kind;

typedef struct fl_host_wait { /* a call in which a host thread waits */
    int64_t start_ns, end_ns;
    uint32_t correlation;
    int32_t thread;
    uint8_t kind; /* fl_wait_kind */
} fl_host_wait;

typedef enum fl_sync_kind {
    FL_SYNC_CONTEXT,    /* for everything that was launched */
    FL_SYNC_STREAM,     /* for everything that was launched into `stream` */
    FL_SYNC_EVENT,      /* for everything that stream `on` held when call `record` recorded the event */
    FL_SYNC_STREAM_WAIT /* the same, but `stream` waits, not the host */
} fl_sync_kind;

typedef struct fl_sync_detail { /* the object of the synchronisation with a correlation id */
    int64_t ns;
    uint32_t correlation, record;        /* record: 0 where it is not known */
    int32_t device, process, stream, on; /* on: -1 where it is not known */
    uint8_t kind;                        /* fl_sync_kind */
} fl_sync_detail;

typedef struct fl_host_log {
    fl_host_call *call;
    fl_host_wait *wait;
    fl_sync_detail *detail;
    size_t call_count, call_room, wait_count, wait_room, detail_count, detail_room;
} fl_host_log;

fl_status fl_host_log_call(fl_host_log *log, fl_host_call call);
fl_status fl_host_log_wait(fl_host_log *log, fl_host_wait wait);
fl_status fl_host_log_detail(fl_host_log *log, fl_sync_detail detail);

/* The kind of a runtime's call, by its name (CUDA, its driver interface, HIP). */
typedef enum fl_call_kind {
    FL_CALL_OTHER,
    FL_CALL_LAUNCH,   /* launches a kernel, graph, copy or fill */
    FL_CALL_COPY,     /* a copy for which the host waits */
    FL_CALL_WAIT_ALL, /* waits for a device or context */
    FL_CALL_WAIT,     /* waits for a stream or event */
    FL_CALL_RECORD    /* records an event */
} fl_call_kind;
fl_call_kind fl_call_kind_of(const char *name, size_t size);

/* Joins the log with the ops. On entry the ops of out->kernels are sorted by time, carry their correlation id (0 =
 * none) in waits_first, and have no waits; log is sorted. The function sets launch_ns (never after the start) and
 * host_thread, in all ops of a stream or in none. An op without a call of its own counts as launched with its
 * predecessor; where most ops of a stream have no call, none gets a launch. Where there are launches, the function adds
 * [sync] rows for the host's waits (after the rows they wait for), and waits_for to the ops after a stream's wait. It
 * notes every assumption. */
fl_status fl_host_log_join(fl_host_log *log, fl_imported *out, fl_diag *d);

void fl_host_log_free(fl_host_log *log);
