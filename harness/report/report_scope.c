#include "harness/report/report_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool holds(const fl_scope *s, const fl_report_row *row) {
    return row->variant == s->variant && (s->platform == FL_REPORT_ALL || row->platform == (size_t)s->platform);
}

static fl_status make(const fl_report_data *r, int platform, size_t variant, fl_scope *s, fl_diag *d) {
    *s = (fl_scope){.data = r,
                    .platform = platform,
                    .variant = variant,
                    .workloads = r->workload.count * (platform == FL_REPORT_ALL ? r->platform.count : 1),
                    .seeds = r->seed_count};
    bool *seen = calloc(r->policy.count + 1, sizeof *seen);
    s->policy = calloc(r->policy.count + 1, sizeof *s->policy);
    if (!seen || !s->policy) {
        free(seen);
        return fl_no_memory(d, "the report");
    }
    for (size_t i = 0; i < r->row_count; i++)
        if (holds(s, &r->row[i]))
            seen[r->row[i].policy] = true;
    for (size_t p = 0; p < r->policy.count; p++)
        if (seen[p])
            s->policy[s->policy_count++] = p;
    free(seen);
    return FL_OK;
}

fl_status fl_scopes_make(const fl_report_data *r, fl_scope **list, size_t *count, fl_diag *d) {
    const size_t each = r->platform.count > 1 ? 1 + r->platform.count : 1;
    *count = 0;
    *list = calloc(r->variant.count * each + 1, sizeof **list);
    fl_status s = *list ? FL_OK : fl_no_memory(d, "the report");
    for (size_t v = 0; !s && v < r->variant.count; v++)
        for (size_t k = 0; !s && k < each; k++) {
            fl_scope *at = &(*list)[(*count)++];
            s = make(r, k ? (int)k - 1 : FL_REPORT_ALL, v, at, d);
            if (!s && !at->policy_count) { /* not every variant is on every platform */
                free(at->policy);
                --*count;
            }
        }
    if (s) {
        fl_scopes_free(*list, *count);
        *list = NULL;
        *count = 0;
    }
    return s;
}

void fl_scopes_free(fl_scope *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(list[i].policy);
    free(list);
}

static size_t seed_index(const fl_report_data *r, uint64_t seed) {
    size_t i = 0;
    while (r->seed[i] != seed)
        i++;
    return i;
}

double *fl_scope_panel(const fl_scope *s, fl_report_column column) {
    const fl_report_data *r = s->data;
    const size_t total = s->policy_count * s->workloads * s->seeds;
    double *panel = malloc((total + 1) * sizeof *panel);
    size_t *place = calloc(r->policy.count + 1, sizeof *place);
    for (size_t i = 0; panel && i < total; i++)
        panel[i] = NAN;
    for (size_t p = 0; place && p < s->policy_count; p++)
        place[s->policy[p]] = p;
    for (size_t i = 0; panel && place && i < r->row_count; i++) {
        const fl_report_row *row = &r->row[i];
        if (!holds(s, row))
            continue;
        const size_t w = row->workload + (s->platform == FL_REPORT_ALL ? row->platform * r->workload.count : 0);
        panel[(place[row->policy] * s->workloads + w) * s->seeds + seed_index(r, row->seed)] = row->value[column];
    }
    if (!place) {
        free(panel);
        panel = NULL;
    }
    free(place);
    return panel;
}

/* Percent of the driver's default, workload by workload, for what has no column of its own. */
static double *against_default(const fl_scope *s, fl_report_column column) {
    double *panel = fl_scope_panel(s, column);
    size_t standard = 0;
    while (standard < s->policy_count && strcmp(s->data->policy.item[s->policy[standard]], "baseline:default"))
        standard++;
    double *of = malloc((s->seeds + 1) * sizeof *of);
    for (size_t w = 0; panel && of && w < s->workloads; w++) {
        double any = NAN; /* where arrivals are drawn, each seed has a default of its own */
        for (size_t k = 0; k < s->seeds; k++) {
            of[k] = standard < s->policy_count ? panel[(standard * s->workloads + w) * s->seeds + k] : (double)NAN;
            any = isnan(any) ? of[k] : any;
        }
        for (size_t p = 0; p < s->policy_count; p++)
            for (size_t k = 0; k < s->seeds; k++) {
                double *at = &panel[(p * s->workloads + w) * s->seeds + k];
                *at = 100 * (1 - *at / (isnan(of[k]) ? any : of[k]));
            }
    }
    if (!of) {
        free(panel);
        panel = NULL;
    }
    free(of);
    return panel;
}

double *fl_scope_merit(const fl_scope *s) {
    const char *objective = fl_report_objective(s->data);
    if (!strcmp(objective, "energy"))
        return fl_scope_panel(s, FL_REPORT_SAVING_PCT);
    return against_default(s, strcmp(objective, "edp") ? FL_REPORT_ED2P : FL_REPORT_EDP);
}
