#include "sim/pipeline/straggler.h"

#include <string.h>

static bool computes(fl_pipeline_what what) { return what == FL_PIPELINE_FORWARD || what == FL_PIPELINE_BACKWARD; }

/* Rows of its own for each chunk, whether they were its own or those of all. */
static fl_status add_slowed(const fl_pipeline *p, uint32_t rank, double factor, fl_pipeline *out, fl_diag *d) {
    static const fl_pipeline_what kind[] = {FL_PIPELINE_FORWARD, FL_PIPELINE_BACKWARD};
    fl_status s = FL_OK;
    for (uint32_t chunk = 0; chunk < p->chunks; chunk++)
        for (size_t k = 0; k < 2; k++) {
            size_t count;
            const fl_pipeline_row *row = fl_pipeline_rows(p, rank, chunk, kind[k], &count);
            for (size_t i = 0; !s && i < count; i++) {
                fl_pipeline_row own = row[i];
                own.rank = (int32_t)rank;
                own.chunk = p->chunks > 1 ? (int32_t)chunk : FL_PIPELINE_ALL;
                own.time_s *= factor;
                s = fl_pipeline_add(out, &own, d);
            }
        }
    return s;
}

fl_status fl_pipeline_slowed(const fl_pipeline *p, uint32_t rank, double factor, fl_pipeline *out, fl_diag *d) {
    *out = (fl_pipeline){0};
    if (rank >= p->ranks)
        return fl_fail(d, FL_BAD_INPUT, p->file, 0, 0, "no rank %u, expected 0 to %u", rank, p->ranks - 1);
    *out = *p;
    out->head = (fl_head){0};
    out->row = NULL;
    out->row_count = out->row_room = 0;
    out->file = strdup(p->file);
    out->order = p->order ? strdup(p->order) : NULL;
    fl_status s = out->file && (out->order || !p->order) ? FL_OK : fl_no_memory(d, "the pipeline");
    for (size_t i = 0; !s && i < p->head.count; i++)
        if (!fl_head_set(&out->head, p->head.entry[i].key, p->head.entry[i].value))
            s = fl_no_memory(d, "the pipeline");
    for (size_t i = 0; !s && i < p->row_count; i++)
        if (p->row[i].rank != (int32_t)rank || !computes(p->row[i].what))
            s = fl_pipeline_add(out, &p->row[i], d);
    if (!s)
        s = add_slowed(p, rank, factor, out, d);
    if (!s)
        s = fl_pipeline_finish(out, d);
    if (s)
        fl_pipeline_free(out);
    return s;
}
