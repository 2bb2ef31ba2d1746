/* tightrope: phases of the program, told apart by activity records, and when records are on. */
#include "policies/tightrope/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define STRANGE_S 0.04 /* of kernels that the phase does not have, more than of its own, end it */
#define BRIEF_S                                                                                                        \
    0.7                 /* where useful stays are shorter no change of the clock pays, and phases become one, but for  \
                         * those known for longer stays */
#define LATELY 8        /* stays, that their mean length remembers */
#define LONG_S 2        /* what it is taken for at first, and a longer one counts as */
#define USUAL 0.005     /* least share of a kind that a phase has */
#define COVERED 0.75    /* of the time in which a phase is looked for, least share of kinds that it has */
#define UNLIKE 0.3      /* least part that a window has in common with its phase */
#define REMEMBERED_S 30 /* of windows, that the shares stand on */

int fl_tightrope_phase_strange(const fl_tightrope_work *w) {
    return w->signal == FL_TIGHTROPE_RECORDS && w->strange_s > STRANGE_S;
}

double fl_tightrope_phase_time(const fl_tightrope_phases *p, const fl_tightrope_work *w) {
    return p->turns && p->current >= 0 ? p->phase[p->current].time_s : w->elapsed_s;
}

double fl_tightrope_phase_decisions(const fl_tightrope_phases *p) {
    return p->current >= 0 ? p->phase[p->current].decisions : 0;
}

/* Least share of a kind that the phase has: where many kinds share the time, each has little of it. */
static double usual(const fl_tightrope_phase *p, int64_t kinds) {
    double square = 0; /* the mean share of what runs at some instant */
    for (int64_t i = 0; i < kinds; i++)
        square += p->share[i] * p->share[i];
    return fmin(USUAL, square / 20);
}

/* Time of each kind since strange kernels began, or in the whole window. */
static double time_of(const fl_tightrope_work *w, int64_t kind, int strange) {
    const fl_tightrope_kind *k = &w->kind[kind];
    return !strange ? k->window_s : k->spell == w->spell ? k->spell_s : 0;
}

static double total(const fl_tightrope_work *w, int strange) {
    double sum = 0;
    for (int64_t i = 0; i < w->kinds; i++)
        sum += time_of(w, i, strange);
    return sum;
}

/* What both have in common, of 1; covered: the share of the time whose kinds the phase has. */
static double common(const fl_tightrope_phase *p, const fl_tightrope_work *w, int strange, double *covered) {
    const double all = total(w, strange);
    const double least = usual(p, w->kinds);
    double sum = 0;
    *covered = 0;
    for (int64_t i = 0; i < w->kinds && all > 0; i++) {
        const double share = time_of(w, i, strange) / all;
        sum += fmin(share, p->share[i]);
        *covered += p->share[i] > least ? share : 0;
    }
    return sum;
}

static void add(fl_tightrope_phase *p, const fl_tightrope_work *w, int strange) {
    const double all = total(w, strange), weight = fmin(p->weight_s, REMEMBERED_S);
    if (!(all > 0))
        return;
    for (int64_t i = 0; i < w->kinds; i++)
        p->share[i] = (p->share[i] * weight + time_of(w, i, strange)) / (weight + all);
    p->weight_s = weight + all;
}

/* The records that follow are held against the present phase. */
static void show(const fl_tightrope_phase *p, fl_tightrope_work *w) {
    const double least = usual(p, w->kinds);
    for (int64_t i = 0; i < w->kinds; i++)
        w->kind[i].usual = p->share[i] > least;
    w->phased = p->weight_s > 0;
    w->strange_s = 0;
    w->spell++;
}

/* A phase of those kinds that was seen before, and what both have in common; or a new one, 0. */
static int64_t find(const fl_tightrope_phases *p, const fl_tightrope_work *w, int strange, double *most) {
    int64_t best = -1, least = -1;
    *most = 0;
    for (int64_t i = 0; i < FL_TIGHTROPE_PHASES; i++) {
        const fl_tightrope_phase *f = &p->phase[i];
        double covered;
        if (i == p->current)
            continue;
        const double same = common(f, w, strange, &covered);
        if (f->weight_s > 0 && covered >= COVERED && same > *most)
            *most = same, best = i;
        if (least < 0 || f->time_s < p->phase[least].time_s)
            least = i;
    }
    return best >= 0 ? best : least;
}

