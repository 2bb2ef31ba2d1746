/* The outcome of a session: its report, kept from the first request on, and the error that ended it. */
#pragma once

#include "harness/emulate/client/protocol.h"
#include "traces/io/diag.h"

#include <stdbool.h>
#include <sys/types.h>

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
size_t fl_outcome_process(fl_outcome *o, pid_t pid);
/* Reads its name from the system again: an exec changes it. */
void fl_outcome_rename(fl_outcome *o, size_t process);
const char *fl_outcome_name(const fl_outcome *o, pid_t pid); /* "?" where it is not in the report */

/* Records one answer at now_ns of the session. The requests with their times, and the answers, make the session's hash.
 * process: index in the report, or FL_NOBODY. */
void fl_outcome_answer(fl_outcome *o, int64_t now_ns, size_t process, const fl_ask *q, const fl_answer *a);
/* One set call that ended, made or refused. */
void fl_outcome_set(fl_outcome *o, int64_t now_ns, size_t process, const fl_ask *q, int32_t result);
