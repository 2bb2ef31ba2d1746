/* ODPP: period, measure and lines on traces made by hand; then the whole course on a GPU whose readings come in waves.
 */
#include "policies/compared/compared.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/wave_node.h"

extern const fl_policy fl_policy_odpp;

static fl_fft work;
static fl_readings trace;

static void add(double t_s, double power_w, double gpu_pct, double mem_pct) {
    fl_gpu_sample s = {.valid = FL_READINGS_NEEDS};
    s.value[FL_GPU_POWER_W] = power_w;
    s.value[FL_GPU_UTIL_GPU_PCT] = gpu_pct;
    s.value[FL_GPU_UTIL_MEM_PCT] = mem_pct;
    fl_readings_add(&trace, &s, (int64_t)rint(t_s * 1e9));
}

static double tone(double t_s, double period_s) { return sin(6.283185307179586 * t_s / period_s); }

/* ---- parts --------------------------------------------------------------------------------------------------------
 */

/* P counts as percent of the limit, and as much as U and V. */
static void test_composite(void) {
    static const struct {
        const char *name;
        double p_w, u_pct, v_pct, limit_w, period_s;
    } row[] = {
        {"power stronger", 40, 10, 0, 350, 2.5}, {"utilisation stronger", 30, 10, 0, 350, 1.25},
        {"a lower limit", 30, 10, 0, 200, 2.5},  {"memory stronger", 30, 0, 10, 350, 5},
        {"memory weaker", 30, 9, 8, 350, 1.25},  {"no limit known: without power", 100, 2, 1, 0, 1.25},
    };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        trace.count = 0;
        for (int i = 0; i < 250; i++) {
            const double t = 0.1 * i;
            add(t, 200 + row[k].p_w * tone(t, 2.5), 60 + row[k].u_pct * tone(t, 1.25), 30 + row[k].v_pct * tone(t, 5));
        }
        const double period = fl_odpp_period_s(&work, &trace, row[k].limit_w);
        FL_CHECK(fabs(period - row[k].period_s) < 1e-9, "%s: %g s, expected %g", row[k].name, period, row[k].period_s);
    }
}

/* The spectrum of the whole trace as it is: a period that does not divide it leaks as an unwindowed sum does. */
static void test_spectrum(void) {
    fl_random r = fl_random_seed(21, 0);
    for (int round = 0; round < 20; round++) {
        double x[251], highest = 0, before = 0, here = 0;
        uint32_t best = 0;
        trace.count = 0;
        for (int i = 0; i < 251; i++) {
            x[i] = (float)(40 + 20 * fl_random_unit(&r) + 0.1 * i);
            add(0.1 * i, 0, x[i], 0);
        }
        for (uint32_t k = 0; k <= 125; k++) {
            double re = 0, im = 0;
            for (int i = 0; i < 251; i++) {
                re += x[i] * cos(6.283185307179586 * i * k / 251.0);
                im += x[i] * sin(6.283185307179586 * i * k / 251.0);
            }
            const double next = hypot(re, im);
            if (k >= 2 && here > before && here > next && here > highest) {
                highest = here;
                best = k - 1;
            }
            before = here;
            here = next;
        }
        const double period = fl_odpp_period_s(&work, &trace, 350);
        FL_CHECK(fabs(period - 25.1 / best) < 1e-9, "round %d: %g s, expected %g", round, period, 25.1 / best);
    }
}

