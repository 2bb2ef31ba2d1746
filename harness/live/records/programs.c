/* The programs whose rings the host reads: found in the folder, opened, set aside, within bounds. */
#include "harness/live/records/inside.h"

#include "harness/live/collector/ring.h"
#include "harness/live/records/records.h"
#include "traces/io/io.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

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
            fl_ring_folder_pause(k->folder);
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
