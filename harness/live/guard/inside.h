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

/* Sets a control of the CPU; FL_DEFAULT: to its value in `prior`. FL_IO: it was refused and nothing changed; else
 * FL_HARDWARE. */
fl_status fl_cpu_host_set(fl_cpu_host *c, int control, double value, const fl_record *prior, fl_diag *d);

/* Writes every file of a record and reads it back. Reports the first failure, after all attempts. */
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
/* True if an inherited descriptor is a lock that a controller took, and not another file with the same number. */
bool fl_lock_is(int fd);
/* Writes into an inherited lock that this process restores if the controller dies. A waiter wakes this process if it
 * was stopped. */
void fl_lock_guard(const fl_lock *lock);
/* Closes this process's descriptors. */
void fl_lock_close(fl_lock *lock);
/* True if another file has one of its names: a holder of this lock gave it back and removed the file, and another
 * controller may be active now. */
bool fl_lock_superseded(const char *state, const fl_lock *lock);
/* Removes its files at an orderly end, after the restore and while they are still locked; never a successor's files. */
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
/* Waits until the guardian has read the records of prior values, which are on disk. FL_HARDWARE: it lives and does not.
 */
fl_status fl_guardian_recorded(fl_guardian *g, fl_diag *d);
/* Publishes the time by which the next report will come (CLOCK_MONOTONIC). */
void fl_guardian_beat(fl_guardian *g, int64_t until_ns);
bool fl_guardian_alive(fl_guardian *g);
/* True while the guardian still looks; call it at every report. False: it has not looked for 250 checks (at least a
 * second) of the time between these calls, because it was stopped or hangs. */
bool fl_guardian_answers(fl_guardian *g);
/* Kills a guardian that does not answer, and waits for its end; false: it does not end. */
bool fl_guardian_end(fl_guardian *g);
/* Ends the guardian when all was restored and nothing more will be set; kills it if it does not end. */
void fl_guardian_dismiss(fl_guardian *g);
/* Forgets the guardian without a message to it. */
void fl_guardian_drop(fl_guardian *g);

/* Shared by both sides of the guardian: guardian.c is the controller's side, process.c the guardian's process. */

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

/* The two tests of privilege, from files like /proc/self/status and /proc/self/uid_map. Without a uid_map the second is
 * true: such a kernel has no user namespaces. */
bool fl_privilege_capable(const char *status);
bool fl_privilege_maps_all(const char *uid_map);

/* Restores every control of a record; gpus may be NULL for "cpu". Reports the first failure, after all attempts. */
fl_status fl_restore_record(const fl_record *r, const fl_gpus *gpus, fl_diag *d);

/* Restores a unit from its record and removes the record once every control is back; nothing to do where there is no
 * record. The caller holds the unit's lock. *restored (may be NULL) says if there was one. */
fl_status fl_restore_unit(const char *state, const char *unit, const fl_gpus *gpus, bool *restored, fl_diag *d);

/* The vendor of a unit, by the name that its back end gave it. */
const char *fl_vendor_of(const char *unit);
