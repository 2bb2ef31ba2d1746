/* Event sets of NVML: the events that programs registered for, and those that have occurred since. */
#pragma once

#include "harness/emulate/client/protocol.h"

#include <stdbool.h>

typedef struct fl_event_state { /* of one GPU: a change of it is an event */
    uint32_t sm_mhz, mem_mhz, pstate;
    bool lost;
} fl_event_state;

typedef struct fl_events { /* zeroed: none */
    struct fl_event_set *first;
    uint32_t numbers; /* numbers given out so far */
} fl_events;

void fl_events_free(fl_events *all);
/* Creates a set. Returns its number, 0 where memory runs out. */
uint32_t fl_events_open(fl_events *all);
/* Removes the set of this number. Returns whether there was one. */
bool fl_events_close(fl_events *all, uint32_t number);
/* Registers the set for these kinds (NVML_EVENT_...) of a GPU's events from now on. Returns NVML's result. */
int32_t fl_events_add(fl_events *all, uint32_t number, uint32_t gpu, uint64_t kinds, const fl_event_state *now);
/* Reports the present state of a GPU to every set that is registered for it. */
void fl_events_look(fl_events *all, uint32_t gpu, const fl_event_state *now);
/* The oldest event of the set: NVML_SUCCESS; NVML_TIMEOUT where none has occurred, NVML_GPU_IS_LOST where none ever
 * can. */
int32_t fl_events_next(fl_events *all, uint32_t number, fl_ask_event *out);
