/* `foldline live`. */
#include "harness/cmd/machine/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "harness/live/guard/guard.h"
#include "harness/live/host/host.h"
#include "harness/live/records/records.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <cJSON.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FL_LIVE_SERVER_OPTIONS(s)                                                                                       \
    {"server",                                                                                                          \
     "URL",                                                                                                             \
     FL_OPTION_TEXT,                                                                                                    \
     &(s).url,                                                                                                          \
     0,                                                                                                                 \
     0,                                                                                                                 \
     "reads an engine's page of metrics, as http://127.0.0.1:8000/metrics (vLLM)",                                      \
     FL_FOR_SERVING},                                                                                                   \
        {"ttft", "TIME", FL_OPTION_TEXT, &(s).ttft, 0, 0, "target of its time to first token, as 2s", FL_FOR_SERVING},  \
        {"tbt", "TIME", FL_OPTION_TEXT, &(s).tbt, 0, 0, "target of its time between tokens, as 100ms", FL_FOR_SERVING}, \
    {                                                                                                                   \
        "target-share", "X", FL_OPTION_REAL, &(s).target_share, 0.5, 1, "share of tokens that must meet them (0.99)",   \
            FL_FOR_SERVING                                                                                              \
    }

static const fl_command_help help = {
    "live", "--policy NAME [--control] [--for 60s] [-o FILE] [--vendor NAME] [--gpus LIST] [--server URL]",
    "Runs a policy on this machine's GPUs. Without --control it only logs what the policy decides (shadow mode).",
    "Only --control changes anything, and it needs root: it sets the clocks, power limits or CPU settings that the "
    "policy drives (foldline list policies NAME), and writes to $FOLDLINE_STATE or /var/lib/foldline (records) and to "
    "$FOLDLINE_RUN or /run/foldline (locks). TERM, INT and HUP end the command in order. If it dies in any other way, "
    "a guardian process restores every setting; if both die, foldline restore does.\n\n"
    "For activity records, start a program with FOLDLINE_RINGS=DIR CUDA_INJECTION64_PATH=.../libfoldline-collector.so; "
    "for its markers, with NVTX_INJECTION64_PATH=.../libfoldline-collector.so too. "
    "foldline loads the vendor's library (libnvidia-ml.so.1, libze_loader.so.1, librocm_smi64.so), or the one that "
    "$FOLDLINE_NVML, $FOLDLINE_ZE or $FOLDLINE_RSMI names. foldline verify FILE reproduces the decisions of a log."};

typedef struct choice { /* as the command line has it */
    const char *policy, *log, *vendor, *gpus, *platform, *lasts, *rings, *target;
    fl_texts set, iteration;
    double min_set_ms, grace_ms, frozen_s;
    int64_t seed;
    fl_stated_facts stated;
    bool control, observe, blind, json;
} choice;

typedef struct run {
    fl_gpus gpus;
    fl_cpu_host *cpu;
    fl_kernels *kernels;
    fl_live_server server;
    fl_platform platform;
    fl_facts facts;
    fl_gpu_facts *gpu_facts;
    fl_spec spec;
    fl_offer offer; /* what this vendor's library gives it; the policy runs as it says */
    fl_layer layer[2];
    int64_t for_ns; /* 0 = until stopped */
    fl_live_log *log;
    uint64_t unsaid; /* notices that nobody would have read */
} run;

static fl_status facts_of_platform(run *r, const char *name, int64_t seed, uint32_t gpus, fl_diag *d) {
    fl_status s = fl_platform_open(name, gpus, &r->platform, d);
    if (!s)
        s = fl_facts_make(&r->platform.node, (uint64_t)seed, &r->facts, d);
    for (uint32_t i = 0; !s && i < gpus; i++) {
        fl_gpu_facts here;
        const fl_gpu_facts *there = &r->facts.gpu[i];
        s = r->gpus.back->facts(r->gpus.self, i, &here, d);
        if (!s && here.sm.count &&
            (here.sm.count != there->sm.count ||
             memcmp(here.sm.mhz, there->sm.mhz, here.sm.count * sizeof *here.sm.mhz) != 0))
            s = fl_refuse(d, "platform %s: its SM clocks are not those of GPU %u (%s)", name, i, here.name);
    }
    return s;
}

