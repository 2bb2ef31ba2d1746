/* The prior values of the controls of every GPU (and the CPU) that a controller sets, on disk before the first set. A
 * restore reads them. The record is removed only when every control was restored.
 *
 * There is one file per unit in the state folder, $FOLDLINE_STATE or /var/lib/foldline: UNIT.record, a text, written
 * through a temporary file, synchronised and renamed. It names its boot: locks and limits end with the driver, so after
 * a reboot the record is void. */
#pragma once

#include "harness/live/vendor/state.h"

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
