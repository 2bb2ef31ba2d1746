/* DynaCo against its listings line by line on samples made by hand; what it does without readings; BAPM and the ideal
 * static scheme. */
#include "policies/random.h"
#include "tests/support/sim_fixture.h"
#include "tests/support/golden.h"

extern const fl_policy fl_policy_onelevelth, fl_policy_multilevelth, fl_policy_bapm, fl_policy_idealstatic;

/* ---- an APU by hand -----------------------------------------------------------------------------------------------
 * Ladders of the A10-5800K; peak 100 GB/s, so that GB/s are percent. */

enum { GPUS_MAX = 2 };
enum { UPC, GRADIENT, LOW_PSTATE, CPU_PSTATE, WALK_LINE, ALU, MEM_UTIL, LINE, HELD, PROBES };

static const int32_t sm[] = {400, 633, 800}, memory[] = {800}, cpu[] = {1400, 1900, 2400, 2900, 3400, 3800},
                     boost[] = {4000, 4200};

typedef struct apu {
    fl_instance *in;
    fl_gpu_facts gpu[GPUS_MAX];
    fl_facts facts;
    fl_gpu_sample sample[GPUS_MAX];
    fl_sample s;
    fl_kernel_record record[16];
    const fl_decision *decision;
} apu;

static void apu_open_with(apu *a, const fl_policy *policy, uint32_t gpus, const char *const *settings,
                          const fl_table *states) {
    fl_setting setting[16];
    fl_layer layer = {.origin = "test", .setting = setting};
    fl_diag diag = {0};
    for (; settings && *settings; settings += 2)
        setting[layer.count++] = (fl_setting){.name = settings[0], .text = settings[1]};
    if (states)
        setting[layer.count++] = (fl_setting){.name = "states", .table = states};
    *a = (apu){0};
    for (uint32_t i = 0; i < gpus; i++)
        a->gpu[i] = (fl_gpu_facts){.name = "gpu",
                                   .sm = {sm, 3},
                                   .mem = {memory, 1},
                                   .default_sm_mhz = 800,
                                   .default_mem_mhz = 800,
                                   .tdp_w = 100,
                                   .peak_bytes_per_s = 1e11};
    a->facts = (fl_facts){.gpu_count = gpus,
                          .gpu = a->gpu,
                          .host = {.cpu = {cpu, 6}, .boost = {boost, 2}, .peak_bytes_per_s = 1e11, .apu = 1}};
    a->s = (fl_sample){.gpu_count = gpus, .gpu = a->sample};
    fl_instance_options o = {.policy = policy, .facts = &a->facts, .layer = &layer, .layer_count = 1};
    const fl_status status = fl_instance_open(&a->in, &o, &diag);
    FL_CHECK(status == FL_OK, "open: %s", diag.message);
    if (status)
        exit(1);
}

static void apu_open(apu *a, const fl_policy *policy, const char *const *settings) {
    apu_open_with(a, policy, 1, settings, NULL);
}

static void apu_step(apu *a) {
    fl_diag diag;
    CU_ASSERT_FATAL(fl_instance_step(a->in, &a->s, &a->decision, &diag) == FL_OK);
    FL_CHECK(a->decision->delay_ns > 0, "delay %lld ns", (long long)a->decision->delay_ns);
    a->s.step++;
    a->s.time_ns += a->decision->delay_ns;
}

static void put_gpu(apu *a, uint32_t gpu, int id, double value) {
    a->sample[gpu].valid |= FL_BIT(id);
    a->sample[gpu].fresh |= FL_BIT(id);
    a->sample[gpu].value[id] = value;
}

static void put_host(apu *a, int id, double value) {
    a->s.host.valid |= FL_BIT(id);
    a->s.host.fresh |= FL_BIT(id);
    a->s.host.value[id] = value;
}

/* The period before the next step: shares in percent, uops per cycle, memory traffic in GB/s. */
static void period(apu *a, double alu, double busy, double upc, double cpu_gb_s, double gpu_gb_s) {
    const double s = 0.01;
    put_gpu(a, 0, FL_GPU_ALU_BUSY_PCT, alu);
    put_gpu(a, 0, FL_GPU_GPU_CLOCK_BUSY_PCT, busy);
    put_gpu(a, 0, FL_GPU_DRAM_BYTES, a->sample[0].value[FL_GPU_DRAM_BYTES] + gpu_gb_s * 1e9 * s);
    put_host(a, FL_HOST_CPU_CYCLES, a->s.host.value[FL_HOST_CPU_CYCLES] + 1e7);
    put_host(a, FL_HOST_CPU_UOPS, a->s.host.value[FL_HOST_CPU_UOPS] + 1e7 * upc);
    put_host(a, FL_HOST_CPU_MEM_BYTES, a->s.host.value[FL_HOST_CPU_MEM_BYTES] + cpu_gb_s * 1e9 * s);
}

static double sm_set(const apu *a, uint32_t gpu) {
    const fl_decided *d = &a->decision->gpu[gpu][FL_SET_SM_MHZ];
    return d->set ? d->value : 0;
}

static double cpu_set(const apu *a) {
    const fl_decided *d = &a->decision->host[FL_SET_HOST_CPU_MHZ];
    return d->set ? d->value : 0;
}

static int boost_set(const apu *a) { /* -1: not set */
    const fl_decided *d = &a->decision->host[FL_SET_HOST_CPU_BOOST];
    return d->set ? (int)d->value : -1;
}

static double probe(const apu *a, int row) { return a->decision->probe[row]; } /* of one GPU */

/* ---- Algorithm 1 --------------------------------------------------------------------------------------------------
 */

