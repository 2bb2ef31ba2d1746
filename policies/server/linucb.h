/* LinUCB with one line per arm (Li, Chu, Langford, Schapire, "A contextual-bandit approach to personalized news article
 * recommendation", 2010, Algorithm 1): the reward of an arm is a straight line in the context; the arm with the largest
 * upper confidence bound is pulled. */
#pragma once

#include <stdint.h>

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

/* The arm was pulled in this context and gave this reward. */
void fl_linucb_learn(fl_linucb *l, uint32_t arm, const double *x, double reward);

/* Predicted reward; its bound: + alpha sqrt(x' A^-1 x). */
double fl_linucb_bound(const fl_linucb *l, uint32_t arm, const double *x, double alpha);

/* The arm with the largest bound that was not pruned; of equals the last. */
uint32_t fl_linucb_choose(const fl_linucb *l, const double *x, double alpha);
