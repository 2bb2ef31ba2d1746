/* Programs files: their kernel traces, and their workloads without a trace in between. */
#include "sim/workload/inside.h"

#include "models/laws/device.h"
#include "sim/base/base.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- kernel traces of programs ---- */

#define FL_PROGRAM_KERNELS_MAX UINT64_C(100000000)
enum { STREAMS_MAX = 256 };

typedef struct lane { /* one stream of a program */
    fl_normals normals;
    int64_t now_ns;
    int32_t stream;
} lane;

typedef struct drawn {     /* what all launches of a row share */
    fl_spread gap, length; /* us */
    uint32_t kind;
    uint8_t type;
} drawn;

typedef struct maker {
    const fl_programs *p;
    const fl_program_row *row; /* row_count: those of the program */
    size_t row_count;
    drawn *drawn; /* row_count */
    uint32_t cycles;
    double scale; /* of part_s */
    fl_kernel_trace *t;
    fl_program_sink sink;
    void *user;
    uint64_t *made;
} maker;

static fl_status too_many(const maker *m, fl_diag *d) {
    return fl_refuse(d, "program '%s' would have more than %llu kernels, expected fewer",
                     m->p->names[m->row[0].program], (unsigned long long)FL_PROGRAM_KERNELS_MAX);
}

static fl_status launch(const maker *m, size_t row, lane *l, fl_diag *d) {
    const drawn *r = &m->drawn[row];
    const double gap = fl_spread_whole(&r->gap, 1e3, &l->normals),
                 length = fl_spread_whole(&r->length, 1e3, &l->normals);
    fl_trace_op op = {
        .launch_ns = INT64_MIN, .bytes = -1, .kind = r->kind, .stream = l->stream, .host_thread = -1, .type = r->type};
    if (!(gap <= FL_DURATION_MAX_NS && length <= FL_DURATION_MAX_NS) || l->now_ns > FL_TIME_END / FL_PS_PER_NS)
        return fl_refuse(d,
                         "program '%s': a kernel of %g s after %g s, %g s from its start, expected 25 hours at most "
                         "for either and 26 days for the whole",
                         m->p->names[m->row[row].program], length * 1e-9, gap * 1e-9, (double)l->now_ns * 1e-9);
    op.start_ns = l->now_ns + (int64_t)gap;
    op.end_ns = op.start_ns + (length < 1 ? 1 : (int64_t)length);
    l->now_ns = op.end_ns;
    if (++*m->made > FL_PROGRAM_KERNELS_MAX)
        return too_many(m, d);
    return m->sink(m->user, &op, d);
}

/* The part of rows [first, last) on one stream, from where that stream stands until end_ns. */
static fl_status run_part(const maker *m, size_t first, size_t last, int64_t end_ns, lane *l, fl_diag *d) {
    bool any = false;
    for (size_t i = first; i < last; i++)
        any |= m->row[i].stream == l->stream;
    fl_status s = FL_OK;
    while (any && !s && l->now_ns < end_ns)
        for (size_t i = first; !s && i < last; i++)
            for (uint32_t k = 0; !s && m->row[i].stream == l->stream && k < m->row[i].count; k++)
                s = launch(m, i, l, d);
    if (l->now_ns < end_ns) /* nothing of this part on this stream */
        l->now_ns = end_ns;
    return s;
}

static bool uses(const maker *m, int32_t stream) {
    for (size_t i = 0; i < m->row_count; i++)
        if (m->row[i].stream == stream)
            return true;
    return false;
}

static size_t end_of_part(const maker *m, size_t first) {
    size_t last = first + 1;
    while (last < m->row_count && m->row[last].part == m->row[first].part)
        last++;
    return last;
}

/* A part ends where it was to end, whatever the one before took beyond its own end: lengths do not add up errors. */
static fl_status run_lane(const maker *m, lane *l, fl_diag *d) {
    double end_s = 0;
    fl_status s = FL_OK;
    for (uint32_t cycle = 0; !s && cycle < m->cycles; cycle++)
        for (size_t first = 0, last; !s && first < m->row_count; first = last) {
            last = end_of_part(m, first);
            end_s += m->row[first].part_s * m->scale;
            s = run_part(m, first, last, (int64_t)(end_s * 1e9 + 0.5), l, d);
        }
    return s;
}

