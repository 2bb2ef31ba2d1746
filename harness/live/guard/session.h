/* Control over a node's GPUs (and its CPU), taken and given back in the order that keeps the machine as it was found:
 * the locks; the restore of a stale record; a ready guardian; the record of prior values; the first set. */
#pragma once

#include "harness/live/guard/cpu_host.h"
#include "harness/live/guard/guardian.h"
#include "harness/live/vendor/backend.h"

typedef struct fl_session_options {
    const fl_gpus *gpus;
    fl_cpu_host *cpu;                 /* NULL: there is no CPU to be set */
    uint64_t gpu_drives, host_drives; /* controls that may be set; those that nobody can set here have no priors */
    int64_t check_ns;                 /* as fl_guardian_start */
} fl_session_options;

typedef struct fl_session fl_session;

fl_status fl_session_open(fl_session **out, const fl_session_options *o, fl_diag *d);

/* By until_ns the next call of this or of fl_session_set comes. A lost guardian is replaced first: one that sets once
 * and then only looks on is guarded all the same. */
fl_status fl_session_beat(fl_session *s, int64_t until_ns, fl_diag *d);
/* Is that set to be made? *made is false where nobody can set the control here and it is as asked for anyhow: the
 * system's own, or the only clock there is. FL_HARDWARE where it would have to be set. Asked of all sets of a decision
 * before the first is made. gpu -1 = host control. */
fl_status fl_session_may(const fl_session *s, int32_t gpu, int control, double value, bool *made, fl_diag *d);
/* A lost guardian is replaced first. */
fl_status fl_session_set(fl_session *s, int32_t gpu, int control, double value, fl_diag *d);
uint64_t fl_session_replaced(const fl_session *s); /* guardians that were lost */

/* The caller has published a time that leaves room for it. Restores what was set, from the priors in memory (somebody
 * may have removed their files), removes the records and frees all, also where something fails: then the first failure
 * is told, its record stays, and the guardian goes on trying. NULL is allowed. */
fl_status fl_session_close(fl_session *s, fl_diag *d);
