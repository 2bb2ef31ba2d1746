/* The ring of shared memory between a program and the host. */
#include "harness/live/collector/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* FNV-1a. */
static uint64_t hash_of(const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ at[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* Over all but the checksum itself. */
static uint64_t sum_of(const fl_ring_record *record) { return hash_of(record, offsetof(fl_ring_record, sum)); }
static uint64_t sum_of_mark(const fl_ring_mark *mark) { return hash_of(mark, offsetof(fl_ring_mark, sum)); }

static uint32_t slots_of(uint32_t capacity) { return capacity < FL_RING_MARKS ? capacity : FL_RING_MARKS; }

static size_t size_of(uint32_t capacity, uint32_t names_size) {
    return FL_RING_HEAD + (size_t)capacity * sizeof(fl_ring_record) +
           (size_t)slots_of(capacity) * sizeof(fl_ring_slot) + names_size;
}

static bool sound(uint32_t capacity, uint32_t names_size) {
    return capacity && !(capacity & (capacity - 1)) && capacity <= FL_RING_CAPACITY_MAX && names_size >= 2 &&
           names_size <= FL_RING_NAMES_MAX;
}

static int map(fl_ring *r, int fd, size_t size) {
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return errno;
    r->head = at;
    r->record = (fl_ring_record *)(void *)((char *)at + FL_RING_HEAD);
    r->size = size;
    return 0;
}

static void place(fl_ring *r, uint32_t capacity, uint32_t names_size) {
    r->capacity = capacity;
    r->names_size = names_size;
    r->slots = slots_of(capacity);
    r->slot = (fl_ring_slot *)(void *)(r->record + capacity);
    r->names = (char *)(r->slot + r->slots);
}

/* No reader sees an incomplete file, and no file that is still unread is replaced. */
static int put_in_place(fl_ring *r, const char *folder, const char *from) {
    char to[PATH_MAX];
    snprintf(r->file, sizeof r->file, "%d-%llu.ring", (int)getpid(), (unsigned long long)r->head->stamp);
    if ((size_t)snprintf(to, sizeof to, "%s/%s", folder, r->file) >= sizeof to)
        return ENAMETOOLONG;
    if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
        return 0;
    const bool unknown = errno == EINVAL || errno == ENOSYS; /* the file system does not know the call */
    return unknown && !rename(from, to) ? 0 : errno;
}

static uint64_t monotonic_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int fl_ring_create(fl_ring *r, const char *folder, uint32_t capacity, uint32_t names_size) {
    char path[PATH_MAX];
    const uint64_t stamp = monotonic_ns();
    *r = (fl_ring){.fd = -1};
    if (!sound(capacity, names_size))
        return EINVAL;
    /* An existing file belongs to another writer, or someone may have put it there for us to write into. */
    if ((size_t)snprintf(path, sizeof path, "%s/.%d-%llu.new", folder, (int)getpid(), (unsigned long long)stamp) >=
        sizeof path)
        return ENAMETOOLONG;
    int fd = r->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno;
    fcntl(fd, F_SETLK,
          &(struct flock){.l_type = F_WRLCK,
                          .l_whence = SEEK_SET}); /* where open file locks do not exist: the lock of the process */
    const size_t size = size_of(capacity, names_size);
    /* Reserves the space now: a write to a full file system would end the program by a signal. */
    int error = posix_fallocate(fd, 0, (off_t)size);
    if (!error)
        error = map(r, fd, size);
    if (!error) {
        place(r, capacity, names_size);
        r->head->pid = (int32_t)getpid();
        r->head->capacity = capacity;
        r->head->names_size = names_size;
        r->head->names_used = 1; /* 0 is the empty name */
        r->head->magic = FL_RING_MAGIC;
        r->head->stamp = stamp;
        while ((error = put_in_place(r, folder, path)) == EEXIST) /* the clock may not have advanced since an exec */
            r->head->stamp++;
    }
    if (error) {
        unlink(path);
        fl_ring_close(r);
    }
    return error;
}

uint32_t fl_ring_name(fl_ring *r, const char *name) {
    const size_t size = strnlen(name, FL_RING_NAME_MAX - 1);
    const uint32_t used = atomic_load_explicit(&r->head->names_used, memory_order_relaxed);
    if (!size || used > r->names_size || r->names_size - used <= size)
        return 0;
    memcpy(r->names + used, name, size);
    r->names[used + size] = '\0';
    atomic_store_explicit(&r->head->names_used, used + (uint32_t)size + 1, memory_order_release);
    return used;
}

void fl_ring_tell_device(fl_ring *r, uint32_t number, const uint8_t uuid[FL_RING_UUID]) {
    if (number >= FL_RING_DEVICES)
        return;
    memcpy(r->head->device[number].uuid, uuid, FL_RING_UUID);
    atomic_store_explicit(&r->head->device[number].known, 1, memory_order_release);
}

bool fl_ring_put(fl_ring *r, fl_ring_record *record) {
    fl_ring_head *h = r->head;
    const uint64_t write = atomic_load_explicit(&h->write, memory_order_relaxed),
                   read = atomic_load_explicit(&h->read, memory_order_acquire),
                   dropped = atomic_load_explicit(&h->dropped, memory_order_relaxed);
    if (write - read >= r->capacity) {
        atomic_store_explicit(&h->dropped, dropped + 1, memory_order_release);
        return false;
    }
    record->number = write + dropped;
    record->sum = sum_of(record);
    r->record[write & (r->capacity - 1)] = *record;
    atomic_store_explicit(&h->write, write + 1, memory_order_release);
    return true;
}

void fl_ring_lost(fl_ring *r, uint64_t count) {
    atomic_fetch_add_explicit(&r->head->dropped, count, memory_order_release);
}

uint64_t fl_ring_wanted(const char *name) {
    return UINT64_C(1) << (hash_of(name, strnlen(name, FL_RING_MARK_NAME - 1)) >> 58);
}

/* A slot is free when the reader has taken the marker of the round before. */
bool fl_ring_put_mark(fl_ring *r, int64_t time_ns, uint32_t gpu, const char *name) {
    fl_ring_head *h = r->head;
    const uint64_t wanted = atomic_load_explicit(&h->wanted, memory_order_relaxed);
    if (wanted && !(wanted & fl_ring_wanted(name)))
        return false;
    uint64_t at = atomic_load_explicit(&h->marks, memory_order_relaxed);
    for (;;) {
        fl_ring_slot *slot = &r->slot[at % r->slots];
        const uint64_t round = at / r->slots;
        if (atomic_load_explicit(&slot->turn, memory_order_acquire) == 2 * round) {
            if (!atomic_compare_exchange_weak_explicit(&h->marks, &at, at + 1, memory_order_relaxed,
                                                       memory_order_relaxed))
                continue;
            fl_ring_mark *m = &slot->mark;
            *m = (fl_ring_mark){.time_ns = time_ns, .gpu = gpu};
            memcpy(m->name, name, strnlen(name, FL_RING_MARK_NAME - 1));
            m->sum = sum_of_mark(m);
            atomic_store_explicit(&slot->turn, 2 * round + 1, memory_order_release);
            /* Either the reader, which says `wakes` before it looks, finds this marker, or it is woken. */
            atomic_thread_fence(memory_order_seq_cst);
            return atomic_load_explicit(&h->wakes, memory_order_relaxed);
        }
        const uint64_t now = atomic_load_explicit(&h->marks, memory_order_relaxed);
        if (now == at) { /* nobody else took the slot: it is full */
            atomic_fetch_add_explicit(&h->marks_dropped, 1, memory_order_release);
            return false;
        }
        at = now;
    }
}

/* Open for reading too: a FIFO that nobody reads would end the program by a signal. */
void fl_ring_wake(const char *folder) {
    char path[PATH_MAX];
    struct stat st;
    const int error = errno;
    if ((size_t)snprintf(path, sizeof path, "%s/" FL_RING_WAKE, folder) < sizeof path) {
        const int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
        if (fd >= 0 && !fstat(fd, &st) && S_ISFIFO(st.st_mode))
            (void)!write(fd, "", 1); /* where it is full the reader wakes anyhow */
        if (fd >= 0)
            close(fd);
    }
    errno = error;
}

void fl_ring_end(fl_ring *r) { atomic_store_explicit(&r->head->ended, 1, memory_order_release); }

/* ---- the reader's side ---- */

static bool owner_fits(const struct stat *ring, const struct stat *folder) {
    const bool shared = folder->st_mode & (S_IWGRP | S_IWOTH), sticky = folder->st_mode & S_ISVTX;
    if (ring->st_mode & (S_IWGRP | S_IWOTH)) /* anyone may write to it */
        return false;
    return ring->st_uid == geteuid() || ring->st_uid == 0 || ring->st_uid == folder->st_uid || (shared && sticky);
}

/* Checks the open file itself: its name may mean another file by now. */
static fl_ring_refusal check_file(int fd, int folder, size_t *size, int *error) {
    struct stat st, at;
    if (fstat(fd, &st) || fstat(folder, &at)) {
        *error = errno;
        return FL_RING_SYSTEM;
    }
    if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
        return FL_RING_NO_FILE;
    if (!owner_fits(&st, &at))
        return FL_RING_OWNER;
    *size = (size_t)st.st_size;
    return st.st_size < FL_RING_HEAD || st.st_size > (off_t)FL_RING_SIZE_MAX ? FL_RING_TOO_LARGE : FL_RING_OPEN;
}

static fl_ring_refusal check_head(fl_ring *r) {
    const uint64_t magic = r->head->magic; /* each value is read once, since the writer may change it at any time */
    const uint32_t capacity = *(volatile uint32_t *)&r->head->capacity,
                   names = *(volatile uint32_t *)&r->head->names_size;
    if (magic != FL_RING_MAGIC)
        return (magic & FL_RING_FAMILY) == (FL_RING_MAGIC & FL_RING_FAMILY) ? FL_RING_OLD : FL_RING_NO_RING;
    if (!sound(capacity, names) || size_of(capacity, names) != r->size)
        return FL_RING_NO_RING;
    place(r, capacity, names);
    r->read = atomic_load_explicit(&r->head->read, memory_order_relaxed); /* left by an earlier reader */
    r->marks_read = atomic_load_explicit(&r->head->marks_read, memory_order_relaxed);
    return FL_RING_OPEN;
}

fl_ring_refusal fl_ring_open_at(fl_ring *r, int folder, const char *name, int *error) {
    size_t size = 0;
    *error = 0;
    *r = (fl_ring){.fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)};
    if (r->fd < 0) {
        *error = errno;
        return errno == ENOENT                                       ? FL_RING_GONE
               : errno == ELOOP || errno == EISDIR || errno == ENXIO ? FL_RING_NO_FILE
                                                                     : FL_RING_SYSTEM;
    }
    fl_ring_refusal why = check_file(r->fd, folder, &size, error);
    if (!why && (*error = map(r, r->fd, size)))
        why = FL_RING_SYSTEM;
    if (!why)
        why = check_head(r);
    if (why)
        fl_ring_close(r);
    return why;
}

const char *fl_ring_why(fl_ring_refusal refusal) {
    switch (refusal) {
    case FL_RING_SYSTEM:
        return "the system does not open it";
    case FL_RING_NO_FILE:
        return "no file of its own (a link, a FIFO, a folder)";
    case FL_RING_OWNER:
        return "others own it, or may write to it, than those whom its folder trusts";
    case FL_RING_TOO_LARGE:
        return "no ring has this size";
    case FL_RING_OLD:
        return "it is of another version of the collector: start the program with the collector of this foldline";
    default:
        return "no ring: what its head says cannot be";
    }
}

bool fl_ring_held(const fl_ring *r) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return !fcntl(r->fd, F_GETLK, &lock) && lock.l_type != F_UNLCK;
}

