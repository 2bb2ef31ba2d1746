/* A stand-in for Intel's Level Zero loader: GPUs of two tiles, ranges that can be read back, a sustained limit. State
 * is shared by all processes (stub_nvml.h), clocks in kHz. With STUB_OLD as a loader of 2022: no zesInit, no limit
 * descriptors; and without ZES_ENABLE_SYSMAN nothing answers. */
#include "tests/support/stub_common.h"

#include "harness/live/vendor/ze/inside.h"

enum { LOW = 300, HIGH = 1600, STEP = 50, RUNGS = (HIGH - LOW) / STEP + 1, MEM_MHZ = 1300 };
enum { CLOCK0, CLOCK1, CLOCK_MEM, POWER, POWER_TILE, ENGINE, COPY0, COPY1, HEAT, HEAT_GPU, MEMORY, KINDS };

/* A handle: GPU and kind of its part. */
static void *handle(unsigned gpu, unsigned kind) { return (void *)(uintptr_t)(1 + gpu * 64 + kind); }
static unsigned gpu_of(void *h) { return (unsigned)((uintptr_t)h - 1) / 64; }
static unsigned kind_of(void *h) { return (unsigned)((uintptr_t)h - 1) % 64; }

static fl_ze_code usable(void *h, stub_gpu **g) {
    if (!mapped)
        return FL_ZE_UNINITIALIZED;
    if (!h || gpu_of(h) >= mapped->gpus)
        return FL_ZE_INVALID;
    *g = &mapped->gpu[gpu_of(h)];
    return (fl_ze_code)(*g)->code;
}

static fl_ze_code settable(void *h, stub_gpu **g, int control, unsigned value) {
    fl_ze_code code = usable(h, g);
    if (!code)
        code = (fl_ze_code)(*g)->set_code;
    if (!code)
        audit(gpu_of(h), control, value, FL_ZE_LOST);
    return code;
}

/* ---- starting ---- */

static fl_ze_code list(uint32_t *count, void **out, uint32_t all, void *(*at)(uint32_t)) {
    if (!*count || *count > all)
        *count = all;
    for (uint32_t i = 0; out && i < *count; i++)
        out[i] = at(i);
    return FL_ZE_OK;
}

static fl_ze_code start(void) { return open_state() ? (fl_ze_code)mapped->init_code : FL_ZE_UNINITIALIZED; }
static void *driver_at(uint32_t i) { return (void *)(uintptr_t)(i + 1); }
static void *device_at(uint32_t i) { return handle(i, 0); }

#ifdef STUB_OLD
#define INIT zeInit
#define DRIVERS zeDriverGet
#define DEVICES zeDeviceGet
#else
#define INIT zesInit
#define DRIVERS zesDriverGet
#define DEVICES zesDeviceGet
#endif
API fl_ze_code INIT(uint32_t flags);
API fl_ze_code INIT(uint32_t flags) {
#ifdef STUB_OLD
    if (!getenv("ZES_ENABLE_SYSMAN") || flags != FL_ZE_GPU_ONLY)
        return FL_ZE_UNINITIALIZED;
#else
    if (flags)
        return FL_ZE_INVALID;
#endif
    return start();
}
API fl_ze_code DRIVERS(uint32_t *count, void **out);
API fl_ze_code DRIVERS(uint32_t *count, void **out) { return list(count, out, 1, driver_at); }
API fl_ze_code DEVICES(void *driver, uint32_t *count, void **out);
API fl_ze_code DEVICES(void *driver, uint32_t *count, void **out) {
    (void)driver;
    return list(count, out, mapped->gpus, device_at);
}
API fl_ze_code zesDeviceGetProperties(void *h, fl_ze_properties *p);
API fl_ze_code zesDeviceGetProperties(void *h, fl_ze_properties *p) {
    stub_gpu *g;
    fl_ze_code code = usable(h, &g);
    if (p->stype != FL_ZE_S_DEVICE || p->core.stype != FL_ZE_S_CORE)
        return FL_ZE_INVALID;
    p->core.type = FL_ZE_TYPE_GPU;
    p->core.slices = 8;
    p->core.subslices_per_slice = 16;
    p->core.eus_per_subslice = 8;
    p->core.simd_width = 16;
    memset(p->core.uuid, 0, sizeof p->core.uuid);
    p->core.uuid[0] = 0x80;
    p->core.uuid[15] = (uint8_t)gpu_of(h);
    snprintf(p->core.name, sizeof p->core.name, "Stub Max");
    snprintf(p->driver, sizeof p->driver, "stub 1.2");
    return code;
}

