/* EnergyUCB and its baselines: the sequence of arms against a second implementation written from the paper's Algorithm
 * 1, and what a pull needs before it counts. */
#include "policies/papers/inside.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "policies/registry/registry.h"
#include "sim/draws/draws.h"
#include "sim/instance/instance.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/golden.h"

#include <math.h>

enum { K = 9, STEPS_MAX = 20000, MS = 1000000 };

static const int32_t ladder[K] = {800, 900, 1000, 1100, 1200, 1300, 1400, 1500, 1600};

static const fl_policy *policy(const char *name) {
    for (size_t i = 0; i < fl_policies_count; i++)
        if (!strcmp(fl_policies[i]->name, name))
            return fl_policies[i];
    printf("no policy %s\n", name);
    exit(1);
}

static fl_facts facts_of(uint32_t gpus, const fl_gpu_facts *gpu, uint64_t seed) {
    return (fl_facts){.seed = seed, .gpu_count = gpus, .gpu = gpu};
}

/* ---- against the paper ---- */

typedef struct trail { /* clocks in force, step by step */
    double mhz[STEPS_MAX];
    size_t count;
    double now;
} trail;

static fl_status follow(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    trail *t = user;
    (void)sample;
    (void)d;
    if (decision->gpu[0][FL_SET_SM_MHZ].set)
        t->now = decision->gpu[0][FL_SET_SM_MHZ].value;
    if (t->count < STEPS_MAX)
        t->mhz[t->count++] = t->now;
    return FL_OK;
}

/* The draws of a replay: energy and ratio each from a sequence of their own, one of each a step. */
typedef struct dice {
    fl_random energy, ratio;
} dice;

static double throw_one(fl_random *r, double mean, double sd) {
    for (;;) {
        const double x = mean + sd * fl_random_normal(r);
        if (x > 0)
            return x;
    }
}

typedef enum rule { UCB, UCB_NEXT, GREEDY_UNIFORM, GREEDY_LEAST, ROBIN } rule;

/* Algorithm 1 of the paper, kept as the paper has it: sums and counts, means formed when needed. t counts from 0, as in
 * the released program; UCB_NEXT from 1, as printed. */
static size_t reference(const fl_draws *draws, rule how, double scale, double alpha, int cycles, double epsilon,
                        uint64_t seed, double *mhz) {
    double sum[K] = {0}, progress = 0;
    int n[K] = {0};
    dice roll = {fl_random_seed(seed, UINT64_C(0x656e65726779)), fl_random_seed(seed, UINT64_C(0x726174696f))};
    fl_random choice = fl_random_seed(seed, UINT64_C(0x62616e646974));
    size_t t = 0;
    for (; progress < 1 - 1e-9 && t < STEPS_MAX; t++) {
        int arm = 0;
        double best = -HUGE_VAL;
        const bool explore = (how == GREEDY_UNIFORM || how == GREEDY_LEAST) && fl_random_unit(&choice) < epsilon;
        if (how == ROBIN || (how <= UCB_NEXT && t < (size_t)(cycles * K))) {
            arm = (int)(t % K);
        } else if (explore && how == GREEDY_UNIFORM) {
            arm = (int)fl_random_below(&choice, K);
        } else {
            for (int i = 0; i < K; i++) {
                double value = n[i] ? sum[i] / n[i] : HUGE_VAL;
                if (how <= UCB_NEXT)
                    value += alpha * sqrt(log((double)t + how) / n[i]);
                if (explore)
                    value = -n[i];
                if (value > best) {
                    best = value;
                    arm = i;
                }
            }
        }
        const fl_draw_clock *c = &draws->clock[arm];
        const double energy = throw_one(&roll.energy, c->energy_j, c->energy_sd_j),
                     ratio = throw_one(&roll.ratio, c->ratio, c->ratio_sd);
        sum[arm] += -energy * ratio * scale;
        n[arm]++;
        progress += 0.01 / c->time_s;
        mhz[t] = c->mhz;
    }
    return t;
}

