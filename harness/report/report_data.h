/* A result as the report reads it: the rows of RESULTS.csv and what stands beside them.
 *
 * Beside RESULTS.csv may lie RESULTS.provenance.json (compare, sweep, merge), RESULTS.published.json (compare of an
 * experiment that replays a paper) and RESULTS.regret.csv (compare of a distribution replay). A provenance that names
 * another result's hash is refused. Rows whose workload is
 * 'mean' are left out: the report makes its means, with intervals, from the others.
 *
 * A scope is what one mean is over: all rows of one variant of the node, on one platform or on all. */
#ifndef FL_REPORT_DATA_H
#define FL_REPORT_DATA_H

#include "harness/base/bootstrap.h"
#include "harness/study/promise.h"
#include "traces/intern.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

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
    uint32_t broken;                 /* bounds that it does not hold, as bits of fl_promises_name */
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
    fl_names clock;                               /* of static choices; "" = of none */
    fl_report_row *row;
    size_t row_count, row_room;
    uint64_t *seed; /* seed_count, distinct */
    size_t seed_count, seed_room;
    fl_intern by_seed;
    cJSON *provenance, *published; /* NULL: not there */
    char *regret_path;             /* NULL: not there */
    fl_promises promises;          /* what it is judged under (report_bounds.h), */
    double bound;                  /* and the slowdown; INFINITY: none */
} fl_report_data;

fl_status fl_report_read(const char *csv, fl_report_data *r, fl_diag *d);
void fl_report_free(fl_report_data *r); /* takes a zeroed struct */

/* The index of a text, added where new. */
fl_status fl_names_index(fl_names *n, const char *text, size_t *index, fl_diag *d);
void fl_names_free(fl_names *n);

bool fl_report_is_baseline(const char *policy); /* "baseline:..." */
/* What the policies are ranked by: "energy", "edp" or "ed2p"; as the provenance says, energy where it does not. */
const char *fl_report_objective(const fl_report_data *r);
/* Text of a provenance key, or NULL. */
const char *fl_report_text(const fl_report_data *r, const char *key);

enum { FL_REPORT_ALL = -1 };

typedef struct fl_scope {
    const fl_report_data *data;
    int platform; /* index, or FL_REPORT_ALL */
    size_t variant;
    size_t *policy; /* policy_count: those with rows in it, in file order */
    size_t policy_count;
    size_t *row, *first;     /* its rows in file order, policy by policy: those of the p-th are row[first[p]] on */
    size_t workloads, seeds; /* of the panels: workload x platform by seed */
} fl_scope;

/* The scopes of a result: variant by variant, all platforms together first where there are several. *list is malloc'd
 * and freed with fl_scopes_free. */
fl_status fl_scopes_make(const fl_report_data *r, fl_scope **list, size_t *count, fl_diag *d);
void fl_scopes_free(fl_scope *list, size_t count);

/* policy_count x workloads x seeds values of one column, NAN where there is no run; malloc'd, NULL when out of memory.
 * A policy with a single run of a workload has it at the first seed. */
double *fl_scope_panel(const fl_scope *s, fl_report_column column);
/* The same for what the policies are ranked by, larger is better: percent saved of energy, EDP or ED2P against the
 * driver's default. */
double *fl_scope_merit(const fl_scope *s);

/* "NAME:param=value,...": the value of a number's setting at `index`; false where there is none. name: into 64 bytes.
 */
bool fl_label_setting(const char *label, size_t index, char name[64], char value[64]);
/* The part before the first setting ("fixed:sm_mhz=900" -> "fixed"); into 128 bytes. Returns buf. */
char *fl_label_family(const char *label, char buf[128]);

#endif
