/* The GPUs of a node as the live host sees them, whoever makes them: what a vendor's back end has to offer. Units are
 * those of the contract (policies/policy.h). A back end sets nothing that it was not told to set. */
#ifndef FL_LIVE_BACKEND_H
#define FL_LIVE_BACKEND_H

#include "harness/live/vendor/record.h"
#include "policies/policy.h"

/* A board keeps power limits in steps of its own (5 W at the widest: assumed), which no library tells. What reads back
 * within half of one was set; what was there before is on its steps, and comes back exactly. */
#define FL_LIMIT_OFF_W 2.5

typedef struct fl_backend {
    const char *name;   /* of the interface: "nvml" */
    const char *vendor; /* "nvidia" */
    void (*close)(void *self);
    const char *(*library)(void *self); /* as it was asked for; valid until close */
    const char *(*driver)(void *self);  /* its version; "unknown" where it cannot be had. Valid until close */
    uint32_t (*count)(void *self);
    /* Names it for ever: UUID. Valid until close. */
    const char *(*unit)(void *self, uint32_t gpu);
    uint32_t (*index)(void *self, uint32_t gpu); /* its number in the library, which that in a list need not be */
    /* Ladders and names are valid until close. */
    fl_status (*facts)(void *self, uint32_t gpu, fl_gpu_facts *facts, fl_diag *d);
    /* Signals among `needs` that can be read, at t_ns. FL_HARDWARE where the GPU or its driver is gone; a signal that
     * is not to be had is only not valid. */
    fl_status (*read)(void *self, uint32_t gpu, uint64_t needs, int64_t t_ns, fl_gpu_sample *sample, fl_diag *d);
    /* What was read so far counts as never read: the next reading is a first one. */
    void (*forget)(void *self);
    /* Prior values of the controls among `drives`, to restore them from. FL_IO where one cannot be had by anybody. */
    fl_status (*prior)(void *self, uint32_t gpu, uint64_t drives, fl_record *r, fl_diag *d);
    /* FL_DEFAULT hands back: what is in `prior` (may be NULL). FL_IO where it was refused and nothing changed (no
     * permission, not supported), else FL_HARDWARE; with control and reason. */
    fl_status (*set)(void *self, uint32_t gpu, int control, double value, const fl_record *prior, fl_diag *d);
    /* Every control in the record on its own, read back where it can be; the first failure is told, after all. */
    fl_status (*restore)(void *self, uint32_t gpu, const fl_record *r, fl_diag *d);
    /* For doctor. Why a control cannot be set by anybody, NULL where it can as far as the library tells without
     * setting; the power limit now, NAN where it cannot be read; the index-th remark into text, false where there are
     * no more. */
    const char *(*hindrance)(void *self, uint32_t gpu, int control);
    double (*limit_w)(void *self, uint32_t gpu);
    bool (*note)(void *self, uint32_t gpu, unsigned index, char *text, size_t size);
    bool (*simulated)(void *self); /* under foldline emulate, whose node has no CPU to be read or set; NULL = no */
} fl_backend;

typedef struct fl_gpus { /* an open back end */
    const fl_backend *back;
    void *self;
} fl_gpus;

void fl_gpus_close(fl_gpus *g); /* a zeroed struct is allowed */

bool fl_gpus_simulated(const fl_gpus *g);

/* A vendor's opening: a zeroed state of that size, which find fills (opened->self is it) from the library on. *out only
 * where it succeeds; else the state is closed again. */
typedef fl_status fl_gpus_find_all(const fl_gpus *opened, const char *list, fl_diag *missing, fl_diag *d);
fl_status fl_gpus_open(fl_gpus *out, const fl_backend *back, size_t size, fl_gpus_find_all *find, const char *list,
                       fl_diag *missing, fl_diag *d);

/* True where a list (indices or units joined by commas; NULL, "" or "all" = every GPU) names the GPU. */
bool fl_gpus_listed(const char *list, uint32_t index, const char *unit);

/* For a back end that is being opened, g->self and all: add takes in the library's GPU of that number if it is listed,
 * or says why it does not answer. Those that do are taken in, so that a lost one does not hold up the others; *missing
 * says what of the list does not answer (FL_HARDWARE) or is no GPU's (FL_BAD_INPUT). Fails with that where none is
 * left, or where missing is NULL. */
typedef fl_status fl_gpus_add(void *self, uint32_t index, const char *list, fl_diag *d);
fl_status fl_gpus_gather(const fl_gpus *g, uint32_t all, const char *list, fl_gpus_add *add, fl_diag *missing,
                         fl_diag *d);

/* As an fl_kernels_position (harness/live/kernel_feed.h); gpus: an fl_gpus. */
int fl_gpus_position(void *gpus, const char *uuid, size_t size);

/* Clocks in any order, doubled or not, sorted in place into a ladder of whole MHz; returns how many are left. */
uint32_t fl_gpus_ladder(int32_t *mhz, uint32_t count);

/* Index of a unit among the GPUs, -1 where there is none. */
int fl_gpus_find(const fl_gpus *g, const char *unit);

#endif
