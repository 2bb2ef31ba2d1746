/* What the files of models/fit share: refreshes and replays of a power sensor. */
#pragma once

#include "models/fit/fit.h"
#include "models/laws/device.h"
#include "models/math/math.h"

#include <stddef.h>

/* Refresh period and phase from the instants at which the logged value changes. A refresh that repeats a value is
 * invisible and leaves a gap of several periods. A visible refresh happened between the reading that shows it and the
 * one before (the polling jitter). The period is the peak of the periodogram of the changes (Rayleigh's statistic),
 * first within short blocks and then over ever longer ones, so that every gap counts a correct number of periods. A
 * least squares of the middles of the intervals in which the refreshes must lie, on whole numbers of periods, then
 * refines it twice, the second time without outliers. The phase is the first refresh in the log, in [first time, first
 * time + period); it includes the sensor's delay. NO_FIT: fewer than 8 changes, or changes that keep no period. */
fl_model_status fl_sensor_refreshes(const fl_sensor_log *log, double *period_s, double *phase_s);

/* shown_s[i] is the instant at which the value of reading i first became visible: the last grid point at or before the
 * reading where the value changed, limited to the interval between that reading and the one before. NaN until the first
 * change. */
fl_model_status fl_sensor_seen(const fl_sensor_log *log, double period_s, double phase_s, double *shown_s);

/* The values that a reader sees at read_s[0..count), which may come in any order. Each is the last grid refresh whose
 * value is out (refresh + delay <= reading): the mean of the window before it by exact integral, lagged from refresh to
 * refresh, and quantised. The lag starts settled at the first complete window. The value is NaN before the first
 * refresh, where the course does not cover a window, and where the sensor is not present. Noise is not replayed. With
 * period 0 the value is the one at the reading; a lag then has no steps: INVALID. */
fl_model_status fl_sensor_replay(const fl_sensor_spec *spec, const fl_sensor_course *course, const double *read_s,
                                 size_t count, double *out_w);

/* Replay like fl_sensor_replay, with given instants at which values appeared (fl_sensor_seen) in place of the grid. The
 * period of spec then serves only the lag, which advances in steps of one period between two of these instants. shown_s
 * does not decrease, apart from NaN. shift_s converts the log's clock to the course's by addition. */
fl_model_status fl_sensor_replay_seen(const fl_sensor_spec *spec, const fl_sensor_course *course, const double *shown_s,
                                      size_t count, double shift_s, double *out_w);

/* Replays at shown_s and fits the logged values to the replayed ones by least squares, at the shift between log and
 * meter within +-max_shift_s that leaves the least RMS. The shift covers everything that is constant in time and that a
 * log cannot separate: the offset of the two clocks, the transport delay, and the moment at which the reader took its
 * time stamp. Every shift compares the same readings: those whose window the course covers at both ends of the range.
 */
fl_model_status fl_sensor_align(const fl_sensor_spec *spec, const fl_sensor_course *course, const fl_sensor_log *log,
                                const double *shown_s, double max_shift_s, fl_sensor_match *out);

/* The height of the step in a log with a low and a high plateau: the 95th less the 5th percentile. NO_FIT: no valid
 * value. */
fl_model_status fl_sensor_step(const fl_sensor_log *log, double *step_w);
