/* Waiting on descriptors, and reading from those that can keep a thread waiting. */
#include "harness/emulate/client/time/inside.h"

#include "harness/emulate/client/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const struct timespec now_ = {0, 0};

static int end_wait(int e, int result) {
    if (e && e != ETIMEDOUT) {
        errno = e;
        return -1;
    }
    return result;
}

static int64_t after_ms(int ms) {
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    return fl_time_after(ms < 0 ? NULL : &t);
}

/* ---- poll ---- */

typedef struct fl_poll {
    struct pollfd *fd;
    nfds_t n;
    const sigset_t *mask;
    int result, error;
} fl_poll;

static bool look_poll(void *of) {
    fl_poll *p = of;
    p->result = REAL(ppoll)(p->fd, p->n, &now_, p->mask);
    p->error = p->result < 0 ? errno : 0;
    return p->result != 0;
}

static int wait_poll(struct pollfd *fd, nfds_t n, int64_t until, const sigset_t *mask) {
    fl_poll p = {.fd = fd, .n = n, .mask = mask};
    const int e = fl_time_wait_io(look_poll, &p, until);
    if (p.error)
        errno = p.error;
    return end_wait(e, p.result);
}

FL_SHOWN int poll(struct pollfd *fd, nfds_t n, int ms) {
    if (!fl_time_on())
        return REAL(poll)(fd, n, ms);
    if (!ms)
        fl_time_spin();
    return ms ? wait_poll(fd, n, after_ms(ms), NULL) : REAL(poll)(fd, n, 0);
}
FL_SHOWN int ppoll(struct pollfd *fd, nfds_t n, const struct timespec *t, const sigset_t *mask) {
    return fl_time_on() ? wait_poll(fd, n, fl_time_after(t), mask) : REAL(ppoll)(fd, n, t, mask);
}
FL_SHOWN int __poll_chk(struct pollfd *fd, nfds_t n, int ms, size_t size);
FL_SHOWN int __poll_chk(struct pollfd *fd, nfds_t n, int ms, size_t size) {
    (void)size;
    return poll(fd, n, ms);
}
FL_SHOWN int __ppoll_chk(struct pollfd *fd, nfds_t n, const struct timespec *t, const sigset_t *m, size_t size);
FL_SHOWN int __ppoll_chk(struct pollfd *fd, nfds_t n, const struct timespec *t, const sigset_t *m, size_t size) {
    (void)size;
    return ppoll(fd, n, t, m);
}

/* ---- select ---- */

typedef struct fl_select {
    int n, result, error;
    fd_set *set[3], want[3];
    const sigset_t *mask;
} fl_select;

static bool look_select(void *of) {
    fl_select *s = of;
    for (int i = 0; i < 3; i++)
        if (s->set[i])
            *s->set[i] = s->want[i];
    s->result = REAL(pselect)(s->n, s->set[0], s->set[1], s->set[2], &now_, s->mask);
    s->error = s->result < 0 ? errno : 0;
    return s->result != 0;
}

static int wait_select(int n, fd_set *r, fd_set *w, fd_set *x, int64_t until, const sigset_t *mask) {
    fl_select s = {.n = n, .set = {r, w, x}, .mask = mask};
    for (int i = 0; i < 3; i++)
        if (s.set[i])
            s.want[i] = *s.set[i];
    const int e = fl_time_wait_io(look_select, &s, until);
    if (s.error)
        errno = s.error;
    return end_wait(e, s.result);
}

FL_SHOWN int select(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x, struct timeval *restrict t) {
    if (!fl_time_on())
        return REAL(select)(n, r, w, x, t);
    const struct timespec s = {t ? t->tv_sec : 0, t ? t->tv_usec * 1000 : 0};
    const int64_t until = fl_time_after(t ? &s : NULL);
    const int got = wait_select(n, r, w, x, until, NULL);
    if (t) { /* as Linux does: what is left */
        const int64_t left = until - fl_time_now(false);
        const struct timespec rest = fl_time_spec(left > 0 ? left : 0);
        *t = (struct timeval){rest.tv_sec, rest.tv_nsec / 1000};
    }
    return got;
}
FL_SHOWN int pselect(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x,
                     const struct timespec *restrict t, const sigset_t *restrict mask) {
    return fl_time_on() ? wait_select(n, r, w, x, fl_time_after(t), mask) : REAL(pselect)(n, r, w, x, t, mask);
}

/* ---- epoll ---- */

typedef struct fl_epoll {
    int fd, n, result, error;
    struct epoll_event *event;
    const sigset_t *mask;
} fl_epoll;

static bool look_epoll(void *of) {
    fl_epoll *p = of;
    p->result = REAL(epoll_pwait)(p->fd, p->event, p->n, 0, p->mask);
    p->error = p->result < 0 ? errno : 0;
    return p->result != 0;
}

static int wait_epoll(int fd, struct epoll_event *event, int n, int64_t until, const sigset_t *mask) {
    fl_epoll p = {.fd = fd, .n = n, .event = event, .mask = mask};
    const int e = fl_time_wait_io(look_epoll, &p, until);
    if (p.error)
        errno = p.error;
    return end_wait(e, p.result);
}

