/* Shared by the parts of the Level Zero back end. ze_host.c opens it and joins them: ze_read.c reads, ze_set.c sets and
 * restores. */
#pragma once

#include "harness/live/vendor/backend.h"
#include "sim/instance/seen.h"
#include "harness/live/vendor/ze/ze.h"

enum { FL_ZE_PARTS_MAX = 16 }; /* more of one kind are ignored */

typedef struct fl_ze_parts {
    fl_ze_part part[FL_ZE_PARTS_MAX];
    uint32_t count;
} fl_ze_parts;

typedef struct fl_ze_gpu {
    fl_ze_device handle;
    unsigned index;
    char unit[FL_UNIT_MAX], name[256];
    /* A GPU of several tiles has a domain on each. The reported clock is their mean, and a lock goes to all. */
    fl_ze_parts sm, mem, compute, copy, memory;
    fl_ze_part power, heat;    /* NULL = none */
    int32_t *sm_mhz, *mem_mhz; /* ladders, ascending, whole MHz */
    uint32_t sm_count, mem_count;
    double sm_step, mem_step; /* widest gap between rungs: a clock may read back this far off */
    bool sm_control, mem_control, power_control;
    fl_ze_power limits;
    uint32_t slices, cores_per_slice;
    fl_seen last[FL_GPU_SIGNAL_COUNT];
    fl_ze_energy energy;      /* at the last reading */
    int64_t energy_origin_ns; /* host time of counter time 0 */
    bool energy_known, busy_known;
    double busy_us, busy_at_us;
} fl_ze_gpu;

typedef struct fl_ze_host {
    fl_ze ze;
    char driver[64];
    fl_ze_gpu *gpu;
    uint32_t count;
} fl_ze_host;

fl_status fl_ze_failed(const fl_ze_gpu *g, const char *what, fl_ze_code code, fl_diag *d);

/* As in fl_backend. */
fl_status fl_ze_read(void *self, uint32_t i, uint64_t needs, int64_t t_ns, fl_gpu_sample *sample, fl_diag *d);
fl_status fl_ze_set(void *self, uint32_t i, int control, double value, const fl_record *prior, fl_diag *d);
fl_status fl_ze_prior(void *self, uint32_t i, uint64_t drives, fl_record *r, fl_diag *d);
fl_status fl_ze_restore(void *self, uint32_t i, const fl_record *r, fl_diag *d);
double fl_ze_limit_w(void *self, uint32_t i);