typedef struct line_case {
    const char *name;
    double alu, busy, upc, cpu_gb_s, gpu_gb_s;
    int line;
    double sm_mhz, cpu_mhz;
    int boost;
} line_case;

static const line_case line_cases[] = {
    {"memory is the bottleneck: lines 4 and 5", 95, 100, 0.9, 5, 71, 4, 633, 2900, 0},
    {"memory, at the threshold", 10, 100, 0.1, 5, 70, 4, 633, 2900, 0},
    {"memory, by the CPU alone", 0, 0, 0.9, 80, 0, 4, 633, 2900, 0},
    {"neither alone meets the threshold: aggregated", 90, 100, 0.9, 40, 40, 4, 633, 2900, 0},
    {"both sensitive: lines 11 and 12", 90, 100, 0.9, 5, 20, 11, 800, 3800, 0},
    {"just below the bus efficiency", 90, 100, 0.9, 5, 69.9, 11, 800, 3800, 0},
    {"both, at both thresholds", 80, 100, 0.4, 5, 20, 11, 800, 3800, 0},
    {"CPU sensitive, GPU medium: lines 15 and 16", 79, 100, 0.9, 5, 20, 15, 633, 3800, 1},
    {"medium at its threshold", 30, 100, 0.4, 5, 20, 15, 633, 3800, 1},
    {"CPU sensitive, GPU low: lines 18 and 19", 29, 100, 0.9, 5, 20, 18, 400, 3800, 1},
    {"idle GPU, busy CPU", 0, 0, 0.9, 5, 0, 18, 400, 3800, 1},
    {"GPU sensitive alone: lines 24 and 26", 90, 100, 0.39, 5, 20, 26, 800, 2900, 0},
    {"divergent: ALUs busy whenever the GPU is", 20, 25, 0.2, 5, 20, 26, 800, 2900, 0},
    {"GPU medium alone: lines 24 and 29", 50, 100, 0.2, 5, 20, 29, 633, 2900, 0},
    {"neither sensitive: lines 24 and 31", 10, 100, 0.2, 5, 20, 31, 400, 2900, 0},
    {"both idle", 0, 0, 0, 0, 0, 31, 400, 2900, 0},
};

static void check_line(const apu *a, const line_case *c, const char *policy) {
    FL_CHECK(probe(a, LINE) == c->line && sm_set(a, 0) == c->sm_mhz && cpu_set(a) == c->cpu_mhz &&
                 boost_set(a) == c->boost && probe(a, HELD) == 0,
             "%s, %s: line %g sets %g MHz, CPU %g MHz, boost %d; expected line %d, %g, %g, %d", policy, c->name,
             probe(a, LINE), sm_set(a, 0), cpu_set(a), boost_set(a), c->line, c->sm_mhz, c->cpu_mhz, c->boost);
}

static void test_lines(void) {
    const fl_policy *const policies[] = {&fl_policy_onelevelth, &fl_policy_multilevelth};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof line_cases / sizeof *line_cases; i++) {
            const line_case *c = &line_cases[i];
            apu a;
            apu_open(&a, policies[k], NULL);
            period(&a, 0, 0, 0, 0, 0);
            apu_step(&a);
            FL_CHECK(probe(&a, HELD) == 1 && !sm_set(&a, 0) && !cpu_set(&a) && boost_set(&a) == -1,
                     "%s: something is set before counters can be differenced", c->name);
            period(&a, c->alu, c->busy, c->upc, c->cpu_gb_s, c->gpu_gb_s);
            apu_step(&a);
            check_line(&a, c, policies[k]->name);
            FL_CHECK(fx_near(probe(&a, UPC), c->upc, 1e-9) &&
                         fabs(probe(&a, MEM_UTIL) - c->cpu_gb_s - c->gpu_gb_s) < 1e-6 &&
                         fabs(probe(&a, ALU) - (c->busy > 0 ? 100 * c->alu / c->busy : 0)) < 1e-9,
                     "%s: metrics %g, %g, %g", c->name, probe(&a, UPC), probe(&a, MEM_UTIL), probe(&a, ALU));
            fl_instance_close(a.in);
        }
}

static void test_one_level(void) {
    apu a; /* however the access rate goes, never below P2 */
    apu_open(&a, &fl_policy_onelevelth, NULL);
    period(&a, 0, 0, 0, 0, 0);
    apu_step(&a);
    for (int i = 0; i < 20; i++) {
        period(&a, 90, 100, 0.2, 1, i);
        apu_step(&a);
        FL_CHECK(cpu_set(&a) == 2900, "step %d sets %g MHz", i, cpu_set(&a));
    }
    fl_instance_close(a.in);
    const char *const settings[] = {"gpu_med_mhz", "400", "low_pstate", "4", "high_pct", "95", NULL};
    apu_open(&a, &fl_policy_onelevelth, settings);
    period(&a, 0, 0, 0, 0, 0);
    apu_step(&a);
    period(&a, 94, 100, 0.2, 1, 1);
    apu_step(&a);
    FL_CHECK(sm_set(&a, 0) == 400 && cpu_set(&a) == 1900, "settings: %g MHz, CPU %g MHz", sm_set(&a, 0), cpu_set(&a));
    fl_instance_close(a.in);
}

/* ---- Algorithm 2 --------------------------------------------------------------------------------------------------
 * gpu_gb_s of each period, the CPU clock that must be set in it and the state that the listing then holds. The state is
 * set before the gradient is taken: a change of the rate shows one period later. */

typedef struct walk_step {
    double gpu_gb_s, cpu_mhz, low_pstate;
} walk_step;

