/* Classes of a trace's ops, launches and synchronisations, and the work of kernels that overlapped. */
#include "sim/workload/inside.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The classes of a trace: what its kernels do, by kind, clock of recording and kind of device. */

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
    if (k && k->fold_mhz > 0)
        l->bandwidth = isinf(k->fold_mhz) ? (fl_fold_line){0} : (fl_fold_line){k->fold_mhz, k->fold_low, k->fold_high};
    else if (l->tm > 0)
        l->bandwidth = dev->bandwidth;
    if (!fl_fold_line_sound(&l->bandwidth, fmin(f, dev->sm_mhz[0])))
        return fl_refuse(d, "%s: kernel '%s' has no bandwidth left at %g MHz: its fold line falls by %g below %g MHz",
                         b->w->name, name, fmin(f, dev->sm_mhz[0]), l->bandwidth.low, l->bandwidth.fold_mhz);
    if (isnan(l->sm_demand)) { /* one block keeps one SM: a grid of fewer blocks than SMs leaves the others free */
        const fl_trace_kind *kind = &b->t->kinds[op->kind];
        double blocks = (double)kind->grid[0] * kind->grid[1] * kind->grid[2];
        l->sm_demand = blocks > 0 && dev->sms > 0 ? fmin(1, blocks / dev->sms) : 1;
    }
    return FL_OK;
}

static bool same_class(const void *owner, uint32_t index, const void *key) {
    return !memcmp((const struct fl_class_of *)owner + index, key, sizeof(struct fl_class_of));
}

