/* Control of a node, taken and given back so that the machine is as it was found.
 *
 * fl_vendor_open opens the GPUs of this machine, of whatever vendor. fl_session_open then takes the locks, restores
 * what a killed controller left, waits for a guardian, and writes the prior values to disk. Only after that may
 * fl_session_set set anything; fl_session_beat says when the next call will come. fl_session_close restores. Whatever
 * happens to the controller, the guardian, a process of its own, restores from the record.
 *
 * The header also has the clock of a live host, the node's CPU, the check that sets take effect, bounds of readings,
 * and the signals that end a controller in order. FL_IO: refused, nothing changed. FL_HARDWARE: something may have
 * changed, or the GPU is gone. Owners free with the _close of each type, which accepts NULL. */
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
 * cycles and micro-operations (perf events, if allowed). A signal that cannot be read is invalid. Files in kHz, uJ, uW.
 */

typedef struct fl_cpu_host fl_cpu_host;

/* Open the CPU below `root` (NULL = $FOLDLINE_ROOT, else /; tests have a tree of their own). needs: bits of host
 * signals. */
fl_status fl_cpu_host_open(fl_cpu_host **out, const char *root, uint64_t needs, fl_diag *d);
void fl_cpu_host_close(fl_cpu_host *c); /* NULL is allowed */

/* Return FL_BIT(FL_HOST_...) of the signals that Linux has on some machine. */
uint64_t fl_cpu_host_reads(void);

/* Ladder and name are valid until close. */
void fl_cpu_host_facts(const fl_cpu_host *c, fl_host_facts *facts);
void fl_cpu_host_read(fl_cpu_host *c, fl_host_sample *sample);

/* Make the record of unit "cpu": the files that the controls among `drives` would write, with their values. FL_IO: a
 * control has no file here. */
fl_status fl_cpu_host_prior(const fl_cpu_host *c, uint64_t drives, fl_record *r, fl_diag *d);

/* Effect: whether a set takes effect, and whether it lasts. A call that succeeds may do nothing, a board rounds power
 * limits, and other programs set too (nvidia-smi, a scheduler). The watch reports and counts what it sees. It never
 * sets again, because a controller must not fight over a control.
 *
 * Not every board lets a clock lock be read back, so the watch looks at the achieved clock some time after the set. An
 * idle GPU, or any throttle reason, explains a clock below the lock; without readable reasons such a clock proves
 * nothing. A clock above the lock, or below it without any reason, contradicts the set if it stays so. A policy that
 * sets again before a clock settles is not judged in between.
 *
 * Each function accepts NULL for e: nothing is watched. */

typedef struct fl_effect fl_effect;

typedef struct fl_effect_counts {
    uint64_t without; /* locks that never took effect */
    uint64_t foreign; /* locks that were lost again, and power limits that another program set */
    uint64_t rounded; /* power limits that the board rounded to another value */
} fl_effect_counts;

/* Receives a finding as one line. again: an earlier line was about the same GPU, control and kind of finding. */
typedef void fl_effect_tell(void *user, const char *line, bool again);

/* Start the watch and read the power limits. tell may be NULL. */
fl_status fl_effect_open(fl_effect **out, const fl_gpus *gpus, fl_effect_tell *tell, void *user, fl_diag *d);
void fl_effect_close(fl_effect *e);

/* State that a set succeeded. */
void fl_effect_made(fl_effect *e, uint32_t gpu, int control, double value, int64_t t_ns);
/* Return the signals to read at t_ns in addition to those of the policy; mostly none. */
uint64_t fl_effect_needs(const fl_effect *e, uint32_t gpu, int64_t t_ns);
/* Check a reading that has these signals. */
void fl_effect_look(fl_effect *e, uint32_t gpu, int64_t t_ns, const fl_gpu_sample *sample);

fl_effect_counts fl_effect_count(const fl_effect *e);

/* Bounds of readings: a driver may answer with all ones, or in another unit. The bounds are far from anything that a
 * healthy sensor shows. */

/* Set the bounds of every signal of a GPU in the guard, from the GPU's facts. The guard makes values beyond them
 * invalid and counts them. */
void fl_bounds_set(fl_guard *guard, uint32_t gpu, const fl_gpu_facts *facts);

/* Write "power_w 3, temp_c 1" over all GPUs into text. Return the number of such readings. */
uint64_t fl_bounds_tell(const fl_guard *guard, uint32_t gpus, char *text, size_t size);

/* Locks: one controller per GPU. There is an flock on UNIT.held in the run folder, which does not depend on the state
 * folder, and one on UNIT.lock in the state folder, which a container may share even if it does not share /run. The
 * guardian inherits the descriptors and no process ever unlocks them (LOCK_UN would free them for both holders). A lock
 * ends with the last process that holds it, so none is ever stale, and a successor waits until a restore is over.
 *
 * The run folder is /run/foldline of root (fl_run_folder), and not a name in the abstract socket space: any user could
 * take such a name and keep root's controller from starting, and it ends at the network namespace as /run ends at the
 * mount namespace. Two containers that share neither /run nor the state folder do not see each other: mount
 * /run/foldline into both. A user other than root has a folder of their own, so the lock does not hold between two
 * users.
 *
 * A controller that was killed together with its guardian leaves its lock's file. In the run folder that file names the
 * state folder of its records: no controller with another state folder may start before they are restored. */

