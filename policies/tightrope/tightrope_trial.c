/* tightrope: when kernel records are on, by default, where the host knows that one stream alone uses the GPU.
 *
 * Records take time while they are on. The second fact costs nothing, and holds where no kernels overlap: on one
 * stream. So a trial at the start tells whether what records allow saves more than they cost. Where it does not, they
 * go off and the second fact counts, and what that saves pays for the next trial. */
#include "policies/tightrope/step.h"

#include <math.h>

typedef fl_tightrope_gpu gpu_state;
typedef fl_tightrope_step node;

#define TRIAL_DECISIONS                                                                                                \
    12             /* of a phase, with a look at each: chosen among 6, 12 and 24 on the tuning halves of sweeps */
#define LEAST_S 1  /* the next trial comes that long after the last one at least, */
#define AGAIN 0.25 /* and after this part of the time that the program has done the same */
#define LAST_S 4   /* none begins so shortly before the program ends */

int fl_tightrope_alone(const node *n) { return n->facts->streams == 1 || !fl_tightrope_strict(n->p); }

/* A trial that finds the phase that it left ends with its first window: that costs little, and less and less often. */
static int trial_due(const node *n) {
    const fl_tightrope_trial *t = &n->state->trial;
    const double elapsed_s = n->gpu->work.elapsed_s;
    const double left_s = n->facts->expected_ns > 0 ? (double)n->facts->expected_ns * 1e-9 - elapsed_s : INFINITY;
    return left_s > LAST_S &&
           (t->turned || elapsed_s - t->ended_s >= fmax(LEAST_S, AGAIN * (elapsed_s - n->state->phases.began_s)));
}

void fl_tightrope_begin_trial(node *n) {
    fl_set_gpu(n->c, 0, FL_SET_RECORDS, 1);
    fl_tightrope_from_certain(&n->gpu->work, n->now);
    n->gpu->signal_ns = n->now;
    n->state->stage = FL_TIGHTROPE_TRIAL;
    n->state->trial.turned = 0;
}

static void end_trial(node *n) {
    fl_set_gpu(n->c, 0, FL_SET_RECORDS, 0);
    fl_tightrope_to_certain(&n->gpu->work);
    fl_tightrope_phase_leave(&n->state->phases, n->gpu->seen);
    n->state->stage = FL_TIGHTROPE_CERTAIN;
    n->state->trial.turned = 0;
    n->state->trial.ended_s = n->gpu->work.elapsed_s;
}

static int tried(const node *n) { return fl_tightrope_phase_decisions(&n->state->phases) >= TRIAL_DECISIONS; }

int fl_tightrope_hurries(const node *n) { return n->state->stage == FL_TIGHTROPE_TRIAL && !tried(n); }

int fl_tightrope_dear(const node *n) {
    for (uint32_t i = 0; i < n->count; i++)
        if (fl_tightrope_records_dear(&n->gpu[i].work))
            return 1;
    return 0;
}

int fl_tightrope_turn_records(node *n) {
    if (n->state->stage == FL_TIGHTROPE_CERTAIN && trial_due(n)) {
        fl_tightrope_begin_trial(n);
        return 1;
    }
    if (n->state->stage != FL_TIGHTROPE_TRIAL || !(fl_tightrope_dear(n) || (n->gpu->unpaid && tried(n))))
        return 0;
    end_trial(n);
    return 1;
}
