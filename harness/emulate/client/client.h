/* What a client library and the emulator say to each other, and what both ends need for it.
 *
 * A client asks with one fl_ask and gets one fl_answer over a socket in the session's folder (fl_link_ask,
 * fl_link_tell). Clients hold no state beyond one descriptor per thread, so one that is killed anywhere leaves nothing
 * half done. The header also has the clock page of virtual time, the seccomp filter for programs without our hooks (Go,
 * static), the kind of a program's file, and REAL(), the C library's own functions. abi.h has NVML's layouts.
 *
 * The library is loaded into programs that know nothing of Foldline: it prints nothing and allocates little. -1 from
 * fl_link_ask: no emulator answers. */
#pragma once

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The protocol: one packet asks, one packet answers, over SOCK_SEQPACKET. Both ends are of one build and one machine,
 * so structs travel as they are. */

#define FL_EMULATE_VARIABLE "FOLDLINE_EMULATE" /* path of the session's folder: socket, clock */
#define FL_EMULATE_SOCKET "socket"
#define FL_EMULATE_CLOCK "clock"
#define FL_EMULATE_STATE "state"   /* the state folder of its controllers */
#define FL_EMULATE_CLIENT "client" /* a link to the folder of the client's libraries */
#define FL_EMULATE_LIBRARY "libnvidia-ml.so.1"
#define FL_EMULATE_SCALE                                                                                               \
    "FOLDLINE_EMULATE_SCALE" /* of scaled time: factor, CLOCK_REALTIME and CLOCK_MONOTONIC at the start */
#define FL_EMULATE_VERSION 1u
#define FL_WORKLOAD_PID 4194304u /* and up: beyond what Linux gives; the workload's are not on this machine */

typedef enum fl_ask_op {
    FL_ASK_INIT, /* a: 1 = the first call of this program image */
    FL_ASK_SHUTDOWN,
    FL_ASK_COUNT,
    FL_ASK_BY_INDEX, /* a: index */
    FL_ASK_BY_TEXT,  /* a: fl_ask_text; text */
    FL_ASK_TEXT,     /* a: fl_ask_text */
    FL_ASK_NUMBER,   /* a: fl_ask_number, b: its argument -> uint64 */
    FL_ASK_SET,      /* a: fl_ask_set, b, c */
    FL_ASK_PCI,
    FL_ASK_CLOCKS,       /* a: memory clock, 0 = the memory clocks themselves -> uint32 ... */
    FL_ASK_PROCESSES,    /* -> fl_ask_process ... */
    FL_ASK_SHARES,       /* wide: last time seen -> nvmlProcessUtilizationSample_t ... */
    FL_ASK_SAMPLES,      /* a: kind, wide: last time seen -> nvmlSample_t ... */
    FL_ASK_FIELD,        /* a: field, b: scope -> nvmlFieldValue_t */
    FL_ASK_PROFILE,      /* -> fl_ask_profile */
    FL_ASK_EVENT_SET,    /* -> uint32 its number */
    FL_ASK_EVENT_FREE,   /* a: number */
    FL_ASK_EVENT_ADD,    /* a: number, wide: kinds */
    FL_ASK_EVENT_NEXT,   /* a: number -> fl_ask_event; NVML_TIMEOUT: no event yet */
    FL_TIME_HELLO = 100, /* a new program image */
    FL_TIME_BEAR,        /* a thread or process is about to begin; a: 1 = process -> uint64 its number */
    FL_TIME_MISSED,      /* it did not; a: number */
    FL_TIME_NAMED,       /* the process born as number a has pid b */
    FL_TIME_BEGIN,       /* first words of number a; answered when it may run */
    FL_TIME_SLEEP,       /* until wide, or for wide ns where a is 1 */
    FL_TIME_WAIT,        /* for what others do, until wide; a: 1 = looked again in vain; b: 1 = on a descriptor */
    FL_TIME_LEAVE,       /* of a thread; not answered */
    FL_TIME_FAIL,        /* text: the call that cannot be virtual */
    FL_TIME_SIGNAL,    /* signal b went to process a, 0 = not known to which, or went nowhere where b is 0; wide: 1 = it
                          is about to go to process group c */
    FL_TIME_TIMER,     /* a new timer; a: fl_timer_kind, b: its signal, 0 = none, c: the thread that gets it, 0 = any;
                          wide: what comes with it; of a descriptor b: its clock, wide: its id, spare: itself + 1
                          -> uint64 its number, 0 where memory ran out */
    FL_TIME_TIMER_SET, /* a: kind, b: number, of a descriptor its id; wide: when it fires, FOREVER = never;
                          text: fl_timer_state, of which the interval counts -> fl_timer_state as it was */
    FL_TIME_TIMER_GET, /* a, b as before -> fl_timer_state */
    FL_TIME_TIMER_END, /* likewise */
    FL_TIME_HOLD,      /* descriptor a tells of the system calls of the program that this process becomes */
} fl_ask_op;

