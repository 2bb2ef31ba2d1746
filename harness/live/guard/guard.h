/* MODULE harness/live/guard */
#pragma once

#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Time as the live host sees it, behind two calls, so that it need not be the wall's. The real one asks the system
 * (CLOCK_MONOTONIC, absolute sleeps), which a simulated session may answer in virtual time. */

typedef struct fl_clock {
    int64_t (*now)(void *user); /* ns, never falls */
    /* Returns at t_ns, or earlier where a signal arrives or a second has passed: the caller looks and sleeps on. */
    void (*sleep_until)(void *user, int64_t t_ns);
    void *user;
} fl_clock;

fl_clock fl_clock_system(void);
int64_t fl_clock_ns(void); /* CLOCK_MONOTONIC */

/* The node's CPU as Linux shows it: clocks (cpufreq), utilisation (/proc/stat), energy (RAPL's packages, wrap handled),
 * cycles and micro-operations (perf events, where allowed). Signals that cannot be had are not valid. Files in kHz, uJ,
 * uW. */

typedef struct fl_cpu_host fl_cpu_host;

/* Below `root` (empty = /; tests have a tree of their own). needs, drives: bits of host signals and controls. */
fl_status fl_cpu_host_open(fl_cpu_host **out, const char *root, uint64_t needs, fl_diag *d);
void fl_cpu_host_close(fl_cpu_host *c); /* NULL is allowed */

/* FL_BIT(FL_HOST_...): signals that Linux has for some machine or other; the rest it has for none. */
uint64_t fl_cpu_host_reads(void);

/* Ladder and name are valid until close. */
void fl_cpu_host_facts(const fl_cpu_host *c, fl_host_facts *facts);
void fl_cpu_host_read(fl_cpu_host *c, fl_host_sample *sample);

/* Record of unit "cpu": the files that the controls among `drives` would write, with what they hold. FL_IO where a
 * control has no file here. */
fl_status fl_cpu_host_prior(const fl_cpu_host *c, uint64_t drives, fl_record *r, fl_diag *d);

/* Does a set take effect, and does it last? A call that succeeds need not do anything, a board rounds power limits, and
 * others set too (nvidia-smi, a scheduler). What is seen of that is told and counted; nothing is set again: whoever
 * fights over a control is no controller.
 *
 * A lock of clocks cannot be read back on every vendor's boards, so the achieved clock is looked at, some time after
 * the set. A clock below the lock is explained by an idle GPU and by every reason that holds it down; where no reasons
 * can be read it says nothing. Only one above it, or one below it without any reason, speaks against the set, and only
 * where it stays so. A policy that sets anew before a clock settles is not judged in between.
 *
 * Each takes NULL for e: nothing is watched. */

typedef struct fl_effect fl_effect;

typedef struct fl_effect_counts {
    uint64_t without; /* locks that never showed */
    uint64_t foreign; /* locks that showed once and then no more, power limits that somebody else set */
    uint64_t rounded; /* power limits that the board has at another value than was asked for */
} fl_effect_counts;

/* What was seen, in a line; again: of this GPU, control and kind there was one before. */
typedef void fl_effect_tell(void *user, const char *line, bool again);

/* tell may be NULL. Reads the power limits. */
fl_status fl_effect_open(fl_effect **out, const fl_gpus *gpus, fl_effect_tell *tell, void *user, fl_diag *d);
void fl_effect_close(fl_effect *e);

/* That set succeeded. */
void fl_effect_made(fl_effect *e, uint32_t gpu, int control, double value, int64_t t_ns);
/* Signals to read at t_ns beside those that the policy needs; mostly none. */
uint64_t fl_effect_needs(const fl_effect *e, uint32_t gpu, int64_t t_ns);
/* The reading, with those. */
void fl_effect_look(fl_effect *e, uint32_t gpu, int64_t t_ns, const fl_gpu_sample *sample);

fl_effect_counts fl_effect_count(const fl_effect *e);

/* What a signal of a GPU can be, by its unit: a driver that answers with all ones, or in another unit, tells the policy
 * nothing. The bounds are far from anything that a healthy sensor shows. */

/* Of every signal of that GPU, from its facts: into the guard, which makes what is beyond them invalid and counts it.
 */
void fl_bounds_set(fl_guard *guard, uint32_t gpu, const fl_gpu_facts *facts);

