#include "sim/gpu/meter.h"

#include <stdlib.h>

static int64_t refresh_at(const fl_meter *m, int64_t k) { return m->phase + k * m->period; }

static void *start_of(const fl_meter *m, int64_t k) {
    return m->start + ((size_t)k & (m->start_room - 1)) * m->point_size;
}

static fl_meter_stamp *shown_at(const fl_meter *m, size_t slot) { /* a reading begins with its stamp */
    return (void *)(m->shown + slot * m->reading_size);
}

/* The size of a ring is a power of two, because a mask costs less than a division. */
static size_t ring_room(size_t least) {
    size_t room = 2;
    while (room < least)
        room *= 2;
    return room;
}

fl_status fl_meter_open(fl_meter *m, int id, const fl_sensor_spec *spec, size_t point_size, size_t reading_size,
                        const char *name, fl_diag *d) {
    *m = (fl_meter){
        .id = id, .spec = spec, .taken = -1, .seen = -1, .ends_ps = FL_TIME_NEVER, .opens_ps = FL_TIME_NEVER};
    m->point_size = point_size;
    m->reading_size = reading_size;
    if (spec->period_ns < 0 || spec->phase_ns < 0 || spec->window_ns < 0 || spec->lag_ns < 0 || spec->delay_ns < 0)
        return fl_refuse(d, "%s: a sensor with a negative time", name);
    m->period = spec->period_ns * FL_PS_PER_NS;
    if (!m->period)
        return FL_OK;
    m->phase = spec->phase_ns * FL_PS_PER_NS;
    m->window = (spec->lag_ns ? spec->period_ns : spec->window_ns) * FL_PS_PER_NS;
    m->delay = spec->delay_ns * FL_PS_PER_NS;
    m->ends_ps = m->phase;
    m->opens_ps = m->phase - m->window;
    m->start_room = ring_room((size_t)(m->window / m->period) + 2);
    m->shown_room = ring_room((size_t)(m->delay / m->period) + 2);
    m->start = calloc(m->start_room, point_size);
    m->shown = calloc(m->shown_room, reading_size);
    if (!m->start || !m->shown) {
        fl_meter_close(m);
        return fl_no_memory(d, "the sensors");
    }
    for (size_t i = 0; i < m->shown_room; i++)
        shown_at(m, i)->index = -1;
    return FL_OK;
}

void fl_meter_close(fl_meter *m) {
    free(m->start);
    free(m->shown);
    m->start = m->shown = NULL;
    m->latest = NULL;
}

bool fl_meter_begins_before(fl_meter *m, int64_t *at_ps, void **point) {
    *at_ps = m->opens_ps;
    if (*at_ps >= 0)
        return false;
    *point = fl_meter_open_window(m);
    return true;
}

/* A reader at read_ps sees the last refresh before it. Earlier refreshes whose window has not begun yet need no
 * boundaries. */
static void skip_ahead(fl_meter *m, int64_t now, int64_t read_ps) {
    if (m->spec->lag_ns || read_ps - m->delay < m->ends_ps + m->period)
        return; /* the next one is the one */
    int64_t last = m->refresh + 1;
    if (read_ps - m->delay >= m->ends_ps + 2 * m->period) /* else it needs no division */
        last = (read_ps - m->delay - m->phase) / m->period;
    if (refresh_at(m, last) - m->window <= now)
        return;
    m->opening = m->refresh = last;
    m->ends_ps = refresh_at(m, last);
    m->opens_ps = m->ends_ps - m->window;
}

int64_t fl_meter_next(fl_meter *m, int64_t now_ps, int64_t read_ps) {
    if (!m->period)
        return FL_TIME_NEVER;
    skip_ahead(m, now_ps, read_ps);
    return m->opens_ps < m->ends_ps ? m->opens_ps : m->ends_ps;
}

void *fl_meter_open_window(fl_meter *m) {
    m->opens_ps += m->period;
    return start_of(m, m->opening++);
}

const void *fl_meter_window(const fl_meter *m) { return start_of(m, m->refresh); }

void *fl_meter_take(fl_meter *m) {
    fl_meter_stamp *reading = shown_at(m, (size_t)m->refresh & (m->shown_room - 1));
    m->taken = m->refresh++;
    m->ends_ps += m->period;
    m->latest = reading;
    return reading;
}

/* The latest reading that is visible at t where the one taken last is still on its way; NULL where none is. Usually it
 * is the next one in turn. Otherwise refreshes have been skipped, and the function searches the ring. Not inlined: most
 * sensors have no delay, and their readers are faster without it. */
__attribute__((noinline)) static const fl_meter_stamp *earlier_at(const fl_meter *m, int64_t t) {
    const int64_t turn = (t - m->delay - m->phase) / m->period;
    const fl_meter_stamp *best = shown_at(m, (size_t)turn & (m->shown_room - 1));
    if (turn >= 0 && best->index == turn && best->at_ps + m->delay <= t)
        return best;
    best = NULL;
    for (size_t i = 0; i < m->shown_room; i++) {
        const fl_meter_stamp *r = shown_at(m, i);
        if (r->index >= 0 && r->at_ps + m->delay <= t && (!best || r->index > best->index))
            best = r;
    }
    return best;
}

const void *fl_meter_shown(fl_meter *m, int64_t t, bool remember, bool *fresh) {
    const fl_meter_stamp *best = m->latest;
    if (best && best->at_ps + m->delay > t)
        best = earlier_at(m, t);
    if (!best)
        return NULL;
    *fresh = best->index > m->seen;
    if (remember)
        m->seen = best->index;
    return best;
}
