/* Every policy of the registry in bad weather: machines of all sizes, sensors that say nothing, too much or nonsense,
 * GPUs that go, activity records of every sort, clocks that do not tick evenly. Whatever a policy decides there must be
 * a command that a host can carry out, and a copy of its state must decide the same. All random, all seeded: a failure
 * names policy, machine and weather, and is the same each time. */
#include "harness/input/platform/platform.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "policies/registry/registry.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/inside.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/synth/inside.h"
#include "sim/synth/synth.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "tests/support/server_feed.h"
#include "tests/support/suite.h"

#include <math.h>

enum { GPUS_MAX = 8, STEPS = 400, COPY_STEP = 133, LOST_STEP = 150, HELD_STEP = 300, RECORDS_MAX = 64, KINDS = 100000 };
static const uint64_t seed = 20240229;
static const int64_t second_ns = 1000000000, delay_max_ns = 600 * INT64_C(1000000000);

/* ---- machines -----------------------------------------------------------------------------------------------------
 */

typedef struct machine {
    const char *name;
    uint32_t gpus;
    uint32_t sm[2]; /* clocks on the ladders of even and odd GPUs */
    uint32_t mem, cpu, boost;
    bool limits, apu;
} machine;

static const machine machines[] = {
    {"one GPU", 1, {190, 190}, 5, 5, 2, true, false},
    {"eight GPUs", 8, {190, 190}, 5, 5, 2, true, false},
    {"an APU", 1, {3, 3}, 1, 5, 2, true, true},
    {"eight GPUs of two sorts on an APU", 8, {190, 7}, 4, 3, 1, true, true},
    {"one clock", 1, {1, 1}, 1, 1, 0, true, false},
    {"one clock on an APU", 1, {1, 1}, 1, 1, 0, true, true},
    {"two clocks", 2, {2, 2}, 2, 2, 1, true, false},
    {"no CPU clocks", 2, {40, 40}, 2, 0, 0, true, false},
    {"no power limits", 2, {40, 40}, 2, 4, 1, false, false},
    {"nothing known but clocks", 8, {16, 16}, 1, 0, 0, false, false},
};
enum { MACHINES = sizeof machines / sizeof *machines };

typedef struct site { /* a machine's facts and the ladders they point to */
    int32_t sm[2][190], mem[5], cpu[5], boost[2];
    fl_gpu_facts gpu[GPUS_MAX];
    fl_feed_servers servers;
    fl_facts facts;
} site;

static void open_site(const machine *m, site *s) {
    memset(s, 0, sizeof *s);
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < m->sm[k]; i++)
            s->sm[k][i] = 2100 - 10 * (int32_t)(m->sm[k] - 1 - i);
    for (uint32_t i = 0; i < m->mem; i++)
        s->mem[i] = 9501 - 1900 * (int32_t)(m->mem - 1 - i);
    for (uint32_t i = 0; i < m->cpu; i++)
        s->cpu[i] = 1200 + 400 * (int32_t)i;
    for (uint32_t i = 0; i < m->boost; i++)
        s->boost[i] = 3600 + 200 * (int32_t)i;
    for (uint32_t i = 0; i < m->gpus; i++) {
        const int32_t *sm = s->sm[i % 2];
        const uint32_t count = m->sm[i % 2];
        s->gpu[i] = (fl_gpu_facts){.name = i % 2 ? "odd" : "even",
                                   .sm = {sm, count},
                                   .mem = {s->mem, m->mem},
                                   .default_sm_mhz = sm[count - 1],
                                   .default_mem_mhz = s->mem[m->mem - 1]};
        if (m->limits) {
            s->gpu[i].power_min_w = 100;
            s->gpu[i].power_max_w = 380;
            s->gpu[i].power_default_w = 350;
            s->gpu[i].tdp_w = 350;
            s->gpu[i].peak_bytes_per_s = 9e11;
            s->gpu[i].sm_count = 80;
            s->gpu[i].cores_per_sm = 128;
        }
    }
    s->facts = (fl_facts){.seed = 5, .gpu_count = m->gpus, .gpu = s->gpu, .host = {.name = "host", .cores = 8}};
    s->facts.host.cpu = (fl_ladder){s->cpu, m->cpu};
    s->facts.host.boost = (fl_ladder){s->boost, m->boost};
    s->facts.host.apu = m->apu;
    if (m->limits) {
        s->facts.host.power_min_w = 20;
        s->facts.host.power_max_w = 200;
        s->facts.host.power_default_w = 150;
        s->facts.host.peak_bytes_per_s = 2.5e10;
    }
}

