/* Held system calls by subject: births of threads and programs, clocks and sleeps, descriptors. */
#include "harness/emulate/virtual/inside.h"

#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "harness/emulate/virtual/virtual.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* ---- answers ---- */

static void end_call(fl_held_call *h, struct seccomp_notif_resp r) {
    h->here = h->blocked = h->gave_way = false;
    h->line = 0;
    r.id = h->id;
    (void)ioctl(h->listener, SECCOMP_IOCTL_NOTIF_SEND, &r); /* the kernel refuses this if the thread has been killed */
}

void fl_held_answer(fl_turn *t, int64_t value) {
    end_call(t->held, value < 0 ? (struct seccomp_notif_resp){.error = (int32_t)value}
                                : (struct seccomp_notif_resp){.val = value});
}

void fl_held_go_on(fl_turn *t) {
    end_call(t->held, (struct seccomp_notif_resp){.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE});
}

void fl_held_let(int listener, uint64_t id) {
    struct seccomp_notif_resp r = {.id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &r);
}

/* ---- births and ends of threads and programs ---- */

#ifdef __x86_64__

#define GONE_US 20 /* between two checks whether a thread has ended */
#define GONE_LOOKS 100000
#define NEWBORNS_MAX 1024

void fl_held_bear(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    uint64_t flags = h->number == SYS_clone ? h->a[0] : h->number == SYS_vfork ? CLONE_VFORK : 0;
    if (h->number == SYS_clone3 && !fl_remote_read(t->pid, h->a[0], &flags, sizeof flags)) {
        fl_held_answer(t, -EFAULT);
        return;
    }
    const bool process = !(flags & CLONE_THREAD);
    fl_turn *child = fl_token_add(token, process ? -1 : t->pid, process);
    if (!child || !(child->held = calloc(1, sizeof *child->held))) {
        fl_outcome_fail(token->outcome, "out of memory for the threads of virtual time");
        return;
    }
    fl_token_hold_clock(token);
    h->birth = child->number;
    if (flags & CLONE_VFORK) {
        child->held->lender = t->number;
        t->state = FL_TURN_LENT;
        token->holder = NULL;
    }
    fl_held_go_on(t);
    fl_token_pass(token);
}

static bool has_turn(const fl_token *token, pid_t pid, pid_t tid) {
    const fl_turn *t = token->turn;
    while (t && (t->pid != pid || (tid && t->tid != tid)))
        t = t->next;
    return t;
}

/* Whether this process has a thread or child that has not made itself known. */
static bool comes(const fl_token *token, pid_t pid, bool process) {
    pid_t all[NEWBORNS_MAX];
    const int n = process ? fl_remote_children(pid, all, NEWBORNS_MAX) : fl_remote_threads(pid, all, NEWBORNS_MAX);
    for (int i = 0; i < n; i++)
        if (!has_turn(token, process ? all[i] : pid, process ? 0 : all[i]) &&
            fl_remote_lives(process ? all[i] : pid, all[i]))
            return true;
    return n < 0 || n == NEWBORNS_MAX;
}

void fl_held_missed(fl_token *token, fl_turn *t) {
    fl_turn *child = t->held->birth ? fl_token_find(token, t->held->birth) : NULL;
    if (!child || comes(token, t->pid, child->process))
        return;
    t->held->birth = 0;
    fl_held_give_back(token, child);
    fl_token_remove(token, child);
}

/* From here on the child has its own memory, or has ended: the thread that lent it memory is ready. */
void fl_held_give_back(fl_token *token, fl_turn *t) {
    fl_turn *lender = t->held->lender ? fl_token_find(token, t->held->lender) : NULL;
    t->held->lender = 0;
    if (!lender || lender->state != FL_TURN_LENT)
        return;
    lender->state = FL_TURN_READY;
    lender->woken = FL_WOKEN_TIME;
    lender->order = ++token->orders;
}

