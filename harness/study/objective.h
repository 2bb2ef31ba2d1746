/* What is minimised, by its name on the command line and in experiments. */
#ifndef FL_OBJECTIVE_H
#define FL_OBJECTIVE_H

#include "sim/oracle.h"

#define FL_OBJECTIVE_STANDARD "energy"

/* "energy", "edp" or "ed2p"; the nearest offered. */
fl_status fl_objective_parse(const char *name, fl_objective *o, fl_diag *d);

#endif
