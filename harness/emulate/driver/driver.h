/* The simulated driver: boards, the calls of clients, their processes and connections.
 *
 * A session fills fl_emulate_options and opens, in this order: fl_covers (confinement), fl_boards (the node and each
 * GPU's driver state), fl_peers and fl_conns (clients), fl_sets (set calls). Each request of a client is an fl_ask:
 * fl_calls_answer answers it, except for sets, which go through fl_sets, and time, which belongs to emulate/virtual.
 * fl_boards_go advances the node. fl_outcome keeps the report and the error that ends the session.
 *
 * One process with one thread owns all of it. Answers to clients are NVML's results; errors of the session are
 * FL_HARDWARE with the reason, of options FL_BAD_INPUT. */
#pragma once

#include "harness/emulate/client/client.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "policies/random.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Confinement: in a user and mount namespace of its own, the command and everything it starts find the places of a real
 * driver covered, its libraries and its device nodes. Therefore a child without the session's environment (env -i), a
 * setuid program or a static program cannot reach a real driver either. */

typedef enum fl_confine { FL_CONFINE_TRY, FL_CONFINE_NEED, FL_CONFINE_OFF } fl_confine;

typedef struct fl_covers { /* the parts of a real driver on this machine, and what covers them */
    char **path;
    size_t count, room;
    char file[96],
        folder[96]; /* the covers, both in the session's folder: a socket, which no one can open, and an empty folder */
} fl_covers;

/* Finds everything to cover, and makes the covers in the session's folder. spare: the folder of the simulated library,
 * which stays visible. Free with fl_covers_close, also after a failure. */
fl_status fl_covers_open(fl_covers *c, const char *session, const char *spare, fl_diag *d);
void fl_covers_close(fl_covers *c);

/* Call it in a process of one thread that is about to become the command. From then on the process and its children
 * have namespaces of their own, with all of that covered. False where the system refuses: why gives the reason, and the
 * process must not continue. */
bool fl_confine_enter(const fl_covers *c, char *why, size_t size);
/* Tries the same in a child that ends at once: whether it works here. */
bool fl_confine_try(const fl_covers *c, char *why, size_t size);

/* The driver's version: what a library of that version reports about itself, and which names it exports. */

#define FL_DRIVER_HELP                                                                                                 \
    "a driver of that version, such as 535 or 535.104.05: its names and answers (550.54.15, with every name)"

typedef struct fl_driver {
    char text[32];   /* 550.54.15 */
    uint32_t branch; /* 550 */
    uint32_t cuda;   /* 12040 */
    bool given;      /* names of newer versions are not exported */
} fl_driver;

/* NULL: the default version, with every name. */
fl_status fl_driver_parse(const char *text, fl_driver *out, fl_diag *d);

/* Copies the library `from` to `to` without the names that the driver lacks. */
fl_status fl_driver_library(const fl_driver *v, const char *from, const char *to, fl_diag *d);

/* Errors on request: which calls fail, on which GPU, and when. */

typedef struct fl_refusal {
    int32_t result; /* an nvmlReturn_t; NVML_SUCCESS: a set is accepted, and changes nothing */
    int32_t gpu;    /* -1 = every */
    char call[64];  /* pattern of function names; empty = all of one GPU */
    int64_t from_ns, until_ns;
} fl_refusal;

/* Parses "no-permission", "lost:gpu=1,from_s=5", "not-supported:call=nvmlDeviceGetPowerUsage", ... FL_BAD_INPUT says
 * what was expected. */
fl_status fl_refusal_parse(const char *text, fl_refusal *out, fl_diag *d);
#define FL_REFUSAL_HELP                                                                                                \
    "answers with no-permission, not-supported, lost, timeout, driver-gone, in-use or unknown, or takes sets "         \
    "without-effect; then :gpu=,call=,from_s=,for_s= (may be repeated)"

/* The outcome of a session: its report, kept from the first request on, and the error that ended it. */

typedef struct fl_emulated_process {
    pid_t pid;
    char name[16];
    uint64_t calls, sets, refused; /* number of sets that were made, and of sets that were answered with an error */
} fl_emulated_process;

