/* What tightrope holds of one GPU, and the constants of its windows. */
#pragma once

#include "policies/tightrope/curve.h"
#include "policies/tightrope/lag.h"
#include "policies/tightrope/serving.h"
#include "policies/tightrope/work.h"

typedef struct fl_tightrope_params {
    double bound, tolerance, sigmas, records_cost, poll_ms, lag_ms;
    int64_t signal, objective, alike, trust;
} fl_tightrope_params;

/* What signal=auto may credit work by: what holds in every phase, or counters too. */
enum { FL_TIGHTROPE_TRUST_RECORDS, FL_TIGHTROPE_TRUST_COUNTERS };

/* 1: nothing may count that a phase can change unseen. */
static inline int fl_tightrope_strict(const fl_tightrope_params *p) {
    return p->signal == FL_TIGHTROPE_AUTO && p->trust == FL_TIGHTROPE_TRUST_RECORDS;
}

/* Of the bound, kept back beside the reference's error: what a run's last window, which ends where the program does,
 * may lose to the arrival of its clock. */
#define FL_TIGHTROPE_MARGIN 0.0005
#define FL_TIGHTROPE_SETTLE_S 0.03      /* after the achieved clock has arrived, readings do not count */
#define FL_TIGHTROPE_COARSE_NS 20000000 /* between readings that only keep the ledger */
#define FL_TIGHTROPE_POWER_S 0.08       /* of readings make a mean of power */

typedef struct fl_tightrope_wander { /* how windows differ from the mean of their clock: relative squares, number */
    double square, number;
} fl_tightrope_wander;

typedef struct fl_tightrope_gpu {
    int64_t clock, next; /* index of the clock; of that of the next window */
    int64_t readings;    /* fine ones so far */
    int64_t signal_ns;   /* when the signal was chosen */
    int64_t arrived_ns;  /* when the clock asked for was there; < 0: not yet */
    int64_t power_ns;    /* power readings count from here on */
    int64_t until_ns;    /* the window lasts at least until then */
    double power_w;      /* of the last window */
    double lag_s;        /* of the power sensor; NAN: not known yet */
    double util_sum, util_count;
    double settle_s; /* from a set clock to its arrival, as the platform says; 0: not known */
    double react_s;  /* the longest so far */
    double slack_s, allowed, energy, slowdown;
    double error; /* of the reference, relative */
    int64_t
        unpaid; /* over a long run of the phase records cost more than what they allow saves beyond what goes without */
    int64_t brief;    /* 1: the program has phases, and few windows fit into one */
    double phase_s;   /* how long the program has done what it does now */
    int64_t top_pays; /* a better reference is worth a window at the top clock */
    fl_tightrope_wander time_wander, power_wander;
    fl_tightrope_lag lag;
    fl_tightrope_work work;
    fl_tightrope_seen seen[FL_TIGHTROPE_CLOCKS];
    fl_tightrope_serving serving; /* of the server whose first GPU this is */
} fl_tightrope_gpu;

/* ---- readings (tightrope_readings.c) ---- */

/* 1: the clock that was asked for, mhz, is there, or was waited for long enough. Until then nothing counts. */
int fl_tightrope_arrive(fl_tightrope_gpu *g, const fl_gpu_sample *u, int64_t now, double mhz);

/* One step's readings of the GPU. */
void fl_tightrope_take(fl_tightrope_gpu *g, const fl_sample *sample, uint32_t gpu);

/* Where window and sensor allow the window to end after length_s: its end in seconds, reference_s where it is the first
 * at the top clock. */
int fl_tightrope_over(const fl_tightrope_gpu *g, int64_t now, double length_s, double end_s);

/* Until the next reading. */
int64_t fl_tightrope_wait_ns(const fl_tightrope_params *p, fl_tightrope_gpu *g, int64_t now, double end_s);

/* From a reading that shows that the clock must rise until it has risen, at most: the time to the next reading, and
 * what clocks took to arrive so far. */
double fl_tightrope_reaction(const fl_tightrope_params *p, const fl_tightrope_gpu *g);

/* How much longer the window must last because its clock came late. */
double fl_tightrope_late_s(const fl_tightrope_gpu *g);

double fl_tightrope_busy(const fl_tightrope_gpu *g); /* share of the window; NAN: not known */

/* ---- decisions (tightrope_decide.c) ---- */

/* At a clock not tried before, long enough for the power too. */
double fl_tightrope_first_length(const fl_tightrope_gpu *g);

/* A window must show the slowdown well through the noise of the units, and the power through the sensor's lag. */
double fl_tightrope_length(const fl_tightrope_gpu *g);

/* The window's slowdown and power are what the clock does; ceiling: slowdown of all; top: it is the top clock. */
void fl_tightrope_learn(fl_tightrope_gpu *g, const fl_tightrope_seen_window *m, double ceiling, int top);

/* The index of the clock to run at: the node's slack, how long the window will last at a clock that was tried or not,
 * whether two clocks may not take turns, and whether without records the second fact is safe. */
uint32_t fl_tightrope_decide(const fl_tightrope_params *p, fl_tightrope_gpu *g, const fl_gpu_facts *f, double slack_s,
                             double window_s, double first_window_s, int look, int steady, int certain);

/* By how much the signal stretches what it measures. */
double fl_tightrope_cost(const fl_tightrope_gpu *g);

/* Time for which nobody may see what a clock does, and the way back to the top. */
double fl_tightrope_blind(const fl_tightrope_params *p, const fl_tightrope_gpu *g);

/* Index 0 of a GPU's clocks stands for this one of its ladder. */
uint32_t fl_tightrope_first(const fl_gpu_facts *f);
uint32_t fl_tightrope_count(const fl_gpu_facts *f);