/* ---- weather ------------------------------------------------------------------------------------------------------
 */

typedef enum kernels { NO_KERNELS, FEW_KINDS, WILD_KINDS } kernels;
typedef enum values { PLAUSIBLE, ZERO, EXTREME, FROZEN } values;

typedef struct weather {
    const char *name;
    double known; /* chance that a signal is valid at a step */
    values values;
    kernels kernels;
    bool lost; /* GPU 0 and, of eight, GPU 5 show nothing from LOST_STEP on */
} weather;

static const weather weathers[] = {
    {"nothing is known", 0, PLAUSIBLE, NO_KERNELS, false},
    {"all is known, no kernels", 1, PLAUSIBLE, NO_KERNELS, false},
    {"all is known", 1, PLAUSIBLE, FEW_KINDS, false},
    {"signals come and go", 0.7, PLAUSIBLE, FEW_KINDS, false},
    {"GPUs get lost", 1, PLAUSIBLE, FEW_KINDS, true},
    {"all is zero", 1, ZERO, FEW_KINDS, false},
    {"zero, ordinary and huge", 0.9, EXTREME, FEW_KINDS, false},
    {"frozen", 1, FROZEN, FEW_KINDS, false},
    {"wild records", 1, PLAUSIBLE, WILD_KINDS, false},
    {"wild records of a blind host", 0, PLAUSIBLE, WILD_KINDS, false},
};
enum { WEATHERS = sizeof weathers / sizeof *weathers, BLIND = 0 };

static fl_kernel_kind kinds[KINDS];
static char kind_name[KINDS / 4][24];

static void name_kinds(void) {
    for (uint32_t i = 0; i < KINDS; i++) {
        snprintf(kind_name[i / 4], sizeof *kind_name, "kernel_%u", i / 4);
        kinds[i] = (fl_kernel_kind){kind_name[i / 4], i / 4, {1 + i % 4, 1, 1}, {32 << i % 4, 1, 1}};
    }
}

typedef struct feed {
    const machine *m;
    const weather *sky;
    fl_random random;
    fl_gpu_sample gpu[GPUS_MAX];
    double gpu_last[GPUS_MAX][FL_GPU_SIGNAL_COUNT], host_last[FL_HOST_SIGNAL_COUNT];
    fl_kernel_record record[RECORDS_MAX];
    bool recording[GPUS_MAX];
    fl_server_feed servers;
    uint32_t server_count;
    fl_sample sample;
} feed;

static double ordinary(fl_random *r, const fl_row_info *row) {
    const double u = fl_random_unit(r);
    if (row->kind == FL_COUNTER)
        return rint(u * (strcmp(row->unit, "ns") == 0 ? 1e8 : strcmp(row->unit, "B") == 0 ? 1e9 : 100));
    if (strcmp(row->unit, "%") == 0)
        return rint(100 * u);
    if (strcmp(row->unit, "ns") == 0)
        return rint(4e8 * u);
    return rint(strcmp(row->unit, "MHz") == 0 ? 210 + 1890 * u : 20 + 300 * u);
}

