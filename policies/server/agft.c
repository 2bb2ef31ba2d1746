/* AGFT: a contextual bandit over SM clocks for each server, which knows no targets: it trades energy for latency.
 *
 * From the public text: LinUCB over the clocks, windows of 0.8 s; seven features of a window (requests that wait,
 * prompt tokens, output tokens, tokens a step, requests in the batch, share of the KV cache, hit rate of the prefix
 * cache); reward 2 (1 - min(2, E TPOT / baseline)), E the energy of the window, TPOT the mean time of an output token;
 * clocks that prove bad are pruned.
 *
 * Assumed, as the text does not say it:
 * - Baseline: the mean of E TPOT over the first windows that could be judged, at the top clock.
 * - Features are divided by the largest value of each so far, and a constant is added as an eighth.
 * - alpha, ridge, number of arms, and when a clock is pruned: after `prune_after` pulls with a mean reward below
 *   `prune_reward`, or below the best mean by `prune_gap`; two clocks always remain. The published refinement of the
 *   grid around the best clock is left out: a list of clocks may be given.
 * - A window without an output token, or whose energy counter did not move, teaches nothing, and the clock stays. After
 *   `patience_ms` of them the default clock holds until readings return. A longer window's energy counts as of 0.8 s.
 */
#include "policies/server/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- the bandit ---- */

void fl_linucb_begin(fl_linucb *l, uint32_t arms, double ridge) {
    memset(l, 0, sizeof *l);
    l->arms = arms < FL_LINUCB_ARMS ? arms : FL_LINUCB_ARMS;
    for (uint32_t i = 0; i < l->arms; i++)
        for (int k = 0; k < FL_LINUCB_TERMS; k++)
            l->arm[i].inverse[k][k] = 1 / ridge;
}

static double dot(const double *a, const double *b) {
    double sum = 0;
    for (int i = 0; i < FL_LINUCB_TERMS; i++)
        sum += a[i] * b[i];
    return sum;
}

static void times(const fl_linucb_arm *a, const double *x, double *out) {
    for (int i = 0; i < FL_LINUCB_TERMS; i++)
        out[i] = dot(a->inverse[i], x);
}

/* A + x x' by its inverse: Sherman and Morrison, 1950. */
void fl_linucb_learn(fl_linucb *l, uint32_t arm, const double *x, double reward) {
    fl_linucb_arm *a = &l->arm[arm];
    double ax[FL_LINUCB_TERMS];
    times(a, x, ax);
    const double h = 1 + dot(x, ax);
    for (int i = 0; i < FL_LINUCB_TERMS; i++) {
        for (int k = 0; k <= i; k++)
            a->inverse[i][k] = a->inverse[k][i] = a->inverse[i][k] - ax[i] * ax[k] / h;
        a->b[i] += reward * x[i];
    }
    a->mean += (reward - a->mean) / ++a->pulls;
}

double fl_linucb_bound(const fl_linucb *l, uint32_t arm, const double *x, double alpha) {
    const fl_linucb_arm *a = &l->arm[arm];
    double ax[FL_LINUCB_TERMS];
    times(a, x, ax);
    return dot(a->b, ax) + alpha * sqrt(fmax(0, dot(x, ax)));
}

uint32_t fl_linucb_choose(const fl_linucb *l, const double *x, double alpha) {
    double most = -INFINITY;
    uint32_t found = l->arms - 1;
    for (uint32_t i = l->arms; i-- > 0;) {
        const double bound = l->arm[i].pruned ? -INFINITY : fl_linucb_bound(l, i, x, alpha);
        if (bound > most) {
            most = bound;
            found = i;
        }
    }
    return found;
}

/* ---- the policy ---- */

typedef struct params {
    fl_table clocks_mhz;
    double interval_ms, alpha, ridge, prune_reward, prune_gap, patience_ms;
    int64_t arms, baseline_windows, prune_after;
} params;

enum { QUEUE, PROMPT, OUTPUT, STEP_TOKENS, BATCH, CACHE, HITS, ONE };

