/* Kernel records from a program to the host: one ring of shared memory per process, one writer (the collector in the
 * program), one reader (the host). The writer never waits: where the ring is full it drops and counts.
 *
 * A file PID-STAMP.ring in a folder that both know, a new one for each image that a process runs (exec): none ever
 * takes another's place. Its writer holds a lock on it for life (fcntl: an exec ends it, a fork does not inherit it),
 * which says from any container whether there is one. What was produced is write + dropped, by construction: a record's
 * number is that sum, so the counts are exact whenever the writer is killed. A record is published by the release of
 * `write` and carries a checksum. Names are copied into an area of their own and stand for ever. */
#ifndef FL_LIVE_RING_H
#define FL_LIVE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL_RING_MAGIC UINT64_C(0x32474e49524c46) /* "FLRING2" */
enum { FL_RING_HEAD = 4096, FL_RING_NAME_MAX = 1024, FL_RING_VISIBLE_MAX = 2048 };

typedef struct fl_ring_record {
    uint64_t number;          /* from 0, dropped ones counted */
    int64_t start_ns, end_ns; /* CLOCK_MONOTONIC; end_ns < 0: the end is missing */
    uint32_t gpu, stream, context, correlation;
    uint32_t grid[3], block[3];
    uint32_t name; /* where it begins in the area of names */
    uint32_t spare;
    uint64_t sum; /* checksum of all before it */
} fl_ring_record;

typedef struct fl_ring_head { /* the first page */
    uint64_t magic;
    int32_t pid;
    uint32_t capacity;   /* records, a power of two */
    uint32_t names_size; /* bytes */
    _Atomic uint32_t names_used;
    _Atomic uint32_t ended;            /* 1: the program ended in order, all its records are in */
    uint64_t stamp;                    /* CLOCK_MONOTONIC when it was made, unique among those of a process */
    uint32_t chosen;                   /* 1: CUDA_VISIBLE_DEVICES was set: */
    char visible[FL_RING_VISIBLE_MAX]; /* its value, which numbers the GPUs of the records */
    _Alignas(64) _Atomic uint64_t write;
    _Alignas(64) _Atomic uint64_t read;
    _Alignas(64) _Atomic uint64_t dropped;
} fl_ring_head;
_Static_assert(sizeof(fl_ring_head) <= FL_RING_HEAD, "the head is one page");

typedef struct fl_ring {
    fl_ring_head *head; /* NULL = not open */
    fl_ring_record *record;
    char *names;
    size_t size;
    uint32_t capacity, names_size; /* as checked when it was opened: the other side may be hostile (ring_guard.h too) */
    int fd;
    char file[64]; /* its name in the folder; the writer's only */
} fl_ring;

/* The writer's. 0, or an errno value. capacity: a power of two. */
int fl_ring_create(fl_ring *r, const char *folder, uint32_t capacity, uint32_t names_size);
/* Where a copy of the name stands; 0 (an empty name) where the area is full. Compares with nothing: intern before. */
uint32_t fl_ring_name(fl_ring *r, const char *name);
/* Publishes a record (number and sum are filled in); false where the ring was full and it was dropped. */
bool fl_ring_put(fl_ring *r, fl_ring_record *record);
void fl_ring_lost(fl_ring *r, uint64_t count); /* records that never reached us */
void fl_ring_end(fl_ring *r);                  /* orderly end */

/* The reader's. 0, or an errno value (EINVAL: no ring). */
int fl_ring_open(fl_ring *r, const char *path);
/* Whether a process holds it as its writer; of another process than this. */
bool fl_ring_held(const fl_ring *r);
/* Takes up to `room` records. *bad counts those whose checksum is wrong (they are left out). */
size_t fl_ring_take(fl_ring *r, fl_ring_record *into, size_t room, uint64_t *bad);
const char *fl_ring_name_at(const fl_ring *r, uint32_t at); /* "" where there is none */

void fl_ring_close(fl_ring *r);

#endif
