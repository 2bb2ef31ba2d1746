/* Verdicts on published results: each of the five, what differs from the record, the score, and what is printed first.
 */
#include "harness/base/cli/cli.h"
#include "harness/input/experiment/experiment.h"
#include "harness/study/compare/compare.h"
#include "harness/study/compare/inside.h"
#include "harness/study/trial/trial.h"
#include "traces/io/io.h"

#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>

/* "ours" has four seeds: 100 J on average, deviation sqrt(40/3) = 3.651 J, standard error 1.826 J. A mean of ten such
 * runs differs from ours by less than 1.96 sqrt(3.651^2/10 + 1.826^2) = 4.234 J, at 95 %. "knob" has 90 J where its
 * unpublished m is 1, and 110 and 120 J where it is 2 and 3. */
static fl_comparison rows(void) {
    static const struct {
        const char *policy;
        uint64_t seed;
        double energy;
    } all[] = {{"ours", 1, 96},     {"ours", 2, 98},      {"ours", 3, 102},    {"ours", 4, 104},
               {"knob:m=1", 1, 90}, {"knob:m=2", 1, 110}, {"knob:m=3", 1, 120}};
    fl_comparison c = {0};
    for (size_t i = 0; i < FL_COUNT(all); i++) {
        const fl_row_result row = {.workload = "w",
                                   .policy = all[i].policy,
                                   .seed = all[i].seed,
                                   .score = {.energy_j = all[i].energy, .makespan_s = 1}};
        fl_comparison_add(&c, &row);
    }
    c.mean_first = c.count;
    return c;
}

static fl_status open_text(const char *lines, const char *more, fl_experiment *e, fl_published **p, fl_diag *d) {
    static const char *labels[] = {"ours", "knob:m=1", "knob:m=2", "knob:m=3"};
    const fl_texts policies = {.item = labels, .count = FL_COUNT(labels)};
    char text[8192];
    snprintf(text, sizeof text, "{\"foldline_experiment\": 1, \"about\": \"a paper\"%s,\n\"published\": [%s]}", more,
             lines);
    fl_status s = fl_experiment_open(fl_temp_text("e.json", text), e, d);
    return s ? s : fl_published_open(e, &policies, p, d);
}

#define OURS "\"simulated\": {\"policy\": \"ours\", \"column\": \"energy_j\"}"
#define KNOB "\"simulated\": {\"policy\": \"knob:m=1\", \"column\": \"energy_j\"}"
#define LINE(name, unit, published, rest)                                                                              \
    "{\"quantity\": \"" name "\", \"unit\": \"" unit "\", \"published\": " published ", " rest "}"
#define RECORDED(verdict) ", \"verdict\": \"" verdict "\""
#define BECAUSE ", \"because\": \"why\""
#define REPRODUCED_ "reproduced"
#define SAMPLING_ "within the sampling error"
#define INPUT_ "depends on an unpublished input"
#define CONTRADICTS_ "contradicts another number"
#define NOT_ "not reproduced"

