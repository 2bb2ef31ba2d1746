/* Runs a grid durably. */
#include "harness/study/grid/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/experiment/experiment.h"
#include "harness/study/compare/compare.h"
#include "harness/study/grid/grid.h"
#include "harness/study/trial/trial.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct sweep {
    fl_setup *u;
    fl_trials *trials;
    fl_journal *journal;
    size_t *job;   /* those to do, ascending */
    size_t *first; /* by scene: of its jobs among them; one more than there are scenes */
    fl_stage told;
    size_t jobs; /* in all: of each scene its baselines, then its runs */
    const fl_option *option;
    size_t option_count;
} sweep;

/* Those that no byte of the results hangs on, and --bound, which is in the key as it was understood: 5% is 0.05. Every
 * other option is part of the key, so that one added later is too. */
static bool in_key(const fl_option *option) {
    static const char *const without[] = {"o", "merge", "shard", "threads", "bound", "step-limit", "json", "path"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (!strcmp(option->name, without[i]))
            return false;
    return true;
}

/* The whole experiment as a hash: keys that no option stands for (variants, oracles, labels) count too. What it is
 * about does not. */
static void add_experiment(const fl_setup *u, cJSON *record) {
    char hash[FL_SHA256_TEXT];
    if (!u->experiment.tree)
        return;
    cJSON *tree = cJSON_Duplicate(u->experiment.tree, true);
    cJSON_DeleteItemFromObject(tree, "about");
    char *text = fl_must(fl_json_text(tree, false));
    cJSON_Delete(tree);
    cJSON_AddStringToObject(record, "experiment_sha256", fl_sha256_of(text, strlen(text), hash));
    free(text);
}

/* Everything that a result hangs on, as one hash: inputs by content, version, policies with all parameters, the
 * experiment, options. */
static void make_key(const sweep *w, cJSON *record, char *key) {
    const fl_setup *u = w->u;
    cJSON *o = cJSON_AddObjectToObject(record, "options");
    fl_json_add_real(o, "bound", u->o.bound);
    cJSON_AddItemToObject(o, "bounds", fl_promises_json(&u->promises));
    cJSON_AddStringToObject(o, "objective", fl_objective_names[u->o.objective]);
    cJSON_AddNumberToObject(o, "positions", (double)u->o.positions);
    cJSON_AddNumberToObject(o, "seeds", (double)fl_setup_seeds(u));
    cJSON_AddBoolToObject(o, "oracles", u->o.oracles);
    cJSON *settings = cJSON_AddObjectToObject(record, "settings");
    for (size_t i = 0; i < w->option_count; i++)
        if (in_key(&w->option[i]))
            fl_json_add_options(settings, &w->option[i], 1);
    add_experiment(u, record);
    char *text = fl_must(fl_json_text(record, false));
    fl_sha256_of(text, strlen(text), key);
    free(text);
}

static size_t runs_of_scene(const fl_setup *u) { return u->o.spec_count * u->o.seeds; }

static fl_status put_rows(sweep *w, size_t job, fl_row_result *row, size_t count, fl_diag *d) {
    fl_text t;
    FILE *f = fl_must(fl_text_open(&t));
    for (size_t i = 0; i < count; i++) {
        fl_row_put(f, &row[i]);
        fl_row_free(&row[i]);
    }
    char *text = fl_must(fl_text_close(&t, NULL));
    fl_status s = fl_journal_add(w->journal, job, text, d);
    free(text);
    return s;
}

static fl_status run_job(sweep *w, size_t job, fl_diag *d) {
    const size_t each = 1 + runs_of_scene(w->u), scene = job / each, within = job % each;
    fl_row_result row[FL_BASELINES];
    size_t count = 0;
    fl_status s;
    if (!within) {
        s = fl_trials_baselines(w->trials, scene, row, &count, d);
        if (!s)
            fl_best_known(row, count, w->u->o.objective);
    } else {
        s = fl_trials_run(w->trials, scene * runs_of_scene(w->u) + within - 1, row, d);
        count = !s && row[0].policy;
        if (count) /* it stands alone: the others of its scene may be another shard's */
            fl_best_known_alone(row, w->u->o.objective);
    }
    return s ? s : put_rows(w, job, row, count, d);
}

/* ---- scene by scene: those with jobs left ---- */

enum { RUNS = FL_TRIALS_READY, END };

static size_t turn_jobs(void *user, size_t scene, size_t stage) {
    const sweep *w = user;
    const size_t runs = w->first[scene + 1] - w->first[scene];
    if (!runs)
        return FL_TURNS_OVER;
    if (stage < FL_TRIALS_READY)
        return fl_trials_jobs(w->trials, scene, (fl_trials_stage)stage);
    return stage == RUNS ? runs : stage == END ? 1 : FL_TURNS_OVER;
}

static fl_status run_turn(void *user, size_t scene, size_t stage, size_t job, fl_diag *d) {
    sweep *w = user;
    if (stage < FL_TRIALS_READY)
        return fl_trials_prepare(w->trials, scene, (fl_trials_stage)stage, job, d);
    if (stage == END) {
        fl_trials_forget(w->trials, scene);
        return FL_OK;
    }
    const fl_status s = run_job(w, w->job[w->first[scene] + job], d);
    fl_stage_add(w->told, 1);
    return s;
}

static fl_status run_jobs(sweep *w, size_t count, fl_diag *d) {
    const size_t scenes = w->u->scenes.count, each = 1 + runs_of_scene(w->u);
    const fl_turns turns = {turn_jobs, run_turn, w, scenes, fl_threads(w->u->o.threads)};
    if (!count)
        return FL_OK;
    w->first = fl_must(calloc(scenes + 1, sizeof *w->first));
    for (size_t i = 0; i < count; i++)
        w->first[w->job[i] / each + 1]++;
    for (size_t i = 0; i < scenes; i++)
        w->first[i + 1] += w->first[i];
    w->trials = fl_trials_new(&w->u->o);
    w->told = fl_stage_begin("runs", count);
    const fl_status s = fl_turns_run(&turns, w->u->o.threads, d);
    fl_stage_end(w->told);
    return s;
}

/* Finds the jobs of this shard that are not done yet, and counts all of them in *r. Returns the number of the former.
 */
static size_t choose_jobs(sweep *w, size_t shard, size_t shards, fl_sweep_result *r) {
    size_t count = 0;
    w->job = fl_must(malloc((w->jobs + 1) * sizeof *w->job));
    for (size_t i = shard; i < w->jobs; i += shards) {
        r->jobs++;
        r->workloads += i % (1 + runs_of_scene(w->u)) == 0;
        if (!fl_journal_has(w->journal, i))
            w->job[count++] = i;
    }
    return count;
}

static fl_status parse_shard(const char *text, size_t *shard, size_t *shards, fl_diag *d) {
    char end;
    *shard = 0;
    *shards = 1;
    if (!text)
        return FL_OK;
    if (sscanf(text, "%zu/%zu%c", shard, shards, &end) != 2 || !*shard || *shard > *shards || *shards > 100000)
        return fl_refuse(d, "--shard '%s', expected I/N with I from 1 to N", text);
    --*shard;
    return FL_OK;
}

static fl_status write_file(sweep *w, const char *path, bool shard, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d->status;
    if (!shard)
        fl_row_head(fl_output_file(o));
    if (shard)
        fl_journal_write_shard(w->journal, fl_output_file(o));
    else
        fl_journal_write(w->journal, fl_output_file(o));
    return fl_output_commit(o, d);
}

/* The results, their provenance, and then the end of the journal: in this order, so that a kill in between loses
 * nothing. The standard output has nothing beside it: the rows alone. */
static fl_status finish(sweep *w, const char *out, bool shard, const char *journal, cJSON *record, fl_diag *d) {
    if (!journal)
        return write_file(w, out, shard, d);
    char *path = fl_provenance_path(out);
    fl_status s = fl_journal_sync(w->journal, d);
    if (!s)
        s = write_file(w, out, shard, d);
    if (!s) /* the shards share one record, which names no result */
        s = shard ? fl_json_write(path, record, d) : fl_provenance_write(out, record, d);
    free(path);
    if (!s)
        unlink(journal);
    return s;
}

fl_status fl_sweep_run(fl_setup *u, const fl_sweep_options *o, fl_sweep_result *r, fl_diag *d) {
    sweep w = {
        .u = u, .option = o->option, .option_count = o->option_count, .jobs = u->scenes.count * (1 + runs_of_scene(u))};
    char key[FL_SHA256_TEXT], *journal = NULL;
    size_t shard, shards;
    *r = (fl_sweep_result){0};
    if (fl_experiment_draws(&u->experiment))
        return fl_fail(d, FL_BAD_INPUT, u->experiment.path, 0, 0,
                       "a distribution replay, expected an experiment with kernels; foldline compare runs it whole");
    if (fl_promises_watched(&u->promises))
        return fl_refuse(d, "a bound on a quantity that the rows of a sweep lack, expected a column of its CSV");
    fl_status s = parse_shard(o->shard, &shard, &shards, d);
    if (s)
        return s;
    cJSON *record = fl_report_record(u);
    make_key(&w, record, key);
    const bool beside = !fl_is_standard(o->out);
    fl_report_about(u, record); /* what it is about is no part of the key */
    r->path =
        o->shard && beside ? fl_must_print("%s.shard-%zu-of-%zu", o->out, shard + 1, shards) : fl_must(strdup(o->out));
    if (beside)
        journal = fl_must_print("%s.journal", r->path);
    s = fl_journal_open(&w.journal, journal, key, w.jobs, d);
    if (!s) {
        const size_t count = choose_jobs(&w, shard, shards, r);
        r->before = r->jobs - count;
        s = run_jobs(&w, count, d);
    }
    if (!s)
        s = finish(&w, r->path, o->shard != NULL, journal, record, d);
    free(journal);
    free(w.job);
    free(w.first);
    fl_trials_close(w.trials);
    fl_journal_close(w.journal);
    cJSON_Delete(record);
    return s;
}

void fl_sweep_result_free(fl_sweep_result *r) {
    free(r->path);
    *r = (fl_sweep_result){0};
}