static fl_status facts_of_machine(run *r, int64_t seed, uint32_t gpus, fl_diag *d) {
    if (!(r->gpu_facts = calloc(gpus, sizeof *r->gpu_facts)))
        return fl_no_memory(d, "the facts");
    r->facts = (fl_facts){.seed = (uint64_t)seed, .gpu_count = gpus, .gpu = r->gpu_facts};
    if (r->cpu)
        fl_cpu_host_facts(r->cpu, &r->facts.host);
    else
        r->facts.host.name = "host";
    fl_status s = FL_OK;
    for (uint32_t i = 0; !s && i < gpus; i++)
        s = r->gpus.back->facts(r->gpus.self, i, &r->gpu_facts[i], d);
    return s;
}

/* Comes up within a step of control, which nobody may hold up: a pipe that is full, a terminal that was stopped. */
static void say(void *user, const char *line) {
    run *r = user;
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&p, 1, 0) == 1 && p.revents & POLLOUT)
        fl_terminal_say(stderr, "foldline live: %s", line);
    else
        r->unsaid++;
}

static fl_status open_rings(run *r, const choice *c, fl_diag *d) {
    fl_status s = fl_kernels_open(&r->kernels, c->rings, d);
    if (s)
        return s;
    fl_kernels_gpus(r->kernels, fl_gpus_position, &r->gpus);
    fl_kernels_tell(r->kernels, say, r);
    fl_kernels_iterations(r->kernels, c->iteration.item, c->iteration.count, false);
    return r->spec.policy->wakes && c->iteration.count ? fl_kernels_wakes(r->kernels, d) : FL_OK;
}

/* Activity records and markers come from the collector in the programs; without it such a policy would decide on
 * nothing.
 */
static fl_status open_kernels(run *r, const choice *c, fl_diag *d) {
    const fl_reads reads = fl_reads_of(r->spec.policy);
    const bool counts = reads.gpu_needs & FL_BIT(FL_GPU_KERNELS);
    if (reads.gpu_needs & FL_BIT(FL_GPU_ITERATIONS) && !(c->rings && c->iteration.count))
        return fl_error(d, FL_HARDWARE,
                        "policy %s needs the program's markers: give --rings DIR and --iteration NAME, and start the "
                        "programs with the collector",
                        r->spec.policy->name);
    if (c->rings)
        return open_rings(r, c, d);
    if (!reads.records && !counts)
        return FL_OK;
    return fl_error(d, FL_HARDWARE,
                    "policy %s needs activity records: give --rings DIR, and start the programs with the collector",
                    r->spec.policy->name);
}

/* What is wrong in the command line is told as that, whether or not this machine has a GPU. */
static fl_status check_usage(run *r, const choice *c, fl_diag *d) {
    void *params = NULL;
    fl_status s = c->lasts ? fl_duration_parse(c->lasts, &r->for_ns, d) : FL_OK;
    if (s || !c->policy)
        return s;
    fl_plugin_watch_live();
    fl_laid none;
    s = fl_spec_open_set(c->policy, &c->set, &r->spec, d);
    if (!s)
        s = fl_plan_lay(&r->spec, NULL, &none, d); /* nothing here lays a plan out */
    if (!s)
        s = fl_params_resolve(&params, r->spec.policy, &r->spec.layer, 1, d);
    if (!s)
        fl_params_free(r->spec.policy, params);
    return s ? s : fl_live_server_check(&r->server, r->spec.policy, d);
}

