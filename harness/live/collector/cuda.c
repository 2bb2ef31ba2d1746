#include "harness/live/collector/cuda.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

typedef struct cuda_uuid { /* CUuuid */
    uint8_t bytes[FL_CUDA_UUID];
} cuda_uuid;

/* cuDeviceGetUuid without _v2 returns the GPU's UUID for each of its MIG instances, so its result would be a guess. */
bool fl_cuda_uuid(uint32_t number, uint8_t uuid[FL_CUDA_UUID]) {
    int (*get)(int *device, int ordinal) = NULL, (*name)(cuda_uuid * uuid, int device) = NULL, device = 0;
    cuda_uuid found = {{0}};
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!driver)
        return false;
    void *symbol[2] = {dlsym(driver, "cuDeviceGet"), dlsym(driver, "cuDeviceGetUuid_v2")};
    memcpy(&get, &symbol[0], sizeof get);
    memcpy(&name, &symbol[1], sizeof name);
    const bool ok = get && name && !get(&device, (int)number) && !name(&found, device);
    dlclose(driver); /* the program holds it open too */
    if (ok)
        memcpy(uuid, found.bytes, FL_CUDA_UUID);
    return ok;
}

typedef int cuda_get(int *device, int ordinal);
typedef int cuda_current(int *device);
static cuda_get *_Atomic get_device;
static cuda_current *_Atomic current_device; /* comes after the other: both are there */

static bool find_calls(void) {
    if (atomic_load_explicit(&current_device, memory_order_acquire))
        return true;
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD); /* stays open: its functions are kept */
    void *symbol[2] = {driver ? dlsym(driver, "cuDeviceGet") : NULL, driver ? dlsym(driver, "cuCtxGetDevice") : NULL};
    cuda_get *get;
    cuda_current *current;
    memcpy(&get, &symbol[0], sizeof get);
    memcpy(&current, &symbol[1], sizeof current);
    if (!get || !current)
        return false;
    atomic_store_explicit(&get_device, get, memory_order_relaxed);
    atomic_store_explicit(&current_device, current, memory_order_release);
    return true;
}

uint32_t fl_cuda_current(void) {
    int current = 0, device = 0;
    if (!find_calls() || atomic_load(&current_device)(&current))
        return UINT32_MAX;
    for (uint32_t i = 0; !atomic_load(&get_device)(&device, (int)i); i++)
        if (device == current)
            return i;
    return UINT32_MAX;
}