static void test_verdicts(void) {
    static const struct {
        const char *published, *rest, *verdict;
        bool differs;
    } table[] = {
        {"100", OURS ", \"gate\": {\"within\": 0}", REPRODUCED_, false},
        {"103", OURS ", \"gate\": {\"within\": 2}", NOT_, true},
        {"103", OURS ", \"gate\": {\"within\": 2}" RECORDED(NOT_) BECAUSE, NOT_, false},
        {"102", OURS ", \"gate\": {\"within\": 2}" RECORDED(NOT_) BECAUSE, REPRODUCED_, true},
        {"103", OURS ", \"gate\": {\"within\": 2}" RECORDED(CONTRADICTS_) BECAUSE, CONTRADICTS_, false},
        {"102", OURS ", \"gate\": {\"within\": 2}" RECORDED(CONTRADICTS_) BECAUSE, REPRODUCED_, true},
        /* ten repetitions are off by up to 4.234 J */
        {"104.2", OURS ", \"gate\": {\"within\": 0, \"repetitions\": 10}" RECORDED(SAMPLING_), SAMPLING_, false},
        {"104.3", OURS ", \"gate\": {\"within\": 0, \"repetitions\": 10}" RECORDED(SAMPLING_), NOT_, true},
        {"100", OURS ", \"gate\": {\"within\": 0, \"repetitions\": 10}" RECORDED(SAMPLING_), REPRODUCED_, true},
        {"104.2", OURS ", \"gate\": {\"within\": 0, \"repetitions\": 10}", SAMPLING_, true},
        {"104.2", OURS ", \"gate\": {\"within\": 0, \"repetitions\": 10}" RECORDED(NOT_) BECAUSE, SAMPLING_, true},
        {"104.2", OURS ", \"gate\": {\"within\": 0, \"repetitions\": 11}" RECORDED(SAMPLING_), NOT_, true},
        {"null", OURS ", \"gate\": {\"above\": 104.2, \"repetitions\": 10}" RECORDED(SAMPLING_), SAMPLING_, false},
        {"null", OURS ", \"gate\": {\"above\": 104.3, \"repetitions\": 10}" RECORDED(SAMPLING_), NOT_, true},
        {"null", OURS ", \"gate\": {\"below\": 95.8, \"repetitions\": 10}" RECORDED(SAMPLING_), SAMPLING_, false},
        {"null", OURS ", \"gate\": {\"below\": 95.7, \"repetitions\": 10}" RECORDED(SAMPLING_), NOT_, true},
        /* by two standard errors of the mean it is not decided; a mean of ten may be on either side */
        {"null", OURS ", \"gate\": {\"above\": 99, \"errors\": 2, \"repetitions\": 10}" RECORDED(SAMPLING_), SAMPLING_,
         false},
        {"null", OURS ", \"gate\": {\"above\": 96, \"errors\": 2, \"repetitions\": 10}", REPRODUCED_, false},
        /* an input that nobody published */
        {"null",
         KNOB ", \"gate\": {\"above\": 100}, \"holds_at\": [{\"policy\": \"knob:m=2\"}]" RECORDED(INPUT_) BECAUSE,
         INPUT_, false},
        {"null",
         KNOB ", \"gate\": {\"above\": 115}, \"holds_at\": [{\"policy\": \"knob:m=2\"}, "
              "{\"policy\": \"knob:m=3\"}]" RECORDED(INPUT_) BECAUSE,
         NOT_, true},
        {"null",
         KNOB ", \"gate\": {\"above\": 80}, \"holds_at\": [{\"policy\": \"knob:m=2\"}]" RECORDED(INPUT_) BECAUSE,
         REPRODUCED_, true},
        {"null", KNOB ", \"gate\": {\"above\": 100}, \"holds_at\": [{\"policy\": \"knob:m=2\"}]" RECORDED(NOT_) BECAUSE,
         INPUT_, true},
        {"110", KNOB ", \"gate\": {\"within\": 0}, \"holds_at\": [{\"policy\": \"knob:m=2\"}]" RECORDED(INPUT_) BECAUSE,
         INPUT_, false},
        /* calibrated lines are no predictions, but they may not change unseen */
        {"103", OURS ", \"kind\": \"calibrated\", \"gate\": {\"within\": 2}", NOT_, true},
        /* a number that is not known holds no gate */
        {"1", "\"simulated\": {\"policy\": \"ours\", \"column\": \"cpu_energy_j\"}, \"gate\": {\"below\": 1e9}", NOT_,
         true},
    };
    fl_comparison c = rows();
    for (size_t i = 0; i < FL_COUNT(table); i++) {
        char text[1024];
        fl_experiment e = {0};
        fl_published *p = NULL;
        fl_diag d = {0};
        snprintf(text, sizeof text, LINE("q", "J", "%s", "%s"), table[i].published, table[i].rest);
        fl_status s =
            open_text(text, ", \"calibrated\": [{\"what\": \"w\", \"to\": \"t\", \"before\": \"b\"}]", &e, &p, &d);
        s = s ? s : fl_published_solve(p, &c, &d);
        FL_CHECK(s == FL_OK, "row %zu: %s", i, d.message);
        cJSON *out = s ? NULL : fl_published_json(p);
        const char *verdict = cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(out, 0), "verdict"));
        FL_CHECK(verdict && !strcmp(verdict, table[i].verdict), "row %zu: %s, expected %s", i,
                 verdict ? verdict : "nothing", table[i].verdict);
        FL_CHECK(!s && fl_published_failed(p) == table[i].differs, "row %zu: differs is wrong", i);
        cJSON_Delete(out);
        fl_published_free(p);
        fl_experiment_free(&e);
    }
    fl_comparison_free(&c);
}

/* Errors by hand: 0 in the range, 1, 2, 4 and 8 points of a percentage, and 25 % of 80 J. In order 0 1 2 4 8 25: the
 * median is 3, and the 90th percentile is half way between the fifth and the sixth, 16.5. */
