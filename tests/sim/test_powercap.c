/* The seven methods of power capping against their rules, one reading of the meter at a time. */
#include "policies/random.h"
#include "tests/support/golden.h"
#include "tests/support/powercap_node.h"

static const int32_t low_sm[] = {450, 610, 790}, one_sm[] = {700};

/* P(500) = 100 + 10 + 0.5 * 100 + 20 = 180 and so on, in steps of 10 W; 30 W less at rest. At 250 W and least energy it
 * would be 900 MHz: the rules use 200 W, which makes it 700 MHz. */
static const char *const keys[] = {"static_w",  "gpu.volt", "gpu.volt",   "gpu.a_w",    "gpu.b_w", "gpu.c_w",
                                   "gpu.alpha", "gpu.beta", "gpu.time_s", "gpu.time_s", "comm_w",  "comm_s"};
static const double flat[][2] = {{0, 100}, {500, 1}, {900, 1},  {0, 100},  {0, 40}, {0, 10},
                                 {0, 1},   {0, 0.5}, {500, 18}, {900, 10}, {0, 5},  {0, 1}};
static const fl_table flat_model = {.cell = &flat[0][0], .key = keys, .row_count = COUNT(flat), .column_count = 2};

static bool has_param(const fl_policy *p, const char *name) {
    for (uint32_t i = 0; i < p->param_count; i++)
        if (!strcmp(p->param[i].name, name))
            return true;
    return false;
}

/* ---- the dynamic rule ---------------------------------------------------------------------------------------------
 */

#define STEPS 12
typedef struct rule_case {
    const char *name;
    const fl_policy *policy;
    const char *setting[5]; /* up to two, beside cap 250, margin 20, one reading per interval */
    double watts[STEPS];    /* of the steps after the first; 0 ends them */
    double mhz[STEPS + 1];  /* set at each; 0 = nothing */
    double held[STEPS];     /* probe */
} rule_case;

/* clang-format off */
static const rule_case rules[] = {
    {"max: starts at the highest, one step down for each reading above", &fl_policy_cap_dynamic_max, {NULL},
     {260, 300, 251, 1000}, {900, 800, 700, 600, 500}, {0}},
    {"reaching the limit is enough", &fl_policy_cap_dynamic_max, {NULL}, {250, 249.9}, {900, 800, 0}, {0}},
    {"not below the lowest", &fl_policy_cap_dynamic_min, {NULL}, {260, 260, 229}, {500, 0, 0, 600}, {0}},
    {"min: starts at the lowest, one step up when well below", &fl_policy_cap_dynamic_min, {NULL},
     {200, 100, 229, 229.9}, {500, 600, 700, 800, 900}, {0}},
    {"not above the highest", &fl_policy_cap_dynamic_max, {NULL}, {100, 100, 260}, {900, 0, 0, 800}, {0}},
    {"between margin and limit: stays", &fl_policy_cap_dynamic_min, {NULL}, {230, 240, 249.99}, {500, 0, 0, 0}, {0}},
    {"the margin is the parameter's", &fl_policy_cap_dynamic_min, {"margin_w", "0"}, {249.9, 250}, {500, 600, 500}, {0}},
    {"no reading: stays, and says so", &fl_policy_cap_dynamic_max, {NULL}, {260, MISSING, MISSING, 260},
     {900, 800, 0, 0, 700}, {0, 1, 1, 0}},
    {"a reading counts once", &fl_policy_cap_dynamic_max, {NULL}, {260, STALE, STALE, 260}, {900, 800, 0, 0, 700},
     {0, 1, 1, 0}},
    {"a meter that shows infinity shows nothing", &fl_policy_cap_dynamic_max, {NULL}, {INFINITY, 260}, {900, 0, 800},
     {1, 0}},
    {"half a watt is a reading", &fl_policy_cap_dynamic_min, {NULL}, {0.5, 260}, {500, 600, 500}, {0, 0}},
    {"hybrid1: from the model's clock, and above it", &fl_policy_cap_hybrid1, {NULL}, {200, 200, 260, 260, 260},
     {700, 800, 900, 800, 700, 600}, {0}},
    {"hybrid2: from the model's clock, never above it", &fl_policy_cap_hybrid2, {NULL}, {200, 260, 260, 200, 200, 200},
     {700, 0, 600, 500, 600, 700, 0}, {0}},
    {"static: the model's clock", &fl_policy_cap_static, {NULL}, {200, 260, MISSING, 400}, {700, 0, 0, 0, 0}, {0}},
    {"static max", &fl_policy_cap_static_max, {NULL}, {400, 400}, {900, 0, 0}, {0}},
    {"static min", &fl_policy_cap_static_min, {NULL}, {100, 100}, {500, 0, 0}, {0}},
};
/* clang-format on */

