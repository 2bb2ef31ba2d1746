/* What the files of sim/gpu share: the meter on which all sensors rest, and rates while activity records are on. */
#pragma once

#include "models/laws/device.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "traces/io/io.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL_PREFIX_MOST_BYTES (INT64_C(1) << 30) /* limit of all tables of the process together */

/* Return the rows at a pair of clocks, as fl_rates_at, while activity records are on: kernels are longer by the
 * device's share and time, at the same power. */
fl_status fl_rates_recorded(fl_rates *r, uint32_t device, uint32_t sm, uint32_t mem, const fl_clock_rates **out,
                            fl_diag *d);

/* A meter knows when a sensor refreshes and which reading a reader sees: refresh period and phase, window or lag,
 * transport delay. Its owner knows the measured quantity. A point is the state of the owner's sums at an instant. A
 * reading is what the owner makes of two points. The meter only stores their bytes.
 *
 * It is lazy: a window's mean is the difference of two points, so a meter requests boundaries only at the start and the
 * end of windows that someone will read. */

typedef struct fl_meter_stamp { /* the first member of every reading */
    int64_t index, at_ps;       /* number of the refresh; -1 = none yet */
} fl_meter_stamp;

typedef struct fl_meter {
    int id; /* its owner's name for it */
    const fl_sensor_spec *spec;
    int64_t period, phase, window, delay; /* ps; period 0: a reading shows the value at its instant, without a window */
    int64_t refresh, ends_ps;             /* index of the next refresh to take, and when it is due */
    int64_t opening, opens_ps;            /* of the next refresh whose window has not begun, and when that begins */
    int64_t taken;                        /* index of the refresh taken last; -1 = none */
    int64_t seen;                 /* index of the refresh that the reader saw last; -1 = one before time 0; -2 = none */
    const fl_meter_stamp *latest; /* the reading taken last; NULL = none */
    double lagged;                /* state of the lag; the owner sets its start value */
    size_t point_size, reading_size, start_room, shown_room;
    unsigned char *start; /* ring of the points at which windows began, opening > k >= refresh */
    unsigned char *shown; /* ring of the latest readings */
} fl_meter;

/* Borrows spec. name: of the device, for messages. After a failure there is nothing to close, but closing is allowed.
 */
fl_status fl_meter_open(fl_meter *m, int id, const fl_sensor_spec *spec, size_t point_size, size_t reading_size,
                        const char *name, fl_diag *d);
void fl_meter_close(fl_meter *m);

/* Reports the windows that begin before time 0, one with each call until it returns false. The owner fills *point for
 * the instant *at_ps < 0. Call it before all other functions. */
bool fl_meter_begins_before(fl_meter *m, int64_t *at_ps, void **point);

/* The next instant at which the meter needs a point, given that no one reads before read_ps; FL_TIME_NEVER = none. */
int64_t fl_meter_next(fl_meter *m, int64_t now_ps, int64_t read_ps);

/* Return whether a window begins, or a refresh is due, at t. False without a period. */
static inline bool fl_meter_opens(const fl_meter *m, int64_t t) { return m->opens_ps == t; }
static inline bool fl_meter_ends(const fl_meter *m, int64_t t) { return m->ends_ps == t; }

/* A window begins with the point that the caller writes there, before any other call. Where another window ends at the
 * same instant, call this first. */
void *fl_meter_open_window(fl_meter *m);
/* The point at which the window of m->refresh began; valid until the next call of fl_meter_open_window. */
const void *fl_meter_window(const fl_meter *m);
/* The reading of m->refresh is the one that the caller writes there, before any other call. */
void *fl_meter_take(fl_meter *m);

/* The reading that a reader at t sees; NULL before the first one. fresh: it is from a later refresh than at the last
 * call with remember set. Needs a period. */
const void *fl_meter_shown(fl_meter *m, int64_t t, bool remember, bool *fresh);
