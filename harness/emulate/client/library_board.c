/* Simulated NVML: what a plain board says of itself: no MIG, no vGPU, one board for each GPU, one fan, power from the
 * socket. */
#include "harness/emulate/client/ask.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

_Static_assert(sizeof(nvmlDeviceAddressingMode_v1_t) == 8, "layout of nvmlDeviceAddressingMode_v1_t");
_Static_assert(sizeof(nvmlPciInfoExt_v1_t) == 64, "layout of nvmlPciInfoExt_v1_t");
_Static_assert(sizeof(nvmlUUID_v1_t) == 52, "layout of nvmlUUID_v1_t");
_Static_assert(sizeof(nvmlSystemDriverBranchInfo_v1_t) == 84, "layout of nvmlSystemDriverBranchInfo_v1_t");

FL_READ_CONSTANT(nvmlDeviceIsMigDeviceHandle, 0)
FL_READ_CONSTANT(nvmlDeviceGetMaxMigDeviceCount, 0)
FL_READ_CONSTANT(nvmlDeviceGetMultiGpuBoard, 0)
FL_READ_CONSTANT(nvmlDeviceGetPowerSource, 0) /* the socket */
FL_READ_CONSTANT(nvmlDeviceGetBusType, 2)     /* PCI Express */
FL_READ_CONSTANT(nvmlDeviceGetGpuMaxPcieLinkGeneration, 4)
FL_READ_CONSTANT(nvmlDeviceGetPcieLinkMaxSpeed, 16000) /* MB/s of generation 4 */
FL_READ_CONSTANT(nvmlDeviceGetPcieSpeed, 16000)
FL_READ_CONSTANT(nvmlDeviceGetAccountingBufferSize, 4000)

/* How many of something there are without a device. */
static nvmlReturn_t none_of(const char *call, unsigned int *count) {
    const nvmlReturn_t r = count ? fl_ask_begun(call) : fl_ask_wrong(call);
    if (!r)
        *count = 0;
    return r;
}
FL_EXPORT(nvmlUnitGetCount, unsigned int *count) { return none_of(__func__, count); }
FL_EXPORT(nvmlGetExcludedDeviceCount, unsigned int *count) { return none_of(__func__, count); }
FL_EXPORT(nvmlSystemGetHicVersion, unsigned int *count, void *entries) {
    (void)entries;
    return none_of(__func__, count);
}

static nvmlReturn_t fan(const char *call, nvmlDevice_t d, unsigned int which, unsigned int value, unsigned int *out) {
    unsigned int
        none; /* who gives no fan may give no place for its speed either: PCP's agent calls it like the first */
    if (!which)
        return fl_ask_uint(call, d, FL_NUMBER_CONSTANT, value, out);
    const nvmlReturn_t r = fl_ask_uint(call, d, FL_NUMBER_CONSTANT, 0, &none);
    return r ? r : NVML_INVALID_ARGUMENT;
}
#define FL_FAN(name, value)                                                                                            \
    FL_EXPORT(name, nvmlDevice_t d, unsigned int which, unsigned int *out) {                                           \
        return fan(__func__, d, which, value, out);                                                                    \
    }
FL_FAN(nvmlDeviceGetFanSpeed_v2, FL_FAN_PERCENT)
FL_FAN(nvmlDeviceGetTargetFanSpeed, FL_FAN_PERCENT)
FL_FAN(nvmlDeviceGetFanControlPolicy_v2, 0) /* by temperature */

static nvmlReturn_t engine(const char *call, nvmlDevice_t d, unsigned int *share, unsigned int *period_us) {
    const nvmlReturn_t r = period_us ? fl_ask_uint(call, d, FL_NUMBER_CONSTANT, 0, share) : fl_ask_wrong(call);
    if (!r)
        *period_us = FL_CODER_PERIOD_US;
    return r;
}
#define FL_ENGINE(name)                                                                                                \
    FL_EXPORT(name, nvmlDevice_t d, unsigned int *share, unsigned int *period_us) {                                    \
        return engine(__func__, d, share, period_us);                                                                  \
    }
FL_ENGINE(nvmlDeviceGetEncoderUtilization)
FL_ENGINE(nvmlDeviceGetDecoderUtilization)
FL_ENGINE(nvmlDeviceGetJpgUtilization)
FL_ENGINE(nvmlDeviceGetOfaUtilization)

FL_EXPORT(nvmlDeviceGetBoardId, nvmlDevice_t d, unsigned int *id) {
    nvmlPciInfo_t pci;
    fl_question q = {.op = FL_ASK_PCI, .device = d};
    const nvmlReturn_t r = id ? fl_ask_for(__func__, &q, &pci, sizeof pci, NULL) : fl_ask_wrong(__func__);
    if (!r)
        *id = pci.domain << 16 | pci.bus << 8; /* one for each board */
    return r;
}
FL_EXPORT(nvmlDeviceOnSameBoard, nvmlDevice_t one, nvmlDevice_t other, int *same) {
    unsigned int a = 0, b = 0;
    nvmlReturn_t r = same ? fl_ask_uint(__func__, one, FL_NUMBER_INDEX, 0, &a) : fl_ask_wrong(__func__);
    if (!r)
        r = fl_ask_uint(__func__, other, FL_NUMBER_INDEX, 0, &b);
    if (!r)
        *same = a == b;
    return r;
}

