/* A node whose workload serves requests. */
#include "sim/node.h"
#include "sim/node_inside.h"
#include "sim/serving_signals.h"
#include "sim/serving_steps.h"

/* An engine's host thread launches step after step and waits for each: it never sleeps. */
fl_status fl_node_engines_open(fl_node *n, const fl_engines_needs *needs, fl_diag *d) {
    for (uint32_t k = 0; k < n->w->island_count; k++) {
        fl_course *c = &n->course[k];
        if (!c->is->serves)
            continue;
        if (c->shared_bus)
            return fl_refuse(d, "%s: servers on an APU, whose memory the CPU shares, are not simulated", n->w->name);
        fl_status s = fl_engines_open(&c->serving, n->w, n->gpu, needs, d);
        if (s)
            return s;
        c->active = n->w->serving->server_count;
        n->serving = c->serving;
    }
    return FL_OK;
}

void fl_node_read_server(fl_node *n, uint32_t server, bool remember, fl_server_sample *out) {
    fl_engines_read(n->serving, server, n->now, remember, out);
}

void fl_node_take_batches(fl_node *n, const fl_batch_record **batch, size_t *count) {
    *batch = n->serving->batch;
    *count = n->serving->batch_count;
    n->serving->batch_count = 0;
}

uint64_t fl_node_served(const fl_node *n) { return n->serving ? n->serving->finished : 0; }
fl_engines *fl_node_engines(const fl_node *n) { return n->serving; }

fl_batching_counts fl_node_batching(const fl_node *n, uint32_t server) {
    return fl_engine_count(&n->serving->engine[server]);
}
