/* `foldline verify`. */
#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "harness/log/log.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "verify", "LOG [--format NAME] [--platform NAME] [--policy NAME] [--set P=V ...]",
    "Feeds the recorded signals to the same policy again and compares every decision. The exit status is 1 if one "
    "differs.",
    "LOG is a decisions file (of foldline run --log), whose head already names platform, policy and parameters, or the "
    "log of the GEEPAFS daemon, for which --format geepafs, --platform and --policy are needed. A row torn off at the "
    "end is reported and left out, and the lines with which Ctrl-C ended the daemon are passed over. Activity records "
    "that the policy saw and its tables are in the log too. A trajectory is a CSV of an executed controller (t_s, "
    "demand_w, power_w, set_w); its decisions may differ by rounding alone. A log of a plug-in names it, and verify "
    "loads it from there. With --policy of another name, that policy decides from the signals of the log, with its own "
    "parameters."};

static fl_status read_log(const char *path, const char *format, fl_decisions *log, fl_diag *d) {
    if (fl_file_is(path, FL_FILE_RESULT))
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                       "is a result, expected a log of decisions, which run --log FILE writes (foldline show, plot and "
                       "report read results)");
    if (!strcmp(format, "canonical"))
        return fl_decisions_read(path, log, d);
    if (!strcmp(format, "geepafs"))
        return fl_geepafs_read(path, log, d);
    if (!strcmp(format, "trajectory"))
        return fl_trajectory_read(path, log, d);
    const char *const known[] = {"canonical", "geepafs", "trajectory"};
    const char *near = fl_nearest(format, known, FL_COUNT(known));
    return near ? fl_refuse(d, "unknown format '%s', did you mean '%s'?", format, near)
                : fl_refuse(d, "unknown format '%s', expected canonical, geepafs or trajectory", format);
}

static void set_text(double v, char *buf) {
    if (isnan(v))
        strcpy(buf, "not set");
    else if (v == FL_DEFAULT)
        strcpy(buf, "default");
    else
        fl_cell_text(v, buf);
}

/* A parameter that the command line gives, as it gives it. */
static const char *given_text(const fl_spec *s, size_t i) { return s->file[i] ? s->file[i] : s->layer.setting[i].text; }

static void print_result(const fl_decisions *log, const char *path, bool trajectory, const fl_spec *policy,
                         const char *machine, const fl_replay_result *r) {
    char was[32], is[32];
    printf("%llu steps of %u GPU%s, %llu decisions, %llu differ\n", (unsigned long long)r->steps, log->gpu_count,
           log->gpu_count == 1 ? "" : "s", (unsigned long long)r->decisions, (unsigned long long)r->differ);
    printf("decided by policy %s", policy->policy->name);
    for (size_t i = 0; i < policy->layer.count; i++)
        printf("%s%s=%s", i ? ", " : " with ", policy->layer.setting[i].name, given_text(policy, i));
    printf(" on %s\n", machine);
    if (trajectory && r->differ)
        printf("%llu of them by rounding: the limits in force were at most %g W apart\n",
               (unsigned long long)r->rounded, FL_REPLAY_ROUNDED_W);
    if (r->differ) {
        set_text(r->recorded, was);
        set_text(r->decided, is);
        printf("first at %s:%lld, step %llu, %.3f s, ", path, (long long)r->line, (unsigned long long)r->step,
               (double)r->t_ns * 1e-9);
        if (r->device < 0)
            printf("host");
        else
            printf("GPU %d", r->device);
        printf(": %s recorded %s, decided %s\n", r->control, was, is);
    }
}

