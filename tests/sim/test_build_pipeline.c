/* Pipelines as streams: who waits for whom, for how long an op runs, and what it is, op by op, derived a second time
 * from what sim/pipeline/pipeline.h says of replicas, tensor-parallel groups, transfers and the ends of an iteration.
 */
#include "models/laws/device.h"
#include "models/math/math.h"
#include "sim/pipeline/pipeline.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"
#include "tests/support/sim_fixture.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 12 };

typedef struct shape {
    fl_pipeline_schedule schedule;
    uint32_t stages, microbatches, chunks, data, tensor, iterations;
    bool fetches; /* the second rank loads as it receives; all of its stage then have that op, of no length */
} shape;

typedef struct built {
    shape s;
    fl_pipeline p;
    fl_pipeline_order o;
    fl_node_spec node;
    fl_workload *w;
    fl_pipeline_op *op, *of[RANKS_MAX]; /* all, and where each rank's begin */
} built;

static void put(fl_pipeline *p, int32_t rank, fl_pipeline_what what, double mhz, double time_s, double watts) {
    const fl_pipeline_row row = {
        .rank = rank, .chunk = FL_PIPELINE_ALL, .what = what, .sm_mhz = mhz, .time_s = time_s, .power_w = watts};
    FX_MUST(fl_pipeline_add(p, &row, d));
}

static double tied_s(uint32_t rank) { return 1e-3 + 1e-4 * rank; }
static double data_s(uint32_t rank) { return 2e-3 + 1e-4 * rank; }
static double step_s(uint32_t rank) { return 3e-3 + 1e-4 * rank; }
static double load_s(uint32_t rank) { return 4e-3 + 1e-4 * rank; }
static double act_s(uint32_t rank) { return 5e-3 + 1e-4 * rank; }
static double grad_s(uint32_t rank) { return 6e-3 + 1e-4 * rank; }

static void build(const shape *s, built *b) {
    *b = (built){.s = *s};
    const uint32_t ranks = s->stages * s->data * s->tensor;
    b->p = (fl_pipeline){.schedule = s->schedule,
                         .stages = s->stages,
                         .microbatches = s->microbatches,
                         .chunks = s->chunks,
                         .data_parallel = s->data,
                         .tensor_parallel = s->tensor,
                         .ranks = ranks,
                         .file = strdup("test.pipeline")};
    for (uint32_t r = 0; r < ranks; r++) {
        for (int k = 0; k < 2; k++) {
            put(&b->p, (int32_t)r, FL_PIPELINE_FORWARD, k ? 1000 : 500, (k ? 1 : 2) * (0.010 + 1e-4 * r), 150);
            put(&b->p, (int32_t)r, FL_PIPELINE_BACKWARD, k ? 1000 : 500, (k ? 1 : 2) * (0.020 + 1e-4 * r), 150);
        }
        put(&b->p, (int32_t)r, FL_PIPELINE_REDUCE_TIED, NAN, tied_s(r), NAN);
        put(&b->p, (int32_t)r, FL_PIPELINE_REDUCE_DATA, NAN, data_s(r), NAN);
        put(&b->p, (int32_t)r, FL_PIPELINE_STEP, NAN, step_s(r), NAN);
        put(&b->p, (int32_t)r, FL_PIPELINE_LOAD, NAN, load_s(r), NAN);
        put(&b->p, (int32_t)r, FL_PIPELINE_ACT, NAN, act_s(r), NAN);
        put(&b->p, (int32_t)r, FL_PIPELINE_GRAD, NAN, grad_s(r), NAN);
    }
    if (s->fetches)
        put(&b->p, 1, FL_PIPELINE_LOAD_IN_RECV, NAN, 7e-3, NAN);
    put(&b->p, -1, FL_PIPELINE_BLOCKED, NAN, NAN, 70);
    FX_MUST(fl_pipeline_finish(&b->p, d));
    static const int32_t mhz[] = {500, 1000};
    FX_MUST(fl_pipeline_node(&b->node, ranks, mhz, 2, d));
    FX_MUST(fl_pipeline_schedule_make(&b->p, &b->o, d));
    FX_MUST(fl_build_pipeline(&b->w, "test", &b->p, &b->o, &b->node, s->iterations, NULL, &b->op, d));
    size_t at = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        b->of[r] = b->op + at;
        at += b->w->stream[r].count;
    }
}

static void end(built *b) {
    free(b->op);
    fl_workload_free(b->w);
    fl_node_spec_free(&b->node);
    fl_pipeline_order_free(&b->o);
    fl_pipeline_free(&b->p);
}