typedef struct one { /* server */
    fl_linucb bandit;
    double mhz[FL_LINUCB_ARMS];
    double most[FL_LINUCB_TERMS]; /* of each feature so far */
    double x[FL_LINUCB_TERMS];    /* context in which the present arm was pulled */
    double energy_j, tbt_sum_ns, tbt_count, prompts, cached, output, batches, batch_tokens; /* at the window's begin */
    double baseline, baselines; /* mean of E TPOT; of how many windows */
    double reward;
    int64_t since_ns;
    int32_t arm;    /* in force; -1: the default */
    uint32_t begun; /* the window has its beginning */
    uint32_t held;
} one;

#define PROBES(X)                                                                                                      \
    X("arm_mhz", "MHz", "clock of the arm in force; none while the default holds",                                     \
      o->arm >= 0 ? o->mhz[o->arm] : (double)NAN)                                                                      \
    X("reward", "", "of the last window judged", o->reward)                                                            \
    X("baseline", "J s", "energy x TPOT of the first windows", o->baselines > 0 ? o->baseline : (double)NAN)           \
    X("pruned", "", "clocks that are left out from now on", pruned)                                                    \
    X("held", "", "1: nothing to judge by, so nothing was decided", o->held)
static const fl_probe probe_rows[] = {PROBES(FL_PROBE_ROW)};

static one *ones(void *state) { return fl_gpu_states(state, 0); }

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const params *p = param_bytes;
    const char *why = fl_drive_check(facts);
    for (uint32_t i = 0; !why && i < facts->server_count; i++) {
        one *o = &ones(state)[facts->server[i].gpu[0]];
        const fl_ladder ladder = facts->gpu[facts->server[i].gpu[0]].sm;
        const uint32_t listed = p->clocks_mhz.row_count, wanted = listed                             ? listed
                                                                  : (uint32_t)p->arms < ladder.count ? (uint32_t)p->arms
                                                                                                     : ladder.count;
        if (wanted > FL_LINUCB_ARMS)
            return "clocks_mhz must hold 32 clocks at most";
        for (uint32_t k = 0; k < wanted; k++) {
            o->mhz[k] =
                listed ? p->clocks_mhz.cell[k]
                       : ladder.mhz[wanted > 1 ? (uint64_t)k * (ladder.count - 1) / (wanted - 1) : ladder.count - 1];
            if (k && !(o->mhz[k] > o->mhz[k - 1]))
                return "clocks_mhz must be ascending";
        }
        fl_linucb_begin(&o->bandit, wanted, p->ridge);
        o->arm = -1;
        o->reward = NAN;
    }
    return why;
}

/* Of all GPUs of the server; NAN: one is not known. */
static double energy_of(const fl_server_facts *f, const fl_sample *sample) {
    double sum = 0;
    for (uint32_t k = 0; k < f->gpu_count; k++) {
        const fl_gpu_sample *g = &sample->gpu[f->gpu[k]];
        sum += fl_gpu_known(g, FL_GPU_ENERGY_J) ? g->value[FL_GPU_ENERGY_J] : (double)NAN;
    }
    return sum;
}

static void begin_window(one *o, const fl_server_facts *f, const fl_sample *sample, const fl_server_sample *u) {
    o->since_ns = sample->time_ns;
    o->energy_j = energy_of(f, sample);
    o->tbt_sum_ns = fl_drive_value(u, FL_SERVER_TBT_SUM_NS);
    o->tbt_count = fl_drive_value(u, FL_SERVER_TBT_COUNT);
    o->prompts = fl_drive_value(u, FL_SERVER_PROMPT_TOKENS);
    o->cached = fl_drive_value(u, FL_SERVER_CACHED_TOKENS);
    o->output = fl_drive_value(u, FL_SERVER_OUTPUT_TOKENS);
    o->batches = fl_drive_value(u, FL_SERVER_BATCHES);
    o->batch_tokens = fl_drive_value(u, FL_SERVER_BATCH_TOKENS);
    o->begun = 1;
}

