/* Programs without our hooks in virtual time: the server hears of their system calls from the kernel (client/filter.h),
 * finds out whose they are, and answers those of the thread that has the token. The others wait in their call. */
#pragma once

#include "harness/emulate/virtual/heir.h"
#include "harness/emulate/virtual/held.h"

typedef struct fl_hold {
    fl_token *token;
    int events; /* an epoll of the kernel's ends; -1 = none yet */
    struct fl_hold_listener *listeners;
    struct fl_hold_image *first;
    fl_heir heir;
} fl_hold;

/* From now on hears of calls at this descriptor of the process; takes a copy of it. False with errno. */
bool fl_hold_listen(fl_hold *hold, pid_t pid, int fd);
/* Takes the calls that have arrived. */
void fl_hold_hear(fl_hold *hold);
/* Answers the thread that has the token, and whoever gets it then. */
void fl_hold_go(fl_hold *hold);
/* Ends the programs whose calls are held: without the server none of their calls would succeed. */
void fl_hold_end(fl_hold *hold);
void fl_hold_died(fl_hold *hold, pid_t pid);
void fl_hold_close(fl_hold *hold);
