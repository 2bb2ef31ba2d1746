/* When is a slow counter worth reading? On an H200 the energy counter steps each 100 ms, and reading it takes 2 to 6 ms
 * of processor time (tests/hardware): a policy that reads each 2 ms took 44 % of a core, one that reads each 20 ms a
 * quarter. So its beat is learned (beat.h) from readings that follow each other within less than half a step, and the
 * counter is then read only when its next step can have come.
 *
 * needed: no step is left out, and none is shown later than if the counter were read each time.
 *
 * spare: whoever reads can do without, so in the long run readings take at most 1.5 % of the time. Whole steps are left
 * out; where a step has surely come and the next one surely not, one reading tells its value, and the beat tells its
 * time. From time to time one step is watched from before it can come until it is seen: where it has already come, or
 * stays away, the beat is learned again. Learning lasts 2 s at most, and begins again after two minutes at the
 * earliest, or after four times as long each time that no beat was found. Of a counter without a beat a step is watched
 * as often as the budget allows: only a step that was seen to come has a time.
 * Whatever is known of it, it is read after 6 s at the latest, so that a counter that stands still is found.
 *
 * A counter that is quick to read, and a needed one without a beat, is read each time. */
#pragma once

#include "harness/live/vendor/nvml/beat.h"

#define FL_PACE_SLOW_NS INT64_C(500000) /* a reading that takes less is not worth leaving out */

typedef struct fl_pace { /* plain zero: nothing known, needed; no pointers. Times are those of the readings */
    bool spare;          /* set by the owner, before the first reading: whoever reads can do without */
    double value;        /* what it shows */
    int64_t moved_ns;    /* when it came to show that, never falling: by the beat, else the reading that showed it */
    bool timed;          /* moved_ns is known: else several readings or steps were left out before that one */

    /* ---- inside ---- */
    double read;                         /* what its last reading showed */
    int64_t read_ns, asked_ns, apart_ns; /* the last reading; the last time anybody asked; and how long since before */
    int64_t cost_ns;                     /* the quickest reading so far */
    int64_t paid_ns;                     /* spare: the budget allows no reading before */
    int64_t began_ns, again_ns;          /* when learning last began, and how long after that it may begin again */
    int64_t usual_ns;                    /* the period of the beat before; 0: there was none */
    fl_beat beat;
    int64_t number, step_ns; /* of the last step that is known to have come, and its likely time */
    int64_t watched;         /* the last step that was seen to come */
    int64_t next_ns;         /* it is not read before: the next step cannot have come */
    uint32_t unseen;         /* steps since one was seen to be still away shortly before it came */
    uint32_t free;           /* readings left that the budget does not count */
    uint32_t starved;        /* spare: times that somebody asked when the step could not be told from the next one;
                                needed: moves in a row of unknown time */
    uint32_t left;           /* without a beat: readings left to see a step come; 0 = none is watched */
    bool known, locked, watching, lost; /* lost: which step it shows is not known until the next one is seen */
} fl_pace;

/* Whether a reading at t_ns can be left out: value and moved_ns stand as they are. */
bool fl_pace_rests(fl_pace *p, int64_t t_ns);
/* What a reading at t_ns showed, and how long it took; each after an fl_pace_rests at the same t_ns that was false. */
void fl_pace_read(fl_pace *p, int64_t t_ns, double value, int64_t cost_ns);
