/* A node whose workload serves requests. */
#include "sim/node/node.h"
#include "sim/node/inside.h"
#include "sim/serving/signals.h"
#include "sim/serving/steps.h"
#include "sim/advance/source.h"

static fl_status advance(fl_course *c, int64_t target, int64_t *reached, bool *done, fl_diag *d) {
    *reached = fl_engines_advance(c->serving, c->gpu[0]->now_ps, target);
    *done = fl_engines_done(c->serving);
    return c->serving->status ? fl_engines_refused(c->serving, c->w->name, d) : FL_OK;
}

/* Requests that have not arrived yet keep it going: only a lost server can be waited for. */
static bool stuck(const fl_course *c, char *why, size_t size) {
    (void)size;
    why[0] = '\0';
    return fl_engines_stuck(c->serving);
}

static void rescale(fl_course *c, fl_gpu *g, const fl_clock_rates *before, int64_t t) {
    (void)before;
    fl_engines_rescale(c->serving, g, t);
}

static void lose(fl_course *c, fl_gpu *g) { fl_engines_lose(c->serving, g); }

static int64_t predict_mw(const fl_course *c, const fl_gpu *g, uint32_t sm, const fl_clock_rates *rates) {
    return fl_engines_predict_mw(c->serving, g, sm, rates);
}

static uint64_t hash(const fl_course *c, uint64_t h) { return fl_engines_hash(c->serving, h); }
static void close_servers(fl_course *c) { fl_engines_close(c->serving); }

static const fl_source servers = {.advance = advance,
                                  .stuck = stuck,
                                  .rescale = rescale,
                                  .lose = lose,
                                  .predict_mw = predict_mw,
                                  .hash = hash,
                                  .close = close_servers};

/* An engine's host thread launches step after step and waits for each: it never sleeps. */
fl_status fl_node_engines_open(fl_node *n, const fl_node_options *o, fl_diag *d) {
    const fl_engines_needs needs = {.signals = o->server_needs, .batches = o->batches};
    for (uint32_t k = 0; k < n->w->island_count; k++) {
        fl_course *c = &n->course[k];
        if (!c->is->serves)
            continue;
        if (c->shared_bus)
            return fl_refuse(d, "%s: servers on an APU, whose memory the CPU shares, are not simulated", n->w->name);
        fl_status s = fl_engines_open(&c->serving, n->w, n->gpu, &needs, d);
        if (s)
            return s;
        c->source = &servers;
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
