/* tightrope: one step of the node, as the files that make it hold it. */
#pragma once

#include "policies/tightrope/tightrope_gpu.h"
#include "policies/tightrope/phase.h"

#define FL_TIGHTROPE_MEMBERS 64        /* GPUs of a node */
#define FL_TIGHTROPE_REFERENCE_MAX_S 5 /* longest time at the top clock, where the reference's error stays large */
#define FL_TIGHTROPE_IDLE 0.01         /* busy for less of a window, and no unit done: nothing runs there */

/* What records are on for. ALWAYS: the policy counts by them, or by no records at all. TRIAL: they are on, and stay
 * where what they allow saves more than they cost. CERTAIN: they are off, and the second fact alone counts, or where
 * one stream is not known the top clock stays. */
enum { FL_TIGHTROPE_ALWAYS, FL_TIGHTROPE_CERTAIN, FL_TIGHTROPE_TRIAL };

typedef struct fl_tightrope_trial {
    double ended_s; /* elapsed time at which records went off the last time */
    int64_t turned; /* another phase since then, by power */
} fl_tightrope_trial;

typedef struct fl_tightrope_state { /* of the node, from step to step */
    int64_t started, odd, references, decisions, alarm;
    int64_t held;  /* at the top clock for the rest of the run: no other is safe */
    int64_t stage; /* what records are on for (tightrope_trial.c) */
    fl_tightrope_trial trial;
    int64_t contradicted;       /* times that a counter's units were not alike */
    double window_s;            /* planned length */
    int64_t safe_ns;            /* until then the slack cannot run out, whatever the program does */
    double apart, compared;     /* see is_apart (tightrope_window.c) */
    fl_tightrope_phases phases; /* of the lone GPU whose records tell them */
} fl_tightrope_state;

typedef struct fl_tightrope_step {
    const fl_tightrope_params *p;
    const fl_facts *facts;
    const fl_sample *sample;
    fl_command *c;
    fl_tightrope_state *state;
    fl_tightrope_gpu *gpu; /* count */
    uint32_t count;
    int64_t now;
} fl_tightrope_step;

static inline double fl_tightrope_mhz(const fl_tightrope_step *n, uint32_t i, int64_t clock) {
    return n->facts->gpu[i].sm.mhz[fl_tightrope_first(&n->facts->gpu[i]) + (uint32_t)clock];
}

static inline int64_t fl_tightrope_top(const fl_tightrope_step *n, uint32_t i) {
    return fl_tightrope_count(&n->facts->gpu[i]) - 1;
}

static inline int fl_tightrope_at_top(const fl_tightrope_step *n, uint32_t i) {
    return n->gpu[i].clock == fl_tightrope_top(n, i);
}

static inline int fl_tightrope_tried(const fl_tightrope_step *n, uint32_t i) {
    return n->gpu[i].seen[n->gpu[i].clock].weight_s > 0;
}

/* Nothing runs on a GPU beside others: its ledger stands still. */
static inline int fl_tightrope_idle(const fl_tightrope_step *n, uint32_t i) {
    const fl_tightrope_gpu *g = &n->gpu[i];
    return n->count > 1 && fl_tightrope_busy(g) < FL_TIGHTROPE_IDLE && !(g->work.total > g->work.units);
}

/* ---- windows (tightrope_window.c) ---- */

/* The reference is learned anew: all GPUs go to the top, and a window begins. */
void fl_tightrope_to_reference(fl_tightrope_step *n);

/* What the window taught is kept, and the next one begins at the clocks that are best then. */
void fl_tightrope_end_window(fl_tightrope_step *n);

/* ---- when records are on (tightrope_trial.c) ---- */

/* After a window was learned from. 1: records went on or off, so the reference must be learned again. */
int fl_tightrope_turn_records(fl_tightrope_step *n);

/* Records go on, and tell the work from now on. The reference must be learned again. */
void fl_tightrope_begin_trial(fl_tightrope_step *n);

/* Looks come one after the other: what a trial costs is the time until it knows. */
int fl_tightrope_hurries(const fl_tightrope_step *n);

/* 1: records of a GPU take more than half of the bound: its kernels are short, and what one record takes is known. */
int fl_tightrope_dear(const fl_tightrope_step *n);

/* 1: without records too a lower clock is safe, as one stream is known, or as who trusts counters says. */
int fl_tightrope_alone(const fl_tightrope_step *n);

/* 1: kernels of a lone GPU run beside each other (fl_tightrope_overlap). */
int fl_tightrope_shares(const fl_tightrope_step *n);

/* ---- the guard (tightrope_guard.c) ---- */

/* 1: the clocks must go to the top now. */
int fl_tightrope_guard(fl_tightrope_step *n);
