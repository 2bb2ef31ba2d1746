/* Finds the workload on which a policy does worst. */
#include "harness/base/cli/cli.h"
#include "harness/base/cli/inside.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <cjson/cJSON.h>
#include "tests/adversary/adversary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TRIALS_STANDARD 1000
#define SECONDS_STANDARD 20
#define STREAMS_STANDARD 2

static const fl_command_help help = {
    "adversary", "--platform NAME --policy SPEC -o WORST.programs.csv [--trials N]",
    "Finds the workload on which a policy does worst, and writes it as programs that foldline run replays.",
    "Cases are programs of up to four parts and four kernel classes; phases, kinds, lengths, jitter, gaps, streams "
    "and markers are drawn, and what was worst is changed further. Slowdown counts against the top clock (maxfreq) on "
    "the same kernels under the same seed; activity records take the time that the platform says. A case beyond the "
    "bound is run at every clock: where its slowdown is below 1 or above top / f by more than 3 % it counts as outside "
    "the assumptions. Exit status 1 where a case within them breaks the bound."};

typedef struct adversary_options {
    const char *platform, *policy, *output;
    fl_node_choice node;
    double bound, seconds;
    int64_t trials, seed, streams, threads;
    bool unsteady, alike, json;
} adversary_options;

/* The command that replays a trial under a policy. */
static char *replay(const adversary_options *o, const fl_adversary_trial *t, const char *policy) {
    char *text;
    if (asprintf(&text, "foldline run %s --platform %s%s%s --seed %llu --policy %s", o->output, o->platform,
                 o->node.records ? " --records " : "", o->node.records ? o->node.records : "",
                 (unsigned long long)t->c.seed, policy) < 0)
        return NULL;
    return text;
}

/* What the head says of the trial, so that the file alone is enough to judge the policy again. */
static bool put_head(const adversary_options *o, const fl_adversary_trial *t, const char *command, fl_head *h) {
    char seed[32], bound[32], slowdown[64], found[160];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)t->c.seed);
    snprintf(bound, sizeof bound, "%g", o->bound);
    snprintf(slowdown, sizeof slowdown, "%.9f", t->slowdown);
    snprintf(found, sizeof found, "trial %zu of --trials %lld --seed %lld --seconds %g --streams %lld%s%s", t->number,
             (long long)o->trials, (long long)o->seed, o->seconds, (long long)o->streams,
             o->unsteady ? " --unsteady" : "", o->alike ? " --alike" : "");
    return fl_head_set(h, "found", found) && fl_head_set(h, "platform", o->platform) &&
           fl_head_set(h, "policy", o->policy) && fl_head_set(h, "seed", seed) && fl_head_set(h, "bound", bound) &&
           fl_head_set(h, "slowdown", slowdown) && fl_head_set(h, "replay", command);
}

static fl_status write_case(const adversary_options *o, const fl_platform *p, const fl_adversary_trial *t,
                            const char *command, fl_diag *d) {
    const fl_device *dev = &p->node.device[p->node.gpu[0]];
    fl_programs programs;
    fl_kinds kinds;
    char *beside = NULL;
    fl_status s = fl_adversary_files(&t->c, dev->sm_mhz[dev->sm_count - 1], dev->default_mem_mhz, &programs, &kinds, d);
    if (!s)
        s = fl_kinds_beside(o->output, &programs.head, &beside, d);
    if (!s && !put_head(o, t, command, &programs.head))
        s = fl_no_memory(d, "the head");
    if (!s)
        s = fl_kinds_write(beside, &kinds, d);
    if (!s)
        s = fl_programs_write(o->output, &programs, d);
    free(beside);
    fl_programs_free(&programs);
    fl_kinds_free(&kinds);
    return s;
}

