/* Bounds on what users promise: how they are said and refused, what a row holds, and what the command line and an
 * experiment come to together. End to end: tests/program/promise.sh. */
#include "harness/input/experiment/experiment.h"
#include "harness/study/trial/inside.h"
#include "harness/study/trial/trial.h"
#include "policies/policy.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>

static void test_said(void) {
    static const struct {
        const char *text, *name; /* name: as it is told again; of a share NULL */
        double share;
        bool below, equal;
        double limit;
    } row[] = {
        {"5%", NULL, 0.05, false, false, 0},
        {"0.05", NULL, 0.05, false, false, 0},
        {" 5 % ", NULL, 0, false, false, 0},
        {"0", NULL, 0, false, false, 0},
        {"1", NULL, 1, false, false, 0},
        {"150%", NULL, 1.5, false, false, 0},
        {"slowdown<=5%", NULL, 0.05, false, false, 0},
        {"slowdown<=0.05", NULL, 0.05, false, false, 0},
        {"latency_p99_s<0.17", "latency_p99_s<0.17", INFINITY, true, false, 0.17},
        {" latency_p99_s <= 0.17 ", "latency_p99_s<=0.17", INFINITY, true, true, 0.17},
        {"energy_saving_pct>10", "energy_saving_pct>10", INFINITY, false, false, 10},
        {"mean_power_w>=1e2", "mean_power_w>=100", INFINITY, false, true, 100},
        {"worst_window_slowdown<10%", "worst_window_slowdown<0.1", INFINITY, true, false, 0.1},
        {"slowdown<0.05", "slowdown<0.05", INFINITY, true, false, 0.05},
        {"slowdown_pct<=5", "slowdown_pct<=5", INFINITY, true, true, 5},
        {"energy_saving_pct>-3", "energy_saving_pct>-3", INFINITY, false, false, -3},
        {"hottest_c<85", "hottest_c<85", INFINITY, true, false, 85},
        {"over_gpu@250<=1", "over_gpu@250<=1", INFINITY, true, true, 1},
    };
    for (size_t i = 0; i < FL_COUNT(row); i++) {
        fl_promises p = {0};
        fl_diag d = {0};
        double share = INFINITY;
        char text[FL_PROMISE_TEXT];
        const fl_status s = fl_promise_parse(row[i].text, &p, &share, &d);
        if (!strcmp(row[i].text, " 5 % ")) { /* a number and its sign stand together */
            FL_CHECK(s == FL_BAD_INPUT, "'%s' is taken", row[i].text);
            continue;
        }
        FL_CHECK(s == FL_OK && share == row[i].share && p.count == (row[i].name ? 1 : 0), "'%s': %s, %g, %zu",
                 row[i].text, d.message, share, p.count);
        if (s == FL_OK && row[i].name)
            FL_CHECK(!strcmp(fl_promise_text(&p.item[0], text), row[i].name) && p.item[0].below == row[i].below &&
                         p.item[0].equal == row[i].equal && p.item[0].limit == row[i].limit,
                     "'%s' is told as '%s'", row[i].text, text);
    }
}

static void test_refused(void) {
    static const struct {
        const char *text, *says;
    } row[] = {
        {"", "expected a share"},
        {"five", "expected a share"},
        {"5%%", "expected a share"},
        {"nan", "expected a share"},
        {"inf", "expected a share"},
        {"5", "5, expected a share: 0.05 or 5%; 500 % are said as 500%"},
        {"-0.1", "expected a number from 0 to 1"},
        {"20000%", "expected a number from 0 to 1"},
        {"<0.1", "expected a share"},
        {"slowdown<=5", "'slowdown<=5': 5, expected a share: 0.05 or 5%"}, /* 5 may be 5 % wherever it stands */
        {"slowdown<5", "5, expected a share: 0.05 or 5%"},
        {"worst_window_slowdown<=5", "5, expected a share: 0.05 or 5%"},
        {"rows>0", "depends on the bounds"},
        {"oracle_objective>0", "depends on the bounds"},
        {"regret_at_own_slowdown_j<1", "depends on the bounds"},
        {"latency_p99_s<", "expected a number"},
        {"latency_p99_s<x", "expected a number"},
        {"latency_p99_s<nan", "expected a number"},
        {"latency_p99_s<0.1s", "expected a number"},
        {"latency_p99_s<10%", "expected a number"},
        {"latency_p99_s=0.1", "expected a share"},
        {"latency_p99_s==0.1", "expected a share"},
        {"latency_p99_s=<0.1", "no column 'latency_p99_s='"},
        {"latency_p99_s<>0.1", "expected a number"},
        {"latency_p99<0.1", "did you mean 'latency_p99_s'"},
        {"latnecy_p99_s<0.1", "did you mean 'latency_p99_s'"},
        {"platform<1", "holds text,"},
        {"violated<1", "depends on the bounds"},
        {"regret_static_pct<1", "depends on the bounds"},
        {"sm_share@x<1", "no column"},
    };
    for (size_t i = 0; i < FL_COUNT(row); i++) {
        fl_promises p = {0};
        fl_diag d = {0};
        double share = INFINITY;
        FL_CHECK(fl_promise_parse(row[i].text, &p, &share, &d) == FL_BAD_INPUT && strstr(d.message, row[i].says) &&
                     !p.count && isinf(share),
                 "'%s': %s", row[i].text, d.message);
    }
    fl_promises p = {0};
    fl_diag d = {0};
    double share = INFINITY;
    FL_CHECK(fl_promise_parse("5%", &p, &share, &d) == FL_OK &&
                 fl_promise_parse("6%", &p, &share, &d) == FL_BAD_INPUT &&
                 strstr(d.message, "second bound on the slowdown") && share == 0.05,
             "%s", d.message);
    for (int i = 0; i < FL_PROMISES_MAX; i++)
        FL_CHECK(fl_promise_parse("energy_j<1", &p, &share, &d) == FL_OK, "%d: %s", i, d.message);
    FL_CHECK(fl_promise_parse("energy_j<1", &p, &share, &d) == FL_BAD_INPUT && strstr(d.message, "more than 31"), "%s",
             d.message);
}

