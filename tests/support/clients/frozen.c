/* Trials with the emulator standing still: a client's set waits in its socket, the client is killed, another client
 * restores, the emulator goes on. frozen TRIALS: says in how many the lock is not as it was. Its parent is the
 * emulator.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BEFORE = 1200, OTHER = 600 };

static void *library, *device;

static int set(unsigned mhz) {
    int (*f)(void *, unsigned, unsigned);
    *(void **)&f = dlsym(library, "nvmlDeviceSetGpuLockedClocks");
    return f(device, mhz, mhz);
}

static unsigned lock(void) {
    int (*f)(void *, int, unsigned *);
    unsigned mhz = 0;
    *(void **)&f = dlsym(library, "foldlineEmulatedLock");
    return f(device, 1, &mhz) ? 0 : mhz;
}

static int begin(void) {
    int (*init)(void), (*get)(unsigned, void **);
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library)
        return 1;
    *(void **)&init = dlsym(library, "nvmlInit_v2");
    *(void **)&get = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    return init() || get(0, &device);
}

typedef struct client {
    pid_t pid, heir; /* heir: a child that has its descriptors */
    int go, ready;
} client;

/* A process that has begun, and sets the lock once told to. */
static client start(unsigned mhz) {
    int go[2], ready[2];
    char c;
    if (pipe(go) || pipe(ready))
        exit(2);
    const pid_t pid = fork();
    if (!pid) {
        int bad = begin();
        const pid_t heir = fork();
        if (!heir) {
            pause();
            _exit(0);
        }
        (void)!write(ready[1], &heir, sizeof heir);
        if (read(go[0], &c, 1) != 1)
            _exit(2);
        _exit(bad || set(mhz));
    }
    close(go[0]);
    close(ready[1]);
    pid_t heir = 0;
    (void)!read(ready[0], &heir, sizeof heir);
    return (client){pid, heir, go[1], ready[0]};
}

static int finish(client *c) {
    int status = 0;
    close(c->go);
    close(c->ready);
    waitpid(c->pid, &status, 0);
    return status;
}

static void bury(const client *c) {
    if (c->heir > 0)
        kill(c->heir, SIGKILL);
}

int main(int argc, char **argv) {
    const int trials = argc > 1 ? atoi(argv[1]) : 300;
    const pid_t server = getppid();
    int bad = 0;
    if (begin() || set(BEFORE) || lock() != BEFORE)
        return 2;
    for (int i = 0; i < trials; i++) {
        client victim = start(OTHER), restorer = start(BEFORE);
        const int frozen = i % 2 == 0;
        if (frozen)
            kill(server, SIGSTOP);
        (void)!write(victim.go, "", 1);
        usleep(500 + (useconds_t)(i % 8) * 300); /* its set waits by now, or is being made */
        kill(victim.pid, SIGKILL);
        finish(&victim);
        (void)!write(restorer.go, "", 1);
        usleep((useconds_t)(i % 3) * 700);
        if (frozen)
            kill(server, SIGCONT);
        const int status = finish(&restorer);
        usleep(frozen ? 0 : 6000); /* longer than any set */
        const unsigned now = lock();
        bury(&victim);
        bury(&restorer);
        if (status || now != BEFORE) {
            printf("trial %d: status %d, lock %u\n", i, status, now);
            bad++;
        }
    }
    printf("%d of %d trials failed\n", bad, trials);
    return bad != 0;
}
