/* Simulated NVML: sensors. */
#include "harness/emulate/client/inside.h"

#include "harness/emulate/client/abi.h"
#include "harness/emulate/client/client.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define FL_READ_OF(name, number)                                                                                       \
    FL_EXPORT(name, nvmlDevice_t d, int of, unsigned int *out) {                                                       \
        return fl_ask_uint(__func__, d, number, (unsigned int)of, out);                                                \
    }
#define FL_READ_WIDE(name, number)                                                                                     \
    FL_EXPORT(name, nvmlDevice_t d, unsigned long long *out) { return fl_ask_wide(__func__, d, number, 0, out); }

/* ---- sensors ---- */

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

/* Simulated NVML: processes, their accounts, and the profiling metrics of newer boards (GPM). */

enum { PROCESSES_MAX = FL_ANSWER_BYTES / sizeof(fl_ask_process) };

typedef struct nvmlAccountingStats_t {
    unsigned int gpuUtilization, memoryUtilization;
    unsigned long long maxMemoryUsage, time, startTime;
    unsigned int isRunning, reserved[5];
} nvmlAccountingStats_t;

/* record: bytes of the caller's struct; its first 16 are alike in all versions, the rest are instance ids. */
static nvmlReturn_t processes(const char *call, nvmlDevice_t d, int compute, unsigned int *count, void *infos,
                              size_t record) {
    fl_ask_process list[PROCESSES_MAX];
    unsigned int got = 0;
    if (!count)
        return fl_ask_wrong(call);
    fl_question q = {.op = FL_ASK_PROCESSES, .device = d};
    nvmlReturn_t r = fl_ask_for(call, &q, list, sizeof list, &got);
    if (r != NVML_SUCCESS)
        return r;
    const unsigned int room = *count;
    *count = compute ? got / (unsigned int)sizeof *list : 0;
    if (room < *count)
        return NVML_INSUFFICIENT_SIZE;
    if (*count && !infos)
        return fl_ask_wrong(__func__);
    for (unsigned int i = 0; i < *count; i++) {
        const nvmlProcessInfo_t info = {list[i].pid, list[i].bytes, ~0u, ~0u};
        memcpy((char *)infos + i * record, &info, record);
    }
    return NVML_SUCCESS;
}
#define FL_PROCESSES(name, compute, type)                                                                              \
    FL_EXPORT(name, nvmlDevice_t d, unsigned int *count, type *infos) {                                                \
        return processes(__func__, d, compute, count, infos, sizeof *infos);                                           \
    }
FL_PROCESSES(nvmlDeviceGetComputeRunningProcesses, 1, nvmlProcessInfo_v1_t)
FL_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, 1, nvmlProcessInfo_t)
FL_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, 1, nvmlProcessInfo_t)
FL_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, 0, nvmlProcessInfo_v1_t)
FL_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, 0, nvmlProcessInfo_t)
FL_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, 0, nvmlProcessInfo_t)
FL_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, 0, nvmlProcessInfo_v1_t)
FL_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, 0, nvmlProcessInfo_t)
FL_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, 0, nvmlProcessInfo_t)

FL_EXPORT(nvmlDeviceGetProcessUtilization, nvmlDevice_t d, nvmlProcessUtilizationSample_t *out, unsigned int *count,
          unsigned long long since) {
    nvmlProcessUtilizationSample_t list[PROCESSES_MAX / 2];
    unsigned int got = 0;
    if (!count)
        return fl_ask_wrong(__func__);
    fl_question q = {.op = FL_ASK_SHARES, .device = d, .wide = since};
    nvmlReturn_t r = fl_ask_for(__func__, &q, list, sizeof list, &got);
    if (r != NVML_SUCCESS)
        return r;
    const unsigned int room = *count;
    *count = got / (unsigned int)sizeof *list;
    if (!*count)
        return NVML_NOT_FOUND;
    if (room < *count || !out)
        return NVML_INSUFFICIENT_SIZE;
    memcpy(out, list, got);
    return NVML_SUCCESS;
}