/* One line each, also in shadow mode; a policy that sees nothing at all is not let at the controls. */
static fl_status tell_reach(const run *r, const choice *c, fl_diag *d) {
    const char *name = r->spec.policy->name;
    char instead[256];
    fl_reach reach;
    fl_offer_instead(&r->offer, instead, sizeof instead);
    if (*instead)
        fl_terminal_say(stderr, "foldline live: %s reads %s on %s", name, instead, r->gpus.back->vendor);
    const uint64_t given =
        (r->kernels ? FL_BIT(FL_GPU_KERNELS) : 0) | (c->iteration.count ? FL_BIT(FL_GPU_ITERATIONS) : 0);
    fl_status s = fl_reach_of(r->spec.policy, &r->gpus, r->cpu, given, &reach, d);
    if (s)
        return s;
    if (*reach.controls)
        fl_terminal_say(stderr, "foldline live: these cannot be set here: %s; control ends if %s sets one of them",
                        reach.controls, name);
    if (reach.blind && c->control && !c->blind)
        return fl_error(
            d, FL_HARDWARE,
            "policy %s has nothing to decide on here: of the signals it needs (%s) none can be read; --blind "
            "starts it all the same",
            name, reach.signals);
    if (*reach.signals)
        fl_terminal_say(stderr, "foldline live: %s needs signals that cannot be read here: %s; it %s", name,
                        reach.signals, reach.blind ? "has nothing to decide on" : "may never decide");
    return FL_OK;
}

static fl_status open_run(run *r, const choice *c, fl_diag *d) {
    fl_status s = check_usage(r, c, d);
    if (!s)
        s = fl_vendor_open(&r->gpus, c->vendor, c->gpus, NULL, d);
    const bool simulated = !s && fl_gpus_simulated(&r->gpus); /* this machine's CPU is none of its node */
    if (!s && r->spec.policy) {
        fl_offer_of(&r->offer, r->spec.policy, r->gpus.back->vendor, c->iteration.count > 0);
        r->spec.policy = &r->offer.here;
        s = open_kernels(r, c, d);
    }
    const uint64_t needs = r->spec.policy ? fl_reads_of(r->spec.policy).host_needs & ~FL_HOST_KNOWS : 0,
                   drives = r->spec.policy ? r->spec.policy->host_drives : 0;
    if (!s && (needs || drives) && !simulated)
        s = fl_cpu_host_open(&r->cpu, NULL, needs, d);
    const uint32_t gpus = s ? 0 : r->gpus.back->count(r->gpus.self);
    if (!s)
        s = c->platform ? facts_of_platform(r, c->platform, c->seed, gpus, d) : facts_of_machine(r, c->seed, gpus, d);
    fl_facts_state(&c->stated, &r->facts);
    if (!s)
        s = fl_live_server_open(&r->server, r->spec.policy, c->control, &r->facts, d);
    if (!s && r->spec.policy) {
        r->layer[0] = c->platform ? fl_platform_layer(&r->platform, r->spec.policy->name) : (fl_layer){0};
        r->layer[1] = r->spec.layer;
        s = tell_reach(r, c, d);
    }
    return s;
}

static fl_status open_log(run *r, const choice *c, double min_set_ms, fl_diag *d) {
    fl_head head = {0};
    char text[64];
    fl_status s = fl_live_log_head(&head, r->spec.policy, &r->facts, r->layer, 2, c->platform,
                                   c->control ? "foldline live, control" : "foldline live, shadow", d);
    snprintf(text, sizeof text, "%.17g", min_set_ms);
    if (!s &&
        (!fl_head_set(&head, "min_set_ms", text) || (r->spec.plugin && !fl_head_set(&head, "plugin", r->spec.plugin))))
        s = fl_no_memory(d, "the log");
    if (!s)
        s = fl_live_log_open(&r->log, c->log, &head, r->spec.policy, d);
    fl_head_free(&head);
    return s;
}

static void close_run(run *r, const choice *c) {
    fl_spec_free(&r->spec);
    fl_live_server_close(&r->server);
    r->facts.server = NULL; /* the server's own */
    r->facts.server_count = 0;
    if (c->platform) {
        fl_facts_free(&r->facts);
        fl_platform_free(&r->platform);
    }
    free(r->gpu_facts);
    fl_cpu_host_close(r->cpu);
    fl_kernels_close(r->kernels);
    fl_gpus_close(&r->gpus);
}

/* On the terminal once, in the log each time: it stands behind the step whose sets it is about. */
static void tell_effect(void *user, const char *line, bool again) {
    run *r = user;
    if (r->log)
        fl_live_log_note(r->log, line);
    if (!again)
        say(r, line);
}