/* The signal's next value; a counter never falls. */
static double next_value(feed *f, const fl_row_info *row, double last) {
    static const double huge[] = {1e4, 1e9, 1e15, 1e18, 0x1p64}; /* the last: more than any register holds */
    double v = ordinary(&f->random, row);
    if (f->sky->values == ZERO || (f->sky->values == FROZEN && f->sample.step > 0))
        v = 0;
    if (f->sky->values == EXTREME)
        switch (fl_random_below(&f->random, 3)) {
        case 0:
            v = 0;
            break;
        case 1:
            v = huge[fl_random_below(&f->random, row->kind == FL_COUNTER ? 3 : 5)];
            break;
        default:
            break;
        }
    if (f->sky->values == FROZEN)
        return last + v; /* of the first step */
    return row->kind == FL_COUNTER ? last + v : v;
}

static void next_signals(feed *f, fl_row_set set, int count, bool gone, double *last, double *value, uint64_t *valid,
                         uint64_t *fresh) {
    *valid = *fresh = 0;
    for (int i = 0; i < count; i++) {
        last[i] = next_value(f, fl_rows_at(set, (size_t)i), last[i]);
        const bool known = fl_random_unit(&f->random) < f->sky->known && !gone;
        *valid |= known ? FL_BIT(i) : 0;
        if (f->sky->values != FROZEN || f->sample.step == 0)
            *fresh |= fl_random_unit(&f->random) < 0.7 ? FL_BIT(i) : 0;
        value[i] = known ? last[i] : fl_random_below(&f->random, 4) ? (double)NAN : 1e300; /* using it must show */
    }
}

static uint32_t kinds_by_now(const feed *f) {
    return f->sky->kernels == WILD_KINDS ? (f->sample.step < 20 ? 1 + (uint32_t)f->sample.step : KINDS) : 3;
}

/* One after the other on one stream; or of any length, age, stream and kind, some without an end. */
static void next_records(feed *f, int64_t since_ns) {
    const bool wild = f->sky->kernels == WILD_KINDS;
    fl_sample *s = &f->sample;
    int64_t at = since_ns;
    s->record_count = s->record_lost = 0;
    bool any = false;
    for (uint32_t g = 0; g < f->m->gpus; g++)
        any |= f->recording[g];
    s->record = any ? f->record : NULL;
    s->kind_count = f->sky->kernels == NO_KERNELS ? 0 : kinds_by_now(f);
    if (!any || f->sky->kernels == NO_KERNELS)
        return;
    const uint64_t count = fl_random_below(&f->random, RECORDS_MAX + 1);
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t gpu = (uint32_t)fl_random_below(&f->random, f->m->gpus);
        const int64_t slot = (s->time_ns - since_ns) / (RECORDS_MAX + 1),
                      length = slot > 1 ? (int64_t)fl_random_below(&f->random, (uint64_t)slot) : 0;
        fl_kernel_record r = {.start_ns = at, .end_ns = at + length, .gpu = gpu};
        r.kind = (uint32_t)fl_random_below(&f->random, s->kind_count);
        at += slot;
        if (wild) {
            r.stream = (uint32_t)fl_random_next(&f->random) >> (8 * fl_random_below(&f->random, 4));
            if (!fl_random_below(&f->random, 4))
                r.start_ns = (int64_t)fl_random_below(&f->random, (uint64_t)r.end_ns + 1);
            if (!fl_random_below(&f->random, 4))
                r.end_ns = -1;
        }
        if (f->recording[gpu])
            f->record[s->record_count++] = r;
    }
    if (wild && !fl_random_below(&f->random, 3))
        s->record_lost = fl_random_below(&f->random, 3) ? 7 : UINT64_C(1) << 40;
}

