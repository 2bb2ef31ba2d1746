/* The law of a server's steps from layer tables: kernel times of one block, measured at one clock. */
#pragma once

#include "harness/serving/score.h"
#include "models/laws/step_law.h"
#include "traces/serving/serving.h"
#include "traces/serving/step_tables.h"

/* One all-reduce of tensor parallel ranks, where nobody measured it: two RTX PRO 6000 on PCIe, 100 us and 0.4 us a
 * token (a prototype of this simulator beside a measured vLLM run; without it a step was 36 % too short). Ranks joined
 * by NVLink take less. */
#define FL_SERVING_REDUCE_US 100
#define FL_SERVING_REDUCE_TOKEN_US 0.4
/* What a step takes beside its layers, where nobody measured it: an engine prepares its input (tokens, positions, slots
 * and block tables are copied and gathered) and hands on what it sampled, some twenty small kernels and copies of 10 us
 * each that no layer table has. All else of the host's work runs beside the step before (asynchronous scheduling). */
#define FL_SERVING_HOST_US 200

typedef struct fl_serving_layers {
    fl_layers dense, per_sequence;
    fl_attention attention;
    uint32_t blocks; /* of the model: 32 for an 8B Llama */
    bool graphs;     /* the engine runs captured CUDA graphs, whose sizes are padded */
    double sm_mhz;   /* at which they were measured */
    double host_s;
    double reduce_s, reduce_token_s; /* of one all-reduce; for tensor_parallel > 1 */
} fl_serving_layers;

/* Fits a law for the server *s, whose limits bound what is looked at: steps that it cannot run are left out. *law is to
 * be freed. `left_out`: how well a law predicts the steps of a number of decodes that it has not seen, each such number
 * left out in turn; steps as they are made of the tables by adding their layers. FL_BAD_INPUT where tables lack what
 * the law needs. */
fl_status fl_serving_layers_fit(const fl_serving_layers *t, const fl_serving *s, fl_step_law *law,
                                fl_serving_errors *left_out, fl_diag *d);