static void run_walk(const char *name, const char *const *settings, const walk_step *w, size_t count, double alu) {
    const bool threshold = settings && !strcmp(settings[0], "mem_threshold_gb_s");
    const double deep_from = threshold ? strtod(settings[1], NULL) : 0;
    apu a;
    apu_open(&a, &fl_policy_multilevelth, settings);
    period(&a, 0, 0, 0, 0, 0);
    apu_step(&a);
    for (size_t i = 0; i < count; i++) {
        period(&a, alu, 100, 0.2, 0, w[i].gpu_gb_s);
        apu_step(&a);
        FL_CHECK(cpu_set(&a) == w[i].cpu_mhz && boost_set(&a) == 0 && probe(&a, LOW_PSTATE) == w[i].low_pstate,
                 "%s, period %zu: CPU %g MHz, then P%g; expected %g, P%g", name, i, cpu_set(&a), probe(&a, LOW_PSTATE),
                 w[i].cpu_mhz, w[i].low_pstate);
        if (!i) {
            FL_CHECK(probe(&a, WALK_LINE) == 0, "%s: walks by line %g without a gradient", name, probe(&a, WALK_LINE));
            continue;
        }
        const bool moves = w[i].low_pstate != w[i - 1].low_pstate;
        const double line = w[i].gpu_gb_s - w[i - 1].gpu_gb_s >= deep_from ? moves ? 36 : 35 : moves ? 40 : 39;
        FL_CHECK(probe(&a, WALK_LINE) == line, "%s, period %zu: line %g of Algorithm 2, expected %g", name, i,
                 probe(&a, WALK_LINE), line);
    }
    fl_instance_close(a.in);
}

static void test_walk(void) {
    static const walk_step rising[] = {{10, 2900, 2}, /* no gradient yet */
                                       {11, 2900, 3}, {11, 2400, 4}, {12, 1900, 5}, {13, 1400, 5},
                                       {14, 1400, 5}, {13, 1400, 4}, {12, 1900, 3}, {11, 2400, 2},
                                       {10, 2900, 2}, {9, 2900, 2},  {9, 2900, 3}};
    static const walk_step printed[] = {
        {10, 2900, 2}, {11, 2900, 3}, {12, 2400, 4}, {13, 1900, 5}, {14, 1400, 6}, /* line 35 lets it pass Pmin */
        {15, 1400, 6}, {14, 1400, 5},                                              /* one period more at Pmin */
        {13, 1400, 4}, {12, 1900, 3}, {11, 2400, 2}, {10, 2900, 1},                /* line 39 lets it go to P1 */
        {9, 3400, 1},  {9, 3400, 2},  {9, 2900, 3}};
    static const walk_step above[] = {{10, 2900, 2}, {11, 2900, 2}, {13, 2900, 3}, {14.9, 2400, 2}};
    static const walk_step below[] = {{10, 2900, 2}, {9, 2900, 3}, {8, 2400, 4}, {5.9, 1900, 3}};
    const char *const as_printed[] = {"listing", "1", NULL}, *const high[] = {"mem_threshold_gb_s", "2", NULL},
                      *const low[] = {"mem_threshold_gb_s", "-2", NULL};
    for (int alu = 10; alu <= 90; alu += 40) { /* whatever the GPU is: the CPU part stands behind all three branches */
        run_walk("as the notes", NULL, rising, sizeof rising / sizeof *rising, alu);
        run_walk("as printed", as_printed, printed, sizeof printed / sizeof *printed, alu);
        run_walk("threshold 2 GB/s", high, above, sizeof above / sizeof *above, alu);
        run_walk("threshold -2 GB/s", low, below, sizeof below / sizeof *below, alu);
    }
}

static void test_walk_pauses(void) {
    apu a;
    apu_open(&a, &fl_policy_multilevelth, NULL);
    period(&a, 0, 0, 0, 0, 0);
    apu_step(&a);
    for (int i = 0; i < 3; i++) {
        period(&a, 10, 100, 0.2, 0, 20 + i);
        apu_step(&a);
    }
    FL_CHECK(probe(&a, LOW_PSTATE) == 4, "P%g after three periods", probe(&a, LOW_PSTATE));
    static const line_case others[] = {{"memory: line 5 is P2, and no walk", 90, 100, 0.2, 0, 80, 4, 633, 2900, 0},
                                       {"CPU sensitive: no walk", 90, 100, 0.9, 0, 30, 11, 800, 3800, 0},
                                       {"CPU sensitive: no walk", 10, 100, 0.9, 0, 20, 18, 400, 3800, 1}};
    for (size_t i = 0; i < 3; i++) {
        const line_case *c = &others[i];
        period(&a, c->alu, c->busy, c->upc, c->cpu_gb_s, c->gpu_gb_s);
        apu_step(&a);
        check_line(&a, c, "multilevelth");
        FL_CHECK(probe(&a, LOW_PSTATE) == 4 && isnan(probe(&a, WALK_LINE)), "%s: P%g, walks by line %g", c->name,
                 probe(&a, LOW_PSTATE), probe(&a, WALK_LINE));
    }
    period(&a, 10, 100, 0.2, 0, 19); /* from 20: the gradient is against the period before, whatever its line was */
    apu_step(&a);
    FL_CHECK(cpu_set(&a) == 1900 && probe(&a, GRADIENT) < 0 && probe(&a, LOW_PSTATE) == 3, "then %g MHz, P%g",
             cpu_set(&a), probe(&a, LOW_PSTATE));
    fl_instance_close(a.in);
}

/* Beside a GPU that is sensitive alone (line 25): the CPU clock of each period, where the rate rises throughout; 0: not
 * set. The first periods have a GPU of medium sensitivity, which walks the state to P4. */