static void print_json(const fl_decisions *log, bool trajectory, const fl_spec *policy, const fl_replay_result *r) {
    cJSON *root = cJSON_CreateObject(), *set;
    cJSON_AddStringToObject(root, "policy", policy->policy->name);
    set = cJSON_AddObjectToObject(root, "set");
    for (size_t i = 0; i < policy->layer.count; i++)
        cJSON_AddStringToObject(set, policy->layer.setting[i].name, given_text(policy, i));
    cJSON_AddNumberToObject(root, "decisions", (double)r->decisions);
    cJSON_AddNumberToObject(root, "differ", (double)r->differ);
    if (trajectory)
        cJSON_AddNumberToObject(root, "rounded", (double)r->rounded);
    cJSON_AddNumberToObject(root, "steps", (double)r->steps);
    cJSON_AddNumberToObject(root, "gpus", log->gpu_count);
    if (log->torn_line)
        cJSON_AddNumberToObject(root, "torn_line", (double)log->torn_line);
    else
        cJSON_AddNullToObject(root, "torn_line");
    cJSON *first = r->differ ? cJSON_AddObjectToObject(root, "first") : NULL;
    if (first) {
        cJSON_AddNumberToObject(first, "line", (double)r->line);
        cJSON_AddNumberToObject(first, "step", (double)r->step);
        cJSON_AddNumberToObject(first, "t_ns", (double)r->t_ns);
        cJSON_AddNumberToObject(first, "device", r->device);
        cJSON_AddStringToObject(first, "control", r->control);
        fl_json_add_real(first, "recorded", r->recorded);
        fl_json_add_real(first, "decided", r->decided);
    } else {
        cJSON_AddNullToObject(root, "first");
    }
    char *text = fl_must(fl_json_text(root, false));
    puts(text);
    free(text);
    cJSON_Delete(root);
}

/* ---- the replay ---- */

typedef struct replay_options { /* what is not given stands in the head of the log */
    fl_texts rest, set;
    const char *format, *platform, *policy;
    int64_t seed;
    bool json;
} replay_options;

typedef struct replay {
    const char *path;
    fl_decisions log;
    bool told; /* the log is of a live run, which says what it knew of its machine: no platform is needed */
    fl_platform platform;
    fl_facts facts;
    fl_spec spec;
    fl_policy_head before; /* the policy's settings, as the head tells them */
    const char *logged;    /* the policy of the log, where another one decides; else NULL */
    fl_instance *in;
    fl_replay_result result;
} replay;

/* Cut the ladders to the clocks that had been measured: MIN/MAX/MEMORY, or MIN/MAX/MEMORY,MEMORY... in MHz. */
static fl_status clip_clocks(fl_node_spec *node, const char *file, const char *clocks, fl_diag *d) {
    double mem[FL_MEMORY_CLOCKS_MAX];
    int min, max, used = 0;
    size_t count = 0;
    bool sound = sscanf(clocks, "%d/%d/%n", &min, &max, &used) == 2 && used > 0;
    for (const char *at = sound ? clocks + used : ""; sound && *at;) {
        char *end;
        const long mhz = strtol(at, &end, 10);
        sound = end > at && (!*end || (*end == ',' && end[1])) && count < FL_MEMORY_CLOCKS_MAX;
        if (sound)
            mem[count++] = (double)mhz;
        at = *end ? end + 1 : end;
    }
    if (!sound || !count)
        return fl_fail(d, FL_BAD_INPUT, file, 0, 0, "head: clocks is '%s', expected MIN/MAX/MEMORY in MHz", clocks);
    fl_node_clip(node, min, max);
    fl_node_clip_memory(node, mem, count);
    return FL_OK;
}

/* What the machine was: told by the head, or a platform, its ladder cut to the clocks that had been measured. */
static fl_status open_facts(replay *r, const char *platform, uint64_t seed, const char *clocks, fl_diag *d) {
    if (r->told)
        return fl_facts_from_head(&r->log.head, r->path, r->log.gpu_count, seed, &r->facts, d);
    fl_status s = fl_platform_open(platform, r->log.gpu_count, &r->platform, d);
    if (!s && clocks)
        s = clip_clocks(&r->platform.node, r->path, clocks, d);
    return s ? s : fl_facts_make(&r->platform.node, seed, &r->facts, d);
}

/* Return true if the log is of another policy than the one that decides now. Its settings then mean nothing here. */
static bool is_other(replay *r, const fl_head *head) {
    const char *logged = fl_head_get(head, "policy");
    r->logged = logged && strcmp(logged, r->spec.policy->name) != 0 ? logged : NULL;
    return r->logged != NULL;
}

