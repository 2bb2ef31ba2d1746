/* Rings of activity records, and event sets. */
#include "harness/emulate/driver/inside.h"

#include "harness/emulate/client/abi.h"
#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "harness/input/platform/platform.h"
#include "harness/live/collector/ring.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FL_RINGS_MARKER "iteration" /* the name of each marker */

/* ---- activity records and markers ---- */

#define RECORDS (1u << 16)
#define NAMES (1u << 20)

struct fl_emulated_rings {
    const char *folder;
    const fl_workload *w;
    fl_node *node;
    int64_t origin_ns;
    fl_ring ring;
    uint32_t *name;   /* offset in the ring of the name of each class */
    uint64_t *passed; /* markers of each stream that are in the ring */
};

fl_status fl_rings_open(fl_emulated_rings **out, const char *folder, const fl_workload *w, fl_node *node,
                        uint32_t gpu_count, const fl_emulate_options *o, fl_diag *d) {
    fl_emulated_rings *r = calloc(1, sizeof *r);
    fl_status s = FL_OK;
    *out = NULL;
    if (!r || !(r->name = calloc(w->class_count + 1, sizeof *r->name)) ||
        !(r->passed = calloc(w->stream_count + 1, sizeof *r->passed))) {
        s = fl_no_memory(d, "the activity records");
        goto out;
    }
    r->folder = folder;
    r->w = w;
    r->node = node;
    int error = mkdir(folder, 0700) && errno != EEXIST ? errno : 0;
    if (!error)
        error = fl_ring_create(&r->ring, folder, RECORDS, NAMES);
    if (error) {
        s = fl_error(d, FL_IO, "%s: cannot make a ring of activity records: %s", folder, fl_reason(error));
        goto out;
    }
    for (uint32_t i = 0; i < w->class_count; i++) {
        uint32_t k = 0;
        while (k < i && strcmp(w->class[k].kind.name, w->class[i].kind.name) != 0)
            k++;
        r->name[i] = k < i ? r->name[k] : fl_ring_name(&r->ring, w->class[i].kind.name);
    }
    for (uint32_t i = 0; i < gpu_count; i++) {
        uint8_t uuid[FL_RING_UUID];
        fl_identity_uuid(o, i, uuid);
        fl_ring_tell_device(&r->ring, i, uuid);
        fl_node_records_free(node, i, true); /* the policy's host charges the cost of records */
    }
    *out = r;
    return FL_OK;
out:
    if (r) {
        free(r->name);
        free(r->passed);
    }
    free(r);
    return s;
}

void fl_rings_start(fl_emulated_rings *r, int64_t origin_ns) { r->origin_ns = origin_ns; }

static void push_markers(fl_emulated_rings *r) {
    bool wake = false;
    for (uint32_t i = 0; i < r->w->stream_count; i++) {
        uint64_t count;
        const int64_t *at = fl_node_iterations(r->node, i, &count);
        for (; r->passed[i] < count; r->passed[i]++)
            wake |= fl_ring_put_mark(&r->ring, r->origin_ns + at[r->passed[i]] / FL_PS_PER_NS, r->w->stream[i].gpu,
                                     FL_RINGS_MARKER);
    }
    if (wake)
        fl_ring_wake(r->folder);
}

void fl_rings_push(fl_emulated_rings *r, fl_diag *d) {
    const fl_kernel_record *record = NULL;
    size_t count = 0;
    push_markers(r);
    if (fl_node_take_records(r->node, &record, &count, d))
        return;
    for (size_t i = 0; i < count; i++) {
        const fl_kernel_kind *kind = &r->w->class[record[i].kind].kind;
        fl_ring_record out = {.start_ns = r->origin_ns + record[i].start_ns,
                              .end_ns = r->origin_ns + record[i].end_ns,
                              .gpu = record[i].gpu,
                              .stream = record[i].stream,
                              .name = r->name[record[i].kind]};
        memcpy(out.grid, kind->grid, sizeof out.grid);
        memcpy(out.block, kind->block, sizeof out.block);
        (void)fl_ring_put(&r->ring, &out); /* where the ring is full it counts the dropped record */
    }
}

bool fl_rings_wake(const fl_emulated_rings *r) { return atomic_load(&r->ring.head->wakes); }

void fl_rings_close(fl_emulated_rings *r) {
    char path[4096];
    if (!r)
        return;
    fl_ring_end(&r->ring);
    snprintf(path, sizeof path, "%s/%s", r->folder, r->ring.file);
    fl_ring_close(&r->ring);
    unlink(path); /* every possible reader has ended */
    snprintf(path, sizeof path, "%s/" FL_RING_WAKE, r->folder);
    unlink(path);
    rmdir(r->folder); /* where nothing else is in it */
    free(r->name);
    free(r->passed);
    free(r);
}

/* ---- event sets ---- */

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
