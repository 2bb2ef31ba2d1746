/* What the files of the Level Zero back end share: ze.c makes the calls, read.c reads, sets and restores, host.c opens
 * the GPUs. */
#pragma once

#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct fl_ze_driver_ *fl_ze_driver; /* the library's handles */
typedef struct fl_ze_device_ *fl_ze_device;
typedef struct fl_ze_part_ *fl_ze_part; /* of a frequency, power, engine, temperature or memory domain */

typedef enum fl_ze_code { /* ze_result_t */
                          FL_ZE_OK = 0,
                          FL_ZE_LOST = 0x70000001,
                          FL_ZE_NEEDS_RESET = 0x70000006,
                          FL_ZE_NO_PERMISSION = 0x70010000,
                          FL_ZE_NOT_AVAILABLE = 0x70010001,
                          FL_ZE_DEPENDENCY = 0x70020000,
                          FL_ZE_UNINITIALIZED = 0x78000001,
                          FL_ZE_UNSUPPORTED = 0x78000003,
                          FL_ZE_INVALID = 0x78000004,
                          FL_ZE_UNKNOWN = 0x7ffffffe
} fl_ze_code;

enum { FL_ZE_GPU_ONLY = 1, FL_ZE_TYPE_GPU = 1 }; /* ze_init_flag_t, ze_device_type_t */
enum {                                           /* structure types */
       FL_ZE_S_CORE = 3,                         /* ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES, the rest ZES_ */
       FL_ZE_S_DEVICE = 1,
       FL_ZE_S_ENGINE = 5,
       FL_ZE_S_FREQUENCY = 9,
       FL_ZE_S_POWER = 13,
       FL_ZE_S_TEMPERATURE = 20,
       FL_ZE_S_FREQUENCY_STATE = 27,
       FL_ZE_S_LIMIT = 39
};
enum { FL_ZE_CLOCK_GPU = 0, FL_ZE_CLOCK_MEMORY = 1 }; /* zes_freq_domain_t */
enum {                                                /* zes_engine_group_t */
       FL_ZE_ENGINE_ALL = 0,
       FL_ZE_ENGINE_COMPUTE = 1,
       FL_ZE_ENGINE_COPY = 3,
       FL_ZE_ENGINE_COPY_SINGLE = 8,
       FL_ZE_ENGINE_RENDER_COMPUTE = 11
};
enum { FL_ZE_TEMPERATURE_GLOBAL = 0, FL_ZE_TEMPERATURE_GPU = 1 }; /* zes_temp_sensors_t */
enum { FL_ZE_SUSTAINED = 1, FL_ZE_UNIT_POWER = 2 };               /* zes_power_level_t, zes_limit_unit_t */
enum {                                                            /* zes_freq_throttle_reason_flag_t */
       FL_ZE_HELD_POWER = 1,
       FL_ZE_HELD_BURST = 2,
       FL_ZE_HELD_CURRENT = 4,
       FL_ZE_HELD_HEAT = 8,
       FL_ZE_HELD_SUPPLY = 16,
       FL_ZE_HELD_SOFTWARE = 32, /* held by the range that was set: not throttling */
       FL_ZE_HELD_HARDWARE = 64
};

typedef struct fl_ze_core { /* ze_device_properties_t */
    int32_t stype;
    void *next;
    int32_t type;
    uint32_t vendor, device, flags, subdevice, clock;
    uint64_t alloc_max;
    uint32_t contexts, priority, threads_per_eu, simd_width, eus_per_subslice, subslices_per_slice, slices;
    uint64_t timer;
    uint32_t timestamp_bits, kernel_timestamp_bits;
    uint8_t uuid[16];
    char name[256];
} fl_ze_core;

typedef struct fl_ze_properties { /* zes_device_properties_t */
    int32_t stype;
    void *next;
    fl_ze_core core;
    uint32_t subdevices;
    char serial[64], board[64], brand[64], model[64], vendor[64], driver[64];
} fl_ze_properties;

typedef struct fl_ze_frequency { /* zes_freq_properties_t */
    int32_t stype;
    void *next;
    int32_t type;
    uint8_t on_subdevice;
    uint32_t subdevice;
    uint8_t can_control, throttle_events;
    double min, max;
} fl_ze_frequency;

typedef struct fl_ze_range { /* zes_freq_range_t: -1 hands back */
    double min, max;
} fl_ze_range;

typedef struct fl_ze_state { /* zes_freq_state_t; below 0 = not known */
    int32_t stype;
    const void *next;
    double volts, request, tdp, efficient, actual;
    uint32_t held;
} fl_ze_state;

typedef struct fl_ze_power { /* zes_power_properties_t; limits -1 = not known */
    int32_t stype;
    void *next;
    uint8_t on_subdevice;
    uint32_t subdevice;
    uint8_t can_control, threshold;
    int32_t standard_mw, min_mw, max_mw;
} fl_ze_power;

typedef struct fl_ze_energy { /* zes_power_energy_counter_t */
    uint64_t uj, us;
} fl_ze_energy;

typedef struct fl_ze_sustained { /* zes_power_sustained_limit_t */
    uint8_t enabled;
    int32_t mw, interval_ms;
} fl_ze_sustained;

typedef struct fl_ze_limit { /* zes_power_limit_ext_desc_t */
    int32_t stype;
    const void *next;
    int32_t level, source, unit;
    uint8_t enabled_locked, enabled, interval_locked;
    int32_t interval_ms;
    uint8_t limit_locked;
    int32_t limit;
} fl_ze_limit;

