/* Files about servers of language models: serving files (one server and its law), arrivals, request traces, and
 * measured tables to which laws are fitted.
 *
 * Each has a _read that fills a struct or leaves it zeroed, with file, line and column in its refusals; the caller
 * frees by its _free. Serving files and request traces can be written too.
 *
 * harness/manual/formats/serving.md specifies each file.
 *
 * A server with replicas above 1 is so many engines of tensor_parallel GPUs each, which step together (data parallel).
 * kv_bytes is the KV cache of a token, of all GPUs of a server (0: not known). */
#pragma once

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- arrival files ----
 *
 * The times at which requests reach a server, whether or not the server is free (an open loop). */

typedef struct fl_arrivals {
    fl_head head;
    int64_t *t_ns; /* count */
    size_t count, room;
} fl_arrivals;

/* Fills *a or leaves it zeroed. */
fl_status fl_arrivals_read(const char *path, fl_arrivals *a, fl_diag *d);
void fl_arrivals_free(fl_arrivals *a);

/* ---- request traces ----
 *
 * The requests to a server of language models and their times (an open loop: requests come whether or not the server is
 * free). */

#define FL_REQUEST_TOKENS_MOST 16777216       /* in a prompt, or in an output: 2^24 */
#define FL_REQUESTS_MOST UINT32_C(0x7fffffff) /* rows of a trace */

typedef struct fl_request_row {
    int64_t t_ns;                          /* arrival, at most 26 days */
    uint32_t prompt_tokens, output_tokens; /* at least 1 each */
    /* Leading tokens of the prompt that an earlier prompt of the trace began with too. A server with a prefix cache
     * need not compute them again while they are in its cache. At most prompt_tokens; 0 = none, or not known. */
    uint32_t cached_tokens;
    uint32_t model, class; /* indices into names; names[0] is the empty string: not stated */
    uint32_t line, column; /* of prompt_tokens in the file, for diagnostics; 0 = of no file */
} fl_request_row;

/* Times of a request in a measured run: nanoseconds on the clock of t_ns; INT64_MIN = not known. Known ones ascend.
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

/* Fills *r or leaves it zeroed. A row without tokens has no value; rows contradict that are out of order, or state more
 * cached tokens than the prompt has. left: counts the rows that were left out; NULL: refuse at the first
 * (traces/io/io.h).
 */
fl_status fl_requests_read(const char *path, fl_requests *r, fl_left_out *left, fl_diag *d);
/* Leave out the requests whose times are out of order. For readers. */
fl_status fl_requests_order(fl_requests *r, fl_left_out *left, fl_diag *d);

/* Optional columns only where a row has such a value. */
fl_status fl_requests_write(const char *path, const fl_requests *r, fl_diag *d);
void fl_requests_free(fl_requests *r);

/* Append a row at or after the last one's time. FL_NO_MEMORY, or FL_BAD_INPUT where there are
 * FL_REQUESTS_MOST. */
fl_status fl_requests_add(fl_requests *r, const fl_request_row *row, fl_diag *d);

/* Return when a request arrives if the rate of arrivals is `scale` times the recorded one (> 0): t_ns / scale, rounded
 * to the nearest nanosecond; ascending with t_ns, and t_ns itself where scale is 1. INT64_MAX where it would be later.
 */
int64_t fl_requests_scaled_ns(int64_t t_ns, double scale);

/* ---- serving files ---- */

#define FL_EXPERTS_MOST 4096 /* of a block of a model */