static bool waits_for(const fl_stream *s, uint64_t op, uint32_t stream, uint64_t done) {
    for (uint32_t k = s->wait_first ? s->wait_first[op] : 0; s->wait_first && k < s->wait_first[op + 1]; k++)
        if (s->wait[k].stream == stream && s->wait[k].done == done)
            return true;
    return false;
}

static uint32_t waits_of(const fl_stream *s, uint64_t op) {
    return s->wait_first ? s->wait_first[op + 1] - s->wait_first[op] : 0;
}

/* Where a rank's nth op of a part stands. */
static uint64_t nth(const built *b, uint32_t rank, fl_pipeline_part part, uint64_t n) {
    uint64_t i = 0;
    for (; i < b->w->stream[rank].count; i++)
        if (b->of[rank][i].part == part && n-- == 0)
            return i;
    return UINT64_MAX;
}

static int64_t ns_of(const built *b, uint32_t rank, uint64_t op) {
    int64_t gap, work;
    uint32_t id;
    fl_workload_op(&b->w->stream[rank], op, &gap, &work, &id);
    return gap ? -1 : work;
}

/* The three ends of an iteration. Tied weights: the first and the last stage of one replica and one member of its
 * tensor-parallel group; gradients: the replicas of a stage's member; the step: all. */
static void check_ends(const built *b, uint32_t rank, const char *what) {
    const shape *s = &b->s;
    const uint32_t stage = rank % s->stages;
    for (uint32_t n = 0; n < s->iterations; n++)
        for (uint32_t kind = 0; kind < 3; kind++) {
            const uint64_t at = nth(b, rank, FL_PART_OF_END, 3 * n + kind);
            const bool tied = stage == 0 || stage == s->stages - 1;
            const double seconds = kind == 0 ? (tied ? tied_s(rank) : 0) : kind == 1 ? data_s(rank) : step_s(rank);
            uint32_t expected = 0, found = 0;
            for (uint32_t on = 0; on < b->p.ranks; on++) {
                const uint32_t other = on % s->stages;
                const bool same_copy = on / s->stages == rank / s->stages,
                           same_member = on / s->stages % s->tensor == rank / s->stages % s->tensor;
                const bool meets = kind == 0   ? tied && same_copy && (other == 0 || other == s->stages - 1)
                                   : kind == 1 ? other == stage && same_member
                                               : true;
                if (on == rank || !meets)
                    continue;
                expected++;
                found += waits_for(&b->w->stream[rank], at, on, nth(b, on, FL_PART_OF_END, 3 * n + kind)) ? 1 : 0;
            }
            FL_CHECK(at != UINT64_MAX && found == expected && waits_of(&b->w->stream[rank], at) == expected,
                     "%s: rank %u, iteration %u, end %u: waits for %u of %u, %u in all", what, rank, n, kind, found,
                     expected, waits_of(&b->w->stream[rank], at));
            FL_CHECK(ns_of(b, rank, at) == llround(1e9 * seconds), "%s: rank %u, end %u: %g ms", what, rank, kind,
                     1e-6 * (double)ns_of(b, rank, at));
        }
}

/* The members of a tensor-parallel group meet before each forward and backward, and run the same: what stands at one
 * place of one stands at the same of the others. */
static void check_meetings(const built *b, uint32_t rank, const char *what) {
    const shape *s = &b->s;
    const fl_stream *stream = &b->w->stream[rank];
    const uint32_t copy = rank / s->stages, first = copy - copy % s->tensor;
    for (uint64_t i = 0; i < stream->count; i++) {
        const fl_pipeline_op *op = &b->of[rank][i];
        if (op->part != FL_PART_OF_MEETING)
            continue;
        uint32_t found = 0;
        for (uint32_t m = first; m < first + s->tensor; m++)
            found += m != copy && waits_for(stream, i, m * s->stages + rank % s->stages, i) ? 1 : 0;
        FL_CHECK(found == s->tensor - 1 && waits_of(stream, i) == s->tensor - 1, "%s: rank %u, meeting at %d: %u of %u",
                 what, rank, (int)i, found, waits_of(stream, i));
        FL_CHECK(op[-1].part == FL_PART_OF_MARKER &&
                     (op[1].part == FL_PART_OF_FORWARD || op[1].part == FL_PART_OF_BACKWARD) && ns_of(b, rank, i) == 0,
                 "%s: rank %u, meeting at %d stands elsewhere", what, rank, (int)i);
    }
}

