/* What stood before: for every GPU (and the CPU) that a controller sets, the prior values of its controls, on disk
 * before the first set. Whoever restores reads it; it goes only when each control was restored.
 *
 * One file per unit in the state folder, $FOLDLINE_STATE or /var/lib/foldline: UNIT.record, text, written through a
 * temporary file, synchronised and renamed. It names the boot it belongs to: locks and limits end with the driver, so
 * after a reboot it is void. */
#ifndef FL_LIVE_RECORD_H
#define FL_LIVE_RECORD_H

#include "traces/diag.h"

#include <stdbool.h>

#define FL_UNIT_MAX 96

typedef struct fl_prior {
    char key[256]; /* FL_PRIOR_..., or the path of a file under /sys that holds one number */
    int64_t value;
} fl_prior;

/* A lock that stood before cannot be read: restoring takes the lock off. */
#define FL_PRIOR_SM_LOCK "sm_lock"
#define FL_PRIOR_MEM_LOCK "mem_lock"
#define FL_PRIOR_LIMIT_MW "power_limit_mw"

typedef struct fl_record {
    char unit[FL_UNIT_MAX]; /* UUID of a GPU, or "cpu" */
    fl_prior *prior;
    size_t count, room;
} fl_record;

fl_status fl_record_add(fl_record *r, const char *key, int64_t value, fl_diag *d);
void fl_record_free(fl_record *r);

/* Makes the folder where it is missing (mode 0700). *state is static or from the environment. FL_IO with the reason. */
fl_status fl_state_open(const char **state, fl_diag *d);
const char *fl_state_folder(void); /* its path, without making it */

/* Path of a file of a unit into buf; false where the unit's name is no plain name. */
bool fl_state_path(const char *state, const char *unit, const char *ending, char *buf, size_t size);

fl_status fl_record_write(const char *state, const fl_record *r, fl_diag *d);
/* *found false: there is none, or it is of an earlier boot. Changes nothing. FL_BAD_INPUT: it cannot be understood. */
fl_status fl_record_read(const char *state, const char *unit, fl_record *r, bool *found, fl_diag *d);
fl_status fl_record_remove(const char *state, const char *unit, fl_diag *d);

/* Units that have a record; free each and the array. An empty list where there is no folder. */
fl_status fl_record_units(const char *state, char ***units, size_t *count, fl_diag *d);

#endif
