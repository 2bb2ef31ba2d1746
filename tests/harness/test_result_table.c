/* Published results beside simulated ones: what a selection picks, what becomes of it, and when a gate holds. */
#include "harness/base/cli/cli.h"
#include "harness/input/experiment/experiment.h"
#include "harness/study/compare/compare.h"
#include "harness/study/compare/inside.h"
#include "harness/study/trial/inside.h"
#include "harness/study/trial/trial.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>

static fl_row_result row(const char *workload, const char *policy, const char *variant, uint64_t seed, double energy,
                         double time) {
    return (fl_row_result){.workload = workload,
                           .policy = policy,
                           .variant = variant,
                           .seed = seed,
                           .score = {.energy_j = energy, .makespan_s = time, .slowdown = time / 10 - 1}};
}

/* Two workloads, a baseline and two policies, two seeds of the second, one variant. */
static fl_comparison rows(void) {
    const fl_row_result all[] = {
        row("one", "base", NULL, 1, 100, 10),       row("two", "base", NULL, 1, 400, 10),
        row("one", "good", NULL, 1, 50, 11),        row("two", "good", NULL, 1, 300, 12),
        row("one", "luck:p=1", NULL, 1, 80, 10),    row("one", "luck:p=1", NULL, 2, 90, 10),
        row("two", "luck:p=1", NULL, 1, 380, 10),   row("one [off]", "base", "off", 1, 200, 10),
        row("one [off]", "good", "off", 1, 20, 10), row("mean", "good", NULL, 1, 1, 1),
    };
    fl_comparison c = {0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        fl_comparison_add(&c, &all[i]);
    c.mean_first = c.count - 1;
    return c;
}

/* Rows of one policy and one variant have one mean, wherever they stand; the means come in the order of their first
 * rows. */
static void test_means(void) {
    static const struct {
        const char *label;
        double energy_j;
    } means[] = {{"base", 250},       {"good", 175},      {"luck:p=1", (80 + 90 + 380) / 3.0},
                 {"base [off]", 200}, {"good [off]", 20}, {"base [on]", 7}};
    static const uint32_t of[] = {0, 0, 1, 1, 2, 2, 2, 3, 4, 5, 0};
    fl_comparison c = rows();
    c.count--; /* its own mean */
    const fl_row_result more[] = {row("one [on]", "base", "on", 1, 7, 10), row("three", "base", NULL, 1, 250, 10)};
    for (size_t i = 0; i < FL_COUNT(more); i++)
        fl_comparison_add(&c, &more[i]);
    fl_comparison_means(&c);
    FL_CHECK(c.mean_first == FL_COUNT(of) && c.count == FL_COUNT(of) + FL_COUNT(means), "%zu rows", c.count);
    for (size_t i = 0; i < c.mean_first; i++)
        FL_CHECK(c.mean[i] == of[i], "row %zu belongs to mean %u, expected %u", i, c.mean[i], of[i]);
    for (size_t k = 0; k < FL_COUNT(means) && c.mean_first + k < c.count; k++) {
        const fl_row_result *m = &c.row[c.mean_first + k];
        FL_CHECK(!strcmp(m->policy, means[k].label) && fabs(m->score.energy_j - means[k].energy_j) < 1e-9,
                 "mean %zu: %s %g J, expected %s %g J", k, m->policy, m->score.energy_j, means[k].label,
                 means[k].energy_j);
    }
    fl_comparison_free(&c);
}

static const char *const labels[] = {"base", "good", "luck:p=1", "plain", "lone"};

static fl_status open_text(const char *lines, fl_experiment *e, fl_published **p, fl_diag *d) {
    char text[4096];
    const fl_texts policies = {.item = (const char **)labels, .count = 5};
    snprintf(text, sizeof text, "{\"foldline_experiment\": 1, \"assumed\": [\"much\"],\n\"published\": [%s]}", lines);
    fl_status s = fl_experiment_open(fl_temp_text("e.json", text), e, d);
    return s ? s : fl_published_open(e, &policies, p, d);
}

#define LINE(published, selection, gate)                                                                               \
    "{\"quantity\": \"q\", \"unit\": \"J\", \"published\": " published ", \"simulated\": {" selection "}" gate "}"
#define OF(which, rivals) ", \"" which "_of\": [" rivals "], \"over\": \"sum\""
#define WITHIN(pct) ", \"where\": {\"column\": \"slowdown_pct\", \"below\": " #pct "}"
#define SEL(policy, column) "\"policy\": \"" policy "\", \"column\": \"" column "\""

static void test_values(void) {
    static const struct {
        const char *selection;
        double value;
    } table[] = {
        {SEL("good", "energy_j"), 175},
        {SEL("good", "energy_j") ", \"over\": \"sum\"", 350},
        {SEL("good", "energy_j") ", \"over\": \"error\"", 125},
        {SEL("good", "energy_j") ", \"over\": \"min\"", 50},
        {SEL("good", "energy_j") ", \"over\": \"max\"", 300},
        {SEL("*", "energy_j") ", \"over\": \"median\"", 100},
        {SEL("g*", "energy_j") ", \"over\": \"median\"", 175},
        {SEL("good", "energy_j") ", \"over\": \"geomean\"", 122.4744871391589},
        {SEL("good", "energy_j") ", \"workload\": \"t*\"", 300},
        {SEL("good", "energy_j") ", \"variant\": \"off\"", 20},
        {SEL("good", "energy_j") ", \"variant\": \"off\", \"workload\": \"one\"", 20},
        {SEL("*", "energy_j") ", \"over\": \"count_below:100\"", 3},
        {SEL("*", "energy_j") ", \"over\": \"count_above:100\"", 3},
        {SEL("luck:p=1", "energy_j") ", \"workload\": \"one\"", 85},
        {SEL("good", "slowdown_pct") ", \"over\": \"max\"", 20},
        {SEL("good", "energy_kj") ", \"over\": \"max\"", 0.3},
        {SEL("good", "energy_j") ", \"against\": \"base\", \"as\": \"saving_pct\"", 37.5},
        {SEL("good", "energy_j") ", \"against\": \"base\", \"as\": \"change_pct\"", -37.5},
        {SEL("good", "energy_j") ", \"against\": \"base\", \"as\": \"ratio\"", 0.625},
        {SEL("good", "energy_j") ", \"against\": \"base\", \"as\": \"difference\"", -75},
        {SEL("good", "energy_j") ", \"against\": \"base\", \"as\": \"abs_difference\", \"over\": \"max\"", 100},
        {SEL("good", "energy_j") ", \"against\": \"base\", \"as\": \"saving_pct\", \"over\": \"geomean\"",
         38.76275643042054},
        {SEL("good", "energy_j") ", \"against\": \"base\", \"as\": \"saving_pct\", \"variant\": \"off\"", 90},
        {SEL("good", "energy_j") ", \"against\": \"base\", \"against_column\": \"makespan_s\", \"as\": \"difference\"",
         165},
        {SEL("luck:p=1", "energy_j") ", \"against\": \"good\", \"as\": \"difference\", \"over\": \"sum\"", 150},
        {SEL("good", "energy_j") ", \"where\": {\"column\": \"slowdown_pct\", \"below\": 15}", 50},
        {SEL("good", "energy_j") ", \"where\": {\"column\": \"slowdown_pct\", \"above\": 15}", 300},
        {SEL("good", "energy_j") ", \"where\": {\"column\": \"slowdown_pct\", \"above\": 12, \"below\": 15}", NAN},
        {SEL("good", "energy_j") WITHIN(1) ", \"over\": \"sum\"", 0},
        {SEL("good", "energy_j") WITHIN(1) ", \"over\": \"count_below:1e9\"", 0},
        {SEL("good", "energy_j") OF("least", "\"base\", \"luck:p=1\", \"good\""), 2},
        {SEL("luck:p=1", "energy_j") OF("least", "\"base\""), 3},
        {SEL("luck:p=1", "energy_j") OF("least", "\"base\", \"good\""), 0},
        {SEL("base", "energy_j") OF("most", "\"good\", \"luck:p=1\""), 2},
        {SEL("good", "energy_j") OF("least", "\"base\"") WITHIN(15), 1}, /* on the other it is too slow itself */
        {SEL("base", "energy_j") OF("least", "\"good\"") WITHIN(15), 1}, /* where good is too slow */
        {SEL("base", "energy_j") OF("least", "\"good\", \"luck:p=1\"") WITHIN(15), 0},
        {SEL("base", "makespan_s") OF("least", "\"luck:p=1\""), 2}, /* a tie */
        {SEL("base", "makespan_s") OF("most", "\"luck:p=1\""), 2},
        {SEL("good", "energy_j") OF("most", "\"luck:p=1\"") ", \"against\": \"base\", \"as\": \"saving_pct\"", 2},
        {SEL("good", "energy_j") OF("least", "\"luck:p=1\"") ", \"against\": \"base\", \"as\": \"saving_pct\"", 0},
        {SEL("good", "energy_j") OF("least", "\"luck:p=1\"") ", \"against\": \"base\", \"as\": \"change_pct\"", 2},
        {SEL("good", "energy_j") OF("least", "\"base\"") ", \"variant\": \"off\"", 1},
    };
    fl_comparison c = rows();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[1024];
        fl_experiment e = {0};
        fl_published *p = NULL;
        fl_diag d = {0};
        snprintf(text, sizeof text, LINE("1", "%s", ""), table[i].selection);
        fl_status s = open_text(text, &e, &p, &d);
        s = s ? s : fl_published_solve(p, &c, &d);
        FL_CHECK(s == FL_OK, "row %zu: %s", i, d.message);
        cJSON *out = s ? NULL : fl_published_json(p);
        const cJSON *value = cJSON_GetObjectItem(cJSON_GetArrayItem(out, 0), "simulated");
        const bool right = isnan(table[i].value) ? cJSON_IsNull(value)
                                                 : cJSON_IsNumber(value) && fabs(value->valuedouble - table[i].value) <=
                                                                                1e-9 * fabs(table[i].value);
        FL_CHECK(right, "row %zu, %s: %.15g", i, table[i].selection, value ? value->valuedouble : (double)NAN);
        cJSON_Delete(out);
        fl_published_free(p);
        fl_experiment_free(&e);
    }
    fl_comparison_free(&c);
}

