/* What a user asks of servers of a language model: which server, which requests, how many of both, and the latencies
 * that are to be held. On the command line and, under the same names, in an experiment and its variants. */
#pragma once

#include "harness/base/cli/args.h"
#include "harness/base/json/json.h"
#include "sim/serving/serving.h"

typedef struct fl_serving_choice { /* as asked for; NULL and 0 where nobody did */
    const char *server;            /* a file that states a server (traces/serving/serving.h); NULL = nothing is served */
    const char *requests;          /* a request trace (traces/serving/requests.h) */
    double scale;                  /* of the rate of arrivals; 0 = 1 */
    int64_t servers;               /* 0 = 1 */
    int64_t kv_blocks;             /* of each; 0 = as the server's file says */
    int64_t token_budget;          /* of a step of each, likewise */
    const char *route;             /* NULL = round-robin */
    const char *ttft, *tbt;        /* targets, as "2s" and "100ms"; NULL = none */
    double target_share;           /* of tokens that are to meet them; 0 = FL_TARGET_SHARE */
} fl_serving_choice;

#define FL_TARGET_SHARE 0.99

/* True where anything was asked for. */
bool fl_serving_choice_any(const fl_serving_choice *c);
/* FL_BAD_INPUT: a server without requests or the reverse, a part that does nothing without them, an unknown route, a
 * target that is no time or a share of targets that there are not. */
fl_status fl_serving_choice_check(const fl_serving_choice *c, fl_diag *d);
/* Fills route, scale, targets and share of *setup. After fl_serving_choice_check. */
fl_status fl_serving_choice_resolve(const fl_serving_choice *c, fl_serving_setup *setup, fl_diag *d);
/* Fills what *c leaves open from *rest. */
void fl_serving_choice_merge(fl_serving_choice *c, const fl_serving_choice *rest);
/* The keys of an experiment or a variant that was checked (FL_SERVING_ROWS), save the two files; what is set already
 * stays. Texts live as long as the tree. */
fl_status fl_serving_choice_read(const fl_json *root, fl_serving_choice *c, fl_diag *d);

/* clang-format off */
#define FL_SERVING_OPTIONS(c)                                                                                          \
    {"serving", "FILE", FL_OPTION_TEXT, &(c).server, 0, 0,                                                             \
     "a server of a language model, which answers --requests in batches (foldline fit serving makes it)"},             \
    {"requests", "FILE", FL_OPTION_TEXT, &(c).requests, 0, 0, "what is asked of it, and when (foldline-requests)"},    \
    {"scale", "X", FL_OPTION_REAL, &(c).scale, 1e-6, 1e6, "requests arrive so many times as fast (1)"},                \
    {"servers", "N", FL_OPTION_INT, &(c).servers, 1, 1024, "so many servers, each with GPUs of its own (1)"},          \
    {"kv-blocks", "N", FL_OPTION_INT, &(c).kv_blocks, 1, 1e12,                                                         \
     "KV blocks that requests of a server can use (as its file says)"},                                                \
    {"token-budget", "N", FL_OPTION_INT, &(c).token_budget, 1, 1e9,                                                    \
     "tokens of one step of a server, at most (as its file says)"},                                                    \
    {"route", "HOW", FL_OPTION_TEXT, &(c).route, 0, 0,                                                                 \
     "which server gets a request: round-robin or least-loaded (round-robin)"},                                        \
    {"ttft", "TIME", FL_OPTION_TEXT, &(c).ttft, 0, 0, "target of the time to first token, such as 2s (none)"},         \
    {"tbt", "TIME", FL_OPTION_TEXT, &(c).tbt, 0, 0, "target of the time between tokens, such as 100ms (none)"},        \
    {"target-share", "X", FL_OPTION_REAL, &(c).target_share, 1e-6, 1,                                                  \
     "of all tokens that are to meet the targets (" FL_AS_TEXT(FL_TARGET_SHARE) ")"}
/* clang-format on */
