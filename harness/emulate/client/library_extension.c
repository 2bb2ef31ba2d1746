/* Beside NVML: what hosts that know this library may ask (harness/live/vendor/extension.h), and tests. */
#include "harness/emulate/client/ask.h"
#include "policies/policy.h"

#include <string.h>

/* What NVML cannot say of a board: the lock in force. which: fl_ask_lock. NVML_NOT_FOUND where nothing is locked. */
FL_EXPORT(foldlineEmulatedLock, nvmlDevice_t d, int which, unsigned int *mhz) {
    return fl_ask_uint(__func__, d, FL_NUMBER_LOCK, (unsigned int)which, mhz);
}

FL_EXPORT(foldlineReadNode, fl_gpu_sample *gpu, uint32_t gpus, fl_host_sample *host) {
    unsigned char bytes[FL_ANSWER_BYTES];
    unsigned int got = 0;
    fl_question q = {.op = FL_ASK_NODE, .a = 1};
    nvmlReturn_t r = gpu && host ? fl_ask_for(__func__, &q, bytes, sizeof bytes, &got) : NVML_INVALID_ARGUMENT;
    if (r != NVML_SUCCESS)
        return r;
    if (got < sizeof *host + gpus * sizeof *gpu)
        return NVML_INVALID_ARGUMENT;
    memcpy(host, bytes, sizeof *host);
    memcpy(gpu, bytes + sizeof *host, gpus * sizeof *gpu);
    return NVML_SUCCESS;
}

FL_EXPORT(foldlineSetHost, int control, double value) {
    fl_question q = {.op = FL_ASK_SET,
                     .device = (nvmlDevice_t)(uintptr_t)(FL_HANDLE_BASE + 1),
                     .a = FL_SETS_HOST,
                     .b = (unsigned int)control};
    memcpy(&q.wide, &value, sizeof value);
    return fl_ask_for(__func__, &q, NULL, 0, NULL);
}

FL_EXPORT(foldlineSetRecords, uint32_t gpu, double value) {
    return fl_ask_set_to(__func__, (nvmlDevice_t)(uintptr_t)(FL_HANDLE_BASE + 1 + gpu), FL_SETS_RECORDS, value > 0, 0);
}