typedef enum fl_timer_kind {                      /* whose end ends it, and how it is named */
                             FL_TIMER_ALARM,      /* one a process, which keeps it over an exec (setitimer) */
                             FL_TIMER_OF_PROGRAM, /* by its number, until an exec (timer_create) */
                             FL_TIMER_DESCRIPTOR, /* by the id of an eventfd, which all who have it share (timerfd) */
} fl_timer_kind;

typedef struct fl_timer_state {
    int64_t next_ns, interval_ns; /* FL_VIRTUAL_FOREVER: it is not set; 0: it fires once */
    uint64_t missed;              /* it fired so often while its last signal had not been heard */
    int64_t clock;                /* of a descriptor */
} fl_timer_state;

typedef enum fl_ask_text { /* texts of a device or of the system, and what a device can be found by */
                           FL_TEXT_NAME,
                           FL_TEXT_UUID,
                           FL_TEXT_SERIAL,
                           FL_TEXT_PCI,
                           FL_TEXT_DRIVER,
                           FL_TEXT_LIBRARY,
                           FL_TEXT_VBIOS,
                           FL_TEXT_CUDA, /* version as a number: 12040 */
} fl_ask_text;

typedef enum fl_ask_number {
    FL_NUMBER_INDEX,
    FL_NUMBER_ARCHITECTURE,
    FL_NUMBER_CAPABILITY, /* major << 16 | minor */
    FL_NUMBER_PERSISTENCE,
    FL_NUMBER_UTIL, /* GPU << 32 | memory */
    FL_NUMBER_CLOCK,
    FL_NUMBER_TARGET_CLOCK,  /* of applications */
    FL_NUMBER_DEFAULT_CLOCK, /* likewise */
    FL_NUMBER_MAX_CLOCK,
    FL_NUMBER_POWER,
    FL_NUMBER_ENERGY,
    FL_NUMBER_TEMPERATURE,
    FL_NUMBER_THRESHOLD,
    FL_NUMBER_PSTATE,
    FL_NUMBER_REASONS,
    FL_NUMBER_REASONS_KNOWN,
    FL_NUMBER_VIOLATION,
    FL_NUMBER_TIME, /* us since the epoch of the session's clock */
    FL_NUMBER_MEMORY_TOTAL,
    FL_NUMBER_MEMORY_USED,
    FL_NUMBER_LIMIT,
    FL_NUMBER_LIMIT_MIN,
    FL_NUMBER_LIMIT_MAX,
    FL_NUMBER_LIMIT_DEFAULT,
    FL_NUMBER_RESTRICTION,
    FL_NUMBER_CONSTANT, /* b: the value of what is not simulated; here for state and errors */
    FL_NUMBER_LOCK,     /* b: fl_ask_lock */
    FL_NUMBER_CORES,
} fl_ask_number;

typedef enum fl_ask_lock { FL_LOCK_SM_MIN, FL_LOCK_SM_MAX, FL_LOCK_MEM_MIN, FL_LOCK_MEM_MAX } fl_ask_lock;

typedef enum fl_ask_set {
    FL_SETS_SM,  /* b: lowest, c: highest MHz */
    FL_SETS_MEM, /* likewise */
    FL_SETS_SM_DEFAULT,
    FL_SETS_MEM_DEFAULT,
    FL_SETS_TARGET, /* b: memory, c: SM MHz */
    FL_SETS_TARGET_DEFAULT,
    FL_SETS_LIMIT, /* b: mW */
    FL_SETS_PERSISTENCE,
    FL_SETS_RESTRICTION, /* b: which, c: on */
    FL_SETS_RECORDS,     /* b: on */
} fl_ask_set;

