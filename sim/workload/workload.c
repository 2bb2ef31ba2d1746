/* A workload by hand: classes, streams, ops, waits and host threads. */
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/workload/inside.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

fl_status fl_workload_new(fl_workload **out, const char *name, fl_diag *d) {
    fl_workload *w = calloc(1, sizeof *w);
    if (w)
        w->name = strdup(name);
    if (!w || !w->name) {
        free(w);
        return fl_no_memory(d, "the workload");
    }
    w->gaps_are_host = true;
    w->launch_queue = 1024;
    w->sm_max_mhz = INFINITY;
    w->model_time_mape_pct = w->model_power_mape_pct = NAN;
    *out = w;
    return FL_OK;
}

static void free_plan(fl_launch_plan *p) {
    if (!p)
        return;
    free(p->before);
    free(p->sync);
    free(p);
}

void fl_workload_free_islands(fl_workload *w) {
    for (uint32_t i = 0; i < w->island_count; i++) {
        free(w->island[i].stream);
        free(w->island[i].thread);
        free(w->island[i].gpu);
        free_plan(w->island[i].launches);
    }
    free(w->island);
    w->island = NULL;
    w->island_count = 0;
}

bool fl_workload_serves(const fl_workload *w, uint32_t gpu) {
    for (uint32_t k = 0; k < w->island_count; k++)
        for (uint32_t i = 0; w->island[k].serves && i < w->island[k].gpu_count; i++)
            if (w->island[k].gpu[i] == gpu)
                return true;
    return false;
}

void fl_workload_forget(fl_workload *w) {
    for (uint32_t i = 0; i < w->stream_count; i++) {
        fl_stream *s = &w->stream[i];
        free(s->rec);
        free(s->big);
        free(s->wait);
        free(s->wait_first);
        free(s->mark);
    }
    for (uint32_t i = 0; i < w->thread_count; i++) {
        free(w->thread[i].item);
        free(w->thread[i].wait);
    }
    w->stream_count = w->thread_count = 0;
    fl_workload_free_islands(w);
}

void fl_workload_free(fl_workload *w) {
    if (!w)
        return;
    fl_workload_forget(w);
    for (uint32_t i = 0; i < w->class_count; i++) {
        fl_measured_free(&w->class[i].measured);
        free((char *)(uintptr_t)w->class[i].kind.name);
    }
    free(w->arrival_ns);
    free(w->host_load);
    free(w->class);
    free(w->stream);
    free(w->thread);
    free(w->name);
    free(w);
}

fl_status fl_workload_add_class(fl_workload *w, const fl_load *load, const fl_kernel_kind *kind, uint32_t *id,
                                fl_diag *d) {
    if (w->class_count >= FL_CLASSES_MAX)
        return fl_refuse(
            d,
            "%s: more than 65535 kernel classes (name, grid, block), expected at most that; round grids or "
            "merge names",
            w->name);
    if (fl_grow(&w->class, &w->class_room, w->class_count + 1, sizeof *w->class))
        return fl_no_memory(d, "the workload");
    fl_class *c = &w->class[w->class_count];
    *c = (fl_class){.load = *load, .kind = *kind};
    char *name = strdup(kind->name ? kind->name : "");
    if (!name)
        return fl_no_memory(d, "the workload");
    c->kind.name = name;
    if (load->measured)
        c->measured = *load->measured;
    for (int i = 0; i < FL_READINGS; i++)
        w->readings |= c->measured.util[i] != NULL;
    *id = w->class_count++;
    return FL_OK;
}

fl_status fl_workload_add_host_load(fl_workload *w, const fl_host_load *load, uint32_t *id, fl_diag *d) {
    for (uint32_t i = 0; i < w->host_load_count; i++)
        if (memcmp(&w->host_load[i], load, sizeof *load) == 0) {
            *id = i + 1;
            return FL_OK;
        }
    if (w->host_load_count == 255)
        return fl_refuse(d, "%s: more than 255 kinds of host time", w->name);
    if (fl_grow(&w->host_load, &w->host_load_room, w->host_load_count + 1, sizeof *w->host_load))
        return fl_no_memory(d, "the workload");
    w->host_load[w->host_load_count++] = *load;
    *id = w->host_load_count;
    return FL_OK;
}

fl_status fl_workload_add_stream(fl_workload *w, uint32_t gpu, int32_t process, int32_t id, uint32_t *index,
                                 fl_diag *d) {
    if (fl_grow(&w->stream, &w->stream_room, w->stream_count + 1, sizeof *w->stream))
        return fl_no_memory(d, "the workload");
    *index = w->stream_count++;
    w->stream[*index] = (fl_stream){.gpu = gpu, .process = process, .id = id};
    if (gpu + 1 > w->gpu_count)
        w->gpu_count = gpu + 1;
    return FL_OK;
}

/* Ops are read from end to end by every scan, which takes about a tenth less time where they lie in large pages (one.1s
 * of tests/bench). What is moved here while the array grows may leave its large pages; fl_node_open puts it back. */
fl_status fl_workload_expect(fl_workload *w, uint32_t stream, size_t ops, fl_diag *d) {
    fl_stream *s = &w->stream[stream];
    if (fl_grow(&s->rec, &s->room, ops, sizeof *s->rec))
        return fl_no_memory(d, "the workload");
    fl_huge_ask(s->rec, s->room * sizeof *s->rec);
    return FL_OK;
}

