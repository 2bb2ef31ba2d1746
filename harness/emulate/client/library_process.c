/* Simulated NVML: processes, their accounts, and the profiling metrics of newer boards (GPM). */
#include "harness/emulate/client/ask.h"

#include <stdlib.h>
#include <string.h>

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
