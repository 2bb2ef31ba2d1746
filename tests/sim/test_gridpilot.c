/* GridPilot's two controllers: each rule worked by hand, and the forecast of tier 2. */
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <math.h>

extern const fl_policy fl_policy_gridpilot;

enum { GPUS = 2, STEPS = 8 };

typedef struct rig {
    fl_instance *in;
    fl_gpu_facts gpu_facts[GPUS];
    fl_facts facts;
    fl_gpu_sample gpu[GPUS];
    fl_sample s;
    const fl_decision *decision;
} rig;

/* settings: pairs of name and text, ended by NULL. */
static const char *open_rig(rig *r, uint32_t gpus, const char *const *settings) {
    static fl_diag d;
    fl_setting setting[8];
    fl_layer layer = {.origin = "test", .setting = setting};
    d = (fl_diag){0};
    *r = (rig){.facts = {.gpu_count = gpus, .host = {.name = "host"}}};
    for (; settings && *settings; settings += 2)
        setting[layer.count++] = (fl_setting){.name = settings[0], .text = settings[1]};
    for (uint32_t i = 0; i < gpus; i++)
        r->gpu_facts[i] = (fl_gpu_facts){.name = "gpu", .power_min_w = 50, .power_max_w = 900, .power_default_w = 300};
    r->facts.gpu = r->gpu_facts;
    r->s = (fl_sample){.gpu_count = gpus, .gpu = r->gpu};
    const fl_instance_options o = {
        .policy = &fl_policy_gridpilot, .facts = &r->facts, .layer = &layer, .layer_count = 1};
    return fl_instance_open(&r->in, &o, &d) ? d.message : NULL;
}

static void put(fl_gpu_sample *g, int id, double value) {
    g->value[id] = value;
    g->valid &= ~FL_BIT(id);
    g->valid |= isnan(value) ? 0 : FL_BIT(id);
    g->fresh = g->valid;
}

static void ask(rig *r, double watts) {
    r->s.host.value[FL_HOST_TARGET_W] = watts;
    r->s.host.valid = r->s.host.fresh = isnan(watts) ? 0 : FL_BIT(FL_HOST_TARGET_W);
}

static void step(rig *r, double ms) {
    fl_diag d = {0};
    r->s.time_ns = (int64_t)(ms * 1e6 + 0.5);
    FL_CHECK(fl_instance_step(r->in, &r->s, &r->decision, &d) == FL_OK, "%s", d.message);
    r->s.step++;
}

static double set_of(const rig *r, uint32_t gpu) {
    const fl_decided *x = &r->decision->gpu[gpu][FL_SET_POWER_LIMIT_W];
    return x->set ? x->value : 0;
}

/* ---- tier 1 ---- */

typedef struct moment {
    double ms, target_w, power_w, temp_c; /* NAN: unknown */
    double command_w, set_w;              /* set_w 0: nothing is set */
} moment;

typedef struct course {
    const char *rule, *settings[10];
    moment at[STEPS];
} course;

/* v100, e = target - power: u = 0.5 e + 0.05 I + 0.01 (e - e_last) / dt.
 *   180 - 80: 0.5 * 100 + 0.05 * 0.5 + 0.01 * 100 / 0.005 = 250.025, so 300
 *   10 ms later: 50 + 0.05 * 1.5 + 0 = 50.075
 *   at 1010 ms, 200: e = -20, I = 1.5 - 20 * 1 = -18.5: -10 - 0.925 + 0.01 * (-120) / 1 = -12.125
 * h100, dt 0.005, T = target at most: u = 0.6 e + 0.05 I + 0.02 (e - e_last) / dt. */
