/* What the files of harness/input/experiment share. Other modules include the public header alone. */
#pragma once

#include "harness/base/json/json.h"
#include "harness/input/experiment/experiment.h"
#include "traces/io/io.h"

/* Keeps a malloc'd text for the life of the experiment; frees it on failure. */
fl_status fl_experiment_keep(fl_experiment *e, char *text, fl_diag *d);
/* Turns a path of the experiment, relative to its file, into one relative to the working folder. *out lives as long as
 * *e. */
fl_status fl_experiment_path(fl_experiment *e, const char *path, const char **out, fl_diag *d);

extern const fl_keys fl_draws_keys; /* of "draws", which a variant may change */
