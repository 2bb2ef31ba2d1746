/* The watchdog of virtual time. It only observes: it takes no token and moves no clock. */
#pragma once

#include "harness/emulate/virtual/token.h"

typedef struct fl_watch { /* state of its last look; zeroed before the first */
    fl_token *token;
    uint64_t heard;
    unsigned long long switches;
    bool told_spin, told_wait;
} fl_watch;

/* Called when no request has come for a while. */
void fl_watch_look(fl_watch *w);
