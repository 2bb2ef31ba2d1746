/* The host's end of the kernel records: every ring in a folder, turned into the records that a policy sees.
 *
 * A program numbers the GPUs that it sees. With CUDA_VISIBLE_DEVICES these are the entries of that list, else all of
 * the machine in the library's order: on a node of different GPUs that takes CUDA_DEVICE_ORDER=PCI_BUS_ID. */
#ifndef FL_LIVE_KERNELS_H
#define FL_LIVE_KERNELS_H

#include "policies/policy.h"
#include "traces/diag.h"

#include <stdbool.h>

typedef struct fl_kernels fl_kernels;

typedef struct fl_kernels_counts {
    uint64_t programs, running; /* rings seen, and those whose program lives */
    uint64_t ends_missing;      /* programs that were killed: records may be missing at their end */
    uint64_t consumed, lost, damaged;
    uint64_t elsewhere; /* of the consumed, those of GPUs that the host does not have, */
    uint64_t instances; /* and those of MIG instances: they belong to none of its GPUs as a whole */
} fl_kernels_counts;

/* folder is made where it is missing (mode 0700). */
fl_status fl_kernels_open(fl_kernels **out, const char *folder, fl_diag *d);
void fl_kernels_close(fl_kernels *k); /* rings of programs that ended are removed; NULL is allowed */

/* Where a GPU stands among the host's, -1 = not there. name: its number in the library, or the beginning of its UUID
 * ("GPU-..."). */
typedef int fl_kernels_position(void *user, const char *name, size_t size);
/* To be said before the first call of fl_kernels_take; without it the host has the first ones of the library. */
void fl_kernels_gpus(fl_kernels *k, fl_kernels_position *position, void *user);

/* What came since the last call, by end, into *sample: records of GPUs below gpu_count with times from origin_ns on.
 * Valid until the next call. */
fl_status fl_kernels_take(fl_kernels *k, int64_t origin_ns, fl_sample *sample, fl_diag *d);

/* Of each record that was taken last, which program it is of, from 0 in the order in which they were seen. */
const uint32_t *fl_kernels_programs(const fl_kernels *k);

/* Kernels of that GPU that have ended since the origin, as of the last take; lost ones are taken for kernels of the GPU
 * that their program used last. False where it is not known: no program has a collector yet. */
bool fl_kernels_finished(const fl_kernels *k, uint32_t gpu, uint64_t *count);

fl_kernels_counts fl_kernels_count(const fl_kernels *k);

#endif
