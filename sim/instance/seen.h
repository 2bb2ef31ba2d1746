/* When did a sensor refresh? No vendor's library tells: a changed value says so. One that did not change is taken for
 * refreshed once as long has passed as its sensor needs at least; a counter that always moves refreshed only where it
 * moved. */
#pragma once

#include "policies/policy.h"

#include <stdbool.h>

typedef struct fl_seen { /* of one signal */
    double value;
    int64_t fresh_ns;
    bool known;
} fl_seen;

#define FL_SEEN_MOVES INT64_MAX /* as refresh_ns: fresh only where it moved */

/* Puts a value into the sample, valid, and fresh where it is. Returns whether it is. */
bool fl_seen_put(fl_seen *last, fl_gpu_sample *sample, int id, double value, int64_t t_ns, int64_t refresh_ns);