static double or_zero(double v) { return v > 0 && isfinite(v) ? v : 0; }

/* Features of the window that ends; what is not known counts as nothing. */
static void context(one *o, const fl_server_sample *u, double *x) {
    const double prompts = fl_drive_value(u, FL_SERVER_PROMPT_TOKENS) - o->prompts;
    x[QUEUE] = or_zero(fl_drive_value(u, FL_SERVER_WAITING));
    x[PROMPT] = or_zero(prompts);
    x[OUTPUT] = or_zero(fl_drive_value(u, FL_SERVER_OUTPUT_TOKENS) - o->output);
    x[STEP_TOKENS] = or_zero((fl_drive_value(u, FL_SERVER_BATCH_TOKENS) - o->batch_tokens) /
                             (fl_drive_value(u, FL_SERVER_BATCHES) - o->batches));
    x[BATCH] = or_zero(fl_drive_value(u, FL_SERVER_RUNNING));
    x[CACHE] = or_zero(fl_drive_value(u, FL_SERVER_KV_USED_PCT));
    x[HITS] = or_zero((fl_drive_value(u, FL_SERVER_CACHED_TOKENS) - o->cached) / prompts);
    x[ONE] = 1;
    for (int i = 0; i < FL_LINUCB_TERMS; i++) {
        o->most[i] = fmax(o->most[i], x[i]);
        x[i] = o->most[i] > 0 ? x[i] / o->most[i] : 0;
    }
}

/* A clock that proved bad goes, as long as two remain. */
static void prune(const params *p, fl_linucb *l) {
    double best = -INFINITY;
    uint32_t left = 0;
    for (uint32_t i = 0; i < l->arms; i++) {
        left += !l->arm[i].pruned;
        if (!l->arm[i].pruned && l->arm[i].pulls >= (double)p->prune_after)
            best = fmax(best, l->arm[i].mean);
    }
    for (uint32_t i = 0; i < l->arms && left > 2; i++) {
        fl_linucb_arm *a = &l->arm[i];
        if (a->pruned || a->pulls < (double)p->prune_after || a->mean >= best)
            continue;
        if (a->mean < p->prune_reward || a->mean < best - p->prune_gap) {
            a->pruned = 1;
            left--;
        }
    }
}

static void pull(const params *p, const fl_facts *facts, uint32_t server, one *o, const double *x, fl_command *c) {
    const int32_t top = (int32_t)o->bandit.arms - 1, next = o->baselines < (double)p->baseline_windows
                                                                ? top
                                                                : (int32_t)fl_linucb_choose(&o->bandit, x, p->alpha);
    for (int i = 0; i < FL_LINUCB_TERMS; i++)
        o->x[i] = x[i];
    if (next != o->arm)
        fl_drive_clock(facts, server, o->mhz[next], c);
    o->arm = next;
}

/* What the window cost gives the reward of its arm. */
static void judge(const params *p, one *o, double product) {
    if (o->baselines < (double)p->baseline_windows) {
        o->baseline += (product - o->baseline) / ++o->baselines;
        return;
    }
    o->reward = 2 * (1 - fmin(2, product / o->baseline));
    fl_linucb_learn(&o->bandit, (uint32_t)o->arm, o->x, o->reward);
    prune(p, &o->bandit);
}

