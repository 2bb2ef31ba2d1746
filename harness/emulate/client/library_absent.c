/* Simulated NVML: functions behind which nothing is simulated. Each checks its arguments as the driver's library does:
 * begun, handles, pointers, versions; then it is not supported, as on a board without MIG, vGPU, NVLink, ECC memory or
 * an infoROM. What they are and what each takes is a table (nvml_names.inc). */
#include "harness/emulate/client/ask.h"

#include <string.h>

enum { ARGUMENTS_MAX = 6 };

/* What is wrong with one argument, NVML_SUCCESS where nothing is. Handles of devices are the server's to judge. */
static nvmlReturn_t check(char kind, uintptr_t value) {
    unsigned int version;
    switch (kind) {
    case 'p':
        return value ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
    case 's':
        if (!value)
            return NVML_INVALID_ARGUMENT;
        memcpy(&version, (const void *)value, sizeof version);
        /* Sizes of structs that nothing fills are not recorded here: only a version that was forgotten is told. */
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