/* The step after the one that asked for delay_ns: late by anything, now and then by a long pause. */
static const fl_sample *feed_next(feed *f, int64_t delay_ns) {
    const int64_t since = f->sample.time_ns;
    if (f->sample.record != NULL || f->sample.kind != NULL || f->sample.gpu != NULL) {
        f->sample.step++;
        f->sample.time_ns += delay_ns + (int64_t)fl_random_below(&f->random, (uint64_t)delay_ns / 2 + 1);
        if (!fl_random_below(&f->random, 50))
            f->sample.time_ns += (int64_t)fl_random_below(&f->random, 4000) * second_ns;
    }
    f->sample.gpu_count = f->m->gpus;
    f->sample.gpu = f->gpu;
    f->sample.kind = kinds;
    for (uint32_t g = 0; g < f->m->gpus; g++)
        next_signals(f, FL_ROWS_GPU_SIGNAL, FL_GPU_SIGNAL_COUNT,
                     f->sky->lost && (g == 0 || g == 5) && f->sample.step >= LOST_STEP, f->gpu_last[g], f->gpu[g].value,
                     &f->gpu[g].valid, &f->gpu[g].fresh);
    next_signals(f, FL_ROWS_HOST_SIGNAL, FL_HOST_SIGNAL_COUNT, false, f->host_last, f->sample.host.value,
                 &f->sample.host.valid, &f->sample.host.fresh);
    next_records(f, since);
    const values v = f->sky->values;
    const bool stand = v == ZERO || (v == FROZEN && f->sample.step > 0);
    fl_server_feed_next(&f->servers, f->server_count, f->sky->known,
                        stand                                     ? 0
                        : v == EXTREME && f->sample.step % 3 == 0 ? 1e15
                                                                  : 1,
                        since, &f->sample);
    return &f->sample;
}

/* ---- what must hold of a decision ---------------------------------------------------------------------------------
 */

static bool same_decided(const fl_decided *a, const fl_decided *b) {
    return a->set == b->set && (!a->set || (a->requested == b->requested && a->value == b->value));
}

static bool same_decision(const fl_decision *a, const fl_decision *b, size_t probes) {
    bool same = a->delay_ns == b->delay_ns;
    for (uint32_t g = 0; g < a->gpu_count; g++)
        for (int i = 0; i < FL_GPU_CONTROL_COUNT; i++)
            same = same && same_decided(&a->gpu[g][i], &b->gpu[g][i]);
    for (int i = 0; i < FL_HOST_CONTROL_COUNT; i++)
        same = same && same_decided(&a->host[i], &b->host[i]);
    for (size_t i = 0; i < probes; i++)
        same = same && (a->probe[i] == b->probe[i] || (isnan(a->probe[i]) && isnan(b->probe[i])));
    return same;
}

static bool sound(const fl_decided *set, int count) {
    for (int i = 0; i < count; i++)
        if (set[i].set && (!isfinite(set[i].requested) || !isfinite(set[i].value)))
            return false;
    return true;
}

/* The first cell of the probe of that name and how many cells it has; false where the policy has none. */
static bool find_probe(const fl_policy *p, const char *name, uint32_t gpus, size_t *first, size_t *cells) {
    *first = 0;
    for (uint32_t i = 0; i < p->probe_count; i++, *first += *cells) {
        *cells = p->probe[i].per_gpu ? gpus : 1;
        if (strcmp(p->probe[i].name, name) == 0)
            return true;
    }
    return false;
}

static bool reads(const fl_policy *p) {
    const fl_reads r = fl_reads_of(p);
    return (r.gpu_needs | r.host_needs) != 0 || r.records;
}

/* NULL, or what is wrong with a decision. `held`, where a policy has such a probe, is 1 while it decides without
 * readings (by HELD_STEP the slowest has come to decide), NAN where it never decides by any. */
