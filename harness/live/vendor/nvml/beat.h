/* When does a counter step next, that steps evenly but shows it only to those who read it? Each step is known to lie
 * between two readings, the last that showed the old value and the first that showed the new one. Steps are numbered;
 * an even beat that goes through all of these spans bounds the time of each later step. The more steps lie between the
 * first span and the last, the closer the period is known; the phase is known as closely as the readings allow.
 *
 * A step may come a twenty-fifth of the period beside the beat: on an H200 most come 98 to 102 ms apart
 * (tests/hardware). The older a span is, the less it tells, and after 512 steps nothing, so that a
 * beat that drifts is followed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { FL_BEAT_KEPT = 64 };

typedef struct fl_span { /* one step came after after_ns and by by_ns */
    int64_t number, after_ns, by_ns;
} fl_span;

typedef struct fl_beat {        /* plain zero: nothing known; no pointers, owned by whoever declares it */
    fl_span span[FL_BEAT_KEPT]; /* the last ones, in rotation */
    uint64_t count;             /* of all spans so far */
    int64_t period_ns;          /* about; 0 before the second span */
} fl_beat;

/* Step `number` came after after_ns and by by_ns. Numbers rise from call to call, and times do. */
void fl_beat_add(fl_beat *b, int64_t number, int64_t after_ns, int64_t by_ns);

/* The earliest and the latest time of a step, no earlier one than the last that was added. False before the second
 * span; earliest > latest where no even beat goes through all spans. */
bool fl_beat_when(const fl_beat *b, int64_t number, int64_t *earliest_ns, int64_t *latest_ns);

/* The likely time of a step, within those bounds: on the line closest to the middles of all spans, of which narrow ones
 * count more. Only where fl_beat_when is true for that step. */
int64_t fl_beat_likely(const fl_beat *b, int64_t number);
