/* The back end for NVIDIA GPUs: facts, opening and closing. */
#include "harness/live/vendor/nvml/inside.h"

#include "harness/live/vendor/nvml/nvml.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- facts ---- */

static fl_status facts(void *self, uint32_t i, fl_gpu_facts *f, fl_diag *d) {
    fl_nvml_host *h = self;
    fl_nvml_gpu *g = &h->gpu[i];
    unsigned mhz = 0, low = 0, high = 0, standard = 0;
    (void)d;
    *f = (fl_gpu_facts){.name = g->name, .sm = {g->sm, g->sm_count}, .mem = {g->mem, g->mem_count}};
    f->default_sm_mhz = fl_ladder_max(f->sm);
    f->default_mem_mhz = fl_ladder_max(f->mem);
    if (!FL_NVML_CALL(h, max_clock, g->handle, FL_NVML_CLOCK_SM, &mhz) && mhz && mhz < f->default_sm_mhz)
        f->default_sm_mhz = mhz;
    if (!FL_NVML_CALL(h, max_clock, g->handle, FL_NVML_CLOCK_MEM, &mhz) && mhz && mhz < f->default_mem_mhz)
        f->default_mem_mhz = mhz;
    if (!FL_NVML_CALL(h, limit_range, g->handle, &low, &high)) {
        f->power_min_w = low / 1e3;
        f->power_max_w = high / 1e3;
    }
    if (!FL_NVML_CALL(h, limit_default, g->handle, &standard))
        f->tdp_w = f->power_default_w = standard / 1e3;
    return FL_OK;
}

static const char *library(void *self) { return ((fl_nvml_host *)self)->nvml.path; }
static const char *driver(void *self) { return ((fl_nvml_host *)self)->driver; }
static bool simulated(void *self) { return ((fl_nvml_host *)self)->set_records != NULL; }

/* ---- opening, closing ---- */

static uint32_t count(void *self) { return ((fl_nvml_host *)self)->count; }
static const char *unit(void *self, uint32_t i) { return ((fl_nvml_host *)self)->gpu[i].unit; }

static uint32_t index_of(void *self, uint32_t i) { return ((fl_nvml_host *)self)->gpu[i].index; }

static void spare(void *self, uint64_t signals) { ((fl_nvml_host *)self)->spared = signals; }

static void forget(void *self) {
    fl_nvml_host *h = self;
    for (uint32_t i = 0; i < h->count; i++) {
        memset(h->gpu[i].last, 0, sizeof h->gpu[i].last);
        h->gpu[i].energy = (fl_pace){0};
        h->gpu[i].gpm_taken = 0;
        h->gpu[i].gpm_known = false;
    }
}

static void close_host(void *self) {
    fl_nvml_host *h = self;
    for (uint32_t i = 0; i < h->count; i++) {
        for (int k = 0; k < FL_NVML_GPM_KEPT; k++)
            if (h->gpu[i].gpm[k])
                FL_NVML_CALL(h, gpm_free, h->gpu[i].gpm[k]);
        free(h->gpu[i].sm);
        free(h->gpu[i].mem);
    }
    fl_nvml_close(&h->nvml);
    free(h->gpu);
    free(h);
}

static const fl_backend BACKEND = {.name = "nvml",
                                   .vendor = "nvidia",
                                   .library = library,
                                   .driver = driver,
                                   .close = close_host,
                                   .count = count,
                                   .unit = unit,
                                   .index = index_of,
                                   .facts = facts,
                                   .read = fl_nvml_read,
                                   .spare = spare,
                                   .forget = forget,
                                   .prior = fl_nvml_prior,
                                   .set = fl_nvml_set,
                                   .restore = fl_nvml_restore,
                                   .hindrance = fl_nvml_hindrance,
                                   .limit_w = fl_nvml_limit_w,
                                   .note = fl_nvml_note,
                                   .simulated = simulated};

static fl_status add_gpu(void *self, uint32_t index, const char *list, fl_diag *d) {
    fl_nvml_host *h = self;
    fl_nvml_gpu *g = &h->gpu[h->count];
    *g = (fl_nvml_gpu){.index = index};
    int code = h->nvml.by_index(index, &g->handle);
    if (!code)
        code = h->nvml.uuid(g->handle, g->unit, sizeof g->unit);
    if (code)
        return fl_nvml_failed(h, g, "looking for it", code, d);
    if (!fl_gpus_listed(list, index, g->unit))
        return FL_OK;
    if (FL_NVML_CALL(h, name, g->handle, g->name, sizeof g->name))
        snprintf(g->name, sizeof g->name, "GPU %u", index);
    h->count++;
    return fl_nvml_ladders(h, g, d);
}

static fl_status find_gpus(const fl_gpus *opened, const char *list, fl_diag *missing, fl_diag *d) {
    fl_nvml_host *h = opened->self;
    unsigned all = 0;
    fl_status s = fl_nvml_open(&h->nvml, d);
    if (s)
        return s;
    if (!h->nvml.driver || h->nvml.driver(h->driver, sizeof h->driver) || !*h->driver)
        snprintf(h->driver, sizeof h->driver, "unknown");
    const int code = h->nvml.count(&all);
    if (code || !all || all > 1024)
        return fl_error(d, FL_HARDWARE, "no GPU: %s", code ? fl_nvml_reason(&h->nvml, code) : "none is listed");
    h->gpu = calloc(all, sizeof *h->gpu);
    if (!h->gpu)
        return fl_no_memory(d, "the GPUs");
    void *symbol = dlsym(h->nvml.library, "foldlineSetRecords");
    memcpy(&h->set_records, &symbol, sizeof symbol);
    return fl_gpus_gather(opened, all, list, add_gpu, missing, d);
}

fl_status fl_nvml_host_open(fl_gpus *out, const char *list, fl_diag *missing, fl_diag *d) {
    return fl_gpus_open(out, &BACKEND, sizeof(fl_nvml_host), find_gpus, list, missing, d);
}