static void test_gates(void) {
    static const struct {
        const char *published, *gate;
        bool holds;
    } table[] = {
        {"170", "\"above\": 174", true},
        {"170", "\"above\": 175", false},
        {"170", "\"below\": 176", true},
        {"170", "\"below\": 175", false},
        {"170", "\"within\": 5", true},
        {"170", "\"within\": 4.9", false},
        {"180", "\"within\": 5", true},
        {"[160, 174]", "\"within\": 1", true},
        {"[160, 174]", "\"within\": 0.9", false},
        {"[160, 180]", "\"within\": 0", true},
        {"200", "\"within_pct\": 12.5", true},
        {"200", "\"within_pct\": 12", false},
        {"null", "\"above\": {" SEL("base", "energy_j") "}", false},
        {"null", "\"below\": {" SEL("base", "energy_j") "}", true},
        {"1", "\"above\": 100, \"below\": 150", false},
        {"1", "\"above\": 100, \"below\": 200", true},
        {"null", "\"above\": 49, \"errors\": 1", true}, /* 50 and 300: 175 +- 125 */
        {"null", "\"above\": 51, \"errors\": 1", false},
        {"null", "\"below\": 301, \"errors\": 1", true},
        {"null", "\"below\": 299, \"errors\": 1", false},
        {"null", "\"below\": 426, \"errors\": 2", true},
        {"null", "\"below\": 424, \"errors\": 2", false},
        {"170", "\"within\": 131, \"errors\": 1", true},
        {"170", "\"within\": 129, \"errors\": 1", false},
        {"100", "\"within_pct\": 201, \"errors\": 1", true},
        {"100", "\"within_pct\": 199, \"errors\": 1", false},
    };
    fl_comparison c = rows();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[1024];
        fl_experiment e = {0};
        fl_published *p = NULL;
        fl_diag d = {0};
        snprintf(text, sizeof text, LINE("%s", SEL("good", "energy_j"), ", \"gate\": {%s}"), table[i].published,
                 table[i].gate);
        fl_status s = open_text(text, &e, &p, &d);
        s = s ? s : fl_published_solve(p, &c, &d);
        FL_CHECK(s == FL_OK && fl_published_failed(p) == !table[i].holds, "row %zu, %s of %s: %s", i, table[i].gate,
                 table[i].published, s ? d.message : "wrong");
        fl_published_free(p);
        fl_experiment_free(&e);
    }
    fl_comparison_free(&c);
}

