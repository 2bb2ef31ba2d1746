/* GridPilot (Constantinescu, Senator and Atienza, Euro-Par 2026): board power follows a demand by a PID over power
 * limits. Two versions of the controller were released, with different rules and gains:
 *
 *   v100 (scripts/v100/controller/hierarchical_controller.py), which the published V100 runs executed. dt is the time
 *       since the step before, at least 1 ms; I is kept within 50 W s; the limit is target + u, between 150 and 300 W,
 *       in whole watts; it is set at most once a second, and only if it moves by 2 W or more.
 *   h100 (src/controller/multiscale.py). dt is 5 ms; I is not bounded; above 85 C the target falls by 2 % per degree,
 *       to half at most; the limit is power + u, between 75 W and the lower of 700 W and the target.
 *
 * The target of the node is divided among its GPUs by weights. Tier 2 of h100 first takes the CPUs and the rest of the
 * node off it, by a forecast of utilisation a second ahead. Tier 2 of v100 forecasts each board's power and changes
 * nothing: only a third tier, which is not here, would read it, so it is a probe.
 *
 * Assumed: utilisation is the mean of the GPUs; without a target a board has its default limit; without a reading its
 * limit stays. With gains of 0, interval_s = 0 and least_w = 0, the limit of v100 is the target itself: the ideal cap.
 */
#include "policies/policy.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { V100, H100 };
enum { LAGS = 4, KEPT = 60, WITH_CONSTANT = LAGS + 1 };

typedef struct params {
    int64_t version, tier2;
    double kp, ki, kd, period_ms, interval_s, least_w, min_w, max_w;
    fl_table weights;
} params;

typedef struct series { /* one value a second, the latest last */
    double value[KEPT], weight[WITH_CONSTANT];
    int64_t fitted_ns; /* 0: never */
    uint64_t count;
} series;

typedef struct node_state {
    series use;
    int64_t tier2_ns; /* of the next turn of tier 2 */
    double share_w;   /* of all GPUs, by tier 2 of h100; NAN: not known yet */
} node_state;

typedef struct gpu_state {
    double weight, integral, last_error, limit_w; /* limit_w: set last */
    double command_w, forecast_w;
    int64_t last_ns, set_ns;
    uint32_t begun, limited;
    series power;
} gpu_state;

static gpu_state *gpus(void *state) { return fl_gpu_states(state, sizeof(node_state)); }

static double chosen(double given, const params *p, double v100, double h100) {
    return given >= 0 ? given : p->version == V100 ? v100 : h100;
}

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const params *p = param_bytes;
    double sum = 0;
    if (p->weights.row_count && p->weights.row_count != facts->gpu_count)
        return "weights must have one number for each GPU";
    for (uint32_t i = 0; i < p->weights.row_count; i++)
        sum += p->weights.cell[i];
    if (p->weights.row_count && !(sum > 0))
        return "weights must not all be 0";
    if (chosen(p->min_w, p, 150, 75) > chosen(p->max_w, p, 300, 700))
        return "min_w must not exceed max_w";
    ((node_state *)state)->share_w = NAN;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        gpu_state *g = &gpus(state)[i];
        g->weight = p->weights.row_count ? p->weights.cell[i] / sum : 1.0 / facts->gpu_count;
        g->limit_w = facts->gpu[i].power_default_w > 0 ? facts->gpu[i].power_default_w : (double)NAN;
        g->forecast_w = NAN;
    }
    return NULL;
}

/* ---- tier 2: an autoregression of four lags ---- */

static void keep(series *s, double value) {
    for (uint64_t i = 1; s->count == KEPT && i < KEPT; i++)
        s->value[i - 1] = s->value[i];
    s->count -= s->count == KEPT;
    s->value[s->count++] = value;
}

/* Least squares over the latest `most` values, by Gauss with pivots; `terms` LAGS, or one more for a constant. Where it
 * has no solution the weights stay. */
static int fit(series *s, uint64_t most, int terms) {
    const uint64_t first = s->count > most ? s->count - most : 0;
    double a[WITH_CONSTANT][WITH_CONSTANT + 1] = {{0}};
    for (uint64_t t = first + LAGS; t < s->count; t++)
        for (int i = 0; i < terms; i++) {
            const double x = i < LAGS ? s->value[t - 1 - (uint64_t)i] : 1;
            for (int k = 0; k < terms; k++)
                a[i][k] += x * (k < LAGS ? s->value[t - 1 - (uint64_t)k] : 1);
            a[i][terms] += x * s->value[t];
        }
    for (int i = 0; i < terms; i++) {
        int best = i;
        for (int k = i + 1; k < terms; k++)
            best = fabs(a[k][i]) > fabs(a[best][i]) ? k : best;
        if (!(fabs(a[best][i]) > 1e-9))
            return 0;
        for (int k = i; best != i && k <= terms; k++) /* adding rows leaves the solution as it is */
            a[i][k] += a[best][k];
        for (int row = 0; row < terms; row++)
            for (int k = terms; row != i && k >= i; k--)
                a[row][k] -= a[row][i] / a[i][i] * a[i][k];
    }
    for (int i = 0; i < terms; i++)
        s->weight[i] = a[i][terms] / a[i][i];
    return 1;
}

