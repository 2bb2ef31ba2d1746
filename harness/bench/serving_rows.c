/* The scheduler of a serving engine by itself: who computes what in which step, with nothing simulated around it. */
#include "harness/bench/bench.h"
#include "sim/batching.h"
#include "sim/synth_requests.h"

/* How long a step takes: about what a model of 8 billion parameters takes on one large GPU. Any such law does here: it
 * only decides how many requests come together in a batch (eight, at this rate). */
static int64_t step_ns(const fl_step_shape *s) {
    return 10000000 + 20000 * (int64_t)s->sequences + 60000 * (int64_t)s->prompt_tokens + 10 * (int64_t)s->kv_read;
}

/* All requests through one server. *steps counts its steps. */
static fl_status serve(const fl_batching_rules *rules, const fl_requests *r, uint64_t *steps, fl_diag *d) {
    fl_batching *b = NULL;
    fl_step_shape shape;
    size_t next = 0;
    int64_t now_ns = 0;
    fl_status s = fl_batching_new(&b, rules, r, d);
    while (!s) {
        for (; !s && next < r->count && r->row[next].t_ns <= now_ns; next++)
            s = fl_batching_arrive(b, (uint32_t)next, d);
        if (!s && fl_batching_begin(b, &shape)) {
            now_ns += step_ns(&shape);
            fl_batching_end(b);
        } else if (next < r->count) {
            now_ns = r->row[next].t_ns;
        } else {
            break;
        }
    }
    *steps = s ? 0 : fl_batching_count(b).steps;
    fl_batching_free(b);
    return s;
}

fl_status fl_bench_serving(fl_bench *b, fl_diag *d) {
    static const char KEY[] = "serving.schedule";
    if (!fl_bench_wants(b, KEY))
        return FL_OK;
    fl_synth_requests_options o = fl_synth_requests_standard;
    fl_batching_rules rules = fl_batching_defaults();
    fl_requests requests;
    rules.kv_blocks = 20000;
    o.seconds = 0;
    o.most = b->kernels / 500 + 1;
    o.rate = 2;
    fl_status s = fl_synth_requests(&o, &requests, d);
    if (!s)
        s = fl_batching_check(&rules, &requests, d);
    for (int64_t i = 0; !s && i < b->repeat; i++) {
        const double bare = fl_bench_bare(b), start = fl_bench_cpu_seconds();
        uint64_t steps = 0, passes = 0;
        double took = 0;
        for (; !s && took < FL_BENCH_ROUND_S; passes++) {
            s = serve(&rules, &requests, &steps, d);
            took = fl_bench_cpu_seconds() - start;
        }
        if (s)
            break;
        fl_bench_result *row = fl_bench_take(b, KEY, (double)(passes * steps) / took / bare);
        row->step_ns = took * 1e9 / (double)(passes * steps);
    }
    fl_requests_free(&requests);
    return s;
}
