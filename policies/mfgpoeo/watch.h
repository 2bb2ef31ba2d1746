/* MF-GPOEO as released, monitoring: has the workload changed since a gear was found for it? */
#pragma once

#include "policies/mfgpoeo/totals.h"

typedef struct fl_mfg_watch { /* all zero: it begins */
    uint32_t windows, good;   /* watched; in a row without a bad one, after the first four */
    uint32_t recent;          /* one bit a window, the newest lowest: bad */
} fl_mfg_watch;

/* Sum of differences over sum of sums, each in units of what it can be at most. */
double fl_mfg_distance(const double a[FL_MFG_MEANS], const double b[FL_MFG_MEANS], const double most[FL_MFG_MEANS]);

/* One window at that distance from the reference. Returns 1 where three of the last five were bad: a change. */
int fl_mfg_watched(fl_mfg_watch *w, double distance, double th_ev);

/* Windows' lengths to pause before the next one. */
double fl_mfg_watch_pause(const fl_mfg_watch *w);