static fl_draws pot3d(double cv, double exponent) {
    fl_sweep sweep;
    fl_diag d = {0};
    fl_draws draws = {0};
    const fl_draws_options o = {.step_ms = 10, .energy_cv = cv, .ratio = 1, .ratio_exponent = exponent, .ratio_cv = cv};
    if (fl_sweep_read(FL_ROOT "/traces/samples/energyucb-table1.csv", &sweep, NULL, &d)) {
        printf("%s\n", d.message);
        exit(1);
    }
    for (uint32_t i = 0; i < sweep.name_count; i++)
        if (!strcmp(sweep.names[i], "528.pot3d"))
            FL_CHECK(fl_draws_make(&draws, &sweep, i, &o, &d) == FL_OK, "%s", d.message);
    fl_sweep_free(&sweep);
    return draws;
}

static void replay(const fl_draws *draws, const char *name, const fl_setting *set, size_t count, uint64_t seed,
                   trail *t) {
    const fl_gpu_facts gpu = {.name = "six", .sm = {ladder, K}};
    const fl_facts facts = facts_of(1, &gpu, seed);
    const fl_layer layer = {.origin = "test", .setting = set, .count = count};
    const fl_draws_run run = {.draws = draws,
                              .facts = &facts,
                              .policy = policy(name),
                              .layer = &layer,
                              .layer_count = 1,
                              .on_step = follow,
                              .user = t};
    fl_draws_result r;
    fl_diag d = {0};
    *t = (trail){.now = 1600};
    FL_CHECK(fl_draws_replay(&run, &r, &d) == FL_OK, "%s", d.message);
    fl_draws_result_free(&r);
}

static void test_same_arms(void) {
    static const struct {
        const char *policy;
        rule how;
        const char *name, *value;
        double scale, alpha, epsilon;
        int cycles;
    } row[] = {
        {"energyucb", UCB, "reward_scale", "1", 1, 1, 0, 4},
        {"energyucb", UCB, "reward_scale", "0.01", 0.01, 1, 0, 4},
        {"energyucb", UCB, "alpha", "7", 1, 7, 0, 4},
        {"energyucb", UCB, "ln_t", "pulls", 1, 1, 0, 4},
        {"energyucb", UCB_NEXT, "ln_t", "next", 1, 1, 0, 4},
        {"energyucb", UCB, "cycles", "11", 1, 1, 0, 11},
        {"epsilon-greedy", GREEDY_UNIFORM, "explore", "uniform", 1, 0, 0.1, 0},
        {"epsilon-greedy", GREEDY_LEAST, "explore", "least", 1, 0, 0.1, 0},
        {"epsilon-greedy", GREEDY_UNIFORM, "epsilon", "0.4", 1, 0, 0.4, 0},
        {"round-robin", ROBIN, "reward_scale", "1", 1, 0, 0, 0},
    };
    static trail t;
    static double mhz[STEPS_MAX];
    fl_draws draws = pot3d(0.1, 1);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            const fl_setting set = {.name = row[i].name, .text = row[i].value};
            const size_t n =
                reference(&draws, row[i].how, row[i].scale, row[i].alpha, row[i].cycles, row[i].epsilon, seed, mhz);
            replay(&draws, row[i].policy, &set, 1, seed, &t);
            size_t same = 0;
            while (same < n && same < t.count && t.mhz[same] == mhz[same])
                same++;
            FL_CHECK(n > 5000 && t.count == n && same == n, "%s %s=%s, seed %llu: %zu of %zu steps alike (%zu here)",
                     row[i].policy, row[i].name, row[i].value, (unsigned long long)seed, same, n, t.count);
        }
    fl_draws_free(&draws);
}

