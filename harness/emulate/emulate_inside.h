/* The insides of the emulator: boards (emulate_board.c), what they answer (emulate_calls.c), connections (emulate.c),
 * processes (emulate_peers.c), virtual time (emulate_turns.c). */
#ifndef FL_EMULATE_INSIDE_H
#define FL_EMULATE_INSIDE_H

#include "harness/emulate/client/abi.h"
#include "harness/emulate/client/protocol.h"
#include "harness/emulate/emulate.h"
#include "policies/random.h"
#include "sim/node.h"

typedef struct fl_board {                      /* what its driver remembers of one GPU */
    uint32_t sm_min, sm_max, mem_min, mem_max; /* locks as they were asked for; max 0 = none */
    uint32_t target_sm, target_mem;            /* application clocks; 0 = the default */
    uint32_t limit_mw;
    bool persistence, restricted[2];
} fl_board;

typedef struct fl_peer { /* one process */
    pid_t pid;
    int pidfd;
    uint32_t uses; /* connections */
    uint32_t inits;
    pid_t parent;
    size_t account; /* index into result->process */
    struct fl_peer *next;
} fl_peer;

typedef struct fl_conn {
    int fd;
    fl_peer *peer;
    bool gone; /* to be freed once this round of events is over */
    struct fl_conn *next;
} fl_conn;

typedef struct fl_delayed { /* a set call that still keeps its caller */
    fl_conn *conn;
    fl_ask ask;
    int64_t due_ns;
    struct fl_delayed *next;
} fl_delayed;

typedef struct fl_turns fl_turns;

typedef struct fl_emulator {
    const fl_emulate_options *o;
    fl_emulate_result *r;
    const fl_node_spec *spec;
    fl_node *node;
    fl_faults *faults;
    fl_board *board; /* gpu_count */
    uint32_t gpu_count;
    bool halted; /* the work cannot go on: a lost GPU */
    fl_random random;
    int64_t started_ns, realtime_ns; /* of the machine's clocks */
    int64_t now_ns;
    char dir[64];
    int listener, events, deaths; /* deaths: an epoll of its own for pidfds, looked at before every request */
    fl_conn *conn;
    fl_peer *peer;
    fl_delayed *delayed;
    struct fl_emulated_rings *rings; /* NULL: no kernel records are handed out */
    fl_turns *turns;                 /* NULL: wall time */
    pid_t command;
    int command_fd;
    bool command_ended;
    fl_status status;
    fl_diag *d;
} fl_emulator;

/* ---- boards ---- */
fl_status fl_boards_open(fl_emulator *e);
void fl_boards_close(fl_emulator *e);
/* The simulated time of now, and the node there. */
void fl_boards_go(fl_emulator *e, int64_t now_ns);
void fl_boards_sample(fl_emulator *e, uint32_t gpu, bool remember, fl_gpu_sample *out);
/* How long a set call keeps its caller. */
int64_t fl_boards_set_ns(fl_emulator *e, const fl_ask *q);
/* Checks a set without making it. */
int32_t fl_boards_check(const fl_emulator *e, const fl_ask *q);
/* Makes it now: the call ends. */
int32_t fl_boards_set(fl_emulator *e, const fl_ask *q);
/* When the sensor last refreshed what it shows now, ns of the session. */
int64_t fl_boards_refreshed(const fl_emulator *e, uint32_t gpu, fl_sensor_id id);
void fl_boards_report(fl_emulator *e);

/* ---- kernel records, as the collector in a program would hand them out ---- */
fl_status fl_rings_open(fl_emulator *e);
/* What ended since the last time. */
void fl_rings_push(fl_emulator *e);
void fl_rings_close(fl_emulator *e);

/* ---- calls ---- */
/* Answers everything but sets and time; *reading: a sensor was read. */
void fl_calls_answer(fl_emulator *e, fl_peer *peer, const fl_ask *q, fl_answer *out, bool *reading);
/* An error that was asked for, else that of a lost GPU or a bad handle, else NVML_SUCCESS. */
int32_t fl_calls_refused(const fl_emulator *e, const fl_peer *peer, const fl_ask *q);

/* ---- connections ---- */
void fl_conn_answer(fl_emulator *e, fl_conn *c, const fl_ask *q, fl_answer *a);
/* The set of *q ends now: made, audited, answered. */
void fl_conn_set(fl_emulator *e, fl_conn *c, const fl_ask *q);
/* Ends it; what it still had queued goes unread. */
void fl_conn_drop(fl_emulator *e, fl_conn *c);
/* The process, noted when first heard of; NULL where it is gone. */
fl_peer *fl_peer_of(fl_emulator *e, pid_t pid);
void fl_peer_name(fl_emulated_process *p);
void fl_peer_bury(fl_emulator *e, fl_peer *p);
/* Dead clients first: a set that a killed client had queued must not be made after what others do about its death. */
void fl_peers_bury(fl_emulator *e);
/* Ends the session with an error. */
void fl_emulator_fail(fl_emulator *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- virtual time ---- */
fl_status fl_turns_open(fl_emulator *e);
void fl_turns_close(fl_emulator *e);
void fl_turns_ask(fl_emulator *e, fl_conn *c, const fl_ask *q);
/* A set call of the thread whose turn it is: it sleeps for the call. A reading: its time is owed. */
void fl_turns_set(fl_emulator *e, fl_conn *c, const fl_ask *q);
void fl_turns_read(fl_emulator *e, uint32_t gpu);
int64_t fl_turns_now(const fl_emulator *e);
void fl_turns_hung_up(fl_emulator *e, fl_conn *c);
void fl_turns_died(fl_emulator *e, pid_t pid, pid_t parent);
/* Called when nothing has been heard for a while. */
void fl_turns_watch(fl_emulator *e);
/* Threads that are still there. */
size_t fl_turns_left(const fl_emulator *e);
void fl_turns_command(fl_emulator *e); /* the command is about to begin */

/* ---- the command ---- */
fl_status fl_command_start(fl_emulator *e);
/* NULL where the dynamic linker starts it; else why its time cannot be virtual. */
const char *fl_command_unfit(const char *path);

#endif
