
#include "harness/base/command.h"
#include "harness/base/json_out.h"
#include "harness/base/place.h"
#include "harness/cmd/commands.h"
#include "harness/emulate/emulate.h"
#include "harness/input/experiment.h"
#include "harness/input/fault_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const fl_command_help help = {
    "emulate",
    "[EXPERIMENT.json | TRACE.csv | --sweep FILE --workload NAME] --platform NAME [--time virtual] -- COMMAND ...",
    "Runs a program that uses NVML against a simulated GPU: the workload runs there, sensors show it, locks and "
    "limits\n"
    "change its course. The program and all it starts find the simulated libnvidia-ml.so.1, wherever they look for it.",
    "In virtual time one thread of the session runs at a time and time jumps to the next instant at which one wants "
    "to\n"
    "go on: an hour takes well under a second and every run is the same. What cannot be virtual ends the run with\n"
    "exit status 3. Reading the sensors of a GPU takes the platform's read_ms, as the next look at the clock shows.\n"
    "\n"
    "Fan, PCIe, memory sizes and encoders are not simulated: fixed values; temperature is 40 C at all times without\n"
    "--heat. Work begins when the command does. The exit status is the command's."};

static fl_status parse_time(const char *text, fl_emulate_options *o, fl_diag *d) {
    char *end;
    o->time = FL_TIME_WALL;
    o->scale = 1;
    if (!text || !strcmp(text, "wall"))
        return FL_OK;
    if (!strcmp(text, "virtual")) {
        o->time = FL_TIME_VIRTUAL;
        return FL_OK;
    }
    o->scale = strtod(text, &end);
    if (end == text || strcmp(end, "x") || !(o->scale >= 0.001 && o->scale <= 1000))
        return fl_refuse(d, "--time '%s', expected wall, virtual or a factor such as 10x", text);
    return FL_OK;
}

static bool read_ms(const char *text, size_t size, double *ms) {
    char copy[32], *end;
    snprintf(copy, sizeof copy, "%.*s", (int)size, text);
    *ms = strtod(copy, &end);
    return size && size < sizeof copy && !*end && *ms >= 0 && *ms <= 60000;
}

static fl_status parse_set_ms(const char *text, fl_emulate_options *o, fl_diag *d) {
    o->set_ms[0] = o->set_ms[1] = -1;
    if (!text)
        return FL_OK;
    const char *to = strstr(text, "..");
    const size_t size = to ? (size_t)(to - text) : strlen(text);
    const char *last = to ? to + 2 : text;
    if (!read_ms(text, size, &o->set_ms[0]) || !read_ms(last, strlen(last), &o->set_ms[1]) ||
        o->set_ms[1] < o->set_ms[0])
        return fl_refuse(d, "--set-ms '%s', expected milliseconds, or a range such as 0..5", text);
    return FL_OK;
}

static fl_status parse_errors(const fl_texts *texts, fl_refusal **out, fl_diag *d) {
    fl_status s = FL_OK;
    *out = calloc(texts->count + 1, sizeof **out);
    if (!*out)
        return fl_no_memory(d, "the errors");
    for (size_t i = 0; !s && i < texts->count; i++)
        s = fl_refusal_parse(texts->item[i], &(*out)[i], d);
    return s;
}

static fl_status find_client(char *dir, size_t size, fl_diag *d) {
    char library[4200];
    snprintf(library, sizeof library, "%s/libnvidia-ml.so.1", fl_place(FL_PLACE_CLIENTS, dir, size));
    return !access(library, R_OK)
               ? FL_OK
               : fl_fail(d, FL_IO, library, 0, 0,
                         "cannot open the simulated library: %s; FOLDLINE_CLIENT_DIR names its folder",
                         fl_reason(errno));
}

static fl_status open_scene(fl_scene_options *so, const fl_texts *rest, fl_experiment *e, fl_scenes *scenes,
                            fl_diag *d) {
    fl_texts traces = {0};
    const char *objective = NULL;
    int64_t seeds = 0;
    size_t variants;
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < rest->count; i++) {
        s = fl_is_experiment(rest->item[i]) && !e->tree ? fl_experiment_open(rest->item[i], e, d)
                                                        : fl_texts_add(&traces, rest->item[i], d);
    }
    if (!s && e->tree)
        s = fl_experiment_apply(e, so, &traces, &objective, &seeds, d);
    if (!s)
        s = fl_scene_check(so, &traces, d);
    if (!s)
        s = fl_experiment_scenes(e, so, &traces, scenes, &variants, d);
    if (!s && scenes->count != 1)
        s = fl_refuse(d, "%zu workloads, expected one (--workload NAME chooses)", scenes->count);
    fl_texts_free(&traces);
    return s;
}

