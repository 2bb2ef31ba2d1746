/* A policy by name: a built-in, or a path that ends in .so (it must then contain a '/' or exist), loaded with dlopen.
 */
#pragma once

#include "policies/policy.h"
#include "traces/io/diag.h"

/* FL_BAD_INPUT with the nearest name for an unknown built-in; for a plug-in the loader's reason, the missing symbol, or
 * the first ABI row that differs. A plug-in stays loaded for the life of the program. */
fl_status fl_policy_open(const char *name, const fl_policy **policy, fl_diag *d);
