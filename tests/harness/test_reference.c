/* MF-GPOEO's released controller and a second implementation of it (tests/reference/README.md): the same sets at every
 * step, under drawn applications and on drawn numbers. FL_REFERENCE_SEEDS=400 draws more of both. */
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "policies/registry/registry.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "tests/reference/draw.h"
#include "tests/reference/mfgpoeo.h"
#include "tests/reference/script.h"
#include "tests/support/suite.h"

#define APPLICATIONS 40
#define SCRIPTS 160
#define SCRIPT_STEPS 3000
#define STEP_NS INT64_C(100000000)

static const struct {
    int id;
    const char *name;
    double first;
} control[] = {{FL_SET_SM_MHZ, "SM clock", FL_DEFAULT},
               {FL_SET_MEM_MHZ, "memory clock", FL_DEFAULT},
               {FL_SET_RECORDS, "records", 0},
               {FL_SET_POWER_LIMIT_W, "power limit", FL_DEFAULT}};
#define CONTROLS FL_COUNT(control)
enum { SM, MEM, RECORDS };

typedef struct held {       /* what holds after a step */
    double value[CONTROLS]; /* the last set of each control */
    bool limit_reset;       /* in this very step */
    int64_t delay_ns;       /* until the next step */
} held;

typedef struct kept_step {
    int64_t time_ns;
    held ours;
} kept_step;

typedef struct comparison { /* of one seed */
    const fl_policy *policy;
    int seed;
    fl_instance *follower; /* the reference, on the samples of our run */
    held ours, followed;
    kept_step *kept; /* of our run */
    size_t count, room, at;
    uint64_t sets;
    bool differs;
    char told[4096]; /* the first difference; the rest follows from it */
} comparison;

typedef struct machine {
    fl_platform platform;
    fl_facts facts;
} machine;

static void must(fl_status s, const fl_diag *d) {
    if (s) {
        printf("\n    %s\n", d->message);
        exit(1);
    }
}

static void open_machine(machine *m) {
    fl_diag d = {0};
    must(fl_platform_open("rtx3080ti", 0, &m->platform, &d), &d);
    must(fl_node_choose(&m->platform.node, &(fl_node_choice){0}, &d), &d);
    must(fl_facts_make(&m->platform.node, 1, &m->facts, &d), &d);
}

static void close_machine(machine *m) {
    fl_facts_free(&m->facts);
    fl_platform_free(&m->platform);
}

static const fl_policy *our_policy(void) {
    for (size_t i = 0; i < fl_policies_count; i++)
        if (strcmp(fl_policies[i]->name, "mf-gpoeo") == 0)
            return fl_policies[i];
    printf("\n    there is no policy mf-gpoeo\n");
    exit(1);
}

static fl_instance *open_instance(const fl_policy *policy, const fl_facts *facts, const fl_layer *layer) {
    fl_diag d = {0};
    fl_instance *in;
    const fl_instance_options o = {.policy = policy, .facts = facts, .layer = layer, .layer_count = layer != NULL};
    must(fl_instance_open(&in, &o, &d), &d);
    return in;
}

/* ---- one step of both --------------------------------------------------------------------------------------------
 */

static held nothing_set(void) {
    held h = {.limit_reset = false};
    for (size_t i = 0; i < CONTROLS; i++)
        h.value[i] = control[i].first;
    return h;
}

static void hold(held *h, const fl_decision *decision) {
    const fl_decided *set = decision->gpu[0];
    for (size_t i = 0; i < CONTROLS; i++)
        if (set[control[i].id].set)
            h->value[i] = set[control[i].id].value;
    h->limit_reset = set[FL_SET_POWER_LIMIT_W].set;
    h->delay_ns = decision->delay_ns;
}

static void tell(comparison *c, const char *how, int64_t t, const char *what, double ours, double reference,
                 const fl_decision *decision) {
    char state[1024];
    const size_t size = sizeof c->told;
    size_t used =
        (size_t)snprintf(c->told, size, "seed %d, %s, at %.1f s: %s %g, the reference %g\n      ours:", c->seed, how,
                         (double)t / 1e9, what, ours, reference);
    for (uint32_t i = 0; decision && i < c->policy->probe_count && used < size; i++)
        used += (size_t)snprintf(c->told + used, size - used, " %s %.9g", c->policy->probe[i].name, decision->probe[i]);
    if (used < size)
        snprintf(c->told + used, size - used, "\n      reference: %s", ref_state_text(0, state, sizeof state));
    c->differs = true;
}