/* Of the states that NVML numbers, 0 and 8 are simulated; the rest of the list is "unknown". */
FL_EXPORT(nvmlDeviceGetSupportedPerformanceStates, nvmlDevice_t d, unsigned int *states, unsigned int bytes) {
    unsigned int now;
    const nvmlReturn_t r = states ? fl_ask_uint(__func__, d, FL_NUMBER_PSTATE, 0, &now) : fl_ask_wrong(__func__);
    if (r)
        return r;
    if (bytes < 2 * sizeof *states)
        return NVML_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < bytes / sizeof *states && i < 16; i++)
        states[i] = i == 0 ? 0 : i == 1 ? 8 : 32;
    return NVML_SUCCESS;
}

/* ---- structs with a version ---- */

/* Begun, there, and of this version. */
static nvmlReturn_t versioned(const char *call, const void *out, unsigned int version) {
    unsigned int asked;
    const nvmlReturn_t r = out ? fl_ask_begun(call) : fl_ask_wrong(call);
    if (r)
        return r;
    memcpy(&asked, out, sizeof asked);
    return asked == version ? NVML_SUCCESS : NVML_ARGUMENT_VERSION_MISMATCH;
}
#define VERSION(type, n) ((unsigned int)sizeof(type) | (n) << 24)

FL_EXPORT(nvmlDeviceGetAddressingMode, nvmlDevice_t d, nvmlDeviceAddressingMode_v1_t *out) {
    unsigned int none;
    nvmlReturn_t r = fl_ask_uint(__func__, d, FL_NUMBER_CONSTANT, 0, &none);
    if (!r && !(r = versioned(__func__, out, VERSION(nvmlDeviceAddressingMode_v1_t, 1u))))
        out->value = none; /* neither HMM nor ATS */
    return r;
}
FL_EXPORT(nvmlDeviceGetPciInfoExt, nvmlDevice_t d, nvmlPciInfoExt_v1_t *out) {
    nvmlPciInfo_t pci;
    fl_question q = {.op = FL_ASK_PCI, .device = d};
    nvmlReturn_t r = fl_ask_for(__func__, &q, &pci, sizeof pci, NULL);
    if (r || (r = versioned(__func__, out, VERSION(nvmlPciInfoExt_v1_t, 1u))))
        return r;
    *out = (nvmlPciInfoExt_v1_t){.version = out->version,
                                 .domain = pci.domain,
                                 .bus = pci.bus,
                                 .device = pci.device,
                                 .pciDeviceId = pci.pciDeviceId,
                                 .pciSubSystemId = pci.pciSubSystemId,
                                 .baseClass = 3, /* display controller */
                                 .subClass = 2}; /* 3D */
    memcpy(out->busId, pci.busId, sizeof out->busId);
    return r;
}
FL_EXPORT(nvmlDeviceGetHandleByUUIDV, const nvmlUUID_v1_t *uuid, nvmlDevice_t *device) {
    char text[sizeof uuid->value.str + 1] = "";
    const unsigned char *b;
    nvmlReturn_t r = versioned(__func__, uuid, VERSION(nvmlUUID_v1_t, 1u));
    if (r)
        return r;
    if (uuid->type == 1) {
        memcpy(text, uuid->value.str, sizeof uuid->value.str);
    } else if (uuid->type == 2) {
        b = uuid->value.bytes;
        snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                 b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
    } else {
        return NVML_INVALID_ARGUMENT;
    }
    return fl_ask_handle(__func__, (fl_question){.op = FL_ASK_BY_TEXT, .a = FL_TEXT_UUID, .text = text}, device);
}
FL_EXPORT(nvmlSystemGetDriverBranch, nvmlSystemDriverBranchInfo_v1_t *out, unsigned int length) {
    char version[80] = "";
    nvmlReturn_t r = versioned(__func__, out, VERSION(nvmlSystemDriverBranchInfo_v1_t, 1u));
    if (!r)
        r = fl_ask_chars(__func__, NULL, FL_TEXT_DRIVER, version, sizeof version);
    if (r)
        return r;
    version[strcspn(version, ".")] = 0;
    char branch[sizeof out->branch];
    const int n = snprintf(branch, sizeof branch, "r%.16s_00", version);
    if ((unsigned int)n >= length || n >= (int)sizeof branch)
        return NVML_INSUFFICIENT_SIZE;
    memcpy(out->branch, branch, (size_t)n + 1);
    return r;
}

/* Of a process of this machine its command; the workload's are not on it. */
FL_EXPORT(nvmlSystemGetProcessName, unsigned int pid, char *name, unsigned int length) {
    char path[64], text[256] = "foldline-workload";
    const nvmlReturn_t r = name && length ? fl_ask_begun(__func__) : fl_ask_wrong(__func__);
    if (r)
        return r;
    if (pid < FL_WORKLOAD_PID) {
        snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return NVML_NOT_FOUND;
        const ssize_t n = read(fd, text, sizeof text - 1);
        text[n > 0 ? n : 0] = 0;
        close(fd);
    }
    snprintf(name, length, "%s", text);
    return strlen(text) < length ? NVML_SUCCESS : NVML_INSUFFICIENT_SIZE;
}