/* ---- what there is ---- */

static fl_ze_code parts(void *h, uint32_t *count, void **out, const unsigned *kinds, uint32_t all) {
    stub_gpu *g;
    fl_ze_code code = usable(h, &g);
    if (code)
        return code;
    const uint32_t room = *count;
    if (!*count || *count > all)
        *count = all;
    for (uint32_t i = 0; out && i < (mapped->boasts ? room : *count); i++) /* the first one again and again */
        out[i] = handle(gpu_of(h), kinds[i < all ? i : 0]);
    *count = mapped->boasts && room ? room + 1000 : *count;
    return FL_ZE_OK;
}
#define PARTS(name, ...)                                                                                               \
    API fl_ze_code name(void *h, uint32_t *count, void **out);                                                         \
    API fl_ze_code name(void *h, uint32_t *count, void **out) {                                                        \
        static const unsigned KIND[] = {__VA_ARGS__};                                                                  \
        return parts(h, count, out, KIND, sizeof KIND / sizeof *KIND);                                                 \
    }
PARTS(zesDeviceEnumFrequencyDomains, CLOCK0, CLOCK1, CLOCK_MEM)
PARTS(zesDeviceEnumPowerDomains, POWER_TILE, POWER)
PARTS(zesDeviceEnumEngineGroups, COPY0, ENGINE, COPY1)
PARTS(zesDeviceEnumTemperatureSensors, HEAT, HEAT_GPU)
PARTS(zesDeviceEnumMemoryModules, MEMORY)

API fl_ze_code zesFrequencyGetProperties(void *h, fl_ze_frequency *f);
API fl_ze_code zesFrequencyGetProperties(void *h, fl_ze_frequency *f) {
    stub_gpu *g;
    const bool mem = kind_of(h) == CLOCK_MEM;
    if (f->stype != FL_ZE_S_FREQUENCY)
        return FL_ZE_INVALID;
    f->type = mem ? FL_ZE_CLOCK_MEMORY : FL_ZE_CLOCK_GPU;
    f->on_subdevice = !mem;
    f->can_control = !mem;
    f->min = mem ? MEM_MHZ : LOW;
    f->max = mem ? MEM_MHZ : HIGH;
    return usable(h, &g);
}
API fl_ze_code zesPowerGetProperties(void *h, fl_ze_power *p);
API fl_ze_code zesPowerGetProperties(void *h, fl_ze_power *p) {
    stub_gpu *g;
    if (p->stype != FL_ZE_S_POWER)
        return FL_ZE_INVALID;
    p->on_subdevice = kind_of(h) == POWER_TILE;
    p->can_control = kind_of(h) == POWER;
    p->standard_mw = 250000;
    p->min_mw = 100000;
    p->max_mw = 300000;
    return usable(h, &g);
}
API fl_ze_code zesEngineGetProperties(void *h, fl_ze_engine *e);
API fl_ze_code zesEngineGetProperties(void *h, fl_ze_engine *e) {
    stub_gpu *g;
    if (e->stype != FL_ZE_S_ENGINE)
        return FL_ZE_INVALID;
    e->type = kind_of(h) == ENGINE ? FL_ZE_ENGINE_COMPUTE : FL_ZE_ENGINE_COPY_SINGLE;
    return usable(h, &g);
}
API fl_ze_code zesTemperatureGetProperties(void *h, fl_ze_temperature *t);
API fl_ze_code zesTemperatureGetProperties(void *h, fl_ze_temperature *t) {
    stub_gpu *g;
    if (t->stype != FL_ZE_S_TEMPERATURE)
        return FL_ZE_INVALID;
    t->type = kind_of(h) == HEAT_GPU ? FL_ZE_TEMPERATURE_GPU : FL_ZE_TEMPERATURE_GLOBAL;
    return usable(h, &g);
}
API fl_ze_code zesFrequencyGetAvailableClocks(void *h, uint32_t *count, double *mhz);
API fl_ze_code zesFrequencyGetAvailableClocks(void *h, uint32_t *count, double *mhz) {
    stub_gpu *g;
    const bool mem = kind_of(h) == CLOCK_MEM;
    const uint32_t standard = mem ? 1 : RUNGS, all = list_length(standard), room = *count;
    *count = !room || room > all ? all : room;
    for (uint32_t i = 0; mhz && i < *count; i++)
        mhz[i] = mem ? MEM_MHZ : LOW + (int)(i < standard ? i : standard - 1) * STEP;
    *count = mapped->boasts && room ? room + 1000 : *count;
    return usable(h, &g);
}

