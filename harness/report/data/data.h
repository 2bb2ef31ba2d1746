/* A result as reports, pictures and `show` read it.
 *
 * fl_report_read reads RESULTS.csv and the files beside it. fl_report_judge applies bounds, fl_scopes_make finds the
 * sets of rows behind each mean, and fl_summary_make computes means with intervals, ranks and comparisons. fl_lead_of
 * chooses the two quantities of the first picture. fl_show_read reads any CSV or JSON as a table for `foldline show`.
 *
 * Each struct owns its texts until its _free; scopes and summaries borrow from the data. FL_BAD_INPUT names file and
 * line: no such column, or a provenance of another result. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/study/trial/trial.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A result as the report reads it: the rows of RESULTS.csv and the files beside it.
 *
 * Beside RESULTS.csv may lie RESULTS.provenance.json (compare, grid), RESULTS.published.json (compare of an
 * experiment that replays a paper) and RESULTS.regret.csv (compare of a distribution replay). A provenance that names
 * another result's hash is refused. Rows whose workload is 'mean' are ignored: the report computes its own means, with
 * intervals, from the others.
 *
 * A scope is the set of rows behind one mean: all rows of one variant of the node, on one platform or on all. */

typedef enum fl_report_column {
    FL_REPORT_ENERGY_J,
    FL_REPORT_MAKESPAN_S,
    FL_REPORT_POWER_W,
    FL_REPORT_SLOWDOWN, /* a fraction */
    FL_REPORT_WORST,    /* a fraction */
    FL_REPORT_REGRET_STATIC_PCT,
    FL_REPORT_REGRET_CLAIRVOYANT_PCT,
    FL_REPORT_VIOLATED,
    FL_REPORT_SWITCHES,
    FL_REPORT_SAVING_PCT,
    FL_REPORT_EDP,
    FL_REPORT_ED2P,
    FL_REPORT_REWARD_REGRET,
    FL_REPORT_LATENCY_S,
    FL_REPORT_LATENCY_P99_S,
    FL_REPORT_REQUEST_J,
    FL_REPORT_COLUMNS
} fl_report_column;

typedef struct fl_report_row {
    size_t policy, workload, platform, variant, clock; /* indices */
    uint64_t seed;
    size_t seed_at;                  /* its index among the distinct ones */
    double value[FL_REPORT_COLUMNS]; /* NAN = n/a */
    uint32_t broken;                 /* bounds that the row breaks, as bits of fl_promises_name */
} fl_report_row;

typedef struct fl_names { /* distinct texts in the order of their first appearance */
    char **item;
    size_t count, room;
    fl_intern found;
} fl_names;

typedef struct fl_report_data {
    char *path;
    char sha256[65];
    fl_names policy, workload, platform, variant; /* variant "" = the plain node */
    fl_names clock;                               /* clocks of static choices; "" = not a static choice */
    fl_report_row *row;
    size_t row_count, row_room;
    uint64_t *seed; /* seed_count, distinct */
    size_t seed_count, seed_room;
    fl_intern by_seed;
    cJSON *provenance, *published; /* NULL: the file does not exist */
    char *regret_path;             /* NULL: the file does not exist */
    fl_promises promises;          /* the bounds by which rows are judged */
    bool serves;                   /* a result of servers of a language model, whose rows state a load */
    double bound;                  /* the bound on the slowdown; INFINITY: none */
} fl_report_data;

fl_status fl_report_read(const char *csv, fl_report_data *r, fl_diag *d);
void fl_report_free(fl_report_data *r); /* accepts a zeroed struct */

/* The index of a text, which is added if it is new. */
size_t fl_names_index(fl_names *n, const char *text);
void fl_names_free(fl_names *n);

bool fl_report_is_baseline(const char *policy); /* "baseline:..." */

/* Text of a provenance key, or NULL. */
const char *fl_report_text(const fl_report_data *r, const char *key);

enum { FL_REPORT_ALL = -1 };

typedef struct fl_scope {
    const fl_report_data *data;
    int platform; /* index, or FL_REPORT_ALL */
    size_t variant;
    size_t *policy; /* policy_count entries: the policies with rows in the scope, in file order */
    size_t policy_count;
    size_t *row,
        *first; /* the scope's rows in file order, policy by policy: those of the p-th start at row[first[p]] */
    size_t workloads, seeds; /* size of the panels: workload x platform by seed */
} fl_scope;

