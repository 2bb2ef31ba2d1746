/* Event sets of NVML: what programs asked to hear of, and what has come since. */
#ifndef FL_EMULATE_EVENTS_H
#define FL_EMULATE_EVENTS_H

#include "harness/emulate/client/protocol.h"

#include <stdbool.h>

typedef struct fl_event_state { /* of one GPU: a change of it is an event */
    uint32_t sm_mhz, mem_mhz, pstate;
    bool lost;
} fl_event_state;

typedef struct fl_events { /* zeroed: none */
    struct fl_event_set *first;
    uint32_t numbers; /* given out so far */
} fl_events;

void fl_events_free(fl_events *all);
/* A new set: its number, 0 where there is no memory. */
uint32_t fl_events_open(fl_events *all);
/* Whether there was a set of this number; it is gone. */
bool fl_events_close(fl_events *all, uint32_t number);
/* The set hears of these kinds (NVML_EVENT_...) of a GPU from here on. NVML's result. */
int32_t fl_events_add(fl_events *all, uint32_t number, uint32_t gpu, uint64_t kinds, const fl_event_state *now);
/* How a GPU is now: to every set that hears of it. */
void fl_events_look(fl_events *all, uint32_t gpu, const fl_event_state *now);
/* The oldest event of the set: NVML_SUCCESS; NVML_TIMEOUT where none has come, NVML_GPU_IS_LOST where none ever will.
 */
int32_t fl_events_next(fl_events *all, uint32_t number, fl_ask_event *out);

#endif