static double predict(const series *s) {
    double sum = s->weight[LAGS];
    for (uint64_t i = 0; i < LAGS && i < s->count; i++)
        sum += s->weight[i] * s->value[s->count - 1 - i];
    return sum;
}

/* v100: the first weights until 16 values are there, then fitted anew each 30 s. */
static double forecast_power(series *s, int64_t now, double watts) {
    static const double first[WITH_CONSTANT] = {0.65, 0.18, 0.10, 0.05};
    keep(s, watts);
    for (int i = 0; !s->fitted_ns && i < WITH_CONSTANT; i++)
        s->weight[i] = first[i];
    if (s->count >= 16 && (!s->fitted_ns || now - s->fitted_ns > INT64_C(30000000000)) && fit(s, KEPT, WITH_CONSTANT))
        s->fitted_ns = now;
    return predict(s);
}

/* h100: from five values on, over the latest 30, without a constant; before that the value itself. */
static double forecast_use(series *s, double use) {
    keep(s, use);
    return s->count < 5 || !fit(s, 30, LAGS) ? use : fmin(1, fmax(0, predict(s)));
}

static void tier2(node_state *n, gpu_state *g, const params *p, const fl_sample *sample, double target_w) {
    double use = 0;
    if (!p->tier2 || sample->time_ns < n->tier2_ns)
        return;
    n->tier2_ns = sample->time_ns + INT64_C(1000000000);
    for (uint32_t i = 0; i < sample->gpu_count; i++) {
        const fl_gpu_sample *s = &sample->gpu[i];
        use += fl_gpu_known(s, FL_GPU_UTIL_GPU_PCT) ? s->value[FL_GPU_UTIL_GPU_PCT] / 100 : (double)NAN;
        if (p->version == V100 && fl_gpu_known(s, FL_GPU_POWER_W))
            g[i].forecast_w = forecast_power(&g[i].power, sample->time_ns, s->value[FL_GPU_POWER_W]);
    }
    if (p->version == H100 && isfinite(use)) {
        const double share = forecast_use(&n->use, use / sample->gpu_count);
        n->share_w = fmax(target_w - 2 * (50 + 230 * share) - 200, 75.0 * sample->gpu_count);
    }
}

/* ---- tier 1: the PID of one board ---- */

static double pid(gpu_state *g, const params *p, double target_w, double watts, int64_t now) {
    const double error = target_w - watts, kp = chosen(p->kp, p, 0.5, 0.6), ki = chosen(p->ki, p, 0.05, 0.05),
                 kd = chosen(p->kd, p, 0.01, 0.02), low = chosen(p->min_w, p, 150, 75),
                 high = chosen(p->max_w, p, 300, 700),
                 dt = p->version == H100 || !g->begun ? 0.005 : fmax((double)(now - g->last_ns) * 1e-9, 0.001);
    g->integral += error * dt;
    if (p->version == V100)
        g->integral = fmax(fmin(g->integral, 50), -50);
    const double u = kp * error + ki * g->integral + kd * (error - g->last_error) / dt;
    g->last_error = error;
    g->last_ns = now;
    g->begun = 1;
    if (p->version == V100)
        return fmax(low, fmin(high, target_w + u));
    return fmin(fmin(high, target_w), fmax(low, watts + u));
}