/* The kernel reports a thread's end in memory, to those who wait for it. The token goes on only after that. */
void fl_held_end(fl_token *token, fl_turn *t) {
    const pid_t pid = t->pid, thread = t->tid;
    fl_held_go_on(t);
    for (int i = 0; i < GONE_LOOKS && fl_remote_lives(pid, thread); i++)
        usleep(GONE_US);
    fl_token_remove(token, t);
    fl_token_stir(token, NULL);
    fl_token_pass(token);
}

#endif

/* ---- clocks and sleeps ---- */

#ifdef __x86_64__

#define S_NS INT64_C(1000000000)
#define LOOKS_FREE 1000 /* as in client/time/core.c */
#define LOOK_NS 1000

static int64_t base_of(const fl_token *token, uint64_t clock) {
    return fl_virtual_base((clockid_t)clock, token->page->realtime_ns);
}

static void sleep_until(fl_token *token, fl_turn *t, int64_t until_ns) {
    fl_token_sleep(token, t, until_ns);
    fl_token_stir(token, t);
    fl_token_pass(token);
}

/* The time that the thread's readings take passes before the thread reads a clock. */
bool fl_held_pays(fl_token *token, fl_turn *t) {
    if (t->debt_ns <= 0)
        return false;
    t->held->looks = 0;
    sleep_until(token, t, 0);
    return true;
}

/* For calls in which programs spin: after many without a sleep, each takes a little time. */
bool fl_held_gives_way(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    if (h->gave_way || fl_token_now(token) != h->looked_ns) {
        h->looks = h->gave_way ? h->looks : 0;
        h->looked_ns = fl_token_now(token);
        return false;
    }
    if (++h->looks <= LOOKS_FREE)
        return false;
    h->gave_way = true;
    fl_token_sleep(token, t, fl_token_now(token) + LOOK_NS);
    if (h->looks % LOOKS_FREE == 0)
        fl_token_stir(token, t);
    fl_token_pass(token);
    return true;
}

void fl_held_look_at_clock(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    const uint64_t clock = h->number == SYS_clock_gettime ? h->a[0] : CLOCK_REALTIME;
    if ((int32_t)clock < CLOCK_REALTIME || (int32_t)clock > CLOCK_TAI) {
        fl_held_go_on(t);
        return;
    }
    if (fl_held_pays(token, t) || fl_held_gives_way(token, t))
        return;
    const int64_t since = fl_token_now(token), ns = base_of(token, clock) + since, s = ns / S_NS;
    const clock_t ticks = (clock_t)(since / (S_NS / sysconf(_SC_CLK_TCK)));
    const struct timespec spec = {s, ns % S_NS};
    const struct timeval val = {s, ns % S_NS / 1000};
    const struct tms used = {.tms_utime = ticks};
    bool ok = true;
    if (h->number == SYS_clock_gettime)
        ok = fl_remote_write(t->pid, h->a[1], &spec, sizeof spec);
    else if (h->number == SYS_gettimeofday)
        ok = !h->a[0] || fl_remote_write(t->pid, h->a[0], &val, sizeof val);
    else if (h->a[0])
        ok = h->number == SYS_time ? fl_remote_write(t->pid, h->a[0], &s, sizeof s)
                                   : fl_remote_write(t->pid, h->a[0], &used, sizeof used);
    fl_held_answer(t, !ok ? -EFAULT : h->number == SYS_time ? s : h->number == SYS_times ? ticks : 0);
}

/* Converts a time in the thread's memory to the session's time, *until. Returns 0 or an error. */
int fl_held_read_until(fl_token *token, const fl_turn *t, uint64_t at, bool absolute, uint64_t clock, int64_t *until) {
    struct timespec s;
    *until = FL_VIRTUAL_FOREVER;
    if (!at)
        return 0;
    if (!fl_remote_read(t->pid, at, &s, sizeof s))
        return -EFAULT;
    if (s.tv_sec < 0 || s.tv_nsec < 0 || s.tv_nsec >= S_NS)
        return -EINVAL;
    const int64_t from = absolute ? -base_of(token, clock) : fl_token_now(token);
    if (s.tv_sec < FL_VIRTUAL_FOREVER / S_NS / 2)
        *until = s.tv_sec * S_NS + s.tv_nsec + from;
    return 0;
}

