#include "tests/bench/bare_loop.h"

#include <stdlib.h>

static inline __attribute__((always_inline)) double slowdown(const fl_bare_rec *r, const fl_bare_clock *c) {
    const float core = r->core * c->core, memory = r->memory * c->memory;
    return (double)(core > memory ? core : memory);
}

static inline __attribute__((always_inline)) double power(const fl_bare_rec *r, const fl_bare_clock *c) {
    return c->base_w + c->core_w * (double)r->activity + c->memory_w * (double)r->memory;
}

static inline __attribute__((always_inline)) fl_bare_sums
walk(const fl_bare_rec *rec, size_t count, const fl_bare_clock *clock, size_t clocks, double step_s) {
    fl_bare_sums sum = {0};
    double now = 0, energy = 0, until = step_s;
    fl_bare_clock c = clock[0];
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        double left = 1;
        double length = rec[i].length * slowdown(&rec[i], &c);
        double watts = power(&rec[i], &c);
        while (__builtin_expect(now + length > until, 0)) {
            left *= 1 - (until - now) / length;
            energy += watts * (until - now);
            now = until;
            until += step_s;
            at = at + 1 < clocks ? at + 1 : 0;
            c = clock[at];
            length = left * rec[i].length * slowdown(&rec[i], &c);
            watts = power(&rec[i], &c);
            sum.steps++;
        }
        now += length;
        energy += watts * length;
    }
    sum.time_s = now;
    sum.energy_j = energy;
    return sum;
}

fl_bare_sums fl_bare_loop(const fl_bare_rec *rec, size_t count, const fl_bare_clock *clock, size_t clocks,
                          double step_s) {
    return walk(rec, count, clock, clocks, step_s);
}

#if defined __x86_64__ && defined __GNUC__
__attribute__((target("avx2,fma,bmi2"))) static fl_bare_sums
wide(const fl_bare_rec *rec, size_t count, const fl_bare_clock *clock, size_t clocks, double step_s) {
    return walk(rec, count, clock, clocks, step_s);
}

fl_bare_function fl_bare_wide(void) {
    const bool here = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    return here ? wide : NULL;
}
#else
fl_bare_function fl_bare_wide(void) { return NULL; }
#endif

fl_bare_rec *fl_bare_records(const fl_workload *w) {
    const fl_stream *s = &w->stream[0];
    fl_bare_rec *rec = malloc((s->count + 1) * sizeof *rec);
    for (size_t i = 0; rec && i < s->count; i++) {
        int64_t gap_ns, work_ns;
        uint32_t class_id;
        fl_workload_op(s, i, &gap_ns, &work_ns, &class_id);
        const fl_load *k = &w->class[class_id].load;
        const double most = k->tc > k->tm ? k->tc : k->tm;
        rec[i] = (fl_bare_rec){.length = 1e-9 * (double)work_ns,
                               .core = (float)(most > 0 ? k->tc / most : 1),
                               .memory = (float)(most > 0 ? k->tm / most : 1),
                               .activity = (float)k->alpha,
                               .class_id = class_id};
    }
    return rec;
}
