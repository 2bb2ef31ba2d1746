/* A stand-in for the vendor's management library: several GPUs, locks, limits, errors on request, sets that take time
 * and can be cut half-way by a kill, and an audit of who set what. State is shared by all processes: see stub_nvml.h.
 * FOLDLINE_STUB_UUIDS: UUIDs as the CUDA driver gives them too (stub_cuda.c). STUB_NEW: without the calls that NVML 13
 * announces the end of, with those that follow them. */
#include "tests/support/stub_common.h"

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, INSUFFICIENT = 7, LOST = 15 };
enum { LOW = 210, HIGH = 1410, STEP = 15, RUNGS = (HIGH - LOW) / STEP + 1, MEM_LOW = 810, MEM_HIGH = 1215 };

typedef struct device *handle;
static handle of_index(unsigned i) { return (handle)(uintptr_t)(i + 1); }
static unsigned index_of(handle h) { return (unsigned)(uintptr_t)h - 1; }

static int usable(handle h, stub_gpu **g) {
    if (!mapped)
        return UNINITIALIZED;
    if (!h || index_of(h) >= mapped->gpus)
        return INVALID;
    *g = &mapped->gpu[index_of(h)];
    return (*g)->code;
}

API int nvmlInit_v2(void);
API int nvmlInit_v2(void) {
    if (!open_state())
        return 9;
    if (mapped->init_us)
        usleep(mapped->init_us);
    return mapped->init_code;
}
API int nvmlShutdown(void);
API int nvmlShutdown(void) { return OK; }
API const char *nvmlErrorString(int code);
API const char *nvmlErrorString(int code) {
    return code == NO_PERMISSION   ? "Insufficient Permissions"
           : code == LOST          ? "GPU is lost"
           : code == NOT_SUPPORTED ? "Not Supported"
           : code == 9             ? "Driver Not Loaded"
                                   : "Unknown Error";
}
API int nvmlSystemGetDriverVersion(char *text, unsigned size);
API int nvmlSystemGetDriverVersion(char *text, unsigned size) {
    snprintf(text, size, "stub");
    return OK;
}
API int nvmlDeviceGetCount_v2(unsigned *count);
API int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = mapped ? mapped->gpus : 0;
    return mapped ? OK : UNINITIALIZED;
}
API int nvmlDeviceGetHandleByIndex_v2(unsigned i, handle *h);
API int nvmlDeviceGetHandleByIndex_v2(unsigned i, handle *h) {
    stub_gpu *g;
    const int code = usable(of_index(i), &g);
    if (!code)
        *h = of_index(i);
    return code;
}
API int nvmlDeviceGetUUID(handle h, char *text, unsigned size);
API int nvmlDeviceGetUUID(handle h, char *text, unsigned size) {
    stub_gpu *g;
    const int code = usable(h, &g);
    if (!code)
        snprintf(text, size,
                 getenv("FOLDLINE_STUB_UUIDS") ? "GPU-00000000-0000-0000-0000-0000000000%02x" : "GPU-00000000-stub-%u",
                 index_of(h));
    return code;
}
API int nvmlDeviceGetName(handle h, char *text, unsigned size);
API int nvmlDeviceGetName(handle h, char *text, unsigned size) {
    (void)h;
    snprintf(text, size, "Stub GPU");
    return OK;
}

/* ---- reading: a load that comes and goes, faster at a higher clock ---- */

static unsigned clock_of(const stub_gpu *g) {
    return g->absurd ? g->absurd == 1 ? 1000000000 : 0 : g->sm_max && !g->deaf ? g->sm_max : HIGH;
}

