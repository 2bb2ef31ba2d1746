/* What the files of policies/server share: learning of step times, parameter rows, and the bandit of agft. */
#pragma once

#include "policies/policy.h"
#include "policies/server/server.h"

#include <stdint.h>

/* Start without any step. mhz: `clocks` of them, ascending. */
void fl_step_times_begin(fl_step_times *t, const double *mhz, uint32_t clocks);

/* Learn that `steps` steps of about this load took time_s each, in the mean, at clock `clock` (index). Skips values
 * that are not finite or not positive. */
void fl_step_times_learn(fl_step_times *t, uint32_t clock, const fl_step_load *load, double time_s, double steps);

/* Check as fl_drive_check does, and also that each server states both targets. */
const char *fl_drive_check_targets(const fl_facts *facts);

void fl_drive_set_default(fl_drive *s, const fl_facts *facts, uint32_t server, fl_command *c);
/* Set a clock on all GPUs of the server; mhz 0: the default. */
void fl_drive_clock(const fl_facts *facts, uint32_t server, double mhz, fl_command *c);

/* Rows of the parameters that policies have that learn the times of steps; the struct is `params`. */
#define FL_DRIVE_ROW_CLOCKS                                                                                            \
    FL_PARAM(params, clocks_mhz, LIST(1, 100000), "MHz", "",                                                           \
             "clocks to choose from, 15 at most; none: six from half of the top to the top (assumed). The top is "     \
             "always one")
#define FL_DRIVE_ROW_MARGIN                                                                                            \
    FL_PARAM(params, margin, REAL(-0.9, 10), "", "0",                                                                  \
             "above the targets that is allowed; -0.05 aims 5 % below them (assumed)")
#define FL_DRIVE_ROWS_LEARN                                                                                            \
    FL_PARAM(params, settle_ms, REAL(0, 60000), "ms", "100",                                                           \
             "longest wait for the achieved clock to show the one set (assumed)"),                                     \
        FL_PARAM(params, tolerance, REAL(0, 1), "", "0.03",                                                            \
                 "by how much a step at a clock not seen yet may pass top / f (assumed)")

/* Members of a descriptor that all policies for servers have alike: they drive clocks, and keep a state for each GPU.
 * Their file has params. */
#define FL_DRIVE_POLICY(state) .gpu_drives = FL_BIT(FL_SET_SM_MHZ), .gpu_size = sizeof(state), FL_POLICY_PARTS(params)

/* LinUCB with one line per arm (Li, Chu, Langford, Schapire, "A contextual-bandit approach to personalized news article
 * recommendation", 2010, Algorithm 1): the reward of an arm is a straight line in the context; the arm with the largest
 * upper confidence bound is pulled. */

enum { FL_LINUCB_ARMS = 32, FL_LINUCB_TERMS = 8 };

typedef struct fl_linucb_arm {
    double pulls, mean;                               /* of the rewards */
    double inverse[FL_LINUCB_TERMS][FL_LINUCB_TERMS]; /* of A */
    double b[FL_LINUCB_TERMS];
    uint32_t pruned; /* 1: never chosen again */
} fl_linucb_arm;

typedef struct fl_linucb {
    uint32_t arms;
    fl_linucb_arm arm[FL_LINUCB_ARMS];
} fl_linucb;

/* A = ridge x identity for each arm. ridge > 0. */
void fl_linucb_begin(fl_linucb *l, uint32_t arms, double ridge);

/* Learn the reward of an arm that was pulled in this context. */
void fl_linucb_learn(fl_linucb *l, uint32_t arm, const double *x, double reward);

/* Return the upper confidence bound of an arm's reward: the prediction + alpha sqrt(x' A^-1 x). */
double fl_linucb_bound(const fl_linucb *l, uint32_t arm, const double *x, double alpha);

/* Return the arm with the largest bound that was not pruned; of equals the last. */
uint32_t fl_linucb_choose(const fl_linucb *l, const double *x, double alpha);