static fl_status on_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    run *r = user;
    return r->log && decision ? fl_live_log_add(r->log, sample, decision, d) : FL_OK;
}

static bool stop(void *user) {
    (void)user;
    return fl_stop_asked();
}

static void tell(const run *r, const choice *c, const fl_live_result *x) {
    printf("%s on %u GPU%s (%s, %s) for %.3f s: %llu steps, %llu late, loop %.3g ms mean, %.3g ms longest\n",
           r->spec.policy ? r->spec.label : "observed", r->facts.gpu_count, r->facts.gpu_count == 1 ? "" : "s",
           r->gpus.back->vendor, r->gpus.back->name, (double)x->lasted_ns * 1e-9, (unsigned long long)x->steps,
           (unsigned long long)x->late, x->steps ? (double)x->sum_ns * 1e-6 / (double)x->steps : 0,
           (double)x->longest_ns * 1e-6);
    if (x->absurd)
        printf("%llu impossible readings were left out: %s\n", (unsigned long long)x->absurd, x->absurd_names);
    if (!r->spec.policy)
        return;
    printf("%llu set%s %s, %llu held back by the rate limit, %llu faults\n",
           (unsigned long long)(c->control ? x->sets : x->counts.sets), x->counts.sets == 1 ? "" : "s",
           c->control ? "made, all restored" : "decided, none made (shadow)", (unsigned long long)x->counts.held_back,
           (unsigned long long)x->counts.faults);
    if (r->kernels) {
        const fl_kernels_counts k = fl_kernels_count(r->kernels);
        printf("%llu kernels of %llu programs, %llu lost, %llu programs that ended without closing their records\n",
               (unsigned long long)k.consumed, (unsigned long long)k.programs, (unsigned long long)k.lost,
               (unsigned long long)k.ends_missing);
        if (c->iteration.count)
            printf("%llu iterations of %llu markers, %llu markers lost\n",
                   (unsigned long long)fl_kernels_marks(r->kernels)->iterations, (unsigned long long)k.marks,
                   (unsigned long long)k.marks_lost);
        if (k.elsewhere)
            printf("%llu of the kernels ran on GPUs that this command does not watch (other GPUs, MIG instances, "
                   "GPUs without a UUID)\n",
                   (unsigned long long)k.elsewhere);
        if (k.set_aside)
            printf("%llu rings of activity records were set aside\n", (unsigned long long)k.set_aside);
        if (k.unkept_kinds)
            printf("%llu kernels had classes beyond the number that is kept\n", (unsigned long long)k.unkept_kinds);
    }
    fl_live_server_tell(&r->server, stdout);
    if (x->effect.without)
        printf("%llu clock locks had no visible effect\n", (unsigned long long)x->effect.without);
    if (x->effect.foreign)
        printf("%llu settings were changed by another program\n", (unsigned long long)x->effect.foreign);
    if (x->effect.rounded)
        printf("%llu power limits were rounded by the board\n", (unsigned long long)x->effect.rounded);
    if (x->guardians_lost)
        printf("%llu guardians were lost and replaced\n", (unsigned long long)x->guardians_lost);
    if (r->unsaid)
        printf("%llu notices were not written, since nothing reads the standard error\n",
               (unsigned long long)r->unsaid);
}

static void put_count(cJSON *at, const char *key, uint64_t count) { cJSON_AddNumberToObject(at, key, (double)count); }

