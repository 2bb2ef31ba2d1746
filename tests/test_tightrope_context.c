/* tightrope: kernels of one kind that take other times after other kernels. */
#include "policies/random.h"
#include "policies/tightrope_signal.h"
#include "tests/support/suite.h"

#include <math.h>

#define SLOW 1.2 /* what the lower clock does to all kernels */
#define CLOCK (1000.0 / 1500)

enum { PARTS = 3, KINDS = 6, WINDOW = 60 }; /* kernels of a window */

/* A program of parts that take turns. Every second kernel of an iteration is the part's own; the others are of the same
 * kinds in all parts, but take other times there. */
typedef struct program {
    fl_random random;
    fl_tightrope_work *w;
    double mean_s[PARTS][KINDS], jitter;
    int64_t now_ns;
    double work_s; /* that it did, in seconds at the top clock */
} program;

static uint32_t kind_of(int part, int k) { return (uint32_t)(k % 2 ? k : (part + 1) * KINDS + k); }

static program draw(uint64_t seed, double unlike) {
    program p = {.random = fl_random_seed(seed, 31), .w = calloc(1, sizeof *p.w)};
    CU_ASSERT_FATAL(p.w != NULL);
    p.jitter = 0.1 * fl_random_unit(&p.random);
    for (int k = 0; k < KINDS; k++) {
        const double all_s = 0.001 + 0.01 * fl_random_unit(&p.random);
        for (int part = 0; part < PARTS; part++)
            p.mean_s[part][k] = all_s * (1 + unlike * (fl_random_unit(&p.random) - 0.5));
    }
    fl_tightrope_work_begin(p.w, FL_TIGHTROPE_RECORDS, 0, 0.03, 4.5, 0);
    return p;
}

static void play(program *p, int part, int top) {
    fl_kernel_record record[WINDOW];
    fl_gpu_sample gpu = {0};
    fl_tightrope_window(p->w, p->now_ns, top ? 1 : CLOCK, 1);
    for (int i = 0; i < WINDOW; i++) {
        const double z = fmax(-3, fmin(3, fl_random_normal(&p->random)));
        const double work_s = p->mean_s[part][i % KINDS] * (1 + p->jitter * z);
        const int64_t begin_ns = p->now_ns;
        p->now_ns += (int64_t)(work_s * (top ? 1 : SLOW) * 1e9);
        p->work_s += work_s;
        record[i] = (fl_kernel_record){.kind = kind_of(part, i % KINDS), .start_ns = begin_ns, .end_ns = p->now_ns};
    }
    const fl_sample s = {.time_ns = p->now_ns, .gpu_count = 1, .gpu = &gpu, .record = record, .record_count = WINDOW};
    fl_tightrope_read(p->w, &s, 0, INT64_MAX);
    fl_tightrope_close(p->w, p->now_ns, 0);
}

/* The ledger never credits more than was done; and it credits nearly all of what was done below the top clock, where
 * the kernel before tells the part. */
static void test_parts(void) {
    const char *trials = getenv("FL_TRIALS");
    const uint64_t count = trials ? strtoull(trials, NULL, 10) : 100;
    for (uint64_t seed = 1; seed <= count; seed++) {
        program p = draw(seed, 1);
        double low_s = 0, before_s = 0;
        for (int turn = 0; turn < 150; turn++) {
            const int top = fl_random_unit(&p.random) < 0.3; /* whatever part it is */
            before_s = p.work_s;
            play(&p, turn % PARTS, top);
            low_s += top ? 0 : p.work_s - before_s;
            if (turn >= 60) /* before that, visits are few, and nobody sees that they differ */
                FL_CHECK(fl_tightrope_credit(p.w) <= p.work_s, "seed %llu, window %d: %.6f s of %.6f s",
                         (unsigned long long)seed, turn, fl_tightrope_credit(p.w), p.work_s);
        }
        const double lost_s = p.work_s - fl_tightrope_credit(p.w);
        FL_CHECK(lost_s < 0.05 * low_s, "seed %llu: of %.3f s below the top clock %.3f s are not credited",
                 (unsigned long long)seed, low_s, lost_s);
        free(p.w);
    }
}

