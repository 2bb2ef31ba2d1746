/* System calls of programs without our hooks: Go and static programs. The kernel holds each of these calls and asks the
 * server for the answer (seccomp user notification). The filter is installed just before the program starts, by the
 * process that becomes it; it stays for all its threads and children. */
#pragma once

#include <errno.h>

#ifdef __x86_64__

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5) /* Linux 5.19 */
#endif
#define FL_FILTER_FLAGS (SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)

/* Calls that ask for the time, wait, begin or end a thread, or send a signal; calls that a new program or thread makes
 * first, at which it waits for its turn; and those that cannot be virtual. */
#define FL_HELD_CALLS(X)                                                                                               \
    X(clock_gettime)                                                                                                   \
    X(gettimeofday)                                                                                                    \
    X(time) X(times) X(nanosleep) X(clock_nanosleep) X(sched_yield) X(futex) X(poll) X(ppoll) X(select) X(pselect6)    \
        X(epoll_wait) X(epoll_pwait) X(epoll_pwait2) X(read) X(readv) X(write) X(writev) X(recvfrom) X(recvmsg)        \
            X(accept) X(accept4) X(wait4) X(waitid) X(pause) X(rt_sigsuspend) X(rt_sigtimedwait) X(clone) X(clone3)    \
                X(fork) X(vfork) X(execve) X(execveat) X(exit) X(exit_group) X(kill) X(tkill) X(tgkill)                \
                    X(rt_sigqueueinfo) X(rt_tgsigqueueinfo) X(pidfd_send_signal) X(arch_prctl) X(brk)                  \
                        X(set_tid_address) X(set_robust_list) X(rseq) X(gettid) FL_REFUSED_CALLS(X)
#define FL_REFUSED_CALLS(X)                                                                                            \
    X(timer_create)                                                                                                    \
    X(timerfd_create)                                                                                                  \
    X(setitimer) X(alarm) X(flock) X(fcntl) X(futex_waitv) X(io_uring_setup) X(io_getevents) X(semtimedop) X(semop)    \
        X(msgrcv) X(msgsnd) X(mq_timedsend) X(mq_timedreceive) X(recvmmsg) X(adjtimex) X(clock_adjtime) X(splice)      \
            X(tee)

#define FL_FILTER_WAITS 7      /* F_SETLKW: the only fcntl that waits, and its kin */
#define FL_FILTER_WAITS_OFD 38 /* F_OFD_SETLKW */
#define FL_FILTER_X32 0x40000000u

/* Installs the filter in this process: the descriptor at which its calls are heard of, -1 with errno. */
static inline int fl_filter_install(void) {
#define FL_FILTER_NUMBER(name) SYS_##name,
    static const unsigned short held[] = {FL_HELD_CALLS(FL_FILTER_NUMBER)};
#undef FL_FILTER_NUMBER
    enum { HELD = sizeof held / sizeof *held, HEAD = 9 };
    const unsigned argument = offsetof(struct seccomp_data, args) + 8;
    struct sock_filter f[HEAD + HELD + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, HEAD + HELD - 1),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FL_FILTER_X32, HEAD + HELD - 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, HEAD - 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FL_FILTER_WAITS, HEAD + HELD - 6, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FL_FILTER_WAITS_OFD, HEAD + HELD - 7, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    for (unsigned i = 0; i < HELD; i++)
        f[HEAD + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, held[i], (uint8_t)(HELD - i), 0);
    f[HEAD + HELD] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    f[HEAD + HELD + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    const struct sock_fprog program = {.len = HEAD + HELD + 2, .filter = f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, FL_FILTER_FLAGS, &program);
}

#else
static inline int fl_filter_install(void) {
    errno = ENOSYS;
    return -1;
}
#endif
