/* Activity records from a program to the host: one ring of shared memory per process, with one writer (the collector in
 * the program) and one reader (the host). The writer never waits: where the ring is full, it drops records and counts
 * them.
 *
 * The ring is a file PID-STAMP.ring in a folder that both know. Each image that a process runs (exec) gets a new file,
 * so none ever replaces another. The writer holds a lock on the file for its lifetime (fcntl: an exec releases it, a
 * fork does not inherit it); the lock tells from any container whether there is a writer. The number of produced
 * records is write + dropped by construction, since a record's number is that sum. The counts are therefore exact
 * whenever the writer is killed. The release of `write` publishes a record, and the record carries a checksum. Names
 * are copied into an area of their own and never change.
 *
 * A program numbers the GPUs that it may use. These numbers say nothing about the machine's: a container,
 * CUDA_VISIBLE_DEVICES and device cgroups each renumber them. A record therefore holds the program's number, and a
 * table in the head gives the UUID for it. A GPU without a UUID there is unknown to everyone.
 *
 * Markers (NVTX) come from any thread of the program, several at a time, so they have an area of their own: each slot
 * says whose turn it is, and no thread waits for another. A thread that dies while it fills its slot holds up the
 * markers behind it until its program has ended. A marker carries its name, since names of ranges are often used once.
 * To be woken, the reader has a FIFO of the name FL_RING_WAKE in the folder; the writer puts a byte into it.
 *
 * The reader may be root and the writer anyone. The reader trusts nothing in the file: neither its size, nor a number
 * or index in it. It opens only regular files of at most FL_RING_SIZE_MAX bytes, and keeps its own copy of everything
 * that decides where it reads. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL_RING_MAGIC UINT64_C(0x34474e49524c46) /* "FLRING4" */
#define FL_RING_FAMILY UINT64_C(0xffffffffffff)  /* the part that all versions share */
enum { FL_RING_HEAD = 4096, FL_RING_NAME_MAX = 1024, FL_RING_DEVICES = 64, FL_RING_UUID = 16 };
enum { FL_RING_CAPACITY_MAX = 1 << 16 /* records */, FL_RING_NAMES_MAX = 4 << 20 /* bytes */ };
enum { FL_RING_UUID_TEXT = 41 /* "GPU-", 36 characters, the end */ };

typedef struct fl_ring_record {
    uint64_t number;          /* from 0, counting dropped ones */
    int64_t start_ns, end_ns; /* CLOCK_MONOTONIC; end_ns < 0: the end is missing */
    uint32_t gpu, stream, context, correlation;
    uint32_t grid[3], block[3];
    uint32_t name; /* offset of the name in the area of names */
    uint32_t spare;
    uint64_t sum; /* checksum of everything before it */
} fl_ring_record;

#define FL_RING_WAKE "wake"
#define FL_RING_NO_GPU UINT32_MAX
enum {
    FL_RING_MARKS = 1 << 14 /* slots at most, and no more than records */,
    FL_RING_MARK_NAME = 96 /* bytes, with the end; a longer name is cut */
};

typedef struct fl_ring_mark {
    int64_t time_ns; /* CLOCK_MONOTONIC */
    uint32_t gpu;    /* that its thread uses, by the program's number; FL_RING_NO_GPU: none yet */
    uint32_t spare;
    char name[FL_RING_MARK_NAME];
    uint64_t sum; /* checksum of everything before it */
} fl_ring_mark;

typedef struct fl_ring_slot {
    _Atomic uint64_t turn; /* 2 n: free for the n-th marker in it, from 0 on; 2 n + 1: holds it */
    fl_ring_mark mark;
} fl_ring_slot;

#define FL_RING_SIZE_MAX                                                                                               \
    (FL_RING_HEAD + (int64_t)FL_RING_CAPACITY_MAX * (int64_t)sizeof(fl_ring_record) +                                  \
     (int64_t)FL_RING_MARKS * (int64_t)sizeof(fl_ring_slot) + FL_RING_NAMES_MAX)

typedef struct fl_ring_device {
    _Atomic uint32_t known; /* 1: the UUID is valid, and stays */
    uint8_t uuid[FL_RING_UUID];
} fl_ring_device;

typedef struct fl_ring_head { /* the first page */
    uint64_t magic;
    int32_t pid;
    uint32_t capacity;   /* records, a power of two */
    uint32_t names_size; /* bytes */
    _Atomic uint32_t names_used;
    _Atomic uint32_t ended;                 /* 1: the program ended regularly, and all its records are in the ring */
    uint64_t stamp;                         /* CLOCK_MONOTONIC of its creation, unique within a process */
    fl_ring_device device[FL_RING_DEVICES]; /* indexed by the program's number of the GPU */
    _Alignas(64) _Atomic uint64_t write;
    _Alignas(64) _Atomic uint64_t read;
    _Alignas(64) _Atomic uint64_t dropped;
    _Alignas(64) _Atomic uint64_t marks; /* slots given out */
    _Atomic uint64_t marks_dropped;
    _Alignas(64) _Atomic uint64_t marks_read;
    _Atomic uint64_t wanted; /* the reader's: fl_ring_wanted of the names that it asks for; 0: it has not said yet */
    _Atomic uint32_t wakes;  /* the reader's: 1: those wake it */
} fl_ring_head;
_Static_assert(sizeof(fl_ring_head) <= FL_RING_HEAD, "the head is one page");

