/* Schedules of pipelines, instruction by instruction, from what sim/pipeline/pipeline.h says of them: in which order a
 * stage computes, and that what it makes goes out, and what it needs comes in, between one computation and the next. */
#include "sim/pipeline/pipeline.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"
#include "tests/support/sim_fixture.h"

enum { PARTS_MAX = 256 };

typedef struct part { /* a forward or backward, in order */
    bool forward;
    int32_t microbatch, chunk;
} part;

/* One forward, one backward: a stage runs ahead by as many forwards as stages follow it. */
static size_t expect_1f1b(const fl_pipeline *p, uint32_t stage, part *out) {
    const int32_t all = (int32_t)p->microbatches, after = (int32_t)(p->stages - 1 - stage),
                  ahead = after < all ? after : all;
    size_t n = 0;
    for (int32_t k = 0; k < all + ahead; k++) {
        if (k < all)
            out[n++] = (part){true, k, 0};
        if (k >= ahead)
            out[n++] = (part){false, k - ahead, 0};
    }
    return n;
}

/* All forwards, then all backwards, the last microbatch first. */
static size_t expect_gpipe(const fl_pipeline *p, part *out) {
    size_t n = 0;
    for (int32_t k = 0; k < (int32_t)p->microbatches; k++)
        out[n++] = (part){true, k, 0};
    for (int32_t k = (int32_t)p->microbatches; k-- > 0;)
        out[n++] = (part){false, k, 0};
    return n;
}

/* As Megatron-LM: microbatches in groups of as many as there are stages, each group chunk by chunk, backwards the last
 * chunk first; a rank runs ahead by twice the ranks that follow it, and by the other chunks of one group. */
static size_t expect_interleaved(const fl_pipeline *p, uint32_t stage, part *out) {
    static part forward[PARTS_MAX], backward[PARTS_MAX];
    size_t all = 0, n = 0;
    for (uint32_t first = 0; first < p->microbatches; first += p->stages)
        for (uint32_t c = 0; c < p->chunks; c++)
            for (uint32_t k = 0; k < p->stages; k++, all++) {
                forward[all] = (part){true, (int32_t)(first + k), (int32_t)c};
                backward[all] = (part){false, (int32_t)(first + k), (int32_t)(p->chunks - 1 - c)};
            }
    size_t ahead = 2 * (size_t)(p->stages - 1 - stage) + (size_t)(p->chunks - 1) * p->stages;
    ahead = ahead < all ? ahead : all;
    for (size_t k = 0; k < all + ahead; k++) {
        if (k < all)
            out[n++] = forward[k];
        if (k >= ahead)
            out[n++] = backward[k - ahead];
    }
    return n;
}

/* Whether anything is sent after a part, or received before it: activations come from the stage or chunk before, but
 * for the first, gradients from the one after. */
static bool comes_in(const fl_pipeline *p, uint32_t stage, const part *a) {
    return a->forward ? stage > 0 || a->chunk > 0 : stage + 1 < p->stages || a->chunk + 1 < (int32_t)p->chunks;
}

static bool goes_out(const fl_pipeline *p, uint32_t stage, const part *a) {
    const part other = {!a->forward, a->microbatch, a->chunk};
    return comes_in(p, stage, &other);
}

typedef struct seen {                                               /* between two computations */
    int32_t sent[2], received[2], sent_chunk[2], received_chunk[2]; /* microbatches of activations, of gradients; -1 */
    int count, loads;
    int32_t loaded;
} seen;

static void note(seen *s, const fl_instruction *i) {
    const bool pair = i->type == FL_DO_SEND_ACT_RECV_GRAD || i->type == FL_DO_SEND_GRAD_RECV_ACT;
    int sends = -1, receives = -1;
    if (i->type == FL_DO_SEND_ACT || i->type == FL_DO_SEND_ACT_RECV_GRAD)
        sends = 0;
    if (i->type == FL_DO_SEND_GRAD || i->type == FL_DO_SEND_GRAD_RECV_ACT)
        sends = 1;
    if (i->type == FL_DO_RECV_ACT || i->type == FL_DO_SEND_GRAD_RECV_ACT)
        receives = 0;
    if (i->type == FL_DO_RECV_GRAD || i->type == FL_DO_SEND_ACT_RECV_GRAD)
        receives = 1;
    if (sends >= 0) {
        s->sent[sends] = i->microbatch;
        s->sent_chunk[sends] = i->chunk;
        s->count++;
    }
    if (receives >= 0) {
        s->received[receives] = pair ? i->microbatch2 : i->microbatch;
        s->received_chunk[receives] = i->chunk;
        s->count++;
    }
    if (i->type == FL_DO_LOAD) {
        s->loads++;
        s->loaded = i->microbatch;
    }
}

