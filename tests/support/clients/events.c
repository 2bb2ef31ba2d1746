/* Waits for events of GPU 0 as monitors do: events KINDS TIMEOUT_MS COUNT says each wait's result, event and time. A
 * lock is set from a thread of its own after 100 ms where LOCK=MHZ is in the environment. */
#include "harness/emulate/client/abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void *library, *device;

static int call(const char *name, uintptr_t a, uintptr_t b, uintptr_t c) {
    int (*f)(uintptr_t, uintptr_t, uintptr_t);
    *(void **)&f = dlsym(library, name);
    return f ? f(a, b, c) : -1;
}

static void *lock(void *mhz) {
    usleep(100000);
    call("nvmlDeviceSetGpuLockedClocks", (uintptr_t)device, strtoul(mhz, NULL, 10), strtoul(mhz, NULL, 10));
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    uintptr_t set = 0;
    struct timespec from, now;
    if (argc != 4 || !(library = dlopen("libnvidia-ml.so.1", RTLD_NOW)) || call("nvmlInit_v2", 0, 0, 0))
        return 2;
    call("nvmlDeviceGetHandleByIndex_v2", 0, (uintptr_t)&device, 0);
    if (call("nvmlEventSetCreate", (uintptr_t)&set, 0, 0))
        return 2;
    printf("registered %d\n", call("nvmlDeviceRegisterEvents", (uintptr_t)device, strtoul(argv[1], NULL, 0), set));
    char *mhz = getenv("LOCK");
    if (mhz && pthread_create(&thread, NULL, lock, mhz))
        return 2;
    for (int i = 0; i < atoi(argv[3]); i++) {
        nvmlEventData_t e = {0};
        clock_gettime(CLOCK_MONOTONIC, &from);
        const int r = call("nvmlEventSetWait_v2", set, (uintptr_t)&e, strtoul(argv[2], NULL, 10));
        clock_gettime(CLOCK_MONOTONIC, &now);
        printf("wait %d kind %llu data %llu mine %d after %.3f s\n", r, e.eventType, e.eventData, e.device == device,
               (double)(now.tv_sec - from.tv_sec) + (double)(now.tv_nsec - from.tv_nsec) * 1e-9);
    }
    if (mhz)
        pthread_join(thread, NULL);
    printf("freed %d", call("nvmlEventSetFree", set, 0, 0));
    printf(" again %d\n", call("nvmlEventSetFree", set, 0, 0));
    return call("nvmlShutdown", 0, 0, 0);
}
