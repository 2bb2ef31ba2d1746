/* Servers of a node that serves nothing: facts over its GPUs, and a random but repeatable sequence of samples and batch
 * records. Their generator is their own, so that what else a feed draws stays as it is. */
#pragma once

#include "policies/random.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"

#include <math.h>
#include <string.h>

enum { FL_FEED_SERVERS = 2, FL_FEED_GPUS = 64, FL_FEED_BATCHES = 8 };

typedef struct fl_feed_servers { /* two servers, or one where there is one GPU: the first GPU, and all others */
    uint32_t gpu[FL_FEED_GPUS];
    fl_server_facts server[FL_FEED_SERVERS];
} fl_feed_servers;

static void fl_feed_servers_open(fl_feed_servers *s, fl_facts *facts) {
    memset(s, 0, sizeof *s);
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        s->gpu[i] = i;
    facts->server_count = facts->gpu_count > 1 ? 2 : 1;
    for (uint32_t i = 0; i < facts->server_count; i++)
        s->server[i] = (fl_server_facts){.gpu = s->gpu + i,
                                         .gpu_count = i ? facts->gpu_count - 1 : 1,
                                         .max_seqs = 64,
                                         .token_budget = 2048,
                                         .kv_tokens = 100000,
                                         .ttft_target_ns = 1000000000,
                                         .tbt_target_ns = 100000000,
                                         .target_share = 0.99,
                                         .role = i ? FL_ROLE_DECODE : FL_ROLE_PREFILL};
    facts->server = s->server;
}

typedef struct fl_server_feed {
    fl_random random;
    double last[FL_FEED_SERVERS][FL_SERVER_SIGNAL_COUNT];
    fl_server_sample sample[FL_FEED_SERVERS];
    fl_batch_record batch[FL_FEED_BATCHES];
} fl_server_feed;

/* The next samples of facts->server_count servers, put into `to`. Each signal is known with the chance `known`; what is
 * not holds NAN, so that using it shows. `scale` of each value: 0 gives zeros, 1e15 nonsense. */
static void fl_server_feed_next(fl_server_feed *f, uint32_t servers, double known, double scale, int64_t before_ns,
                                fl_sample *to) {
    for (uint32_t k = 0; k < servers; k++) {
        fl_server_sample *u = &f->sample[k];
        u->valid = u->fresh = 0;
        for (int i = 0; i < FL_SERVER_SIGNAL_COUNT; i++) {
            const fl_row_info *row = fl_rows_at(FL_ROWS_SERVER_SIGNAL, (size_t)i);
            const double most = !strcmp(row->unit, "ns") ? 2e8 : !strcmp(row->unit, "%") ? 100 : 6;
            const double v = rint(most * fl_random_unit(&f->random)) * scale;
            f->last[k][i] = row->kind == FL_COUNTER ? f->last[k][i] + v : v;
            u->valid |= fl_random_unit(&f->random) < known ? FL_BIT(i) : 0;
            u->fresh |= fl_random_unit(&f->random) < 0.7 ? FL_BIT(i) : 0;
            u->value[i] = u->valid >> i & 1 ? f->last[k][i] : (double)NAN;
        }
    }
    to->batch_count = known > 0 && servers ? fl_random_below(&f->random, FL_FEED_BATCHES + 1) : 0;
    const int64_t each_ns = (to->time_ns - before_ns) / FL_FEED_BATCHES;
    for (uint64_t i = 0; i < to->batch_count; i++)
        f->batch[i] = (fl_batch_record){.start_ns = before_ns + (int64_t)i * each_ns,
                                        .end_ns = before_ns + (int64_t)(i + 1) * each_ns,
                                        .server = (uint32_t)fl_random_below(&f->random, servers),
                                        .prompt_tokens = (uint32_t)fl_random_below(&f->random, 512),
                                        .prompts = 1,
                                        .decode_sequences = (uint32_t)fl_random_below(&f->random, 32),
                                        .kv_tokens = fl_random_below(&f->random, 20000)};
    to->batch = to->batch_count ? f->batch : NULL;
    to->batch_lost = 0;
    to->server_count = servers;
    to->server = f->sample;
}
