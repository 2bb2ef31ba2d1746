/* A kernel trace becomes a workload: ops sorted into their streams, gaps and launches recovered from the recorded
 * times. */
#include "sim/build.h"

#include "sim/untangle.h"
#include "traces/kernels.h"
#include "traces/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct fl_builder {
    const fl_kernel_trace *t;
    const fl_node_spec *node;
    const fl_build_options *o;
    fl_workload *w;
    int32_t *device; /* distinct device ids, ascending; position = GPU */
    uint32_t device_count;
    uint32_t *order;  /* ops sorted by device, process, stream, start, row */
    uint32_t *stream; /* by op: its stream, FL_NONE for synchronisations */
    uint64_t *place;  /* by op: its position there */
    uint32_t *class_of_op;
    uint32_t *first_class; /* chains of classes by trace kind: one per clock of recording and kind of device */
    struct fl_link {
        uint32_t next;
        uint32_t sm_mhz, device;
    } * link; /* by class */
    size_t link_room;
    struct fl_rows { /* by trace kind: what the kinds file says of it */
        const fl_kind_load *first;
        uint32_t phases;
        bool known;
    } * rows;
    int64_t *work_ns; /* by op, at the clocks of the recording, alone */
    int64_t origin_ns;
    double sm_mhz, mem_mhz; /* of the recording; 0 = the device's default */
} fl_builder;

static fl_status no_memory(fl_diag *d) {
    return fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the workload");
}

static const fl_device *device_of(const fl_builder *b, uint32_t gpu) { return &b->node->device[b->node->gpu[gpu]]; }

static uint32_t gpu_of(const fl_builder *b, int32_t device) {
    uint32_t i = 0;
    while (b->device[i] != device)
        i++;
    return i;
}