/* Return the living controller that either lock names; 0: there is none. */
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

/* Return true if this process may change what NVIDIA's driver reserves for the administrator: CAP_SYS_ADMIN in the
 * initial user namespace. The driver refuses root in a namespace of its own (a rootless container), despite its
 * capabilities. */
bool fl_privilege_admin(void);
bool fl_privilege_initial(void); /* this process is in the initial user namespace */

/* Reach: which controls and signals of a policy this machine lacks. A policy may name more of both than it will ever
 * use. The program therefore reports missing ones before the start. It refuses them only when a missing control is set,
 * or if no signal is left to decide on. */

typedef struct fl_reach {
    char controls[512]; /* missing controls: "cpu_boost (no file for it)", joined by commas; "" = none */
    char signals[512];  /* missing signals that the policy needs: "compute_ns, copy_ns"; "" = none on any GPU */
    bool blind;         /* the policy reads signals, and all of them are missing */
} fl_reach;

/* Find what is missing. The function reads twice, 120 ms apart, if counters need a difference. cpu: may be NULL. given:
 * signals that the collectors in programs give. */
fl_status fl_reach_of(const fl_policy *p, const fl_gpus *g, fl_cpu_host *cpu, uint64_t given, fl_reach *r, fl_diag *d);

/* Restore: one idempotent way back to the prior values, for guardian, start-up, orderly end, service stop and
 * `foldline restore`. */

typedef struct fl_restore_result {
    size_t records, restored, failed; /* the rest was void: of an earlier boot */
} fl_restore_result;

/* Restore every record, each under its lock. Wait for restores under way, and refuse GPUs of a living controller.
 * Continue after a failure and report the first. */
fl_status fl_restore_all(fl_restore_result *r, fl_diag *d);

/* Control over a node's GPUs (and its CPU), taken and given back in the order that keeps the machine as it was found:
 * the locks; the restore of a stale record; a ready guardian; the record of prior values; the first set. */

typedef struct fl_session_options {
    const fl_gpus *gpus;
    fl_cpu_host *cpu;                 /* NULL: there is no CPU to be set */
    uint64_t gpu_drives, host_drives; /* controls that may be set; those that cannot be set here have no priors */
    int64_t check_ns;                 /* as fl_guardian_start */
} fl_session_options;

typedef struct fl_session fl_session;

fl_status fl_session_open(fl_session **out, const fl_session_options *o, fl_diag *d);

/* Publish the time by which the next call of this or of fl_session_set will come. Replace a lost guardian first, so
 * that a controller that no longer sets anything is guarded too. */
fl_status fl_session_beat(fl_session *s, int64_t until_ns, fl_diag *d);
/* Check a set; call it for all sets of a decision before the first is made. *made is false if the control cannot be set
 * here but has that value anyway: the system's own, or the only clock. FL_HARDWARE: it cannot be set, and would have to
 * be. gpu -1 = host control. */
fl_status fl_session_may(const fl_session *s, int32_t gpu, int control, double value, bool *made, fl_diag *d);
/* Set a control. Replace a lost guardian first. */
fl_status fl_session_set(fl_session *s, int32_t gpu, int control, double value, fl_diag *d);
uint64_t fl_session_replaced(const fl_session *s); /* number of guardians that were lost */

/* Restore what was set, from the priors in memory, because their files may be gone; remove the records and free all.
 * The published time must leave enough time for it. After a failure the function continues and reports the first one;
 * that record stays, and the guardian keeps trying. NULL is allowed. */
fl_status fl_session_close(fl_session *s, fl_diag *d);

/* Orderly end: TERM, INT and HUP only raise a flag, which the loop reads. A signal that was ignored at the start
 * (nohup, a background job) stays ignored; one that was blocked at the start is unblocked. */

void fl_stop_listen(void);
void fl_stop_forget(void); /* from now on each of these signals ends the process at once */
bool fl_stop_asked(void);
bool fl_stop_ignored(int number); /* this process ignores the signal now */
/* Return, once, the last of these signals that a process sent to this process alone; 0 = none. A signal from the
 * terminal or the kernel has reached every process of the job and is not returned. */
int fl_stop_hand_on(void);
/* Create a thread that gets no signals: they must end the sleep of the controlling thread. */
int fl_stop_thread(pthread_t *thread, void *(*work)(void *), void *user);

/* Vendors: every vendor's back end behind one function. */

#define FL_VENDOR_HELP "auto takes the first that has a GPU here (auto)"

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