/* name, default, least value, largest; each is the member of fl_step_law of that name. NAN: not known. */
#define FL_SERVING_NUMBERS_ALL(X)                                                                                      \
    X(host_s, 0, 0, 1e3)                                                                                               \
    X(host_sequence_s, 0, 0, 1e3)                                                                                      \
    X(token, 0, 0, 1e3)                                                                                                \
    X(sequence, 0, 0, 1e3)                                                                                             \
    X(weights_s, 0, 0, 1e3)                                                                                            \
    X(weights_clock, 0, 0, 1e3)                                                                                        \
    X(pair, 0, 0, 1e3)                                                                                                 \
    X(chunk_key, 0, 0, 1e3)                                                                                            \
    X(kv_s, 0, 0, 1e3)                                                                                                 \
    X(kv_clock, 0, 0, 1e3)                                                                                             \
    X(decode, 0, 0, 1e3)                                                                                               \
    X(kv_beside_s, 0, 0, 1e3)                                                                                          \
    X(decode_beside, 0, 0, 1e3)                                                                                        \
    X(beside_token, 0, 0, 1e3)                                                                                         \
    X(sharpness, 1, 1, 100)                                                                                            \
    X(attention_sharpness, 1, 1, 100)                                                                                  \
    X(reduces, 0, 0, 1e6)                                                                                              \
    X(reduce_s, 0, 0, 1e3)                                                                                             \
    X(reduce_token_s, 0, 0, 1e3)                                                                                       \
    X(ref_sm_mhz, 0, 0, 1e5)                                                                                           \
    X(ref_mem_mhz, 0, 0, 1e5)                                                                                          \
    X(time_error, -1, -1, 1e3)                                                                                         \
    X(power_error, -1, -1, 1e3)                                                                                        \
    X(sm_load, 1, 0, 1e3)                                                                                              \
    X(memory_load, 1, 0, 1e3)                                                                                          \
    X(graph_tokens, 0, 0, 1e6)                                                                                         \
    X(experts, 0, 0, FL_EXPERTS_MOST)                                                                                  \
    X(top_k, 0, 0, FL_EXPERTS_MOST)                                                                                    \
    X(expert_ranks, 1, 1, FL_EXPERTS_MOST)                                                                             \
    X(expert_slices, 1, 1, FL_EXPERTS_MOST)                                                                            \
    X(expert_floor_s, 0, 0, 1e3)                                                                                       \
    X(expert_s, 0, 0, 1e3)                                                                                             \
    X(expert_clock, 0, 0, 1e3)                                                                                         \
    X(expert_token, 0, 0, 1e3)                                                                                         \
    X(expert_sharpness, 1, 1, 100)                                                                                     \
    X(expert_load, 0, 0, 1e3)                                                                                          \
    X(expert_skew, 0, 0, 10)                                                                                           \
    X(expert_seed, 1, 1, 1e9)                                                                                          \
    X(kv_bytes, 0, 0, 1e9)                                                                                             \
    X(replicas, 1, 1, FL_SERVING_GPUS_MAX)                                                                             \
    X(exchanges, 0, 0, 1e6)                                                                                            \
    X(exchange_s, 0, 0, 1e3)                                                                                           \
    X(exchange_token_s, 0, 0, 1e3)

#define FL_ROW_SERVING_NUMBER(name, standard, least, most) FL_SERVING_##name,
typedef enum fl_serving_what {
    FL_SERVING_NUMBERS_ALL(FL_ROW_SERVING_NUMBER) FL_SERVING_NUMBERS,
    FL_SERVING_BY_TOKENS = FL_SERVING_NUMBERS,
    FL_SERVING_BY_SEQUENCE,
    FL_SERVING_BY_DECODES,
    FL_SERVING_BY_DECODES_BESIDE,
    FL_SERVING_BY_CHUNK,
    FL_SERVING_BY_EXPERTS,
    FL_SERVING_CLOCK,
    FL_SERVING_WHATS
} fl_serving_what;

enum { FL_SERVING_GPUS_MAX = 1024, FL_SERVING_CLOCKS_MAX = 64, FL_SERVING_POINTS_MAX = 65536 };

typedef struct fl_serving_points {
    double *at, *kv, *value; /* kv: 0 in a table */
    size_t count, at_room, kv_room, value_room;
} fl_serving_points;

enum { FL_SERVING_TABLES = FL_SERVING_CLOCK - FL_SERVING_NUMBERS };

typedef struct fl_serving {
    fl_head head;
    char *file; /* as diagnostics name it; NULL = of no file */
    uint32_t tensor_parallel, max_seqs, token_budget, block_tokens;
    uint64_t kv_blocks, max_model_len;
    bool chunked_prefill, prefix_cache;
    bool async_scheduling; /* a step is composed when the one before begins */
    double number[FL_SERVING_NUMBERS];
    fl_serving_points table[FL_SERVING_TABLES]; /* in the order of fl_serving_what */
    double sm_mhz[FL_SERVING_CLOCKS_MAX];       /* clocks measured */
    uint32_t sm_count;
} fl_serving;

/* Fills *s or leaves it zeroed. Refuses, with line and column, unknown names, values out of range, a number that stands
 * twice, points that do not ascend, and a head without its limits. */
