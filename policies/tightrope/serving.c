/* tightrope where servers state latency targets: the targets are the bound. */
#include "policies/tightrope/inside.h"

#include "policies/policy.h"
#include "policies/server/server.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define CLOCKS 12 /* to choose from, from LOWEST of the top clock to the top */
#define LOWEST 0.4
#define HORIZON_S 5                   /* over which what the ledger leaves may be spent */
#define SETTLE_S 0.1                  /* longest wait for the achieved clock */
#define POWER_S 0.3                   /* after a clock is in force, its power counts */
#define KNOWN_NS INT64_C(10000000000) /* what a clock's power was then, under another load, is not known now */
#define POWER_MOST 200                /* readings that a mean of power remembers */
#define STAY_NS 500000000             /* a clock stays so long before a lower one may follow */
#define LOOK_NS 200000000             /* from one look at the steps kept to the next */
#define SHARE 0.99                    /* of tokens, where the facts state none */
#define KEPT 0.5                      /* of what the ledger leaves is never planned to be spent: predictions err */

int fl_tightrope_serves(const fl_facts *facts) {
    for (uint32_t i = 0; i < facts->server_count; i++)
        if (!(facts->server[i].ttft_target_ns > 0) || !(facts->server[i].tbt_target_ns > 0))
            return 0;
    return facts->server_count > 0;
}

void fl_tightrope_serving_begin(fl_tightrope_serving *t, const fl_facts *facts, uint32_t server) {
    fl_drive_begin(&t->s, facts, server, NULL, CLOCKS, LOWEST);
    t->ttft = t->tbt = (fl_tightrope_late){.count_at = NAN, .missed_at = NAN};
    t->slowdown = NAN;
}

/* ---- what was seen ---- */

static void keep_step(fl_tightrope_serving *t, const fl_step_load *load) {
    t->step[t->steps++ % FL_TIGHTROPE_STEPS] = *load;
}

static uint32_t kept(const fl_tightrope_serving *t) {
    return t->steps < FL_TIGHTROPE_STEPS ? (uint32_t)t->steps : FL_TIGHTROPE_STEPS;
}

static void keep_steps(fl_tightrope_serving *t, const fl_sample *sample, uint32_t server) {
    for (uint64_t i = 0; sample->batch && i < sample->batch_count; i++) {
        const fl_batch_record *b = &sample->batch[i];
        const fl_step_load load = {b->prompt_tokens, b->decode_sequences, (double)b->kv_tokens};
        if (b->server == server)
            keep_step(t, &load);
    }
    if (!t->s.told && t->s.running > 0) { /* nobody tells of steps: a mean one */
        const fl_step_load load = fl_drive_load(&t->s);
        keep_step(t, &load);
    }
}

static void count_late(fl_tightrope_late *l, const fl_server_sample *u, int count_id, int missed_id) {
    const double count = fl_drive_value(u, count_id), missed = fl_drive_value(u, missed_id);
    if (isnan(count) || isnan(missed))
        return;
    if (isnan(l->count_at)) {
        l->count_at = count;
        l->missed_at = missed;
    }
    l->count = count - l->count_at;
    l->missed = missed - l->missed_at;
}

static void count_tokens(fl_tightrope_serving *t, const fl_server_sample *u, int64_t now_ns) {
    const double before = t->tbt.count, passed_s = (double)(now_ns - t->last_ns) * 1e-9;
    count_late(&t->ttft, u, FL_SERVER_TTFT_COUNT, FL_SERVER_TTFT_MISSED);
    count_late(&t->tbt, u, FL_SERVER_TBT_COUNT, FL_SERVER_TBT_MISSED);
    if (passed_s > 0)
        t->tokens_per_s += ((t->tbt.count - before) / passed_s - t->tokens_per_s) * fmin(1, passed_s / HORIZON_S);
    t->last_ns = now_ns;
}

