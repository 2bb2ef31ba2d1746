/* The static method of power capping: its choice against tables worked out by hand and against a search written another
 * way, its laws against those of models/fit/fit.h. */
#include "models/fit/fit.h"
#include "policies/papers/inside.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/powercap_node.h"

/* ---- the static method --------------------------------------------------------------------------------------------
 */

typedef struct row {
    const char *key;
    double mhz, value;
} row;

enum { ROWS_MAX = 40 };
typedef struct table {
    const char *key[ROWS_MAX];
    double cell[2 * ROWS_MAX];
    fl_table t;
} table;

static void table_add(table *t, const char *key, double mhz, double value) {
    const uint32_t n = t->t.row_count++;
    t->key[n] = key;
    t->cell[2 * n] = mhz;
    t->cell[2 * n + 1] = value;
    t->t.key = t->key;
    t->t.cell = t->cell;
    t->t.column_count = 2;
}

/* GPU: 100 W at rest, 100 W/GHz, T proportional to 1/f down to 10 s at 900 MHz but for memory_s. CPU: 20 W/GHz. */
static void table_make(table *t, double memory_s, double cpu_s) {
    memset(t, 0, sizeof *t);
    table_add(t, "static_w", 0, 100);
    table_add(t, "gpu.volt", 500, 1);
    table_add(t, "gpu.volt", 900, 1);
    table_add(t, "gpu.a_w", 0, 100);
    table_add(t, "gpu.b_w", 0, 40);
    table_add(t, "gpu.c_w", 0, 10);
    table_add(t, "gpu.alpha", 0, 1);
    table_add(t, "gpu.beta", 0, 0.5);
    table_add(t, "gpu.time_s", 500, 18);
    table_add(t, "gpu.time_s", 900, memory_s);
    if (cpu_s > 0) {
        table_add(t, "cpu.volt", 1000, 1);
        table_add(t, "cpu.volt", 3000, 1);
        table_add(t, "cpu.a_w", 0, 20);
        table_add(t, "cpu.b_w", 0, 0);
        table_add(t, "cpu.c_w", 0, 10);
        table_add(t, "cpu.alpha", 0, 1);
        table_add(t, "cpu.beta", 0, 0);
        table_add(t, "cpu.time_s", 1000, 3 * cpu_s);
        table_add(t, "cpu.time_s", 3000, cpu_s);
    }
}

typedef struct choice_case {
    const char *name, *cap, *objective;
    double memory_s, cpu_s; /* of table_make */
    row more[4];
    double mhz, cpu_mhz, watts, seconds, joules; /* NAN = not looked at */
} choice_case;

