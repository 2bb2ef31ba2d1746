/* A stand-in for the CUDA driver: which GPUs a program has. FOLDLINE_CUDA_DEVICES=LIST says which of the machine's, in
 * the program's order ("2,0": two, its GPU 0 is the machine's 2; "mig": a MIG instance); where it is not set, eight in
 * the machine's order. A machine's GPU N has the UUID that ends in N, as under FOLDLINE_STUB_UUIDS (stub_nvml.c).
 * FOLDLINE_CUDA_LATE=N: the first N calls find a driver that has not started. FOLDLINE_CUDA_CURRENT=N: the program's
 * GPU that its threads use; none where it is not set. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
enum { NOT_INITIALIZED = 3, INVALID_DEVICE = 101, INVALID_CONTEXT = 201, MIG = 99 };

typedef struct uuid {
    uint8_t bytes[16];
} uuid;

/* The machine's number of that entry of the list, -1 = there is none. */
static int entry_of(const char *list, int ordinal) {
    for (; ordinal > 0 && list; ordinal--)
        list = (list = strchr(list, ',')) ? list + 1 : NULL;
    return !list || !*list ? -1 : !strncmp(list, "mig", 3) ? MIG : atoi(list);
}

API int cuDeviceGet(int *device, int ordinal);
API int cuDeviceGet(int *device, int ordinal) {
    static _Atomic int calls;
    const char *list = getenv("FOLDLINE_CUDA_DEVICES"), *late = getenv("FOLDLINE_CUDA_LATE");
    if (late && calls++ < atoi(late))
        return NOT_INITIALIZED;
    *device = ordinal;
    return (list ? entry_of(list, ordinal) >= 0 : ordinal < 8) ? 0 : INVALID_DEVICE;
}
API int cuDeviceGetUuid_v2(uuid *out, int device);
API int cuDeviceGetUuid_v2(uuid *out, int device) {
    const char *list = getenv("FOLDLINE_CUDA_DEVICES");
    memset(out, 0, sizeof *out);
    out->bytes[15] = (uint8_t)(list ? entry_of(list, device) : device);
    return 0;
}
API int cuCtxGetDevice(int *device);
API int cuCtxGetDevice(int *device) {
    const char *current = getenv("FOLDLINE_CUDA_CURRENT");
    *device = current ? atoi(current) : -1;
    return current ? 0 : INVALID_CONTEXT;
}
