/* The folder of the rings, and the guard that survives a ring that its program cuts short. */
#include "harness/live/collector/ring.h"
#include "harness/live/records/inside.h"
#include "harness/live/records/records.h"
#include "traces/io/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* Not looked at again. Told with its path and why; after FL_RING_TOLD_MAX lines it is only counted. */
enum { FL_RING_TOLD_MAX = 32 };

/* ---- the folder of the rings ---- */

enum { FILES_AT_ONCE = 1024, ASIDE_SLOTS = 1 << 16 };

struct fl_ring_folder {
    char *path;
    DIR *at;
    size_t looked;   /* in this look */
    bool whole;      /* the look before came to the end of the folder */
    uint64_t *aside; /* keys, by hash; 0 = free. Where it gets full it is emptied, and all are found again */
    size_t aside_count;
    fl_ring_tell *tell;
    void *user;
    unsigned told;
};

fl_status fl_ring_folder_open(fl_ring_folder **out, const char *path, fl_diag *d) {
    *out = NULL;
    if (mkdir(path, 0700) && errno != EEXIST)
        return fl_fail(d, FL_IO, path, 0, 0, "cannot make the folder: %s", fl_reason(errno));
    fl_ring_folder *f = calloc(1, sizeof *f);
    if (f) {
        f->path = strdup(path);
        f->aside = calloc(ASIDE_SLOTS, sizeof *f->aside);
    }
    if (!f || !f->path || !f->aside) {
        fl_ring_folder_close(f);
        return fl_no_memory(d, "the kernels");
    }
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    f->at = fd >= 0 ? fdopendir(fd) : NULL;
    if (!f->at) {
        const int error = errno;
        if (fd >= 0)
            close(fd);
        fl_ring_folder_close(f);
        return fl_fail(d, FL_IO, path, 0, 0, "cannot open the folder: %s", fl_reason(error));
    }
    f->whole = true;
    *out = f;
    return FL_OK;
}

void fl_ring_folder_close(fl_ring_folder *f) {
    if (!f)
        return;
    if (f->at)
        closedir(f->at);
    free(f->aside);
    free(f->path);
    free(f);
}

int fl_ring_folder_fd(const fl_ring_folder *f) { return dirfd(f->at); }

void fl_ring_folder_teller(fl_ring_folder *f, fl_ring_tell *tell, void *user) {
    f->tell = tell;
    f->user = user;
}

void fl_ring_folder_begin(fl_ring_folder *f) {
    if (f->whole)
        rewinddir(f->at);
    f->whole = false;
    f->looked = 0;
}

/* FNV-1a of the name, and the inode: a new file of the same name is looked at anew. */
static uint64_t key_of(const char *name, ino_t inode) {
    uint64_t key = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)inode * UINT64_C(0x9e3779b97f4a7c15);
    for (; *name; name++)
        key = (key ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return key | 1;
}

/* Where the key stands, or the free slot where it belongs. */
static uint64_t *slot_of(const fl_ring_folder *f, uint64_t key) {
    size_t at = (size_t)(key >> 32) % ASIDE_SLOTS;
    while (f->aside[at] && f->aside[at] != key)
        at = (at + 1) % ASIDE_SLOTS;
    return &f->aside[at];
}

bool fl_ring_folder_next(fl_ring_folder *f, fl_ring_file *file) {
    while (f->looked < FILES_AT_ONCE) {
        const struct dirent *e = readdir(f->at);
        if (!e) {
            f->whole = true;
            return false;
        }
        f->looked++;
        const size_t size = strlen(e->d_name);
        if (size <= 5 || e->d_name[0] == '.' || strcmp(e->d_name + size - 5, ".ring") != 0 ||
            *slot_of(f, key_of(e->d_name, e->d_ino)))
            continue;
        memcpy(file->name, e->d_name, size + 1); /* NAME_MAX is 255 */
        file->inode = e->d_ino;
        return true;
    }
    return false;
}