/* Power of the node while the GPU works: 130 + f/10 W. Energy at f, compute-bound: 18 * 500/f * (130 + f/10). */
/* clang-format off */
static const choice_case choices[] = {
    {"compute-bound: the highest clock, no cap in the way", "1000", "energy", 10, 0, {{0}}, 900, NAN, 220, 10, 2200},
    {"the highest clock under the cap", "201", "energy", 10, 0, {{0}}, 700, NAN, 200, 9000 / 700.0, 200 * 9000 / 700.0},
    {"exactly at the cap is not above it", "200", "energy", 10, 0, {{0}}, 700, NAN, 200, NAN, NAN},
    {"memory-bound: the lowest clock that costs no time", "1000", "energy", 12.857142857142858, 0, {{0}}, 700, NAN, 200,
     9000 / 700.0, 200 * 9000 / 700.0},
    {"least time: so too, for energy breaks the tie", "1000", "time", 12.857142857142858, 0, {{0}}, 700, NAN, 200, NAN, NAN},
    {"least energy takes the lowest where time is flat", "1000", "energy", 18, 0, {{0}}, 500, NAN, 180, 18, 3240},
    {"so does least time", "1000", "time", 18, 0, {{0}}, 500, NAN, 180, 18, 3240},
    {"energy is the same everywhere: least time", "1000", "energy", 10, 0,
     {{"static_w", 0, 0}, {"gpu.alpha", 0, 0}, {"gpu.beta", 0, 0}, {"gpu.c_w", 0, 0}}, 900, NAN, 0, 10, 0},
    {"energy and time disagree: energy", "1000", "energy", 17, 0, {{"gpu.alpha", 0, 4}}, 500, NAN, NAN, 18, NAN},
    {"energy and time disagree: time", "1000", "time", 17, 0, {{"gpu.alpha", 0, 4}}, 600, NAN, NAN, 17, NAN},
    {"nothing fits: the least power", "100", "energy", 10, 0, {{0}}, 500, NAN, 180, 18, NAN},
    {"copies draw more than the cap: nothing fits, all draw the same, least energy", "190", "energy", 10, 0, {{"comm_w", 0, 95}, {"comm_s", 0, 1}}, 600,
     NAN, 195, 16, 15 * 190 + 195},
    {"copies that do not happen draw nothing", "190", "energy", 10, 0, {{"comm_w", 0, 95}, {"comm_s", 0, 0}}, 600, NAN,
     190, NAN, NAN},
    /* 1 s of T_all at static power; without it 900 MHz, 10 s and 2200 J, as in the first */
    {"both idle for a second", "1000", "energy", 10, 0, {{"idle_s", 0, 1}}, 900, NAN, 220, 11, 2200 + 100},
    {"both clocks together", "1000", "energy", 10, 1, {{0}}, 900, 3000, 220, 11, 2200 + 170},
    {"the cap holds for the CPU's part too", "151", "energy", 10, 1, {{"gpu.alpha", 0, 0}}, NAN, 2000, 150, NAN, NAN},
    {"a CPU whose time does not depend on its clock: the lowest", "1000", "energy", 10, 0,
     {{0}}, 900, NAN, 220, NAN, NAN},
};
/* clang-format on */

static bool is(double got, double want) { return isnan(want) || fabs(got - want) <= 1e-9 * fabs(want); }

static void test_choices(void) {
    for (size_t i = 0; i < COUNT(choices); i++) {
        const choice_case *c = &choices[i];
        table t;
        table_make(&t, c->memory_s, c->cpu_s);
        for (size_t k = 0; k < COUNT(c->more) && c->more[k].key; k++) { /* in place of what the table has */
            for (uint32_t n = 0; n < t.t.row_count; n++)
                if (!strcmp(t.key[n], c->more[k].key))
                    t.cell[2 * n + 1] = c->more[k].value;
            if (!strncmp(c->more[k].key, "comm", 4) || !strcmp(c->more[k].key, "idle_s"))
                table_add(&t, c->more[k].key, 0, c->more[k].value);
        }
        rig r;
        facts_make(&r, 1);
        rig_open(&r, &fl_policy_cap_static, (const char *const[]){"cap_w", c->cap, "objective", c->objective, NULL},
                 &t.t);
        rig_step(&r, MISSING);
        const fl_decided *host = &r.decision->host[FL_SET_HOST_CPU_MHZ];
        FL_CHECK(is(set_of(&r, 0), c->mhz) && is(host->set ? host->value : 0, c->cpu_mhz),
                 "%s: %g and %g MHz, expected %g and %g", c->name, set_of(&r, 0), host->value, c->mhz, c->cpu_mhz);
        FL_CHECK(is(probe(&r, PREDICTED_W), c->watts) && is(probe(&r, PREDICTED_S), c->seconds) &&
                     is(probe(&r, PREDICTED_J), c->joules) && probe(&r, MODEL_MHZ) == set_of(&r, 0),
                 "%s: predicts %g W, %g s, %g J", c->name, probe(&r, PREDICTED_W), probe(&r, PREDICTED_S),
                 probe(&r, PREDICTED_J));
        FL_CHECK(c->cpu_s > 0 || (!host->set && isnan(probe(&r, MODEL_CPU_MHZ))), "%s: a CPU clock without a model",
                 c->name);
        rig_step(&r, 300);
        FL_CHECK(!r.decision->host[FL_SET_HOST_CPU_MHZ].set, "%s: the CPU's clock is set again", c->name);
        fl_instance_close(r.in);
    }
}

