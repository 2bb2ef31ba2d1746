/* MF-GPOEO, performance against the baseline: coverage (Algorithm 1), update of the database (Algorithm 2 lines 5-18)
 * and the synthetic performance index over streams (Algorithm 3) with its filters (Eq. 9, 10). */
#pragma once

#include "policies/mfgpaper_kinds.h"

enum { FL_MFP_POOLED, FL_MFP_REPLACED };
enum { FL_MFP_LONG_RUN, FL_MFP_MEASURED };

typedef struct fl_mfp_filters {
    double th_exe, th_gap; /* Eq. 9, 10: deviation over average must be below, on both sides */
    int64_t database;      /* update: FL_MFP_POOLED with what is known ("fusion"), FL_MFP_REPLACED (line 7, 14) */
    int64_t weights; /* of the kinds in the index: FL_MFP_MEASURED, their counts in this measurement (Algorithm 3);
                        FL_MFP_LONG_RUN, in the database, which holds more of the phases that take turns */
    double
        th_repeat; /* a kind varies if two baseline windows differ by more than this share and four standard errors */
} fl_mfp_filters;

/* Algorithm 1: share of the measured execution time whose kinds the database knows; 0 where nothing was measured. */
double fl_mfp_coverage(const fl_mfp_data *data);

/* The other way round: share of the database's execution time whose kinds were measured; 1 where it is empty. */
double fl_mfp_seen(const fl_mfp_data *data);

/* Marks the kernels and gaps that vary: their work is not the same each time, although name, grid and block are (Sec.
 * IV-A: averages must be comparable). No clock explains a kernel that takes less than `least` or more than `most` times
 * as long as in the database; at the default clocks both are 1, and gaps must repeat as well. */
void fl_mfp_mark_varying(fl_mfp_data *data, const fl_mfp_filters *f, double least, double most);

/* Algorithm 2 lines 5-18, after a window at the default clocks. */
void fl_mfp_update(fl_mfp_data *data, const fl_mfp_filters *f);

/* The database is outdated: as if nothing had been measured before. */
void fl_mfp_forget(fl_mfp_data *data);

typedef struct fl_mfp_index {
    double index;      /* time over the time of the same work at the default clocks; NAN: nothing could be compared */
    double error;      /* standard error of index, from the deviations and counts of both sides */
    double base_error; /* what of it is the database's */
    double matched;    /* share of the measured execution and gap time that was compared */
} fl_mfp_index;

/* Algorithm 3. Kinds enter that both sides know, that do not vary, and that pass the filters. A stream's execution time
 * without any such kind is left out; gap time without any counts as unchanged: it is host time (assumed: both divide 0
 * by 0 as printed). */
fl_mfp_index fl_mfp_index_of(const fl_mfp_data *data, const fl_mfp_filters *f);
