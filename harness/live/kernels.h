/* The host's end of the kernel records: every ring in a folder, turned into the records that a policy sees. A program's
 * GPU numbers are taken for those of the host: run it without CUDA_VISIBLE_DEVICES, or with the same list. */
#ifndef FL_LIVE_KERNELS_H
#define FL_LIVE_KERNELS_H

#include "policies/policy.h"
#include "traces/diag.h"

typedef struct fl_kernels fl_kernels;

typedef struct fl_kernels_counts {
    uint64_t programs, running; /* rings seen, and those whose program lives */
    uint64_t ends_missing;      /* programs that were killed: records may be missing at their end */
    uint64_t consumed, lost, damaged;
} fl_kernels_counts;

/* folder is made where it is missing (mode 0700). */
fl_status fl_kernels_open(fl_kernels **out, const char *folder, fl_diag *d);
void fl_kernels_close(fl_kernels *k); /* rings of programs that ended are removed; NULL is allowed */

/* What came since the last call, by end, into *sample: records of GPUs below gpu_count with times from origin_ns on.
 * Valid until the next call. */
fl_status fl_kernels_take(fl_kernels *k, int64_t origin_ns, fl_sample *sample, fl_diag *d);

/* Of each record that was taken last, which program it is of, from 0 in the order in which they were seen. */
const uint32_t *fl_kernels_programs(const fl_kernels *k);

fl_kernels_counts fl_kernels_count(const fl_kernels *k);

#endif
