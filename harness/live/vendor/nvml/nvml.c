/* The calls of NVML, its codes, and what they mean. */
#include "harness/live/vendor/nvml/inside.h"

#include "harness/live/vendor/vendor.h"
#include "traces/io/io.h"

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the library ---- */

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

/* ---- failures in words ---- */

fl_status fl_nvml_failed(fl_nvml_host *h, const fl_nvml_gpu *g, const char *what, int code, fl_diag *d) {
    const bool refused =
        code == FL_NVML_NO_PERMISSION || code == FL_NVML_NOT_SUPPORTED || code == FL_NVML_FUNCTION_NOT_FOUND;
    return fl_error(d, refused ? FL_IO : FL_HARDWARE, "GPU %u: %s: %s", g->index, what, fl_nvml_reason(&h->nvml, code));
}

/* ---- ladders ---- */

/* A list can grow between the call that counts it and the call that fetches it. The code therefore reserves spare room,
 * believes nothing beyond that room, and fetches a few more times where the room was too small. */
enum { LIST_MAX = 100000, SPARE = 16, TRIES = 8 };

static int list_clocks(fl_nvml_host *h, fl_nvml_gpu *g, bool sm, unsigned mem_mhz, unsigned *count, unsigned *clocks) {
    return sm ? FL_NVML_CALL(h, sm_clocks, g->handle, mem_mhz, count, clocks)
              : FL_NVML_CALL(h, mem_clocks, g->handle, count, clocks);
}

/* Stores *count clocks in *clocks, which the caller frees; none where the library lists none. A library that answers
 * the counting call with success has none. */
static fl_status fetch(fl_nvml_host *h, fl_nvml_gpu *g, bool sm, unsigned mem_mhz, unsigned **clocks, unsigned *count,
                       fl_diag *d) {
    unsigned there = 0;
    int code = list_clocks(h, g, sm, mem_mhz, &there, NULL);
    *count = 0;
    for (int i = 0; i < TRIES && code == FL_NVML_INSUFFICIENT_SIZE && there && there <= LIST_MAX; i++) {
        const unsigned room = there + SPARE;
        unsigned *more = realloc(*clocks, room * sizeof **clocks);
        if (!more)
            return fl_no_memory(d, "the clocks");
        *clocks = more;
        there = room;
        code = list_clocks(h, g, sm, mem_mhz, &there, more);
        if (!code)
            *count = there < room ? there : room;
    }
    return FL_OK;
}

static fl_status read_ladder(fl_nvml_host *h, fl_nvml_gpu *g, bool sm, unsigned mem_mhz, int32_t **out,
                             uint32_t *out_count, fl_diag *d) {
    unsigned *clocks = NULL, count = 0;
    uint32_t n = 0;
    *out_count = 0;
    fl_status s = fetch(h, g, sm, mem_mhz, &clocks, &count, d);
    if (!s && count && !(*out = calloc(count, sizeof **out)))
        s = fl_no_memory(d, "the clocks");
    for (unsigned i = 0; !s && i < count; i++)
        if (clocks[i] > 0 && clocks[i] < 100000)
            (*out)[n++] = (int32_t)clocks[i];
    if (!s)
        *out_count = fl_gpus_ladder(*out, n);
    free(clocks);
    return s;
}

fl_status fl_nvml_ladders(fl_nvml_host *h, fl_nvml_gpu *g, fl_diag *d) {
    fl_status s = read_ladder(h, g, false, 0, &g->mem, &g->mem_count, d);
    if (!s && g->mem_count)
        s = read_ladder(h, g, true, (unsigned)g->mem[g->mem_count - 1], &g->sm, &g->sm_count, d);
    return s;
}

/* ---- texts ---- */

static bool virtual_gpu(const fl_nvml_host *h, const fl_nvml_gpu *g) {
    int mode = 0;
    return !FL_NVML_CALL(h, virtualization, g->handle, &mode) && mode == 2;
}

const char *fl_nvml_hindrance(void *self, uint32_t i, int control) {
    const fl_nvml_host *h = self;
    const fl_nvml_gpu *g = &h->gpu[i];
    unsigned low = 0, high = 0;
    if (virtual_gpu(h, g))
        return "a virtual GPU; its host decides";
    switch (control) {
    case FL_SET_SM_MHZ:
        return !h->nvml.lock_sm ? "the library is too old to lock clocks"
               : !g->sm_count   ? "the GPU lists no clocks"
                                : NULL;
    case FL_SET_MEM_MHZ:
        return !h->nvml.lock_mem  ? "the library is too old to lock memory clocks"
               : g->mem_count < 2 ? "the GPU lists one memory clock only"
                                  : NULL;
    case FL_SET_POWER_LIMIT_W:
        return FL_NVML_CALL(h, limit_range, g->handle, &low, &high) || low >= high ? "the GPU has no range of limits"
                                                                                   : NULL;
    default:
        return NULL;
    }
}

double fl_nvml_limit_w(void *self, uint32_t i) {
    fl_nvml_host *h = self;
    unsigned mw = 0;
    return FL_NVML_CALL(h, limit, h->gpu[i].handle, &mw) ? (double)NAN : mw / 1e3;
}

bool fl_nvml_note(void *self, uint32_t i, unsigned index, char *text, size_t size) {
    const fl_nvml_host *h = self;
    const fl_nvml_gpu *g = &h->gpu[i];
    unsigned mig = 0, pending = 0;
    int persistent = 1;
    if (!FL_NVML_CALL(h, mig, g->handle, &mig, &pending) && mig && !index--) {
        snprintf(text, size, "MIG is on: utilisation is not reported, and clocks hold for all instances");
        return true;
    }
    if (!FL_NVML_CALL(h, persistence, g->handle, &persistent) && !persistent && !index--) {
        snprintf(text, size,
                 "persistence mode is off: locks and limits end when the last client closes the GPU.\n"
                 "              Administrator: nvidia-smi -pm 1, or keep a client open");
        return true;
    }
    return false;
}
