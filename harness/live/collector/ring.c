#include "harness/live/collector/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* FNV-1a over all but the checksum itself. */
static uint64_t sum_of(const fl_ring_record *record) {
    const unsigned char *at = (const unsigned char *)record;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < offsetof(fl_ring_record, sum); i++)
        sum = (sum ^ at[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static size_t size_of(uint32_t capacity, uint32_t names_size) {
    return FL_RING_HEAD + (size_t)capacity * sizeof(fl_ring_record) + names_size;
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
    r->names = (char *)(r->record + capacity);
}

/* No reader sees a half-made one, and none that is not read yet is replaced. */
static int put_in_place(fl_ring *r, const char *folder, const char *from) {
    char to[512];
    snprintf(r->file, sizeof r->file, "%d-%llu.ring", (int)getpid(), (unsigned long long)r->head->stamp);
    snprintf(to, sizeof to, "%s/%s", folder, r->file);
    if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
        return 0;
    const bool unknown = errno == EINVAL || errno == ENOSYS; /* to this file system */
    return unknown && !rename(from, to) ? 0 : errno;
}

int fl_ring_create(fl_ring *r, const char *folder, uint32_t capacity, uint32_t names_size) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    char path[512];
    struct timespec t;
    *r = (fl_ring){.fd = -1};
    if (!capacity || capacity & (capacity - 1) || names_size < 2)
        return EINVAL;
    snprintf(path, sizeof path, "%s/.%d.new", folder, (int)getpid());
    int fd = r->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno;
    fcntl(fd, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}); /* where there are none: by its pid */
    const size_t size = size_of(capacity, names_size);
    /* Room is taken now: a write to a full file system would end the program by a signal. */
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
        r->head->chosen = visible != NULL;
        snprintf(r->head->visible, sizeof r->head->visible, "%s", visible ? visible : "");
        clock_gettime(CLOCK_MONOTONIC, &t);
        r->head->stamp = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
        while ((error = put_in_place(r, folder, path)) == EEXIST) /* time need not have passed since an exec */
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

void fl_ring_end(fl_ring *r) { atomic_store_explicit(&r->head->ended, 1, memory_order_release); }

int fl_ring_open(fl_ring *r, const char *path) {
    struct stat st;
    *r = (fl_ring){.fd = -1};
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno;
    r->fd = fd;
    int error = fstat(fd, &st) ? errno : st.st_size < FL_RING_HEAD ? EINVAL : map(r, fd, (size_t)st.st_size);
    if (error) {
        fl_ring_close(r);
        return error;
    }
    const uint32_t capacity = r->head->capacity, names = r->head->names_size;
    if (r->head->magic != FL_RING_MAGIC || !capacity || capacity & (capacity - 1) || names < 2 ||
        size_of(capacity, names) != r->size) {
        fl_ring_close(r);
        return EINVAL;
    }
    place(r, capacity, names);
    return 0;
}

bool fl_ring_held(const fl_ring *r) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return !fcntl(r->fd, F_GETLK, &lock) && lock.l_type != F_UNLCK;
}

size_t fl_ring_take(fl_ring *r, fl_ring_record *into, size_t room, uint64_t *bad) {
    fl_ring_head *h = r->head;
    const uint64_t write = atomic_load_explicit(&h->write, memory_order_acquire);
    uint64_t read = atomic_load_explicit(&h->read, memory_order_relaxed);
    size_t taken = 0;
    if (write - read > r->capacity) { /* cannot be: nothing in it can be believed */
        *bad += 1;
        atomic_store_explicit(&h->read, write, memory_order_release);
        return 0;
    }
    for (; read != write && taken < room; read++) {
        into[taken] = r->record[read & (r->capacity - 1)];
        if (into[taken].sum == sum_of(&into[taken]))
            taken++;
        else
            *bad += 1;
    }
    atomic_store_explicit(&h->read, read, memory_order_release);
    return taken;
}

const char *fl_ring_name_at(const fl_ring *r, uint32_t at) {
    const uint32_t used = atomic_load_explicit(&r->head->names_used, memory_order_acquire);
    if (!at || at >= used || used > r->names_size || !memchr(r->names + at, '\0', used - at))
        return "";
    return r->names + at;
}

void fl_ring_close(fl_ring *r) {
    if (r->head) {
        munmap(r->head, r->size);
        close(r->fd);
    } else if (r->fd > 0) { /* not of one that was only zeroed */
        close(r->fd);
    }
    *r = (fl_ring){.fd = -1};
}
