/* The server of requests that `foldline live --server URL` reads: its options, what the policy is told of it, and what
 * is told of it at the end. */
#pragma once

#include "harness/base/cli/args.h"
#include "harness/live/server/host.h"

#include <cJSON.h>

typedef struct fl_live_server {
    const char *url, *ttft, *tbt; /* as the command line has them; NULL: not given */
    double target_share;
    fl_server_host *host; /* NULL: no server */
    fl_server_facts facts;
} fl_live_server;

#define FL_LIVE_SERVER_OPTIONS(s)                                                                                      \
    {"server",                                                                                                         \
     "URL",                                                                                                            \
     FL_OPTION_TEXT,                                                                                                   \
     &(s).url,                                                                                                         \
     0,                                                                                                                \
     0,                                                                                                                \
     "reads an engine's page of metrics, as http://127.0.0.1:8000/metrics (vLLM)"},                                    \
        {"ttft", "TIME", FL_OPTION_TEXT, &(s).ttft, 0, 0, "target of its time to first token, as 2s"},                 \
        {"tbt", "TIME", FL_OPTION_TEXT, &(s).tbt, 0, 0, "target of its time between tokens, as 100ms"}, {              \
        "target-share", "X", FL_OPTION_REAL, &(s).target_share, 0.5, 1, "share of tokens that must meet them (0.99)"   \
    }

/* What can be told without a machine: FL_BAD_INPUT for times that are none, targets without a server, a policy (NULL:
 * none) that needs a server where there is none. */
fl_status fl_live_server_check(const fl_live_server *s, const fl_policy *policy, fl_diag *d);

/* Reads a first page and puts the server into the facts. Says on stderr what the policy reads and the page lacks.
 * FL_HARDWARE where there is no page, or nothing of what the policy needs on it and `control` is asked for. */
fl_status fl_live_server_open(fl_live_server *s, const fl_policy *policy, bool control, fl_facts *facts, fl_diag *d);
void fl_live_server_close(fl_live_server *s);

void fl_live_server_tell(const fl_live_server *s, FILE *out);
void fl_live_server_json(const fl_live_server *s, cJSON *root);
