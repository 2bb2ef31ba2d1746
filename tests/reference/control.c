/* The controller and the stop rule of MF-GPOEO as released. A sentence in quotes is the note's. */
#include "tests/reference/program.h"

#include <math.h>

#define KP 2.8
#define KI 0.002
#define KD 0.9

/* ---- the controller ---- */

/* "compound f: f Kp the first time, later f g' (g' of whatever band), at most 8 (this cap is only here)." */
static double compound(ref_program *p, double f) {
    double g = p->compounded ? f * p->last_gain : f * KP;
    ref_reach(p->compounded ? REF_GAIN_COMPOUND_LATER : REF_GAIN_COMPOUND_FIRST);
    p->compounded = true;
    if (g > 8) {
        ref_reach(REF_GAIN_CAP);
        g = 8;
    }
    return g;
}

/* "slope = d loss / d gear; same gear: not flat": "slope > -3C/(N-1)". */
static bool flat(const ref_program *p, double loss) {
    const int d_gear = p->gear - p->gear_before[0];
    return d_gear != 0 && (loss - p->last_loss) / d_gear > -3 * p->bound / (p->gears - 1);
}

static double banded(int branch, double factor) {
    ref_reach(branch);
    return factor * KP;
}

/* The table of gains, row by row: "by first match". */
static double gain(ref_program *p, double loss, double err, double measured_mhz) {
    const double c = p->bound;
    if (p->calls == 1)
        return banded(REF_GAIN_FIRST, 0.7);
    const bool slower = measured_mhz > 0 && ref_sm_mhz(p, p->gear) - measured_mhz > 0.5; /* 0: not known */
    if (loss < 0.2 * c && p->last_loss < 0.2 * c && (slower || flat(p, loss))) {
        ref_reach(slower ? REF_GAIN_15_CLOCK : REF_GAIN_15_SLOPE);
        return compound(p, 1.5);
    }
    if (p->calls >= 3 && p->gear_before[1] > p->gear_before[0] && p->gear_before[0] > p->gear && loss < 0.5 * c) {
        ref_reach(REF_GAIN_175);
        return compound(p, 1.75);
    }
    if (0 < err && err < 0.04)
        return banded(REF_GAIN_NEAR, 0.75);
    if (0 < err && err < 0.1 && fabs(loss) > 2 * c)
        return banded(REF_GAIN_22, 2.2);
    if (0 < err && err < 0.4 && fabs(loss) > 3 * c)
        return banded(REF_GAIN_25, 2.5);
    if (err <= 0 && -err < 0.003)
        return banded(REF_GAIN_OVER_4, 4);
    if (err <= 0 && -err < 0.006)
        return banded(REF_GAIN_OVER_25, 2.5);
    if (err <= 0 && -err < 0.025)
        return banded(REF_GAIN_OVER_175, 1.75);
    return banded(REF_GAIN_ELSE, 1);
}

/* "gear = round(gear (1 - delta)); if over the bound and not above the old: old+1 (not at the top); if under and not
 * below: old-1. k >= 2 and 0 < err < 0.01 C: gear stays. Clamp." */
static int moved(const ref_program *p, double err, double delta) {
    const int old = p->gear, top = p->gears - 1;
    const double proposed = round(old * (1 - delta));
    int gear = proposed > top ? top : proposed < 0 ? 0 : (int)proposed;
    if (proposed > top)
        ref_reach(REF_CLAMPED_HIGH);
    if (proposed < 0)
        ref_reach(REF_CLAMPED_LOW);
    if (err < 0 && gear <= old && old != top) {
        ref_reach(REF_PUSHED_UP);
        gear = old + 1;
    }
    if (err > 0 && gear >= old) {
        ref_reach(REF_PUSHED_DOWN);
        gear = old > 0 ? old - 1 : 0;
    }
    if (p->calls >= 2 && 0 < err && err < 0.01 * p->bound) {
        ref_reach(REF_DEAD_ZONE);
        gear = old;
    }
    return gear;
}

