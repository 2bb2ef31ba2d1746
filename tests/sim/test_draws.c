/* The distribution replay: fixed clocks give the published energies, round robin its closed form, and the sample's run
 * times are what its head says. */
#include "policies/policy.h"
#include "policies/registry/registry.h"
#include "sim/draws/draws.h"
#include "sim/instance/instance.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/suite.h"

#include <math.h>

enum { K = 9 };
static const int32_t ladder[K] = {800, 900, 1000, 1100, 1200, 1300, 1400, 1500, 1600};
#define SAMPLE FL_ROOT "/traces/samples/energyucb-draws.csv"

static const fl_policy *policy(const char *name) {
    for (size_t i = 0; i < fl_policies_count; i++)
        if (!strcmp(fl_policies[i]->name, name))
            return fl_policies[i];
    exit(1);
}

static fl_draws_result replay(const fl_draws *draws, const char *name, double mhz, uint64_t seed) {
    const fl_gpu_facts gpu = {.name = "six", .sm = {ladder, K}};
    const fl_facts facts = {.seed = seed, .gpu_count = 1, .gpu = &gpu};
    char text[32];
    snprintf(text, sizeof text, "%g", mhz);
    const fl_setting set = {.name = "sm_mhz", .text = text};
    const fl_layer layer = {.origin = "test", .setting = &set, .count = mhz > 0};
    const fl_draws_run run = {
        .draws = draws, .facts = &facts, .policy = policy(name), .layer = &layer, .layer_count = 1};
    fl_draws_result r = {0};
    fl_diag d = {0};
    FL_CHECK(fl_draws_replay(&run, &r, &d) == FL_OK, "%s", d.message);
    return r;
}

static void test_static_rows(void) {
    fl_sweep sweep;
    fl_diag d = {0};
    const fl_draws_options o = {.step_ms = 10, .ratio = 1, .ratio_exponent = 1};
    size_t cells = 0;
    FL_CHECK(fl_sweep_read(SAMPLE, &sweep, NULL, &d) == FL_OK, "%s", d.message);
    for (uint32_t name = 0; name < sweep.name_count; name++) {
        fl_draws draws;
        if (!*sweep.names[name])
            continue;
        FL_CHECK(fl_draws_make(&draws, &sweep, name, &o, &d) == FL_OK && draws.clock_count == K, "%s", d.message);
        double over = 0, under = 0;
        for (size_t i = 0; i < K; i++) {
            const fl_draw_clock *c = &draws.clock[i];
            fl_draws_result r = replay(&draws, "fixed", c->mhz, 1);
            FL_CHECK(fabs(r.energy_j / c->total_j - 1) < 1e-9 && fabs(r.time_s / c->time_s - 1) < 1e-9,
                     "%s at %g MHz: %.9g J of %.9g, %.9g s of %.9g", sweep.names[name], c->mhz, r.energy_j, c->total_j,
                     r.time_s, c->time_s);
            fl_draws_result_free(&r);
            over += c->total_j / c->time_s;
            under += 1 / c->time_s;
            cells++;
        }
        fl_draws_result r = replay(&draws, "round-robin", 0, 1);
        FL_CHECK(fabs(r.energy_j / (over / under) - 1) < 1e-3, "%s: round robin %.6g J, closed form %.6g",
                 sweep.names[name], r.energy_j, over / under);
        fl_draws_result_free(&r);
        fl_draws_free(&draws);
    }
    FL_CHECK(cells == 63, "%zu cells of Table 1", cells);
    fl_sweep_free(&sweep);
}

