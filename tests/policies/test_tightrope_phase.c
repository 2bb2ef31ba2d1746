/* tightrope, against values worked by hand: records that take too much; phases that records tell apart; what is certain
 * of a time's work; the error of what records tell. */
#include "policies/policy.h"
#include "policies/tightrope/inside.h"
#include "tests/support/suite.h"

#include <math.h>

#define S INT64_C(1000000000)
/* Readings 10 ms apart, each with so many kernels whose records take 1 us. Records may take a fortieth of the time: 10
 * ms with 1,000 kernels took 1 ms for records, where 0.25 ms may be. So 0.75 ms are too much, and 10 ms are passed with
 * the fourteenth reading. A hundred kernels took 0.1 ms where 0.25 ms may be: never too much, and what is left of it
 * later ones may take. What only has a share is never judged, nor are records that rest by themselves. */
static void test_dear(void) {
    static const struct {
        const char *why;
        double record_s;
        int64_t signal;
        int readings, kernels, then, then_kernels, dear;
    } rows[] = {{"short kernels, fourteen readings", 1e-6, FL_TIGHTROPE_ENDS, 14, 1000, 0, 0, 1},
                {"thirteen", 1e-6, FL_TIGHTROPE_ENDS, 13, 1000, 0, 0, 0},
                {"long kernels", 1e-6, FL_TIGHTROPE_ENDS, 500, 100, 0, 0, 0},
                {"after many long ones", 1e-6, FL_TIGHTROPE_ENDS, 500, 100, 113, 1000, 0},
                {"and one more", 1e-6, FL_TIGHTROPE_ENDS, 500, 100, 114, 1000, 1},
                {"a burst, and another after 700 ms", 1e-6, FL_TIGHTROPE_ENDS, 12, 1000, 70, 100, 0},
                {"a share", 0, FL_TIGHTROPE_ENDS, 500, 1000, 0, 0, 0},
                {"records that rest", 1e-6, FL_TIGHTROPE_RECORDS, 14, 1000, 0, 0, 0}};
    static fl_kernel_record record[1000];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_tightrope_gpu *g = calloc(1, sizeof *g);
        CU_ASSERT_FATAL(g != NULL);
        fl_tightrope_work *w = &g->work;
        fl_gpu_sample gpu = {0};
        int64_t now = 0;
        w->record_s = rows[i].record_s, w->afford = 0.025;
        fl_tightrope_work_begin(w, rows[i].signal, 0, 0.03, 3, 0.02);
        fl_tightrope_window(w, 0, 1, 0);
        for (int k = 0; k < rows[i].readings + rows[i].then; k++) {
            const int count = k < rows[i].readings ? rows[i].kernels : rows[i].then_kernels;
            for (int j = 0; j < count; j++)
                record[j] = (fl_kernel_record){.start_ns = now + j * (10000000 / count),
                                               .end_ns = now + (j + 1) * (10000000 / count)};
            now += 10000000;
            const fl_sample s = {
                .time_ns = now, .gpu_count = 1, .gpu = &gpu, .record = record, .record_count = (uint64_t)count};
            fl_tightrope_read(w, &s, 0, INT64_MAX);
        }
        FL_CHECK(fl_tightrope_records_dear(w) == rows[i].dear, "%s", rows[i].why);
        FL_CHECK(fl_tightrope_records_kept(w) == (rows[i].record_s > 0 ? 0.01 : 0), "%s: kept", rows[i].why);
        const double took_s = w->recorded * rows[i].record_s, all_s = (double)now * 1e-9,
                     cost = rows[i].record_s > 0 ? took_s / (all_s - took_s) : 0.02;
        FL_CHECK(fabs(fl_tightrope_cost(g) - cost) < 1e-6, "%s: %g", rows[i].why, fl_tightrope_cost(g));
        free(g);
    }
}

/* ---- phases ---- */

/* A window of 1 s in which two kinds ran for so long. */
static int window_of(fl_tightrope_phases *p, fl_tightrope_work *w, fl_tightrope_seen *seen, int kind, double s,
                     int other, double other_s) {
    for (int i = 0; i < FL_TIGHTROPE_KINDS; i++)
        w->kind[i].window_s = 0;
    w->kind[kind].window_s = s;
    w->kind[other].window_s += other_s;
    w->elapsed_s += 1;
    w->kinds = 10;
    return fl_tightrope_phase_turns(p, w, seen, 1);
}

