/* The classes of a trace: what its kernels do, by kind, clock of recording and kind of device. */
#include "sim/workload/build_inside.h"

#include "traces/files/kernels.h"
#include "traces/files/kinds_index.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool assume_load(const char *how, fl_load *l) {
    if (!strcmp(how, "compute"))
        *l = (fl_load){.tc = 1, .tm = 0.3, .alpha = 1, .beta = 0.3};
    else if (!strcmp(how, "memory"))
        *l = (fl_load){.tc = 0.5, .tm = 1, .alpha = 0.5, .beta = 1};
    else if (!strcmp(how, "balanced"))
        *l = (fl_load){.tc = 0.9, .tm = 0.9, .alpha = 0.8, .beta = 0.8};
    else
        return false;
    return true;
}

/* The first of the rows that describe an op, and their number; no row counts as one. */
const fl_kind_load *fl_builder_rows(const fl_builder *b, const fl_trace_op *op, uint32_t *phases) {
    *phases = b->rows[op->kind].phases;
    return b->rows[op->kind].first;
}

void fl_builder_find_rows(fl_builder *b, const fl_trace_op *ops, size_t count) {
    for (size_t i = 0; i < b->t->kind_count; i++)
        b->rows[i].phases = 1;
    fl_kinds_index index = fl_kinds_index_make(b->o->kinds);
    for (size_t i = 0; b->o->kinds && i < count; i++) {
        const fl_trace_op *op = &ops[i];
        struct fl_rows *r = &b->rows[op->kind];
        if (r->known)
            continue;
        r->known = true;
        r->first = fl_kinds_index_find(&index, b->t->names[b->t->kinds[op->kind].name]);
        if (r->first && op->type != FL_OP_KERNEL && !strcmp(r->first->name, "*"))
            r->first = NULL; /* "any other kernel" */
        r->phases = r->first ? (uint32_t)fl_kinds_phases(b->o->kinds, r->first) : 1;
    }
    fl_kinds_index_free(&index);
}

static double or_else(double value, double otherwise) { return isnan(value) ? otherwise : value; }

static fl_status host_load_of(fl_builder *b, const fl_kind_load *k, uint32_t *id, fl_diag *d) {
    const fl_host_load standard = fl_cpu_default_load(&b->node->host.cpu);
    *id = 0;
    if (!k || !b->node->host.cpu.count ||
        (isnan(k->host_bound) && isnan(k->host_alpha) && isnan(k->host_upc) && isnan(k->host_gb_s)))
        return FL_OK;
    const fl_host_load load = {.bound = or_else(k->host_bound, standard.bound),
                               .alpha = or_else(k->host_alpha, standard.alpha),
                               .upc = or_else(k->host_upc, standard.upc),
                               .bytes_per_s = or_else(k->host_gb_s * 1e9, standard.bytes_per_s)};
    return fl_workload_add_host_load(b->w, &load, id, d);
}

