/* A plug-in that goes wrong, one way for each name of BAD (tests/program/plugin.sh): at step 17 of a period of 10 ms.
 */
#include "policies/policy.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct params {
    double at;
} params;

static const fl_param param_rows[] = {
    FL_PARAM(params, at, REAL(0, 1e6), "steps", "17", "the step at which it goes wrong")};

static volatile int zero;

static int deep(volatile int *down) { /* without an end */
    volatile int here[1024];
    here[0] = *down;
    return deep(here) + here[1];
}

static void go_wrong(void) {
#if defined BAD_SEGV
    *(volatile int *)(uintptr_t)16 = 1;
#elif defined BAD_ZERO
    zero = (zero + 7) / zero;
#elif defined BAD_ABORT
    abort();
#elif defined BAD_LOOP
    for (;;)
        zero++;
#elif defined BAD_WAIT
    for (;;)
        pause();
#elif defined BAD_EXIT
    exit(0);
#elif defined BAD_THREAD_END
    pthread_exit(NULL);
#elif defined BAD_DEEP
    int start = 1;
    zero = deep(&start);
#endif
}

static const char *init(void *state, const void *params_, const fl_facts *facts) {
    (void)state, (void)params_, (void)facts;
#ifdef BAD_INIT
    *(volatile int *)(uintptr_t)16 = 1;
#endif
    return NULL;
}

static void step(void *state, const void *params_, const fl_facts *facts, const fl_sample *sample,
                 fl_command *command) {
    const params *p = params_;
    (void)state, (void)facts;
    if ((double)sample->step == p->at)
        go_wrong();
    command->delay_ns = 10000000;
}

#ifdef BAD_LOAD
__attribute__((constructor)) static void load(void) { *(volatile int *)(uintptr_t)16 = 1; }
#elif defined BAD_LOAD_LOOP
__attribute__((constructor)) static void load(void) {
    for (;;)
        zero++;
}
#elif defined BAD_LOAD_DEEP
__attribute__((constructor)) static void load(void) {
    int start = 1;
    zero = deep(&start);
}
#endif

FL_POLICY(bad) = {FL_POLICY_ABI,
#if defined BAD_NAME
#elif defined BAD_NAME_EMPTY
                  .name = "",
#elif defined BAD_NAME_COMMA
                  .name = "a,b",
#else
                  .name = "mine",
#endif
                  .summary = "goes wrong",
                  .source = "none",
#ifdef BAD_ROWS
                  .param_count = 3,
#else
                  .param = param_rows,
                  .param_count = FL_COUNT(param_rows),
#endif
                  .param_size = sizeof(params),
                  .init = init,
#ifndef BAD_STEP
                  .step = step
#endif
};
