/* The canonical files of kernels, kinds, programs, telemetry and decisions; and what can be done to a kernel trace by
 * itself: activity of devices, lanes that overlap, sorting.
 *
 * harness/manual/formats specifies each file. Each has a _read and a _write. A reader fills its struct
 * (traces/io/records.h) or leaves it zeroed, and refuses with file, line and column. A writer uses a temporary file and
 * a rename. The caller frees structs by their _free. Sweeps are in traces/import, files of pipelines and servers in
 * modules of their own. */
#pragma once

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* ---- programs files ----
 *
 * Workloads in the form in which authors publish them, as kernel classes, times and counts, not as
 * one row for each launch. sim/workload/workload.h makes kernel traces from them.
 *
 * The parts of a program run one after the other, each for about part_s seconds. The whole sequence runs `cycles` times
 * (for parts that alternate). The rows of a part are one iteration, in order, which repeats until the part's time is
 * over. A row is `count` launches of a kernel with mean time_us, and with a mean of gap_us of host time before each.
 * Rows of one part on several streams run side by side. */

typedef struct fl_program_row {
    uint32_t program, kernel;         /* indices into names */
    uint32_t part;                    /* from 1, ascending within its program */
    uint32_t count;                   /* launches in one iteration, from 1 */
    double part_s;                    /* the same in all rows of a part */
    double time_us, time_cv;          /* mean, and coefficient of variation (a lognormal's) */
    double gap_us, gap_cv;            /* host time before each launch */
    int32_t stream;                   /* 0 where the file has none */
    uint32_t grid_x, block_x, cycles; /* 256, 256 and 1 where the file has none */
    int64_t line;
} fl_program_row;

typedef struct fl_programs {
    fl_head head;
    char **names;
    size_t name_count, name_room;
    fl_program_row *rows; /* the rows of a program stand together */
    size_t row_count, row_room;
    uint32_t *programs; /* program_count: indices into names, in order of appearance */
    size_t program_count, program_room;
} fl_programs;

/* Fills *p or leaves it zeroed. Refuses everything that any canonical file refuses, and also a program in two places,
 * parts out of order, and rows of one part that disagree on part_s or cycles. */
fl_status fl_programs_read(const char *path, fl_programs *p, fl_diag *d);
/* Writes to `path` through a temporary file and a rename; all columns. */
fl_status fl_programs_write(const char *path, const fl_programs *p, fl_diag *d);
void fl_programs_free(fl_programs *p);

/* Build a program in memory; names are copied. fl_programs_name gives the values of rows[].program and .kernel. */
uint32_t fl_programs_name(fl_programs *p, const char *name); /* UINT32_MAX when out of memory */
fl_status fl_programs_add(fl_programs *p, const fl_program_row *row, fl_diag *d);

/* ---- decisions: activity records that a policy saw (the layout is in traces/io/records.h) ----
 *
 * Readers, writers and the logs of running hosts share these functions. */

typedef struct fl_decisions_room { /* items that each array of fl_decisions has room for */
    size_t t_ns, delay_ns, line, value, fresh, set;
    size_t kind, kernel, lost, kinds_until, kernels_until;
} fl_decisions_room;

/* Add a step, with all kinds and records so far. */
fl_status fl_decisions_add_step(fl_decisions *r, fl_decisions_room *room, size_t step, uint64_t lost);
/* Add a kind, or a kernel, to the step. The name is copied. */
fl_status fl_decisions_add_kind(fl_decisions *r, fl_decisions_room *room, size_t step, const fl_logged_kind *kind);
fl_status fl_decisions_add_kernel(fl_decisions *r, fl_decisions_room *room, size_t step,
                                  const fl_logged_kernel *kernel);

/* Make room in *r for `steps` steps of one host and `gpus` GPUs. FL_NO_MEMORY on failure. */
fl_status fl_decisions_grow(fl_decisions *r, fl_decisions_room *room, size_t steps, size_t gpus);

