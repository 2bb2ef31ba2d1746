/* What the files of harness/cmd/machine share. Other modules include the public header alone. */
#pragma once

#include "harness/live/server/server.h"
#include "policies/policy.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <cJSON.h>
#include <stdbool.h>
#include <stdio.h>

/* The server of requests that `foldline live --server URL` reads: its options, what the policy is told of it, and what
 * is told of it at the end. */

typedef struct fl_live_server {
    const char *url, *ttft, *tbt; /* as the command line has them; NULL: not given */
    double target_share;
    fl_server_host *host; /* NULL: no server */
    fl_server_facts facts;
} fl_live_server;

/* What can be told without a machine: FL_BAD_INPUT for times that are none, targets without a server, a policy (NULL:
 * none) that needs a server where there is none. */
fl_status fl_live_server_check(const fl_live_server *s, const fl_policy *policy, fl_diag *d);

/* Reads a first page and puts the server into the facts. Says on stderr what the policy reads and the page lacks.
 * FL_HARDWARE where there is no page, or nothing of what the policy needs on it and `control` is asked for. */
fl_status fl_live_server_open(fl_live_server *s, const fl_policy *policy, bool control, fl_facts *facts, fl_diag *d);
void fl_live_server_close(fl_live_server *s);

void fl_live_server_tell(const fl_live_server *s, FILE *out);
void fl_live_server_json(const fl_live_server *s, cJSON *root);

/* Which clock a recorded kernel had: from the readings of the same run. */

/* A kernel that ran below the top clock, as under a power limit, is to be replayed from the clock that it had, as far
 * as the readings tell it. Both count time alike. The times of *t are changed. Where a GPU has no readings of its
 * clock, no kernel gets one. What was done goes to say, line by line. */
fl_status fl_record_clocks(fl_kernel_trace *k, fl_telemetry *t, void (*say)(void *user, const char *line), void *user,
                           fl_diag *d);