static const char *wrong_with(const fl_policy *p, const feed *f, const fl_decision *now, size_t probes) {
    if (now->delay_ns <= 0 || now->delay_ns > delay_max_ns)
        return "the delay is not above 0 and up to 10 minutes";
    for (uint32_t g = 0; g < now->gpu_count; g++)
        if (!sound(now->gpu[g], FL_GPU_CONTROL_COUNT))
            return "a GPU setting is not finite";
    if (!sound(now->host, FL_HOST_CONTROL_COUNT))
        return "a host setting is not finite";
    for (size_t i = 0; i < probes; i++)
        if (isinf(now->probe[i]))
            return "a probe is infinite";
    size_t first, cells;
    if (!reads(p) || !find_probe(p, "held", f->m->gpus, &first, &cells))
        return NULL;
    for (size_t i = 0; i < cells; i++) {
        const double held = now->probe[first + i];
        if (f->sample.step < HELD_STEP || isnan(held))
            continue;
        if (f->sky == &weathers[BLIND] && held != 1)
            return "nothing is known, and held is neither 1 nor NAN";
        if (f->sky->lost && cells > 1 && (i == 0 || i == 5) && held != 1)
            return "a GPU is lost, and its held is neither 1 nor NAN";
        if (held != 0 && held != 1)
            return "held is neither 0 nor 1";
    }
    return NULL;
}

/* Blind policies hold: what they ask for does not change any more, once they have set what they start with. */
typedef struct settings {
    double gpu[GPUS_MAX][FL_GPU_CONTROL_COUNT], host[FL_HOST_CONTROL_COUNT];
} settings;

static bool keep(const fl_decided *set, int count, double *last) {
    bool moved = false;
    for (int i = 0; i < count; i++)
        if (set[i].set) {
            moved |= set[i].value != last[i];
            last[i] = set[i].value;
        }
    return moved;
}

static bool keep_all(const fl_decision *now, settings *s) {
    bool moved = keep(now->host, FL_HOST_CONTROL_COUNT, s->host);
    for (uint32_t g = 0; g < now->gpu_count; g++)
        moved |= keep(now->gpu[g], FL_GPU_CONTROL_COUNT, s->gpu[g]);
    return moved;
}

/* ---- every policy, every machine, every weather -------------------------------------------------------------------
 */

static const fl_decision *step(fl_instance *in, const fl_sample *sample) {
    const fl_decision *decision = NULL;
    fl_diag d;
    CU_ASSERT_FATAL(fl_instance_step(in, sample, &decision, &d) == FL_OK);
    return decision;
}

/* Runs it through; the first thing that goes wrong, or NULL. */
static const char *weather_it(fl_instance *in, feed *f, uint64_t *at_step) {
    const fl_policy *p = fl_instance_policy(in);
    const bool records = fl_reads_of(p).records;
    const size_t probes = fl_instance_probe_count(in);
    fl_instance *copy = NULL;
    settings last = {0};
    int64_t delay_ns = 1;
    const char *wrong = NULL;
    for (uint32_t g = 0; g < f->m->gpus; g++)
        f->recording[g] = records;
    for (int i = 0; i < STEPS && !wrong; i++) {
        fl_diag d;
        if (i == COPY_STEP)
            CU_ASSERT_FATAL(fl_instance_copy(&copy, in, &d) == FL_OK);
        const fl_sample *sample = feed_next(f, delay_ns);
        const fl_decision *now = step(in, sample);
        const bool moved = keep_all(now, &last);
        *at_step = sample->step;
        wrong = wrong_with(p, f, now, probes);
        if (!wrong && fl_instance_counts_of(in).faults)
            wrong = "a fault is counted: a delay not set, a setting of 0 or NaN, or a control not declared";
        if (!wrong && f->sky == &weathers[BLIND] && reads(p) && i > STEPS / 2 && moved)
            wrong = "nothing is known, and it changes settings still";
        if (!wrong && copy && !same_decision(now, step(copy, sample), probes))
            wrong = "a copy of its state decides otherwise";
        delay_ns = now->delay_ns;
        for (uint32_t g = 0; g < f->m->gpus; g++)
            if (now->gpu[g][FL_SET_RECORDS].set)
                f->recording[g] =
                    now->gpu[g][FL_SET_RECORDS].value == FL_DEFAULT ? records : now->gpu[g][FL_SET_RECORDS].value > 0;
    }
    fl_instance_close(copy);
    return wrong;
}

