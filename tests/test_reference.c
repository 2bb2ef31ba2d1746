/* MF-GPOEO's released controller and a second implementation of it (tests/reference/README.md): the same sets in seeded
 * runs, each drawing an application of its own. FL_REFERENCE_SEEDS=400 draws more. */
#include "harness/input/node_choice.h"
#include "harness/input/platform.h"
#include "policies/registry.h"
#include "sim/run.h"
#include "tests/reference/draw.h"
#include "tests/reference/mfgpoeo.h"
#include "tests/reference/script.h"
#include "tests/support/suite.h"

#define SEEDS 40

static const int controls[] = {FL_SET_SM_MHZ, FL_SET_MEM_MHZ, FL_SET_RECORDS, FL_SET_POWER_LIMIT_W};
static const char *const control_name[] = {"SM clock", "memory clock", "records", "power limit"};
#define CONTROLS FL_COUNT(controls)

typedef struct step { /* what holds after a step: the last set of each control */
    int64_t time_ns;
    double held[CONTROLS];
} step;

typedef struct steps {
    step *at;
    size_t count, room;
} steps;

typedef struct runs { /* of one seed */
    uint64_t seed;
    steps driven;           /* by our controller */
    double held[CONTROLS];  /* in the present run */
    double other[CONTROLS]; /* by the one that only follows */
    fl_instance *follower;
    size_t at;
    bool differs;
    char state[1024];
} runs;

static const fl_policy *ours(void) {
    if (getenv("FL_REFERENCE_SELF"))
        return &ref_policy;
    for (size_t i = 0; i < fl_policies_count; i++)
        if (strcmp(fl_policies[i]->name, "mf-gpoeo") == 0)
            return fl_policies[i];
    return NULL;
}

static void must(fl_status s, const fl_diag *d) {
    if (s) {
        printf("\n    %s\n", d->message);
        exit(1);
    }
}

static void at_default(double *held) {
    for (size_t i = 0; i < CONTROLS; i++)
        held[i] = controls[i] == FL_SET_RECORDS ? 0 : FL_DEFAULT;
}

static void hold(double *held, const fl_decision *decision) {
    for (size_t i = 0; i < CONTROLS; i++)
        if (decision->gpu[0][controls[i]].set)
            held[i] = decision->gpu[0][controls[i]].value;
}

/* The probes of our controller, as far as they have values. */
static void probes_text(const fl_policy *p, const fl_decision *decision, char *buf, size_t size) {
    size_t used = 0;
    *buf = '\0';
    for (uint32_t i = 0; i < p->probe_count && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, " %s %.9g", p->probe[i].name, decision->probe[i]);
}

/* The first difference of a run is told, with both states; the rest follows from it. */
static void compare(runs *r, const char *how, int64_t t, const double *ours, const double *reference) {
    for (size_t i = 0; i < CONTROLS && !r->differs; i++)
        if (ours[i] != reference[i]) {
            char text[1024];
            FL_CHECK(false, "seed %d, %s, at %.1f s: %s %g, the reference %g\n      ours:%s\n      reference: %s",
                     (int)r->seed, how, (double)t / 1e9, control_name[i], ours[i], reference[i], r->state,
                     ref_state_text(0, text, sizeof text));
            r->differs = true;
        }
}

/* Our controller drives; the reference gets the same samples and records. */
static fl_status our_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    runs *r = user;
    hold(r->held, decision);
    if (r->driven.count == r->driven.room) {
        r->driven.room = r->driven.room ? 2 * r->driven.room : 4096;
        r->driven.at = realloc(r->driven.at, r->driven.room * sizeof *r->driven.at);
        if (!r->driven.at)
            exit(1);
    }
    step *s = &r->driven.at[r->driven.count++];
    s->time_ns = sample->time_ns;
    memcpy(s->held, r->held, sizeof s->held);
    if (r->differs)
        return FL_OK;
    probes_text(ours(), decision, r->state, sizeof r->state);
    const fl_decision *followed;
    const fl_status status = fl_instance_step(r->follower, sample, &followed, d);
    if (status)
        return status;
    hold(r->other, followed);
    compare(r, "on the same records", sample->time_ns, r->held, r->other);
    return FL_OK;
}

/* The reference drives; its sets are held to those of our own run. */
static fl_status reference_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    (void)d;
    runs *r = user;
    hold(r->held, decision);
    if (r->differs || r->at >= r->driven.count)
        return FL_OK;
    const step *s = &r->driven.at[r->at++];
    if (s->time_ns != sample->time_ns) {
        FL_CHECK(false, "seed %d: steps at %lld and %lld ns", (int)r->seed, (long long)s->time_ns,
                 (long long)sample->time_ns);
        r->differs = true;
        return FL_OK;
    }
    compare(r, "each on its own run", s->time_ns, s->held, r->held);
    return FL_OK;
}

/* ---- one seed ---- */

static fl_run_result run(const fl_run_options *common, const fl_policy *policy, fl_step_function on_step, runs *r) {
    fl_diag d = {0};
    fl_run_options o = *common;
    fl_run_result result = {0};
    o.policy = policy;
    o.on_step = on_step;
    o.user = r;
    at_default(r->held);
    at_default(r->other);
    must(fl_run(&o, &result, &d), &d);
    return result;
}

static int runs_reached[REF_BRANCH_COUNT]; /* by the reference on its own run */

