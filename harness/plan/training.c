/* The clocks and plans that a fit learns from. */
#include "harness/plan/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "sim/pipeline/pipeline.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- clocks of a training run ---- */

typedef struct range {
    double low, high;
} range;

static const fl_pipeline_what parts[] = {FL_PIPELINE_FORWARD, FL_PIPELINE_BACKWARD};

/* Where the times of every rank are known. */
static range known(const fl_pipeline *p) {
    range r = {0, INFINITY};
    for (uint32_t rank = 0; rank < p->ranks; rank++)
        for (uint32_t chunk = 0; chunk < p->chunks; chunk++)
            for (size_t k = 0; k < 2; k++) {
                size_t count;
                const fl_pipeline_row *row = fl_pipeline_rows(p, rank, chunk, parts[k], &count);
                r.low = fmax(r.low, row[0].sm_mhz);
                r.high = fmin(r.high, row[count - 1].sm_mhz);
            }
    return r;
}

static int ascending(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* Boards of no platform: their clocks are the whole ones that rows state. */
static fl_status own_boards(fl_training *t, range r, fl_diag *d) {
    int32_t *mhz = fl_must(calloc(t->p.row_count + 1, sizeof *mhz));
    uint32_t count = 0, kept = 0;
    for (size_t i = 0; i < t->p.row_count; i++) {
        const double clock = t->p.row[i].sm_mhz; /* NAN of what no clock changes */
        if (clock >= r.low && clock <= r.high && clock >= 1 && clock == round(clock) && clock < 1e6)
            mhz[count++] = (int32_t)clock;
    }
    qsort(mhz, count, sizeof *mhz, ascending);
    for (uint32_t i = 0; i < count; i++)
        if (!kept || mhz[i] != mhz[kept - 1])
            mhz[kept++] = mhz[i];
    fl_status s = kept ? fl_pipeline_node(&t->own, t->p.ranks, mhz, kept, d)
                       : fl_fail(d, FL_BAD_INPUT, t->p.file, 0, 0,
                                 "no whole number of MHz from %g to %g MHz, where the times of all ranks are known, "
                                 "expected one",
                                 r.low, r.high);
    free(mhz);
    t->node = &t->own;
    return s;
}

static fl_status boards_of(fl_training *t, const char *platform, range r, fl_diag *d) {
    fl_status s = fl_platform_open(platform, t->p.ranks, &t->platform, d);
    if (s)
        return s;
    fl_node_spec *node = &t->platform.node;
    t->node = node;
    s = fl_node_choose(node, &(fl_node_choice){0}, d); /* as other commands have it: without heat, which would make the
                                                          energy of a part depend on those before it */
    if (s)
        return s;
    fl_pipeline_allow_bursts(&t->p, node);
    (void)fl_node_clip(node, r.low, r.high);
    (void)fl_node_clip_memory(node, &(double){node->device[node->gpu[0]].default_mem_mhz}, 1);
    for (uint32_t rank = 0; rank < t->p.ranks; rank++)
        if (!node->device[node->gpu[rank]].sm_count)
            return fl_fail(d, FL_BAD_INPUT, t->p.file, 0, 0,
                           "the times of all ranks are known from %g to %g MHz, but %s has no clock in that range",
                           r.low, r.high, t->platform.name);
    return FL_OK;
}

fl_status fl_training_open(const char *path, const char *platform, const fl_texts *slow, fl_training *t, fl_diag *d) {
    *t = (fl_training){0};
    fl_status s = fl_pipeline_read(path, &t->p, d);
    if (!s)
        s = fl_pipeline_slow_down(&t->p, slow, d);
    if (!s)
        s = t->p.schedule == FL_PIPELINE_LIST
                ? fl_pipeline_order_read(t->p.order, t->p.stages, t->p.microbatches, &t->order, d)
                : fl_pipeline_schedule_make(&t->p, &t->order, d);
    if (!s)
        s = platform ? boards_of(t, platform, known(&t->p), d) : own_boards(t, known(&t->p), d);
    if (s)
        fl_training_free(t);
    return s;
}

void fl_training_free(fl_training *t) {
    fl_pipeline_order_free(&t->order);
    fl_pipeline_free(&t->p);
    fl_platform_free(&t->platform);
    fl_node_spec_free(&t->own);
    *t = (fl_training){0};
}
