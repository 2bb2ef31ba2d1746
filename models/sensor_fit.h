/* A course of true power through a sensor, and a sensor against what it logged: refresh period and phase out of a log,
 * the replay of an external meter through a fl_sensor_spec, and the match of the two by one gain and one offset.
 *
 * Times are seconds on any clock (doubles, so give times from the start of the recording, not from 1970); powers are W.
 * Every array is the caller's; nothing is kept. Readings that are NaN ("[N/A]" in a log) are skipped everywhere.
 *
 * Two ways to say when the sensor refreshed. The grid, phase + k x period, is what the simulator uses. A real board
 * also refreshes late now and then and, when idle, may hold its average for ten periods; fl_sensor_seen therefore takes
 * from the log only WHEN a new value appeared, while the value itself always comes from the true course. */
#ifndef FL_SENSOR_FIT_H
#define FL_SENSOR_FIT_H

#include "models/sensor.h"
#include "models/status.h"

#include <stddef.h>

/* The true course: watts[i] holds from time_s[i] until time_s[i + 1]; the last time ends it. Times strictly increase,
 * all is finite, count >= 2. */
typedef struct fl_sensor_course {
    const double *time_s, *watts;
    size_t count;
} fl_sensor_course;

/* The log: what a reader saw at each time. Times do not decrease; values may be NaN. */
typedef struct fl_sensor_log {
    const double *time_s, *watts;
    size_t count;
} fl_sensor_log;

typedef struct fl_sensor_match {
    double gain, offset; /* logged = gain x replayed + offset [W] */
    double rms;          /* of the residual [W] */
    double shift_s;      /* fl_sensor_align: meter time - log time */
    size_t used;         /* readings compared */
} fl_sensor_match;

/* Refresh period and phase from the instants where the logged value changes. A refresh that repeats a value is not
 * seen (a gap of several periods); one that is seen happened since the reading before (its poll jitter). Period: the
 * peak of the periodogram of the changes (Rayleigh's statistic), first within short blocks and then over ever longer
 * ones, so that no gap is ever counted in wrong periods; then least squares of the middles of the intervals in which
 * the refreshes must lie, on whole numbers, twice, the second time without outliers. The phase is the first refresh in
 * the log, in [first time, first time + period); it includes the sensor's delay. NO_FIT: fewer than 8 changes, or
 * changes that keep no period. */
fl_model_status fl_sensor_refreshes(const fl_sensor_log *log, double *period_s, double *phase_s);

/* shown_s[i] = the instant at which the value of reading i first could be seen: the last point of the grid at or before
 * the reading where the value changed, kept between that reading and the one before. NaN until the first change. */
fl_model_status fl_sensor_seen(const fl_sensor_log *log, double period_s, double phase_s, double *shown_s);

/* What a reader at read_s[0..count) sees (ascending not required): the last refresh of the grid whose value is out
 * (refresh + delay <= reading), the mean of the window before it by exact integral, lagged from refresh to refresh
 * (from the first complete window on, which starts settled), quantised. NaN where there is none: before the first
 * refresh, a window that the course does not cover, a sensor that is not present. Noise is not replayed. With period 0
 * the value is that at the reading; a lag then has no steps to go by: INVALID. */
fl_model_status fl_sensor_replay(const fl_sensor_spec *spec, const fl_sensor_course *course, const double *read_s,
                                 size_t count, double *out_w);

/* The same with the instants at which values came out given (fl_sensor_seen), not the grid: period and phase of spec
 * serve only the lag, which goes on in steps of a period between two of them. shown_s does not decrease, NaN apart.
 * shift_s is added to get from the log's clock to the course's. */
fl_model_status fl_sensor_replay_seen(const fl_sensor_spec *spec, const fl_sensor_course *course, const double *shown_s,
                                      size_t count, double shift_s, double *out_w);

/* Least squares of logged on replayed over the pairs without NaN. NO_FIT: fewer than 8, or the replayed one is flat. */
fl_model_status fl_sensor_match_of(const double *replayed, const double *logged, size_t count, fl_sensor_match *out);

/* Replay at shown_s and match, at the shift between log and meter within +-max_shift_s that leaves the least RMS. The
 * shift stands for all that is constant in time and that a log cannot tell apart: the offset of the two clocks, the
 * transport delay, when the reader stamped. The readings compared are the same for every shift: those whose window the
 * course covers at both ends of the range. */
fl_model_status fl_sensor_align(const fl_sensor_spec *spec, const fl_sensor_course *course, const fl_sensor_log *log,
                                const double *shown_s, double max_shift_s, fl_sensor_match *out);

/* The height of the step in a log with a low and a high plateau: 95th less 5th percentile. NO_FIT: no valid value. */
fl_model_status fl_sensor_step(const fl_sensor_log *log, double *step_w);

#endif