static cJSON *report_json(const fl_emulate_result *r) {
    cJSON *root = cJSON_CreateObject(), *list;
    char hash[32];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->hash);
    cJSON_AddStringToObject(root, "session_hash", hash);
    fl_json_add_real(root, "time_s", (double)r->time_ns * 1e-9);
    cJSON_AddBoolToObject(root, "done", r->done);
    fl_json_add_real(root, "energy_j", r->energy_j);
    fl_json_add_real(root, "node_energy_j", r->node_energy_j);
    fl_json_add_real(root, "makespan_s", r->makespan_s);
    fl_json_add_real(root, "after_j", r->after_j);
    cJSON_AddNumberToObject(root, "kernels", (double)r->kernels);
    cJSON_AddNumberToObject(root, "switches", (double)r->switches);
    cJSON_AddNumberToObject(root, "calls", (double)r->calls);
    list = cJSON_AddArrayToObject(root, "processes");
    for (size_t i = 0; i < r->process_count; i++) {
        cJSON *at = cJSON_CreateObject();
        cJSON_AddNumberToObject(at, "pid", r->process[i].pid);
        cJSON_AddStringToObject(at, "name", r->process[i].name);
        cJSON_AddNumberToObject(at, "calls", (double)r->process[i].calls);
        cJSON_AddNumberToObject(at, "sets", (double)r->process[i].sets);
        cJSON_AddNumberToObject(at, "refused", (double)r->process[i].refused);
        cJSON_AddItemToArray(list, at);
    }
    list = cJSON_AddArrayToObject(root, "sets");
    for (size_t i = 0; i < r->set_count; i++) {
        const fl_emulated_set *s = &r->set[i];
        cJSON *at = cJSON_CreateObject();
        fl_json_add_real(at, "s", (double)s->at_ns * 1e-9);
        cJSON_AddNumberToObject(at, "pid", s->pid);
        cJSON_AddStringToObject(at, "call", s->call);
        cJSON_AddNumberToObject(at, "gpu", s->gpu);
        cJSON_AddNumberToObject(at, "b", s->b);
        cJSON_AddNumberToObject(at, "c", s->c);
        cJSON_AddNumberToObject(at, "result", s->result);
        cJSON_AddItemToArray(list, at);
    }
    list = cJSON_AddArrayToObject(root, "gpus");
    for (uint32_t i = 0; i < r->gpu_count; i++) {
        const fl_emulated_state *g = &r->gpu[i];
        cJSON *at = cJSON_CreateObject();
        fl_json_add_real(at, "energy_j", g->energy_j);
        cJSON_AddNumberToObject(at, "sm_min_mhz", g->sm_min);
        cJSON_AddNumberToObject(at, "sm_max_mhz", g->sm_max);
        cJSON_AddNumberToObject(at, "mem_min_mhz", g->mem_min);
        cJSON_AddNumberToObject(at, "mem_max_mhz", g->mem_max);
        cJSON_AddNumberToObject(at, "limit_mw", g->limit_mw);
        cJSON_AddNumberToObject(at, "application_sm_mhz", g->target_sm);
        cJSON_AddNumberToObject(at, "application_mem_mhz", g->target_mem);
        cJSON_AddItemToArray(list, at);
    }
    return root;
}

static void print_report(const fl_emulate_result *r, const fl_scene *scene) {
    fprintf(stderr, "\n%s on %s, emulated: %.6g s, work %s\n", scene->w->name, scene->platform.name,
            (double)r->time_ns * 1e-9, r->done ? "done" : "not done");
    fprintf(stderr, "energy %.6g J on the GPUs in %.6g s of work; %llu calls, %llu changes of a clock, hash %016llx\n",
            r->energy_j, r->makespan_s, (unsigned long long)r->calls, (unsigned long long)r->switches,
            (unsigned long long)r->hash);
    for (size_t i = 0; i < r->process_count; i++)
        if (r->process[i].calls)
            fprintf(stderr, "  %-7d %-15s %8llu calls %6llu sets %6llu refused\n", (int)r->process[i].pid,
                    r->process[i].name, (unsigned long long)r->process[i].calls, (unsigned long long)r->process[i].sets,
                    (unsigned long long)r->process[i].refused);
    for (uint32_t i = 0; i < r->gpu_count; i++) {
        const fl_emulated_state *g = &r->gpu[i];
        if (g->sm_max)
            fprintf(stderr, "  GPU %u is left with its SM clock locked to %u..%u MHz\n", i, g->sm_min, g->sm_max);
        if (g->mem_max)
            fprintf(stderr, "  GPU %u is left with its memory clock locked to %u..%u MHz\n", i, g->mem_min, g->mem_max);
        if (g->target_sm)
            fprintf(stderr, "  GPU %u is left with application clocks of %u MHz, memory %u MHz\n", i, g->target_sm,
                    g->target_mem);
        if (g->limit_mw != g->default_limit_mw)
            fprintf(stderr, "  GPU %u is left with a power limit of %g W\n", i, g->limit_mw * 1e-3);
    }
}

