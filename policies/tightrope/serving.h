/* tightrope where a server states latency targets: they are its bound. The ledger counts late tokens instead of time:
 * of all first tokens and of all others the share target_share must come in time, and what is left of the rest is spent
 * where it saves most. What is not known takes the top clock.
 *
 * Two slacks are held, for each server by itself:
 * - TBT: over the engine's steps of the last while, the share of tokens that would be late at a clock, by the step
 * times of step_times.h, must stay within what the ledger leaves. At a clock not seen yet a step counts by the bound
 * that it takes top / f as long at most.
 * - TTFT: a request that waits must get its first token in time after its wait so far, the time that a clock takes to
 *   change, and as many of the worst steps of the last while as requests wait. And the 99th percentile of TTFT, longer
 *   by as much as a step is, must meet the target.
 *
 * Among the clocks that hold both, the one that costs the least energy a step by the power seen at each, above that of
 * a server with nothing to do; a clock below those seen is tried one at a time. What was
 * seen ten seconds ago, under another load, is forgotten, and looked at again. */
#pragma once

#include "policies/policy.h"
#include "policies/server/drive.h"

enum { FL_TIGHTROPE_STEPS = 128 };

typedef struct fl_tightrope_late { /* ledger of one target: counters as of the first sample, and since */
    double count_at, missed_at;    /* NAN: not known yet */
    double count, missed;
} fl_tightrope_late;

typedef struct fl_tightrope_serving { /* of one server; in the state of its first GPU */
    fl_drive s;
    fl_step_load step[FL_TIGHTROPE_STEPS]; /* the last ones */
    uint64_t steps;                        /* so far */
    int64_t looked_ns;                     /* when the two rows below were made of them */
    double late[FL_STEP_CLOCKS];           /* share of their tokens that would be late; 1 where it is not known */
    double longest_s[FL_STEP_CLOCKS];      /* the longest of them; NAN: not known */
    double now_s[FL_STEP_CLOCKS];          /* a step of the present load */
    double power_w[FL_STEP_CLOCKS], power_weight[FL_STEP_CLOCKS];
    int64_t power_ns[FL_STEP_CLOCKS]; /* of the last reading */
    double idle_w;                    /* least power seen with nothing to do; 0: not seen */
    fl_tightrope_late ttft, tbt;
    double tokens_per_s;
    int64_t last_ns;
    double allowed;  /* share of tokens that may be late from now on */
    double slowdown; /* of a step against the top clock, as predicted; NAN: not known */
} fl_tightrope_serving;

/* Signals of a server that it reads. */
#define FL_TIGHTROPE_SERVER_USES                                                                                       \
    (FL_BIT(FL_SERVER_WAITING) | FL_BIT(FL_SERVER_RUNNING) | FL_BIT(FL_SERVER_KV_USED_PCT) |                           \
     FL_BIT(FL_SERVER_OLDEST_WAIT_NS) | FL_BIT(FL_SERVER_PROMPT_TOKENS) | FL_BIT(FL_SERVER_BATCHES) |                  \
     FL_BIT(FL_SERVER_TTFT_COUNT) | FL_BIT(FL_SERVER_TTFT_MISSED) | FL_BIT(FL_SERVER_TTFT_P99_NS) |                    \
     FL_BIT(FL_SERVER_TBT_SUM_NS) | FL_BIT(FL_SERVER_TBT_COUNT) | FL_BIT(FL_SERVER_TBT_MISSED) |                       \
     FL_BIT(FL_SERVER_TBT_P99_NS))

/* 1: every server states both targets, so they are the bound. */
int fl_tightrope_serves(const fl_facts *facts);

/* Begins one. */
void fl_tightrope_serving_begin(fl_tightrope_serving *t, const fl_facts *facts, uint32_t server);

/* One step of the policy for one server: reads, decides, sets. tolerance: by how much a slowdown may pass top / f. */
void fl_tightrope_serve(fl_tightrope_serving *t, const fl_facts *facts, const fl_sample *sample, uint32_t server,
                        double tolerance, fl_command *c);

#define FL_TIGHTROPE_SERVING_NS 20000000 /* from one step to the next */
