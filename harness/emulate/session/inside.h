/* What the files of harness/emulate/session share. Other modules include the public header alone. */
#pragma once

#include "harness/emulate/driver/driver.h"
#include "harness/emulate/virtual/virtual.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The command that runs under the emulator: whether it can run, and its start. */

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

/* Processes that a command leaves behind. After a command is killed on purpose, they must all have ended before the
 * next run. They therefore become children of this process when their parents end. */

/* From now on orphans become children of this process. False, without any change, where this process already has
 * children: these belong to the program that it replaced by exec, and could not be told apart. */
bool fl_orphans_adopt(void);
/* Kills every child that has not ended yet, including those that arrive meanwhile, and ends the adoption. */
void fl_orphans_end(void);

/* The watchdog of virtual time. It only observes: it takes no token and moves no clock. */

typedef struct fl_watch { /* state of its last look; zeroed before the first */
    fl_token *token;
    uint64_t heard;
    unsigned long long switches;
    bool told_spin, told_wait;
} fl_watch;

/* Called when no request has come for a while. */
void fl_watch_look(fl_watch *w);
