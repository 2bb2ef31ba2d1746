/* What `foldline run` tells of one run: what was asked, energy, time, clocks and limits, and what the policy saw; each
 * beside a run at the default clocks, with nothing set. */
#pragma once

#include "harness/base/cli/args.h"
#include "harness/input/scene/scene.h"
#include "harness/input/policy/spec.h"
#include "sim/node/run.h"

typedef struct fl_run_told {
    const fl_scenes *scenes; /* the first is the one that was run */
    const fl_spec *spec;
    fl_run_result *result;
    const fl_run_result *standard; /* of the driver's default */
    const char *reader;            /* as asked for; NULL = none */
    const fl_texts *faults;
    double min_set_ms; /* 0 = no limit */
} fl_run_told;

/* On stdout. Nothing of the JSON when out of memory, which main() tells of at the end. */
void fl_run_tell_json(const fl_run_told *t);
/* Sorts the result's residences. */
void fl_run_tell_text(const fl_run_told *t);