static void tell_json(const run *r, const choice *c, const fl_live_result *x) {
    cJSON *root = cJSON_CreateObject(), *k;
    cJSON_AddItemToObject(root, "policy", r->spec.policy ? cJSON_CreateString(r->spec.label) : cJSON_CreateNull());
    cJSON_AddStringToObject(root, "mode", c->control ? "control" : c->observe ? "observe" : "shadow");
    put_count(root, "gpus", r->facts.gpu_count);
    cJSON_AddStringToObject(root, "vendor", r->gpus.back->vendor);
    fl_json_add_real(root, "time_s", (double)x->lasted_ns * 1e-9);
    put_count(root, "steps", x->steps);
    put_count(root, "late", x->late);
    fl_json_add_real(root, "loop_mean_ms", x->steps ? (double)x->sum_ns * 1e-6 / (double)x->steps : (double)NAN);
    fl_json_add_real(root, "loop_longest_ms", (double)x->longest_ns * 1e-6);
    put_count(root, "absurd_readings", x->absurd);
    put_count(root, "sets_decided", x->counts.sets);
    put_count(root, "sets_made", c->control ? x->sets : 0);
    put_count(root, "held_back", x->counts.held_back);
    put_count(root, "faults", x->counts.faults);
    put_count(root, "locks_without_effect", x->effect.without);
    put_count(root, "foreign_changes", x->effect.foreign);
    put_count(root, "limits_rounded", x->effect.rounded);
    put_count(root, "guardians_lost", x->guardians_lost);
    cJSON_AddItemToObject(root, "kernels", k = r->kernels ? cJSON_CreateObject() : cJSON_CreateNull());
    if (r->kernels) {
        const fl_kernels_counts seen = fl_kernels_count(r->kernels);
        put_count(k, "taken", seen.consumed);
        put_count(k, "programs", seen.programs);
        put_count(k, "lost", seen.lost);
        put_count(k, "ends_missing", seen.ends_missing);
        put_count(k, "elsewhere", seen.elsewhere);
        put_count(k, "rings_set_aside", seen.set_aside);
        put_count(k, "of_unkept_kinds", seen.unkept_kinds);
        put_count(k, "markers", seen.marks);
        put_count(k, "markers_lost", seen.marks_lost);
        put_count(k, "iterations", fl_kernels_marks(r->kernels)->iterations);
    }
    fl_live_server_json(&r->server, root);
    fl_json_tell(root);
}

static fl_status go(run *r, const choice *c, fl_diag *d) {
    const double min_set_ms = c->min_set_ms >= 0 ? c->min_set_ms : 100;
    fl_live_options o = {.mode = c->control   ? FL_LIVE_CONTROL
                                 : c->observe ? FL_LIVE_OBSERVE
                                              : FL_LIVE_SHADOW,
                         .gpus = &r->gpus,
                         .cpu = r->cpu,
                         .kernels = r->kernels,
                         .server = r->server.host,
                         .facts = &r->facts,
                         .policy = r->spec.policy,
                         .layer = r->layer,
                         .layer_count = 2,
                         .gpu_needs = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1,
                         .period_ns = 100000000,
                         .min_set_interval_ns = (int64_t)(min_set_ms * 1e6),
                         .target = c->target,
                         .for_ns = r->for_ns,
                         .grace_ns = (int64_t)(c->grace_ms * 1e6),
                         .check_ns = (int64_t)(c->grace_ms * 1e4),
                         .frozen_ns = (int64_t)(c->frozen_s * 1e9),
                         .clock = fl_clock_system(),
                         .stop = stop,
                         .on_step = on_step,
                         .tell = tell_effect,
                         .user = r};
    fl_live_result x;
    fl_status s = FL_OK;
    if (c->log && r->spec.policy)
        s = open_log(r, c, min_set_ms, d);
    if (!s) {
        fl_stop_listen();
        s = fl_live(&o, &x, d);
        fl_stop_forget(); /* nothing is set any more: who does not want to wait for the log need not */
        fl_status closed = fl_live_log_close(r->log, s ? NULL : d);
        s = s ? s : closed;
    }
    if (!s)
        (c->json ? tell_json : tell)(r, c, &x);
    return s;
}

