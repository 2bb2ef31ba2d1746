#include "harness/live/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char STANDARD[] = "libnvidia-ml.so.1";

/* A pointer to a function through a void *, as POSIX lets dlsym give it. */
static int find(void *library, const char *newest, const char *older, void *into) {
    void *symbol = dlsym(library, newest);
    if (!symbol && older)
        symbol = dlsym(library, older);
    memcpy(into, &symbol, sizeof symbol);
    return symbol != NULL;
}

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
    const char *asked = getenv("FOLDLINE_NVML"), *missing = NULL;
    *n = (fl_nvml){0};
    snprintf(n->path, sizeof n->path, "%s", asked && *asked ? asked : STANDARD);
    if (!(n->library = dlopen(n->path, RTLD_NOW | RTLD_LOCAL))) {
        const char *why = dlerror();
        fl_fail(d, FL_HARDWARE, NULL, 0, 0, "no NVIDIA management library: %s", why ? why : n->path);
        *n = (fl_nvml){0};
        return FL_HARDWARE;
    }
    find(n->library, "nvmlErrorString", NULL, &n->text);
#define FIND(member, must, parameters, newest, older)                                                                  \
    if (!find(n->library, newest, older, &n->member) && (must))                                                        \
        missing = newest;
    FL_NVML_CALLS(FIND)
    int code = missing ? 0 : n->init();
    if (missing)
        fl_fail(d, FL_HARDWARE, NULL, 0, 0, "%s has no %s: no NVIDIA management library, or too old", n->path, missing);
    else if (code)
        fl_fail(d, FL_HARDWARE, NULL, 0, 0, "%s does not start: %s", n->path, fl_nvml_reason(n, code));
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
