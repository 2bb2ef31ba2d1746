/* Random workloads on one stream, and their oracle's tables: what the suites of the oracle share. */
#pragma once

#include "models/laws/device.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/oracle/inside.h"
#include "sim/oracle/oracle.h"
#include "tests/support/node_fixture.h"

#define SEED UINT64_C(20240611)
#define POSITIONS_MANY 4096 /* more than the ops of most workloads here: a position is an op */

/* A lone stream of some classes; now and then an op too long for a short record, and ops of no length. */
static inline void random_rig(fx_rig *r, fl_random *g, uint32_t gpus, uint32_t gpu, size_t ops) {
    fx_open(r, gpus);
    fl_device *dev = r->spec.device;
    dev->sm_count = 4 + (uint32_t)fl_random_below(g, 5);
    dev->default_sm_mhz = dev->sm_mhz[fl_random_below(g, dev->sm_count)];
    fl_curve_free(dev->voltage);
    double x[3] = {500, 900, 1500}, y[3] = {1, 1 + 0.1 * fl_random_unit(g), 1.2 + 0.4 * fl_random_unit(g)};
    if (fl_curve_new(&dev->voltage, x, y, 3) != FL_MODEL_OK)
        exit(1);
    fx_random_classes(r, g, 1 + (uint32_t)fl_random_below(g, 6), 1);
    uint32_t s = fx_stream(r, gpu, 3);
    fx_random_ops(r, g, s, ops, 1 + (int64_t)fl_random_below(g, 200000));
    if (fl_random_below(g, 2))
        fx_op(r, s, 12, INT64_C(5000000001), 0);
    fx_op(r, s, 1, 999, 0);
    fx_finish(r, 5);
}

static inline void table_of(const fx_rig *r, size_t positions, fl_oracle_table *t) {
    FX_MUST(fl_oracle_table_make(r->w, r->rates, &r->spec, positions, t, d));
}

/* Positions alone, with a bound for switches between them. */
static inline void positions_of(const fx_rig *r, size_t positions, fl_oracle_table *t) {
    table_of(r, positions, t);
    fl_oracle_work_free(t->work);
    t->work = NULL;
}

static inline fl_oracle_result solve(const fl_oracle_table *t, fl_objective objective, int64_t limit) {
    fl_oracle_result out;
    FX_MUST(fl_oracle_clairvoyant(t, objective, limit, true, &out, d));
    return out;
}

static inline void column(const fl_oracle_table *t, size_t c, int64_t *ps, fl_wide *fj) {
    *ps = 0, *fj = 0;
    for (size_t i = 0; i < t->positions; i++) {
        *ps += t->time_ps[i * t->choices + c];
        *fj += t->energy_fj[i * t->choices + c];
    }
}