/* Kernels on one stream if each took its mean time; counting stops above the most that there may be. */
static double kernels_by_means(const maker *m, int32_t stream) {
    double now = 0, end = 0, kernels = 0;
    for (uint32_t cycle = 0; cycle < m->cycles && kernels <= (double)FL_PROGRAM_KERNELS_MAX; cycle++)
        for (size_t first = 0, last; first < m->row_count; first = last) {
            double each = 0, lasts = 0; /* of one iteration */
            last = end_of_part(m, first);
            end += m->row[first].part_s * m->scale;
            for (size_t i = first; i < last; i++)
                if (m->row[i].stream == stream) {
                    each += m->row[i].count;
                    lasts += m->row[i].count * (m->row[i].time_us + m->row[i].gap_us) * 1e-6;
                }
            const double times = each > 0 && now < end ? ceil((end - now) / lasts) : 0;
            kernels += times * each;
            now = fmax(end, now + times * lasts);
        }
    return kernels;
}

static double stated_seconds(const maker *m) {
    double sum = 0;
    for (size_t i = 0; i < m->row_count; i++)
        if (!i || m->row[i].part != m->row[i - 1].part)
            sum += m->row[i].part_s;
    return sum * m->row[0].cycles;
}

/* Before anything is allocated: what would be too many, or too long, by its own means. */
static fl_status check_size(const maker *m, double *about, fl_diag *d) {
    const double seconds = stated_seconds(m) / m->row[0].cycles * m->cycles * m->scale;
    *about = 0;
    if (seconds * 1e12 > (double)FL_TIME_END)
        return fl_refuse(d, "program '%s' would take %g s, expected 26 days at most", m->p->names[m->row[0].program],
                         seconds);
    for (int32_t stream = 0; stream < STREAMS_MAX; stream++)
        *about += uses(m, stream) ? kernels_by_means(m, stream) : 0;
    return *about > (double)FL_PROGRAM_KERNELS_MAX ? too_many(m, d) : FL_OK;
}

static fl_status take_head(const fl_programs *p, fl_kernel_trace *t, fl_diag *d) {
    static const char *const keys[] = {"sm_mhz", "mem_mhz", "cpu_mhz", "source"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *value = fl_head_get(&p->head, keys[i]);
        if (value && !fl_head_set(&t->head, keys[i], value))
            return fl_no_memory(d, "the program's kernels");
    }
    return FL_OK;
}

static fl_status make_rows(maker *m, fl_diag *d) {
    const fl_programs *p = m->p;
    m->drawn = calloc(m->row_count, sizeof *m->drawn);
    fl_status s = m->drawn ? take_head(p, m->t, d) : fl_no_memory(d, "the program's kernels");
    for (size_t i = 0; !s && i < m->row_count; i++) {
        const fl_program_row *r = &m->row[i];
        m->drawn[i] = (drawn){.gap = fl_spread_of(r->gap_us, r->gap_cv),
                              .length = fl_spread_of(r->time_us, r->time_cv),
                              .kind = fl_trace_add_kind(m->t, p->names[r->kernel], (uint32_t[3]){r->grid_x, 1, 1},
                                                        (uint32_t[3]){r->block_x, 1, 1}),
                              .type = (uint8_t)fl_op_type_of(p->names[r->kernel])};
        if (m->drawn[i].kind == UINT32_MAX)
            s = fl_no_memory(d, "the program's kernels");
    }
    return s;
}

fl_status fl_synth_program_each(const fl_programs *p, size_t index, uint64_t seed, double seconds, fl_kernel_trace *t,
                                double *about, fl_program_sink sink, void *user, fl_diag *d) {
    *t = (fl_kernel_trace){0};
    uint64_t made = 0;
    maker m = {.p = p, .t = t, .sink = sink, .user = user, .made = &made};
    size_t first = 0;
    while (p->rows[first].program != p->programs[index])
        first++;
    m.row = p->rows + first;
    while (first + m.row_count < p->row_count && m.row[m.row_count].program == p->programs[index])
        m.row_count++;
    m.cycles = m.row[0].cycles;
    m.scale = seconds > 0 ? seconds / stated_seconds(&m) : 1;
    if (m.cycles > 1) { /* turns keep their length, so that what alternates does so as fast in a short run */
        m.cycles = (uint32_t)fmin(fmax(1, round(m.cycles * m.scale)), UINT32_MAX);
        m.scale = 1;
    }
    fl_status s = check_size(&m, about, d);
    if (!s)
        s = make_rows(&m, d);
    for (int32_t stream = 0; !s && stream < STREAMS_MAX; stream++) {
        lane l = {.normals = fl_normals_seed(seed, index << 8 | (uint64_t)stream), .stream = stream};
        if (uses(&m, stream))
            s = run_lane(&m, &l, d);
    }
    free(m.drawn);
    return s;
}