static void print_text(const adversary_options *o, const fl_adversary_result *r, const char *command, const char *top) {
    const fl_adversary_trial *w = &r->worst;
    printf("%lld trials against %s on %s, bound %g %%, seed %lld\n\n", (long long)o->trials, o->policy, o->platform,
           100 * o->bound, (long long)o->seed);
    printf("largest slowdown   %.4f %%: %.6g s instead of %.6g s at the top clock, %.2f %% of the energy saved\n",
           100 * w->slowdown, w->time_s, w->top_s, 100 * w->saving);
    printf("beyond the bound   %.4f points in the worst case; %zu of %lld trials are beyond it\n",
           100 * (w->slowdown - o->bound), r->beyond, (long long)o->trials);
    printf("assumptions        %s by the worst case at every clock: slowdown %.6g or more, top / f x %.6g at most\n",
           r->law.held ? "held" : "broken", r->law.least, r->law.most);
    if (r->outside_count)
        printf("outside of them    %zu trials, beyond the bound by %.4f points at most (trial %zu); not the policy's\n",
               r->outside_count, 100 * (r->outside.slowdown - o->bound), r->outside.number);
    printf("written            %s (trial %zu)\n", o->output, w->number);
    printf("replay             %s\n", command);
    printf("at the top clock   %s\n", top);
}

static void print_json(const adversary_options *o, const fl_adversary_result *r, const char *command, const char *top) {
    const fl_adversary_trial *w = &r->worst;
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "policy", o->policy);
    cJSON_AddStringToObject(root, "platform", o->platform);
    cJSON_AddNumberToObject(root, "trials", (double)o->trials);
    cJSON_AddNumberToObject(root, "seed", (double)o->seed);
    fl_json_add_real(root, "bound", o->bound);
    fl_json_add_real(root, "slowdown", w->slowdown);
    fl_json_add_real(root, "beyond_bound", w->slowdown - o->bound);
    fl_json_add_real(root, "makespan_s", w->time_s);
    fl_json_add_real(root, "top_makespan_s", w->top_s);
    fl_json_add_real(root, "energy_saving_pct", 100 * w->saving);
    cJSON_AddNumberToObject(root, "trial", (double)w->number);
    cJSON_AddNumberToObject(root, "case_seed", (double)w->c.seed);
    cJSON_AddNumberToObject(root, "violated", (double)r->beyond);
    cJSON_AddNumberToObject(root, "outside_assumptions", (double)r->outside_count);
    cJSON_AddBoolToObject(root, "assumptions_held", r->law.held);
    fl_json_add_real(root, "least_slowdown", r->law.least);
    fl_json_add_real(root, "most_over_top_by_f", r->law.most);
    cJSON_AddStringToObject(root, "written", o->output);
    cJSON_AddStringToObject(root, "replay", command);
    cJSON_AddStringToObject(root, "replay_top", top);
    fl_json_tell(root);
}

static fl_status check(const adversary_options *o, const fl_texts *rest, fl_diag *d) {
    if (rest->count)
        return fl_refuse(d, "'%s': the search draws its own workloads, expected options only", rest->item[0]);
    if (!o->platform || !o->policy || !o->output)
        return fl_refuse(d, "no %s, expected --platform NAME --policy SPEC -o WORST.programs.csv",
                         !o->platform ? "platform"
                         : !o->policy ? "policy"
                                      : "file to write");
    if (o->node.records && !strcmp(o->node.records, FL_RECORDS_BOTH))
        return fl_refuse(d, "--records both compares two runs, expected cost or free");
    if (o->alike && o->unsteady)
        return fl_refuse(d, "--alike and --unsteady, expected one of them");
    if (o->alike && o->streams > 1)
        return fl_refuse(d, "--alike with --streams %lld, expected 1: kernels beside each other take other times",
                         (long long)o->streams);
    return FL_OK;
}

/* The bound as given, or the policy's own. */
static fl_status find_bound(adversary_options *o, const fl_platform *p, const fl_spec *spec, fl_diag *d) {
    fl_status s = FL_OK;
    if (isnan(o->bound))
        s = fl_adversary_bound(p, spec, &o->bound, d);
    if (!s && isnan(o->bound))
        s = fl_refuse(d, "%s has no parameter 'bound', expected --bound X", spec->policy->name);
    return s;
}

