/* How `foldline plan` says what it found. */
#pragma once

#include "harness/plan/rows.h"

#include <stdio.h>

/* On stdout: all rows of a frontier, else the best of each kind. */
void fl_plan_tell_text(const fl_planned *r, const fl_plan_ask *ask);
void fl_plan_tell_json(const fl_planned *r, const fl_plan_ask *ask);

/* All rows, for `foldline plot frontier`: kind,plan,time_s,energy_j,bound_j,gap_pct,slowdown_pct,saving_pct, then
 * judge_time_s,judge_energy_j,measured_time_s,measured_energy_j, n/a where there is none. */
void fl_plan_tell_csv(const fl_planned *r, FILE *out);
