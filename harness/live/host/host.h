/* The loop of a live host: read, let the policy decide, set, sleep. Time comes from a clock that need not be the
 * wall's.
 *
 * observe: read only, no policy. shadow: decide and tell, set nothing. control: set, guarded (harness/live/guard/session.h).
 * A step starts the policy's delay after the one before; where a loop lasted longer, at once, and it is counted. */
#pragma once

#include "harness/live/guard/clock.h"
#include "harness/live/guard/cpu_host.h"
#include "harness/live/guard/effect.h"
#include "harness/live/records/feed.h"
#include "harness/live/server/host.h"
#include "harness/live/vendor/backend.h"
#include "sim/instance/instance.h"

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
