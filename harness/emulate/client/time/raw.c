/* System calls that a program makes by itself, past the C library: those that ask for time or for a timer would give
 * the machine's, quietly. The kernel hands over every system call from outside the range from the C library to the
 * dynamic linker (PR_SET_SYSCALL_USER_DISPATCH, Linux 5.11): the others are made for it here, these end the session.
 * Where the kernel cannot, calls that block are still found by the emulator's watchdog. */
#include "harness/emulate/client/time/inside.h"

#include "harness/emulate/client/client.h"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define DISPATCH_ON 1
#define USER_DISPATCH 2 /* si_code */
#define FILTERED 1      /* by seccomp */

#ifdef __x86_64__

static uintptr_t from, to; /* calls from here pass */
static fl_raw_refuse *refuse_call;
static fl_raw_caught *make_call;

typedef struct fl_range {
    uintptr_t inside[2], from, to;
} fl_range;

static int add_range(struct dl_phdr_info *info, size_t size, void *of) {
    fl_range *r = of;
    uintptr_t low = UINTPTR_MAX, high = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_LOAD)
            continue;
        const uintptr_t at = info->dlpi_addr + ph->p_vaddr;
        low = at < low ? at : low;
        high = at + ph->p_memsz > high ? at + ph->p_memsz : high;
    }
    for (int i = 0; i < 2; i++)
        if (r->inside[i] >= low && r->inside[i] < high) {
            r->from = low < r->from ? low : r->from;
            r->to = high > r->to ? high : r->to;
        }
    return 0;
}

/* By their numbers: the calls that end the session, and the names under which it tells them. */
static const struct {
    long number;
    const char *name;
} FORBIDDEN[] = {{SYS_clock_gettime, "clock_gettime"},
                 {SYS_gettimeofday, "gettimeofday"},
                 {SYS_time, "time"},
                 {SYS_nanosleep, "nanosleep"},
                 {SYS_clock_nanosleep, "clock_nanosleep"},
                 {SYS_futex, "futex"},
                 {SYS_poll, "poll"},
                 {SYS_ppoll, "poll"},
                 {SYS_select, "select"},
                 {SYS_pselect6, "select"},
                 {SYS_epoll_wait, "epoll_wait"},
                 {SYS_epoll_pwait, "epoll_wait"},
                 {SYS_timer_create, "timer_create"},
                 {SYS_timerfd_create, "timerfd_create"},
                 {SYS_setitimer, "setitimer"},
                 {SYS_alarm, "alarm"},
                 {SYS_clone, "clone"},
                 {SYS_clone3, "clone"},
                 {SYS_fork, "clone"},
                 {SYS_vfork, "clone"}};

static const char *forbidden(long number) {
    for (size_t i = 0; i < sizeof FORBIDDEN / sizeof *FORBIDDEN; i++)
        if (FORBIDDEN[i].number == number)
            return FORBIDDEN[i].name;
    return NULL;
}

static struct sigaction theirs;

static void hand_on(int signal, siginfo_t *info, void *context) {
    if (theirs.sa_flags & SA_SIGINFO)
        theirs.sa_sigaction(signal, info, context);
    else if (theirs.sa_handler != SIG_DFL && theirs.sa_handler != SIG_IGN)
        theirs.sa_handler(signal);
}

int fl_raw_handler(const struct sigaction *a, struct sigaction *old) {
    const struct sigaction before = theirs;
    if (!to)
        return 0;
    if (a)
        theirs = *a;
    if (old)
        *old = before;
    return 1;
}

static void caught(int signal, siginfo_t *info, void *context) {
    ucontext_t *u = context;
    greg_t *r = u->uc_mcontext.gregs;
    const int stream = info->si_syscall == SYS_read || info->si_syscall == SYS_write;
    if (info->si_code == FILTERED && make_call && stream) {
        const int before = errno;
        const long a[3] = {r[REG_RDI], r[REG_RSI], r[REG_RDX]};
        r[REG_RAX] = make_call(info->si_syscall, a);
        errno = before;
        return;
    }
    if (info->si_code != USER_DISPATCH) {
        hand_on(signal, info, context);
        return;
    }
    const char *name = forbidden(info->si_syscall);
    const uintptr_t at = (uintptr_t)info->si_call_addr, vdso = getauxval(AT_SYSINFO_EHDR);
    if (name && !(at >= vdso && at < vdso + 0x4000)) {
        char text[64];
        snprintf(text, sizeof text, "the system call %s, made past the C library,", name);
        refuse_call(text);
    }
    const int saved = errno;
    const long result =
        REAL(syscall)(info->si_syscall, r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]);
    r[REG_RAX] = result == -1 ? -errno : result;
    errno = saved;
}

static void catch_calls(void) {
    void *c = dlsym(RTLD_NEXT, "nanosleep");
    fl_range r = {.inside = {(uintptr_t)c, (uintptr_t)getauxval(AT_BASE)}, .from = UINTPTR_MAX};
    (void)REAL(syscall);
    dl_iterate_phdr(add_range, &r);
    if (r.from >= r.to || r.to - r.from > UINT64_C(1) << 32)
        return;
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_sigaction = caught;
    a.sa_flags = SA_SIGINFO | SA_NODEFER;
    if (REAL(sigaction)(SIGSYS, &a, NULL))
        return;
    from = r.from;
    to = r.to;
}

int fl_raw_filtered(fl_raw_caught *make) {
    make_call = make;
    return to != 0;
}

void fl_raw_catch(fl_raw_refuse *refuse) {
    refuse_call = refuse;
    if (!to)
        catch_calls();
    if (to)
        (void)prctl(PR_SET_SYSCALL_USER_DISPATCH, DISPATCH_ON, from, to - from, 0);
}

#else
int fl_raw_handler(const struct sigaction *a, struct sigaction *old) {
    (void)a, (void)old;
    return 0;
}
int fl_raw_filtered(fl_raw_caught *make) {
    (void)make;
    return 0;
}
void fl_raw_catch(fl_raw_refuse *refuse) { (void)refuse; }
#endif
