/* The back end for AMD GPUs: ladders, facts, opening and closing. */
#include "harness/live/vendor/rsmi/inside.h"

#include "harness/live/vendor/rsmi/rsmi.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the library accepts any whole MHz of a range, a ladder of all of them would keep policies busy that try rung by
 * rung, so the ladder is coarser (the step is assumed). */
enum { RANGE_STEP_MHZ = 25 };

/* ---- ladders ---- */

static fl_status read_ladder(fl_rsmi_host *h, fl_rsmi_gpu *g, int clock, int32_t **out, uint32_t *out_count,
                             fl_diag *d) {
    fl_rsmi_clocks c = {0};
    uint32_t count, current, n = 0;
    const uint64_t *hz;
    if (FL_RSMI_CALL(&h->rsmi, clocks, g->index, clock, &c) || !fl_rsmi_clocks_of(&c, &count, &current, &hz))
        return FL_OK;
    if (!(*out = calloc(count, sizeof **out)))
        return fl_no_memory(d, "the clocks");
    for (uint32_t i = 0; i < count; i++)
        if (fl_rsmi_mhz(hz[i]) < 1e5)
            (*out)[n++] = (int32_t)lrint(fl_rsmi_mhz(hz[i]));
    *out_count = fl_gpus_ladder(*out, n);
    return FL_OK;
}

/* A GPU that reports a range of its SM clock can be held at any clock in it. */
static fl_status read_range(fl_rsmi_host *h, fl_rsmi_gpu *g, fl_diag *d) {
    fl_rsmi_overdrive o = {0};
    if (!h->rsmi.set_range || FL_RSMI_CALL(&h->rsmi, overdrive, g->index, &o) || !o.sm.high)
        return FL_OK;
    const int32_t bottom = g->sm_count ? g->sm[0] : 0, top = g->sm_count ? g->sm[g->sm_count - 1] : 0;
    const int32_t low = o.sm_limits.high ? (int32_t)lrint(fl_rsmi_mhz(o.sm_limits.low)) : bottom,
                  high = o.sm_limits.high ? (int32_t)lrint(fl_rsmi_mhz(o.sm_limits.high)) : top;
    if (low <= 0 || high <= low || high > 100000)
        return FL_OK;
    int32_t *mhz = calloc((size_t)(high - low) / RANGE_STEP_MHZ + 2, sizeof *mhz);
    if (!mhz)
        return fl_no_memory(d, "the clocks");
    uint32_t n = 0;
    for (int32_t at = low; at < high; at += RANGE_STEP_MHZ)
        mhz[n++] = at;
    mhz[n++] = high;
    free(g->sm);
    g->sm = mhz;
    g->sm_count = n;
    g->ranged = true;
    return FL_OK;
}

/* ---- a GPU ---- */

static fl_status add_gpu(void *self, uint32_t index, const char *list, fl_diag *d) {
    fl_rsmi_host *h = self;
    fl_rsmi_gpu *g = &h->gpu[h->count];
    uint64_t id = 0;
    *g = (fl_rsmi_gpu){.index = index};
    if (!FL_RSMI_CALL(&h->rsmi, unique_id, index, &id) && id)
        snprintf(g->unit, sizeof g->unit, "%s%016" PRIx64, FL_RSMI_PREFIX, id);
    else if (!FL_RSMI_CALL(&h->rsmi, pci_id, index, &id))
        snprintf(g->unit, sizeof g->unit, "%spci-%" PRIx64, FL_RSMI_PREFIX, id);
    else
        return fl_rsmi_failed(g, "looking for it", FL_RSMI_NOT_SUPPORTED, d);
    if (!fl_gpus_listed(list, index, g->unit))
        return FL_OK;
    if (FL_RSMI_CALL(&h->rsmi, name, index, g->name, sizeof g->name) || !*g->name)
        snprintf(g->name, sizeof g->name, "GPU %u", index);
    h->count++;
    fl_status s = read_ladder(h, g, FL_RSMI_CLOCK_SM, &g->sm, &g->sm_count, d);
    if (!s)
        s = read_ladder(h, g, FL_RSMI_CLOCK_MEM, &g->mem, &g->mem_count, d);
    return s ? s : read_range(h, g, d);
}

/* ---- calls of the back end ---- */

static uint32_t count(void *self) { return ((fl_rsmi_host *)self)->count; }
static const char *unit(void *self, uint32_t i) { return ((fl_rsmi_host *)self)->gpu[i].unit; }
static uint32_t index_of(void *self, uint32_t i) { return ((fl_rsmi_host *)self)->gpu[i].index; }
static const char *library(void *self) { return ((fl_rsmi_host *)self)->rsmi.path; }
static const char *driver(void *self) { return ((fl_rsmi_host *)self)->driver; }