static void test_longer(void) {
    static const struct {
        double length_s, period_s, missing_s;
    } row[] = {{25, 8, 0},   {25, 8.5, 4.25}, {25, 12.5, 12.5}, {30, 10, 0},  {29.9, 10, 5},
               {25, 25, 50}, {179, 100, 121}, {180, 100, 0},    {181, 100, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        FL_CHECK(fabs(fl_odpp_missing_s(row[i].length_s, row[i].period_s) - row[i].missing_s) < 1e-9,
                 "%g s with a period of %g s: %g s more, expected %g", row[i].length_s, row[i].period_s,
                 fl_odpp_missing_s(row[i].length_s, row[i].period_s), row[i].missing_s);
}

/* The board's default limit; else the most that it takes; else what it is made for; else none. */
static void test_limit(void) {
    static const struct {
        double standard_w, max_w, tdp_w, want_w;
    } rows[] = {{350, 380, 320, 350}, {0, 380, 320, 380}, {0, 0, 320, 320},
                {0, 0, 0, 0},         {350, 0, 0, 350},   {0, 380, 0, 380}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const fl_gpu_facts f = {
            .power_default_w = rows[i].standard_w, .power_max_w = rows[i].max_w, .tdp_w = rows[i].tdp_w};
        FL_CHECK(fl_readings_limit_w(&f) == rows[i].want_w, "row %zu: %g W, expected %g", i, fl_readings_limit_w(&f),
                 rows[i].want_w);
    }
}

/* The last period alone counts, and 30 W of it belong to no work. */
static void test_measure(void) {
    trace.count = 0;
    for (int i = 0; i < 100; i++)
        add(0.1 * i, i < 80 ? 100 : 250, i < 80 ? 10 : 80, i < 80 ? 5 : 40);
    const fl_odpp_run run = fl_odpp_measure(&trace, 945, 2, 30), longer = fl_odpp_measure(&trace, 945, 4, 30);
    FL_CHECK(run.mhz == 945 && run.period_s == 2 && fabs(run.power_w - 220) < 1e-9 && fabs(run.gpu_pct - 80) < 1e-9 &&
                 fabs(run.mem_pct - 40) < 1e-9,
             "%g W, U %g, V %g", run.power_w, run.gpu_pct, run.mem_pct);
    FL_CHECK(fabs(longer.power_w - 145) < 1e-9, "of a longer period %g W", longer.power_w);
    FL_CHECK(fabs(fl_odpp_quantity(&run, FL_ODPP_ENERGY) - 440) < 1e-9 && fl_odpp_quantity(&run, FL_ODPP_TIME) == 2,
             "energy %g J, time %g s", fl_odpp_quantity(&run, FL_ODPP_ENERGY), fl_odpp_quantity(&run, FL_ODPP_TIME));
}

static void test_lines(void) {
    static const fl_odpp_run run[] = {
        {450, 4, 10, 0, 0}, {945, 2, 30, 0, 0}, {1425, 1, 100, 0, 0}, {1920, 1, 200, 0, 0}};
    static const struct {
        double mhz, energy, time;
    } row[] = {{450, 40, 4},     {697.5, 50, 3}, {945, 60, 2},     {1185, 80, 1.5}, {1425, 100, 1},
               {1672.5, 150, 1}, {1920, 200, 1}, {1969.5, 210, 1}, {400.5, 38, 4.2}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const double energy = fl_odpp_line(run, 4, FL_ODPP_ENERGY, row[i].mhz),
                     time = fl_odpp_line(run, 4, FL_ODPP_TIME, row[i].mhz);
        FL_CHECK(fabs(energy - row[i].energy) < 1e-9 && fabs(time - row[i].time) < 1e-9, "%g MHz: %g J, %g s",
                 row[i].mhz, energy, time);
    }
}

/* ---- the course ---------------------------------------------------------------------------------------------------
 */

static wave_node *open_odpp(double period_s, double sm_share, const fl_table *weights) {
    const fl_setting setting = {.name = "weights", .table = weights};
    wave_node *n = wave_open(&fl_policy_odpp, 1, &setting, weights ? 1 : 0);
    n->gpu[0].period_s = period_s;
    n->gpu[0].sm_share = sm_share;
    return n;
}

/* The SM clocks set, with their times, until the choice. */
static void test_course(void) {
    static const double mhz[] = {450, 945, 1425, 1920, 690, 1185, 1680}, at_s[] = {16, 42, 68, 94, 120, 146, 172};
    wave_node *n = open_odpp(1, 0, NULL);
    size_t sets = 0;
    while (wave_now_s(n) < 197.85) {
        wave_step(n);
        const fl_decided *d = &n->decision->gpu[0][FL_SET_SM_MHZ];
        if (!d->set)
            continue;
        FL_CHECK(sets < 7 && d->value == mhz[sets] && fabs(wave_now_s(n) - at_s[sets]) < 0.05,
                 "set %zu: %g MHz at %g s", sets, d->value, wave_now_s(n));
        sets++;
    }
    FL_CHECK(sets == 7 && wave_probe(n, 0, "state") == 1, "%zu clocks", sets);
    wave_until(n, 198.1);
    FL_CHECK(wave_probe(n, 0, "state") == 2 && fabs(wave_probe(n, 0, "optimisation_s") - 182) < 0.05 &&
                 fl_instance_counts_of(n->in).faults == 0 && fl_instance_counts_of(n->in).clamped == 0,
             "state %g after %g s", wave_probe(n, 0, "state"), wave_probe(n, 0, "optimisation_s"));
    wave_close(n);
}

/* A program of 12 s an iteration: 25 s hold no three periods. The bins of a trace of 251 samples are 25.1 s / k. */
static void test_long_period(void) {
    wave_node *n = open_odpp(12, 0, NULL);
    wave_until(n, 42.05);
    FL_CHECK(wave_probe(n, 0, "runs") == 0 && fabs(wave_probe(n, 0, "period_s") - 12.55) < 0.01, "%g clocks, %g s",
             wave_probe(n, 0, "runs"), wave_probe(n, 0, "period_s"));
    FL_CHECK(wave_wait(n, "runs", 1, 60) && fabs(wave_now_s(n) - 54.6) < 0.05, "longer by half of it: until %g s",
             wave_now_s(n));
    wave_close(n);
}

/* The bound is one of absolute seconds: it passes all clocks of a program of short periods and none of one of long
 * periods; where some pass, the lowest clock is admitted with them. */
static void test_choice(void) {
    static const struct {
        const char *name;
        double period_s, sm_share, dynamic_w, low_mhz, high_mhz;
    } row[] = {
        {"short periods: the least E T^2 of all", 0.5, 0.6, 240, 1200, 1650},
        {"long periods: the top", 4, 0, 240, 1920, 1920},
        {"some pass, and the lowest is the best", 0.8, 0.5, 3000, 450, 450},
        {"some pass, the lowest is worse than they", 0.8, 0.9, 100, 1500, 1920},
        /* 1.0458 s at 1425 MHz, 1.004 s at 1920 MHz: on the line between them 1440 MHz is the first below 1.045 s */
        {"the bound is 0.045 s", 0.996, 0.115, 100, 1440, 1440},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        wave_node *n = open_odpp(row[i].period_s, row[i].sm_share, NULL);
        n->gpu[0].dynamic_w = row[i].dynamic_w;
        FL_CHECK(wave_wait(n, "state", 2, 400), "%s: no choice", row[i].name);
        const double set = wave_probe(n, 0, "set_mhz");
        FL_CHECK(set >= row[i].low_mhz && set <= row[i].high_mhz, "%s: %g MHz, %g s predicted", row[i].name, set,
                 wave_probe(n, 0, "time_s"));
        wave_close(n);
    }
}

/* The idle power is the board's: 30 W, or what is said of it. */
static void test_idle_power(void) {
    static const char *const idle_w[] = {NULL, "1.65"};
    double energy[2];
    for (int i = 0; i < 2; i++) {
        const fl_setting setting = {.name = "idle_w", .text = idle_w[i]};
        wave_node *n = wave_open(&fl_policy_odpp, 1, &setting, idle_w[i] ? 1 : 0);
        FL_CHECK(wave_wait(n, "state", 2, 400) && wave_probe(n, 0, "set_mhz") == 450, "no choice of 450 MHz");
        energy[i] = wave_probe(n, 0, "energy_j") / wave_probe(n, 0, "time_s");
        wave_close(n);
    }
    FL_CHECK(fabs(energy[1] - energy[0] - 28.35) < 1e-6, "%g W and %g W above the idle power", energy[0], energy[1]);
}

/* With networks: what the policy predicts is what the same steps give here, from the runs that it measured. */
static double weights_cell[FL_MLP_SIZE * FL_ODPP_QUANTITIES];

/* Of the waves below, at the seven clocks: the traces that the policy sees. */
static void measured(fl_odpp_run *run) {
    static const double mhz[] = {450, 945, 1425, 1920, 690, 1185, 1680};
    wave_node *n = open_odpp(0.5, 0.6, NULL);
    trace.count = 0;
    while (wave_now_s(n) < 197.95) {
        wave_step(n);
        const int i = (int)ceil((wave_now_s(n) - 16) / 26 - 1e-6) - 1;
        const double since_s = wave_now_s(n) - 16 - 26 * i;
        if (i < 0 || since_s < 1 - 1e-6)
            continue;
        fl_readings_add(&trace, &n->sample[0], n->s.time_ns);
        if (since_s < 26 - 1e-6)
            continue;
        run[i] = fl_odpp_measure(&trace, mhz[i], fl_odpp_period_s(&work, &trace, 350), 30);
        trace.count = 0;
    }
    wave_close(n);
}

static double expected(const fl_odpp_run *run, int quantity, double mhz) {
    static fl_mlp net;
    static fl_mlp_adam adam;
    double x[3 * FL_MLP_INPUTS], y[3];
    for (int i = 0; i < FL_MLP_SIZE; i++)
        net.value[i] = weights_cell[i * FL_ODPP_QUANTITIES + quantity];
    memset(&adam, 0, sizeof adam);
    for (int i = 0; i < 3; i++) {
        const fl_odpp_run *r = &run[4 + i];
        const double in[] = {fl_odpp_line(run, 4, quantity, r->mhz), r->mhz / 1920, run[3].power_w, run[3].gpu_pct,
                             run[3].mem_pct}; /* those of the top clock */
        memcpy(&x[i * FL_MLP_INPUTS], in, sizeof in);
        y[i] = quantity == FL_ODPP_ENERGY ? r->power_w * r->period_s : r->period_s;
    }
    for (int epoch = 0; epoch < 20; epoch++)
        fl_mlp_train(&net, &adam, x, y, 3);
    const double in[] = {fl_odpp_line(run, 4, quantity, mhz), mhz / 1920, run[6].power_w, run[6].gpu_pct,
                         run[6].mem_pct}; /* those of the last run */
    return fl_mlp_predict(&net, in);
}

static void test_networks(void) {
    static fl_mlp net;
    fl_odpp_run run[7];
    for (int quantity = 0; quantity < FL_ODPP_QUANTITIES; quantity++) {
        fl_random r = fl_random_seed(8, (uint64_t)quantity);
        fl_mlp_draw(&net, &r);
        const double mean[] = {quantity ? 0.7 : 50, 0.6, 50, 60, 25},
                     variance[] = {quantity ? 0.05 : 900, 0.06, 2000, 9, 9};
        memcpy(&net.value[FL_MLP_TRAINED], mean, sizeof mean);
        memcpy(&net.value[FL_MLP_TRAINED + FL_MLP_INPUTS], variance, sizeof variance);
        for (int i = 0; i < FL_MLP_SIZE; i++)
            weights_cell[i * FL_ODPP_QUANTITIES + quantity] = net.value[i];
    }
    const fl_table weights = {.cell = weights_cell, .row_count = FL_MLP_SIZE, .column_count = FL_ODPP_QUANTITIES};
    measured(run);
    const fl_setting setting[] = {{"weights", NULL, &weights}, {"con_perf", "1.4", NULL}}; /* some pass, not all */
    wave_node *n = wave_open(&fl_policy_odpp, 1, setting, 2);
    n->gpu[0].period_s = 0.5;
    n->gpu[0].sm_share = 0.6;
    FL_CHECK(wave_wait(n, "state", 2, 400), "no choice");
    double least = INFINITY, chosen = NAN;
    int passed = 0;
    for (int i = 0; i < 99; i++) {
        const double mhz = 450 + 15 * i, time = expected(run, FL_ODPP_TIME, mhz),
                     cost = expected(run, FL_ODPP_ENERGY, mhz) * time * time;
        passed += time - 1 <= 1.4;
        if ((i == 0 || time - 1 <= 1.4) && cost < least) {
            least = cost;
            chosen = mhz;
        }
    }
    FL_CHECK(passed > 0 && passed < 99, "%d clocks pass", passed);
    FL_CHECK(wave_probe(n, 0, "set_mhz") == chosen, "%g MHz, expected %g", wave_probe(n, 0, "set_mhz"), chosen);
    FL_CHECK(fabs(wave_probe(n, 0, "time_s") - expected(run, FL_ODPP_TIME, chosen)) < 1e-9 &&
                 fabs(wave_probe(n, 0, "energy_j") - expected(run, FL_ODPP_ENERGY, chosen)) < 1e-9,
             "predicted %g s, %g J, expected %g s, %g J", wave_probe(n, 0, "time_s"), wave_probe(n, 0, "energy_j"),
             expected(run, FL_ODPP_TIME, chosen), expected(run, FL_ODPP_ENERGY, chosen));
    wave_close(n);
}

static void test_watch(void) {
    /* A second to settle, windows of 1.004 + 1.5 s, in steps of 0.1 s; pauses of 4, 8, 16, 32 and 32 periods from the
     * third on. */
    static const double ends_s[] = {3.6, 6.2, 8.8, 15.5, 26.2, 44.9, 79.7, 114.5};
    wave_node *n = open_odpp(1, 0, NULL);
    FL_CHECK(wave_wait(n, "state", 2, 400), "no choice");
    const double from = wave_now_s(n);
    for (int i = 0; i < 8; i++)
        FL_CHECK(wave_wait(n, "checks", i + 1, 200) && fabs(wave_now_s(n) - from - ends_s[i]) < 0.05,
                 "check %d after %g s, expected %g", i + 1, wave_now_s(n) - from, ends_s[i]);
    /* the last pause goes on; then less power than before, by more or less than the threshold */
    n->gpu[0].idle_w *= 0.93;
    FL_CHECK(wave_wait(n, "checks", 9, 60) && wave_probe(n, 0, "state") >= 2, "a small change starts a search");
    n->gpu[0].idle_w *= 0.8;
    FL_CHECK(wave_wait(n, "state", 1, 60) && wave_probe(n, 0, "set_mhz") == 450 && wave_probe(n, 0, "runs") == 0,
             "no new search: state %g", wave_probe(n, 0, "state"));
    wave_close(n);
}

/* Eight windows of 60 W, then one of less: the search begins anew where the range is more than 15 % of the mean of all
 * nine, so below (540 - 480 x 0.15) / 9.15 = 51.15 W. */
static void test_threshold(void) {
    static const struct {
        double share;
        bool anew;
    } rows[] = {{0.1, false}, {0.145, false}, {0.155, true}, {0.2, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wave_node *n = open_odpp(1, 0, NULL);
        n->gpu[0].dynamic_w = 0;
        FL_CHECK(wave_wait(n, "state", 2, 400) && wave_wait(n, "checks", 8, 400), "no eight windows");
        n->gpu[0].idle_w = (540 - 480 * rows[i].share) / (9 + rows[i].share);
        if (rows[i].anew)
            FL_CHECK(wave_wait(n, "state", 1, 60), "a range of %g of the mean starts no search", rows[i].share);
        else
            FL_CHECK(wave_wait(n, "checks", 9, 60) && wave_probe(n, 0, "state") >= 2,
                     "a range of %g of the mean starts a search", rows[i].share);
        wave_close(n);
    }
}

/* The power is read as a mean of the last second. Right after the choice it is still that of the run before: a window
 * that began there would differ from all others, and the search would never end. */
static void test_power_mean(void) {
    wave_node *n = open_odpp(0.8, 0.5, NULL);
    n->gpu[0].dynamic_w = 3000;
    n->gpu[0].mean_of = 10;
    FL_CHECK(wave_wait(n, "state", 2, 400) && wave_probe(n, 0, "set_mhz") == 450, "no choice of 450 MHz");
    FL_CHECK(!wave_wait(n, "state", 1, 200) && wave_probe(n, 0, "checks") > 5, "the search begins anew at %g s",
             wave_now_s(n));
    wave_close(n);
    n = open_odpp(0.8, 0.5, NULL); /* no readings for a while: the rest of the second is still to be waited for */
    n->gpu[0].dynamic_w = 3000;
    n->gpu[0].mean_of = 10;
    FL_CHECK(wave_wait(n, "state", 2, 400), "no choice");
    n->gpu[0].lost = true;
    wave_until(n, wave_now_s(n) + 0.2);
    n->gpu[0].lost = false;
    FL_CHECK(!wave_wait(n, "state", 1, 100) && wave_probe(n, 0, "checks") > 5, "after a gap it begins anew at %g s",
             wave_now_s(n));
    wave_close(n);
}

static void test_lost(void) {
    wave_node *n = open_odpp(1, 0, NULL);
    wave_until(n, 50);
    n->gpu[0].lost = true;
    wave_until(n, 50.8);
    FL_CHECK(n->gpu[0].sm == 945 && wave_probe(n, 0, "held") == 1, "after 0.8 s: %g MHz", n->gpu[0].sm);
    wave_until(n, 52);
    FL_CHECK(n->gpu[0].sm == FL_DEFAULT, "after 2 s: %g MHz", n->gpu[0].sm);
    n->gpu[0].lost = false;
    FL_CHECK(wave_wait(n, "state", 2, 300) && wave_now_s(n) > 52 + 16 + 182 - 0.5,
             "no choice after the readings are back");
    const double chosen = n->gpu[0].sm;
    n->gpu[0].lost = true;
    wave_until(n, wave_now_s(n) + 30);
    FL_CHECK(n->gpu[0].sm == chosen && wave_probe(n, 0, "state") == 2, "what was chosen goes: %g MHz", n->gpu[0].sm);
    wave_close(n);
}

static void test_idle(void) {
    wave_node *n = open_odpp(1, 0, NULL);
    n->gpu[0].idle = true;
    wave_until(n, 60);
    FL_CHECK(n->gpu[0].sm == FL_DEFAULT && wave_probe(n, 0, "state") == 0, "a search on an idle GPU");
    n->gpu[0].idle = false;
    FL_CHECK(wave_wait(n, "state", 1, 20) && fabs(wave_now_s(n) - 76) < 0.15, "starts at %g s", wave_now_s(n));
    wave_close(n);
}

static void test_refusals(void) {
    static const double short_cell[2] = {1, 1};
    static const fl_table short_table = {.cell = short_cell, .row_count = 1, .column_count = 2};
    static const struct {
        fl_setting setting;
        const char *expected;
    } row[] = {
        {{"weights", NULL, &short_table}, "foldline fit policy odpp makes them"},
        {{"probe_mhz", "450", NULL}, "2 to 8 clocks"},
        {{"probe_mhz", "450/450", NULL}, "must rise"},
        {{"train_mhz", "", NULL}, "train_mhz 1 to 8"},
        {{"step_mhz", "0.01", NULL}, "more than 511 clocks"},
    };
    static const int32_t sm[] = {450, 900};
    static const fl_gpu_facts gpu = {.name = "gpu", .sm = {sm, 2}};
    const fl_facts facts = {.gpu_count = 1, .gpu = &gpu};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const fl_layer layer = {"test", &row[i].setting, 1};
        const fl_instance_options o = {.policy = &fl_policy_odpp, .facts = &facts, .layer = &layer, .layer_count = 1};
        fl_instance *in;
        fl_diag d = {0};
        FL_CHECK(fl_instance_open(&in, &o, &d) == FL_BAD_INPUT && strstr(d.message, row[i].expected), "%s: %s",
                 row[i].setting.name, d.message);
    }
}

FL_SUITE("odpp", {"what is transformed", test_composite}, {"spectrum of the whole trace", test_spectrum},
         {"the limit", test_limit}, {"longer traces", test_longer}, {"the last period", test_measure},
         {"straight lines", test_lines}, {"course", test_course}, {"a long period", test_long_period},
         {"choice", test_choice}, {"networks", test_networks}, {"idle power", test_idle_power}, {"watch", test_watch},
         {"what starts a search", test_threshold}, {"power as a mean", test_power_mean}, {"a GPU lost", test_lost},
         {"an idle GPU", test_idle}, {"refusals", test_refusals})
