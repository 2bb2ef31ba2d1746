/* What serving these requests costs at least, whatever clocks a policy sets and whenever: a clairvoyant's bound.
 *
 * Nothing is said of latency, so it holds for policies that miss the targets too. It is a sum of two parts.
 *
 * - Boards: none draws less than its idle power at the cheapest clocks (gated, where it gates), and the run lasts at
 *   least until the last request has arrived.
 * - Steps: what a step adds to that is, per GPU, the seconds in which its SMs are busy times their power, and likewise
 *   for the memory (serving_rows.c). The former go as 1 / f, so at no clocks does a second of the reference clock cost
 *   less than X = min P_sm(f) f_ref / f; for the memory Y = min P_memory min(1 / m, f_ref / f). A step changes its
 * clock under way: each part of it is then done at one of these clocks. Attention, host time and all-reduces cost
 * nothing here. What is left depends on the tokens n of a step and on its sequences s: h(n) + k(s), at the reference
 * clock.
 *
 * However the requests are batched, their steps compute at least N tokens (each prompt less what a prefix cache may
 * hold of it, and each later output token once), in at least S parts (one for each output token), and there are at
 * least K of them: a request is in one step for each of its tokens, a step has at most max_seqs sequences and
 * token_budget tokens, and its sequences hold at most all KV blocks at a time. For each line a + b n below h, with a
 * and b at least 0, the sum of h over all steps is at least a K + b N. The best line is an edge of the lower convex
 * hull of h. The same holds for k and S. */
#pragma once

#include "sim/gpu/rates.h"

typedef struct fl_serving_bound {
    double energy_j;             /* of all GPUs of the node: floor_j + steps_j */
    double floor_j, steps_j;     /* of the boards, and what the steps add */
    double steps, tokens, parts; /* K, N and S */
} fl_serving_bound;

/* w serves, and no GPU is lost. rates and spec as of the run that is bounded. */
fl_status fl_serving_bound_of(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec, fl_serving_bound *out,
                              fl_diag *d);