fl_status fl_serving_read(const char *path, fl_serving *s, fl_diag *d);
/* Write to `path` through a temporary file and a rename. The limits replace their keys in the head. */
fl_status fl_serving_write(const char *path, fl_serving *s, fl_diag *d);
void fl_serving_free(fl_serving *s);

/* Start a serving in memory: every number has its default, the limits are vLLM's defaults (256 sequences, 2048 tokens,
 * blocks of 16, chunked prefill, prefix cache), KV blocks not known. */
void fl_serving_init(fl_serving *s);
/* Append a point. FL_NO_MEMORY. */
fl_status fl_serving_add_point(fl_serving_points *p, double at, double kv, double value, fl_diag *d);

/* ---- measured times of serving engines, to which laws are fitted ----
 *
 * Plain CSV files with one header line; lines that
 * begin with '#' are comments. Columns may stand in any order.
 *
 * Layer tables: times of the kernels of one block of a model. They may have two more columns: sm_mhz, the SM clock of
 * the row, and power_w, the board's power meanwhile.
 *   layer,tokens,time_us         matrix products and pointwise layers by the tokens of a step
 *   layer,sequences,time_us      output head and sampler by its sequences
 *   prefill_chunk,kv_prefill,n_decode,kv_decode,time_us
 *                                attention of a prompt chunk of so many tokens over so much earlier KV of its request,
 *                                together with n_decode sequences of kv_decode tokens each (0,0: no such part)
 * A model with a mixture of experts has a fourth:
 *   tokens,activated_experts,time_us   the experts of a block, for so many tokens that touch so many of them
 * Step tables: times and board powers of whole steps over clocks:
 *   phase,sm_mhz,batch,tokens,context_tokens,time_s,power_w
 *                                phase prefill: one prompt of `tokens` tokens; decode: one step for `batch` sequences
 * of context_tokens tokens of KV each. power_w may be missing. */

typedef struct fl_layer_row {
    uint32_t layer; /* index into names */
    double at;      /* tokens or sequences */
    double time_s;
    double sm_mhz, power_w; /* 0, and NAN: not known */
    int64_t line;           /* of the file */
} fl_layer_row;

typedef struct fl_layers { /* rows of a layer stand together, ascending in sm_mhz, then in `at` */
    char **names;
    size_t name_count, name_room;
    fl_layer_row *row;
    size_t count, room;
} fl_layers;

/* Fill *l or leave it zeroed; by: "tokens" or "sequences". Refuse two rows of one layer, clock and number. left, here
 * and below: counts the rows that were left out; NULL: refuse at the first (traces/io/io.h). */
fl_status fl_layers_read(const char *path, const char *by, fl_layers *l, fl_left_out *left, fl_diag *d);
void fl_layers_free(fl_layers *l);
/* Rows of a layer: first and *count; NULL where it has none. */
const fl_layer_row *fl_layers_find(const fl_layers *l, const char *name, size_t *count);

typedef struct fl_attention_row {
    double chunk, kv_chunk, decodes, kv_decode, time_s;
    double sm_mhz, power_w; /* 0, and NAN: not known */
} fl_attention_row;

typedef struct fl_attention {
    fl_attention_row *row; /* in the file's order */
    size_t count, room;
} fl_attention;

fl_status fl_attention_read(const char *path, fl_attention *a, fl_left_out *left, fl_diag *d);
void fl_attention_free(fl_attention *a);

typedef struct fl_expert_row {
    double tokens, experts, time_s;
    double sm_mhz, power_w; /* 0, and NAN: not known */
} fl_expert_row;

typedef struct fl_expert_rows { /* ascending by clock, tokens and experts */
    fl_expert_row *row;
    size_t count, room;
} fl_expert_rows;

fl_status fl_expert_rows_read(const char *path, fl_expert_rows *r, fl_left_out *left, fl_diag *d);
void fl_expert_rows_free(fl_expert_rows *r);

typedef struct fl_step_row_measured {
    bool prefill;
    double sm_mhz, batch, tokens, context, time_s;
    double power_w; /* NAN = not known */
    int64_t line;
} fl_step_row_measured;

typedef struct fl_step_rows {
    fl_step_row_measured *row; /* in the file's order */
    size_t count, room;
} fl_step_rows;

fl_status fl_step_rows_read(const char *path, fl_step_rows *r, fl_left_out *left, fl_diag *d);
void fl_step_rows_free(fl_step_rows *r);
