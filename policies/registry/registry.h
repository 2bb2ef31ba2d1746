/* The table of built-in policies, in the order in which they are listed. Adding one is one row in registry.c. */
#pragma once

#include "policies/policy.h"

#include <stddef.h>

extern const fl_policy *const fl_policies[];
extern const size_t fl_policies_count;
