/* What stood before: for every GPU (and the CPU) that a controller sets, the prior values of its controls, on disk
 * before the first set. Whoever restores reads it; it goes only when each control was restored.
 *
 * One file per unit in the state folder, $FOLDLINE_STATE or /var/lib/foldline: UNIT.record, text, written through a
 * temporary file, synchronised and renamed. It names the boot it belongs to: locks and limits end with the driver, so
 * after a reboot it is void. */
#ifndef FL_LIVE_RECORD_H
#define FL_LIVE_RECORD_H

#include "harness/live/vendor/state.h"

/* Units of Level Zero's and of ROCm SMI's GPUs begin with it; NVML's have none. */
#define FL_ZE_PREFIX "ze-"
#define FL_RSMI_PREFIX "rsmi-"

typedef struct fl_prior {
    char key[256]; /* of a GPU: a row of KEYS in record.c; of the CPU: path of a file under /sys that holds a number */
    int64_t value;
} fl_prior;

/* A lock that stood before cannot be read: restoring takes the lock off. */
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

fl_status fl_record_write(const char *state, const fl_record *r, fl_diag *d);
/* *found false: there is none, or it is of an earlier boot. Changes nothing. FL_BAD_INPUT where it is not, to the last
 * line, what the program writes about this unit: a key that no back end has, a value that its control cannot hold, a
 * path outside the CPU's settings, no end. Nothing of such a record is to be used; the message has the way out. */
fl_status fl_record_read(const char *state, const char *unit, fl_record *r, bool *found, fl_diag *d);
fl_status fl_record_remove(const char *state, const char *unit, fl_diag *d);

/* Units that have a record; free each and the array. An empty list where there is no folder. */
fl_status fl_record_units(const char *state, char ***units, size_t *count, fl_diag *d);

#endif