static void drive(const params *p, const fl_facts *facts, const fl_sample *sample, uint32_t server, one *o,
                  fl_command *c) {
    static const fl_server_sample nothing = {0};
    const fl_server_facts *f = &facts->server[server];
    const fl_server_sample *u = server < sample->server_count ? &sample->server[server] : &nothing;
    const double lasted_ns = (double)(sample->time_ns - o->since_ns),
                 joules = (energy_of(f, sample) - o->energy_j) * fmin(1, p->interval_ms * 1e6 / lasted_ns),
                 tokens = fl_drive_value(u, FL_SERVER_TBT_COUNT) - o->tbt_count,
                 tpot_s = (fl_drive_value(u, FL_SERVER_TBT_SUM_NS) - o->tbt_sum_ns) / tokens * 1e-9;
    double x[FL_LINUCB_TERMS];
    const int known = !isnan(energy_of(f, sample)) && !isnan(fl_drive_value(u, FL_SERVER_TBT_COUNT)) &&
                      !isnan(fl_drive_value(u, FL_SERVER_TBT_SUM_NS)),
              judged = o->begun && joules > 0 && tokens > 0 && tpot_s > 0;
    o->held = 1;
    if (judged || (known && !o->begun)) {
        if (judged && o->arm >= 0) /* under the default clock no arm is judged */
            judge(p, o, joules * tpot_s);
        context(o, u, x);
        pull(p, facts, server, o, x, c);
        begin_window(o, f, sample, u);
        o->held = 0;
    } else if (o->begun && lasted_ns > p->patience_ms * 1e6) {
        if (o->arm >= 0)
            fl_drive_clock(facts, server, 0, c);
        o->arm = -1;
        if (known)
            begin_window(o, f, sample, u);
    }
}

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    const params *p = param_bytes;
    for (uint32_t i = 0; i < facts->server_count; i++) {
        const uint32_t gpu = facts->server[i].gpu[0];
        one *o = &ones(state)[gpu];
        uint32_t pruned = 0;
        drive(p, facts, sample, i, o, c);
        for (uint32_t k = 0; k < o->bandit.arms; k++)
            pruned += o->bandit.arm[k].pruned;
        fl_show_all(c, gpu, 0, (double[]){PROBES(FL_PROBE_VALUE)}, FL_COUNT(probe_rows));
    }
    c->delay_ns = (int64_t)(p->interval_ms * 1e6 + 0.5);
}

static const fl_param param_rows[] = {
    FL_PARAM(params, clocks_mhz, LIST(1, 100000), "MHz", "", "clocks of the arms, 32 at most; none: see arms"),
    FL_PARAM(params, arms, INT(1, 32), "", "16", "clocks spread over the SM ladder where none are listed (assumed)"),
    FL_PARAM(params, interval_ms, REAL(1, 60000), "ms", "800", "window: one pull"),
    FL_PARAM(params, alpha, REAL(0, 1e6), "", "1", "exploration weight of LinUCB (assumed)"),
    FL_PARAM(params, ridge, REAL(1e-9, 1e9), "", "1", "ridge of LinUCB (assumed)"),
    FL_PARAM(params, baseline_windows, INT(1, 1000), "", "5",
             "windows at the top clock that make the baseline (assumed)"),
    FL_PARAM(params, prune_after, INT(1, 1000000), "", "3", "pulls before a clock may be pruned (assumed)"),
    FL_PARAM(params, prune_reward, REAL(-2, 2), "", "-1", "mean reward below which a clock is pruned (assumed)"),
    FL_PARAM(params, prune_gap, REAL(0, 4), "", "0.5",
             "mean reward below the best by which a clock is pruned (assumed)"),
    FL_PARAM(params, patience_ms, REAL(1, 3600000), "ms", "5000",
             "longest wait for a window that can be judged, then the default clock holds (assumed)"),
};

static const fl_signal_row signal_rows[] = {
    FL_NEEDS(GPU_ENERGY_J),        FL_NEEDS(SERVER_TBT_SUM_NS),   FL_NEEDS(SERVER_TBT_COUNT),
    FL_USES(SERVER_WAITING),       FL_USES(SERVER_RUNNING),       FL_USES(SERVER_KV_USED_PCT),
    FL_USES(SERVER_PROMPT_TOKENS), FL_USES(SERVER_CACHED_TOKENS), FL_USES(SERVER_OUTPUT_TOKENS),
    FL_USES(SERVER_BATCHES),       FL_USES(SERVER_BATCH_TOKENS),
};

FL_POLICY(agft) = {FL_POLICY_ABI, .name = "agft",
                   .summary = "a contextual bandit over SM clocks: LinUCB on server load, scored by energy x TPOT",
                   .source = "AGFT, LinUCB with pruning; reward of energy x TPOT", FL_DRIVE_POLICY(one)};
