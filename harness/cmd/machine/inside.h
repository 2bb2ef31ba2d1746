/* What the files of harness/cmd/machine share. Other modules include the public header alone. */
#pragma once

#include "harness/live/server/server.h"
#include "policies/policy.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <cJSON.h>
#include <stdbool.h>
#include <stdio.h>

/* The server of requests that `foldline live --server URL` reads: its options, its facts for the policy, and what the
 * command prints of it at the end. */

typedef struct fl_live_server {
    const char *url, *ttft, *tbt; /* texts of the command line; NULL: not given */
    double target_share;
    fl_server_host *host; /* NULL: no server */
    fl_server_facts facts;
} fl_live_server;

/* Checks the options without a machine. FL_BAD_INPUT: a malformed time, targets without a server, or a policy (may be
 * NULL) that needs a server without one. */
fl_status fl_live_server_check(const fl_live_server *s, const fl_policy *policy, fl_diag *d);

/* Reads a first page and puts the server into the facts. Prints on stderr what the policy reads and the page lacks.
 * FL_HARDWARE: there is no page, or, under `control`, the page has nothing of what the policy needs. */
fl_status fl_live_server_open(fl_live_server *s, const fl_policy *policy, bool control, fl_facts *facts, fl_diag *d);
void fl_live_server_close(fl_live_server *s);

void fl_live_server_tell(const fl_live_server *s, FILE *out);
void fl_live_server_json(const fl_live_server *s, cJSON *root);

/* Gives each recorded kernel the clock that it had, from the readings of the same run: a kernel that ran below the top
 * clock, as under a power limit, must be replayed from that clock. Both files then count time alike; the function
 * changes the times of *t. Kernels of a GPU without readings of its clock get none. say receives what was done, line by
 * line. */
fl_status fl_record_clocks(fl_kernel_trace *k, fl_telemetry *t, void (*say)(void *user, const char *line), void *user,
                           fl_diag *d);
