/* What a fitted model makes of a chosen static clock: the chance that the real bound breaks at it, the regret to
 * expect, and which clocks may be chosen under a risk. */
#pragma once

#include "harness/input/scene/scene.h"
#include "sim/oracle/oracle.h"

/* clang-format off */
#define FL_RISK_OPTION(into)                                                                                           \
    {"risk", "P", FL_OPTION_SHARE, into, 1e-9, 1,                                                                       \
     "of a fitted model: highest chance that a static clock breaks --bound on the real GPU (the prediction decides)"}
/* clang-format on */

/* A risk of 0: nobody asked. FL_BAD_INPUT where one is asked for without a bound, or beside a model that does not state
 * how sure it is. */
fl_status fl_risk_check(const fl_scenes *scenes, double bound, double risk, fl_diag *d);

/* Moves the points that may be chosen to the front; how many. All where no risk is asked for. */
size_t fl_risk_keep(const fl_scene *s, double bound, double risk, fl_static_point *point, size_t count);

typedef struct fl_risk {
    double chance, regret; /* shares; NAN where the model states nothing */
} fl_risk;

fl_risk fl_risk_at(const fl_scene *s, const fl_choice *at, double bound, fl_objective objective);
