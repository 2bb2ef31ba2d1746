/* When tightrope turns records on and off where one stream is known, against values worked by hand; and what is certain
 * of a time's work. */
#include "policies/tightrope_step.h"
#include "tests/support/suite.h"

#include <math.h>

#define S INT64_C(1000000000)
#define CLOCKS 11

enum { AT = 4 }; /* the clock in force */

typedef struct rig {
    fl_tightrope_params p;
    fl_tightrope_state state;
    fl_tightrope_gpu gpu;
    fl_gpu_facts gpu_facts;
    fl_facts facts;
    fl_gpu_command set;
    fl_command c;
    fl_tightrope_step n;
} rig;

static int32_t ladder[CLOCKS];

/* A window of 2 s at a clock whose power is 60 W of 100, where a second is worth 0.9 of one at the top: it saved 0.6.
 */
static rig *open_rig(void) {
    rig *r = calloc(1, sizeof *r);
    CU_ASSERT_FATAL(r != NULL);
    for (int i = 0; i < CLOCKS; i++)
        ladder[i] = 1000 + 50 * i;
    r->p = (fl_tightrope_params){.records_cost = 0.02, .signal = FL_TIGHTROPE_AUTO};
    r->gpu_facts = (fl_gpu_facts){.name = "gpu", .sm = {ladder, CLOCKS}};
    r->facts = (fl_facts){.gpu_count = 1, .gpu = &r->gpu_facts, .streams = 1};
    r->c.gpu = &r->set;
    r->n = (fl_tightrope_step){
        .p = &r->p, .facts = &r->facts, .c = &r->c, .state = &r->state, .gpu = &r->gpu, .count = 1, .now = 12 * S};
    r->gpu.clock = AT;
    r->gpu.work = (fl_tightrope_work){.signal = FL_TIGHTROPE_NONE, .window_ns = 10 * S, .share = 0.9, .quantum = 1};
    r->gpu.seen[AT] = (fl_tightrope_seen){.power_w = 60, .weight_s = 1};
    r->gpu.seen[fl_tightrope_top(&r->n, 0)] = (fl_tightrope_seen){.power_w = 100, .weight_s = 1};
    r->state.stage = FL_TIGHTROPE_CERTAIN;
    return r;
}