API int nvmlDeviceGetUtilizationRates(handle h, unsigned *pair);
API int nvmlDeviceGetUtilizationRates(handle h, unsigned *pair) {
    stub_gpu *g;
    int code = usable(h, &g);
    unsigned phase = (unsigned)(now_ns() / 50000000u % 8u);
    pair[0] = phase < 6 ? 80 + phase : 5;
    pair[1] = phase < 6 ? 20 + 7 * phase : 1;
    if (!code && g->absurd)
        pair[0] = pair[1] = 4000000000u;
    mapped->reads += !code;
    return code;
}
API int nvmlDeviceGetClockInfo(handle h, int type, unsigned *mhz);
API int nvmlDeviceGetClockInfo(handle h, int type, unsigned *mhz) {
    stub_gpu *g;
    int code = usable(h, &g);
    if (!code)
        *mhz = type == 2 ? (g->mem_max ? g->mem_max : MEM_HIGH) : clock_of(g);
    return code;
}
API int nvmlDeviceGetMaxClockInfo(handle h, int type, unsigned *mhz);
API int nvmlDeviceGetMaxClockInfo(handle h, int type, unsigned *mhz) {
    stub_gpu *g;
    *mhz = type == 2 ? MEM_HIGH : HIGH;
    return usable(h, &g);
}
API int nvmlDeviceGetPowerUsage(handle h, unsigned *mw);
API int nvmlDeviceGetPowerUsage(handle h, unsigned *mw) {
    stub_gpu *g;
    int code = usable(h, &g);
    if (!code)
        *mw = g->absurd ? UINT32_MAX : 60000 + clock_of(g) * 100 + (unsigned)(now_ns() / 100000000u % 997u);
    return code;
}
API int nvmlDeviceGetTotalEnergyConsumption(handle h, unsigned long long *mj);
API int nvmlDeviceGetTotalEnergyConsumption(handle h, unsigned long long *mj) {
    stub_gpu *g;
    int code = usable(h, &g);
    if (code)
        return code;
    mapped->reads++;
    mapped->energy_reads++;
    *mj = g->counter ? g->counter : g->frozen ? 4242 : now_ns() / 100000000u * 15000u;
    return code;
}
#ifdef STUB_NEW
API int nvmlDeviceGetTemperatureV(handle h, int versioned[3]);
API int nvmlDeviceGetTemperatureV(handle h, int versioned[3]) { /* version, sensor, degrees */
    stub_gpu *g;
    if (versioned[0] != 0x0100000C || versioned[1])
        return 25;
    versioned[2] = 61;
    return usable(h, &g);
}
API int nvmlDeviceGetCurrentClocksEventReasons(handle h, unsigned long long *reasons);
API int nvmlDeviceGetCurrentClocksEventReasons(handle h, unsigned long long *reasons) {
    stub_gpu *g;
    *reasons = 0x20;
    return usable(h, &g);
}
#else
API int nvmlDeviceGetTemperature(handle h, int sensor, unsigned *celsius);
API int nvmlDeviceGetTemperature(handle h, int sensor, unsigned *celsius) {
    stub_gpu *g;
    (void)sensor;
    const int code = usable(h, &g);
    *celsius = !code && g->absurd ? UINT32_MAX : 50;
    return code;
}
/* Only the old name: the host must fall back to it. */
API int nvmlDeviceGetCurrentClocksThrottleReasons(handle h, unsigned long long *reasons);
API int nvmlDeviceGetCurrentClocksThrottleReasons(handle h, unsigned long long *reasons) {
    stub_gpu *g;
    const int code = usable(h, &g);
    *reasons = !code && g->quiet ? 0 : 0x4 | 0x40;
    return code;
}
API int nvmlDeviceGetViolationStatus(handle h, int policy, unsigned long long times[2]);
API int nvmlDeviceGetViolationStatus(handle h, int policy, unsigned long long times[2]) { /* reference us, ns */
    stub_gpu *g;
    const int code = usable(h, &g);
    times[0] = 9;
    times[1] = policy ? 2222 : 1111;
    return code ? code : g->violations && policy < 2 ? OK : NOT_SUPPORTED;
}
#endif

typedef struct field { /* nvmlFieldValue_t */
    unsigned id, scope;
    long long time_us, latency_us;
    unsigned type; /* 1 unsigned int, 3 unsigned long long */
    int code;
    union {
        unsigned u;
        unsigned long long ull;
    } value;
} field;