/* clang-format off */
static const course courses[] = {
    {"a first step of 5 ms; the limit in force stays; then the measured time, whole watts, once a second", {NULL},
     {{0, 180, 80, NAN, 300, 0}, {10, 180, 80, NAN, 230.075, 0}, {1010, 180, 200, NAN, 167.875, 168},
      /* e 10, I -18.5 + 1 * 0.5 = -13.5: 5 - 0.675 + 0.01 * 30 / 0.5 */
      {1510, 180, 170, NAN, 184.925, 0},
      /* e 10, I -8.5: 5 - 0.425 + 0 */
      {2010, 180, 170, NAN, 184.575, 185},
      /* e 8, I -0.5: 4 - 0.025 - 0.02 */
      {3010, 180, 172, NAN, 183.955, 0}}}, /* 184 is 1 W off, less than 2 */
    {"the integral is bounded, and the step of time from below", {"kp", "0", "kd", "0", "ki", "1", "interval_s", "0", NULL},
     {{0, 250, 50, NAN, 251, 251}, {1000, 250, 50, NAN, 300, 300}, {1000.1, 250, 251, NAN, 299.999, 0},
      {11000, 250, 450, NAN, 200, 200}}},
    {"the limits of the version", {"interval_s", "0", NULL},
     {{0, 100, 400, NAN, 150, 150}, {5, 100, 400, NAN, 150, 0}, {10, 400, 100, NAN, 300, 300}}},
    {"without a target the default holds; without power nothing moves", {"interval_s", "0", NULL},
     {{0, NAN, 100, NAN, NAN, 0}, {10, 200, NAN, NAN, NAN, 0}, {20, 200, 250, NAN, 150, 150},
      {30, 200, NAN, NAN, NAN, 0}, {40, NAN, 250, NAN, NAN, FL_DEFAULT}, {50, NAN, 250, NAN, NAN, 0},
      /* e -50, I -0.25 - 2.0: -25 - 0.1125 */
      {60, 200, 250, NAN, 174.8875, 175}}},
    {"gains of 0 are the ideal cap", {"kp", "0", "ki", "0", "kd", "0", "interval_s", "0"},
     {{0, 212.4, 260, NAN, 212.4, 212}, {20, 213.4, 100, NAN, 213.4, 0}, {40, 214.6, 100, NAN, 214.6, 215}}},
    {"h100: power + u, never above the target, set each time", {"version", "h100", NULL},
     /* e -10: 200 - 6 - 0.0025 - 40; then u = -6 - 0.005 */
     {{0, 190, 200, NAN, 153.9975, 153.9975}, {5, 190, 200, NAN, 193.995 - 3.995, 190}, {10, 190, 180, NAN, 190, 0},
      /* e -40, I -0.05 + 0.05 - 0.2: 230 - 24 - 0.01 - 200 */
      {15, 190, 230, NAN, 75, 75}}},
    {"h100: a hot board gets less, to half at most", {"version", "h100", "kp", "1", "ki", "0", "kd", "0"},
     {{0, 200, 100, 85, 200, 200}, {5, 200, 100, 95, 160, 160}, {10, 200, 50, 125, 100, 100}}},
};
/* clang-format on */

static bool near(double a, double b) { return isnan(b) || fabs(a - b) < 1e-9; }

static void test_courses(void) {
    for (size_t i = 0; i < FL_COUNT(courses); i++) {
        const course *c = &courses[i];
        rig r;
        const char *why = open_rig(&r, 1, c->settings);
        FL_CHECK(!why, "%s: %s", c->rule, why ? why : "");
        for (int k = 0; !why && k < STEPS && (k == 0 || c->at[k].ms > 0); k++) {
            const moment *m = &c->at[k];
            ask(&r, m->target_w);
            put(&r.gpu[0], FL_GPU_POWER_W, m->power_w);
            put(&r.gpu[0], FL_GPU_TEMP_C, m->temp_c);
            step(&r, m->ms);
            FL_CHECK(near(r.decision->probe[0], m->command_w) && near(set_of(&r, 0), m->set_w),
                     "%s, at %g ms: command %.9g, set %.9g", c->rule, m->ms, r.decision->probe[0], set_of(&r, 0));
        }
        fl_instance_close(r.in);
    }
}