/* Where kinds take the same everywhere, their means alone count: what comes before adds nothing and takes nothing. */
static void test_kinds_alike(void) {
    program p = draw(1, 0), q = draw(1, 0);
    for (int turn = 0; turn < 40; turn++) {
        play(&p, turn % PARTS, turn % 2);
        play(&q, turn % PARTS, turn % 2);
        q.w->contexts = (fl_tightrope_contexts){0};
        FL_CHECK(fl_tightrope_credit(p.w) >= fl_tightrope_credit(q.w), "window %d: %.9f s, without it %.9f s", turn,
                 fl_tightrope_credit(p.w), fl_tightrope_credit(q.w));
    }
    free(p.w);
    free(q.w);
}

/* What came before is the last kernel of another kind. */
static void test_what_came_before(void) {
    fl_tightrope_contexts *c = calloc(1, sizeof *c);
    CU_ASSERT_FATAL(c != NULL);
    CU_ASSERT(fl_tightrope_context_next(c, 7) == NULL);
    CU_ASSERT(fl_tightrope_context_next(c, 7) == NULL);
    fl_tightrope_kind *after_7 = fl_tightrope_context_next(c, 8);
    CU_ASSERT(after_7 != NULL && fl_tightrope_context_next(c, 8) == after_7);
    CU_ASSERT(fl_tightrope_context_next(c, 9) != after_7);
    CU_ASSERT(fl_tightrope_context_next(c, 8) != after_7);
    CU_ASSERT(fl_tightrope_context_next(c, 7) != NULL && fl_tightrope_context_next(c, 8) == after_7);
    fl_tightrope_context_break(c);
    CU_ASSERT(fl_tightrope_context_next(c, 8) == NULL);
    free(c);
}

/* A kind after more others than there are places: what has no place counts what is certain. */
static void test_more_than_places(void) {
    fl_tightrope_contexts *c = calloc(1, sizeof *c);
    fl_tightrope_kind all = {0};
    CU_ASSERT_FATAL(c != NULL);
    fl_tightrope_context_next(c, 0);
    for (uint32_t i = 1; i <= 1500; i++) { /* two places for each i: it after 0, 0 after it */
        fl_tightrope_kind *k = fl_tightrope_context_next(c, i), *of_0 = fl_tightrope_context_next(c, 0);
        CU_ASSERT((k != NULL) == (i <= FL_TIGHTROPE_CONTEXTS / 2) && (of_0 != NULL) == (k != NULL));
        for (int n = 0; n < 4; n++) {
            fl_tightrope_kind_low(&all, 0.012, 0.009);
            if (of_0)
                fl_tightrope_kind_top(of_0, 0.01), fl_tightrope_kind_low(of_0, 0.012, 0.009);
        }
    }
    fl_tightrope_sum sum = {0};
    fl_tightrope_context_credit(c, &all, 0, 4.5, &sum);
    const double placed = FL_TIGHTROPE_CONTEXTS / 2 * 4, others = 1500 * 4 - placed;
    FL_CHECK(fabs(sum.low_s - placed * 0.01 - others * 0.009) < 1e-6 && sum.square < 1e-9, "%.9f s", sum.low_s);
    fl_tightrope_sum more = {1e3, 0};
    fl_tightrope_context_credit(c, &all, 0, 4.5, &more);
    CU_ASSERT(more.low_s == 1e3);
    fl_tightrope_context_keep(c);
    for (uint32_t i = 0; i < c->count; i++)
        CU_ASSERT_FATAL(c->at[i].known.done == 0 && c->at[i].known.floor_s == 0);
    free(c);
}

FL_SUITE("tightrope_context", {"parts that run the same kernels", test_parts}, {"kinds alike", test_kinds_alike},
         {"what came before", test_what_came_before}, {"more than places", test_more_than_places})
