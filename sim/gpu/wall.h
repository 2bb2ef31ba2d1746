/* The power wall of one board: a controller with a period, a filter and a step. While filtered power exceeds the limit
 * it lowers the SM clock below the requested one; afterwards it raises the clock again. It sleeps while no work that
 * could run at the present clocks can reach the limit. */
#pragma once

#include "sim/gpu/gpu.h"

/* Power in mW of the board at another SM clock, with its present work; < 0 where that is not known. */
typedef int64_t (*fl_wall_predict)(void *user, uint32_t sm);

typedef struct fl_wall {
    const fl_wall_spec *spec;
    int64_t period_ps, next_ps; /* next_ps: FL_TIME_NEVER while it sleeps */
    int64_t limit_mw;           /* the limit in force: the smaller of the next two */
    int64_t set_mw, dealt_mw;   /* set by software or the board; dealt from a budget of the node, INT64_MAX = none */
    int64_t default_mw;
    double keep;                     /* share of the old filtered power that remains after one period */
    double filtered_mw, ceiling_mhz; /* ceiling: meaningful while it acts */
    bool over, acts;
    fl_wide seen_fj;
    int64_t seen_ps;
} fl_wall;

/* A board without a controller or without a limit has a wall that always sleeps. */
void fl_wall_open(fl_wall *w, const fl_gpu *g);

/* Sets another limit in W, FL_DEFAULT (-1) for the board's own. False where the board has no wall. */
bool fl_wall_limit(fl_wall *w, double watts);

/* Sets the share of a budget of several boards that this board gets. */
void fl_wall_deal(fl_wall *w, int64_t mw);

/* Call it when the GPU stands at t and is charged up to t. Where a look is due, it sets g->wall_sm. */
void fl_wall_at(fl_wall *w, fl_gpu *g, int64_t t, fl_wall_predict predict, void *user);

/* Call it after a change of clocks, limit or leakage at t: wakes the wall where the limit is in reach. */
void fl_wall_wake(fl_wall *w, const fl_gpu *g, int64_t t);

static inline int64_t fl_wall_next(const fl_wall *w) { return w->next_ps; }