/* The replay is the same where nobody follows it: then no probe is made, nor what only probes need. */
static void test_unfollowed(void) {
    static const char *const names[] = {"energyucb", "epsilon-greedy", "random", "round-robin"};
    const fl_gpu_facts gpu = {.name = "six", .sm = {ladder, K}};
    fl_draws draws = pot3d(0.1, 1);
    for (size_t i = 0; i < FL_COUNT(names); i++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            static trail t;
            const fl_facts facts = facts_of(1, &gpu, seed);
            fl_draws_run run = {
                .draws = &draws, .facts = &facts, .policy = policy(names[i]), .on_step = follow, .user = &t};
            fl_draws_result with, without;
            fl_diag d = {0};
            t = (trail){.now = 1600};
            FL_CHECK(fl_draws_replay(&run, &with, &d) == FL_OK, "%s", d.message);
            run.on_step = NULL;
            FL_CHECK(fl_draws_replay(&run, &without, &d) == FL_OK, "%s", d.message);
            bool same = with.energy_j == without.energy_j && with.time_s == without.time_s &&
                        with.switches == without.switches && with.steps == without.steps;
            for (int k = 0; k < K; k++)
                same = same && with.step_count[k] == without.step_count[k];
            FL_CHECK(same && with.steps > 5000, "%s, seed %llu: %.17g J followed, %.17g J not", names[i],
                     (unsigned long long)seed, with.energy_j, without.energy_j);
            fl_draws_result_free(&with);
            fl_draws_result_free(&without);
        }
    fl_draws_free(&draws);
}

static void test_random(void) {
    static trail t;
    fl_draws draws = pot3d(0.1, 1);
    for (int other = 0; other < 2; other++) {
        const fl_setting set = {.name = "other", .text = other ? "1" : "0"};
        size_t seen[K] = {0}, repeats = 0;
        replay(&draws, "random", &set, 1, 3, &t);
        for (size_t i = 0; i < t.count; i++) {
            seen[(int)(t.mhz[i] - 800) / 100]++;
            repeats += i && t.mhz[i] == t.mhz[i - 1];
        }
        for (int k = 0; k < K; k++)
            FL_CHECK(fabs((double)seen[k] / (double)t.count - 1.0 / K) < 0.02, "other=%d: %zu of %zu at %d MHz", other,
                     seen[k], t.count, ladder[k]);
        FL_CHECK(other ? repeats == 0 : fabs((double)repeats / (double)t.count - 1.0 / K) < 0.02,
                 "other=%d: %zu repeats of %zu", other, repeats, t.count);
    }
    fl_draws_free(&draws);
}

static void test_golden(void) {
    static trail t;
    static char text[65536];
    fl_draws draws = pot3d(0.1, 1);
    size_t used = 0;
    for (int k = 0; k < 2; k++) {
        const char *name = k ? "epsilon-greedy" : "energyucb";
        replay(&draws, name, NULL, 0, 1, &t);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s: clock,steps\n", name);
        for (size_t i = 0, first = 0; i <= 600; i++)
            if (i && (i == 600 || t.mhz[i] != t.mhz[i - 1])) {
                used += (size_t)snprintf(text + used, sizeof text - used, "%g,%zu\n", t.mhz[i - 1], i - first);
                first = i;
            }
    }
    fl_draws_free(&draws);
    fl_golden_check("bandit.csv", text);
}

/* ---- what counts as a pull ---- */

typedef struct rig { /* a node whose counters a test turns by hand */
    fl_gpu_facts gpu_facts[2];
    fl_facts facts;
    fl_instance *in;
    fl_gpu_sample gpu[2];
    fl_sample sample;
    const fl_decision *decision;
} rig;

