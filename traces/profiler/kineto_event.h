/* Events of the PyTorch profiler (Kineto, the JSON of chrome://tracing), one after the other from a stream of text. */
#pragma once

#include "traces/io/diag.h"

#include <stdbool.h>

#define FL_KINETO_NAME_MAX (256u << 10) /* bytes; longer names are refused */
#define FL_KINETO_TEXT_MAX 64u /* bytes of categories and kinds of synchronisation; longer texts are truncated */

typedef enum fl_kineto_key { /* numbers of an event; from DEVICE on, numbers of its args */
                             FL_KINETO_PID,
                             FL_KINETO_TID,
                             FL_KINETO_TS,  /* in ns, unlike in the file */
                             FL_KINETO_DUR, /* in ns */
                             FL_KINETO_DEVICE,
                             FL_KINETO_STREAM,
                             FL_KINETO_CONTEXT,
                             FL_KINETO_CORRELATION,
                             FL_KINETO_BYTES,
                             FL_KINETO_WAIT_STREAM,
                             FL_KINETO_WAIT_RECORD,
                             FL_KINETO_NUMBERS
} fl_kineto_key;

typedef struct fl_kineto_event {
    const char *name; /* name_size bytes of any value, NUL-terminated; valid within the call */
    size_t name_size;
    char category[FL_KINETO_TEXT_MAX], sync[FL_KINETO_TEXT_MAX]; /* the values of cat and args.cuda_sync_kind */
    char phase;                                                  /* ph; 0 = the event has none */
    bool has_name;
    int64_t number[FL_KINETO_NUMBERS];
    bool known[FL_KINETO_NUMBERS]; /* known: the event has a whole number (ts, dur: any number) that fits */
    uint32_t grid[3], block[3];
    uint8_t grid_count, block_count; /* how many components the event gave */
    int64_t line, column;            /* where the event begins */
} fl_kineto_event;

typedef struct fl_kineto_device {
    int64_t id;
    char name[128];
} fl_kineto_device;

typedef struct fl_kineto_file { /* the file's values around the events */
    int64_t base_ns;            /* baseTimeNanoseconds; 0 = the file has none */
    fl_kineto_device device[64];
    size_t device_count;
    bool has_events;
} fl_kineto_file;

typedef struct fl_kineto_reader {
    fl_status (*event)(void *user, const fl_kineto_event *e, fl_diag *d);
    void (*progress)(void *user, double share); /* may be NULL */
    void *user, *progress_user;
} fl_kineto_reader;

/* Reads path (plain or gzipped) to its end. Memory use does not grow with the file: texts of more than 16 MiB and
 * nesting beyond 200 are refused. FL_BAD_INPUT, with line and column: the file is not JSON, or ends inside it. */
fl_status fl_kineto_events(const char *path, const fl_kineto_reader *r, fl_kineto_file *file, fl_diag *d);
