/* MF-GPOEO's released controller a second time, as a policy that any host can drive. README.md says what it is for. */
#pragma once

#include "policies/policy.h"
#include "tests/reference/branches.h"

/* Its state holds pointers and a thread per GPU: it cannot be copied, and ref_close_all ends it. */
extern const fl_policy ref_policy;

/* How often each branch was reached since the program began. */
extern uint64_t ref_reached[REF_BRANCH_COUNT];

/* Where the newest instance stands with GPU `gpu`, in words, into buf. Returns buf. */
char *ref_state_text(uint32_t gpu, char *buf, size_t size);

/* Ends all instances and frees what they hold. Call it after each run. */
void ref_close_all(void);