static void open_rig_for(rig *r, const char *name, uint32_t gpus) {
    *r = (rig){0};
    for (uint32_t i = 0; i < gpus; i++) {
        r->gpu_facts[i] = (fl_gpu_facts){.name = "one", .sm = {ladder, K}};
        r->gpu[i].valid = r->gpu[i].fresh = FL_BANDIT_SIGNALS | FL_BIT(FL_GPU_SM_MHZ);
        r->gpu[i].value[FL_GPU_SM_MHZ] = 1600;
    }
    r->facts = facts_of(gpus, r->gpu_facts, 1);
    const fl_instance_options o = {.policy = policy(name), .facts = &r->facts};
    fl_diag d = {0};
    FL_CHECK(fl_instance_open(&r->in, &o, &d) == FL_OK, "%s", d.message);
    r->sample = (fl_sample){.gpu_count = gpus, .gpu = r->gpu};
}

/* energyucb-v2 with a bound that the host states. */
static void open_v2(rig *r, double bound, const char *alpha, const char *lambda) {
    const fl_setting setting[] = {{"alpha", alpha, NULL}, {"lambda", lambda, NULL}};
    const fl_layer layer = {"test", setting, FL_COUNT(setting)};
    *r = (rig){.gpu_facts = {{.name = "one", .sm = {ladder, K}}}};
    r->gpu->valid = r->gpu->fresh = FL_BANDIT_SIGNALS | FL_BIT(FL_GPU_SM_MHZ) | FL_BIT(FL_GPU_KERNELS);
    r->gpu->value[FL_GPU_SM_MHZ] = 1600;
    r->facts = facts_of(1, r->gpu_facts, 1);
    r->facts.bound = bound;
    const fl_instance_options o = {
        .policy = policy("energyucb-v2"), .facts = &r->facts, .layer = &layer, .layer_count = 1};
    fl_diag d = {0};
    FL_CHECK(fl_instance_open(&r->in, &o, &d) == FL_OK, "%s", d.message);
    r->sample = (fl_sample){.gpu_count = 1, .gpu = r->gpu};
}

static void open_rig(rig *r, uint32_t gpus) { open_rig_for(r, "energyucb", gpus); }

/* 10 ms go by: joules, ms of core and ms of uncore activity on each GPU; then a step. */
static void go(rig *r, double joules, double core_ms, double uncore_ms) {
    fl_diag d = {0};
    if (r->sample.step)
        r->sample.time_ns += 10 * MS;
    for (uint32_t i = 0; i < r->sample.gpu_count; i++) {
        r->gpu[i].value[FL_GPU_ENERGY_J] += joules;
        r->gpu[i].value[FL_GPU_ENERGY_NS] +=
            joules > 0 ? (double)r->sample.time_ns - r->gpu[i].value[FL_GPU_ENERGY_NS] : 0;
        r->gpu[i].value[FL_GPU_COMPUTE_NS] += core_ms * MS;
        r->gpu[i].value[FL_GPU_COPY_NS] += uncore_ms * MS;
    }
    FL_CHECK(fl_instance_step(r->in, &r->sample, &r->decision, &d) == FL_OK, "%s", d.message);
    r->sample.step++;
    for (uint32_t i = 0; i < r->sample.gpu_count; i++) {
        const fl_decided *set = &r->decision->gpu[i][FL_SET_SM_MHZ];
        if (set->set) /* settles at once */
            r->gpu[i].value[FL_GPU_SM_MHZ] = set->value > 0 ? set->value : 1600;
    }
}

enum { ARM, PULLS, REWARD, BEST, BOUND, HELD };
static double probe(const rig *r, int which) { return r->decision->probe[which]; }

static void test_reward(void) {
    rig r;
    open_rig(&r, 2);
    go(&r, 0, 0, 0);
    FL_CHECK(probe(&r, ARM) == 800 && probe(&r, PULLS) == 0 && isnan(probe(&r, REWARD)), "first arm");
    go(&r, 3, 8, 2); /* two GPUs: 6 J, ratio 8/2 */
    FL_CHECK(fabs(probe(&r, REWARD) + 24) < 1e-9 && probe(&r, PULLS) == 1 && probe(&r, ARM) == 900, "reward %g",
             probe(&r, REWARD));
    r.gpu[1].valid = 0; /* lost: the other one alone is judged */
    go(&r, 3, 8, 2);
    FL_CHECK(fabs(probe(&r, REWARD) + 12) < 1e-9 && probe(&r, PULLS) == 2, "reward %g without the second",
             probe(&r, REWARD));
    fl_instance_close(r.in);
}

