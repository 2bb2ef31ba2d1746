/* What the host's end of the kernel records counts, and whom it asks where a GPU is. */
#pragma once

#include <stddef.h>
#include <stdint.h>

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
