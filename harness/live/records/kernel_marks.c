#include "harness/live/records/kernel_marks.h"

#include "harness/live/guard/clock.h"
#include "harness/live/records/feed_inside.h"
#include "harness/live/records/ring_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A thread that uses no GPU yet is of the one that its program used last, or of its only one. */
static int32_t gpu_of_mark(const fl_kernels *k, fl_source *s, const fl_ring_mark *m) {
    uint8_t uuid[FL_RING_UUID];
    if (m->gpu != FL_RING_NO_GPU)
        return fl_kernels_gpu_of(k, s, m->gpu);
    return s->last >= 0 || fl_ring_device_of(&s->ring, 1, uuid) ? s->last : fl_kernels_gpu_of(k, s, 0);
}

/* No more than there is room for; the rest comes with the next take. */
void fl_kernels_empty_marks(fl_emptying *e) {
    fl_kernels *k = e->k;
    fl_source *s = e->s;
    fl_ring_mark mark;
    bool more = true;
    for (uint64_t i = 0; !e->status && more && i < e->share && i < FL_RING_MARKS; i++) {
        if (!fl_ring_take_mark(&s->ring, e->over || e->ended, &mark, &more, &k->counts.damaged))
            e->why = "its markers cannot be";
        if (e->why)
            return;
        if (!more)
            break;
        k->counts.damaged += mark.time_ns >= FL_TIME_MAX_NS;
        if (mark.time_ns < 0 || mark.time_ns >= FL_TIME_MAX_NS)
            continue;
        k->counts.marks++;
        e->status =
            fl_marks_add(&k->marks, mark.name, mark.time_ns - e->origin_ns, gpu_of_mark(k, s, &mark), s->program, e->d);
    }
    const uint64_t dropped = atomic_load(&s->ring.head->marks_dropped), lost = dropped - s->marks_lost;
    if (lost > FL_LOST_AT_ONCE)
        e->why = "its count of lost markers cannot be";
    if (e->why) /* told again by the next take, which sets the ring aside */
        return;
    k->counts.marks_lost += lost;
    s->marks_lost = dropped;
}

void fl_kernels_iterations(fl_kernels *k, const char *const *name, size_t count, bool all) {
    k->marks.names = name;
    k->marks.name_count = count;
    k->all_marks = all;
}

bool fl_kernels_iterated(const fl_kernels *k, uint32_t gpu, uint64_t *count) {
    *count = gpu < k->marks.gpus ? k->marks.passed[gpu] : 0;
    return k->marks.name_count > 0;
}

const fl_marks *fl_kernels_marks(const fl_kernels *k) { return &k->marks; }

/* Whoever may put rings into the folder may wake. It stays there: programs that go on may have a next reader. */
fl_status fl_kernels_wakes(fl_kernels *k, fl_diag *d) {
    const int folder = fl_ring_folder_fd(k->folder);
    struct stat in, st;
    const bool made = !mkfifoat(folder, FL_RING_WAKE, 0600);
    if (!made && errno != EEXIST)
        return fl_error(d, FL_IO, "cannot make the FIFO " FL_RING_WAKE " in the folder of rings: %s", fl_reason(errno));
    k->wake = openat(folder, FL_RING_WAKE, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
    if (k->wake < 0 || fstat(k->wake, &st) || fstat(folder, &in) || !S_ISFIFO(st.st_mode))
        return fl_error(d, FL_IO, "the file " FL_RING_WAKE " in the folder of rings is no FIFO that can be opened");
    if (made && in.st_mode & (S_IWGRP | S_IWOTH))
        (void)fchmod(k->wake, in.st_mode & 0666);
    return FL_OK;
}

static void look_for_marks(void *user) {
    fl_emptying *e = user;
    e->ended = atomic_load(&e->s->ring.head->ended);
    fl_kernels_empty_marks(e);
}

/* Also of programs that have just begun. A ring that is damaged is set aside by the next take. */
static fl_status take_marks(fl_kernels *k, fl_diag *d) {
    fl_status s = fl_kernels_find(k, d);
    for (size_t i = 0; !s && i < k->source_count; i++) {
        fl_emptying e = {.k = k, .s = &k->source[i], .origin_ns = k->origin_ns, .share = FL_COST_OF_ONE, .d = d};
        if (!e.s->over && fl_ring_guard(look_for_marks, &e))
            s = e.status;
    }
    return s;
}

/* A program that wakes us without need is answered no more often than this. */
enum { LOOKS_APART_NS = 200000 };

fl_status fl_kernels_await(fl_kernels *k, int64_t until_ns, bool *marked, fl_diag *d) {
    struct pollfd wait = {.fd = k->wake, .events = POLLIN};
    const int64_t left = until_ns - fl_clock_ns(), ns = left < 0 ? 0 : left < 1000000000 ? left : 1000000000;
    char bytes[4096];
    *marked = k->marks.iterations != k->shown;
    if (*marked || ppoll(&wait, 1, &(struct timespec){ns / 1000000000, ns % 1000000000}, NULL) <= 0)
        return FL_OK;
    (void)!read(k->wake, bytes, sizeof bytes);
    fl_status s = take_marks(k, d);
    *marked = k->marks.iterations != k->shown;
    if (!s && !*marked)
        nanosleep(&(struct timespec){.tv_nsec = LOOKS_APART_NS}, NULL);
    return s;
}
