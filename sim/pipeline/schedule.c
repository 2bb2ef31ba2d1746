/* Schedules (1f1b, gpipe, interleaved), one iteration run on the engine, and ranks that are slow. */
#include "sim/pipeline/pipeline.h"

#include "models/laws/device.h"
#include "models/math/math.h"
#include "policies/policy.h"
#include "sim/gpu/gpu.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/pipeline/pipeline.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one iteration on the engine ---- */

fl_status fl_pipeline_node(fl_node_spec *node, uint32_t ranks, const int32_t *mhz, uint32_t count, fl_diag *d) {
    const double x[2] = {1, mhz[count - 1] + 1.0}, y[2] = {1, 1};
    fl_device *dev = calloc(1, sizeof *dev);
    uint32_t *gpu = calloc(ranks, sizeof *gpu);
    *node = (fl_node_spec){.device = dev, .device_count = dev ? 1 : 0, .gpu = gpu, .gpu_count = ranks};
    if (!dev || !gpu)
        return fl_no_memory(d, "the pipeline");
    *dev = (fl_device){.sm_count = count, .mem_count = 1, .default_mem_mhz = 1, .sharpness = INFINITY};
    snprintf(dev->name, sizeof dev->name, "rank");
    snprintf(node->name, sizeof node->name, "ranks");
    dev->sm_mhz = calloc(count, sizeof *dev->sm_mhz);
    dev->mem_mhz = calloc(1, sizeof *dev->mem_mhz);
    dev->b0_w = calloc(1, sizeof *dev->b0_w);
    if (!dev->sm_mhz || !dev->mem_mhz || !dev->b0_w || fl_curve_new(&dev->voltage, x, y, 2))
        return fl_no_memory(d, "the pipeline");
    memcpy(dev->sm_mhz, mhz, count * sizeof *mhz);
    dev->mem_mhz[0] = 1;
    dev->default_sm_mhz = mhz[count - 1];
    return FL_OK;
}

fl_status fl_pipeline_run(const fl_pipeline *p, const fl_pipeline_order *o, const fl_node_spec *node,
                          const fl_pipeline_clocks *clocks, double *seconds, double *joules, fl_diag *d) {
    fl_workload *w = NULL;
    fl_rates *rates = NULL;
    fl_facts facts = {0};
    fl_run_result result = {0};
    fl_status s = fl_build_pipeline(&w, "the plan", p, o, node, 1, clocks, NULL, d);
    if (!s)
        s = fl_rates_new(&rates, w, node, d);
    const fl_run_options run = {.w = w, .rates = rates, .spec = node, .facts = &facts};
    if (!s)
        s = fl_run(&run, &result, d);
    if (!s) {
        *seconds = result.makespan_s;
        *joules = result.gpu_energy_j;
    }
    fl_run_result_free(&result);
    fl_rates_free(rates);
    fl_workload_free(w);
    return s;
}

/* ---- a rank that is slow ---- */

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

/* ---- instructions of each stage ---- */

typedef struct maker {
    const fl_pipeline *p;
    fl_pipeline_order *o;
    uint32_t stage;
    fl_status status;
    fl_diag *d;
} maker;

static void add(maker *m, fl_instruction_type type, int64_t microbatch, int64_t microbatch2, int64_t chunk) {
    if (!m->status)
        m->status = fl_pipeline_order_add(
            m->o, m->stage, (fl_instruction){.type = type, (int32_t)microbatch, (int32_t)microbatch2, (int32_t)chunk},
            m->d);
}

static bool is_first(const maker *m) { return m->stage == 0; }
static bool is_last(const maker *m) { return m->stage == m->p->stages - 1; }

/* The first and the last stage read the samples and the labels. */
static void add_load(maker *m, int64_t microbatch) {
    if (is_first(m) || is_last(m))
        add(m, FL_DO_LOAD, microbatch, -1, 0);
}

static void add_end(maker *m) {
    add(m, FL_DO_REDUCE_TIED, -1, -1, 0);
    add(m, FL_DO_REDUCE_DATA, -1, -1, 0);
    add(m, FL_DO_STEP, -1, -1, 0);
}

/* ---- one forward, one backward ---- */

static int64_t floor_half(int64_t n) { return n >= 0 ? n / 2 : -((1 - n) / 2); }

/* The microbatch of step k of a stage, -1 where it has none. Even stages go forward in even steps, odd ones in odd. */
static int64_t step_microbatch(const maker *m, int64_t k, bool *forward) {
    const int64_t stage = m->stage, stages = m->p->stages;
    int64_t n;
    *forward = (k & 1) == (stage & 1);
    if (*forward)
        n = (stage & 1 ? floor_half(k - 1) : k / 2) - stage / 2;
    else
        n = stage & 1 ? k / 2 - stages + (stage + 1) / 2 : floor_half(k - 1) - stages + 1 + stage / 2;
    return n >= 0 && n < m->p->microbatches ? n : -1;
}

