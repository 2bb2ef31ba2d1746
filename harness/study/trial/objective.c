#include "harness/study/trial/objective.h"

#include <string.h>

const char *const fl_objective_title[] = {"energy", "EDP", "ED2P"};
const char *const fl_objective_unit[] = {"J", "J s", "J s^2"};

fl_status fl_objective_parse(const char *name, fl_objective *o, fl_diag *d) {
    size_t count = 0;
    for (; fl_objective_names[count]; count++)
        if (!strcmp(name, fl_objective_names[count])) {
            *o = (fl_objective)count;
            return FL_OK;
        }
    const char *near = fl_nearest(name, fl_objective_names, count);
    if (near)
        return fl_refuse(d, "unknown objective '%s', did you mean '%s'?", name, near);
    return fl_refuse(d, "unknown objective '%s', expected energy, edp or ed2p", name);
}
