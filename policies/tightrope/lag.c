#include "policies/tightrope/lag.h"

#include <math.h>

void fl_tightrope_lag_begin(fl_tightrope_lag *l, double before_w) {
    l->before_w = before_w;
    l->count = 0;
}

void fl_tightrope_lag_add(fl_tightrope_lag *l, double after_s, double w) {
    if (l->count == FL_TIGHTROPE_READINGS) {
        for (uint32_t i = 0; i < FL_TIGHTROPE_READINGS / 2; i++)
            l->after_s[i] = l->after_s[2 * i], l->w[i] = l->w[2 * i];
        l->count = FL_TIGHTROPE_READINGS / 2;
    }
    l->after_s[l->count] = after_s;
    l->w[l->count++] = w;
}

/* Means of the end and of a time a third before it. */
static int levels(const fl_tightrope_lag *l, double *last, double *third) {
    double number = 0, third_number = 0;
    *last = *third = 0;
    if (l->count < 4)
        return 0;
    const double end_s = l->after_s[l->count - 1];
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->after_s[i] > 0.9 * end_s)
            *last += l->w[i], number++;
        else if (l->after_s[i] >= 0.55 * end_s && l->after_s[i] <= 0.75 * end_s)
            *third += l->w[i], third_number++;
    }
    if (!(number > 0) || !(third_number > 0))
        return 0;
    *last /= number, *third /= third_number;
    return 1;
}

/* A first-order lag has 3 % left when its last third brought less than a twentieth of the change so far; a window of
 * the sensor's own has passed long before. */
double fl_tightrope_lag_seconds(const fl_tightrope_lag *l) {
    double last, third;
    if (!levels(l, &last, &third))
        return NAN;
    const double change = fabs(last - l->before_w);
    if (change < 0.01 * l->before_w || fabs(last - third) > 0.05 * change)
        return NAN;
    for (uint32_t i = l->count; i-- > 0;)
        if (fabs(l->w[i] - last) > 0.06 * change)
            return l->after_s[i + 1 < l->count ? i + 1 : i];
    return l->after_s[0];
}

int fl_tightrope_lag_still(const fl_tightrope_lag *l) {
    double last, third;
    return levels(l, &last, &third) && fabs(last - third) < 0.002 * last;
}
