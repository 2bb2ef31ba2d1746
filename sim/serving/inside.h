/* Servers in execution. Internal to sim/. */
#pragma once

#include "sim/gpu/gpu.h"
#include "sim/serving/served.h"

typedef struct fl_step_rank { /* one GPU of a server in the step in progress */
    fl_gpu *g;
    int64_t alone_ps;         /* how long its share of the step takes at its clocks */
    double compute, memory;   /* shares of that time */
    int32_t sm_mw, memory_mw; /* above the base, at the pace of the slowest rank */
    int64_t active_memory;    /* memory controller active, in 1/32768 */
    int64_t active_alu;       /* ALUs, likewise */
} fl_step_rank;

typedef struct fl_tbt_run { /* tokens that came equally long after the ones before, at one instant */
    int64_t end_ps, tbt_ps;
    uint32_t count;
} fl_tbt_run;

typedef struct fl_engine { /* one server */
    const fl_serving_server *s;
    uint32_t index;
    fl_batching *batching;
    fl_step_rank *rank; /* s->gpu_count */
    bool busy;          /* a step is in progress */
    bool lost;          /* a GPU of it fell off the bus: what it has will never be done */

    /* the step in progress */
    fl_step_shape shape;
    int64_t length_ps; /* whole, at the clocks in force */
    int64_t begin_ps, end_ps, charged_ps;
    fl_wide step_fj; /* up to charged_ps, of all ranks */

    /* A row of steps of the same decodes: what they came to is added to the requests when it ends. */
    uint32_t *member;   /* rules.max_seqs */
    uint32_t members;   /* that all got a token at row_ps; 0 = no such row */
    uint64_t row_steps; /* not yet settled */
    int64_t row_ps, row_worst_ps;
    fl_wide row_fj; /* of each member */
    uint32_t row_missed;
    fl_wide carry_fj; /* less than one femtojoule per sequence of the last decodes: for the next ones */
    uint32_t last;    /* request that finished last; FL_NONE = none yet */

    /* since the start */
    uint64_t arrived, finished, steps, tokens, computed;
    uint64_t prompt_tokens, cached_tokens; /* of requests that have put out a token */
    uint64_t ttft_count, tbt_count, ttft_missed, tbt_missed;
    fl_wide ttft_sum_ps, tbt_sum_ps, steps_fj;
    fl_tbt_run *tbt; /* tbt_runs, in the order of time */
    size_t tbt_runs, tbt_room;
    uint32_t *first; /* requests in the order of their first tokens: ttft_count */
    size_t first_room;
    size_t oldest;  /* in `mine`: all before it have put out a token */
    uint32_t *mine; /* requests in the order of arrival: arrived */
    size_t mine_room;
    size_t handed;                     /* of them, those that the scheduler has */
    int64_t ended_ps;                  /* the last step */
    struct fl_engine_signals *signals; /* NULL: nobody reads them */
} fl_engine;

typedef struct fl_engines {
    const fl_serving_setup *u;
    fl_engine *engine; /* u->server_count */
    fl_served *served; /* by request */
    int64_t *last_ps;  /* by request: its last token, as of the row that it is in */
    size_t next;       /* request that arrives next */
    int64_t next_ps;
    uint64_t finished;       /* requests, of all servers */
    int64_t ttft_ps, tbt_ps; /* targets; FL_TIME_NEVER = none */
    bool records;            /* of batches: somebody asks for them */
    fl_batch_record *batch;
    size_t batch_count, batch_room;
    int64_t signals_ps; /* their period; 0 = as they are */
    int64_t tell_ps;    /* when the servers tell them next; FL_TIME_NEVER = never */
    fl_status status;   /* what went wrong while it advanced */
    fl_model_status model;
} fl_engines;

/* ---- serving_rows.c: length and power of the step in progress ---- */

/* At the clocks in force. False where the law gives no length: v->status says why. */
bool fl_step_pace(fl_engines *v, fl_engine *e);
/* How long a step of this shape would take, at the clocks of the first rank. */
int64_t fl_step_alone_ps(const fl_engine *e, const fl_step_shape *shape);
/* Power above the base of one rank if its SM clock, with these rates, were another; < 0 = not known. */
int64_t fl_step_predict_mw(const fl_engine *e, const fl_step_rank *r, uint32_t sm, const fl_clock_rates *rates);

/* What the server has, counting those too whom the scheduler has yet to be told of. */
static inline fl_batching_counts fl_engine_count(const fl_engine *e) {
    fl_batching_counts c = fl_batching_count(e->batching);
    c.arrived += e->arrived - e->handed;
    c.waiting += (uint32_t)(e->arrived - e->handed);
    return c;
}

/* ---- serving_account.c: whose tokens and energy a step's are ---- */

/* The step has been composed: who is in it for the first time. */
void fl_step_taken(fl_engines *v, fl_engine *e);
/* It has ended at e->end_ps, up to which it is charged. Before fl_batching_end. */
void fl_step_account(fl_engines *v, fl_engine *e);
/* What the row in progress came to goes to its members. */
void fl_step_settle(fl_engines *v, fl_engine *e);