static void test_judged(void) {
    fl_promises p = {0};
    fl_diag d = {0};
    double share = INFINITY;
    static const char *const text[] = {"5%", "latency_p99_s<0.17", "energy_j>=100", "hottest_c<85"};
    for (size_t i = 0; i < FL_COUNT(text); i++)
        FL_CHECK(fl_promise_parse(text[i], &p, &share, &d) == FL_OK, "%s", d.message);
    FL_CHECK(p.count == 3 && share == 0.05 && fl_promises_watched(&p) && !p.item[0].watched && p.item[2].watched, "%zu",
             p.count);
    fl_kept hot = {.run = {.hottest_c = 84}};
    static const struct {
        double p99_s, energy_j, hottest_c; /* hottest NAN: not watched */
        bool slow;
        uint32_t broken, unknown;
        const char *breaks;
    } row[] = {
        {0.16, 100, 84, false, 0, 0, ""},
        {0.17, 100, 84, false, 2, 0, "latency_p99_s<0.17"}, /* at the limit is not below it */
        {0.16, 99, 84, false, 4, 0, "energy_j>=100"},
        {0.16, 100, 85, true, 9, 0, "slowdown<=0.05; hottest_c<85"},
        {NAN, 100, 84, false, 0, 2, "latency_p99_s<0.17 (n/a)"}, /* nothing arrived: not held */
        {0.16, 100, NAN, false, 0, 8, "hottest_c<85 (n/a)"},
        {1, 1, 100, true, 15, 0, "slowdown<=0.05; latency_p99_s<0.17; energy_j>=100; hottest_c<85"},
    };
    for (size_t i = 0; i < FL_COUNT(row); i++) {
        fl_row_result r = {.latency = {.p99_s = row[i].p99_s},
                           .score = {.energy_j = row[i].energy_j,
                                     .violated = row[i].slow,
                                     .regret_static_j = 1,
                                     .regret_static_pct = 1,
                                     .regret_clairvoyant_pct = 1,
                                     .regret_at_own_slowdown_j = 1}};
        hot.run.hottest_c = row[i].hottest_c;
        r.kept = isnan(row[i].hottest_c) ? NULL : &hot;
        fl_promises_judge(&p, share, &r);
        fl_promises_judge(&p, share, &r); /* a second time changes nothing */
        const bool held = !row[i].broken && !row[i].unknown;
        FL_CHECK(r.broken == row[i].broken && r.unknown == row[i].unknown && !strcmp(r.breaks, row[i].breaks),
                 "row %zu: broken %x, unknown %x, '%s'", i, r.broken, r.unknown, r.breaks);
        FL_CHECK(r.violated == !held && isnan(r.score.regret_static_pct) == !held &&
                     isnan(r.score.regret_clairvoyant_pct) == !held && r.score.regret_at_own_slowdown_j == 1,
                 "row %zu: violated %g", i, r.violated);
    }
    fl_row_result slow = {.score = {.violated = true}};
    fl_promises_judge(NULL, 0.1, &slow); /* a caller that knows the slowdown alone */
    FL_CHECK(slow.violated == 1 && !strcmp(slow.breaks, "slowdown<=0.1"), "'%s'", slow.breaks);
    /* a text that does not fit ends in dots */
    fl_promises many = {0};
    for (int i = 0; i < 20; i++)
        FL_CHECK(fl_promise_parse("energy_per_request_j<0.001", &many, &share, &d) == FL_OK, "%s", d.message);
    fl_row_result r = {.energy_per_request_j = 1};
    fl_promises_judge(&many, INFINITY, &r);
    FL_CHECK(strlen(r.breaks) == sizeof r.breaks - 1 && !strcmp(r.breaks + sizeof r.breaks - 4, "..."), "'%s'",
             r.breaks);
}

