/* What a run served: each request's times and energy, and what they come to. */
#pragma once

#include "sim/serving/serving.h"
#include "sim/base/times.h"
#include "sim/base/wide.h"

/* One request. Times are instants of the run.
 *
 * Energy: what the server's GPUs draw while a step runs, idle power and leakage included, belongs to the requests of
 * that step. Prompts and decodes share it as the times of a step with only the ones and of one with only the others;
 * prompts then by their tokens in the step, decodes alike per sequence. Rounding goes to later parts, so that no
 * femtojoule is lost. All else that the node draws is `idle_fj` of fl_served_summary. */
typedef struct fl_served {
    int64_t arrival_ps, taken_ps, first_ps, done_ps; /* taken_ps: its first step begins; first_ps: its first token */
    int64_t worst_tbt_ps;                            /* longest time between two of its tokens; 0 with one token */
    fl_wide prefill_fj, decode_fj;                   /* what is computed again after a preemption is prefill */
    uint32_t server;
    uint32_t cached_tokens; /* of its prompt, found in the prefix cache when it was taken */
    uint32_t preemptions;
    uint32_t tbt_missed; /* tokens later after the one before than the target */
    bool ttft_missed;
} fl_served;

typedef struct fl_served_summary {
    uint64_t requests, prompt_tokens, cached_tokens, output_tokens;
    uint64_t steps, preemptions;
    uint64_t computed_tokens;       /* in all steps: prompts, and what preempted requests lost, and one per decode */
    fl_times ttft, tbt, tpot, e2e;  /* to first token; between tokens of a request; mean of the latter, by request; from
                                       arrival to the last token */
    double ttft_missed, tbt_missed; /* shares of first tokens, and of later ones, over the targets; 0 without targets */
    bool targets;                   /* one was stated at all */
    bool met;                       /* both shares are at most 1 - target_share */
    double requests_per_s, tokens_per_s; /* over the makespan */
    double offered_per_s;        /* requests that arrive, from the first to the last of them; NAN: all at once */
    double goodput;              /* requests/s whose TTFT, and whose mean time between tokens (TPOT), met the targets */
    fl_wide serving_fj, idle_fj; /* of the steps, and the rest: together the node's energy */
    double j_per_request, j_per_token; /* of what scores use (fl_run_result.energy_j), per request and output token */
    /* The minute, by arrival, in which the largest share of requests missed a target; of equals the one with the longer
     * mean TTFT. */
    double worst_minute_s;      /* when it begins */
    double worst_minute_missed; /* that share */
    double worst_minute_ttft_s; /* mean TTFT of its requests */
} fl_served_summary;

typedef struct fl_served_result {
    fl_served *request; /* request_count, in the order of arrival; NULL where the workload serves nothing */
    size_t request_count;
    fl_served_summary sum;
} fl_served_result;

void fl_served_free(fl_served_result *r);