static fl_status load_of(fl_builder *b, const fl_trace_op *op, const char *name, const fl_kind_load *k, fl_load *l,
                         fl_diag *d) {
    const fl_device *dev = fl_builder_device(b, fl_builder_gpu(b, op->device));
    double f = op->sm_mhz ? op->sm_mhz : b->sm_mhz > 0 ? b->sm_mhz : dev->default_sm_mhz;
    double m = b->mem_mhz > 0 ? b->mem_mhz : dev->default_mem_mhz;
    if (op->type != FL_OP_KERNEL && !k) {
        *l = (fl_load){.tl = 1}; /* a copy or marker takes its time whatever the clocks */
    } else if (k) {
        *l = (fl_load){.tc = k->sm_mhz > 0 ? k->tc * k->sm_mhz / f : k->tc,
                       .tm = k->mem_mhz > 0 ? k->tm * k->mem_mhz / m : k->tm,
                       .tl = k->tl,
                       .sharpness = k->sharpness,
                       .alpha = k->alpha,
                       .beta = k->beta,
                       .sm_demand = k->sm_demand};
    } else if (!b->o->assume) {
        return fl_refuse(
            d,
            "%s: nothing is known of how kernel '%s' depends on clocks, expected a kinds file (--kinds, or "
            "'# kinds: FILE' in the head) or --assume compute|memory|balanced",
            b->w->name, name);
    } else if (!assume_load(b->o->assume, l)) {
        return fl_refuse(d, "--assume %s: expected compute, memory or balanced", b->o->assume);
    } else {
        l->sm_demand = NAN;
        b->w->assumed = true;
    }
    l->ref_sm_mhz = f;
    l->ref_mem_mhz = m;
    if (isnan(l->sm_demand)) { /* one block keeps one SM: a grid of fewer blocks than SMs leaves the others free */
        const fl_trace_kind *kind = &b->t->kinds[op->kind];
        double blocks = (double)kind->grid[0] * kind->grid[1] * kind->grid[2];
        l->sm_demand = blocks > 0 && dev->sms > 0 ? fmin(1, blocks / dev->sms) : 1;
    }
    return FL_OK;
}

fl_status fl_builder_class(fl_builder *b, const fl_trace_op *op, uint32_t *id, fl_diag *d) {
    const fl_trace_kind *kind = &b->t->kinds[op->kind];
    const char *name = b->t->names[kind->name];
    uint32_t device = b->node->gpu[fl_builder_gpu(b, op->device)];
    for (uint32_t c = b->first_class[op->kind]; c != FL_NONE; c = b->link[c].next)
        if (b->link[c].sm_mhz == op->sm_mhz && b->link[c].device == device) {
            *id = c;
            return FL_OK;
        }
    uint32_t phases;
    const fl_kind_load *row = fl_builder_rows(b, op, &phases);
    fl_kernel_kind k = {.name = name, .name_id = kind->name};
    memcpy(k.grid, kind->grid, sizeof k.grid);
    memcpy(k.block, kind->block, sizeof k.block);
    for (uint32_t p = 0; p < phases; p++) { /* the classes of further phases follow that of the first */
        fl_load load;
        uint32_t added, host;
        fl_status s = load_of(b, op, name, row ? row + p : NULL, &load, d);
        if (!s)
            s = host_load_of(b, p ? NULL : row, &host, d);
        if (!s)
            s = fl_workload_add_class(b->w, &load, &k, &added, d);
        if (!s && fl_grow(&b->link, &b->link_room, added + 1, sizeof *b->link))
            s = fl_no_memory(d, "the workload");
        if (s)
            return s;
        fl_class *c = &b->w->class[added];
        c->copy = op->type == FL_OP_COPY;
        c->iteration = op->type == FL_OP_ITERATION;
        c->part = p + 1 < phases;
        c->host = p ? 0 : host;
        if (!p)
            *id = added;
    }
    b->link[*id] = (struct fl_link){b->first_class[op->kind], op->sm_mhz, device};
    b->first_class[op->kind] = *id;
    return FL_OK;
}

fl_status fl_builder_append(fl_builder *b, uint32_t stream, const fl_trace_op *op, int64_t *end_ns, fl_diag *d) {
    uint32_t id, phases;
    const fl_kind_load *row = fl_builder_rows(b, op, &phases);
    fl_status s = fl_builder_class(b, op, &id, d);
    if (s)
        return s;
    const int64_t work = op->end_ns - op->start_ns;
    int64_t left = work, part = phases > 1 ? llround((double)work * row[0].phase) : work;
    s = fl_workload_add_op(b->w, stream, op->start_ns - *end_ns, part, id, d);
    for (uint32_t p = 1; !s && p < phases; p++) {
        left -= part;
        part = p + 1 < phases ? llround((double)work * row[p].phase) : left;
        s = fl_workload_add_op(b->w, stream, 0, part < left ? part : left, id + p, d);
    }
    *end_ns = op->end_ns;
    return s;
}
