/* The vendor's management library, opened at run time, with own declarations of the calls that Foldline makes and
 * without an SDK.
 *
 * Names of symbols, codes, layouts and units are those of the public interface (NVML 11.3 to 13.3). Of a call that
 * exists in several versions the newest is used; an optional call that is absent is NULL. Clocks are in MHz, power in
 * mW, energy in mJ. Every call returns an fl_nvml_code. */
#pragma once

#include "traces/io/diag.h"

typedef struct fl_nvml_device_ *fl_nvml_device; /* the library's handle of a GPU */
typedef struct fl_nvml_sample_ *fl_nvml_sample; /* its buffer of profiling counters */

enum { /* results of calls */
       FL_NVML_OK = 0,
       FL_NVML_UNINITIALIZED = 1,
       FL_NVML_INVALID_ARGUMENT = 2,
       FL_NVML_NOT_SUPPORTED = 3,
       FL_NVML_NO_PERMISSION = 4,
       FL_NVML_INSUFFICIENT_SIZE = 7,
       FL_NVML_DRIVER_NOT_LOADED = 9,
       FL_NVML_FUNCTION_NOT_FOUND = 13,
       FL_NVML_GPU_IS_LOST = 15,
       FL_NVML_RESET_REQUIRED = 16,
       FL_NVML_MISMATCH = 18,
       FL_NVML_UNKNOWN = 999
};
enum { FL_NVML_CLOCK_SM = 1, FL_NVML_CLOCK_MEM = 2 };
enum { /* reasons that hold a clock down */
       FL_NVML_REASON_IDLE = 0x1,
       FL_NVML_REASON_SETTING = 0x2,
       FL_NVML_REASON_POWER_CAP = 0x4,
       FL_NVML_REASON_HW_SLOWDOWN = 0x8,
       FL_NVML_REASON_SYNC = 0x10,
       FL_NVML_REASON_SW_THERMAL = 0x20,
       FL_NVML_REASON_HW_THERMAL = 0x40,
       FL_NVML_REASON_POWER_BRAKE = 0x80,
       FL_NVML_REASON_DISPLAY = 0x100
};
enum { FL_NVML_FIELD_POWER_VIOLATION = 74, FL_NVML_FIELD_THERMAL_VIOLATION = 75, FL_NVML_FIELD_POWER_INSTANT = 186 };
enum { FL_NVML_POLICY_POWER = 0, FL_NVML_POLICY_THERMAL = 1 };
enum { FL_NVML_GPM_SM_UTIL = 2, FL_NVML_GPM_DRAM_UTIL = 10 };

typedef struct fl_nvml_utilisation {
    unsigned gpu, memory; /* percent */
} fl_nvml_utilisation;

typedef struct fl_nvml_temperature {
    unsigned version; /* FL_NVML_TEMPERATURE_VERSION */
    unsigned sensor;
    int celsius;
} fl_nvml_temperature;
#define FL_NVML_TEMPERATURE_VERSION 0x0100000Cu

typedef struct fl_nvml_violation {
    unsigned long long reference_us, violation_ns;
} fl_nvml_violation;

typedef union fl_nvml_value {
    double real;
    unsigned u;
    unsigned long ul;
    unsigned long long ull;
    long long ll;
} fl_nvml_value;

typedef struct fl_nvml_field {
    unsigned id, scope;
    long long time_us, latency_us;
    unsigned type;
    int code;
    fl_nvml_value value;
} fl_nvml_field;

typedef struct fl_nvml_metric {
    unsigned id;
    int code;
    double value;
    const char *text[3];
} fl_nvml_metric;

enum { FL_NVML_METRICS_MAX = 333 }; /* 98, 210 or 333 by the header's age: a library may write that many */

typedef struct fl_nvml_metrics { /* the caller requests metric[0..count) */
    unsigned version, count;
    fl_nvml_sample first, second;
    fl_nvml_metric metric[FL_NVML_METRICS_MAX];
} fl_nvml_metrics;

typedef struct fl_nvml_support {
    unsigned version, supported;
} fl_nvml_support;

_Static_assert(sizeof(fl_nvml_field) == 40 && sizeof(fl_nvml_metric) == 40 && sizeof(fl_nvml_violation) == 16 &&
                   sizeof(fl_nvml_temperature) == 12,
               "layouts are those of the interface");

