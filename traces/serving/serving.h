/* Serving files: one server of language models. Which model on which GPU, the limits of its scheduler, and the law by
 * which its steps take time and load the GPU (models/laws/step_law.h).
 *
 * Head "# foldline-serving 1" and keys:
 *   model, gpu       texts for people
 *   max_seqs, token_budget, block_tokens
 *                    requests that run at once, tokens of one step, tokens of one KV block; must be stated
 *   tensor_parallel  GPUs that compute each step together (1)
 *   kv_blocks        KV blocks that requests can use (0: not known, to be stated where the file is used)
 *   max_model_len    tokens of prompt and output together (0: no limit but the KV cache)
 *   chunked_prefill, prefix_cache, async_scheduling
 *                    yes or no (yes)
 *   fitted           what the law was fitted to
 *   source           where the measurements come from
 * and any other. Columns what,at,kv,value. A row is one of
 *   a number of the law              at and kv empty
 *   by_tokens, by_sequence           a point of a table: at = tokens or sequences; kv empty; value in seconds
 *   by_decodes, by_decodes_beside    a point of a grid: at = decodes; kv = tokens of KV of each; value in seconds
 *   by_chunk                         the same: at = tokens of a prompt chunk; kv = those before it
 *   clock                            at which steps were measured: at and kv empty; value in MHz
 * Points and clocks ascend; those of a grid by `at`, then by `kv`. Numbers that have no row have their standard. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

/* name, standard value, least value, largest; each as the member of fl_step_law of that name. NAN: not known. */
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
    X(graph_tokens, 0, 0, 1e6)

#define FL_ROW_SERVING_NUMBER(name, standard, least, most) FL_SERVING_##name,
typedef enum fl_serving_what {
    FL_SERVING_NUMBERS_ALL(FL_ROW_SERVING_NUMBER) FL_SERVING_NUMBERS,
    FL_SERVING_BY_TOKENS = FL_SERVING_NUMBERS,
    FL_SERVING_BY_SEQUENCE,
    FL_SERVING_BY_DECODES,
    FL_SERVING_BY_DECODES_BESIDE,
    FL_SERVING_BY_CHUNK,
    FL_SERVING_CLOCK,
    FL_SERVING_WHATS
} fl_serving_what;
extern const char *const fl_serving_what_name[FL_SERVING_WHATS];

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
/* Writes to `path` through a temporary file and a rename; the limits go to the head in place of what it says of them.
 */
fl_status fl_serving_write(const char *path, fl_serving *s, fl_diag *d);
void fl_serving_free(fl_serving *s);

/* Building one in memory: every number its standard, the limits vLLM's defaults (256 sequences, 2048 tokens, blocks of
 * 16, chunked prefill, prefix cache), KV blocks not known. */
void fl_serving_init(fl_serving *s);
/* A further point, behind the last. FL_NO_MEMORY. */
fl_status fl_serving_add_point(fl_serving_points *p, double at, double kv, double value, fl_diag *d);