static void learn_power(fl_tightrope_serving *t, const fl_server_facts *f, const fl_sample *sample) {
    double watts = 0;
    int fresh = 1;
    for (uint32_t k = 0; k < f->gpu_count; k++) {
        const fl_gpu_sample *g = &sample->gpu[f->gpu[k]];
        fresh &= fl_gpu_fresh(g, FL_GPU_POWER_W);
        watts += fresh ? g->value[FL_GPU_POWER_W] : 0;
    }
    if (!fresh || !(watts > 0) || !isfinite(watts) || t->s.clock < 0 || t->s.force_ns < 0 ||
        (double)(sample->time_ns - t->s.force_ns) < POWER_S * 1e9)
        return;
    if (!(t->s.running > 0)) {
        t->idle_w = t->idle_w > 0 ? fmin(t->idle_w, watts) : watts;
        return;
    }
    double *weight = &t->power_weight[t->s.clock], *mean = &t->power_w[t->s.clock];
    *weight = sample->time_ns - t->power_ns[t->s.clock] > KNOWN_NS ? 1 : fmin(POWER_MOST, *weight + 1);
    t->power_ns[t->s.clock] = sample->time_ns;
    *mean += (watts - *mean) / *weight;
}

/* ---- what a clock would do ---- */

/* Share of tokens that may be late from now on. Where nobody counts late ones, none. */
static double allowed_share(const fl_tightrope_serving *t, const fl_server_facts *f) {
    const double rest = 1 - (f->target_share > 0 ? f->target_share : SHARE),
                 ahead = fmax(1000, t->tokens_per_s * HORIZON_S);
    if (isnan(t->tbt.count_at))
        return 0;
    return fmax(0, fmin(1, KEPT * (rest + (rest * t->tbt.count - t->tbt.missed) / ahead)));
}

/* What the steps kept would be at each clock. Made anew now and then: it costs more than all else. */
static void look(fl_tightrope_serving *t, const fl_server_facts *f, int64_t now_ns, double tolerance) {
    const double target_s = (double)f->tbt_target_ns * 1e-9;
    const uint32_t clocks = t->s.times.clocks;
    double all = 0, time_s[FL_STEP_CLOCKS];
    if (t->looked_ns && now_ns - t->looked_ns < LOOK_NS)
        return;
    t->looked_ns = now_ns;
    for (uint32_t k = 0; k < clocks; k++)
        t->late[k] = t->longest_s[k] = 0;
    for (uint32_t i = 0; i < kept(t); i++) {
        const double tokens = t->step[i].sequences;
        fl_step_times_all(&t->s.times, &t->step[i], tolerance, time_s);
        all += tokens;
        for (uint32_t k = 0; k < clocks; k++) {
            t->late[k] += time_s[k] <= target_s ? 0 : tokens;
            t->longest_s[k] = isnan(time_s[k]) || time_s[k] > t->longest_s[k] ? time_s[k] : t->longest_s[k];
        }
    }
    for (uint32_t k = 0; k < clocks; k++)
        t->late[k] = all > 0 ? t->late[k] / all : 0;
}

/* From a sample that calls for the top clock until it is in force. */
static double reaction_s(const fl_facts *facts, const fl_server_facts *f) {
    const int64_t settle_ns = facts->gpu[f->gpu[0]].settle_ns;
    return FL_TIGHTROPE_SERVING_NS * 1e-9 + (settle_ns > 0 ? (double)settle_ns * 1e-9 : SETTLE_S);
}

static int first_in_time(const fl_tightrope_serving *t, const fl_facts *facts, const fl_server_facts *f,
                         const fl_server_sample *u, uint32_t clock, double slower) {
    const double target_s = (double)f->ttft_target_ns * 1e-9, p99_s = fl_drive_value(u, FL_SERVER_TTFT_P99_NS) * 1e-9;
    if (t->ttft.missed > (1 - (f->target_share > 0 ? f->target_share : SHARE)) * t->ttft.count)
        return 0;
    if (p99_s * slower > target_s)
        return 0;
    if (!(t->s.waiting > 0) && (!(t->s.prompt_tokens > 0) || (isnan(t->s.oldest_wait_s) && p99_s > 0)))
        return 1; /* nobody waits in the queue; where no wait is told, what requests met lately speaks for the others */
    return t->s.oldest_wait_s + reaction_s(facts, f) + (1 + t->s.waiting) * t->longest_s[clock] <= target_s;
}

