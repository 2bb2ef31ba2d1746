/* What the stubs of the vendors' libraries share: the state that all processes map, sets that take time and can be cut
 * half-way by a kill, the audit of who set what. One stub includes it, in one file. */
#pragma once

#include "tests/support/stub_nvml.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

static stub_state *mapped;
static unsigned draw;

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* False where there is no state. */
static inline bool open_state(void) {
    const char *path = getenv("FOLDLINE_STUB");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *at = fd >= 0 ? mmap(NULL, sizeof *mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED)
        return false;
    mapped = at;
    draw = (unsigned)now_ns() ^ (unsigned)getpid() * 2654435761u;
    unsigned n = atomic_fetch_add(&mapped->inits, 1);
    if (n < STUB_INITS_MAX)
        mapped->init_pid[n] = (int)getpid();
    return true;
}

static inline unsigned next_draw(void) {
    draw = draw * 1664525u + 1013904223u;
    return draw >> 8;
}

static inline void take_time(void) {
    if (mapped->set_us)
        usleep(next_draw() % (mapped->set_us + 1));
}

/* A set that is permitted: into the audit. lost: the library's code for a lost GPU. */
static inline void audit(unsigned gpu, int control, unsigned value, int lost) {
    unsigned n = atomic_fetch_add(&mapped->sets, 1);
    if (n < STUB_AUDIT_MAX) {
        stub_set *s = &mapped->audit[n];
        s->gpu = (int)gpu;
        s->control = control;
        s->value = value;
        s->pid = (int)getpid();
    }
    if (mapped->lost_after_sets && n + 1 >= mapped->lost_after_sets)
        mapped->gpu[0].code = lost;
}

/* One end of a range, a while, the other end: killed in between, the lock is half set. */
static inline void set_ends(_Atomic unsigned *low, _Atomic unsigned *high, unsigned a, unsigned b) {
    *low = a;
    take_time();
    *high = b;
}

static inline void set_value(_Atomic unsigned *at, unsigned value) {
    const unsigned early = next_draw() & 1; /* before the caller's time has passed, or after */
    if (early)
        *at = value;
    take_time();
    *at = value;
}

/* How long a list is at this call, which is mostly as long as before. */
static inline unsigned list_length(unsigned standard) {
    if (mapped->grows) {
        mapped->grows--;
        mapped->grown++;
    }
    return standard + mapped->grown;
}
