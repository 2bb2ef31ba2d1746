/* A small client of the driver's library, opened at run time as monitoring programs do: says what it read.
 * probe [--lib PATH] COMMAND [NUMBER ...]; see usage(). */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef void *device;

static void *library;

static int call(const char *name, ...) {
    int (*f)(uintptr_t, uintptr_t, uintptr_t, uintptr_t) = NULL;
    uintptr_t a[4];
    va_list list;
    *(void **)&f = dlsym(library, name);
    if (!f)
        return 13;
    va_start(list, name);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(list, uintptr_t);
    va_end(list);
    return f(a[0], a[1], a[2], a[3]);
}
#define CALL(name, ...) call(name, __VA_ARGS__, (uintptr_t)0, (uintptr_t)0, (uintptr_t)0, (uintptr_t)0)
#define N(x) ((uintptr_t)(x))

static device gpu(unsigned index) {
    device d = NULL;
    return CALL("nvmlDeviceGetHandleByIndex_v2", N(index), N(&d)) ? NULL : d;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void show(unsigned index) {
    unsigned power = 0, sm = 0, mem = 0, util[2] = {0, 0}, lock = 0;
    unsigned long long energy = 0;
    device d = gpu(index);
    const int r[] = {CALL("nvmlDeviceGetPowerUsage", N(d), N(&power)),
                     CALL("nvmlDeviceGetClockInfo", N(d), N(1), N(&sm)),
                     CALL("nvmlDeviceGetClockInfo", N(d), N(2), N(&mem)),
                     CALL("nvmlDeviceGetUtilizationRates", N(d), N(util)),
                     CALL("nvmlDeviceGetTotalEnergyConsumption", N(d), N(&energy)),
                     CALL("foldlineEmulatedLock", N(d), N(1), N(&lock))};
    printf("gpu %u power %d %u sm %d %u mem %d %u util %d %u %u energy %d %llu lock %d %u\n", index, r[0], power, r[1],
           sm, r[2], mem, r[3], util[0], util[1], r[4], energy, r[5], lock);
}

/* The calls of a probing daemon, once in `period` s for `total` s: reads, and moves the clock now and then. */
static void probe(double total, double period) {
    const double from = seconds();
    unsigned count = 0, loops = 0;
    unsigned long long hash = 1469598103934665603ULL;
    CALL("nvmlDeviceGetCount_v2", N(&count));
    while (seconds() - from < total) {
        for (unsigned i = 0; i < count; i++) {
            unsigned power = 0, sm = 0, util[2] = {0, 0};
            device d = gpu(i);
            CALL("nvmlDeviceGetUtilizationRates", N(d), N(util));
            CALL("nvmlDeviceGetClockInfo", N(d), N(1), N(&sm));
            CALL("nvmlDeviceGetPowerUsage", N(d), N(&power));
            if (loops % 10 == 0)
                CALL("nvmlDeviceSetGpuLockedClocks", N(d), N(855), N(loops % 20 ? 855 : 1440));
            const unsigned seen[] = {power, sm, util[0], util[1], (unsigned)((seconds() - from) * 1e6)};
            for (size_t k = 0; k < sizeof seen / sizeof *seen; k++)
                hash = (hash ^ seen[k]) * 1099511628211ULL;
        }
        loops++;
        usleep((useconds_t)(period * 1e6));
    }
    for (unsigned i = 0; i < count; i++)
        CALL("nvmlDeviceResetGpuLockedClocks", N(gpu(i)));
    printf("loops %u elapsed %.6f hash %016llx\n", loops, seconds() - from, hash);
}

static void driver(void) {
    char version[80] = "", own[80] = "";
    int cuda = 0;
    const int r = CALL("nvmlSystemGetDriverVersion", N(version), N(sizeof version));
    CALL("nvmlSystemGetNVMLVersion", N(own), N(sizeof own));
    CALL("nvmlSystemGetCudaDriverVersion_v2", N(&cuda));
    printf("driver %d %s nvml %s cuda %d\n", r, version, own, cuda);
}

/* Who each GPU says it is. */
static void who(void) {
    unsigned count = 0;
    CALL("nvmlDeviceGetCount_v2", N(&count));
    printf("devices %u\n", count);
    for (unsigned i = 0; i < count; i++) {
        char name[96] = "", uuid[96] = "", serial[32] = "", vbios[32] = "";
        unsigned pci[17] = {0};
        unsigned long long memory[3] = {0};
        device d = gpu(i);
        CALL("nvmlDeviceGetName", N(d), N(name), N(sizeof name));
        CALL("nvmlDeviceGetUUID", N(d), N(uuid), N(sizeof uuid));
        CALL("nvmlDeviceGetSerial", N(d), N(serial), N(sizeof serial));
        CALL("nvmlDeviceGetVbiosVersion", N(d), N(vbios), N(sizeof vbios));
        CALL("nvmlDeviceGetPciInfo_v3", N(d), N(pci));
        CALL("nvmlDeviceGetMemoryInfo", N(d), N(memory));
        printf("who %s|%s|%s|%s|%s|%08x|%llu\n", name, uuid, serial, vbios, (const char *)(pci + 9), pci[7], memory[0]);
    }
}

/* One field of GPU 0, of a scope: the call's result, its own, its value. */
static void field(unsigned id, unsigned scope) {
    struct {
        unsigned id, scope;
        long long at, latency;
        int type, result;
        union {
            unsigned number;
            unsigned long long wide;
        } value;
    } f = {.id = id, .scope = scope};
    const int r = CALL("nvmlDeviceGetFieldValues", N(gpu(0)), N(1), N(&f));
    printf("field %d %d %u\n", r, f.result, f.value.number);
}

/* Memory's highest clock and this one for the SMs. */
static int application_clocks(unsigned index, unsigned sm_mhz) {
    unsigned mhz[64] = {0}, n = 64;
    CALL("nvmlDeviceGetSupportedMemoryClocks", N(gpu(index)), N(&n), N(mhz));
    return CALL("nvmlDeviceSetApplicationsClocks", N(gpu(index)), N(mhz[0]), N(sm_mhz));
}

static int usage(void) {
    fputs("driver | who | field ID SCOPE | number NAME ARGUMENT | appclocks GPU MHZ | show | lock GPU MIN MAX | unlock "
          "GPU | "
          "limit GPU MW | sleep S | probe TOTAL PERIOD | call NAME GPU | queue "
          "GPU MHZ\n",
          stderr);
    return 2;
}

int main(int argc, char **argv) {
    const char *path = "libnvidia-ml.so.1";
    int at = 1, r = 0;
    if (argc > 2 && !strcmp(argv[1], "--lib")) {
        path = argv[2];
        at = 3;
    }
    library = dlopen(path, RTLD_NOW);
    if (!library) {
        printf("no library: %s\n", dlerror());
        return 1;
    }
    r = CALL("nvmlInit_v2", N(0));
    if (r)
        printf("init %d\n", r);
    for (; at < argc && !r; at++) {
        const char *word = argv[at];
        const int left = argc - at - 1;
        double v[3] = {0, 0, 0};
        for (int i = 0; i < 3 && i < left; i++)
            v[i] = strtod(argv[at + 1 + i], NULL);
        if (!strcmp(word, "show")) {
            unsigned count = 0;
            CALL("nvmlDeviceGetCount_v2", N(&count));
            for (unsigned i = 0; i < count; i++)
                show(i);
        } else if (!strcmp(word, "driver")) {
            driver();
        } else if (!strcmp(word, "who")) {
            who();
        } else if (!strcmp(word, "field") && left >= 2) {
            field((unsigned)v[0], (unsigned)v[1]);
            at += 2;
        } else if (!strcmp(word, "number") && left >= 2) { /* of GPU 0: a function that takes one argument */
            unsigned out = 0;
            const int got = CALL(argv[at + 1], N(gpu(0)), N(v[1]), N(&out));
            printf("number %d %u\n", got, out);
            at += 2;
        } else if (!strcmp(word, "appclocks") && left >= 2) {
            printf("appclocks %d\n", application_clocks((unsigned)v[0], (unsigned)v[1]));
            at += 2;
        } else if (!strcmp(word, "lock") && left >= 3) {
            printf("lock %d\n", CALL("nvmlDeviceSetGpuLockedClocks", N(gpu((unsigned)v[0])), N(v[1]), N(v[2])));
            at += 3;
        } else if (!strcmp(word, "unlock") && left >= 1) {
            printf("unlock %d\n", CALL("nvmlDeviceResetGpuLockedClocks", N(gpu((unsigned)v[0]))));
            at += 1;
        } else if (!strcmp(word, "limit") && left >= 2) {
            printf("limit %d\n", CALL("nvmlDeviceSetPowerManagementLimit", N(gpu((unsigned)v[0])), N(v[1])));
            at += 2;
        } else if (!strcmp(word, "sleep") && left >= 1) {
            fflush(stdout);
            usleep((useconds_t)(v[0] * 1e6));
            at += 1;
        } else if (!strcmp(word, "probe") && left >= 2) {
            probe(v[0], v[1]);
            at += 2;
        } else if (!strcmp(word, "call") && left >= 2) {
            unsigned long long out[64] = {0};
            printf("%s %d\n", argv[at + 1], call(argv[at + 1], N(gpu((unsigned)v[1])), N(out), N(out), N(0)));
            at += 2;
        } else {
            return usage();
        }
    }
    CALL("nvmlShutdown", N(0));
    return r ? 1 : 0;
}