/* The scopes of a result, variant by variant; where there are several platforms, all together come first. *list is
 * malloc'd; free it with fl_scopes_free. */
void fl_scopes_make(const fl_report_data *r, fl_scope **list, size_t *count);
void fl_scopes_free(fl_scope *list, size_t count);

/* The part before the first setting ("fixed:sm_mhz=900" -> "fixed"); into 128 bytes. Returns buf. */
char *fl_label_family(const char *label, char buf[128]);

/* Return the place of a column in the first row of a CSV; SIZE_MAX: there is none. */
static inline size_t fl_report_find(const fl_csv_row *r, const char *name) {
    for (size_t i = 0; i < r->count; i++)
        if (!strcmp(r->field[i].text, name))
            return i;
    return SIZE_MAX;
}

/* The bounds under which a result is reported: those under which it was made, as its record says, and those requested
 * now. */

/* Fills r->promises, r->bound and each row's `broken`. With requested bounds (texts as of --bound, which override the
 * recorded ones on the same column) rows are judged again by their cells, including `violated`; without any, `violated`
 * stays as recorded. FL_BAD_INPUT where a requested bound concerns a column that no row has. */
fl_status fl_report_judge(fl_report_data *r, const fl_texts *asked, fl_diag *d);

/* RESULTS.regret.csv of a distribution replay: cumulative regret of each policy over its steps. */

typedef struct fl_curve_mark {
    size_t group, policy; /* group: workload, variant and platform; policy: into `policy` */
    double step, mean, low, high;
} fl_curve_mark;

typedef struct fl_curves {
    fl_names group, own; /* own: the policies, where there is no result beside the file */
    const fl_names *policy;
    fl_curve_mark *mark; /* the marks of a curve are consecutive */
    size_t count, room;
} fl_curves;

/* r: the result beside the file, which must contain its policies; NULL = none. FL_BAD_INPUT with line. Free with
 * fl_curves_free, also after a failure. */
fl_status fl_curves_read(const char *path, const fl_report_data *r, fl_curves *c, fl_diag *d);
void fl_curves_free(fl_curves *c);

/* Texts of a page. */

/* Write a text with & < > " escaped. */
void fl_html_text(FILE *f, const char *text);
/* Write a policy's label, escaped, which may break after its punctuation. */
void fl_html_label(FILE *f, const char *label);

/* The statistics of a scope for each policy: means with intervals, ranks, and comparisons with one reference. */

typedef struct fl_policy_summary {
    size_t policy; /* index into the names of the data */
    bool baseline;
    fl_interval value[FL_REPORT_COLUMNS], merit; /* merit: fl_scope_merit */
    double violations;                           /* runs above the bound; NAN = not known */
    fl_rank_result rank;                         /* rank by merit, without baselines; NAN for them */
    fl_paired merit_pair, slowdown_pair;         /* against the reference, the slowdown in percent points */
} fl_policy_summary;

typedef struct fl_summary {
    const fl_scope *scope;
    fl_bootstrap bootstrap;
    fl_policy_summary *item; /* count, in the order of the scope */
    size_t count;
    size_t *order;       /* count entries: by merit, the best first; those without merit last */
    size_t reference;    /* into item: the best policy that holds the bound in every run; SIZE_MAX = none */
    double *merit;       /* count x workloads x seeds */
    bool ranked, paired; /* there are at least two policies */
    size_t most; /* runs that a complete mean covers: those of the driver's default, which every scene has; 0 without a
                    default */
} fl_summary;

#define FL_DRAWS_GRID 400      /* draws of the bootstrap for more policies than this */
#define FL_DRAWS_WORKLOAD 1000 /* draws for each row of the table of workloads, unless the user gives a number */
#define FL_GRID_POLICIES 100

/* b->draws: 0 = a number that suits the number of policies. reference: label of the policy to compare with, or NULL. */
fl_status fl_summary_make(const fl_scope *s, const fl_bootstrap *b, const char *reference, fl_summary *out, fl_diag *d);
void fl_summary_free(fl_summary *s);

static inline const char *fl_summary_name(const fl_summary *s, size_t i) {
    return s->scope->data->policy.item[s->item[i].policy];
}

/* Requests and bounds in words. */