static fl_status facts(void *self, uint32_t i, fl_gpu_facts *f, fl_diag *d) {
    fl_rsmi_host *h = self;
    const fl_rsmi_gpu *g = &h->gpu[i];
    uint64_t low = 0, high = 0, standard = 0;
    (void)d;
    *f = (fl_gpu_facts){.name = g->name, .sm = {g->sm, g->sm_count}, .mem = {g->mem, g->mem_count}};
    f->default_sm_mhz = fl_ladder_max(f->sm);
    f->default_mem_mhz = fl_ladder_max(f->mem);
    if (!FL_RSMI_CALL(&h->rsmi, cap_range, g->index, 0, &high, &low)) {
        f->power_min_w = (double)low / 1e6;
        f->power_max_w = (double)high / 1e6;
    }
    f->power_default_w =
        !FL_RSMI_CALL(&h->rsmi, cap_default, g->index, &standard) && standard ? (double)standard / 1e6 : f->power_max_w;
    f->tdp_w = f->power_default_w;
    return FL_OK;
}

static double limit_w(void *self, uint32_t i) {
    fl_rsmi_host *h = self;
    uint64_t uw = 0;
    return FL_RSMI_CALL(&h->rsmi, cap, h->gpu[i].index, 0, &uw) ? (double)NAN : (double)uw / 1e6;
}

static const char *hindrance(void *self, uint32_t i, int control) {
    fl_rsmi_host *h = self;
    const fl_rsmi_gpu *g = &h->gpu[i];
    fl_gpu_facts f;
    int level = 0;
    if (control == FL_SET_POWER_LIMIT_W) {
        facts(self, i, &f, NULL);
        return !h->rsmi.set_cap                   ? "the library has no call for it"
               : !(f.power_max_w > f.power_min_w) ? "the GPU has no range of power caps"
                                                  : NULL;
    }
    const bool sm = control == FL_SET_SM_MHZ;
    if (!(sm && g->ranged) && (!h->rsmi.set_clocks || !h->rsmi.set_level))
        return "the library has no call for it";
    if (FL_RSMI_CALL(&h->rsmi, level, g->index, &level))
        return "its performance level cannot be read, so it could not be restored";
    return (sm ? g->sm_count : g->mem_count) > 1 ? NULL : "the GPU lists one clock only";
}

static bool note(void *self, uint32_t i, unsigned index, char *text, size_t size) {
    fl_rsmi_host *h = self;
    int level = 0;
    if (!FL_RSMI_CALL(&h->rsmi, level, h->gpu[i].index, &level) && level == FL_RSMI_LEVEL_MANUAL && !index--) {
        snprintf(text, size,
                 "its performance level is manual: which clocks were allowed cannot be read, restoring allows all");
        return true;
    }
    if (!index)
        snprintf(text, size, "this back end was tested against a stub of ROCm SMI only, not yet on hardware");
    return !index;
}

static void forget(void *self) {
    fl_rsmi_host *h = self;
    for (uint32_t i = 0; i < h->count; i++) {
        memset(h->gpu[i].last, 0, sizeof h->gpu[i].last);
        h->gpu[i].energy_known = false;
    }
}

static void close_host(void *self) {
    fl_rsmi_host *h = self;
    for (uint32_t i = 0; i < h->count; i++) {
        free(h->gpu[i].sm);
        free(h->gpu[i].mem);
    }
    fl_rsmi_close(&h->rsmi);
    free(h->gpu);
    free(h);
}

static const fl_backend BACKEND = {.name = "rocm-smi",
                                   .vendor = "amd",
                                   .close = close_host,
                                   .library = library,
                                   .driver = driver,
                                   .count = count,
                                   .unit = unit,
                                   .index = index_of,
                                   .facts = facts,
                                   .read = fl_rsmi_read,
                                   .prior = fl_rsmi_prior,
                                   .set = fl_rsmi_set,
                                   .restore = fl_rsmi_restore,
                                   .forget = forget,
                                   .hindrance = hindrance,
                                   .limit_w = limit_w,
                                   .note = note};

static fl_status find_gpus(const fl_gpus *opened, const char *list, fl_diag *missing, fl_diag *d) {
    fl_rsmi_host *h = opened->self;
    uint32_t all = 0;
    fl_status s = fl_rsmi_open(&h->rsmi, d);
    if (s)
        return s;
    if (FL_RSMI_CALL(&h->rsmi, version, FL_RSMI_COMPONENT_DRIVER, h->driver, sizeof h->driver) || !*h->driver)
        snprintf(h->driver, sizeof h->driver, "unknown");
    const fl_rsmi_code code = h->rsmi.count(&all);
    if (code || !all || all > 1024)
        return fl_error(d, FL_HARDWARE, "no AMD GPU: %s", code ? fl_rsmi_reason(code) : "ROCm SMI lists none");
    if (!(h->gpu = calloc(all, sizeof *h->gpu)))
        return fl_no_memory(d, "the GPUs");
    return fl_gpus_gather(opened, all, list, add_gpu, missing, d);
}

fl_status fl_rsmi_host_open(fl_gpus *out, const char *list, fl_diag *missing, fl_diag *d) {
    return fl_gpus_open(out, &BACKEND, sizeof(fl_rsmi_host), find_gpus, list, missing, d);
}
