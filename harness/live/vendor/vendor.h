/* The interface of a vendor's back end, and the record of prior values on disk.
 *
 * An fl_backend is a table of functions: read signals, set controls, read prior values, restore. Each vendor has one in
 * a module of its own; fl_vendor_open (live/guard/guard.h) picks it and fills an fl_gpus, which fl_gpus_close closes.
 * Before the first set a controller writes an fl_record per GPU (fl_record_write); a restore reads it.
 *
 * FL_IO from a set means that the driver refused and nothing changed; FL_HARDWARE means that something may have
 * changed, or that the GPU is gone. A signal that cannot be read is invalid, never a guess. A record or folder that
 * another user could have changed is refused (FL_BAD_INPUT). */
#pragma once

#include "policies/policy.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The folders that hold records and locks, and the files in them. A controller runs as root and writes what it finds
 * there into clocks and limits, so no other user may have touched it. A folder must belong to the effective user, must
 * not be writable by others and must not be a link. A file in it must be a regular file of the same user with one name;
 * links are not followed, and a FIFO does not block. Everything else is refused, and the diagnostic says what to do. */

#define FL_UNIT_MAX 96 /* UUID of a GPU, or "cpu" */

/* The path of the folder of records, $FOLDLINE_STATE or /var/lib/foldline, without creating it. Static or from the
 * environment. */
const char *fl_state_folder(void);
/* The folder of the locks, which hold across all state folders of this machine: $FOLDLINE_RUN, else /run/foldline for
 * root and /tmp/foldline-UID for others. Static or from the environment. */
const char *fl_run_folder(void);

/* Creates the folder of records where it is missing (mode 0700) and checks it. FL_IO with the reason. */
fl_status fl_state_open(const char **state, fl_diag *d);
/* Create any folder, where it is missing, and check it in the same way. */
fl_status fl_folder_make(const char *folder, fl_diag *d);

/* Writes the path of a file of a unit into buf; false where the unit's name is not a plain name. */
bool fl_state_path(const char *folder, const char *unit, const char *ending, char *buf, size_t size);

/* Opens UNIT+ENDING in the checked folder with these flags (mode 0600 where O_CREAT creates it), close-on-exec. *fd =
 * -1 and FL_OK where folder or file is missing. FL_BAD_INPUT where the name is invalid or the file cannot be trusted;
 * otherwise FL_IO with the reason. */
fl_status fl_state_file(const char *folder, const char *unit, const char *ending, int flags, int *fd, fl_diag *d);

/* Removes the file; does nothing where it is missing. Of a link it removes the link, not the target. */
fl_status fl_state_remove(const char *folder, const char *unit, const char *ending, fl_diag *d);

/* The prior values of the controls of every GPU (and the CPU) that a controller sets, on disk before the first set. A
 * restore reads them. The record is removed only when every control was restored.
 *
 * There is one file per unit in the state folder, $FOLDLINE_STATE or /var/lib/foldline: UNIT.record, a text, written
 * through a temporary file, synchronised and renamed. It names its boot: locks and limits end with the driver, so after
 * a reboot the record is void. */

/* Prefixes of the units of Level Zero's and of ROCm SMI's GPUs; NVML's have none. */
#define FL_ZE_PREFIX "ze-"
#define FL_RSMI_PREFIX "rsmi-"

typedef struct fl_prior {
    char key[256]; /* for a GPU, a row of KEYS in record.c; for the CPU, the path of a file under /sys that holds a
                      number */
    int64_t value;
} fl_prior;

/* A lock from before cannot be read, so restoring removes the lock. */
#define FL_PRIOR_SM_LOCK "sm_lock"
#define FL_PRIOR_MEM_LOCK "mem_lock"
#define FL_PRIOR_LIMIT_MW "power_limit_mw"

typedef struct fl_record {
    char unit[FL_UNIT_MAX];
    fl_prior *prior;
    size_t count, room;
} fl_record;

fl_status fl_record_add(fl_record *r, const char *key, int64_t value, fl_diag *d);
void fl_record_free(fl_record *r);
/* NULL where the record, which may be NULL itself, has no such key. */
const fl_prior *fl_record_find(const fl_record *r, const char *key);

fl_status fl_record_write(const char *state, const fl_record *r, fl_diag *d);
/* *found is false where there is no record, or it is of an earlier boot. Changes nothing. FL_BAD_INPUT where the record
 * is not, to its last line, what the program writes about this unit: a key that no back end has, a value outside its
 * control's range, a path outside the CPU's settings, no end mark. Use nothing of such a record; the message says what
 * to do. */
fl_status fl_record_read(const char *state, const char *unit, fl_record *r, bool *found, fl_diag *d);
fl_status fl_record_remove(const char *state, const char *unit, fl_diag *d);

/* The units that have a record; free each and the array. The list is empty where the folder does not exist. */
fl_status fl_record_units(const char *state, char ***units, size_t *count, fl_diag *d);

/* The interface of a vendor's back end: the GPUs of a node as the live host sees them, whatever their vendor. Units are
 * those of the contract (policies/policy.h). A back end sets nothing that it was not told to set. */

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
    /* States which signals the caller can spare; none before the first call, and until the next call. A spared signal
     * that is costly to read may show a reading of some seconds ago, and is invalid if its value is not known. NULL:
     * the back end reads each signal each time. */
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

/* Return true if a list (indices or units joined by commas; NULL, "" or "all" = every GPU) names the GPU. */
bool fl_gpus_listed(const char *list, uint32_t index, const char *unit);

/* For a back end that is being opened (g->self is set): add takes in the library's GPU of that number if it is listed,
 * or says why it does not answer. GPUs that answer are taken in, so that a lost one does not block the others. *missing
 * says which names of the list do not answer (FL_HARDWARE) or match no GPU (FL_BAD_INPUT). The call fails with that
 * error where no GPU is left, or where missing is NULL. */
typedef fl_status fl_gpus_add(void *self, uint32_t index, const char *list, fl_diag *d);
fl_status fl_gpus_gather(const fl_gpus *g, uint32_t all, const char *list, fl_gpus_add *add, fl_diag *missing,
                         fl_diag *d);

/* Return the index of a GPU by its UUID, -1 if it is not among gpus (an fl_gpus). It is an fl_kernels_position
 * (harness/live/records/records.h). */
int fl_gpus_position(void *gpus, const char *uuid, size_t size);

/* Sorts clocks, in any order and possibly repeated, in place into a ladder of whole MHz; returns how many remain. */
uint32_t fl_gpus_ladder(int32_t *mhz, uint32_t count);

/* Return the index of a unit among the GPUs, -1 if there is none. */
int fl_gpus_find(const fl_gpus *g, const char *unit);

/* A vendor's library, opened at run time. */

/* Opens the library that the environment variable names, else the first of names (NULL at the end) that opens. path
 * receives its name. NULL where none opens: FL_HARDWARE, "no WHAT: why". */
void *fl_library_open(const char *variable, const char *const *names, const char *what, char *path, size_t size,
                      fl_diag *d);

/* Stores a pointer to the function of the newest name, else of the older one (may be NULL), in *into (a pointer to a
 * function pointer). Returns whether there is one. */
int fl_library_find(void *library, const char *newest, const char *older, void *into);

/* Safety rules that tests break on purpose to check that the trials notice. Only tests compile them in
 * (FL_LIVE_MUTATIONS); in the program every one is false at compile time. */

#ifdef FL_LIVE_MUTATIONS
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool fl_mutated(const char *name) {
    const char *asked = getenv("FOLDLINE_MUTATION");
    return asked && !strcmp(asked, name);
}
#else
#define fl_mutated(name) 0
#endif
