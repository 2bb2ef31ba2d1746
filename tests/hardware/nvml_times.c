/* How long NVML's readings take and how often their values change, measured from outside. It reads only.
 *   nvml_times latency COUNT        name,code,count,min_us,median_us,p99_us,max_us
 *   nvml_times spaced COUNT MS      the same, each reading MS after the one before, when nothing is cached any more
 *   nvml_times rounds COUNT MS      all readings in turn, each MS: what a controller's loop takes, wall and processor time
 *   nvml_times profile SECONDS      t_ns,interval_ms,code,sm_pct,dram_pct of windows of 100 ms
 *   nvml_times changes SECONDS      t_ns,signal,value at each change, with the time before the call that showed it
 * Times are CLOCK_MONOTONIC. Built by cc -O2 -o nvml_times nvml_times.c -ldl; opens libnvidia-ml.so.1 of the driver. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef struct field {
    unsigned id, scope;
    long long time_us, latency_us;
    unsigned type;
    int code;
    union {
        double real;
        unsigned u;
        unsigned long long ull;
        char room[8];
    } value;
} field;

static void *lib, *gpu;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int call_u(const char *name, long long *value) {
    int (*f)(void *, unsigned *);
    unsigned v = 0;
    *(void **)&f = dlsym(lib, name);
    const int code = f ? f(gpu, &v) : 13;
    *value = v;
    return code;
}

static int call_clock(const char *name, int kind, long long *value) {
    int (*f)(void *, int, unsigned *);
    unsigned v = 0;
    *(void **)&f = dlsym(lib, name);
    const int code = f ? f(gpu, kind, &v) : 13;
    *value = v;
    return code;
}

static int call_ull(const char *name, long long *value) {
    int (*f)(void *, unsigned long long *);
    unsigned long long v = 0;
    *(void **)&f = dlsym(lib, name);
    const int code = f ? f(gpu, &v) : 13;
    *value = (long long)v;
    return code;
}

static int call_field(unsigned id, long long *value) {
    int (*f)(void *, int, field *);
    field one = {.id = id};
    *(void **)&f = dlsym(lib, "nvmlDeviceGetFieldValues");
    int code = f ? f(gpu, 1, &one) : 13;
    code = code ? code : one.code;
    *value = one.type == 0 ? (long long)one.value.real : one.type == 1 ? one.value.u : (long long)one.value.ull;
    return code;
}

static int call_utilisation(int memory, long long *value) {
    int (*f)(void *, unsigned *);
    unsigned both[2] = {0};
    *(void **)&f = dlsym(lib, "nvmlDeviceGetUtilizationRates");
    const int code = f ? f(gpu, both) : 13;
    *value = both[memory];
    return code;
}

static int call_gpm(int unused, long long *value) {
    static void *sample;
    int (*alloc)(void **), (*get)(void *, void *);
    (void)unused;
    *(void **)&alloc = dlsym(lib, "nvmlGpmSampleAlloc");
    *(void **)&get = dlsym(lib, "nvmlGpmSampleGet");
    *value = 0;
    if (!alloc || !get)
        return 13;
    if (!sample && alloc(&sample))
        return 999;
    return get(gpu, sample);
}

/* One row for each reading. kind: 0 unsigned, 1 clock, 2 unsigned long long, 3 field, 4 utilisation, 5 profile */
static const struct row {
    const char *name, *symbol;
    int kind, number;
} ROWS[] = {{"power_draw_mw", "nvmlDeviceGetPowerUsage", 0, 0},
            {"power_average_mw", NULL, 3, 185},
            {"power_instant_mw", NULL, 3, 186},
            {"energy_mj", "nvmlDeviceGetTotalEnergyConsumption", 2, 0},
            {"energy_field_mj", NULL, 3, 83},
            {"util_gpu_pct", NULL, 4, 0},
            {"util_mem_pct", NULL, 4, 1},
            {"sm_mhz", "nvmlDeviceGetClockInfo", 1, 1},
            {"mem_mhz", "nvmlDeviceGetClockInfo", 1, 2},
            {"graphics_mhz", "nvmlDeviceGetClockInfo", 1, 0},
            {"temp_c", "nvmlDeviceGetTemperature", 1, 0},
            {"mem_temp_c", NULL, 3, 82},
            {"reasons", "nvmlDeviceGetCurrentClocksEventReasons", 2, 0},
            {"power_violation_ns", NULL, 3, 74},
            {"thermal_violation_ns", NULL, 3, 75},
            {"gpm_sample", NULL, 5, 0},
            {"limit_mw", "nvmlDeviceGetPowerManagementLimit", 0, 0},
            {"enforced_mw", "nvmlDeviceGetEnforcedPowerLimit", 0, 0}};
enum { COUNT = sizeof ROWS / sizeof *ROWS };

static int read_row(const struct row *r, long long *value) {
    switch (r->kind) {
    case 0:
        return call_u(r->symbol, value);
    case 1:
        return call_clock(r->symbol, r->number, value);
    case 2:
        return call_ull(r->symbol, value);
    case 3:
        return call_field((unsigned)r->number, value);
    case 4:
        return call_utilisation(r->number, value);
    default:
        return call_gpm(r->number, value);
    }
}

