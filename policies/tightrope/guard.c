/* tightrope: the guard of the slack, which holds it between the ends of windows. */
#include "policies/tightrope/step.h"

#include <math.h>

typedef fl_tightrope_gpu gpu_state;
typedef fl_tightrope_step node;

#define SAFE_S 1e6 /* nothing is looked for longer ahead */

/* Slack that a second of the window may cost, whatever the program does. */
static double burn(const node *n) {
    double most = 0;
    for (uint32_t i = 0; i < n->count; i++)
        most = fmax(most, fl_tightrope_burn(n->p->bound - FL_TIGHTROPE_MARGIN, (1 + n->p->tolerance) *
                                                                                   (1 + fl_tightrope_cost(&n->gpu[i])) /
                                                                                   n->gpu[i].work.share));
    return most;
}

/* Until when the present clocks are safe whatever the program does: a program that turns to other work in the midst of
 * a window is slowed by all that the clocks can slow it, and what was measured before says nothing of it. What is
 * certain of the slack must pay for that until the next reading, and then for the way back to the top. */
static int64_t safe_until(const node *n) {
    const double b = n->p->bound - FL_TIGHTROPE_MARGIN, loss = burn(n);
    double least = INFINITY, react_s = 0;
    int top = 1;
    for (uint32_t i = 0; i < n->count; i++) {
        gpu_state *g = &n->gpu[i];
        top &= fl_tightrope_at_top(n, i);
        react_s = fmax(react_s, fl_tightrope_reaction(n->p, g));
        if (fl_tightrope_idle(n, i))
            continue;
        const double length_s = (double)(n->now - g->work.window_ns) * 1e-9;
        least = fmin(least, (1 + b) * fl_tightrope_credit_now(&g->work) - g->work.elapsed_s - length_s -
                                fl_tightrope_records_kept(&g->work));
    }
    const double left_s = top || !(loss > 0) ? SAFE_S : fmin(SAFE_S, least / loss - react_s);
    return n->now + (int64_t)(fmax(0, left_s) * 1e9);
}

/* Readings may have shown more work since safe_ns was told, so it is asked again in time. */
int fl_tightrope_guard(node *n) {
    if (n->state->safe_ns - n->now <= (int64_t)(n->p->poll_ms * 1e6))
        n->state->safe_ns = safe_until(n);
    return n->state->safe_ns <= n->now;
}
