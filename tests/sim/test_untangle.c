/* What kernels that shared a GPU would have taken alone. Each of two kernels wants all SMs, so that both at once run at
 * half their speed: a time together is half a time of work for either. Events at one instant have an order: ends come
 * before begins, and then the operations as they are numbered. */
#include "models/laws/laws.h"
#include "sim/workload/inside.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <math.h>

typedef struct span {
    int64_t from, to;
} span;

static void work_of(const span *s, uint32_t count, bool backwards, double *work, bool *shared) {
    fl_edge edge[16] = {0};
    uint32_t class_of_op[8] = {0};
    const fl_row row = {.sms = FL_SHARE_ONE / 2, .memory = 0}; /* a row counts in units of two */
    fl_diag d = {0};
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = backwards ? count - 1 - i : i;
        edge[2 * at] = (fl_edge){.at_ns = s[i].from, .op = i, .end = false};
        edge[2 * at + 1] = (fl_edge){.at_ns = s[i].to, .op = i, .end = true};
        work[i] = 0;
    }
    *shared = false;
    FL_CHECK(fl_untangle(edge, 2 * count, class_of_op, &row, work, 0, shared, &d) == FL_OK, "%s", d.message);
}

static void test_work(void) {
    static const struct {
        const char *why;
        span s[3];
        uint32_t count;
        bool shared;
        double work[3];
    } rows[] = {
        {"alone", {{5, 25}}, 1, false, {20}},
        {"one after the other", {{0, 10}, {20, 25}}, 2, false, {10, 5}},
        {"the one ends as the other begins", {{0, 10}, {10, 30}}, 2, false, {10, 20}},
        {"three in a row", {{0, 10}, {10, 30}, {30, 31}}, 3, false, {10, 20, 1}},
        {"half of each together", {{0, 20}, {10, 30}}, 2, true, {15, 15}},
        {"the same time", {{0, 8}, {0, 8}}, 2, true, {4, 4}},
        {"they end together", {{0, 10}, {4, 10}}, 2, true, {7, 3}},
        {"one within the other", {{0, 30}, {10, 20}}, 2, true, {25, 5}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int backwards = 0; backwards < 2; backwards++) {
            double work[8];
            bool shared;
            work_of(rows[i].s, rows[i].count, backwards, work, &shared);
            FL_CHECK(shared == rows[i].shared, "%s: shared %d", rows[i].why, shared);
            for (uint32_t k = 0; k < rows[i].count; k++)
                FL_CHECK(fabs(work[k] - rows[i].work[k]) < 1e-4, "%s: kernel %u worked %.9g ns, expected %g",
                         rows[i].why, k, work[k], rows[i].work[k]);
        }
}

/* 256 at once are the most. One more may begin as one of them ends, whichever of the two has the lower number. */
static void test_most(void) {
    enum { MOST = 256 };
    static fl_edge edge[2 * MOST + 2];
    static uint32_t class_of_op[MOST + 1];
    static double work[MOST + 1];
    const fl_row row = {.sms = FL_SHARE_ONE / 2 / MOST};
    for (int last = 0; last < 2; last++)
        for (int64_t begins = 9; begins <= 10; begins++) {
            bool shared = false;
            fl_diag d = {0};
            for (uint32_t i = 0; i <= MOST; i++) {
                const bool late = i == (last ? MOST : 0);
                edge[2 * i] = (fl_edge){.at_ns = late ? begins : 0, .op = i};
                edge[2 * i + 1] = (fl_edge){.at_ns = late ? 30 : i == 7 ? 10 : 20, .op = i, .end = true};
                work[i] = 0;
            }
            const fl_status s = fl_untangle(edge, 2 * MOST + 2, class_of_op, &row, work, 0, &shared, &d);
            if (begins == 10)
                FL_CHECK(s == FL_OK && !shared && work[7] == 10 && work[9] == 20 && work[last ? MOST : 0] == 20,
                         "%s, late one worked %g ns", d.message, work[last ? MOST : 0]);
            else
                FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, "more than 256"), "%s", d.message);
        }
}

/* Kernels that together ask for the whole of a resource have it, and do not share; the least more, and they do, and
 * the one that asks for more gives way. Either of the two resources is enough for that. */
static void test_whole(void) {
    enum { HALF = FL_SHARE_ONE / 4 }; /* of a resource, in the units of a row */
    static const struct {
        uint16_t sms[2], memory[2];
        bool shared;
    } rows[] = {
        {{HALF, HALF}, {0, 0}, false},    {{HALF, HALF + 1}, {0, 0}, true},    {{0, 0}, {HALF, HALF}, false},
        {{0, 0}, {HALF, HALF + 1}, true}, {{HALF, HALF}, {HALF, HALF}, false}, {{HALF, HALF + 1}, {HALF, HALF}, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_edge edge[4] = {{.at_ns = 0, .op = 0},
                           {.at_ns = 0, .op = 1},
                           {.at_ns = 10, .op = 0, .end = true},
                           {.at_ns = 10, .op = 1, .end = true}};
        const uint32_t class_of_op[2] = {0, 1};
        const fl_row row[2] = {{.sms = rows[i].sms[0], .memory = rows[i].memory[0]},
                               {.sms = rows[i].sms[1], .memory = rows[i].memory[1]}};
        double work[2] = {0};
        bool shared = false;
        fl_diag d = {0};
        FL_CHECK(fl_untangle(edge, 4, class_of_op, row, work, 0, &shared, &d) == FL_OK, "%s", d.message);
        FL_CHECK(shared == rows[i].shared, "row %zu: shared %d", i, shared);
        FL_CHECK(work[0] == 10 && (rows[i].shared ? work[1] < 10 && work[1] > 9.99 : work[1] == 10),
                 "row %zu: %.17g and %.17g ns of work", i, work[0], work[1]);
    }
}

/* What a kernel asked for of either resource is free again as it ends: those that come later share with nobody. */
static void test_ended(void) {
    static const int64_t from[] = {0, 10, 30}, to[] = {10, 20, 40};
    for (int memory = 0; memory < 2; memory++) {
        const uint16_t most = FL_SHARE_ONE / 8 * 3; /* three quarters, in the units of a row */
        const fl_row row = {.sms = memory ? 0 : most, .memory = memory ? most : 0};
        const uint32_t class_of_op[3] = {0};
        fl_edge edge[6];
        double work[3] = {0};
        bool shared = false;
        fl_diag d = {0};
        for (uint32_t i = 0; i < 3; i++) {
            edge[2 * i] = (fl_edge){.at_ns = from[i], .op = i};
            edge[2 * i + 1] = (fl_edge){.at_ns = to[i], .op = i, .end = true};
        }
        FL_CHECK(fl_untangle(edge, 6, class_of_op, &row, work, 0, &shared, &d) == FL_OK, "%s", d.message);
        FL_CHECK(!shared && work[0] == 10 && work[1] == 10 && work[2] == 10, "%s: shared %d, %g, %g and %g ns",
                 memory ? "memory" : "SMs", shared, work[0], work[1], work[2]);
    }
}

FL_SUITE("untangle", {"work", test_work}, {"the whole of a resource", test_whole}, {"the most", test_most},
         {"ended", test_ended})
