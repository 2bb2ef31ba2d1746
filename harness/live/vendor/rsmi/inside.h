/* Shared by the parts of the ROCm SMI back end. rsmi_host.c opens it and joins them: rsmi_read.c reads, rsmi_set.c sets
 * and restores. */
#pragma once

#include "harness/live/vendor/backend.h"
#include "harness/live/vendor/rsmi/rsmi.h"
#include "sim/instance/seen.h"

typedef struct fl_rsmi_gpu {
    uint32_t index; /* the library's own number */
    char unit[FL_UNIT_MAX], name[128];
    int32_t *sm, *mem; /* ladders, ascending */
    uint32_t sm_count, mem_count;
    bool ranged;   /* a range holds the SM clock; else the set of allowed clocks */
    bool held[2];  /* this process has limited the set of SM, memory clocks */
    bool answered; /* some reading succeeded before */
    fl_seen last[FL_GPU_SIGNAL_COUNT];
    uint64_t energy_ns; /* the counter's own time at the first reading */
    int64_t energy_origin_ns;
    bool energy_known;
} fl_rsmi_gpu;

typedef struct fl_rsmi_host {
    fl_rsmi rsmi;
    char driver[80];
    fl_rsmi_gpu *gpu;
    uint32_t count;
} fl_rsmi_host;

fl_status fl_rsmi_failed(const fl_rsmi_gpu *g, const char *what, fl_rsmi_code code, fl_diag *d);
static inline double fl_rsmi_mhz(uint64_t hz) { return (double)hz / 1e6; }

/* As in fl_backend. */
fl_status fl_rsmi_read(void *self, uint32_t i, uint64_t needs, int64_t t_ns, fl_gpu_sample *sample, fl_diag *d);
fl_status fl_rsmi_set(void *self, uint32_t i, int control, double value, const fl_record *prior, fl_diag *d);
fl_status fl_rsmi_prior(void *self, uint32_t i, uint64_t drives, fl_record *r, fl_diag *d);
fl_status fl_rsmi_restore(void *self, uint32_t i, const fl_record *r, fl_diag *d);
