#include "sim/rates.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct fl_rates {
    const fl_workload *w;
    const fl_node_spec *node;
    pthread_mutex_t lock;
    _Atomic(fl_clock_rates *) **table; /* per device: sm_count x mem_count cells, NULL until built */
};

fl_status fl_rates_new(fl_rates **out, const fl_workload *w, const fl_node_spec *node, fl_diag *d) {
    fl_rates *r = calloc(1, sizeof *r);
    if (!r)
        return fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the rates");
    r->w = w;
    r->node = node;
    pthread_mutex_init(&r->lock, NULL);
    r->table = calloc(node->device_count, sizeof *r->table);
    bool ok = r->table != NULL;
    for (uint32_t i = 0; ok && i < node->device_count; i++) {
        r->table[i] = calloc((size_t)node->device[i].sm_count * node->device[i].mem_count, sizeof *r->table[i]);
        ok = r->table[i] != NULL;
    }
    if (!ok) {
        fl_rates_free(r);
        return fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the rates");
    }
    *out = r;
    return FL_OK;
}

static void cell_free(fl_clock_rates *c) {
    if (c) {
        free((fl_row *)(uintptr_t)c->row);
        free((fl_row_parts *)(uintptr_t)c->parts);
        free(c);
    }
}

void fl_rates_free(fl_rates *r) {
    if (!r)
        return;
    for (uint32_t i = 0; r->table && i < r->node->device_count; i++) {
        size_t cells = (size_t)r->node->device[i].sm_count * r->node->device[i].mem_count;
        for (size_t k = 0; r->table[i] && k < cells; k++)
            cell_free(atomic_load(&r->table[i][k]));
        free(r->table[i]);
    }
    free(r->table);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static fl_status build(const fl_rates *r, const fl_device *dev, uint32_t sm, uint32_t mem, fl_clock_rates **out,
                       fl_diag *d) {
    uint32_t n = r->w->class_count;
    fl_clock_rates *c = calloc(1, sizeof *c);
    fl_row *row = calloc(n ? n : 1, sizeof *row);
    fl_row_parts *parts = calloc(n ? n : 1, sizeof *parts);
    if (!c || !row || !parts) {
        free(c);
        free(row);
        free(parts);
        return fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the rates");
    }
    c->row = row;
    c->parts = parts;
    const char *what = "base power";
    double f = dev->sm_mhz[sm], m = dev->mem_mhz[mem];
    fl_model_status s = fl_base_make(dev, f, m, &c->base);
    for (uint32_t i = 0; s == FL_MODEL_OK && i < n; i++) {
        const fl_class *k = &r->w->class[i];
        what = k->kind.name;
        s = fl_row_make(dev, &k->load, f, m, &row[i], &parts[i]);
        row[i].resident = k->copy || k->iteration ? FL_RESIDENT_NO : k->part ? FL_RESIDENT_PART : FL_RESIDENT_KERNEL;
        if (!row[i].resident)
            row[i].sms = row[i].alu = 0;
        if (s == FL_MODEL_OK && (row[i].dyn_mw > 9000000 || row[i].dyn_mw < -9000000))
            s = FL_MODEL_OVERFLOW; /* one second of it must fit the scan's 64-bit sums of femtojoules */
        if (s == FL_MODEL_OK && (c->base.total_mw < 0 || c->base.total_mw + row[i].dyn_mw < 0 || !row[i].mul))
            s = FL_MODEL_INVALID;
    }
    if (s != FL_MODEL_OK) {
        cell_free(c);
        return fl_fail(d, s == FL_MODEL_RANGE ? FL_BAD_INPUT : FL_MODEL_FAULT, NULL, 0, 0,
                       "%s: '%s' at %g MHz (memory %g MHz) on %s: %s", r->w->name, what, f, m, dev->name,
                       fl_model_text(s));
    }
    for (uint32_t i = 0; i < n; i++)
        c->max_dyn_mw = row[i].dyn_mw > c->max_dyn_mw ? row[i].dyn_mw : c->max_dyn_mw;
    *out = c;
    return FL_OK;
}

fl_status fl_rates_at(fl_rates *r, uint32_t device, uint32_t sm, uint32_t mem, const fl_clock_rates **out, fl_diag *d) {
    const fl_device *dev = &r->node->device[device];
    _Atomic(fl_clock_rates *) *cell = &r->table[device][(size_t)sm * dev->mem_count + mem];
    fl_clock_rates *c = atomic_load_explicit(cell, memory_order_acquire);
    if (c) {
        *out = c;
        return FL_OK;
    }
    pthread_mutex_lock(&r->lock); /* which thread builds cannot show: a cell depends on nothing but its clocks */
    fl_status status = FL_OK;
    c = atomic_load_explicit(cell, memory_order_relaxed);
    if (!c) {
        status = build(r, dev, sm, mem, &c, d);
        if (!status)
            atomic_store_explicit(cell, c, memory_order_release);
    }
    pthread_mutex_unlock(&r->lock);
    if (!status)
        *out = c;
    return status;
}