/* no more of this look: the file given last counts as not looked at */
static void ring_folder_pause(fl_ring_folder *f) { f->looked = FILES_AT_ONCE; }

/* Names come from others: what is not printable is not shown. */
static void printable(const char *name, char out[FL_RING_FILE_MAX]) {
    const size_t size = strnlen(name, FL_RING_FILE_MAX - 1);
    memcpy(out, name, size);
    out[size] = '\0';
    fl_printable(out, size);
}

void fl_ring_folder_say(fl_ring_folder *f, const char *name, const char *text) {
    char line[1024], shown[FL_RING_FILE_MAX];
    if (!f->tell || f->told > FL_RING_TOLD_MAX)
        return;
    if (f->told++ == FL_RING_TOLD_MAX) {
        snprintf(line, sizeof line, "%.500s: more of this is only counted", f->path);
    } else {
        printable(name, shown);
        snprintf(line, sizeof line, "%.500s%s%s: %.200s", f->path, *shown ? "/" : "", shown, text);
    }
    f->tell(f->user, line);
}

void fl_ring_folder_set_aside(fl_ring_folder *f, const fl_ring_file *file, const char *why) {
    char line[256];
    if (++f->aside_count > ASIDE_SLOTS / 2) {
        memset(f->aside, 0, ASIDE_SLOTS * sizeof *f->aside);
        f->aside_count = 1;
    }
    const uint64_t key = key_of(file->name, file->inode);
    *slot_of(f, key) = key;
    snprintf(line, sizeof line, "set aside: %.200s", why);
    fl_ring_folder_say(f, file->name, line);
}

/* ---- reading a ring that its program may cut short ---- */

static sigjmp_buf *volatile back; /* a signal handler can reach nothing else */

static void on_bus(int number) {
    (void)number;
    siglongjmp(*back, 1);
}

bool fl_ring_guard(void (*work)(void *user), void *user) {
    struct sigaction bus = {.sa_handler = on_bus}, before;
    sigjmp_buf here;
    if (sigaction(SIGBUS, &bus, &before))
        return false;
    const bool whole = !sigsetjmp(here, 1);
    if (whole) {
        back = &here;
        work(user);
    }
    back = NULL;
    sigaction(SIGBUS, &before, NULL);
    return whole;
}

/* ---- programs whose rings the host reads ---- */

/* The programs whose rings the host reads: found in the folder, opened, set aside, within bounds. */

enum {
    RINGS_OF_ONE_USER = 256, /* who is not the host's own, and half of all; a quarter is kept for the host's own user */
    OPENED_AT_ONCE = 64
};

typedef struct opening {
    const fl_kernels *k;
    fl_source *s;
    fl_ring_refusal why;
    int error;
} opening;

static void open_source(void *user) {
    opening *o = user;
    o->why = fl_ring_open_at(&o->s->ring, fl_ring_folder_fd(o->k->folder), o->s->file.name, &o->error);
    if (o->why)
        return;
    o->s->pid = o->s->ring.head->pid;
    o->s->stamp = o->s->ring.head->stamp;
    atomic_store(&o->s->ring.head->wanted, o->k->all_marks ? UINT64_MAX : fl_marks_wanted(&o->k->marks));
    atomic_store(&o->s->ring.head->wakes, o->k->wake >= 0);
}

void fl_kernels_set_aside(fl_kernels *k, const fl_ring_file *file, const char *why) {
    fl_ring_folder_set_aside(k->folder, file, why);
    k->counts.set_aside++;
}

/* The place of a program that is over, or a new one; NULL: out of memory. */
static fl_source *place_of(fl_kernels *k) {
    for (size_t i = 0; i < k->source_count; i++)
        if (k->source[i].over)
            return &k->source[i];
    return fl_grow(&k->source, &k->source_room, k->source_count + 1, sizeof *k->source) ? NULL
                                                                                        : &k->source[k->source_count++];
}