static void test_rules(void) {
    for (size_t i = 0; i < COUNT(rules); i++) {
        const rule_case *c = &rules[i];
        /* The model gets its cap from P(700) = 100 + 70 + 20 + 10 = 200 W; the meter's readings are moved to match. */
        const bool modelled = has_param(c->policy, "model"), dynamic = has_param(c->policy, "interval_s");
        const double cap = modelled ? 200 : 250;
        const char *settings[SETTINGS_MAX] = {"cap_w", modelled ? "200" : "250", "monitor_ms", "5000"};
        size_t n = 4;
        if (dynamic && !c->setting[0]) {
            settings[n++] = "margin_w";
            settings[n++] = "20";
        }
        for (size_t k = 0; c->setting[k]; k++)
            settings[n++] = c->setting[k];
        rig r;
        facts_make(&r, 1);
        rig_open(&r, c->policy, settings, modelled ? &flat_model : NULL);
        rig_step(&r, MISSING);
        FL_CHECK(set_of(&r, 0) == c->mhz[0], "%s: starts at %g, expected %g", c->name, set_of(&r, 0), c->mhz[0]);
        for (size_t k = 0; k < STEPS && c->watts[k] != 0; k++) {
            rig_step(&r, c->watts[k] > 0 ? c->watts[k] - 250 + cap : c->watts[k]);
            FL_CHECK(set_of(&r, 0) == c->mhz[k + 1] &&
                         (dynamic ? probe(&r, HELD) == c->held[k] : isnan(probe(&r, HELD))),
                     "%s: reading %zu: sets %g, expected %g; held %g", c->name, k, set_of(&r, 0), c->mhz[k + 1],
                     probe(&r, HELD));
        }
        FL_CHECK(fl_instance_counts_of(r.in).faults == 0 && fl_instance_counts_of(r.in).snapped == 0, "%s: faults",
                 c->name);
        fl_instance_close(r.in);
    }
}

/* ---- time ---------------------------------------------------------------------------------------------------------
 */

/* Readings each 15 ms, one decision each interval, the first of them one interval after the start. */
static void test_interval(void) {
    static const struct {
        const char *interval, *monitor;
        int64_t interval_ns, delay_ns; /* usual */
    } cases[] = {
        {"5", "15", 5 * SECOND, 15000000},
        {"0.2", "15", SECOND / 5, 15000000},
        {"0.01", "15", SECOND / 100, 10000000}, /* more often than the meter is read: then with each decision */
        {"1", "1000", SECOND, SECOND},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        rig r;
        facts_make(&r, 1);
        rig_open(&r, &fl_policy_cap_dynamic_max,
                 (const char *const[]){"cap_w", "250", "interval_s", cases[i].interval, "monitor_ms", cases[i].monitor,
                                       NULL},
                 NULL);
        for (int changes = 0; changes < 4;) {
            const int64_t now = r.s.time_ns;
            rig_step(&r, 300);
            const bool due = now == (changes + 1) * cases[i].interval_ns;
            FL_CHECK(r.decision->delay_ns > 0 && r.decision->delay_ns <= cases[i].delay_ns, "case %zu: delay %lld", i,
                     (long long)r.decision->delay_ns);
            FL_CHECK((set_of(&r, 0) > 0) == (due || now == 0), "case %zu: at %lld ns sets %g", i, (long long)now,
                     set_of(&r, 0));
            changes += due;
            if (now > 5 * cases[i].interval_ns)
                break;
        }
        FL_CHECK(r.s.time_ns > 4 * cases[i].interval_ns && r.s.time_ns <= 5 * cases[i].interval_ns,
                 "case %zu: four decisions took until %lld", i, (long long)r.s.time_ns);
        fl_instance_close(r.in);
    }
}

