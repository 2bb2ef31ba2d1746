/* One controller per GPU: an flock on UNIT.lock in the state folder. The guardian inherits the descriptor and nobody
 * ever unlocks it (LOCK_UN would free it for both holders): the lock ends with the last process that holds it, so none
 * is ever stale, and a successor waits until a restore is over. Close-on-exec, cleared only for the guardian. */
#ifndef FL_LIVE_LOCKS_H
#define FL_LIVE_LOCKS_H

#include "harness/live/vendor/record.h"

#include <sys/types.h>

typedef struct fl_lock {
    int fd; /* -1 = not held */
    char unit[FL_UNIT_MAX];
} fl_lock;

typedef enum fl_lock_use { FL_LOCK_CONTROL, FL_LOCK_RESTORE } fl_lock_use;

/* Takes the lock and, for control, writes this process into it. Where a controller holds it and lives on for a second
 * (one that was just killed takes a while to be gone), FL_HARDWARE with its number; where a restore does, waits for its
 * end, at most wait_ns. */
fl_status fl_lock_take(const char *state, const char *unit, fl_lock_use use, int64_t wait_ns, fl_lock *lock,
                       fl_diag *d);
/* Closes this process's descriptor. */
void fl_lock_close(fl_lock *lock);
/* Another file stands under its name: a holder of this lock gave it back and took the file away, and somebody else is
 * in control by now. */
bool fl_lock_superseded(const char *state, const fl_lock *lock);
/* At an orderly end, when all is restored: takes its file away, while it is still locked; never a successor's. */
void fl_lock_unlink(const char *state, const fl_lock *lock);

/* The controller written into the lock, alive; 0 where there is none. */
pid_t fl_lock_holder(const char *state, const char *unit);

#endif