static void test_beside_high(void) {
    static const struct {
        const char *choice;
        double cpu_mhz[4]; /* from the first period of the sensitive GPU on */
        double low_pstate;
    } rows[] = {{"walk", {1900, 1400, 1400, 1400}, 5}, {"p2", {2900, 2900, 2900, 2900}, 4}, {"printed", {0}, 4}};
    for (size_t i = 0; i < 3; i++) {
        const char *const settings[] = {"cpu_beside_high", rows[i].choice, NULL};
        apu a;
        apu_open(&a, &fl_policy_multilevelth, settings);
        for (int k = 0; k < 8; k++) {
            period(&a, k < 4 ? 50 : 90, 100, 0.2, 0, 10 + k);
            apu_step(&a);
            if (k < 4)
                continue;
            FL_CHECK(probe(&a, LINE) == 26 && sm_set(&a, 0) == 800 && cpu_set(&a) == rows[i].cpu_mhz[k - 4] &&
                         boost_set(&a) == (cpu_set(&a) > 0 ? 0 : -1),
                     "%s, period %d: line %g, CPU %g MHz, boost %d", rows[i].choice, k, probe(&a, LINE), cpu_set(&a),
                     boost_set(&a));
        }
        FL_CHECK(probe(&a, LOW_PSTATE) == rows[i].low_pstate, "%s: P%g", rows[i].choice, probe(&a, LOW_PSTATE));
        period(&a, 50, 100, 0.2, 0, 18); /* and from there the walk goes on */
        apu_step(&a);
        FL_CHECK(cpu_set(&a) == (i ? 1900 : 1400), "%s: then %g MHz", rows[i].choice, cpu_set(&a));
        fl_instance_close(a.in);
    }
    apu a;
    apu_open(&a, &fl_policy_multilevelth, NULL); /* the default is to walk */
    for (int k = 0; k < 4; k++) {
        period(&a, 90, 100, 0.2, 0, 10 + k);
        apu_step(&a);
    }
    FL_CHECK(cpu_set(&a) == 2400, "by default: CPU %g MHz", cpu_set(&a));
    fl_instance_close(a.in);
}

/* ---- readings that are not there ----------------------------------------------------------------------------------
 */

static void expect_held(const apu *a, const char *what) {
    FL_CHECK(probe(a, HELD) == 1 && probe(a, LINE) == 0 && !sm_set(a, 0) && !cpu_set(a) && boost_set(a) == -1,
             "%s: held %g, sets %g MHz, CPU %g MHz", what, probe(a, HELD), sm_set(a, 0), cpu_set(a));
}

static void test_unknown(void) {
    static const struct {
        const char *name;
        int gpu, host; /* -1: none */
    } missing[] = {{"ALUBusy", FL_GPU_ALU_BUSY_PCT, -1},   {"GPUClockBusy", FL_GPU_GPU_CLOCK_BUSY_PCT, -1},
                   {"GPU traffic", FL_GPU_DRAM_BYTES, -1}, {"uops", -1, FL_HOST_CPU_UOPS},
                   {"cycles", -1, FL_HOST_CPU_CYCLES},     {"CPU traffic", -1, FL_HOST_CPU_MEM_BYTES}};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        apu a;
        apu_open(&a, &fl_policy_multilevelth, NULL);
        for (int k = 0; k < 8; k++) {
            period(&a, 90, 100, 0.2, 1, 10 + k);
            const bool gone = k == 3, counts = missing[i].gpu == FL_GPU_DRAM_BYTES || missing[i].gpu < 0;
            if (gone && missing[i].gpu >= 0)
                a.sample[0].valid &= ~FL_BIT(missing[i].gpu);
            if (gone && missing[i].host >= 0)
                a.s.host.valid &= ~FL_BIT(missing[i].host);
            apu_step(&a);
            if (k == 0 || gone || (k == 4 && counts)) /* a counter needs two readings in a row */
                expect_held(&a, missing[i].name);
            else
                FL_CHECK(probe(&a, HELD) == 0 && sm_set(&a, 0) == 800, "%s, step %d: held", missing[i].name, k);
        }
        fl_instance_close(a.in);
    }
}

/* ---- counters that do not refresh each step -----------------------------------------------------------------------
 * What does not refresh shows the value of its last refresh. */

typedef struct stale_counter {
    int gpu, host; /* one of them -1 */
    double shown;
} stale_counter;

static void refresh_or_not(apu *a, stale_counter *c, bool refreshes) {
    const int id = c->gpu >= 0 ? c->gpu : c->host;
    double *value = c->gpu >= 0 ? a->sample[0].value : a->s.host.value;
    uint64_t *fresh = c->gpu >= 0 ? &a->sample[0].fresh : &a->s.host.fresh;
    if (refreshes)
        c->shown = value[id];
    value[id] = c->shown;
    *fresh = refreshes ? *fresh | FL_BIT(id) : *fresh & ~FL_BIT(id);
}

enum { COUNTERS = 4 };
static const stale_counter every_counter[COUNTERS] = {
    {FL_GPU_DRAM_BYTES, -1, 0}, {-1, FL_HOST_CPU_MEM_BYTES, 0}, {-1, FL_HOST_CPU_UOPS, 0}, {-1, FL_HOST_CPU_CYCLES, 0}};

