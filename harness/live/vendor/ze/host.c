/* The back end for Intel GPUs: domains, facts, opening and closing. */
#include "harness/live/vendor/ze/inside.h"

#include "harness/live/vendor/vendor.h"
#include "harness/live/vendor/ze/ze.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- domains ---- */

typedef fl_ze_code lister(fl_ze_device, uint32_t *, fl_ze_part *);

static fl_ze_parts list_parts(lister *list, fl_ze_device device) {
    fl_ze_parts p = {.count = FL_ZE_PARTS_MAX};
    if (!list || list(device, &p.count, p.part))
        p.count = 0;
    if (p.count > FL_ZE_PARTS_MAX) /* the number that exists, not the number that was returned */
        p.count = FL_ZE_PARTS_MAX;
    return p;
}

static void keep_part(fl_ze_parts *to, fl_ze_part part) {
    if (to->count < FL_ZE_PARTS_MAX)
        to->part[to->count++] = part;
}

static void find_clocks(fl_ze_host *h, fl_ze_gpu *g) {
    const fl_ze_parts all = list_parts(h->ze.clocks, g->handle);
    for (uint32_t i = 0; i < all.count; i++) {
        fl_ze_frequency f = {.stype = FL_ZE_S_FREQUENCY};
        if (h->ze.clock_properties(all.part[i], &f) || (f.type != FL_ZE_CLOCK_GPU && f.type != FL_ZE_CLOCK_MEMORY))
            continue;
        const bool sm = f.type == FL_ZE_CLOCK_GPU;
        keep_part(sm ? &g->sm : &g->mem, all.part[i]);
        *(sm ? &g->sm_control : &g->mem_control) = f.can_control;
    }
}

/* The domain of the whole card where there is one, since limits and energy of a tile are not the board's. */
static void find_power(fl_ze_host *h, fl_ze_gpu *g) {
    const fl_ze_parts all = list_parts(h->ze.powers, g->handle);
    g->limits = (fl_ze_power){.standard_mw = -1, .min_mw = -1, .max_mw = -1};
    for (uint32_t i = 0; i < all.count; i++) {
        fl_ze_power p = {.stype = FL_ZE_S_POWER};
        if (FL_ZE_CALL(&h->ze, power_properties, all.part[i], &p) || (g->power && p.on_subdevice))
            continue;
        g->power = all.part[i];
        g->limits = p;
        g->power_control = p.can_control;
        if (!p.on_subdevice)
            break;
    }
}

/* The first existing group of these types. */
static void find_engines(fl_ze_host *h, fl_ze_gpu *g, const int32_t *types, size_t count, fl_ze_parts *to) {
    const fl_ze_parts all = list_parts(h->ze.engines, g->handle);
    for (size_t t = 0; t < count && !to->count; t++)
        for (uint32_t i = 0; i < all.count; i++) {
            fl_ze_engine e = {.stype = FL_ZE_S_ENGINE};
            if (!FL_ZE_CALL(&h->ze, engine_properties, all.part[i], &e) && e.type == types[t])
                keep_part(to, all.part[i]);
        }
}

static void find_heat(fl_ze_host *h, fl_ze_gpu *g) {
    const fl_ze_parts all = list_parts(h->ze.temperatures, g->handle);
    for (uint32_t i = 0; i < all.count; i++) {
        fl_ze_temperature t = {.stype = FL_ZE_S_TEMPERATURE};
        if (FL_ZE_CALL(&h->ze, temperature_properties, all.part[i], &t))
            continue;
        if (t.type == FL_ZE_TEMPERATURE_GPU || (t.type == FL_ZE_TEMPERATURE_GLOBAL && !g->heat))
            g->heat = all.part[i];
    }
}

/* Clocks that are not whole MHz (steps of 16.67) are rounded: the driver rounds a set clock to its own steps. */
static fl_status read_ladder(fl_ze_host *h, const fl_ze_parts *parts, int32_t **out, uint32_t *out_count, double *step,
                             fl_diag *d) {
    uint32_t count = 0;
    *step = 1;
    if (!parts->count || FL_ZE_CALL(&h->ze, clock_list, parts->part[0], &count, NULL) || !count || count > 100000)
        return FL_OK;
    const uint32_t room = count; /* the list, and with it the count, may have grown before it is fetched */
    double *mhz = calloc(room, sizeof *mhz);
    int32_t *rungs = calloc(room, sizeof *rungs);
    if (!mhz || !rungs) {
        free(mhz);
        free(rungs);
        return fl_no_memory(d, "the clocks");
    }
    uint32_t n = 0;
    if (!h->ze.clock_list(parts->part[0], &count, mhz))
        for (uint32_t i = 0; i < count && i < room; i++)
            if (mhz[i] >= 1 && mhz[i] < 100000)
                rungs[n++] = (int32_t)lrint(mhz[i]);
    *out_count = fl_gpus_ladder(rungs, n);
    *out = rungs;
    for (uint32_t i = 1; i < *out_count; i++)
        *step = fmax(*step, rungs[i] - rungs[i - 1]);
    free(mhz);
    return FL_OK;
}