/* Write the header row. */
void fl_decisions_put_names(FILE *file, const fl_decisions *r);
/* Write the rows of a step, under this number. kinds: number of kinds that the file has already. */
void fl_decisions_put_step(FILE *file, const fl_decisions *r, size_t step, size_t number, size_t kinds);

/* ---- decisions: signals of servers, and steps of their engines, that a policy saw ---- */

typedef struct fl_servers_room { /* items that each array of fl_logged_servers has room for */
    size_t value, fresh, lost, batch, until;
} fl_servers_room;

/* value, fresh: signal_count of them. lost: as in fl_logged_servers. FL_NO_MEMORY where there is no room. */
fl_status fl_servers_add(fl_logged_servers *s, fl_servers_room *room, const double *value, const bool *fresh,
                         uint64_t lost);
fl_status fl_servers_add_batch(fl_logged_servers *s, fl_servers_room *room, const fl_logged_batch *batch);
/* End the step: all rows so far belong to it and to those before. */
fl_status fl_servers_end_step(fl_logged_servers *s, fl_servers_room *room);

/* ---- activity: when a device ran kernels, as the union of their spans over all streams ---- */

typedef struct fl_activity {
    int64_t *start_ns, *end_ns; /* count spans, ascending and disjoint */
    int64_t *before_ns;         /* busy time before each span */
    size_t count;
    int64_t busy_ns; /* busy time of all spans */
} fl_activity;

/* The activity of the ops of one type (fl_op_type) on one device. FL_NO_MEMORY on failure; the caller frees the struct
 * in any case. */
fl_status fl_activity_make(fl_activity *a, const fl_kernel_trace *t, int32_t device, int type);

/* Busy time before t_ns: piecewise linear, 0 before the first span, busy_ns after the last. */
double fl_activity_until(const fl_activity *a, double t_ns);
/* Writes the distinct devices of the ops in ascending order. Where there are more than `room`, it keeps the first
 * `room` that appear. Returns how many it wrote. */
size_t fl_activity_devices(const fl_kernel_trace *t, int32_t *device, size_t room);

void fl_activity_free(fl_activity *a);

/* ---- target files ----
 *
 * The power that the GPUs of a node are to draw together, as a grid operator or a budget asks. */

/* Fills *t or leaves it zeroed. */
fl_status fl_target_read(const char *path, fl_target *t, fl_diag *d);

/* ---- kernel traces and kinds files ---- */

/* Fills *t or leaves it zeroed. Refuses: unknown version or column, torn rows, an empty trace. Rows contradict that end
 * before their start, overlap others of their device, process and stream, start before their launch, or wait for a
 * later row. left: counts the rows that were left out; NULL: refuse at the first (traces/io/io.h). */
fl_status fl_kernels_read(const char *path, fl_kernel_trace *t, fl_left_out *left, fl_diag *d);

/* Writes to `path` through a temporary file in the same folder and a rename, so that no reader sees an incomplete file.
 */
fl_status fl_kernels_write(const char *path, const fl_kernel_trace *t, fl_diag *d);

/* Build a trace in memory. Returns the index of the name or kind and adds it if it is new; UINT32_MAX when out of
 * memory. The cost is linear in the number of kinds, so use it for small sets; the reader interns through a hash of its
 * own. */
uint32_t fl_trace_add_kind(fl_kernel_trace *t, const char *name, const uint32_t grid[3], const uint32_t block[3]);
fl_status fl_trace_add_op(fl_kernel_trace *t, const fl_trace_op *op);

/* The op type that a name means; see fl_op_type. */
fl_op_type fl_op_type_of(const char *name);

fl_status fl_kinds_read(const char *path, fl_kinds *k, fl_diag *d);
fl_status fl_kinds_write(const char *path, const fl_kinds *k, fl_diag *d);

/* The number of rows from `first` on that describe the phases of that kernel, in order: 1 where it has no phases. */
size_t fl_kinds_phases(const fl_kinds *k, const fl_kind_load *first);