/* Two kinds that never run in the same second are two phases, each with clocks of its own; who comes back finds them.
 * A mix of both is neither the one nor the other, but has much in common with the first. */
static void test_phases(void) {
    fl_tightrope_phases *p = calloc(1, sizeof *p);
    fl_tightrope_work *w = calloc(1, sizeof *w);
    fl_tightrope_seen *seen = calloc(FL_TIGHTROPE_CLOCKS, sizeof *seen);
    CU_ASSERT_FATAL(p != NULL && w != NULL && seen != NULL);
    w->signal = FL_TIGHTROPE_RECORDS;
    FL_CHECK(!window_of(p, w, seen, 3, 1, 3, 0) && w->phased && w->kind[3].usual && !w->kind[4].usual, "the first");
    seen[0].weight_s = seen[1].weight_s = 1;
    FL_CHECK(!window_of(p, w, seen, 3, 0.6, 4, 0.4) && w->kind[4].usual, "six tenths are no other phase");
    FL_CHECK(window_of(p, w, seen, 5, 1, 5, 0) && seen[0].weight_s == 0 && !w->kind[3].usual && w->kind[5].usual &&
                 p->turns == 1,
             "another kind is another phase, of which nothing is known");
    seen[0].weight_s = 7, seen[1].weight_s = 1;
    FL_CHECK(!window_of(p, w, seen, 5, 1, 5, 0) && fl_tightrope_phase_time(p, w) == 1, "it goes on");
    FL_CHECK(window_of(p, w, seen, 3, 1, 3, 0) && seen[0].weight_s == 1 && p->turns == 2, "the first comes back");
    FL_CHECK(window_of(p, w, seen, 5, 1, 5, 0) && seen[0].weight_s == 7 && p->turns == 3, "the other is one");
    w->strange_s = 0.05;
    w->kind[9].spell = w->spell, w->kind[9].spell_s = 0.05;
    FL_CHECK(fl_tightrope_phase_strange(w) && window_of(p, w, seen, 5, 1, 9, 0.05) && w->kind[9].usual &&
                 !w->kind[5].usual && !fl_tightrope_phase_strange(w),
             "strange kernels end a phase before their share is large");
    w->signal = FL_TIGHTROPE_NONE, w->strange_s = 1;
    CU_ASSERT(!fl_tightrope_phase_strange(w));
    free(p), free(w), free(seen);
}

/* Looks come one after the other until twelve windows of the phase have ended, if records tell the work. */
static void test_hurry(void) {
    fl_tightrope_phases *p = calloc(1, sizeof *p);
    fl_tightrope_work *w = calloc(1, sizeof *w);
    fl_tightrope_seen *seen = calloc(FL_TIGHTROPE_CLOCKS, sizeof *seen);
    CU_ASSERT_FATAL(p != NULL && w != NULL && seen != NULL);
    w->signal = FL_TIGHTROPE_RECORDS;
    for (int i = 0; i < 14; i++) {
        FL_CHECK(fl_tightrope_phase_hurries(p, w) == (i < 12), "after %d windows", i);
        window_of(p, w, seen, 3, 1, 3, 0);
    }
    window_of(p, w, seen, 5, 1, 5, 0);
    FL_CHECK(p->turns == 1 && fl_tightrope_phase_hurries(p, w), "a new phase is young again");
    w->signal = FL_TIGHTROPE_NONE;
    CU_ASSERT(!fl_tightrope_phase_hurries(p, w));
    free(p), free(w), free(seen);
}

/* Stays in which no lower clock was learned are of no use: after so many of them the phases are one. From 2 s each
 * takes an eighth off, and (7/8)^8 x 2 is less than 0.7. */
static void test_brief(void) {
    fl_tightrope_phases *p = calloc(1, sizeof *p);
    fl_tightrope_work *w = calloc(1, sizeof *w);
    fl_tightrope_seen *seen = calloc(FL_TIGHTROPE_CLOCKS, sizeof *seen);
    CU_ASSERT_FATAL(p != NULL && w != NULL && seen != NULL);
    w->signal = FL_TIGHTROPE_RECORDS;
    int turns = 0;
    for (int i = 0; i < 20; i++)
        turns += window_of(p, w, seen, i % 2, 1, i % 2, 0);
    FL_CHECK(turns == 7, "%d turns", turns);
    CU_ASSERT(w->kind[0].usual && w->kind[1].usual);
    free(p), free(w), free(seen);
}

