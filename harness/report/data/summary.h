/* The statistics of a scope for each policy: means with intervals, ranks, and comparisons with one reference. */
#pragma once

#include "harness/report/data/report_data.h"

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
