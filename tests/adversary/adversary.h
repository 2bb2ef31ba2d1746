/* The workload on which a policy does worst: drawn, then changed towards more slowdown. Slowdown counts against the top
 * clock (the policy maxfreq) on the same kernels under the same seed; the cost of activity records is in it.
 *
 * A quarter of the trials are new cases, the others change one of the worst so far. A trial depends on the seed, its
 * own number and the batches before its own, so the number of threads cannot show. A case beyond the bound is run at
 * every clock: where one breaks what the policy may assume, a slowdown between 1 and top / f within a tolerance, it
 * counts apart and nothing is made of it. */
#pragma once

#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "traces/io/io.h"
#include "tests/adversary/adversary_case.h"

#include <stdbool.h>

#define FL_ADVERSARY_TOLERANCE 0.03 /* by which a slowdown may pass top / f */

typedef struct fl_adversary_options { /* all borrowed */
    const fl_platform *platform;
    const fl_spec *spec;
    double bound; /* on the slowdown */
    fl_adversary_range range;
    uint64_t seed;
    size_t trials;
    unsigned threads;
} fl_adversary_options;

typedef struct fl_adversary_trial {
    fl_adversary_case c;
    size_t number; /* from 1; 0: there is none */
    double slowdown, top_s, time_s, saving;
} fl_adversary_trial;

typedef struct fl_adversary_law { /* of the whole program at fixed clocks */
    double least;                 /* of the slowdown, over all clocks */
    double most;                  /* of the slowdown x f / top */
    bool held;                    /* 1 and 1 + tolerance */
} fl_adversary_law;

typedef struct fl_adversary_result {
    fl_adversary_trial worst;     /* of those within the assumptions */
    fl_adversary_law law;         /* of it */
    fl_adversary_trial outside;   /* the worst of those that broke the bound and the assumptions; number 0: none */
    size_t beyond, outside_count; /* trials beyond the bound: within the assumptions, and not */
} fl_adversary_result;

/* FL_BAD_INPUT where the policy refuses its parameters. */
fl_status fl_adversary_run(const fl_adversary_options *o, fl_adversary_result *out, fl_diag *d);

/* The value of the policy's parameter `bound` on this platform; NAN where it has none. */
fl_status fl_adversary_bound(const fl_platform *p, const fl_spec *spec, double *bound, fl_diag *d);