/* ---- what is certain ---- */

static bool near(double a, double b) { return fabs(a - b) < 1e-12; }

static void test_certain(void) {
    fl_tightrope_certain c = {0};
    CU_ASSERT(fl_tightrope_certain_between(&c, 0, 5 * S) == 0);
    fl_tightrope_certain_from(&c, 10 * S, 0.5);
    FL_CHECK(near(fl_tightrope_certain_between(&c, 8 * S, 14 * S), 3), "the first holds for all before");
    fl_tightrope_certain_from(&c, 14 * S, 0.75);
    fl_tightrope_certain_from(&c, 16 * S, 0.25);
    static const struct {
        int64_t from, to;
        double worth;
    } rows[] = {{10, 18, 2 + 1.5 + 0.5},
                {13, 17, 0.5 + 1.5 + 0.25},
                {14, 16, 1.5},
                {15, 16, 0.75},
                {12, 14, 1},
                {16, 18, 0.5},
                {20, 24, 1},
                {9, 11, 1},
                {15, 15, 0},
                {16, 14, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        FL_CHECK(near(fl_tightrope_certain_between(&c, rows[i].from * S, rows[i].to * S), rows[i].worth),
                 "%lld to %lld", (long long)rows[i].from, (long long)rows[i].to);
    fl_tightrope_certain_from(&c, 14 * S, 1); /* what was said of then and later is forgotten */
    FL_CHECK(c.count == 2 && near(fl_tightrope_certain_between(&c, 13 * S, 17 * S), 3.5), "%u spans", c.count);
    fl_tightrope_certain_from(&c, 14 * S + 1, 0);
    FL_CHECK(c.count == 3, "a moment later is another span");
    fl_tightrope_certain_cut(&c, 14 * S);
    FL_CHECK(c.count == 2 && near(fl_tightrope_certain_between(&c, 14 * S, 16 * S), 2), "what begins then stays");
    fl_tightrope_certain_cut(&c, 14 * S - 1);
    FL_CHECK(c.count == 1 && near(fl_tightrope_certain_between(&c, 14 * S, 16 * S), 1),
             "what begins after is forgotten");
}

/* One span more than fit: of the first two the least worth stays, for all of their time. */
static void test_spans(void) {
    for (int low = 0; low < 2; low++) {
        fl_tightrope_certain c = {0};
        for (int i = 0; i < FL_TIGHTROPE_SPANS; i++)
            fl_tightrope_certain_from(&c, i * S, i == low ? 0.25 : 1 - i / 64.0);
        const double last = fl_tightrope_certain_between(&c, 0, 32 * S);
        FL_CHECK(c.count == FL_TIGHTROPE_SPANS && last > 0, "%u spans", c.count);
        fl_tightrope_certain_from(&c, 32 * S, 0.125);
        double want = 2 * 0.25 + 0.125;
        for (int i = 2; i < 32; i++)
            want += 1 - i / 64.0;
        FL_CHECK(c.count == FL_TIGHTROPE_SPANS && near(fl_tightrope_certain_between(&c, 0, 33 * S), want), "%g of %g",
                 fl_tightrope_certain_between(&c, 0, 33 * S), want);
    }
}

/* A thousand kinds share the time alike, each with a thousandth of it: that is one phase, and none of them is strange
 * to it. A thousand others are another phase. */
static void test_many_kinds(void) {
    fl_tightrope_phases *p = calloc(1, sizeof *p);
    fl_tightrope_work *w = calloc(1, sizeof *w);
    fl_tightrope_seen *seen = calloc(FL_TIGHTROPE_CLOCKS, sizeof *seen);
    CU_ASSERT_FATAL(p != NULL && w != NULL && seen != NULL);
    w->signal = FL_TIGHTROPE_RECORDS;
    w->kinds = 2000;
    for (int window = 0; window < 6; window++) {
        const int first = window < 3 ? 0 : 1000;
        int usual = 0;
        for (int i = 0; i < 2000; i++)
            w->kind[i].window_s = i >= first && i < first + 1000 ? 1e-3 : 0;
        const int turned = fl_tightrope_phase_turns(p, w, seen, 1);
        for (int i = 0; i < 2000; i++)
            usual += w->kind[i].usual != 0;
        FL_CHECK(turned == (window == 3) && usual == 1000 && w->kind[first].usual, "window %d: turned %d, %d are usual",
                 window, turned, usual);
    }
    free(p);
    free(w);
    free(seen);
}

/* ---- the reference's error by records ---- */

/* Kinds that ran at the top clock with means 2 and 1 s, variances 1 and 0 (of 4 and 3 durations), and 3 and 4 times
 * elsewhere: sqrt(3^2 * 1 / 4) / (3 * 2 + 4 * 1). */
static void test_reference_error(void) {
    fl_tightrope_work *w = calloc(1, sizeof *w);
    CU_ASSERT_FATAL(w != NULL);
    w->signal = FL_TIGHTROPE_RECORDS;
    CU_ASSERT(fl_tightrope_reference_error(w) == 0);
    w->kind[0] = (fl_tightrope_kind){.count = 4, .sum_s = 8, .square_s = 4 * 4 + 3 * 1, .done = 3};
    w->kinds = FL_TIGHTROPE_KINDS;
    w->kind[FL_TIGHTROPE_KINDS - 1] = (fl_tightrope_kind){.count = 3, .sum_s = 3, .square_s = 3, .done = 4};
    w->kind[1] = (fl_tightrope_kind){.count = 2, .sum_s = 9, .square_s = 99, .done = 5}; /* too few to know */
    w->kind[2] = (fl_tightrope_kind){.count = 9, .sum_s = 9, .square_s = 99, .done = 0}; /* never elsewhere */
    FL_CHECK(near(fl_tightrope_reference_error(w), 1.5 / 10), "%g", fl_tightrope_reference_error(w));
    w->kind[0].square_s = 1; /* less than the mean's square, by rounding: no variance */
    FL_CHECK(fl_tightrope_reference_error(w) == 0, "%g", fl_tightrope_reference_error(w));
    w->signal = FL_TIGHTROPE_NONE;
    FL_CHECK(fl_tightrope_reference_error(w) == 1, "nothing is known of it");
    free(w);
}

/* Enough is known once the sum's deviation, times the quantile for so many durations, is within the error wanted. Both
 * kinds have a variance of 1 over 4 durations: their sum of squares is 3 each, so sqrt(6) of 16 s; 8 durations are 7
 * degrees of freedom. With 2 sigmas z = 2 * 59 / 57 and t = sqrt(7 (exp(z^2 / 7) - 1)) = 2.427. */
static void test_enough(void) {
    fl_tightrope_work *w = calloc(1, sizeof *w);
    CU_ASSERT_FATAL(w != NULL);
    w->signal = FL_TIGHTROPE_RECORDS;
    w->sigmas = 2;
    w->known_s = 1;
    w->kind[0] = (fl_tightrope_kind){.count = 4, .sum_s = 8, .square_s = 19};
    w->kinds = FL_TIGHTROPE_KINDS;
    w->kind[FL_TIGHTROPE_KINDS - 1] = w->kind[0];
    const double z = 2 * 59.0 / 57, t = sqrt(7 * expm1(z * z / 7)), least = t * sqrt(6) / 16;
    FL_CHECK(fl_tightrope_enough(w, least * 1.0001) && !fl_tightrope_enough(w, least * 0.9999), "%g", least);
    w->known_s = 0;
    CU_ASSERT(!fl_tightrope_enough(w, 100));
    w->known_s = 1;
    w->kind[1] = (fl_tightrope_kind){.count = 1, .sum_s = 4, .square_s = 16}; /* one tells no variance */
    const double y = 2 * 67.0 / 65, more = sqrt(8 * expm1(y * y / 8)) * sqrt(6) / 20;
    FL_CHECK(fl_tightrope_enough(w, more * 1.0001) && !fl_tightrope_enough(w, more * 0.9999), "%g", more);
    w->signal = FL_TIGHTROPE_NONE;
    CU_ASSERT(fl_tightrope_enough(w, 0));
    free(w);
}

FL_SUITE("tightrope_phase", {"dear", test_dear}, {"phases", test_phases}, {"hurry", test_hurry}, {"brief", test_brief},
         {"certain", test_certain}, {"spans", test_spans}, {"reference error", test_reference_error},
         {"enough", test_enough}, {"many kinds", test_many_kinds})
