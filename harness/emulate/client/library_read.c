/* Simulated NVML: sensors. */
#include "harness/emulate/client/ask.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define FL_LAYOUT(type, size) _Static_assert(sizeof(type) == (size), "layout of " #type)
FL_LAYOUT(nvmlUtilization_t, 8);
FL_LAYOUT(nvmlMemory_t, 24);
FL_LAYOUT(nvmlMemory_v2_t, 40);
FL_LAYOUT(nvmlPciInfo_t, 68);
FL_LAYOUT(nvmlProcessInfo_v1_t, 16);
FL_LAYOUT(nvmlProcessInfo_t, 24);
FL_LAYOUT(nvmlProcessUtilizationSample_t, 32);
FL_LAYOUT(nvmlSample_t, 16);
FL_LAYOUT(nvmlFieldValue_t, 40);
FL_LAYOUT(nvmlTemperature_t, 12);
FL_LAYOUT(nvmlViolationTime_t, 16);
FL_LAYOUT(nvmlGpmMetric_t, 40);
FL_LAYOUT(nvmlGpmSupport_t, 8);
_Static_assert(offsetof(nvmlFieldValue_t, value) == 32, "layout of nvmlFieldValue_t");
_Static_assert(offsetof(nvmlMemory_v2_t, free) == 24, "layout of nvmlMemory_v2_t");
_Static_assert(offsetof(nvmlGpmMetricsGet_t, metrics) == 24, "layout of nvmlGpmMetricsGet_t");

FL_READ(nvmlDeviceGetPowerUsage, FL_NUMBER_POWER)
FL_READ(nvmlDeviceGetPerformanceState, FL_NUMBER_PSTATE)
FL_READ(nvmlDeviceGetPowerState, FL_NUMBER_PSTATE)
FL_READ(nvmlDeviceGetPersistenceMode, FL_NUMBER_PERSISTENCE)
FL_READ_OF(nvmlDeviceGetClockInfo, FL_NUMBER_CLOCK)
FL_READ_OF(nvmlDeviceGetMaxClockInfo, FL_NUMBER_MAX_CLOCK)
FL_READ_OF(nvmlDeviceGetMaxCustomerBoostClock, FL_NUMBER_MAX_CLOCK)
FL_READ_OF(nvmlDeviceGetApplicationsClock, FL_NUMBER_TARGET_CLOCK)
FL_READ_OF(nvmlDeviceGetDefaultApplicationsClock, FL_NUMBER_DEFAULT_CLOCK)
FL_READ_OF(nvmlDeviceGetTemperature, FL_NUMBER_TEMPERATURE)
FL_READ_OF(nvmlDeviceGetTemperatureThreshold, FL_NUMBER_THRESHOLD)
FL_READ_WIDE(nvmlDeviceGetTotalEnergyConsumption, FL_NUMBER_ENERGY)
FL_READ_WIDE(nvmlDeviceGetCurrentClocksThrottleReasons, FL_NUMBER_REASONS)
FL_READ_WIDE(nvmlDeviceGetCurrentClocksEventReasons, FL_NUMBER_REASONS)
FL_READ_WIDE(nvmlDeviceGetSupportedClocksThrottleReasons, FL_NUMBER_REASONS_KNOWN)
FL_READ_WIDE(nvmlDeviceGetSupportedClocksEventReasons, FL_NUMBER_REASONS_KNOWN)
/* Not simulated: fixed. */
FL_READ_CONSTANT(nvmlDeviceGetFanSpeed, FL_FAN_PERCENT)
FL_READ_CONSTANT(nvmlDeviceGetNumFans, 1)
FL_READ_CONSTANT(nvmlDeviceGetCurrPcieLinkGeneration, 4)
FL_READ_CONSTANT(nvmlDeviceGetCurrPcieLinkWidth, 16)
FL_READ_CONSTANT(nvmlDeviceGetMaxPcieLinkGeneration, 4)
FL_READ_CONSTANT(nvmlDeviceGetMaxPcieLinkWidth, 16)
FL_READ_CONSTANT(nvmlDeviceGetVirtualizationMode, 0)
FL_READ_CONSTANT(nvmlDeviceGetComputeMode, 0)
FL_READ_CONSTANT(nvmlDeviceGetDisplayMode, 0)
FL_READ_CONSTANT(nvmlDeviceGetDisplayActive, 0)
FL_READ_CONSTANT(nvmlDeviceGetBrand, 2)
FL_READ_CONSTANT(nvmlDeviceGetPcieReplayCounter, 0)
FL_READ_CONSTANT(nvmlDeviceGetAccountingMode, 1)

