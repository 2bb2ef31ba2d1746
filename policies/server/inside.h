/* What the files of policies/server share: a server's clocks and load, how long its engine's steps take at each clock,
 * parameter rows, and the bandit of agft.
 *
 * Check a node once with fl_drive_check, start each server with fl_drive_begin, and at each step call fl_drive_take,
 * then fl_drive_load and fl_step_times_all to predict, then fl_drive_set. State is plain bytes that the host lends;
 * nothing allocates. Only the check can refuse. */
#pragma once

#include "policies/policy.h"

#include <stdint.h>

/* ---- step times: how long a step takes at each of a few clocks, learned while the server runs ----
 * At each clock the time of a step is a straight line in what the step computes: prompt tokens, sequences that decode,
 * tokens of KV cache that they read. EcoFreq and throttLL'eM learn such a predictor from runs made beforehand; here it
 * is learned from the steps that the server makes, by recursive least squares (Young, "Recursive Estimation and
 * Time-Series Analysis", 2nd ed. 2011, section 3.2), which keeps no steps. For a clock with too few
 * steps two facts answer: a step at a lower clock f takes at most f0 / f as long as at f0, and never less. */

enum { FL_STEP_TERMS = 4, FL_STEP_CLOCKS = 16 };

typedef struct fl_step_load { /* what one step computes */
    double prompt_tokens, sequences, kv_tokens;
} fl_step_load;

typedef struct fl_step_line { /* of one clock */
    double steps;             /* seen */
    double shortest_s;
    double weight[FL_STEP_TERMS];                /* s, of the scaled terms */
    double spread[FL_STEP_TERMS][FL_STEP_TERMS]; /* inverse of the sum of x x', with a weak prior */
} fl_step_line;

typedef struct fl_step_times {
    uint32_t clocks;            /* 1 to FL_STEP_CLOCKS */
    double mhz[FL_STEP_CLOCKS]; /* ascending */
    fl_step_line line[FL_STEP_CLOCKS];
} fl_step_times;

/* Start without any step. mhz: `clocks` of them, ascending. */
void fl_step_times_begin(fl_step_times *t, const double *mhz, uint32_t clocks);

/* Learn that `steps` steps of about this load took time_s each, in the mean, at clock `clock` (index). Skips values
 * that are not finite or not positive. */
void fl_step_times_learn(fl_step_times *t, uint32_t clock, const fl_step_load *load, double time_s, double steps);

/* Seconds that a step of this load takes at each clock, into time_s (t->clocks of them): the line of a clock
 * at which enough steps were seen, and some of about such a load; else that of the nearest higher clock that is known,
 * times the ratio of the clocks and 1 + tolerance; else that of the nearest lower one, as it takes no longer. NAN where
 * nothing is known. */
void fl_step_times_all(const fl_step_times *t, const fl_step_load *load, double tolerance, double *time_s);

/* ---- driving: a server's clocks, which of them is in force, and its load by its signals ---- */

/* The state of one server. It lies in the state of the server's first GPU, so a node needs no bound on its servers. */
typedef struct fl_drive {
    fl_step_times times;
    double mhz;       /* clock asked for; 0: the default, or nothing was set yet */
    int64_t set_ns;   /* when it was set */
    int64_t force_ns; /* since when it is in force; < 0: not yet */
    int64_t clock;    /* its index in times.mhz; -1: it is none of them */
    uint64_t moves;
    uint32_t told; /* 1: batch records came at least once, so steps are learned from them alone */

    /* of the last sample */
    double waiting, running, oldest_wait_s; /* NAN: not known */
    double kv_tokens;                       /* in the cache, as far as known; else 0 */
    double kv_read;                         /* tokens of the cache that the last known step of the engine read */
    double prompt_tokens;                   /* of the last step of the engine, or of a mean one since the last sample */

    /* counters as of the last sample in which they were fresh; NAN: not known */
    double tbt_sum_ns, tbt_count, prompt_count, batches;
    int64_t counted_ns;
} fl_drive;

/* Return NULL, or the reason why this node's servers cannot be driven: none, no GPU, a GPU in two servers, no SM
 * ladder. */
const char *fl_drive_check(const fl_facts *facts);

/* Check as fl_drive_check does, and also that each server states both targets. */
const char *fl_drive_check_targets(const fl_facts *facts);

/* Start a server. Its clocks are those listed; with an empty list `standard` of them, spread from `lowest` (a share of
 * the top clock) to the top. Each is on the ladder of the server's first GPU, and the top is always among them. */
