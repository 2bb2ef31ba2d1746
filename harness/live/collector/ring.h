/* Kernel records from a program to the host: one ring of shared memory per process, one writer (the collector in the
 * program), one reader (the host). The writer never waits: where the ring is full it drops and counts.
 *
 * A file PID-STAMP.ring in a folder that both know, a new one for each image that a process runs (exec): none ever
 * takes another's place. Its writer holds a lock on it for life (fcntl: an exec ends it, a fork does not inherit it),
 * which says from any container whether there is one. What was produced is write + dropped, by construction: a record's
 * number is that sum, so the counts are exact whenever the writer is killed. A record is published by the release of
 * `write` and carries a checksum. Names are copied into an area of their own and stand for ever.
 *
 * A program numbers the GPUs that it may use, which says nothing about the machine's: a container, CUDA_VISIBLE_DEVICES
 * and device cgroups each give it numbers of its own. So a record holds the program's number, and a table in the head
 * says which UUID that is. A GPU without a UUID there is no GPU that anybody knows.
 *
 * The reader may be root and the writer anybody. The reader believes nothing that is in the file: not its size, nor a
 * number or index in it. It opens regular files only, of at most FL_RING_SIZE_MAX bytes, and keeps its own copy of
 * everything that says where to read. */
#ifndef FL_LIVE_RING_H
#define FL_LIVE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL_RING_MAGIC UINT64_C(0x33474e49524c46) /* "FLRING3" */
#define FL_RING_FAMILY UINT64_C(0xffffffffffff)  /* of it, what all versions share */
enum { FL_RING_HEAD = 4096, FL_RING_NAME_MAX = 1024, FL_RING_DEVICES = 64, FL_RING_UUID = 16 };
enum { FL_RING_CAPACITY_MAX = 1 << 16 /* records */, FL_RING_NAMES_MAX = 4 << 20 /* bytes */ };
enum { FL_RING_UUID_TEXT = 41 /* "GPU-", 36 characters, the end */ };

typedef struct fl_ring_record {
    uint64_t number;          /* from 0, dropped ones counted */
    int64_t start_ns, end_ns; /* CLOCK_MONOTONIC; end_ns < 0: the end is missing */
    uint32_t gpu, stream, context, correlation;
    uint32_t grid[3], block[3];
    uint32_t name; /* where it begins in the area of names */
    uint32_t spare;
    uint64_t sum; /* checksum of all before it */
} fl_ring_record;

#define FL_RING_SIZE_MAX (FL_RING_HEAD + (int64_t)FL_RING_CAPACITY_MAX * sizeof(fl_ring_record) + FL_RING_NAMES_MAX)

typedef struct fl_ring_device {
    _Atomic uint32_t known; /* 1: the UUID stands, and stays */
    uint8_t uuid[FL_RING_UUID];
} fl_ring_device;

typedef struct fl_ring_head { /* the first page */
    uint64_t magic;
    int32_t pid;
    uint32_t capacity;   /* records, a power of two */
    uint32_t names_size; /* bytes */
    _Atomic uint32_t names_used;
    _Atomic uint32_t ended;                 /* 1: the program ended in order, all its records are in */
    uint64_t stamp;                         /* CLOCK_MONOTONIC when it was made, unique among those of a process */
    fl_ring_device device[FL_RING_DEVICES]; /* by the number that the program gives it */
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
    uint64_t read;                 /* the reader's own; the head has a copy for the writer */
    int fd;
    char file[64]; /* its name in the folder; the writer's only */
} fl_ring;

/* The writer's. 0, or an errno value. capacity: a power of two. */
int fl_ring_create(fl_ring *r, const char *folder, uint32_t capacity, uint32_t names_size);
/* Where a copy of the name stands; 0 (an empty name) where the area is full. Compares with nothing: intern before. */
uint32_t fl_ring_name(fl_ring *r, const char *name);
/* Which GPU the program's number is; before the first record of it. Numbers from FL_RING_DEVICES on are passed over. */
void fl_ring_tell_device(fl_ring *r, uint32_t number, const uint8_t uuid[FL_RING_UUID]);
/* Publishes a record (number and sum are filled in); false where the ring was full and it was dropped. */
bool fl_ring_put(fl_ring *r, fl_ring_record *record);
void fl_ring_lost(fl_ring *r, uint64_t count); /* records that never reached us */
void fl_ring_end(fl_ring *r);                  /* orderly end */

/* The reader's. How a ring is refused (fl_ring_why says it in words); 0 = open. */
typedef enum fl_ring_refusal {
    FL_RING_OPEN,
    FL_RING_GONE,      /* no such file any more */
    FL_RING_SYSTEM,    /* an errno value, in *error */
    FL_RING_NO_FILE,   /* a link, a FIFO, a folder, or one of several names of a file */
    FL_RING_OWNER,     /* others than those whom the folder trusts own it, or may write to it */
    FL_RING_TOO_LARGE, /* or too small */
    FL_RING_NO_RING,   /* what its head says cannot be */
    FL_RING_OLD        /* of another version */
} fl_ring_refusal;

/* The file of that name in an open folder. Whose it may be: of this user, of the folder's owner, of root; of anybody
 * where the folder lets others write and each remove only what is theirs (mode 1777, as /tmp). Neither waits (for a
 * FIFO, for a lease) nor follows a link. Reads the head: runs in fl_ring_guard. */
fl_ring_refusal fl_ring_open_at(fl_ring *r, int folder, const char *name, int *error);
/* In words, for a line about it; of FL_RING_SYSTEM the errno value says more. */
const char *fl_ring_why(fl_ring_refusal refusal);

/* Whether a process holds it as its writer; of another process than this. */
bool fl_ring_held(const fl_ring *r);
/* Takes up to `room` records. *bad counts those whose checksum is wrong (they are left out). False where its indices
 * cannot be: nothing in it can be believed any more. */
bool fl_ring_take(fl_ring *r, fl_ring_record *into, size_t room, size_t *taken, uint64_t *bad);
/* A copy of the name that begins there, up to FL_RING_NAME_MAX - 1 bytes; "" where there is none. */
void fl_ring_copy_name(const fl_ring *r, uint32_t at, char name[FL_RING_NAME_MAX]);
bool fl_ring_device_of(const fl_ring *r, uint32_t number, uint8_t uuid[FL_RING_UUID]); /* false: not told */

void fl_ring_close(fl_ring *r);

/* As the vendor writes it: GPU-01234567-89ab-cdef-0123-456789abcdef. */
void fl_ring_uuid_text(const uint8_t uuid[FL_RING_UUID], char text[FL_RING_UUID_TEXT]);

#endif