/* ---- drawn applications, and activity records that cost ---- */

static fl_row_result drawn(const char *draw, const char *workload, const char *policy, double energy) {
    fl_row_result r = row(workload, policy, NULL, 1, energy, 10);
    r.draw = draw;
    if (!strcmp(policy, "base"))
        return r;
    r.records = !strcmp(policy, "plain") ? NULL : strchr(policy, '(') ? "free" : "cost";
    r.twin_of = strchr(policy, '(') ? "good" : NULL;
    return r;
}

/* Two draws of two workloads. A baseline belongs to its own draw; a twin stands in the place of its policy. */
static fl_comparison draws(void) {
    const fl_row_result all[] = {
        drawn("3", "one", "base", 100),
        drawn("3", "two", "base", 400),
        drawn("3", "one", "good", 50),
        drawn("3", "two", "good", 300),
        drawn("3", "one", "good (records free)", 40),
        drawn("3", "two", "good (records free)", 200),
        drawn("7", "one", "base", 10),
        drawn("7", "two", "base", 1000),
        drawn("7", "one", "good", 8),
        drawn("7", "two", "good", 400),
        drawn("7", "one", "good (records free)", 7),
        drawn("7", "two", "good (records free)", 300),
        drawn("3", "one", "plain", 60),
        drawn("3", "one", "lone", 10),
        drawn("7", "one", "plain", 9),
        drawn("7", "one", "lone", 5),
    };
    fl_comparison c = {0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        fl_comparison_add(&c, &all[i]);
    c.mean_first = c.count;
    return c;
}

static double number_of(const cJSON *line, const char *key) {
    const cJSON *at = cJSON_GetObjectItem(line, key);
    return cJSON_IsNumber(at) ? at->valuedouble : (double)NAN;
}

static void test_draws(void) {
    static const struct {
        const char *selection;
        double first, second, all, spared;
    } table[] = {
        {SEL("good", "energy_j"), 175, 204, 189.5, (120 + 153.5) / 2},
        {SEL("good", "energy_j") ", \"over\": \"sum\", \"draws\": \"max\"", 350, 408, 408, 307},
        {SEL("good", "energy_j") ", \"over\": \"count_below:100\", \"draws\": \"min\"", 1, 1, 1, 1},
        {SEL("g*", "energy_j") ", \"over\": \"max\", \"draws\": \"sum\"", 300, 400, 700, 500},
        {SEL("good", "energy_j") ", \"against\": \"base\", \"as\": \"saving_pct\"", 37.5, 40, 38.75, 52.5},
        {SEL("base", "energy_j"), 250, 505, 377.5, NAN},
        {SEL("plain", "energy_j") ", \"against\": \"good\", \"as\": \"difference\"", 10, 1, 5.5, 11}, /* of its twin */
        {SEL("plain", "energy_j") ", \"against\": \"lone\", \"as\": \"difference\"", 50, 4, 27, NAN}, /* has none */
    };
    fl_comparison c = draws();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[1024];
        fl_experiment e = {0};
        fl_published *p = NULL;
        fl_diag d = {0};
        snprintf(text, sizeof text, LINE("1", "%s", ", \"by_draw\": \"column\""), table[i].selection);
        fl_status s = open_text(text, &e, &p, &d);
        s = s ? s : fl_published_solve(p, &c, &d);
        FL_CHECK(s == FL_OK, "row %zu: %s", i, d.message);
        cJSON *out = s ? NULL : fl_published_json(p);
        const cJSON *line = cJSON_GetArrayItem(out, 0), *each = cJSON_GetObjectItem(line, "by_draw");
        const double spared = number_of(line, "simulated_records_free");
        FL_CHECK(fabs(number_of(each, "3") - table[i].first) < 1e-9 &&
                     fabs(number_of(each, "7") - table[i].second) < 1e-9 &&
                     fabs(number_of(line, "simulated") - table[i].all) < 1e-9,
                 "row %zu: %g, %g, %g", i, number_of(each, "3"), number_of(each, "7"), number_of(line, "simulated"));
        FL_CHECK(isnan(table[i].spared) ? isnan(spared) : fabs(spared - table[i].spared) < 1e-9, "row %zu: %g free", i,
                 spared);
        char *shown = NULL;
        size_t size;
        FILE *f = open_memstream(&shown, &size);
        if (!s)
            fl_published_print(p, true, f);
        fclose(f);
        FL_CHECK(strstr(shown, "draw") && strstr(shown, "column") && strstr(shown, " 7 "), "row %zu: %s", i, shown);
        free(shown);
        cJSON_Delete(out);
        fl_published_free(p);
        fl_experiment_free(&e);
    }
    fl_comparison_free(&c);
}