void fl_tightrope_phase_leave(fl_tightrope_phases *p, const fl_tightrope_seen *seen) {
    fl_tightrope_phase *from = &p->phase[p->current];
    memcpy(from->seen, seen, sizeof from->seen);
    p->last = p->current;
    p->current = -1;
}

/* The present stay as far as it is over, LONG_S at most; 0: no other clock than the top was learned in it. */
static double useful_stay(const fl_tightrope_phases *p, const fl_tightrope_seen *seen) {
    int learned = 0;
    for (int i = 0; i < FL_TIGHTROPE_CLOCKS; i++)
        learned += seen[i].weight_s > 0;
    return learned > 1 ? fmin(p->stay_s, LONG_S) : 0;
}

static void enter(fl_tightrope_phases *p, fl_tightrope_work *w, fl_tightrope_seen *seen, int strange) {
    double same;
    const int64_t next = find(p, w, strange, &same);
    fl_tightrope_phase *to = &p->phase[next];
    if (p->current >= 0) {
        fl_tightrope_phase *from = &p->phase[p->current];
        const double stay_s = useful_stay(p, seen);
        from->usual_s = from->usual_s > 0 ? (from->usual_s + stay_s) / 2 : stay_s;
        fl_tightrope_phase_leave(p, seen);
    }
    if (!(same > 0)) {
        memset(to, 0, sizeof *to);
        add(to, w, strange);
    }
    memcpy(seen, to->seen, sizeof to->seen);
    if (next != p->last)
        p->turns++, p->began_s = w->elapsed_s;
    p->current = next;
    p->stay_s = 0;
}

/* A phase that was seen before, and stays long, begins. A program of long parts may have a part of short ones between
 * them; the long ones keep their clocks. */
static int stays(const fl_tightrope_phases *p, const fl_tightrope_work *w, int strange) {
    double same;
    const int64_t next = find(p, w, strange, &same);
    return same > 0 && p->phase[next].usual_s > BRIEF_S;
}

static void count_stay(fl_tightrope_phases *p, const fl_tightrope_seen *seen) {
    const double before_s = p->useful_s > 0 ? p->useful_s : LONG_S;
    p->useful_s = before_s + (useful_stay(p, seen) - before_s) / LATELY;
}

int fl_tightrope_phase_turns(fl_tightrope_phases *p, fl_tightrope_work *w, fl_tightrope_seen *seen, double length_s) {
    if (p->current < 0) {
        if (!(total(w, 0) > 0))
            return 0;
        enter(p, w, seen, 0);
        show(&p->phase[p->current], w);
        return 1;
    }
    fl_tightrope_phase *now = &p->phase[p->current];
    const int strange = fl_tightrope_phase_strange(w);
    double covered;
    p->stay_s += length_s;
    now->time_s += length_s;
    now->decisions++;
    if (now->weight_s > 0 && !(total(w, 0) > 0))
        return 0;
    const int turned = now->weight_s > 0 && (strange || common(now, w, 0, &covered) < UNLIKE);
    if (turned)
        count_stay(p, seen);
    if (turned && (p->useful_s > BRIEF_S || stays(p, w, strange))) {
        enter(p, w, seen, strange);
        show(&p->phase[p->current], w);
        return 1;
    }
    if (turned || !(w->strange_s > 0)) {
        add(now, w, 0);
        show(now, w);
    }
    return 0;
}

/* tightrope: when activity records are on, by default, where the host knows that one stream alone uses the GPU.
 *
 * Records take time while they are on. The second fact costs nothing, and holds where no kernels overlap: on one
 * stream. So a trial at the start tells whether what records allow saves more than they cost. Where it does not, they
 * go off and the second fact counts, and what that saves pays for the next trial. */

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
