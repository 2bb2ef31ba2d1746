/* Programs without our hooks: the kernel's ends at which their calls are heard, the Go runtime's random bytes, and the
 * process that cleans up after a killed emulator. */
#include "harness/emulate/virtual/inside.h"

#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "harness/emulate/virtual/virtual.h"
#include "traces/io/io.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a program that has just started: the kernel's random bytes become fixed ones, and the processor's counter of ticks
 * stands still where the runtime reads it (it is machine time, which no system call shows). Where a runtime reads them
 * in another way, its choices stay random. */
void fl_go_settle(pid_t pid);

/* ---- the Go runtime: fixed random bytes, no ticks ---- */

#ifdef __x86_64__

#define RANDOM_BYTES 16 /* the size of AT_RANDOM */
#define TEXT_MAX ((size_t)1 << 28)

static void fix_random(pid_t pid) {
    static const unsigned char fixed[RANDOM_BYTES] = "Foldline emulate";
    char path[64];
    Elf64_auxv_t aux;
    snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && read(fd, &aux, sizeof aux) == (ssize_t)sizeof aux)
        if (aux.a_type == AT_RANDOM)
            (void)fl_remote_write(pid, aux.a_un.a_val, fixed, sizeof fixed);
    if (fd >= 0)
        close(fd);
}

/* runtime.cputicks, with the instruction RDTSCP and, for processors without it, RDTSC. */
static const struct {
    const char *from, *to;
    size_t size;
} ticks[] = {
    /* rdtscp; shl rdx, 32; add rax, rdx -> xor eax, eax; xor edx, edx; nops */
    {"\x0f\x01\xf9\x48\xc1\xe2\x20\x48\x01\xd0", "\x31\xc0\x31\xd2\x90\x90\x90\x90\x90\x90", 10},
    /* mfence; lfence; rdtsc */
    {"\x0f\xae\xf0\x0f\xae\xe8\x0f\x31", "\x31\xc0\x31\xd2\x90\x90\x90\x90", 8},
};

static void stop_ticks_in(pid_t pid, uint64_t at, size_t size) {
    char *text = size < TEXT_MAX ? malloc(size) : NULL;
    if (text && fl_remote_read(pid, at, text, size))
        for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++) {
            const char *found = memmem(text, size, ticks[i].from, ticks[i].size);
            if (found)
                (void)fl_remote_patch(pid, at + (uint64_t)(found - text), ticks[i].to, ticks[i].size);
        }
    free(text);
}

void fl_go_settle(pid_t pid) {
    char path[64], exe[PATH_MAX], line[PATH_MAX + 128];
    fix_random(pid);
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    const ssize_t n = readlink(path, exe, sizeof exe - 1);
    if (n <= 0)
        return;
    exe[n] = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        unsigned long long from, to;
        if (sscanf(line, "%llx-%llx r-xp", &from, &to) == 2 && strstr(line, " r-xp ") && strstr(line, exe))
            stop_ticks_in(pid, from, (size_t)(to - from));
    }
    if (f)
        fclose(f);
}

#else
void fl_go_settle(pid_t pid) { (void)pid; }
#endif

/* ---- the process that outlives a killed emulator ---- */

#define ENDS 0 /* the emulator ends by itself */

typedef struct fl_charge {
    pid_t pid;
    int pidfd;
    struct fl_charge *next;
} fl_charge;

static void add(fl_charge **all, pid_t pid) {
    fl_charge *g = malloc(sizeof *g);
    const int fd = g ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (fd < 0) {
        free(g);
        return;
    }
    *g = (fl_charge){pid, fd, *all};
    *all = g;
}

static void forget(fl_charge **all, pid_t pid) {
    for (fl_charge **at = all; *at; at = &(*at)->next)
        if ((*at)->pid == pid) {
            fl_charge *g = *at;
            *at = g->next;
            close(g->pidfd);
            free(g);
            return;
        }
}

/* No descriptor of the emulator may stay open here: a process that waits for the emulator's end would wait for this
 * one's. */
