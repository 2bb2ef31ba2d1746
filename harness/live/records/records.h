/* The host's end of activity records (of kernels) and markers, which collectors in programs write into rings.
 *
 * fl_kernels_open watches a folder of rings. Call fl_kernels_gpus, then fl_kernels_take at each step: it puts the
 * records that came since the last call into a policy's sample, valid until the next call. fl_kernels_iterations
 * chooses the markers that count as iterations; fl_kernels_await waits for the next one. fl_record_switch hides the
 * records of GPUs for which the policy has switched them off.
 *
 * Any user may write a ring, and the host may be root. The module trusts no ring: it sets aside those that it cannot
 * believe, counts what is lost, and bounds the work of each call. Errors are FL_IO and FL_NO_MEMORY. */
#pragma once

#include "harness/live/collector/ring.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fl_kernels fl_kernels;

typedef struct fl_kernels_counts {
    uint64_t programs, running; /* rings seen, and those whose program lives */
    uint64_t ends_missing;      /* programs that were killed: records may be missing at their end */
    uint64_t consumed, lost, damaged;
    uint64_t elsewhere;    /* consumed records of GPUs that are not watched: others, MIG instances, without a UUID */
    uint64_t set_aside;    /* rings that could not be believed */
    uint64_t unkept_kinds; /* records beyond the largest number of kernel classes, in the class "(further kinds)" */
    uint64_t marks, marks_lost;
} fl_kernels_counts;

/* Returns the index of a GPU among the host's, -1 = not there. uuid: "GPU-...", of that size. */
typedef int fl_kernels_position(void *user, const char *uuid, size_t size);

/* Markers of programs. Those with a name that the user gives count as iterations, each on the GPU of its thread. */

enum { FL_MARKS_NAMES = 32 /* names that are listed; a program may name each of its ranges differently */ };

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
    uint64_t iterations, unplaced; /* all iterations, and those on GPUs that are not watched */
    uint64_t others;               /* markers of names that are not listed */
    fl_marks_name seen[FL_MARKS_NAMES];
    size_t seen_count;
} fl_marks;

/* Refuse names that no marker can have, because the ring cuts longer ones (FL_BAD_INPUT). */
fl_status fl_marks_check(const char *const *name, size_t count, fl_diag *d);

/* "step 100, forward 400": the names and how often each came, the most frequent first. */
void fl_marks_text(const fl_marks *m, char *text, size_t size);

/* Count markers of these names as iterations; call it before the first fl_kernels_take. The names are borrowed. `all`:
 * programs also send the other markers, which fl_marks_text lists. */
void fl_kernels_iterations(fl_kernels *k, const char *const *name, size_t count, bool all);
/* Get the number of iterations on a GPU, as of the last take. Return false if no name counts. */
bool fl_kernels_iterated(const fl_kernels *k, uint32_t gpu, uint64_t *count);
/* Return the markers, with the iterations of the last take. Times are as in its records, negative before the origin. */
const fl_marks *fl_kernels_marks(const fl_kernels *k);
/* Let programs wake fl_kernels_await at a marker that counts, through a FIFO in the folder. */
fl_status fl_kernels_wakes(fl_kernels *k, fl_diag *d);
/* Wait until a time (CLOCK_MONOTONIC), for at most a second, or until a signal. *marked: an iteration came after the
 * last take; the wait then ends at once. */
fl_status fl_kernels_await(fl_kernels *k, int64_t until_ns, bool *marked, fl_diag *d);

/* Records. A program numbers the GPUs that it sees, and its ring gives the UUID of each number. The host identifies
 * GPUs by UUID alone. A MIG instance, or a GPU without a UUID, is therefore none of the host's GPUs. */

/* Watch a folder, which is created if it is missing (mode 0700). */
fl_status fl_kernels_open(fl_kernels **out, const char *folder, fl_diag *d);
void fl_kernels_close(fl_kernels *k); /* removes the rings of programs that ended; NULL is allowed */

/* State which GPUs are the host's; call it before the first fl_kernels_take. Without it there are none. */
void fl_kernels_gpus(fl_kernels *k, fl_kernels_position *position, void *user);
/* Set the function that receives, a line each, which rings were set aside and what exceeded a limit: some dozens of
 * lines at most. */
void fl_kernels_tell(fl_kernels *k, void (*tell)(void *user, const char *line), void *user);

/* Put the records that came since the last call into *sample, sorted by end: those of GPUs below gpu_count, with times
 * from origin_ns on. They are valid until the next call. */
fl_status fl_kernels_take(fl_kernels *k, int64_t origin_ns, fl_sample *sample, fl_diag *d);

/* Return the program of each record of the last take: numbers from 0 in the order in which programs were seen. */
const uint32_t *fl_kernels_programs(const fl_kernels *k);

/* Get the number of kernels of a GPU that have ended since the origin, as of the last take. A lost record counts for
 * the GPU that its program used last. Return false if the number is not known: no program has a collector yet. */
bool fl_kernels_finished(const fl_kernels *k, uint32_t gpu, uint64_t *count);

fl_kernels_counts fl_kernels_count(const fl_kernels *k);

/* The switch of records. The collector always records; the switch shows a policy only the records of those GPUs on
 * which the policy has them on, as policies/policy.h promises. */

typedef struct fl_record_switch { /* plain zero is closed */
    struct fl_record_state *gpu;
    uint32_t count;
    fl_kernel_record *kept;
    size_t room;
} fl_record_switch;

fl_status fl_record_switch_open(fl_record_switch *s, uint32_t gpus, bool on, fl_diag *d);
void fl_record_switch_close(fl_record_switch *s);

/* Switch records on or off from t_ns on, in the time of the records. A kernel that ends at t_ns or before is shown by
 * the previous setting. */
void fl_record_switch_set(fl_record_switch *s, uint32_t gpu, bool on, int64_t t_ns);

/* Reduce a sample's records, all that came since the last call, to those that the policy may see. Some are of kernels
 * that ended long before. They are valid until the next call. If records are off on all GPUs, only late ones are left
 * and none counts as lost. */
fl_status fl_record_switch_show(fl_record_switch *s, fl_sample *sample, fl_diag *d);