/* Between two steps: what the step before has made goes out, what this step needs comes in. */
static void add_transfers(maker *m, bool forward, int64_t before, int64_t now) {
    if (forward ? is_first(m) : is_last(m))
        return;
    if (before >= 0 && now >= 0)
        add(m, forward ? FL_DO_SEND_GRAD_RECV_ACT : FL_DO_SEND_ACT_RECV_GRAD, before, now, 0);
    else if (now >= 0)
        add(m, forward ? FL_DO_RECV_ACT : FL_DO_RECV_GRAD, now, -1, 0);
    else if (before >= 0)
        add(m, forward ? FL_DO_SEND_GRAD : FL_DO_SEND_ACT, before, -1, 0);
}

static void make_1f1b(maker *m) {
    const int64_t steps = 2 * ((int64_t)m->p->microbatches + m->p->stages - 1);
    int64_t before = -1;
    for (int64_t k = 0; k < steps; k++) {
        bool forward;
        const int64_t now = step_microbatch(m, k, &forward);
        add_transfers(m, forward, before, now);
        if (now >= 0 && forward)
            add_load(m, now);
        if (now >= 0)
            add(m, forward ? FL_DO_FORWARD : FL_DO_BACKWARD, now, -1, 0);
        before = now;
    }
    add_end(m);
}

/* ---- all forwards, then all backwards ---- */

static void make_gpipe(maker *m) {
    for (int64_t n = 0; n < m->p->microbatches; n++) {
        if (!is_first(m))
            add(m, FL_DO_RECV_ACT, n, -1, 0);
        add_load(m, n);
        add(m, FL_DO_FORWARD, n, -1, 0);
        if (!is_last(m))
            add(m, FL_DO_SEND_ACT, n, -1, 0);
    }
    for (int64_t n = (int64_t)m->p->microbatches - 1; n >= 0; n--) {
        if (!is_last(m))
            add(m, FL_DO_RECV_GRAD, n, -1, 0);
        add(m, FL_DO_BACKWARD, n, -1, 0);
        if (!is_first(m))
            add(m, FL_DO_SEND_GRAD, n, -1, 0);
    }
    add_end(m);
}

/* ---- interleaved ---- */

/* Microbatches go through the ranks in groups of `stages`, chunk by chunk; backwards the last chunk comes first. */
static void interleaved_item(const maker *m, int64_t k, bool forward, int64_t *microbatch, int64_t *chunk) {
    const int64_t stages = m->p->stages, chunks = m->p->chunks, group = stages * chunks;
    *chunk = k % group / stages;
    if (!forward)
        *chunk = chunks - 1 - *chunk;
    *microbatch = k / group * stages + k % stages;
}

static void add_interleaved(maker *m, int64_t k, bool forward) {
    const int64_t last_chunk = m->p->chunks - 1;
    int64_t n, chunk;
    interleaved_item(m, k, forward, &n, &chunk);
    const bool enters = forward ? is_first(m) && chunk == 0 : is_last(m) && chunk == last_chunk;
    const bool leaves = forward ? is_last(m) && chunk == last_chunk : is_first(m) && chunk == 0;
    if (!enters)
        add(m, forward ? FL_DO_RECV_ACT : FL_DO_RECV_GRAD, n, -1, chunk);
    if (forward && (enters || leaves))
        add(m, FL_DO_LOAD, n, -1, chunk);
    add(m, forward ? FL_DO_FORWARD : FL_DO_BACKWARD, n, -1, chunk);
    if (!leaves)
        add(m, forward ? FL_DO_SEND_ACT : FL_DO_SEND_GRAD, n, -1, chunk);
}

static void make_interleaved(maker *m) {
    const int64_t stages = m->p->stages, chunks = m->p->chunks, all = (int64_t)m->p->microbatches * chunks;
    int64_t ahead = (stages - m->stage - 1) * 2 + (chunks - 1) * stages;
    ahead = ahead < all ? ahead : all;
    for (int64_t k = 0; k < ahead; k++)
        add_interleaved(m, k, true);
    for (int64_t k = ahead; k < all; k++) {
        add_interleaved(m, k, true);
        add_interleaved(m, k - ahead, false);
    }
    for (int64_t k = all - ahead; k < all; k++)
        add_interleaved(m, k, false);
    add_end(m);
}

fl_status fl_pipeline_schedule_make(const fl_pipeline *p, fl_pipeline_order *o, fl_diag *d) {
    *o = (fl_pipeline_order){0};
    if (p->schedule == FL_PIPELINE_LIST)
        return fl_refuse(d, "a list of instructions is read, expected a schedule that makes one");
    maker m = {.p = p, .o = o, .d = d};
    m.status = fl_pipeline_check_size(p, d);
    if (!m.status)
        m.status = fl_pipeline_order_new(o, p->stages, d);
    for (m.stage = 0; !m.status && m.stage < p->stages; m.stage++) {
        if (p->schedule == FL_PIPELINE_1F1B)
            make_1f1b(&m);
        else if (p->schedule == FL_PIPELINE_GPIPE)
            make_gpipe(&m);
        else
            make_interleaved(&m);
    }
    if (m.status)
        fl_pipeline_order_free(o);
    return m.status;
}
