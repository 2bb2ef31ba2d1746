/* Own declarations of the vendors' interfaces against their headers, where those are installed (Debian: libze-dev,
 * librocm-smi-dev; CUDA's toolkit); they are not needed for anything else. */
#include "harness/live/collector/inside.h"
#include "harness/live/vendor/rsmi/inside.h"
#include "harness/live/vendor/ze/inside.h"
#include "tests/support/suite.h"

#if __has_include(<level_zero/zes_api.h>)
#include <level_zero/zes_api.h>
#define HAS_ZE 1
#define SIZE(own, theirs) _Static_assert(sizeof(own) == sizeof(theirs), #own)
#define AT(own, member, theirs, other)                                                                                 \
    _Static_assert(offsetof(own, member) == offsetof(theirs, other) &&                                                 \
                       sizeof((own){0}.member) == sizeof((theirs){0}.other),                                           \
                   #own "." #member)
#define IS(own, theirs) _Static_assert((long long)(own) == (long long)(theirs), #own)
SIZE(fl_ze_core, ze_device_properties_t);
AT(fl_ze_core, type, ze_device_properties_t, type);
AT(fl_ze_core, clock, ze_device_properties_t, coreClockRate);
AT(fl_ze_core, alloc_max, ze_device_properties_t, maxMemAllocSize);
AT(fl_ze_core, simd_width, ze_device_properties_t, physicalEUSimdWidth);
AT(fl_ze_core, eus_per_subslice, ze_device_properties_t, numEUsPerSubslice);
AT(fl_ze_core, subslices_per_slice, ze_device_properties_t, numSubslicesPerSlice);
AT(fl_ze_core, slices, ze_device_properties_t, numSlices);
AT(fl_ze_core, timer, ze_device_properties_t, timerResolution);
AT(fl_ze_core, uuid, ze_device_properties_t, uuid);
AT(fl_ze_core, name, ze_device_properties_t, name);
SIZE(fl_ze_properties, zes_device_properties_t);
AT(fl_ze_properties, core, zes_device_properties_t, core);
AT(fl_ze_properties, subdevices, zes_device_properties_t, numSubdevices);
AT(fl_ze_properties, model, zes_device_properties_t, modelName);
AT(fl_ze_properties, driver, zes_device_properties_t, driverVersion);
SIZE(fl_ze_frequency, zes_freq_properties_t);
AT(fl_ze_frequency, type, zes_freq_properties_t, type);
AT(fl_ze_frequency, on_subdevice, zes_freq_properties_t, onSubdevice);
AT(fl_ze_frequency, can_control, zes_freq_properties_t, canControl);
AT(fl_ze_frequency, min, zes_freq_properties_t, min);
AT(fl_ze_frequency, max, zes_freq_properties_t, max);
SIZE(fl_ze_range, zes_freq_range_t);
AT(fl_ze_range, min, zes_freq_range_t, min);
AT(fl_ze_range, max, zes_freq_range_t, max);
SIZE(fl_ze_state, zes_freq_state_t);
AT(fl_ze_state, actual, zes_freq_state_t, actual);
AT(fl_ze_state, held, zes_freq_state_t, throttleReasons);
SIZE(fl_ze_power, zes_power_properties_t);
AT(fl_ze_power, on_subdevice, zes_power_properties_t, onSubdevice);
AT(fl_ze_power, can_control, zes_power_properties_t, canControl);
AT(fl_ze_power, standard_mw, zes_power_properties_t, defaultLimit);
AT(fl_ze_power, min_mw, zes_power_properties_t, minLimit);
AT(fl_ze_power, max_mw, zes_power_properties_t, maxLimit);
SIZE(fl_ze_energy, zes_power_energy_counter_t);
AT(fl_ze_energy, uj, zes_power_energy_counter_t, energy);
AT(fl_ze_energy, us, zes_power_energy_counter_t, timestamp);
SIZE(fl_ze_sustained, zes_power_sustained_limit_t);
AT(fl_ze_sustained, enabled, zes_power_sustained_limit_t, enabled);
AT(fl_ze_sustained, mw, zes_power_sustained_limit_t, power);
AT(fl_ze_sustained, interval_ms, zes_power_sustained_limit_t, interval);
SIZE(fl_ze_limit, zes_power_limit_ext_desc_t);
AT(fl_ze_limit, level, zes_power_limit_ext_desc_t, level);
AT(fl_ze_limit, source, zes_power_limit_ext_desc_t, source);
AT(fl_ze_limit, unit, zes_power_limit_ext_desc_t, limitUnit);
AT(fl_ze_limit, enabled_locked, zes_power_limit_ext_desc_t, enabledStateLocked);
AT(fl_ze_limit, enabled, zes_power_limit_ext_desc_t, enabled);
AT(fl_ze_limit, interval_ms, zes_power_limit_ext_desc_t, interval);
AT(fl_ze_limit, limit_locked, zes_power_limit_ext_desc_t, limitValueLocked);
AT(fl_ze_limit, limit, zes_power_limit_ext_desc_t, limit);
SIZE(fl_ze_engine, zes_engine_properties_t);
AT(fl_ze_engine, type, zes_engine_properties_t, type);
SIZE(fl_ze_activity, zes_engine_stats_t);
AT(fl_ze_activity, active_us, zes_engine_stats_t, activeTime);
AT(fl_ze_activity, us, zes_engine_stats_t, timestamp);
SIZE(fl_ze_temperature, zes_temp_properties_t);
AT(fl_ze_temperature, type, zes_temp_properties_t, type);
SIZE(fl_ze_bandwidth, zes_mem_bandwidth_t);
AT(fl_ze_bandwidth, read, zes_mem_bandwidth_t, readCounter);
AT(fl_ze_bandwidth, write, zes_mem_bandwidth_t, writeCounter);
IS(FL_ZE_LOST, ZE_RESULT_ERROR_DEVICE_LOST);
IS(FL_ZE_NEEDS_RESET, ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET);
IS(FL_ZE_NO_PERMISSION, ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS);
IS(FL_ZE_NOT_AVAILABLE, ZE_RESULT_ERROR_NOT_AVAILABLE);
IS(FL_ZE_DEPENDENCY, ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE);
IS(FL_ZE_UNINITIALIZED, ZE_RESULT_ERROR_UNINITIALIZED);
IS(FL_ZE_UNSUPPORTED, ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
IS(FL_ZE_INVALID, ZE_RESULT_ERROR_INVALID_ARGUMENT);
IS(FL_ZE_GPU_ONLY, ZE_INIT_FLAG_GPU_ONLY);
IS(FL_ZE_TYPE_GPU, ZE_DEVICE_TYPE_GPU);
IS(FL_ZE_S_CORE, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES);
IS(FL_ZE_S_DEVICE, ZES_STRUCTURE_TYPE_DEVICE_PROPERTIES);
IS(FL_ZE_S_ENGINE, ZES_STRUCTURE_TYPE_ENGINE_PROPERTIES);
IS(FL_ZE_S_FREQUENCY, ZES_STRUCTURE_TYPE_FREQ_PROPERTIES);
IS(FL_ZE_S_POWER, ZES_STRUCTURE_TYPE_POWER_PROPERTIES);
IS(FL_ZE_S_TEMPERATURE, ZES_STRUCTURE_TYPE_TEMP_PROPERTIES);
IS(FL_ZE_S_FREQUENCY_STATE, ZES_STRUCTURE_TYPE_FREQ_STATE);
IS(FL_ZE_S_LIMIT, ZES_STRUCTURE_TYPE_POWER_LIMIT_EXT_DESC);
IS(FL_ZE_CLOCK_MEMORY, ZES_FREQ_DOMAIN_MEMORY);
IS(FL_ZE_ENGINE_COMPUTE, ZES_ENGINE_GROUP_COMPUTE_ALL);
IS(FL_ZE_ENGINE_COPY, ZES_ENGINE_GROUP_COPY_ALL);
IS(FL_ZE_ENGINE_COPY_SINGLE, ZES_ENGINE_GROUP_COPY_SINGLE);
IS(FL_ZE_ENGINE_RENDER_COMPUTE, ZES_ENGINE_GROUP_3D_RENDER_COMPUTE_ALL);
IS(FL_ZE_TEMPERATURE_GPU, ZES_TEMP_SENSORS_GPU);
IS(FL_ZE_SUSTAINED, ZES_POWER_LEVEL_SUSTAINED);
IS(FL_ZE_UNIT_POWER, ZES_LIMIT_UNIT_POWER);
IS(FL_ZE_HELD_POWER, ZES_FREQ_THROTTLE_REASON_FLAG_AVE_PWR_CAP);
IS(FL_ZE_HELD_BURST, ZES_FREQ_THROTTLE_REASON_FLAG_BURST_PWR_CAP);
IS(FL_ZE_HELD_CURRENT, ZES_FREQ_THROTTLE_REASON_FLAG_CURRENT_LIMIT);
IS(FL_ZE_HELD_HEAT, ZES_FREQ_THROTTLE_REASON_FLAG_THERMAL_LIMIT);
IS(FL_ZE_HELD_SUPPLY, ZES_FREQ_THROTTLE_REASON_FLAG_PSU_ALERT);
IS(FL_ZE_HELD_SOFTWARE, ZES_FREQ_THROTTLE_REASON_FLAG_SW_RANGE);
IS(FL_ZE_HELD_HARDWARE, ZES_FREQ_THROTTLE_REASON_FLAG_HW_RANGE);
#endif

#if __has_include(<rocm_smi/rocm_smi.h>)
#include <rocm_smi/rocm_smi.h>
#define HAS_RSMI 1
#define R_IS(own, theirs) _Static_assert((long long)(own) == (long long)(theirs), #own)
#define R_AT(own, member, theirs, other)                                                                               \
    _Static_assert(offsetof(own, member) == offsetof(theirs, other) &&                                                 \
                       sizeof((own){0}.member) == sizeof((theirs){0}.other),                                           \
                   #own "." #member)
#if RSMI_MAX_NUM_FREQUENCIES == 32
_Static_assert(sizeof(fl_rsmi_clocks_5) == sizeof(rsmi_frequencies_t), "clocks");
R_AT(fl_rsmi_clocks_5, count, rsmi_frequencies_t, num_supported);
R_AT(fl_rsmi_clocks_5, current, rsmi_frequencies_t, current);
R_AT(fl_rsmi_clocks_5, hz, rsmi_frequencies_t, frequency);
#else
_Static_assert(sizeof(fl_rsmi_clocks_6) == sizeof(rsmi_frequencies_t), "clocks");
R_AT(fl_rsmi_clocks_6, count, rsmi_frequencies_t, num_supported);
R_AT(fl_rsmi_clocks_6, current, rsmi_frequencies_t, current);
R_AT(fl_rsmi_clocks_6, hz, rsmi_frequencies_t, frequency);
#endif
_Static_assert(sizeof(fl_rsmi_clocks) >= sizeof(rsmi_frequencies_t), "room for clocks");
_Static_assert(sizeof(fl_rsmi_overdrive) >= sizeof(rsmi_od_volt_freq_data_t), "room for ranges");
R_AT(fl_rsmi_range, low, rsmi_range_t, lower_bound);
R_AT(fl_rsmi_range, high, rsmi_range_t, upper_bound);
R_AT(fl_rsmi_overdrive, sm, rsmi_od_volt_freq_data_t, curr_sclk_range);
R_AT(fl_rsmi_overdrive, sm_limits, rsmi_od_volt_freq_data_t, sclk_freq_limits);
R_AT(fl_rsmi_overdrive, regions, rsmi_od_volt_freq_data_t, num_regions);
R_IS(sizeof(fl_rsmi_code), sizeof(rsmi_status_t));
R_IS(sizeof(int), sizeof(rsmi_dev_perf_level_t));
R_IS(FL_RSMI_INVALID, RSMI_STATUS_INVALID_ARGS);
R_IS(FL_RSMI_NOT_SUPPORTED, RSMI_STATUS_NOT_SUPPORTED);
R_IS(FL_RSMI_FILE, RSMI_STATUS_FILE_ERROR);
R_IS(FL_RSMI_NO_PERMISSION, RSMI_STATUS_PERMISSION);
R_IS(FL_RSMI_INIT, RSMI_STATUS_INIT_ERROR);
R_IS(FL_RSMI_NOT_YET, RSMI_STATUS_NOT_YET_IMPLEMENTED);
R_IS(FL_RSMI_BUSY, RSMI_STATUS_BUSY);
R_IS(FL_RSMI_CLOCK_SM, RSMI_CLK_TYPE_SYS);
R_IS(FL_RSMI_CLOCK_MEM, RSMI_CLK_TYPE_MEM);
R_IS(FL_RSMI_LEVEL_AUTO, RSMI_DEV_PERF_LEVEL_AUTO);
R_IS(FL_RSMI_LEVEL_MANUAL, RSMI_DEV_PERF_LEVEL_MANUAL);
R_IS(FL_RSMI_HEAT_EDGE, RSMI_TEMP_TYPE_EDGE);
R_IS(FL_RSMI_HEAT_JUNCTION, RSMI_TEMP_TYPE_JUNCTION);
R_IS(FL_RSMI_HEAT_NOW, RSMI_TEMP_CURRENT);
R_IS(FL_RSMI_COMPONENT_DRIVER, RSMI_SW_COMP_DRIVER);
#endif

#if __has_include(<cuda.h>)
#include <cuda.h>
#define HAS_CUDA 1
_Static_assert(sizeof(CUuuid) == FL_CUDA_UUID, "a UUID");
_Static_assert(_Generic(&cuDeviceGet, CUresult (*)(int *, int) : 1, default : 0), "cuDeviceGet");
_Static_assert(_Generic(&cuDeviceGetUuid_v2, CUresult (*)(CUuuid *, int) : 1, default : 0), "cuDeviceGetUuid_v2");
#endif

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HAS_NVTX 1
#define N_IS(own, theirs) _Static_assert((long long)(own) == (long long)(theirs), #own)
#define N_AT(member, other)                                                                                            \
    _Static_assert(offsetof(fl_nvtx_attributes, member) == offsetof(nvtxEventAttributes_t, other) &&                   \
                       sizeof((fl_nvtx_attributes){0}.member) == sizeof((nvtxEventAttributes_t){0}.other),             \
                   #member)
N_IS(sizeof(fl_nvtx_attributes), sizeof(nvtxEventAttributes_t));
N_AT(version, version);
N_AT(size, size);
N_AT(category, category);
N_AT(color_type, colorType);
N_AT(color, color);
N_AT(payload_type, payloadType);
N_AT(reserved, reserved0);
N_AT(payload, payload);
N_AT(message_type, messageType);
N_AT(message, message);
N_IS(sizeof(fl_nvtx_callbacks), sizeof(NvtxExportTableCallbacks));
N_IS(offsetof(fl_nvtx_callbacks, size), offsetof(NvtxExportTableCallbacks, struct_size));
N_IS(offsetof(fl_nvtx_callbacks, table), offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
N_IS(FL_NVTX_CALLBACKS, NVTX_ETID_CALLBACKS);
N_IS(FL_NVTX_CORE, NVTX_CB_MODULE_CORE);
N_IS(FL_NVTX_CORE2, NVTX_CB_MODULE_CORE2);
N_IS(FL_NVTX_ASCII, NVTX_MESSAGE_TYPE_ASCII);
N_IS(FL_NVTX_UNICODE, NVTX_MESSAGE_TYPE_UNICODE);
N_IS(FL_NVTX_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
N_IS(FL_NVTX_NO_TRACKING, NVTX_NO_PUSH_POP_TRACKING);
N_IS(FL_NVTX_MARK_EX, NVTX_CBID_CORE_MarkEx);
N_IS(FL_NVTX_MARK_A, NVTX_CBID_CORE_MarkA);
N_IS(FL_NVTX_MARK_W, NVTX_CBID_CORE_MarkW);
N_IS(FL_NVTX_RANGE_START_EX, NVTX_CBID_CORE_RangeStartEx);
N_IS(FL_NVTX_RANGE_START_A, NVTX_CBID_CORE_RangeStartA);
N_IS(FL_NVTX_RANGE_START_W, NVTX_CBID_CORE_RangeStartW);
N_IS(FL_NVTX_RANGE_PUSH_EX, NVTX_CBID_CORE_RangePushEx);
N_IS(FL_NVTX_RANGE_PUSH_A, NVTX_CBID_CORE_RangePushA);
N_IS(FL_NVTX_RANGE_PUSH_W, NVTX_CBID_CORE_RangePushW);
N_IS(FL_NVTX_DOMAIN_MARK_EX, NVTX_CBID_CORE2_DomainMarkEx);
N_IS(FL_NVTX_DOMAIN_RANGE_START_EX, NVTX_CBID_CORE2_DomainRangeStartEx);
N_IS(FL_NVTX_DOMAIN_RANGE_PUSH_EX, NVTX_CBID_CORE2_DomainRangePushEx);
N_IS(FL_NVTX_DOMAIN_REGISTER_STRING_A, NVTX_CBID_CORE2_DomainRegisterStringA);
N_IS(FL_NVTX_DOMAIN_REGISTER_STRING_W, NVTX_CBID_CORE2_DomainRegisterStringW);
#endif

/* The comparison itself is the compiler's. */
static void test_headers(void) {
#ifndef HAS_ZE
    printf("\n    skipped: Level Zero's headers are not installed (libze-dev)");
#endif
#ifndef HAS_CUDA
    printf("\n    skipped: CUDA's headers are not installed");
#endif
#ifndef HAS_NVTX
    printf("\n    skipped: NVTX's headers are not installed");
#endif
#ifndef HAS_RSMI
    printf("\n    skipped: ROCm SMI's headers are not installed (librocm-smi-dev)");
#endif
    CU_ASSERT(sizeof(fl_ze_limit) == 48 && sizeof(fl_rsmi_clocks_5) == 264 && sizeof(fl_rsmi_clocks_6) == 280);
}

/* Whichever layout a library fills, its clocks are found, and never the wrong ones. */
static void test_clocks_layouts(void) {
    for (uint32_t count = 1; count <= 32; count++)
        for (uint32_t current = 0; current <= count; current++)
            for (int layout = 0; layout < 3; layout++) {
                fl_rsmi_clocks c = {0};
                uint32_t n, at;
                const uint64_t *hz;
                if (!layout)
                    c.old = (fl_rsmi_clocks_5){.count = count, .current = current < count ? current : UINT32_MAX};
                else
                    c.new = (fl_rsmi_clocks_6){
                        .deep_sleep = layout == 2, .count = count, .current = current < count ? current : UINT32_MAX};
                const bool ok = fl_rsmi_clocks_of(&c, &n, &at, &hz);
                FL_CHECK(ok && n == count && at == current && hz == (layout ? c.new.hz : c.old.hz),
                         "layout %d, %u clocks, %u", layout, count, current);
            }
    const fl_rsmi_clocks none = {0}, wild = {.word = {77, 99, 3}};
    uint32_t n, at;
    const uint64_t *hz;
    CU_ASSERT(!fl_rsmi_clocks_of(&none, &n, &at, &hz) && !fl_rsmi_clocks_of(&wild, &n, &at, &hz));
}

FL_SUITE("vendor_headers", {"layouts and constants", test_headers}, {"clocks of either layout", test_clocks_layouts})