bool fl_ring_take(fl_ring *r, fl_ring_record *into, size_t room, size_t *taken, uint64_t *bad) {
    fl_ring_head *h = r->head;
    const uint64_t write = atomic_load_explicit(&h->write, memory_order_acquire);
    size_t n = 0;
    *taken = 0;
    if (write - r->read > r->capacity)
        return false;
    for (; r->read != write && n < room; r->read++) {
        into[n] = r->record[r->read & (r->capacity - 1)];
        if (into[n].sum == sum_of(&into[n]))
            n++;
        else
            *bad += 1;
    }
    atomic_store_explicit(&h->read, r->read, memory_order_release);
    *taken = n;
    return true;
}

bool fl_ring_take_mark(fl_ring *r, bool over, fl_ring_mark *into, bool *more, uint64_t *bad) {
    const uint64_t marks = atomic_load_explicit(&r->head->marks, memory_order_acquire),
                   round = r->marks_read / r->slots;
    fl_ring_slot *slot = &r->slot[r->marks_read % r->slots];
    *into = (fl_ring_mark){.time_ns = -1};
    *more = false;
    if (marks - r->marks_read > r->slots)
        return false;
    if (marks == r->marks_read)
        return true;
    const uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
    if (turn == 2 * round + 1) {
        *into = slot->mark;
        if (into->sum != sum_of_mark(into) || into->name[FL_RING_MARK_NAME - 1] || into->time_ns < 0) {
            into->time_ns = -1;
            *bad += 1;
        }
    } else if (turn != 2 * round && turn != 2 * (round + 1)) { /* the latter: an earlier reader ended right here */
        return false;
    } else if (turn == 2 * round && !over) { /* a thread is filling it */
        return true;
    }
    atomic_store_explicit(&slot->turn, 2 * (round + 1), memory_order_release);
    atomic_store_explicit(&r->head->marks_read, ++r->marks_read, memory_order_release);
    *more = true;
    return true;
}