static int ascending(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

static fl_status find_devices(fl_builder *b, fl_diag *d) {
    for (size_t i = 0; i < b->t->op_count; i++) {
        uint32_t k = 0;
        while (k < b->device_count && b->device[k] != b->t->ops[i].device)
            k++;
        if (k < b->device_count)
            continue;
        if (b->device_count == b->node->gpu_count)
            return fl_fail(d, FL_BAD_INPUT, NULL, 0, 0,
                           "%s: kernels on more than %u devices, the platform %s has %u (see --gpus)", b->w->name,
                           b->node->gpu_count, b->node->name, b->node->gpu_count);
        b->device[b->device_count++] = b->t->ops[i].device;
    }
    qsort(b->device, b->device_count, sizeof *b->device, ascending);
    return FL_OK;
}

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

/* ---- classes ---- */

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
static const fl_kind_load *rows_of(const fl_builder *b, const fl_trace_op *op, uint32_t *phases) {
    *phases = b->rows[op->kind].phases;
    return b->rows[op->kind].first;
}

static void find_rows(fl_builder *b) {
    for (size_t i = 0; i < b->t->kind_count; i++)
        b->rows[i].phases = 1;
    for (size_t i = 0; b->o->kinds && i < b->t->op_count; i++) {
        const fl_trace_op *op = &b->t->ops[i];
        struct fl_rows *r = &b->rows[op->kind];
        if (r->known)
            continue;
        r->known = true;
        r->first = fl_kinds_find(b->o->kinds, b->t->names[b->t->kinds[op->kind].name]);
        if (r->first && op->type != FL_OP_KERNEL && !strcmp(r->first->name, "*"))
            r->first = NULL; /* "any other kernel" */
        r->phases = r->first ? (uint32_t)fl_kinds_phases(b->o->kinds, r->first) : 1;
    }
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
    const fl_device *dev = device_of(b, gpu_of(b, op->device));
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
        return fl_fail(d, FL_BAD_INPUT, NULL, 0, 0,
                       "%s: nothing is known of how kernel '%s' depends on clocks, expected a kinds file (--kinds, or "
                       "'# kinds: FILE' in the head) or --assume compute|memory|balanced",
                       b->w->name, name);
    } else if (!assume_load(b->o->assume, l)) {
        return fl_fail(d, FL_BAD_INPUT, NULL, 0, 0, "--assume %s: expected compute, memory or balanced", b->o->assume);
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

static fl_status class_for(fl_builder *b, const fl_trace_op *op, uint32_t *id, fl_diag *d) {
    const fl_trace_kind *kind = &b->t->kinds[op->kind];
    const char *name = b->t->names[kind->name];
    uint32_t device = b->node->gpu[gpu_of(b, op->device)];
    for (uint32_t c = b->first_class[op->kind]; c != FL_NONE; c = b->link[c].next)
        if (b->link[c].sm_mhz == op->sm_mhz && b->link[c].device == device) {
            *id = c;
            return FL_OK;
        }
    uint32_t phases;
    const fl_kind_load *row = rows_of(b, op, &phases);
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
            s = no_memory(d);
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

/* ---- order ---- */

static int by_stream(const void *pa, const void *pb, void *user) {
    const fl_trace_op *ops = user;
    uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb;
    const fl_trace_op *a = &ops[ia], *b = &ops[ib];
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    if (a->stream != b->stream)
        return a->stream < b->stream ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->end_ns != b->end_ns)
        return a->end_ns < b->end_ns ? -1 : 1;
    return ia < ib ? -1 : 1;
}

static fl_status sort_into_streams(fl_builder *b, fl_diag *d) {
    size_t n = 0;
    const fl_trace_op *ops = b->t->ops, *before = NULL;
    b->origin_ns = INT64_MAX;
    for (uint32_t i = 0; i < b->t->op_count; i++) {
        int64_t first =
            ops[i].launch_ns != INT64_MIN && ops[i].launch_ns < ops[i].start_ns ? ops[i].launch_ns : ops[i].start_ns;
        if (first < b->origin_ns)
            b->origin_ns = first;
        b->stream[i] = FL_NONE;
        if (ops[i].type != FL_OP_SYNC)
            b->order[n++] = i;
    }
    qsort_r(b->order, n, sizeof *b->order, by_stream, (void *)(uintptr_t)ops);
    uint32_t stream = FL_NONE;
    uint64_t place = 0;
    for (size_t k = 0; k < n; k++) {
        const fl_trace_op *op = &ops[b->order[k]];
        if (!before || before->device != op->device || before->process != op->process || before->stream != op->stream) {
            fl_status s = fl_workload_add_stream(b->w, gpu_of(b, op->device), op->process, op->stream, &stream, d);
            if (s)
                return s;
            place = 0;
        }
        b->stream[b->order[k]] = stream;
        uint32_t phases;
        (void)rows_of(b, op, &phases);
        place += phases;
        b->place[b->order[k]] = place - 1; /* of its last phase */
        before = op;
        fl_status s = class_for(b, op, &b->class_of_op[b->order[k]], d);
        if (s)
            return s;
    }
    return FL_OK;
}

/* ---- what kernels did while they shared ---- */

static fl_status untangle(fl_builder *b, fl_diag *d) {
    const fl_trace_op *ops = b->t->ops;
    size_t n = b->t->op_count;
    fl_edge *edge = malloc((2 * n + 1) * sizeof *edge);
    double *work = calloc(n + 1, sizeof *work);
    fl_row *row = calloc(b->w->class_count + 1, sizeof *row);
    fl_status s = edge && work && row ? FL_OK : no_memory(d);
    const char *alone = fl_head_get(&b->t->head, "alone"); /* each program was recorded by itself: nothing to undo */
    const bool shared = !(alone && strcmp(alone, "1") == 0);
    for (uint32_t g = 0; !s && shared && g < b->device_count; g++) {
        for (uint32_t c = 0; !s && c < b->w->class_count; c++) {
            fl_row_parts parts;
            const fl_load *l = &b->w->class[c].load;
            fl_model_status m = fl_row_make(device_of(b, g), l, l->ref_sm_mhz, l->ref_mem_mhz, &row[c], &parts);
            if (m != FL_MODEL_OK)
                s = fl_fail(d, m == FL_MODEL_NO_MEMORY ? FL_NO_MEMORY : FL_BAD_INPUT, NULL, 0, 0,
                            "%s: kernel '%s' was recorded at %g MHz (memory %g MHz) on %s: %s", b->w->name,
                            b->w->class[c].kind.name, l->ref_sm_mhz, l->ref_mem_mhz, b->node->name, fl_model_text(m));
            if (b->w->class[c].copy || b->w->class[c].iteration)
                row[c].sms = 0;
        }
        size_t count = 0;
        for (uint32_t i = 0; i < n; i++)
            if (b->stream[i] != FL_NONE && ops[i].device == b->device[g] && ops[i].end_ns > ops[i].start_ns) {
                edge[count++] = (fl_edge){ops[i].start_ns, i, false};
                edge[count++] = (fl_edge){ops[i].end_ns, i, true};
            }
        if (!s)
            s = fl_untangle(edge, count, b->class_of_op, row, work, fl_gpu_interference(device_of(b, g)),
                            &b->w->untangled, d);
    }
    for (size_t i = 0; !s && i < n; i++)
        b->work_ns[i] = b->w->untangled ? (int64_t)(work[i] + 0.5) : ops[i].end_ns - ops[i].start_ns;
    free(edge);
    free(work);
    free(row);
    return s;
}

/* ---- ops, with the gap between the moment each could start and its start ---- */

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

static fl_status add_ops(fl_builder *b, fl_diag *d) {
    const fl_trace_op *ops = b->t->ops;
    size_t n = 0;
    for (size_t i = 0; i < b->t->op_count; i++)
        n += b->stream[i] != FL_NONE;
    for (size_t k = 0; k < n; k++) {
        uint32_t i = b->order[k];
        const fl_trace_op *op = &ops[i];
        bool first = !k || b->stream[b->order[k - 1]] != b->stream[i];
        bool launched = op->launch_ns != INT64_MIN;
        if (!first && launched != (ops[b->order[k - 1]].launch_ns != INT64_MIN))
            return fl_fail(d, FL_BAD_INPUT, NULL, 0, 0,
                           "%s: row %u has %s launch_ns, others of its stream have; expected all of a stream or none",
                           b->w->name, i, launched ? "a" : "no");
        int64_t ready = first ? b->origin_ns : ops[b->order[k - 1]].end_ns;
        for (uint32_t j = 0; j < op->waits_count; j++)
            ready = later(ready, ops[b->t->waits[op->waits_first + j]].end_ns);
        if (launched)
            ready = later(ready, op->launch_ns);
        uint32_t phases;
        const fl_kind_load *row = rows_of(b, op, &phases);
        int64_t left = b->work_ns[i], part = phases > 1 ? llround((double)b->work_ns[i] * row[0].phase) : b->work_ns[i];
        fl_status s = fl_workload_add_op(b->w, b->stream[i], op->start_ns > ready ? op->start_ns - ready : 0, part,
                                         b->class_of_op[i], d);
        for (uint32_t j = 0; !s && j < op->waits_count; j++) {
            uint32_t on = b->t->waits[op->waits_first + j];
            if (b->stream[on] != FL_NONE)
                s = fl_workload_add_wait(b->w, b->stream[i], (fl_wait){b->stream[on], b->place[on] + 1}, d);
        }
        for (uint32_t p = 1; !s && p < phases; p++) {
            left -= part;
            part = p + 1 < phases ? llround((double)b->work_ns[i] * row[p].phase) : left;
            s = fl_workload_add_op(b->w, b->stream[i], 0, part < left ? part : left, b->class_of_op[i] + p, d);
        }
        if (s)
            return s;
    }
    return FL_OK;
}

/* ---- host threads: launches and synchronisations in the order of their host times ---- */

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
        over = later(over, ops[b->t->waits[op->waits_first + j]].end_ns);
    for (uint32_t k = 0; !op->waits_count && k < b->w->stream_count; k++)
        if (launched[k] != FL_NONE)
            over = later(over, ops[launched[k]].end_ns);
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
    *now = later(*now, op->end_ns);
    return s;
}

static fl_status add_threads(fl_builder *b, fl_diag *d) {
    const fl_trace_op *ops = b->t->ops;
    size_t n = 0;
    for (uint32_t i = 0; i < b->t->op_count; i++)
        if (ops[i].launch_ns != INT64_MIN || ops[i].type == FL_OP_SYNC)
            b->order[n++] = i;
    qsort_r(b->order, n, sizeof *b->order, by_host, (void *)(uintptr_t)ops);
    uint32_t *launched = malloc((b->w->stream_count + 1) * sizeof *launched);
    if (!launched)
        return no_memory(d);
    fl_status s = FL_OK;
    uint32_t thread = FL_NONE;
    int64_t now = 0;
    for (size_t k = 0; !s && k < n; k++) {
        uint32_t i = b->order[k];
        if (!k || ops[b->order[k - 1]].host_thread != ops[i].host_thread) {
            s = fl_workload_add_thread(b->w, ops[i].host_thread, &thread, d);
            memset(launched, 0xff, b->w->stream_count * sizeof *launched); /* FL_NONE */
            now = b->origin_ns;
        }
        if (s)
            break;
        if (ops[i].type == FL_OP_SYNC) {
            s = add_sync(b, thread, i, &now, launched, d);
            continue;
        }
        uint32_t phases;
        (void)rows_of(b, &ops[i], &phases);
        fl_item item = {.type = FL_ITEM_LAUNCH,
                        .parts = phases - 1,
                        .host_ns = ops[i].launch_ns > now ? ops[i].launch_ns - now : 0,
                        .stream = b->stream[i]};
        s = fl_workload_add_item(b->w, thread, &item, d);
        now = later(now, ops[i].launch_ns);
        launched[b->stream[i]] = i;
    }
    free(launched);
    return s;
}

/* What a fit wrote into the head of its kinds; NAN where nobody knows how wrong they are. */
static double head_error(const fl_kinds *kinds, const char *key) {
    const char *text = fl_head_get(&kinds->head, key);
    double pct;
    return text && fl_real_parse(text, &pct) == FL_NUMBER_OK && pct >= 0 ? pct : (double)NAN;
}

fl_status fl_build_trace(fl_workload **out, const char *name, const fl_kernel_trace *t, const fl_node_spec *node,
                         const fl_build_options *o, fl_diag *d) {
    fl_builder b = {.t = t, .node = node, .o = o};
    fl_status s = fl_workload_new(&b.w, name, d);
    if (s)
        return s;
    size_t n = t->op_count + 1;
    b.device = calloc(node->gpu_count + 1, sizeof *b.device);
    b.order = calloc(n, sizeof *b.order);
    b.stream = calloc(n, sizeof *b.stream);
    b.place = calloc(n, sizeof *b.place);
    b.class_of_op = calloc(n, sizeof *b.class_of_op);
    b.first_class = malloc((t->kind_count + 1) * sizeof *b.first_class);
    b.work_ns = calloc(n, sizeof *b.work_ns);
    b.rows = calloc(t->kind_count + 1, sizeof *b.rows);
    if (!b.device || !b.order || !b.stream || !b.place || !b.class_of_op || !b.first_class || !b.work_ns || !b.rows)
        s = no_memory(d);
    for (size_t i = 0; !s && i < t->kind_count; i++)
        b.first_class[i] = FL_NONE;
    if (!s)
        find_rows(&b);
    if (o->kinds) {
        b.w->model_time_mape_pct = head_error(o->kinds, "model_time_mape_pct");
        b.w->model_power_mape_pct = head_error(o->kinds, "model_power_mape_pct");
    }
    b.w->launch_queue = node->host.launch_queue ? node->host.launch_queue : 1024;
    b.w->gaps_are_host = !t->has_launches;
    if (!s)
        s = head_clock(&b, "cpu_mhz", &b.w->host_ref_mhz, d);
    if (!s && !(s = find_devices(&b, d)) && !(s = head_clock(&b, "sm_mhz", &b.sm_mhz, d)) &&
        !(s = head_clock(&b, "mem_mhz", &b.mem_mhz, d)) && !(s = sort_into_streams(&b, d)) && !(s = untangle(&b, d)) &&
        !(s = add_ops(&b, d)) && t->has_launches)
        s = add_threads(&b, d);
    if (!s)
        s = fl_workload_finish(b.w, o->windows ? o->windows : 20, d);
    free(b.device);
    free(b.order);
    free(b.stream);
    free(b.place);
    free(b.class_of_op);
    free(b.first_class);
    free(b.link);
    free(b.work_ns);
    free(b.rows);
    if (s)
        fl_workload_free(b.w);
    else
        *out = b.w;
    return s;
}