/* One period, of which only the counters whose turn it is show anything. */
static void stale_period(apu *a, stale_counter *c, double *total, int k, int every, double upc, double gpu_gb_s) {
    const double grown[COUNTERS] = {gpu_gb_s * 1e7, 1e7, 1e7 * upc, 1e7};
    period(a, 90, 100, upc, 1, gpu_gb_s);
    for (int i = 0; i < COUNTERS; i++) { /* what runs on while nothing shows it */
        total[i] += grown[i];
        (c[i].gpu >= 0 ? a->sample[0].value : a->s.host.value)[c[i].gpu >= 0 ? c[i].gpu : c[i].host] = total[i];
        refresh_or_not(a, &c[i], k % every == i % every);
    }
}

static void test_stale(void) {
    for (int every = 2; every <= 5; every++) { /* no two counters alike, from 4 on none in the same step */
        stale_counter c[COUNTERS];
        double total[COUNTERS] = {0};
        memcpy(c, every_counter, sizeof c);
        apu a;
        apu_open(&a, &fl_policy_onelevelth, NULL);
        period(&a, 0, 0, 0, 0, 0); /* so that all are known */
        apu_step(&a);
        for (int k = 0; k < 40; k++) {
            stale_period(&a, c, total, k, every, 0.2, 36.5);
            apu_step(&a);
            if (k < 2 * every)
                continue;
            FL_CHECK(probe(&a, HELD) == 0 && probe(&a, LINE) == 26 && sm_set(&a, 0) == 800 && cpu_set(&a) == 2900,
                     "refreshed each %d periods, step %d: held %g, line %g", every, k, probe(&a, HELD),
                     probe(&a, LINE));
            FL_CHECK(fx_near(probe(&a, MEM_UTIL), 37.5, 1e-9) && fx_near(probe(&a, UPC), 0.2, 1e-9),
                     "refreshed each %d periods, step %d: %g %%, %g uops/cycle", every, k, probe(&a, MEM_UTIL),
                     probe(&a, UPC));
        }
        fl_instance_close(a.in);
    }
}

/* The gradient is that between two whole rates: neither a step without a refresh nor one with half of them walks. */
static void test_stale_walk(void) {
    static const struct {
        double change_gb_s; /* from one refresh of the GPU to the next */
        double low_pstate;
    } rows[] = {{1, 5}, {-1, 2}};
    for (size_t i = 0; i < 2; i++) {
        stale_counter c[COUNTERS];
        double total[COUNTERS] = {0};
        memcpy(c, every_counter, sizeof c);
        apu a;
        apu_open(&a, &fl_policy_multilevelth, NULL);
        period(&a, 0, 0, 0, 0, 0);
        apu_step(&a);
        for (int k = 0; k < 40; k++) {
            const double before = k ? probe(&a, LOW_PSTATE) : 2;
            stale_period(&a, c, total, k, 4, 0.2, 40 + rows[i].change_gb_s * (k / 4));
            apu_step(&a);
            FL_CHECK(k % 4 == 0 || (isnan(probe(&a, GRADIENT)) && probe(&a, LOW_PSTATE) == before),
                     "step %d: gradient %g, P%g to P%g", k, probe(&a, GRADIENT), before, probe(&a, LOW_PSTATE));
            if (k > 4 && k % 4 == 0)
                FL_CHECK(fabs(probe(&a, GRADIENT) - rows[i].change_gb_s) < 0.3, "step %d: gradient %g GB/s", k,
                         probe(&a, GRADIENT));
        }
        FL_CHECK(probe(&a, LOW_PSTATE) == rows[i].low_pstate, "%g GB/s a time: P%g", rows[i].change_gb_s,
                 probe(&a, LOW_PSTATE));
        fl_instance_close(a.in);
    }
}

static void test_stale_too_long(void) {
    static const char *const settings[] = {"stale_ms", "50", NULL};
    apu a;
    apu_open(&a, &fl_policy_onelevelth, settings);
    period(&a, 0, 0, 0, 0, 0);
    apu_step(&a);
    period(&a, 90, 100, 0.2, 1, 36);
    apu_step(&a);
    for (int k = 1; k <= 8; k++) { /* nothing refreshes any more */
        a.sample[0].fresh = a.s.host.fresh = 0;
        apu_step(&a);
        if (k <= 5)
            FL_CHECK(probe(&a, HELD) == 0 && fx_near(probe(&a, MEM_UTIL), 37, 1e-9), "after %d0 ms: held %g", k,
                     probe(&a, HELD));
        else
            expect_held(&a, "stale too long");
    }
    period(&a, 90, 100, 0.2, 1, 36); /* a refresh, and the rate is known again */
    apu_step(&a);
    FL_CHECK(probe(&a, HELD) == 0 && sm_set(&a, 0) == 800, "back: held %g", probe(&a, HELD));
    fl_instance_close(a.in);
}

static void test_several_gpus(void) {
    apu a;
    apu_open_with(&a, &fl_policy_onelevelth, 2, NULL, NULL);
    enum { NODE = 5 };
    for (int k = 0; k < 4; k++) {
        period(&a, 90, 100, 0.9, 1, 10); /* GPU 0: both sensitive; GPU 1: idle, asks for boost; gone at last */
        put_gpu(&a, 1, FL_GPU_ALU_BUSY_PCT, 0);
        put_gpu(&a, 1, FL_GPU_GPU_CLOCK_BUSY_PCT, 50);
        put_gpu(&a, 1, FL_GPU_DRAM_BYTES, 1e6 * k);
        if (k >= 2)
            a.sample[1] = (fl_gpu_sample){0};
        apu_step(&a);
        if (k == 1)
            FL_CHECK(sm_set(&a, 0) == 800 && sm_set(&a, 1) == 400 && cpu_set(&a) == 3800 && boost_set(&a) == 1,
                     "%g and %g MHz, CPU %g MHz, boost %d", sm_set(&a, 0), sm_set(&a, 1), cpu_set(&a), boost_set(&a));
        if (k == 3)
            FL_CHECK(sm_set(&a, 0) == 800 && !sm_set(&a, 1) && boost_set(&a) == 0 &&
                         a.decision->probe[NODE + 3 * 2] == 0 && a.decision->probe[NODE + 3 * 2 + 1] == 1,
                     "without GPU 1: %g and %g MHz, boost %d", sm_set(&a, 0), sm_set(&a, 1), boost_set(&a));
    }
    fl_instance_close(a.in);
}

