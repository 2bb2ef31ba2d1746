/* EnergyUCB (Xu et al.): a multi-armed bandit over core clocks, and the baselines it is held against.
 *
 * One arm is one SM clock for all GPUs of the node. A pull lasts one interval: the arm is set, and what the interval
 * cost gives the reward r = -E UC/UU (Eq. 4). Rewards are not normalised, so their scale decides how much is explored:
 * reward_scale is a parameter.
 *
 * A pull is counted only where it can be judged. Not while an energy counter has not moved (a reward of 0 would be the
 * best there is), not while nothing was copied (UU = 0) or nothing but copied (UC = 0, for which Eq. 4 as printed gives
 * that reward of 0 too, whatever the clock), not before the clock has settled: the arm stays and the policy waits.
 * UC and UU are the busy times of the compute and the copy engines. A board without such counters has its utilisations
 * instead: the ratio of their means over the pull, from the second refresh on, whose window lies in the pull.
 * After `patience_ms` without a judgement the driver's default holds until readings return.
 *
 * energyucb-v2 is the paper's second version (v2, February 2026) by an independent, tested re-implementation that cites
 * its equations: no round robin, an optimistic mean at the start, a cost for leaving the arm in force (Eq. 5), and a
 * form that keeps a bound on progress. An arm competes where it was never pulled, or where its progress is at least
 * 1 - delta of that of the top clock. A slowdown of b is a loss of rate of delta = b / (1 + b). Progress is the rate of
 * iteration markers, else of kernels, else of bytes; without such a counter it is UU/UC, the inverse of what the reward
 * takes for time. The paper's alpha, lambda and initial mean are not known.
 *
 * random and round-robin choose without rewards, so they take another arm at each step, judged or not. Their rewards
 * are for those who watch them. */
#include "policies/papers/inside.h"

#include "policies/policy.h"
#include "policies/random.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { ARMS_MAX = 256, NO_ARM = -1 };
enum { PULLS, NEXT };

typedef enum kind { UCB, UCB_V2, RANDOM, ROUND_ROBIN, EPSILON_GREEDY } kind;

typedef struct params { /* those of one policy are a prefix or subset of these; unused ones stay zero */
    fl_table arms_mhz;
    double interval_ms, reward_scale, patience_ms, settle_ms;
    double alpha;
    int64_t cycles, ln_t;
    double epsilon;
    int64_t explore;
    int64_t other;
    double lambda, initial, bound;
} params;

typedef struct best_arms { /* arm with the largest of each; of equals the lowest, an arm never pulled before all */
    int32_t bound, mean;
} best_arms;

typedef struct rest { /* all arms but one, while that one alone is pulled: nothing of theirs changes but `wide` */
    int32_t arm;      /* which one; NO_ARM: nothing is known */
    int32_t mean_arm; /* of the others the one with the largest mean, */
    double mean;      /* and that mean */
    double bound;     /* their bounds of Eq. 5 are this at most, */
    double until;     /* as long as t is no more than this */
    double wide;      /* node_state.wide is at least this from now on */
} rest;

typedef struct node_state {
    fl_random random;
    uint64_t pulls;     /* judged, of all arms: t */
    int64_t since_ns;   /* since when the present pull waits to be judged */
    int64_t settled_ns; /* when the clock was found settled; < 0: not yet */
    double reward;      /* of the last pull; NAN before the first */
    uint32_t arms;
    int32_t now;      /* arm in force; NO_ARM before the first */
    uint32_t parked;  /* the default holds, for want of readings */
    uint32_t held;    /* this step could not judge */
    uint32_t tried;   /* arms pulled at least once */
    double wide;      /* alpha sqrt(ln t) of Eq. 5, */
    uint64_t wide_of; /* as of so many pulls */
    best_arms best;   /* as of the last pull judged */
    rest rest;
    /* of v2: a counter of progress as of the pull's beginning, and the mean progress of each arm */
    int32_t counter;
    double counted, ratio; /* UC/UU of the last pull */
    int64_t counted_ns;
    double progress[ARMS_MAX];
    /* of each arm; what every choice reads of all arms lies together */
    double mean[ARMS_MAX]; /* reward so far */
    double root[ARMS_MAX]; /* 1 / sqrt(pulls); 0 before the first */
    uint64_t arm_pulls[ARMS_MAX];
    double mhz[ARMS_MAX];
} node_state;