/* Every microbatch goes forward and back once in each chunk and iteration, each after a marker that names it; and as
 * long as the rank's row at 1000 MHz, the highest clock, says. */
static void check_parts(const built *b, uint32_t rank, const char *what) {
    const shape *s = &b->s;
    uint32_t seen[2][8][8] = {{{0}}}, loads = 0;
    for (uint64_t i = 0; i < b->w->stream[rank].count; i++) {
        const fl_pipeline_op *op = &b->of[rank][i];
        if (op->part == FL_PART_OF_LOAD) {
            loads++;
            FL_CHECK(ns_of(b, rank, i) == llround(1e9 * load_s(rank)) && !waits_of(&b->w->stream[rank], i),
                     "%s: rank %u loads for %g ms", what, rank, 1e-6 * (double)ns_of(b, rank, i));
        }
        if (op->part != FL_PART_OF_FORWARD && op->part != FL_PART_OF_BACKWARD)
            continue;
        const int back = op->part == FL_PART_OF_BACKWARD;
        const fl_pipeline_op *marker = s->tensor > 1 ? &op[-2] : &op[-1];
        seen[back][op->microbatch][op->chunk]++;
        FL_CHECK(marker->part == FL_PART_OF_MARKER && marker->microbatch == op->microbatch &&
                     marker->chunk == op->chunk && op->link == -1 && !waits_of(&b->w->stream[rank], i) &&
                     ns_of(b, rank, i) == llround(1e9 * ((back ? 0.020 : 0.010) + 1e-4 * rank)),
                 "%s: rank %u, op %d takes %g ms", what, rank, (int)i, 1e-6 * (double)ns_of(b, rank, i));
    }
    for (uint32_t m = 0; m < s->microbatches; m++)
        for (uint32_t c = 0; c < s->chunks; c++)
            FL_CHECK(seen[0][m][c] == s->iterations && seen[1][m][c] == s->iterations,
                     "%s: rank %u, microbatch %u, chunk %u: %u forward, %u back", what, rank, m, c, seen[0][m][c],
                     seen[1][m][c]);
    const bool reads = rank % s->stages == 0 || rank % s->stages == s->stages - 1;
    FL_CHECK(s->schedule == FL_PIPELINE_INTERLEAVED || loads == (reads ? s->iterations * s->microbatches : 0),
             "%s: rank %u loads %u times", what, rank, loads);
}

/* Where sends block, the two ends of a transfer wait for each other, at neighbouring stages of one replica and member,
 * and take equally long: as the sender's row says, or of a pair the longer of its two. */
static void check_transfers(const built *b, uint32_t rank, const char *what) {
    const shape *s = &b->s;
    const fl_stream *stream = &b->w->stream[rank];
    for (uint64_t i = 0; i < stream->count; i++) {
        const fl_pipeline_op *op = &b->of[rank][i];
        if (op->part != FL_PART_OF_TRANSFER)
            continue;
        const uint32_t waits = waits_of(stream, i);
        FL_CHECK(waits >= 1 && waits <= 2 && op->link >= 0, "%s: rank %u, transfer at %d: %u waits, link %d", what,
                 rank, (int)i, waits, op->link);
        for (uint32_t k = stream->wait_first[i]; k < stream->wait_first[i + 1]; k++) {
            const uint32_t on = stream->wait[k].stream, low = on < rank ? on : rank, high = on < rank ? rank : on;
            const uint64_t there = stream->wait[k].done;
            FL_CHECK(high == low + 1 && on / s->stages == rank / s->stages && there < b->w->stream[on].count &&
                         b->of[on][there].part == FL_PART_OF_TRANSFER && waits_for(&b->w->stream[on], there, rank, i),
                     "%s: rank %u, transfer at %d waits for op %d of rank %u, which does not for it", what, rank,
                     (int)i, (int)there, on);
            FL_CHECK(op->link == (int32_t)(low % s->stages), "%s: rank %u, transfer at %d: link %d", what, rank, (int)i,
                     op->link);
            const int64_t ns = ns_of(b, rank, i), act = llround(1e9 * act_s(low)), grad = llround(1e9 * grad_s(high));
            FL_CHECK(ns == act || ns == grad, "%s: rank %u, transfer at %d: %g ms", what, rank, (int)i,
                     1e-6 * (double)ns);
            FL_CHECK(ns == ns_of(b, on, there), "%s: rank %u, transfer at %d: the other end takes another time", what,
                     rank, (int)i);
        }
    }
}

/* What an op has nothing to do with, it does not name: a load is of a microbatch and of no chunk, a fetch, a meeting
 * and an end are of neither, and only transfers are of a link. */
