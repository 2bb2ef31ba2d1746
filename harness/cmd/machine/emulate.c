/* `foldline emulate`. */
#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/emulate/driver/driver.h"
#include "harness/emulate/session/session.h"
#include "harness/fit/chip/chip.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what it prints ---- */

static cJSON *state_json(const fl_emulated_state *g) {
    cJSON *at = cJSON_CreateObject();
    cJSON_AddNumberToObject(at, "sm_min_mhz", g->sm_min);
    cJSON_AddNumberToObject(at, "sm_max_mhz", g->sm_max);
    cJSON_AddNumberToObject(at, "mem_min_mhz", g->mem_min);
    cJSON_AddNumberToObject(at, "mem_max_mhz", g->mem_max);
    cJSON_AddNumberToObject(at, "limit_mw", g->limit_mw);
    cJSON_AddNumberToObject(at, "application_sm_mhz", g->target_sm);
    cJSON_AddNumberToObject(at, "application_mem_mhz", g->target_mem);
    return at;
}

/* Every set call, by process; the caller frees it. */
static cJSON *fl_emulate_json(const fl_emulate_result *r) {
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
        cJSON *at = fl_json_add_row(list);
        cJSON_AddNumberToObject(at, "pid", r->process[i].pid);
        cJSON_AddStringToObject(at, "name", r->process[i].name);
        cJSON_AddNumberToObject(at, "calls", (double)r->process[i].calls);
        cJSON_AddNumberToObject(at, "sets", (double)r->process[i].sets);
        cJSON_AddNumberToObject(at, "refused", (double)r->process[i].refused);
    }
    list = cJSON_AddArrayToObject(root, "sets");
    for (size_t i = 0; i < r->set_count; i++) {
        const fl_emulated_set *s = &r->set[i];
        cJSON *at = fl_json_add_row(list);
        fl_json_add_real(at, "s", (double)s->at_ns * 1e-9);
        cJSON_AddNumberToObject(at, "pid", s->pid);
        cJSON_AddStringToObject(at, "process", s->process);
        cJSON_AddStringToObject(at, "call", s->call);
        cJSON_AddNumberToObject(at, "gpu", s->gpu);
        cJSON_AddNumberToObject(at, "b", s->b);
        cJSON_AddNumberToObject(at, "c", s->c);
        cJSON_AddNumberToObject(at, "result", s->result);
    }
    list = cJSON_AddArrayToObject(root, "gpus");
    for (uint32_t i = 0; i < r->gpu_count; i++) {
        const fl_emulated_state *g = &r->gpu[i];
        cJSON *at = state_json(g);
        fl_json_add_real(at, "energy_j", g->energy_j);
        cJSON_AddItemToArray(list, at);
    }
    return root;
}

