/* Which activity records a live policy sees when it turns them on and off, by hand: those of kernels that ended while
 * they were on, however late the collector hands them over. */
#include "harness/live/records/records.h"
#include "policies/policy.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

enum { ENDS_MAX = 4 };

typedef struct row { /* what is done before a sample, and what the sample shows */
    int set;         /* of GPU 0: 1 on, 0 off, -1 nothing */
    int64_t at_ns;
    int64_t
        end_ns[ENDS_MAX]; /* of GPU 0's records in the sample, 0 ends them; GPU 1 has the same, and never a switch */
    int64_t seen_ns[ENDS_MAX];
    uint64_t lost, told; /* in the sample, and shown */
    bool null;
} row;

static size_t count_of(const int64_t *ns) {
    size_t n = 0;
    while (n < ENDS_MAX && ns[n])
        n++;
    return n;
}

static void play(const row *rows, size_t count, bool on) {
    fl_record_switch s;
    fl_diag d = {0};
    CU_ASSERT_FATAL(fl_record_switch_open(&s, 2, on, &d) == FL_OK);
    for (size_t i = 0; i < count; i++) {
        const row *r = &rows[i];
        fl_kernel_record record[2 * ENDS_MAX];
        fl_sample sample = {.record = record, .record_lost = r->lost};
        const size_t seen = count_of(r->seen_ns);
        size_t n = 0;
        for (; r->end_ns[n] && n < ENDS_MAX; n++)
            record[n] = (fl_kernel_record){.end_ns = r->end_ns[n]};
        for (size_t k = 0; k < n; k++)
            record[n + k] = (fl_kernel_record){.end_ns = r->end_ns[k], .gpu = 1};
        sample.record_count = 2 * n;
        if (r->set >= 0)
            fl_record_switch_set(&s, 0, r->set, r->at_ns);
        FL_CHECK(fl_record_switch_show(&s, &sample, &d) == FL_OK, "%s", d.message);
        const size_t other = on ? n : 0; /* GPU 1 stays as it began */
        FL_CHECK(sample.record_count == seen + other, "row %zu: %llu records, expected %zu", i,
                 (unsigned long long)sample.record_count, seen + other);
        for (size_t k = 0; k < seen && k < sample.record_count; k++)
            FL_CHECK(sample.record[k].gpu == 0 && sample.record[k].end_ns == r->seen_ns[k], "row %zu: record %zu", i,
                     k);
        FL_CHECK((sample.record == NULL) == r->null, "row %zu: records are %s", i, sample.record ? "on" : "off");
        FL_CHECK(sample.record_lost == r->told, "row %zu: %llu lost", i, (unsigned long long)sample.record_lost);
    }
    fl_record_switch_close(&s);
}

static void test_turned_on(void) {
    static const row rows[] = {
        {.set = -1, .end_ns = {5}, .lost = 2, .null = true},
        {.set = 1, .at_ns = 10, .end_ns = {9, 10, 11}, .seen_ns = {11}, .lost = 1, .told = 1},
        {.set = -1, .end_ns = {7, 10, 12}, .seen_ns = {12}}, /* 7 and 10 come late: they ended before the switch */
        {.set = 1, .at_ns = 20, .end_ns = {15, 25}, .seen_ns = {15, 25}},
        {.set = 0, .at_ns = 30, .end_ns = {29, 31}, .seen_ns = {29}, .lost = 3, .told = 3},
        {.set = -1, .end_ns = {28, 32}, .seen_ns = {28}, .lost = 4}, /* 28 comes late: it ended while they were on */
        {.set = -1, .end_ns = {33}, .null = true},
        {.set = 1, .at_ns = 40, .end_ns = {35, 41}, .seen_ns = {41}},
    };
    play(rows, FL_COUNT(rows), false);
}

static void test_on_from_the_start(void) {
    static const row rows[] = {
        {.set = -1, .end_ns = {5}, .seen_ns = {5}, .lost = 2, .told = 2},
        {.set = 0, .at_ns = 10, .end_ns = {9, 11}, .seen_ns = {9}},
        {.set = -1, .end_ns = {10, 12}, .seen_ns = {10}, .lost = 1, .told = 1}, /* GPU 1's are on */
    };
    play(rows, FL_COUNT(rows), true);
}

FL_SUITE("record_switch", {"turned on", test_turned_on}, {"on from the start", test_on_from_the_start})