FL_EXPORT(nvmlDeviceGetPcieThroughput, nvmlDevice_t d, int counter, unsigned int *out) {
    return counter < 0 || counter > 1 ? fl_ask_wrong(__func__) : fl_ask_uint(__func__, d, FL_NUMBER_CONSTANT, 0, out);
}
FL_EXPORT(nvmlDeviceGetUtilizationRates, nvmlDevice_t d, nvmlUtilization_t *out) {
    unsigned long long both;
    if (!out)
        return fl_ask_wrong(__func__);
    nvmlReturn_t r = fl_ask_wide(__func__, d, FL_NUMBER_UTIL, 0, &both);
    if (r == NVML_SUCCESS)
        *out = (nvmlUtilization_t){(unsigned int)(both >> 32), (unsigned int)both};
    return r;
}
FL_EXPORT(nvmlDeviceGetClock, nvmlDevice_t d, int type, int id, unsigned int *mhz) {
    const fl_ask_number of[] = {FL_NUMBER_CLOCK, FL_NUMBER_TARGET_CLOCK, FL_NUMBER_DEFAULT_CLOCK, FL_NUMBER_MAX_CLOCK};
    return id < 0 || id > 3 ? fl_ask_wrong(__func__) : fl_ask_uint(__func__, d, of[id], (unsigned int)type, mhz);
}
FL_EXPORT(nvmlDeviceGetTemperatureV, nvmlDevice_t d, nvmlTemperature_t *t) {
    unsigned int c;
    if (!t)
        return fl_ask_wrong(__func__);
    if (t->version != (sizeof *t | 1u << 24))
        return NVML_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t r = fl_ask_uint(__func__, d, FL_NUMBER_TEMPERATURE, (unsigned int)t->sensorType, &c);
    if (r == NVML_SUCCESS)
        t->temperature = (int)c;
    return r;
}
FL_EXPORT(nvmlDeviceGetViolationStatus, nvmlDevice_t d, int policy, nvmlViolationTime_t *out) {
    nvmlReturn_t r = out ? fl_ask_wide(__func__, d, FL_NUMBER_VIOLATION, (unsigned int)policy, &out->violationTime)
                         : fl_ask_wrong(__func__);
    return r == NVML_SUCCESS ? fl_ask_wide(__func__, d, FL_NUMBER_TIME, 0, &out->referenceTime) : r;
}

static nvmlReturn_t memory(const char *call, nvmlDevice_t d, unsigned long long *total, unsigned long long *used) {
    nvmlReturn_t r = fl_ask_wide(call, d, FL_NUMBER_MEMORY_TOTAL, 0, total);
    return r == NVML_SUCCESS ? fl_ask_wide(call, d, FL_NUMBER_MEMORY_USED, 0, used) : r;
}
FL_EXPORT(nvmlDeviceGetMemoryInfo, nvmlDevice_t d, nvmlMemory_t *out) {
    unsigned long long total, used;
    if (!out)
        return fl_ask_wrong(__func__);
    nvmlReturn_t r = memory(__func__, d, &total, &used);
    if (r == NVML_SUCCESS)
        *out = (nvmlMemory_t){.total = total, .used = used, .free = total - used};
    return r;
}
FL_EXPORT(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t d, nvmlMemory_v2_t *out) {
    unsigned long long total, used;
    if (!out)
        return fl_ask_wrong(__func__);
    if (out->version != (sizeof *out | 2u << 24) && out->version != 2) /* plain 2 is what some programs pass */
        return NVML_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t r = memory(__func__, d, &total, &used);
    if (r == NVML_SUCCESS) {
        out->total = total;
        out->used = used;
        out->free = total - used;
        out->reserved = 0;
    }
    return r;
}
FL_EXPORT(nvmlDeviceGetBAR1MemoryInfo, nvmlDevice_t d, nvmlBAR1Memory_t *out) {
    unsigned int size;
    if (!out)
        return fl_ask_wrong(__func__);
    nvmlReturn_t r = fl_ask_uint(__func__, d, FL_NUMBER_CONSTANT, 256u << 20, &size);
    if (r == NVML_SUCCESS)
        *out = (nvmlBAR1Memory_t){.total = size, .free = size};
    return r;
}

FL_EXPORT(nvmlDeviceGetFieldValues, nvmlDevice_t d, int count, nvmlFieldValue_t *values) {
    unsigned int none;
    if (count < 0 || (count && !values))
        return fl_ask_wrong(__func__);
    if (!count)
        return fl_ask_uint(__func__, d, FL_NUMBER_CONSTANT, 0, &none);
    for (int i = 0; i < count; i++) {
        fl_question q = {.op = FL_ASK_FIELD, .device = d, .a = values[i].fieldId, .b = values[i].scopeId};
        nvmlReturn_t r = fl_ask_for(__func__, &q, &values[i], sizeof values[i], NULL);
        if (r != NVML_SUCCESS) /* of an entry it says so inside */
            return r;
    }
    return NVML_SUCCESS;
}

FL_EXPORT(nvmlDeviceGetSamples, nvmlDevice_t d, int type, unsigned long long since, int *value_type,
          unsigned int *count, nvmlSample_t *samples) {
    nvmlSample_t found[FL_ANSWER_BYTES / sizeof(nvmlSample_t)];
    unsigned int got = 0;
    if (!value_type || !count)
        return fl_ask_wrong(__func__);
    fl_question q = {.op = FL_ASK_SAMPLES, .device = d, .a = (unsigned int)type, .wide = samples ? since : 0};
    nvmlReturn_t r = fl_ask_for(__func__, &q, found, sizeof found, &got);
    *value_type = NVML_VALUE_UINT;
    if (r != NVML_SUCCESS)
        return r;
    got /= (unsigned int)sizeof *samples;
    if (!samples) {
        *count = got;
        return NVML_SUCCESS;
    }
    if (got > *count)
        return NVML_INSUFFICIENT_SIZE;
    memcpy(samples, found, got * sizeof *samples);
    *count = got;
    return got ? NVML_SUCCESS : NVML_NOT_FOUND;
}
