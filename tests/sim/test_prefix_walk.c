/* The ops behind a row of sums, eight at a time: the sums and the place of the walk one by one. */
#include "models/laws/laws.h"
#include "policies/random.h"
#include "sim/advance/inside.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/workload/inside.h"
#include "sim/workload/workload.h"

#include "tests/support/suite.h"

#include <string.h>

enum { OPS = 200, CLASSES = 5 };

typedef struct world {
    fl_rec rec[OPS];
    fl_big big[OPS];
    fl_row row[CLASSES];
    fl_row_parts parts[CLASSES];
    fl_stream s;
    fl_clock_rates rates;
    fl_prefix table;
} world;

/* escapes: one op in so many is an escape, with a gap of up to 34 bits; 0 = none is. */
static void make(world *w, fl_random *g, uint64_t escapes) {
    *w = (world){.s = {.count = OPS}};
    for (uint32_t c = 0; c < CLASSES; c++) {
        w->row[c] = (fl_row){.mul = (uint32_t)(FL_MUL_ONE * (0.5 + 3 * fl_random_unit(g))),
                             .dyn_mw = (int32_t)(400000 * fl_random_unit(g)),
                             .memory = (uint16_t)fl_random_below(g, FL_ROW_ONE + 1),
                             .sms = (uint16_t)fl_random_below(g, FL_ROW_ONE + 1),
                             .alu = (uint16_t)fl_random_below(g, FL_ROW_ONE + 1),
                             .resident = FL_RESIDENT_KERNEL};
        w->parts[c].sm_mw = (int32_t)(w->row[c].dyn_mw * fl_random_unit(g));
        w->parts[c].memory_mw = w->row[c].dyn_mw - w->parts[c].sm_mw;
    }
    for (uint32_t i = 0; i < OPS; i++) {
        const uint32_t class_id = (uint32_t)fl_random_below(g, CLASSES);
        const uint64_t work = fl_random_below(g, 4) ? fl_random_below(g, 200000) : fl_random_below(g, FL_WORK_MAX);
        w->rec[i] = fl_rec_of(work, fl_random_below(g, FL_GAP_MAX), class_id);
        if (escapes && !fl_random_below(g, escapes)) {
            w->big[i] = (fl_big){(int64_t)work, (int64_t)fl_random_below(g, UINT64_C(1) << 34), class_id};
            w->rec[i] = fl_rec_escape(i);
        }
    }
    w->s.rec = w->rec;
    w->s.big = w->big;
    w->rates = (fl_clock_rates){.row = w->row, .parts = w->parts};
    w->table = (fl_prefix){.s = &w->s, .rates = &w->rates};
}

static fl_prefix_place start(const world *w, fl_random *g) {
    fl_prefix_place at = {.table = &w->table, .op = fl_random_below(g, OPS)};
    uint64_t *sum = (uint64_t *)&at.sums; /* any sums: they wrap */
    for (size_t k = 1; k < sizeof at.sums / sizeof *sum; k++)
        sum[k] = fl_random_next(g);
    at.sums.t_ps = fl_random_below(g, UINT64_C(1) << 40);
    return at;
}

static void test_same(void) {
    const uint64_t seed = 20261123;
    fl_random g = fl_random_seed(seed, 0);
    static world w;
    uint64_t walked = 0, met = 0;
    for (int trial = 0; trial < 20000; trial++) {
        if (trial % 50 == 0)
            make(&w, &g, trial % 100 ? 0 : 30);
        fl_prefix_place one = start(&w, &g), eight = one, whole = one;
        const uint64_t stop = one.op + fl_random_below(&g, OPS - one.op + 1);
        const uint64_t t_ps =
            fl_random_below(&g, 5) ? one.sums.t_ps + fl_random_below(&g, UINT64_C(1) << 43) : UINT64_MAX;
        const fl_prefix_depth depth = (fl_prefix_depth)fl_random_below(&g, 3);
        fl_prefix_walk_one(&one, stop, t_ps, depth);
        fl_prefix_walk(&whole, stop, t_ps, depth);
        FL_CHECK(!memcmp(&one, &whole, sizeof one), "seed %llu, trial %d: op %llu instead of %llu",
                 (unsigned long long)seed, trial, (unsigned long long)whole.op, (unsigned long long)one.op);
        if (!fl_prefix_walks_eight())
            continue;
        walked += eight.op + 8 <= stop;
        if (fl_prefix_walk_eight(&eight, stop, t_ps, depth)) {
            met++;
            FL_CHECK(!memcmp(&one, &eight, sizeof one), "seed %llu, trial %d: it met t_ps elsewhere",
                     (unsigned long long)seed, trial);
        } else
            FL_CHECK(eight.op <= one.op, "seed %llu, trial %d: beyond t_ps", (unsigned long long)seed, trial);
    }
    FL_CHECK(!fl_prefix_walks_eight() || (walked > 1000 && met > 1000 && met < walked), "%llu walks, %llu met t_ps",
             (unsigned long long)walked, (unsigned long long)met);
}

FL_SUITE("prefix_walk", {"eight at a time", test_same})