typedef struct fl_ask {
    uint32_t op, gpu, a, b, c, image; /* gpu: index, or beyond the last where the handle was none */
    uint64_t wide;
    char call[48]; /* the function asked, for the audit and for errors on request */
    char text[96];
    int32_t thread; /* its kernel id */
    int32_t spare;  /* a descriptor + 1 that goes with it */
} fl_ask;

#define FL_ANSWER_BYTES 16384
typedef struct fl_answer {
    int32_t result;
    uint32_t size; /* of what follows */
    unsigned char bytes[FL_ANSWER_BYTES];
} fl_answer;
#define FL_ANSWER_HEAD 8u

typedef struct fl_ask_process {
    uint32_t pid, graphics;
    uint64_t bytes;
} fl_ask_process;

typedef struct fl_ask_event {
    uint32_t gpu, spare;
    uint64_t kind, data;
} fl_ask_event;

typedef struct fl_ask_profile { /* integrals since the start, in ps x share */
    double time_ps, busy, sm, memory, alu;
} fl_ask_profile;

/* How a wait in virtual time ended: fl_answer.result of FL_TIME_SLEEP and FL_TIME_WAIT. */
enum { FL_WOKEN_TIME = 0, FL_WOKEN_LOOK = 1, FL_WOKEN_SIGNAL = 2 };

/* The clock of virtual time, shared by all. Only the thread that holds the token reads or writes it. */
typedef struct fl_clock_page {
    uint32_t version;
    _Atomic uint32_t owed;      /* readings whose time has not passed yet: the next look at the clock goes through the
                                   server */
    _Atomic int64_t now_ns;     /* since the start of the session */
    _Atomic int64_t horizon_ns; /* no other thread needs to run before it */
    int64_t realtime_ns;        /* of the session's start */
    uint64_t out[2][2];         /* device and inode of the session's own output: its reader is outside */
} fl_clock_page;

#define FL_VIRTUAL_REALTIME_NS INT64_C(1704067200000000000) /* where virtual sessions start: the same in every run */
#define FL_VIRTUAL_MONOTONIC_NS INT64_C(1000000000000)
#define FL_VIRTUAL_FOREVER INT64_MAX

/* What a clock shows when the session begins. realtime_ns: the session's own start. */
static inline int64_t fl_virtual_base(clockid_t clock, int64_t realtime_ns) {
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
        return realtime_ns;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
        return FL_VIRTUAL_MONOTONIC_NS;
    default: /* of the processor: all of the session's time is taken to be this program's */
        return 0;
    }
}

static inline int64_t fl_virtual_after(int64_t now_ns, int64_t ns) {
    return ns >= FL_VIRTUAL_FOREVER - now_ns ? FL_VIRTUAL_FOREVER : now_ns + ns;
}

/* System calls of programs without our hooks: Go and static programs. The kernel holds each of these calls and asks the
 * server for the answer (seccomp user notification). The filter is installed just before the program starts, by the
 * process that becomes it; it stays for all its threads and children. */

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
/* clang-format off */
#define FL_HELD_CALLS(X)                                                                                               \
    X(clock_gettime)                                                                                                   \
    X(gettimeofday)                                                                                                    \
    X(time)                                                                                                            \
    X(times)                                                                                                           \
    X(nanosleep) X(clock_nanosleep) X(sched_yield) X(futex) X(poll) X(ppoll) X(select) X(pselect6) X(epoll_wait)       \
        X(epoll_pwait) X(epoll_pwait2) X(read) X(readv) X(write) X(writev) X(recvfrom) X(recvmsg) X(accept) X(accept4) \
            X(wait4) X(waitid) X(pause) X(rt_sigsuspend) X(rt_sigtimedwait) X(clone) X(clone3) X(fork) X(vfork)        \
                X(execve) X(execveat) X(exit) X(exit_group) X(kill) X(tkill) X(tgkill) X(rt_sigqueueinfo)              \
                    X(rt_tgsigqueueinfo) X(pidfd_send_signal) X(arch_prctl) X(brk) X(set_tid_address)                  \
                        X(set_robust_list) X(rseq) X(gettid) FL_REFUSED_CALLS(X)
