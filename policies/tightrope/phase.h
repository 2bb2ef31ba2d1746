/* tightrope: phases that kernel records tell apart.
 *
 * A program that runs kernels of one kind for a while, and of another kind then, is slowed by a clock in one part as it
 * is not in another. So what clocks do is learned for each phase by itself: a phase is known by the shares that kinds
 * of kernel have of its time. Nothing here adds to the ledger. A phase that is taken for another one costs energy, and
 * not the bound. */
#pragma once

#include "policies/tightrope/curve.h"
#include "policies/tightrope/work.h"

enum { FL_TIGHTROPE_PHASES = 8 }; /* the one that ran least makes room for a new one */

typedef struct fl_tightrope_phase {
    double share[FL_TIGHTROPE_KINDS]; /* of the time of its kernels */
    double weight_s;                  /* time that the shares stand on; 0: no phase */
    double time_s, decisions;         /* that it ran so far, of all stays; windows that ended in it */
    double usual_s;                   /* how long its own useful stays are lately, 2 s at most; 0: there was none */
    fl_tightrope_seen seen[FL_TIGHTROPE_CLOCKS];
} fl_tightrope_phase;

typedef struct fl_tightrope_phases { /* all zero is the beginning */
    int64_t current, last;           /* that runs now, < 0: none, as no records are on; that was left last */
    int64_t turns;                   /* to another phase */
    double useful_s;                 /* how long stays are lately in which another clock than the top was learned */
    double stay_s;                   /* time of the present stay */
    double began_s;                  /* elapsed time at which the program turned to the present phase */
    fl_tightrope_phase phase[FL_TIGHTROPE_PHASES];
} fl_tightrope_phases;

/* What a closed window of length_s says of the phase. 1: another one runs now, and `seen` has what clocks do in it:
 * nothing where it is new. */
int fl_tightrope_phase_turns(fl_tightrope_phases *p, fl_tightrope_work *w, fl_tightrope_seen *seen, double length_s);

/* Records go off: what clocks do in the present phase is kept until it is recognised again. */
void fl_tightrope_phase_leave(fl_tightrope_phases *p, const fl_tightrope_seen *seen);

/* How long the present phase has run; all the time where there is no other. */
double fl_tightrope_phase_time(const fl_tightrope_phases *p, const fl_tightrope_work *w);

/* Windows that ended in the present phase. */
double fl_tightrope_phase_decisions(const fl_tightrope_phases *p);

/* 1: kernels of kinds that the phase does not have have run for a while. */
int fl_tightrope_phase_strange(const fl_tightrope_work *w);