/* Three draws of good: 100, 160 and 340 J, 200 on the mean; of base 120, 150 and 320. */
static fl_comparison three_draws(void) {
    static const struct {
        const char *draw;
        double good, base;
    } of[] = {{"1", 100, 120}, {"2", 160, 150}, {"3", 340, 320}};
    fl_comparison c = {0};
    for (size_t i = 0; i < 3; i++) {
        const fl_row_result pair[] = {drawn(of[i].draw, "one", "good", of[i].good),
                                      drawn(of[i].draw, "one", "base", of[i].base)};
        for (size_t k = 0; k < 2; k++)
            fl_comparison_add(&c, &pair[k]);
    }
    c.mean_first = c.count;
    return c;
}

/* Each draw is judged by its own numbers: what cancels over draws does not hold. */
static void test_gates_by_draw(void) {
    static const struct {
        const char *published, *gate, *shown;
        bool holds;
    } table[] = {
        {"200", "\"within\": 39", "within 39 on 0 of 3 draws", false}, /* the mean is 200 */
        {"130", "\"within\": 30", "within 30 on 2 of 3 draws", true},  /* and here 70 off */
        {"130", "\"within\": 30, \"draws\": \"most\"", "within 30 on 2 of 3 draws", true},
        {"130", "\"within\": 30, \"draws\": \"all\"", "within 30 on 2 of 3 draws, all asked for", false},
        {"130", "\"within\": 210, \"draws\": \"all\"", "within 210 on 3 of 3 draws, all asked for", true},
        {"[100, 160]", "\"within\": 0", "within 0 on 2 of 3 draws", true},
        {"200", "\"within_pct\": 25", "within 25 % on 1 of 3 draws", false},
        {"null", "\"above\": 150", "above 150 on 2 of 3 draws", true},
        {"null", "\"above\": 170", "above 170 on 1 of 3 draws", false},
        /* Of its own draw: against the mean of base, 196.7 J, one would be above and two below. */
        {"null", "\"above\": {" SEL("base", "energy_j") "}", "above 196.67 on 2 of 3 draws", true},
        {"null", "\"below\": {" SEL("base", "energy_j") "}", "below 196.67 on 1 of 3 draws", false},
        {"null", "\"above\": 106}, \"share_of\": {" SEL("base", "energy_j"), "above 106 on 2 of 3 draws", true},
    };
    fl_comparison c = three_draws();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[1024];
        fl_experiment e = {0};
        fl_published *p = NULL;
        fl_diag d = {0};
        snprintf(text, sizeof text, LINE("%s", SEL("good", "energy_j"), ", \"gate\": {%s}"), table[i].published,
                 table[i].gate);
        fl_status s = open_text(text, &e, &p, &d);
        s = s ? s : fl_published_solve(p, &c, &d);
        FL_CHECK(s == FL_OK, "row %zu: %s", i, d.message);
        cJSON *out = s ? NULL : fl_published_json(p);
        const char *shown = cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(out, 0), "gate"));
        FL_CHECK(shown && !strcmp(shown, table[i].shown), "row %zu: %s", i, shown ? shown : "nothing");
        FL_CHECK(!s && fl_published_failed(p) == !table[i].holds, "row %zu", i);
        cJSON_Delete(out);
        fl_published_free(p);
        fl_experiment_free(&e);
    }
    fl_comparison_free(&c);
}