typedef struct fl_ring {
    fl_ring_head *head; /* NULL = not open */
    fl_ring_slot *slot;
    fl_ring_record *record;
    char *names;
    size_t size;
    uint32_t capacity, slots,
        names_size; /* as checked on opening: the other side may be hostile (see harness/live/records/inside.h) */
    uint64_t read, marks_read; /* the reader's own positions; the head has copies for the writer and a next reader */
    int fd;
    char file[64]; /* its name in the folder; only the writer uses it */
} fl_ring;

/* Functions of the writer. They return 0 or an errno value. capacity: a power of two. */
int fl_ring_create(fl_ring *r, const char *folder, uint32_t capacity, uint32_t names_size);
/* Offset of the stored copy of the name; 0 (an empty name) where the area is full. It does not look for an equal name,
 * so intern names before. */
uint32_t fl_ring_name(fl_ring *r, const char *name);
/* Stores which GPU the program's number means; call it before the first record of that GPU. Numbers from
 * FL_RING_DEVICES up are ignored. */
void fl_ring_tell_device(fl_ring *r, uint32_t number, const uint8_t uuid[FL_RING_UUID]);
/* Publishes a record and fills in number and sum. False where the ring was full and the record was dropped. */
bool fl_ring_put(fl_ring *r, fl_ring_record *record);
void fl_ring_lost(fl_ring *r, uint64_t count); /* counts records that never reached the collector */
void fl_ring_end(fl_ring *r);                  /* marks a regular end */
/* Publishes a marker, unless the reader asks for others only; any thread may, at any time. True where the reader wants
 * to be woken by it (fl_ring_wake). Where all slots are full it is dropped and counted. */
bool fl_ring_put_mark(fl_ring *r, int64_t time_ns, uint32_t gpu, const char *name);
/* Wakes the reader of the folder, if there is one. It holds no file open, since a program may close all of its files
 * and give their numbers to others. */
void fl_ring_wake(const char *folder);
uint64_t fl_ring_wanted(const char *name); /* one bit */

/* Functions of the reader. The reason why a ring was refused (fl_ring_why gives it in words); 0 = open. */
typedef enum fl_ring_refusal {
    FL_RING_OPEN,
    FL_RING_GONE,      /* the file no longer exists */
    FL_RING_SYSTEM,    /* an errno value, in *error */
    FL_RING_NO_FILE,   /* a link, a FIFO, a folder, or a file with several names */
    FL_RING_OWNER,     /* it is owned or writable by users that the folder does not trust */
    FL_RING_TOO_LARGE, /* or too small */
    FL_RING_NO_RING,   /* its head contains impossible values */
    FL_RING_OLD        /* of another version */
} fl_ring_refusal;

/* Opens the file of that name in an open folder. Allowed owners are this user, the folder's owner and root; and anyone,
 * where the folder lets others write and each remove only their own files (mode 1777, as /tmp). It never waits (for a
 * FIFO or a lease) and never follows a link. It reads the head, and runs in fl_ring_guard. */
fl_ring_refusal fl_ring_open_at(fl_ring *r, int folder, const char *name, int *error);
/* The reason in words, for a message; for FL_RING_SYSTEM the errno value says more. */
const char *fl_ring_why(fl_ring_refusal refusal);

/* Whether a process other than this one holds the ring as its writer. */
bool fl_ring_held(const fl_ring *r);
/* Takes up to `room` records. *bad counts records with a wrong checksum, which are left out. False where the indices
 * are impossible: nothing in the ring can then be trusted any more. */
bool fl_ring_take(fl_ring *r, fl_ring_record *into, size_t room, size_t *taken, uint64_t *bad);
/* Takes the next slot. *more is false where there is none. A slot without a sound marker gives one with time_ns < 0; a
 * damaged one counts into *bad. `over`: its program has ended, so a slot that was given out and not filled never will
 * be. False where the slots are impossible. */
bool fl_ring_take_mark(fl_ring *r, bool over, fl_ring_mark *into, bool *more, uint64_t *bad);
/* A copy of the name at that offset, up to FL_RING_NAME_MAX - 1 bytes; "" where there is none. */
void fl_ring_copy_name(const fl_ring *r, uint32_t at, char name[FL_RING_NAME_MAX]);
bool fl_ring_device_of(const fl_ring *r, uint32_t number, uint8_t uuid[FL_RING_UUID]); /* false: not known */

void fl_ring_close(fl_ring *r);

/* The text in the vendor's form: GPU-01234567-89ab-cdef-0123-456789abcdef. */
void fl_ring_uuid_text(const uint8_t uuid[FL_RING_UUID], char text[FL_RING_UUID_TEXT]);
