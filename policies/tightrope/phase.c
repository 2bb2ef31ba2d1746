/* tightrope: phases of the program, told apart by activity records. */
#include "policies/tightrope/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define STRANGE_S 0.04     /* of kernels that the phase does not have, more than of its own, end it */
#define BRIEF_S 0.7        /* where useful stays are shorter no change of the clock pays, and phases become one */
#define LATELY 8           /* stays, that their mean length remembers */
#define LONG_S 2           /* what it is taken for at first, and a longer one counts as */
#define USUAL 0.005        /* least share of a kind that a phase has */
#define COVERED 0.75       /* of the time in which a phase is looked for, least share of kinds that it has */
#define UNLIKE 0.3         /* least part that a window has in common with its phase */
#define REMEMBERED_S 30    /* of windows, that the shares stand on */
#define HURRY_DECISIONS 12 /* chosen among 6, 12 and 24 on the tuning halves of sweeps */

int fl_tightrope_phase_strange(const fl_tightrope_work *w) {
    return w->signal == FL_TIGHTROPE_RECORDS && w->strange_s > STRANGE_S;
}

double fl_tightrope_phase_time(const fl_tightrope_phases *p, const fl_tightrope_work *w) {
    return p->turns ? p->phase[p->current].time_s : w->elapsed_s;
}

int fl_tightrope_phase_hurries(const fl_tightrope_phases *p, const fl_tightrope_work *w) {
    return w->signal == FL_TIGHTROPE_RECORDS && p->phase[p->current].decisions < HURRY_DECISIONS;
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

/* The present stay ends. If no other clock than the top was learned in it, it was of no use. */
static void count_stay(fl_tightrope_phases *p, const fl_tightrope_seen *seen) {
    int learned = 0;
    for (int i = 0; i < FL_TIGHTROPE_CLOCKS; i++)
        learned += seen[i].weight_s > 0;
    const double useful_s = learned > 1 ? fmin(p->stay_s, LONG_S) : 0;
    const double before_s = p->useful_s > 0 ? p->useful_s : LONG_S;
    p->useful_s = before_s + (useful_s - before_s) / LATELY;
}

int fl_tightrope_phase_turns(fl_tightrope_phases *p, fl_tightrope_work *w, fl_tightrope_seen *seen, double length_s) {
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
    if (turned && p->useful_s > BRIEF_S) {
        double same;
        const int64_t next = find(p, w, strange, &same);
        fl_tightrope_phase *to = &p->phase[next];
        memcpy(now->seen, seen, sizeof now->seen);
        if (!(same > 0)) {
            memset(to, 0, sizeof *to);
            add(to, w, strange);
        }
        memcpy(seen, to->seen, sizeof to->seen);
        p->turns++, p->current = next, p->stay_s = 0;
        show(to, w);
        return 1;
    }
    if (turned || !(w->strange_s > 0)) {
        add(now, w, 0);
        show(now, w);
    }
    return 0;
}
