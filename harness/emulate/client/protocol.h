/* What a client library and the emulator say to each other: one packet asks, one packet answers, over SOCK_SEQPACKET.
 * Both ends are of one build and one machine, so structs travel as they are. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define FL_EMULATE_VARIABLE "FOLDLINE_EMULATE" /* path of the session's folder: socket, clock */
#define FL_EMULATE_SOCKET "socket"
#define FL_EMULATE_CLOCK "clock"
#define FL_EMULATE_STATE "state" /* the state folder of its controllers */
#define FL_EMULATE_LIBRARY "libnvidia-ml.so.1"
#define FL_EMULATE_SCALE                                                                                               \
    "FOLDLINE_EMULATE_SCALE" /* of scaled time: factor, CLOCK_REALTIME and CLOCK_MONOTONIC at the start */
#define FL_EMULATE_VERSION 1u
#define FL_WORKLOAD_PID 4194304u   /* and up: beyond what Linux gives; the workload's are not on this machine */
#define FL_HANDLE_BASE 0x0f01d000u /* of the opaque device handles: base + index + 1 */

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
    FL_ASK_EVENT_NEXT,   /* a: number -> fl_ask_event; NVML_TIMEOUT where none has come */
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
    _Atomic int64_t horizon_ns; /* before it nobody else needs to run */
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