static void test_spread(void) { /* mean and deviation of what is drawn; the same seed gives the same */
    fl_draw_clock clock[2] = {
        {.mhz = 800, .time_s = 200, .energy_j = 10, .energy_sd_j = 3, .ratio = 2, .total_j = 2e5},
        {.mhz = 1600, .time_s = 100, .energy_j = 18, .energy_sd_j = 1, .ratio = 1, .total_j = 1.8e5}};
    const fl_draws draws = {.clock = clock, .clock_count = 2, .step_ns = 10000000};
    double sum = 0, sq = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        fl_draws_result r = replay(&draws, "fixed", 800, seed);
        sum += r.energy_j;
        sq += r.energy_j * r.energy_j;
        FL_CHECK(r.steps == 20000 && r.switches == 1 && fabs(r.reward_regret - 20000 * (20 - 18)) < 1e-6 &&
                     r.mark_count == 20 && fabs(r.regret_mark[0] - 2000) < 1e-6,
                 "%llu steps, regret %g", (unsigned long long)r.steps, r.reward_regret);
        fl_draws_result_free(&r);
    }
    const double mean = sum / 200, sd = sqrt(sq / 200 - mean * mean), expected = 3 * sqrt(20000);
    FL_CHECK(fabs(mean - 2e5) < 4 * expected / sqrt(200) + 100, "mean %g", mean); /* redrawn below 0: +0.02 % */
    FL_CHECK(fabs(sd / expected - 1) < 0.2, "deviation %g, expected %g", sd, expected);
    fl_draws_result a = replay(&draws, "random", 0, 9), b = replay(&draws, "random", 0, 9);
    FL_CHECK(a.energy_j == b.energy_j && a.time_s == b.time_s && a.steps == b.steps, "not the same twice");
    FL_CHECK(fabs(a.step_count[0] / 200 + a.step_count[1] / 100 - 100) < 1e-6, "work %g",
             a.step_count[0] / 200 + a.step_count[1] / 100);
    fl_draws_result_free(&a);
    fl_draws_result_free(&b);
}

typedef struct shown { /* to the policy at the last step */
    double energy_j[2], compute_ns[2], power_w[2];
    int64_t time_ns;
} shown;

static fl_status keep_shown(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    (void)decision, (void)d;
    shown *s = user;
    s->time_ns = sample->time_ns;
    for (uint32_t i = 0; i < sample->gpu_count; i++) {
        s->energy_j[i] = sample->gpu[i].value[FL_GPU_ENERGY_J];
        s->compute_ns[i] = sample->gpu[i].value[FL_GPU_COMPUTE_NS];
        s->power_w[i] = fl_gpu_known(&sample->gpu[i], FL_GPU_POWER_W) ? sample->gpu[i].value[FL_GPU_POWER_W] : -1;
    }
    return FL_OK;
}

/* The energy of a step is the node's: each GPU counts its share. Engines count on each GPU what they did. */
static void test_gpus_share(void) {
    fl_draw_clock clock[K];
    for (int i = 0; i < K; i++)
        clock[i] = (fl_draw_clock){.mhz = ladder[i], .time_s = 0.1, .energy_j = 10, .ratio = 3, .total_j = 100};
    const fl_draws draws = {.clock = clock, .clock_count = K, .step_ns = 10000000};
    const fl_gpu_facts gpu[2] = {{.name = "a", .sm = {ladder, K}}, {.name = "b", .sm = {ladder, K}}};
    for (uint32_t gpus = 1; gpus <= 2; gpus++) {
        const fl_facts facts = {.seed = 1, .gpu_count = gpus, .gpu = gpu};
        shown last = {0};
        const fl_draws_run run = {
            .draws = &draws, .facts = &facts, .policy = policy("round-robin"), .on_step = keep_shown, .user = &last};
        fl_draws_result r = {0};
        fl_diag d = {0};
        FL_CHECK(fl_draws_replay(&run, &r, &d) == FL_OK && r.steps == 10, "%s", d.message);
        FL_CHECK(last.time_ns == 90000000, "last asked at %lld ns", (long long)last.time_ns);
        for (uint32_t i = 0; i < gpus; i++)
            FL_CHECK(fabs(last.energy_j[i] - 90.0 / gpus) < 1e-9 && fabs(last.compute_ns[i] - 0.75 * 9e7) < 1e-3 &&
                         fabs(last.power_w[i] - 1000.0 / gpus) < 1e-9,
                     "GPU %u of %u: %g J, %g ns, %g W", i, gpus, last.energy_j[i], last.compute_ns[i], last.power_w[i]);
        fl_draws_result_free(&r);
    }
}

