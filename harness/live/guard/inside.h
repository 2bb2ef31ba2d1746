/* What the files of harness/live/guard share. Other modules include the public header alone. */
#pragma once

#include "harness/live/guard/guard.h"
#include "harness/live/vendor/vendor.h"
#include "traces/io/io.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* FL_DEFAULT: what `prior` holds for that control. FL_IO where it was refused and nothing changed, else FL_HARDWARE. */
fl_status fl_cpu_host_set(fl_cpu_host *c, int control, double value, const fl_record *prior, fl_diag *d);

/* Writes every file of a record back and reads it back; the first failure is told, after all. */
fl_status fl_cpu_restore(const fl_record *r, fl_diag *d);

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

typedef struct fl_guardian {
    pid_t pid; /* 0 = none */
    int wire;  /* socket to the guardian: it reports that it is ready, we report that all is done */
    int beat_fd;
    struct fl_beat *beat;
    int64_t check_ns;
    int64_t looked_ns, asked_ns, silent_ns; /* of fl_guardian_answers */
} fl_guardian;

/* Starts the guardian (this program again, as `live --guardian`) and waits until it is ready. check_ns: the interval of
 * its looks once a time was missed (three looks make a verdict). FL_HARDWARE where it does not become ready. */
fl_status fl_guardian_start(fl_guardian *g, const fl_lock *lock, size_t lock_count, int64_t check_ns, fl_diag *d);
/* The records of prior values are on disk: waits until it has read them. FL_HARDWARE where it lives and does not. */
fl_status fl_guardian_recorded(fl_guardian *g, fl_diag *d);
/* The next report comes by until_ns (CLOCK_MONOTONIC). */
void fl_guardian_beat(fl_guardian *g, int64_t until_ns);
bool fl_guardian_alive(fl_guardian *g);
/* Does it still look? False where it has not for 250 checks (a second at least) of the time between these questions: it
 * was stopped, or hangs. Asked at every report. */
bool fl_guardian_answers(fl_guardian *g);
/* Kills one that does not answer, and waits for its end; false where it does not end. */
bool fl_guardian_end(fl_guardian *g);
/* All was restored and nothing more will be set: it ends, and is killed where it does not. */
void fl_guardian_dismiss(fl_guardian *g);
/* Forgets it without telling it anything. */
void fl_guardian_drop(fl_guardian *g);

/* What the two sides of the guardian share: guardian.c is the controller's, process.c the process itself. */

struct fl_beat {               /* shared memory */
    _Atomic int64_t until_ns;  /* the controller's next report */
    _Atomic int64_t looked_ns; /* the guardian's last look */
};

enum { UNITS_MAX = 1025, FAR_CHECKS = 10, NS_PER_MS = 1000000 }; /* FAR_CHECKS: looks are at most that far apart */
enum { ARGUMENTS = 5, KEPT_MAX = 2 * UNITS_MAX + ARGUMENTS };    /* ARGUMENTS: those before the units */

static inline int64_t fl_guard_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* The same of files like /proc/self/status and /proc/self/uid_map. True where there is no such uid_map: a kernel
 * without user namespaces. */
bool fl_privilege_capable(const char *status);
bool fl_privilege_maps_all(const char *uid_map);

/* Puts every control of a record back; gpus may be NULL for "cpu". The first failure is told, after all. */
fl_status fl_restore_record(const fl_record *r, const fl_gpus *gpus, fl_diag *d);

/* Restores a unit from its record and removes the record once every control is back; nothing to do where there is no
 * record. The caller holds the unit's lock. *restored (may be NULL) says if there was one. */
fl_status fl_restore_unit(const char *state, const char *unit, const fl_gpus *gpus, bool *restored, fl_diag *d);

/* The vendor of a unit, by the name that its back end gave it. */
const char *fl_vendor_of(const char *unit);
