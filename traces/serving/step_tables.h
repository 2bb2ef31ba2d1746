/* Measured times of serving engines, from which their laws are fitted. Plain CSV files with one header line; lines that
 * begin with '#' are comments. Columns may stand in any order.
 *
 * Layer tables: times of the kernels of one block of a model, at one clock. Three files:
 *   layer,tokens,time_us         matrix products and pointwise layers by the tokens of a step
 *   layer,sequences,time_us      output head and sampler by its sequences
 *   prefill_chunk,kv_prefill,n_decode,kv_decode,time_us
 *                                attention of a prompt chunk of so many tokens over so much earlier KV of its request,
 *                                together with n_decode sequences of kv_decode tokens each (0,0: no such part)
 * Step tables: times and board powers of whole steps over clocks:
 *   phase,sm_mhz,batch,tokens,context_tokens,time_s,power_w
 *                                phase prefill: one prompt of `tokens` tokens; decode: one step for `batch` sequences
 * of context_tokens tokens of KV each. power_w may be missing. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

typedef struct fl_layer_row {
    uint32_t layer; /* index into names */
    double at;      /* tokens or sequences */
    double time_s;
    int64_t line; /* of the file */
} fl_layer_row;

typedef struct fl_layers { /* rows of a layer stand together, ascending in `at` */
    char **names;
    size_t name_count, name_room;
    fl_layer_row *row;
    size_t count, room;
} fl_layers;

/* Fill *l or leave it zeroed; by: "tokens" or "sequences". Refuse two rows of one layer and number. */
fl_status fl_layers_read(const char *path, const char *by, fl_layers *l, fl_diag *d);
void fl_layers_free(fl_layers *l);
/* Rows of a layer: first and *count; NULL where it has none. */
const fl_layer_row *fl_layers_find(const fl_layers *l, const char *name, size_t *count);

typedef struct fl_attention_row {
    double chunk, kv_chunk, decodes, kv_decode, time_s;
} fl_attention_row;

typedef struct fl_attention {
    fl_attention_row *row; /* in the file's order */
    size_t count, room;
} fl_attention;

fl_status fl_attention_read(const char *path, fl_attention *a, fl_diag *d);
void fl_attention_free(fl_attention *a);

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

fl_status fl_step_rows_read(const char *path, fl_step_rows *r, fl_diag *d);
void fl_step_rows_free(fl_step_rows *r);