/* ---- reading ---- */

static unsigned khz_of(const stub_gpu *g) { return g->sm_max ? g->sm_max : HIGH * 1000; }

API fl_ze_code zesFrequencyGetState(void *h, fl_ze_state *s);
API fl_ze_code zesFrequencyGetState(void *h, fl_ze_state *s) {
    stub_gpu *g;
    fl_ze_code code = usable(h, &g);
    if (s->stype != FL_ZE_S_FREQUENCY_STATE)
        return FL_ZE_INVALID;
    if (code)
        return code;
    s->volts = s->request = s->tdp = s->efficient = -1;
    s->actual = kind_of(h) == CLOCK_MEM ? MEM_MHZ
                : kind_of(h) == CLOCK1  ? (g->sm2_max ? g->sm2_max * 1e-3 : HIGH)
                                        : khz_of(g) * 1e-3;
    s->held = kind_of(h) == CLOCK1 ? FL_ZE_HELD_BURST | FL_ZE_HELD_SOFTWARE : 0;
    return code;
}
API fl_ze_code zesPowerGetEnergyCounter(void *h, fl_ze_energy *e);
API fl_ze_code zesPowerGetEnergyCounter(void *h, fl_ze_energy *e) {
    stub_gpu *g;
    fl_ze_code code = usable(h, &g);
    if (code)
        return code;
    mapped->reads++;
    e->us = g->fixed ? g->energy_at : now_ns() / 1000u;
    e->uj = g->fixed ? g->energy : g->frozen ? 4242 : e->us * (60 + khz_of(g) / 10000);
    return code;
}
API fl_ze_code zesEngineGetActivity(void *h, fl_ze_activity *a);
API fl_ze_code zesEngineGetActivity(void *h, fl_ze_activity *a) {
    stub_gpu *g;
    fl_ze_code code = usable(h, &g);
    if (code)
        return code;
    a->us = g->fixed ? g->active_at : now_ns() / 1000u;
    const uint64_t phase = a->us % 400000;
    a->active_us = g->fixed               ? g->active
                   : kind_of(h) == ENGINE ? a->us / 400000 * 300000 + (phase < 300000 ? phase : 300000)
                                          : a->us / 10;
    return code;
}
API fl_ze_code zesTemperatureGetState(void *h, double *celsius);
API fl_ze_code zesTemperatureGetState(void *h, double *celsius) {
    stub_gpu *g;
    *celsius = kind_of(h) == HEAT_GPU ? 51.5 : 70;
    return usable(h, &g);
}
/* Needs permissions that nobody gives it here. */
API fl_ze_code zesMemoryGetBandwidth(void *h, fl_ze_bandwidth *b);
API fl_ze_code zesMemoryGetBandwidth(void *h, fl_ze_bandwidth *b) {
    (void)h;
    (void)b;
    return FL_ZE_NO_PERMISSION;
}

/* ---- setting; a range of 0 to 0 kHz is none ---- */