/* Success as a whole; how it went with each is in its entry. */
API int nvmlDeviceGetFieldValues(handle h, int count, field *f);
API int nvmlDeviceGetFieldValues(handle h, int count, field *f) {
    static const struct {
        unsigned id, type;
        int bit;
        unsigned long long value;
    } ROWS[] = {{74, 3, STUB_FIELD_POWER_VIOLATION, UINT64_C(5000000001)},
                {75, 3, STUB_FIELD_THERMAL_VIOLATION, UINT64_C(7000000002)},
                {186, 1, STUB_FIELD_POWER_INSTANT, 123456}};
    stub_gpu *g;
    const int code = usable(h, &g);
    for (int i = 0; i < count && !code; i++) {
        f[i].code = NOT_SUPPORTED;
        for (size_t k = 0; k < sizeof ROWS / sizeof *ROWS; k++)
            if (ROWS[k].id == f[i].id && g->fields & ROWS[k].bit) {
                f[i].type = ROWS[k].type;
                f[i].code = OK;
                if (ROWS[k].type == 1)
                    f[i].value.u = (unsigned)ROWS[k].value;
                else
                    f[i].value.ull = ROWS[k].value;
            }
    }
    return code;
}
/* From the top down; entries that came later are doubles of the last. */
static int give_list(unsigned *count, unsigned *clocks, unsigned standard, unsigned top, unsigned step) {
    const unsigned all = list_length(standard), room = *count;
    *count = all;
    if (room < all && !(mapped->boasts && room))
        return INSUFFICIENT;
    for (unsigned i = 0; i < all && i < room; i++)
        clocks[i] = top - (i < standard ? i : standard - 1) * step;
    if (mapped->boasts)
        *count = room + 1000;
    return OK;
}

API int nvmlDeviceGetSupportedMemoryClocks(handle h, unsigned *count, unsigned *clocks);
API int nvmlDeviceGetSupportedMemoryClocks(handle h, unsigned *count, unsigned *clocks) {
    stub_gpu *g;
    int code = usable(h, &g);
    if (code)
        return code;
    return give_list(count, clocks, 2, MEM_HIGH, MEM_HIGH - MEM_LOW);
}
API int nvmlDeviceGetSupportedGraphicsClocks(handle h, unsigned mem, unsigned *count, unsigned *clocks);
API int nvmlDeviceGetSupportedGraphicsClocks(handle h, unsigned mem, unsigned *count, unsigned *clocks) {
    stub_gpu *g;
    int code = usable(h, &g);
    if (code)
        return code;
    if (mem != MEM_LOW && mem != MEM_HIGH)
        return 6;
    return give_list(count, clocks, RUNGS, HIGH, STEP);
}
API int nvmlDeviceGetPowerManagementLimit(handle h, unsigned *mw);
API int nvmlDeviceGetPowerManagementLimit(handle h, unsigned *mw) {
    stub_gpu *g;
    int code = usable(h, &g);
    if (!code && mapped->sets)
        code = g->readback_code;
    if (!code)
        code = g->limit_code;
    if (!code)
        *mw = g->limit_mw;
    return code;
}
API int nvmlDeviceGetPowerManagementLimitConstraints(handle h, unsigned *low, unsigned *high);
API int nvmlDeviceGetPowerManagementLimitConstraints(handle h, unsigned *low, unsigned *high) {
    stub_gpu *g;
    *low = 100000;
    *high = 300000;
    return usable(h, &g);
}
API int nvmlDeviceGetPowerManagementDefaultLimit(handle h, unsigned *mw);
API int nvmlDeviceGetPowerManagementDefaultLimit(handle h, unsigned *mw) {
    stub_gpu *g;
    *mw = 250000;
    return usable(h, &g);
}

/* ---- profiling: samples are numbered, a metric of two is 1000 x the first + the second ---- */

