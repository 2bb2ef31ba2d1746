/* The insides of published results: what published_read.c fills, published.c evaluates and published_print.c shows. */
#pragma once

#include "harness/base/cli/grid.h"
#include "harness/base/json/json.h"
#include "harness/study/compare/comparison.h"

typedef enum form { PLAIN, SAVING_PCT, CHANGE_PCT, RATIO, DIFFERENCE, ABS_DIFFERENCE } form;
typedef enum over { MEAN, GEOMEAN, MEDIAN, MIN, MAX, SUM, ERROR, COUNT_BELOW, COUNT_ABOVE } over;

typedef struct condition { /* on a row */
    const char *column;    /* NULL: every row meets it */
    double above, below;
} condition;

typedef struct selection {
    fl_json at;
    const char *policy, *workload, *variant, *column, *against, *against_column;
    form form;
    over over;
    double limit;         /* of the counts */
    enum over over_draws; /* of drawn applications: of the numbers of each draw */
    fl_json rivals;       /* policies that a row is held against, for 1 or 0; no node: none */
    bool most;            /* the row must have the most of them, not the least */
    condition where;
} selection;

typedef struct bound { /* one side of a gate */
    bool given;
    bool selected; /* by what, else value */
    selection what;
    double value;
    double *draw_value; /* of a selection, by draw */
} bound;

typedef struct line {
    const char *quantity, *unit, *note;
    const char *by_draw;           /* its column in the table of draws; NULL: not there */
    const char *fails;             /* why the gate does not hold; NULL: it must hold */
    double low, high;              /* published; NAN = nothing */
    selection simulated, share_of; /* share_of.policy: the value is 100 times the one over the other */
    bound above, below, within, within_pct, errors;
    bool all_draws;           /* the gate must hold on each, not only on more than half */
    double *draw_value;       /* by draw; one number where applications are not drawn */
    double error;             /* standard error of value over its rows; NAN where the gate asks for none */
    double value, value_free; /* value_free: with kernel records that take no time; NAN where that is no other */
    size_t draws, draws_held; /* on how many of the draws the gate holds */
    bool holds;
} line;

struct fl_published {
    line *line;
    size_t count;
    const char **draw; /* draw_count: of the comparison that was solved, in its order */
    size_t draw_count;
    fl_json assumed;
};

/* Signed distance from the published number or range; 0 inside it, NAN where there is none. */
double fl_published_difference(const line *l);
bool fl_published_gated(const line *l);
/* The gate is as the experiment says that it is: it holds, or it fails with a reason. */
bool fl_published_as_stated(const line *l);

/* What a selection says, and what it comes to. */
fl_status fl_published_selection(const fl_json *at, const fl_texts *policies, selection *s, fl_diag *d);
fl_status fl_published_value(const selection *s, const fl_comparison *c, double *value, fl_diag *d);