static fl_status add_to_trace(void *user, const fl_trace_op *op, fl_diag *d) {
    return fl_trace_add_op(user, op) ? fl_no_memory(d, "the program's kernels") : FL_OK;
}

fl_status fl_synth_program(const fl_programs *p, size_t index, uint64_t seed, double seconds, fl_kernel_trace *t,
                           fl_diag *d) {
    double about;
    const fl_status s = fl_synth_program_each(p, index, seed, seconds, t, &about, add_to_trace, t, d);
    if (s)
        fl_kernel_trace_free(t);
    return s;
}

/* ---- workloads of programs ---- */

typedef struct sink {
    fl_builder b;
    fl_kernel_trace t;
    double about;   /* kernels to come */
    int64_t end_ns; /* of the op before */
    int32_t stream;
    uint32_t index;
    bool begun;
} sink;

/* The kinds are there now. */
static fl_status begin(sink *k, const fl_trace_op *op, fl_diag *d) {
    fl_builder *b = &k->b;
    fl_trace_op *one = calloc(k->t.kind_count + 1, sizeof *one); /* of each kind */
    fl_status s = one ? fl_builder_begin(b, d) : fl_no_memory(d, "the workload");
    for (size_t i = 0; !s && i < k->t.kind_count; i++)
        one[i] = (fl_trace_op){.kind = (uint32_t)i, .type = (uint8_t)fl_op_type_of(k->t.names[k->t.kinds[i].name])};
    if (!s) {
        fl_builder_find_rows(b, one, k->t.kind_count);
        b->device[b->device_count++] = op->device;
        s = fl_builder_host_clock(b, d);
    }
    if (!s && !(s = fl_builder_clocks(b, d)))
        s = fl_workload_add_stream(b->w, fl_builder_gpu(b, op->device), op->process, op->stream, &k->index, d);
    if (!s)
        s = fl_workload_expect(b->w, k->index, (size_t)(k->about * 1.01) + 1000, d); /* means are met within less */
    free(one);
    k->stream = op->stream;
    k->end_ns = op->start_ns; /* the workload begins with its first kernel */
    k->begun = true;
    return s;
}

static fl_status add(void *user, const fl_trace_op *op, fl_diag *d) {
    sink *k = user;
    fl_builder *b = &k->b;
    fl_status s = k->begun ? FL_OK : begin(k, op, d);
    if (s || op->stream != k->stream || op->type == FL_OP_SYNC)
        return s ? s : FL_BAD_INPUT; /* not for here */
    return fl_builder_append(b, k->index, op, &k->end_ns, d);
}

static bool has_one_stream(const fl_programs *p, size_t index) {
    const fl_program_row *first = NULL;
    for (size_t i = 0; i < p->row_count; i++)
        if (p->rows[i].program == p->programs[index]) {
            first = first ? first : &p->rows[i];
            if (p->rows[i].stream != first->stream)
                return false;
        }
    return true;
}

fl_status fl_build_program(fl_workload **out, const char *name, const fl_programs *p, size_t index, uint64_t seed,
                           double seconds, const fl_node_spec *node, const fl_build_options *o, fl_diag *d) {
    sink k = {.b = {.t = &k.t, .node = node, .o = o}};
    fl_diag why = {0};
    *out = NULL;
    if (!has_one_stream(p, index))
        return FL_OK;
    fl_status s = fl_workload_new(&k.b.w, name, d);
    if (s)
        return s;
    s = fl_synth_program_each(p, index, seed, seconds, &k.t, &k.about, add, &k, &why);
    if (!s && !(s = fl_builder_check_demands(&k.b, &why)))
        s = fl_workload_finish(k.b.w, o->windows, &why);
    fl_builder_end(&k.b);
    fl_kernel_trace_free(&k.t);
    if (!s)
        *out = k.b.w;
    else
        fl_workload_free(k.b.w);
    if (s == FL_NO_MEMORY && d)
        *d = why;
    return s == FL_NO_MEMORY ? s : FL_OK;
}