/* ---- a GPU ---- */

static void name_gpu(fl_ze_host *h, fl_ze_gpu *g, const fl_ze_properties *p) {
    static const uint8_t none[16];
    int at = snprintf(g->unit, sizeof g->unit, "%s", FL_ZE_PREFIX);
    for (int i = 0; i < 16; i++)
        at += snprintf(g->unit + at, sizeof g->unit - (size_t)at, "%02x", p->core.uuid[i]);
    if (!memcmp(p->core.uuid, none, sizeof none)) /* an old driver */
        snprintf(g->unit, sizeof g->unit, "%snumber-%u", FL_ZE_PREFIX, g->index);
    snprintf(g->name, sizeof g->name, "%.255s", *p->core.name ? p->core.name : p->model);
    snprintf(h->driver, sizeof h->driver, "%.63s", *p->driver ? p->driver : "unknown");
    g->slices = p->core.slices * p->core.subslices_per_slice;
    g->cores_per_slice = p->core.eus_per_subslice * p->core.simd_width;
}

/* On entry the handles stand in h->gpu at their numbers; the accepted ones move to the front. */
static fl_status add_gpu(void *self, uint32_t index, const char *list, fl_diag *d) {
    fl_ze_host *h = self;
    static const int32_t COMPUTE[] = {FL_ZE_ENGINE_COMPUTE, FL_ZE_ENGINE_RENDER_COMPUTE, FL_ZE_ENGINE_ALL},
                         COPY[] = {FL_ZE_ENGINE_COPY, FL_ZE_ENGINE_COPY_SINGLE};
    fl_ze_properties p = {.stype = FL_ZE_S_DEVICE, .core = {.stype = FL_ZE_S_CORE}};
    fl_ze_gpu *g = &h->gpu[h->count];
    *g = (fl_ze_gpu){.handle = h->gpu[index].handle, .index = index};
    fl_ze_code code = h->ze.properties(g->handle, &p);
    if (code)
        return fl_ze_failed(g, "looking for it", code, d);
    name_gpu(h, g, &p);
    if (!fl_gpus_listed(list, g->index, g->unit))
        return FL_OK;
    h->count++;
    find_clocks(h, g);
    find_power(h, g);
    find_heat(h, g);
    find_engines(h, g, COMPUTE, sizeof COMPUTE / sizeof *COMPUTE, &g->compute);
    find_engines(h, g, COPY, sizeof COPY / sizeof *COPY, &g->copy);
    g->memory = list_parts(h->ze.memories, g->handle);
    fl_status s = read_ladder(h, &g->sm, &g->sm_mhz, &g->sm_count, &g->sm_step, d);
    return s ? s : read_ladder(h, &g->mem, &g->mem_mhz, &g->mem_count, &g->mem_step, d);
}

/* ---- calls of the back end ---- */

static uint32_t count(void *self) { return ((fl_ze_host *)self)->count; }
static const char *unit(void *self, uint32_t i) { return ((fl_ze_host *)self)->gpu[i].unit; }
static uint32_t index_of(void *self, uint32_t i) { return ((fl_ze_host *)self)->gpu[i].index; }
static const char *library(void *self) { return ((fl_ze_host *)self)->ze.path; }
static const char *driver(void *self) { return ((fl_ze_host *)self)->driver; }

static fl_status facts(void *self, uint32_t i, fl_gpu_facts *f, fl_diag *d) {
    const fl_ze_gpu *g = &((fl_ze_host *)self)->gpu[i];
    (void)d;
    *f = (fl_gpu_facts){.name = g->name, .sm = {g->sm_mhz, g->sm_count}, .mem = {g->mem_mhz, g->mem_count}};
    f->default_sm_mhz = fl_ladder_max(f->sm);
    f->default_mem_mhz = fl_ladder_max(f->mem);
    f->power_min_w = g->limits.min_mw > 0 ? g->limits.min_mw / 1e3 : 0;
    f->power_max_w = g->limits.max_mw > 0 ? g->limits.max_mw / 1e3 : 0;
    f->tdp_w = f->power_default_w = g->limits.standard_mw > 0 ? g->limits.standard_mw / 1e3 : 0;
    f->sm_count = g->slices;
    f->cores_per_sm = g->cores_per_slice;
    return FL_OK;
}

