#include "harness/emulate/driver/events.h"

#include "harness/emulate/client/abi.h"
#include "traces/io/diag.h"

#include <stdlib.h>
#include <string.h>

#define KINDS ((uint64_t)(NVML_EVENT_PSTATE | NVML_EVENT_XID | NVML_EVENT_CLOCK))
#define PENDING_MAX 1024 /* pending events of a set that no one reads: later ones are dropped */
#define XID_FELL_OFF 79  /* "GPU has fallen off the bus" */

typedef struct fl_heard { /* of one GPU */
    uint32_t gpu;
    uint64_t kinds;
    fl_event_state last;
} fl_heard;

typedef struct fl_event_set {
    uint32_t number;
    fl_heard *heard;
    size_t heard_count, heard_room;
    fl_ask_event *pending;
    size_t pending_count, pending_room;
    struct fl_event_set *next;
} fl_event_set;

static void free_set(fl_event_set *s) {
    free(s->heard);
    free(s->pending);
    free(s);
}

void fl_events_free(fl_events *all) {
    for (fl_event_set *s = all->first, *next; s; s = next) {
        next = s->next;
        free_set(s);
    }
    all->first = NULL;
}

uint32_t fl_events_open(fl_events *all) {
    fl_event_set *s = calloc(1, sizeof *s);
    if (!s)
        return 0;
    s->number = ++all->numbers;
    s->next = all->first;
    all->first = s;
    return s->number;
}

static fl_event_set *find(const fl_events *all, uint32_t number) {
    fl_event_set *s = all->first;
    while (s && s->number != number)
        s = s->next;
    return s;
}

bool fl_events_close(fl_events *all, uint32_t number) {
    for (fl_event_set **at = &all->first; *at; at = &(*at)->next) {
        fl_event_set *s = *at;
        if (s->number != number)
            continue;
        *at = s->next;
        free_set(s);
        return true;
    }
    return false;
}

int32_t fl_events_add(fl_events *all, uint32_t number, uint32_t gpu, uint64_t kinds, const fl_event_state *now) {
    fl_event_set *s = find(all, number);
    if (!s || !kinds)
        return NVML_INVALID_ARGUMENT;
    if (kinds & ~KINDS)
        return NVML_NOT_SUPPORTED;
    fl_heard *h = s->heard, *end = s->heard + s->heard_count;
    while (h != end && h->gpu != gpu)
        h++;
    if (h == end) {
        if (fl_grow(&s->heard, &s->heard_room, s->heard_count + 1, sizeof *s->heard))
            return NVML_NO_MEMORY;
        h = &s->heard[s->heard_count++];
        *h = (fl_heard){.gpu = gpu, .last = *now};
    }
    h->kinds |= kinds;
    return NVML_SUCCESS;
}

static void tell(fl_event_set *s, uint32_t gpu, uint64_t kind, uint64_t data) {
    if (s->pending_count >= PENDING_MAX ||
        fl_grow(&s->pending, &s->pending_room, s->pending_count + 1, sizeof *s->pending))
        return;
    s->pending[s->pending_count++] = (fl_ask_event){.gpu = gpu, .kind = kind, .data = data};
}

void fl_events_look(fl_events *all, uint32_t gpu, const fl_event_state *now) {
    for (fl_event_set *s = all->first; s; s = s->next)
        for (fl_heard *h = s->heard; h != s->heard + s->heard_count; h++) {
            if (h->gpu != gpu)
                continue;
            const bool clock = h->last.sm_mhz != now->sm_mhz || h->last.mem_mhz != now->mem_mhz;
            if (now->lost && !h->last.lost && h->kinds & NVML_EVENT_XID)
                tell(s, gpu, NVML_EVENT_XID, XID_FELL_OFF);
            if (!now->lost && clock && h->kinds & NVML_EVENT_CLOCK)
                tell(s, gpu, NVML_EVENT_CLOCK, 0);
            if (!now->lost && h->last.pstate != now->pstate && h->kinds & NVML_EVENT_PSTATE)
                tell(s, gpu, NVML_EVENT_PSTATE, 0);
            h->last = *now;
        }
}

int32_t fl_events_next(fl_events *all, uint32_t number, fl_ask_event *out) {
    fl_event_set *s = find(all, number);
    bool lost = false;
    if (!s)
        return NVML_INVALID_ARGUMENT;
    if (s->pending_count) {
        *out = s->pending[0];
        memmove(s->pending, s->pending + 1, --s->pending_count * sizeof *s->pending);
        return NVML_SUCCESS;
    }
    for (size_t i = 0; i < s->heard_count; i++)
        lost = lost || s->heard[i].last.lost;
    return lost ? NVML_GPU_IS_LOST : NVML_TIMEOUT;
}
