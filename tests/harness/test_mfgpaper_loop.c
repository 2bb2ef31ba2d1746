/* MF-GPOEO in a closed loop: the simulated RTX 3080 Ti under workloads of known kind. Slowdown stays below 5 %, energy
 * is saved, memory clocks fall where they do not matter; a controller that stays at the top clock passes none of it. */
#include "harness/input/platform.h"
#include "policies/random.h"
#include "policies/registry.h"
#include "sim/run.h"
#include "tests/support/suite.h"

#include <math.h>

typedef struct load_case {
    const char *name;
    double tc, tm, tl, alpha, beta;
    double gap_us;
    double mem_mhz;  /* of the best static clocks, and at which most of the time is to be spent */
    bool alternates; /* every 2 s other work under the same names */
} load_case;

static const load_case loads[] = {
    {"bound by compute", 0.6, 0.35, 0.5, 0.75, 0.4, 20, 9501, false},
    {"bound by memory", 0.3, 0.98, 0.1, 0.5, 1, 20, 9501, false},
    {"memory clock irrelevant", 0.35, 0.003, 0.65, 0.4, 0.02, 200, 810, false},
    {"a little of both, with gaps", 0.5, 0.1, 0.4, 0.5, 0.15, 400, 5001, false},
    {"alternating work", 0.6, 0.35, 0.5, 0.8, 0.4, 40, 9501, true},
};

