/* What is minimised, by its name on the command line and in experiments. */
#pragma once

#include "harness/base/cli/args.h"
#include "sim/oracle/oracle.h"

#define FL_OBJECTIVE_STANDARD "energy"

/* Rows for tables of options: what is minimised, and how finely the clairvoyant schedule is cut. */
/* clang-format off */
#define FL_OBJECTIVE_OPTION(into)                                                                                      \
    {"objective", "NAME", FL_OPTION_TEXT, into, 0, 0, "energy, edp or ed2p (" FL_OBJECTIVE_STANDARD ")"}
#define FL_POSITIONS_OPTION(into)                                                                                      \
    {"positions", "N", FL_OPTION_INT, into, 1, 1e6,                                                                    \
     "stretches of work to which the clairvoyant schedule gives one clock each (every kernel, host time apart)"}
/* clang-format on */

/* As tables name it, and its unit: "energy" in "J", "EDP" in "J s", "ED2P" in "J s^2". By fl_objective. */
extern const char *const fl_objective_title[], *const fl_objective_unit[];

/* "energy", "edp" or "ed2p"; the nearest offered. */
fl_status fl_objective_parse(const char *name, fl_objective *o, fl_diag *d);