/* Write a text for one policy: "6.87 J per request at a p99 latency of 156 ms (the driver's default: 9.91 J at 127 ms);
 * ". Nothing for one that served no request. */
void fl_latency_short(FILE *f, const fl_summary *s, size_t item);

/* ", under the bound of 5 %, latency_p99_s<0.17": all bounds by which the result is judged, as HTML. */
void fl_bounds_put(FILE *f, const fl_report_data *r);

/* A cell of a table, "slowdown<=0.05 in 2 of 9, ...": the bounds that a policy breaks, or "none". item: its index in
 * the scope. */
void fl_bounds_cell(FILE *f, const fl_scope *sc, size_t item);

/* The lead of a result: the two quantities that its first picture compares, and the bound. */

typedef struct fl_lead_axis {
    int column;       /* a fl_report_column, or -1: the ranking quantity */
    double scale;     /* from the column's unit to the displayed unit */
    const char *name; /* "slowdown" */
    char label[96];   /* of the axis, with its unit */
    const char *unit; /* after a number: " %" */
    int digits;       /* for a table: digits after the point; below 0, significant digits */
    bool more;        /* more is better */
    double bound;     /* in the displayed unit; NAN = none */
} fl_lead_axis;

typedef struct fl_lead {
    fl_lead_axis x, y;
    char title[96];
} fl_lead;

/* Choose the two quantities: with requests, p99 of the latency against energy per request; else saving against
 * slowdown.
 */
void fl_lead_of(const fl_summary *s, fl_lead *lead);
/* "slowdown, %" */
char *fl_lead_head(const fl_lead_axis *a, char buf[96]);
/* A policy's mean and interval on an axis, in the displayed unit. */
fl_interval fl_lead_value(const fl_lead_axis *a, const fl_policy_summary *p);

/* Four significant digits without an exponent, and without truncating large numbers: 0.05, 5.266, 526600. */
char *fl_lead_number(double value, char buf[32]);

/* A workload's name without the folder and the endings of its file; into 256 bytes. Returns buf. */
char *fl_lead_short(const char *workload, char buf[256]);

/* The subject of a picture on one line: the workload or their number, the platform, the variant, the bounds. */
void fl_lead_about(const fl_summary *s, char *text, size_t size);
/* "95 % intervals over 3 workloads and 5 seeds", or "" where there are none: one run of one workload, or all equal. */
void fl_lead_intervals(const fl_summary *s, char *text, size_t size);

/* Return true if the column has a number in some row; pages leave out columns without. */
bool fl_lead_anywhere(const fl_summary *s, fl_report_column column);

/* "energy saved", "EDP saved" or "ED2P saved". */
const char *fl_merit_name(const fl_report_data *r);

/* Means that leave out some of their runs, and the clocks behind the best static choice. */

/* Return true if the mean of a column covers fewer runs than that of the energy: a run above the bound has no regret.
 */
bool fl_partial(const fl_policy_summary *p, fl_report_column column);
/* Return true if all means of a policy cover fewer runs: a static choice that holds all bounds may not exist in every
 * scene. */
bool fl_partial_rows(const fl_summary *s, const fl_policy_summary *p);
/* Writes the notes below the table of policies: the meaning of the mark on such means, with the runs that each covers;
 * and the clock of the best static choice, workload by workload where they differ. Writes nothing where there is
 * neither. */
void fl_partial_notes(FILE *f, const fl_summary *s);

/* Studies: the effect of a parameter on results, from policies of one family whose labels differ in a number. */

typedef struct fl_study_point {
    double x;          /* the parameter */
    size_t line, item; /* line: index into rest; item: into the summary */
} fl_study_point;

typedef struct fl_study {
    const char *family;
    char name[64];         /* of the parameter */
    fl_study_point *point; /* by line, then by x */
    size_t count;
    fl_names rest; /* the other settings of the labels, as text */
} fl_study;

/* Calls `each` for every family and parameter that takes several values while all else is equal. */
void fl_studies(const fl_summary *s, void (*each)(void *user, const fl_study *t), void *user);

/* A telemetry file over time: a series per device, and the share of time at each clock. */

typedef struct fl_share { /* of all time of all devices */
    double low, high;     /* MHz; equal where it is one clock */
    double share;         /* 0..1 */
} fl_share;

/* Return the index of a signal; SIZE_MAX: the file does not have it. */
size_t fl_signal_index(const fl_telemetry *t, const char *name);

