/* What a result has to hold: a largest slowdown, and limits on any other column of a row.
 *
 * As a text: "5%" or "0.05", the share by which the makespan may grow over the driver's default; or a column and its
 * limit, COLUMN<X, COLUMN<=X, COLUMN>X, COLUMN>=X, such as "latency_p99_s<0.17". Columns are those of
 * harness/study/trial/row_columns.h, and what harness/study/trial/measure.h tells of a run that was watched. "slowdown<=0.05" is
 * "5%". Columns that are themselves told under the bounds (regrets, violated) have none.
 *
 * A row that does not have a column, such as a latency where nothing arrives, does not hold a promise about it. It
 * counts as violated, and its text says n/a. */
#pragma once

#include "harness/base/cli/args.h"
#include "harness/input/experiment/experiment.h"
#include "harness/study/trial/row_columns.h"

typedef struct fl_promise {
    char column[64];
    bool below, equal; /* COLUMN < or > limit; or equal to it */
    double limit;
    bool watched; /* told only of a run that is watched */
} fl_promise;

enum { FL_PROMISES_MAX = 31 }; /* a bit each in fl_row_result, the slowdown has the first */

typedef struct fl_promises { /* plain zero holds none */
    fl_promise item[FL_PROMISES_MAX];
    size_t count;
} fl_promises;

/* clang-format off */
#define FL_BOUND_OPTION(into)                                                                                          \
    {"bound", "X", FL_OPTION_LIST, into, 0, 0,                                                                         \
     "largest slowdown allowed, 0.10 or 10%; or a limit on any column of the result, 'latency_p99_s<0.17' "            \
     "(may be repeated; none)"}
/* clang-format on */

/* Adds one text to *p, or sets *slowdown where it is INFINITY. FL_BAD_INPUT with what is wrong: no number, no such
 * column (the nearest is offered), a column that has no promise, a second bound on the slowdown, a share above 1 that
 * is not said in percent, more than FL_PROMISES_MAX. */
fl_status fl_promise_parse(const char *text, fl_promises *p, double *slowdown, fl_diag *d);
/* The same of the texts of --bound, in order. */
fl_status fl_promises_parse(const fl_texts *texts, fl_promises *p, double *slowdown, fl_diag *d);
/* Adds to *p and *slowdown those of `own` and `share` about whose column nothing is said there. FL_BAD_INPUT beyond
 * FL_PROMISES_MAX. */
fl_status fl_promises_add(const fl_promises *own, double share, fl_promises *p, double *slowdown, fl_diag *d);
/* Adds those of an experiment's "bound" and "bounds" about which nothing is said yet: a bound on the command line goes
 * before the experiment's on the same column. FL_BAD_INPUT with the line and column of what is wrong. */
fl_status fl_promises_read(const fl_experiment *e, fl_promises *p, double *slowdown, fl_diag *d);
/* FL_BAD_INPUT where no scene can have a column that is promised: latencies where nothing arrives. */
fl_status fl_promises_check(const fl_promises *p, const fl_scenes *scenes, fl_diag *d);
bool fl_promises_watched(const fl_promises *p); /* some are told only of runs that are watched */

/* "latency_p99_s<0.17", in the shortest form that reads back the same; into buf. Returns buf. */
enum { FL_PROMISE_TEXT = 128 };
char *fl_promise_text(const fl_promise *p, char buf[FL_PROMISE_TEXT]);
/* The bound of a bit: 0 is the slowdown's, k + 1 that of item[k]. */
char *fl_promises_name(const fl_promises *p, double slowdown, size_t bit, char buf[FL_PROMISE_TEXT]);

typedef enum fl_promise_word { FL_PROMISE_HELD, FL_PROMISE_BROKEN, FL_PROMISE_UNKNOWN } fl_promise_word;
fl_promise_word fl_promise_test(const fl_promise *p, double value); /* NAN is unknown */

/* Sets broken, unknown, breaks and violated of a row, and takes back its regrets where it does not hold all. Of the
 * slowdown score.violated tells. p may be NULL. */
void fl_promises_judge(const fl_promises *p, double slowdown, fl_row_result *row);

/* ", latency_p99_s<0.17, ..." behind what a table says of its bound; nothing where there are none. p may be NULL. */
void fl_promises_put(const fl_promises *p, FILE *out);
/* As texts in a list; empty where there are none. */
cJSON *fl_promises_json(const fl_promises *p);
