/* The interface of a vendor's back end: the GPUs of a node as the live host sees them, whatever their vendor. Units are
 * those of the contract (policies/policy.h). A back end sets nothing that it was not told to set. */
#pragma once

#include "harness/live/vendor/record.h"
#include "policies/policy.h"

/* A board stores power limits in steps of its own (at most 5 W: assumed), which no library reports. A limit that reads
 * back within half of one counts as set; the limit before lies on the steps and is restored exactly. */
#define FL_LIMIT_OFF_W 2.5

typedef struct fl_backend {
    const char *name;   /* of the interface: "nvml" */
    const char *vendor; /* "nvidia" */
    void (*close)(void *self);
    const char *(*library)(void *self); /* the name under which it was requested; valid until close */
    const char *(*driver)(void *self);  /* its version; "unknown" where it is not available. Valid until close */
    uint32_t (*count)(void *self);
    /* The permanent name: the UUID. Valid until close. */
    const char *(*unit)(void *self, uint32_t gpu);
    uint32_t (*index)(void *self,
                      uint32_t gpu); /* its number in the library, which may differ from its place in a list */
    /* Ladders and names are valid until close. */
    fl_status (*facts)(void *self, uint32_t gpu, fl_gpu_facts *facts, fl_diag *d);
    /* Reads the signals among `needs` that the GPU has, at t_ns. FL_HARDWARE where the GPU or its driver is gone. A
     * signal that is not available is only marked invalid. */
    fl_status (*read)(void *self, uint32_t gpu, uint64_t needs, int64_t t_ns, fl_gpu_sample *sample, fl_diag *d);
    /* Says which signals whoever reads can do without; before it is called, none. One of them that is costly to read
     * may then be shown as of a reading some seconds ago, and is invalid where its value is not known. It holds until
     * it is called again. NULL: the back end reads each signal each time. */
    void (*spare)(void *self, uint64_t signals);
    /* Forgets earlier readings: the next reading counts as the first one. */
    void (*forget)(void *self);
    /* Reads the prior values of the controls among `drives`, for a later restore. FL_IO where no user can read one of
     * them. */
    fl_status (*prior)(void *self, uint32_t gpu, uint64_t drives, fl_record *r, fl_diag *d);
    /* Sets a control. FL_DEFAULT hands it back: it sets the value in `prior` (may be NULL). FL_IO where the driver
     * refused and nothing changed (no permission, not supported), else FL_HARDWARE, with control and reason. */
    fl_status (*set)(void *self, uint32_t gpu, int control, double value, const fl_record *prior, fl_diag *d);
    /* Restores every control in the record independently and reads it back where possible. It reports the first
     * failure, after all attempts. */
    fl_status (*restore)(void *self, uint32_t gpu, const fl_record *r, fl_diag *d);
    /* For doctor: why no user can set a control, NULL where it can be set as far as the library tells without setting
     * it; the current power limit, NAN where it cannot be read; and the index-th remark, written into text, false where
     * there are no more. */
    const char *(*hindrance)(void *self, uint32_t gpu, int control);
    double (*limit_w)(void *self, uint32_t gpu);
    bool (*note)(void *self, uint32_t gpu, unsigned index, char *text, size_t size);
    bool (*simulated)(void *self); /* true under foldline emulate, whose node has no CPU to read or set; NULL = no */
} fl_backend;

typedef struct fl_gpus { /* an open back end */
    const fl_backend *back;
    void *self;
} fl_gpus;

void fl_gpus_close(fl_gpus *g); /* accepts a zeroed struct */

bool fl_gpus_simulated(const fl_gpus *g);

/* Opens one vendor's back end: allocates a zeroed state of that size, and lets find fill it (opened->self is the
 * state), starting with the library. *out is set only on success; otherwise the state is closed again. */
typedef fl_status fl_gpus_find_all(const fl_gpus *opened, const char *list, fl_diag *missing, fl_diag *d);
fl_status fl_gpus_open(fl_gpus *out, const fl_backend *back, size_t size, fl_gpus_find_all *find, const char *list,
                       fl_diag *missing, fl_diag *d);

/* True where a list (indices or units joined by commas; NULL, "" or "all" = every GPU) names the GPU. */
bool fl_gpus_listed(const char *list, uint32_t index, const char *unit);

/* For a back end that is being opened (g->self is set): add takes in the library's GPU of that number if it is listed,
 * or says why it does not answer. GPUs that answer are taken in, so that a lost one does not block the others. *missing
 * says which names of the list do not answer (FL_HARDWARE) or match no GPU (FL_BAD_INPUT). The call fails with that
 * error where no GPU is left, or where missing is NULL. */
typedef fl_status fl_gpus_add(void *self, uint32_t index, const char *list, fl_diag *d);
fl_status fl_gpus_gather(const fl_gpus *g, uint32_t all, const char *list, fl_gpus_add *add, fl_diag *missing,
                         fl_diag *d);

/* As an fl_kernels_position (harness/live/records/feed.h); gpus: an fl_gpus. */
int fl_gpus_position(void *gpus, const char *uuid, size_t size);

/* Sorts clocks, in any order and possibly repeated, in place into a ladder of whole MHz; returns how many remain. */
uint32_t fl_gpus_ladder(int32_t *mhz, uint32_t count);

/* Index of a unit among the GPUs, -1 where there is none. */
int fl_gpus_find(const fl_gpus *g, const char *unit);

/* The back ends: NVIDIA GPUs through NVML (signals, ladders and limits, locked clocks, power limits), AMD GPUs through
 * ROCm SMI (signals, clocks and limits, clock ranges or sets of allowed clocks, power caps), Intel GPUs through Level
 * Zero's Sysman (signals, ladders and limits, clock ranges, sustained power limits). The last two are unproven on
 * hardware. list: as for fl_gpus_listed. FL_HARDWARE: no library, no driver or no GPU, or a GPU of the list does not
 * answer. FL_BAD_INPUT: a name of the list matches no GPU. With missing, the GPUs that answer are opened, and *missing
 * says which were left out (fl_gpus_gather). */
fl_status fl_nvml_host_open(fl_gpus *g, const char *list, fl_diag *missing, fl_diag *d);
fl_status fl_rsmi_host_open(fl_gpus *g, const char *list, fl_diag *missing, fl_diag *d);
fl_status fl_ze_host_open(fl_gpus *g, const char *list, fl_diag *missing, fl_diag *d);
