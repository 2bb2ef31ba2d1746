/* How long a step of a server's engine takes at each of a few clocks, learned while the server runs.
 *
 * At each clock the time of a step is a straight line in what the step computes: prompt tokens, sequences that decode,
 * tokens of KV cache that they read. EcoFreq and throttLL'eM learn such a predictor from runs made beforehand; here it
 * is learned from the steps that the server makes, by recursive least squares (Young, "Recursive Estimation and
 * Time-Series Analysis", 2nd ed. 2011, section 3.2), which keeps no steps. A clock at which too little was seen is
 * answered by two facts: a step at a lower clock f takes at most f0 / f as long as at f0, and never less. */
#pragma once

#include <stdint.h>

enum { FL_STEP_TERMS = 4, FL_STEP_CLOCKS = 16 };

typedef struct fl_step_load { /* what one step computes */
    double prompt_tokens, sequences, kv_tokens;
} fl_step_load;

typedef struct fl_step_line { /* of one clock */
    double steps;             /* seen */
    double shortest_s;
    double weight[FL_STEP_TERMS];                /* s, of the scaled terms */
    double spread[FL_STEP_TERMS][FL_STEP_TERMS]; /* inverse of the sum of x x', with a weak prior */
} fl_step_line;

typedef struct fl_step_times {
    uint32_t clocks;            /* 1 to FL_STEP_CLOCKS */
    double mhz[FL_STEP_CLOCKS]; /* ascending */
    fl_step_line line[FL_STEP_CLOCKS];
} fl_step_times;

/* No step was seen. mhz: `clocks` of them, ascending. */
void fl_step_times_begin(fl_step_times *t, const double *mhz, uint32_t clocks);

/* `steps` steps of about this load took time_s each, in the mean, at clock `clock` (index). What is not finite or not
 * positive is left out. */
void fl_step_times_learn(fl_step_times *t, uint32_t clock, const fl_step_load *load, double time_s, double steps);

/* Seconds that a step of this load takes at each clock, into time_s (t->clocks of them): the line of a clock
 * at which enough steps were seen, and some of about such a load; else that of the nearest higher clock that is known,
 * times the ratio of the clocks and 1 + tolerance; else that of the nearest lower one, as it takes no longer. NAN where
 * nothing is known. */
void fl_step_times_all(const fl_step_times *t, const fl_step_load *load, double tolerance, double *time_s);