static fl_status hunt_and_tell(adversary_options *o, bool *broken, fl_diag *d) {
    fl_platform platform = {0};
    fl_spec spec = {0};
    fl_adversary_result r;
    fl_programs none = {0};
    char *command = NULL, *top = NULL, *beside = NULL;
    fl_status s = fl_kinds_beside(o->output, &none.head, &beside, d); /* whether it can be written, first */
    if (!s)
        s = fl_spec_open(o->policy, &spec, d);
    if (!s)
        s = fl_platform_open(o->platform, 1, &platform, d);
    if (!s)
        s = fl_node_choose(&platform.node, &o->node, d);
    if (!s)
        s = find_bound(o, &platform, &spec, d);
    const fl_adversary_options how = {.platform = &platform,
                                      .spec = &spec,
                                      .bound = o->bound,
                                      .range = {o->seconds, (uint32_t)o->streams, o->unsteady, o->alike},
                                      .seed = (uint64_t)o->seed,
                                      .trials = (size_t)o->trials,
                                      .threads = (unsigned)o->threads};
    if (!s)
        s = fl_adversary_run(&how, &r, d);
    if (!s && !r.worst.number)
        s = fl_refuse(d, "all %lld trials break the policy's assumptions, expected some that keep them",
                      (long long)o->trials);
    if (!s && (!(command = replay(o, &r.worst, o->policy)) || !(top = replay(o, &r.worst, "maxfreq"))))
        s = fl_no_memory(d, "the result");
    if (!s)
        s = write_case(o, &platform, &r.worst, command, d);
    if (!s) {
        *broken = r.beyond > 0;
        (o->json ? print_json : print_text)(o, &r, command, top);
    }
    free(command);
    free(top);
    free(beside);
    fl_programs_free(&none);
    fl_spec_free(&spec);
    fl_platform_free(&platform);
    return s;
}

static int run(int argc, char **argv) {
    adversary_options o = {.bound = NAN, .seconds = SECONDS_STANDARD, .trials = TRIALS_STANDARD, .seed = 1};
    fl_texts rest = {0};
    const fl_option option[] = {
        {"platform", "NAME", FL_OPTION_TEXT, &o.platform, 0, 0,
         "platform, or a path to its file (see foldline list platforms)"},
        {"policy", "SPEC", FL_OPTION_TEXT, &o.policy, 0, 0, "policy with parameters, or a path to a .so"},
        FL_STEP_LIMIT_OPTION,
        {"bound", "X", FL_OPTION_SHARE, &o.bound, 0, 100,
         "slowdown allowed, 0.10 or 10% (the policy's parameter bound)"},
        {"trials", "N", FL_OPTION_INT, &o.trials, 1, 100000000, "workloads to try (" FL_AS_TEXT(TRIALS_STANDARD) ")"},
        {"seconds", "S", FL_OPTION_REAL, &o.seconds, 0.1, 1000,
         "longest workload, at the top clock (" FL_AS_TEXT(SECONDS_STANDARD) ")"},
        {"streams", "N", FL_OPTION_INT, &o.streams, 1, 16,
         "most streams of a workload (" FL_AS_TEXT(STREAMS_STANDARD) ")"},
        {"unsteady", NULL, FL_OPTION_FLAG, &o.unsteady, 0, 0,
         "a kind of kernel may take other times in another part, which no reading can tell from its clock"},
        {"alike", NULL, FL_OPTION_FLAG, &o.alike, 0, 0,
         "kernels, bytes and markers are worth the same in all parts, as a counter needs; one stream"},
        {"records", "HOW", FL_OPTION_TEXT, &o.node.records, 0, 0,
         "activity records: cost (time, as the platform says) or free (cost)"},
        {"seed", "N", FL_OPTION_INT, &o.seed, 1, 9e15, "of the search (1)"},
        FL_THREADS_OPTION(&o.threads),
        {"o", "FILE", FL_OPTION_OUTPUT, &o.output, 0, 0, "the worst workload: programs, with their kinds beside them"},
        {"json", NULL, FL_OPTION_FLAG, &o.json, 0, 0, "prints the result as JSON"},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, FL_COUNT(option), &rest, &status))
        return status;
    if (!o.streams)
        o.streams = o.alike ? 1 : STREAMS_STANDARD;
    fl_diag d = {0};
    bool broken = false;
    if (check(&o, &rest, &d) || hunt_and_tell(&o, &broken, &d))
        status = fl_command_fail(help.name, &d);
    else if (broken)
        status = FL_EXIT_GATE;
    fl_command_end(option, FL_COUNT(option), &rest);
    return status;
}

int main(int argc, char **argv) {
    fl_args_prefix = "tests/";
    fl_ticker_start("adversary");
    const int status = run(argc - 1, argv + 1);
    fl_ticker_stop();
    if (!fflush(stdout) && !ferror(stdout))
        return status;
    fprintf(stderr, "tests/adversary: cannot write to standard output\n");
    return FL_EXIT_SYSTEM;
}
