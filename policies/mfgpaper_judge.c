#include "policies/mfgpaper_judge.h"

#include <math.h>

void fl_mfp_trace_add(fl_mfp_trace *t, uint32_t length, int32_t gear, double err) {
    if (t->count == length) {
        for (uint32_t i = 1; i < length; i++) {
            t->err[i - 1] = t->err[i];
            t->gear[i - 1] = t->gear[i];
        }
        t->count--;
    }
    t->err[t->count] = err;
    t->gear[t->count++] = gear;
}

int32_t fl_mfp_stable_gear(const fl_mfp_trace *t, uint32_t length, double th_ctrl, int32_t range) {
    if (t->count < length || !length)
        return -1;
    double loss = 0, away = 0, gears = 0;
    int32_t low = t->gear[0], high = t->gear[0];
    for (uint32_t i = 0; i < length; i++) {
        loss += t->err[i];
        away += fabs(t->err[i]);
        gears += t->gear[i];
        low = t->gear[i] < low ? t->gear[i] : low;
        high = t->gear[i] > high ? t->gear[i] : high;
    }
    if (!(loss < 0 && away / length < th_ctrl && high - low <= range))
        return -1;
    return (int32_t)ceil(gears / length - 1e-9);
}

static void sort(fl_mfp_tried *t, uint32_t count) { /* by gear, downwards */
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i; k > 0 && t[k].gear > t[k - 1].gear; k--) {
            const fl_mfp_tried swap = t[k];
            t[k] = t[k - 1];
            t[k - 1] = swap;
        }
}

/* The measurements from..to become their mean. */
static void average(fl_mfp_tried *t, uint32_t from, uint32_t to) {
    const double n = to - from;
    double loss = 0, base2 = 0, error2 = 0;
    for (uint32_t i = from; i < to; i++) {
        loss += t[i].loss;
        base2 += t[i].base_error * t[i].base_error;
        error2 += t[i].error * t[i].error;
    }
    for (uint32_t i = from; i < to; i++) {
        t[i].loss = loss / n;
        t[i].base_error = sqrt(base2 / n);
        t[i].error = sqrt(error2) / n;
    }
}

/* Where each gear begins; returns how many there are. */
static uint32_t find_gears(const fl_mfp_tried *t, uint32_t count, uint32_t *first) {
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || t[i].gear != t[i - 1].gear)
            first[blocks++] = i;
    first[blocks] = count;
    return blocks;
}

static double mean_loss(const fl_mfp_tried *t, uint32_t from, uint32_t to) {
    double sum = 0;
    for (uint32_t i = from; i < to; i++)
        sum += t[i].loss;
    return sum / (to - from);
}

/* Pool adjacent violators: losses rise as gears fall. */
static void make_monotone(fl_mfp_tried *t, uint32_t count) {
    double mean[FL_MFP_TRIED_MAX];
    uint32_t gear[FL_MFP_TRIED_MAX + 1], first[FL_MFP_TRIED_MAX + 1], blocks = 0;
    const uint32_t gears = find_gears(t, count, gear);
    for (uint32_t i = 0; i < gears; i++) {
        first[blocks] = gear[i];
        first[blocks + 1] = gear[i + 1];
        mean[blocks] = mean_loss(t, gear[i], gear[i + 1]);
        for (; blocks > 0 && mean[blocks] < mean[blocks - 1]; blocks--) {
            first[blocks] = first[blocks + 1];
            mean[blocks - 1] = mean_loss(t, first[blocks - 1], first[blocks]);
        }
        blocks++;
    }
    for (uint32_t b = 0; b < blocks; b++)
        average(t, first[b], first[b + 1]);
}

int fl_mfp_best_tried(const fl_mfp_tried *tried, uint32_t count, double sigma, int monotone, fl_mfp_tried *best) {
    fl_mfp_tried t[FL_MFP_TRIED_MAX];
    int found = 0;
    for (uint32_t i = 0; i < count; i++)
        t[i] = tried[i];
    if (monotone) {
        sort(t, count);
        make_monotone(t, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        const double margin = sigma * sqrt(t[i].base_error * t[i].base_error + t[i].error * t[i].error);
        if (t[i].loss + margin > t[i].bound || (found && t[i].objective >= best->objective))
            continue;
        *best = t[i];
        found = 1;
    }
    return found;
}

double fl_mfp_distance(const double a[FL_MFP_FEATURES], const double b[FL_MFP_FEATURES]) {
    double sum = 0;
    int features = 0;
    for (int i = 0; i < FL_MFP_FEATURES; i++) {
        if (!(a[i] + b[i] > 0))
            continue;
        sum += fabs(a[i] - b[i]) / (a[i] + b[i]);
        features++;
    }
    return features ? sum / features : (double)NAN;
}