/* A value as a share of another, before it meets a gate. */
static void test_share_of(void) {
    fl_comparison c = rows();
    fl_experiment e = {0};
    fl_published *p = NULL;
    fl_diag d = {0};
    fl_status s =
        open_text(LINE("70", SEL("good", "energy_j") ", \"over\": \"sum\"",
                       ", \"share_of\": {" SEL("base", "energy_j") ", \"over\": \"sum\"}, \"gate\": {\"within\": 0}"),
                  &e, &p, &d);
    s = s ? s : fl_published_solve(p, &c, &d);
    FL_CHECK(s == FL_OK && fl_published_failed(p) == 0, "%s", s ? d.message : "350 of 500 is not 70 %");
    fl_published_free(p);
    fl_experiment_free(&e);
    fl_comparison_free(&c);
}

/* One entry of an experiment stands for several policies; each is held against the one with its own parameters. */
static void test_ladder(void) {
    const fl_texts names = {.item = (const char *[]){"a:m=1", "a:m=2", "b:m=2", "b:m=1"}, .count = 4};
    const fl_row_result all[] = {row("one", "a:m=1", NULL, 1, 10, 1), row("one", "a:m=2", NULL, 1, 20, 1),
                                 row("one", "b:m=2", NULL, 1, 5, 1), row("one", "b:m=1", NULL, 1, 4, 1)};
    fl_comparison c = {0};
    fl_experiment e = {0};
    fl_published *p = NULL;
    fl_result_tables *t = NULL;
    fl_diag d = {0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        fl_comparison_add(&c, &all[i]);
    c.mean_first = c.count;
    const char *text = "{\"foldline_experiment\": 1, \"published\": [" LINE(
        "6", SEL("a:*", "energy_j") ", \"over\": \"min\", \"against\": \"b:*\", \"as\": \"difference\"",
        ", \"gate\": {\"within\": 0}") "],\n\"tables\": [{\"title\": \"t\", \"each\": {\"column\": \"energy_j\"},"
                                       "\"columns\": {\"1\": {\"+policy\": \":m=1\"}, \"2\": {\"+policy\": \":m=2\"}},"
                                       "\"rows\": {\"a\": {\"policy\": \"a\"}, \"b\": {\"policy\": \"b\"}}}]}";
    fl_status s = fl_experiment_open(fl_temp_text("e.json", text), &e, &d);
    s = s ? s : fl_published_open(&e, &names, &p, &d);
    s = s ? s : fl_published_solve(p, &c, &d);
    FL_CHECK(s == FL_OK && fl_published_failed(p) == 0, "%s", s ? d.message : "not 10 - 4");
    s = s ? s : fl_result_tables_open(&e, &names, &t, &d);
    s = s ? s : fl_result_tables_solve(t, &c, &d);
    cJSON *out = s ? NULL : fl_result_tables_json(t);
    char *shown = cJSON_PrintUnformatted(out);
    FL_CHECK(shown && strstr(shown, "{\"a\":{\"1\":10,\"2\":20},\"b\":{\"1\":4,\"2\":5}}"), "%s",
             shown ? shown : d.message);
    free(shown);
    cJSON_Delete(out);
    fl_result_tables_free(t);
    fl_published_free(p);
    fl_experiment_free(&e);
    fl_comparison_free(&c);
}

static fl_status open_tables(const char *tables, fl_experiment *e, fl_result_tables **t, fl_diag *d) {
    char text[2048];
    const fl_texts policies = {.item = (const char **)labels, .count = 3};
    snprintf(text, sizeof text, "{\"foldline_experiment\": 1, \n\"tables\": [%s]}", tables);
    fl_status s = fl_experiment_open(fl_temp_text("e.json", text), e, d);
    return s ? s : fl_result_tables_open(e, &policies, t, d);
}

/* Cells are made of what the table, the column and the row say; the row's word counts most. */
static void test_tables(void) {
    fl_comparison c = rows();
    fl_experiment e = {0};
    fl_result_tables *t = NULL;
    fl_diag d = {0};
    fl_status s =
        open_tables("{\"title\": \"energies\", \"each\": {\"policy\": \"base\", \"column\": \"energy_j\"},"
                    "\"columns\": {\"1\": {\"workload\": \"one\"}, \"2\": {\"workload\": \"two\"}},"
                    "\"rows\": {\"base\": {}, \"good\": {\"policy\": \"good\"}, \"first\": {\"workload\": \"one\"},"
                    "\"unknown\": {\"column\": \"cpu_energy_j\"}}}",
                    &e, &t, &d);
    s = s ? s : fl_result_tables_solve(t, &c, &d);
    FL_CHECK(s == FL_OK && t, "%s", d.message);
    cJSON *out = s ? NULL : fl_result_tables_json(t);
    char *text = cJSON_PrintUnformatted(out);
    FL_CHECK(
        text &&
            !strcmp(text,
                    "[{\"title\":\"energies\",\"rows\":{\"base\":{\"1\":100,\"2\":400},\"good\":{\"1\":50,\"2\":300},"
                    "\"first\":{\"1\":100,\"2\":100},\"unknown\":{\"1\":null,\"2\":null}}}]"),
        "%s", text ? text : "nothing");
    char *shown = NULL;
    size_t size;
    FILE *f = open_memstream(&shown, &size);
    if (f && !s)
        fl_result_tables_print(t, f);
    if (f)
        fclose(f);
    FL_CHECK(shown && strstr(shown, "energies    1    2\n") && strstr(shown, "good       50  300\n") &&
                 strstr(shown, "unknown     -    -\n"),
             "%s", shown ? shown : "nothing");
    free(shown);
    free(text);
    cJSON_Delete(out);
    fl_result_tables_free(t);
    fl_experiment_free(&e);
    fl_comparison_free(&c);
    static const struct {
        const char *tables, *expected;
    } bad[] = {
        {"{\"title\": \"t\", \"rows\": {\"a\": {}}, \"columns\": {}}", "expected both"},
        {"{\"title\": \"t\", \"rows\": {\"a\": {}}, \"columns\": {\"b\": {}}}", "policy"},
        {"{\"title\": \"t\", \"rows\": {\"a\": {" SEL("goood", "energy_j") "}}, \"columns\": {\"b\": {}}}", "'good'"},
        {"{\"title\": \"t\", \"rows\": {\"a\": 1}, \"columns\": {\"b\": {}}}", "object"},
        {"{\"title\": \"t\", \"row\": {}, \"columns\": {\"b\": {}}}", "rows"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fl_experiment wrong = {0};
        t = NULL;
        s = open_tables(bad[i].tables, &wrong, &t, &d);
        FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, bad[i].expected), "row %zu: %d %s", i, s, d.message);
        fl_result_tables_free(t);
        fl_experiment_free(&wrong);
    }
}

