/* MF-GPOEO as released: rules of the baseline, the controller of gears, and the rule that stops the search. */
#include "policies/mfgpoeo/inside.h"

#include <math.h>
#include <stdint.h>

/* ---- rules of the baseline ---- */

/* Is the difference of two utilisations more than noise? Both limits rise with the load. */
static int differs(double util, double mean_util) {
    const double apart = fl_mfg_apart(util, mean_util), mean = (util + mean_util) / 2, away = fabs(util - mean_util);
    if (apart > (mean < 25 ? 0.05 : 0.04))
        return 1;
    return away > (mean < 50 ? 2.4 : mean < 60 ? 3 : 7);
}

double fl_mfg_length_test(fl_mfg_length *l, double util, double mean_util, double step_s, double most_s) {
    const double apart = fl_mfg_apart(util, mean_util), before = l->seconds;
    l->added = 0;
    if (apart > 0.18) { /* another phase of the program: the mean begins anew */
        l->repeats = 0;
        return 0.01;
    }
    if (!differs(util, mean_util)) {
        l->repeats++;
        return 0.8;
    }
    l->seconds = fmin(before + step_s, most_s);
    l->added = l->seconds - before;
    l->repeats = 0;
    return apart > 0.15 ? 0.1 : 0.8;
}

int fl_mfg_length_found(const fl_mfg_length *l, double most_s) {
    return l->seconds >= most_s || l->repeats >= (l->seconds <= 10 ? 3 : 1);
}

int fl_mfg_violates(const fl_mfg_repeat *r, double th_cover) {
    const fl_mfg_index *i = &r->index;
    if (i->covered < th_cover || i->matched < th_cover)
        return 1;
    if (fabs(i->loss) > 0.04 || fabs(i->exe) > 0.08 || fabs(i->gap) > 0.25)
        return 1;
    if (fabs(i->gap) > 0.05 && r->util_gpu > 70 && r->util_mem > 50)
        return 1;
    return r->apart > 0.06;
}

double fl_mfg_repeat_keeps(const fl_mfg_repeat *r, int violates) {
    const double worse = fmax(fabs(r->index.exe), fabs(r->index.gap));
    if (!violates || worse < 0.02)
        return 0.9;
    return worse < 0.08 ? 0.7 : worse < 0.12 ? 0.6 : 0.4;
}

int fl_mfg_repeat_again(const fl_mfg_index *i, double th_cover) {
    return i->covered < th_cover || i->matched < th_cover || fabs(i->loss) > 0.04 || fabs(i->exe) > 0.08 ||
           fabs(i->gap) > 0.15;
}

fl_mfg_keep fl_mfg_refresh_keeps(double loss) {
    const double e = fabs(loss);
    if (e < 0.02)
        return (fl_mfg_keep){.factor = 0.8};
    return (fl_mfg_keep){.factor = e < 0.05 ? 0.4 : e < 0.08 ? 0.3 : 0.2, .relative = 1};
}

double fl_mfg_factor(fl_mfg_keep keep, double window_s, double base_s) {
    return fmax(keep.relative ? fl_mfg_over(keep.factor * window_s, base_s) : keep.factor, 0.01);
}

/* ---- the controller ---- */

/* Compounded gains grow from call to call; only they have a limit. */
static double compound(fl_mfg_pid *s, double kp, double factor) {
    const double gain = factor * (s->compounded ? s->gain : kp);
    s->compounded = 1;
    return fmin(gain, 8);
}

/* Neither this loss nor the one before says that a lower clock costs anything. */
static int is_flat(const fl_mfg_pid *s, const fl_mfg_measured *m) {
    if (!s->calls || !(m->loss < 0.2 * m->bound && s->loss < 0.2 * m->bound))
        return 0;
    if (m->below_mhz > 0.5)
        return 1;
    const double step = m->gear - s->gear[0];
    return step != 0 && (m->loss - s->loss) / step > -3 * m->bound / (m->gears - 1.0);
}

/* The gain of this call: the first row that holds. */
static double gain_of(fl_mfg_pid *s, double kp, const fl_mfg_measured *m, double err) {
    const double c = m->bound;
    if (!s->calls)
        return 0.7 * kp;
    if (is_flat(s, m))
        return compound(s, kp, 1.5);
    if (s->calls >= 2 && s->gear[1] > s->gear[0] && s->gear[0] > m->gear && m->loss < 0.5 * c)
        return compound(s, kp, 1.75);
    if (err > 0 && err < 0.04)
        return 0.75 * kp;
    if (err > 0 && err < 0.1 && fabs(m->loss) > 2 * c)
        return 2.2 * kp;
    if (err > 0 && err < 0.4 && fabs(m->loss) > 3 * c)
        return 2.5 * kp;
    if (err <= 0 && -err < 0.003)
        return 4 * kp;
    if (err <= 0 && -err < 0.006)
        return 2.5 * kp;
    if (err <= 0 && -err < 0.025)
        return 1.75 * kp;
    return kp;
}

/* At least one gear in the direction of the error; none where the loss is nearly the bound. */
static double towards_bound(double next, const fl_mfg_pid *s, const fl_mfg_measured *m, double err) {
    if (err < 0 && next <= m->gear)
        next = m->gear + 1.0;
    if (err > 0 && next >= m->gear)
        next = m->gear - 1.0;
    return s->calls && err > 0 && err < 0.01 * m->bound ? m->gear : next;
}