static void compare(comparison *c, const char *how, int64_t t, const held *ours, const held *reference,
                    const fl_decision *decision) {
    for (size_t i = 0; i < CONTROLS && !c->differs; i++)
        if (ours->value[i] != reference->value[i])
            tell(c, how, t, control[i].name, ours->value[i], reference->value[i], decision);
    if (!c->differs && ours->limit_reset != reference->limit_reset)
        tell(c, how, t, "reset of the power limit", ours->limit_reset, reference->limit_reset, decision);
    if (!c->differs && ours->delay_ns != reference->delay_ns)
        tell(c, how, t, "ns to the next step", (double)ours->delay_ns, (double)reference->delay_ns, decision);
}

/* Our controller decided; the reference gets the same sample and records. */
static fl_status follow(comparison *c, const char *how, const fl_sample *sample, const fl_decision *decision,
                        fl_diag *d) {
    const held before = c->ours;
    hold(&c->ours, decision);
    c->sets += memcmp(before.value, c->ours.value, sizeof before.value) != 0;
    if (c->differs)
        return FL_OK;
    const fl_decision *followed;
    const fl_status s = fl_instance_step(c->follower, sample, &followed, d);
    if (s)
        return s;
    hold(&c->followed, followed);
    compare(c, how, sample->time_ns, &c->ours, &c->followed, decision);
    return FL_OK;
}

/* ---- drawn applications ------------------------------------------------------------------------------------------
 */

static fl_status our_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    comparison *c = user;
    const fl_status s = follow(c, "on the same records", sample, decision, d);
    if (c->count == c->room) {
        c->room = c->room ? 2 * c->room : 4096;
        c->kept = realloc(c->kept, c->room * sizeof *c->kept);
        if (!c->kept)
            return FL_NO_MEMORY;
    }
    c->kept[c->count++] = (kept_step){sample->time_ns, c->ours};
    return s;
}

static fl_status reference_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    (void)d;
    comparison *c = user;
    hold(&c->followed, decision);
    if (c->differs)
        return FL_OK;
    if (c->at == c->count || c->kept[c->at].time_ns != sample->time_ns)
        tell(c, "each on its own run", sample->time_ns, "a step", (double)c->count, (double)c->at, NULL);
    else
        compare(c, "each on its own run", sample->time_ns, &c->kept[c->at].ours, &c->followed, NULL);
    c->at++;
    return FL_OK;
}

static double run(const fl_run_options *common, const fl_policy *policy, fl_step_function on_step, comparison *c) {
    fl_diag d = {0};
    fl_run_options o = *common;
    fl_run_result result = {0};
    o.policy = policy;
    o.on_step = on_step;
    o.user = c;
    c->ours = c->followed = nothing_set();
    must(fl_run(&o, &result, &d), &d);
    const double seconds = result.makespan_s;
    fl_run_result_free(&result);
    return seconds;
}

static int runs_reached[REF_BRANCH_COUNT];

static void count_reached(void) {
    for (int i = 0; i < REF_BRANCH_COUNT; i++)
        runs_reached[i] += ref_reached[i] > 0;
    memset(ref_reached, 0, sizeof ref_reached);
}

static void print_reached(int runs) {
    for (int i = 0; i < REF_BRANCH_COUNT; i++)
        printf("    %4d of %d runs: %s%s\n", runs_reached[i], runs, ref_branch_words[i],
               runs_reached[i] ? ""
               : REF_NEVER(i)  ? " (the rules rule it out)"
                               : " NOT REACHED");
    memset(runs_reached, 0, sizeof runs_reached);
}

/* Returns in how many steps something was set. */
static uint64_t compare_application(const machine *m, int seed) {
    fl_diag d = {0};
    fl_workload *w;
    char drawn[256], state[1024];
    const fl_node_spec *node = &m->platform.node;
    must(ref_draw((uint64_t)seed, &node->device[node->gpu[0]], &w, drawn, sizeof drawn, &d), &d);
    fl_run_options o = {.w = w, .spec = node, .facts = &m->facts};
    must(fl_rates_new(&o.rates, w, node, &d), &d);

    comparison c = {.policy = our_policy(), .seed = seed, .follower = open_instance(&ref_policy, &m->facts, NULL)};
    const double seconds = run(&o, c.policy, our_step, &c);
    fl_instance_close(c.follower);
    ref_close_all();
    memset(ref_reached, 0, sizeof ref_reached);
    run(&o, &ref_policy, reference_step, &c);
    count_reached();
    if (!c.differs && c.at != c.count)
        tell(&c, "each on its own run", 0, "steps", (double)c.count, (double)c.at, NULL);
    FL_CHECK(!c.differs, "%s\n", c.told);
    printf("    %3d: %s\n         %.0f s, %d sets, at the end: %s\n", seed, drawn, seconds, (int)c.sets,
           ref_state_text(0, state, sizeof state));
    ref_close_all();
    free(c.kept);
    fl_rates_free(o.rates);
    fl_workload_free(w);
    return c.sets;
}

