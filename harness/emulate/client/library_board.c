/* Simulated NVML: what a plain board says of itself: no MIG, no vGPU, one board for each GPU, one fan, power from the
 * socket. */
#include "harness/emulate/client/inside.h"

#include "harness/emulate/client/abi.h"
#include "harness/emulate/client/client.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define FL_SET(name, what)                                                                                             \
    FL_EXPORT(name, nvmlDevice_t d, unsigned int b, unsigned int c) { return fl_ask_set_to(__func__, d, what, b, c); }
#define FL_RESET(name, what)                                                                                           \
    FL_EXPORT(name, nvmlDevice_t d) { return fl_ask_set_to(__func__, d, what, 0, 0); }

/* ---- what a plain board reports ---- */

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

/* Simulated NVML: controls, and the clocks and limits they can take. */

static nvmlReturn_t clocks(const char *call, nvmlDevice_t d, unsigned int memory, unsigned int *count,
                           unsigned int *mhz) {
    unsigned int list[FL_ANSWER_BYTES / sizeof(unsigned int)], got = 0;
    if (!count)
        return fl_ask_wrong(call);
    fl_question q = {.op = FL_ASK_CLOCKS, .device = d, .a = memory};
    nvmlReturn_t r = fl_ask_for(call, &q, list, sizeof list, &got);
    if (r != NVML_SUCCESS)
        return r;
    const unsigned int room = *count;
    *count = got / (unsigned int)sizeof *list;
    if (room < *count)
        return NVML_INSUFFICIENT_SIZE;
    if (*count && !mhz)
        return fl_ask_wrong(call);
    if (got)
        memcpy(mhz, list, got);
    return NVML_SUCCESS;
}
FL_EXPORT(nvmlDeviceGetSupportedMemoryClocks, nvmlDevice_t d, unsigned int *count, unsigned int *mhz) {
    return clocks(__func__, d, 0, count, mhz);
}
FL_EXPORT(nvmlDeviceGetSupportedGraphicsClocks, nvmlDevice_t d, unsigned int memory, unsigned int *count,
          unsigned int *mhz) {
    return clocks(__func__, d, memory ? memory : ~0u, count, mhz);
}

FL_SET(nvmlDeviceSetGpuLockedClocks, FL_SETS_SM)
FL_RESET(nvmlDeviceResetGpuLockedClocks, FL_SETS_SM_DEFAULT)
FL_SET(nvmlDeviceSetMemoryLockedClocks, FL_SETS_MEM)
FL_RESET(nvmlDeviceResetMemoryLockedClocks, FL_SETS_MEM_DEFAULT)
FL_SET(nvmlDeviceSetApplicationsClocks, FL_SETS_TARGET)
FL_RESET(nvmlDeviceResetApplicationsClocks, FL_SETS_TARGET_DEFAULT)

FL_READ(nvmlDeviceGetPowerManagementLimit, FL_NUMBER_LIMIT)
FL_READ(nvmlDeviceGetEnforcedPowerLimit, FL_NUMBER_LIMIT)
FL_READ(nvmlDeviceGetPowerManagementDefaultLimit, FL_NUMBER_LIMIT_DEFAULT)
FL_EXPORT(nvmlDeviceGetPowerManagementLimitConstraints, nvmlDevice_t d, unsigned int *min, unsigned int *max) {
    nvmlReturn_t r = min && max ? fl_ask_uint(__func__, d, FL_NUMBER_LIMIT_MIN, 0, min) : fl_ask_wrong(__func__);
    return r == NVML_SUCCESS ? fl_ask_uint(__func__, d, FL_NUMBER_LIMIT_MAX, 0, max) : r;
}
FL_READ_CONSTANT(nvmlDeviceGetPowerManagementMode, 1)
FL_EXPORT(nvmlDeviceSetPowerManagementLimit, nvmlDevice_t d, unsigned int mw) {
    return fl_ask_set_to(__func__, d, FL_SETS_LIMIT, mw, 0);
}
FL_EXPORT(nvmlDeviceSetPowerManagementLimit_v2, nvmlDevice_t d, nvmlPowerValue_v2_t *value) {
    if (!value)
        return fl_ask_wrong(__func__);
    if (value->version != (sizeof *value | 2u << 24))
        return NVML_ARGUMENT_VERSION_MISMATCH;
    return value->powerScope ? NVML_NOT_SUPPORTED : fl_ask_set_to(__func__, d, FL_SETS_LIMIT, value->powerValueMw, 0);
}

FL_EXPORT(nvmlDeviceSetPersistenceMode, nvmlDevice_t d, int mode) {
    return mode != 0 && mode != 1 ? fl_ask_wrong(__func__)
                                  : fl_ask_set_to(__func__, d, FL_SETS_PERSISTENCE, (unsigned int)mode, 0);
}
FL_EXPORT(nvmlDeviceSetAPIRestriction, nvmlDevice_t d, int api, int restricted) {
    return fl_ask_set_to(__func__, d, FL_SETS_RESTRICTION, (unsigned int)api, restricted != 0);
}
FL_EXPORT(nvmlDeviceGetAPIRestriction, nvmlDevice_t d, int api, int *restricted) {
    unsigned int on;
    if (!restricted)
        return fl_ask_wrong(__func__);
    nvmlReturn_t r = fl_ask_uint(__func__, d, FL_NUMBER_RESTRICTION, (unsigned int)api, &on);
    if (r == NVML_SUCCESS)
        *restricted = (int)on;
    return r;
}
