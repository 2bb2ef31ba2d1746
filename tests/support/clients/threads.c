/* Five threads that share a mutex, a condition, a semaphore, a barrier and a read-write lock, sleep and poll, and read
 * the driver's library: prints one hash of what happened when. */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 5, ROUNDS = 60 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int tokens, pipe_fd[2];
static uint64_t hash = 1469598103934665603ULL;
static int (*power_of)(void *, unsigned *);
static void *device;

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void note(unsigned what, int64_t value) {
    const uint64_t v[] = {what, (uint64_t)value, (uint64_t)now_us()};
    for (size_t i = 0; i < 3; i++)
        hash = (hash ^ v[i]) * 1099511628211ULL;
}

static void wait_token(unsigned me) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 3000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&mutex);
    int e = 0;
    while (!tokens && !e)
        e = pthread_cond_timedwait(&condition, &mutex, &until);
    if (!e)
        tokens--;
    note(10 + me, e == ETIMEDOUT ? -1 : tokens);
    pthread_mutex_unlock(&mutex);
}

static void *work(void *argument) {
    const unsigned me = (unsigned)(uintptr_t)argument;
    unsigned seed = me * 7919 + 1;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < ROUNDS; i++) {
        seed = seed * 1103515245u + 12345u;
        const unsigned choice = seed >> 16 & 7;
        unsigned power = 0;
        switch (choice) {
        case 0:
            usleep(500 + seed % 3000);
            break;
        case 1:
            wait_token(me);
            break;
        case 2:
            pthread_mutex_lock(&mutex);
            tokens++;
            pthread_cond_signal(&condition);
            pthread_mutex_unlock(&mutex);
            break;
        case 3:
            sem_post(&semaphore);
            (void)!write(pipe_fd[1], "x", 1);
            break;
        case 4:
            if (sem_trywait(&semaphore))
                usleep(100);
            break;
        case 5: {
            struct pollfd p = {.fd = pipe_fd[0], .events = POLLIN};
            char c;
            const int r = poll(&p, 1, 2);
            note(20 + me, r);
            if (r == 1)
                (void)!read(pipe_fd[0], &c, 1);
            break;
        }
        case 6:
            pthread_rwlock_wrlock(&rwlock);
            usleep(300);
            note(30 + me, 0);
            pthread_rwlock_unlock(&rwlock);
            break;
        default:
            pthread_rwlock_rdlock(&rwlock);
            if (power_of)
                power_of(device, &power);
            pthread_rwlock_unlock(&rwlock);
        }
        pthread_mutex_lock(&mutex);
        note(me, (int64_t)power);
        pthread_mutex_unlock(&mutex);
    }
    pthread_barrier_wait(&barrier);
    return NULL;
}

int main(void) {
    pthread_t id[THREADS];
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library) {
        int (*init)(void), (*get)(unsigned, void **);
        *(void **)&init = dlsym(library, "nvmlInit_v2");
        *(void **)&get = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
        *(void **)&power_of = dlsym(library, "nvmlDeviceGetPowerUsage");
        if (init() || get(0, &device))
            return 1;
    }
    pthread_barrier_init(&barrier, NULL, THREADS);
    sem_init(&semaphore, 0, 0);
    if (pipe(pipe_fd))
        return 1;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&id[i], NULL, work, (void *)(uintptr_t)i);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(id[i], NULL);
    printf("%016llx %lld\n", (unsigned long long)hash, (long long)now_us());
    return 0;
}