/* X(member, required, parameters, newest symbol, older symbol or NULL) */
#define FL_NVML_CALLS(X)                                                                                               \
    X(init, 1, (void), "nvmlInit_v2", "nvmlInit")                                                                      \
    X(shutdown, 1, (void), "nvmlShutdown", NULL)                                                                       \
    X(count, 1, (unsigned *), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")                                           \
    X(by_index, 1, (unsigned, fl_nvml_device *), "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")        \
    X(uuid, 1, (fl_nvml_device, char *, unsigned), "nvmlDeviceGetUUID", NULL)                                          \
    X(name, 0, (fl_nvml_device, char *, unsigned), "nvmlDeviceGetName", NULL)                                          \
    X(driver, 0, (char *, unsigned), "nvmlSystemGetDriverVersion", NULL)                                               \
    X(utilisation, 0, (fl_nvml_device, fl_nvml_utilisation *), "nvmlDeviceGetUtilizationRates", NULL)                  \
    X(clock, 0, (fl_nvml_device, int, unsigned *), "nvmlDeviceGetClockInfo", NULL)                                     \
    X(max_clock, 0, (fl_nvml_device, int, unsigned *), "nvmlDeviceGetMaxClockInfo", NULL)                              \
    X(power, 0, (fl_nvml_device, unsigned *), "nvmlDeviceGetPowerUsage", NULL)                                         \
    X(energy, 0, (fl_nvml_device, unsigned long long *), "nvmlDeviceGetTotalEnergyConsumption", NULL)                  \
    X(temperature_v, 0, (fl_nvml_device, fl_nvml_temperature *), "nvmlDeviceGetTemperatureV", NULL)                    \
    X(temperature, 0, (fl_nvml_device, int, unsigned *), "nvmlDeviceGetTemperature", NULL)                             \
    X(reasons, 0, (fl_nvml_device, unsigned long long *), "nvmlDeviceGetCurrentClocksEventReasons",                    \
      "nvmlDeviceGetCurrentClocksThrottleReasons")                                                                     \
    X(violation, 0, (fl_nvml_device, int, fl_nvml_violation *), "nvmlDeviceGetViolationStatus", NULL)                  \
    X(fields, 0, (fl_nvml_device, int, fl_nvml_field *), "nvmlDeviceGetFieldValues", NULL)                             \
    X(mem_clocks, 0, (fl_nvml_device, unsigned *, unsigned *), "nvmlDeviceGetSupportedMemoryClocks", NULL)             \
    X(sm_clocks, 0, (fl_nvml_device, unsigned, unsigned *, unsigned *), "nvmlDeviceGetSupportedGraphicsClocks", NULL)  \
    X(lock_sm, 0, (fl_nvml_device, unsigned, unsigned), "nvmlDeviceSetGpuLockedClocks", NULL)                          \
    X(reset_sm, 0, (fl_nvml_device), "nvmlDeviceResetGpuLockedClocks", NULL)                                           \
    X(lock_mem, 0, (fl_nvml_device, unsigned, unsigned), "nvmlDeviceSetMemoryLockedClocks", NULL)                      \
    X(reset_mem, 0, (fl_nvml_device), "nvmlDeviceResetMemoryLockedClocks", NULL)                                       \
    X(limit, 0, (fl_nvml_device, unsigned *), "nvmlDeviceGetPowerManagementLimit", NULL)                               \
    X(limit_range, 0, (fl_nvml_device, unsigned *, unsigned *), "nvmlDeviceGetPowerManagementLimitConstraints", NULL)  \
    X(limit_default, 0, (fl_nvml_device, unsigned *), "nvmlDeviceGetPowerManagementDefaultLimit", NULL)                \
    X(set_limit, 0, (fl_nvml_device, unsigned), "nvmlDeviceSetPowerManagementLimit", NULL)                             \
    X(persistence, 0, (fl_nvml_device, int *), "nvmlDeviceGetPersistenceMode", NULL)                                   \
    X(virtualization, 0, (fl_nvml_device, int *), "nvmlDeviceGetVirtualizationMode", NULL)                             \
    X(mig, 0, (fl_nvml_device, unsigned *, unsigned *), "nvmlDeviceGetMigMode", NULL)                                  \
    X(gpm_support, 0, (fl_nvml_device, fl_nvml_support *), "nvmlGpmQueryDeviceSupport", NULL)                          \
    X(gpm_alloc, 0, (fl_nvml_sample *), "nvmlGpmSampleAlloc", NULL)                                                    \
    X(gpm_free, 0, (fl_nvml_sample), "nvmlGpmSampleFree", NULL)                                                        \
    X(gpm_get, 0, (fl_nvml_device, fl_nvml_sample), "nvmlGpmSampleGet", NULL)                                          \
    X(gpm_metrics, 0, (fl_nvml_metrics *), "nvmlGpmMetricsGet", NULL)

#define FL_ROW_NVML_MEMBER(member, must, parameters, newest, older) int(*member) parameters;
typedef struct fl_nvml {
    void *library;
    char path[256];           /* the name under which it was requested */
    const char *(*text)(int); /* nvmlErrorString; may be NULL */
    FL_NVML_CALLS(FL_ROW_NVML_MEMBER)
} fl_nvml;

/* Opens $FOLDLINE_NVML where set, else libnvidia-ml.so.1, and initialises it. FL_HARDWARE, with one line that names
 * what is missing: the library, a call, or the driver. Accepts a zeroed struct; leaves it zeroed on failure. */
fl_status fl_nvml_open(fl_nvml *n, fl_diag *d);
void fl_nvml_close(fl_nvml *n);

/* The meaning of a code, in the library's words where it has some. */
const char *fl_nvml_reason(const fl_nvml *n, int code);

/* The GPU or its driver is gone: no later call will succeed. */
int fl_nvml_gone(int code);