int fl_cmd_live(int argc, char **argv) {
    if (argc > 0 && !strcmp(argv[0], "--guardian"))
        return fl_guardian_main(argc - 1, argv + 1);
    fl_texts rest = {0};
    choice c = {.min_set_ms = -1, .grace_ms = 2000, .frozen_s = 10, .seed = 1};
    run r = {.server = {.target_share = 0.99}};
    const fl_option option[] = {
        {"policy", "SPEC", FL_OPTION_TEXT, &c.policy, 0, 0, "policy, or a path to a .so; parameters may follow a colon",
         FL_FOR_POLICIES | FL_MOST_USED},
        {"set", "P=V", FL_OPTION_LIST, &c.set, 0, 0, "parameter of the policy (may be repeated)",
         FL_FOR_POLICIES | FL_MOST_USED},
        {"control", NULL, FL_OPTION_FLAG, &c.control, 0, 0, "sets what the policy decides (needs root)",
         FL_FOR_POLICIES | FL_MOST_USED},
        {"blind", NULL, FL_OPTION_FLAG, &c.blind, 0, 0,
         "with --control: also if no signal of the policy can be read (for a cap that is set once)", FL_FOR_POLICIES},
        {"observe", NULL, FL_OPTION_FLAG, &c.observe, 0, 0, "reads only, without a policy", FL_FOR_POLICIES},
        {"for", "TIME", FL_OPTION_TEXT, &c.lasts, 0, 0, "ends after 60s, 5m, 1h or 500ms (runs until stopped)",
         FL_MOST_USED},
        {"o", "FILE", FL_OPTION_OUTPUT, &c.log, 0, 0, "the log of decisions: every step, what was seen and decided",
         FL_FOR_OUTPUT | FL_MOST_USED},
        {"vendor", "auto|nvidia|intel|amd", FL_OPTION_CHOICE, &c.vendor, 0, 0, FL_VENDOR_HELP, FL_FOR_MACHINE},
        {"gpus", "LIST", FL_OPTION_TEXT, &c.gpus, 0, 0, "indices or UUIDs joined by commas (all of the vendor)",
         FL_FOR_MACHINE},
        {"rings", "DIR", FL_OPTION_TEXT, &c.rings, 0, 0,
         "takes activity records of programs started with FOLDLINE_RINGS=DIR and the collector", FL_FOR_INPUT},
        {"iteration", "NAME", FL_OPTION_LIST, &c.iteration, 0, 0,
         "with --rings: the NVTX range or mark that begins an iteration (may be repeated)", FL_FOR_INPUT},
        {"target", "FILE", FL_OPTION_TEXT, &c.target, 0, 0,
         "power that the GPUs are to draw together, over time from now on (t_ns, watts); read again when it changes",
         FL_FOR_INPUT},
        FL_LIVE_SERVER_OPTIONS(r.server),
        {"platform", "NAME", FL_OPTION_TEXT, &c.platform, 0, 0, "facts and parameters of a platform (the machine's)",
         FL_FOR_MACHINE},
        FL_STATED_FACTS_OPTIONS(c.stated),
        {"seed", "N", FL_OPTION_INT, &c.seed, 1, 9e15, "seed of the policy (1)"},
        {"min-set-ms", "X", FL_OPTION_REAL, &c.min_set_ms, 0, 1e6,
         "shortest time between two sets of one control (100)", FL_FOR_POLICIES},
        {"grace-ms", "X", FL_OPTION_REAL, &c.grace_ms, 20, 1e6,
         "how late a step may be before the guardian acts (2000)"},
        {"frozen-s", "X", FL_OPTION_REAL, &c.frozen_s, 0, 1e6,
         "how long an energy counter may stand still before it counts as failed; 0 = forever (10)"},
        FL_JSON_OPTION(&c.json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    fl_status s = FL_OK;
    if (rest.count)
        s = fl_refuse(&d, "'%s': expected options only", rest.item[0]);
    else if (c.observe ? c.policy || c.control : !c.policy)
        s = fl_refuse(&d, "expected --policy NAME (foldline list policies lists them), or --observe");
    s = s ? s : fl_marks_check(c.iteration.item, c.iteration.count, &d);
    if (!s && c.iteration.count && !c.rings)
        s = fl_refuse(&d, "--iteration needs --rings DIR");
    if (!s)
        s = open_run(&r, &c, &d);
    if (!s)
        s = go(&r, &c, &d);
    if (s)
        status = fl_command_fail("live", &d);
    close_run(&r, &c);
    fl_command_end(option, sizeof option / sizeof *option, &rest);
    return status;
}
