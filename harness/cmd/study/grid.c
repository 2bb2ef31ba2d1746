/* `foldline grid`. */
#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/scene/scene.h"
#include "harness/study/compare/compare.h"
#include "harness/study/grid/grid.h"
#include "harness/study/trial/trial.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- --merge ---- */

static fl_status merge(const fl_texts *shards, const char *out, size_t *jobs, fl_diag *d) {
    fl_journal *j;
    fl_status s = fl_journal_merge(&j, shards->item, shards->count, d);
    fl_output *o = s ? NULL : fl_output_open(out, d);
    if (!s && !o)
        s = d->status;
    if (o) {
        fl_row_head(fl_output_file(o));
        fl_journal_write(j, fl_output_file(o));
        s = fl_output_commit(o, d);
    }
    *jobs = s ? 0 : fl_journal_count(j);
    fl_journal_close(j);
    return s;
}

/* The shards have one provenance; it goes along, unless neither end has a place for it. */
static fl_status copy_provenance(const fl_texts *shards, const char *out, fl_diag *d) {
    const char *shard = shards->item[shards->count > 1 && fl_is_standard(shards->item[0])];
    if (fl_is_standard(shard) || fl_is_standard(out))
        return FL_OK;
    char *from = fl_provenance_path(shard);
    cJSON *tree = NULL;
    fl_status s = fl_json_read(from, &tree, d);
    if (!s)
        s = fl_provenance_write(out, tree, d);
    cJSON_Delete(tree);
    free(from);
    return s;
}

static void print_json(const char *first, size_t n, const char *second, size_t m, const char *file) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, first, (double)n);
    cJSON_AddNumberToObject(root, second, (double)m);
    cJSON_AddStringToObject(root, "file", file);
    fl_json_tell(root);
}

static fl_status merge_all(const fl_texts *shards, const char *out, bool json, fl_diag *d) {
    size_t jobs = 0;
    fl_status s = shards->count ? merge(shards, out, &jobs, d) : fl_refuse(d, "no shard given, expected SHARD ...");
    if (!s)
        s = copy_provenance(shards, out, d);
    if (!s && json)
        print_json("shards", shards->count, "jobs", jobs, out);
    else if (!s)
        printf("written: %s\n", out);
    return s;
}

/* ---- the command ---- */

static const fl_command_help help = {
    "grid", "EXPERIMENT.json|FILE -o RESULTS.csv [--shard I/N] | --merge SHARD ... -o RESULTS.csv",
    "Runs a grid: policies x values of their parameters x workloads x platforms x variants x seeds, one row per run. "
    "--shard 2/5 writes RESULTS.csv.shard-2-of-5, and --merge joins such files.",
    "Each row goes durably into RESULTS.csv.journal as soon as it is computed. If the command is killed at any instant "
    "and started again, it continues from there. The finished file is the same, byte for byte, for any number of "
    "threads, any order of the jobs and any number of restarts.\n\n"
    "--shard 2/5 runs every fifth job from the second on. --merge joins all "
    "shards into one file, byte for byte what a single run would have written. It refuses shards whose inputs, "
    "options or versions differ, missing jobs, and jobs that occur twice.\n\n"
    "In an experiment a parameter may be {\"each\": [..]}, {\"from\": .., \"to\": .., \"step\": ..} or {\"from\": "
    "..,\n"
    "\"to\": .., \"count\": .., \"log\": true}, and \"platforms\" a list. One that names no workload needs a sweep, "
    "programs or a trace as well; its \"about\" says which at its beginning."};

/* An argument as a shell reads it. */
static void put_argument(const char *text, FILE *out) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    const bool quote = !*text || text[strspn(text, plain)];
    fputs(quote ? " '" : " ", out);
    for (; *text; text++)
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, 0}, out);
    fputs(quote ? "'" : "", out);
}

/* What an interrupted grid says: how to continue it. */
static char *last_words(int argc, char **argv) {
    fl_text t;
    FILE *f = fl_must(fl_text_open(&t));
    fputs("foldline grid: interrupted; the rows computed so far are kept. To continue:\n ", f);
    put_argument(program_invocation_name, f);
    fputs(" grid", f);
    for (int i = 0; i < argc; i++)
        put_argument(argv[i], f);
    fputc('\n', f);
    return fl_must(fl_text_close(&t, NULL));
}

int fl_cmd_grid(int argc, char **argv) {
    fl_setup_options so = FL_SETUP_UNSET;
    const char *out = NULL, *shard = NULL, *path = NULL;
    bool json = false, merges = false;
    const fl_option option[] = {
        {"o", "FILE", FL_OPTION_OUTPUT, &out, 0, 0, "the results", FL_FOR_OUTPUT | FL_MOST_USED},
        {"merge", NULL, FL_OPTION_FLAG, &merges, 0, 0, "joins the shards that are given into one result"},
        FL_JSON_OPTION(&json),
        {"shard", "I/N", FL_OPTION_TEXT, &shard, 0, 0, "every N-th job from the I-th on"},
        FL_SETUP_OPTIONS(so),
        FL_ORACLE_OPTIONS(so),
        FL_PATH_OPTION(&path),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &so.rest, &status))
        return status;
    fl_diag d = {0};
    fl_setup u = {0};
    fl_sweep_result r = {0};
    fl_status s = out ? FL_OK : fl_refuse(&d, "no -o FILE given, expected where the results go");
    if (!s && merges && !(s = fl_command_allow(option, FL_COUNT(option), true, "o merge json", "with --merge", &d)))
        s = merge_all(&so.rest, out, json, &d);
    if (s || merges) {
        status = s ? fl_command_fail("grid", &d) : FL_EXIT_OK;
        fl_setup_options_free(&so);
        return status;
    }
    so.scene.hold = FL_SCENES_COUNTED; /* a sweep's key has the number of kernels */
    fl_path_option_use(path);
    s = fl_setup_open(&u, &so, &d);
    if (!s)
        s = fl_scenes_spare(&u.scenes, u.spec, u.o.spec_count, option, sizeof option / sizeof *option, &d);
    if (!s)
        fl_scene_warnings(&u.scenes);
    if (!s)
        fl_ticker_last_words(last_words(argc, argv));
    if (!s)
        s = fl_sweep_run(&u, &(fl_sweep_options){out, shard, option, FL_COUNT(option)}, &r, &d);
    fl_ticker_last_words(NULL);
    if (s)
        status = fl_command_fail("grid", &d);
    else if (json)
        print_json("jobs", r.jobs, "before", r.before, r.path);
    else
        printf("%zu runs, and the baselines of %zu workload%s; %zu of these %zu from an earlier start\nwritten: %s\n",
               r.jobs - r.workloads, r.workloads, r.workloads == 1 ? "" : "s", r.before, r.jobs, r.path);
    if (!s)
        fl_path_option_tell(path);
    fl_sweep_result_free(&r);
    fl_setup_free(&u);
    fl_setup_options_free(&so);
    return status;
}