/* The same in short, on standard error. */
static void fl_emulate_print(const fl_emulate_result *r, const fl_scene *scene) {
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

static int exit_status(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

/* What a program leaves changed when it is killed: as a table on standard output, and as JSON, which the caller frees.
 */
static void fl_kills_print(const fl_kills *k) {
    static const char *const head[] = {"killed by", "after", "command's status", "left changed"};
    fl_grid g = FL_GRID_HEADED(head);
    char left[512];
    size_t changed = 0;
    printf("%s: %llu sets in %llu calls\n\n", k->process, (unsigned long long)k->sets, (unsigned long long)k->calls);
    for (size_t i = 0; i < k->count; i++) {
        const fl_kill_row *row = &k->row[i];
        fl_grid_add(&g, "%s", row->pattern);
        if (row->number)
            fl_grid_add(&g, "%s %llu of %llu%s", row->moment, (unsigned long long)row->number,
                        (unsigned long long)row->of, row->reached ? "" : " (not reached)");
        else
            fl_grid_add(&g, "its end");
        fl_grid_add(&g, "%d\t%s", exit_status(row->command_status), fl_kill_left(row, left, sizeof left));
        changed += row->changed;
    }
    fl_grid_print(&g, 4, stdout);
    printf("\n%zu of %zu runs leave something changed\n", changed, k->count);
}

static cJSON *fl_kills_json(const fl_kills *k) {
    cJSON *root = cJSON_CreateObject(), *runs;
    char left[512];
    cJSON_AddStringToObject(root, "process", k->process);
    cJSON_AddNumberToObject(root, "sets", (double)k->sets);
    cJSON_AddNumberToObject(root, "calls", (double)k->calls);
    runs = cJSON_AddArrayToObject(root, "runs");
    for (size_t i = 0; i < k->count; i++) {
        const fl_kill_row *row = &k->row[i];
        cJSON *at = fl_json_add_row(runs), *gpus;
        cJSON_AddStringToObject(at, "killed_by", row->pattern);
        cJSON_AddStringToObject(at, "after", row->moment);
        cJSON_AddNumberToObject(at, "number", (double)row->number);
        cJSON_AddBoolToObject(at, "reached", row->reached);
        cJSON_AddNumberToObject(at, "status", exit_status(row->command_status));
        cJSON_AddStringToObject(at, "left", fl_kill_left(row, left, sizeof left));
        gpus = cJSON_AddArrayToObject(at, "gpus");
        for (uint32_t g = 0; g < row->gpu_count; g++)
            cJSON_AddItemToArray(gpus, state_json(&row->gpu[g]));
    }
    return root;
}

/* ---- the command ---- */

static const fl_command_help help = {
    "emulate",
    "[EXPERIMENT.json | FILE] [--platform NAME] [--board FILE] [--time virtual] -- "
    "COMMAND ...",
    "Runs a program that uses NVML against a simulated GPU: the workload runs there, sensors show it, locks and limits "
    "change its course. The program and all it starts find the simulated libnvidia-ml.so.1, wherever they look for it.",
    "In virtual time one thread of the session runs at a time and time jumps to the next instant at which one wants to "
    "go on: an hour takes well under a second and every run is the same. What cannot be virtual ends the run with exit "
    "status 3. Reading the sensors of a GPU takes the platform's read_ms, as the next look at the clock shows.\n\n"
    "Fan, PCIe, memory sizes and encoders are not simulated: fixed values; temperature is 40 C at all times without "
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

static void say(const char *text) { fprintf(stderr, "foldline emulate: note: %s\n", text); }

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
    fl_status s = fl_experiment_find(rest, e, &traces, d);
    if (!s)
        s = fl_scene_sort(so, &traces, d);
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

typedef struct asked {
    fl_scene_options scene;
    fl_texts rest, faults, errors;
    const char *time, *driver, *set_ms, *report, *rings, *board, *confine;
    bool quiet, anyone, kills;
} asked;

typedef struct session { /* what is made of it */
    fl_experiment experiment;
    fl_scenes scenes;
    fl_fault *fault;
    fl_refusal *refusal;
    fl_smi smi;
    char folder[64], platform[192]; /* with the file that was made of the board; empty = none was */
    char dir[4096];
    fl_emulate_options o;
} session;

/* A board instead of a platform, or beside one: the platform then has the law of power, the board what its GPUs say
 * they are. */
static fl_status open_board(asked *a, session *s, fl_diag *d) {
    if (!a->board)
        return FL_OK;
    fl_status status = fl_is_smi(a->board) ? fl_smi_read(a->board, &s->smi, d) : FL_OK;
    if (!status && !a->driver && s->smi.driver[0]) {
        a->driver = s->smi.driver;
        if (fl_driver_parse(a->driver, &s->o.driver, NULL))
            status =
                fl_refuse(d, "%s: driver_version '%s', expected a version from 450 on; --driver VERSION chooses one",
                          a->board, a->driver);
    }
    if (!status && !a->scene.gpus)
        a->scene.gpus = (int64_t)s->smi.count;
    if (status || a->scene.platform)
        return status;
    snprintf(s->folder, sizeof s->folder, "/tmp/foldline-board-XXXXXX");
    if (!mkdtemp(s->folder)) {
        s->folder[0] = 0;
        return fl_error(d, FL_IO, "cannot make a folder for the platform: %s", fl_reason(errno));
    }
    const char *slash = strrchr(a->board, '/'), *name = slash ? slash + 1 : a->board, *end = strrchr(name, '.');
    const size_t size = end && end > name ? (size_t)(end - name) : strlen(name); /* it is called as the board is */
    snprintf(s->platform, sizeof s->platform, "%s/%.*s.json", s->folder, (int)(size < 64 ? size : 64), name);
    a->scene.platform = s->platform;
    return fl_fit_board_platform(a->board, "generic", s->platform, d);
}

/* The number of GPUs is known once the scene is open. */
static fl_status check_errors(const asked *a, const session *s, fl_diag *d) {
    const uint32_t gpus = s->scenes.item[0]->platform.node.gpu_count;
    for (size_t i = 0; i < a->errors.count; i++)
        if (s->refusal[i].gpu >= 0 && (uint32_t)s->refusal[i].gpu >= gpus)
            return fl_refuse(d, "--error '%s': GPU %d, but the node has %u, counted from 0", a->errors.item[i],
                             (int)s->refusal[i].gpu, (unsigned)gpus);
    return FL_OK;
}

static fl_status prepare(asked *a, session *s, fl_diag *d) {
    fl_status status = parse_time(a->time, &s->o, d);
    if (!status)
        status = parse_set_ms(a->set_ms, &s->o, d);
    if (a->confine)
        s->o.confine = *a->confine == 'n' ? FL_CONFINE_NEED : *a->confine == 'o' ? FL_CONFINE_OFF : FL_CONFINE_TRY;
    if (!status)
        status = parse_errors(&a->errors, &s->refusal, d);
    if (!status)
        status = fl_fault_specs_parse(&a->faults, &s->fault, d);
    if (!status)
        status = find_client(s->dir, sizeof s->dir, d);
    if (!status)
        status = open_board(a, s, d);
    if (!status)
        status = fl_driver_parse(a->driver, &s->o.driver, d);
    if (!status)
        status = open_scene(&a->scene, &a->rest, &s->experiment, &s->scenes, d);
    if (!status)
        status = check_errors(a, s, d);
    if (status)
        return status;
    s->o.scene = s->scenes.item[0];
    s->o.fault = s->fault, s->o.fault_count = a->faults.count;
    s->o.refusal = s->refusal, s->o.refusal_count = a->errors.count;
    s->o.smi = s->smi.count ? &s->smi : NULL;
    s->o.client_dir = s->dir;
    s->o.note = say;
    s->o.rings = a->rings;
    s->o.anyone = a->anyone;
    return FL_OK;
}

static void close_session(session *s) {
    if (s->folder[0]) {
        unlink(s->platform);
        rmdir(s->folder);
    }
    fl_smi_free(&s->smi);
    fl_scenes_free(&s->scenes);
    fl_experiment_free(&s->experiment);
    free(s->fault);
    free(s->refusal);
}

/* One session; *status: the command's. */
static fl_status run_once(const asked *a, const session *s, int *status, fl_diag *d) {
    fl_emulate_result r = {0};
    fl_status e = fl_emulate(&s->o, &r, d);
    if (!e && a->report) {
        cJSON *tree = fl_emulate_json(&r);
        e = fl_json_write(a->report, tree, d);
        cJSON_Delete(tree);
    }
    if (!e) {
        *status = exit_status(r.command_status);
        if (!a->quiet)
            fl_emulate_print(&r, s->o.scene);
    }
    fl_emulate_result_free(&r);
    return e;
}

/* A session for each pattern; *status: a gate that holds where nothing is left changed. */
static fl_status run_kills(const asked *a, const session *s, int *status, fl_diag *d) {
    fl_kills k = {0};
    fl_status e = fl_kills_run(&s->o, &k, d);
    if (!e && a->report) {
        cJSON *tree = fl_kills_json(&k);
        e = fl_json_write(a->report, tree, d);
        cJSON_Delete(tree);
    }
    if (!e && !a->quiet)
        fl_kills_print(&k);
    for (size_t i = 0; !e && i < k.count; i++)
        *status = k.row[i].changed ? FL_EXIT_GATE : *status;
    fl_kills_free(&k);
    return e;
}

int fl_cmd_emulate(int argc, char **argv) {
    asked a = {0};
    session s = {0};
    const fl_option option[] = {
        FL_SCENE_OPTIONS(a.scene),
        {"board", "FILE", FL_OPTION_TEXT, &a.board, 0, 0,
         "GPUs as `nvidia-smi -q -x` printed them (.xml), or a board of `foldline list platforms`; without --platform "
         "the "
         "law of power is assumed from chips alike",
         FL_FOR_MACHINE | FL_MOST_USED},
        {"time", "wall|virtual|10x", FL_OPTION_TEXT, &a.time, 0, 0,
         "the clock, or any factor of it, such as 10x (wall)", FL_FOR_MACHINE | FL_MOST_USED},
        {"set-ms", "A[..B]", FL_OPTION_TEXT, &a.set_ms, 0, 0, "a set call takes this long (as the platform says)",
         FL_FOR_MACHINE},
        {"privileged", NULL, FL_OPTION_FLAG, &a.anyone, 0, 0,
         "whoever asks may set clocks and limits (root only, as with the driver)", FL_FOR_MACHINE | FL_MOST_USED},
        {"driver", "VERSION", FL_OPTION_TEXT, &a.driver, 0, 0, FL_DRIVER_HELP, FL_FOR_MACHINE},
        {"error", "SPEC", FL_OPTION_LIST, &a.errors, 0, 0, FL_REFUSAL_HELP, FL_FOR_MACHINE},
        {"fault", "SPEC", FL_OPTION_LIST, &a.faults, 0, 0, FL_FAULT_SPEC_HELP, FL_FOR_MACHINE},
        {"confine", "try|need|off", FL_OPTION_CHOICE, &a.confine, 0, 0,
         "covers a real driver's libraries and devices in namespaces of the run; need refuses without them (try)",
         FL_FOR_MACHINE},
        {"rings", "DIR", FL_OPTION_TEXT, &a.rings, 0, 0,
         "hands out activity records there, as the collector in a program does", FL_FOR_INPUT},
        {"kill-patterns", NULL, FL_OPTION_FLAG, &a.kills, 0, 0,
         "runs the command once to its end, then once for each way to kill it: what it leaves changed", FL_FOR_OUTPUT},
        {"o", "FILE", FL_OPTION_OUTPUT, &a.report, 0, 0, "writes what happened as JSON, set by set (- prints it)",
         FL_FOR_OUTPUT | FL_MOST_USED},
        {"quiet", NULL, FL_OPTION_FLAG, &a.quiet, 0, 0, "prints no report on stderr", FL_FOR_OUTPUT},
    };
    int split = 0, status = FL_EXIT_OK;
    while (split < argc && strcmp(argv[split], "--") != 0)
        split++;
    if (!fl_command_begin(split, argv, &help, option, sizeof option / sizeof *option, &a.rest, &status))
        return status;
    fl_diag d = {0};
    fl_status e = split + 1 < argc ? prepare(&a, &s, &d) : fl_refuse(&d, "no command given, expected -- COMMAND ...");
    if (!e && !(e = fl_output_try(a.report, &d))) {
        s.o.command = argv + split + 1;
        e = a.kills ? run_kills(&a, &s, &status, &d) : run_once(&a, &s, &status, &d);
    }
    if (e)
        status = fl_command_fail("emulate", &d);
    close_session(&s);
    fl_texts_free(&a.rest);
    fl_texts_free(&a.scene.only);
    fl_texts_free(&a.faults);
    fl_texts_free(&a.errors);
    return status;
}
