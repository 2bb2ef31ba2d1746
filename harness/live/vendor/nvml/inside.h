/* Shared by the parts of the NVML back end. nvml_host.c opens it and joins them: nvml_lists.c queries the clocks,
 * nvml_read.c reads, nvml_set.c sets and restores, nvml_tell.c answers doctor. */
#pragma once

#include "harness/live/vendor/backend.h"
#include "harness/live/vendor/nvml/extension.h"
#include "harness/live/vendor/nvml/nvml.h"
#include "harness/live/vendor/nvml/pace.h"
#include "sim/node/readout.h"

enum { FL_NVML_GPM_KEPT = 3 };

typedef struct fl_nvml_gpu {
    fl_nvml_device handle;
    unsigned index;
    char unit[FL_UNIT_MAX], name[96];
    int32_t *sm, *mem; /* ladders, ascending */
    uint32_t sm_count, mem_count;
    fl_seen last[FL_GPU_SIGNAL_COUNT];
    fl_pace energy;
    fl_nvml_sample gpm[FL_NVML_GPM_KEPT]; /* the last ones, in rotation */
    int64_t gpm_ns[FL_NVML_GPM_KEPT];
    uint64_t gpm_taken;
    bool gpm_known, gpm_off;
} fl_nvml_gpu;

typedef struct fl_nvml_host {
    fl_nvml nvml;
    char driver[80];
    fl_nvml_gpu *gpu;
    uint32_t count;
    uint64_t spared;                       /* signals that whoever reads can do without */
    fl_extension_set_records *set_records; /* of a simulated session; else NULL */
} fl_nvml_host;

/* FL_NVML_FUNCTION_NOT_FOUND where the library has no such call. */
#define FL_NVML_CALL(h, member, ...) ((h)->nvml.member ? (h)->nvml.member(__VA_ARGS__) : FL_NVML_FUNCTION_NOT_FOUND)

/* FL_IO where the driver refused and nothing changed (no permission, not supported), else FL_HARDWARE. */
fl_status fl_nvml_failed(fl_nvml_host *h, const fl_nvml_gpu *g, const char *what, int code, fl_diag *d);

/* The clocks that a GPU lists, as ladders (nvml_lists.c). FL_NO_MEMORY, else FL_OK, even where it lists none. */
fl_status fl_nvml_ladders(fl_nvml_host *h, fl_nvml_gpu *g, fl_diag *d);

/* As in fl_backend. */
fl_status fl_nvml_read(void *self, uint32_t i, uint64_t needs, int64_t t_ns, fl_gpu_sample *sample, fl_diag *d);
fl_status fl_nvml_set(void *self, uint32_t i, int control, double value, const fl_record *prior, fl_diag *d);
fl_status fl_nvml_prior(void *self, uint32_t i, uint64_t drives, fl_record *r, fl_diag *d);
fl_status fl_nvml_restore(void *self, uint32_t i, const fl_record *r, fl_diag *d);
const char *fl_nvml_hindrance(void *self, uint32_t i, int control);
double fl_nvml_limit_w(void *self, uint32_t i);
bool fl_nvml_note(void *self, uint32_t i, unsigned index, char *text, size_t size);
