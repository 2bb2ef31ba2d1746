/* The blocks of a KV cache against a plain list of the free ones, which is searched from its beginning. */
#include "policies/random.h"
#include "sim/serving/inside.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

enum { BLOCKS = 12, STEPS = 20000 };

typedef struct model {
    uint32_t free[BLOCKS], count; /* the next to be taken first */
    uint32_t users[BLOCKS], stamp[BLOCKS];
} model;

static void leave(model *m, uint32_t at) {
    m->count--;
    memmove(&m->free[at], &m->free[at + 1], (m->count - at) * sizeof *m->free);
}

static uint32_t place_of(const model *m, uint32_t block) {
    uint32_t i = 0;
    while (m->free[i] != block)
        i++;
    return i;
}

static void check(const fl_kv_blocks *k, const model *m, int step) {
    FL_CHECK(fl_kv_free(k) == m->count, "step %d: %u free, expected %u", step, fl_kv_free(k), m->count);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        const fl_kv_place now = {i, m->stamp[i]}, next = {i, m->stamp[i] + 1};
        FL_CHECK(fl_kv_holds(k, now) && !fl_kv_holds(k, next) && fl_kv_idle(k, now) == !m->users[i],
                 "step %d: block %u", step, i);
    }
}

/* Takes, shares and gives at random: more takes first, so that blocks that were never taken come before those given
 * back; then as many of each. Some blocks that nobody uses are shared again before they are taken. */
static void test_random(void) {
    fl_random g = fl_random_seed(6, 6);
    model m = {.count = BLOCKS};
    for (uint32_t i = 0; i < BLOCKS; i++)
        m.free[i] = i;
    fl_kv_blocks k;
    fl_diag d = {0};
    CU_ASSERT_FATAL(fl_kv_open(&k, BLOCKS, &d) == FL_OK);
    for (int step = 0; step < STEPS; step++) {
        const uint64_t kind = fl_random_below(&g, 8);
        const uint32_t block = (uint32_t)fl_random_below(&g, BLOCKS);
        const fl_kv_place p = {block, m.stamp[block]};
        if (kind < 3 && m.count) {
            const uint32_t first = m.free[0];
            const fl_kv_place taken = fl_kv_take(&k);
            leave(&m, 0);
            m.users[first] = 1;
            m.stamp[first]++;
            FL_CHECK(taken.block == first && taken.stamp == m.stamp[first], "step %d: took %u, expected %u", step,
                     taken.block, first);
        } else if (kind == 3 && m.stamp[block]) {
            if (!m.users[block]++)
                leave(&m, place_of(&m, block));
            fl_kv_share(&k, p);
        } else if (kind > 3 && m.users[block]) {
            if (!--m.users[block])
                m.free[m.count++] = block;
            fl_kv_give(&k, p);
        }
        check(&k, &m, step);
    }
    fl_kv_close(&k);
    FL_CHECK(!k.block && !k.count, "closed");
}

FL_SUITE("kv_blocks", {"against a list", test_random})