/* Nine clocks, each pulled four times in turn; then all bounds are equal, and the lowest clock goes first. */
static void test_ties(void) {
    rig r;
    open_rig(&r, 1);
    go(&r, 0, 0, 0);
    for (int k = 0; k < 36; k++) {
        FL_CHECK(probe(&r, ARM) == ladder[k % K], "pull %d is of %g MHz", k, probe(&r, ARM));
        go(&r, 4, 8, 2);
    }
    FL_CHECK(probe(&r, PULLS) == 36 && probe(&r, ARM) == 800, "of equals %g MHz", probe(&r, ARM));
    FL_CHECK(fabs(probe(&r, BOUND) - (-16 + sqrt(log(36) / 4))) < 1e-9, "bound %.9g", probe(&r, BOUND));
    go(&r, 4, 8, 2); /* 800 MHz has five pulls now, so its bound is lower than the others' */
    FL_CHECK(probe(&r, ARM) == 900, "of eight equals %g MHz", probe(&r, ARM));
    fl_instance_close(r.in);
}

/* v2. A mean of 0 is optimistic where rewards are -16: each clock is pulled once, from the lowest on. Then 1200 MHz,
 * with -15.6, is better by 0.4 than 1600 MHz, where the bandit stands: a cost of 0.5 keeps it there, one of 0.3 does
 * not. */
static void test_v2_switching(void) {
    static const char *const lambda[] = {"0.5", "0.3"};
    for (int i = 0; i < 2; i++) {
        rig r;
        open_v2(&r, 0, "1", lambda[i]);
        go(&r, 0, 0, 0);
        for (int k = 0; k < K; k++) {
            FL_CHECK(probe(&r, ARM) == ladder[k], "pull %d is of %g MHz", k, probe(&r, ARM));
            go(&r, probe(&r, ARM) == 1200 ? 3.9 : 4, 8, 2);
        }
        FL_CHECK(probe(&r, ARM) == (i ? 1200 : 1600), "lambda %s: %g MHz", lambda[i], probe(&r, ARM));
        fl_instance_close(r.in);
    }
}

/* A slowdown of 25 % is a loss of rate of 20 %. Kernels finish in proportion to the clock, so 1280 MHz and more keep
 * it. The top is pulled first, then each other clock once. Energy falls with the clock: 1300 MHz is the best of those
 * that keep the bound, and without a bound 800 MHz is. */
static void test_v2_bound(void) {
    for (int bound = 0; bound < 2; bound++) {
        rig r;
        open_v2(&r, 0.25 * bound, "0", "0");
        go(&r, 0, 0, 0);
        FL_CHECK(probe(&r, ARM) == (bound ? 1600 : 800), "first %g MHz", probe(&r, ARM));
        for (int k = 0; k < K; k++) {
            r.gpu->value[FL_GPU_KERNELS] += probe(&r, ARM) / 8;
            go(&r, probe(&r, ARM) / 400, 8, 2);
        }
        for (int k = 0; k < 3; k++) {
            FL_CHECK(probe(&r, ARM) == (bound ? 1300 : 800), "bound %d: %g MHz", bound, probe(&r, ARM));
            r.gpu->value[FL_GPU_KERNELS] += probe(&r, ARM) / 8;
            go(&r, probe(&r, ARM) / 400, 8, 2);
        }
        fl_instance_close(r.in);
    }
}