static void test_saved(void) {
    static const struct {
        const char *why;
        double weight, top_weight, power, top_power, share, saved;
    } rows[] = {{"2 s at 0.9 - 0.6", 1, 1, 60, 100, 0.9, 0.6},
                {"2 s at 0.75 - 0.5", 1, 1, 50, 100, 0.75, 0.5},
                {"power is dearer than work", 1, 1, 95, 100, 0.9, 0},
                {"the clock was never seen", 0, 1, 60, 100, 0.9, 0},
                {"nor the top", 1, 0, 60, 100, 0.9, 0},
                {"the top's power is not known", 1, 1, 60, 0, 0.9, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig *r = open_rig();
        r->gpu.work.share = rows[i].share;
        r->gpu.seen[AT].weight_s = rows[i].weight, r->gpu.seen[AT].power_w = rows[i].power;
        r->gpu.seen[fl_tightrope_top(&r->n, 0)] =
            (fl_tightrope_seen){.power_w = rows[i].top_power, .weight_s = rows[i].top_weight};
        r->state.trial.saved_s = 0.25;
        r->state.trial.spent_s = 100; /* so that no trial is due */
        CU_ASSERT(!fl_tightrope_turn_records(&r->n));
        FL_CHECK(fabs(r->state.trial.saved_s - 0.25 - rows[i].saved) < 1e-12, "%s: %g", rows[i].why,
                 r->state.trial.saved_s);
        FL_CHECK(!r->set.set && r->state.stage == FL_TIGHTROPE_CERTAIN, "%s: records stay as they are", rows[i].why);
        free(r);
    }
}

/* Nothing is saved in this window. A trial costs 2 % of a second, and must be there: what was saved, and 0.5 % of the
 * time passed, less what trials cost. A trial that lasted spent / 2 % is repeated after 20 times that, after 5 where
 * the program has turned. */
static void test_due(void) {
    static const struct {
        const char *why;
        double cost, saved, spent, turned_s, elapsed;
        int64_t turned, expected_s, due;
    } rows[] = {
        {"the cost is saved", 0.02, 0.02, 0, 0, 0, 0, 0, 1},
        {"not quite", 0.02, 0.0199, 0, 0, 0, 0, 0, 0},
        {"0.5 % of 4.1 s", 0.02, 0, 0, 0, 4.1, 0, 0, 1},
        {"0.5 % of 3.9 s", 0.02, 0, 0, 0, 3.9, 0, 0, 0},
        {"what trials cost counts", 0.02, 0.025, 0.01, 0, 0.5, 0, 0, 0},
        {"half a second's trial, 9.9 s ago", 0.02, 1, 0.01, 0, 9.9, 0, 0, 0},
        {"10.1 s ago", 0.02, 1, 0.01, 0, 10.1, 0, 0, 1},
        {"12.9 s, 9.9 s after the last turn", 0.02, 1, 0.01, 3, 12.9, 0, 0, 0},
        {"13.1 s, 10.1 s after", 0.02, 1, 0.01, 3, 13.1, 0, 0, 1},
        {"another phase, 2.4 s ago", 0.02, 1, 0.01, 0, 2.4, 1, 0, 0},
        {"another phase, 2.6 s ago", 0.02, 1, 0.01, 0, 2.6, 1, 0, 1},
        {"4.1 s are left", 0.02, 1, 0, 0, 5.9, 0, 10, 1},
        {"4 s are left", 0.02, 1, 0, 0, 6, 0, 10, 0},
        {"free records", 0, 0.5, 0.4, 0, 1, 0, 0, 1},
        {"free records, with debts", 0, 0.3, 0.4, 0, 1, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig *r = open_rig();
        r->gpu.seen[AT].power_w = 1000;
        r->p.records_cost = rows[i].cost;
        r->facts.expected_ns = rows[i].expected_s * S;
        r->gpu.work.elapsed_s = rows[i].elapsed;
        r->state.trial = (fl_tightrope_trial){.decisions = 7,
                                              .saved_s = rows[i].saved,
                                              .spent_s = rows[i].spent,
                                              .turned_s = rows[i].turned_s,
                                              .turned = rows[i].turned};
        FL_CHECK(fl_tightrope_turn_records(&r->n) == rows[i].due, "%s", rows[i].why);
        const bool on = r->set.set & FL_BIT(FL_SET_RECORDS) && r->set.value[FL_SET_RECORDS] == 1;
        FL_CHECK(on == rows[i].due, "%s: records", rows[i].why);
        const fl_tightrope_trial *t = &r->state.trial;
        if (rows[i].due)
            FL_CHECK(r->state.stage == FL_TIGHTROPE_TRIAL && !t->decisions && !t->turned &&
                         t->turned_s == rows[i].elapsed && r->gpu.signal_ns == 12 * S &&
                         r->gpu.work.signal == FL_TIGHTROPE_RECORDS && fl_tightrope_hurries(&r->n),
                     "%s: a trial begins", rows[i].why);
        else
            FL_CHECK(r->state.stage == FL_TIGHTROPE_CERTAIN && t->decisions == 7 && t->turned_s == rows[i].turned_s &&
                         r->gpu.work.signal == FL_TIGHTROPE_NONE && !fl_tightrope_hurries(&r->n),
                     "%s: all is as it was", rows[i].why);
        free(r);
    }
}

/* The twelfth decision ends a trial that does not pay; 3 s of records cost 2 % of them. */
static void test_end(void) {
    static const struct {
        int64_t stage, decisions, unpaid;
        int ends;
    } rows[] = {{FL_TIGHTROPE_TRIAL, 11, 1, 1},
                {FL_TIGHTROPE_TRIAL, 10, 1, 0},
                {FL_TIGHTROPE_TRIAL, 11, 0, 0},
                {FL_TIGHTROPE_TRIAL, 40, 1, 1},
                {FL_TIGHTROPE_ALWAYS, 40, 1, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig *r = open_rig();
        r->state.stage = rows[i].stage;
        r->state.trial = (fl_tightrope_trial){.decisions = rows[i].decisions, .spent_s = 0.5, .turned_s = 4};
        r->gpu.unpaid = rows[i].unpaid;
        r->gpu.work.signal = FL_TIGHTROPE_RECORDS;
        r->gpu.work.elapsed_s = 7;
        CU_ASSERT(fl_tightrope_hurries(&r->n) == (rows[i].stage == FL_TIGHTROPE_TRIAL && rows[i].decisions < 12));
        FL_CHECK(fl_tightrope_turn_records(&r->n) == rows[i].ends, "row %zu", i);
        const fl_tightrope_trial *t = &r->state.trial;
        if (rows[i].ends)
            FL_CHECK(r->set.set == FL_BIT(FL_SET_RECORDS) && r->set.value[FL_SET_RECORDS] == 0 &&
                         r->state.stage == FL_TIGHTROPE_CERTAIN && fabs(t->spent_s - 0.56) < 1e-12 &&
                         t->turned_s == 7 && r->gpu.work.signal == FL_TIGHTROPE_NONE,
                     "row %zu: off, at %g s", i, t->spent_s);
        else
            FL_CHECK(!r->set.set && r->state.stage == rows[i].stage && t->spent_s == 0.5 && t->turned_s == 4 &&
                         t->decisions == rows[i].decisions + (rows[i].stage == FL_TIGHTROPE_TRIAL),
                     "row %zu: on", i);
        free(r);
    }
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

/* ---- the reference's error by records ---- */

/* Kinds that ran at the top clock with means 2 and 1 s, variances 1 and 0 (of 4 and 3 durations), and 3 and 4 times
 * elsewhere: sqrt(3^2 * 1 / 4) / (3 * 2 + 4 * 1). */
static void test_reference_error(void) {
    fl_tightrope_work *w = calloc(1, sizeof *w);
    CU_ASSERT_FATAL(w != NULL);
    w->signal = FL_TIGHTROPE_RECORDS;
    CU_ASSERT(fl_tightrope_reference_error(w) == 0);
    w->kind[0] = (fl_tightrope_kind){.count = 4, .sum_s = 8, .square_s = 4 * 4 + 3 * 1, .done = 3};
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

FL_SUITE("tightrope_trial", {"saved", test_saved}, {"due", test_due}, {"end", test_end}, {"certain", test_certain},
         {"spans", test_spans}, {"reference error", test_reference_error}, {"enough", test_enough})