static int by_size(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void latency(int count, int pause_ms) {
    int64_t *took = malloc((size_t)count * sizeof *took);
    long long value = 0;
    if (!took)
        exit(3);
    puts("name,code,count,min_us,median_us,p99_us,max_us,value");
    for (int r = 0; r < COUNT; r++) {
        int code = 0;
        for (int i = 0; i < count; i++) {
            usleep((unsigned)pause_ms * 1000);
            const int64_t from = now_ns();
            code = read_row(&ROWS[r], &value);
            took[i] = now_ns() - from;
        }
        qsort(took, (size_t)count, sizeof *took, by_size);
        printf("%s,%d,%d,%.1f,%.1f,%.1f,%.1f,%lld\n", ROWS[r].name, code, count, took[0] / 1e3, took[count / 2] / 1e3,
               took[count * 99 / 100] / 1e3, took[count - 1] / 1e3, value);
    }
    free(took);
}

static void rounds(int count, int pause_ms) {
    int64_t sum[COUNT] = {0}, most[COUNT] = {0}, all = 0;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < count; i++) {
        usleep((unsigned)pause_ms * 1000);
        for (int r = 0; r < COUNT; r++) {
            long long value;
            const int64_t from = now_ns();
            read_row(&ROWS[r], &value);
            const int64_t took = now_ns() - from;
            sum[r] += took;
            most[r] = took > most[r] ? took : most[r];
            all += took;
        }
    }
    getrusage(RUSAGE_SELF, &after);
    const double cpu = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec -
                                before.ru_stime.tv_sec) * 1e6 +
                       (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
                                before.ru_stime.tv_usec);
    printf("all,%d,%d,%.1f,%.1f\n", pause_ms, count, (double)all / 1e3 / count, cpu / count);
    for (int r = 0; r < COUNT; r++)
        printf("%s,%d,%d,%.1f,%.1f\n", ROWS[r].name, pause_ms, count, (double)sum[r] / 1e3 / count, (double)most[r] / 1e3);
}

/* nvmlGpmMetricsGet_t: version, count, two samples, then metrics of 40 bytes: id, code, value, three texts */
typedef struct metrics {
    unsigned version, count;
    void *first, *second;
    struct metric {
        unsigned id;
        int code;
        double value;
        const char *text[3];
    } metric[333];
} metrics;

static void profile(double seconds) {
    static metrics m;
    int (*alloc)(void **), (*get)(void *, void *), (*compare)(metrics *);
    void *sample[2] = {0};
    *(void **)&alloc = dlsym(lib, "nvmlGpmSampleAlloc");
    *(void **)&get = dlsym(lib, "nvmlGpmSampleGet");
    *(void **)&compare = dlsym(lib, "nvmlGpmMetricsGet");
    if (!alloc || !get || !compare || alloc(&sample[0]) || alloc(&sample[1]))
        exit(3);
    puts("t_ns,interval_ms,code,sm_pct,dram_pct");
    const int64_t until = now_ns() + (int64_t)(seconds * 1e9);
    int64_t before = now_ns();
    get(gpu, sample[0]);
    while (now_ns() < until) {
        usleep(100500);
        const int64_t now = now_ns();
        int code = get(gpu, sample[1]);
        m = (metrics){.version = 1, .count = 2, .first = sample[0], .second = sample[1]};
        m.metric[0].id = 2;
        m.metric[1].id = 10;
        code = code ? code : compare(&m);
        printf("%lld,%.3f,%d/%d/%d,%.9g,%.9g\n", (long long)now, (double)(now - before) / 1e6, code, m.metric[0].code,
               m.metric[1].code, m.metric[0].value, m.metric[1].value);
        void *swap = sample[0];
        sample[0] = sample[1], sample[1] = swap;
        before = now;
    }
}

static void changes(double seconds) {
    static const int WATCHED[] = {0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13};
    long long last[COUNT];
    const int64_t until = now_ns() + (int64_t)(seconds * 1e9);
    for (int r = 0; r < COUNT; r++)
        last[r] = INT64_MIN;
    puts("t_ns,signal,value");
    for (int64_t t = now_ns(); t < until;) {
        for (size_t w = 0; w < sizeof WATCHED / sizeof *WATCHED; w++) {
            const int r = WATCHED[w];
            long long value = 0;
            t = now_ns();
            if (!read_row(&ROWS[r], &value) && value != last[r]) {
                printf("%lld,%s,%lld\n", (long long)t, ROWS[r].name, value);
                last[r] = value;
            }
        }
        usleep(500);
    }
}

int main(int argc, char **argv) {
    int (*init)(void), (*by_index)(unsigned, void **);
    setvbuf(stdout, NULL, _IOLBF, 0);
    lib = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!lib) {
        fprintf(stderr, "nvml_times: %s\n", dlerror());
        return 3;
    }
    *(void **)&init = dlsym(lib, "nvmlInit_v2");
    *(void **)&by_index = dlsym(lib, "nvmlDeviceGetHandleByIndex_v2");
    if (!init || !by_index || init() || by_index(0, &gpu)) {
        fprintf(stderr, "nvml_times: no GPU\n");
        return 3;
    }
    if (argc == 3 && !strcmp(argv[1], "latency") && atoi(argv[2]) > 0)
        latency(atoi(argv[2]), 0);
    else if (argc == 4 && !strcmp(argv[1], "spaced") && atoi(argv[2]) > 0)
        latency(atoi(argv[2]), atoi(argv[3]));
    else if (argc == 4 && !strcmp(argv[1], "rounds") && atoi(argv[2]) > 0)
        rounds(atoi(argv[2]), atoi(argv[3]));
    else if (argc == 3 && !strcmp(argv[1], "profile"))
        profile(atof(argv[2]));
    else if (argc == 3 && !strcmp(argv[1], "changes"))
        changes(atof(argv[2]));
    else {
        fprintf(stderr, "nvml_times: latency COUNT | spaced COUNT MS | rounds COUNT MS | profile SECONDS | changes SECONDS\n");
        return 2;
    }
    return 0;
}