static void stand_apart(int wire) {
    (void)dup2(wire, 3);
    const int nowhere = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3 && nowhere >= 0; fd++)
        (void)dup2(nowhere, fd);
    (void)syscall(SYS_close_range, 4u, ~0u, 0u);
    (void)setsid(); /* a signal to the emulator's group is not for this process */
    for (int signal_ = 1; signal_ < NSIG; signal_++)
        (void)signal(signal_, SIG_IGN);
}

static _Noreturn void watch(int wire, void (*clean)(void *user), void *user) {
    fl_charge *all = NULL;
    pid_t said;
    ssize_t n;
    stand_apart(wire);
    while ((n = recv(3, &said, sizeof said, 0)) == (ssize_t)sizeof said || (n < 0 && errno == EINTR)) {
        if (n > 0 && said == ENDS)
            _exit(0);
        if (n > 0 && said > 0)
            add(&all, said);
        else if (n > 0)
            forget(&all, -said);
    }
    for (const fl_charge *g = all; g; g = g->next)
        (void)syscall(SYS_pidfd_send_signal, g->pidfd, SIGKILL, NULL, 0);
    clean(user);
    _exit(0);
}

/* Nobody hears of its end (no SIGCHLD): a session that waits for all of its children does not wait for this one. */
bool fl_heir_open(fl_heir *heir, void (*clean)(void *user), void *user) {
    int wire[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, wire))
        return false;
    const pid_t pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, 0);
    if (!pid)
        watch(wire[0], clean, user);
    const int error = errno;
    close(wire[0]);
    if (pid < 0)
        close(wire[1]);
    else
        *heir = (fl_heir){pid, wire[1]};
    errno = error;
    return pid > 0;
}

/* This process is to end with the emulator; or has ended. */
static void fl_heir_tell(const fl_heir *heir, pid_t pid, bool lives) {
    const pid_t said = lives ? pid : -pid;
    if (heir->pid)
        (void)send(heir->wire, &said, sizeof said, MSG_NOSIGNAL);
}

static void fl_heir_close(fl_heir *heir) {
    const pid_t said = ENDS;
    if (!heir->pid)
        return;
    (void)send(heir->wire, &said, sizeof said, MSG_NOSIGNAL);
    close(heir->wire);
    while (waitpid(heir->pid, NULL, (int)__WCLONE) < 0 && errno == EINTR) {
    }
    heir->pid = 0;
}

/* ---- the kernel's ends ---- */

typedef struct fl_hold_image { /* the program of a process that has the filter */
    pid_t pid;
    bool known;  /* examined since the last exec */
    bool hooked; /* it loads our library: its calls go on */
    struct fl_hold_image *next;
} fl_hold_image;

typedef struct fl_hold_listener { /* the kernel's end of one filter */
    int fd;
    struct fl_hold_listener *next;
} fl_hold_listener;

static void unlisten(fl_hold *hold, int fd) {
    for (fl_hold_listener **at = &hold->listeners; *at; at = &(*at)->next)
        if ((*at)->fd == fd) {
            fl_hold_listener *l = *at;
            *at = l->next;
            close(l->fd);
            free(l);
            return;
        }
}

#ifdef __x86_64__

bool fl_hold_listen(fl_hold *hold, pid_t pid, int fd) {
    const fl_peer *p = fl_peer_of(hold->token->peers, pid);
    struct epoll_event ev = {.events = EPOLLIN};
    if (hold->events < 0)
        hold->events = epoll_create1(EPOLL_CLOEXEC);
    fl_hold_listener *l = calloc(1, sizeof *l);
    ev.data.fd = p && l && hold->events >= 0 ? fl_remote_fd(p->pidfd, fd) : -1;
    if (ev.data.fd < 0) {
        free(l);
        return false;
    }
    *l = (fl_hold_listener){ev.data.fd, hold->listeners};
    hold->listeners = l;
    return !epoll_ctl(hold->events, EPOLL_CTL_ADD, ev.data.fd, &ev);
}

/* ---- which thread made a call ---- */

