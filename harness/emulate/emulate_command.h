/* The command that runs under the emulator: whether it can, and its start. */
#ifndef FL_EMULATE_COMMAND_H
#define FL_EMULATE_COMMAND_H

#include "harness/emulate/emulate_options.h"

#include <sys/types.h>

typedef struct fl_emulated_command {
    pid_t pid; /* 0 or less = not started */
    int wire;  /* to it, until it goes */
} fl_emulated_command;

/* As a process of its own that waits, so that it can be known of before it does anything. session: the session's
 * folder. */
fl_status fl_command_start(fl_emulated_command *c, const fl_emulate_options *o, const char *session,
                           const fl_covers *covers, fl_diag *d);
fl_status fl_command_go(const fl_emulated_command *c, const fl_emulate_options *o, fl_diag *d);

/* NULL where the dynamic linker starts it; else why its time cannot be virtual. */
const char *fl_command_unfit(const char *path);

#endif