static const char scored[] = LINE("claim one", "%",
                                  "101", OURS ", \"block\": \"claim\", \"gate\": {\"within\": 1}") "," LINE("claim two",
                                                                                                            "%", "102",
                                                                                                            OURS
                                                                                                            ", "
                                                                                                            "\"block\":"
                                                                                                            " \"claim\""
                                                                                                            ", "
                                                                                                            "\"gate\": "
                                                                                                            "{\"within"
                                                                                                            "\": "
                                                                                                            "1"
                                                                                                            "}" RECORDED(NOT_) BECAUSE) "," LINE("claim three of this system, by a long name", "J", "1000", OURS ", \"block\": \"claim\", \"kind\": \"calibrated\"") "," LINE("detail four", "points of time", "96", OURS) "," LINE("detail five", "%", "92", OURS ", \"gate\": {\"above\": 99}") "," LINE("detail six", "J", "80", OURS ", \"gate\": {\"within\": 1}" RECORDED(CONTRADICTS_) BECAUSE) "," LINE("detail seven", "J", "[90, 110]",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                 OURS) "," LINE("detail eight",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                "J",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                "null", OURS ", \"gate\": {\"above\": 99}") "," LINE("a report",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     "J",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     "null", OURS) "," LINE("not simulated",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            "J",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            "7",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            "\"note\": \"a note\"") "," LINE("an input", "J",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             "500",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             OURS ", \"block\": \"input\"") "," LINE("taken",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     "J", "600", OURS ", \"kind\": \"input\"");
static const char chosen[] =
    ", \"assumed\": [\"much\"], \"calibrated\": [{\"what\": \"one\", \"to\": \"a figure\", "
    "\"before\": \"5 J\"}, {\"what\": \"two\", \"count\": 2, \"to\": \"b\", \"before\": \"c\"}]";

static char *printed(const fl_published *p, bool all) {
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fl_published_print(p, all, f);
    fclose(f);
    return text;
}

static void test_score(void) {
    setenv("COLUMNS", "200", 1);
    fl_comparison c = rows();
    fl_experiment e = {0};
    fl_published *p = NULL;
    fl_diag d = {0};
    fl_status s = open_text(scored, chosen, &e, &p, &d);
    s = s ? s : fl_published_solve(p, &c, &d);
    FL_CHECK(s == FL_OK, "%s", d.message);
    if (s)
        return;
    const published_score score = fl_published_score(p);
    FL_CHECK(score.predictions == 7 && score.numbers == 6 && score.untested == 2 && score.verdict[REPRODUCED] == 3 &&
                 score.verdict[NOT_REPRODUCED] == 1 && score.verdict[CONTRADICTS] == 1,
             "%zu predictions, %zu numbers, %zu without a test, %zu reproduced", score.predictions, score.numbers,
             score.untested, score.verdict[REPRODUCED]);
    FL_CHECK(fabs(score.median - 3) < 1e-9 && fabs(score.p90 - 16.5) < 1e-9, "median %g, 90th percentile %g",
             score.median, score.p90);
    FL_CHECK(score.calibrated == 3 && score.in_view == 1, "%lld calibrated, %zu in view", (long long)score.calibrated,
             score.in_view);
    static const struct {
        const char *text;
        bool first;
    } says[] = {
        {"a paper\n\nclaims of the system", true},
        {"claim one", true},
        {"not reproduced: claim two: why\n", true},
        {"  calibrated\n", true},
        {"score: 7 predictions: reproduced 3, contradicts another number 1, not reproduced 1, without a test 2\n", true},
        {"error of 6 published numbers: median 3, 90th percentile 16.5 (in percent;", true},
        {"calibrated: 3 numbers; ", true},
        {"rivals and details  unit", false},
        {"detail five ", false},
        {"contradicts another number: detail six: why\n", false},
        {"an input ", false},
        {"note: not simulated: a note\n", false},
        {"calibrated: one, to a figure; before: 5 J\n", false},
        {"assumed: much\n", false}};
    char *first = printed(p, false), *all = printed(p, true);
    for (size_t i = 0; i < FL_COUNT(says); i++)
        FL_CHECK(strstr(all, says[i].text) && (strstr(first, says[i].text) != NULL) == says[i].first, "'%s' in\n%s\n%s",
                 says[i].text, first, all);
    FL_CHECK(fl_published_failed(p) == 0, "%zu differ", fl_published_failed(p));
    free(first);
    setenv("COLUMNS", "60", 1);
    first = printed(p, false);
    FL_CHECK(strstr(first, "  calibrated\nby a long name, J\n"), "%s", first);
    for (const char *line = first, *end; (end = strchr(line, '\n')); line = end + 1)
        FL_CHECK(end - line <= 60, "a line of %td columns in\n%s", end - line, first);
    unsetenv("COLUMNS");
    free(first);
    free(all);
    fl_published_free(p);
    fl_experiment_free(&e);
    fl_comparison_free(&c);
}

