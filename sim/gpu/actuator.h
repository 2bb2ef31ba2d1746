/* From a set call to the clock in force: the call keeps its caller, then the clock settles; later calls settle later.
 */
#pragma once

#include "models/laws/device.h"
#include "sim/base/wide.h"

#include <stdbool.h>

#define FL_PENDING_MAX 64

typedef struct fl_pending {
    int64_t at_ps;
    int32_t sm, mem; /* ladder indices; -1 = this one stays */
} fl_pending;

typedef struct fl_actuator {
    const fl_device *dev;
    fl_pending queue[FL_PENDING_MAX]; /* by time */
    uint32_t count;
    uint32_t sm_default, mem_default;
} fl_actuator;

void fl_actuator_open(fl_actuator *a, const fl_device *dev);

/* A set call that ends at called_ps; clocks in MHz on the ladder, FL_DEFAULT (-1) for the driver's, NAN for "not this
 * one". Beyond 64 settling at once, the newest replaces the one before it. */
void fl_actuator_set(fl_actuator *a, int64_t called_ps, double sm_mhz, double mem_mhz);

/* When the next one settles, or FL_TIME_NEVER. */
static inline int64_t fl_actuator_next(const fl_actuator *a) { return a->count ? a->queue[0].at_ps : FL_TIME_NEVER; }

/* Takes what has settled by t into *sm and *mem; true if it asks for other clocks than those. */
bool fl_actuator_take(fl_actuator *a, int64_t t, uint32_t *sm, uint32_t *mem);