void fl_drive_begin(fl_drive *s, const fl_facts *facts, uint32_t server, const fl_table *listed, uint32_t standard,
                    double lowest);

/* Read the server's sample, and learn from its steps at the clock in force: from batch records, or without records from
 * the mean time between tokens since the sample before. settle_s: longest wait for the achieved clock to show. Returns
 * 1 if `waiting` and `running` are known. */
int fl_drive_take(fl_drive *s, const fl_facts *facts, const fl_sample *sample, uint32_t server, double settle_s);

/* Estimate the next step from the last sample: the last step's prompt tokens, a token for each request in the batch,
 * and the KV tokens that it read, or without batch records all that are in the cache. */
fl_step_load fl_drive_load(const fl_drive *s);

/* Set the clock on all GPUs of the server if it changes. */
void fl_drive_set(fl_drive *s, const fl_facts *facts, const fl_sample *sample, uint32_t server, uint32_t clock,
                  fl_command *c);

/* Return the value of a signal if it is known, finite and not negative; else NAN. */
double fl_drive_value(const fl_server_sample *s, int id);

static inline uint32_t fl_drive_top(const fl_drive *s) { return s->times.clocks - 1; }

void fl_drive_set_default(fl_drive *s, const fl_facts *facts, uint32_t server, fl_command *c);

/* Set a clock on all GPUs of the server; mhz 0: the default. */
void fl_drive_clock(const fl_facts *facts, uint32_t server, double mhz, fl_command *c);

/* Rows of the parameters that policies have that learn the times of steps; the struct is `params`. */
#define FL_DRIVE_ROW_CLOCKS                                                                                            \
    FL_PARAM(params, clocks_mhz, LIST(1, 100000), "MHz", "",                                                           \
             "clocks to choose from, 15 at most; none: six from half of the top to the top (assumed). The top is "     \
             "always one")
#define FL_DRIVE_ROW_MARGIN                                                                                            \
    FL_PARAM(params, margin, REAL(-0.9, 10), "", "0",                                                                  \
             "above the targets that is allowed; -0.05 aims 5 % below them (assumed)")
#define FL_DRIVE_ROWS_LEARN                                                                                            \
    FL_PARAM(params, settle_ms, REAL(0, 60000), "ms", "100",                                                           \
             "longest wait for the achieved clock to show the one set (assumed)"),                                     \
        FL_PARAM(params, tolerance, REAL(0, 1), "", "0.03",                                                            \
                 "by how much a step at a clock not seen yet may pass top / f (assumed)")

/* Members of a descriptor that all policies for servers have alike: they drive clocks, and keep a state for each GPU.
 * Their file has params. */
#define FL_DRIVE_POLICY(state) .gpu_drives = FL_BIT(FL_SET_SM_MHZ), .gpu_size = sizeof(state), FL_POLICY_PARTS(params)

/* LinUCB with one line per arm (Li, Chu, Langford, Schapire, "A contextual-bandit approach to personalized news article
 * recommendation", 2010, Algorithm 1): the reward of an arm is a straight line in the context; the arm with the largest
 * upper confidence bound is pulled. */

enum { FL_LINUCB_ARMS = 32, FL_LINUCB_TERMS = 8 };

typedef struct fl_linucb_arm {
    double pulls, mean;                               /* of the rewards */
    double inverse[FL_LINUCB_TERMS][FL_LINUCB_TERMS]; /* of A */
    double b[FL_LINUCB_TERMS];
    uint32_t pruned; /* 1: never chosen again */
} fl_linucb_arm;

typedef struct fl_linucb {
    uint32_t arms;
    fl_linucb_arm arm[FL_LINUCB_ARMS];
} fl_linucb;

/* A = ridge x identity for each arm. ridge > 0. */
void fl_linucb_begin(fl_linucb *l, uint32_t arms, double ridge);

/* Learn the reward of an arm that was pulled in this context. */
void fl_linucb_learn(fl_linucb *l, uint32_t arm, const double *x, double reward);

/* Return the upper confidence bound of an arm's reward: the prediction + alpha sqrt(x' A^-1 x). */
double fl_linucb_bound(const fl_linucb *l, uint32_t arm, const double *x, double alpha);

/* Return the arm with the largest bound that was not pruned; of equals the last. */
uint32_t fl_linucb_choose(const fl_linucb *l, const double *x, double alpha);
