/* The host's end of the kernel records: every ring in a folder, turned into the records that a policy sees.
 *
 * A program numbers the GPUs that it sees, its ring says which UUIDs these are, and by those the host knows them. A MIG
 * instance and a GPU without a UUID belong to none of the host's: no number is taken for another.
 *
 * The rings are written by programs that anybody may have started, and the host may be root: see collector/ring.h for
 * what it believes, ring_folder.h for what becomes of a ring that it does not. What one call takes is bounded. */
#pragma once

#include "harness/live/records/counts.h"
#include "harness/live/records/kernel_marks.h"
#include "policies/policy.h"
#include "traces/io/diag.h"

#include <stdbool.h>

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
