/* What each stage of a pipeline does in one iteration, instruction by instruction. */
#pragma once

#include "traces/pipeline/pipeline.h"

/* An activation goes from stage s to s + 1, a gradient back. A pair (send one, receive the other) is one instruction
 * that ends when both transfers have. */
#define FL_INSTRUCTIONS(X)                                                                                             \
    X(LOAD, load)                                                                                                      \
    X(FORWARD, forward)                                                                                                \
    X(BACKWARD, backward)                                                                                              \
    X(SEND_ACT, send_act)                                                                                              \
    X(RECV_ACT, recv_act)                                                                                              \
    X(SEND_GRAD, send_grad)                                                                                            \
    X(RECV_GRAD, recv_grad)                                                                                            \
    X(SEND_ACT_RECV_GRAD, send_act_recv_grad)                                                                          \
    X(SEND_GRAD_RECV_ACT, send_grad_recv_act)                                                                          \
    X(REDUCE_TIED, reduce_tied)                                                                                        \
    X(REDUCE_DATA, reduce_data)                                                                                        \
    X(STEP, step)

#define FL_ROW_INSTRUCTION(id, name) FL_DO_##id,
typedef enum fl_instruction_type { FL_INSTRUCTIONS(FL_ROW_INSTRUCTION) FL_INSTRUCTION_TYPES } fl_instruction_type;
extern const char *const fl_instruction_name[FL_INSTRUCTION_TYPES];

typedef struct fl_instruction {
    fl_instruction_type type;
    int32_t microbatch, microbatch2; /* of a pair: the one sent, the one received; -1: none */
    int32_t chunk;
} fl_instruction;

typedef struct fl_pipeline_list {
    fl_instruction *item;
    size_t count, room;
} fl_pipeline_list;

typedef struct fl_pipeline_order {
    fl_pipeline_list *stage; /* stages */
    uint32_t stages;
} fl_pipeline_order;

/* A CSV file without a commented head: stage,index,instruction,microbatch,microbatch2; the index of a stage counts from
 * 0 on. Fills *o for `stages` stages and microbatches below `microbatches`, or leaves it zeroed. What the instructions
 * mean together is not looked at here. */
fl_status fl_pipeline_order_read(const char *path, uint32_t stages, uint32_t microbatches, fl_pipeline_order *o,
                                 fl_diag *d);
/* How many stages such a file has. */
fl_status fl_pipeline_order_stages(const char *path, uint32_t *stages, fl_diag *d);
bool fl_pipeline_order_same(const fl_pipeline_order *x, const fl_pipeline_order *y);
fl_status fl_pipeline_order_new(fl_pipeline_order *o, uint32_t stages, fl_diag *d);
fl_status fl_pipeline_order_add(fl_pipeline_order *o, uint32_t stage, fl_instruction item, fl_diag *d);
void fl_pipeline_order_free(fl_pipeline_order *o);