/* Residency of the SM clock, ascending; list is malloc'd. A row's clock holds from the previous row to this one, as
 * foldline run --timeline writes it. FL_BAD_INPUT where there is no sm_mhz. */
fl_status fl_residency(const fl_telemetry *t, const char *path, fl_share **list, size_t *count, fl_diag *d);

/* Locks against power limits, of a sweep whose workloads were measured under both. */

typedef struct fl_lock_point {
    double sm_mhz, cap_w, power_w, time_s, energy_j;
} fl_lock_point;

typedef struct fl_lock_cap { /* one workload; points by ascending power */
    char *workload;
    fl_lock_point *lock, *cap; /* locks under the highest limit; limits at the highest lock */
    size_t locks, caps;
} fl_lock_cap;

typedef struct fl_lock_caps {
    fl_lock_cap *item; /* the workloads that have at least three locks and a limit that acts */
    size_t count;
} fl_lock_caps;

fl_status fl_lock_caps_read(const char *path, fl_lock_caps *out, fl_diag *d);
void fl_lock_caps_free(fl_lock_caps *c); /* accepts a zeroed struct */
/* Compare both at the mean power of each limit that acts. A lock that draws as much lies between measured ones: a
 * straight line and a parabola bound what it takes. Set what a lock costs more, in percent of energy and time (which
 * are the same at equal power), as means over all points. Return their number. */
size_t fl_lock_caps_range(const fl_lock_caps *all, double *low_pct, double *high_pct);
/* Print the answer as one line; nothing if no limit can be compared. */
void fl_lock_caps_put(const fl_lock_caps *all, FILE *out);

/* Any result as a table: the CSV files that commands write, and their output as JSON. The module reads the whole input,
 * selects and sorts rows, and prints the rest in the width of the terminal, or as JSON. */

#define FL_SHOW_ROWS 40  /* rows to print where the user gives no number */
#define FL_SHOW_DIGITS 5 /* significant digits */

typedef struct fl_show_table {
    const char *path; /* borrowed */
    char *format;     /* format of a file that names it: "foldline-decisions"; else NULL */
    bool json;        /* the file is JSON, not CSV */
    fl_head head;     /* keys and values above the rows */
    char **name;      /* of the columns */
    bool *number;     /* by column: every cell that is not empty or n/a is a number */
    size_t columns, name_room, number_room;
    char **cell; /* row by row; owned by the table */
    size_t rows, cell_room;
    size_t *order; /* the selected rows, in their order */
    size_t shown;
} fl_show_table;

/* Reads a table and selects all rows. Zeroed on failure. FL_BAD_INPUT: the input is neither a CSV file with a header
 * nor a JSON object or list of objects. A list is the table itself. Of an object, "rows" is the table, or else its main
 * list of objects, and the values beside it are the head; an object without such a list becomes a table of keys and
 * values. A repeated CSV column name gets a number: "v", "v.2". */
fl_status fl_show_read(const char *path, fl_show_table *t, fl_diag *d);
void fl_show_free(fl_show_table *t); /* accepts a zeroed struct */

/* Keeps the rows where "COLUMN<VALUE" holds: < <= > >= compare numbers; = and != also compare texts. A cell that is not
 * a number satisfies none of the first four. */
fl_status fl_show_where(fl_show_table *t, const char *condition, fl_diag *d);
/* Sorts by a column, downwards where the name begins with '-': numbers by value, others as text; empty cells come last.
 * Equal rows keep their order. */
fl_status fl_show_sort(fl_show_table *t, const char *column, fl_diag *d);

typedef struct fl_show_look {
    size_t *column; /* the columns to print, in this order; NULL: all that fit */
    size_t columns;
    size_t rows; /* at most; 0 = all */
    int digits, width;
} fl_show_look;

/* Parses "a,b" into indices of t->name, which the caller frees. */
fl_status fl_show_columns(const fl_show_table *t, const char *names, fl_show_look *look, fl_diag *d);

/* Prints '?' for control characters, which a terminal would obey, and for bytes that are not valid UTF-8. */
void fl_show_text(const char *text, FILE *out);

/* Lists below the table the columns that do not fit: those that are empty or equal in all rows are dropped first, then
 * the last ones. */
void fl_show_print(const fl_show_table *t, const fl_show_look *look, FILE *out);