static void test_waits(void) {
    rig r;
    open_rig(&r, 1);
    go(&r, 0, 0, 0);
    go(&r, 0, 8, 2); /* the energy counter did not move: no reward of 0 */
    FL_CHECK(probe(&r, PULLS) == 0 && probe(&r, HELD) == 1 && probe(&r, ARM) == 800, "energy stands");
    go(&r, 6, 8, 2); /* 6 J in 20 ms are 3 J in 10 */
    FL_CHECK(probe(&r, PULLS) == 1 && fabs(probe(&r, REWARD) + 12) < 1e-9, "late counter: reward %g",
             probe(&r, REWARD));
    go(&r, 3, 8, 0); /* nothing copied */
    FL_CHECK(probe(&r, PULLS) == 1 && probe(&r, HELD) == 1, "no uncore activity");
    go(&r, 3, 8, 4);
    FL_CHECK(probe(&r, PULLS) == 2 && fabs(probe(&r, REWARD) + 12) < 1e-9, "16 over 4: reward %g", probe(&r, REWARD));
    FL_CHECK(probe(&r, HELD) == 0, "not held");
    go(&r, 3, 0, 5); /* nothing but copies: r = 0 would be the best arm for good */
    FL_CHECK(probe(&r, PULLS) == 2 && probe(&r, HELD) == 1 && probe(&r, ARM) == 1000, "copies alone: reward %g",
             probe(&r, REWARD));
    go(&r, 3, 10, 0); /* 10 over 5, of two intervals */
    FL_CHECK(probe(&r, PULLS) == 3 && fabs(probe(&r, REWARD) + 6) < 1e-9, "10 over 5: reward %g", probe(&r, REWARD));
    fl_instance_close(r.in);
}

/* "A different frequency at random at each time t", and each in turn: neither asks what a pull has cost. So they go on
 * where nothing is copied, where no counter moves and where no clock settles. */
static void test_rewards_unasked(void) {
    rig robin, random;
    open_rig_for(&robin, "round-robin", 1);
    open_rig_for(&random, "random", 1);
    size_t seen[K] = {0};
    for (int k = 0; k < 900; k++) {
        go(&robin, k % 2 ? 3 : 0, k % 3 ? 8 : 0, 0);
        robin.gpu[0].value[FL_GPU_SM_MHZ] = 1600;
        FL_CHECK(probe(&robin, ARM) == ladder[k % K] && probe(&robin, HELD) == 0 && probe(&robin, PULLS) == 0,
                 "step %d: %g MHz", k, probe(&robin, ARM));
        go(&random, 0, 0, 0);
        seen[(int)(probe(&random, ARM) - 800) / 100]++;
    }
    for (int k = 0; k < K; k++)
        FL_CHECK(seen[k] > 70 && seen[k] < 130, "%zu of 900 at %d MHz", seen[k], ladder[k]); /* 100 +- 3.2 sigma */
    fl_instance_close(robin.in);
    fl_instance_close(random.in);
    rig some; /* copies in every third interval: three arms are judged again and again, and no best one is told of */
    open_rig_for(&some, "round-robin", 1);
    for (int k = 0; k < 90; k++)
        go(&some, 3, 8, k % 3 ? 0 : 2);
    FL_CHECK(probe(&some, PULLS) > 2 * K && isnan(probe(&some, BEST)), "%g pulls, best %g MHz", probe(&some, PULLS),
             probe(&some, BEST));
    fl_instance_close(some.in);
}

