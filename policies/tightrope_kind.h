/* tightrope: what kernels of one kind took at the top clock and elsewhere, and how much work that shows at least. */
#pragma once

#include <stdint.h>

enum { FL_TIGHTROPE_KINDS = 2048 }; /* each with a place of its own; a program of PyTorch has a thousand */

typedef struct fl_tightrope_kind {        /* of kernel */
    double count, sum_s, square_s;        /* that ran at the top clock: number, durations, their squares */
    double done, done_s;                  /* at any other clock: number, durations */
    double floor_s;                       /* what is certain of these */
    double now, now_s;                    /* of the window at the top clock: number, durations */
    double visits, mean_s, mean_square_s; /* windows at the top clock, their means, the squares of these */
    double visit_square_s;                /* the squares of these, each as often as the visit had records */
    double window_s, spell_s;             /* time in the window; in the present spell of strange kernels */
    int64_t spell, usual;                 /* the spell of spell_s; 1: the phase has this kind */
    int64_t differs;                      /* 1: visits to the top clock differ by more than chance */
} fl_tightrope_kind;

typedef struct fl_tightrope_sum { /* of seconds at the top clock */
    double low_s;                 /* what kernels show */
    double square;                /* of what is held back of that: errors that do not add up */
} fl_tightrope_sum;

static inline double fl_tightrope_kind_mean(const fl_tightrope_kind *k) { return k->sum_s / k->count; }

/* A kernel of d seconds ended, all of it at the top clock; or not, and so much of it is certain. */
void fl_tightrope_kind_top(fl_tightrope_kind *k, double d);
void fl_tightrope_kind_low(fl_tightrope_kind *k, double d, double certain_s);

/* A window at the top clock ends: what it told is one visit. */
void fl_tightrope_kind_visited(fl_tightrope_kind *k);

/* What was learned at the top clock stays; of kernels elsewhere nothing. */
fl_tightrope_kind fl_tightrope_kind_known(const fl_tightrope_kind *k);

/* Standard errors to hold back where their size was learned from so many durations. */
double fl_tightrope_held_back(double sigmas, double count);

/* What the kernels that ran elsewhere would have taken at the top clock, at least. */
void fl_tightrope_kind_credit(const fl_tightrope_kind *k, double sigmas, fl_tightrope_sum *sum);