/* Two cards with memory of their own, neither in need of the CPU: what one of them asks for at least, P2 by line 5, the
 * other's walk must not pass. */
static void test_memory_beside_walk(void) {
    apu a;
    apu_open_with(&a, &fl_policy_multilevelth, 2, NULL, NULL);
    a.facts.host.apu = 0;
    for (int k = 0; k < 12; k++) {
        const bool bound = k < 8; /* GPU 1 is at its bus, then no more */
        period(&a, 10, 100, 0.2, 0, 10 + k);
        put_gpu(&a, 1, FL_GPU_ALU_BUSY_PCT, 10);
        put_gpu(&a, 1, FL_GPU_GPU_CLOCK_BUSY_PCT, 100);
        put_gpu(&a, 1, FL_GPU_DRAM_BYTES, a.sample[1].value[FL_GPU_DRAM_BYTES] + (bound ? 80 : 20) * 1e7);
        apu_step(&a);
        if (k == 0)
            continue;
        enum { NODE = 5 };
        const double *line = a.decision->probe + NODE + 2 * 2;
        FL_CHECK(line[0] == 31 && line[1] == (bound ? 4 : 31), "step %d: lines %g and %g", k, line[0], line[1]);
        if (bound)
            FL_CHECK(cpu_set(&a) == 2900 && probe(&a, LOW_PSTATE) == 2, "step %d: CPU %g MHz, then P%g", k, cpu_set(&a),
                     probe(&a, LOW_PSTATE));
    }
    FL_CHECK(cpu_set(&a) < 2900, "both insensitive: no walk, CPU %g MHz", cpu_set(&a));
    fl_instance_close(a.in);
}

/* ---- BAPM ---------------------------------------------------------------------------------------------------------
 */

static void test_bapm(void) {
    static const struct {
        const char *name;
        double cpu_w, gpu_w, cpu_mhz;
        int boost;
        double sm_mhz;
    } steps[] = {{"both at their highest", 40, 40, 3800, 1, 800},
                 {"over, the CPU above its half", 70, 35, 3800, 0, 800},
                 {"still over", 60, 45, 3400, 0, 800},
                 {"over, both above their half", 51, 52, 2900, 0, 633},
                 {"over, but the CPU within its half", 40, 65, 2900, 0, 400},
                 {"between release and limit: as it is", 48, 49, 2900, 0, 400},
                 {"room: both up", 30, 40, 3400, 0, 633},
                 {"over again, the CPU alone above its half", 60, 41, 2900, 0, 633},
                 {"between release and limit: as it is", 48, 49, 2900, 0, 633},
                 {"room: both up", 30, 40, 3400, 0, 800},
                 {"room", 30, 40, 3800, 0, 800},
                 {"room", 30, 40, 3800, 1, 800}};
    apu a;
    apu_open(&a, &fl_policy_bapm, NULL);
    double energy = 5;
    put_host(&a, FL_HOST_CPU_ENERGY_J, energy);
    put_gpu(&a, 0, FL_GPU_POWER_W, 200);
    apu_step(&a);
    FL_CHECK(!cpu_set(&a) && !sm_set(&a, 0) && probe(&a, 2) == 1, "sets something before power is known");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        put_host(&a, FL_HOST_CPU_ENERGY_J, energy += steps[i].cpu_w * 0.01);
        put_gpu(&a, 0, FL_GPU_POWER_W, steps[i].gpu_w);
        apu_step(&a);
        FL_CHECK(cpu_set(&a) == steps[i].cpu_mhz && boost_set(&a) == steps[i].boost && sm_set(&a, 0) == steps[i].sm_mhz,
                 "%s (step %zu): CPU %g MHz, boost %d, GPU %g MHz", steps[i].name, i, cpu_set(&a), boost_set(&a),
                 sm_set(&a, 0));
    }
    a.sample[0] = (fl_gpu_sample){0};
    apu_step(&a);
    FL_CHECK(!cpu_set(&a) && !sm_set(&a, 0) && probe(&a, 2) == 1, "the GPU is gone: something is set");
    fl_instance_close(a.in);
}

/* Section 2, step 2: power becomes a temperature of each component, with the time constant; step 3: while one is at
 * temp_c, the package may draw what holds that, 80 W here, and each side half of it. */