enum { METRICS = 333 };
typedef struct sample {
    unsigned number;
} sample;
typedef struct metric {
    unsigned id;
    int code;
    double value;
    const char *text[3];
} metric;
typedef struct metrics {
    unsigned version, count;
    sample *first, *second;
    metric metric[METRICS];
} metrics;

API int nvmlGpmQueryDeviceSupport(handle h, unsigned *support);
API int nvmlGpmQueryDeviceSupport(handle h, unsigned *support) {
    stub_gpu *g;
    int code = usable(h, &g);
    if (!code)
        support[1] = (unsigned)g->gpm;
    return support[0] == 1 ? code : 25;
}
API int nvmlGpmSampleAlloc(sample **s);
API int nvmlGpmSampleAlloc(sample **s) {
    *s = calloc(1, sizeof **s);
    return OK;
}
API int nvmlGpmSampleFree(sample *s);
API int nvmlGpmSampleFree(sample *s) {
    free(s);
    return OK;
}
API int nvmlGpmSampleGet(handle h, sample *s);
API int nvmlGpmSampleGet(handle h, sample *s) {
    static unsigned samples;
    stub_gpu *g;
    int code = usable(h, &g);
    if (!code)
        code = g->gpm_code;
    if (!code)
        s->number = samples++;
    return code;
}
/* Writes the whole list, as a library of a later header may. */
API int nvmlGpmMetricsGet(metrics *m);
API int nvmlGpmMetricsGet(metrics *m) {
    if (m->version != 1)
        return 25;
    for (unsigned i = 0; i < METRICS; i++) {
        m->metric[i].code = i < m->count ? OK : INVALID;
        m->metric[i].value = 1000.0 * m->first->number + m->second->number;
    }
    return OK;
}

/* ---- setting ---- */

static int begin(handle h, int control, unsigned value, stub_gpu **g) {
    int code = usable(h, g);
    if (!code)
        code = (*g)->set_code;
    if (code)
        return code;
    audit(index_of(h), control, value, LOST);
    return OK;
}

static int set_range(handle h, int control, _Atomic unsigned *low, _Atomic unsigned *high, unsigned a, unsigned b) {
    stub_gpu *g;
    int code = begin(h, control, b, &g);
    if (code)
        return code;
    set_ends(low, high, a, b);
    return OK;
}

API int nvmlDeviceSetGpuLockedClocks(handle h, unsigned low, unsigned high);
API int nvmlDeviceSetGpuLockedClocks(handle h, unsigned low, unsigned high) {
    stub_gpu *g;
    int code = usable(h, &g);
    return code ? code : set_range(h, STUB_SM, &g->sm_min, &g->sm_max, low, high);
}
API int nvmlDeviceResetGpuLockedClocks(handle h);
API int nvmlDeviceResetGpuLockedClocks(handle h) { return nvmlDeviceSetGpuLockedClocks(h, 0, 0); }
API int nvmlDeviceSetMemoryLockedClocks(handle h, unsigned low, unsigned high);
API int nvmlDeviceSetMemoryLockedClocks(handle h, unsigned low, unsigned high) {
    stub_gpu *g;
    int code = usable(h, &g);
    return code ? code : set_range(h, STUB_MEM, &g->mem_min, &g->mem_max, low, high);
}
API int nvmlDeviceResetMemoryLockedClocks(handle h);
API int nvmlDeviceResetMemoryLockedClocks(handle h) { return nvmlDeviceSetMemoryLockedClocks(h, 0, 0); }
API int nvmlDeviceSetPowerManagementLimit(handle h, unsigned mw);
API int nvmlDeviceSetPowerManagementLimit(handle h, unsigned mw) {
    stub_gpu *g;
    int code = begin(h, STUB_LIMIT, mw, &g);
    if (code)
        return code;
    if (mw < 100000 || mw > 300000)
        return INVALID;
    set_value(&g->limit_mw, g->step_mw ? mw / g->step_mw * g->step_mw : mw);
    return OK;
}
