#include "policies/mfgpoeo/watch.h"

#include <math.h>

enum { RECENT = 5, BAD = 3, CLOSE = 4, LONGEST = 8 }; /* CLOSE: windows that follow each other at once */

double fl_mfg_distance(const double a[FL_MFG_MEANS], const double b[FL_MFG_MEANS], const double most[FL_MFG_MEANS]) {
    double away = 0, all = 0;
    for (int i = 0; i < FL_MFG_MEANS; i++) {
        away += fabs(a[i] - b[i]) / most[i];
        all += (a[i] + b[i]) / most[i];
    }
    return all == 0 ? 0 : away / all;
}

int fl_mfg_watched(fl_mfg_watch *w, double distance, double th_ev) {
    const uint32_t bad = distance > th_ev;
    uint32_t count = 0;
    w->windows++;
    w->good = bad || w->windows <= CLOSE ? 0 : w->good + 1;
    w->recent = (w->recent << 1 | bad) & ((UINT32_C(1) << RECENT) - 1);
    for (uint32_t i = 0; i < RECENT; i++)
        count += w->recent >> i & 1;
    return count >= BAD;
}

double fl_mfg_watch_pause(const fl_mfg_watch *w) {
    double pause = w->good > 0;
    for (uint32_t i = 1; i < w->good && pause < LONGEST; i++)
        pause *= 2;
    return pause;
}
