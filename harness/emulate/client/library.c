/* How the functions of the simulated NVML ask the server. */
#include "harness/emulate/client/abi.h"
#include "harness/emulate/client/client.h"
#include "harness/emulate/client/inside.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FL_HANDLE_BASE 0x0f01d000u /* of the opaque device handles: base + index + 1 */

/* ---- asking ---- */

nvmlReturn_t fl_ask_for(const char *call, const fl_question *q, void *out, unsigned int size, unsigned int *got) {
    fl_answer answer;
    fl_ask ask;
    memset(&ask, 0, sizeof ask);
    ask.op = q->op;
    ask.gpu = (uint32_t)((uintptr_t)q->device - FL_HANDLE_BASE - 1);
    if (!q->device || (uintptr_t)q->device > UINT32_MAX)
        ask.gpu = UINT32_MAX;
    ask.a = q->a;
    ask.b = q->b;
    ask.c = q->c;
    ask.wide = q->wide;
    strncpy(ask.call, call, sizeof ask.call - 1);
    if (q->text)
        strncpy(ask.text, q->text, sizeof ask.text - 1);
    if (fl_link_ask(&ask, &answer))
        return NVML_DRIVER_NOT_LOADED;
    if (answer.result == NVML_SUCCESS && out && size)
        memcpy(out, answer.bytes, answer.size < size ? answer.size : size);
    if (got)
        *got = answer.size;
    return answer.result;
}

nvmlReturn_t fl_ask_begun(const char *call) {
    unsigned int n;
    const fl_question q = {.op = FL_ASK_COUNT};
    return fl_ask_for(call, &q, &n, sizeof n, NULL);
}

nvmlReturn_t fl_ask_wrong(const char *call) {
    const nvmlReturn_t r = fl_ask_begun(call);
    return r ? r : NVML_INVALID_ARGUMENT;
}

nvmlReturn_t fl_ask_wide(const char *call, nvmlDevice_t d, fl_ask_number n, unsigned int b, unsigned long long *out) {
    fl_question q = {.op = FL_ASK_NUMBER, .device = d, .a = n, .b = b};
    return out ? fl_ask_for(call, &q, out, sizeof *out, NULL) : fl_ask_wrong(call);
}

nvmlReturn_t fl_ask_uint(const char *call, nvmlDevice_t d, fl_ask_number n, unsigned int b, unsigned int *out) {
    unsigned long long wide;
    if (!out)
        return fl_ask_wrong(call);
    nvmlReturn_t r = fl_ask_wide(call, d, n, b, &wide);
    if (r == NVML_SUCCESS)
        *out = (unsigned int)wide;
    return r;
}

nvmlReturn_t fl_ask_chars(const char *call, nvmlDevice_t d, fl_ask_text which, char *out, unsigned int length) {
    char text[96] = "";
    unsigned int got = 0;
    if (!out)
        return fl_ask_wrong(call);
    fl_question q = {.op = FL_ASK_TEXT, .device = d, .a = which};
    nvmlReturn_t r = fl_ask_for(call, &q, text, sizeof text, &got);
    if (r != NVML_SUCCESS)
        return r;
    if (got > length)
        return NVML_INSUFFICIENT_SIZE;
    memcpy(out, text, got);
    return NVML_SUCCESS;
}

nvmlReturn_t fl_ask_set_to(const char *call, nvmlDevice_t d, fl_ask_set what, unsigned int b, unsigned int c) {
    fl_question q = {.op = FL_ASK_SET, .device = d, .a = what, .b = b, .c = c};
    return fl_ask_for(call, &q, NULL, 0, NULL);
}

nvmlReturn_t fl_ask_handle(const char *call, fl_question q, nvmlDevice_t *device) {
    unsigned int index = 0;
    if (!device)
        return fl_ask_wrong(call);
    nvmlReturn_t r = fl_ask_for(call, &q, &index, sizeof index, NULL);
    if (r == NVML_SUCCESS)
        *device = (nvmlDevice_t)(uintptr_t)(FL_HANDLE_BASE + index + 1);
    return r;
}

/* Beside NVML: what hosts that know this library may ask (harness/live/vendor/nvml/inside.h), and tests. */

/* Returns the clock lock in force, for which NVML has no call. which: fl_ask_lock. NVML_NOT_FOUND: nothing is locked.
 */
FL_EXPORT(foldlineEmulatedLock, nvmlDevice_t d, int which, unsigned int *mhz) {
    return fl_ask_uint(__func__, d, FL_NUMBER_LOCK, (unsigned int)which, mhz);
}

FL_EXPORT(foldlineSetRecords, uint32_t gpu, double value) {
    return fl_ask_set_to(__func__, (nvmlDevice_t)(uintptr_t)(FL_HANDLE_BASE + 1 + gpu), FL_SETS_RECORDS, value > 0, 0);
}

/* Simulated NVML: events. The server keeps the sets and what came; a wait asks it again and again, asleep in between,
 * so that it takes the time of the session, virtual or not. */

#define LOOK_MS 10u /* between two looks; what comes and goes in between is counted by the server all the same */

_Static_assert(sizeof(nvmlEventData_t) == 32 && sizeof(nvmlEventData_v1_t) == 24, "layout of nvmlEventData_t");

