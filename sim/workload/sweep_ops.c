#include "sim/workload/sweep_ops.h"

#include "sim/base/wide.h"
#include "traces/io/intern.h"

#include <string.h>

#define OP_NS INT64_C(10000000)

fl_sweep_ops fl_sweep_ops_of(fl_workload *w, const fl_sweep_replay *replay, uint32_t stream, const char *name) {
    return (fl_sweep_ops){.w = w,
                          .replay = replay,
                          .stream = stream,
                          .random = fl_random_seed(replay->seed, fl_hash(name, strlen(name))),
                          .spread = fl_spread_of(1, replay->jitter)};
}

fl_status fl_sweep_ops_marker(fl_sweep_ops *o, const fl_load *like, uint32_t *id, fl_diag *d) {
    const fl_load nothing = {.tl = 1, .ref_sm_mhz = like->ref_sm_mhz, .ref_mem_mhz = like->ref_mem_mhz};
    const fl_kernel_kind kind = {.name = "iteration", .grid = {1, 1, 1}, .block = {1, 1, 1}};
    const fl_status s = fl_workload_add_class(o->w, &nothing, &kind, id, d);
    if (!s)
        o->w->class[*id].iteration = true;
    return s;
}

static int64_t at_least_one(int64_t n) { return n < 1 ? 1 : n; }

/* How many ops one iteration has, and the kernel in all. */
static int64_t cut(int64_t total, int64_t iteration_ns, int64_t *each) {
    int64_t n = total / OP_NS;
    n = n < 100 ? 100 : n > 1000000 ? 1000000 : n;
    *each = n + 1; /* none ends */
    if (!iteration_ns)
        return n;
    int64_t iterations = at_least_one((total + iteration_ns / 2) / iteration_ns);
    iterations = iterations > n ? n : iterations;
    *each = at_least_one((n + iterations / 2) / iterations);
    return *each * iterations;
}

fl_status fl_sweep_ops_add(fl_sweep_ops *o, uint32_t class_id, uint32_t marker, int64_t total, fl_diag *d) {
    int64_t each;
    const int64_t n = cut(total, o->replay->iteration_ns, &each);
    fl_status s = FL_OK;
    for (int64_t i = 0; !s && i < n; i++) {
        const int64_t from = (int64_t)((fl_uwide)(uint64_t)total * (uint64_t)i / (uint64_t)n);
        int64_t work = (int64_t)((fl_uwide)(uint64_t)total * (uint64_t)(i + 1) / (uint64_t)n) - from;
        if (o->replay->jitter > 0)
            work = at_least_one((int64_t)((double)work * fl_spread_draw(&o->spread, &o->random) + 0.5));
        s = fl_workload_add_op(o->w, o->stream, 0, work, class_id, d);
        if (!s && (i + 1) % each == 0)
            s = fl_workload_add_op(o->w, o->stream, 0, 0, marker, d);
    }
    return s;
}
