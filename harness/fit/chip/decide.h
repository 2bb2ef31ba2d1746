/* The purpose of a fit: the clocks that it would choose under a bound, and what the hardware does at them.
 *
 * The choice is the setting of least predicted energy whose predicted time is at most 1 + bound times the time at the
 * top. The top is the workload's highest SM clock at its highest memory clock. A setting that the fit used counts with
 * its measured values, with the deviation of fl_chip_measured (fl_fit_result_state), as everywhere. With a risk, the
 * chance that the real bound breaks at the choice must not exceed the risk; that chance is normal, from the deviations
 * that the fit states for the setting and for the top. */
#pragma once

#include "harness/fit/chip/score.h"

typedef struct fl_fit_question {
    double bound; /* on the slowdown, as a share */
    double risk;  /* 1: the prediction alone decides */
} fl_fit_question;

typedef struct fl_fit_choice { /* of one workload */
    size_t chosen, best;       /* rows of the entity: the fit's choice, and the choice by the measurements */
    double chance;             /* chance, stated by the fit, that the real bound breaks at the choice */
    double excess;             /* real slowdown there above the bound, as a share; below 0: the bound holds */
    double regret;             /* real energy there over that of the best choice, less 1 */
    double expected_regret;    /* stated by the fit (models/chip/decide.h) */
    double rank; /* Spearman's rank correlation of predicted and real energies; NAN: fewer than 3 settings */
} fl_fit_choice;

/* False where no choice is possible: there is no measured row at the top, or it has no power. */
bool fl_fit_decide(const fl_fit_rows *r, const fl_fit_entity *e, const fl_chip_guess *guess, const fl_fit_question *q,
                   fl_fit_choice *out);

/* Sums over workloads. */
typedef struct fl_fit_decisions {
    double count, exact, broken, broken_half; /* broken_half: the bound broken by more than half a point */
    double worst, regret, expected_regret, rank, ranks, chance;
    double regret_held; /* of the choices that hold the bound: one that breaks it may need less than the best */
} fl_fit_decisions;

void fl_fit_decisions_add(fl_fit_decisions *t, const fl_fit_choice *c);
/* The probability that this many choices or more break the bound, if each breaks it independently with probability
 * risk. Below 0.05 the stated risk is refuted. */
double fl_fit_decisions_p(const fl_fit_decisions *t, double risk);
/* bound and risk, choices, exact_pct, broken_pct, broken_half_pct, expected_broken_pct, worst_excess_pct,
 * regret_pct, regret_held_pct, expected_regret_pct, rank; with a risk, binomial_p. */
void fl_fit_decisions_json(const fl_fit_decisions *t, const fl_fit_question *q, cJSON *to);
void fl_fit_decisions_print(const fl_fit_decisions *t, const fl_fit_question *q);
