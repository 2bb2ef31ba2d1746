#include "harness/live/vendor/pace.h"

#define SURE 10 /* a step counts where each of its ends is known to a tenth of it */

static int64_t shortest(const fl_pace *p) {
    int64_t least = INT64_MAX;
    for (int i = 0; i < FL_PACE_STEPS; i++)
        least = p->step_ns[i] < least ? p->step_ns[i] : least;
    return least;
}

bool fl_pace_rests(fl_pace *p, int64_t t_ns) {
    if (!p->known || p->steps < FL_PACE_STEPS || p->cost_ns < FL_PACE_SLOW_NS || t_ns < p->asked_ns ||
        t_ns - p->moved_ns >= shortest(p) / 20 * 19 - p->unsure_ns)
        return false;
    p->asked_ns = t_ns;
    p->rested = true;
    return true;
}

static void moved(fl_pace *p, int64_t t_ns) {
    const int64_t step = t_ns - p->moved_ns, unsure = t_ns - p->asked_ns;
    /* Seen at the first reading after a rest, it may have moved during the rest. Where readings follow each other
     * closely, that says that what was learned is wrong. */
    if (p->rested && unsure <= step / SURE)
        p->steps = 0;
    else if (!p->rested && unsure <= step / SURE && p->unsure_ns <= step / SURE)
        p->step_ns[p->steps++ % FL_PACE_STEPS] = step - unsure;
    p->moved_ns = t_ns;
    p->unsure_ns = unsure;
}

void fl_pace_read(fl_pace *p, int64_t t_ns, double value, int64_t cost_ns) {
    if (!p->known)
        *p = (fl_pace){.moved_ns = t_ns, .unsure_ns = INT64_MAX, .cost_ns = cost_ns, .known = true};
    else if (value != p->value)
        moved(p, t_ns);
    p->value = value;
    p->asked_ns = t_ns;
    p->rested = false;
    p->cost_ns = cost_ns < p->cost_ns ? cost_ns : p->cost_ns;
}
