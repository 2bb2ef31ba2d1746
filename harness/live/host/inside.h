/* What the files of harness/live/host share. Other modules include the public header alone. */
#pragma once

#include "harness/live/guard/guard.h"
#include "harness/live/host/host.h"
#include "policies/policy.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

void fl_live_log_limit(fl_live_log *l, size_t room); /* limits the bytes that may wait, for tests */

/* The power target of a live host. */
typedef struct fl_live_target {
    const char *path; /* NULL: there is none */
    struct stat seen; /* of the file when it was read last */
    bool gone;
    fl_target rows;
} fl_live_target;
