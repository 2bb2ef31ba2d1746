/* What the files of harness/study/compare share. Other modules include the public header alone. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/study/compare/compare.h"
#include "harness/study/trial/trial.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Adds a row, which then belongs to the comparison. Distribution replays build their rows with it. */
void fl_comparison_add(fl_comparison *c, const fl_row_result *row);

/* Make another comparison of the same rows, whose means are over the seeds of each workload. Rows, texts and labels are
 * borrowed. */
void fl_comparison_apart(const fl_comparison *c, fl_comparison *apart);

/* The cumulative regret of every policy (EnergyUCB Eq. 3) as CSV: workload,policy,platform,variant,step,runs,
 * reward_regret,low,high; each thousand steps, mean over the seeds and its 95 % interval (harness/base/work/work.h), as
 * far as all runs of a policy went. */
fl_status fl_draws_write_regret(const fl_comparison *c, const char *path, uint64_t seed, fl_diag *d);

/* Published results: published_read.c fills these structs, published.c evaluates them, claims.c judges and
 * prints them. */

typedef enum form { PLAIN, SAVING_PCT, CHANGE_PCT, RATIO, DIFFERENCE, ABS_DIFFERENCE } form;
typedef enum published_over {
    MEAN,
    GEOMEAN,
    MEDIAN,
    MIN,
    MAX,
    SUM,
    ERROR,
    COUNT_BELOW,
    COUNT_ABOVE,
    DEVIATION
} published_over;

typedef struct condition { /* on a row */
    const char *column;    /* NULL: every row meets it */
    double above, below;
} condition;

typedef struct selection {
    fl_json at;
    const char *policy, *workload, *variant, *column, *against, *against_column;
    form form;
    enum published_over over;
    double limit;                   /* of the counts */
    enum published_over over_draws; /* of drawn applications: of the numbers of each draw */
    fl_json rivals;                 /* policies that a row is held against, for 1 or 0; no node: none */
    bool most;                      /* the row must have the most of them, not the least */
    condition where;
} selection;

typedef struct bound { /* one side of a gate */
    bool given;
    bool selected; /* by what, else value */
    selection what;
    double value;
    double *draw_value; /* of a selection, by draw */
} bound;

typedef enum published_block { DETAIL, CLAIM, GIVEN } published_block; /* GIVEN: inputs, what nobody can reproduce */
typedef enum published_kind { PREDICTED, CALIBRATED, TAKEN } published_kind; /* TAKEN: an input */
typedef enum published_verdict {
    REPRODUCED,
    SAMPLING_ERROR,
    UNPUBLISHED_INPUT,
    CONTRADICTS,
    NOT_REPRODUCED,
    PUBLISHED_VERDICTS
} published_verdict;

typedef struct published_line {
    const char *quantity, *unit, *note;
    const char *by_draw; /* its column in the table of draws; NULL: not there */
    published_block block;
    published_kind kind;
    published_verdict recorded, verdict; /* as the experiment says, and as computed; of a line with a gate */
    const char *because;                 /* range of the input, the other number, or the cause; NULL: none */
    selection *instead;                  /* instead_count: what "holds_at" puts in the place of simulated */
    size_t instead_count;
    double low, high;              /* published; NAN = nothing */
    selection simulated, share_of; /* share_of.policy: the value is 100 times the one over the other */
    bound above, below, within, within_pct, errors, repetitions;
    bool all_draws;           /* the gate must hold on each, not only on more than half */
    double *draw_value;       /* by draw; one number where applications are not drawn */
    double error;             /* standard error of value over its rows; NAN where the gate asks for none */
    double deviation;         /* standard deviation over its rows; NAN without "repetitions" */
    double value, value_free; /* value_free: with activity records that take no time; NAN where that is no other */
    size_t draws, draws_held; /* on how many of the draws the gate holds */
    bool holds;
} published_line;

typedef struct published_calibrated { /* numbers that were chosen so that published ones come out */
    const char *what, *to, *before;
    int64_t count;
} published_calibrated;

struct fl_published {
    published_line *line;
    size_t count;
    const char **draw; /* draw_count: of the comparison that was solved, in its order */
    size_t draw_count;
    published_calibrated *calibrated;
    size_t calibrated_count;
    const char *about; /* NULL: the experiment has none */
    fl_json assumed;
    cJSON *merged; /* what the selections of "holds_at" borrow from */
};

extern const char *const fl_block_names[3], *const fl_kind_names[3], *const fl_verdict_names[PUBLISHED_VERDICTS];

typedef struct published_score { /* over the predictions alone */
    size_t predictions, verdict[PUBLISHED_VERDICTS], untested;
    size_t numbers;     /* predictions with a published number */
    double median, p90; /* of their errors, in points where the unit is a percentage, else in percent; NAN: none */
    int64_t calibrated; /* numbers that were chosen */
    size_t in_view;     /* lines that were in view when they were chosen */
} published_score;

bool fl_published_gated(const published_line *l);

/* Set the verdict of a line whose values and bounds are known. instead: for each selection of "holds_at" the values by
 * draw. */
void fl_published_judge(const fl_published *p, published_line *l, double *const *instead);
published_score fl_published_score(const fl_published *p);

/* Make one selection of the keys of several objects. A later object overrides an earlier one, and those of their keys
 * that begin with a '+' come last. merged keeps what the selection borrows from. */
fl_status fl_published_merge(const fl_json *const *part, size_t count, const fl_json *at, cJSON *merged,
                             const fl_texts *policies, selection *s, fl_diag *d);

fl_status fl_published_value(const selection *s, const fl_comparison *c, double *value, fl_diag *d);