int fl_cmd_emulate(int argc, char **argv) {
    fl_scene_options so = {0};
    fl_texts rest = {0}, fault_texts = {0}, error_texts = {0};
    const char *driver = NULL, *time_text = NULL, *set_ms = NULL, *report = NULL, *rings = NULL;
    bool quiet = false, anyone = false;
    const fl_option option[] = {
        FL_SCENE_OPTIONS(so),
        {"time", "HOW", FL_OPTION_TEXT, &time_text, 0, 0, "wall, a factor of it such as 10x, or virtual (wall)"},
        {"set-ms", "A[..B]", FL_OPTION_TEXT, &set_ms, 0, 0, "a set call takes this long (as the platform says)"},
        {"privileged", NULL, FL_OPTION_FLAG, &anyone, 0, 0,
         "whoever asks may set clocks and limits (root only, as with the driver)"},
        {"driver", "VERSION", FL_OPTION_TEXT, &driver, 0, 0, FL_DRIVER_HELP},
        {"error", "SPEC", FL_OPTION_LIST, &error_texts, 0, 0, FL_REFUSAL_HELP},
        {"fault", "SPEC", FL_OPTION_LIST, &fault_texts, 0, 0, FL_FAULT_SPEC_HELP},
        {"rings", "DIR", FL_OPTION_TEXT, &rings, 0, 0,
         "hands out kernel records there, as the collector in a program does"},
        {"report", "FILE", FL_OPTION_OUTPUT, &report, 0, 0, "writes what happened as JSON, set by set (- prints it)"},
        {"quiet", NULL, FL_OPTION_FLAG, &quiet, 0, 0, "prints no report on stderr"},
    };
    int split = 0, status = FL_EXIT_OK;
    while (split < argc && strcmp(argv[split], "--") != 0)
        split++;
    if (!fl_command_begin(split, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    fl_experiment experiment = {0};
    fl_scenes scenes = {0};
    fl_fault *fault = NULL;
    fl_refusal *refusal = NULL;
    fl_emulate_options o = {0};
    fl_emulate_result r = {0};
    char dir[4096];
    fl_status s = split + 1 < argc ? FL_OK : fl_refuse(&d, "no command given, expected -- COMMAND ...");
    if (!s)
        s = parse_time(time_text, &o, &d);
    if (!s)
        s = parse_set_ms(set_ms, &o, &d);
    if (!s)
        s = fl_driver_parse(driver, &o.driver, &d);
    if (!s)
        s = parse_errors(&error_texts, &refusal, &d);
    if (!s)
        s = fl_fault_specs_parse(&fault_texts, &fault, &d);
    if (!s)
        s = find_client(dir, sizeof dir, &d);
    if (!s)
        s = open_scene(&so, &rest, &experiment, &scenes, &d);
    if (!s) {
        o.scene = scenes.item[0];
        o.fault = fault, o.fault_count = fault_texts.count;
        o.refusal = refusal, o.refusal_count = error_texts.count;
        o.command = argv + split + 1;
        o.client_dir = dir;
        o.rings = rings;
        o.anyone = anyone;
        s = fl_emulate(&o, &r, &d);
    }
    if (!s && report) {
        cJSON *tree = report_json(&r);
        s = tree ? fl_json_write(report, tree, &d) : fl_no_memory(&d, NULL);
        cJSON_Delete(tree);
    }
    if (s)
        status = fl_command_fail("emulate", &d);
    else
        status = WIFSIGNALED(r.command_status) ? 128 + WTERMSIG(r.command_status) : WEXITSTATUS(r.command_status);
    if (!s && !quiet)
        print_report(&r, o.scene);
    fl_emulate_result_free(&r);
    fl_scenes_free(&scenes);
    fl_experiment_free(&experiment);
    fl_texts_free(&rest);
    fl_texts_free(&so.only);
    fl_texts_free(&fault_texts);
    fl_texts_free(&error_texts);
    free(fault);
    free(refusal);
    return status;
}
