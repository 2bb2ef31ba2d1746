#include "policies/mfgpoeo/stop.h"

#include <math.h>

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
