/* Watts as tools make them of an energy counter and a clock, over the power that the board shows; and how long a sleep,
 * a poll and a wait for a condition of 1 s each last by the clocks. All are 1.0 where clocks and counter agree. wall:
 * whether the day's clock and the other one agree. */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static void *library, *device;

static int call(const char *name, uintptr_t a, uintptr_t b) {
    int (*f)(uintptr_t, uintptr_t);
    *(void **)&f = dlsym(library, name);
    return f ? f(a, b) : -1;
}

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Waits for 0.2 s in this way; how long that was. */
static double wait_by(int how) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec at;
    const double from = now(CLOCK_MONOTONIC);
    if (how == 0) {
        usleep(200000);
    } else if (how == 1) {
        poll(NULL, 0, 200);
    } else {
        clock_gettime(CLOCK_REALTIME, &at);
        at.tv_nsec += 200000000;
        at.tv_sec += at.tv_nsec / 1000000000;
        at.tv_nsec %= 1000000000;
        pthread_mutex_lock(&mutex);
        pthread_cond_timedwait(&never, &mutex, &at);
        pthread_mutex_unlock(&mutex);
    }
    return now(CLOCK_MONOTONIC) - from;
}

/* No shorter than asked for, and hardly longer in the best of ten. */
static const char *verdict(int how) {
    double least = 1e9;
    for (int i = 0; i < 10 && !(least < 0.4); i++) {
        const double s = wait_by(how);
        least = s < least ? s : least;
    }
    return least < 0.199 ? "short" : least < 0.4 ? "right" : "long";
}

int main(void) {
    unsigned long long before = 0, after = 0;
    unsigned power = 0;
    struct timeval day;
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library || call("nvmlInit_v2", 0, 0) || call("nvmlDeviceGetHandleByIndex_v2", 0, (uintptr_t)&device))
        return 2;
    sleep(1);
    const double outer = now(CLOCK_MONOTONIC), day_from = now(CLOCK_REALTIME);
    call("nvmlDeviceGetTotalEnergyConsumption", (uintptr_t)device, (uintptr_t)&before);
    const double inner = now(CLOCK_MONOTONIC);
    printf("sleep %s poll %s condition %s\n", verdict(0), verdict(1), verdict(2));
    sleep(2);
    const double inner_to = now(CLOCK_MONOTONIC);
    call("nvmlDeviceGetTotalEnergyConsumption", (uintptr_t)device, (uintptr_t)&after);
    const double outer_to = now(CLOCK_MONOTONIC);
    call("nvmlDeviceGetPowerUsage", (uintptr_t)device, (uintptr_t)&power);
    gettimeofday(&day, NULL);
    const double energy = (double)(after - before), least = energy / (outer_to - outer),
                 most = energy / (inner_to - inner);
    const double days = (double)day.tv_sec + (double)day.tv_usec * 1e-6 - day_from;
    printf("watts %s\n", least < 1.3 * power && most > power / 1.3 ? "right" : "wrong");
    printf("day %s\n", days >= inner_to - inner && days < 1.5 * (outer_to - outer) + 1 ? "right" : "wrong");
    return 0;
}
