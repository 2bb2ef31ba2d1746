/* The folder of the rings, and the guard that survives a ring that its program cuts short. */
#include "harness/live/records/inside.h"

#include "traces/io/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

void fl_ring_folder_pause(fl_ring_folder *f) { f->looked = FILES_AT_ONCE; }

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