/* Steps are counted by the whole number that a probe showed; a step in which it showed none counts nowhere. */
static void test_steps(void) {
    static const fl_probe probes[] = {{"other", "", "", 1}, {"line", "", "", 0}};
    const fl_policy policy = {.probe = probes, .probe_count = 2};
    static const double shown[] = {4, 31, 31, (double)NAN, 4.5, -1, 63, 64, 31, 0};
    fl_watch w;
    fl_diag d = {0};
    fl_watch_open(&w, &policy, 2);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        double probe[] = {7, 31, shown[i]};
        fl_decision decision = {.probe = probe};
        FL_CHECK(fl_watch_step(&w, NULL, &decision, &d) == FL_OK, "%s", d.message);
    }
    w.node_bin[0] = 2; /* windows by mean power */
    w.node_bin[300] = 5;
    w.node_bin[FL_WATCH_BINS - 1] = 1;
    w.gpu_bin[299] = 8;
    w.windows = 8;
    fl_watch_end(&w);
    FL_CHECK(!w.probe_bin && !w.node_bin && !w.gpu_bin && w.node_met.count == 3, "lists instead of tables");
    fl_watch_end(&w);
    FL_CHECK(w.node_met.count == 3, "ended already");
    static const struct {
        const char *name;
        double value;
    } rows[] = {{"steps:line@31", 3},   {"steps:line@4", 1},   {"steps:line@4-31", 4}, {"steps:line@63", 1},
                {"steps:line@5-30", 0}, {"steps:other@7", 10}, {"probe:line", 0},      {"steps:lin@31", (double)NAN},
                {"steps:line@0-63", 6}, {"over_node@0", 100},  {"over_node@300", 75},  {"over_node@300.5", 12.5},
                {"over_gpu@299", 100},  {"over_gpu@299.5", 0}};
    const fl_run_result none = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value = -1;
        FL_CHECK(fl_measure(&none, &w, rows[i].name, &value, &d) == FL_OK &&
                     (isnan(rows[i].value) ? isnan(value) : value == rows[i].value),
                 "%s: %g", rows[i].name, value);
    }
    double value;
    FL_CHECK(fl_measure(&none, &w, "steps:line", &value, &d) == FL_BAD_INPUT, "steps without a value");
    fl_watch_free(&w);
}

