/* Timers in virtual time. */
#include "harness/emulate/virtual/inside.h"

#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "harness/emulate/virtual/virtual.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define SWEEP_EVERY 64 /* new descriptors between two searches for those that nobody has open any more */

void fl_timers_remove(fl_timers *all, fl_timer *timer) {
    for (fl_timer **at = &all->first; *at; at = &(*at)->next)
        if (*at == timer) {
            *at = timer->next;
            break;
        }
    if (timer->fd >= 0)
        close(timer->fd);
    free(timer);
}

void fl_timers_close(fl_timers *all) {
    while (all->first)
        fl_timers_remove(all, all->first);
}

void fl_timers_drop(fl_timers *all, pid_t pid, bool program_only) {
    for (fl_timer *t = all->first, *next; t; t = next) {
        next = t->next;
        if (t->pid == pid && (t->kind == FL_TIMER_OF_PROGRAM || (t->kind == FL_TIMER_ALARM && !program_only)))
            fl_timers_remove(all, t);
    }
}

/* ---- descriptors that nobody has open any more ---- */

static bool has_open(pid_t pid, uint32_t id) {
    char path[320], line[128];
    unsigned found = 0;
    bool has = false;
    snprintf(path, sizeof path, "/proc/%d/fdinfo", (int)pid);
    DIR *dir = opendir(path);
    for (const struct dirent *d; dir && !has && (d = readdir(dir)) != NULL;) {
        snprintf(path, sizeof path, "/proc/%d/fdinfo/%s", (int)pid, d->d_name);
        FILE *f = d->d_name[0] == '.' ? NULL : fopen(path, "re");
        while (f && fgets(line, sizeof line, f))
            has |= sscanf(line, "eventfd-id: %u", &found) == 1 && found + 1 == id;
        if (f)
            fclose(f);
    }
    if (dir)
        closedir(dir);
    return has;
}

static void sweep(fl_timers *all, const fl_peers *peers) {
    for (fl_timer *t = all->first, *next; t; t = next) {
        const fl_peer *p = peers->first;
        next = t->next;
        while (t->kind == FL_TIMER_DESCRIPTOR && p && !has_open(p->pid, t->number))
            p = p->next;
        if (t->kind == FL_TIMER_DESCRIPTOR && !p)
            fl_timers_remove(all, t);
    }
    all->descriptors = 0;
}

/* ---- making and finding ---- */

static fl_timer *add(fl_timers *all, fl_timer_kind kind, pid_t pid) {
    fl_timer *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    *t = (fl_timer){.kind = kind,
                    .number = ++all->numbers,
                    .pid = pid,
                    .signal = SIGALRM,
                    .fd = -1,
                    .state = {.next_ns = FL_VIRTUAL_FOREVER},
                    .next = all->first};
    all->first = t;
    return t;
}

uint32_t fl_timers_add(fl_timers *all, const fl_peers *peers, pid_t pid, const fl_ask *q) {
    const bool descriptor = q->a == FL_TIMER_DESCRIPTOR;
    if (descriptor && ++all->descriptors > SWEEP_EVERY)
        sweep(all, peers);
    const int fd = descriptor ? fcntl(q->spare - 1, F_DUPFD_CLOEXEC, 3) : -1;
    fl_timer *t = descriptor && fd < 0 ? NULL : add(all, descriptor ? FL_TIMER_DESCRIPTOR : FL_TIMER_OF_PROGRAM, pid);
    if (!t) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    t->fd = fd;
    t->signal = (int)q->b;
    t->tid = (int32_t)q->c;
    t->value = q->wide;
    if (descriptor) {
        t->number = (uint32_t)q->wide;
        t->state.clock = (int64_t)q->b;
    }
    return t->number;
}

fl_timer *fl_timers_find(fl_timers *all, pid_t pid, uint32_t kind, uint32_t number) {
    for (fl_timer *t = all->first; t; t = t->next)
        if (t->kind == kind && (kind == FL_TIMER_ALARM || t->number == number) &&
            (kind == FL_TIMER_DESCRIPTOR || t->pid == pid))
            return t;
    return kind == FL_TIMER_ALARM ? add(all, FL_TIMER_ALARM, pid) : NULL;
}

static bool heard(const fl_timer *t) { return t->signal || t->kind == FL_TIMER_DESCRIPTOR; }

fl_timer *fl_timers_first(const fl_timers *all) {
    fl_timer *first = NULL;
    for (fl_timer *t = all->first; t; t = t->next)
        if (t->state.next_ns < FL_VIRTUAL_FOREVER && heard(t) &&
            (!first || t->state.next_ns < first->state.next_ns ||
             (t->state.next_ns == first->state.next_ns && t->order < first->order)))
            first = t;
    return first;
}

/* ---- time ---- */

/* Returns how often the timer has fired by now, and sets it for the next time. */
static uint64_t pass(fl_timer *t, int64_t now_ns) {
    fl_timer_state *s = &t->state;
    uint64_t times = 1;
    if (s->next_ns > now_ns)
        return 0;
    if (s->interval_ns > 0) {
        const int64_t late_ns = (now_ns - s->next_ns) % s->interval_ns;
        times += (uint64_t)((now_ns - s->next_ns) / s->interval_ns);
        s->next_ns = fl_virtual_after(now_ns, s->interval_ns - late_ns);
    } else {
        s->next_ns = FL_VIRTUAL_FOREVER;
    }
    return times;
}

fl_timer_state fl_timer_now(fl_timer *t, int64_t now_ns) {
    if (!heard(t))
        (void)pass(t, now_ns);
    return t->state;
}

void fl_timer_set(fl_timer *t, const fl_timer_state *state) {
    t->state.next_ns = state->next_ns;
    t->state.interval_ns = state->interval_ns;
    t->state.missed = 0;
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    uint64_t old;
    if (t->fd >= 0 && poll(&p, 1, 0) == 1) /* its old count is lost */
        (void)!read(t->fd, &old, sizeof old);
}

/* Whether the program has not received the last signal yet. Only one signal of a timer waits; further ones are
 * counted. */
static bool pending(const fl_timer *t) {
    char path[64], line[128];
    unsigned long long set, both = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)t->pid, (int)(t->tid ? t->tid : t->pid));
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, t->tid ? "SigPnd: %llx" : "ShdPnd: %llx", &set) == 1)
            both |= set;
    if (f)
        fclose(f);
    return both >> (t->signal - 1) & 1;
}

static void send_signal(fl_timer *t, uint64_t times) {
    if (t->kind == FL_TIMER_ALARM) {
        (void)kill(t->pid, t->signal);
        return;
    }
    if (pending(t)) {
        t->state.missed += times;
        return;
    }
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = t->signal;
    info.si_code = SI_TIMER;
    info.si_timerid = (int)t->number;
    info.si_overrun = (int)(times - 1);
    memcpy(&info.si_value, &t->value, sizeof info.si_value);
    t->state.missed = times - 1;
    (void)syscall(t->tid ? SYS_rt_tgsigqueueinfo : SYS_rt_sigqueueinfo, (long)t->pid,
                  (long)(t->tid ? t->tid : t->signal), t->tid ? (long)t->signal : (long)&info, (long)&info);
}

void fl_timer_fire(fl_timer *t, int64_t now_ns) {
    const uint64_t times = pass(t, now_ns);
    struct pollfd room = {.fd = t->fd, .events = POLLOUT};
    if (t->fd >= 0 && poll(&room, 1, 0) == 1) /* a counter that its program made full stays full: to write would wait */
        (void)!write(t->fd, &times, sizeof times);
    else if (t->fd < 0 && t->signal)
        send_signal(t, times);
}
