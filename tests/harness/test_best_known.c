#include "harness/study/trial/trial.h"
#include "sim/oracle/oracle.h"
#include "tests/support/suite.h"

#include <math.h>

/* A workload of which the clairvoyant schedule takes 100 J and 10 s. */
static fl_row_result row_of(const char *policy, double j, double regret_j) {
    return (fl_row_result){.workload = "w",
                           .policy = policy,
                           .score = {.energy_j = j,
                                     .makespan_s = 10,
                                     .regret_clairvoyant_j = regret_j,
                                     .regret_clairvoyant_pct = regret_j},
                           .oracle_gap_pct = NAN};
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-9; }

static void test_usual(void) {
    fl_row_result row[] = {row_of("baseline:clairvoyant", 100, 0), row_of("a", 105, 5), row_of("b", 90, NAN)};
    fl_best_known(row, 3, FL_MIN_ENERGY);
    FL_CHECK(near(row[1].score.regret_clairvoyant_pct, 5) && near(row[0].score.regret_clairvoyant_pct, 0), "moved");
    FL_CHECK(isnan(row[2].score.regret_clairvoyant_pct), "one that breaks the bound is no reference");
    FL_CHECK(!row[0].note[0] && !row[1].note[0] && !row[2].note[0], "a note without a reason");
}

static void test_policy(void) {
    fl_row_result row[] = {row_of("baseline:clairvoyant", 100, 0), row_of("a", 105, 5), row_of("b", 80, -20)};
    snprintf(row[2].note, sizeof row[2].note, "extrapolated");
    fl_best_known(row, 3, FL_MIN_ENERGY);
    FL_CHECK(near(row[0].score.regret_clairvoyant_pct, 25) && near(row[0].score.regret_clairvoyant_j, 20), "%g %%",
             row[0].score.regret_clairvoyant_pct);
    FL_CHECK(near(row[1].score.regret_clairvoyant_pct, 100 * 25 / 80.0), "%g %%", row[1].score.regret_clairvoyant_pct);
    FL_CHECK(near(row[2].score.regret_clairvoyant_pct, 0), "%g %%", row[2].score.regret_clairvoyant_pct);
    FL_CHECK(!strcmp(row[2].note, "extrapolated; best known, 20 % below the clairvoyant schedule"), "%s", row[2].note);
}

/* A baseline was the reference already when the rows were made: only the note is missing. */
static void test_baseline(void) {
    fl_row_result row[] = {row_of("baseline:per-kernel", 90, 0), row_of("baseline:clairvoyant", 100, 10)};
    fl_best_known(row, 2, FL_MIN_ENERGY);
    FL_CHECK(near(row[1].score.regret_clairvoyant_j, 10), "moved");
    FL_CHECK(!strcmp(row[0].note, "best known, 10 % below the clairvoyant schedule"), "%s", row[0].note);
}

/* Rows of a sweep stand alone: one below the reference cannot become that of the others, so it has no regret, for 0
 * beside theirs would tell another difference than there is. Picoseconds make no note, and no negative regret either.
 */
static void test_alone(void) {
    fl_row_result row = row_of("a", 80, -200);
    row.regret_clairvoyant_rows = 1;
    snprintf(row.note, sizeof row.note, "extrapolated");
    fl_best_known_alone(&row, FL_MIN_EDP); /* 800 J s, where the schedule has 1000 */
    FL_CHECK(isnan(row.score.regret_clairvoyant_j) && isnan(row.score.regret_clairvoyant_pct) &&
                 !row.regret_clairvoyant_rows,
             "%g", row.score.regret_clairvoyant_j);
    FL_CHECK(!strcmp(row.note, "extrapolated; 20 % below what the regrets of this file are against"), "%s", row.note);
    row = row_of("a", 100, -1e-7);
    fl_best_known_alone(&row, FL_MIN_ENERGY);
    FL_CHECK(row.score.regret_clairvoyant_j == 0 && row.score.regret_clairvoyant_pct == 0 && !row.note[0], "%s",
             row.note);
    row = row_of("a", 105, 5);
    fl_best_known_alone(&row, FL_MIN_ENERGY);
    FL_CHECK(row.score.regret_clairvoyant_j == 5 && row.score.regret_clairvoyant_pct == 5 && !row.note[0], "moved");
    row = row_of("a", 105, NAN);
    fl_best_known_alone(&row, FL_MIN_ENERGY);
    FL_CHECK(isnan(row.score.regret_clairvoyant_j) && !row.note[0], "%s", row.note);
}

static void test_printed(void) {
    char text[512] = "";
    fl_row_result row[] = {row_of("a", 80, 0), row_of("b", 90, 10)};
    for (int bounded = 0; bounded < 2; bounded++) {
        FILE *f = fmemopen(text, sizeof text, "w");
        row[1].oracle_gap_pct = bounded ? 0.25 : NAN;
        fl_best_known_print(row, 2, f);
        fclose(f);
        FL_CHECK(!!strstr(text, "certified; at the same clocks no schedule is better by more than 0.25 %") == bounded,
                 "%s", text);
    }
}

FL_SUITE("best known", {"the clairvoyant schedule is", test_usual}, {"a policy is", test_policy},
         {"a baseline is", test_baseline}, {"a row alone", test_alone}, {"printed", test_printed})
