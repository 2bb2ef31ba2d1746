#include "policies/mfgpoeo/base.h"

#include "policies/mfgpoeo/totals.h"

#include <math.h>

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