typedef struct fl_ze_engine { /* zes_engine_properties_t */
    int32_t stype;
    void *next;
    int32_t type;
    uint8_t on_subdevice;
    uint32_t subdevice;
} fl_ze_engine;

typedef struct fl_ze_activity { /* zes_engine_stats_t */
    uint64_t active_us, us;
} fl_ze_activity;

typedef struct fl_ze_temperature { /* zes_temp_properties_t */
    int32_t stype;
    void *next;
    int32_t type;
    uint8_t on_subdevice;
    uint32_t subdevice;
    double max;
    uint8_t critical, threshold1, threshold2;
} fl_ze_temperature;

typedef struct fl_ze_bandwidth { /* zes_mem_bandwidth_t */
    uint64_t read, write, max_per_s, us;
} fl_ze_bandwidth;

/* X(member, required, parameters, symbol). zesInit and its related calls (specification 1.5) need neither
 * ZES_ENABLE_SYSMAN nor the core driver. A loader that lacks them starts through zeInit, whose device handles Sysman
 * accepts too. */
#define FL_ZE_CALLS(X)                                                                                                 \
    X(zes_init, 0, (uint32_t flags), "zesInit")                                                                        \
    X(zes_drivers, 0, (uint32_t *, fl_ze_driver *), "zesDriverGet")                                                    \
    X(zes_devices, 0, (fl_ze_driver, uint32_t *, fl_ze_device *), "zesDeviceGet")                                      \
    X(ze_init, 0, (uint32_t flags), "zeInit")                                                                          \
    X(ze_drivers, 0, (uint32_t *, fl_ze_driver *), "zeDriverGet")                                                      \
    X(ze_devices, 0, (fl_ze_driver, uint32_t *, fl_ze_device *), "zeDeviceGet")                                        \
    X(properties, 1, (fl_ze_device, fl_ze_properties *), "zesDeviceGetProperties")                                     \
    X(clocks, 1, (fl_ze_device, uint32_t *, fl_ze_part *), "zesDeviceEnumFrequencyDomains")                            \
    X(clock_properties, 1, (fl_ze_part, fl_ze_frequency *), "zesFrequencyGetProperties")                               \
    X(clock_list, 0, (fl_ze_part, uint32_t *, double *), "zesFrequencyGetAvailableClocks")                             \
    X(clock_range, 0, (fl_ze_part, fl_ze_range *), "zesFrequencyGetRange")                                             \
    X(set_clock_range, 0, (fl_ze_part, const fl_ze_range *), "zesFrequencySetRange")                                   \
    X(clock_state, 0, (fl_ze_part, fl_ze_state *), "zesFrequencyGetState")                                             \
    X(powers, 0, (fl_ze_device, uint32_t *, fl_ze_part *), "zesDeviceEnumPowerDomains")                                \
    X(power_properties, 0, (fl_ze_part, fl_ze_power *), "zesPowerGetProperties")                                       \
    X(energy, 0, (fl_ze_part, fl_ze_energy *), "zesPowerGetEnergyCounter")                                             \
    X(limits, 0, (fl_ze_part, fl_ze_sustained *, void *, void *), "zesPowerGetLimits")                                 \
    X(set_limits, 0, (fl_ze_part, const fl_ze_sustained *, const void *, const void *), "zesPowerSetLimits")           \
    X(limits_ext, 0, (fl_ze_part, uint32_t *, fl_ze_limit *), "zesPowerGetLimitsExt")                                  \
    X(set_limits_ext, 0, (fl_ze_part, uint32_t *, fl_ze_limit *), "zesPowerSetLimitsExt")                              \
    X(engines, 0, (fl_ze_device, uint32_t *, fl_ze_part *), "zesDeviceEnumEngineGroups")                               \
    X(engine_properties, 0, (fl_ze_part, fl_ze_engine *), "zesEngineGetProperties")                                    \
    X(activity, 0, (fl_ze_part, fl_ze_activity *), "zesEngineGetActivity")                                             \
    X(temperatures, 0, (fl_ze_device, uint32_t *, fl_ze_part *), "zesDeviceEnumTemperatureSensors")                    \
    X(temperature_properties, 0, (fl_ze_part, fl_ze_temperature *), "zesTemperatureGetProperties")                     \
    X(temperature, 0, (fl_ze_part, double *), "zesTemperatureGetState")                                                \
    X(memories, 0, (fl_ze_device, uint32_t *, fl_ze_part *), "zesDeviceEnumMemoryModules")                             \
    X(bandwidth, 0, (fl_ze_part, fl_ze_bandwidth *), "zesMemoryGetBandwidth")

#define FL_ROW_ZE_MEMBER(member, must, parameters, symbol) fl_ze_code(*member) parameters;
typedef struct fl_ze {
    void *library;
    char path[256]; /* the name under which it was requested */
    FL_ZE_CALLS(FL_ROW_ZE_MEMBER)
} fl_ze;

/* FL_ZE_UNSUPPORTED where the library has no such call. */
#define FL_ZE_CALL(z, member, ...) ((z)->member ? (z)->member(__VA_ARGS__) : FL_ZE_UNSUPPORTED)

/* Opens $FOLDLINE_ZE where set, else libze_loader.so.1, and initialises it. FL_HARDWARE, with one line that names what
 * is missing: the library, a call, or the driver. Accepts a zeroed struct; leaves it zeroed on failure. After success
 * the library is never closed: it has no call for that, and its threads outlive a dlclose. */
fl_status fl_ze_open(fl_ze *z, fl_diag *d);

const char *fl_ze_reason(fl_ze_code code);
int fl_ze_gone(fl_ze_code code); /* the GPU or its driver is gone: no later call will succeed */

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
