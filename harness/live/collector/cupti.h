/* CUPTI, found at run time and made to collect kernels. Own declarations (CUPTI 11 to 13). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FL_CUPTI_KERNEL = 10 /* the concurrent kind: the other kind serialises kernels */, FL_CUPTI_FORCED = 1 };

typedef void fl_cupti_requested(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void fl_cupti_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
typedef uint64_t fl_cupti_clock(void);

typedef struct fl_cupti { /* members marked "may be NULL" are NULL where this version lacks them */
    int (*callbacks)(fl_cupti_requested *, fl_cupti_completed *);
    int (*enable)(int kind);
    int (*next)(uint8_t *buffer, size_t valid, uint8_t **record);
    int (*flush)(uint32_t flag);
    int (*disable)(int kind);                                      /* may be NULL */
    int (*dropped)(void *context, uint32_t stream, size_t *count); /* may be NULL */
    int (*period)(uint32_t ms);                                    /* may be NULL */
    int (*timestamp)(uint64_t *ns);                                /* may be NULL */
    int (*use_clock)(fl_cupti_clock *);                            /* may be NULL: 11.8 and later have it */
    bool on_our_clock;                                             /* the records' times are on the given clock */
} fl_cupti;

/* Searches in this order: $FOLDLINE_CUPTI alone where it is set; what the program has loaded, so that no two versions
 * mix; beside the program's libcudart; $CUDA_HOME, $CUDA_PATH; the loader's path; /usr/local/cuda. It skips a library
 * that cannot be enabled because it is newer than the driver. Where another profiler holds CUPTI, it skips nothing and
 * gives up. False: no kernels will come. */
bool fl_cupti_start(fl_cupti *c, fl_cupti_requested *requested, fl_cupti_completed *completed, fl_cupti_clock *clock);
