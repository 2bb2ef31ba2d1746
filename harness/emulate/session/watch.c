/* The watchdog of virtual time. */
#include "harness/emulate/session/inside.h"

#include "harness/emulate/driver/driver.h"
#include "harness/emulate/virtual/virtual.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define WATCH_SAMPLES 3
/* Rounds of 50 ms that wait for an outside event, before a session in which all threads wait is given up. */
#define STUCK_LOOKS 20
/* Rounds until a new program must have sent a request, not counting those in which it got no CPU. */
#define ARRIVAL_LOOKS 30
#define ARRIVAL_CPU_S 1 /* CPU time that it may take until then */
#define SPIN_LOOKS 100  /* rounds in which one thread runs while others want to */

static bool read_state(const fl_turn *t, char *state, unsigned long long *switches) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)t->pid, (int)(t->tid ? t->tid : t->pid));
    FILE *f = fopen(path, "re");
    *state = '?';
    *switches = 0;
    while (f && fgets(line, sizeof line, f)) {
        (void)sscanf(line, "State: %c", state);
        (void)sscanf(line, "voluntary_ctxt_switches: %llu", switches);
    }
    if (f)
        fclose(f);
    return f != NULL;
}

/* It is ready but was hardly scheduled: on a busy machine it has not arrived yet. */
static bool starved(const fl_turn *t) {
    char path[64], line[512], state = '?';
    unsigned long long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)t->pid);
    FILE *f = fopen(path, "re");
    const char *after = f && fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
    if (after)
        (void)sscanf(after, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &state, &user, &system);
    if (f)
        fclose(f);
    return (state == 'R' || state == 'D') && user + system < ARRIVAL_CPU_S * (unsigned long long)sysconf(_SC_CLK_TCK);
}

static long system_call(const fl_turn *t) {
    char path[64];
    long number = -1;
    snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", (int)t->pid, (int)(t->tid ? t->tid : t->pid));
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%ld", &number) != 1)
        number = -1;
    if (f)
        fclose(f);
    return number;
}

static const char *call_name(long number, char *buf, size_t size) {
    static const struct {
        long number;
        const char *name;
    } known[] = {
        {SYS_read, "read"},
        {SYS_nanosleep, "nanosleep"},
        {SYS_clock_nanosleep, "clock_nanosleep"},
        {SYS_futex, "futex"},
        {SYS_wait4, "wait4"},
        {SYS_waitid, "waitid"},
        {SYS_ppoll, "ppoll"},
        {SYS_pselect6, "pselect6"},
        {SYS_epoll_pwait, "epoll_pwait"},
        {SYS_recvfrom, "recvfrom"},
        {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
        {SYS_rt_sigsuspend, "rt_sigsuspend"},
        {SYS_accept, "accept"},
        {SYS_connect, "connect"},
        {SYS_flock, "flock"},
#ifdef SYS_poll
        {SYS_poll, "poll"},
        {SYS_select, "select"},
        {SYS_epoll_wait, "epoll_wait"},
        {SYS_pause, "pause"},
#endif
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].number == number)
            return known[i].name;
    snprintf(buf, size, "system call %ld", number);
    return buf;
}

/* No thread runs, and there is no deadline. They may wait for an outside event, so the watchdog waits for a while. */
static void watch_waiting(fl_watch *w) {
    fl_token *token = w->token;
    const fl_turn *first = token->turn;
    if (!first)
        return;
    const unsigned stuck = token->stuck + 1;
    bool outside = false;
    for (const fl_turn *t = first; t; t = t->next)
        outside |= t->state == FL_TURN_WAITS && t->outside;
    if (outside && stuck > 5 * STUCK_LOOKS && !w->told_wait) {
        w->told_wait = true;
        fprintf(stderr, "foldline emulate: all %zu threads wait, some for input: virtual time stands still\n",
                fl_token_threads(token));
    }
    if (!outside && stuck > STUCK_LOOKS && token->held_back) {
        token->over = true;
        return;
    }
    if (!outside && stuck > STUCK_LOOKS) {
        fl_outcome_fail(token->outcome, "all %zu threads wait for ever, the first of them %s (process %d, thread %d)",
                        fl_token_threads(token), fl_outcome_name(token->outcome, first->pid), (int)first->pid,
                        (int)first->tid);
        return;
    }
    fl_token_stir(token, NULL);
    token->stuck = stuck;
    fl_token_pass(token);
}

/* A process was announced, and its parent was killed before it began. Nothing else would end the wait for it. */
static void watch_birth(fl_token *token) {
    if (++token->quiet > ARRIVAL_LOOKS)
        fl_outcome_fail(token->outcome, "a process or thread that was announced has not begun");
}

/* A program image that has not sent a request, or whose connection closed while the process lives. */
static void watch_arrival(fl_token *token, const fl_turn *t) {
    char path[64], exe[256] = "";
    if (t->pid <= 0) {
        watch_birth(token);
        return;
    }
    snprintf(path, sizeof path, "/proc/%d/exe", (int)t->pid);
    const char *why = fl_command_unfit(path);
    const ssize_t n = readlink(path, exe, sizeof exe - 1);
    if (n < 0) /* it is about to end, which its pidfd will report */
        return;
    if (why)
        fl_outcome_fail(token->outcome, "%s (process %d) %s: its time cannot be virtual", exe, (int)t->pid, why);
    else if (!starved(t) && ++token->quiet > ARRIVAL_LOOKS)
        fl_outcome_fail(token->outcome, "%s (process %d) does not load the library of virtual time", exe, (int)t->pid);
}

void fl_watch_look(fl_watch *w) {
    fl_token *token = w->token;
    fl_turn *h = token->holder;
    char state, buf[64];
    unsigned long long switches;
    if (!h) {
        watch_waiting(w);
        return;
    }
    if (!h->held && (!h->conn || !h->tid)) {
        watch_arrival(token, h);
        return;
    }
    if (!read_state(h, &state, &switches)) {
        watch_birth(token);
        return;
    }
    const bool same = token->heard == w->heard && switches == w->switches;
    w->heard = token->heard;
    w->switches = switches;
    token->still = same && state == 'S' ? token->still + 1 : 0;
    token->quiet = same && state == 'R' ? token->quiet + 1 : 0;
    if (token->still >= WATCH_SAMPLES) {
        const long number = system_call(h);
        if (number == SYS_write || number == SYS_writev) { /* the reader of its output is slow */
            token->still = 0;
            return;
        }
        fl_outcome_fail(token->outcome, "%s (process %d, thread %d) waits in %s, unseen: its time cannot be virtual",
                        fl_outcome_name(token->outcome, h->pid), (int)h->pid, (int)h->tid,
                        call_name(number, buf, sizeof buf));
    } else if (token->quiet >= SPIN_LOOKS && !w->told_spin && token->turn->next) {
        w->told_spin = true;
        fprintf(stderr,
                "foldline emulate: %s (process %d, thread %d) computes for long while others wait; if it spins "
                "on a flag, virtual time cannot go on\n",
                fl_outcome_name(token->outcome, h->pid), (int)h->pid, (int)h->tid);
    }
}
