#include "harness/base/cli/command.h"
#include "harness/base/json/json_out.h"
#include "harness/base/cli/commands.h"
#include "harness/input/scene/path_option.h"
#include "harness/input/scene/text.h"
#include "harness/study/grid/sweep_run.h"

static const fl_command_help help = {
    "sweep", "EXPERIMENT.json -o RESULTS.csv [--shard I/N]",
    "Runs a grid: policies x values of their parameters x workloads x platforms x variants x seeds, one row per run.",
    "Each row goes durably into RESULTS.csv.journal as soon as it is computed. If the command is killed at any instant "
    "and started again, it continues from there. The finished file is the same, byte for byte, for any number of "
    "threads, any order of the jobs and any number of restarts.\n\n"
    "--shard 2/5 runs every fifth job from the second on and writes RESULTS.csv.shard-2-of-5; foldline merge makes one "
    "file from all shards. In an experiment a parameter may be {\"each\": [..]}, {\"from\": .., \"to\": .., \"step\": "
    "..} or {\"from\": .., \"to\": ..,\n"
    "\"count\": .., \"log\": true}, and \"platforms\" a list. One that names no workload needs --sweep FILE, "
    "--programs FILE or a trace as well; its \"about\" says which at its beginning."};

static void print_json(const fl_sweep_result *r) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "jobs", (double)r->jobs);
    cJSON_AddNumberToObject(root, "before", (double)r->before);
    cJSON_AddStringToObject(root, "file", r->path);
    fl_json_tell(root);
}

int fl_cmd_sweep(int argc, char **argv) {
    fl_setup_options so = FL_SETUP_UNSET;
    const char *out = NULL, *shard = NULL, *path = NULL;
    bool json = false;
    const fl_option option[] = {
        FL_SETUP_OPTIONS(so),
        FL_PATH_OPTION(&path),
        {"o", "FILE", FL_OPTION_OUTPUT, &out, 0, 0, "the results"},
        {"shard", "I/N", FL_OPTION_TEXT, &shard, 0, 0, "every N-th job from the I-th on"},
        {"json", NULL, FL_OPTION_FLAG, &json, 0, 0, "prints the result as JSON"},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &so.rest, &status))
        return status;
    fl_diag d = {0};
    fl_setup u = {0};
    fl_sweep_result r = {0};
    fl_status s = out ? FL_OK : fl_refuse(&d, "no -o FILE given, expected where the results go");
    so.scene.hold = FL_SCENES_COUNTED; /* a sweep's key has the number of kernels */
    if (!s)
        s = fl_path_option_use(path, &d);
    if (!s)
        s = fl_setup_open(&u, &so, &d);
    if (!s)
        s = fl_scenes_spare(&u.scenes, option, sizeof option / sizeof *option, &d);
    if (!s)
        fl_scene_warnings(&u.scenes);
    if (!s)
        s = fl_sweep_run(&u, &(fl_sweep_options){out, shard, option, FL_COUNT(option)}, &r, &d);
    if (s)
        status = fl_command_fail("sweep", &d);
    else if (json)
        print_json(&r);
    else
        printf("%zu jobs, %zu of them from before\nwritten: %s\n", r.jobs, r.before, r.path);
    if (!s)
        fl_path_option_tell(path);
    fl_sweep_result_free(&r);
    fl_setup_free(&u);
    fl_setup_options_free(&so);
    return status;
}
