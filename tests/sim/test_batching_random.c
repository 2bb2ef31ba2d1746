/* The scheduler of a serving engine on random traces: step by step against a second, plain implementation of its rules,
 * and what must be conserved. */
#include "policies/random.h"
#include "models/laws/laws.h"
#include "sim/serving/serving.h"
#include "sim/serving/inside.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"
#include "tests/support/plain_batching.h"
#include "tests/support/suite.h"

#include <inttypes.h>

enum { MOST = 40 };

static uint32_t below(fl_random *g, uint32_t n) { return (uint32_t)fl_random_below(g, n); }

/* At most MOST requests, and a server that is short of everything: often its cache just holds the longest of them. */
static void random_requests(fl_random *g, fl_requests *r, fl_batching_rules *rules) {
    static const uint32_t block[] = {1, 3, 4, 16};
    const uint32_t count = 1 + below(g, MOST), longest = 1 + below(g, 90);
    *rules = (fl_batching_rules){.max_seqs = 1 + below(g, 12),
                                 .token_budget = 1 + below(g, 64),
                                 .block_tokens = block[below(g, 4)],
                                 .chunked_prefill = below(g, 5) > 0,
                                 .prefix_cache = below(g, 2) > 0};
    for (uint32_t i = 0; i < count; i++) {
        fl_request_row q = {.prompt_tokens = 1 + below(g, longest),
                            .output_tokens = 1 + below(g, below(g, 3) ? 30 : 120)};
        q.cached_tokens = below(g, 2) ? below(g, q.prompt_tokens + 1) : 0;
        if (fl_requests_add(r, &q, NULL))
            CU_FAIL_FATAL("no memory");
        const uint32_t tokens = q.prompt_tokens + q.output_tokens - 1;
        const uint32_t blocks = (tokens + rules->block_tokens - 1) / rules->block_tokens;
        rules->kv_blocks = blocks > rules->kv_blocks ? blocks : rules->kv_blocks;
        if (!rules->chunked_prefill && rules->token_budget < tokens)
            rules->token_budget = tokens;
    }
    rules->kv_blocks += below(g, 4) * below(g, 60);
}

/* ---- one trace ---- */

typedef struct course {
    fl_requests r;
    fl_batching_rules rules;
    fl_batching *b;
    plain_batching *p;
    uint32_t arrived;
    uint32_t promised;        /* steps that must have the parts of the one before, unless somebody arrives */
    fl_batch_part last[MOST]; /* of the step before, by the plain scheduler */
    size_t last_count;
    uint64_t steps, tokens, outputs, preempted, same;
} course;

static void arrive(course *c) {
    CU_ASSERT_FATAL(fl_batching_arrive(c->b, c->arrived, NULL) == FL_OK);
    pb_arrive(c->p, c->arrived++);
    c->promised = 0;
}

static bool same_part(const fl_batch_part *x, const fl_batch_part *y) {
    return x->request == y->request && x->tokens == y->tokens && x->context == y->context && x->output == y->output &&
           x->prompt == y->prompt && x->admitted == y->admitted && x->emits == y->emits && x->first == y->first &&
           x->last == y->last;
}

static bool same_parts(course *c) {
    size_t count;
    const fl_batch_part *part = fl_batching_parts(c->b, &count);
    bool same = count == c->p->part_count;
    for (size_t i = 0; same && i < count; i++)
        same = same_part(&part[i], &c->p->part[i]);
    return same;
}

static bool same_preempted(const course *c) {
    size_t count;
    const uint32_t *gone = fl_batching_preempted(c->b, &count);
    bool same = count == c->p->preempted.count;
    for (size_t i = 0; same && i < count; i++)
        same = gone[i] == c->p->preempted.item[i];
    return same;
}

/* Each block is in the tables of so many running requests as use it, and those that none has are free: none is lost,
 * and there are never more than there are. */
static bool blocks_whole(const plain_batching *p) {
    uint64_t used = 0;
    for (uint64_t i = 0; i < p->rules.kv_blocks; i++) {
        uint32_t users = 0;
        for (size_t k = 0; k < p->running.count; k++)
            for (size_t n = 0; n < p->of[p->running.item[k]].block.count; n++)
                users += p->of[p->running.item[k]].block.item[n] == i;
        if (users != p->users[i])
            return false;
        used += users > 0;
    }
    return used + p->free_block.count == p->rules.kv_blocks;
}

static bool same_counts(course *c) {
    const fl_batching_counts n = fl_batching_count(c->b);
    const plain_batching *p = c->p;
    return n.waiting == p->waiting.count && n.running == p->running.count && n.running <= c->rules.max_seqs &&
           n.blocks_used == c->rules.kv_blocks - p->free_block.count && blocks_whole(p) &&
           n.arrived == (uint64_t)n.waiting + n.running + n.finished &&
           n.oldest_waiting == (p->waiting.count ? p->waiting.item[0] : UINT32_MAX);
}

