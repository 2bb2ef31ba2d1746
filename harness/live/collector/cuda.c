#include "harness/live/collector/cuda.h"

#include <dlfcn.h>
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