static void step_gpu(gpu_state *g, const params *p, const fl_sample *sample, uint32_t i, double target_w,
                     fl_command *c) {
    const fl_gpu_sample *s = &sample->gpu[i];
    const double interval_s = chosen(p->interval_s, p, 1, 0), least_w = chosen(p->least_w, p, 2, 0);
    if (!isfinite(target_w)) {
        if (g->limited)
            fl_set_gpu(c, i, FL_SET_POWER_LIMIT_W, FL_DEFAULT);
        g->limit_w = g->limited ? (double)NAN : g->limit_w, g->limited = 0;
        return;
    }
    if (!fl_gpu_known(s, FL_GPU_POWER_W))
        return;
    if (p->version == H100 && fl_gpu_known(s, FL_GPU_TEMP_C) && s->value[FL_GPU_TEMP_C] > 85)
        target_w *= fmax(0.5, 1 - 0.02 * (s->value[FL_GPU_TEMP_C] - 85));
    g->command_w = pid(g, p, target_w, s->value[FL_GPU_POWER_W], sample->time_ns);
    if (sample->time_ns < g->set_ns)
        return;
    g->set_ns = sample->time_ns + (int64_t)(interval_s * 1e9 + 0.5);
    const double limit_w = p->version == V100 ? rint(g->command_w) : g->command_w;
    if (limit_w > 0 && limit_w != g->limit_w && !(fabs(limit_w - g->limit_w) < least_w)) {
        fl_set_gpu(c, i, FL_SET_POWER_LIMIT_W, limit_w);
        g->limit_w = limit_w;
        g->limited = 1;
    }
}

enum { PROBE_COMMAND, PROBE_FORECAST, PROBES };

static const fl_probe probe_rows[PROBES] = {
    [PROBE_COMMAND] = {"command", "W", "limit that the PID asks for", 1},
    [PROBE_FORECAST] = {"forecast", "W", "power a second ahead, by tier 2 of v100", 1},
};

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    const params *p = param_bytes;
    node_state *n = state;
    gpu_state *g = gpus(state);
    const double target_w = fl_host_known(&sample->host, FL_HOST_TARGET_W) ? sample->host.value[FL_HOST_TARGET_W] : NAN;
    tier2(n, g, p, sample, target_w);
    const double shared_w = p->tier2 && p->version == H100 && isfinite(target_w) ? n->share_w : target_w;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        step_gpu(&g[i], p, sample, i, shared_w * g[i].weight, c);
        fl_show_gpu(c, i, PROBE_COMMAND, g[i].begun ? g[i].command_w : (double)NAN);
        fl_show_gpu(c, i, PROBE_FORECAST, g[i].forecast_w);
    }
    c->delay_ns = (int64_t)(fmax(0.001, chosen(p->period_ms, p, 11.2, 5)) * 1e6 + 0.5);
}

#define OWN "; -1: that of the version"
static const fl_param param_rows[] = {
    FL_PARAM(params, version, CHOICE("v100|h100"), "", "v100", "released controller whose rules and constants hold"),
    FL_PARAM(params, kp, REAL(-1, 100), "", "-1", "proportional gain (0.5, h100 0.6" OWN ")"),
    FL_PARAM(params, ki, REAL(-1, 100), "1/s", "-1", "integral gain (0.05 both" OWN ")"),
    FL_PARAM(params, kd, REAL(-1, 100), "s", "-1", "derivative gain (0.01, h100 0.02" OWN ")"),
    FL_PARAM(params, period_ms, REAL(-1, 3.6e6), "ms", "-1", "time between steps (11.2 as run, h100 5" OWN ")"),
    FL_PARAM(params, interval_s, REAL(-1, 3600), "s", "-1", "shortest time between sets (1, h100 0" OWN ")"),
    FL_PARAM(params, least_w, REAL(-1, 1000), "W", "-1", "smallest change of a limit that is set (2, h100 0" OWN ")"),
    FL_PARAM(params, min_w, REAL(-1, 1e5), "W", "-1", "lowest limit of a GPU (150, h100 75" OWN ")"),
    FL_PARAM(params, max_w, REAL(-1, 1e5), "W", "-1", "highest limit of a GPU (300, h100 700" OWN ")"),
    FL_PARAM(params, weights, LIST(0, 1e6), "", "", "shares of the GPUs in the target (equal)"),
    FL_PARAM(params, tier2, BOOL, "", "0", "v100: forecasts power, a probe; h100: takes CPUs and 200 W off the target"),
};

static const fl_signal_row signal_rows[] = {
    FL_NEEDS(GPU_POWER_W),
    FL_USES(GPU_TEMP_C),
    FL_USES(GPU_UTIL_GPU_PCT),
    FL_NEEDS(HOST_TARGET_W),
};

FL_POLICY(gridpilot) = {FL_POLICY_ABI,
                        .name = "gridpilot",
                        .summary = "sets power limits by a PID such that the GPUs together follow a target of power",
                        .source = "GridPilot (Euro-Par 2026), tiers 1 and 2 of the two released controllers",
                        .gpu_drives = FL_BIT(FL_SET_POWER_LIMIT_W),
                        .state_size = sizeof(node_state),
                        .gpu_size = sizeof(gpu_state),
                        FL_POLICY_PARTS(params)};