static fl_bandit_base *bases(void *state) { return fl_gpu_states(state, sizeof(node_state)); }

/* t of Eq. 5. The released program counts the pulls so far, Algorithm 1 begins with t = 1 and is one ahead. */
static double rounds(const node_state *n, const params *p) { return (double)(int64_t)n->pulls + (p->ln_t == NEXT); }

/* Brings `wide` up to date: alpha sqrt(ln t) of Eq. 5. A logarithm takes long, and most steps do without. */
static void widen(node_state *n, const params *p) {
    const double t = rounds(n, p);
    if (n->wide_of != n->pulls)
        n->wide = p->alpha > 0 && t > 1 ? p->alpha * sqrt(log(t)) : 0;
    n->wide_of = n->pulls;
}

/* ---- set-up -------------------------------------------------------------------------------------------------------
 */

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    node_state *n = state;
    const params *p = param_bytes;
    const fl_ladder ladder = facts->gpu_count ? facts->gpu[0].sm : (fl_ladder){0};
    const uint32_t listed = p->arms_mhz.row_count;
    n->arms = listed ? listed : ladder.count < ARMS_MAX ? ladder.count : ARMS_MAX;
    if (!n->arms)
        return "needs an SM ladder";
    if (n->arms > ARMS_MAX)
        return "arms_mhz must hold 256 clocks at most";
    for (uint32_t i = 0; i < n->arms; i++) {
        /* a longer ladder is spread over, both ends included */
        const uint32_t at =
            n->arms > 1 ? (uint32_t)(((uint64_t)i * (ladder.count - 1) + (n->arms - 1) / 2) / (n->arms - 1)) : 0;
        n->mhz[i] = listed ? p->arms_mhz.cell[i] : ladder.mhz[at];
        if (listed && i && !(n->mhz[i] > n->mhz[i - 1]))
            return "arms_mhz must be ascending";
    }
    n->random = fl_random_seed(facts->seed, UINT64_C(0x62616e646974));
    n->now = n->rest.arm = NO_ARM;
    n->counter = -1;
    n->reward = NAN;
    return NULL;
}

/* ---- choosing -----------------------------------------------------------------------------------------------------
 */

static double bound_of(const node_state *n, uint32_t arm, double wide) { return n->mean[arm] + wide * n->root[arm]; }

/* The arm with the largest mean + alpha sqrt(ln t / n) (Eq. 5) and that with the largest mean. */
static best_arms best(const node_state *n) {
    for (uint32_t i = 0; n->tried < n->arms && i < n->arms; i++)
        if (!n->arm_pulls[i])
            return (best_arms){(int32_t)i, (int32_t)i};
    best_arms found = {0};
    double most = -INFINITY, most_mean = -INFINITY;
    for (uint32_t i = 0; i < n->arms; i++) {
        const double mean = n->mean[i], value = bound_of(n, i, n->wide);
        if (value > most) {
            most = value;
            found.bound = (int32_t)i;
        }
        if (mean > most_mean) {
            most_mean = mean;
            found.mean = (int32_t)i;
        }
    }
    return found;
}

/* A bandit mostly pulls one arm again and again. The bounds of the others grow with `wide` alone, so those of a `wide`
 * some steps ahead limit them until then. ln t grows by 2^-10 up to `until`, and its root by half as much: what is left
 * to 2^-10 is more than any rounding. */
static rest all_but(const node_state *n, const params *p, uint32_t arm) {
    const double t = rounds(n, p), wide = n->wide * (1 + 0x1p-10);
    rest r = {.arm = (int32_t)arm,
              .mean_arm = NO_ARM,
              .mean = -INFINITY,
              .bound = -INFINITY,
              .until = p->alpha > 0 ? pow(t, 1 + 0x1p-10) : INFINITY,
              .wide = n->wide * (1 - 0x1p-40)};
    for (uint32_t i = 0; i < n->arms; i++) {
        const double value = bound_of(n, i, wide);
        if (i != arm && value > r.bound)
            r.bound = value;
        if (i != arm && n->mean[i] > r.mean) {
            r.mean = n->mean[i];
            r.mean_arm = (int32_t)i;
        }
    }
    return r;
}