API fl_ze_code zesFrequencyGetRange(void *h, fl_ze_range *r);
API fl_ze_code zesFrequencyGetRange(void *h, fl_ze_range *r) {
    stub_gpu *g;
    fl_ze_code code = usable(h, &g);
    if (code)
        return code;
    const bool second = kind_of(h) == CLOCK1;
    const unsigned low = second ? g->sm2_min : g->sm_min, high = second ? g->sm2_max : g->sm_max;
    r->min = low ? low * 1e-3 : -1;
    r->max = high ? high * 1e-3 : -1;
    return code;
}
API fl_ze_code zesFrequencySetRange(void *h, const fl_ze_range *r);
API fl_ze_code zesFrequencySetRange(void *h, const fl_ze_range *r) {
    stub_gpu *g;
    const unsigned low = r->min > 0 ? (unsigned)(r->min * 1000 + 0.5) : 0,
                   high = r->max > 0 ? (unsigned)(r->max * 1000 + 0.5) : 0;
    if (kind_of(h) == CLOCK_MEM)
        return FL_ZE_UNSUPPORTED;
    fl_ze_code code = settable(h, &g, STUB_SM, high);
    if (!code && kind_of(h) == CLOCK1)
        set_ends(&g->sm2_min, &g->sm2_max, low, high);
    else if (!code)
        set_ends(&g->sm_min, &g->sm_max, low, high);
    return code;
}

#ifdef STUB_OLD
API fl_ze_code zesPowerGetLimits(void *h, fl_ze_sustained *s, void *burst, void *peak);
API fl_ze_code zesPowerGetLimits(void *h, fl_ze_sustained *s, void *burst, void *peak) {
    stub_gpu *g;
    fl_ze_code code = usable(h, &g);
    if (!code && (burst || peak || kind_of(h) != POWER))
        return FL_ZE_INVALID;
    if (!code)
        *s = (fl_ze_sustained){(uint8_t)g->limit_on, (int32_t)g->limit_mw, 28};
    return code;
}
API fl_ze_code zesPowerSetLimits(void *h, const fl_ze_sustained *s, const void *burst, const void *peak);
API fl_ze_code zesPowerSetLimits(void *h, const fl_ze_sustained *s, const void *burst, const void *peak) {
    stub_gpu *g;
    if (burst || peak || s->interval_ms != 28 || kind_of(h) != POWER)
        return FL_ZE_INVALID;
    fl_ze_code code = settable(h, &g, STUB_LIMIT, (unsigned)s->mw);
    if (!code) {
        g->limit_on = s->enabled;
        set_value(&g->limit_mw, (unsigned)s->mw);
    }
    return code;
}
#else
API fl_ze_code zesPowerGetLimitsExt(void *h, uint32_t *count, fl_ze_limit *l);
API fl_ze_code zesPowerGetLimitsExt(void *h, uint32_t *count, fl_ze_limit *l) {
    stub_gpu *g;
    fl_ze_code code = usable(h, &g);
    if (code)
        return code;
    const uint32_t room = *count;
    *count = *count && *count < 2 ? *count : 2;
    for (uint32_t i = 0; l && i < *count; i++) {
        if (l[i].stype != FL_ZE_S_LIMIT)
            return FL_ZE_INVALID;
        l[i].level = i ? FL_ZE_SUSTAINED : 3; /* the peak first, in mA and locked */
        l[i].unit = i ? FL_ZE_UNIT_POWER : 1;
        l[i].limit_locked = !i;
        l[i].enabled = i ? (uint8_t)g->limit_on : 1;
        l[i].interval_ms = 28;
        l[i].limit = i ? (int32_t)g->limit_mw : 9000;
    }
    *count = mapped->boasts && room ? room + 1000 : *count;
    return code;
}
API fl_ze_code zesPowerSetLimitsExt(void *h, uint32_t *count, fl_ze_limit *l);
API fl_ze_code zesPowerSetLimitsExt(void *h, uint32_t *count, fl_ze_limit *l) {
    stub_gpu *g;
    if (kind_of(h) != POWER || (*count != 2 && !mapped->boasts) || *count > 16 || l[0].limit != 9000 ||
        l[1].interval_ms != 28 || l[1].limit < 100000 || l[1].limit > 300000)
        return FL_ZE_INVALID;
    fl_ze_code code = settable(h, &g, STUB_LIMIT, (unsigned)l[1].limit);
    if (!code) {
        g->limit_on = l[1].enabled;
        set_value(&g->limit_mw, (unsigned)l[1].limit);
    }
    return code;
}
#endif
