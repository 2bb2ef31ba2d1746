/* One emulated session of a command, or many of them with a kill each.
 *
 * fl_emulate is the server of the simulated NVML: one process owns the simulator, the clock, the audit of set calls and
 * the report. The command and all its children reach it through the client library (emulate/client), which holds no
 * state. fl_kills_run runs the command again and again, and shows what it leaves changed when it is killed. */
#pragma once

#include "harness/emulate/driver/driver.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Run the command to its end, and its remaining processes for a while longer. FL_HARDWARE, with the reason: it could
 * not be emulated, and everything that it started has been killed. Free *r with fl_emulate_result_free. */
fl_status fl_emulate(const fl_emulate_options *o, fl_emulate_result *r, fl_diag *d);

/* What a program leaves changed when it is killed. The command runs once to its end, and then once for each pattern. */

typedef struct fl_kill_row {
    const char *pattern; /* "nothing", "SIGTERM", ..., "crash" */
    const char *moment;  /* "set", "call"; "" for "nothing" */
    uint64_t number, of; /* the kill comes after this many of so many, as the first run counted; 0 = not killed */
    bool reached;        /* the process was killed at that moment */
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
