#include "harness/emulate/driver/rings.h"

#include "harness/emulate/driver/identity.h"
#include "harness/live/collector/ring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
        s = fl_no_memory(d, "the kernel records");
        goto out;
    }
    r->folder = folder;
    r->w = w;
    r->node = node;
    int error = mkdir(folder, 0700) && errno != EEXIST ? errno : 0;
    if (!error)
        error = fl_ring_create(&r->ring, folder, RECORDS, NAMES);
    if (error) {
        s = fl_error(d, FL_IO, "%s: cannot make a ring of kernel records: %s", folder, fl_reason(error));
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