fl_status fl_builder_class(fl_builder *b, const fl_trace_op *op, uint32_t *id, fl_diag *d) {
    const fl_trace_kind *kind = &b->t->kinds[op->kind];
    const char *name = b->t->names[kind->name];
    uint32_t device = b->node->gpu[fl_builder_gpu(b, op->device)];
    const struct fl_class_of made_for = {op->kind, op->sm_mhz, device};
    fl_intern_slot *slot =
        fl_intern_find(&b->classes, fl_hash(&made_for, sizeof made_for), same_class, b->made_for, &made_for);
    if (!slot)
        return fl_no_memory(d, "the workload");
    if (slot->index != UINT32_MAX) {
        *id = slot->index;
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
        if (!s && fl_grow(&b->made_for, &b->made_for_room, added + 1, sizeof *b->made_for))
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
    b->made_for[*id] = made_for;
    slot->index = *id;
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

/* The host threads of a trace: launches and synchronisations in the order of their host times. */

static int64_t host_time(const fl_trace_op *op) { return op->type == FL_OP_SYNC ? op->start_ns : op->launch_ns; }

static int by_host(const void *pa, const void *pb, void *user) {
    const fl_trace_op *ops = user;
    uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb;
    const fl_trace_op *a = &ops[ia], *b = &ops[ib];
    if (a->host_thread != b->host_thread)
        return a->host_thread < b->host_thread ? -1 : 1;
    if (host_time(a) != host_time(b))
        return host_time(a) < host_time(b) ? -1 : 1;
    return ia < ib ? -1 : 1;
}

/* launched: by stream, the op that this thread launched last there, FL_NONE if none. */
static fl_status add_sync(fl_builder *b, uint32_t thread, uint32_t i, int64_t *now, const uint32_t *launched,
                          fl_diag *d) {
    const fl_trace_op *ops = b->t->ops, *op = &ops[i];
    int64_t over = op->start_ns;
    for (uint32_t j = 0; j < op->waits_count; j++)
        over = fl_builder_later(over, ops[b->t->waits[op->waits_first + j]].end_ns);
    for (uint32_t k = 0; !op->waits_count && k < b->w->stream_count; k++)
        if (launched[k] != FL_NONE)
            over = fl_builder_later(over, ops[launched[k]].end_ns);
    fl_item item = {.type = FL_ITEM_SYNC,
                    .host_ns = op->start_ns > *now ? op->start_ns - *now : 0,
                    .after_ns = op->end_ns > over ? op->end_ns - over : 0};
    fl_status s = fl_workload_add_item(b->w, thread, &item, d);
    for (uint32_t j = 0; !s && j < op->waits_count; j++) {
        uint32_t on = b->t->waits[op->waits_first + j];
        if (b->stream[on] != FL_NONE)
            s = fl_workload_add_sync_wait(b->w, thread, (fl_wait){b->stream[on], b->place[on] + 1}, d);
    }
    for (uint32_t k = 0; !s && !op->waits_count && k < b->w->stream_count; k++)
        if (launched[k] != FL_NONE)
            s = fl_workload_add_sync_wait(b->w, thread, (fl_wait){k, b->place[launched[k]] + 1}, d);
    *now = fl_builder_later(*now, op->end_ns);
    return s;
}

/* A launch of a stream launches the ops without one that follow, too, as the ops of a graph. Ops before the first
 * launch of their stream were launched before the recording began: the thread of that launch launches them at its
 * begin. */

typedef struct lead { /* of one stream */
    int32_t thread;
    uint32_t stream, last, parts; /* last op of the trace; ops of the workload */
} lead;

typedef struct leads {
    lead *item;
    size_t count, room;
    struct fl_group { /* what the launch of an op of the trace launches */
        uint32_t last, parts;
    } * group; /* by op; NULL: each launches itself alone */
} leads;

static int by_thread(const void *pa, const void *pb) {
    const lead *a = pa, *b = pb;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return a->stream < b->stream ? -1 : a->stream > b->stream;
}

static uint32_t phases_of(const fl_builder *b, const fl_trace_op *op) {
    uint32_t phases;
    (void)fl_builder_rows(b, op, &phases);
    return phases;
}

static bool starts_stream(const fl_builder *b, size_t k) {
    return !k || b->stream[b->order[k - 1]] != b->stream[b->order[k]];
}

/* Call it while b->order is that of the streams. */
static fl_status find_leads(const fl_builder *b, leads *l, fl_diag *d) {
    const fl_trace_op *ops = b->t->ops;
    bool mixed = false;
    for (size_t k = 1; k < b->ordered && !mixed; k++)
        mixed = !starts_stream(b, k) &&
                (ops[b->order[k]].launch_ns == INT64_MIN) != (ops[b->order[k - 1]].launch_ns == INT64_MIN);
    if (mixed && !(l->group = calloc(b->t->op_count + 1, sizeof *l->group)))
        return fl_no_memory(d, "the workload");
    lead at = {0};
    struct fl_group *group = NULL; /* of the op of this stream that was launched last */
    for (size_t k = 0; mixed && k < b->ordered; k++) {
        const uint32_t i = b->order[k], phases = phases_of(b, &ops[i]);
        if (starts_stream(b, k)) {
            at = (lead){.stream = b->stream[i]};
            group = NULL;
        }
        if (ops[i].launch_ns != INT64_MIN) {
            at.thread = ops[i].host_thread;
            if (!group && at.parts && fl_grow(&l->item, &l->room, l->count + 1, sizeof *l->item))
                return fl_no_memory(d, "the workload");
            if (!group && at.parts)
                l->item[l->count++] = at;
            group = &l->group[i];
            *group = (struct fl_group){i, phases};
        } else if (group) {
            *group = (struct fl_group){i, group->parts + phases};
        } else {
            at.last = i;
            at.parts += phases;
        }
    }
    if (l->count)
        qsort(l->item, l->count, sizeof *l->item, by_thread);
    return FL_OK;
}

static fl_status add_launch(fl_builder *b, uint32_t thread, int64_t host_ns, const lead *x, uint32_t *launched,
                            fl_diag *d) {
    const fl_item item = {.type = FL_ITEM_LAUNCH, .parts = x->parts - 1, .host_ns = host_ns, .stream = x->stream};
    launched[x->stream] = x->last;
    return fl_workload_add_item(b->w, thread, &item, d);
}

static fl_status add_threads(fl_builder *b, const leads *l, uint32_t *launched, fl_diag *d) {
    const fl_trace_op *ops = b->t->ops;
    size_t n = 0, next = 0;
    for (uint32_t i = 0; i < b->t->op_count; i++)
        if (ops[i].launch_ns != INT64_MIN || ops[i].type == FL_OP_SYNC)
            b->order[n++] = i;
    qsort_r(b->order, n, sizeof *b->order, by_host, (void *)(uintptr_t)ops);
    fl_status s = FL_OK;
    uint32_t thread = FL_NONE;
    int64_t now = 0;
    for (size_t k = 0; !s && k < n; k++) {
        const uint32_t i = b->order[k];
        const fl_trace_op *op = &ops[i];
        if (!k || ops[b->order[k - 1]].host_thread != op->host_thread) {
            s = fl_workload_add_thread(b->w, op->host_thread, &thread, d);
            memset(launched, 0xff, b->w->stream_count * sizeof *launched); /* FL_NONE */
            now = b->origin_ns;
            for (; !s && next < l->count && l->item[next].thread == op->host_thread; next++)
                s = add_launch(b, thread, 0, &l->item[next], launched, d);
        }
        if (s)
            break;
        if (op->type == FL_OP_SYNC) {
            s = add_sync(b, thread, i, &now, launched, d);
            continue;
        }
        const lead own = {.stream = b->stream[i],
                          .last = l->group ? l->group[i].last : i,
                          .parts = l->group ? l->group[i].parts : phases_of(b, op)};
        s = add_launch(b, thread, op->launch_ns > now ? op->launch_ns - now : 0, &own, launched, d);
        now = fl_builder_later(now, op->launch_ns);
    }
    return s;
}

fl_status fl_builder_threads(fl_builder *b, fl_diag *d) {
    leads l = {0};
    uint32_t *launched = malloc((b->w->stream_count + 1) * sizeof *launched);
    fl_status s = launched ? find_leads(b, &l, d) : fl_no_memory(d, "the workload");
    if (!s)
        s = add_threads(b, &l, launched, d);
    free(launched);
    free(l.item);
    free(l.group);
    return s;
}

/* ---- the work of kernels that overlapped ---- */

static int by_time(const void *a, const void *b) {
    const fl_edge *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    if (x->end != y->end)
        return x->end ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

fl_status fl_untangle(fl_edge *edge, size_t count, const uint32_t *class_of_op, const fl_row *row, double *work,
                      uint32_t interference, bool *shared, fl_diag *d) {
    uint32_t sms[FL_SHARES_MAX], memory[FL_SHARES_MAX], rate[FL_SHARES_MAX], who[FL_SHARES_MAX];
    size_t active = 0;
    uint64_t sum_sms = 0, sum_memory = 0;
    qsort(edge, count, sizeof *edge, by_time);
    for (size_t i = 0; i < count; i++) {
        if (edge[i].end) {
            size_t k = 0;
            while (who[k] != edge[i].op)
                k++;
            sum_sms -= sms[k];
            sum_memory -= memory[k];
            active--;
            sms[k] = sms[active], memory[k] = memory[active], who[k] = who[active];
        } else {
            if (active == FL_SHARES_MAX)
                return fl_refuse(d, "more than %d kernels at once on one GPU", FL_SHARES_MAX);
            const fl_row *r = &row[class_of_op[edge[i].op]];
            who[active] = edge[i].op;
            sum_sms += sms[active] = (uint32_t)r->sms * 2;
            sum_memory += memory[active++] = (uint32_t)r->memory * 2;
        }
        if (i + 1 == count || edge[i + 1].at_ns == edge[i].at_ns || !active)
            continue;
        bool scarce = sum_sms > FL_SHARE_ONE || sum_memory > FL_SHARE_ONE;
        if (scarce) {
            fl_shares_rates(sms, memory, rate, active, FL_SHARE_ONE, interference);
            *shared = true;
        }
        double dt = (double)(edge[i + 1].at_ns - edge[i].at_ns);
        for (size_t k = 0; k < active; k++)
            work[who[k]] += scarce ? dt * rate[k] / FL_SHARE_ONE : dt;
    }
    return FL_OK;
}