/* The best arms once `arm` was judged: as best() finds them, without a look at the others where they cannot be. */
static void rank(node_state *n, const params *p, uint32_t arm) {
    const rest *r = &n->rest;
    const double mean = n->mean[arm];
    if (r->arm == (int32_t)arm && rounds(n, p) <= r->until && bound_of(n, arm, r->wide) > r->bound &&
        (mean > r->mean || mean < r->mean)) {
        n->best = (best_arms){(int32_t)arm, mean > r->mean ? (int32_t)arm : r->mean_arm};
        return;
    }
    widen(n, p);
    n->best = best(n);
    n->rest = n->tried == n->arms && n->best.bound == (int32_t)arm ? all_but(n, p, arm) : (rest){.arm = NO_ARM};
}

static int32_t least_pulled(const node_state *n) {
    int32_t found = 0;
    for (uint32_t i = 1; i < n->arms; i++)
        if (n->arm_pulls[i] < n->arm_pulls[found])
            found = (int32_t)i;
    return found;
}

/* ---- v2 ---- */

static const int counters[] = {FL_GPU_ITERATIONS, FL_GPU_KERNELS, FL_GPU_DRAM_BYTES};

/* The first counter of progress that all GPUs tell, and its sum over them; -1: none. */
static int32_t count_progress(const fl_sample *s, double *sum) {
    for (size_t k = 0; k < FL_COUNT(counters); k++) {
        uint32_t known = 0;
        *sum = 0;
        for (uint32_t i = 0; i < s->gpu_count && fl_gpu_known(&s->gpu[i], counters[k]); i++)
            *sum += s->gpu[i].value[counters[k]], known++;
        if (known && known == s->gpu_count)
            return (int32_t)k;
    }
    return -1;
}

/* Learn the progress of a pull that was judged. */
static void learn_progress(node_state *n, const fl_sample *s) {
    const int32_t arm = n->now;
    double sum;
    const int32_t counter = count_progress(s, &sum);
    const double time_s = (double)(s->time_ns - n->counted_ns) * 1e-9;
    double rate = 1 / n->ratio;
    if (counter >= 0 && counter == n->counter && time_s > 0)
        rate = (sum - n->counted) / time_s;
    n->progress[arm] += (rate - n->progress[arm]) / (double)(int64_t)n->arm_pulls[arm];
}

/* The arm of the largest index (v2, Eq. 5) among those that keep the bound; of equals the lowest clock. */
static int32_t choose_v2(const node_state *n, const params *p, double bound) {
    const uint32_t top = n->arms - 1;
    const double t = (double)(int64_t)n->pulls + 1, delta = bound / (1 + bound);
    int32_t found = (int32_t)top;
    double most = -INFINITY;
    if (bound > 0 && !n->arm_pulls[top])
        return (int32_t)top;
    for (uint32_t i = 0; i < n->arms; i++) {
        const double pulls = fmax(1, (double)(int64_t)n->arm_pulls[i]);
        const double mean = n->arm_pulls[i] ? n->mean[i] : p->initial;
        const double index = mean + p->alpha * sqrt(log(t) / pulls) - ((int32_t)i == n->now ? 0 : p->lambda);
        const int kept = !(bound > 0) || !n->arm_pulls[i] || 1 - n->progress[i] / n->progress[top] <= delta;
        if (kept && index > most)
            most = index, found = (int32_t)i;
    }
    return found;
}

/* Whether rewards decide what comes next. Where they do not, a pull need not be judged, and nobody but a watcher asks
 * for its reward. */
static int learns(kind k) { return k == UCB || k == UCB_V2 || k == EPSILON_GREEDY; }

static int32_t choose(node_state *n, const params *p, kind k, double stated) {
    switch (k) {
    case UCB_V2:
        return choose_v2(n, p, p->bound > 0 ? p->bound : stated);
    case UCB: /* Algorithm 1: C cycles through all arms, then the largest bound */
        if (n->pulls < (uint64_t)p->cycles * n->arms)
            return (int32_t)(n->pulls % n->arms);
        return n->best.bound;
    case RANDOM:
        if (p->other && n->arms > 1 && n->now != NO_ARM)
            return (int32_t)((uint64_t)(n->now + 1) + fl_random_below(&n->random, n->arms - 1)) % (int32_t)n->arms;
        return (int32_t)fl_random_below(&n->random, n->arms);
    case ROUND_ROBIN:
        return (int32_t)((uint64_t)(n->now + 1) % n->arms);
    case EPSILON_GREEDY:
        if (fl_random_unit(&n->random) < p->epsilon)
            return p->explore ? least_pulled(n) : (int32_t)fl_random_below(&n->random, n->arms);
        return n->best.mean;
    }
    return 0;
}

