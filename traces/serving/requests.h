/* Request traces: what was asked of a server of language models, and when (an open loop: requests come whether it has
 * time for them or not).
 *
 * Head "# foldline-requests 1"; keys: source. Columns t_ns,prompt_tokens,output_tokens, and optionally
 * model,class,cached_tokens and the times of a measured run, queued_ns,scheduled_ns,first_token_ns,last_token_ns. Rows
 * ascend in time from 0 on; equal times are requests that arrive together, taken in the order of their rows. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

#include <stdint.h>

#define FL_REQUEST_TOKENS_MOST 16777216       /* in a prompt, or in an output: 2^24 */
#define FL_REQUESTS_MOST UINT32_C(0x7fffffff) /* rows of a trace */

typedef struct fl_request_row {
    int64_t t_ns;                          /* arrival, at most 26 days */
    uint32_t prompt_tokens, output_tokens; /* at least 1 each */
    /* Of the prompt's first tokens, those with which an earlier prompt of the trace began too: a server with a prefix
     * cache need not compute them again while they are in its cache. At most prompt_tokens; 0 = none, or not known. */
    uint32_t cached_tokens;
    uint32_t model, class; /* indices into names; names[0] is the empty string: not stated */
    uint32_t line, column; /* of prompt_tokens in the file, for diagnostics; 0 = of no file */
} fl_request_row;

/* What a measured run tells of a request: nanoseconds on the clock of t_ns; INT64_MIN = not known. Known ones ascend.
 */
typedef struct fl_request_times {
    int64_t queued_ns;      /* taken into the engine's queue */
    int64_t scheduled_ns;   /* first time in a step */
    int64_t first_token_ns; /* its first output token left the engine */
    int64_t last_token_ns;
} fl_request_times;

typedef struct fl_requests {
    fl_head head;
    char *file; /* as diagnostics name it; NULL = of no file */
    fl_request_row *row;
    size_t count, room;
    fl_request_times *times; /* count; NULL = the trace has no such column */
    size_t times_room;
    char **names; /* of models and classes; names[0] = "" */
    size_t name_count, name_room;
} fl_requests;

/* Fills *r or leaves it zeroed. Refuses rows out of order, zero tokens, more cached tokens than the prompt has. */
fl_status fl_requests_read(const char *path, fl_requests *r, fl_diag *d);
/* The trace of Azure's LLM inference data set (2023: TIMESTAMP,ContextTokens,GeneratedTokens; the time as a UTC date,
 * of which the first becomes 0). Rows without prompt or output tokens have no step to be simulated: they are left out, and
 * *left_out (may be NULL) counts them. */
fl_status fl_requests_read_azure(const char *path, fl_requests *r, size_t *left_out, fl_diag *d);
/* Optional columns only where a row has such a value. */
fl_status fl_requests_write(const char *path, const fl_requests *r, fl_diag *d);
void fl_requests_free(fl_requests *r);

/* For who makes requests: appends a row at or after the last one's time. FL_NO_MEMORY, or FL_BAD_INPUT where there are
 * FL_REQUESTS_MOST. */
fl_status fl_requests_add(fl_requests *r, const fl_request_row *row, fl_diag *d);

/* When a request arrives if the rate of arrivals is `scale` times the recorded one (> 0): t_ns / scale, rounded to the
 * nearest nanosecond; ascending with t_ns, and t_ns itself where scale is 1. INT64_MAX where it would be later. */
int64_t fl_requests_scaled_ns(int64_t t_ns, double scale);