/* "k-th call since (re)start, err = C - loss. I = sum of err; at a change of sign I = err and Ki = 0 in this call (k =
 * 1: 0 too); q = loss - loss'; Kd acts only if k >= 2, q err < 0, |q| > 0.5 C. delta = g err + Ki I + Kd q" */
int ref_controller(ref_program *p, double loss, double measured_mhz) {
    p->calls++;
    const double err = p->bound - loss, q = loss - p->last_loss;
    const double g = gain(p, loss, err, measured_mhz);
    const bool first = p->calls == 1, turned = !first && err * p->last_error < 0;
    if (turned)
        ref_reach(REF_SIGN_CHANGED);
    p->error_sum = first || turned ? err : p->error_sum + err;
    const bool damped = !first && q * err < 0 && fabs(q) > 0.5 * p->bound;
    if (damped)
        ref_reach(REF_KD_ACTS);
    const double delta = g * err + (first || turned ? 0 : KI) * p->error_sum + (damped ? KD : 0) * q;
    const int next = moved(p, err, delta);
    p->last_error = err;
    p->last_loss = loss;
    p->last_gain = g;
    p->gear_before[1] = p->gear_before[0];
    p->gear_before[0] = p->gear;
    return next;
}

/* ---- the stop rule ---- */

static const ref_measured *back(const ref_program *p, int i) { return &p->kept[p->kept_count - 1 - i]; }

/* "best: from the latest back over 5 measurements, replaced where objective (+1 if rho > 0) is lower and (gear >=
 * best's, or gear lower and rho higher). If its rho > 0: the highest of these gears. (n = 3, 4 after start: next is
 * among them.)" */
static int best(const ref_program *p) {
    const int depth = p->kept_count < 5 ? p->kept_count : 5;
    const ref_measured *b = back(p, 0);
    int highest = b->gear;
    for (int i = 1; i < depth; i++) {
        const ref_measured *m = back(p, i);
        if (m->objective + (m->rho > 0) < b->objective + (b->rho > 0) &&
            (m->gear >= b->gear || (m->gear < b->gear && m->rho > b->rho)))
            b = m;
        if (m->gear > highest)
            highest = m->gear;
    }
    ref_reach(b == back(p, 0) ? REF_BEST_LATEST : REF_BEST_EARLIER);
    if (!(b->rho > 0))
        return b->gear;
    ref_reach(REF_BEST_HIGHEST);
    if (p->kept_count < 5 && back(p, 0)->next > highest) {
        ref_reach(REF_BEST_WITH_NEXT);
        highest = back(p, 0)->next;
    }
    return highest;
}

/* "best at once if n >= 5; n >= 4 and > 75 s of traced windows since (re)start, all kinds counted; next = m; or their
 * range <= 3 and rho < 0." */
static bool at_once(const ref_program *p) {
    const ref_measured *m = back(p, 0);
    const int range = m->next > m->gear ? m->next - m->gear : m->gear - m->next;
    if (p->calls >= 5)
        ref_reach(REF_STOP_5);
    else if (p->calls >= 4 && p->traced_ns > INT64_C(75000000000))
        ref_reach(REF_STOP_75);
    else if (m->next == m->gear)
        ref_reach(REF_STOP_SAME);
    else if (range <= 3 && m->rho < 0)
        ref_reach(REF_STOP_NEAR);
    else
        return false;
    return true;
}

/* "if the last 3 proposals (next included) < 0.6 N and last 3 rho < 0: their rounded mean." -1 if not. */
static int low(const ref_program *p) {
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        if (!(back(p, i)->next < 0.6 * p->gears && back(p, i)->rho < 0))
            return -1;
        sum += back(p, i)->next;
    }
    ref_reach(REF_STOP_LOW);
    return (int)round(sum / 3);
}

typedef struct judged {
    ref_measured at[6]; /* oldest first */
    int count;
} judged;

static judged without(const judged *j, int left_out) {
    judged k = {.count = 0};
    for (int i = 0; i < j->count; i++)
        if (i != left_out)
            k.at[k.count++] = j->at[i];
    return k;
}

static double mean_rho(const judged *j, bool absolute) {
    double sum = 0;
    for (int i = 0; i < j->count; i++)
        sum += absolute ? fabs(j->at[i].rho) : j->at[i].rho;
    return sum / j->count;
}

