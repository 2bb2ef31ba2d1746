/* What the tests of activity records share: a folder of rings, clocks, the ends of programs. */
#pragma once

#include "harness/live/collector/ring.h"
#include "harness/live/records/records.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static char folder[300];

static inline void fresh_folder(void) {
    snprintf(folder, sizeof folder, "%.250s", fl_temp_path("rings"));
    mkdir(folder, 0700);
}

static inline void clear_folder(void) {
    DIR *at = opendir(folder);
    for (struct dirent *e; at && (e = readdir(at));)
        unlinkat(dirfd(at), e->d_name, 0);
    if (at)
        closedir(at);
    rmdir(folder);
}

static inline double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline void wait_us(long us) {
    nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

/* The ring of that process in the folder. */
static inline bool ring_of(pid_t pid, char *path, size_t size) {
    char begin[32];
    bool found = false;
    snprintf(begin, sizeof begin, "%d-", (int)pid);
    DIR *at = opendir(folder);
    for (struct dirent *e; at && !found && (e = readdir(at));)
        if ((found = !strncmp(e->d_name, begin, strlen(begin))))
            snprintf(path, size, "%.299s/%.80s", folder, e->d_name);
    if (at)
        closedir(at);
    return found;
}

/* By its path, which is in the folder. */
static inline fl_ring_refusal open_ring(fl_ring *r, const char *path) {
    int error = 0;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const fl_ring_refusal why = fl_ring_open_at(r, fd, strrchr(path, '/') + 1, &error);
    close(fd);
    return why;
}

/* The machine's GPU N has the UUID that ends in N, as the stub of CUDA has it too. */
static inline int by_last_byte(void *user, const char *uuid, size_t size) {
    (void)user;
    return size == 40 && !strncmp(uuid, "GPU-00000000-0000-0000-0000-0000000000", 38)
               ? (int)strtoul(uuid + 38, NULL, 16)
               : -1;
}

static inline void tell_gpu(fl_ring *ring, uint32_t number, uint8_t machines) {
    fl_ring_tell_device(ring, number, (uint8_t[FL_RING_UUID]){[15] = machines});
}

/* A ring whose program has the machine's first GPUs, in its order. */
static inline int new_ring(fl_ring *ring, uint32_t capacity, uint32_t names_size) {
    const int error = fl_ring_create(ring, folder, capacity, names_size);
    for (uint8_t i = 0; !error && i < 8; i++)
        tell_gpu(ring, i, i);
    return error;
}

static inline fl_kernels *open_folder(void) {
    fl_kernels *k = NULL;
    CU_ASSERT(!fl_kernels_open(&k, folder, NULL));
    fl_kernels_gpus(k, by_last_byte, NULL);
    return k;
}

static inline int end_of(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
}

static inline bool is_mapped(const char *ending) {
    char line[1024];
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && !found && fgets(line, sizeof line, f))
        found = strstr(line, ending) != NULL;
    if (f)
        fclose(f);
    return found;
}
