#include "harness/base/command.h"
#include "harness/base/grid.h"
#include "harness/base/json_out.h"
#include "harness/cmd/commands.h"
#include "harness/input/platform.h"
#include "harness/input/scene.h"
#include "harness/input/spec.h"
#include "harness/log/facts_head.h"
#include "harness/log/policy_head.h"
#include "harness/log/replay.h"
#include "traces/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "replay", "LOG [--format canonical|geepafs] [--platform NAME] [--policy NAME] [--set P=V ...]",
    "Feeds what a recorded policy saw to the policy here and compares every decision. Exit status 1 where one differs.",
    "LOG is a decisions file (of foldline run --log), whose head already names platform, policy and parameters, or the "
    "log of\n"
    "the GEEPAFS daemon, for which --format geepafs, --platform and --policy are needed. A row torn off at the end is\n"
    "reported and left out, and the lines with which Ctrl-C ended the daemon are passed over. Kernel records that the\n"
    "policy saw and its tables are in the log too."};

static fl_status read_log(const char *path, const char *format, fl_decisions *log, fl_diag *d) {
    if (!strcmp(format, "canonical"))
        return fl_decisions_read(path, log, d);
    if (!strcmp(format, "geepafs"))
        return fl_geepafs_read(path, log, d);
    const char *const known[] = {"canonical", "geepafs"};
    const char *near = fl_nearest(format, known, 2);
    if (near)
        return fl_refuse(d, "unknown format '%s', did you mean '%s'?", format, near);
    return fl_refuse(d, "unknown format '%s', expected canonical or geepafs", format);
}

static void set_text(double v, char *buf) {
    if (isnan(v))
        strcpy(buf, "not set");
    else if (v == FL_DEFAULT)
        strcpy(buf, "default");
    else
        fl_cell_text(v, buf);
}

static void print_result(const fl_decisions *log, const char *path, const fl_replay_result *r) {
    char was[32], is[32];
    printf("%llu steps of %u GPU%s, %llu decisions, %llu differ\n", (unsigned long long)r->steps, log->gpu_count,
           log->gpu_count == 1 ? "" : "s", (unsigned long long)r->decisions, (unsigned long long)r->differ);
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

static void print_json(const fl_decisions *log, const fl_replay_result *r) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "decisions", (double)r->decisions);
    cJSON_AddNumberToObject(root, "differ", (double)r->differ);
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
    char *text = cJSON_PrintUnformatted(root);
    if (text)
        puts(text);
    free(text);
    cJSON_Delete(root);
}

int fl_cmd_replay(int argc, char **argv) {
    fl_texts rest = {0}, set = {0};
    const char *format = "canonical", *platform = NULL, *policy = NULL;
    int64_t seed = 0;
    bool json = false;
    const fl_option option[] = {
        {"format", "NAME", FL_OPTION_TEXT, &format, 0, 0, "canonical or geepafs (canonical)"},
        {"platform", "NAME", FL_OPTION_TEXT, &platform, 0, 0, "platform (that of the head)"},
        {"policy", "NAME", FL_OPTION_TEXT, &policy, 0, 0, "policy, or a path to a .so (that of the head)"},
        {"set", "P=V", FL_OPTION_LIST, &set, 0, 0, "parameter of the policy, over that of the head (may be repeated)"},
        {"seed", "N", FL_OPTION_INT, &seed, 1, 9e15, "seed of the policy (that of the head, 1)"},
        {"json", NULL, FL_OPTION_FLAG, &json, 0, 0, "prints the result as JSON"},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    fl_decisions log = {0};
    fl_platform p = {0};
    fl_facts facts = {0};
    fl_spec spec = {0};
    fl_policy_head before = {0};
    fl_instance *in = NULL;
    fl_replay_result r = {0};
    fl_status s =
        rest.count == 1 ? read_log(rest.item[0], format, &log, &d) : fl_refuse(&d, "expected one log, see --help");
    bool canonical = !strcmp(format, "canonical");
    if (!s && canonical && !platform)
        platform = fl_head_get(&log.head, "platform");
    const bool told = !s && canonical && !platform && fl_facts_in_head(&log.head); /* a live run says what it knew */
    if (!s && !platform && !told)
        s = fl_refuse(&d, "no platform given, expected --platform NAME");
    if (!s && !policy && !(canonical && (policy = fl_head_get(&log.head, "policy"))))
        s = fl_refuse(&d, "no policy given, expected --policy NAME");
    if (!s && !seed)
        seed = canonical && fl_head_get(&log.head, "seed") ? strtoll(fl_head_get(&log.head, "seed"), NULL, 10) : 1;
    const char *held = canonical ? fl_head_get(&log.head, "min_set_ms") : NULL;
    if (!s && !told)
        s = fl_platform_open(platform, log.gpu_count, &p, &d);
    if (!s && canonical &&
        fl_head_get(&log.head, "clocks")) { /* the ladder was cut to the clocks that had been measured */
        int min, max, mem;
        if (sscanf(fl_head_get(&log.head, "clocks"), "%d/%d/%d", &min, &max, &mem) == 3)
            fl_node_clip(&p.node, min, max, mem);
        else
            s = fl_fail(&d, FL_BAD_INPUT, rest.item[0], 0, 0, "head: clocks is '%s', expected MIN/MAX/MEMORY in MHz",
                        fl_head_get(&log.head, "clocks"));
    }
    if (!s)
        s = told ? fl_facts_from_head(&log.head, rest.item[0], log.gpu_count, (uint64_t)seed, &facts, &d)
                 : fl_facts_make(&p.node, (uint64_t)seed, &facts, &d);
    if (!s)
        s = fl_spec_open_set(policy, &set, &spec, &d);
    if (!s && canonical)
        s = fl_policy_head_get(&before, &log.head, rest.item[0], spec.policy, &d);
    if (!s) {
        fl_layer layer[] = {told ? (fl_layer){0} : fl_platform_layer(&p, spec.policy->name), before.layer, spec.layer};
        fl_instance_options o = {.policy = spec.policy,
                                 .facts = &facts,
                                 .layer = layer,
                                 .layer_count = sizeof layer / sizeof *layer,
                                 .min_set_interval_ns = held ? (int64_t)(strtod(held, NULL) * 1e6) : 0};
        s = fl_instance_open(&in, &o, &d);
    }
    if (!s)
        s = fl_replay(&log, rest.item[0], in, &r, &d);
    if (s) {
        status = fl_command_fail("replay", &d);
    } else {
        if (log.torn_line)
            fprintf(stderr, "foldline replay: %s:%lld: torn last row, left out\n", rest.item[0],
                    (long long)log.torn_line);
        if (json)
            print_json(&log, &r);
        else
            print_result(&log, rest.item[0], &r);
        status = r.differ ? FL_EXIT_GATE : FL_EXIT_OK;
    }
    fl_instance_close(in);
    fl_policy_head_free(&before);
    fl_spec_free(&spec);
    if (told)
        fl_facts_head_free(&facts);
    else
        fl_facts_free(&facts);
    fl_platform_free(&p);
    fl_decisions_free(&log);
    fl_texts_free(&set);
    fl_texts_free(&rest);
    return status;
}
