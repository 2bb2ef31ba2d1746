#include "sim/pipeline/run.h"

#include "sim/node/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fl_status fl_pipeline_node(fl_node_spec *node, uint32_t ranks, const int32_t *mhz, uint32_t count, fl_diag *d) {
    const double x[2] = {1, mhz[count - 1] + 1.0}, y[2] = {1, 1};
    fl_device *dev = calloc(1, sizeof *dev);
    uint32_t *gpu = calloc(ranks, sizeof *gpu);
    *node = (fl_node_spec){.device = dev, .device_count = dev ? 1 : 0, .gpu = gpu, .gpu_count = ranks};
    if (!dev || !gpu)
        return fl_no_memory(d, "the pipeline");
    *dev = (fl_device){.sm_count = count, .mem_count = 1, .default_mem_mhz = 1, .sharpness = INFINITY};
    snprintf(dev->name, sizeof dev->name, "rank");
    snprintf(node->name, sizeof node->name, "ranks");
    dev->sm_mhz = calloc(count, sizeof *dev->sm_mhz);
    dev->mem_mhz = calloc(1, sizeof *dev->mem_mhz);
    dev->b0_w = calloc(1, sizeof *dev->b0_w);
    if (!dev->sm_mhz || !dev->mem_mhz || !dev->b0_w || fl_curve_new(&dev->voltage, x, y, 2))
        return fl_no_memory(d, "the pipeline");
    memcpy(dev->sm_mhz, mhz, count * sizeof *mhz);
    dev->mem_mhz[0] = 1;
    dev->default_sm_mhz = mhz[count - 1];
    return FL_OK;
}

fl_status fl_pipeline_run(const fl_pipeline *p, const fl_pipeline_order *o, const fl_node_spec *node,
                          const fl_pipeline_clocks *clocks, double *seconds, double *joules, fl_diag *d) {
    fl_workload *w = NULL;
    fl_rates *rates = NULL;
    fl_facts facts = {0};
    fl_run_result result = {0};
    fl_status s = fl_build_pipeline(&w, "the plan", p, o, node, 1, clocks, NULL, d);
    if (!s)
        s = fl_rates_new(&rates, w, node, d);
    const fl_run_options run = {.w = w, .rates = rates, .spec = node, .facts = &facts};
    if (!s)
        s = fl_run(&run, &result, d);
    if (!s) {
        *seconds = result.makespan_s;
        *joules = result.gpu_energy_j;
    }
    fl_run_result_free(&result);
    fl_rates_free(rates);
    fl_workload_free(w);
    return s;
}