/* ---- one step -----------------------------------------------------------------------------------------------------
 */

static void set_clock(fl_command *c, const fl_facts *facts, double mhz) {
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        if (facts->gpu[i].sm.count)
            fl_set_gpu(c, i, FL_SET_SM_MHZ, mhz > 0 ? fl_ladder_up(facts->gpu[i].sm, mhz) : FL_DEFAULT);
}

/* The clock is settled where every GPU that tells shows it, or once settle_ms are over: a power wall may keep it lower
 * for good. */
static int settled(const node_state *n, const params *p, const fl_facts *facts, const fl_sample *s) {
    int all = 1;
    for (uint32_t i = 0; i < s->gpu_count; i++)
        if (fl_gpu_known(&s->gpu[i], FL_GPU_SM_MHZ) &&
            s->gpu[i].value[FL_GPU_SM_MHZ] != fl_ladder_up(facts->gpu[i].sm, n->mhz[n->now]))
            all = 0;
    return all || (double)(s->time_ns - n->since_ns) >= p->settle_ms * 1e6;
}

/* Puts an arm in force. One that stays is settled already. */
static void pull(node_state *n, int32_t next, int set, const fl_facts *facts, const fl_sample *s, fl_command *c) {
    if (set)
        set_clock(c, facts, n->mhz[next]);
    n->settled_ns = set ? -1 : s->time_ns;
    n->now = next;
    n->since_ns = s->time_ns;
}

static int judgeable(const fl_bandit_draw *draw) { return draw->gpus && !draw->late && draw->ratio > 0; }

/* True once the present pull could be judged. */
static int judge(node_state *n, const params *p, const fl_facts *facts, const fl_sample *s) {
    const double interval_ns = p->interval_ms * 1e6;
    if (n->settled_ns < 0) {
        if (!settled(n, p, facts, s))
            return 0;
        n->settled_ns = s->time_ns;
        /* Settled within its first interval: that interval is the pull, as in the paper's replay. Else the pull begins
         * now, at the new clock: with the first refresh of each counter from now on. */
        if ((double)(s->time_ns - n->since_ns) > 1.5 * interval_ns) {
            fl_bandit_latch(bases(n), s);
            return 0;
        }
    }
    const fl_bandit_draw draw = fl_bandit_read(bases(n), s, interval_ns);
    if (!judgeable(&draw))
        return 0;
    const int32_t arm = n->now;
    n->reward = -draw.energy_j * draw.ratio * p->reward_scale;
    const double pulls = (double)(int64_t)++n->arm_pulls[arm];
    n->tried += n->arm_pulls[arm] == 1;
    n->mean[arm] += (n->reward - n->mean[arm]) / pulls;
    n->root[arm] = 1 / sqrt(pulls);
    n->pulls++;
    n->ratio = draw.ratio;
    return 1;
}

/* Nothing to judge by: the arm stays for a while, then the driver's default holds. */
static void wait_for_readings(node_state *n, const params *p, const fl_facts *facts, const fl_sample *s,
                              fl_command *c) {
    if (n->parked || !((double)(s->time_ns - n->since_ns) > p->patience_ms * 1e6))
        return;
    set_clock(c, facts, 0);
    fl_bandit_latch(bases(n), s);
    n->parked = 1;
}

/* Under the default no arm is judged; once it could be, the arm that waited is pulled anew. */
static void leave_parking(node_state *n, const params *p, const fl_facts *facts, const fl_sample *s, fl_command *c) {
    const fl_bandit_draw draw = fl_bandit_read(bases(n), s, p->interval_ms * 1e6);
    if (!judgeable(&draw))
        return;
    n->parked = 0;
    pull(n, n->now, 1, facts, s, c);
    fl_bandit_latch(bases(n), s);
}