static void check_names(const built *b, uint32_t rank, const char *what) {
    for (uint64_t i = 0; i < b->w->stream[rank].count; i++) {
        const fl_pipeline_op *op = &b->of[rank][i];
        const bool computes = op->part == FL_PART_OF_FORWARD || op->part == FL_PART_OF_BACKWARD,
                   marks = op->part == FL_PART_OF_MARKER, loads = op->part == FL_PART_OF_LOAD,
                   moves = op->part == FL_PART_OF_TRANSFER;
        FL_CHECK((op->chunk >= 0) == (computes || marks) && (op->microbatch >= 0) == (computes || marks || loads) &&
                     (op->link >= 0) == moves && op->chunk >= -1 && op->microbatch >= -1 && op->link >= -1,
                 "%s: rank %u, op %d of part %d: microbatch %d, chunk %d, link %d", what, rank, (int)i, (int)op->part,
                 (int)op->microbatch, (int)op->chunk, (int)op->link);
    }
}

/* An input that is fetched while activations are received: before the transfer, or behind one that sends a gradient
 * too, and once for each microbatch. */
static void check_fetches(const built *b, uint32_t rank, const char *what) {
    const shape *s = &b->s;
    const bool fetches = s->fetches && rank % s->stages == 1;
    uint32_t count = 0;
    for (uint64_t i = 0; i < b->w->stream[rank].count; i++) {
        const fl_pipeline_op *op = &b->of[rank][i];
        if (op->part != FL_PART_OF_LOAD_IN_RECV)
            continue;
        count++;
        const bool behind = i > 0 && op[-1].part == FL_PART_OF_TRANSFER && op[-1].link == 0,
                   before = i + 1 < b->w->stream[rank].count && op[1].part == FL_PART_OF_TRANSFER && op[1].link == 0;
        FL_CHECK(behind || before, "%s: rank %u, op %d stands elsewhere", what, rank, (int)i);
        FL_CHECK(ns_of(b, rank, i) == (rank == 1 ? 7000000 : 0) && !waits_of(&b->w->stream[rank], i),
                 "%s: rank %u fetches for %g ms", what, rank, 1e-6 * (double)ns_of(b, rank, i));
    }
    FL_CHECK(count == (fetches ? s->microbatches * s->iterations : 0), "%s: rank %u fetches %u times", what, rank,
             count);
}

static void test_structure(void) {
    static const shape shapes[] = {
        {FL_PIPELINE_1F1B, 1, 3, 1, 1, 1, 1, false},        {FL_PIPELINE_1F1B, 2, 3, 1, 1, 1, 2, false},
        {FL_PIPELINE_1F1B, 3, 4, 1, 2, 1, 2, false},        {FL_PIPELINE_1F1B, 3, 2, 1, 2, 2, 2, false},
        {FL_PIPELINE_1F1B, 4, 5, 1, 1, 3, 1, false},        {FL_PIPELINE_GPIPE, 3, 3, 1, 2, 2, 2, false},
        {FL_PIPELINE_GPIPE, 4, 2, 1, 3, 1, 1, false},       {FL_PIPELINE_INTERLEAVED, 2, 4, 2, 2, 2, 2, false},
        {FL_PIPELINE_INTERLEAVED, 3, 6, 3, 1, 2, 1, false}, {FL_PIPELINE_1F1B, 2, 4, 1, 1, 1, 2, true},
        {FL_PIPELINE_1F1B, 3, 5, 1, 2, 2, 1, true},         {FL_PIPELINE_GPIPE, 3, 3, 1, 2, 1, 2, true}};
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        built b;
        char what[32];
        snprintf(what, sizeof what, "shape %zu", k);
        build(&shapes[k], &b);
        for (uint32_t rank = 0; rank < b.p.ranks; rank++) {
            FL_CHECK(b.w->stream[rank].gpu == rank && b.w->stream[rank].id == (int32_t)rank, "%s: rank %u", what, rank);
            check_ends(&b, rank, what);
            check_meetings(&b, rank, what);
            check_parts(&b, rank, what);
            check_fetches(&b, rank, what);
            check_names(&b, rank, what);
            if (shapes[k].schedule != FL_PIPELINE_INTERLEAVED)
                check_transfers(&b, rank, what);
        }
        end(&b);
    }
}

/* At the clocks of a plan each part is of a class at its clock, which all microbatches at that clock share; its length
 * and power are those of the rows there. */
