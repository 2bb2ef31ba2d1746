/* The calls of Level Zero, its codes, and what they mean. */
#include "harness/live/vendor/ze/inside.h"

#include "harness/live/vendor/vendor.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdlib.h>

/* ---- the library ---- */

static const char *const NAMES[] = {"libze_loader.so.1", NULL};

static const struct {
    fl_ze_code code;
    const char *text;
} CODES[] = {{FL_ZE_LOST, "GPU is lost"},
             {FL_ZE_NEEDS_RESET, "GPU needs a reset"},
             {FL_ZE_NO_PERMISSION, "no permission"},
             {FL_ZE_NOT_AVAILABLE, "in use by somebody else"},
             {FL_ZE_DEPENDENCY, "a driver or library that it needs is missing"},
             {FL_ZE_UNINITIALIZED, "no driver that it can start"},
             {FL_ZE_UNSUPPORTED, "not supported"},
             {FL_ZE_INVALID, "refuses the argument"}};

const char *fl_ze_reason(fl_ze_code code) {
    for (size_t i = 0; i < sizeof CODES / sizeof *CODES; i++)
        if (CODES[i].code == code)
            return CODES[i].text;
    return "unknown error";
}

int fl_ze_gone(fl_ze_code code) {
    return code == FL_ZE_LOST || code == FL_ZE_NEEDS_RESET || code == FL_ZE_UNINITIALIZED;
}

/* the call was refused and nothing has changed */
static int fl_ze_refused(fl_ze_code code) {
    return code == FL_ZE_NO_PERMISSION || code == FL_ZE_UNSUPPORTED || code == FL_ZE_NOT_AVAILABLE;
}

static fl_ze_code start_loader(fl_ze *z) {
    if (z->zes_init && z->zes_drivers && z->zes_devices)
        return z->zes_init(0);
    const bool asked = getenv("ZES_ENABLE_SYSMAN") != NULL;
    z->zes_drivers = z->ze_drivers;
    z->zes_devices = z->ze_devices;
    setenv("ZES_ENABLE_SYSMAN", "1", 1); /* without it, zeInit's handles do not support Sysman */
    const fl_ze_code code = z->ze_init(FL_ZE_GPU_ONLY);
    if (!asked)
        unsetenv("ZES_ENABLE_SYSMAN"); /* a recorded program gets the original environment */
    return code;
}

fl_status fl_ze_open(fl_ze *z, fl_diag *d) {
    const char *missing = NULL;
    fl_ze_code code = FL_ZE_OK;
    *z = (fl_ze){0};
    z->library = fl_library_open("FOLDLINE_ZE", NAMES, "Level Zero loader", z->path, sizeof z->path, d);
    if (!z->library)
        return FL_HARDWARE;
#define FIND(member, must, parameters, symbol)                                                                         \
    if (!fl_library_find(z->library, symbol, NULL, &z->member) && (must))                                              \
        missing = symbol;
    FL_ZE_CALLS(FIND)
    if (!missing && !(z->zes_init && z->zes_drivers && z->zes_devices) &&
        !(z->ze_init && z->ze_drivers && z->ze_devices))
        missing = "zesInit and no zeInit";
    if (missing)
        fl_error(d, FL_HARDWARE, "%s has no %s: no Level Zero loader, or too old", z->path, missing);
    else if ((code = start_loader(z)))
        fl_error(d, FL_HARDWARE, "%s does not start: %s", z->path, fl_ze_reason(code));
    if (!missing && !code)
        return FL_OK;
    *z = (fl_ze){0};
    return FL_HARDWARE;
}

/* ---- failures in words ---- */

fl_status fl_ze_failed(const fl_ze_gpu *g, const char *what, fl_ze_code code, fl_diag *d) {
    return fl_error(d, fl_ze_refused(code) ? FL_IO : FL_HARDWARE, "GPU %u: %s: %s", g->index, what, fl_ze_reason(code));
}