typedef struct fl_emulated_set {
    int64_t at_ns; /* end of the call, in the session's time */
    pid_t pid;
    uint32_t gpu, b, c; /* arguments of the call */
    int32_t result;
    char call[48], process[16]; /* the process's name at that time */
} fl_emulated_set;

typedef struct fl_emulated_state { /* state of one GPU at the end; 0 = nothing locked, or not known */
    uint32_t sm_min, sm_max, mem_min, mem_max, limit_mw, default_limit_mw, target_sm, target_mem;
    double energy_j;
} fl_emulated_state;

typedef struct fl_emulate_result {
    int command_status;                         /* the status from waitpid */
    int64_t time_ns;                            /* the session's time when the last client ended */
    bool killed;                                /* the process of fl_kill was killed */
    bool done;                                  /* all work had ended by then */
    double energy_j, node_energy_j, makespan_s; /* of the work so far; as in fl_run_result if done */
    double after_j;                             /* energy of the boards after the end of the work */
    uint64_t kernels, switches, calls, hash;
    fl_emulated_process *process;
    size_t process_count, process_room;
    fl_emulated_set *set;
    size_t set_count, set_room;
    fl_emulated_state *gpu;
    uint32_t gpu_count;
} fl_emulate_result;

void fl_emulate_result_free(fl_emulate_result *r);

typedef struct fl_kill { /* a requested kill: a process is killed during a call, before it receives the answer */
    bool watched;        /* the session waits for the remaining processes, whether or not they send requests */
    int signal;          /* 0 = none */
    size_t process;      /* index in the report */
    uint64_t after_sets,
        after_calls; /* the kill comes after this many of its sets or calls, counted by answers; 0 = not by these */
} fl_kill;

typedef struct fl_outcome {
    fl_emulate_result *r;
    fl_status status; /* FL_OK while the session goes on */
    fl_diag *d;
    fl_kill kill;
    void (*on_kill)(void *user, pid_t pid, int signal); /* called when the moment has come */
    void *user;
} fl_outcome;