/* A detail that comes out otherwise stands on the first screen. */
static void test_surprise(void) {
    setenv("COLUMNS", "200", 1);
    fl_comparison c = rows();
    fl_experiment e = {0};
    fl_published *p = NULL;
    fl_diag d = {0};
    fl_status s = open_text(
        LINE("claim", "J", "100", OURS ", \"block\": \"claim\", \"gate\": {\"within\": 0}") "," LINE(
            "detail", "J", "100",
            OURS ", \"gate\": {\"above\": 100}") "," LINE("better", "J", "100",
                                                          OURS ", \"gate\": {\"above\": 99}" RECORDED(NOT_) BECAUSE),
        "", &e, &p, &d);
    s = s ? s : fl_published_solve(p, &c, &d);
    char *text = s ? NULL : printed(p, false);
    FL_CHECK(text && strstr(text, "not reproduced, BUT RECORDED: reproduced\n") &&
                 strstr(text, "reproduced, BUT RECORDED: not reproduced\n") && !strstr(text, "why"),
             "%s", text ? text : d.message);
    FL_CHECK(!s && fl_published_failed(p) == 2, "not 2 that differ");
    unsetenv("COLUMNS");
    free(text);
    fl_published_free(p);
    fl_experiment_free(&e);
    fl_comparison_free(&c);
}

static void test_refusals(void) {
    static const struct {
        const char *line, *expected;
    } table[] = {
        {LINE("q", "J", "1", OURS ", \"block\": \"claims\""), "did you mean 'claim'"},
        {LINE("q", "J", "1", OURS ", \"kind\": \"predict\""), "did you mean 'predicted'"},
        {LINE("q", "J", "1", OURS ", \"gate\": {\"above\": 1}, \"verdict\": \"reproduce\""),
         "did you mean 'reproduced'"},
        {LINE("q", "J", "1", OURS RECORDED(NOT_) BECAUSE), "without a gate"},
        {LINE("q", "J", "1", OURS ", \"block\": \"claim\""), "a claim without a gate"},
        {LINE("q", "J", "1", OURS ", \"block\": \"input\", \"gate\": {\"above\": 1}"), "an input with a gate"},
        {LINE("q", "J", "1", OURS ", \"kind\": \"input\", \"gate\": {\"above\": 1}"), "an input with a gate"},
        {LINE("q", "J", "1", OURS ", \"gate\": {\"above\": 1}" RECORDED(NOT_)), "expected 'because'"},
        {LINE("q", "J", "1", OURS ", \"gate\": {\"above\": 1}" BECAUSE), "expected a verdict that needs a reason"},
        {LINE("q", "J", "1", OURS ", \"gate\": {\"above\": 1}" RECORDED(SAMPLING_)), "expected 'repetitions'"},
        {LINE("q", "J", "1", OURS ", \"gate\": {\"above\": 1}" RECORDED(INPUT_) BECAUSE), "without 'holds_at'"},
        {LINE("q", "J", "1", KNOB ", \"holds_at\": [{\"policy\": \"knobs\"}]"), "no policy of this experiment"},
        {LINE("q", "J", "1", KNOB ", \"holds_at\": [1]"), "expected an object"},
        {LINE("q", "J", "1", OURS ", \"gate\": {\"repetitions\": 10}"), "no mean, or of no bound"},
        {LINE("q", "J", "1", OURS ", \"kind\": \"calibrated\""), "expected 'calibrated' of the experiment"},
        {LINE("q", "J", "1", OURS ", \"fails\": \"why\""), "fails"},
    };
    for (size_t i = 0; i < FL_COUNT(table); i++) {
        fl_experiment e = {0};
        fl_published *p = NULL;
        fl_diag d = {0};
        const fl_status s = open_text(table[i].line, "", &e, &p, &d);
        FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, table[i].expected) && d.line > 0, "row %zu: %d, line %lld: %s",
                 i, s, (long long)d.line, d.message);
        fl_published_free(p);
        fl_experiment_free(&e);
    }
    fl_temp_remove();
}

FL_SUITE("verdicts", {"verdicts", test_verdicts}, {"score", test_score}, {"surprise", test_surprise},
         {"refusals", test_refusals})