/* "power_w 3, temp_c 1" over all GPUs into text; how many in all. */
uint64_t fl_bounds_tell(const fl_guard *guard, uint32_t gpus, char *text, size_t size);

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

/* The controller written into either lock, alive; 0 where there is none. */
pid_t fl_lock_holder(const char *state, const char *unit);

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

/* The guardian's own program; arguments as fl_guardian_start gives them, after `live --guardian`. */
int fl_guardian_main(int argc, char **argv);

/* May this process change what NVIDIA's driver lets only the administrator change? The driver asks for CAP_SYS_ADMIN in
 * the initial user namespace: root in a namespace of its own (a rootless container) has every capability there and is
 * refused all the same. */

bool fl_privilege_admin(void);
bool fl_privilege_initial(void); /* in the initial user namespace */

/* What of a policy is to be had on this machine: which of the controls that it drives can be set at all, and which of
 * the signals that it needs can be read; what it only uses may be missing. A policy may name more of both than it will
 * ever use: what is missing is told before the start, and refused only where it is set, or where no signal is left to
 * decide on. */

typedef struct fl_reach {
    char controls[512]; /* "cpu_boost (no file for it)", joined by commas; "" = all that it drives can be set */
    char signals[512];  /* "compute_ns, copy_ns"; "" = all that it needs can be read, on every GPU */
    bool blind;         /* it reads signals and not one of them can be read */
} fl_reach;

/* Reads twice, 120 ms apart where once is not enough: differences of counters and profiling values need two. cpu: NULL
 * where there is none to be had. given: signals that the programs' collectors give. */
fl_status fl_reach_of(const fl_policy *p, const fl_gpus *g, fl_cpu_host *cpu, uint64_t given, fl_reach *r, fl_diag *d);

/* Putting back what stood before: one idempotent way for guardian, start-up, orderly end, service stop and
 * `foldline restore`. */

typedef struct fl_restore_result {
    size_t records, restored, failed; /* the rest was void: of an earlier boot */
} fl_restore_result;

/* Every record there is, each under its lock; waits for restores under way, refuses what a live controller holds. Goes
 * on after a failure and tells the first. */
fl_status fl_restore_all(fl_restore_result *r, fl_diag *d);

/* Control over a node's GPUs (and its CPU), taken and given back in the order that keeps the machine as it was found:
 * the locks; the restore of a stale record; a ready guardian; the record of prior values; the first set. */

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

/* Ending in order: TERM, INT and HUP only raise a flag, which the loop asks for; one that we were started to ignore
 * (nohup, a background job) stays ignored, one that we were started with blocked is not blocked any more. */

void fl_stop_listen(void);
void fl_stop_forget(void); /* from here on each ends the process at once, as if we had never listened */
bool fl_stop_asked(void);
bool fl_stop_ignored(int number); /* by this process, now */
/* The last of these signals that some process sent to us alone, once; 0 = none. One from the terminal or the kernel has
 * reached every process of the job. */
int fl_stop_hand_on(void);
/* As pthread_create, but signals are for the thread that controls: its sleep must end by them. */
int fl_stop_thread(pthread_t *thread, void *(*work)(void *), void *user);

/* The vendor of this machine's GPUs: every vendor's back end behind one function. */

#define FL_VENDOR_HELP "nvidia, intel or amd; auto = the first of them that has a GPU here (auto)"

size_t fl_vendor_count(void);
const char *fl_vendor_name(size_t i); /* in the order in which auto tries them */

/* name: a vendor; NULL or "auto" = the vendor of the units in the list, else the first that has a GPU. list: indices or
 * units joined by commas, NULL or "all" = every GPU of that vendor. FL_HARDWARE where there is none, with what each
 * vendor's library said in one line. FL_BAD_INPUT where the name is unknown (with the nearest one), or a name of the
 * list matches no GPU. missing: NULL = every GPU of the list must answer; else those that do are opened, and *missing
 * says which were left out. */
fl_status fl_vendor_open(fl_gpus *g, const char *name, const char *list, fl_diag *missing, fl_diag *d);

/* FL_BIT(FL_GPU_...): signals for which its library has calls. A board may lack some of them. NULL = no vendor: none.
 */
uint64_t fl_vendor_reads(const char *name);
