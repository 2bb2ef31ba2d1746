/* The keys of an experiment. fl_experiment_open holds a file against these rows before anything reads it; `foldline
 * help experiment` prints them, and harness/experiment.schema.json is made of them. A new key is a row here and the
 * line that reads it. */
#pragma once

#include "harness/base/json/keys.h"

extern const fl_keys fl_experiment_keys;
extern const fl_keys fl_draws_keys; /* of "draws", which a variant may change */
