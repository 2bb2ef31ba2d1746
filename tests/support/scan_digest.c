/* Scans random streams between random boundaries, at clocks that change, and prints one number made of all that comes
 * out. `scan_digest PATH`: the same number by every path, and on every machine. Links the loops of sim/advance/ alone.
 */
#include "policies/random.h"
#include "models/laws/laws.h"
#include "sim/advance/inside.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/workload/inside.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCENES = 300, CLASSES = 60, OPS = 1500, CLOCKS = 3, STEPS = 400 };

/* Nothing records here. */
void fl_lane_record(const fl_lane *l, int64_t end_ps) {
    (void)l;
    (void)end_ps;
    abort();
}

fl_status fl_grow(void *items, size_t *room, size_t need, size_t size) {
    (void)items;
    (void)room;
    (void)need;
    (void)size;
    abort();
}

/* Nor are there tables of sums. */
bool fl_prefix_applies(const fl_gpu *g, const fl_lane *l, uint32_t gap_mul) {
    (void)g;
    (void)l;
    (void)gap_mul;
    return false;
}

int64_t fl_prefix_advance(fl_gpu *g, fl_lane *l, int64_t t, int64_t until, bool *met) {
    (void)g;
    (void)l;
    (void)t;
    (void)until;
    (void)met;
    abort();
}

static uint64_t mix(uint64_t hash, uint64_t x) { return (hash ^ x) * UINT64_C(0x100000001b3); }

static uint64_t mix_wide(uint64_t hash, fl_wide x) { return mix(mix(hash, (uint64_t)x), (uint64_t)(x >> 64)); }

typedef struct scene {
    fl_row row[CLOCKS][CLASSES];
    fl_clock_rates rates[CLOCKS];
    int64_t class_ps[CLOCKS][CLASSES];
    fl_slot slot[CLOCKS];
    fl_rec rec[OPS];
    fl_big big[OPS];
    uint64_t mark[4];
    int64_t mark_ps[4];
} scene;

static void draw(scene *x, fl_random *g, fl_stream *s) {
    const uint64_t escapes = fl_random_below(g, 3) ? 1 + fl_random_below(g, 20) : 0;
    const bool other = fl_random_below(g, 2);
    *s = (fl_stream){.rec = x->rec, .big = x->big, .count = 1 + (size_t)fl_random_below(g, OPS), .other = other};
    for (int k = 0; k < CLOCKS; k++) {
        for (int c = 0; c < CLASSES; c++)
            x->row[k][c] = (fl_row){.mul = FL_MUL_ONE / 2 + (uint32_t)fl_random_below(g, FL_MUL_ONE),
                                    .dyn_mw = (int32_t)fl_random_below(g, 400000),
                                    .memory = (uint16_t)fl_random_below(g, 32769),
                                    .sms = (uint16_t)fl_random_below(g, 32769),
                                    .alu = (uint16_t)fl_random_below(g, 32769),
                                    .resident = (uint16_t)(other ? c % 3 : FL_RESIDENT_KERNEL)};
        memset(x->class_ps[k], 0, sizeof x->class_ps[k]);
        x->rates[k] = (fl_clock_rates){.row = x->row[k]};
        x->slot[k] = (fl_slot){.rates = &x->rates[k], .class_ps = x->class_ps[k]};
    }
    for (size_t i = 0; i < s->count; i++) {
        const uint32_t id = (uint32_t)fl_random_below(g, CLASSES);
        const uint64_t work = fl_random_below(g, UINT64_C(1) << fl_random_below(g, 24));
        x->rec[i] = fl_rec_of(work, fl_random_below(g, 65536), id);
        if (escapes && !fl_random_below(g, escapes)) {
            const uint64_t most = fl_random_below(g, 30) ? 1 << 20 : UINT64_C(1) << 34;
            x->big[s->big_count] = (fl_big){(int64_t)work, (int64_t)fl_random_below(g, most), id};
            x->rec[i] = fl_rec_escape(s->big_count++);
        }
    }
    s->mark = x->mark;
    for (uint64_t i = 1; i <= 4; i++)
        if (s->count * i / 4 > (s->mark_count ? x->mark[s->mark_count - 1] : 0))
            x->mark[s->mark_count++] = s->count * i / 4;
}

static uint64_t digest(const scene *x, const fl_gpu *g, const fl_lane *l, int64_t t, uint64_t hash) {
    hash = mix(mix(mix(mix(hash, (uint64_t)t), l->next), (uint64_t)l->phase), (uint64_t)l->p.left_ps);
    hash = mix(mix(mix(hash, (uint64_t)l->worked_ps), l->in_parts), l->marks);
    hash =
        mix_wide(mix_wide(mix_wide(mix_wide(hash, g->window.dyn_fj), g->window.memory), g->window.alu), g->window.sms);
    hash = mix(mix(mix(hash, (uint64_t)g->sums.busy_ps), g->sums.kernels), (uint64_t)g->sums.copy_ps);
    for (int c = 0; c < CLASSES; c++)
        hash = mix(hash, (uint64_t)x->class_ps[g->slot_now][c]);
    for (uint32_t i = 0; i < l->marks; i++)
        hash = mix(hash, (uint64_t)l->mark_ps[i]);
    return hash;
}

static uint64_t run(scene *x, fl_random *r, fl_path path, uint64_t hash) {
    fl_stream s;
    draw(x, r, &s);
    const uint32_t gap_mul = fl_random_below(r, 2) ? FL_MUL_ONE : (uint32_t)fl_random_below(r, 2 * FL_MUL_ONE);
    fl_gpu g = {.path = path, .slot = x->slot, .rates = &x->rates[0], .profiled = fl_random_below(r, 2)};
    fl_lane l = {.s = &s, .gpu = &g, .mark_ps = x->mark_ps};
    for (int n = 0; n < STEPS && l.phase != FL_PHASE_DONE; n++) {
        const int64_t span = (int64_t)fl_random_below(r, UINT64_C(1) << (10 + fl_random_below(r, 30)));
        const fl_clock_rates *before = g.rates;
        g.now_ps = fl_scan_advance(&g, &l, g.now_ps + span, gap_mul);
        hash = digest(x, &g, &l, g.now_ps, hash);
        g.slot_now = (uint32_t)fl_random_below(r, CLOCKS);
        g.rates = &x->rates[g.slot_now];
        if (g.rates != before)
            fl_scan_rescale(&g, &l, before);
    }
    return hash;
}

int main(int argc, char **argv) {
    const fl_path path = argc > 1 && !strcmp(argv[1], "plain")    ? FL_PATH_PLAIN
                         : argc > 1 && !strcmp(argv[1], "vector") ? FL_PATH_VECTOR
                                                                  : FL_PATH_AUTO;
    fl_random r = fl_random_seed(19, 6);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    scene *x = calloc(1, sizeof *x);
    if (!x)
        return 1;
    for (int k = 0; k < SCENES; k++)
        hash = run(x, &r, path, hash);
    free(x);
    printf("%016" PRIx64 "\n", hash);
    return 0;
}