static void test_settles(void) {
    rig r;
    open_rig(&r, 1);
    go(&r, 0, 0, 0);
    r.gpu[0].value[FL_GPU_SM_MHZ] = 1600; /* the arm is 800 MHz, the board is not there yet */
    go(&r, 9, 8, 2);
    go(&r, 9, 8, 2);
    FL_CHECK(probe(&r, PULLS) == 0 && probe(&r, HELD) == 1, "judged before the clock settled");
    r.gpu[0].value[FL_GPU_SM_MHZ] = 800;
    go(&r, 9, 8, 2); /* settled only now: the pull begins here */
    FL_CHECK(probe(&r, PULLS) == 0, "judged what ran at the old clock");
    go(&r, 3, 8, 2);
    FL_CHECK(probe(&r, PULLS) == 1 && fabs(probe(&r, REWARD) + 12) < 1e-9, "reward %g", probe(&r, REWARD));
    for (int k = 0; k < 20; k++) { /* a power wall keeps it down for good: after 100 ms it counts as it is */
        r.gpu[0].value[FL_GPU_SM_MHZ] = 805;
        go(&r, 3, 8, 2);
    }
    FL_CHECK(probe(&r, PULLS) > 1, "never settled");
    fl_instance_close(r.in);
}

/* An energy counter that refreshes each 100 ms, a clock that takes 30 ms: 9 J in 10 ms before, 3 J after. What the
 * counter shows at its first refresh after the settling still holds some of the old clock, and is where E_t begins. */
static void test_slow_counter(void) {
    for (int stamped = 0; stamped < 2; stamped++)
        for (int phase = 0; phase < 10; phase++) {
            const uint64_t energy = FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS);
            double joules = 0, shown_j = 0, shown_ns = 0;
            rig r;
            open_rig(&r, 1);
            r.gpu[0].valid = stamped ? r.gpu[0].valid : r.gpu[0].valid & ~FL_BIT(FL_GPU_ENERGY_NS);
            for (int k = 0; k < 60; k++) {
                joules += k <= 3 ? 9 : 3; /* settled since step 3 */
                const bool refreshes = k % 10 == phase;
                if (refreshes) {
                    shown_j = joules;
                    shown_ns = 10.0 * MS * k;
                }
                r.gpu[0].fresh = refreshes ? r.gpu[0].valid : r.gpu[0].valid & ~energy;
                r.gpu[0].value[FL_GPU_ENERGY_J] = shown_j;
                r.gpu[0].value[FL_GPU_ENERGY_NS] = shown_ns;
                r.gpu[0].value[FL_GPU_SM_MHZ] = k < 3 ? 1600 : 800;
                go(&r, 0, 8, 2);
                if (probe(&r, PULLS) > 0)
                    break;
            }
            FL_CHECK(probe(&r, PULLS) == 1 && fabs(probe(&r, REWARD) + 12) < 1e-9,
                     "%s, phase %d: %g pulls, reward %g, expected -12", stamped ? "stamped" : "no stamps", phase,
                     probe(&r, PULLS), probe(&r, REWARD));
            fl_instance_close(r.in);
        }
}

static void test_patience(void) {
    rig r;
    open_rig(&r, 1);
    go(&r, 0, 0, 0);
    r.gpu[0].valid = 0;
    int given_back = 0;
    for (int k = 0; k < 150; k++) {
        go(&r, 3, 8, 2);
        given_back += r.decision->gpu[0][FL_SET_SM_MHZ].set && r.decision->gpu[0][FL_SET_SM_MHZ].value == FL_DEFAULT;
    }
    FL_CHECK(given_back == 1 && probe(&r, HELD) == 1 && isnan(probe(&r, ARM)), "given back %d times", given_back);
    r.gpu[0].valid = r.gpu[0].fresh = FL_BANDIT_SIGNALS | FL_BIT(FL_GPU_SM_MHZ);
    go(&r, 3, 8, 2); /* readings return: latched */
    go(&r, 3, 8, 2); /* and could be judged: the arm that waited is pulled anew */
    FL_CHECK(probe(&r, PULLS) == 0 && r.decision->gpu[0][FL_SET_SM_MHZ].value == 800, "arm %g", probe(&r, ARM));
    go(&r, 3, 8, 2);
    FL_CHECK(probe(&r, PULLS) == 1 && probe(&r, ARM) == 900, "goes on");
    fl_instance_close(r.in);
}

