/* A plug-in built against a contract whose rows are the same, but in which a struct is larger: a member was added. */
#include "policies/policy.h"

typedef struct larger_command {
    fl_command command;
    double more;
} larger_command;

#undef FL_ROW_ABI_SIZE
#define FL_ROW_ABI_SIZE(type) sizeof(type) == sizeof(fl_command) ? sizeof(larger_command) : sizeof(type),

static const char *init(void *state, const void *params, const fl_facts *facts) {
    (void)state;
    (void)params;
    (void)facts;
    return NULL;
}

static void step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample, fl_command *command) {
    (void)state;
    (void)params;
    (void)facts;
    (void)sample;
    command->delay_ns = 1;
}

FL_POLICY(wrong_size) = {FL_POLICY_ABI, .name = "wrong_size", .summary = "", .source = "", .init = init, .step = step};
