/* One controller per GPU: an flock on UNIT.held in the run folder, which does not depend on the state folder, and one
 * on UNIT.lock in the state folder, which a container may share where it does not share /run. The guardian inherits the
 * descriptors and nobody ever unlocks them (LOCK_UN would free them for both holders): a lock ends with the last
 * process that holds it, so none is ever stale, and a successor waits until a restore is over. Close-on-exec, cleared
 * only for the guardian.
 *
 * The run folder is /run/foldline of root (fl_run_folder), and not a name in the abstract socket space: any user could
 * take such a name and keep root's controller from starting, and it ends at the network namespace as /run ends at the
 * mount namespace. Two containers that share neither /run nor the state folder do not see each other: mount
 * /run/foldline into both. A user other than root has a folder of their own, so the lock does not hold between two
 * users.
 *
 * A controller that was killed together with its guardian leaves its lock's file, and in the run folder that says where
 * its records are: nobody controls the GPU from another state folder before they are restored. */
#pragma once

#include "harness/live/vendor/record.h"

#include <sys/types.h>

typedef struct fl_lock {
    int fd, held; /* in the state folder, in the run folder; -1 = not held */
    char unit[FL_UNIT_MAX];
} fl_lock;

typedef enum fl_lock_use { FL_LOCK_CONTROL, FL_LOCK_RESTORE } fl_lock_use;

/* Takes the lock and, for control, writes this process into it. Where a controller holds it and lives on for a second
 * (one that was just killed takes a while to be gone), FL_HARDWARE with its number; where a restore does, waits for its
 * end, at most wait_ns. */
fl_status fl_lock_take(const char *state, const char *unit, fl_lock_use use, int64_t wait_ns, fl_lock *lock,
                       fl_diag *d);
/* Is that descriptor a lock that a controller took, and not what took its number meanwhile? For whoever inherits it. */
bool fl_lock_is(int fd);
/* Into an inherited lock: this process restores if the controller dies. A waiter wakes it if somebody has stopped it.
 */
void fl_lock_guard(const fl_lock *lock);
/* Closes this process's descriptors. */
void fl_lock_close(fl_lock *lock);
/* Another file stands under one of its names: a holder of this lock gave it back and took the file away, and somebody
 * else is in control by now. */
bool fl_lock_superseded(const char *state, const fl_lock *lock);
/* At an orderly end, when all is restored: takes its files away, while they are still locked; never a successor's. */
void fl_lock_unlink(const char *state, const fl_lock *lock);

/* The controller written into either lock, alive; 0 where there is none. */
pid_t fl_lock_holder(const char *state, const char *unit);