void fl_held_sleep(fl_token *token, fl_turn *t) {
    fl_held_call *h = t->held;
    const bool plain = h->number == SYS_nanosleep, absolute = !plain && h->a[1] & TIMER_ABSTIME;
    if (!h->blocked) {
        if (fl_held_pays(token, t))
            return;
        const int e = fl_held_read_until(token, t, plain ? h->a[0] : h->a[2], absolute,
                                         plain ? CLOCK_MONOTONIC : h->a[0], &h->until_ns);
        if (e || !(plain ? h->a[0] : h->a[2])) {
            fl_held_answer(t, e ? e : -EFAULT);
            return;
        }
        if (h->until_ns > fl_token_now(token))
            h->looks = 0;
    } else if (t->woken == FL_WOKEN_TIME) {
        fl_held_answer(t, 0);
        return;
    } else if (fl_remote_signalled(t->pid, t->tid, false, 0)) {
        const int64_t ns = h->until_ns - fl_token_now(token), left = ns > 0 ? ns : 0;
        const struct timespec rest = {left / S_NS, left % S_NS};
        const uint64_t at = plain ? h->a[1] : h->a[3];
        if (at && !absolute)
            (void)fl_remote_write(t->pid, at, &rest, sizeof rest);
        fl_held_answer(t, -EINTR);
        return;
    }
    h->blocked = true;
    sleep_until(token, t, h->until_ns);
}

void fl_held_yield(fl_token *token, fl_turn *t) {
    if (t->held->blocked) {
        fl_held_answer(t, 0);
        return;
    }
    if (fl_held_pays(token, t) || fl_held_gives_way(token, t))
        return;
    t->held->blocked = true;
    sleep_until(token, t, fl_token_now(token));
}

#endif

/* ---- descriptors ---- */

#ifdef __x86_64__

#define S_NS INT64_C(1000000000)
#define FDS_MAX 1024
#define EVENTS_MAX 128
#define CHUNK 4096 /* a pipe that is ready for writing takes at least this much */

static int copy_of(const fl_token *token, const fl_turn *t, int fd) {
    const fl_peer *p = fl_peer_of(token->peers, t->pid);
    return p ? fl_remote_fd(p->pidfd, fd) : -1;
}

/* The members of `events` that are ready now; POLLNVAL if there is no such descriptor. */
static short ready_of(const fl_token *token, const fl_turn *t, int fd, short events) {
    struct pollfd p = {.fd = copy_of(token, t, fd), .events = events};
    if (p.fd < 0)
        return POLLNVAL;
    (void)poll(&p, 1, 0);
    close(p.fd);
    return p.revents;
}

bool fl_held_io_readable(fl_token *token, const fl_turn *t, int fd) { return ready_of(token, t, fd, POLLIN) != 0; }

/* ---- poll, select, epoll ---- */

static bool by_select(const fl_held_call *h) { return h->number == SYS_select || h->number == SYS_pselect6; }
static bool by_poll(const fl_held_call *h) { return h->number == SYS_poll || h->number == SYS_ppoll; }

int fl_held_io_until(const fl_turn *t, int64_t now_ns, int64_t *until_ns, bool *none) {
    const fl_held_call *h = t->held;
    const bool by_ms = h->number == SYS_poll || h->number == SYS_epoll_wait || h->number == SYS_epoll_pwait;
    const uint64_t at = h->number == SYS_ppoll || h->number == SYS_poll ? h->a[2] : by_select(h) ? h->a[4] : h->a[3];
    struct timespec s = {0, 0};
    *until_ns = FL_VIRTUAL_FOREVER;
    if (by_ms && (int32_t)at < 0)
        return 0;
    if (by_ms) {
        s = (struct timespec){(int32_t)at / 1000, (int32_t)at % 1000 * 1000000L};
    } else if (!at) {
        return 0;
    } else if (!fl_remote_read(t->pid, at, &s, sizeof s)) {
        return -EFAULT;
    } else if (h->number == SYS_select) {
        s.tv_sec += s.tv_nsec / 1000000; /* the call has a timeval */
        s.tv_nsec = s.tv_nsec % 1000000 * 1000;
    }
    if (s.tv_sec < 0 || s.tv_nsec < 0 || s.tv_nsec >= S_NS)
        return -EINVAL;
    *none = !s.tv_sec && !s.tv_nsec;
    if (s.tv_sec < FL_VIRTUAL_FOREVER / S_NS / 2)
        *until_ns = fl_virtual_after(now_ns, s.tv_sec * S_NS + s.tv_nsec);
    return 0;
}

