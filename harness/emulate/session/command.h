/* The command that runs under the emulator: whether it can run, and its start. */
#pragma once

#include "harness/emulate/driver/options.h"

#include <sys/types.h>

typedef struct fl_emulated_command {
    pid_t pid; /* 0 or less = not started */
    int wire;  /* socket to the command until it starts */
    bool held; /* a program without our hooks, in virtual time */
    char path[4096];
} fl_emulated_command;

/* Starts the command as a process that waits, so that the session can register it first. session: the session's folder.
 */
fl_status fl_command_start(fl_emulated_command *c, const fl_emulate_options *o, const char *session,
                           const fl_covers *covers, fl_diag *d);
/* calls: the command's descriptor at which its system calls are heard of, or -1. */
fl_status fl_command_go(const fl_emulated_command *c, const fl_emulate_options *o, int *calls, fl_diag *d);

/* NULL where the dynamic linker starts it; else the reason why its time cannot be virtual. */
const char *fl_command_unfit(const char *path);