fl_status fl_workload_add_op(fl_workload *w, uint32_t stream, int64_t gap_ns, int64_t work_ns, uint32_t class_id,
                             fl_diag *d) {
    fl_stream *s = &w->stream[stream];
    if (gap_ns < 0 || work_ns < 0 || gap_ns > FL_DURATION_MAX_NS || work_ns > FL_DURATION_MAX_NS)
        return fl_refuse(d, "%s: an op of %lld ns after %lld ns, expected 0 to 25 hours each", w->name,
                         (long long)work_ns, (long long)gap_ns);
    if (s->count == s->room) {
        const fl_status status = fl_workload_expect(w, stream, s->count + 1, d);
        if (status)
            return status;
    }
    fl_rec *r = &s->rec[s->count];
    if (work_ns <= FL_WORK_MAX && gap_ns <= FL_GAP_MAX) {
        *r = fl_rec_of((uint64_t)work_ns, (uint64_t)gap_ns, class_id);
    } else {
        if (s->big_count >= UINT32_MAX || fl_grow(&s->big, &s->big_room, s->big_count + 1, sizeof *s->big))
            return fl_no_memory(d, "the workload");
        s->big[s->big_count] = (fl_big){work_ns, gap_ns, class_id};
        *r = fl_rec_escape(s->big_count++);
    }
    if (s->wait_first) {
        if (fl_grow(&s->wait_first, &s->first_room, s->count + 2, sizeof *s->wait_first))
            return fl_no_memory(d, "the workload");
        s->wait_first[s->count + 1] = (uint32_t)s->wait_count;
    }
    s->count++;
    s->work_ns += work_ns;
    s->span_ns += work_ns + gap_ns;
    w->op_count++;
    return FL_OK;
}

fl_status fl_workload_add_wait(fl_workload *w, uint32_t stream, fl_wait wait, fl_diag *d) {
    fl_stream *s = &w->stream[stream];
    if (!s->wait_first) {
        if (fl_grow(&s->wait_first, &s->first_room, s->count + 1, sizeof *s->wait_first))
            return fl_no_memory(d, "the workload");
        memset(s->wait_first, 0, (s->count + 1) * sizeof *s->wait_first);
    }
    if (s->wait_count >= UINT32_MAX || fl_grow(&s->wait, &s->wait_room, s->wait_count + 1, sizeof *s->wait))
        return fl_no_memory(d, "the workload");
    s->wait[s->wait_count++] = wait;
    s->wait_first[s->count] = (uint32_t)s->wait_count;
    return FL_OK;
}

fl_status fl_workload_add_thread(fl_workload *w, int32_t id, uint32_t *index, fl_diag *d) {
    if (fl_grow(&w->thread, &w->thread_room, w->thread_count + 1, sizeof *w->thread))
        return fl_no_memory(d, "the workload");
    *index = w->thread_count++;
    w->thread[*index] = (fl_thread){.id = id};
    return FL_OK;
}

fl_status fl_workload_add_item(fl_workload *w, uint32_t thread, const fl_item *item, fl_diag *d) {
    fl_thread *t = &w->thread[thread];
    if (item->host_ns < 0 || item->after_ns < 0 || item->host_ns > FL_DURATION_MAX_NS ||
        item->after_ns > FL_DURATION_MAX_NS)
        return fl_refuse(d, "%s: host thread %d: %s after %lld ns and %lld ns behind it, expected 0 to 25 hours each",
                         w->name, t->id, item->type == FL_ITEM_LAUNCH ? "a launch" : "a synchronisation",
                         (long long)item->host_ns, (long long)item->after_ns);
    if (fl_grow(&t->item, &t->room, t->count + 1, sizeof *t->item))
        return fl_no_memory(d, "the workload");
    t->item[t->count] = *item;
    t->item[t->count].wait_first = (uint32_t)t->wait_count;
    t->item[t->count++].wait_count = 0;
    if (item->type == FL_ITEM_LAUNCH && item->stream < w->stream_count)
        w->stream[item->stream].launched = true;
    return FL_OK;
}

fl_status fl_workload_add_sync_wait(fl_workload *w, uint32_t thread, fl_wait wait, fl_diag *d) {
    fl_thread *t = &w->thread[thread];
    if (t->wait_count >= UINT32_MAX || fl_grow(&t->wait, &t->wait_room, t->wait_count + 1, sizeof *t->wait))
        return fl_no_memory(d, "the workload");
    t->wait[t->wait_count++] = wait;
    t->item[t->count - 1].wait_count++;
    return FL_OK;
}

/* ---- workloads that are built ---- */

/* What a workload takes from a trace beside its ops: the clocks of the recording, what kernels ask of the GPU, and the
 * arrays that the parts of the builder share. */

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

/* Read the error that a fit wrote into the head of its kinds file; NAN if there is none. */
static double head_error(const fl_kinds *kinds, const char *key) {
    const char *text = fl_head_get(&kinds->head, key);
    double pct;
    return text && fl_real_parse(text, &pct) == FL_NUMBER_OK && pct >= 0 ? pct : (double)NAN;
}

fl_status fl_builder_begin(fl_builder *b, fl_diag *d) {
    const size_t kinds = b->t->kind_count;
    b->device = calloc(b->node->gpu_count + 1, sizeof *b->device);
    b->rows = calloc(kinds + 1, sizeof *b->rows);
    if (!b->device || !b->rows)
        return fl_no_memory(d, "the workload");
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
    fl_intern_free(&b->classes);
    free(b->made_for);
    free(b->work_ns);
    free(b->rows);
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