bool fl_held_io_many(const fl_turn *t) {
    const fl_held_call *h = t->held;
    return (by_poll(h) && (uint32_t)h->a[1] > FDS_MAX) || (by_select(h) && (int32_t)h->a[0] > FD_SETSIZE);
}

/* The kernel writes the remaining time over the timeout; the C library hides this for all calls but select. */
void fl_held_io_left(const fl_turn *t, int64_t now_ns) {
    const fl_held_call *h = t->held;
    const uint64_t at = by_select(h) ? h->a[4] : h->number == SYS_ppoll ? h->a[2] : 0;
    const int64_t left = h->until_ns > now_ns ? h->until_ns - now_ns : 0;
    const struct timespec s = {left / S_NS, left % S_NS / (h->number == SYS_select ? 1000 : 1)}; /* or as a timeval */
    if (at && h->until_ns < FL_VIRTUAL_FOREVER)
        (void)fl_remote_write(t->pid, at, &s, sizeof s);
}

bool fl_held_io_masked(const fl_turn *t, uint64_t *mask) {
    const fl_held_call *h = t->held;
    uint64_t at = h->number == SYS_ppoll ? h->a[3] : 0;
    if (h->number == SYS_epoll_pwait || h->number == SYS_epoll_pwait2)
        at = h->a[4];
    /* a[5] points to the mask's address and its size */
    if (h->number == SYS_pselect6 && h->a[5] && !fl_remote_read(t->pid, h->a[5], &at, sizeof at))
        at = 0;
    return at && fl_remote_read(t->pid, at, mask, sizeof *mask);
}

static bool look_poll(fl_token *token, fl_turn *t) {
    const fl_held_call *h = t->held;
    struct pollfd p[FDS_MAX];
    const size_t n = (uint32_t)h->a[1];
    if (!n || !fl_remote_read(t->pid, h->a[0], p, n * sizeof *p))
        return n > 0;
    for (size_t i = 0; i < n; i++)
        if (p[i].fd >= 0 && ready_of(token, t, p[i].fd, p[i].events))
            return true;
    return false;
}

static bool look_select(fl_token *token, fl_turn *t) {
    const fl_held_call *h = t->held;
    const int n = (int)h->a[0];
    if (n < 0)
        return true; /* the kernel says why not */
    for (int set = 0; set < 3; set++) {
        fd_set want;
        static const short events[] = {POLLIN | POLLHUP | POLLERR, POLLOUT | POLLERR, POLLPRI};
        FD_ZERO(&want);
        if (!n || !h->a[1 + set])
            continue;
        if (!fl_remote_read(t->pid, h->a[1 + set], &want, ((size_t)n + 63) / 64 * 8))
            return true;
        for (int fd = 0; fd < n; fd++)
            if (FD_ISSET(fd, &want) && ready_of(token, t, fd, events[set]) & (events[set] | POLLNVAL))
                return true;
    }
    return false;
}

/* Takes the events here: to look only whether there are any would not show how the kernel counts edges. */
static bool look_epoll(fl_token *token, fl_turn *t) {
    const fl_held_call *h = t->held;
    struct epoll_event event[EVENTS_MAX];
    const int want = (int)h->a[2], fd = copy_of(token, t, (int)h->a[0]);
    const int n = fd < 0 ? -1 : epoll_wait(fd, event, want < EVENTS_MAX ? want : EVENTS_MAX, 0);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        fl_held_go_on(t); /* the kernel says why not */
    else if (n > 0)
        fl_held_answer(t, fl_remote_write(t->pid, h->a[1], event, (size_t)n * sizeof *event) ? n : -EFAULT);
    return n != 0;
}

