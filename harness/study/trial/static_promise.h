/* Static clocks under promises that time and energy do not tell, such as a latency or a highest power: each is a whole
 * run through the engine. */
#pragma once

#include "harness/input/scene/scene.h"
#include "harness/study/trial/promise.h"

typedef struct fl_promised_under { /* borrowed */
    const fl_promises *promises;
    double bound; /* on the slowdown */
    int64_t watch_ns;
    fl_objective objective;
} fl_promised_under;

/* Runs the scene at one choice. *row is all that such a run tells, judged, its regrets NAN; the caller frees what it
 * kept, also after a failure. Runs of other choices may go on beside it. */
fl_status fl_static_promised(fl_scene *s, const fl_run_result *standard, const fl_promised_under *under,
                             const fl_choice *at, fl_static_point *point, fl_row_result *row, fl_diag *d);

/* Moves the points to the front whose rows hold all promises, in their order; how many. Rows stay where they are: that
 * of point k is row k. The slowdown is not looked at, for fl_static_best does that. */
size_t fl_static_keep(const fl_row_result *row, fl_static_point *point, size_t count);
