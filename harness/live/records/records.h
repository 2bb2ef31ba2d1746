/* MODULE harness/live/records */
#pragma once

#include "harness/live/collector/ring.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the host's end of the kernel records counts, and whom it asks where a GPU is. */

typedef struct fl_kernels fl_kernels;

typedef struct fl_kernels_counts {
    uint64_t programs, running; /* rings seen, and those whose program lives */
    uint64_t ends_missing;      /* programs that were killed: records may be missing at their end */
    uint64_t consumed, lost, damaged;
    uint64_t elsewhere;    /* of the consumed, those of no GPU that is watched: others, MIG instances, without a UUID */
    uint64_t set_aside;    /* rings that could not be believed */
    uint64_t unkept_kinds; /* records whose kind was one too many; they have the kind "(further kinds)" */
    uint64_t marks, marks_lost;
} fl_kernels_counts;

/* Where a GPU stands among the host's, -1 = not there. uuid: "GPU-...", of that size. */
typedef int fl_kernels_position(void *user, const char *uuid, size_t size);

/* The markers of the programs, as kernel_feed hands them on: those of the names that the user gives count as
 * iterations, each on the GPU that its thread uses. */

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

/* "step 100, forward 400": the names and how often each came, the most frequent first. */
void fl_marks_text(const fl_marks *m, char *text, size_t size);

/* The markers of the programs whose kernel records a host takes (records.h). */

/* Markers of these names count as iterations. `all`: programs give the others too, as fl_marks_text tells them. To be
 * said before the first call of fl_kernels_take; the names stay the caller's. */
void fl_kernels_iterations(fl_kernels *k, const char *const *name, size_t count, bool all);
/* Iterations of that GPU, as of the last take. False where no name counts. */
bool fl_kernels_iterated(const fl_kernels *k, uint32_t gpu, uint64_t *count);
/* The markers, with the iterations that came with the last take: times are as in its records, and negative before. */
const fl_marks *fl_kernels_marks(const fl_kernels *k);
/* Has programs wake fl_kernels_await at such a marker, by a FIFO in the folder. */
fl_status fl_kernels_wakes(fl_kernels *k, fl_diag *d);
/* Waits until then (CLOCK_MONOTONIC), for at most a second, or for a signal; *marked: an iteration came that the last
 * take did not have. Ends at once where one did. */
fl_status fl_kernels_await(fl_kernels *k, int64_t until_ns, bool *marked, fl_diag *d);

/* The host's end of the kernel records: every ring in a folder, turned into the records that a policy sees.
 *
 * A program numbers the GPUs that it sees, its ring says which UUIDs these are, and by those the host knows them. A MIG
 * instance and a GPU without a UUID belong to none of the host's: no number is taken for another.
 *
 * The rings are written by programs that anybody may have started, and the host may be root: see collector/ring.h for
 * what it believes, inside.h for what becomes of a ring that it does not. What one call takes is bounded. */

/* folder is made where it is missing (mode 0700). */
fl_status fl_kernels_open(fl_kernels **out, const char *folder, fl_diag *d);
void fl_kernels_close(fl_kernels *k); /* rings of programs that ended are removed; NULL is allowed */

/* To be said before the first call of fl_kernels_take; without it no GPU is the host's. */
void fl_kernels_gpus(fl_kernels *k, fl_kernels_position *position, void *user);
/* Who is told, a line each, which rings were set aside and what was too much. At most some dozens of lines. */
void fl_kernels_tell(fl_kernels *k, void (*tell)(void *user, const char *line), void *user);

/* What came since the last call, by end, into *sample: records of GPUs below gpu_count with times from origin_ns on.
 * Valid until the next call. */
fl_status fl_kernels_take(fl_kernels *k, int64_t origin_ns, fl_sample *sample, fl_diag *d);

/* Of each record that was taken last, which program it is of, from 0 in the order in which they were seen. */
const uint32_t *fl_kernels_programs(const fl_kernels *k);

/* Kernels of that GPU that have ended since the origin, as of the last take; lost ones are taken for kernels of the GPU
 * that their program used last. False where it is not known: no program has a collector yet. */
bool fl_kernels_finished(const fl_kernels *k, uint32_t gpu, uint64_t *count);

fl_kernels_counts fl_kernels_count(const fl_kernels *k);

/* Which kernel records a policy is shown: those of GPUs on which it has them on. The collector records all along,
 * whatever a policy sets; a policy sees what it would see of one that is switched (policies/policy.h). */

typedef struct fl_record_switch { /* plain zero is closed */
    struct fl_record_state *gpu;
    uint32_t count;
    fl_kernel_record *kept;
    size_t room;
} fl_record_switch;

fl_status fl_record_switch_open(fl_record_switch *s, uint32_t gpus, bool on, fl_diag *d);
void fl_record_switch_close(fl_record_switch *s);

/* On or off from t_ns on, in the time of the records: a kernel that ends then or before belongs to what was. */
void fl_record_switch_set(fl_record_switch *s, uint32_t gpu, bool on, int64_t t_ns);

/* Leaves in the sample what is to be seen of its records, which are all that came since the last call, some of kernels
 * that ended long before. They live until the next one. Where records are off everywhere none is lost, and there are
 * only those that come late. */
fl_status fl_record_switch_show(fl_record_switch *s, fl_sample *sample, fl_diag *d);
