/* A process that outlives the controller and restores everything. It runs in a session of its own, with its own handle
 * of the library, and shares the controller's locks.
 *
 * The controller publishes the time by which it will next report. When the controller ends, in whatever way, the
 * guardian restores from the records, which it read earlier because their files may be lost meanwhile. When the
 * controller misses its time, the guardian first kills it through its pidfd and waits for its end. Only then does it
 * restore, because a controller that wakes up again must not set anything afterwards. The guardian counts missed
 * reports by its own wake-ups and gives no verdict when it overslept itself, so that a frozen machine kills no one. The
 * user learns of a kill where the controller would have reported it (its standard error), and from guardian.log in the
 * state folder. The guardian in turn publishes when it last looked; the controller replaces a guardian that was
 * stopped. */
#pragma once

#include "harness/live/guard/locks.h"

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

/* The guardian's own program; arguments as fl_guardian_start gives them, after `live --guardian`. */
int fl_guardian_main(int argc, char **argv);