/* "over J entries (if J+1 exist, without the one whose removal leaves mean < 0 and least mean |rho|; else without the
 * oldest)" */
static judged latest(const ref_program *p, int count) {
    judged all = {.count = p->kept_count < count + 1 ? p->kept_count : count + 1};
    for (int i = 0; i < all.count; i++)
        all.at[i] = *back(p, all.count - 1 - i);
    if (all.count <= count) {
        ref_reach(REF_LEFT_OUT_NONE);
        return all;
    }
    int chosen = -1;
    double least = INFINITY;
    for (int i = 0; i < all.count; i++) {
        const judged rest = without(&all, i);
        if (mean_rho(&rest, false) < 0 && mean_rho(&rest, true) < least) {
            chosen = i;
            least = mean_rho(&rest, true);
        }
    }
    ref_reach(chosen < 0 ? REF_LEFT_OUT_OLDEST : REF_LEFT_OUT_BEST);
    return without(&all, chosen < 0 ? 0 : chosen);
}

/* "(J, T), first match: memory gear <= M/2 or next < 0.5 N: 2, 0.55; next < 0.73 N: 2, 0.40; n >= 6: 2, 0.30; n = 5: 2,
 * 0.25; n = 4: 2, 0.20; n = 3: 3, 0.20." */
static int rule(const ref_program *p, double *most) {
    static const struct {
        int branch, count;
        double most;
    } row[] = {{REF_JUDGED_055, 2, 0.55}, {REF_JUDGED_040, 2, 0.40}, {REF_JUDGED_030, 2, 0.30},
               {REF_JUDGED_025, 2, 0.25}, {REF_JUDGED_020, 2, 0.20}, {REF_JUDGED_3, 3, 0.20}};
    const int next = back(p, 0)->next, n = p->calls;
    const int i = p->memory <= p->memory_gears / 2 || next < 0.5 * p->gears ? 0
                  : next < 0.73 * p->gears                                  ? 1
                  : n >= 6                                                  ? 2
                  : n == 5                                                  ? 3
                  : n == 4                                                  ? 4
                                                                            : 5;
    ref_reach(row[i].branch);
    *most = row[i].most;
    return row[i].count;
}

/* "unstable if mean |rho| > T, mean rho > 0, latest rho > 0.05, or range of m > 8" */
static bool unstable(const ref_program *p, const judged *j, double most) {
    int lowest = j->at[0].gear, highest = lowest;
    for (int i = 1; i < j->count; i++) {
        lowest = j->at[i].gear < lowest ? j->at[i].gear : lowest;
        highest = j->at[i].gear > highest ? j->at[i].gear : highest;
    }
    if (mean_rho(j, true) > most)
        ref_reach(REF_UNSTABLE_SPREAD);
    else if (mean_rho(j, false) > 0)
        ref_reach(REF_UNSTABLE_MEAN);
    else if (back(p, 0)->rho > 0.05)
        ref_reach(REF_UNSTABLE_LATEST);
    else if (highest - lowest > 8)
        ref_reach(REF_UNSTABLE_RANGE);
    else
        return false;
    return true;
}

/* "result = mean of m weighted 1/sqrt|rho|, a quarter if rho > 0, rounded." */
static int weighted(const judged *j) {
    double weights = 0, sum = 0;
    for (int i = 0; i < j->count; i++) {
        const double rho = j->at[i].rho, w = 1 / sqrt(fmax(fabs(rho), 1e-12)) * (rho > 0 ? 0.25 : 1);
        if (rho > 0)
            ref_reach(REF_STABLE_QUARTER);
        weights += w;
        sum += w * j->at[i].gear;
    }
    ref_reach(REF_STABLE);
    return (int)round(sum / weights);
}

int ref_stop_rule(ref_program *p) {
    if (at_once(p))
        return best(p);
    const int mean_of_low = low(p);
    if (mean_of_low >= 0)
        return mean_of_low;
    double most;
    const int count = rule(p, &most);
    const judged j = latest(p, count);
    return unstable(p, &j, most) ? -1 : weighted(&j);
}
