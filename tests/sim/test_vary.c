#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "sim/gpu/gpu.h"
#include "sim/workload/workload.h"

#include "tests/support/node_fixture.h"

static void test_units(void) {
    fx_rig a, b;
    fx_open(&a, 4);
    nx_heat(&a, 90);
    fx_open(&b, 4);
    nx_heat(&b, 90);
    for (int i = 0; i < 2; i++) {
        fl_device *dev = (i ? &b : &a)->spec.device;
        dev->v_sigma = 0.02;
        dev->leak_sigma = 0.1;
    }
    FX_MUST(fl_node_vary(&a.spec, 5, d));
    FX_MUST(fl_node_vary(&b.spec, 5, d));
    FL_CHECK(a.spec.device_count == 4, "a device for each GPU");
    for (uint32_t i = 0; i < 4; i++) {
        const fl_device *x = &a.spec.device[i], *y = &b.spec.device[i];
        fl_base base;
        FL_CHECK(a.spec.gpu[i] == i && x->v_excess == y->v_excess && x->c_w == y->c_w,
                 "GPU %u: the same seed, the same unit", i);
        FL_CHECK(fabs(x->v_excess) <= 0.06 && x->c_w > 14 && x->c_w < 26, "GPU %u: %g, %g W", i, x->v_excess, x->c_w);
        FL_CHECK(i == 0 || (x->v_excess != a.spec.device[0].v_excess && x->c_w != a.spec.device[0].c_w),
                 "GPU %u differs", i);
        FL_CHECK(fl_base_make(x, 1000, 800, &base) == FL_MODEL_OK &&
                     abs(base.tree_mw - (int)lround(1e4 * (1 + x->v_excess) * (1 + x->v_excess))) <= 1,
                 "GPU %u: the clock tree takes V squared: %d mW", i, base.tree_mw);
        FL_CHECK(fx_near(x->thermal.leak_w_per_c / 0.1, x->c_w / 20, 1e-12), "GPU %u: leakage like C", i);
    }
    fl_workload_free(a.w);
    fl_workload_free(b.w);
    fl_node_spec_free(&a.spec);
    fl_node_spec_free(&b.spec);
}

/* The spread over many units is the one asked for. */
static void test_spread(void) {
    double sum = 0, squares = 0;
    const int n = 400;
    for (int i = 0; i < n; i++) {
        fx_rig r;
        fx_open(&r, 1);
        r.spec.device[0].v_sigma = 0.02;
        FX_MUST(fl_node_vary(&r.spec, 1000 + (uint64_t)i, d));
        sum += r.spec.device[0].v_excess;
        squares += r.spec.device[0].v_excess * r.spec.device[0].v_excess;
        fl_workload_free(r.w);
        fl_node_spec_free(&r.spec);
    }
    FL_CHECK(fabs(sum / n) < 0.003 && fabs(sqrt(squares / n) - 0.02) < 0.002, "mean %g, deviation %g", sum / n,
             sqrt(squares / n));
}

enum { UNITS = 5000 };

/* A node of very many GPUs: what three standard deviations mean shows only there. */
static void open_many(fx_rig *r, double v_sigma, double leak_sigma) {
    fx_open(r, 1);
    nx_heat(r, 90);
    r->spec.device[0].v_sigma = v_sigma;
    r->spec.device[0].leak_sigma = leak_sigma;
    free(r->spec.gpu);
    r->spec.gpu = fx_alloc(UNITS, sizeof *r->spec.gpu);
    r->spec.gpu_count = UNITS;
    FX_MUST(fl_node_vary(&r->spec, 7, d));
}

static void close_many(fx_rig *r) {
    fl_workload_free(r->w);
    fl_node_spec_free(&r->spec);
}

/* Nobody is beyond three standard deviations, of V(f) and of leakage, and some are close: of 5000 units 13 would be
 * beyond, 12 lie between 2.8 and 3. */
static void test_cut(void) {
    fx_rig r;
    open_many(&r, 0.01, 0.1);
    int beyond = 0, close = 0;
    for (uint32_t i = 0; i < UNITS; i++) {
        const double n[] = {fabs(r.spec.device[i].v_excess) / 0.01, fabs(r.spec.device[i].c_w / 20 - 1) / 0.1};
        for (int k = 0; k < 2; k++) {
            beyond += n[k] > 3 + 1e-9;
            close += n[k] > 2.8;
        }
    }
    FL_CHECK(beyond == 0 && close > 10, "%d beyond three standard deviations, %d close to it", beyond, close);
    close_many(&r);
}

/* However wide the spread, a unit leaks nothing rather than less than nothing. */
static void test_leak_floor(void) {
    fx_rig r;
    open_many(&r, 0, 0.5);
    int none = 0, below = 0;
    for (uint32_t i = 0; i < UNITS; i++) {
        const fl_device *dev = &r.spec.device[i];
        none += dev->c_w == 0 && dev->thermal.leak_w_per_c == 0;
        below += dev->c_w < 0 || dev->thermal.leak_w_per_c < 0;
    }
    FL_CHECK(below == 0 && none > 50 && none < 200, "%d below nothing, %d at nothing; expected 107 of 5000", below,
             none);
    close_many(&r);
}

FL_SUITE("vary", {"units", test_units}, {"spread", test_spread}, {"cut at three deviations", test_cut},
         {"no negative leakage", test_leak_floor})