/* Ends the session with FL_HARDWARE and the reason. Of several errors the first stays. */
void fl_outcome_fail(fl_outcome *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a process to the report. Returns its index, FL_NOBODY where memory runs out. */
#define FL_NOBODY SIZE_MAX

/* Reads its name from the system again: an exec changes it. */
void fl_outcome_rename(fl_outcome *o, size_t process);
const char *fl_outcome_name(const fl_outcome *o, pid_t pid); /* "?" where it is not in the report */

/* The options of a session. */

typedef enum fl_emulate_time { FL_TIME_WALL, FL_TIME_VIRTUAL } fl_emulate_time;

typedef struct fl_emulate_options {
    const fl_scene *scene;
    fl_emulate_time time;
    double scale;     /* WALL: simulated seconds per second */
    double set_ms[2]; /* a set blocks its caller for a time between these, drawn with the seed; below 0 = the platform's
                         time */
    const fl_fault *fault; /* fault_count faults of sensors and sets, as in fl_run */
    size_t fault_count;
    const fl_refusal *refusal;
    size_t refusal_count;
    fl_driver driver;
    const fl_smi *smi;    /* identities of its GPUs; NULL = the platform's */
    bool anyone;          /* any user may set; else only root, as with the driver */
    const char *rings;    /* folder for a ring of activity records (harness/live/collector/ring.h); NULL = none */
    char *const *command; /* NULL-terminated */
    fl_confine confine;
    void (*note)(const char *text); /* receives messages for the user before the command starts; may be NULL */
    fl_kill kill;
    bool mute;              /* discards the command's output */
    const char *client_dir; /* where the client's libraries lie */
} fl_emulate_options;

/* Event sets of NVML: the events that programs registered for, and those that have occurred since. */

typedef struct fl_events { /* zeroed: none */
    struct fl_event_set *first;
    uint32_t numbers; /* numbers given out so far */
} fl_events;

/* Activity records and iteration markers, delivered in the way of the collector in a program. */

typedef struct fl_emulated_rings fl_emulated_rings;

/* Creates a ring in the folder, and the folder where it is missing. From then on the node records its kernels. o: the
 * identities of the GPUs. */
fl_status fl_rings_open(fl_emulated_rings **out, const char *folder, const fl_workload *w, fl_node *node,
                        uint32_t gpu_count, const fl_emulate_options *o, fl_diag *d);
/* origin_ns: the clients' CLOCK_MONOTONIC at the node's time 0; both clocks run at the same speed. */
void fl_rings_start(fl_emulated_rings *r, int64_t origin_ns);

void fl_rings_close(fl_emulated_rings *r); /* accepts NULL */

/* The GPUs of a session and their node: the state that a driver keeps of each GPU, the sets and the readings. */

typedef struct fl_emulated_board {
    uint32_t sm_min, sm_max, mem_min, mem_max; /* locks as requested; max 0 = none */
    uint32_t target_sm, target_mem;            /* application clocks; 0 = the default */
    uint32_t limit_mw;
    int64_t memory_at_ns, memory_seen_ns,
        memory_mw;    /* the memory's power at its last update, and the refresh of that update; < 0: not known */
    double memory_fj; /* energy up to then */
    bool persistence, restricted[2];
} fl_emulated_board;

typedef struct fl_boards {
    const fl_emulate_options *o;
    fl_outcome *outcome;
    const fl_node_spec *spec;
    fl_node *node;
    fl_faults *faults;
    fl_emulated_board *board; /* gpu_count */
    uint32_t gpu_count;
    fl_emulated_rings *rings; /* NULL: activity records are not delivered */
    fl_events events;
    bool halted; /* the work cannot continue because a GPU is lost */
    fl_random random;
    int64_t realtime_ns, now_ns; /* start of the session since the epoch, and time since that start */
} fl_boards;

static inline const fl_device *fl_boards_device(const fl_boards *all, uint32_t gpu) {
    return &all->spec->device[all->spec->gpu[gpu]];
}

/* Starts the node. Takes o, outcome and realtime_ns; all else must be zeroed. */
fl_status fl_boards_open(fl_boards *all, fl_diag *d);
void fl_boards_close(fl_boards *all);
/* Advances the node to now_ns of the session. */
void fl_boards_go(fl_boards *all, int64_t now_ns);
/* Return true if a client waits for the workload's markers. */
bool fl_boards_wake(const fl_boards *all);
/* Advance the node no further than its next marker, if a client waits for one. Return until_ns, or the instant of that
 * marker, which has woken the client. */
int64_t fl_boards_marker(fl_boards *all, int64_t until_ns);

/* Writes the boards' final state into the report. */
void fl_boards_report(const fl_boards *all);

/* One call of a client: whether it is refused, and its answer. */

/* Answers every request except sets and time. inits: how often the client's process has initialised NVML, counted here.
 * *reading: a sensor was read. */
void fl_calls_answer(fl_boards *all, uint32_t *inits, const fl_ask *q, fl_answer *out, bool *reading);
/* Delivers new events to the sets that are registered for them. */
void fl_calls_look(fl_boards *all);

/* The processes of a session, each registered at its first request, and their deaths. */

typedef struct fl_peer { /* one process */
    pid_t pid;
    int pidfd;
    uint32_t uses; /* connections */
    uint32_t inits;
    pid_t parent;
    bool doomed;    /* its process group is about to be killed */
    bool root;      /* as its last connection said */
    size_t account; /* index in the report */
    struct fl_peer *next;
} fl_peer;

typedef struct fl_peers {
    fl_outcome *outcome;
    int deaths; /* an epoll for the pidfds, checked before every request */
    fl_peer *first;
    void (*died)(void *user, const fl_peer *p); /* called when the process has been removed from the list */
    void *user;
} fl_peers;

/* NULL where the process has already ended. */
fl_peer *fl_peer_of(fl_peers *all, pid_t pid);
/* Through its pidfd, because the number may belong to another process by now. */
void fl_peer_kill(const fl_peers *all, pid_t pid);
void fl_peer_bury(fl_peers *all, fl_peer *p);
/* Handles dead clients first: a set that a killed client had queued must not be made after other processes have reacted
 * to its death. */
void fl_peers_bury(fl_peers *all);

/* The connections of a session's clients: one per thread that sends requests. */

typedef struct fl_conn {
    int fd;
    fl_peer *peer;
    bool gone; /* to be freed once this round of events is over */
    struct fl_conn *next;
} fl_conn;

typedef struct fl_conns {
    fl_outcome *outcome;
    int events; /* an epoll; a connection's data is its fl_conn */
    fl_conn *first;
    void (*hung_up)(void *user, const fl_conn *c); /* called when a connection has closed, before it is freed */
    void *user;
} fl_conns;

/* Accepts the clients that wait at the listener. */
void fl_conns_accept(fl_conns *all, fl_peers *peers, int listener);
/* Receive the next request; return recv()'s result. q->spare: the number here of the descriptor that came with it, + 1;
 * 0: none came. */
ssize_t fl_conn_hear(const fl_conn *c, fl_ask *q);
/* now_ns: of the session. */
void fl_conn_answer(fl_conns *all, fl_conn *c, int64_t now_ns, const fl_ask *q, const fl_answer *a);
/* Closes it; requests that it had queued are not read. */
void fl_conn_drop(fl_conns *all, fl_conn *c);
/* All connections of a process, or of every process: peer NULL. */
void fl_conns_drop(fl_conns *all, const fl_peer *peer);
void fl_conns_free_gone(fl_conns *all);

/* Another process of the session, seen from outside: memory, descriptors, state. The kernel allows what it would allow
 * a debugger. */

/* Read or write its memory. Return false if that memory does not exist or is not allowed. */
bool fl_remote_read(pid_t pid, uint64_t at, void *to, size_t n);
bool fl_remote_write(pid_t pid, uint64_t at, const void *from, size_t n);
/* Writes to memory that the process itself may only read. */
bool fl_remote_patch(pid_t pid, uint64_t at, const void *from, size_t n);

/* Return a descriptor of the same open file, which the caller closes; -1 with errno. */
int fl_remote_fd(int pidfd, int fd);

/* Return the process of a thread; 0: it has ended. */
pid_t fl_remote_process(pid_t thread);
pid_t fl_remote_parent(pid_t pid);
/* List its threads or children, up to `most`. Return their number, -1 if they cannot be seen. */
int fl_remote_threads(pid_t pid, pid_t *all, int most);
int fl_remote_children(pid_t pid, pid_t *all, int most);
/* Return true if the thread still runs code. */
bool fl_remote_lives(pid_t pid, pid_t thread);
/* Return true if a pending signal would interrupt a call of the thread. masked: use `mask` instead of the thread's own.
 */
bool fl_remote_signalled(pid_t pid, pid_t thread, bool masked, uint64_t mask);
/* Return true if a signal of this set is pending. */
bool fl_remote_pending(pid_t pid, pid_t thread, uint64_t set);
/* Return true if a child has ended (which: its pid, or -1 for any), or if there is none to wait for. */
bool fl_remote_child_ended(pid_t pid, pid_t which);

/* Turn the clocks of the process's vDSO into system calls. Return false if that is not possible. */
bool fl_remote_clocks(pid_t pid);

/* Set calls. Under wall time a set blocks its caller for a while and takes effect at its end, unless the caller dies
 * before. */

typedef struct fl_sets {
    fl_boards *boards;
    fl_conns *conns;
    struct fl_delayed *delayed; /* calls that still block their callers, the next one to end first */
} fl_sets;

/* False where the call was refused; the refusal has been sent. */
bool fl_sets_allowed(fl_sets *s, fl_conn *c, const fl_ask *q);
/* Ends the call now: makes the set, audits it and answers. */
void fl_sets_make(fl_sets *s, fl_conn *c, const fl_ask *q);
/* Begins a set call at from_ns. Returns the instant at which it ends; until then it blocks its caller. A power limit
 * may be in force before. q->gpu must be one of the boards. */
int64_t fl_sets_begin(fl_sets *s, const fl_ask *q, int64_t from_ns);
/* Schedules the end of the call. */
void fl_sets_delay(fl_sets *s, fl_conn *c, const fl_ask *q);
/* When the next delayed call ends, ns of the session; INT64_MAX where there is none. */
int64_t fl_sets_next_ns(const fl_sets *s);
/* Makes the calls that have ended by now_ns; before each it handles dead clients. */
void fl_sets_end(fl_sets *s, fl_peers *peers, int64_t now_ns);
/* Drops the calls of a caller that has ended: they are never made. */
void fl_sets_forget(fl_sets *s, const fl_conn *c);
