/* A gate on results: recorded values of every row, and rules on how far new ones may be from them.
 *
 * A rule: METRIC>+1% (grew by more), METRIC<-1% (fell by more), METRIC!1% (either way); without % in the metric's own
 * unit. What fails it is not the mean but the whole interval of the change: paired over the seeds where both have the
 * same, Welch's otherwise, at 95 % for all rows and rules together (Bonferroni). One run has no interval: its change
 * itself counts. Runs that are n/a in both are left out; one that is so in only one of the two (without pairs: another
 * share of them) fails.
 *
 * Recorded as JSON: {"foldline_baseline": 1, "experiment": "...", "seed": 1, "streams": 1, "fail_if": [...],
 * "bounds": [...], "metrics": [...], "rows":
 * [{"policy": "...", "workload": "...", "platform": "...", "values": [[per seed], ...per metric]}], "provenance":
 * {...}}. */
#pragma once

#include "harness/study/compare/comparison.h"

#include <cjson/cJSON.h>

typedef struct fl_gate_rule {
    char *text;      /* as it was written */
    char metric[64]; /* see fl_row_value */
    char sign;       /* '>', '<' or '!' */
    bool relative;   /* limit in percent of the old mean */
    double limit;    /* >= 0 */
} fl_gate_rule;

/* FL_BAD_INPUT with what is wrong: syntax, unknown metric. The caller frees rule->text. */
fl_status fl_gate_parse(const char *text, fl_gate_rule *rule, fl_diag *d);

typedef struct fl_gate_row { /* one policy on one workload */
    char *policy, *workload, *platform;
    double *value; /* metrics x seeds */
    size_t seeds;
    char *breaks; /* of a run: which bounds one of its seeds broke; NULL: none, or it is read from a file */
} fl_gate_row;

typedef struct fl_gate_record {
    char *experiment;      /* path as recorded, relative to the record's folder */
    int64_t seed, streams; /* streams: what policies were told of, beside the experiment's own; 0 = not */
    char **metric;
    size_t metric_count;
    char **fail_if;
    size_t fail_if_count;
    char **bound; /* that it was recorded under, beside the experiment's own; as --bound takes them */
    size_t bound_count;
    fl_gate_row *row;
    size_t row_count, row_room;
    cJSON *provenance; /* of a record that was read; NULL = it has none */
} fl_gate_record;

void fl_gate_record_free(fl_gate_record *r);
fl_status fl_gate_read(const char *path, fl_gate_record *r, fl_diag *d);
/* provenance is borrowed. */
fl_status fl_gate_write(const char *path, const fl_gate_record *r, const cJSON *provenance, fl_diag *d);
/* FL_BAD_INPUT where the record was made by another version than the provenance at hand, or from files of the same name
 * with other contents: what such a comparison shows is no change of a policy. Policies themselves (their archive,
 * plug-ins) may differ. path: of the record. */
fl_status fl_gate_same_origin(const fl_gate_record *old, const char *path, const cJSON *provenance, fl_diag *d);
/* The values of every row (means left out) for the metrics of *r, which are set. */
fl_status fl_gate_take(fl_gate_record *r, const fl_comparison *c, fl_diag *d);

typedef struct fl_gate_finding {
    const fl_gate_row *row;   /* of the old record, or of the new where the old has none */
    const fl_gate_rule *rule; /* NULL: the row is missing, or new */
    bool failed;
    double old_mean, new_mean;
    double change, low, high; /* with its interval, in the rule's unit */
    char text[512];           /* one line */
} fl_gate_finding;

typedef struct fl_gate_result {
    fl_gate_finding *finding; /* one for each old row and rule, then missing and new rows */
    size_t count, room, failed;
} fl_gate_result;

fl_status fl_gate_compare(const fl_gate_record *old, const fl_gate_record *now, const fl_gate_rule *rule,
                          size_t rule_count, fl_gate_result *out, fl_diag *d);
void fl_gate_result_free(fl_gate_result *r);
/* {"experiment", "gates", "failed", "rows": one for each finding}; the caller deletes it. */
cJSON *fl_gate_result_json(const char *experiment, const fl_gate_result *r);
/* For CI: one test case for each finding. */
fl_status fl_gate_junit(const char *path, const char *name, const fl_gate_result *r, fl_diag *d);