static void test_at_clocks(void) {
    built b;
    const shape s = {FL_PIPELINE_1F1B, 2, 4, 1, 1, 1, 1, false};
    fl_pipeline_clocks clocks;
    build(&s, &b);
    const uint32_t classes = b.w->class_count;
    FX_MUST(fl_pipeline_clocks_new(&b.p, &clocks, d));
    for (uint32_t rank = 0; rank < 2; rank++)
        for (uint32_t back = 0; back < 2; back++)
            for (uint32_t m = 0; m < 4; m++)
                *fl_pipeline_clock(&clocks, rank, back, 0, m) = m % 2 ? 1000 : 500;
    fl_workload *w;
    fl_pipeline_op *op;
    FX_MUST(fl_build_pipeline(&w, "test", &b.p, &b.o, &b.node, 1, &clocks, &op, d));
    FL_CHECK(w->class_count == classes + 2 * 2 * 2, "%u classes more: two clocks of a forward and a backward each",
             w->class_count - classes);
    size_t at = 0;
    for (uint32_t rank = 0; rank < 2; rank++)
        for (uint64_t i = 0; i < w->stream[rank].count; i++, at++) {
            const bool back = op[at].part == FL_PART_OF_BACKWARD;
            int64_t gap, work;
            uint32_t id;
            fl_workload_op(&w->stream[rank], i, &gap, &work, &id);
            if (op[at].part != FL_PART_OF_FORWARD && !back)
                continue;
            const double seconds = (op[at].microbatch % 2 ? 1 : 2) * ((back ? 0.020 : 0.010) + 1e-4 * rank);
            double watts = 0;
            FL_CHECK(work == llround(1e9 * seconds), "rank %u, microbatch %d: %lld ns", rank, op[at].microbatch,
                     (long long)work);
            CU_ASSERT(fl_curve_at(w->class[id].measured.power_w, 700, 0, &watts) == FL_MODEL_OK);
            FL_CHECK(fabs(watts - 150) < 1e-9, "%g W at any clock", watts);
        }
    for (uint32_t c = 0; c < w->class_count; c++)
        for (int k = 0; k < 3; k++)
            FL_CHECK(w->class[c].kind.grid[k] == 1 && w->class[c].kind.block[k] == 1, "class %u: its shape", c);
    fl_workload_free(w);
    free(op);
    *fl_pipeline_clock(&clocks, 1, false, 0, 2) = 1001;
    fl_diag d = {0};
    w = NULL;
    op = NULL;
    FL_CHECK(fl_build_pipeline(&w, "test", &b.p, &b.o, &b.node, 1, &clocks, &op, &d) == FL_BAD_INPUT &&
                 strstr(d.message, "1001 MHz of rank 1, expected 500 to 1000") && d.line == 0 && d.column == 0,
             "%s", d.message);
    fl_pipeline_clocks_free(&clocks);
    end(&b);
}

/* Boards that draw what the rows say: nothing of their own, the ladder that was asked for, the last clock by default.
 */
static void test_node(void) {
    static const int32_t mhz[] = {700, 900, 1100};
    fl_node_spec node;
    FX_MUST(fl_pipeline_node(&node, 3, mhz, 3, d));
    const fl_device *dev = node.device;
    FL_CHECK(node.device_count == 1 && node.gpu_count == 3 && !node.gpu[0] && !node.gpu[2] &&
                 !strcmp(node.name, "ranks"),
             "%u GPUs of one kind", node.gpu_count);
    FL_CHECK(dev->sm_count == 3 && !memcmp(dev->sm_mhz, mhz, sizeof mhz) && dev->default_sm_mhz == 1100 &&
                 dev->mem_count == 1 && dev->mem_mhz[0] == 1 && dev->default_mem_mhz == 1 && isinf(dev->sharpness),
             "%u clocks, %d MHz by default", dev->sm_count, (int)dev->default_sm_mhz);
    FL_CHECK(dev->a_w == 0 && dev->a0_w == 0 && dev->b_w == 0 && dev->b0_w[0] == 0 && dev->c_w == 0 &&
                 dev->no_context_w == 0,
             "no power of their own");
    double v = 0;
    FL_CHECK(fl_curve_at(dev->voltage, 1, 0, &v) == FL_MODEL_OK && v == 1 &&
                 fl_curve_at(dev->voltage, 1101, 0, &v) == FL_MODEL_OK && v == 1,
             "one voltage for all clocks: %g", v);
    fl_node_spec_free(&node);
}

FL_SUITE("build_pipeline", {"structure", test_structure}, {"at the clocks of a plan", test_at_clocks},
         {"boards", test_node})
