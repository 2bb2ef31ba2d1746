/* AMD's ROCm SMI library, opened at run time, with own declarations of the calls that Foldline makes and without an
 * SDK.
 *
 * Names of symbols, codes, layouts and units are those of rocm_smi.h of ROCm 5.2, and of ROCm 6 where that differs.
 * (Debian's librocm-smi-dev 5.2.3 has the same; tests/live/test_vendor_headers.c compares them where it is installed.)
 * Listed clocks are in Hz, set ranges in MHz, power in uW, temperatures in thousandths of a degree Celsius. */
#pragma once

#include "traces/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fl_rsmi_code { /* rsmi_status_t */
                            FL_RSMI_OK = 0,
                            FL_RSMI_INVALID = 1,
                            FL_RSMI_NOT_SUPPORTED = 2,
                            FL_RSMI_FILE = 3,
                            FL_RSMI_NO_PERMISSION = 4,
                            FL_RSMI_INIT = 8,
                            FL_RSMI_NOT_YET = 9,
                            FL_RSMI_BUSY = 16,
                            FL_RSMI_UNKNOWN = -1 /* 0xFFFFFFFF */
} fl_rsmi_code;

enum { FL_RSMI_CLOCK_SM = 0, FL_RSMI_CLOCK_MEM = 4 };                            /* rsmi_clk_type_t: SYS, MEM */
enum { FL_RSMI_LEVEL_AUTO = 0, FL_RSMI_LEVEL_MANUAL = 3 };                       /* rsmi_dev_perf_level_t */
enum { FL_RSMI_HEAT_EDGE = 0, FL_RSMI_HEAT_JUNCTION = 1, FL_RSMI_HEAT_NOW = 0 }; /* rsmi_temperature_..._t */
enum { FL_RSMI_COMPONENT_DRIVER = 0 };                                           /* rsmi_sw_component_t */
enum { FL_RSMI_CLOCKS_MAX = 33 };

/* rsmi_frequencies_t got a first member and an entry with ROCm 6. The call receives zeroed room for either layout; the
 * contents reveal which one the library filled (fl_rsmi_clocks_of). */
typedef struct fl_rsmi_clocks_5 {
    uint32_t count, current;
    uint64_t hz[32];
} fl_rsmi_clocks_5;

typedef struct fl_rsmi_clocks_6 {
    bool deep_sleep;
    uint32_t count, current;
    uint64_t hz[33];
} fl_rsmi_clocks_6;

typedef union fl_rsmi_clocks {
    fl_rsmi_clocks_5 old;
    fl_rsmi_clocks_6 new;
    uint32_t word[160];
} fl_rsmi_clocks;

typedef struct fl_rsmi_range { /* rsmi_range_t, Hz */
    uint64_t low, high;
} fl_rsmi_range;

typedef struct fl_rsmi_overdrive { /* rsmi_od_volt_freq_data_t, and room for later additions */
    fl_rsmi_range sm, mem, sm_limits, mem_limits;
    uint64_t curve[6];
    uint32_t regions;
    uint64_t room[16];
} fl_rsmi_overdrive;

