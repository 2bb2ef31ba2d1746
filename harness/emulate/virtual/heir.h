/* Where the emulator is killed, the kernel fails every call that it held, also the one by which a program ends: such a
 * program would run for ever. This process waits for the emulator's end, and ends what is left then. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

typedef struct fl_heir {
    pid_t pid; /* 0: none */
    int wire;
} fl_heir;

/* clean: removes the session's files; called in it where the emulator was killed. False with errno. */
bool fl_heir_open(fl_heir *heir, void (*clean)(void *user), void *user);
/* This process is to end with the emulator; or has ended. */
void fl_heir_tell(const fl_heir *heir, pid_t pid, bool lives);
void fl_heir_close(fl_heir *heir);
