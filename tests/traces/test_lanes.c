/* Ops of one lane that overlap: by hand, at the borders of each rule, and as a property of random traces. */
#include "policies/random.h"
#include "tests/support/suite.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

enum { MOST = 4 };

typedef struct op_row {
    int64_t start, end;
    int stream;
} op_row;

static void add(fl_kernel_trace *t, int64_t start, int64_t end, int device, int process, int stream) {
    const uint32_t one[3] = {1, 1, 1};
    if (!t->kind_count)
        fl_trace_add_kind(t, "k", one, one);
    const fl_trace_op op = {.start_ns = start,
                            .end_ns = end,
                            .launch_ns = INT64_MIN,
                            .bytes = -1,
                            .device = device,
                            .process = process,
                            .stream = stream,
                            .host_thread = -1};
    CU_ASSERT_FATAL(!fl_trace_add_op(t, &op));
}

static void test_rules(void) {
    static const struct {
        const char *what;
        op_row in[MOST], out[MOST]; /* stream 0 ends the row */
        fl_lanes_parted parted;
    } rows[] = {
        {"apart", {{0, 10, 7}, {10, 20, 7}}, {{0, 10, 7}, {10, 20, 7}}, {.first = 8}},
        {"rounding", {{0, 2000, 7}, {1000, 3000, 7}}, {{0, 1000, 7}, {1000, 3000, 7}}, {.cut = 1, .first = 8}},
        {"beyond rounding",
         {{0, 3000, 7}, {1999, 4000, 7}},
         {{0, 3000, 7}, {3000, 4000, 7}},
         {.dependent = 1, .first = 8}},
        {"not longer than the one before",
         {{0, 3000, 7}, {1999, 3000, 7}},
         {{0, 3000, 7}, {1999, 3000, 8}},
         {.moved = 1, .streams = 1, .first = 8}},
        {"half", {{0, 40000, 7}, {20000, 50000, 7}}, {{0, 40000, 7}, {40000, 50000, 7}}, {.dependent = 1, .first = 8}},
        {"more than half",
         {{0, 39998, 7}, {19998, 50000, 7}},
         {{0, 39998, 7}, {19998, 50000, 8}},
         {.moved = 1, .streams = 1, .first = 8}},
        {"too early",
         {{0, 60000, 7}, {39999, 90000, 7}},
         {{0, 60000, 7}, {39999, 90000, 8}},
         {.moved = 1, .streams = 1, .first = 8}},
        {"a chain",
         {{0, 10000, 7}, {8000, 20000, 7}, {18000, 30000, 7}},
         {{0, 10000, 7}, {10000, 20000, 7}, {20000, 30000, 7}},
         {.dependent = 2, .first = 8}},
        {"a third begins meanwhile",
         {{0, 10000, 7}, {8000, 20000, 7}, {8500, 30000, 7}},
         {{0, 10000, 7}, {8000, 20000, 8}, {10000, 30000, 7}},
         {.dependent = 1, .moved = 1, .streams = 1, .first = 8}},
        {"branches of a graph, in a profile",
         {{0, 40000, 7}, {20000, 60000, 7}},
         {{0, 40000, 7}, {20000, 60000, 8}},
         {.moved = 1, .streams = 1, .first = 8}},
        {"numbers of their own lie above all",
         {{0, 100, 7}, {10, 90, 7}, {0, 5, 12}},
         {{0, 100, 7}, {10, 90, 13}, {0, 5, 12}},
         {.moved = 1, .streams = 1, .first = 13}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_kernel_trace t = {0};
        fl_lanes_parted p;
        fl_diag d = {0};
        for (int k = 0; k < MOST && rows[i].in[k].stream; k++)
            add(&t, rows[i].in[k].start, rows[i].in[k].end, 0, 0, rows[i].in[k].stream);
        FL_CHECK(!fl_lanes_part(&t, !strstr(rows[i].what, "profile"), &p, &d), "%s: %s", rows[i].what, d.message);
        for (size_t k = 0; k < t.op_count; k++)
            FL_CHECK(t.ops[k].start_ns == rows[i].out[k].start && t.ops[k].end_ns == rows[i].out[k].end &&
                         t.ops[k].stream == rows[i].out[k].stream,
                     "%s: op %zu from %lld to %lld on %d", rows[i].what, k, (long long)t.ops[k].start_ns,
                     (long long)t.ops[k].end_ns, t.ops[k].stream);
        const fl_lanes_parted *q = &rows[i].parted;
        FL_CHECK(p.cut == q->cut && p.dependent == q->dependent && p.moved == q->moved && p.streams == q->streams &&
                     p.first == q->first,
                 "%s: %zu cut, %zu dependent, %zu moved to %zu from %lld", rows[i].what, p.cut, p.dependent, p.moved,
                 p.streams, (long long)p.first);
        char text[256];
        int told = 0, number = 0;
        while (fl_lanes_text(&p, number++, text, sizeof text))
            told += *text != '\0';
        FL_CHECK(told == (q->cut > 0) + (q->dependent > 0) + (q->moved > 0), "%s: %d sentences", rows[i].what, told);
        fl_kernel_trace_free(&t);
    }
}

static void test_no_number_left(void) {
    fl_kernel_trace t = {0};
    fl_lanes_parted p;
    fl_diag d = {0};
    add(&t, 0, 100, 0, 0, INT32_MAX);
    add(&t, 10, 90, 0, 0, INT32_MAX);
    CU_ASSERT(fl_lanes_part(&t, true, &p, &d) == FL_BAD_INPUT && strstr(d.message, "stream numbers"));
    fl_kernel_trace_free(&t);
}

/* Whatever overlaps before, nothing does afterwards; no op becomes longer, is turned round or changes its device. */
static void test_any(void) {
    for (uint64_t seed = 1; seed <= 300; seed++) {
        fl_random random = fl_random_seed(seed, 0);
        fl_kernel_trace t = {0};
        fl_lanes_parted p;
        fl_diag d = {0};
        int64_t start[64], end[64];
        const int count = 2 + (int)(fl_random_next(&random) % 62);
        for (int i = 0; i < count; i++) {
            start[i] = (int64_t)(fl_random_next(&random) % 100000);
            end[i] = start[i] + (int64_t)(fl_random_next(&random) % 60000);
            add(&t, start[i], end[i], (int)(fl_random_next(&random) % 2), (int)(fl_random_next(&random) % 2),
                (int)(fl_random_next(&random) % 3));
        }
        FL_CHECK(!fl_lanes_part(&t, seed % 2, &p, &d), "seed %llu: %s", (unsigned long long)seed, d.message);
        for (int i = 0; i < count; i++) {
            const fl_trace_op *x = &t.ops[i];
            FL_CHECK(x->start_ns >= start[i] && x->end_ns <= end[i] && x->start_ns <= x->end_ns, "seed %llu: op %d",
                     (unsigned long long)seed, i);
            for (int k = 0; k < i; k++) {
                const fl_trace_op *y = &t.ops[k];
                const bool one_lane = x->device == y->device && x->process == y->process && x->stream == y->stream;
                FL_CHECK(!one_lane || x->start_ns >= y->end_ns || y->start_ns >= x->end_ns,
                         "seed %llu: ops %d and %d overlap", (unsigned long long)seed, k, i);
            }
        }
        fl_kernel_trace_free(&t);
    }
}

FL_SUITE("lanes", {"each rule at its border", test_rules}, {"no number left", test_no_number_left},
         {"any trace", test_any})
