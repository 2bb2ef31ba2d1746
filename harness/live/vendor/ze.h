/* Intel's Level Zero, System Resource Management (Sysman), opened at run time, with own declarations of the calls that
 * Foldline makes and without an SDK.
 *
 * Names of symbols, codes, layouts and units are those of the oneAPI Level Zero specification 1.8. (zes_api.h and
 * ze_api.h of Debian's libze-dev 1.8.12 have the same; tests/live/test_vendor_headers.c compares them where they are
 * installed.) Clocks are in MHz, power in mW, energy in uJ, times in us, temperatures in degrees Celsius. */
#pragma once

#include "traces/diag.h"

#include <stddef.h>
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
int fl_ze_gone(fl_ze_code code);    /* the GPU or its driver is gone: no later call will succeed */
int fl_ze_refused(fl_ze_code code); /* the call was refused and nothing has changed */

/* Signals that Sysman has calls for. */
#define FL_ZE_READS                                                                                                    \
    (FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS) | FL_BIT(FL_GPU_UTIL_GPU_PCT) |       \
     FL_BIT(FL_GPU_COMPUTE_NS) | FL_BIT(FL_GPU_COPY_NS) | FL_BIT(FL_GPU_DRAM_BYTES) | FL_BIT(FL_GPU_SM_MHZ) |          \
     FL_BIT(FL_GPU_MEM_MHZ) | FL_BIT(FL_GPU_TEMP_C) | FL_BIT(FL_GPU_THROTTLE))
