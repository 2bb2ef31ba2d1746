/* Runs a comparison and makes its means. */
#include "harness/study/compare/inside.h"

#include "harness/base/work/work.h"
#include "harness/study/compare/compare.h"
#include "harness/study/trial/trial.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fl_comparison_add(fl_comparison *c, const fl_row_result *row) {
    fl_must_grow(&c->row, &c->room, c->count + 1, sizeof *c->row);
    c->row[c->count++] = *row;
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

/* Rows of one mean: over workloads and seeds, or over the seeds of a workload. */
static bool same_mean(const void *owner, uint32_t index, const void *key) {
    const fl_comparison *c = owner;
    const fl_row_result *a = &c->row[index], *b = key;
    return same_text(a->policy, b->policy) && same_text(a->variant, b->variant) &&
           (!c->apart || (same_text(a->workload, b->workload) && same_text(a->platform, b->platform) &&
                          same_text(a->draw, b->draw)));
}

static uint32_t hash_of(const fl_row_result *row, bool apart) {
    const char *variant = row->variant ? row->variant : "";
    return fl_hash(row->policy, strlen(row->policy)) ^ 31 * fl_hash(variant, strlen(variant)) ^
           (apart ? 17 * fl_hash(row->workload, strlen(row->workload)) : 0);
}

/* Fills c->mean. Returns the number of means. */
static size_t number_means(fl_comparison *c) {
    fl_intern known = {0};
    size_t means = 0;
    free(c->mean);
    c->mean = fl_must(malloc((c->count + 1) * sizeof *c->mean));
    for (size_t i = 0; i < c->count; i++) {
        fl_intern_slot *slot = fl_must(fl_intern_find(&known, hash_of(&c->row[i], c->apart), same_mean, c, &c->row[i]));
        if (slot->index == UINT32_MAX) {
            slot->index = (uint32_t)i;
            c->mean[i] = (uint32_t)means++;
        }
        c->mean[i] = c->mean[slot->index];
    }
    fl_intern_free(&known);
    return means;
}

/* The policy of a mean, and the variant of the node where its workload does not name it. */
static const char *mean_label(fl_comparison *c, const fl_row_result *row) {
    if (!row->variant || c->apart)
        return row->policy;
    fl_must_grow(&c->label, &c->label_room, c->label_count + 1, sizeof *c->label);
    return c->label[c->label_count++] = fl_must_print("%s [%s]", row->policy, row->variant);
}

/* Pointers to the rows of each mean, mean by mean; those of mean k end before end[k]. */
static void gather(const fl_comparison *c, size_t means, const fl_row_result **member, size_t *end) {
    for (size_t k = 0; k <= means; k++)
        end[k] = 0;
    for (size_t i = 0; i < c->count; i++)
        end[c->mean[i] + 1]++;
    for (size_t k = 0; k < means; k++)
        end[k + 1] += end[k];
    for (size_t i = 0; i < c->count; i++)
        member[end[c->mean[i]]++] = &c->row[i];
}

void fl_comparison_means(fl_comparison *c) {
    const size_t rows = c->count, means = number_means(c);
    const fl_row_result **member = fl_must(malloc((rows + 1) * sizeof *member));
    double *room = fl_must(malloc((rows + 1) * sizeof *room));
    size_t *end = fl_must(malloc((means + 1) * sizeof *end));
    fl_row_result *mean = fl_must(calloc(means + 1, sizeof *mean));
    gather(c, means, member, end);
    for (size_t k = 0, begin = 0; k < means; begin = end[k++]) {
        const fl_row_result *first = member[begin];
        mean[k] = (fl_row_result){.workload = c->apart ? first->workload : "mean", .seed = first->seed};
        mean[k].platform = c->apart ? first->platform : NULL;
        mean[k].policy = mean_label(c, first);
        fl_row_mean(member + begin, end[k] - begin, room, &mean[k]);
    }
    for (size_t k = 0; k < means; k++) /* not before: the rows move as they grow */
        fl_comparison_add(c, &mean[k]);
    free(member);
    free(room);
    free(end);
    free(mean);
    c->mean_first = rows;
}

void fl_comparison_apart(const fl_comparison *c, fl_comparison *apart) {
    *apart = (fl_comparison){.apart = true};
    for (size_t i = 0; i < c->mean_first; i++) {
        fl_comparison_add(apart, &c->row[i]);
        apart->row[i].kept = NULL; /* still the other's */
    }
    fl_comparison_means(apart);
}

