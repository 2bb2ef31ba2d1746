#include "harness/input/platform/facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A first-order lag has less than 2 % of a change left after four of its time constants: its settling time (Ogata,
 * "Modern Control Engineering", 5-3). */
#define LAG_CONSTANTS 4

/* A change just after a refresh shows whole in the first window that begins after it. At least 1 ns: 0 is not known. */
static int64_t lag_of(const fl_sensor_spec *s) {
    const int64_t ns = s->period_ns + s->window_ns + s->delay_ns + LAG_CONSTANTS * s->lag_ns;
    return !s->present ? 0 : ns > 0 ? ns : 1;
}

static int64_t settle_of(const fl_actuator_spec *a) {
    const int64_t ns = a->call_ns + a->settle_ns;
    return ns > 0 ? ns : 1;
}

/* Beside a share a time for each kernel is not the whole cost, and a policy would count too little. */
static int64_t records_of(const fl_device *dev) {
    return dev->records_slowdown > 0 ? 0 : (int64_t)(dev->records_kernel_s * 1e9 + 0.5);
}

static fl_status law_of(const fl_device *dev, fl_power_law *law, fl_diag *d) {
    double *volt = calloc(dev->sm_count + 1, sizeof *volt), b0_w = NAN;
    if (!volt)
        return fl_no_memory(d, "the facts");
    for (uint32_t i = 0; i < dev->mem_count; i++)
        if (dev->mem_mhz[i] == dev->default_mem_mhz)
            b0_w = dev->b0_w[i];
    int known = dev->voltage != NULL && !isnan(b0_w);
    for (uint32_t i = 0; known && i < dev->sm_count; i++)
        known = fl_curve_at(dev->voltage, dev->sm_mhz[i], 1, &volt[i]) == FL_MODEL_OK;
    if (!known) {
        free(volt);
        return FL_OK;
    }
    *law = (fl_power_law){volt, dev->a_w, dev->a0_w, dev->b_w, b0_w, dev->c_w};
    return FL_OK;
}

fl_status fl_facts_make(const fl_node_spec *node, uint64_t seed, fl_facts *facts, fl_diag *d) {
    fl_gpu_facts *gpu = calloc(node->gpu_count ? node->gpu_count : 1, sizeof *gpu);
    const fl_host_spec *h = &node->host;
    *facts = (fl_facts){.seed = seed,
                        .gpu_count = node->gpu_count,
                        .gpu = gpu,
                        .host = {.name = h->name,
                                 .cpu = {h->cpu.mhz, h->cpu.count},
                                 .boost = {h->cpu.boost_mhz, h->cpu.boost_count},
                                 .power_min_w = h->cpu.power_min_w,
                                 .power_max_w = h->cpu.power_max_w,
                                 .power_default_w = h->cpu.power_default_w,
                                 .peak_bytes_per_s = h->peak_bytes_per_s,
                                 .cores = h->cores,
                                 .apu = h->apu != 0}};
    fl_status s = gpu ? FL_OK : fl_no_memory(d, NULL);
    for (uint32_t g = 0; !s && g < node->gpu_count; g++) {
        const fl_device *dev = &node->device[node->gpu[g]];
        gpu[g] = (fl_gpu_facts){.name = dev->name,
                                .sm = {dev->sm_mhz, dev->sm_count},
                                .mem = {dev->mem_mhz, dev->mem_count},
                                .power_lag_ns = lag_of(&dev->sensor[FL_SENSOR_POWER]),
                                .settle_ns = settle_of(&dev->actuator),
                                .records_ns = records_of(dev),
                                .default_sm_mhz = dev->default_sm_mhz,
                                .default_mem_mhz = dev->default_mem_mhz,
                                .power_min_w = dev->power_min_w,
                                .power_max_w = dev->power_max_w,
                                .power_default_w = dev->power_default_w,
                                .tdp_w = dev->tdp_w,
                                .peak_bytes_per_s = dev->peak_bytes_per_s,
                                .sm_count = dev->sms,
                                .cores_per_sm = dev->cores_per_sm};
        s = law_of(dev, &gpu[g].law, d);
    }
    if (s)
        fl_facts_free(facts);
    return s;
}

void fl_facts_free(fl_facts *facts) {
    for (uint32_t g = 0; facts->gpu && g < facts->gpu_count; g++)
        free((double *)(uintptr_t)facts->gpu[g].law.volt);
    free((void *)(uintptr_t)facts->gpu);
    memset(facts, 0, sizeof *facts);
}

void fl_facts_state(const fl_stated_facts *s, fl_facts *facts) {
    facts->bound = s->bound;
    facts->deadline_ns = (int64_t)(s->deadline_s * 1e9 + 0.5);
    facts->expected_ns = (int64_t)(s->expected_s * 1e9 + 0.5);
    facts->streams = (uint64_t)s->streams;
}