static void test_bapm_heat(void) {
    static const struct {
        const char *name, *c_per_w, *own_c_per_w;
        double cpu_w, gpu_w, end_c; /* end_c: where a long run at these powers ends */
    } rows[] = {{"the package", "0.5", "0", 45, 45, 65},
                {"below the limit", "0.5", "0", 38, 41, 59.5},
                {"the CPU by its own power", "0.5", "0.2", 50, 30, 70},
                {"the GPU by its own power", "0.5", "0.2", 10, 80, 81}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const settings[] = {"temp_c", "60",      "ambient_c",     "20",          "tau_s",
                                        "0.1",    "c_per_w", rows[i].c_per_w, "own_c_per_w", rows[i].own_c_per_w,
                                        NULL};
        apu a;
        apu_open(&a, &fl_policy_bapm, settings);
        double energy = 0;
        int64_t cpu_depth = 0, gpu_depth = 0;
        put_host(&a, FL_HOST_CPU_ENERGY_J, energy);
        put_gpu(&a, 0, FL_GPU_POWER_W, rows[i].gpu_w);
        apu_step(&a);
        for (int k = 1; k <= 60; k++) {
            put_host(&a, FL_HOST_CPU_ENERGY_J, energy += rows[i].cpu_w * 0.01);
            apu_step(&a);
            const double expected = 20 + (rows[i].end_c - 20) * (1 - exp(-0.1 * k)),
                         all = rows[i].cpu_w + rows[i].gpu_w;
            const bool hot = expected >= 60;
            const double limit = hot ? 80 : 100;
            cpu_depth += all >= limit && rows[i].cpu_w > limit / 2;
            gpu_depth += all >= limit && rows[i].gpu_w > limit / 2;
            FL_CHECK(fabs(probe(&a, 3) - expected) < 1e-9 && probe(&a, 4) == limit,
                     "%s, step %d: %.9g C, %g W; expected %.9g, %g", rows[i].name, k, probe(&a, 3), probe(&a, 4),
                     expected, limit);
            FL_CHECK(probe(&a, 1) == (double)(cpu_depth < 6 ? cpu_depth : 6) &&
                         probe(&a, 5) == (double)(gpu_depth < 2 ? gpu_depth : 2),
                     "%s, step %d: CPU %g, GPU %g states down; expected %lld, %lld", rows[i].name, k, probe(&a, 1),
                     probe(&a, 5), (long long)cpu_depth, (long long)gpu_depth);
        }
        FL_CHECK((cpu_depth + gpu_depth > 0) == (rows[i].end_c > 60), "%s: ends %lld and %lld states down",
                 rows[i].name, (long long)cpu_depth, (long long)gpu_depth);
        fl_instance_close(a.in);
    }
}

/* ---- ideal static -------------------------------------------------------------------------------------------------
 */

static const fl_kernel_kind kinds[] = {
    {.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "a", .grid = {2, 1, 1}}, {.name = "unlisted"}};
static const char *const keys[] = {"b", "a", "c"};
static const double cells[] = {1400, 800, 2900, 633, 4200, 400};
static const fl_table states = {.cell = cells, .key = keys, .row_count = 3, .column_count = 2};

/* Kernels that ended, and the pair that must be set for what is taken to run now; 0: nothing is set. */
static void test_ideal_static(void) {
    static const struct {
        const char *ended;
        char next;
    } steps[] = {
        {"", 0},      {"a", 'a'},    {"ab", 'b'},
        {"bc", 'c'},  {"a", 'a'}, /* first iteration: a a b b c; only the past */
        {"a", 'b'},   {"b", 'b'},    {"b", 'c'},
        {"ca", 'a'},  {"a", 'b'}, /* then what follows is known */
        {"bbc", 'a'}, {"aabb", 'c'}, {"c", 'a'},
        {"", 'a'},    {"aab", 'b'},  {"u", 0}, /* a kernel without a row: what is set stays */
    };
    apu a;
    apu_open_with(&a, &fl_policy_idealstatic, 1, NULL, &states);
    a.s.kind = kinds;
    a.s.kind_count = 5;
    a.s.record = a.record;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        a.s.record_count = strlen(steps[i].ended);
        for (size_t k = 0; k < a.s.record_count; k++)
            a.record[k] =
                (fl_kernel_record){.kind = steps[i].ended[k] == 'u' ? 4 : (uint32_t)(steps[i].ended[k] - 'a')};
        apu_step(&a);
        const double want_sm = steps[i].next == 'a' ? 633 : steps[i].next == 'b' ? 800 : steps[i].next ? 400 : 0;
        const double want_cpu = steps[i].next == 'a' ? 2900 : steps[i].next == 'b' ? 1400 : steps[i].next ? 3800 : 0;
        FL_CHECK(sm_set(&a, 0) == want_sm && cpu_set(&a) == want_cpu && probe(&a, 1) == !steps[i].next,
                 "step %zu (%s ended): %g MHz, CPU %g MHz; expected the pair of '%c'", i, steps[i].ended, sm_set(&a, 0),
                 cpu_set(&a), steps[i].next ? steps[i].next : '-');
        if (steps[i].next)
            FL_CHECK(boost_set(&a) == (steps[i].next == 'c'), "step %zu: boost %d", i, boost_set(&a));
    }
    fl_instance_close(a.in);
}

/* Kernels that come more than once in an iteration, behind the same predecessor and in runs of different length, as in
 * a conjugate gradient: c b a a b a. */
static void test_ideal_context(void) {
    static const char order[] = "cbaaba";
    apu a;
    apu_open_with(&a, &fl_policy_idealstatic, 1, NULL, &states);
    a.s.kind = kinds;
    a.s.kind_count = 5;
    a.s.record = a.record;
    a.s.record_count = 1;
    for (int i = 0; i < 48; i++) {
        a.record[0] = (fl_kernel_record){.kind = (uint32_t)(order[i % 6] - 'a')};
        apu_step(&a);
        if (i < 11)
            continue;
        const char next = order[(i + 1) % 6];
        const double want = next == 'a' ? 633 : next == 'b' ? 800 : 400;
        FL_CHECK(sm_set(&a, 0) == want, "kernel %d: %g MHz for the next, expected %g", i, sm_set(&a, 0), want);
    }
    a.record[0] = (fl_kernel_record){.kind = 3}; /* another grid: another kind, the same row */
    apu_step(&a);
    FL_CHECK(sm_set(&a, 0) == 633, "another grid: %g MHz", sm_set(&a, 0));
    fl_instance_close(a.in);
    apu_open(&a, &fl_policy_idealstatic, NULL); /* no table: it sets nothing */
    apu_step(&a);
    FL_CHECK(!sm_set(&a, 0) && !cpu_set(&a), "sets without a table");
    fl_instance_close(a.in);
}

