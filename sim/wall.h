/* The power wall of one board: a controller with a period, a filter and a step that takes the SM clock down below what
 * is asked for while filtered power exceeds the limit, and gives it back. It sleeps while nothing that could run at the
 * present clocks can reach the limit. */
#ifndef FL_WALL_H
#define FL_WALL_H

#include "sim/gpu.h"

/* Power of the board at another SM clock, with what runs on it now; mW, or < 0 where that is not known. */
typedef int64_t (*fl_wall_predict)(void *user, uint32_t sm);

typedef struct fl_wall {
    const fl_wall_spec *spec;
    int64_t period_ps, next_ps; /* next_ps: FL_TIME_NEVER while it sleeps */
    int64_t limit_mw;           /* in force: the least of the next two */
    int64_t set_mw, dealt_mw;   /* by software or the board; out of a budget of the node, INT64_MAX = none */
    int64_t default_mw;
    double keep;                     /* share of the filtered power that a look after one period keeps */
    double filtered_mw, ceiling_mhz; /* ceiling: meaningful while it acts */
    bool over, acts;
    fl_wide seen_fj;
    int64_t seen_ps;
} fl_wall;

/* A board without a controller or without a limit has a wall that always sleeps. */
void fl_wall_open(fl_wall *w, const fl_gpu *g);

/* Another limit in W, FL_DEFAULT (-1) for the board's own. False where the board has no wall. */
bool fl_wall_limit(fl_wall *w, double watts);

/* What a budget of several boards leaves to this one. */
void fl_wall_deal(fl_wall *w, int64_t mw);

/* The GPU stands at t, charged up to it: looks if it is time, and sets g->wall_sm. */
void fl_wall_at(fl_wall *w, fl_gpu *g, int64_t t, fl_wall_predict predict, void *user);

/* After a change of clocks, limit or leakage at t: wakes it where the limit is in reach. */
void fl_wall_wake(fl_wall *w, const fl_gpu *g, int64_t t);

static inline int64_t fl_wall_next(const fl_wall *w) { return w->next_ps; }

#endif
