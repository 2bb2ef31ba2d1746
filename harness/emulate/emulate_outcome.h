/* What a session comes to: its report, kept from the first request on, and the error that ended it. */
#ifndef FL_EMULATE_OUTCOME_H
#define FL_EMULATE_OUTCOME_H

#include "harness/emulate/client/protocol.h"
#include "traces/diag.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct fl_emulated_process {
    pid_t pid;
    char name[16];
    uint64_t calls, sets, refused; /* sets that were made, and that were answered with an error */
} fl_emulated_process;

typedef struct fl_emulated_set {
    int64_t at_ns; /* end of the call, of the session's time */
    pid_t pid;
    uint32_t gpu, b, c; /* arguments as the call gave them */
    int32_t result;
    char call[48], process[16]; /* its name then */
} fl_emulated_set;

typedef struct fl_emulated_state { /* of one GPU at the end; 0 = nothing locked, or not known */
    uint32_t sm_min, sm_max, mem_min, mem_max, limit_mw, default_limit_mw, target_sm, target_mem;
    double energy_j;
} fl_emulated_state;

typedef struct fl_emulate_result {
    int command_status;                         /* as waitpid gives it */
    int64_t time_ns;                            /* the session's, when the last client went */
    bool killed;                                /* the process of fl_kill was */
    bool done;                                  /* all work had ended by then */
    double energy_j, node_energy_j, makespan_s; /* of the work so far; as fl_run_result where it is done */
    double after_j;                             /* drawn by the boards after the end of the work */
    uint64_t kernels, switches, calls, hash;
    fl_emulated_process *process;
    size_t process_count, process_room;
    fl_emulated_set *set;
    size_t set_count, set_room;
    fl_emulated_state *gpu;
    uint32_t gpu_count;
} fl_emulate_result;

void fl_emulate_result_free(fl_emulate_result *r);

typedef struct fl_kill { /* asked for: a process is killed while it makes a call, before it hears the answer */
    bool watched;        /* what it leaves behind is waited for, whether it speaks or not */
    int signal;          /* 0 = none */
    size_t process;      /* its place in the report */
    uint64_t after_sets, after_calls; /* of it, as they are answered; 0 = not by these */
} fl_kill;

typedef struct fl_outcome {
    fl_emulate_result *r;
    fl_status status; /* FL_OK while the session goes on */
    fl_diag *d;
    fl_kill kill;
    void (*on_kill)(void *user, pid_t pid, int signal); /* the moment has come */
    void *user;
} fl_outcome;

/* Ends the session with FL_HARDWARE and the reason; of several errors the first stays. */
void fl_outcome_fail(fl_outcome *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Takes a process into the report: its place there, FL_NOBODY where there is no memory for it. */
#define FL_NOBODY SIZE_MAX
size_t fl_outcome_process(fl_outcome *o, pid_t pid);
/* Asks the system for its name anew: after an exec it has another. */
void fl_outcome_rename(fl_outcome *o, size_t process);
const char *fl_outcome_name(const fl_outcome *o, pid_t pid); /* "?" where it is not in the report */

/* One answer, at now_ns of the session: what was asked when, and what was answered, make the session's hash. process:
 * its place in the report, or FL_NOBODY. */
void fl_outcome_answer(fl_outcome *o, int64_t now_ns, size_t process, const fl_ask *q, const fl_answer *a);
/* One set call that ended, made or refused. */
void fl_outcome_set(fl_outcome *o, int64_t now_ns, size_t process, const fl_ask *q, int32_t result);

#endif
