/* When a sensor looks and what a reader then sees: refresh period and phase, window or lag, transport delay. What is
 * measured is its owner's: points are the owner's sums at an instant, readings what it makes of two of them; a meter
 * only keeps their bytes.
 *
 * Lazy: a window's mean is the difference of two points, so a meter only asks for boundaries at the start and the end
 * of the windows that somebody will read. */
#ifndef FL_METER_H
#define FL_METER_H

#include "models/sensor.h"
#include "sim/wide.h"
#include "traces/diag.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct fl_meter_stamp { /* the first member of every reading */
    int64_t index, at_ps;       /* which refresh; -1 = none yet */
} fl_meter_stamp;

typedef struct fl_meter {
    int id; /* its owner's name for it */
    const fl_sensor_spec *spec;
    int64_t period, phase, window, delay; /* ps; period 0: read as it is at the instant, no window then */
    int64_t refresh;                      /* index of the next refresh to take */
    int64_t opening;                      /* index of the next refresh whose window start has not been seen */
    int64_t taken;                        /* index of the refresh taken last; -1 = none */
    int64_t seen;                         /* index of the refresh that the reader saw last; -1 = none */
    double lagged;                        /* what a lag has reached; the owner sets what it starts from */
    size_t point_size, reading_size, start_room, shown_room;
    unsigned char *start; /* ring of the points at which windows began, opening > k >= refresh */
    unsigned char *shown; /* ring of the latest readings */
} fl_meter;

/* Borrows spec. name: of the device, for messages. After a failure there is nothing to close, but one may. */
fl_status fl_meter_open(fl_meter *m, int id, const fl_sensor_spec *spec, size_t point_size, size_t reading_size,
                        const char *name, fl_diag *d);
void fl_meter_close(fl_meter *m);

/* Windows that begin before time 0, one with each call until false: the owner fills *point for the instant *at_ps < 0.
 * Before anything else. */
bool fl_meter_begins_before(fl_meter *m, int64_t *at_ps, void **point);

/* The next instant at which a point is wanted, given that nobody reads before read_ps; FL_TIME_NEVER = none. */
int64_t fl_meter_next(fl_meter *m, int64_t now_ps, int64_t read_ps);

/* Whether a window begins, or a refresh is due, at t. Never without a period. */
static inline bool fl_meter_opens(const fl_meter *m, int64_t t) {
    return m->period && m->phase + m->opening * m->period - m->window == t;
}
static inline bool fl_meter_ends(const fl_meter *m, int64_t t) {
    return m->period && m->phase + m->refresh * m->period == t;
}

/* A window begins with this point. Where one ends at the same instant, this comes first. */
void fl_meter_open_window(fl_meter *m, const void *point);
/* The point at which the window of m->refresh began; valid until the next call of fl_meter_open_window. */
const void *fl_meter_window(const fl_meter *m);
/* The reading of m->refresh has been taken. */
void fl_meter_taken(fl_meter *m, const void *reading);

/* What a reader at t sees, NULL while nothing has been shown. fresh: a later refresh than at the last call with
 * remember set. Needs a period. */
const void *fl_meter_shown(fl_meter *m, int64_t t, bool remember, bool *fresh);

#endif