/* ---- ladders ---- */

/* Without engine counters: utilisations that refreshed in the pull, but for the first, whose window began before it. */
static void test_stand_in(void) {
    static const struct {
        double gpu, mem;
        int fresh, known;
        double ratio; /* NAN: not yet */
    } LOOK[] = {{10, 90, 1, 1, (double)NAN}, {10, 90, 0, 1, (double)NAN}, {80, 20, 1, 1, 4},
                {80, 20, 0, 1, 4},           {40, 20, 1, 1, 3},           {0, 0, 0, 0, (double)NAN}};
    fl_gpu_sample g = {0};
    fl_sample s = {.gpu_count = 1, .gpu = &g};
    fl_bandit_base base = {0};
    fl_bandit_latch(&base, &s);
    for (size_t i = 0; i < FL_COUNT(LOOK); i++) {
        s.time_ns = (int64_t)(i + 1) * 10 * MS;
        g.value[FL_GPU_ENERGY_J] = (double)(i + 1);
        g.value[FL_GPU_UTIL_GPU_PCT] = LOOK[i].gpu;
        g.value[FL_GPU_UTIL_MEM_PCT] = LOOK[i].mem;
        g.valid = g.fresh = FL_BIT(FL_GPU_ENERGY_J);
        g.valid |= LOOK[i].known ? FL_BANDIT_INSTEAD : 0;
        g.fresh |= LOOK[i].fresh ? FL_BANDIT_INSTEAD : 0;
        const fl_bandit_draw draw = fl_bandit_read(&base, &s, 10 * MS);
        FL_CHECK(isnan(LOOK[i].ratio) ? isnan(draw.ratio) : draw.ratio == LOOK[i].ratio, "look %zu: %g, expected %g", i,
                 draw.ratio, LOOK[i].ratio);
    }
}

static void test_arms(void) {
    int32_t many[600];
    for (int i = 0; i < 600; i++)
        many[i] = 200 + 3 * i;
    const fl_gpu_facts gpu = {.name = "long", .sm = {many, 600}}, one = {.name = "one", .sm = {many, 1}};
    const fl_facts facts = facts_of(1, &gpu, 1), single = facts_of(1, &one, 1);
    const double clocks[] = {300, 200};
    const fl_table list = {.cell = clocks, .row_count = 2, .column_count = 1};
    const fl_setting set = {.name = "arms_mhz", .table = &list};
    const fl_layer layer = {.origin = "test", .setting = &set, .count = 1};
    fl_instance_options o = {.policy = policy("round-robin"), .facts = &facts};
    fl_instance *in = NULL;
    fl_diag d = {0};
    FL_CHECK(fl_instance_open(&in, &o, &d) == FL_OK, "%s", d.message);
    fl_instance_close(in);
    o.facts = &single;
    FL_CHECK(fl_instance_open(&in, &o, &d) == FL_OK, "one clock: %s", d.message);
    fl_instance_close(in);
    o.layer = &layer;
    o.layer_count = 1;
    FL_CHECK(fl_instance_open(&in, &o, &d) == FL_BAD_INPUT && strstr(d.message, "ascending"), "%s", d.message);
}

FL_SUITE("bandit", {"utilisation stands in", test_stand_in}, {"arms equal Algorithm 1, written again", test_same_arms},
         {"not followed", test_unfollowed}, {"random clocks", test_random}, {"golden", test_golden},
         {"reward", test_reward}, {"36 pulls in turn, then the lowest of equals", test_ties},
         {"v2: a cost of switching", test_v2_switching}, {"v2: a bound on progress", test_v2_bound},
         {"what does not count", test_waits}, {"no reward asked for", test_rewards_unasked},
         {"clocks settle first", test_settles}, {"a slow energy counter", test_slow_counter},
         {"patience", test_patience}, {"ladders", test_arms})
