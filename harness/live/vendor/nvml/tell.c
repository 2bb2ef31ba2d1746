#include "harness/live/vendor/nvml/inside.h"

#include <math.h>
#include <stdio.h>

static bool virtual_gpu(const fl_nvml_host *h, const fl_nvml_gpu *g) {
    int mode = 0;
    return !FL_NVML_CALL(h, virtualization, g->handle, &mode) && mode == 2;
}

const char *fl_nvml_hindrance(void *self, uint32_t i, int control) {
    const fl_nvml_host *h = self;
    const fl_nvml_gpu *g = &h->gpu[i];
    unsigned low = 0, high = 0;
    if (virtual_gpu(h, g))
        return "a virtual GPU; its host decides";
    switch (control) {
    case FL_SET_SM_MHZ:
        return !h->nvml.lock_sm ? "the library is too old to lock clocks"
               : !g->sm_count   ? "the GPU lists no clocks"
                                : NULL;
    case FL_SET_MEM_MHZ:
        return !h->nvml.lock_mem  ? "the library is too old to lock memory clocks"
               : g->mem_count < 2 ? "the GPU lists one memory clock only"
                                  : NULL;
    case FL_SET_POWER_LIMIT_W:
        return FL_NVML_CALL(h, limit_range, g->handle, &low, &high) || low >= high ? "the GPU has no range of limits"
                                                                                   : NULL;
    default:
        return NULL;
    }
}

double fl_nvml_limit_w(void *self, uint32_t i) {
    fl_nvml_host *h = self;
    unsigned mw = 0;
    return FL_NVML_CALL(h, limit, h->gpu[i].handle, &mw) ? (double)NAN : mw / 1e3;
}

bool fl_nvml_note(void *self, uint32_t i, unsigned index, char *text, size_t size) {
    const fl_nvml_host *h = self;
    const fl_nvml_gpu *g = &h->gpu[i];
    unsigned mig = 0, pending = 0;
    int persistent = 1;
    if (!FL_NVML_CALL(h, mig, g->handle, &mig, &pending) && mig && !index--) {
        snprintf(text, size, "MIG is on: utilisation is not reported, and clocks hold for all instances");
        return true;
    }
    if (!FL_NVML_CALL(h, persistence, g->handle, &persistent) && !persistent && !index--) {
        snprintf(text, size,
                 "persistence mode is off: locks and limits end when the last client closes the GPU.\n"
                 "              Administrator: nvidia-smi -pm 1, or keep a client open");
        return true;
    }
    return false;
}
