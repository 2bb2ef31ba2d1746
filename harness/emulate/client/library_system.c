/* Simulated NVML: begin and end, and finding devices. Semantics: pre-init calls say so, init is counted, extra
 * shutdowns are no error. */
#include "harness/emulate/client/inside.h"

#include "harness/emulate/client/abi.h"
#include "harness/emulate/client/client.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FL_READ_TEXT(name, which)                                                                                      \
    FL_EXPORT(name, nvmlDevice_t d, char *out, unsigned int length) {                                                  \
        return fl_ask_chars(__func__, d, which, out, length);                                                          \
    }

static atomic_uint called; /* whether this program image has asked before: after an exec it has not */

__attribute__((visibility("default"))) const char *nvmlErrorString(nvmlReturn_t result);
const char *nvmlErrorString(nvmlReturn_t result) {
    static const char *const text[] = {
        "Success",
        "Uninitialized",
        "Invalid Argument",
        "Not Supported",
        "Insufficient Permissions",
        "Already Initialized",
        "Not Found",
        "Insufficient Size",
        "Insufficient External Power",
        "Driver Not Loaded",
        "Timeout",
        "Interrupt Request Issue",
        "NVML Shared Library Not Found",
        "Function Not Found",
        "Corrupted infoROM",
        "GPU is lost",
        "GPU requires restart",
        "The operating system has blocked the request.",
        "RM has detected an NVML/RM version mismatch.",
        "GPU is currently in use",
        "Insufficient Memory",
        "No data",
        "ECC is not supported on this vGPU",
        "Insufficient Resources",
        "Frequency is not supported",
        "Argument version mismatch",
        "Deprecated",
        "Not ready",
        "GPU not found",
        "Invalid state",
        "Reset type is not supported",
    };
    return result >= 0 && result < (int)(sizeof text / sizeof *text) ? text[result] : "Unknown Error";
}

static nvmlReturn_t begin(const char *call, unsigned int flags) {
    fl_question q = {.op = FL_ASK_INIT, .a = atomic_exchange(&called, 1) ? 0 : 1, .b = flags};
    return fl_ask_for(call, &q, NULL, 0, NULL);
}
FL_EXPORT(nvmlInit, void) { return begin(__func__, 0); }
FL_EXPORT(nvmlInit_v2, void) { return begin(__func__, 0); }
FL_EXPORT(nvmlInitWithFlags, unsigned int flags) { return begin(__func__, flags); }
FL_EXPORT(nvmlShutdown, void) {
    fl_question q = {.op = FL_ASK_SHUTDOWN};
    return fl_ask_for(__func__, &q, NULL, 0, NULL);
}

FL_EXPORT(nvmlSystemGetDriverVersion, char *version, unsigned int length) {
    return fl_ask_chars(__func__, NULL, FL_TEXT_DRIVER, version, length);
}
FL_EXPORT(nvmlSystemGetNVMLVersion, char *version, unsigned int length) {
    return fl_ask_chars(__func__, NULL, FL_TEXT_LIBRARY, version, length);
}
FL_EXPORT(nvmlSystemGetCudaDriverVersion, int *version) {
    char text[16] = "";
    const nvmlReturn_t r =
        version ? fl_ask_chars(__func__, NULL, FL_TEXT_CUDA, text, sizeof text) : NVML_INVALID_ARGUMENT;
    if (!r)
        *version = (int)strtol(text, NULL, 10);
    return r; /* needs no begin */
}
FL_EXPORT(nvmlSystemGetCudaDriverVersion_v2, int *version) { return nvmlSystemGetCudaDriverVersion(version); }

static nvmlReturn_t count(const char *call, unsigned int *n) {
    fl_question q = {.op = FL_ASK_COUNT};
    return n ? fl_ask_for(call, &q, n, sizeof *n, NULL) : fl_ask_wrong(call);
}
FL_EXPORT(nvmlDeviceGetCount, unsigned int *n) { return count(__func__, n); }
FL_EXPORT(nvmlDeviceGetCount_v2, unsigned int *n) { return count(__func__, n); }