/* A number that is not known holds no gate. */
static void test_unknown(void) {
    fl_comparison c = rows();
    fl_experiment e = {0};
    fl_published *p = NULL;
    fl_diag d = {0};
    fl_status s = open_text(LINE("1", SEL("good", "cpu_energy_j"), ", \"gate\": {\"below\": 1e9}"), &e, &p, &d);
    s = s ? s : fl_published_solve(p, &c, &d);
    FL_CHECK(s == FL_OK && fl_published_failed(p) == 1, "%s", d.message);
    fl_published_free(p);
    fl_experiment_free(&e);
    fl_comparison_free(&c);
}

static void test_refusals(void) {
    static const struct {
        const char *line, *expected;
    } table[] = {
        {LINE("1", SEL("goood", "energy_j"), ""), "did you mean 'good'"},
        {LINE("1", SEL("good", "energyj"), ""), "did you mean 'energy_j'"},
        {LINE("1", SEL("good", "sm_shar@1"), ""), "sm_share@"},
        {LINE("1", SEL("good", "energy_j") ", \"over\": \"meen\"", ""), "count_below"},
        {LINE("1", SEL("good", "energy_j") ", \"over\": \"count_below\"", ""), "count_below:X"},
        {LINE("1", SEL("good", "energy_j") ", \"against\": \"base\"", ""), "belong together"},
        {LINE("1", SEL("good", "energy_j") ", \"against\": \"base\", \"as\": \"saving\"", ""), "saving_pct"},
        {LINE("1", SEL("good", "energy_j"), ", \"gate\": {\"over\": 1}"), "unknown"},
        {LINE("1", SEL("good", "energy_j"), ", \"gate\": {\"above\": 1, \"draws\": \"al\"}"), "did you mean 'all'"},
        {LINE("1", SEL("good", "energy_j") ", \"where\": {\"column\": \"slowdown_pct\"}", ""), "above or below"},
        {LINE("1", SEL("good", "energy_j") ", \"where\": {\"column\": \"slow\", \"below\": 1}", ""), "'slow'"},
        {LINE("1", SEL("good", "energy_j") ", \"where\": {\"column\": \"energy_j\", \"over\": 1}", ""), "over"},
        {LINE("1", SEL("good", "energy_j") ", \"least_of\": [\"bas\"]", ""), "did you mean 'base'"},
        {LINE("1", SEL("good", "energy_j") ", \"least_of\": []", ""), "at least one"},
        {LINE("1", SEL("good", "energy_j") ", \"least_of\": [1]", ""), "expected a text"},
        {LINE("1", SEL("good", "energy_j") ", \"least_of\": [\"base\"], \"most_of\": [\"base\"]", ""), "one of them"},
        {LINE("null", SEL("good", "energy_j"), ", \"gate\": {\"within\": 1}"), "published number"},
        {LINE("1", SEL("good", "energy_j"), ", \"gate\": {\"errors\": 2}"), "no mean, or of no bound"},
        {LINE("1", SEL("good", "energy_j") ", \"over\": \"max\"", ", \"gate\": {\"above\": 1, \"errors\": 2}"),
         "no mean, or of no bound"},
        {LINE("[2, 1]", SEL("good", "energy_j"), ""), "expected"},
        {LINE("[2]", SEL("good", "energy_j"), ""), "[low, high]"},
        {"{\"quantity\": \"q\", \"published\": 1, \"gate\": {\"above\": 1}}", "simulated"},
        {"{\"published\": 1}", "quantity"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        fl_experiment e = {0};
        fl_published *p = NULL;
        fl_diag d = {0};
        fl_status s = open_text(table[i].line, &e, &p, &d);
        FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, table[i].expected) && d.line > 0, "row %zu: %d, line %lld: %s",
                 i, s, (long long)d.line, d.message);
        fl_published_free(p);
        fl_experiment_free(&e);
    }
    fl_comparison c = rows();
    fl_experiment e = {0};
    fl_published *p = NULL;
    fl_diag d = {0};
    fl_status s = open_text(LINE("1", SEL("good", "energy_j") ", \"workload\": \"three\"", ""), &e, &p, &d);
    FL_CHECK(s == FL_OK && fl_published_solve(p, &c, &d) == FL_BAD_INPUT && strstr(d.message, "no row"), "%s",
             d.message);
    fl_published_free(p);
    fl_experiment_free(&e);
    fl_comparison_free(&c);
}

static void test_clean_up(void) { fl_temp_remove(); }

FL_SUITE("result_table", {"means", test_means}, {"values", test_values}, {"gates", test_gates}, {"draws", test_draws},
         {"gates by draw", test_gates_by_draw}, {"share of", test_share_of}, {"ladder", test_ladder},
         {"tables", test_tables}, {"steps", test_steps}, {"unknown values", test_unknown}, {"refusals", test_refusals},
         {"clean up", test_clean_up})