static fl_hold_image *image_of(fl_hold *hold, pid_t pid) {
    fl_hold_image *i = hold->first;
    while (i && i->pid != pid)
        i = i->next;
    if (i)
        return i;
    if (!(i = calloc(1, sizeof *i))) {
        fl_outcome_fail(hold->token->outcome, "out of memory for the programs of virtual time");
        return NULL;
    }
    *i = (fl_hold_image){.pid = pid, .next = hold->first};
    hold->first = i;
    (void)fl_peer_of(hold->token->peers, pid); /* so that its end is noticed */
    return i;
}

static fl_turn *thread_of(const fl_token *token, pid_t pid, pid_t tid) {
    fl_turn *t = token->turn;
    while (t && (t->pid != pid || t->tid != tid || !t->held))
        t = t->next;
    return t;
}

/* The thread or process that a thread of this process began last, and that has not arrived. */
static fl_turn *newborn_of(const fl_token *token, pid_t pid, bool process) {
    for (fl_turn *t = token->turn; t; t = t->next) {
        fl_turn *child = t->pid == pid && t->held && t->held->birth ? fl_token_find(token, t->held->birth) : NULL;
        if (child && child->process == process) {
            t->held->birth = 0;
            return child;
        }
    }
    return NULL;
}

/* After an exec: the process's first thread is the only one. */
static fl_turn *sole_thread(fl_token *token, pid_t pid, pid_t tid) {
    fl_turn *sole = NULL;
    for (fl_turn *t = token->turn, *next; t; t = next) {
        next = t->next;
        if (t->pid != pid)
            continue;
        if (!sole)
            sole = t;
        else if (t->tid != tid && !fl_remote_lives(pid, t->tid)) {
            if (token->holder == t)
                token->holder = sole;
            fl_token_remove(token, t);
        }
    }
    return sole;
}

static fl_turn *find_turn(fl_token *token, pid_t pid, pid_t tid, bool fresh) {
    fl_turn *t = fresh ? NULL : thread_of(token, pid, tid);
    if (!t)
        t = newborn_of(token, tid == pid ? fl_remote_parent(pid) : pid, tid == pid);
    if (!t && fresh)
        t = sole_thread(token, pid, tid);
    if (!t)
        t = fl_token_add(token, pid, tid == pid);
    if (!t)
        return NULL;
    if (!t->held && !(t->held = calloc(1, sizeof *t->held))) {
        fl_outcome_fail(token->outcome, "out of memory for the threads of virtual time");
        return NULL;
    }
    t->pid = pid;
    t->tid = tid;
    return t;
}

/* A program that has just started, or a process that was forked. */
static void look_at(fl_hold *hold, fl_hold_image *i) {
    char exe[64];
    snprintf(exe, sizeof exe, "/proc/%d/exe", (int)i->pid);
    i->known = true;
    const fl_image_kind kind = fl_image_of(exe);
    const fl_peer *p = fl_peer_of(hold->token->peers, i->pid);
    if (p)
        fl_outcome_rename(hold->token->outcome, p->account);
    i->hooked = kind == FL_IMAGE_HOOKED;
    fl_heir_tell(&hold->heir, i->pid, !i->hooked);
    if (kind == FL_IMAGE_GO)
        fl_go_settle(i->pid);
    if (!i->hooked && !fl_remote_clocks(i->pid))
        fl_outcome_fail(hold->token->outcome, "%s (process %d): its clock cannot be replaced: %s",
                        fl_outcome_name(hold->token->outcome, i->pid), (int)i->pid, fl_reason(errno));
}

/* The calls of a program with our hooks go on. Its thread gets no held call, which marks it as such a program's. */
static void let_go(fl_hold *hold, const fl_hold_image *i, pid_t tid) {
    fl_turn *t = tid == i->pid ? newborn_of(hold->token, fl_remote_parent(i->pid), true) : NULL;
    if (t) {
        t->pid = i->pid;
        t->tid = 0;
    }
    for (t = hold->token->turn; t; t = t->next)
        if (t->pid == i->pid && t->held) {
            free(t->held);
            t->held = NULL;
            t->tid = 0;
        }
}

/* This process starts a program. Its thread will be heard of here, so the watchdog waits for it. */
static void expect(const fl_token *token, pid_t pid) {
    fl_turn *t = token->turn;
    while (t && t->pid != pid)
        t = t->next;
    if (t && !t->held)
        t->held = calloc(1, sizeof *t->held);
}