static nvmlReturn_t by_index(const char *call, unsigned int index, nvmlDevice_t *device) {
    return fl_ask_handle(call, (fl_question){.op = FL_ASK_BY_INDEX, .a = index}, device);
}
static nvmlReturn_t by_text(const char *call, fl_ask_text what, const char *text, nvmlDevice_t *device) {
    return text ? fl_ask_handle(call, (fl_question){.op = FL_ASK_BY_TEXT, .a = what, .text = text}, device)
                : fl_ask_wrong(call);
}
FL_EXPORT(nvmlDeviceGetHandleByIndex, unsigned int index, nvmlDevice_t *device) {
    return by_index(__func__, index, device);
}
FL_EXPORT(nvmlDeviceGetHandleByIndex_v2, unsigned int index, nvmlDevice_t *device) {
    return by_index(__func__, index, device);
}
#define FL_BY_TEXT(name, what)                                                                                         \
    FL_EXPORT(name, const char *text, nvmlDevice_t *device) { return by_text(__func__, what, text, device); }
FL_BY_TEXT(nvmlDeviceGetHandleByUUID, FL_TEXT_UUID)
FL_BY_TEXT(nvmlDeviceGetHandleBySerial, FL_TEXT_SERIAL)
FL_BY_TEXT(nvmlDeviceGetHandleByPciBusId, FL_TEXT_PCI)
FL_BY_TEXT(nvmlDeviceGetHandleByPciBusId_v2, FL_TEXT_PCI)

FL_READ_TEXT(nvmlDeviceGetName, FL_TEXT_NAME)
FL_READ_TEXT(nvmlDeviceGetUUID, FL_TEXT_UUID)
FL_READ_TEXT(nvmlDeviceGetSerial, FL_TEXT_SERIAL)
FL_READ_TEXT(nvmlDeviceGetVbiosVersion, FL_TEXT_VBIOS)
FL_READ(nvmlDeviceGetIndex, FL_NUMBER_INDEX)
FL_READ(nvmlDeviceGetMinorNumber, FL_NUMBER_INDEX)

static nvmlReturn_t pci_info(const char *call, nvmlDevice_t d, nvmlPciInfo_t *pci) {
    fl_question q = {.op = FL_ASK_PCI, .device = d};
    return pci ? fl_ask_for(call, &q, pci, sizeof *pci, NULL) : fl_ask_wrong(call);
}
FL_EXPORT(nvmlDeviceGetPciInfo_v3, nvmlDevice_t d, nvmlPciInfo_t *pci) { return pci_info(__func__, d, pci); }
static nvmlReturn_t old_pci_info(const char *call, nvmlDevice_t d, nvmlPciInfo_v1_t *pci) {
    nvmlPciInfo_t now;
    if (!pci)
        return fl_ask_wrong(call);
    nvmlReturn_t r = pci_info(call, d, &now);
    if (r != NVML_SUCCESS)
        return r;
    memset(pci, 0, sizeof *pci);
    memcpy(pci->busId, now.busIdLegacy, sizeof pci->busId);
    pci->domain = now.domain;
    pci->bus = now.bus;
    pci->device = now.device;
    pci->pciDeviceId = now.pciDeviceId;
    pci->pciSubSystemId = now.pciSubSystemId;
    return r;
}
FL_EXPORT(nvmlDeviceGetPciInfo, nvmlDevice_t d, nvmlPciInfo_v1_t *pci) { return old_pci_info(__func__, d, pci); }
FL_EXPORT(nvmlDeviceGetPciInfo_v2, nvmlDevice_t d, nvmlPciInfo_v1_t *pci) { return old_pci_info(__func__, d, pci); }

FL_READ(nvmlDeviceGetArchitecture, FL_NUMBER_ARCHITECTURE)
FL_EXPORT(nvmlDeviceGetCudaComputeCapability, nvmlDevice_t d, int *major, int *minor) {
    unsigned int v;
    if (!major || !minor)
        return fl_ask_wrong(__func__);
    nvmlReturn_t r = fl_ask_uint(__func__, d, FL_NUMBER_CAPABILITY, 0, &v);
    if (r == NVML_SUCCESS) {
        *major = (int)(v >> 16);
        *minor = (int)(v & 0xffff);
    }
    return r;
}
FL_READ(nvmlDeviceGetNumGpuCores, FL_NUMBER_CORES)
