#include "harness/live/vendor/nvml/nvml.h"

#include "harness/live/vendor/library.h"

#include <dlfcn.h>
#include <stddef.h>

static const char *const NAMES[] = {"libnvidia-ml.so.1", NULL};

static const struct {
    int code;
    const char *text;
} OWN[] = {{FL_NVML_NOT_SUPPORTED, "not supported"},
           {FL_NVML_NO_PERMISSION, "no permission"},
           {FL_NVML_DRIVER_NOT_LOADED, "driver not loaded"},
           {FL_NVML_FUNCTION_NOT_FOUND, "the library has no such call"},
           {FL_NVML_GPU_IS_LOST, "GPU is lost"},
           {FL_NVML_MISMATCH, "library and driver are of different versions"}};

const char *fl_nvml_reason(const fl_nvml *n, int code) {
    const char *text = n->text ? n->text(code) : NULL;
    if (text)
        return text;
    for (size_t i = 0; i < sizeof OWN / sizeof *OWN; i++)
        if (OWN[i].code == code)
            return OWN[i].text;
    return "unknown error";
}

int fl_nvml_gone(int code) {
    return code == FL_NVML_UNINITIALIZED || code == FL_NVML_DRIVER_NOT_LOADED || code == FL_NVML_GPU_IS_LOST ||
           code == FL_NVML_RESET_REQUIRED;
}

fl_status fl_nvml_open(fl_nvml *n, fl_diag *d) {
    const char *missing = NULL;
    *n = (fl_nvml){0};
    n->library = fl_library_open("FOLDLINE_NVML", NAMES, "NVIDIA management library", n->path, sizeof n->path, d);
    if (!n->library)
        return FL_HARDWARE;
    fl_library_find(n->library, "nvmlErrorString", NULL, &n->text);
#define FIND(member, must, parameters, newest, older)                                                                  \
    if (!fl_library_find(n->library, newest, older, &n->member) && (must))                                             \
        missing = newest;
    FL_NVML_CALLS(FIND)
    int code = missing ? 0 : n->init();
    if (missing)
        fl_error(d, FL_HARDWARE, "%s has no %s: no NVIDIA management library, or too old", n->path, missing);
    else if (code)
        fl_error(d, FL_HARDWARE, "%s does not start: %s", n->path, fl_nvml_reason(n, code));
    if (!missing && !code)
        return FL_OK;
    dlclose(n->library);
    *n = (fl_nvml){0};
    return FL_HARDWARE;
}

void fl_nvml_close(fl_nvml *n) {
    if (!n->library)
        return;
    n->shutdown();
    dlclose(n->library);
    *n = (fl_nvml){0};
}
