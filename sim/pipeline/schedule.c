#include "sim/pipeline/pipeline.h"

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