/* More kinds than any table: a program that launches each kernel with many grids. Those told last have rows like the
 * first, and are told from each other. */
static void test_ideal_many_kinds(void) {
    enum { MANY = 5000 };
    static fl_kernel_kind many[MANY];
    for (uint32_t i = 0; i < MANY; i++)
        many[i] = (fl_kernel_kind){.name = i % 2 ? "b" : "a", .grid = {i + 1, 1, 1}};
    apu a;
    apu_open_with(&a, &fl_policy_idealstatic, 1, NULL, &states);
    a.s.kind = many;
    a.s.kind_count = MANY;
    a.s.record = a.record;
    a.s.record_count = 1;
    static const uint32_t order[] = {255, 256, 257, 258, MANY - 2, MANY - 1};
    for (int i = 0; i < 24; i++) {
        a.record[0] = (fl_kernel_record){.kind = order[i % 6]};
        apu_step(&a);
        const uint32_t now = i < 6 ? order[i] : order[(i + 1) % 6]; /* at first only the past is known */
        const double want_sm = now % 2 ? 800 : 633, want_cpu = now % 2 ? 1400 : 2900;
        FL_CHECK(probe(&a, 0) == now && sm_set(&a, 0) == want_sm && cpu_set(&a) == want_cpu,
                 "kernel %d: kind %g, %g MHz, CPU %g MHz; expected those of kind %u", i, probe(&a, 0), sm_set(&a, 0),
                 cpu_set(&a), now);
    }
    fl_instance_close(a.in);
}

static void test_ideal_edges(void) {
    static const double pairs[] = {3800, 800, 4000, 633};
    static const char *const names[] = {"a", "b"};
    const fl_table table = {.cell = pairs, .key = names, .row_count = 2, .column_count = 2};
    apu a;
    apu_open_with(&a, &fl_policy_idealstatic, 1, NULL, &table);
    a.s.kind = kinds;
    a.s.kind_count = 5;
    a.s.record = a.record;
    a.s.record_count = 1;
    static const char order[] = "abaa"; /* the run of a is longer than the one known: nothing says that it is over */
    for (size_t i = 0; i < 4; i++) {
        a.record[0] = (fl_kernel_record){.kind = (uint32_t)(order[i] - 'a')};
        apu_step(&a);
    }
    FL_CHECK(sm_set(&a, 0) == 800 && cpu_set(&a) == 3800 && boost_set(&a) == 0,
             "a goes on at its own pair, without boost: %g MHz, CPU %g MHz, boost %d", sm_set(&a, 0), cpu_set(&a),
             boost_set(&a));
    fl_instance_close(a.in);
}

/* ---- whole sequences ----------------------------------------------------------------------------------------------
 */

static size_t golden_run(const fl_policy *policy, char *text, size_t size) {
    fl_random r = fl_random_seed(11, 3);
    size_t used = 0;
    apu a;
    apu_open(&a, policy, NULL);
    used += (size_t)snprintf(text, size, "step,sm_mhz,cpu_mhz,boost,line,low_pstate\n");
    for (int k = 0; k < 400; k++) {
        const double phase = k / 40 % 4, noise = fl_random_unit(&r);
        period(&a, phase * 30 * (0.8 + 0.2 * noise), phase > 0 ? 90 : 20, k / 100 % 2 ? 0.3 + 0.2 * noise : 0.2,
               2 * noise, 25 * phase + 4 * fl_random_unit(&r));
        if (fl_random_below(&r, 20) == 0)
            a.sample[0].valid &= ~FL_BIT(FL_GPU_DRAM_BYTES);
        if (fl_random_below(&r, 20) == 0)
            a.s.host.fresh = 0;
        apu_step(&a);
        used += (size_t)snprintf(text + used, size - used, "%d,%g,%g,%d,%g,%g\n", k, sm_set(&a, 0), cpu_set(&a),
                                 boost_set(&a), probe(&a, LINE), probe(&a, LOW_PSTATE));
    }
    fl_instance_close(a.in);
    return used;
}

static void test_golden(void) {
    static char text[65536];
    golden_run(&fl_policy_onelevelth, text, sizeof text);
    fl_golden_check("dynaco-1levelth.csv", text);
    golden_run(&fl_policy_multilevelth, text, sizeof text);
    fl_golden_check("dynaco-multilevelth.csv", text);
}

FL_SUITE("dynaco", {"Algorithm 1, line by line", test_lines}, {"1levelTh keeps to P2", test_one_level},
         {"Algorithm 2: the walk", test_walk}, {"the walk pauses elsewhere", test_walk_pauses},
         {"beside a sensitive GPU", test_beside_high}, {"readings that are not there", test_unknown},
         {"counters in turn", test_stale}, {"counters in turn: the walk", test_stale_walk},
         {"counters that stand still", test_stale_too_long}, {"several GPUs", test_several_gpus},
         {"memory beside the walk", test_memory_beside_walk}, {"BAPM", test_bapm},
         {"BAPM: temperatures", test_bapm_heat}, {"ideal static: what runs now", test_ideal_static},
         {"ideal static: a kernel in two places", test_ideal_context}, {"ideal static: edges", test_ideal_edges},
         {"ideal static: many kinds", test_ideal_many_kinds}, {"whole sequences", test_golden})