/* The work may end while a policy still explores, and a run may end before its work. */
static void test_ends(void) {
    fl_draw_clock clock[K];
    for (int i = 0; i < K; i++)
        clock[i] = (fl_draw_clock){.mhz = ladder[i], .time_s = 0.055, .energy_j = 10, .ratio = 1, .total_j = 55};
    fl_draws draws = {.clock = clock, .clock_count = K, .step_ns = 10000000};
    fl_draws_result r = replay(&draws, "energyucb", 0, 1); /* would explore for 36 steps */
    FL_CHECK(r.steps == 6 && fabs(r.time_s - 0.055) < 1e-12 && fabs(r.energy_j - 55) < 1e-9 && r.progress == 1,
             "%llu steps, %g s, %g J", (unsigned long long)r.steps, r.time_s, r.energy_j);
    fl_draws_result_free(&r);
    for (draws.steps_max = 5; draws.steps_max <= 7; draws.steps_max++) {
        r = replay(&draws, "energyucb", 0, 1);
        FL_CHECK(draws.steps_max > 5 ? r.steps == 6 && r.progress == 1
                                     : r.steps == 5 && fabs(r.progress - 5 / 5.5) < 1e-12,
                 "%llu steps at most: %llu, progress %g", (unsigned long long)draws.steps_max,
                 (unsigned long long)r.steps, r.progress);
        fl_draws_result_free(&r);
    }
    FL_CHECK(fl_draws_seed(&draws, 7, 0) == 7 && fl_draws_seed(&draws, 7, 9) == 16, "seeds of their own");
    draws.one_seed = true;
    FL_CHECK(fl_draws_seed(&draws, 7, 0) == 7 && fl_draws_seed(&draws, 7, 9) == 7, "one seed");
}

static void test_rows_of_their_own(void) { /* what a sweep's rows say goes before the options */
    fl_sweep_row row[] = {
        {.sm_mhz = 800, .time_s = 2, .energy_j = 400, .energy_cv = 0.5, .ratio = 3, .ratio_cv = NAN},
        {.sm_mhz = 1600, .time_s = 1, .energy_j = 300, .energy_cv = NAN, .ratio = NAN, .ratio_cv = 0}};
    char *names[] = {(char *)"w"};
    const fl_sweep sweep = {.names = names, .name_count = 1, .rows = row, .row_count = 2};
    const fl_draws_options o = {.step_ms = 10,
                                .steps_max = 100000,
                                .one_seed = true,
                                .energy_cv = 0.1,
                                .ratio = 1.5,
                                .ratio_exponent = 2,
                                .ratio_cv = 0.2};
    fl_draws draws;
    fl_diag d = {0};
    FL_CHECK(fl_draws_make(&draws, &sweep, 0, &o, &d) == FL_OK, "%s", d.message);
    const fl_draw_clock *c = draws.clock;
    FL_CHECK(draws.steps_max == 100000 && draws.one_seed, "%llu steps at most", (unsigned long long)draws.steps_max);
    FL_CHECK(c[0].energy_j == 2 && c[0].energy_sd_j == 1 && c[0].ratio == 3 && fabs(c[0].ratio_sd - 0.6) < 1e-12,
             "first");
    FL_CHECK(fabs(c[1].energy_j - 3) < 1e-12 && fabs(c[1].energy_sd_j - 0.3) < 1e-12 && c[1].ratio == 1.5 &&
                 c[1].ratio_sd == 0,
             "second");
    fl_draws_free(&draws);
    row[0].ratio = NAN;
    FL_CHECK(fl_draws_make(&draws, &sweep, 0, &o, &d) == FL_OK && fabs(draws.clock[0].ratio - 1.5 * 4) < 1e-12,
             "ratio grows with the square of the time");
    fl_draws_free(&draws);
    /* the top clock costs 1.5 x 3 J; 1200 MHz, the best, would cost a share 4 x 0.05 less of its own, 800 MHz as much
     */
    fl_draws_options best = o;
    best.best_mhz = 1200;
    best.slope = 0.05;
    FL_CHECK(fl_draws_make(&draws, &sweep, 0, &best, &d) == FL_OK && draws.clock[1].ratio == 1.5 &&
                 fabs(draws.clock[0].ratio - 1.5 * 3 / 2) < 1e-12,
             "equal costs at equal distances from the best clock: %g", draws.clock[0].ratio);
    fl_draws_free(&draws);
    best.best_mhz = 800;
    FL_CHECK(fl_draws_make(&draws, &sweep, 0, &best, &d) == FL_OK &&
                 fabs(draws.clock[0].ratio - 1.5 * 3 / 2 / 1.4) < 1e-12,
             "800 MHz above the best clock a step costs 1.4 times as much: %g", draws.clock[0].ratio);
    fl_draws_free(&draws);
    row[0].sm_mhz = 1600;
    FL_CHECK(fl_draws_make(&draws, &sweep, 0, &o, &d) == FL_BAD_INPUT && strstr(d.message, "two rows"), "%s",
             d.message);
}