typedef struct rig {
    fl_platform platform;
    fl_workload *w;
    fl_rates *rates;
    fl_facts facts;
} rig;

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        fl_diag d_ = {0}, *d = &d_;                                                                                    \
        if ((call) != FL_OK) {                                                                                         \
            printf("\n    %s\n", d->message);                                                                          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static uint32_t add_class(fl_workload *w, const load_case *c, uint32_t name, double sense) {
    const fl_load load = {.tc = c->tc * sense,
                          .tm = c->tm,
                          .tl = c->tl,
                          .alpha = c->alpha,
                          .beta = c->beta,
                          .sm_demand = 1,
                          .ref_sm_mhz = 2055,
                          .ref_mem_mhz = 9501};
    const fl_kernel_kind kind = {
        .name = "kernel", .name_id = name, .grid = {400 * (name + 1), 1, 1}, .block = {256, 1, 1}};
    uint32_t id;
    MUST(fl_workload_add_class(w, &load, &kind, &id, d));
    return id;
}

/* 1000 s: four kinds of kernels, 0.5 to 4 ms, scattered by a tenth. */
static void open_rig(rig *r, const load_case *c) {
    static const double us[] = {500, 1000, 2000, 4000}, sense[] = {1, 0.9, 1.1, 1};
    fl_random random = fl_random_seed(3, 5);
    uint32_t class_id[4], stream;
    int64_t total = 0;
    MUST(fl_platform_open("rtx3080ti", 1, &r->platform, d));
    r->platform.node.device[0].thermal.period_ns = 0; /* no heat: the default clocks stay as good as they were */
    MUST(fl_facts_make(&r->platform.node, 1, &r->facts, d));
    MUST(fl_workload_new(&r->w, c->name, d));
    for (uint32_t k = 0; k < 4; k++)
        class_id[k] = add_class(r->w, c, k, sense[k]);
    MUST(fl_workload_add_stream(r->w, 0, 1, 0, &stream, d));
    for (uint32_t i = 0; total < INT64_C(1000000000000); i++) {
        const bool second = c->alternates && total / INT64_C(2000000000) % 2;
        const double scale = second && i % 4 == 1 ? 1.8 : 1; /* the same kind, nearly twice the work */
        const int64_t work = (int64_t)(1e3 * us[i % 4] * scale * (1 + 0.1 * fl_random_normal(&random))),
                      gap = (int64_t)(1e3 * c->gap_us * (0.5 + fl_random_unit(&random)));
        MUST(fl_workload_add_op(r->w, stream, gap, work > 0 ? work : 1, class_id[i % 4], d));
        total += work + gap;
    }
    MUST(fl_workload_finish(r->w, 1, d));
    MUST(fl_rates_new(&r->rates, r->w, &r->platform.node, d));
}

static void close_rig(rig *r) {
    fl_rates_free(r->rates);
    fl_workload_free(r->w);
    fl_facts_free(&r->facts);
    fl_platform_free(&r->platform);
}

static const fl_policy *policy_named(const char *name) {
    for (size_t i = 0; i < fl_policies_count; i++)
        if (strcmp(fl_policies[i]->name, name) == 0)
            return fl_policies[i];
    return NULL;
}

static void run(const rig *r, const char *policy, const char *setting, const char *text, double sm_mhz, double mem_mhz,
                fl_run_result *result) {
    const fl_setting one = {.name = setting, .text = text};
    const fl_layer layer = {.origin = "test", .setting = &one, .count = 1};
    const fl_run_options o = {.w = r->w,
                              .rates = r->rates,
                              .spec = &r->platform.node,
                              .facts = &r->facts,
                              .policy = policy ? policy_named(policy) : NULL,
                              .layer = &layer,
                              .layer_count = setting ? 1 : 0,
                              .first_sm_mhz = sm_mhz,
                              .first_mem_mhz = mem_mhz};
    MUST(fl_run(&o, result, d));
}

/* Saving of the best static SM clock at that memory clock, in percent: every third gear down to where 5 % are lost. */
static double best_static(const rig *r, const load_case *c, const fl_run_result *base) {
    double best = 0;
    for (int gear = 123; gear >= 0; gear -= 3) {
        fl_run_result result;
        run(r, NULL, NULL, NULL, 210 + 15 * gear, c->mem_mhz, &result);
        const bool within = result.makespan_s < 1.05 * base->makespan_s;
        if (within)
            best = fmax(best, 100 * (1 - result.energy_j / base->energy_j));
        fl_run_result_free(&result);
        if (!within)
            break;
    }
    return best;
}

static double mem_share(const fl_run_result *r, double mhz) {
    int64_t ps = 0;
    for (size_t i = 0; i < r->residence_count; i++)
        ps += r->residence[i].mem_mhz == mhz ? r->residence[i].ps : 0;
    return (double)ps / (double)r->makespan_ps;
}

/* What MF-GPOEO promises, and what it gave; says why not. A minute or two of 1000 s go into the search. */
static bool keeps(const load_case *c, const fl_run_result *base, double best_pct, const fl_run_result *r, char *why,
                  size_t size) {
    const double slowdown_pct = 100 * (r->makespan_s / base->makespan_s - 1);
    const double saving_pct = 100 * (1 - r->energy_j / base->energy_j);
    snprintf(why, size, "%s: %.2f %% slower, %.1f of %.1f %% of energy saved, %.0f %% of the time at %g MHz", c->name,
             slowdown_pct, saving_pct, best_pct, 100 * mem_share(r, c->mem_mhz), c->mem_mhz);
    return slowdown_pct < 5 && saving_pct >= 0.5 * best_pct && mem_share(r, c->mem_mhz) > 0.6;
}

static void test_loads(void) {
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        const load_case *c = &loads[i];
        rig r = {.w = NULL};
        fl_run_result base, found, top, printed;
        char why[256];
        open_rig(&r, c);
        run(&r, NULL, NULL, NULL, 0, 0, &base);
        run(&r, "mf-gpoeo-extended", NULL, NULL, 0, 0, &found);
        run(&r, "maxfreq", NULL, NULL, 0, 0, &top);
        run(&r, "mf-gpoeo-extended", "pid", "printed", 0, 0, &printed);
        const double best = best_static(&r, c, &base);
        FL_CHECK(best > 5, "%s: static clocks save %g %%", c->name, best);
        const bool good = keeps(c, &base, best, &found, why, sizeof why);
        FL_CHECK(good, "%s", why);

        FL_CHECK(!keeps(c, &base, best, &top, why, sizeof why), "at the top clock: %s", why);
        /* As printed it stays where it starts: on some loads that alone saves something. */
        FL_CHECK(printed.energy_j > found.energy_j, "%s: the controller as printed saves no less", c->name);
        FL_CHECK(found.counts.faults == 0 && found.counts.snapped == 0, "%s: faults", c->name);
        fl_run_result_free(&base), fl_run_result_free(&found), fl_run_result_free(&top), fl_run_result_free(&printed);
        close_rig(&r);
    }
}

FL_SUITE("mfgpaper_loop", {"loads", test_loads})