static const fl_setting dark = {"cpu_boost", "0", NULL}; /* fixed has no use without something to set */

/* One policy on one machine, in every weather. */
static void weather_on(const fl_policy *policy, const site *s, size_t m) {
    const char *name = policy->name;
    for (size_t k = 0; k < WEATHERS; k++) {
        const fl_layer layer = {"test", &dark, !strcmp(name, "fixed")};
        fl_instance_options o = {.policy = policy, .facts = &s->facts, .layer = &layer, .layer_count = 1};
        fl_instance *in = NULL;
        fl_diag d = {0};
        const fl_status status = fl_instance_open(&in, &o, &d);
        FL_CHECK(status == FL_OK, "%s refuses %s: %s", name, machines[m].name, d.message);
        if (status != FL_OK)
            break;
        feed *f = calloc(1, sizeof *f);
        CU_ASSERT_FATAL(f != NULL);
        f->m = &machines[m];
        f->sky = &weathers[k];
        f->random = fl_random_seed(seed, m * WEATHERS + k);
        f->servers.random = fl_random_seed(seed, UINT64_C(0x73657276) + m * WEATHERS + k);
        f->server_count = s->facts.server_count;
        uint64_t at = 0;
        const char *wrong = weather_it(in, f, &at);
        FL_CHECK(!wrong, "%s, %s with %u servers, %s, step %llu: %s", name, machines[m].name, s->facts.server_count,
                 weathers[k].name, (unsigned long long)at, wrong);
        free(f);
        fl_instance_close(in);
    }
}

/* Who reads servers gets some; who only may gets none, and some. */
static void test_weather(void) {
    printf(" seed %llu ", (unsigned long long)seed);
    name_kinds();
    site *s = malloc(sizeof *s);
    CU_ASSERT_FATAL(s != NULL);
    for (size_t p = 0; p < fl_policies_count; p++)
        for (size_t m = fl_nightly() ? 0 : p % 3; m < MACHINES; m += fl_nightly() ? 1 : 3) {
            open_site(&machines[m], s);
            const fl_reads r = fl_reads_of(fl_policies[p]);
            if (!r.server_needs)
                weather_on(fl_policies[p], s, m);
            fl_feed_servers_open(&s->servers, &s->facts);
            if (r.server)
                weather_on(fl_policies[p], s, m);
        }
    free(s);
}

/* ---- whole runs ---------------------------------------------------------------------------------------------------
 */

typedef struct disaster {
    const char *name;
    fl_fault fault;
    bool ends_it; /* the run may end with FL_HARDWARE */
} disaster;

static const disaster disasters[] = {
    {"nothing happens", {.type = FL_FAULT_DROP, .gpu = 0, .row = FL_GPU_TEMP_C, .until_ns = 1}, false},
    {"no signal of any GPU",
     {.type = FL_FAULT_DROP, .gpu = FL_FAULT_EVERY_GPU, .row = FL_FAULT_EVERY_ROW, .until_ns = FL_FAULT_FOR_EVER},
     false},
    {"all signals frozen",
     {.type = FL_FAULT_FREEZE,
      .gpu = FL_FAULT_EVERY_GPU,
      .row = FL_FAULT_EVERY_ROW,
      .from_ns = 100000000,
      .until_ns = FL_FAULT_FOR_EVER},
     false},
    {"all sets refused",
     {.type = FL_FAULT_REFUSE, .gpu = FL_FAULT_EVERY_GPU, .row = FL_FAULT_EVERY_ROW, .until_ns = FL_FAULT_FOR_EVER},
     false},
    {"GPU 3 lost in mid-run", {.type = FL_FAULT_LOST, .gpu = 3, .from_ns = 20 * INT64_C(1000000000)}, true},
    {"GPU 0 lost before the first step", {.type = FL_FAULT_LOST, .gpu = 0, .from_ns = 0}, true},
};