/* A CPU whose highest state boosts runs shorter there than its clock says. */
static void test_ends(void) {
    static const struct {
        const char *ends;
        double cpu_mhz, seconds;
    } cases[] = {{"measured", 3000, 10.5}, {"printed", 2000, 11.5}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        table t;
        table_make(&t, 10, 1);
        t.cell[2 * (t.t.row_count - 1) + 1] = 0.5; /* T at 3000 MHz, where 3 s at 1000 MHz promise 1 s */
        for (uint32_t n = 0; n < t.t.row_count; n++)
            if (!strcmp(t.key[n], "cpu.volt") && t.cell[2 * n] == 3000)
                t.cell[2 * n + 1] = 1.5; /* so that the clock above is not worth what Eq. 3 expects of it */
        table_add(&t, "cpu.volt", 2000, 1);
        rig r;
        facts_make(&r, 1);
        rig_open(&r, &fl_policy_cap_static, (const char *const[]){"ends", cases[i].ends, NULL}, &t.t);
        rig_step(&r, MISSING);
        FL_CHECK(probe(&r, MODEL_CPU_MHZ) == cases[i].cpu_mhz && is(probe(&r, PREDICTED_S), cases[i].seconds),
                 "%s: %g MHz, %g s", cases[i].ends, probe(&r, MODEL_CPU_MHZ), probe(&r, PREDICTED_S));
        fl_instance_close(r.in);
    }
}

/* An application that no clock slows, measured a little shorter at the lowest one: what was measured stands there too,
 * between the clocks the larger of the two. */
static void test_noisy_end(void) {
    static const double sm_mhz[] = {500, 700, 900}, measured_s[] = {17.9, 18, 18}, printed_s[] = {18, 18, 18};
    table t;
    powercap_model m;
    table_make(&t, 18, 0);
    for (uint32_t n = 0; n < t.t.row_count; n++)
        if (!strcmp(t.key[n], "gpu.time_s") && t.cell[2 * n] == 500)
            t.cell[2 * n + 1] = 17.9;
    FL_CHECK(!powercap_model_read(&m, &t.t), "refused");
    for (m.printed = 0; m.printed < 2; m.printed++)
        for (size_t i = 0; i < COUNT(sm_mhz); i++)
            FL_CHECK(powercap_time(&m, &m.gpu, sm_mhz[i]) == (m.printed ? printed_s : measured_s)[i],
                     "%s, %g MHz: %g s", m.printed ? "printed" : "measured", sm_mhz[i],
                     powercap_time(&m, &m.gpu, sm_mhz[i]));
}

