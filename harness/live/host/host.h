/* The loop of a live host: read, let the policy decide, set, sleep. Time comes from a clock that need not be the
 * wall's.
 *
 * observe: read only, no policy. shadow: decide and tell, set nothing. control: set, guarded
 * (harness/live/guard/guard.h). A step starts the policy's delay after the one before; where a loop lasted longer, at
 * once, and it is counted. */
#pragma once

#include "harness/live/guard/guard.h"
#include "harness/live/records/records.h"
#include "harness/live/server/server.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef enum fl_live_mode { FL_LIVE_OBSERVE, FL_LIVE_SHADOW, FL_LIVE_CONTROL } fl_live_mode;

typedef struct fl_live_options {
    fl_live_mode mode;
    const fl_gpus *gpus;
    fl_cpu_host *cpu;       /* NULL where nothing of it is needed */
    fl_kernels *kernels;    /* NULL where no kernel records are taken */
    fl_server_host *server; /* NULL where no server is read; else facts->server_count is 1 */
    const fl_facts *facts;
    const fl_policy *policy; /* NULL in observe */
    const fl_layer *layer;
    size_t layer_count;
    uint64_t gpu_needs, host_needs; /* in observe: what to read */
    int64_t period_ns;              /* in observe */
    int64_t min_set_interval_ns;
    int64_t for_ns;    /* 0 = until stopped */
    int64_t grace_ns;  /* of control: a step may last this long before the guardian takes over */
    int64_t check_ns;  /* of control: as fl_guardian_start */
    int64_t frozen_ns; /* an energy counter that stands still this long ends control; 0 = never */
    fl_clock clock;
    bool (*stop)(void *user);  /* asked before each step and when a sleep ends early; may be NULL */
    bool (*early)(void *user); /* a sleep ended early: shall the next step come now? May be NULL = no */
    /* After each step; decision is NULL in observe. May be NULL. */
    fl_status (*on_step)(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d);
    fl_effect_tell *tell; /* what should be known and ends nothing; may be NULL */
    void *user;
} fl_live_options;

typedef struct fl_live_result {
    uint64_t steps, late, sets, guardians_lost;
    int64_t longest_ns, sum_ns; /* of a loop: the longest, and all */
    int64_t lasted_ns;
    fl_instance_counts counts;
    fl_effect_counts effect;
    uint64_t absurd;        /* readings beyond what the signal can be: */
    char absurd_names[256]; /* of which */
} fl_live_result;

/* FL_OK where the time was over or it was stopped. On failure everything that can be is restored first; the diagnostic
 * says what failed first. */
fl_status fl_live(const fl_live_options *o, fl_live_result *r, fl_diag *d);

/* The decisions log of a live run, written step by step: a run that is killed leaves all but its last steps. A thread
 * of its own writes, so that a disk that stands still (a network's) holds up no step of control: up to 64 MiB wait for
 * it, further steps are lost and counted. The file is the canonical decisions file (traces/files/files.h) and replays.
 */

typedef struct fl_live_log fl_live_log;

/* Columns: what the policy reads and drives. head is copied into the file. */
fl_status fl_live_log_open(fl_live_log **out, const char *path, const fl_head *head, const fl_policy *policy,
                           fl_diag *d);
/* FL_IO where the file took no more at an earlier step. */
fl_status fl_live_log_add(fl_live_log *l, const fl_sample *sample, const fl_decision *decision, fl_diag *d);
/* A line that is no part of any step, where it stands (a comment to whoever replays): what became of a set. */
void fl_live_log_note(fl_live_log *l, const char *line);
/* Waits until all is written. FL_IO where a step was lost. NULL is allowed. */
fl_status fl_live_log_close(fl_live_log *l, fl_diag *d);

/* What harness/log/log.h says of the policy, mode as the source, and platform or (NULL) the facts. */
fl_status fl_live_log_head(fl_head *h, const fl_policy *policy, const fl_facts *facts, const fl_layer *layer,
                           size_t layer_count, const char *platform, const char *mode, fl_diag *d);

/* What a vendor's library gives a policy: all that it needs, with what stand-in, or why it cannot decide. From the
 * descriptor of the policy and the table of what each library can read (fl_vendor_reads): nothing is listed by hand. */

typedef struct fl_offer {
    fl_policy here;      /* the policy as it runs there; borrows what the policy does */
    uint64_t gpu, host;  /* signals that it lacks there, of those that it then reads */
    uint64_t instead_of; /* signals that others stand in for; 0 = none */
    uint64_t without;    /* signals that it lacks there, and does without */
    uint64_t given;      /* that the collector gives */
    bool markers;        /* it needs the program's markers, and has them with the collector */
    bool may_record;     /* it needs no kernel records, and takes them where the collector runs */
    bool may_mark;       /* it takes markers where the collector runs */
    bool records;        /* it needs kernel records, or their number, and has them with the collector */
    bool no_records;     /* it needs them, and that vendor has no collector */
    bool sees;           /* it reads no signal, or one of them at least is to be had */
} fl_offer;

/* vendor: as in fl_vendor_name. markers: which of them count is said, or may be. */
fl_offer fl_offer_of(const fl_policy *p, const char *vendor, bool markers);

/* "all", "all, without dram_bytes", "all, kernel records by the collector", "all, markers by the collector",
 * "util_gpu_pct, util_mem_pct instead of compute_ns, copy_ns", "lacks node_power_w: cannot decide". */
void fl_offer_text(const fl_offer *o, char *text, size_t size);

/* "util_gpu_pct, util_mem_pct instead of compute_ns, copy_ns"; "" where nothing stands in. */
void fl_offer_instead(const fl_offer *o, char *text, size_t size);

/* A program of the user's that runs under a command of the live side: started, told what we are told, and waited for,
 * so that it never outlives its recording and its exit status is always its own. */

typedef struct fl_program {
    pid_t pid; /* 0 = not started */
    bool ended;
    int exit_status;  /* once it has ended; 128 + the signal that ended it, as shells say */
    int64_t limit_ns; /* CLOCK_MONOTONIC: asked then to end by TERM, and after FL_PROGRAM_GRACE_NS by KILL; 0 = never */
    bool asked;       /* by TERM */
} fl_program;

/* environment: name, value, name, value, ..., NULL. A command that cannot be run ends with 127, as under a shell. */
fl_status fl_program_start(fl_program *p, char *const *command, const char *const *environment, fl_diag *d);

/* Hands on a signal that asked us to stop, unless the program has it from its terminal; keeps its limit; sees whether
 * it has ended. True once it has. */
bool fl_program_look(fl_program *p);
/* Until when to sleep at most, so that the limit is kept. */
int64_t fl_program_wake_ns(const fl_program *p, int64_t until_ns);
/* The same until it has ended; nothing to do where it was not started. */
void fl_program_wait(fl_program *p);
