/* slo-pid: a PID controller of the SM clock on the 95th percentile of the time between tokens (TBT) of each server. It
 * is the plain baseline that an engineer builds first.
 *
 * Source: vllm-ascend issue 7031, an open request without a patch: observe TTFT and TPOT, let a PID controller act on
 * the distance from the target, set the clock within safe bounds. Gains, period, percentile and anti-windup are not
 * stated.
 *
 * Assumed: the error is e = (p95 of TBT - target) / target over one period. The clock moves by
 *
 *     top x (kp (e - e') + ki e dt + kd (e - 2 e' + e'') / dt)
 *
 * with e' and e'' of the two periods before. This velocity form needs no anti-windup: the clock stops at the ends of
 * the ladder, and nothing else is summed. The clock falls only while the 95th percentile of TTFT meets its target,
 * where both are known. While nothing is served the clock stays. While p95 is not known the default clock holds. */
#include "policies/server/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stdint.h>

typedef struct params {
    double interval_ms, kp, ki, kd, lowest_mhz;
} params;

typedef struct one { /* of one server; in the state of its first GPU */
    double mhz;      /* where the controller stands, between the clocks of the ladder; 0: nothing was decided yet */
    double set_mhz;  /* what was set last; 0: the default */
    double error[2]; /* of the period before, and of the one before that; NAN: none */
    int64_t last_ns; /* of the last step; < 0: none */
} one;

#define PROBES(X)                                                                                                      \
    X("clock", "MHz", "where the controller stands", o->mhz)                                                           \
    X("error", "", "distance of the 95th percentile of TBT from its target, as a share", error)                        \
    X("held", "", "1: TTFT is late, so the clock does not fall", held)
static const fl_probe probe_rows[] = {PROBES(FL_PROBE_ROW)};

static one *ones(void *state) { return fl_gpu_states(state, 0); }

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const char *why = fl_drive_check(facts);
    (void)param_bytes;
    for (uint32_t i = 0; !why && i < facts->server_count; i++) {
        one *o = &ones(state)[facts->server[i].gpu[0]];
        o->error[0] = o->error[1] = NAN;
        o->last_ns = -1;
        if (!(facts->server[i].tbt_target_ns > 0))
            why = "needs a TBT target of every server";
    }
    return why;
}

/* Move the clock by one period. */
static void control(const params *p, const fl_ladder ladder, one *o, double error, double dt_s, int held) {
    const double top = fl_ladder_max(ladder), before = isnan(o->error[0]) ? error : o->error[0];
    const double older = isnan(o->error[1]) ? before : o->error[1];
    double move = p->kp * (error - before) + p->ki * error * dt_s;
    if (dt_s > 0)
        move += p->kd * (error - 2 * before + older) / dt_s;
    if (held && move < 0)
        move = 0;
    const double least = fl_ladder_up(ladder, p->lowest_mhz);
    o->mhz = fmin(top, fmax(least, (o->mhz > 0 ? o->mhz : top) + top * move));
    o->error[1] = before, o->error[0] = error;
}

static void drive(const params *p, const fl_facts *facts, const fl_sample *sample, uint32_t server, one *o,
                  fl_command *c) {
    const fl_server_facts *f = &facts->server[server];
    const fl_server_sample *u = server < sample->server_count ? &sample->server[server] : NULL;
    const double p95_ns = u ? fl_drive_value(u, FL_SERVER_TBT_P95_NS) : NAN,
                 first_ns = u ? fl_drive_value(u, FL_SERVER_TTFT_P95_NS) : NAN;
    const double dt_s = o->last_ns >= 0 ? (double)(sample->time_ns - o->last_ns) * 1e-9 : 0;
    const double error = p95_ns / (double)f->tbt_target_ns - 1;
    const int held = f->ttft_target_ns > 0 && first_ns > (double)f->ttft_target_ns;
    const int idle = u && fl_drive_value(u, FL_SERVER_RUNNING) == 0;
    o->last_ns = sample->time_ns;
    if (!isnan(error) && !idle)
        control(p, facts->gpu[f->gpu[0]].sm, o, error, dt_s, held);
    else
        o->error[0] = o->error[1] = NAN;
    const double mhz = isnan(error) && !idle ? 0 : o->mhz > 0 ? fl_ladder_up(facts->gpu[f->gpu[0]].sm, o->mhz) : 0;
    if (mhz != o->set_mhz) {
        fl_drive_clock(facts, server, mhz, c);
        o->set_mhz = mhz;
    }
    fl_show_all(c, f->gpu[0], 0, (double[]){PROBES(FL_PROBE_VALUE)}, FL_COUNT(probe_rows));
}

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    const params *p = param_bytes;
    for (uint32_t i = 0; i < facts->server_count; i++)
        drive(p, facts, sample, i, &ones(state)[facts->server[i].gpu[0]], c);
    c->delay_ns = (int64_t)(p->interval_ms * 1e6 + 0.5);
}

static const fl_param param_rows[] = {
    FL_PARAM(params, interval_ms, REAL(10, 60000), "ms", "1000", "time between decisions (assumed)"),
    FL_PARAM(params, kp, REAL(0, 100), "", "0.1",
             "proportional gain: share of the top clock for an error of 1 (assumed)"),
    FL_PARAM(params, ki, REAL(0, 100), "1/s", "0.05", "integral gain: the same for each second of it (assumed)"),
    FL_PARAM(params, kd, REAL(0, 100), "s", "0", "derivative gain (assumed: none)"),
    FL_PARAM(params, lowest_mhz, REAL(0, 100000), "MHz", "0", "no lower clock is set; 0: the ladder's lowest"),
};

static const fl_signal_row signal_rows[] = {
    FL_NEEDS(SERVER_TBT_P95_NS),
    FL_USES(SERVER_TTFT_P95_NS),
    FL_USES(SERVER_RUNNING),
};

FL_POLICY(slo_pid) = {FL_POLICY_ABI, .name = "slo-pid",
                      .summary = "sets the clock by a PID controller on the 95th percentile of the time between tokens",
                      .source = "vllm-ascend issue 7031 (a request without a patch); gains and period are assumed",
                      FL_DRIVE_POLICY(one)};