static int seeds(int standard) {
    const char *more = getenv("FL_REFERENCE_SEEDS");
    return more && atoi(more) > standard ? atoi(more) : standard;
}

static void test_applications(void) {
    machine m;
    open_machine(&m);
    printf("\n");
    uint64_t sets = 0;
    const int count = seeds(fl_nightly() ? APPLICATIONS : APPLICATIONS / 5);
    for (int seed = 1; seed <= count; seed++)
        sets += compare_application(&m, seed);
    FL_CHECK(sets > 10 * (uint64_t)count, "%d sets in all: nothing was compared", (int)sets);
    print_reached(count);
    close_machine(&m);
}

/* ---- drawn numbers -----------------------------------------------------------------------------------------------
 */

/* The caller looks at *c. */
static void compare_script(const machine *m, comparison *c, int seed, const fl_layer *layer) {
    static ref_script script;
    fl_diag d = {0};
    *c = (comparison){.policy = our_policy(), .seed = seed, .ours = nothing_set(), .followed = nothing_set()};
    fl_instance *mine = open_instance(c->policy, &m->facts, layer);
    c->follower = open_instance(&ref_policy, &m->facts, NULL);
    ref_script_open(&script, (uint64_t)seed, &m->facts.gpu[0]);
    for (int i = 0; i < SCRIPT_STEPS && !c->differs; i++) {
        ref_script_advance(&script, i * STEP_NS, c->ours.value[SM], c->ours.value[MEM]);
        const bool records = c->ours.value[RECORDS] > 0;
        const fl_sample sample = {.time_ns = i * STEP_NS,
                                  .step = (uint64_t)i,
                                  .gpu_count = 1,
                                  .kind_count = REF_SCRIPT_KINDS,
                                  .gpu = &script.sample,
                                  .record = records ? script.record : NULL,
                                  .kind = script.kind,
                                  .record_count = records ? script.record_count : 0};
        const fl_decision *decision;
        must(fl_instance_step(mine, &sample, &decision, &d), &d);
        must(follow(c, "on numbers", &sample, decision, &d), &d);
    }
    fl_instance_close(mine);
    fl_instance_close(c->follower);
    ref_close_all();
}

static void test_numbers(void) {
    static comparison c;
    machine m;
    open_machine(&m);
    printf("\n");
    const int count = seeds(fl_nightly() ? SCRIPTS : SCRIPTS / 4);
    for (int seed = 1; seed <= count; seed++) {
        memset(ref_reached, 0, sizeof ref_reached);
        compare_script(&m, &c, seed, NULL);
        count_reached();
        FL_CHECK(!c.differs, "%s\n", c.told);
    }
    for (int i = 0; i < REF_BRANCH_COUNT; i++)
        FL_CHECK(REF_NEVER(i) ? !runs_reached[i] : count < SCRIPTS || runs_reached[i] > 0, "%d runs reach: %s", runs_reached[i],
                 ref_branch_words[i]);
    print_reached(count);
    close_machine(&m);
}

/* A controller with other settings is found out, by one of so many runs at the latest. */
static void test_planted(void) {
    static comparison c;
    static const struct {
        const char *name, *text;
        int within;
    } row[] = {{"con_perf", "0.052", 5},  {"kp", "2.9", 5},        {"ki", "0.02", 40},        {"kd", "1.2", 40},
               {"th_gap", "1", 40},       {"th_cover", "0.9", 40}, {"th_ev", "0.2", 40},      {"window_s", "5", 1},
               {"window_max_s", "8", 40}, {"memory", "0", 10},     {"objective", "ed2p", 40}, {"period_ms", "200", 1}};
    machine m;
    open_machine(&m);
    for (size_t i = 0; i < FL_COUNT(row); i++) {
        const fl_setting setting = {.name = row[i].name, .text = row[i].text};
        const fl_layer layer = {.origin = "test", .setting = &setting, .count = 1};
        int seed = 0;
        for (c.differs = false; seed < row[i].within && !c.differs; seed++)
            compare_script(&m, &c, seed + 1, &layer);
        FL_CHECK(c.differs, "%s = %s: %d runs differ in nothing", row[i].name, row[i].text, seed);
        if (c.differs)
            printf("\n    %s = %s: %.100s", row[i].name, row[i].text, c.told);
    }
    printf("\n");
    close_machine(&m);
}

FL_SUITE("reference", {"the same sets in drawn applications", test_applications},
         {"the same sets on drawn numbers", test_numbers}, {"another controller is found out", test_planted})