typedef struct baselines {
    fl_row_result row[FL_BASELINES];
    size_t count;
} baselines;

typedef struct work {
    const fl_comparison_options *o;
    fl_trials *trials;
    fl_row_result *row;
    baselines *base; /* of each scene */
    fl_stage told;
} work;

enum { RUNS = FL_TRIALS_READY, END, STAGES };

static size_t runs_of_scene(const fl_comparison_options *o) { return o->spec_count * o->seeds; }

static size_t jobs(void *user, size_t scene, size_t stage) {
    const work *w = user;
    if (stage < FL_TRIALS_READY)
        return fl_trials_jobs(w->trials, scene, (fl_trials_stage)stage);
    return stage == RUNS ? runs_of_scene(w->o) : stage == END ? 1 : FL_TURNS_OVER;
}

static fl_status run_one(void *user, size_t scene, size_t stage, size_t job, fl_diag *d) {
    work *w = user;
    const size_t i = scene * runs_of_scene(w->o) + job;
    if (stage < FL_TRIALS_READY)
        return fl_trials_prepare(w->trials, scene, (fl_trials_stage)stage, job, d);
    if (stage == RUNS) {
        const fl_status s = fl_trials_run(w->trials, i, &w->row[i], d);
        fl_stage_add(w->told, 1);
        return s;
    }
    const fl_status s = fl_trials_baselines(w->trials, scene, w->base[scene].row, &w->base[scene].count, d);
    w->base[scene].count = s ? 0 : w->base[scene].count; /* freed already */
    fl_trials_forget(w->trials, scene);
    return s;
}

/* Moves a row into the comparison. */
static void move_row(fl_comparison *c, fl_row_result *row) {
    fl_comparison_add(c, row);
    row->kept = NULL;
}

static void collect(const fl_comparison_options *o, work *w, fl_comparison *c) {
    for (size_t i = 0, at = 0; i < o->scenes->count; i++) {
        const size_t first = c->count;
        for (size_t k = 0; k < w->base[i].count; k++)
            move_row(c, &w->base[i].row[k]);
        for (size_t k = 0; k < o->spec_count * o->seeds; k++, at++) {
            if (!w->row[at].policy)
                continue;
            c->ignored_sets += w->row[at].ignored_sets;
            c->unstepped += w->row[at].unstepped;
            c->faults += w->row[at].faults;
            move_row(c, &w->row[at]);
        }
        fl_best_known(c->row + first, c->count - first, o->objective);
    }
}

fl_status fl_comparison_scenes(const fl_comparison_options *o, fl_comparison *c, fl_diag *d) {
    const size_t runs = fl_trials_count(o), scenes = o->scenes->count;
    work w = {.o = o,
              .trials = fl_trials_new(o),
              .row = fl_must(calloc(runs + 1, sizeof *w.row)),
              .base = fl_must(calloc(scenes + 1, sizeof *w.base))};
    /* As many scenes as threads: each thread has work, and no more is built than they can be at. */
    const fl_turns turns = {jobs, run_one, &w, scenes, fl_threads(o->threads)};
    w.told = fl_stage_begin("policies", runs);
    const fl_status s = fl_turns_run(&turns, o->threads, d);
    fl_stage_end(w.told);
    if (!s)
        collect(o, &w, c);
    for (size_t i = 0; i < runs; i++)
        fl_row_free(&w.row[i]);
    for (size_t i = 0; i < scenes; i++)
        for (size_t k = 0; k < w.base[i].count; k++)
            fl_row_free(&w.base[i].row[k]);
    free(w.row);
    free(w.base);
    fl_trials_close(w.trials);
    return s;
}

fl_status fl_comparison_run(const fl_comparison_options *o, fl_comparison *c, fl_diag *d) {
    *c = (fl_comparison){0};
    const fl_status s = fl_comparison_scenes(o, c, d);
    if (!s)
        fl_comparison_means(c);
    else
        fl_comparison_free(c);
    return s;
}

void fl_comparison_free(fl_comparison *c) {
    for (size_t i = 0; i < c->count; i++)
        fl_row_free(&c->row[i]);
    for (size_t i = 0; i < c->label_count; i++)
        free(c->label[i]);
    free(c->label);
    free(c->mean);
    free(c->row);
    *c = (fl_comparison){0};
}