/* What the readings between two decisions come to. */
static void test_reading(void) {
    static const struct {
        const char *how;
        double watts[4], mhz; /* readings between two decisions, the last of them at the decision */
    } cases[] = {
        {"last", {300, 300, 300, 240}, 0},           {"last", {100, 100, 100, 260}, 600},
        {"mean", {300, 300, 210, 200}, 600},         {"mean", {300, 200, 210, 250}, 0},
        {"mean", {100, 200, 260, 300}, 800},         {"peak", {100, 251, 100, 100}, 600},
        {"peak", {100, 240, 100, 100}, 0},           {"peak", {100, 229, 100, 100}, 800},
        {"mean", {MISSING, 260, STALE, STALE}, 600}, {"last", {260, MISSING, MISSING, MISSING}, 600},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        rig r;
        facts_make(&r, 1);
        rig_open(&r, &fl_policy_cap_dynamic_max,
                 (const char *const[]){"cap_w", "250", "margin_w", "20", "interval_s", "4", "monitor_ms", "1000",
                                       "reading", cases[i].how, NULL},
                 NULL);
        rig_step(&r, 400);
        for (int k = 0; k < 4; k++) /* to the second clock from the top; what counted here must not count again */
            rig_step(&r, 400);
        FL_CHECK(set_of(&r, 0) == 800, "case %zu: sets %g first", i, set_of(&r, 0));
        for (int k = 0; k < 4; k++) /* and to the third */
            rig_step(&r, 400);
        for (int k = 0; k < 4; k++)
            rig_step(&r, cases[i].watts[k]);
        FL_CHECK(set_of(&r, 0) == cases[i].mhz, "case %zu, %s: sets %g, expected %g", i, cases[i].how, set_of(&r, 0),
                 cases[i].mhz);
        fl_instance_close(r.in);
    }
}

/* Excess duration: fresh readings above the cap over fresh readings, under every method. */
static void test_excess(void) {
    static const fl_policy *const all[] = {
        &fl_policy_cap_dynamic_min, &fl_policy_cap_dynamic_max, &fl_policy_cap_static,    &fl_policy_cap_hybrid1,
        &fl_policy_cap_hybrid2,     &fl_policy_cap_static_max,  &fl_policy_cap_static_min};
    static const double watts[] = {MISSING, 200, 250, STALE, 250.1, MISSING, 300, INFINITY, 100};
    for (size_t i = 0; i < COUNT(all); i++) {
        rig r;
        facts_make(&r, 1);
        rig_open(&r, all[i], (const char *const[]){"cap_w", "250", NULL}, NULL);
        for (size_t k = 0; k < COUNT(watts); k++) {
            rig_step(&r, watts[k]);
            if (!k)
                FL_CHECK(isnan(probe(&r, EXCESS_PCT)) && isnan(probe(&r, MEAN_W)) && isnan(probe(&r, METER_W)),
                         "%s: something is shown before the first reading", all[i]->name);
        }
        FL_CHECK(fabs(probe(&r, EXCESS_PCT) - 40) < 1e-9 && fabs(probe(&r, MEAN_W) - 220.02) < 1e-9 &&
                     probe(&r, METER_W) == 100,
                 "%s: excess %g %%, mean %g W", all[i]->name, probe(&r, EXCESS_PCT), probe(&r, MEAN_W));
        fl_instance_close(r.in);
    }
}

/* ---- nodes --------------------------------------------------------------------------------------------------------
 */