/* An index of kinds by name, for callers with many look-ups. */

typedef struct fl_kinds_index {
    const fl_kinds *kinds;   /* borrowed */
    size_t *order;           /* rows sorted by name, and in the file's order within a name; NULL: see below */
    const fl_kind_load *any; /* the row for names without a row of their own; NULL: none */
} fl_kinds_index;

/* Builds the index. Where memory runs out, the look-ups give the same answers, only more slowly. Call
 * fl_kinds_index_free in either case. */
fl_kinds_index fl_kinds_index_make(const fl_kinds *k);
void fl_kinds_index_free(fl_kinds_index *x);

/* Return the load of a kernel name; the row "*" where the name has no row of its own; NULL where neither exists. */
const fl_kind_load *fl_kinds_index_find(const fl_kinds_index *x, const char *name);

/* ---- lanes that overlap ----
 *
 * A trace holds one op at a time in each lane (device, process and stream). Recordings do not, so this separates ops
 * that overlap.
 *
 * - Time stamps are rounded, and ends are late by some ns. An overlap of up to FL_LANES_ROUNDING_NS is cut off the end
 * of the earlier op.
 * - Dependent launches (CUDA's programmatic dependent launch, on Hopper and later) let the next kernel of a stream
 * begin before the one before it has ended. Libraries use them: of 106,232 kernels of three PyTorch programs on an H200
 * 1,213 began up to 13.8 us early, each ended after the one before it, and no third began meanwhile (tests/hardware).
 * Such a kernel is moved to begin at that end. The caller asks for this only for records of a stream's own kernels: a
 * profiler's file may show the branches of a graph as one stream, and they overlap in the same way.
 * - Other overlaps are of ops that run beside each other (graphs, several hardware queues). The later op moves to a
 * stream number of its own.
 *
 * Either cut takes at most half of the earlier op's length as overlap. */

typedef struct fl_lanes_parted {
    size_t cut;       /* ops that end earlier now */
    size_t dependent; /* ops that begin later now */
    size_t moved;     /* ops on other streams now */
    size_t streams;   /* made for them */
    int64_t first;    /* number of the first of these */
} fl_lanes_parted;

/* Separate ops that overlap, in place. dependent: overlaps of up to FL_LANES_DEPENDENT_NS are dependent launches. Rows
 * keep their order, so a row that begins later may stand before one that begins earlier. FL_BAD_INPUT where no stream
 * number is left. */
fl_status fl_lanes_part(fl_kernel_trace *t, bool dependent, fl_lanes_parted *out, fl_diag *d);
/* Describe the changes as sentences: number 0, 1, ... until it returns false. A sentence that does not apply is "". */
bool fl_lanes_text(const fl_lanes_parted *p, int number, char *text, size_t size);

/* Sort the ops by start, end, device, process, stream and row, in place, with four more bytes per op. Only for ops that
 * do not wait for each other, because row numbers change. */
fl_status fl_ops_sort(fl_kernel_trace *t, fl_diag *d);

/* ---- rows of telemetry, added one by one with all checks, from any source ----
 *
 * Call fl_telemetry_row for the cells of a row, fill them, then call fl_telemetry_take. fl_telemetry_end takes the rows
 * out again that are out of order. */

typedef struct fl_signal_range {
    double least, most;
} fl_signal_range;

/* Return the values that a signal can have: what no device exceeds, or any finite number for a name of the user's. */
fl_signal_range fl_signal_range_of(const char *signal);
/* Report a value outside its range as a contradiction, at that field of the row. what: the column's name. */
fl_status fl_signal_check(const fl_csv_row *row, size_t index, const char *what, fl_signal_range range, double value,
                          fl_diag *d);

typedef struct fl_telemetry_rows { /* set t, whose signals are all named, and left */
    fl_telemetry *t;
    fl_left_out *left;
    double *value; /* of the row at hand */
    int64_t *line; /* of each row */
    size_t cell_room, device_room, value_room, line_room;
    int64_t *last_ns; /* entry i is the last time of device i - 1 */
    size_t last_room;
    bool disorder;
} fl_telemetry_rows;

