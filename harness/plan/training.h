/* A pipeline on the boards that run it, for what plans its clocks. */
#pragma once

#include "harness/base/cli/args.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/rank_option.h"
#include "sim/pipeline/run.h"

typedef struct fl_training {
    fl_pipeline p;
    fl_pipeline_order order;
    fl_platform platform;     /* empty where none was named */
    fl_node_spec own;         /* boards of no platform; empty where there is one */
    const fl_node_spec *node; /* of the two; its ladder lies where times of every rank are known */
} fl_training;

/* Reads the pipeline at `path`. platform: by its name or path; NULL: boards that draw what the pipeline's rows say,
 * with a ladder of the clocks that these rows state. slow: texts "rank=3:1.2", ranks that compute slower
 * (sim/pipeline/straggler.h). Leaves *t zeroed where it fails. */
fl_status fl_training_open(const char *path, const char *platform, const fl_texts *slow, fl_training *t, fl_diag *d);
void fl_training_free(fl_training *t);