/* What was said of a row of equal steps holds. */
static bool row_holds(course *c) {
    const plain_batching *p = c->p;
    const bool same = fl_batching_same(c->b);
    bool good = same || !c->promised;
    if (same)
        good = p->part_count == c->last_count && !p->preempted.count;
    for (size_t i = 0; good && same && i < p->part_count; i++)
        good = p->part[i].request == c->last[i].request && p->part[i].context == c->last[i].context + 1 &&
               !p->part[i].prompt && p->part[i].emits && !p->part[i].first && !c->last[i].last && !p->part[i].admitted;
    c->same += same;
    c->promised = fl_batching_steady(c->b);
    c->promised -= c->promised > 0;
    memcpy(c->last, p->part, p->part_count * sizeof *p->part);
    c->last_count = p->part_count;
    return good;
}

/* often: asks for everything in every step; else now and then, so that rows of equal steps are passed as a simulator
 * passes them. */
static bool step(course *c, fl_random *g, bool often, bool *any) {
    fl_step_shape shape;
    *any = fl_batching_begin(c->b, &shape);
    bool good = *any == pb_begin(c->p);
    if (!*any || !good)
        return good;
    c->steps++;
    good = !memcmp(&shape, &c->p->shape, sizeof shape) && shape.tokens >= 1 && shape.tokens <= c->rules.token_budget &&
           shape.sequences == c->p->part_count && row_holds(c) && same_preempted(c);
    if (often || !below(g, 7))
        good = good && same_parts(c);
    if (often || !below(g, 7))
        good = good && same_counts(c);
    c->tokens += shape.tokens;
    c->preempted += c->p->preempted.count;
    for (size_t i = 0; i < c->p->part_count; i++)
        c->outputs += c->p->part[i].emits;
    if (c->arrived < c->r.count && !below(g, 30)) /* while the step runs */
        arrive(c);
    fl_batching_end(c->b);
    pb_end(c->p);
    return good && (!often || same_counts(c));
}

static void check_end(course *c, uint64_t seed) {
    const fl_batching_counts n = fl_batching_count(c->b);
    uint64_t put_out = 0, needed = 0;
    for (uint32_t i = 0; i < c->r.count; i++) {
        const fl_request_row *q = &c->r.row[i];
        FL_CHECK(fl_batching_output(c->b, i) == q->output_tokens && c->p->of[i].finished,
                 "seed %" PRIu64 ": request %u has put out %u of %u", seed, i, fl_batching_output(c->b, i),
                 q->output_tokens);
        put_out += q->output_tokens;
        needed += (uint64_t)q->prompt_tokens + q->output_tokens - 1;
    }
    FL_CHECK(n.arrived == c->r.count && n.finished == c->r.count && !n.waiting && !n.running && !n.blocks_used,
             "seed %" PRIu64 ": requests or blocks are lost", seed);
    FL_CHECK(n.output_tokens == put_out && c->outputs == put_out && n.steps == c->steps &&
                 n.preemptions == c->preempted && n.admissions == c->r.count + c->preempted,
             "seed %" PRIu64 ": tokens, steps or preemptions are lost", seed);
    /* what was computed or found, less what preemptions lost, is what the requests needed */
    FL_CHECK(c->tokens == n.prompt_tokens + n.decode_tokens && c->tokens + n.cached_tokens - n.lost_tokens == needed,
             "seed %" PRIu64 ": %" PRIu64 " tokens computed, %" PRIu64 " found, %" PRIu64 " lost, %" PRIu64 " needed",
             seed, c->tokens, n.cached_tokens, n.lost_tokens, needed);
}

typedef struct reached { /* over all traces: they must reach what they are to test */
    uint64_t steps, same, preempted, cached;
} reached;

static void run_both(uint64_t seed, reached *all) {
    fl_random g = fl_random_seed(seed, 24);
    fl_diag d = {0};
    course c = {0};
    random_requests(&g, &c.r, &c.rules);
    if (fl_batching_check(&c.rules, &c.r, &d) || fl_batching_new(&c.b, &c.rules, &c.r, &d)) {
        printf("\n    %s", d.message);
        CU_FAIL_FATAL("cannot open the server");
    }
    c.p = pb_new(&c.rules, &c.r);
    const uint32_t pace = 1 + below(&g, 20);
    bool good = true, any = true;
    while (good && (any || c.arrived < c.r.count)) {
        while (c.arrived < c.r.count && !below(&g, pace))
            arrive(&c);
        good = step(&c, &g, seed % 2, &any);
    }
    FL_CHECK(good, "seed %" PRIu64 ": step %" PRIu64 " is not the plain scheduler's", seed, c.steps);
    if (good)
        check_end(&c, seed);
    all->steps += c.steps;
    all->same += c.same;
    all->preempted += c.preempted;
    all->cached += fl_batching_count(c.b).cached_tokens;
    fl_batching_free(c.b);
    pb_free(c.p);
    fl_requests_free(&c.r);
}

static void test_two_implementations(void) {
    const uint64_t traces = fl_nightly() ? 1000 : 250;
    reached all = {0};
    for (uint64_t seed = 0; seed < traces; seed++)
        run_both(seed, &all);
    printf("(seeds 0 to %" PRIu64 ": %" PRIu64 " steps, %" PRIu64 " in rows, %" PRIu64 " preemptions, %" PRIu64
           " tokens found) ",
           traces - 1, all.steps, all.same, all.preempted, all.cached);
    FL_CHECK(all.steps > 50 * traces && all.same > 50 * traces && all.preempted > traces && all.cached > 10 * traces,
             "too tame");
}

FL_SUITE("batching random", {"many traces, two implementations", test_two_implementations})