void fl_held_io_late(const fl_turn *t) {
    const fl_held_call *h = t->held;
    static const unsigned char zero[FD_SETSIZE / 8];
    const size_t n = (uint32_t)h->a[0];
    if (by_select(h))
        for (int set = 1; set <= 3; set++)
            if (h->a[set])
                (void)fl_remote_write(t->pid, h->a[set], zero, (n + 63) / 64 * 8);
    if (by_poll(h))
        for (size_t i = 0; i < (uint32_t)h->a[1]; i++)
            (void)fl_remote_write(t->pid, h->a[0] + i * sizeof(struct pollfd) + offsetof(struct pollfd, revents), zero,
                                  sizeof(short));
}

/* ---- reading and writing ---- */

static bool is_own_link(int fd) {
    struct ucred who;
    socklen_t size = sizeof who;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) && who.pid == getpid();
}

static bool is_output(const fl_token *token, const struct stat *st) {
    for (int i = 0; i < 2; i++)
        if (token->page->out[i][0] == st->st_dev && token->page->out[i][1] == st->st_ino)
            return true;
    return false;
}

/* Writes a part where the whole does not fit into a pipe: in the kernel the thread would wait for a reader without a
 * turn. */
static ssize_t write_part(const fl_turn *t, int fd) {
    const fl_held_call *h = t->held;
    struct iovec part = {(void *)(uintptr_t)h->a[1], h->a[2]};
    char bytes[CHUNK];
    if (h->number == SYS_writev && (!h->a[2] || !fl_remote_read(t->pid, h->a[1], &part, sizeof part)))
        return 0;
    if (h->number == SYS_write && part.iov_len <= CHUNK)
        return 0;
    const size_t n = part.iov_len < CHUNK ? part.iov_len : CHUNK;
    return n && fl_remote_read(t->pid, (uintptr_t)part.iov_base, bytes, n) ? write(fd, bytes, n) : 0;
}

static bool look_transfer(const fl_token *token, fl_turn *t, int fd) {
    const fl_held_call *h = t->held;
    const bool writes = h->number == SYS_write || h->number == SYS_writev;
    const uint64_t flags = h->number == SYS_recvfrom ? h->a[3] : h->number == SYS_recvmsg ? h->a[2] : 0;
    struct stat st;
    struct pollfd p = {.fd = fd, .events = writes ? POLLOUT : POLLIN};
    ssize_t part = 0;
    if (!fstat(fd, &st) &&
        (!(st.st_mode & S_IFMT) || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISCHR(st.st_mode)) &&
        !(fcntl(fd, F_GETFL) & O_NONBLOCK) && !(flags & MSG_DONTWAIT) && !(writes && is_output(token, &st)) &&
        !(S_ISSOCK(st.st_mode) && is_own_link(fd))) {
        if (poll(&p, 1, 0) <= 0)
            return false;
        if (writes && S_ISFIFO(st.st_mode) && !(p.revents & (POLLERR | POLLHUP)))
            part = write_part(t, fd);
    }
    if (part > 0)
        fl_held_answer(t, part);
    else
        fl_held_go_on(t);
    return true;
}

bool fl_held_io_look(fl_token *token, fl_turn *t) {
    bool ready;
    switch (t->held->number) {
    case SYS_poll:
    case SYS_ppoll:
        ready = look_poll(token, t);
        break;
    case SYS_select:
    case SYS_pselect6:
        ready = look_select(token, t);
        break;
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
        return look_epoll(token, t);
    default: {
        const int fd = copy_of(token, t, (int)t->held->a[0]);
        if (fd < 0)
            fl_held_go_on(t);
        const bool over = fd < 0 || look_transfer(token, t, fd);
        if (fd >= 0)
            close(fd);
        return over;
    }
    }
    if (ready) {
        fl_held_io_left(t, fl_token_now(token));
        fl_held_go_on(t);
    }
    return ready;
}

#endif
