/* Chooses one policy of an experiment: the one that saves most and holds the bound. */
#pragma once

#include "harness/advise/advise.h"

typedef struct fl_advise_policy {
    char *policy;       /* the policy as the command line writes it; NULL: none holds the bound */
    fl_interval saving; /* percent; mean over workloads and seeds, and its 95 % interval (Student's t) */
    double chance;      /* share of the runs that broke the bound; where no policy holds it, of the best one */
    double worst_slowdown_pct;
    size_t runs, policies;
    double bound; /* the bound: the experiment's, where the caller gave none */
} fl_advise_policy;

/* bound INFINITY: use the experiment's. FL_BAD_INPUT: the experiment replays distributions, or has no bound either. */
fl_status fl_advise_experiment(const char *path, const char *platform, double bound, double risk, fl_advise_policy *out,
                               fl_diag *d);
void fl_advise_policy_free(fl_advise_policy *p);
