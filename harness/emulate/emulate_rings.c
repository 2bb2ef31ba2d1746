#include "harness/emulate/emulate_inside.h"

#include "harness/live/collector/ring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORDS (1u << 16)
#define NAMES (1u << 20)

typedef struct fl_emulated_rings {
    fl_ring ring;
    uint32_t *name; /* of each class, where it stands in the ring */
} fl_emulated_rings;

fl_status fl_rings_open(fl_emulator *e) {
    const fl_workload *w = e->o->scene->w;
    fl_emulated_rings *r = calloc(1, sizeof *r);
    if (r && !(r->name = calloc(w->class_count + 1, sizeof *r->name))) {
        free(r);
        r = NULL;
    }
    if (!r)
        return fl_no_memory(e->d, "the kernel records");
    int error = mkdir(e->o->rings, 0700) && errno != EEXIST ? errno : 0;
    if (!error)
        error = fl_ring_create(&r->ring, e->o->rings, RECORDS, NAMES);
    if (error) {
        free(r->name);
        free(r);
        return fl_error(e->d, FL_IO, "%s: cannot make a ring of kernel records: %s", e->o->rings, fl_reason(error));
    }
    for (uint32_t i = 0; i < w->class_count; i++) {
        uint32_t k = 0;
        while (k < i && strcmp(w->class[k].kind.name, w->class[i].kind.name) != 0)
            k++;
        r->name[i] = k < i ? r->name[k] : fl_ring_name(&r->ring, w->class[i].kind.name);
    }
    for (uint32_t i = 0; i < e->gpu_count; i++)
        fl_node_records(e->node, i, true);
    e->rings = r;
    return FL_OK;
}

void fl_rings_push(fl_emulator *e) {
    const fl_workload *w = e->o->scene->w;
    const fl_kernel_record *record = NULL;
    size_t count = 0;
    if (fl_node_take_records(e->node, &record, &count, e->d))
        return;
    const int64_t base = e->turns ? FL_VIRTUAL_MONOTONIC_NS : e->started_ns;
    const double scale = e->turns ? 1 : e->o->scale;
    for (size_t i = 0; i < count; i++) {
        const fl_kernel_kind *kind = &w->class[record[i].kind].kind;
        fl_ring_record out = {.start_ns = base + (int64_t)((double)record[i].start_ns / scale),
                              .end_ns = base + (int64_t)((double)record[i].end_ns / scale),
                              .gpu = record[i].gpu,
                              .stream = record[i].stream,
                              .name = e->rings->name[record[i].kind]};
        memcpy(out.grid, kind->grid, sizeof out.grid);
        memcpy(out.block, kind->block, sizeof out.block);
        (void)fl_ring_put(&e->rings->ring, &out); /* a full ring counts what it drops */
    }
}

void fl_rings_close(fl_emulator *e) {
    if (!e->rings)
        return;
    char path[4096];
    fl_ring_end(&e->rings->ring);
    snprintf(path, sizeof path, "%s/%s", e->o->rings, e->rings->ring.file);
    fl_ring_close(&e->rings->ring);
    unlink(path);       /* all that could read it has ended */
    rmdir(e->o->rings); /* where nothing else is in it */
    free(e->rings->name);
    free(e->rings);
    e->rings = NULL;
}
