#include "harness/study/trial/serving_promise.h"

#include <math.h>

fl_status fl_promises_targets(const fl_serving_choice *c, fl_promises *p, fl_diag *d) {
    const double share = c->target_share > 0 ? c->target_share : FL_TARGET_SHARE;
    /* As decimal as it was written: 1 for 0.99. */
    const fl_promise base = {.below = true, .equal = true, .limit = nearbyint((1 - share) * 1e11) / 1e9};
    fl_promises own = {0};
    double ignored = INFINITY;
    if (c->ttft) {
        own.item[own.count] = base;
        snprintf(own.item[own.count++].column, sizeof base.column, "ttft_missed_pct");
    }
    if (c->tbt) {
        own.item[own.count] = base;
        snprintf(own.item[own.count++].column, sizeof base.column, "tbt_missed_pct");
    }
    return own.count ? fl_promises_add(&own, INFINITY, p, &ignored, d) : FL_OK;
}