/* T(f) = T(1600) ((c 1600/f)^p + 1 - c^p)^(1/p) with the c and p of the head; rounded to 10 ms. */
static void test_assumed_times(void) {
    fl_sweep sweep;
    fl_diag d = {0};
    FL_CHECK(fl_sweep_read(SAMPLE, &sweep, NULL, &d) == FL_OK, "%s", d.message);
    const char *shares = fl_head_get(&sweep.head, "core share c, sharpness p");
    FL_CHECK(shares != NULL, "no core shares in the head");
    for (size_t i = 0; shares && i < sweep.row_count; i++) {
        const fl_sweep_row *r = &sweep.rows[i];
        const char *at = strstr(shares, sweep.names[r->workload]);
        FL_CHECK(at != NULL, "no share of %s", sweep.names[r->workload]);
        if (!at)
            continue;
        char *end;
        const double c = strtod(at + strlen(sweep.names[r->workload]), &end), p = strtod(end, NULL);
        double top = 0;
        for (size_t k = 0; k < sweep.row_count; k++)
            if (sweep.rows[k].workload == r->workload && sweep.rows[k].sm_mhz == 1600)
                top = sweep.rows[k].time_s;
        const double t = top * pow(pow(c * 1600 / r->sm_mhz, p) + 1 - pow(c, p), 1 / p);
        FL_CHECK(fabs(t - r->time_s) < 0.011 + 1e-4 * t, "%s at %g MHz: %g s, the head says %g",
                 sweep.names[r->workload], r->sm_mhz, r->time_s, t);
    }
    fl_sweep_free(&sweep);
}

static const char *faulty_init(void *state, const void *params, const fl_facts *facts) {
    (void)state, (void)params, (void)facts;
    return NULL;
}

/* Asks for no time until the next step, which is a fault, in all steps but the first `right`. */
static uint64_t right;

static void faulty_step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample,
                        fl_command *command) {
    (void)state, (void)params, (void)facts;
    command->delay_ns = sample->step < right ? 10000000 : 0;
}

/* What a policy does wrong is counted, and the run goes on. */
static void test_faults(void) {
    static const fl_policy faulty = {
        FL_POLICY_ABI,       .name = "faulty",   .summary = "", .source = "", .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
        .init = faulty_init, .step = faulty_step};
    fl_draw_clock clock[K];
    for (int i = 0; i < K; i++)
        clock[i] = (fl_draw_clock){.mhz = ladder[i], .time_s = 0.06, .energy_j = 10, .ratio = 1, .total_j = 60};
    const fl_draws draws = {.clock = clock, .clock_count = K, .step_ns = 10000000};
    const fl_gpu_facts gpu = {.name = "six", .sm = {ladder, K}};
    const fl_facts facts = {.seed = 1, .gpu_count = 1, .gpu = &gpu};
    for (right = 1; right <= 6; right++) {
        const fl_draws_run run = {.draws = &draws, .facts = &facts, .policy = &faulty};
        fl_draws_result r = {0};
        fl_diag d = {0};
        FL_CHECK(fl_draws_replay(&run, &r, &d) == FL_OK, "%s", d.message);
        FL_CHECK(r.steps == 6 && r.faults == 6 - right, "%llu right of %llu steps: %llu faults",
                 (unsigned long long)right, (unsigned long long)r.steps, (unsigned long long)r.faults);
        fl_draws_result_free(&r);
    }
}

FL_SUITE("draws", {"faults", test_faults}, {"static rows of Table 1 and RRFreq", test_static_rows},
         {"spread and regret", test_spread}, {"where a run ends", test_ends}, {"GPUs share", test_gpus_share},
         {"rows of their own", test_rows_of_their_own}, {"assumed run times", test_assumed_times})