static void check_stage(const fl_pipeline *p, const fl_pipeline_order *o, uint32_t stage, const char *what) {
    static part want[PARTS_MAX];
    const size_t parts = p->schedule == FL_PIPELINE_1F1B    ? expect_1f1b(p, stage, want)
                         : p->schedule == FL_PIPELINE_GPIPE ? expect_gpipe(p, want)
                                                            : expect_interleaved(p, stage, want);
    const fl_pipeline_list *list = &o->stage[stage];
    for (size_t i = 0; i < list->count; i++) { /* only what goes both ways names a second microbatch; an end, none */
        const fl_instruction *item = &list->item[i];
        const bool pair = item->type == FL_DO_SEND_ACT_RECV_GRAD || item->type == FL_DO_SEND_GRAD_RECV_ACT,
                   end = i + 3 >= list->count;
        FL_CHECK(pair ? item->microbatch2 >= 0 : item->microbatch2 == -1, "%s, stage %u, instruction %zu: %d", what,
                 stage, i, item->microbatch2);
        FL_CHECK(end ? item->microbatch == -1 && item->chunk == 0 : item->microbatch >= 0,
                 "%s, stage %u, instruction %zu: microbatch %d of chunk %d", what, stage, i, item->microbatch,
                 item->chunk);
        FL_CHECK(p->schedule == FL_PIPELINE_INTERLEAVED || item->chunk == 0,
                 "%s, stage %u, instruction %zu: there is one chunk", what, stage, i);
    }
    const seen none = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, 0, 0, -1};
    seen between = none;
    size_t n = 0;
    for (size_t i = 0; i + 3 <= list->count; i++) {
        const fl_instruction *item = &list->item[i];
        const bool end = i + 3 == list->count;
        if (!end && item->type != FL_DO_FORWARD && item->type != FL_DO_BACKWARD) {
            note(&between, item);
            continue;
        }
        int expected = 0;
        if (n > 0 && goes_out(p, stage, &want[n - 1])) {
            const part *a = &want[n - 1];
            expected++;
            FL_CHECK(between.sent[!a->forward] == a->microbatch && between.sent_chunk[!a->forward] == a->chunk,
                     "%s, stage %u: part %zu does not go out", what, stage, n - 1);
        }
        if (!end) {
            const part got = {item->type == FL_DO_FORWARD, item->microbatch, item->chunk};
            FL_CHECK(n < parts && got.forward == want[n].forward && got.microbatch == want[n].microbatch &&
                         got.chunk == want[n].chunk,
                     "%s, stage %u: part %zu is %s %d of chunk %d", what, stage, n,
                     got.forward ? "forward" : "backward", got.microbatch, got.chunk);
            if (comes_in(p, stage, &got)) {
                expected++;
                FL_CHECK(between.received[!got.forward] == got.microbatch &&
                             between.received_chunk[!got.forward] == got.chunk,
                         "%s, stage %u: part %zu does not come in", what, stage, n);
            }
            /* samples are read before the first chunk of the first stage, labels before the last of the last */
            const bool loads = got.forward && ((stage == 0 && got.chunk == 0) ||
                                               (stage + 1 == p->stages && got.chunk + 1 == (int32_t)p->chunks));
            FL_CHECK(between.loads == (loads ? 1 : 0) && (!loads || between.loaded == got.microbatch),
                     "%s, stage %u: part %zu loads %d times", what, stage, n, between.loads);
            n++;
        }
        FL_CHECK(between.count == expected, "%s, stage %u: %d transfers before part %zu, expected %d", what, stage,
                 between.count, n, expected);
        between = none;
    }
    FL_CHECK(n == parts, "%s, stage %u: %zu parts, expected %zu", what, stage, n, parts);
    static const fl_instruction_type ends[] = {FL_DO_REDUCE_TIED, FL_DO_REDUCE_DATA, FL_DO_STEP};
    for (size_t k = 0; k < 3; k++)
        FL_CHECK(list->count > 3 && list->item[list->count - 3 + k].type == ends[k], "%s, stage %u: end %zu", what,
                 stage, k);
}

static void test_orders(void) {
    static const struct {
        fl_pipeline_schedule schedule;
        uint32_t stages, microbatches, chunks;
    } rows[] = {
        {FL_PIPELINE_1F1B, 1, 1, 1},        {FL_PIPELINE_1F1B, 1, 4, 1},        {FL_PIPELINE_1F1B, 2, 1, 1},
        {FL_PIPELINE_1F1B, 2, 5, 1},        {FL_PIPELINE_1F1B, 3, 2, 1},        {FL_PIPELINE_1F1B, 4, 9, 1},
        {FL_PIPELINE_1F1B, 5, 3, 1},        {FL_PIPELINE_1F1B, 6, 12, 1},       {FL_PIPELINE_GPIPE, 1, 3, 1},
        {FL_PIPELINE_GPIPE, 3, 1, 1},       {FL_PIPELINE_GPIPE, 4, 7, 1},       {FL_PIPELINE_INTERLEAVED, 2, 2, 2},
        {FL_PIPELINE_INTERLEAVED, 2, 6, 3}, {FL_PIPELINE_INTERLEAVED, 3, 6, 2}, {FL_PIPELINE_INTERLEAVED, 4, 8, 3},
        {FL_PIPELINE_INTERLEAVED, 4, 4, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char what[32];
        snprintf(what, sizeof what, "row %zu", i);
        const fl_pipeline p = {.schedule = rows[i].schedule,
                               .stages = rows[i].stages,
                               .microbatches = rows[i].microbatches,
                               .chunks = rows[i].chunks,
                               .data_parallel = 1,
                               .tensor_parallel = 1,
                               .ranks = rows[i].stages};
        fl_pipeline_order o;
        FX_MUST(fl_pipeline_schedule_make(&p, &o, d));
        for (uint32_t s = 0; s < p.stages; s++)
            check_stage(&p, &o, s, what);
        fl_pipeline_order_free(&o);
    }
    fl_pipeline_order o;
    fl_diag d = {0};
    const fl_pipeline list = {.schedule = FL_PIPELINE_LIST, .stages = 1, .microbatches = 1, .chunks = 1, .ranks = 1};
    FL_CHECK(fl_pipeline_schedule_make(&list, &o, &d) == FL_BAD_INPUT, "a list is no schedule");
}

FL_SUITE("pipeline_schedule", {"orders", test_orders})
