#include "sim/gpu/vary.h"

#include "policies/random.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void *copy_of(const void *from, size_t bytes) {
    void *to = malloc(bytes ? bytes : 1);
    return to ? memcpy(to, from, bytes) : NULL;
}

static double normal_cut(fl_random *r) {
    double x = fl_random_normal(r);
    while (fabs(x) > 3)
        x = fl_random_normal(r);
    return x;
}

/* A device that owns all of its arrays; false when out of memory, then *to owns what it has. */
static bool clone(const fl_device *from, fl_device *to) {
    *to = *from;
    to->sm_mhz = copy_of(from->sm_mhz, from->sm_count * sizeof *to->sm_mhz);
    to->mem_mhz = copy_of(from->mem_mhz, from->mem_count * sizeof *to->mem_mhz);
    to->b0_w = copy_of(from->b0_w, from->mem_count * sizeof *to->b0_w);
    to->voltage = NULL;
    return fl_curve_clone(&to->voltage, from->voltage) == FL_MODEL_OK && to->sm_mhz && to->mem_mhz && to->b0_w;
}

fl_status fl_node_vary(fl_node_spec *node, uint64_t seed, fl_diag *d) {
    fl_node_spec varied = {0};
    varied.device = calloc(node->gpu_count, sizeof *varied.device);
    varied.gpu = calloc(node->gpu_count, sizeof *varied.gpu);
    bool ok = varied.device && varied.gpu;
    for (uint32_t i = 0; ok && i < node->gpu_count; i++) {
        fl_device *dev = &varied.device[i];
        fl_random r = fl_random_seed(seed ^ UINT64_C(0x756e697473), i);
        ok = clone(&node->device[node->gpu[i]], dev);
        varied.device_count = i + 1;
        varied.gpu[i] = i;
        dev->v_excess = dev->v_sigma * normal_cut(&r);
        const double leak = fmax(0, 1 + dev->leak_sigma * normal_cut(&r));
        dev->c_w *= leak;
        dev->thermal.leak_w_per_c *= leak;
    }
    if (!ok) {
        fl_node_spec_free(&varied);
        return fl_no_memory(d, "the units");
    }
    fl_node_spec old = {.device = node->device, .device_count = node->device_count, .gpu = node->gpu};
    node->device = varied.device;
    node->device_count = varied.device_count;
    node->gpu = varied.gpu;
    fl_node_spec_free(&old);
    return FL_OK;
}
