/* Reads a published table of energies, from which `fit draws` finds what a distribution replay needs. */
#pragma once

#include "harness/fit/policy/draws_fit.h"

#include <cjson/cJSON.h>

/* Fills the published values of *f, which is zeroed, from a file like traces/samples/energyucb-published.json. The
 * names of workloads are borrowed from *tree, which the caller deletes, also on failure. FL_BAD_INPUT with file and
 * key. */
fl_status fl_draws_read(const char *path, cJSON **tree, fl_draws_fit *f, fl_diag *d);
