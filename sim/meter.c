#include "sim/meter.h"

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
    *m = (fl_meter){.id = id, .spec = spec, .taken = -1, .seen = -1};
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
}

bool fl_meter_begins_before(fl_meter *m, int64_t *at_ps, void **point) {
    *at_ps = refresh_at(m, m->opening) - m->window;
    if (!m->period || *at_ps >= 0)
        return false;
    *point = start_of(m, m->opening++);
    return true;
}

/* A reader at read_ps sees the last refresh before it. Earlier refreshes whose window has not begun yet need no
 * boundaries. */
static void skip_ahead(fl_meter *m, int64_t now, int64_t read_ps) {
    if (m->spec->lag_ns || read_ps - m->delay < refresh_at(m, m->refresh + 1))
        return; /* the next one is the one */
    int64_t last = m->refresh + 1;
    if (read_ps - m->delay >= refresh_at(m, last + 1)) /* else it needs no division */
        last = (read_ps - m->delay - m->phase) / m->period;
    if (last > m->refresh && refresh_at(m, last) - m->window > now)
        m->opening = m->refresh = last;
}

int64_t fl_meter_next(fl_meter *m, int64_t now_ps, int64_t read_ps) {
    if (!m->period)
        return FL_TIME_NEVER;
    skip_ahead(m, now_ps, read_ps);
    int64_t opens = refresh_at(m, m->opening) - m->window, ends = refresh_at(m, m->refresh);
    return opens < ends ? opens : ends;
}

void *fl_meter_open_window(fl_meter *m) { return start_of(m, m->opening++); }

const void *fl_meter_window(const fl_meter *m) { return start_of(m, m->refresh); }

void *fl_meter_take(fl_meter *m) {
    m->taken = m->refresh++;
    return shown_at(m, (size_t)m->taken & (m->shown_room - 1));
}

/* The latest reading that is visible at t; NULL where none is. Usually it is the reading taken last or, with a delay,
 * the next one in turn. Otherwise refreshes have been skipped, and the function searches the ring. */
static const fl_meter_stamp *out_at(const fl_meter *m, int64_t t) {
    const fl_meter_stamp *last = m->taken < 0 ? NULL : shown_at(m, (size_t)m->taken & (m->shown_room - 1));
    if (!last || last->at_ps + m->delay <= t)
        return last;
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
    const fl_meter_stamp *best = out_at(m, t);
    if (!best)
        return NULL;
    *fresh = best->index > m->seen;
    if (remember)
        m->seen = best->index;
    return best;
}
