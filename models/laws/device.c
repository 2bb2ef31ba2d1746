#include "models/laws/device.h"

#include <stdlib.h>
#include <string.h>

void fl_node_spec_free(fl_node_spec *n) {
    for (uint32_t i = 0; i < n->device_count; i++) {
        fl_device *d = &n->device[i];
        free(d->sm_mhz);
        free(d->mem_mhz);
        free(d->b0_w);
        fl_curve_free(d->voltage);
    }
    free(n->device);
    free(n->gpu);
    free(n->host.cpu.mhz);
    free(n->host.cpu.volt);
    free(n->host.cpu.boost_mhz);
    free(n->host.cpu.boost_volt);
    memset(n, 0, sizeof *n);
}

int fl_ladder_index(const int32_t *mhz, uint32_t count, double value) {
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (mhz[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && mhz[low] <= value ? (int)low : -1;
}

uint32_t fl_gpu_interference(const fl_device *dev) {
    return dev->interference > 0 ? (uint32_t)(dev->interference * 65536 + 0.5) : 0;
}