static fl_status run_replay(replay *r, const replay_options *o, fl_diag *d) {
    if (o->rest.count != 1)
        return fl_refuse(d, "expected one log (the policy that is checked: --policy NAME or FILE.so)");
    r->path = o->rest.item[0];
    fl_status s = read_log(r->path, o->format, &r->log, d);
    if (s)
        return s;
    static const fl_head none = {0};
    const bool canonical = strcmp(o->format, "geepafs") != 0; /* that one has no such head */
    const fl_head *head = canonical ? &r->log.head : &none;
    const char *platform = o->platform ? o->platform : fl_head_get(head, "platform"),
               *plugin = o->policy ? NULL : fl_head_get(head, "plugin"),
               *policy = o->policy ? o->policy
                         : plugin  ? plugin
                                   : fl_head_get(head, "policy"),
               *seed = fl_head_get(head, "seed"), *held = fl_head_get(head, "min_set_ms");
    if (plugin) /* its code runs here */
        fl_terminal_say(stderr, "foldline verify: plug-in %s, as the log says", plugin);
    r->told = canonical && !platform && fl_facts_in_head(head);
    if (!platform && !r->told)
        return fl_refuse(d, "no platform given, expected --platform NAME");
    if (!policy)
        return fl_refuse(d, "no policy given, expected --policy NAME");
    const int64_t from = o->seed ? o->seed : seed ? strtoll(seed, NULL, 10) : FL_SEED_STANDARD;
    if ((s = open_facts(r, platform, (uint64_t)from, fl_head_get(head, "clocks"), d)) ||
        (canonical && (s = fl_stated_from_head(head, r->path, &r->facts, d))) ||
        (s = fl_server_head_get(head, r->path, &r->facts, d)) || (s = fl_spec_open_set(policy, &o->set, &r->spec, d)) ||
        (canonical && !is_other(r, head) && (s = fl_policy_head_get(&r->before, head, r->path, r->spec.policy, d))))
        return s;
    const fl_layer layer[] = {r->told ? (fl_layer){0} : fl_platform_layer(&r->platform, r->spec.policy->name),
                              r->before.layer, r->spec.layer};
    const fl_instance_options how = {.policy = r->spec.policy,
                                     .facts = &r->facts,
                                     .layer = layer,
                                     .layer_count = FL_COUNT(layer),
                                     .min_set_interval_ns = held ? (int64_t)(strtod(held, NULL) * 1e6) : 0};
    s = fl_instance_open(&r->in, &how, d);
    return s ? s : fl_replay(&r->log, r->path, r->in, &r->result, d);
}

static void free_replay(replay *r) {
    fl_instance_close(r->in);
    fl_policy_head_free(&r->before);
    fl_spec_free(&r->spec);
    fl_server_head_free(&r->facts);
    if (r->told)
        fl_facts_head_free(&r->facts);
    else
        fl_facts_free(&r->facts);
    fl_platform_free(&r->platform);
    fl_decisions_free(&r->log);
}

int fl_cmd_verify(int argc, char **argv) {
    replay_options o = {.format = "canonical"};
    const fl_option option[] = {
        {"format", "NAME", FL_OPTION_TEXT, &o.format, 0, 0, "canonical, geepafs or trajectory (canonical)",
         FL_FOR_INPUT},
        {"platform", "NAME", FL_OPTION_TEXT, &o.platform, 0, 0, "platform (that of the head)", FL_FOR_MACHINE},
        {"policy", "NAME", FL_OPTION_TEXT, &o.policy, 0, 0, "policy, or a path to a .so (that of the head)",
         FL_FOR_POLICIES},
        {"set", "P=V", FL_OPTION_LIST, &o.set, 0, 0, "parameter of the policy, over that of the head (may be repeated)",
         FL_FOR_POLICIES},
        {"seed", "N", FL_OPTION_INT, &o.seed, 1, 9e15,
         "seed of the policy (that of the head, " FL_AS_TEXT(FL_SEED_STANDARD) ")"},
        FL_JSON_OPTION(&o.json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, FL_COUNT(option), &o.rest, &status))
        return status;
    fl_diag d = {0};
    replay r = {0};
    if (run_replay(&r, &o, &d)) {
        status = fl_command_fail("verify", &d);
    } else {
        fl_ticker_clear();
        if (r.log.torn_line)
            fl_terminal_say(stderr, "foldline verify: %s:%lld: the last row is incomplete and was left out", r.path,
                            (long long)r.log.torn_line);
        const bool trajectory = !strcmp(o.format, "trajectory");
        const uint64_t allowed = trajectory ? r.result.rounded : 0;
        if (r.logged)
            fl_terminal_say(stderr, "note: the log is of policy %s; %s decides here, with its own parameters", r.logged,
                            r.spec.policy->name);
        if (o.json)
            print_json(&r.log, trajectory, &r.spec, &r.result);
        else
            print_result(&r.log, r.path, trajectory, &r.spec, r.told ? "the machine of the log" : r.platform.name,
                         &r.result);
        status = r.result.differ > allowed ? FL_EXIT_GATE : FL_EXIT_OK;
    }
    free_replay(&r);
    fl_command_end(option, FL_COUNT(option), &o.rest);
    return status;
}