#define PROBES(X)                                                                                                      \
    X("arm_mhz", "MHz", "clock of the arm in force; none while the default holds",                                     \
      arm != NO_ARM && !n->parked ? n->mhz[arm] : (double)NAN)                                                         \
    X("pulls", "", "pulls judged so far: t", (double)n->pulls)                                                         \
    X("reward", "", "of the last pull (Eq. 4)", n->reward)                                                             \
    X("best_mhz", "MHz", "clock with the largest mean reward, once each was pulled",                                   \
      n->tried == n->arms ? n->mhz[n->best.mean] : (double)NAN)                                                        \
    X("bound", "", "upper confidence bound of the arm in force (Eq. 5)",                                               \
      arm != NO_ARM && n->arm_pulls[arm] && n->pulls > 1 ? n->mean[arm] + n->wide * n->root[arm] : (double)NAN)        \
    X("held", "", "1: nothing to judge by, so nothing was decided", n->held)
static const fl_probe probe_rows[] = {PROBES(FL_PROBE_NODE_ROW)};

static void show(node_state *n, const params *p, fl_command *c) {
    const int32_t arm = n->now;
    if (c->unwatched)
        return;
    widen(n, p);
    fl_show_all(c, 0, 0, (double[]){PROBES(FL_PROBE_VALUE)}, FL_COUNT(probe_rows));
}

static void step(void *state, const params *p, kind k, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    node_state *n = state;
    c->delay_ns = (int64_t)(p->interval_ms * 1e6 + 0.5);
    n->held = 0;
    if (n->parked) {
        leave_parking(n, p, facts, sample, c);
        n->held = n->parked;
    } else {
        const int asks = learns(k) || !c->unwatched;
        const int judged = asks && n->now != NO_ARM && judge(n, p, facts, sample);
        if (judged && k == UCB_V2)
            learn_progress(n, sample);
        if (judged)
            rank(n, p, (uint32_t)n->now);
        if (judged || n->now == NO_ARM || !learns(k)) {
            const int32_t next = choose(n, p, k, facts->bound);
            pull(n, next, next != n->now, facts, sample, c);
            if (k == UCB_V2)
                n->counter = count_progress(sample, &n->counted), n->counted_ns = sample->time_ns;
            if (asks)
                fl_bandit_latch(bases(n), sample);
        } else {
            n->held = 1;
            wait_for_readings(n, p, facts, sample, c);
        }
    }
    show(n, p, c);
}

#define STEP(ident, which)                                                                                             \
    static void ident(void *state, const void *p, const fl_facts *f, const fl_sample *s, fl_command *c) {              \
        step(state, p, which, f, s, c);                                                                                \
    }
STEP(ucb_step, UCB)
STEP(ucb_v2_step, UCB_V2)
STEP(random_step, RANDOM)
STEP(round_robin_step, ROUND_ROBIN)
STEP(epsilon_step, EPSILON_GREEDY)

/* ---- descriptors --------------------------------------------------------------------------------------------------
 */

#define COMMON_ROWS                                                                                                    \
    FL_PARAM(params, arms_mhz, LIST(1, 100000), "MHz", "", "clocks f_1..f_K; none: the SM ladder of GPU 0"),           \
        FL_PARAM(params, interval_ms, REAL(0.1, 60000), "ms", "10", "time step t of Algorithm 1: one pull"),           \
        FL_PARAM(params, reward_scale, REAL(1e-9, 1e9), "", "1",                                                       \
                 "factor on the reward of Eq. 4, which the paper does not normalise"),                                 \
        FL_PARAM(params, settle_ms, REAL(0, 60000), "ms", "100",                                                       \
                 "longest wait for the achieved clock to show the arm's before a pull is judged (assumed)")
#define PATIENCE_ROW                                                                                                   \
    FL_PARAM(params, patience_ms, REAL(1, 3600000), "ms", "1000",                                                      \
             "longest wait for a pull that can be judged, then the default clock holds (assumed)")
static const fl_param ucb_rows[] = {
    COMMON_ROWS, PATIENCE_ROW, FL_PARAM(params, alpha, REAL(0, 1e9), "", "1", "exploration weight alpha (Eq. 5)"),
    FL_PARAM(params, cycles, INT(0, 1000000), "", "4", "cycles C of pure exploration (Algorithm 1, lines 3-11)"),
    FL_PARAM(params, ln_t, CHOICE("pulls|next"), "", "pulls",
             "t of ln t in Eq. 5: pulls so far (the released program), or one more (Algorithm 1)")};