void fl_ring_copy_name(const fl_ring *r, uint32_t at, char name[FL_RING_NAME_MAX]) {
    const uint32_t used = atomic_load_explicit(&r->head->names_used, memory_order_acquire);
    size_t size = 0;
    if (at && at < used && used <= r->names_size) {
        const size_t left = used - at;
        size = strnlen(r->names + at, left < FL_RING_NAME_MAX ? left : FL_RING_NAME_MAX - 1);
        memcpy(name, r->names + at, size);
    }
    name[size] = '\0';
}

bool fl_ring_device_of(const fl_ring *r, uint32_t number, uint8_t uuid[FL_RING_UUID]) {
    if (number >= FL_RING_DEVICES || atomic_load_explicit(&r->head->device[number].known, memory_order_acquire) != 1)
        return false;
    memcpy(uuid, r->head->device[number].uuid, FL_RING_UUID);
    return true;
}

void fl_ring_close(fl_ring *r) {
    if (r->head) {
        munmap(r->head, r->size);
        close(r->fd);
    } else if (r->fd > 0) { /* false for a ring that was only zeroed */
        close(r->fd);
    }
    *r = (fl_ring){.fd = -1};
}

void fl_ring_uuid_text(const uint8_t uuid[FL_RING_UUID], char text[FL_RING_UUID_TEXT]) {
    char *at = text + snprintf(text, FL_RING_UUID_TEXT, "GPU");
    for (int i = 0; i < FL_RING_UUID; i++) /* a dash before the bytes 0, 4, 6, 8 and 10 */
        at += snprintf(at, (size_t)(text + FL_RING_UUID_TEXT - at), "%s%02x", 0x551 >> i & 1 ? "-" : "", uuid[i]);
}