/* Any model: the laws are those of models/fit/fit.h, and no pair of clocks is better than the chosen one. */
static void test_search(void) {
    const uint64_t seed = 11;
    fl_random random = fl_random_seed(seed, 0);
    for (int round = 0; round < 500; round++) {
        table t = {.t = {0}};
        double volt[COUNT(sm)], cpu_volt[COUNT(cpu)], low_s[2], high_s[2];
        const double static_w = 50 + 100 * fl_random_unit(&random), comm_s = fl_random_unit(&random),
                     comm_w = 80 * fl_random_unit(&random), cap_w = static_w + 20 + 150 * fl_random_unit(&random);
        const fl_capping_chip chip[2] = {{.a_w = 100 * fl_random_unit(&random),
                                          .b_w = 50 * fl_random_unit(&random),
                                          .c_w = 50 * fl_random_unit(&random)},
                                         {.a_w = 20 * fl_random_unit(&random), .b_w = 3, .c_w = 20}};
        const double alpha = fl_random_unit(&random), beta = fl_random_unit(&random);
        table_add(&t, "static_w", 0, static_w);
        table_add(&t, "comm_w", 0, comm_w);
        table_add(&t, "comm_s", 0, comm_s);
        for (size_t i = 0; i < COUNT(sm); i++)
            table_add(&t, "gpu.volt", sm[i], volt[i] = 1 + 0.1 * (double)i * fl_random_unit(&random));
        for (size_t i = 0; i < COUNT(cpu); i++)
            table_add(&t, "cpu.volt", cpu[i], cpu_volt[i] = 1 + 0.1 * (double)i);
        table_add(&t, "gpu.a_w", 0, chip[0].a_w);
        table_add(&t, "gpu.b_w", 0, chip[0].b_w);
        table_add(&t, "gpu.c_w", 0, chip[0].c_w);
        table_add(&t, "gpu.alpha", 0, alpha);
        table_add(&t, "gpu.beta", 0, beta);
        table_add(&t, "cpu.a_w", 0, chip[1].a_w);
        table_add(&t, "cpu.b_w", 0, chip[1].b_w);
        table_add(&t, "cpu.c_w", 0, chip[1].c_w);
        table_add(&t, "cpu.alpha", 0, 0.5);
        table_add(&t, "cpu.beta", 0, 1);
        for (int k = 0; k < 2; k++) {
            high_s[k] = 5 + 5 * fl_random_unit(&random);
            low_s[k] = high_s[k] * (1 + 0.7 * fl_random_unit(&random));
            table_add(&t, k ? "cpu.time_s" : "gpu.time_s", k ? cpu[0] : sm[0], low_s[k]);
            table_add(&t, k ? "cpu.time_s" : "gpu.time_s", k ? cpu[COUNT(cpu) - 1] : sm[COUNT(sm) - 1], high_s[k]);
        }
        double best_j = INFINITY, best_w = INFINITY, best[2] = {0}, least[2] = {0};
        for (size_t g = 0; g < COUNT(sm); g++)
            for (size_t c = 0; c < COUNT(cpu); c++) {
                const double p[2] = {fl_capping_power(&chip[0], alpha, beta, sm[g], volt[g]),
                                     fl_capping_power(&chip[1], 0.5, 1, cpu[c], cpu_volt[c])};
                const double s[2] = {fl_capping_time(sm[0], low_s[0], high_s[0], sm[g]),
                                     fl_capping_time(cpu[0], low_s[1], high_s[1], cpu[c])};
                const double peak = static_w + fmax(fmax(p[0], p[1]), comm_w);
                const double j = static_w * (s[0] + s[1] + comm_s) + comm_w * comm_s + p[0] * s[0] + p[1] * s[1];
                if (peak <= cap_w && j < best_j)
                    best_j = j, best[0] = sm[g], best[1] = cpu[c];
                if (peak < best_w)
                    best_w = peak, least[0] = sm[g], least[1] = cpu[c];
            }
        if (best_j == INFINITY && best_w == static_w + comm_w)
            continue; /* copies decide: every pair draws as much */
        powercap_model m;
        powercap_choice got;
        FL_CHECK(!powercap_model_read(&m, &t.t), "round %d is refused", round);
        powercap_choose(&m, (fl_ladder){sm, COUNT(sm)}, (fl_ladder){cpu, COUNT(cpu)}, cap_w, POWERCAP_ENERGY, &got);
        const double *want = best_j < INFINITY ? best : least;
        const bool same_gpu = got.gpu_mhz == want[0],
                   same_cpu = got.cpu_mhz == want[1] || best_j == INFINITY; /* the CPU's part may not be the peak */
        FL_CHECK(got.fits == (best_j < INFINITY) && same_gpu && same_cpu && (!got.fits || is(got.energy_j, best_j)),
                 "seed %llu, round %d: %g and %g MHz, expected %g and %g; %g J and %g J", (unsigned long long)seed,
                 round, got.gpu_mhz, got.cpu_mhz, want[0], want[1], got.energy_j, best_j);
    }
}

