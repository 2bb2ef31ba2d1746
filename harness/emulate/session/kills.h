/* What a program leaves changed when it is killed. The command runs once to its end, and then once for each pattern. */
#pragma once

#include "harness/emulate/session/emulate.h"

typedef struct fl_kill_row {
    const char *pattern; /* "nothing", "SIGTERM", ..., "crash" */
    const char *moment;  /* "set", "call"; "" for "nothing" */
    uint64_t number, of; /* the kill comes after this many of so many, as the first run counted; 0 = not killed */
    bool reached;        /* the moment came and the process was killed */
    int command_status;  /* the status from waitpid */
    fl_emulated_state *gpu;
    uint32_t gpu_count;
    bool changed; /* some setting remains changed */
} fl_kill_row;

typedef struct fl_kills {
    char process[16]; /* the process that made the first set, which is the one that is killed */
    uint64_t sets, calls;
    fl_kill_row *row;
    size_t count;
} fl_kills;

/* The patterns: SIGTERM, SIGINT, SIGKILL and a crash (SIGSEGV), each after the first, the middle and the last set, and
 * after half of the calls of the process that sets. FL_BAD_INPUT where the command sets nothing. Free with
 * fl_kills_free, also after a failure. */
fl_status fl_kills_run(const fl_emulate_options *o, fl_kills *k, fl_diag *d);
void fl_kills_free(fl_kills *k);

/* Describes the change in buf: "GPU 0: SM clock 900..900 MHz; power limit 200 W", or "nothing". Returns buf. */
char *fl_kill_left(const fl_kill_row *row, char *buf, size_t size);