static const fl_param ucb_v2_rows[] = {
    COMMON_ROWS,
    PATIENCE_ROW,
    FL_PARAM(params, alpha, REAL(0, 1e9), "", "0.1",
             "exploration weight alpha (v2, Eq. 5; found by search, as it is not published)"),
    FL_PARAM(params, lambda, REAL(0, 1e9), "", "1",
             "what an arm must be better by to replace the one in force (v2, Eq. 5)"),
    FL_PARAM(params, initial, REAL(-1e12, 1e12), "", "0", "mean reward of an arm before its first pull"),
    FL_PARAM(params, bound, REAL(0, 10), "", "0", "slowdown that is allowed; 0: what --bound states, or none")};
static const fl_param random_rows[] = {
    COMMON_ROWS,
    FL_PARAM(params, other, BOOL, "", "0",
             "1: never the same clock twice in a row, the other reading of 'a different frequency at random'")};
static const fl_param round_robin_rows[] = {COMMON_ROWS};
static const fl_param epsilon_rows[] = {
    COMMON_ROWS, PATIENCE_ROW,
    FL_PARAM(params, epsilon, REAL(0, 1), "", "0.1", "share of pulls that explore (Implementation Details)"),
    FL_PARAM(params, explore, CHOICE("uniform|least"), "", "uniform",
             "any clock alike, or the one chosen least: two readings of 'less frequently chosen options'")};

#define ENERGY(how) how(GPU_ENERGY_J), how(GPU_ENERGY_NS), how(GPU_SM_MHZ)
/* FL_BANDIT_INSTEAD: where one of the engines has no counter, both utilisations. */
#define LEARNER                                                                                                        \
    ENERGY(FL_NEEDS), FL_NEEDS(GPU_COMPUTE_NS), FL_NEEDS(GPU_COPY_NS), FL_INSTEAD(GPU_UTIL_GPU_PCT, GPU_COMPUTE_NS),   \
        FL_INSTEAD(GPU_UTIL_MEM_PCT, GPU_COMPUTE_NS), FL_INSTEAD(GPU_UTIL_GPU_PCT, GPU_COPY_NS),                       \
        FL_INSTEAD(GPU_UTIL_MEM_PCT, GPU_COPY_NS)
static const fl_signal_row learner_signals[] = {LEARNER};
static const fl_signal_row ucb_v2_signals[] = {LEARNER, FL_USES(GPU_ITERATIONS), FL_USES(GPU_KERNELS),
                                               FL_USES(GPU_DRAM_BYTES)};
/* For the rewards that they show. */
static const fl_signal_row baseline_signals[] = {ENERGY(FL_USES), FL_USES(GPU_COMPUTE_NS), FL_USES(GPU_COPY_NS)};

#define BANDIT(title, text, where, signals, rows, function)                                                            \
    {                                                                                                                  \
        FL_POLICY_ABI, .name = title, .summary = text, .source = where, FL_SIGNAL_ROWS(signals),                       \
                       .gpu_drives = FL_BIT(FL_SET_SM_MHZ), FL_PARAM_ROWS(rows, params), FL_PROBE_ROWS(probe_rows),    \
                       .state_size = sizeof(node_state), .gpu_size = sizeof(fl_bandit_base), .init = init,             \
                       .step = function                                                                                \
    }

FL_POLICY(energyucb) = BANDIT("energyucb", "a bandit over SM clocks: upper confidence bounds of energy x core/uncore",
                              "EnergyUCB, Algorithm 1, reward Eq. 4, bound Eq. 5", learner_signals, ucb_rows, ucb_step);
FL_POLICY(energyucb_v2) =
    BANDIT("energyucb-v2", "energyucb with an optimistic start, a cost of switching and a bound on progress",
           "EnergyUCB v2 (arXiv 2410.11855v2), index Eq. 5 and QoS form, by a re-implementation that cites them",
           ucb_v2_signals, ucb_v2_rows, ucb_v2_step);
FL_POLICY(random) = BANDIT("random", "sets another SM clock at random at each step", "EnergyUCB, baseline RDFreq",
                           baseline_signals, random_rows, random_step);
FL_POLICY(round_robin) = BANDIT("round-robin", "sets each SM clock in turn, one a step", "EnergyUCB, baseline RRFreq",
                                baseline_signals, round_robin_rows, round_robin_step);
FL_POLICY(epsilon_greedy) = BANDIT("epsilon-greedy",
                                   "sets the SM clock of the best mean reward; sometimes tries a random one",
                                   "EnergyUCB, baseline epsilon-greedy (epsilon 0.10), reward Eq. 4", learner_signals,
                                   epsilon_rows, epsilon_step);