static const struct {
    const char *settings[9];
    double target_w, set_w[GPUS];
} shares[] = {
    {{NULL}, 420, {210, 210}},
    {{"weights", "2/1", NULL}, 600, {400, 200}},
    /* half used: 2 * (50 + 115) + 200 = 530 off 1000 W; and never less than 75 W each */
    {{"version", "h100", "tier2", "1", NULL}, 1000, {235, 235}},
    {{"version", "h100", "tier2", "1", NULL}, 600, {75, 75}},
    {{"version", "h100", "tier2", "1", "weights", "3/1"}, 1000, {352.5, 117.5}},
};

/* With power at the share itself, the PID asks for the share. */
static void test_shares(void) {
    for (size_t i = 0; i < FL_COUNT(shares); i++) {
        const char *settings[16] = {"interval_s", "0", "least_w", "0", "max_w", "700"};
        memcpy(settings + 6, shares[i].settings, sizeof shares[i].settings);
        rig r;
        const char *why = open_rig(&r, GPUS, settings);
        FL_CHECK(!why, "%s", why ? why : "");
        ask(&r, shares[i].target_w);
        for (uint32_t k = 0; k < GPUS; k++) {
            put(&r.gpu[k], FL_GPU_POWER_W, shares[i].set_w[k]);
            put(&r.gpu[k], FL_GPU_UTIL_GPU_PCT, k ? 70 : 30);
        }
        if (!why)
            step(&r, 0);
        for (uint32_t k = 0; !why && k < GPUS; k++)
            FL_CHECK(near(set_of(&r, k), shares[i].set_w[k]), "row %zu, GPU %u: %g W", i, k, set_of(&r, k));
        fl_instance_close(r.in);
    }
}

/* ---- tier 2 ---- */

/* 0.65 + 0.18 + 0.10 + 0.05 of 100 W until 16 values are there. Then the fit knows x[t] = 300 - x[t-1] of two values in
 * turn, with a third now and then so that it is determined. */
static void test_forecast(void) {
    rig r;
    const char *why = open_rig(&r, 1, (const char *const[]){"tier2", "1", NULL});
    double x[64] = {100, 104, 99, 103};
    FL_CHECK(!why, "%s", why ? why : "");
    ask(&r, 200);
    for (int t = 4; t < 64; t++) /* far from a fixed point, so that 16 values determine five weights */
        x[t] = 30 + 1.1 * x[t - 1] - 0.9 * x[t - 2] + 0.6 * x[t - 3] - 0.1 * x[t - 4];
    for (int t = 0; !why && t < 60; t++) {
        put(&r.gpu[0], FL_GPU_POWER_W, x[t]);
        step(&r, 1000.0 * t);
        const double seen = r.decision->probe[1];
        if (t == 3)
            FL_CHECK(near(seen, 0.65 * 103 + 0.18 * 99 + 0.10 * 104 + 0.05 * 100), "before: %.9g", seen);
        if (t == 14 || t == 15)
            FL_CHECK((fabs(seen - x[t + 1]) < 1e-3) == (t == 15), "at %d s: %.9g, then %.9g", t, seen, x[t + 1]);
        step(&r, 1000.0 * t + 500); /* a turn a second */
        FL_CHECK(r.decision->probe[1] == seen, "at %d s", t);
    }
    fl_instance_close(r.in);
}

static const struct {
    const char *settings[3], *why;
} refused[] = {
    {{"weights", "1", NULL}, "one number for each GPU"},
    {{"weights", "0/0", NULL}, "must not all be 0"},
    {{"min_w", "400", NULL}, "min_w must not exceed max_w"},
};

static void test_refused(void) {
    for (size_t i = 0; i < FL_COUNT(refused); i++) {
        rig r;
        const char *why = open_rig(&r, GPUS, refused[i].settings);
        FL_CHECK(why && strstr(why, refused[i].why), "row %zu: %s", i, why ? why : "taken");
        fl_instance_close(r.in);
    }
}

FL_SUITE("gridpilot", {"rules of tier 1", test_courses}, {"shares", test_shares}, {"forecast", test_forecast},
         {"refused", test_refused})