FL_SHOWN int epoll_wait(int fd, struct epoll_event *event, int n, int ms) {
    return fl_time_on() ? wait_epoll(fd, event, n, after_ms(ms), NULL) : REAL(epoll_wait)(fd, event, n, ms);
}
FL_SHOWN int epoll_pwait(int fd, struct epoll_event *event, int n, int ms, const sigset_t *mask) {
    return fl_time_on() ? wait_epoll(fd, event, n, after_ms(ms), mask) : REAL(epoll_pwait)(fd, event, n, ms, mask);
}
FL_SHOWN int epoll_pwait2(int fd, struct epoll_event *event, int n, const struct timespec *t, const sigset_t *mask) {
    return fl_time_on() ? wait_epoll(fd, event, n, fl_time_after(t), mask) : REAL(epoll_pwait2)(fd, event, n, t, mask);
}

/* ---- reading and writing ---- */

/* eventfd, timerfd, signalfd: files of no type. */
static bool is_anonymous(const struct stat *st) { return !(st->st_mode & S_IFMT); }

/* 0 once the descriptor would not keep a caller waiting, or is of a kind that does not; -1 with errno. */
static int ready(int fd, short events, int flags) {
    struct stat st;
    if (!fl_time_on() || flags & MSG_DONTWAIT || fstat(fd, &st) ||
        !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISCHR(st.st_mode) || is_anonymous(&st)) ||
        (REAL(fcntl)(fd, F_GETFL) & O_NONBLOCK))
        return 0;
    if (events == POLLOUT && fl_time_is_output(st.st_dev, st.st_ino)) /* nobody in the session could make room */
        return 0;
    struct pollfd p = {.fd = fd, .events = events};
    return wait_poll(&p, 1, FL_VIRTUAL_FOREVER, NULL) < 0 ? -1 : 0;
}

FL_SHOWN ssize_t read(int fd, void *to, size_t n) { return ready(fd, POLLIN, 0) ? -1 : REAL(read)(fd, to, n); }
FL_SHOWN ssize_t __read_chk(int fd, void *to, size_t n, size_t room);
FL_SHOWN ssize_t __read_chk(int fd, void *to, size_t n, size_t room) {
    return ready(fd, POLLIN, 0) ? -1 : REAL(__read_chk)(fd, to, n, room);
}
FL_SHOWN ssize_t write(int fd, const void *from, size_t n) {
    return ready(fd, POLLOUT, 0) ? -1 : REAL(write)(fd, from, n);
}
FL_SHOWN ssize_t recv(int fd, void *to, size_t n, int flags) {
    return ready(fd, POLLIN, flags) ? -1 : REAL(recv)(fd, to, n, flags);
}
FL_SHOWN ssize_t recvfrom(int fd, void *restrict to, size_t n, int flags, __SOCKADDR_ARG a, socklen_t *restrict l) {
    return ready(fd, POLLIN, flags) ? -1 : REAL(recvfrom)(fd, to, n, flags, a, l);
}
FL_SHOWN ssize_t recvmsg(int fd, struct msghdr *m, int flags) {
    return ready(fd, POLLIN, flags) ? -1 : REAL(recvmsg)(fd, m, flags);
}
FL_SHOWN int accept(int fd, __SOCKADDR_ARG a, socklen_t *restrict l) {
    return ready(fd, POLLIN, 0) ? -1 : REAL(accept)(fd, a, l);
}
FL_SHOWN int accept4(int fd, __SOCKADDR_ARG a, socklen_t *restrict l, int flags) {
    return ready(fd, POLLIN, 0) ? -1 : REAL(accept4)(fd, a, l, flags);
}

/* ---- file locks ---- */

typedef struct fl_file_lock {
    int fd, operation, error;
    void *record;
} fl_file_lock;

static bool look_flock(void *of) {
    fl_file_lock *l = of;
    l->error = REAL(flock)(l->fd, l->operation | LOCK_NB) ? errno : 0;
    return l->error != EWOULDBLOCK;
}
FL_SHOWN int flock(int fd, int operation) {
    if (!fl_time_on() || operation & (LOCK_NB | LOCK_UN))
        return REAL(flock)(fd, operation);
    fl_file_lock l = {.fd = fd, .operation = operation};
    const int e = fl_time_wait(look_flock, &l, FL_VIRTUAL_FOREVER, true);
    return end_wait(e ? e : l.error, 0);
}

static bool look_record(void *of) {
    fl_file_lock *l = of;
    l->error = REAL(fcntl)(l->fd, l->operation, l->record) ? errno : 0;
    return l->error != EAGAIN && l->error != EACCES;
}
static int do_fcntl(int fd, int operation, void *argument) {
    const bool waits = operation == F_SETLKW || operation == F_OFD_SETLKW;
    if (!fl_time_on() || !waits)
        return REAL(fcntl)(fd, operation, argument);
    fl_file_lock l = {.fd = fd, .operation = operation == F_SETLKW ? F_SETLK : F_OFD_SETLK, .record = argument};
    const int e = fl_time_wait(look_record, &l, FL_VIRTUAL_FOREVER, true);
    return end_wait(e ? e : l.error, 0);
}
FL_SHOWN int fcntl(int fd, int operation, ...) {
    va_list list;
    va_start(list, operation);
    void *argument = va_arg(list, void *);
    va_end(list);
    return do_fcntl(fd, operation, argument);
}
FL_SHOWN int fcntl64(int fd, int operation, ...) {
    va_list list;
    va_start(list, operation);
    void *argument = va_arg(list, void *);
    va_end(list);
    return do_fcntl(fd, operation, argument);
}
