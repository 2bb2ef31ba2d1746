#include "sim/synth_program.h"

#include "policies/random.h"
#include "traces/kernels.h"

#include <math.h>
#include <stdlib.h>

#define FL_PROGRAM_KERNELS_MAX UINT64_C(100000000)

/* A lognormal of the given mean and coefficient of variation. */
static double draw(fl_random *r, double mean, double cv) {
    if (cv <= 0)
        return mean;
    const double variance = log(1 + cv * cv);
    return mean * exp(sqrt(variance) * fl_random_normal(r) - variance / 2);
}

typedef struct lane { /* one stream of a program */
    fl_random random;
    int64_t now_ns;
    int32_t stream;
} lane;

typedef struct maker {
    const fl_programs *p;
    const fl_program_row *row; /* row_count: those of the program */
    size_t row_count;
    uint32_t *kind; /* row_count */
    uint32_t cycles;
    double scale; /* of part_s */
    fl_kernel_trace *t;
} maker;

static fl_status launch(const maker *m, size_t row, lane *l, fl_diag *d) {
    const fl_program_row *r = &m->row[row];
    const double gap = 1e3 * draw(&l->random, r->gap_us, r->gap_cv),
                 length = 1e3 * draw(&l->random, r->time_us, r->time_cv);
    fl_trace_op op = {.launch_ns = INT64_MIN,
                      .bytes = -1,
                      .kind = m->kind[row],
                      .stream = l->stream,
                      .host_thread = -1,
                      .type = (uint8_t)fl_op_type_of(m->p->names[r->kernel])};
    op.start_ns = l->now_ns + (int64_t)gap;
    op.end_ns = op.start_ns + (length < 1 ? 1 : (int64_t)length);
    l->now_ns = op.end_ns;
    if (m->t->op_count >= FL_PROGRAM_KERNELS_MAX)
        return fl_refuse(d, "program '%s' would have more than %llu kernels, expected fewer", m->p->names[r->program],
                         (unsigned long long)FL_PROGRAM_KERNELS_MAX);
    return fl_trace_add_op(m->t, &op) ? fl_no_memory(d, "the program's kernels") : FL_OK;
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

/* A part ends where it was to end, whatever the one before took beyond its own end: lengths do not add up errors. */
static fl_status run_lane(const maker *m, lane *l, fl_diag *d) {
    double end_s = 0;
    fl_status s = FL_OK;
    for (uint32_t cycle = 0; !s && cycle < m->cycles; cycle++)
        for (size_t first = 0, last; !s && first < m->row_count; first = last) {
            for (last = first + 1; last < m->row_count && m->row[last].part == m->row[first].part;)
                last++;
            end_s += m->row[first].part_s * m->scale;
            s = run_part(m, first, last, (int64_t)(end_s * 1e9 + 0.5), l, d);
        }
    return s;
}

static double stated_seconds(const maker *m) {
    double sum = 0;
    for (size_t i = 0; i < m->row_count; i++)
        if (!i || m->row[i].part != m->row[i - 1].part)
            sum += m->row[i].part_s;
    return sum * m->row[0].cycles;
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

fl_status fl_synth_program(const fl_programs *p, size_t index, uint64_t seed, double seconds, fl_kernel_trace *t,
                           fl_diag *d) {
    *t = (fl_kernel_trace){0};
    maker m = {.p = p, .t = t};
    size_t first = 0;
    while (p->rows[first].program != p->programs[index])
        first++;
    m.row = p->rows + first;
    while (first + m.row_count < p->row_count && m.row[m.row_count].program == p->programs[index])
        m.row_count++;
    m.cycles = m.row[0].cycles;
    m.scale = seconds > 0 ? seconds / stated_seconds(&m) : 1;
    if (m.cycles > 1) { /* turns keep their length, so that what alternates does so as fast in a short run */
        m.cycles = (uint32_t)fmax(1, round(m.cycles * m.scale));
        m.scale = 1;
    }
    m.kind = calloc(m.row_count, sizeof *m.kind);
    fl_status s = m.kind ? take_head(p, t, d) : fl_no_memory(d, "the program's kernels");
    for (size_t i = 0; !s && i < m.row_count; i++) {
        m.kind[i] = fl_trace_add_kind(t, p->names[m.row[i].kernel], (uint32_t[3]){m.row[i].grid_x, 1, 1},
                                      (uint32_t[3]){m.row[i].block_x, 1, 1});
        if (m.kind[i] == UINT32_MAX)
            s = fl_no_memory(d, "the program's kernels");
    }
    for (int32_t stream = 0; !s && stream < 256; stream++) {
        bool any = false;
        for (size_t i = 0; i < m.row_count; i++)
            any |= m.row[i].stream == stream;
        lane l = {.random = fl_random_seed(seed, index << 8 | (uint64_t)stream), .stream = stream};
        if (any)
            s = run_lane(&m, &l, d);
    }
    free(m.kind);
    if (s)
        fl_kernel_trace_free(t);
    return s;
}