/* The cells of the next row, signal_count NANs; NULL when out of memory. */
double *fl_telemetry_row(fl_telemetry_rows *r);
/* Add the row that fl_telemetry_row gave. */
fl_status fl_telemetry_take(fl_telemetry_rows *r, const fl_csv_row *row, int64_t t_ns, int32_t device, fl_diag *d);
/* Leave out what is out of order, and judge the whole by fl_left_end. to: as there. */
fl_status fl_telemetry_end(fl_telemetry_rows *r, const char *path, fl_left_out *to, fl_diag *d);
void fl_telemetry_rows_free(fl_telemetry_rows *r); /* not t */

/* Return true if the given rows of one device, in order of time, come from two boards read in turn. One meter does not
 * go back and forth between two levels within milliseconds, reading after reading; two such boards do. */
bool fl_telemetry_interleaves(const fl_telemetry *t, const size_t *row, size_t count);

/* ---- telemetry over time: pauses ----
 *
 * A pause is a spacing of two readings of one device that is longer than FL_PAUSE_SPACINGS usual ones. Nothing is known
 * of what happened in it, so no sum over time includes it. */

#define FL_PAUSE_SPACINGS 10

/* Return the usual spacing of ascending times: the one that nine tenths do not exceed, since some loggers write in
 * bursts. 0 for fewer than two times. room: count - 1 items, overwritten. */
double fl_usual_spacing(const double *time, size_t count, double *room);

/* Compute the longest spacing of a device's readings of a signal (SIZE_MAX: of its rows) that is no pause, in ns;
 * infinite where no spacing is usual. */
fl_status fl_telemetry_longest(const fl_telemetry *t, size_t signal, int32_t device, double *longest_ns, fl_diag *d);

/* Return the column of a signal; SIZE_MAX: the telemetry has none of that name. */
size_t fl_telemetry_signal(const fl_telemetry *t, const char *name);

typedef struct fl_held_over { /* the span of a mean or sum */
    int64_t from_ns, to_ns;
    bool line; /* the signal is a straight line between readings, as power; else each reading holds until the next */
} fl_held_over;

typedef struct fl_held {   /* one signal of one device over a span; NAN: not known */
    double mean, integral; /* over the stretches between readings, without pauses; integral in units times s */
    double min, max;
    double seconds; /* length of these stretches */
    double gained;  /* sum of its rises: what a counter counted */
    size_t falls;   /* how often it fell, which a counter does where it was reset */
    size_t pauses;
    size_t count; /* readings */
} fl_held;

/* Sum up a signal of one device over a span. The last reading holds to the end of the span, unless that is a pause. */
fl_status fl_telemetry_held(const fl_telemetry *t, const char *name, int32_t device, const fl_held_over *o,
                            fl_held *out, fl_diag *d);

/* Two accounts of one energy that differ by more than this share of the larger are in doubt. */
#define FL_ACCOUNTS_APART 0.1
bool fl_accounts_differ(double one, double other);
/* Compute the mean power of a device (-1: the node) by its energy counter and by its power readings; NAN where there is
 * none, or the counter fell. */
fl_status fl_telemetry_accounts(const fl_telemetry *t, int32_t device, const fl_held_over *o, double *counter_w,
                                double *sensor_w, fl_diag *d);

/* ---- telemetry and decisions files ---- */

/* left: counts the rows that were left out; NULL: refuse at the first (traces/io/io.h). */
fl_status fl_telemetry_read(const char *path, fl_telemetry *t, fl_left_out *left, fl_diag *d);
fl_status fl_telemetry_write(const char *path, const fl_telemetry *t, fl_diag *d);

fl_status fl_decisions_read(const char *path, fl_decisions *r, fl_diag *d);
fl_status fl_decisions_write(const char *path, const fl_decisions *r, fl_diag *d);
