#include "harness/fit/trace/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct key {
    uint32_t name, grid[3], block[3];
} key;

static bool same(const void *owner, uint32_t index, const void *wanted) {
    const fl_seen *s = owner;
    (void)index;
    return !memcmp((const key *)(const void *)(s->kernel + s->kernel_room) + index, wanted, sizeof(key));
}

/* The keys follow the kinds in one allocation, so that both grow together. */
static fl_status grow(fl_seen *s, fl_diag *d) {
    if (s->kernel_count < s->kernel_room)
        return FL_OK;
    const size_t room = s->kernel_room ? 2 * s->kernel_room : 256;
    char *more = malloc(room * (sizeof *s->kernel + sizeof(key)));
    if (!more)
        return fl_no_memory(d, "the kernels");
    if (s->kernel_count) {
        memcpy(more, s->kernel, s->kernel_count * sizeof *s->kernel);
        memcpy(more + room * sizeof *s->kernel, s->kernel + s->kernel_room, s->kernel_count * sizeof(key));
    }
    free(s->kernel);
    s->kernel = (fl_seen_kernel *)(void *)more;
    s->kernel_room = room;
    return FL_OK;
}

static fl_status find_or_add(fl_seen *s, const key *k, fl_seen_kernel **out, fl_diag *d) {
    fl_status status = grow(s, d);
    fl_intern_slot *slot = status ? NULL : fl_intern_find(&s->kernels, fl_hash(k, sizeof *k), same, s, k);
    if (status || !slot)
        return status ? status : fl_no_memory(d, "the kernels");
    if (slot->index == UINT32_MAX) {
        slot->index = (uint32_t)s->kernel_count;
        ((key *)(void *)(s->kernel + s->kernel_room))[s->kernel_count] = *k;
        s->kernel[s->kernel_count++] = (fl_seen_kernel){.name = k->name};
    }
    *out = &s->kernel[slot->index];
    return FL_OK;
}

static fl_status count(fl_seen_kernel *k, double mhz, double ns, const char *path, fl_diag *d) {
    size_t i = 0;
    while (i < k->clocks && k->at[i].sm_mhz < mhz)
        i++;
    if (i == k->clocks || k->at[i].sm_mhz > mhz) {
        if (k->clocks == FL_TRACE_CLOCKS)
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "one kernel at more than %d clocks", FL_TRACE_CLOCKS);
        memmove(&k->at[i + 1], &k->at[i], (k->clocks++ - i) * sizeof *k->at);
        k->at[i] = (fl_kernel_point){.sm_mhz = mhz};
    }
    k->at[i].time += ns;
    k->at[i].weight++;
    k->total_ns += ns;
    return FL_OK;
}

fl_status fl_seen_add(fl_seen *s, const char *path, const fl_kernel_trace *t, double sm_mhz, fl_diag *d) {
    const char *head = fl_head_get(&t->head, "sm_mhz");
    const double of_head = head ? strtod(head, NULL) : 0;
    fl_status status = FL_OK;
    for (size_t i = 0; !status && i < t->op_count; i++) {
        const fl_trace_op *op = &t->ops[i];
        const double ns = (double)(op->end_ns - op->start_ns), mhz = op->sm_mhz   ? op->sm_mhz
                                                                     : sm_mhz > 0 ? sm_mhz
                                                                                  : of_head;
        if (op->type != FL_OP_KERNEL || !(ns > 0))
            continue;
        if (!(mhz > 0))
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                           "the recording does not state the clock of its kernels, expected --sm-mhz, or telemetry "
                           "joined to it");
        const fl_trace_kind *kind = &t->kinds[op->kind];
        const char *name = t->names[kind->name];
        key k = {.name = fl_intern_text(&s->texts, &s->names, &s->name_count, &s->name_room, name, strlen(name))};
        memcpy(k.grid, kind->grid, sizeof k.grid);
        memcpy(k.block, kind->block, sizeof k.block);
        fl_seen_kernel *seen = NULL;
        status = k.name == UINT32_MAX ? fl_no_memory(d, "the kernels") : find_or_add(s, &k, &seen, d);
        if (!status)
            status = count(seen, mhz, ns, path, d);
        s->ref_mhz = fmax(s->ref_mhz, mhz);
        s->total_ns += ns;
    }
    return status;
}

/* Shares at the highest clock of the kind, converted to the common reference. */
static void at_reference(fl_kernel_fit *k, double from_mhz, double ref_mhz, double p) {
    const double whole = fl_kernel_time(k, p, from_mhz / ref_mhz);
    k->c *= from_mhz / ref_mhz / whole;
    k->m /= whole;
    k->l /= whole;
}

static void add_to_name(fl_seen *s, const fl_seen_kernel *k) {
    fl_seen_name *n = &s->name[k->name];
    n->total_ns += k->total_ns;
    if (!k->fitted)
        return;
    n->own_ns += k->total_ns;
    n->c += k->fit.c * k->total_ns;
    n->l += k->fit.l * k->total_ns;
    n->mape += k->fit.mape_pct * k->total_ns;
    if (!isnan(k->fit.unseen_pct)) {
        n->unseen += k->fit.unseen_pct * k->total_ns;
        n->unseen_ns += k->total_ns;
    }
}

fl_status fl_seen_fit(fl_seen *s, double sharpness, fl_diag *d) {
    double unseen = 0, unseen_ns = 0;
    s->name = calloc(s->name_count + 1, sizeof *s->name);
    if (!s->name)
        return fl_no_memory(d, "the kernels");
    for (size_t i = 0; i < s->kernel_count; i++) {
        fl_seen_kernel *k = &s->kernel[i];
        for (size_t j = 0; j < k->clocks; j++)
            k->at[j].time /= k->at[j].weight;
        k->fitted = k->clocks > 1 && fl_fit_kernel(k->at, k->clocks, sharpness, &k->fit) == FL_MODEL_OK;
        if (k->fitted)
            at_reference(&k->fit, k->at[k->clocks - 1].sm_mhz, s->ref_mhz, sharpness);
        add_to_name(s, k);
    }
    for (size_t i = 0; i < s->name_count; i++) {
        fl_seen_name *n = &s->name[i];
        n->text = s->names[i];
        s->own_ns += n->own_ns;
        s->named_ns += n->own_ns > 0 ? n->total_ns - n->own_ns : 0;
        s->any_c += n->c;
        s->any_l += n->l;
        s->mape_pct += n->mape;
        unseen += n->unseen;
        unseen_ns += n->unseen_ns;
        if (n->own_ns > 0) {
            n->c /= n->own_ns;
            n->l /= n->own_ns;
        }
    }
    if (!(s->own_ns > 0))
        return fl_refuse(d,
                         "no kernel was recorded at two clocks, expected recordings of one program at several clocks");
    s->any_c /= s->own_ns;
    s->any_l /= s->own_ns;
    s->mape_pct /= s->own_ns;
    s->unseen_pct = unseen_ns > 0 ? unseen / unseen_ns : (double)NAN;
    return FL_OK;
}

void fl_seen_free(fl_seen *s) {
    free(s->kernel);
    free(s->name);
    for (size_t i = 0; i < s->name_count; i++)
        free(s->names[i]);
    free(s->names);
    fl_intern_free(&s->kernels);
    fl_intern_free(&s->texts);
    *s = (fl_seen){0};
}