static const char *hindrance(void *self, uint32_t i, int control) {
    const fl_ze_host *h = self;
    const fl_ze_gpu *g = &h->gpu[i];
    const bool power = control == FL_SET_POWER_LIMIT_W, sm = control == FL_SET_SM_MHZ;
    if (power ? !h->ze.set_limits_ext && !h->ze.set_limits : !h->ze.set_clock_range || !h->ze.clock_range)
        return "the loader has no call for it";
    if (power ? !g->power : !(sm ? g->sm.count : g->mem.count))
        return "the driver has no such domain";
    return (power ? g->power_control
            : sm  ? g->sm_control
                  : g->mem_control)
               ? NULL
               : "the driver lets nobody control it";
}

static bool note(void *self, uint32_t i, unsigned index, char *text, size_t size) {
    const fl_ze_gpu *g = &((fl_ze_host *)self)->gpu[i];
    if (g->sm.count > 1 && !index--) {
        snprintf(text, size, "%u tiles: clocks and activity are their mean, a lock goes to all", g->sm.count);
        return true;
    }
    if (!index)
        snprintf(text, size, "this back end was tested against a stub of Level Zero only, not yet on hardware");
    return !index;
}

static void forget(void *self) {
    fl_ze_host *h = self;
    for (uint32_t i = 0; i < h->count; i++) {
        memset(h->gpu[i].last, 0, sizeof h->gpu[i].last);
        h->gpu[i].energy_known = h->gpu[i].busy_known = false;
    }
}

static void close_host(void *self) {
    fl_ze_host *h = self;
    for (uint32_t i = 0; i < h->count; i++) {
        free(h->gpu[i].sm_mhz);
        free(h->gpu[i].mem_mhz);
    }
    free(h->gpu);
    free(h);
}

static const fl_backend BACKEND = {.name = "level-zero",
                                   .vendor = "intel",
                                   .close = close_host,
                                   .library = library,
                                   .driver = driver,
                                   .count = count,
                                   .unit = unit,
                                   .index = index_of,
                                   .facts = facts,
                                   .read = fl_ze_read,
                                   .prior = fl_ze_prior,
                                   .set = fl_ze_set,
                                   .restore = fl_ze_restore,
                                   .forget = forget,
                                   .hindrance = hindrance,
                                   .limit_w = fl_ze_limit_w,
                                   .note = note};

enum { DRIVERS_MAX = 8, DEVICES_MAX = 64 };

static bool is_gpu(const fl_ze_host *h, fl_ze_device device) {
    fl_ze_properties p = {.stype = FL_ZE_S_DEVICE, .core = {.stype = FL_ZE_S_CORE}};
    return h->ze.properties(device, &p) ||
           p.core.type == FL_ZE_TYPE_GPU; /* a device that does not answer may be a GPU */
}

static fl_status find_gpus(const fl_gpus *opened, const char *list, fl_diag *missing, fl_diag *d) {
    fl_ze_host *h = opened->self;
    fl_ze_driver drivers[DRIVERS_MAX];
    fl_ze_device devices[DEVICES_MAX];
    uint32_t driver_count = DRIVERS_MAX, all = 0;
    fl_status s = fl_ze_open(&h->ze, d);
    if (s)
        return s;
    fl_ze_code code = h->ze.zes_drivers(&driver_count, drivers);
    if (!(h->gpu = calloc((size_t)DRIVERS_MAX * DEVICES_MAX, sizeof *h->gpu)))
        return fl_no_memory(d, "the GPUs");
    for (uint32_t k = 0; !code && k < driver_count && k < DRIVERS_MAX; k++) {
        uint32_t device_count = DEVICES_MAX;
        if (h->ze.zes_devices(drivers[k], &device_count, devices)) /* of a driver without devices */
            continue;
        for (uint32_t i = 0; i < device_count && i < DEVICES_MAX; i++)
            if (is_gpu(h, devices[i]))
                h->gpu[all++].handle = devices[i];
    }
    if (code || !all)
        return fl_error(d, FL_HARDWARE, "no Intel GPU: %s", code ? fl_ze_reason(code) : "Level Zero lists none");
    return fl_gpus_gather(opened, all, list, add_gpu, missing, d);
}

fl_status fl_ze_host_open(fl_gpus *out, const char *list, fl_diag *missing, fl_diag *d) {
    return fl_gpus_open(out, &BACKEND, sizeof(fl_ze_host), find_gpus, list, missing, d);
}
