/* A result as the report reads it: the rows of RESULTS.csv and the files beside it.
 *
 * Beside RESULTS.csv may lie RESULTS.provenance.json (compare, sweep, merge), RESULTS.published.json (compare of an
 * experiment that replays a paper) and RESULTS.regret.csv (compare of a distribution replay). A provenance that names
 * another result's hash is refused. Rows whose workload is 'mean' are ignored: the report computes its own means, with
 * intervals, from the others.
 *
 * A scope is the set of rows behind one mean: all rows of one variant of the node, on one platform or on all. */
#pragma once

#include "harness/base/work/bootstrap.h"
#include "harness/study/trial/promise.h"
#include "traces/io/csv.h"
#include "traces/io/intern.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <string.h>

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
    fl_promises promises;          /* the bounds by which rows are judged (report_bounds.h), */
    bool serves;                   /* of servers of a language model: a row states their load */
    double bound;                  /* and the bound on the slowdown; INFINITY: none */
} fl_report_data;

fl_status fl_report_read(const char *csv, fl_report_data *r, fl_diag *d);
void fl_report_free(fl_report_data *r); /* accepts a zeroed struct */

/* The index of a text, which is added if it is new. */
fl_status fl_names_index(fl_names *n, const char *text, size_t *index, fl_diag *d);
void fl_names_free(fl_names *n);

bool fl_report_is_baseline(const char *policy); /* "baseline:..." */
/* The ranking quantity of the policies: "energy", "edp" or "ed2p", from the provenance; energy where that does not say.
 */
const char *fl_report_objective(const fl_report_data *r);
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
fl_status fl_scopes_make(const fl_report_data *r, fl_scope **list, size_t *count, fl_diag *d);
void fl_scopes_free(fl_scope *list, size_t count);

/* policy_count x workloads x seeds values of one column, NAN where there is no run; malloc'd, NULL when out of memory.
 * A policy with a single run of a workload has it at the first seed. */
double *fl_scope_panel(const fl_scope *s, fl_report_column column);
/* The same for the ranking quantity, larger is better: percent saved of energy, EDP or ED2P against the driver's
 * default. */
double *fl_scope_merit(const fl_scope *s);

/* Splits "NAME:param=value,...": the value of the numeric setting at `index`; false where there is none. name: into 64
 * bytes. */
bool fl_label_setting(const char *label, size_t index, char name[64], char value[64]);
/* The part before the first setting ("fixed:sm_mhz=900" -> "fixed"); into 128 bytes. Returns buf. */
char *fl_label_family(const char *label, char buf[128]);

/* The place of the column of that name in the first row of a CSV; SIZE_MAX: there is none. */
static inline size_t fl_report_find(const fl_csv_row *r, const char *name) {
    for (size_t i = 0; i < r->count; i++)
        if (!strcmp(r->field[i].text, name))
            return i;
    return SIZE_MAX;
}