/* All GPUs step together, each on its own ladder. */
static void test_nodes(void) {
    static const double down[3][4] = {{900, 790, 700, 900}, {800, 610, 0, 800}, {700, 450, 0, 700}};
    rig r;
    facts_make(&r, 4);
    r.gpu[1].sm = (fl_ladder){low_sm, COUNT(low_sm)};
    r.gpu[2].sm = (fl_ladder){one_sm, 1};
    rig_open(&r, &fl_policy_cap_dynamic_max, (const char *const[]){"cap_w", "250", "monitor_ms", "5000", NULL}, NULL);
    for (int k = 0; k < 3; k++) {
        rig_step(&r, 300);
        for (uint32_t g = 0; g < 4; g++)
            FL_CHECK(set_of(&r, g) == down[k][g], "step %d, GPU %u: %g, expected %g", k, g, set_of(&r, g), down[k][g]);
    }
    fl_instance_close(r.in);
    /* The model's clock is of the first GPU; on the others the nearest below it. */
    facts_make(&r, 3);
    r.gpu[1].sm = (fl_ladder){low_sm, COUNT(low_sm)};
    r.gpu[2].sm = (fl_ladder){sm + 3, 1};
    rig_open(&r, &fl_policy_cap_hybrid2, (const char *const[]){"cap_w", "200", NULL}, &flat_model);
    rig_step(&r, 300);
    FL_CHECK(set_of(&r, 0) == 700 && set_of(&r, 1) == 610 && set_of(&r, 2) == 800, "GPUs beside the model's: %g %g %g",
             set_of(&r, 0), set_of(&r, 1), set_of(&r, 2));
    fl_instance_close(r.in);
    facts_make(&r, 0);
    rig_open(&r, &fl_policy_cap_hybrid1, (const char *const[]){"cap_w", "200", NULL}, &flat_model);
    rig_step(&r, 300);
    FL_CHECK(r.decision->delay_ns > 0, "no GPU at all");
    fl_instance_close(r.in);
}

/* ---- a run --------------------------------------------------------------------------------------------------------
 */

/* Node power of 180 to 220 W over the ladder, some watts of noise, seen two seconds late; the meter fails from 60 to 80
 * s. */
static void test_golden(void) {
    static const fl_policy *const all[] = {&fl_policy_cap_dynamic_min, &fl_policy_cap_dynamic_max,
                                           &fl_policy_cap_static, &fl_policy_cap_hybrid1, &fl_policy_cap_hybrid2};
    static char text[65536];
    enum { STEPS_OF_RUN = 700, LATE = 10 };
    size_t used = (size_t)snprintf(text, sizeof text, "policy,time_ms,sm_mhz,held,meter_w,excess_pct\n");
    for (size_t i = 0; i < COUNT(all); i++) {
        fl_random random = fl_random_seed(5, 0);
        double watts[STEPS_OF_RUN + LATE];
        double mhz = 0;
        rig r;
        facts_make(&r, 1);
        const bool modelled = has_param(all[i], "model");
        rig_open(&r, all[i],
                 modelled ? (const char *const[]){"cap_w", "200", "monitor_ms", "200", NULL}
                          : (const char *const[]){"cap_w", "200", "monitor_ms", "200", "margin_w", "5", NULL},
                 modelled ? &flat_model : NULL);
        for (int k = 0; k < LATE; k++)
            watts[k] = 150;
        for (int k = 0; k < STEPS_OF_RUN; k++) {
            const int64_t now = r.s.time_ns;
            rig_step(&r, now >= 60 * SECOND && now < 80 * SECOND ? MISSING : watts[k]);
            if (set_of(&r, 0) > 0) {
                mhz = set_of(&r, 0);
                used += (size_t)snprintf(text + used, sizeof text - used, "%s,%lld,%g,%g,%.3f,%.3f\n", all[i]->name,
                                         (long long)(now / 1000000), mhz, probe(&r, HELD), probe(&r, METER_W),
                                         probe(&r, EXCESS_PCT));
            }
            watts[k + LATE] = 130 + mhz / 10 + 8 * (fl_random_unit(&random) - 0.5);
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s,end,%g,%g,%.3f,%.3f\n", all[i]->name, mhz,
                                 probe(&r, HELD), probe(&r, METER_W), probe(&r, EXCESS_PCT));
        fl_instance_close(r.in);
    }
    fl_golden_check("powercap.csv", text);
}

FL_SUITE("powercap", {"rules", test_rules}, {"interval", test_interval}, {"reading", test_reading},
         {"excess", test_excess}, {"nodes", test_nodes}, {"golden", test_golden})
