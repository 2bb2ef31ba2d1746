/* What a workload takes from a trace beside its ops: clocks, classes, what kernels ask of the GPU. It is the same
 * whether the ops are read (build_trace.c) or the records were kept (sim/outline.h). */
#include "sim/build_inside.h"

#include "traces/cache_hash.h"
#include "traces/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static fl_status head_clock(const fl_builder *b, const char *key, double *mhz, fl_diag *d) {
    const char *text = fl_head_get(&b->t->head, key);
    *mhz = 0;
    if (!text)
        return FL_OK;
    char *end;
    *mhz = strtod(text, &end);
    if (end == text || *end || !(*mhz > 0) || *mhz > 1e5)
        return fl_fail(d, FL_BAD_INPUT, b->w->name, 0, 0, "head: %s is '%s', expected a clock in MHz", key, text);
    return FL_OK;
}

fl_status fl_builder_host_clock(fl_builder *b, fl_diag *d) { return head_clock(b, "cpu_mhz", &b->w->host_ref_mhz, d); }

fl_status fl_builder_clocks(fl_builder *b, fl_diag *d) {
    const fl_status s = head_clock(b, "sm_mhz", &b->sm_mhz, d);
    return s ? s : head_clock(b, "mem_mhz", &b->mem_mhz, d);
}

fl_status fl_builder_too_many(const fl_builder *b, fl_diag *d) {
    return fl_refuse(d, "%s: kernels on more than %u devices, the platform %s has %u (see --gpus)", b->w->name,
                     b->node->gpu_count, b->node->name, b->node->gpu_count);
}

/* What a fit wrote into the head of its kinds; NAN where nobody knows how wrong they are. */
static double head_error(const fl_kinds *kinds, const char *key) {
    const char *text = fl_head_get(&kinds->head, key);
    double pct;
    return text && fl_real_parse(text, &pct) == FL_NUMBER_OK && pct >= 0 ? pct : (double)NAN;
}

fl_status fl_builder_begin(fl_builder *b, fl_diag *d) {
    const size_t kinds = b->t->kind_count;
    b->device = calloc(b->node->gpu_count + 1, sizeof *b->device);
    b->first_class = malloc((kinds + 1) * sizeof *b->first_class);
    b->rows = calloc(kinds + 1, sizeof *b->rows);
    if (!b->device || !b->first_class || !b->rows)
        return fl_no_memory(d, "the workload");
    for (size_t i = 0; i < kinds; i++)
        b->first_class[i] = FL_NONE;
    if (b->o->kinds) {
        b->w->model_time_mape_pct = head_error(b->o->kinds, "model_time_mape_pct");
        b->w->model_power_mape_pct = head_error(b->o->kinds, "model_power_mape_pct");
    }
    b->w->launch_queue = b->node->host.launch_queue ? b->node->host.launch_queue : 1024;
    b->w->gaps_are_host = !b->t->has_launches;
    return FL_OK;
}

void fl_builder_end(fl_builder *b) {
    free(b->device);
    free(b->order);
    free(b->stream);
    free(b->place);
    free(b->class_of_op);
    free(b->first_class);
    free(b->link);
    free(b->work_ns);
    free(b->rows);
    free(b->rep);
}

bool fl_builder_shares(const fl_builder *b) {
    const char *alone = fl_head_get(&b->t->head, "alone"); /* each program was recorded by itself: nothing to undo */
    return !(alone && strcmp(alone, "1") == 0);
}

fl_status fl_builder_demands(const fl_builder *b, uint32_t gpu, fl_row *row, fl_diag *d) {
    for (uint32_t c = 0; c < b->w->class_count; c++) {
        fl_row_parts parts;
        const fl_load *l = &b->w->class[c].load;
        fl_model_status m = fl_row_make(fl_builder_device(b, gpu), l, l->ref_sm_mhz, l->ref_mem_mhz, &row[c], &parts);
        if (m != FL_MODEL_OK)
            return fl_error(d, m == FL_MODEL_NO_MEMORY ? FL_NO_MEMORY : FL_BAD_INPUT,
                            "%s: '%s' was recorded at %g MHz (memory %g MHz) on %s: %s", b->w->name,
                            b->w->class[c].kind.name, l->ref_sm_mhz, l->ref_mem_mhz, b->node->name, fl_model_text(m));
        if (b->w->class[c].copy || b->w->class[c].iteration)
            row[c].sms = 0;
    }
    return FL_OK;
}

fl_status fl_builder_check_demands(const fl_builder *b, fl_diag *d) {
    fl_row *row = calloc(b->w->class_count + 1, sizeof *row);
    const fl_status s = !row                   ? fl_no_memory(d, "the workload")
                        : fl_builder_shares(b) ? fl_builder_demands(b, 0, row, d)
                                               : FL_OK;
    free(row);
    return s;
}

/* ---- the outline ---- */

void fl_outline_free(fl_outline *o) {
    free(o->rep);
    free(o->device);
    *o = (fl_outline){0};
}

static void add_number(fl_hasher *h, uint64_t number) { fl_hash_add(h, &number, sizeof number); }

