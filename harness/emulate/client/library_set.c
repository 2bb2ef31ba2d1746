/* Simulated NVML: controls, and the clocks and limits they can take. */
#include "harness/emulate/client/ask.h"

#include <string.h>

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
