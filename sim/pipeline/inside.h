/* What the files share that make a workload of a pipeline: where each instruction's ops stand, the classes of each
 * rank, and the builder itself. */
#pragma once

#include "sim/node/node.h"
#include "sim/pipeline/pipeline.h"

enum { FL_PIPE_NOWHERE = -1, FL_PIPE_DIRECTIONS = 2 };
enum { FL_PIPE_ACT, FL_PIPE_GRAD }; /* directions */

typedef struct fl_pipe_place { /* an instruction of a stage */
    int64_t op;                /* its op: how many ops of the stage come before it in one iteration; FL_PIPE_NOWHERE */
    size_t item;
} fl_pipe_place;

typedef struct fl_pipe_classes {
    uint32_t *forward, *backward; /* by chunk */
    uint32_t transfer, load, marker, first_fixed;
} fl_pipe_classes;

typedef struct fl_pipe_fixed { /* of a plan: a part at its clock */
    fl_pipeline_what what;
    int32_t chunk;
    double mhz, seconds;
} fl_pipe_fixed;

typedef struct fl_pipe_builder {
    const fl_pipeline *p;
    const fl_pipeline_order *o;
    const fl_node_spec *node;
    fl_workload *w;
    fl_pipe_place *sender[FL_PIPE_DIRECTIONS], *receiver[FL_PIPE_DIRECTIONS]; /* by place_of */
    fl_pipe_place **item; /* by stage, then instruction: where its first op stands */
    int64_t *ops;         /* by stage: in one iteration */
    double
        *flat_s[FL_PIPELINE_WHATS]; /* by rank and chunk: what fl_pipe_seconds_of says; NULL where nothing is stated */
    fl_pipe_classes *class;         /* by rank */
    bool eager;                     /* sends do not block */
    const fl_pipeline_clocks *clocks;
    fl_pipe_fixed *fixed; /* by class; those of a rank follow its others */
    size_t fixed_room;
    fl_pipeline_op *op; /* of all streams */
    size_t op_count, op_room;
    fl_diag *d;
} fl_pipe_builder;

/* ---- pipeline_places.c ---- */

bool fl_pipe_sends(fl_instruction_type t, int direction);
bool fl_pipe_receives(fl_instruction_type t, int direction);
bool fl_pipe_is_pair(fl_instruction_type t);
/* Looks up the times that do not follow the clock once, for every instruction asks for one. */
fl_status fl_pipe_find_flat(fl_pipe_builder *b);
/* Seconds that a rank's row states of something that does not follow the clock; 0 where there is none. */
double fl_pipe_seconds_of(const fl_pipe_builder *b, uint32_t rank, int32_t chunk, fl_pipeline_what what);
/* Some rank of the stage fetches its input while it receives. */
bool fl_pipe_loads_in_recv(const fl_pipe_builder *b, uint32_t stage);
/* Fills item, ops, sender and receiver. FL_BAD_INPUT where a transfer is named twice or has no other end. */
fl_status fl_pipe_find_places(fl_pipe_builder *b);
/* The instruction at the other end of a transfer, and its stage. FL_BAD_INPUT where there is none. */
fl_status fl_pipe_find_peer(const fl_pipe_builder *b, uint32_t stage, size_t item, int direction, bool sent,
                            uint32_t *peer, fl_pipe_place *place);
/* FL_BAD_INPUT: what is wrong with an instruction. */
fl_status fl_pipe_wrong(const fl_pipe_builder *b, uint32_t stage, size_t item, const char *what);

/* ---- pipeline_classes.c ---- */

fl_status fl_pipe_add_rank_classes(fl_pipe_builder *b, uint32_t rank);
/* The class of a forward or backward, and its length at the class's reference: that of the clock in force, or of the
 * clock that is asked for. */
fl_status fl_pipe_find_class(fl_pipe_builder *b, uint32_t rank, const fl_instruction *i, uint32_t *id, double *seconds);

/* ---- pipeline_stuck.c ---- */

/* FL_BAD_INPUT where ranks wait for each other for ever: says who for whom. */
fl_status fl_pipe_check_waits(const fl_pipe_builder *b);
