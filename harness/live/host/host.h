/* The live host: reads the GPUs, lets the policy decide, sets, and sleeps, step after step.
 *
 * fl_live runs the loop until its time is over or it is stopped. Modes: observe (read only, no policy), shadow (decide
 * and report, set nothing), control (set, guarded by live/guard/guard.h). Each step starts the policy's delay after the
 * one before; a late step starts at once and is counted. The options borrow everything: GPUs, CPU, records, server,
 * policy. After a failure everything is restored that can be, and the diagnostic has the first failure.
 *
 * fl_live_log writes the decisions log of a run. fl_offer says what a vendor's library gives a policy. fl_program runs
 * a user's program under a command. */
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
    fl_kernels *kernels;    /* NULL where no activity records are taken */
    fl_server_host *server; /* NULL where no server is read; else facts->server_count is 1 */
    const fl_facts *facts;
    const fl_policy *policy; /* NULL in observe */
    const fl_layer *layer;
    size_t layer_count;
    uint64_t gpu_needs, host_needs; /* in observe: what to read */
    int64_t period_ns;              /* in observe */
    int64_t min_set_interval_ns;
    const char *target; /* file of the power target, read again when it changes, on the run's time; NULL = none */
    int64_t for_ns;     /* 0 = until stopped */
    int64_t grace_ns;   /* of control: a step may last this long before the guardian takes over */
    int64_t check_ns;   /* of control: as fl_guardian_start */
    int64_t frozen_ns;  /* an energy counter that stands still this long ends control; 0 = never */
    fl_clock clock;
    bool (*stop)(void *user);  /* called before each step and when a sleep ends early; may be NULL */
    bool (*early)(void *user); /* called when a sleep ended early: true starts the next step now; NULL = never */
    /* After each step; decision is NULL in observe. May be NULL. */
    fl_status (*on_step)(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d);
    fl_effect_tell *tell; /* receives remarks that do not end the run; may be NULL */
    void *user;
} fl_live_options;

typedef struct fl_live_result {
    uint64_t steps, late, sets, guardians_lost;
    int64_t longest_ns, sum_ns; /* time of the longest step, and of all steps */
    int64_t lasted_ns;
    fl_instance_counts counts;
    fl_effect_counts effect;
    uint64_t absurd;        /* impossible readings (fl_bounds_set) */
    char absurd_names[256]; /* their signals */
} fl_live_result;

/* Run the loop. FL_OK: the time was over, or it was stopped. */
fl_status fl_live(const fl_live_options *o, fl_live_result *r, fl_diag *d);

/* The decisions log of a live run, written step by step, so that a killed run leaves all but its last steps. A thread
 * of its own writes, so a slow disk never delays a step of control. Up to 64 MiB wait for the disk; further steps are
 * lost and counted. The file is a canonical decisions file (traces/files/files.h) and can be replayed. */

typedef struct fl_live_log fl_live_log;

/* Start a log with the policy's signals and controls as columns. head is copied into the file. */
fl_status fl_live_log_open(fl_live_log **out, const char *path, const fl_head *head, const fl_policy *policy,
                           fl_diag *d);
/* Add a step. FL_IO: writing failed at an earlier step. */
fl_status fl_live_log_add(fl_live_log *l, const fl_sample *sample, const fl_decision *decision, fl_diag *d);
/* Add a comment line that belongs to no step, such as the effect of a set. */
void fl_live_log_note(fl_live_log *l, const char *line);
/* Wait until all is written. FL_IO: a step was lost. NULL is allowed. */
fl_status fl_live_log_close(fl_live_log *l, fl_diag *d);

/* Write the head: the policy (fl_policy_head_put), mode as the source, and the platform or, if it is NULL, the facts.
 */
fl_status fl_live_log_head(fl_head *h, const fl_policy *policy, const fl_facts *facts, const fl_layer *layer,
                           size_t layer_count, const char *platform, const char *mode, fl_diag *d);

/* Offers: what a vendor's library gives a policy, which signals stand in for others, or why the policy cannot decide.
 * They follow from the policy's descriptor and from what each library can read (fl_vendor_reads). */

typedef struct fl_offer {
    fl_policy here; /* the policy as it runs on this vendor's GPUs; borrows what the policy does, and `row` */
    fl_signal_row row[FL_SIGNAL_ROWS_MAX];
    uint64_t gpu, host;  /* signals that it needs and the library lacks */
    uint64_t instead_of; /* signals that others stand in for; 0 = none */
    uint64_t stand_ins;  /* these others */
    uint64_t without;    /* signals that the library lacks and the policy can leave out */
    uint64_t given;      /* signals that the collector gives */
    bool markers;        /* it needs the program's markers, and the collector gives them */
    bool may_record;     /* it does not need activity records, but takes them if the collector runs */
    bool may_mark;       /* it takes markers if the collector runs */
    bool records;        /* it needs activity records, or their number, and the collector gives them */
    bool no_records;     /* it needs activity records, and this vendor has no collector */
    bool sees;           /* it reads no signal, or at least one of its signals is available */
} fl_offer;

/* Find the offer; it may not be copied. vendor: a name of fl_vendor_name. markers: the user has named, or may name, the
 * markers that count. */
void fl_offer_of(fl_offer *o, const fl_policy *p, const char *vendor, bool markers);

/* Write the offer in words: "all", "all, without dram_bytes", "all, activity records by the collector", "all, markers
 * by the collector", "util_gpu_pct, util_mem_pct instead of compute_ns, copy_ns", "lacks node_power_w: cannot decide".
 */
void fl_offer_text(const fl_offer *o, char *text, size_t size);

/* Write the stand-ins: "util_gpu_pct, util_mem_pct instead of compute_ns, copy_ns"; "" if there are none. */
void fl_offer_instead(const fl_offer *o, char *text, size_t size);

/* A user's program under `foldline record` or `live`: the command starts it, hands signals on and waits for it. The
 * program never outlives its recording, and its exit status is always its own. */

typedef struct fl_program {
    pid_t pid; /* 0 = not started */
    bool ended;
    int exit_status;  /* after its end; 128 + the signal that ended it, as in shells */
    int64_t limit_ns; /* CLOCK_MONOTONIC: time of TERM, with KILL FL_PROGRAM_GRACE_NS later; 0 = never */
    bool asked;       /* TERM was sent */
} fl_program;

/* Start the program. environment: name, value, name, value, ..., NULL. A command that cannot be run ends with 127, as
 * under a shell. */
fl_status fl_program_start(fl_program *p, char *const *command, const char *const *environment, fl_diag *d);

/* Hand on a signal that asks this process to stop, unless the program has it from its terminal; keep the limit. Return
 * true once the program has ended. */
bool fl_program_look(fl_program *p);
/* Return the time until which the caller may sleep, so that the limit is kept. */
int64_t fl_program_wake_ns(const fl_program *p, int64_t until_ns);
/* Look until the program has ended; return at once if it was not started. */
void fl_program_wait(fl_program *p);