static void compare_seed(const fl_platform *platform, const fl_facts *facts, uint64_t seed) {
    fl_diag d = {0};
    fl_workload *w;
    char drawn[256];
    must(ref_draw(seed, &platform->node.device[platform->node.gpu[0]], &w, drawn, sizeof drawn, &d), &d);
    fl_run_options o = {.w = w, .spec = &platform->node, .facts = facts};
    must(fl_rates_new(&o.rates, w, &platform->node, &d), &d);

    runs r = {.seed = seed};
    must(fl_instance_open(&r.follower, &(fl_instance_options){.policy = &ref_policy, .facts = facts}, &d), &d);
    fl_run_result a = run(&o, ours(), our_step, &r);
    fl_instance_close(r.follower);
    ref_close_all();
    memset(ref_reached, 0, sizeof ref_reached);
    fl_run_result b = run(&o, &ref_policy, reference_step, &r);
    FL_CHECK(r.differs || r.at == r.driven.count, "seed %d: %zu steps, the reference %zu", (int)seed, r.driven.count,
             r.at);
    for (int i = 0; i < REF_BRANCH_COUNT; i++)
        runs_reached[i] += ref_reached[i] > 0;
    char text[1024];
    printf("    %3d: %s; %.0f s, %s: %s\n", (int)seed, drawn, a.makespan_s, r.differs ? "DIFFERS" : "same",
           ref_state_text(0, text, sizeof text));
    ref_close_all();
    free(r.driven.at);
    fl_run_result_free(&a);
    fl_run_result_free(&b);
    fl_rates_free(o.rates);
    fl_workload_free(w);
}

static int seeds(void) {
    const char *more = getenv("FL_REFERENCE_SEEDS");
    return more && atoi(more) > SEEDS ? atoi(more) : SEEDS;
}

static void print_reached(void) {
    printf("\n");
    for (int i = 0; i < REF_BRANCH_COUNT; i++)
        printf("    %4d runs  %s%s\n", runs_reached[i], ref_branch_words[i],
               runs_reached[i] ? ""
               : REF_NEVER(i)  ? " (the rules rule it out)"
                               : " NOT REACHED");
}

static void test_same_gears(void) {
    fl_diag d = {0};
    fl_platform platform;
    fl_facts facts;
    must(fl_platform_open("rtx3080ti", 0, &platform, &d), &d);
    must(fl_node_choose(&platform.node, &(fl_node_choice){0}, &d), &d);
    must(fl_facts_make(&platform.node, 1, &facts, &d), &d);
    printf("\n");
    for (int seed = 1; seed <= seeds(); seed++)
        compare_seed(&platform, &facts, (uint64_t)seed);
    fl_facts_free(&facts);
    fl_platform_free(&platform);
    print_reached();
}

/* ---- a GPU of numbers ---- */

#define SCRIPTS 160
#define SCRIPT_S 300

static fl_decided held_value(const double *held, int control) {
    for (size_t i = 0; i < CONTROLS; i++)
        if (controls[i] == control)
            return (fl_decided){.value = held[i]};
    return (fl_decided){.value = FL_DEFAULT};
}

static void compare_script(const fl_facts *facts, uint64_t seed) {
    static ref_script script;
    fl_diag d = {0};
    runs r = {.seed = seed};
    fl_instance *mine;
    must(fl_instance_open(&mine, &(fl_instance_options){.policy = ours(), .facts = facts}, &d), &d);
    must(fl_instance_open(&r.follower, &(fl_instance_options){.policy = &ref_policy, .facts = facts}, &d), &d);
    at_default(r.held);
    at_default(r.other);
    ref_script_open(&script, seed, &facts->gpu[0]);
    for (uint64_t i = 0; i < SCRIPT_S * 10 && !r.differs; i++) {
        const int64_t now = (int64_t)i * 100000000;
        ref_script_advance(&script, now, held_value(r.held, FL_SET_SM_MHZ).value,
                           held_value(r.held, FL_SET_MEM_MHZ).value);
        const bool records = held_value(r.held, FL_SET_RECORDS).value > 0;
        const fl_sample sample = {.time_ns = now,
                                  .step = i,
                                  .gpu_count = 1,
                                  .kind_count = REF_SCRIPT_KINDS,
                                  .gpu = &script.sample,
                                  .record = records ? script.record : NULL,
                                  .kind = script.kind,
                                  .record_count = records ? script.record_count : 0};
        const fl_decision *a, *b;
        must(fl_instance_step(mine, &sample, &a, &d), &d);
        hold(r.held, a);
        probes_text(ours(), a, r.state, sizeof r.state);
        must(fl_instance_step(r.follower, &sample, &b, &d), &d);
        hold(r.other, b);
        compare(&r, "on numbers", now, r.held, r.other);
    }
    fl_instance_close(mine);
    fl_instance_close(r.follower);
    ref_close_all();
}

static void test_numbers(void) {
    fl_diag d = {0};
    fl_platform platform;
    fl_facts facts;
    must(fl_platform_open("rtx3080ti", 0, &platform, &d), &d);
    must(fl_facts_make(&platform.node, 1, &facts, &d), &d);
    memset(runs_reached, 0, sizeof runs_reached);
    for (uint64_t seed = 1; seed <= SCRIPTS; seed++) {
        memset(ref_reached, 0, sizeof ref_reached);
        compare_script(&facts, seed);
        for (int i = 0; i < REF_BRANCH_COUNT; i++)
            runs_reached[i] += ref_reached[i] > 0;
    }
    print_reached();
    fl_facts_free(&facts);
    fl_platform_free(&platform);
}

FL_SUITE("reference", {"same gears in every run", test_same_gears}, {"same gears on numbers", test_numbers})