/* X(member, required, parameters, newest symbol, older symbol or NULL) */
#define FL_RSMI_CALLS(X)                                                                                               \
    X(init, 1, (uint64_t flags), "rsmi_init", NULL)                                                                    \
    X(shut_down, 1, (void), "rsmi_shut_down", NULL)                                                                    \
    X(count, 1, (uint32_t *), "rsmi_num_monitor_devices", NULL)                                                        \
    X(text, 0, (fl_rsmi_code, const char **), "rsmi_status_string", NULL)                                              \
    X(version, 0, (int component, char *, uint32_t size), "rsmi_version_str_get", NULL)                                \
    X(name, 0, (uint32_t, char *, size_t), "rsmi_dev_name_get", NULL)                                                  \
    X(unique_id, 0, (uint32_t, uint64_t *), "rsmi_dev_unique_id_get", NULL)                                            \
    X(pci_id, 0, (uint32_t, uint64_t *), "rsmi_dev_pci_id_get", NULL)                                                  \
    X(power, 0, (uint32_t, uint64_t * uw, int *type), "rsmi_dev_power_get", NULL)                                      \
    X(power_average, 0, (uint32_t, uint32_t sensor, uint64_t * uw), "rsmi_dev_power_ave_get", NULL)                    \
    X(energy, 0, (uint32_t, uint64_t * count, float *uj_each, uint64_t *ns), "rsmi_dev_energy_count_get", NULL)        \
    X(busy, 0, (uint32_t, uint32_t * percent), "rsmi_dev_busy_percent_get", NULL)                                      \
    X(mem_busy, 0, (uint32_t, uint32_t * percent), "rsmi_dev_memory_busy_percent_get", NULL)                           \
    X(heat, 0, (uint32_t, uint32_t sensor, int metric, int64_t *), "rsmi_dev_temp_metric_get", NULL)                   \
    X(clocks, 0, (uint32_t, int clock, fl_rsmi_clocks *), "rsmi_dev_gpu_clk_freq_get", NULL)                           \
    X(set_clocks, 0, (uint32_t, int clock, uint64_t mask), "rsmi_dev_gpu_clk_freq_set", NULL)                          \
    X(overdrive, 0, (uint32_t, fl_rsmi_overdrive *), "rsmi_dev_od_volt_info_get", NULL)                                \
    X(set_range, 0, (uint32_t, uint64_t min_mhz, uint64_t max_mhz, int clock), "rsmi_dev_clk_range_set", NULL)         \
    X(level, 0, (uint32_t, int *), "rsmi_dev_perf_level_get", NULL)                                                    \
    X(set_level, 0, (uint32_t, int), "rsmi_dev_perf_level_set_v1", "rsmi_dev_perf_level_set")                          \
    X(cap, 0, (uint32_t, uint32_t sensor, uint64_t * uw), "rsmi_dev_power_cap_get", NULL)                              \
    X(cap_default, 0, (uint32_t, uint64_t * uw), "rsmi_dev_power_cap_default_get", NULL)                               \
    X(cap_range, 0, (uint32_t, uint32_t sensor, uint64_t * max, uint64_t * min), "rsmi_dev_power_cap_range_get", NULL) \
    X(set_cap, 0, (uint32_t, uint32_t sensor, uint64_t uw), "rsmi_dev_power_cap_set", NULL)

#define FL_ROW_RSMI_MEMBER(member, must, parameters, newest, older) fl_rsmi_code(*member) parameters;
typedef struct fl_rsmi {
    void *library;
    char path[256]; /* the name under which it was requested */
    FL_RSMI_CALLS(FL_ROW_RSMI_MEMBER)
} fl_rsmi;

/* FL_RSMI_NOT_SUPPORTED where the library has no such call. */
#define FL_RSMI_CALL(r, member, ...) ((r)->member ? (r)->member(__VA_ARGS__) : FL_RSMI_NOT_SUPPORTED)

/* Opens $FOLDLINE_RSMI where set, else librocm_smi64, and initialises it. FL_HARDWARE, with one line that names what is
 * missing: the library, a call, or the driver. Accepts a zeroed struct; leaves it zeroed on failure. */
fl_status fl_rsmi_open(fl_rsmi *r, fl_diag *d);
void fl_rsmi_close(fl_rsmi *r);

const char *fl_rsmi_reason(fl_rsmi_code code);
int fl_rsmi_refused(fl_rsmi_code code); /* the call was refused and nothing has changed */

/* Reads whichever layout the library filled. False where neither makes sense. current is count where no clock is
 * marked. */
bool fl_rsmi_clocks_of(const fl_rsmi_clocks *c, uint32_t *count, uint32_t *current, const uint64_t **hz);

/* Signals that ROCm SMI has calls for. */
#define FL_RSMI_READS                                                                                                  \
    (FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS) | FL_BIT(FL_GPU_UTIL_GPU_PCT) |       \
     FL_BIT(FL_GPU_UTIL_MEM_PCT) | FL_BIT(FL_GPU_SM_MHZ) | FL_BIT(FL_GPU_MEM_MHZ) | FL_BIT(FL_GPU_TEMP_C))