/* What an experiment says holds as far as the command line says nothing about the same column. */
static void test_together(void) {
    static const struct {
        const char *experiment, *line[3]; /* line: as --bound has it */
        double share;
        const char *names, *says; /* says: of a refusal */
    } row[] = {
        {"\"bound\": 0.1", {NULL}, 0.1, "", NULL},
        {"\"bound\": \"10%\"", {NULL}, 0.1, "", NULL},
        {"\"bound\": \"energy_j<5\"", {NULL}, INFINITY, "energy_j<5 ", NULL},
        {"\"bounds\": [\"10%\", \"energy_j<5\", \"mean_power_w<=7\"]",
         {NULL},
         0.1,
         "energy_j<5 mean_power_w<=7 ",
         NULL},
        {"\"bound\": 0.1, \"bounds\": [\"energy_j<5\"]", {NULL}, 0.1, "energy_j<5 ", NULL},
        {"\"bound\": 0.1, \"bounds\": [\"energy_j<5\"]", {"5%"}, 0.05, "energy_j<5 ", NULL},
        {"\"bound\": 0.1, \"bounds\": [\"energy_j<5\"]", {"energy_j<6"}, 0.1, "energy_j<6 ", NULL},
        {"\"bounds\": [\"energy_j<5\", \"energy_j>1\"]", {"energy_j<6"}, INFINITY, "energy_j<6 ", NULL},
        {"\"bound\": 0.1", {"slowdown<0.2"}, INFINITY, "slowdown<0.2 ", NULL},
        {"\"bounds\": [\"slowdown<0.2\"]", {"5%"}, 0.05, "", NULL},
        {"\"about\": \"none\"", {"5%", "energy_j<6"}, 0.05, "energy_j<6 ", NULL},
        {"\"bound\": 0.1, \"bounds\": [\"10%\"]", {NULL}, 0, NULL, "second bound on the slowdown"},
        {"\"bounds\": [\"energie_j<5\"]", {NULL}, 0, NULL, "e.json:1:"},
        {"\"bounds\": [\"energie_j<5\"]", {NULL}, 0, NULL, "did you mean 'energy_j'"},
        {"\"bounds\": \"energy_j<5\"", {NULL}, 0, NULL, "bounds"},
        {"\"bounds\": [true]", {NULL}, 0, NULL, "bounds[0]"},
        {"\"bound\": -1", {NULL}, 0, NULL, "bound"},
        {"\"bound\": 5", {NULL}, 0, NULL, "bound: 5, expected a share: 0.05 or 5%"},
    };
    for (size_t i = 0; i < FL_COUNT(row); i++) {
        char text[512], path[512], names[512] = "", said[1024];
        fl_experiment e = {0};
        fl_promises p = {0};
        fl_diag d = {0};
        double share = INFINITY;
        snprintf(text, sizeof text, "{\"foldline_experiment\": 1, %s}", row[i].experiment);
        snprintf(path, sizeof path, "%s", fl_temp_text("e.json", text));
        fl_status s = fl_experiment_open(path, &e, &d); /* which refuses what no key may be */
        FL_CHECK(s == FL_OK || row[i].says, "row %zu: %s", i, d.message);
        for (size_t k = 0; k < 3 && row[i].line[k]; k++)
            FL_CHECK(fl_promise_parse(row[i].line[k], &p, &share, &d) == FL_OK, "%s", d.message);
        s = s ? s : fl_promises_read(&e, &p, &share, &d);
        fl_diag_text(&d, said, sizeof said);
        if (row[i].says) {
            FL_CHECK(s == FL_BAD_INPUT && strstr(said, row[i].says), "row %zu: %s", i, said);
        } else {
            for (size_t k = 0; k < p.count; k++) {
                char one[FL_PROMISE_TEXT];
                strcat(strcat(names, fl_promise_text(&p.item[k], one)), " ");
            }
            FL_CHECK(s == FL_OK && share == row[i].share && !strcmp(names, row[i].names), "row %zu: %s %g '%s'", i,
                     said, share, names);
        }
        fl_experiment_free(&e);
    }
    fl_temp_remove();
}

FL_SUITE("promise", {"as it is said", test_said}, {"refusals", test_refused}, {"judged", test_judged},
         {"with an experiment", test_together})