FL_EXPORT(nvmlEventSetCreate, nvmlEventSet_t *set) {
    unsigned int number = 0;
    const fl_question q = {.op = FL_ASK_EVENT_SET};
    const nvmlReturn_t r = set ? fl_ask_for(__func__, &q, &number, sizeof number, NULL) : fl_ask_wrong(__func__);
    if (!r)
        *set = (nvmlEventSet_t)(uintptr_t)number;
    return r;
}
FL_EXPORT(nvmlEventSetFree, nvmlEventSet_t set) {
    const fl_question q = {.op = FL_ASK_EVENT_FREE, .a = (unsigned int)(uintptr_t)set};
    return fl_ask_for(__func__, &q, NULL, 0, NULL);
}
FL_EXPORT(nvmlDeviceGetSupportedEventTypes, nvmlDevice_t d, unsigned long long *kinds) {
    return fl_ask_wide(__func__, d, FL_NUMBER_CONSTANT, NVML_EVENT_PSTATE | NVML_EVENT_XID | NVML_EVENT_CLOCK, kinds);
}
FL_EXPORT(nvmlDeviceRegisterEvents, nvmlDevice_t d, unsigned long long kinds, nvmlEventSet_t set) {
    const fl_question q = {.op = FL_ASK_EVENT_ADD, .device = d, .a = (unsigned int)(uintptr_t)set, .wide = kinds};
    return fl_ask_for(__func__, &q, NULL, 0, NULL);
}

static nvmlReturn_t wait_for(const char *call, nvmlEventSet_t set, nvmlEventData_t *out, unsigned int timeout_ms) {
    fl_ask_event event;
    const fl_question q = {.op = FL_ASK_EVENT_NEXT, .a = (unsigned int)(uintptr_t)set};
    for (unsigned int left = timeout_ms;;) {
        const nvmlReturn_t r = out ? fl_ask_for(call, &q, &event, sizeof event, NULL) : fl_ask_wrong(call);
        if (!r)
            *out = (nvmlEventData_t){.device = (nvmlDevice_t)(uintptr_t)(FL_HANDLE_BASE + event.gpu + 1),
                                     .eventType = event.kind,
                                     .eventData = event.data,
                                     .gpuInstanceId = ~0u,
                                     .computeInstanceId = ~0u};
        if (r != NVML_TIMEOUT || !left)
            return r;
        const unsigned int ms = left < LOOK_MS ? left : LOOK_MS;
        struct timespec pause = {0, (long)ms * 1000000};
        while (nanosleep(&pause, &pause)) { /* a signal's handler has run: the rest of it */
        }
        left -= ms;
    }
}
FL_EXPORT(nvmlEventSetWait_v2, nvmlEventSet_t set, nvmlEventData_t *out, unsigned int timeout_ms) {
    return wait_for(__func__, set, out, timeout_ms);
}
FL_EXPORT(nvmlEventSetWait, nvmlEventSet_t set, nvmlEventData_v1_t *out, unsigned int timeout_ms) {
    nvmlEventData_t event;
    const nvmlReturn_t r = wait_for(__func__, set, out ? &event : NULL, timeout_ms);
    if (!r)
        *out = (nvmlEventData_v1_t){event.device, event.eventType, event.eventData};
    return r;
}

/* Simulated NVML: functions behind which nothing is simulated. Each checks its arguments as the driver's library does:
 * begun, handles, pointers, versions; then it is not supported, as on a board without MIG, vGPU, NVLink, ECC memory or
 * an infoROM. What they are and what each takes is a table (nvml_names.inc). */

enum { ARGUMENTS_MAX = 6 };

/* Checks one argument: NVML_SUCCESS if it is right. The server checks device handles. */
static nvmlReturn_t check(char kind, uintptr_t value) {
    unsigned int version;
    switch (kind) {
    case 'p':
        return value ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
    case 's':
        if (!value)
            return NVML_INVALID_ARGUMENT;
        memcpy(&version, (const void *)value, sizeof version);
        /* The library has no sizes of structs that it never fills, so it reports only a missing version. */
        return version >> 24 && version & 0xffffff ? NVML_SUCCESS : NVML_ARGUMENT_VERSION_MISMATCH;
    case 'i':
    case 'c':
    case 't':
    case 'n':
    case 'x':
        return NVML_INVALID_ARGUMENT;
    case 'v':
        return (unsigned int)value ? NVML_NOT_FOUND : NVML_INVALID_ARGUMENT;
    default: /* d, o, u */
        return NVML_SUCCESS;
    }
}

static nvmlReturn_t absent(const char *call, const char *arguments, const uintptr_t value[ARGUMENTS_MAX]) {
    nvmlReturn_t r = fl_ask_begun(call);
    unsigned int none;
    for (size_t i = 0; !r && arguments[i]; i++)
        if (arguments[i] == 'd')
            r = fl_ask_uint(call, (nvmlDevice_t)value[i], FL_NUMBER_CONSTANT, 0, &none);
    for (size_t i = 0; !r && arguments[i]; i++)
        r = check(arguments[i], value[i]);
    return r ? r : NVML_NOT_SUPPORTED;
}

/* No function takes more than six arguments, and none a float: each has a register of its own, and what the caller did
 * not give is not looked at. */
#define FL_ANSWERED(name, since)
#define FL_ABSENT(name, since, arguments)                                                                              \
    FL_EXPORT(name, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f) {                    \
        _Static_assert(sizeof(arguments) - 1 <= ARGUMENTS_MAX, "arguments of " #name);                                 \
        const uintptr_t value[ARGUMENTS_MAX] = {a, b, c, d, e, f};                                                     \
        return absent(__func__, arguments, value);                                                                     \
    }
#include "harness/emulate/client/nvml_names.inc"

/* ---- begin, end, and finding devices ---- */

/* Simulated NVML: begin and end, and finding devices. Semantics: pre-init calls say so, init is counted, extra
 * shutdowns are no error. */

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
