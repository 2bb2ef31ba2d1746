/* Beside NVML: what hosts that know this library may ask (harness/live/vendor/nvml/extension.h), and tests. */
#include "harness/emulate/client/ask.h"

/* What NVML cannot say of a board: the lock in force. which: fl_ask_lock. NVML_NOT_FOUND where nothing is locked. */
FL_EXPORT(foldlineEmulatedLock, nvmlDevice_t d, int which, unsigned int *mhz) {
    return fl_ask_uint(__func__, d, FL_NUMBER_LOCK, (unsigned int)which, mhz);
}

FL_EXPORT(foldlineSetRecords, uint32_t gpu, double value) {
    return fl_ask_set_to(__func__, (nvmlDevice_t)(uintptr_t)(FL_HANDLE_BASE + 1 + gpu), FL_SETS_RECORDS, value > 0, 0);
}
