#include "harness/emulate/emulate_inside.h"

#include "harness/live/stop.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_NS                                                                                                       \
    INT64_C(5000000000) /* for what the command leaves behind, a guardian for one: of the machine's time               \
                         */
#define GPUS_MAX ((FL_ANSWER_BYTES - sizeof(fl_host_sample)) / sizeof(fl_gpu_sample)) /* of one answer */
#define SETS_MAX 1000000 /* in the audit; beyond it only counted */

static int64_t clock_ns(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

void fl_emulator_fail(fl_emulator *e, const char *format, ...) {
    char text[512];
    va_list arguments;
    if (e->status)
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    e->status = fl_error(e->d, FL_HARDWARE, "%s", text);
}

static int64_t time_now(const fl_emulator *e) {
    if (e->turns)
        return fl_turns_now(e);
    return (int64_t)((double)(clock_ns(CLOCK_MONOTONIC) - e->started_ns) * e->o->scale);
}

/* ---- requests ---- */

static void mix(fl_emulate_result *r, const void *bytes, size_t size) {
    const unsigned char *b = bytes;
    for (size_t i = 0; i < size; i++)
        r->hash = (r->hash ^ b[i]) * UINT64_C(0x100000001b3);
}

void fl_conn_answer(fl_emulator *e, fl_conn *c, const fl_ask *q, fl_answer *a) {
    if (q->op < FL_TIME_HELLO) { /* what was asked when, and what was answered: one hash of the session */
        const uint32_t key[] = {q->op, q->gpu, q->a, q->b, q->c, (uint32_t)a->result};
        mix(e->r, &e->now_ns, sizeof e->now_ns);
        mix(e->r, key, sizeof key);
        mix(e->r, a->bytes, a->size);
        e->r->calls++;
        if (c->peer)
            e->r->process[c->peer->account].calls++;
    }
    ssize_t n;
    while ((n = send(c->fd, a, FL_ANSWER_HEAD + a->size, MSG_NOSIGNAL | MSG_DONTWAIT)) < 0 && errno == EINTR) {
    }
    if (n < 0)
        fl_conn_drop(e, c);
}

static void audit(fl_emulator *e, const fl_peer *p, const fl_ask *q, int32_t result) {
    fl_emulate_result *r = e->r;
    if (p) {
        r->process[p->account].sets += !result;
        r->process[p->account].refused += result != 0;
    }
    if (r->set_count >= SETS_MAX || fl_grow(&r->set, &r->set_room, r->set_count + 1, sizeof *r->set))
        return;
    fl_emulated_set *s = &r->set[r->set_count++];
    *s = (fl_emulated_set){
        .at_ns = e->now_ns, .pid = p ? p->pid : 0, .gpu = q->gpu, .b = q->b, .c = q->c, .result = result};
    memcpy(s->call, q->call, sizeof s->call - 1);
}

void fl_conn_set(fl_emulator *e, fl_conn *c, const fl_ask *q) {
    fl_answer a = {.result = fl_boards_set(e, q)};
    audit(e, c->peer, q, a.result);
    fl_conn_answer(e, c, q, &a);
}

static void ask_set(fl_emulator *e, fl_conn *c, const fl_ask *q) {
    fl_answer a = {.result = fl_calls_refused(e, c->peer, q)};
    if (!a.result)
        a.result = fl_boards_check(e, q);
    if (a.result) { /* refused at once */
        audit(e, c->peer, q, a.result);
        fl_conn_answer(e, c, q, &a);
        return;
    }
    if (e->turns) {
        fl_turns_set(e, c, q);
        return;
    }
    fl_delayed *x = calloc(1, sizeof *x), **at = &e->delayed;
    if (!x) {
        a.result = NVML_UNKNOWN;
        fl_conn_answer(e, c, q, &a);
        return;
    }
    *x = (fl_delayed){.conn = c, .ask = *q, .due_ns = e->now_ns + fl_boards_set_ns(e, q)};
    while (*at && (*at)->due_ns <= x->due_ns)
        at = &(*at)->next;
    x->next = *at;
    *at = x;
}

static void serve(fl_emulator *e, fl_conn *c, const fl_ask *q) {
    fl_answer a;
    bool reading = false;
    if (q->op >= FL_TIME_HELLO) {
        if (e->turns)
            fl_turns_ask(e, c, q);
        else
            fl_conn_drop(e, c);
        return;
    }
    fl_boards_go(e, time_now(e));
    if (q->op == FL_ASK_SET) {
        ask_set(e, c, q);
        return;
    }
    a.size = 0;
    if (q->op == FL_ASK_SHUTDOWN && !c->peer->inits) /* one too many is no error */
        a.result = NVML_SUCCESS;
    else
        fl_calls_answer(e, c->peer, q, &a, &reading);
    if (a.result)
        a.size = 0;
    for (uint32_t i = 0; reading && e->turns && i < e->gpu_count; i++)
        if (i == q->gpu || q->op == FL_ASK_NODE)
            fl_turns_read(e, i);
    fl_conn_answer(e, c, q, &a);
}

static void hear(fl_emulator *e, fl_conn *c) {
    fl_ask q;
    fl_peers_bury(e);
    if (c->gone)
        return;
    const ssize_t n = recv(c->fd, &q, sizeof q, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    q.call[sizeof q.call - 1] = q.text[sizeof q.text - 1] = 0;
    if (n == (ssize_t)sizeof q && q.image == FL_EMULATE_VERSION)
        serve(e, c, &q);
    else
        fl_conn_drop(e, c);
}

static void take_in(fl_emulator *e) {
    struct ucred who;
    socklen_t size = sizeof who;
    const int fd = accept4(e->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    fl_conn *c = calloc(1, sizeof *c);
    fl_peer *p = c && !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) ? fl_peer_of(e, who.pid) : NULL;
    if (!p) { /* gone already, and reaped */
        free(c);
        close(fd);
        return;
    }
    if (!p->uses++)
        fl_peer_name(&e->r->process[p->account]);
    *c = (fl_conn){.fd = fd, .peer = p, .next = e->conn};
    e->conn = c;
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(e->events, EPOLL_CTL_ADD, fd, &ev);
}

/* ---- the session ---- */

static void end_sets(fl_emulator *e) {
    const int64_t now = time_now(e);
    while (e->delayed && e->delayed->due_ns <= now) {
        fl_delayed *x = e->delayed;
        fl_peers_bury(e);
        if (x != e->delayed) /* its caller has died: it was never made */
            continue;
        e->delayed = x->next;
        fl_boards_go(e, x->due_ns);
        fl_conn_set(e, x->conn, &x->ask);
        free(x);
    }
}

static int wait_ms(const fl_emulator *e) {
    if (e->turns)
        return 50;
    if (!e->delayed)
        return 200;
    const double ms = (double)(e->delayed->due_ns - time_now(e)) / e->o->scale * 1e-6;
    return ms <= 0 ? 0 : ms > 200 ? 200 : (int)ms; /* the last part of a millisecond is spent looking */
}

static void free_gone(fl_emulator *e) {
    for (fl_conn **at = &e->conn; *at;) {
        fl_conn *c = *at;
        if (c->gone) {
            *at = c->next;
            free(c);
        } else {
            at = &c->next;
        }
    }
}

static bool anybody(const fl_emulator *e) {
    for (const fl_peer *p = e->peer; p; p = p->next)
        if (p->uses)
            return true;
    return e->turns && fl_turns_left(e);
}

static void session(fl_emulator *e) {
    int64_t ended_ns = 0;
    while (!e->status) {
        struct epoll_event ev[32];
        const int n = epoll_wait(e->events, ev, 32, wait_ms(e)), signal = fl_stop_hand_on();
        if (signal && !e->command_ended)
            kill(e->command, signal);
        fl_peers_bury(e);
        end_sets(e);
        for (int i = 0; i < n && !e->status; i++) {
            if (ev[i].data.ptr == &e->listener)
                take_in(e);
            else if (ev[i].data.ptr == &e->deaths)
                fl_peers_bury(e);
            else if (ev[i].data.ptr != &e->command_fd)
                hear(e, ev[i].data.ptr);
        }
        free_gone(e);
        if (!n && e->turns)
            fl_turns_watch(e);
        if (!e->command_ended && waitpid(e->command, &e->r->command_status, WNOHANG) == e->command) {
            e->command_ended = true;
            epoll_ctl(e->events, EPOLL_CTL_DEL, e->command_fd, NULL);
            ended_ns = clock_ns(CLOCK_MONOTONIC);
            fl_peers_bury(e);
        }
        if (e->command_ended && (!anybody(e) || clock_ns(CLOCK_MONOTONIC) - ended_ns > GRACE_NS))
            break;
    }
    fl_boards_go(e, time_now(e));
}

static fl_status open_session(fl_emulator *e) {
    snprintf(e->dir, sizeof e->dir, "/tmp/foldline-XXXXXX");
    if (!mkdtemp(e->dir))
        return fl_error(e->d, FL_IO, "cannot make a folder for the session: %s", fl_reason(errno));
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s/" FL_EMULATE_SOCKET, e->dir);
    e->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    e->events = epoll_create1(EPOLL_CLOEXEC);
    e->deaths = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &e->listener},
                       dead = {.events = EPOLLIN, .data.ptr = &e->deaths};
    if (e->listener < 0 || e->events < 0 || e->deaths < 0 ||
        bind(e->listener, (const struct sockaddr *)&at, sizeof at) || listen(e->listener, 1024) ||
        epoll_ctl(e->events, EPOLL_CTL_ADD, e->listener, &ev) || epoll_ctl(e->events, EPOLL_CTL_ADD, e->deaths, &dead))
        return fl_error(e->d, FL_IO, "%s: %s", at.sun_path, fl_reason(errno));
    return FL_OK;
}

static void remove_state(const fl_emulator *e) {
    char path[sizeof e->dir + sizeof FL_EMULATE_STATE];
    snprintf(path, sizeof path, "%s/" FL_EMULATE_STATE, e->dir);
    DIR *folder = opendir(path);
    for (struct dirent *f; folder && (f = readdir(folder));)
        unlinkat(dirfd(folder), f->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
}

static void close_session(fl_emulator *e) {
    char path[128];
    if (e->status && e->command > 0) /* what cannot be emulated is ended, and all that it began */
        for (const fl_peer *p = e->peer; p; p = p->next)
            kill(p->pid, SIGKILL);
    if (e->command > 0 && !e->command_ended) {
        kill(e->command, SIGKILL);
        waitpid(e->command, &e->r->command_status, 0);
    }
    for (fl_conn *c = e->conn; c; c = c->next)
        fl_conn_drop(e, c);
    free_gone(e);
    while (e->peer)
        fl_peer_bury(e, e->peer);
    const int fd[] = {e->listener, e->events, e->deaths, e->command_fd};
    for (size_t i = 0; i < sizeof fd / sizeof *fd; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    snprintf(path, sizeof path, "%s/" FL_EMULATE_SOCKET, e->dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/" FL_EMULATE_CLOCK, e->dir);
    unlink(path);
    remove_state(e);
    rmdir(e->dir);
}

fl_status fl_emulate(const fl_emulate_options *o, fl_emulate_result *r, fl_diag *d) {
    *r = (fl_emulate_result){.hash = UINT64_C(0xcbf29ce484222325)};
    fl_emulator e = {.o = o, .r = r, .d = d, .listener = -1, .events = -1, .deaths = -1, .command_fd = -1};
    e.realtime_ns = o->time == FL_TIME_VIRTUAL ? FL_VIRTUAL_REALTIME_NS : clock_ns(CLOCK_REALTIME);
    fl_status s = fl_boards_open(&e);
    if (!s && e.gpu_count > GPUS_MAX)
        s = fl_refuse(d, "%u GPUs, expected %u at most under emulate", e.gpu_count, (unsigned)GPUS_MAX);
    if (!s && o->rings)
        s = fl_rings_open(&e);
    if (!s)
        s = open_session(&e);
    if (!s && o->time == FL_TIME_VIRTUAL)
        s = fl_turns_open(&e);
    const int heard[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE};
    enum { HEARD = sizeof heard / sizeof *heard };
    struct sigaction old[HEARD];
    for (size_t i = 0; i < HEARD; i++)
        sigaction(heard[i], NULL, &old[i]);
    fl_stop_listen(); /* the command gets them too, and ends the session by ending */
    signal(SIGQUIT, SIG_IGN);
    if (!s)
        s = fl_command_start(&e);
    e.started_ns = clock_ns(CLOCK_MONOTONIC);
    if (!s) {
        e.command_fd = (int)syscall(SYS_pidfd_open, e.command, 0);
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &e.command_fd};
        epoll_ctl(e.events, EPOLL_CTL_ADD, e.command_fd, &ev);
        session(&e);
        s = e.status;
    }
    e.status = s;
    if (e.node)
        fl_boards_report(&e);
    close_session(&e);
    fl_turns_close(&e);
    fl_rings_close(&e);
    fl_boards_close(&e);
    for (size_t i = 0; i < HEARD; i++)
        sigaction(heard[i], &old[i], NULL);
    if (s)
        fl_emulate_result_free(r);
    return s;
}

void fl_emulate_result_free(fl_emulate_result *r) {
    free(r->process);
    free(r->set);
    free(r->gpu);
    *r = (fl_emulate_result){0};
}
