/* What the Go runtime draws its own random numbers from: it seeds the order of its select and of its maps, and when it
 * looks at the clock. Left alone, two runs of one program would differ. */
#pragma once

#include <sys/types.h>

/* In a program that has just started: the kernel's random bytes become fixed ones, and the processor's counter of ticks
 * stands still where the runtime reads it (it is machine time, which no system call shows). Where a runtime reads them
 * in another way, its choices stay random. */
void fl_go_settle(pid_t pid);