#define FL_REFUSED_CALLS(X)                                                                                            \
    X(timer_create)                                                                                                    \
    X(timerfd_create)                                                                                                  \
    X(setitimer)                                                                                                       \
    X(alarm)                                                                                                           \
    X(flock) X(fcntl) X(futex_waitv) X(io_uring_setup) X(io_getevents) X(semtimedop) X(semop) X(msgrcv) X(msgsnd)      \
        X(mq_timedsend) X(mq_timedreceive) X(recvmmsg) X(adjtimex) X(clock_adjtime) X(splice) X(tee)
/* clang-format on */

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

/* The kind of a program, from its file, before it starts. The server and the hook before an exec use it. */

typedef enum fl_image_kind {
    FL_IMAGE_HOOKED, /* the dynamic linker starts it, so that it loads our library (or it is a script) */
    FL_IMAGE_GO,     /* it makes system calls past the C library */
    FL_IMAGE_STATIC,
    FL_IMAGE_NARROW, /* not a 64-bit program */
} fl_image_kind;

/* Reads the program headers one line at a time; notes name the tool that made the program. */
static inline fl_image_kind fl_image_of_elf(int fd, const Elf64_Ehdr *eh) {
    bool interpreter = false;
    for (int i = 0; i < eh->e_phnum && i < 64; i++) {
        Elf64_Phdr ph;
        unsigned char note[4096];
        if (pread(fd, &ph, sizeof ph, (off_t)(eh->e_phoff + (size_t)i * sizeof ph)) != (ssize_t)sizeof ph)
            break;
        interpreter |= ph.p_type == PT_INTERP;
        if (ph.p_type != PT_NOTE)
            continue;
        const size_t want = ph.p_filesz < sizeof note ? ph.p_filesz : sizeof note;
        const ssize_t n = pread(fd, note, want, (off_t)ph.p_offset);
        for (ssize_t at = 0; at + 16 <= n; at += 4)
            if (!memcmp(note + at, "Go\0\0", 4))
                return FL_IMAGE_GO;
    }
    return interpreter ? FL_IMAGE_HOOKED : FL_IMAGE_STATIC;
}

static inline fl_image_kind fl_image_of(const char *path) {
    fl_image_kind kind = FL_IMAGE_HOOKED;
    Elf64_Ehdr eh;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return kind;
    if (pread(fd, &eh, sizeof eh, 0) == (ssize_t)sizeof eh && !memcmp(eh.e_ident, ELFMAG, SELFMAG))
        kind = eh.e_ident[EI_CLASS] == ELFCLASS64 ? fl_image_of_elf(fd, &eh) : FL_IMAGE_NARROW;
    close(fd);
    return kind;
}

/* The client's end of the socket. It connects again after a fork, and after a program has closed the descriptor. */

/* Ask and wait for the answer, with signals blocked; *answer takes head and bytes. Return -1 if no emulator answers. */
int fl_link_ask(fl_ask *ask, fl_answer *answer);
/* Send a request that has no answer. */
int fl_link_tell(fl_ask *ask);
/* Return true if a signal of this thread was delivered at the end of the last wait that a signal ended. */
int fl_link_signalled(void);
/* Set a function that runs after each answer, before the handlers of signals that came meanwhile. */
void fl_link_when_answered(void (*f)(void));
/* Return true if this signal has a handler here, or ends the process. */
int fl_link_hears(int number);

/* Functions that replace those of the C library (LD_PRELOAD), and the way to the replaced ones. */

#define FL_SHOWN __attribute__((visibility("default")))

/* The C library's own function, found at its first use: REAL(nanosleep)(...). */
#define REAL(name)                                                                                                     \
    __extension__({                                                                                                    \
        static __typeof__(&name) found_;                                                                               \
        if (!found_)                                                                                                   \
            *(void **)&found_ = dlsym(RTLD_NEXT, #name);                                                               \
        found_;                                                                                                        \
    })
