/* What the files of sim/pipeline share: the builder of workloads (build.c, places.c: where each instruction's ops
 * stand, and the classes of each rank), and the parts of the planner (dual.c, round.c, plan.c). */
#pragma once

#include "models/laws/device.h"
#include "sim/pipeline/pipeline.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Refuse a pipeline whose ranks wait for each other for ever; the message names them. */
fl_status fl_pipe_check_waits(const fl_pipe_builder *b);

/* Seconds and joules of an iteration whose parts have these clocks: places in their tables, part_count. length_s and
 * end_s: room for all ops, filled. */
double fl_plan_time(const fl_plan_program *g, const uint32_t *at, double *length_s, double *end_s);
double fl_plan_energy(const fl_plan_program *g, const uint32_t *at, double time_s);

fl_status fl_plan_dual_new(fl_plan_dual *s, const fl_plan_program *g, fl_diag *d);
void fl_plan_dual_free(fl_plan_dual *s);

/* price: lambda. Goes on from the flow that the
 * solver has, so prices are best asked for in their order. *line and s->mean are filled. */
void fl_plan_dual_solve(fl_plan_dual *s, double price, fl_plan_line *line);

fl_status fl_plan_round_new(fl_plan_round *r, const fl_plan_program *g, fl_diag *d);
void fl_plan_round_free(fl_plan_round *r);

/* mean_s: by part, none below the fastest of its table. limit_s: what the plan may take; it is raised to what the
 * lengths take. corners: step 1 takes only clocks that are corners of the hull, which are the cheapest to mix; better
 * where the others lie well above it, worse where the corners lie far apart. at: places in the tables, filled. Returns
 * the seconds that the plan takes. */
double fl_plan_round_off(fl_plan_round *r, const double *mean_s, double limit_s, bool corners, uint32_t *at);

/* Step 2 alone, from a plan that is there: `at`, places in the tables, becomes a plan that takes at most limit_s, or
 * what the plan took, whichever is more, and whose parts cost no more each. Returns the seconds that it takes. */
double fl_plan_round_fill(fl_plan_round *r, double limit_s, uint32_t *at);

fl_status fl_plan_polish_new(fl_plan_polish *p, const fl_plan_program *g, fl_diag *d);
void fl_plan_polish_free(fl_plan_polish *p);

/* at: places in the tables of a plan that takes *time_s <= limit_s and *energy_j; all three become those of the best
 * plan found, which takes no longer than limit_s. r: scratch of the same program. */
void fl_plan_polish_plan(fl_plan_polish *p, fl_plan_round *r, double limit_s, uint32_t *at, double *time_s,
                         double *energy_j);

/* A plan for each clock of the ladder of rank 0. The caller frees *same. */
fl_status fl_plan_all_same(const fl_plan_program *g, fl_plan_same **same, size_t *count, fl_diag *d);
/* All ranks at one clock, as fl_plan_at_clocks has it. */
void fl_plan_at_clock(const fl_plan_program *g, int32_t mhz, uint32_t *at);
