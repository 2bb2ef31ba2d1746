/* A policy that breaks every rule of purity: it reads the clock, calls the C library, and keeps writable globals. */
#include "policies/policy.h"

#include <stdlib.h>
#include <time.h>

static long long calls = 1; /* .data */
static double last[4];      /* .bss */

static const char *init(void *state, const void *params, const fl_facts *facts) {
    (void)state;
    (void)params;
    (void)facts;
    return getenv("HOME") ? NULL : "nobody home";
}

static void step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample, fl_command *command) {
    (void)state;
    (void)params;
    (void)facts;
    (void)sample;
    last[calls++ % 4] = (double)time(NULL);
    command->delay_ns = (int64_t)last[0] + 1;
}

FL_POLICY(impure) = {FL_POLICY_ABI, .name = "impure", .summary = "", .source = "", .init = init, .step = step};
