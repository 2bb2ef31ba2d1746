/* Sets a clock lock and a power limit, changes the lock a few times, and restores both: never, at its exit and on TERM
 * and INT, or by a guardian, a process that outlives it. keeper never | exit | guardian. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *library, *device;
static volatile sig_atomic_t told;

static int call(const char *name, uintptr_t a, uintptr_t b, uintptr_t c) {
    int (*f)(uintptr_t, uintptr_t, uintptr_t);
    *(void **)&f = dlsym(library, name);
    return f ? f(a, b, c) : -1;
}

static void begin(void) {
    call("nvmlInit_v2", 0, 0, 0);
    call("nvmlDeviceGetHandleByIndex_v2", 0, (uintptr_t)&device, 0);
}

static void restore(void) {
    unsigned standard = 0;
    call("nvmlDeviceResetGpuLockedClocks", (uintptr_t)device, 0, 0);
    call("nvmlDeviceGetPowerManagementDefaultLimit", (uintptr_t)device, (uintptr_t)&standard, 0);
    call("nvmlDeviceSetPowerManagementLimit", (uintptr_t)device, standard, 0);
}

static void hear(int number) {
    (void)number;
    told = 1;
}

/* Waits until nobody holds the other end of the pipe, then restores. */
static void guard(void) {
    int end[2];
    char byte;
    if (pipe2(end, O_CLOEXEC) || fork())
        return;
    setsid();
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    close(end[1]);
    while (read(end[0], &byte, 1) < 0) {
    }
    begin();
    restore();
    _exit(0);
}

int main(int argc, char **argv) {
    static const unsigned mhz[] = {900, 1200, 600, 1050};
    const char *how = argc == 2 ? argv[1] : "";
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library || !strstr("never exit guardian", how))
        return 2;
    if (!strcmp(how, "guardian"))
        guard();
    begin();
    if (!strcmp(how, "exit")) {
        atexit(restore);
        signal(SIGTERM, hear);
        signal(SIGINT, hear);
    }
    for (int i = 0; i < 4 && !told; i++) {
        unsigned power = 0;
        call("nvmlDeviceSetGpuLockedClocks", (uintptr_t)device, mhz[i], mhz[i]);
        if (i == 1)
            call("nvmlDeviceSetPowerManagementLimit", (uintptr_t)device, 200000, 0);
        usleep(50000);
        call("nvmlDeviceGetPowerUsage", (uintptr_t)device, (uintptr_t)&power, 0);
    }
    puts("done");
    return 0;
}
