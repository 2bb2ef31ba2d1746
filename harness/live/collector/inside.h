/* What the files of harness/live/collector share. Other modules include the public header alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A pool of buffers for CUPTI. Nothing here waits, because it runs inside the program's launches.
 *
 * The buffers are small. CUPTI returns a buffer when all kernels in it have ended, so the size limits how many later
 * kernels a kernel may have to wait for. */

enum { FL_BUFFER_BYTES = 8192 /* 37 kernels */ };

uint8_t *fl_buffer_take(void); /* aligned to 8 bytes; NULL when out of memory */
void fl_buffer_give(uint8_t *buffer);

/* The GPUs that the program's driver gives it. Own declarations (CUDA 11.4 and later). */

enum { FL_CUDA_UUID = 16 };

/* UUID of the GPU that has this number in the program, or of the MIG instance with this number (the instance's own, not
 * its GPU's). False: there is no such GPU, the driver has not started, or it is too old to have the call. Never loads a
 * driver: the program has done that. */
bool fl_cuda_uuid(uint32_t number, uint8_t uuid[FL_CUDA_UUID]);
/* The program's number of the GPU that this thread uses; UINT32_MAX where it uses none yet. */
uint32_t fl_cuda_current(void);

/* CUPTI, found at run time and made to collect kernels. Own declarations (CUPTI 11 to 13). */

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

/* A thread that requests the collected records at a steady period. CUPTI's own period returns only full buffers
 * (cuptiActivityFlushPeriod), so a program that is killed would lose the rest. cuptiActivityFlushAll(0) returns all
 * complete records, and its documentation allows a thread of one's own. There is one such thread per process. */

/* Calls flush(0) every `ms`. The thread blocks all of the program's signals. False: no thread could be created. */
bool fl_flusher_start(int (*flush)(uint32_t flag), unsigned ms);
/* Ends the thread. False where it did not end within a second: it is stuck in flush, and any caller of flush would be
 * stuck too. */
bool fl_flusher_stop(void);

/* NVTX 3 as a tool meets it: the program's NVTX asks the library that NVTX_INJECTION64_PATH names which calls it wants.
 * Own declarations. */

typedef enum fl_nvtx_module { FL_NVTX_CORE = 1, FL_NVTX_CORE2 = 5 } fl_nvtx_module;
enum { FL_NVTX_CALLBACKS = 1 /* the table that lists the modules */ };
enum { FL_NVTX_ASCII = 1, FL_NVTX_UNICODE = 2, FL_NVTX_REGISTERED = 3 };
enum { FL_NVTX_NO_TRACKING = -2 /* what a push returns where nobody counts how deep it is */ };

enum { /* callbacks of CORE */
       FL_NVTX_MARK_EX = 1,
       FL_NVTX_MARK_A,
       FL_NVTX_MARK_W,
       FL_NVTX_RANGE_START_EX,
       FL_NVTX_RANGE_START_A,
       FL_NVTX_RANGE_START_W,
       FL_NVTX_RANGE_END,
       FL_NVTX_RANGE_PUSH_EX,
       FL_NVTX_RANGE_PUSH_A,
       FL_NVTX_RANGE_PUSH_W,
       FL_NVTX_RANGE_POP
};

enum { /* of CORE2 */
       FL_NVTX_DOMAIN_MARK_EX = 1,
       FL_NVTX_DOMAIN_RANGE_START_EX,
       FL_NVTX_DOMAIN_RANGE_END,
       FL_NVTX_DOMAIN_RANGE_PUSH_EX,
       FL_NVTX_DOMAIN_RANGE_POP,
       FL_NVTX_DOMAIN_RESOURCE_CREATE,
       FL_NVTX_DOMAIN_RESOURCE_DESTROY,
       FL_NVTX_DOMAIN_NAME_CATEGORY_A,
       FL_NVTX_DOMAIN_NAME_CATEGORY_W,
       FL_NVTX_DOMAIN_REGISTER_STRING_A,
       FL_NVTX_DOMAIN_REGISTER_STRING_W
};

typedef struct fl_nvtx_attributes { /* nvtxEventAttributes_t */
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message; /* char, wchar_t, or what the registration of a string returned */
} fl_nvtx_attributes;

typedef void (*fl_nvtx_function)(void);
typedef struct fl_nvtx_callbacks {
    uint64_t size; /* of this struct */
    /* Where the program's NVTX keeps the function of each callback, from 1 on; *count entries with the empty first. */
    int (*table)(fl_nvtx_module module, fl_nvtx_function ***slot, unsigned *count);
} fl_nvtx_callbacks;
typedef const void *fl_nvtx_export(uint32_t table);

/* Has mark(name) called at every mark and at the start of every range. A program may hold several copies of NVTX, one
 * in each of its libraries; each asks for itself. */
void fl_nvtx_attach(fl_nvtx_export *get, void (*mark)(const char *name));
