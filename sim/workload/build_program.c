#include "sim/workload/build_program.h"

#include "sim/workload/build_inside.h"
#include "sim/workload/synth_program.h"
#include "traces/files/kernels.h"

#include <stdlib.h>

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
