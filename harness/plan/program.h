/* The program that a pipeline's fit looks at, what is expected of it, and what the parts of a fit ask of its plans. */
#pragma once

#include "models/laws/stage_law.h"
#include "sim/pipeline/critical.h"
#include "sim/pipeline/pipeline.h"
#include "traces/pipeline/runs.h"

typedef struct fl_belief { /* what is expected before a plan has been measured */
    double mean, sd;
} fl_belief;

typedef struct fl_pipeline_beliefs {
    fl_belief share[2], wall[2]; /* forward, backward */
    fl_belief link_s, tail_s;
    fl_belief power, most, blocked; /* shares of the board's limit */
    double drawn;                   /* likewise: by a rank that computes at the top clock and has the walls above */
    double rank_sd;                 /* of the ranks' powers among each other, likewise */
    fl_belief s, knee, rise;
} fl_pipeline_beliefs;

/* Of any chip: see fit_pipeline_believe.c for where they are from. */
extern const fl_pipeline_beliefs fl_pipeline_any_chip;

typedef struct fl_pipeline_fit {
    const fl_pipeline_runs *r;
    fl_pipeline p; /* the program, without its fitted rows */
    fl_pipeline_order order;
    fl_node_spec node; /* boards that draw what their tables say and nothing else */
    fl_workload *w;
    fl_pipeline_op *op;
    fl_critical path;
    double limit_w;
    fl_stage_time (*time)[2];        /* by rank: forward, backward */
    double *load_s, *load_in_recv_s; /* by rank */
    const bool *loads_of;            /* the plans that loads are learned from; NULL: those of all else */
    double *link_s;                  /* by the lower stage of each pair of neighbours */
    double tail_s;
    double *power_w, *most_w; /* by rank: at FL_STAGE_F0, and where the limit holds it */
    double blocked_w;
    fl_stage_power law;
} fl_pipeline_fit;

/* Makes the program of r->ranks ranks in `stages` stages: 1F1B, or the list of order_file where that is not NULL.
 * f->r = r, which must outlive *f. */
fl_status fl_pipeline_fit_open(fl_pipeline_fit *f, const fl_pipeline_runs *r, uint32_t stages, uint32_t tensor_parallel,
                               const char *order_file, double limit_w, fl_diag *d);
void fl_pipeline_fit_close(fl_pipeline_fit *f);

/* What other pipelines on the same chip, fitted to all their plans, lead to expect. */
void fl_pipeline_fit_believe(const fl_pipeline_fit *const *fit, size_t count, fl_pipeline_beliefs *out);

/* ---- for the parts of a fit ---- */

/* How sure measured numbers are. Iterations repeat to 0.004 to 0.15 % in time and 0.02 to 0.08 % in energy; what the
 * laws leave out is larger. */
#define FL_PF_SD_ITERATION 0.001
#define FL_PF_SD_ENERGY 0.002
#define FL_PF_SD_INSTRUCTION 0.001 /* of a mean over many, */
#define FL_PF_SD_ONE 0.008         /* and of one alone */
#define FL_PF_SD_LAW 0.004         /* of the law of time at one clock */
#define FL_PF_WARM_UP 0.3          /* weight of a first plan at the top clocks: boards are colder then */

enum { FL_PF_CLOCKS_MAX = 512 }; /* more than any ladder has */

/* The clock as a share of the top clock. */
static inline double fl_pf_clock(const fl_pipeline_fit *f, double mhz) { return mhz / f->r->top_mhz; }
static inline double fl_pf_believed(const fl_belief *b, double x) { return b->mean + b->sd * x; }

/* Whether the first plan asks for the top clock everywhere: of a series it is a warm-up, on colder boards. */
bool fl_pipeline_warm_up(const fl_pipeline_runs *r);
/* How much a plan counts. */
double fl_pf_weight(const fl_pipeline_fit *f, size_t plan);
/* The clocks of a plan; the caller frees c->mhz, also after a failure. */
fl_status fl_pf_clocks_new(const fl_pipeline_fit *f, size_t plan, fl_pipeline_clocks *c, fl_diag *d);
/* The program without rows, and a row more. */
fl_status fl_pf_program(const fl_pipeline_fit *f, fl_pipeline *p, fl_diag *d);
fl_status fl_pf_put(fl_pipeline *p, int32_t rank, fl_pipeline_what what, double mhz, double time_s, double power_w,
                    fl_diag *d);
/* Mean of what was measured of a kind that does not follow the clock, in the plans of learn (NULL: all); 0 where
 * nothing was. */
double fl_pf_mean(const fl_pipeline_fit *f, uint32_t rank, fl_pipeline_what what, const bool *learn);

/* What is expected of one rank, from what it draws in the first plan where that asks for the top clock and is learned
 * from; the same as of all ranks elsewhere. k: 0 forward, 1 backward. */
fl_belief fl_pf_wall(const fl_pipeline_fit *f, uint32_t rank, int k, const bool *learn, const fl_pipeline_beliefs *b);
double fl_pf_power(const fl_pipeline_fit *f, uint32_t rank, const bool *learn, const fl_pipeline_beliefs *b);

/* The three parts of a fit, in this order: each takes what those before it found. */
fl_status fl_pf_learn_time(fl_pipeline_fit *f, uint32_t rank, int k, const bool *learn, const fl_pipeline_beliefs *b,
                           fl_diag *d);
fl_status fl_pf_learn_links(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *b, fl_diag *d);
fl_status fl_pf_learn_powers(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *b, fl_diag *d);