/* Whether there is room for one more, of that owner. */
static bool has_room(const fl_kernels *k, uid_t owner) {
    const size_t of_one = k->rings_max / 2 < RINGS_OF_ONE_USER ? k->rings_max / 2 : RINGS_OF_ONE_USER;
    size_t all = 0, its = 0, others = 0;
    for (size_t i = 0; i < k->source_count; i++)
        if (!k->source[i].over) {
            all++;
            its += k->source[i].owner == owner;
            others += k->source[i].owner != geteuid();
        }
    return all < k->rings_max && (owner == geteuid() || (its < of_one && others < k->rings_max - k->rings_max / 4));
}

static bool is_known(const fl_kernels *k, const fl_ring_file *file) {
    for (size_t i = 0; i < k->source_count; i++)
        if (!k->source[i].over && k->source[i].file.inode == file->inode && !strcmp(k->source[i].file.name, file->name))
            return true;
    return false;
}

/* Until one of the others ends: it is looked at again. */
static void let_wait(fl_kernels *k, const fl_ring_file *file) {
    if (!k->told_rings)
        fl_ring_folder_say(k->folder, file->name, "more programs at a time than are looked at: it waits");
    k->told_rings = true;
}

static void refuse(fl_kernels *k, const fl_ring_file *file, const opening *o) {
    const bool ours = o->error == EMFILE || o->error == ENFILE || o->error == ENOMEM; /* to blame */
    if (o->why == FL_RING_GONE)
        return;
    if (o->why == FL_RING_SYSTEM && ours)
        let_wait(k, file);
    else
        fl_kernels_set_aside(k, file, o->why == FL_RING_SYSTEM ? fl_reason(o->error) : fl_ring_why(o->why));
}

static fl_status add_source(fl_kernels *k, const fl_ring_file *file, fl_diag *d) {
    fl_source s = {.file = *file, .last = FL_GPU_NOBODYS, .program = (uint32_t)k->counts.programs};
    struct stat st;
    opening o = {.k = k, .s = &s};
    const bool whole = fl_ring_guard(open_source, &o);
    if (!whole || o.why || fstat(s.ring.fd, &st)) { /* fstat: it worked a moment ago */
        fl_ring_close(&s.ring);
        if (!whole)
            fl_kernels_set_aside(k, file, "its program cut it short");
        else
            refuse(k, file, &o);
        return FL_OK;
    }
    s.owner = st.st_uid;
    for (int i = 0; i < FL_RING_DEVICES; i++)
        s.gpu[i] = FL_GPU_UNKNOWN;
    if (!has_room(k, s.owner)) {
        fl_ring_close(&s.ring);
        let_wait(k, file);
        return FL_OK;
    }
    fl_source *at = place_of(k);
    if (!at) {
        fl_ring_close(&s.ring);
        return fl_no_memory(d, "the kernels");
    }
    *at = s;
    k->counts.programs++;
    return FL_OK;
}

fl_status fl_kernels_find(fl_kernels *k, fl_diag *d) {
    fl_ring_file file;
    fl_status s = FL_OK;
    fl_ring_folder_begin(k->folder);
    for (int opened = 0; !s && fl_ring_folder_next(k->folder, &file);) {
        if (is_known(k, &file))
            continue;
        s = add_source(k, &file, d);
        if (++opened == OPENED_AT_ONCE)
            ring_folder_pause(k->folder);
    }
    return s;
}

/* By its UUID: what a program calls GPU 0 may be any. */
int32_t fl_kernels_gpu_of(const fl_kernels *k, fl_source *s, uint32_t number) {
    uint8_t uuid[FL_RING_UUID];
    char text[FL_RING_UUID_TEXT];
    if (number >= FL_RING_DEVICES)
        return FL_GPU_NOBODYS;
    if (s->gpu[number] == FL_GPU_UNKNOWN && fl_ring_device_of(&s->ring, number, uuid)) {
        fl_ring_uuid_text(uuid, text);
        s->gpu[number] = k->position ? k->position(k->user, text, strlen(text)) : FL_GPU_NOBODYS;
    }
    return s->gpu[number] < 0 ? FL_GPU_NOBODYS : s->gpu[number];
}