/* Without a model: the lowest clocks. Without a CPU ladder: the CPU is left alone. Broken tables are refused. */
static void test_models(void) {
    static const fl_policy *const modelled[] = {&fl_policy_cap_static, &fl_policy_cap_hybrid1, &fl_policy_cap_hybrid2};
    static const char *const needed[] = {"static_w", "gpu.volt",   "gpu.a_w", "gpu.b_w",    "gpu.c_w",
                                         "gpu.beta", "gpu.time_s", "cpu.a_w", "cpu.time_s", "gpu.alpha"};
    for (size_t i = 0; i < COUNT(modelled); i++) {
        rig r;
        table t;
        fl_diag d = {0};
        facts_make(&r, 2);
        rig_open(&r, modelled[i], (const char *const[]){"cap_w", "1000", NULL}, NULL);
        rig_step(&r, MISSING);
        FL_CHECK(set_of(&r, 0) == 500 && set_of(&r, 1) == 500 && isnan(probe(&r, PREDICTED_W)),
                 "%s: %g without a model", modelled[i]->name, set_of(&r, 0));
        fl_instance_close(r.in);
        facts_make(&r, 1);
        r.facts.host.cpu.count = 0;
        table_make(&t, 10, 1);
        rig_open(&r, modelled[i], (const char *const[]){"cap_w", "1000", NULL}, &t.t);
        rig_step(&r, MISSING);
        FL_CHECK(set_of(&r, 0) == 900 && !r.decision->host[FL_SET_HOST_CPU_MHZ].set && probe(&r, PREDICTED_S) == 11,
                 "%s: without a CPU ladder", modelled[i]->name);
        fl_instance_close(r.in);
        for (size_t k = 0; k < COUNT(needed); k++)
            for (int how = 0; how < 4; how++) { /* without it, below 0, at 0, at 0 MHz */
                const int clocked = !strcmp(needed[k], "gpu.volt") || strstr(needed[k], "time_s");
                const int sound = how == 2 ? strcmp(needed[k], "gpu.volt") != 0 : how == 3 && !clocked;
                table_make(&t, 10, 1);
                for (uint32_t n = 0; n < t.t.row_count; n++)
                    if (!strcmp(t.key[n], needed[k])) {
                        if (how == 0)
                            t.key[n] = "else";
                        else
                            t.cell[2 * n + (how < 3)] = how == 1 ? -1 : 0;
                    }
                facts_make(&r, 1);
                const fl_status got = rig_try(&r, modelled[i], NULL, &t.t, &d);
                FL_CHECK(got == (sound ? FL_OK : FL_BAD_INPUT), "%s, %s, case %d: expected %s", modelled[i]->name,
                         needed[k], how, sound ? "ok" : "a refusal");
                if (got == FL_OK)
                    fl_instance_close(r.in);
            }
        table_make(&t, 10, 1);
        t.cell[2] = 501; /* gpu.volt begins above the ladder's lowest clock */
        facts_make(&r, 1);
        FL_CHECK(rig_try(&r, modelled[i], NULL, &t.t, &d) == FL_BAD_INPUT && strstr(d.message, "gpu.volt"),
                 "%s takes voltages that do not reach", modelled[i]->name);
    }
}

/* V on a line between two clocks of the table. */
static void test_voltage(void) {
    static const row volts[] = {{"gpu.volt", 900, 1.4}, {"gpu.volt", 500, 1}, {"gpu.volt", 700, 1.1}};
    static const double want[][2] = {{500, 1}, {600, 1.05}, {700, 1.1}, {800, 1.25}, {900, 1.4}, {100, 1}, {1000, 1.4}};
    table t;
    powercap_model m;
    table_make(&t, 10, 0);
    t.key[1] = t.key[2] = "else";
    for (size_t i = 0; i < COUNT(volts); i++)
        table_add(&t, volts[i].key, volts[i].mhz, volts[i].value);
    FL_CHECK(!powercap_model_read(&m, &t.t), "refused");
    m.gpu.alpha = 0;
    for (size_t i = 0; i < COUNT(want); i++)
        FL_CHECK(is(powercap_power(&m, &m.gpu, want[i][0]), 20 + 10 * want[i][1]), "V(%g) is %g", want[i][0],
                 (powercap_power(&m, &m.gpu, want[i][0]) - 20) / 10);
}

FL_SUITE("powercap static", {"choices", test_choices}, {"ends", test_ends}, {"a noisy end", test_noisy_end},
         {"search", test_search}, {"models", test_models}, {"voltage", test_voltage})