/* Which devices of the trace are of one kind here. */
static void add_devices(const fl_builder *b, fl_hasher *h) {
    for (uint32_t i = 0; i < b->device_count; i++) {
        uint32_t k = 0;
        while (b->node->gpu[k] != b->node->gpu[i])
            k++;
        add_number(h, k);
    }
}

static fl_status add_sharing(const fl_builder *b, fl_hasher *h, fl_row *row, fl_diag *d) {
    for (uint32_t g = 0; g < b->device_count; g++) {
        const fl_status s = fl_builder_demands(b, g, row, d);
        if (s)
            return s;
        for (uint32_t c = 0; b->overlap && c < b->w->class_count; c++)
            add_number(h, (uint64_t)row[c].sms << 32 | row[c].memory);
        add_number(h, b->overlap ? fl_gpu_interference(fl_builder_device(b, g)) : 0);
    }
    return FL_OK;
}

/* All that the records owe to platform and kinds. The classes are there. */
static fl_status digest(const fl_builder *b, const fl_trace_op *rep, size_t count, uint64_t hash[2], fl_diag *d) {
    fl_hasher h;
    fl_hash_start(&h);
    add_number(&h, b->w->class_count);
    add_devices(b, &h);
    for (size_t i = 0; i < count; i++) {
        uint32_t id, phases;
        const fl_kind_load *row = fl_builder_rows(b, &rep[i], &phases);
        const fl_status s = fl_builder_class((fl_builder *)(uintptr_t)b, &rep[i], &id, d); /* only looked up */
        if (s)
            return s;
        add_number(&h, (uint64_t)phases << 32 | id);
        for (uint32_t p = 0; phases > 1 && p < phases; p++)
            fl_hash_add(&h, &row[p].phase, sizeof row[p].phase);
    }
    fl_row *row = calloc(b->w->class_count + 1, sizeof *row);
    const fl_status s = !row                   ? fl_no_memory(d, "the workload")
                        : fl_builder_shares(b) ? add_sharing(b, &h, row, d)
                                               : FL_OK;
    free(row);
    fl_hash_end(&h, hash);
    return s;
}

fl_status fl_builder_outline(fl_builder *b, fl_outline *o, fl_diag *d) {
    *o = (fl_outline){.rep = b->rep,
                      .rep_count = b->rep_count,
                      .rep_room = b->rep_room,
                      .device = b->device,
                      .device_count = b->device_count,
                      .overlap = b->overlap};
    const fl_status s = digest(b, o->rep, o->rep_count, o->digest, d);
    b->rep = NULL;
    b->device = NULL;
    return s;
}

static bool could_be(const fl_big *b, const fl_workload *w) {
    return b->class_id < w->class_count && b->work_ns >= 0 && b->work_ns <= FL_DURATION_MAX_NS && b->gap_ns >= 0 &&
           b->gap_ns <= FL_DURATION_MAX_NS;
}

/* Counts up the work of each stream. False where a record is none that could have been built. */
static bool count_up(fl_workload *w) {
    for (uint32_t i = 0; i < w->stream_count; i++) {
        fl_stream *s = &w->stream[i];
        uint64_t work = 0, gaps = 0, odd = 0;
        for (size_t k = 0; k < s->count && work + gaps <= INT64_MAX; k++) {
            const fl_rec *r = &s->rec[k];
            if (r->class_id != FL_REC_ESCAPE) {
                odd |= r->class_id >= w->class_count;
                work += r->work_ns;
                gaps += r->gap_ns;
            } else if (fl_rec_index(r) < s->big_count && could_be(&s->big[fl_rec_index(r)], w)) {
                work += (uint64_t)s->big[fl_rec_index(r)].work_ns;
                gaps += (uint64_t)s->big[fl_rec_index(r)].gap_ns;
            } else {
                odd = 1;
            }
        }
        if (odd || work + gaps > INT64_MAX)
            return false;
        s->work_ns = (int64_t)work;
        s->span_ns = (int64_t)(work + gaps);
    }
    return true;
}

fl_status fl_build_outline(fl_workload *w, const fl_outline *outline, const fl_kernel_trace *t,
                           const fl_node_spec *node, const fl_build_options *o, bool *fits, fl_diag *d) {
    fl_builder b = {.t = t, .node = node, .o = o, .w = w, .overlap = outline->overlap};
    uint64_t hash[2] = {0};
    *fits = false;
    fl_status s = fl_builder_begin(&b, d);
    if (!s)
        fl_builder_find_rows(&b, outline->rep, outline->rep_count);
    if (!s && !(s = fl_builder_host_clock(&b, d)) && outline->device_count > node->gpu_count)
        s = fl_builder_too_many(&b, d);
    if (!s)
        s = fl_builder_clocks(&b, d);
    if (!s) {
        b.device_count = outline->device_count;
        memcpy(b.device, outline->device, b.device_count * sizeof *b.device);
    }
    for (size_t i = 0; !s && i < outline->rep_count; i++) {
        uint32_t id;
        s = fl_builder_class(&b, &outline->rep[i], &id, d);
    }
    if (!s)
        s = digest(&b, outline->rep, outline->rep_count, hash, d);
    *fits = !s && memcmp(hash, outline->digest, sizeof hash) == 0 && count_up(w);
    if (*fits)
        s = fl_workload_finish(w, o->windows, d);
    fl_builder_end(&b);
    return s;
}