FL_EXPORT(nvmlDeviceSetAccountingMode, nvmlDevice_t d, int mode) {
    unsigned int on;
    return mode != 0 && mode != 1 ? fl_ask_wrong(__func__) : fl_ask_uint(__func__, d, FL_NUMBER_CONSTANT, 1, &on);
}
FL_EXPORT(nvmlDeviceGetAccountingPids, nvmlDevice_t d, unsigned int *count, unsigned int *pids) {
    nvmlProcessInfo_v1_t list[PROCESSES_MAX];
    unsigned int n = PROCESSES_MAX;
    if (!count)
        return fl_ask_wrong(__func__);
    nvmlReturn_t r = processes(__func__, d, 1, &n, list, sizeof *list);
    if (r != NVML_SUCCESS)
        return r;
    const unsigned int room = *count;
    *count = n;
    if (room < n)
        return NVML_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < n && pids; i++)
        pids[i] = list[i].pid;
    return n && !pids ? NVML_INVALID_ARGUMENT : NVML_SUCCESS;
}
FL_EXPORT(nvmlDeviceGetAccountingStats, nvmlDevice_t d, unsigned int pid, nvmlAccountingStats_t *out) {
    nvmlProcessInfo_v1_t list[PROCESSES_MAX];
    unsigned int n = PROCESSES_MAX;
    unsigned long long both, now = 0;
    if (!out)
        return fl_ask_wrong(__func__);
    nvmlReturn_t r = processes(__func__, d, 1, &n, list, sizeof *list);
    for (unsigned int i = 0; r == NVML_SUCCESS && i < n; i++) {
        if (list[i].pid != pid)
            continue;
        memset(out, 0, sizeof *out);
        r = fl_ask_wide(__func__, d, FL_NUMBER_UTIL, 0, &both);
        if (r == NVML_SUCCESS)
            r = fl_ask_wide(__func__, d, FL_NUMBER_TIME, 1, &now);
        out->gpuUtilization = (unsigned int)(both >> 32);
        out->memoryUtilization = (unsigned int)both;
        out->maxMemoryUsage = list[i].usedGpuMemory;
        out->time = now / 1000; /* ms */
        out->isRunning = 1;
        return r;
    }
    return r == NVML_SUCCESS ? NVML_NOT_FOUND : r;
}

/* ---- GPM: a sample is a picture of the integrals; a metric is their difference over time ---- */

struct fl_gpm_sample {
    fl_ask_profile at;
};
FL_EXPORT(nvmlGpmQueryDeviceSupport, nvmlDevice_t d, nvmlGpmSupport_t *support) {
    unsigned int arch;
    if (!support)
        return fl_ask_wrong(__func__);
    nvmlReturn_t r = fl_ask_uint(__func__, d, FL_NUMBER_ARCHITECTURE, 0, &arch);
    if (r == NVML_SUCCESS)
        support->isSupportedDevice = arch >= 9 && arch < 100; /* Hopper and newer */
    return r;
}
FL_EXPORT(nvmlGpmSampleAlloc, nvmlGpmSample_t *sample) {
    if (!sample)
        return fl_ask_wrong(__func__);
    *sample = calloc(1, sizeof **sample);
    return *sample ? NVML_SUCCESS : NVML_UNKNOWN;
}
FL_EXPORT(nvmlGpmSampleFree, nvmlGpmSample_t sample) {
    free(sample);
    return NVML_SUCCESS;
}
FL_EXPORT(nvmlGpmSampleGet, nvmlDevice_t d, nvmlGpmSample_t sample) {
    fl_question q = {.op = FL_ASK_PROFILE, .device = d};
    return sample ? fl_ask_for(__func__, &q, &sample->at, sizeof sample->at, NULL) : fl_ask_wrong(__func__);
}
FL_READ_CONSTANT(nvmlGpmQueryIfStreamingEnabled, 1)
FL_EXPORT(nvmlGpmSetStreamingEnabled, nvmlDevice_t d, unsigned int state) {
    unsigned int on;
    (void)state;
    return fl_ask_uint(__func__, d, FL_NUMBER_CONSTANT, 1, &on);
}
FL_EXPORT(nvmlGpmMetricsGet, nvmlGpmMetricsGet_t *get) {
    if (!get || !get->sample1 || !get->sample2)
        return fl_ask_wrong(__func__);
    if (get->version != 1)
        return NVML_ARGUMENT_VERSION_MISMATCH;
    const fl_ask_profile *a = &get->sample1->at, *b = &get->sample2->at;
    const double dt = b->time_ps - a->time_ps;
    for (unsigned int i = 0; i < get->numMetrics; i++) {
        nvmlGpmMetric_t *m = &get->metrics[i];
        m->nvmlReturn = dt > 0 ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
        m->value = 0;
        switch (m->metricId) {
        case 1: /* graphics: a kernel resident */
            m->value = (b->busy - a->busy) / dt * 100;
            break;
        case 2: /* SM */
            m->value = (b->sm - a->sm) / dt * 100;
            break;
        case 10: /* DRAM */
            m->value = (b->memory - a->memory) / dt * 100;
            break;
        case 12: /* FP32: all that the ALUs do counts as this */
            m->value = (b->alu - a->alu) / dt * 100;
            break;
        default:
            m->nvmlReturn = NVML_NOT_SUPPORTED;
        }
        if (!(dt > 0))
            m->value = 0;
    }
    return NVML_SUCCESS;
}
