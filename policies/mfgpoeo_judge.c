#include "policies/mfgpoeo_judge.h"

#include <math.h>

void fl_mfg_trace_add(fl_mfg_trace *t, uint32_t length, int32_t gear, double err) {
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

int32_t fl_mfg_stable_gear(const fl_mfg_trace *t, uint32_t length, double th_ctrl, int32_t range) {
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

static void sort(fl_mfg_tried *t, uint32_t count) { /* by gear, downwards */
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i; k > 0 && t[k].gear > t[k - 1].gear; k--) {
            const fl_mfg_tried swap = t[k];
            t[k] = t[k - 1];
            t[k - 1] = swap;
        }
}

/* Equal gears are one. Returns where each begins. */
static uint32_t average_equal(fl_mfg_tried *t, uint32_t count, uint32_t *first) {
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || t[i].gear != t[i - 1].gear)
            first[blocks++] = i;
    first[blocks] = count;
    for (uint32_t b = 0; b < blocks; b++) {
        double sum = 0;
        for (uint32_t i = first[b]; i < first[b + 1]; i++)
            sum += t[i].loss;
        for (uint32_t i = first[b]; i < first[b + 1]; i++)
            t[i].loss = sum / (first[b + 1] - first[b]);
    }
    return blocks;
}

/* Pool adjacent violators: losses rise as gears fall. */
static void make_monotone(fl_mfg_tried *t, uint32_t count) {
    double mean[FL_MFG_TRIED_MAX];
    uint32_t gear[FL_MFG_TRIED_MAX + 1], first[FL_MFG_TRIED_MAX + 1], blocks = 0;
    const uint32_t gears = average_equal(t, count, gear);
    for (uint32_t i = 0; i < gears; i++) {
        first[blocks] = gear[i];
        mean[blocks++] = t[gear[i]].loss;
        first[blocks] = gear[i + 1];
        while (blocks > 1 && mean[blocks - 1] < mean[blocks - 2]) {
            const double n = first[blocks] - first[blocks - 1], m = first[blocks - 1] - first[blocks - 2];
            mean[blocks - 2] = (mean[blocks - 2] * m + mean[blocks - 1] * n) / (m + n);
            first[blocks - 1] = first[blocks];
            blocks--;
        }
    }
    for (uint32_t b = 0; b < blocks; b++)
        for (uint32_t i = first[b]; i < first[b + 1]; i++)
            t[i].loss = mean[b];
}

int fl_mfg_best_tried(const fl_mfg_tried *tried, uint32_t count, fl_mfg_tried *best) {
    fl_mfg_tried t[FL_MFG_TRIED_MAX];
    int found = 0;
    for (uint32_t i = 0; i < count; i++)
        t[i] = tried[i];
    sort(t, count);
    make_monotone(t, count);
    for (uint32_t i = 0; i < count; i++) {
        if (t[i].loss > t[i].bound || (found && t[i].objective >= best->objective))
            continue;
        *best = t[i];
        found = 1;
    }
    return found;
}

double fl_mfg_distance(const double a[FL_MFG_FEATURES], const double b[FL_MFG_FEATURES]) {
    double sum = 0;
    int features = 0;
    for (int i = 0; i < FL_MFG_FEATURES; i++) {
        if (!(a[i] + b[i] > 0))
            continue;
        sum += fabs(a[i] - b[i]) / (a[i] + b[i]);
        features++;
    }
    return features ? sum / features : (double)NAN;
}