int32_t fl_mfg_pid_next(fl_mfg_pid *s, const fl_mfg_gains *k, const fl_mfg_measured *m) {
    const double err = m->bound - m->loss, gain = gain_of(s, k->kp, m, err);
    const int turned = s->calls && err * s->err < 0;
    double delta = gain * err;
    s->integral = turned ? err : s->integral + err;
    if (s->calls && !turned)
        delta += k->ki * s->integral;
    const double rise = m->loss - s->loss;
    if (s->calls && rise * err < 0 && fabs(rise) > 0.5 * m->bound) /* on the way to the bound: it damps */
        delta += k->kd * rise;
    const double next = towards_bound(round(m->gear * (1 - delta)), s, m, err), top = m->gears - 1.0;
    s->err = err;
    s->loss = m->loss;
    s->gain = gain;
    s->gear[1] = s->gear[0];
    s->gear[0] = m->gear;
    s->calls++;
    return (int32_t)(next < 0 ? 0 : next > top ? top : next);
}

/* ---- the stop rule ---- */

enum { LAST = 5 }; /* measurements among which the best is looked for */

void fl_mfg_try(fl_mfg_tries *t, fl_mfg_tried tried) {
    if (t->count == FL_MFG_KEPT) {
        for (uint32_t i = 1; i < FL_MFG_KEPT; i++)
            t->entry[i - 1] = t->entry[i];
        t->count--;
    }
    t->entry[t->count++] = tried;
}

/* The i-th from the latest back. */
static const fl_mfg_tried *back(const fl_mfg_tries *t, uint32_t i) { return &t->entry[t->count - 1 - i]; }

static double cost(const fl_mfg_tried *e) { return e->objective + (e->rho > 0); }

/* Of the last five, one that costs less and is not the slower for it; where it breaks the bound, the highest gear. */
static int32_t best(const fl_mfg_tries *t) {
    const uint32_t count = t->count < LAST ? t->count : LAST;
    const fl_mfg_tried *found = back(t, 0);
    int32_t highest = t->count < LAST ? found->next : found->gear;
    for (uint32_t i = 0; i < count; i++) {
        const fl_mfg_tried *e = back(t, i);
        if (cost(e) < cost(found) && (e->gear >= found->gear || e->rho > found->rho))
            found = e;
        highest = e->gear > highest ? e->gear : highest;
    }
    return found->rho > 0 ? highest : found->gear;
}

/* The last three proposals are far down the ladder and nothing was lost there. */
static int is_low(const fl_mfg_tries *t, const fl_mfg_search *s) {
    if (t->count < 3)
        return 0;
    for (uint32_t i = 0; i < 3; i++)
        if (!(back(t, i)->next < 0.6 * s->gears) || !(back(t, i)->rho < 0))
            return 0;
    return 1;
}

/* How many measurements must agree, and how well. */
static double demand(const fl_mfg_search *s, int32_t next, uint32_t *count) {
    *count = 2;
    if (s->low_memory || next < 0.5 * s->gears)
        return 0.55;
    if (next < 0.73 * s->gears)
        return 0.40;
    if (s->adjustments >= 4) /* from five on the best is taken at once: the rows for 5 and 6 are never reached */
        return 0.20;
    *count = 3;
    return 0.20;
}

/* Of the latest count + 1 the one whose removal leaves a mean below the bound, and the least mean error; the oldest
 * where none does. Counted from the latest back. */
static uint32_t odd_one(const fl_mfg_tries *t, uint32_t count) {
    uint32_t found = count;
    double least = INFINITY;
    for (uint32_t without = count + 1; without-- > 0;) {
        double sum = 0, away = 0;
        for (uint32_t i = 0; i <= count; i++) {
            sum += i == without ? 0 : back(t, i)->rho;
            away += i == without ? 0 : fabs(back(t, i)->rho);
        }
        if (sum < 0 && away < least) {
            least = away;
            found = without;
        }
    }
    return found;
}

/* The mean gear of measurements that agree, those near the bound and within it weighing most; -1 where they do not. */
static int32_t agreed(const fl_mfg_tries *t, uint32_t count, double threshold) {
    const uint32_t without = t->count > count ? odd_one(t, count) : count;
    double sum = 0, away = 0, gears = 0, weights = 0;
    int32_t low = INT32_MAX, high = INT32_MIN;
    if (t->count < count)
        return -1;
    for (uint32_t i = 0; i <= count; i++) {
        if (i == without)
            continue;
        const fl_mfg_tried *e = back(t, i);
        const double w = (e->rho > 0 ? 0.25 : 1) / sqrt(fmax(fabs(e->rho), 1e-12));
        sum += e->rho;
        away += fabs(e->rho);
        gears += w * e->gear;
        weights += w;
        low = e->gear < low ? e->gear : low;
        high = e->gear > high ? e->gear : high;
    }
    if (away / count > threshold || sum > 0 || back(t, 0)->rho > 0.05 || high - low > 8)
        return -1;
    return (int32_t)round(gears / weights);
}

int32_t fl_mfg_stop(const fl_mfg_tries *t, const fl_mfg_search *s) {
    if (s->adjustments < 3 || !t->count)
        return -1;
    const fl_mfg_tried *latest = back(t, 0);
    const int32_t step = latest->next - latest->gear;
    uint32_t count;
    if (s->adjustments >= 5 || (s->adjustments >= 4 && s->late) || step == 0 ||
        (step >= -3 && step <= 3 && latest->rho < 0))
        return best(t);
    if (is_low(t, s))
        return (int32_t)round((back(t, 0)->next + back(t, 1)->next + back(t, 2)->next) / 3.0);
    const double threshold = demand(s, latest->next, &count);
    return agreed(t, count, threshold);
}
