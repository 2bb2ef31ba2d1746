/* Putting back what stood before: one idempotent way for guardian, start-up, orderly end, service stop and
 * `foldline restore`. */
#pragma once

#include "harness/live/guard/locks.h"
#include "harness/live/vendor/backend.h"

/* Puts every control of a record back; gpus may be NULL for "cpu". The first failure is told, after all. */
fl_status fl_restore_record(const fl_record *r, const fl_gpus *gpus, fl_diag *d);

/* Restores a unit from its record and removes the record once every control is back; nothing to do where there is no
 * record. The caller holds the unit's lock. *restored (may be NULL) says if there was one. */
fl_status fl_restore_unit(const char *state, const char *unit, const fl_gpus *gpus, bool *restored, fl_diag *d);

typedef struct fl_restore_result {
    size_t records, restored, failed; /* the rest was void: of an earlier boot */
} fl_restore_result;

/* Every record there is, each under its lock; waits for restores under way, refuses what a live controller holds. Goes
 * on after a failure and tells the first. */
fl_status fl_restore_all(fl_restore_result *r, fl_diag *d);