static void play(const fl_platform *p, const fl_facts *facts, const fl_workload *w, fl_rates *rates,
                 const fl_policy *policy, const disaster *what) {
    const fl_layer layer[] = {fl_platform_layer(p, policy->name), {"test", &dark, !strcmp(policy->name, "fixed")}};
    fl_fault fault = what->fault;
    if (fault.gpu >= (int32_t)p->node.gpu_count)
        fault.gpu = (int32_t)p->node.gpu_count - 1;
    const fl_run_options o = {.w = w,
                              .rates = rates,
                              .spec = &p->node,
                              .facts = facts,
                              .policy = policy,
                              .layer = layer,
                              .layer_count = 2,
                              .fault = &fault,
                              .fault_count = 1};
    fl_run_result r = {0};
    fl_diag d = {0};
    const fl_status s = fl_run(&o, &r, &d);
    const bool ended = what->ends_it && s == FL_HARDWARE && strstr(d.message, "fell off the bus");
    FL_CHECK(s == FL_OK || ended, "%s on %s, %s: %s", policy->name, p->name, what->name, d.message);
    if (s == FL_OK) {
        FL_CHECK(r.counts.faults == 0, "%s on %s, %s: %llu faults", policy->name, p->name, what->name,
                 (unsigned long long)r.counts.faults);
        FL_CHECK(isfinite(r.energy_j) && r.energy_j > 0 && r.makespan_s > 0 && r.counts.steps > 0,
                 "%s on %s, %s: %g J in %g s", policy->name, p->name, what->name, r.energy_j, r.makespan_s);
    }
    fl_run_result_free(&r);
}

static void test_runs(void) {
    static const struct {
        const char *name;
        uint32_t gpus;
    } platforms[] = {{"generic", GPUS_MAX}, {"rtx4070-laptop", GPUS_MAX}, {"apu-a10-5800k", 1}};
    fl_synth_options synth = {.seed = 3,
                              .kinds = 12,
                              .streams = 1,
                              .mean_us = 30000,
                              .gap_us = 200,
                              .memory = 0.5,
                              .sm_demand = 1,
                              .burst = 3};
    for (size_t i = 0; i < sizeof platforms / sizeof *platforms; i++) {
        fl_platform p = {0};
        fl_facts facts = {0};
        fl_workload *w = NULL;
        fl_rates *rates = NULL;
        fl_diag d = {0};
        synth.gpus = platforms[i].gpus;
        synth.kernels = 1500 * (uint64_t)synth.gpus;
        fl_status s = fl_platform_open(platforms[i].name, platforms[i].gpus, &p, &d);
        if (!s)
            s = fl_facts_make(&p.node, seed, &facts, &d);
        if (!s)
            s = fl_synth_workload(&synth, &p.node, 5, &w, &d);
        if (!s)
            s = fl_rates_new(&rates, w, &p.node, &d);
        FL_CHECK(s == FL_OK, "%s: %s", platforms[i].name, d.message);
        for (size_t k = 0; !s && k < fl_policies_count; k++)
            for (size_t n = 0; n < sizeof disasters / sizeof *disasters && !fl_reads_of(fl_policies[k]).server_needs;
                 n++)
                if (fl_nightly() || (i + k + n) % 3 == 0) /* each policy meets two disasters on each platform */
                    play(&p, &facts, w, rates, fl_policies[k], &disasters[n]);
        fl_rates_free(rates);
        fl_workload_free(w);
        fl_facts_free(&facts);
        fl_platform_free(&p);
    }
}

FL_SUITE("survive", {"every policy in every weather", test_weather}, {"runs with faults", test_runs})
