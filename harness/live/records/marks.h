/* The markers of the programs, as kernel_feed hands them on: those of the names that the user gives count as
 * iterations, each on the GPU that its thread uses. */
#pragma once

#include "harness/live/collector/ring.h"
#include "traces/io/diag.h"

#include <stdbool.h>
#include <stdint.h>

enum { FL_MARKS_NAMES = 32 /* that are told of; a program may give each of its ranges another */ };

typedef struct fl_marker { /* an iteration */
    int64_t time_ns;
    uint32_t gpu, program;
} fl_marker;

typedef struct fl_marks_name {
    char name[FL_RING_MARK_NAME];
    uint64_t count;
} fl_marks_name;

typedef struct fl_marks { /* plain zero: no name counts */
    const char *const *names;
    size_t name_count;
    fl_marker *marker; /* iterations since fl_marks_clear */
    size_t count, room;
    uint64_t *passed; /* iterations of each GPU */
    size_t gpus, gpu_room;
    uint64_t iterations, unplaced; /* all of them; and those of no GPU that is watched */
    uint64_t others;               /* markers of names beyond those that are told of */
    fl_marks_name seen[FL_MARKS_NAMES];
    size_t seen_count;
} fl_marks;

/* Names that no marker can have, since the ring cuts longer ones, are refused. */
fl_status fl_marks_check(const char *const *name, size_t count, fl_diag *d);
/* Of the names, which stay the caller's: what fl_ring_head.wanted says. */
uint64_t fl_marks_wanted(const fl_marks *m);
/* Makes room for that many GPUs. */
fl_status fl_marks_size(fl_marks *m, uint32_t gpus, fl_diag *d);
/* gpu -1: none that is watched. The name is compared as it is; fl_marks_text shows it with '?' for what is not
 * printable. */
fl_status fl_marks_add(fl_marks *m, const char *name, int64_t time_ns, int32_t gpu, uint32_t program, fl_diag *d);
void fl_marks_clear(fl_marks *m);
/* "step 100, forward 400": the names and how often each came, the most frequent first. */
void fl_marks_text(const fl_marks *m, char *text, size_t size);
void fl_marks_free(fl_marks *m);