static int others_in_time(const fl_tightrope_serving *t, const fl_server_facts *f, const fl_server_sample *u,
                          uint32_t clock, double slower) {
    const double target_s = (double)f->tbt_target_ns * 1e-9, p99_s = fl_drive_value(u, FL_SERVER_TBT_P99_NS) * 1e-9;
    if (!t->s.told && !(p99_s * slower <= target_s)) /* a mean step hides its tail: the server must tell it */
        return 0;
    return t->late[clock] <= t->allowed;
}

/* Both slacks hold at the clock. */
static int holds(const fl_tightrope_serving *t, const fl_facts *facts, const fl_sample *sample, uint32_t server,
                 uint32_t clock) {
    const fl_server_facts *f = &facts->server[server];
    const fl_server_sample *u = &sample->server[server];
    const uint32_t from = t->s.clock < 0 ? fl_drive_top(&t->s) : (uint32_t)t->s.clock;
    const double there = t->now_s[clock], here = t->now_s[from], slower = fmax(1, there / here);
    return there > 0 && here > 0 && first_in_time(t, facts, f, u, clock, slower) &&
           others_in_time(t, f, u, clock, slower);
}

/* ---- the choice ---- */

/* Energy of a step beyond that of having nothing to do; NAN: the power at this clock was not seen lately. */
static double cost(const fl_tightrope_serving *t, uint32_t clock, int64_t now_ns) {
    if (!(t->power_weight[clock] > 0) || now_ns - t->power_ns[clock] > KNOWN_NS)
        return NAN;
    return fmax(0, t->power_w[clock] - t->idle_w) * t->now_s[clock];
}

/* From the top down as long as the slacks hold: the cheapest seen; or the clock below it, if that was not. */
static uint32_t choose(const fl_tightrope_serving *t, const fl_facts *facts, const fl_sample *sample, uint32_t server) {
    const uint32_t top = fl_drive_top(&t->s);
    double least = INFINITY;
    uint32_t found = top;
    for (uint32_t i = top + 1; i-- > 0 && (i == top || holds(t, facts, sample, server, i));) {
        const double x = cost(t, i, sample->time_ns);
        if (isnan(x) && i + 1 == found && least < INFINITY)
            return i;
        if (x < least) {
            least = x;
            found = i;
        }
    }
    return found;
}

/* A lower clock follows only where the present one stayed for a while: a change costs time, and its power is to be
 * seen. */
static uint32_t stay(const fl_tightrope_serving *t, const fl_facts *facts, const fl_sample *sample, uint32_t server,
                     uint32_t clock) {
    const int early = t->s.force_ns < 0 || sample->time_ns - t->s.force_ns < STAY_NS;
    if (t->s.clock <= (int64_t)clock || !early)
        return clock;
    return holds(t, facts, sample, server, (uint32_t)t->s.clock) ? (uint32_t)t->s.clock : fl_drive_top(&t->s);
}

void fl_tightrope_serve(fl_tightrope_serving *t, const fl_facts *facts, const fl_sample *sample, uint32_t server,
                        double tolerance, fl_command *c) {
    const uint32_t top = fl_drive_top(&t->s);
    uint32_t clock = top;
    const int known = fl_drive_take(&t->s, facts, sample, server, SETTLE_S);
    const fl_step_load now = fl_drive_load(&t->s);
    fl_step_times_all(&t->s.times, &now, tolerance, t->now_s);
    if (known) {
        keep_steps(t, sample, server);
        count_tokens(t, &sample->server[server], sample->time_ns);
        learn_power(t, &facts->server[server], sample);
        look(t, &facts->server[server], sample->time_ns, tolerance);
        t->allowed = allowed_share(t, &facts->server[server]);
    }
    if (known && t->s.clock >= 0 && !(t->s.running > 0 || t->s.waiting > 0))
        clock = (uint32_t)t->s.clock; /* nothing to do: nothing to decide */
    else if (known && t->s.clock >= 0)
        clock = stay(t, facts, sample, server, choose(t, facts, sample, server));
    fl_drive_set(&t->s, facts, sample, server, clock, c);
    const double slowdown = t->now_s[clock] / t->now_s[top];
    t->slowdown = isfinite(slowdown) ? slowdown : (double)NAN;
}