static void take(fl_hold *hold, int listener, const struct seccomp_notif *n) {
    const pid_t tid = (pid_t)n->pid, pid = fl_remote_process(tid);
    const bool execs = n->data.nr == SYS_execve || n->data.nr == SYS_execveat;
    fl_hold_image *i = pid ? image_of(hold, pid) : NULL;
    if (!i)
        return; /* the process is about to end */
    const bool fresh = !i->known;
    if (fresh) {
        look_at(hold, i);
        if (!i->hooked)
            fl_timers_drop(&hold->token->timers, pid, true);
    }
    i->known = !execs;
    if (i->hooked) {
        if (fresh)
            let_go(hold, i, tid);
        if (execs)
            expect(hold->token, pid);
        fl_held_let(listener, n->id);
        return;
    }
    fl_turn *t = find_turn(hold->token, pid, tid, fresh);
    if (!t)
        return;
    fl_held_call *h = t->held;
    h->listener = listener;
    h->id = n->id;
    h->number = n->data.nr;
    h->strange = n->data.arch != AUDIT_ARCH_X86_64 || (unsigned)n->data.nr >= FL_FILTER_X32;
    for (int k = 0; k < 6; k++)
        h->a[k] = n->data.args[k];
    h->here = true;
    t->conn = NULL;
    t->must_answer = false;
    if (h->birth)
        fl_held_missed(hold->token, t);
    hold->token->heard++;
    if (!hold->token->holder)
        fl_token_pass(hold->token);
}

void fl_hold_hear(fl_hold *hold) {
    struct epoll_event ev[16];
    const int n = hold->events < 0 ? 0 : epoll_wait(hold->events, ev, 16, 0);
    for (int i = 0; i < n; i++) {
        struct seccomp_notif call;
        memset(&call, 0, sizeof call); /* as the kernel demands */
        if (ev[i].events & EPOLLIN && !ioctl(ev[i].data.fd, SECCOMP_IOCTL_NOTIF_RECV, &call)) {
            take(hold, ev[i].data.fd, &call);
        } else if (ev[i].events & EPOLLHUP) { /* all processes with the filter have ended */
            epoll_ctl(hold->events, EPOLL_CTL_DEL, ev[i].data.fd, NULL);
            unlisten(hold, ev[i].data.fd);
        }
    }
}

void fl_hold_go(fl_hold *hold) {
    fl_token *token = hold->token;
    for (;;) {
        fl_turn *t = token->outcome->status ? NULL : token->holder;
        if (!t || !t->held || !t->held->here || t->state != FL_TURN_RUNS || t->held->birth)
            return;
        fl_held_settle(token, t);
        if (token->holder == t)
            fl_held_step(token, t);
    }
}

#else
bool fl_hold_listen(fl_hold *hold, pid_t pid, int fd) {
    (void)hold, (void)pid, (void)fd;
    errno = ENOSYS;
    return false;
}
void fl_hold_hear(fl_hold *hold) { (void)hold; }
void fl_hold_go(fl_hold *hold) { (void)hold; }
#endif

void fl_hold_end(fl_hold *hold) {
    for (const fl_hold_image *i = hold->first; i; i = i->next)
        if (!i->hooked)
            fl_peer_kill(hold->token->peers, i->pid);
}

void fl_hold_died(fl_hold *hold, pid_t pid) {
    for (fl_hold_image **at = &hold->first; *at; at = &(*at)->next)
        if ((*at)->pid == pid) {
            fl_hold_image *i = *at;
            *at = i->next;
            fl_heir_tell(&hold->heir, pid, false);
            free(i);
            return;
        }
}

bool fl_hold_has(const fl_hold *hold, pid_t pid) {
    const fl_hold_image *i = hold->first;
    while (i && i->pid != pid)
        i = i->next;
    return i && !i->hooked;
}

void fl_hold_close(fl_hold *hold) {
    fl_heir_close(&hold->heir);
    while (hold->listeners)
        unlisten(hold, hold->listeners->fd);
    while (hold->first)
        fl_hold_died(hold, hold->first->pid);
    if (hold->events >= 0)
        close(hold->events);
}
