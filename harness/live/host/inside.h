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

/* Read the file a first time. FL_BAD_INPUT: it cannot be read or is wrong. path is borrowed; NULL: there is no target.
 */
fl_status fl_live_target_open(fl_live_target *t, const char *path, fl_diag *d);
/* Read the file again if it was replaced or changed, and show the target at t_ns. While the file is gone, the target is
 * unknown; while its new contents are wrong, the old rows hold. tell, which may be NULL, learns of both. */
void fl_live_target_show(fl_live_target *t, int64_t t_ns, fl_effect_tell *tell, void *user, fl_host_sample *host);
void fl_live_target_close(fl_live_target *t);
