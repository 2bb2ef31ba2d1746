/* A pipeline's times and powers, from executed clock plans. */
#include "harness/plan/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/plan/plan.h"
#include "models/laws/laws.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/pipeline/pipeline.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const fl_command_help help = {
    "fit pipeline", "BASE [--learn WHICH] [--like BASE ...] [-o FILE.pipeline.csv]",
    "Fits a pipeline's times and powers to executed clock plans, and says how well it predicts plans that it has not "
    "seen.",
    "BASE.plans.csv, BASE.measured.csv and BASE.instructions.csv are read (harness/manual/formats/pipelines.md), "
    "BASE.order.csv and BASE.caps.csv where they are there. Without an order the schedule is 1F1B over --stages.\n\n"
    "Time and power follow the clock by the laws of a platform (models/README.md), which foldline plot models draws. "
    "What few plans cannot tell comes from what is expected of any chip, or, with "
    "--like, from other pipelines measured on the same chip. Each prediction is a run of the engine.\n\n"
    "A link that no plan keeps waiting cannot be told from the others: its time stays near what was expected.\n\n"
    "-o writes the mean of several fits, each to half of the plans: a planner exploits what one fit gets wrong."};

#define TWINS 8 /* halves that -o takes the mean of */

typedef struct options {
    fl_texts base, like;
    const char *learn, *out;
    int64_t stages, tensor, twins;
    double limit_w, least_limit_w;
    bool json;
} options;

typedef struct cell { /* one set of files and its fit */
    fl_pipeline_runs runs;
    fl_pipeline_fit fit;
    bool open;
} cell;

static void cell_free(cell *c) {
    if (c->open)
        fl_pipeline_fit_close(&c->fit);
    fl_pipeline_runs_free(&c->runs);
}

/* As many stages as the list of instructions has, or as asked for. */
static fl_status open_cell(const options *o, const char *base, cell *c, fl_diag *d) {
    fl_status s = fl_pipeline_runs_read(base, &c->runs, d);
    if (s)
        return s;
    uint32_t stages = o->stages ? (uint32_t)o->stages : c->runs.ranks;
    char *order = fl_must_print("%s.order.csv", base);
    const bool listed = !access(order, R_OK);
    if (listed)
        s = fl_pipeline_order_stages(order, &stages, d);
    c->open = !s;
    if (!s)
        s = fl_pipeline_fit_open(&c->fit, &c->runs, stages, (uint32_t)o->tensor, listed ? order : NULL, o->limit_w, d);
    free(order);
    return s;
}

static fl_status learn_from(cell *c, fl_pipeline_learn how, const fl_pipeline_beliefs *b, bool **learn, fl_diag *d) {
    *learn = fl_must(calloc(c->runs.plan_count + 1, sizeof **learn));
    fl_pipeline_learn_choose(&c->runs, how, *learn);
    if (!memchr(*learn, true, c->runs.plan_count))
        return fl_refuse(d, "--learn %s leaves no plan to learn from, expected more plans than %zu",
                         fl_pipeline_learn_name[how], c->runs.plan_count);
    return fl_pipeline_fit_learn(&c->fit, *learn, b, d);
}

/* What the pipelines of --like lead to expect, fitted to all of their plans. */
static fl_status believe(const options *o, fl_pipeline_beliefs *b, fl_diag *d) {
    cell *c = fl_must(calloc(o->like.count + 1, sizeof *c));
    const fl_pipeline_fit **fit = fl_must(calloc(o->like.count + 1, sizeof *fit));
    fl_status s = FL_OK;
    *b = fl_pipeline_any_chip;
    for (size_t i = 0; !s && i < o->like.count; i++) {
        bool *learn = NULL;
        s = open_cell(o, o->like.item[i], &c[i], d);
        if (!s)
            s = learn_from(&c[i], FL_LEARN_ALL, &fl_pipeline_any_chip, &learn, d);
        fit[i] = &c[i].fit;
        free(learn);
    }
    if (!s && o->like.count)
        fl_pipeline_fit_believe(fit, o->like.count, b);
    for (size_t i = 0; i < o->like.count; i++)
        cell_free(&c[i]);
    free(c);
    free(fit);
    return s;
}

/* ---- what it prints ---- */

static void print_error(const char *what, const fl_pipeline_error *time, const fl_pipeline_error *energy) {
    printf(
        "%-11s time %5.2f %% mean, %5.2f %% p95, %5.2f %% worst; energy %5.2f %% mean, %5.2f %% p95, %5.2f %% worst\n",
        what, time->mean, time->p95, time->worst, energy->mean, energy->p95, energy->worst);
}

static void print_text(const cell *c, const fl_pipeline_score *s, const bool *learn, double least_limit_w) {
    const fl_pipeline_fit *f = &c->fit;
    printf("%4s %10s %10s %8s %12s %12s %8s\n", "plan", "time s", "predicted", "error %", "energy J", "predicted",
           "error %");
    for (size_t i = 0; i < c->runs.plan_count; i++)
        printf("%4lld %10.4f %10.4f %8.2f %12.1f %12.1f %8.2f%s\n", (long long)c->runs.plan[i], c->runs.time_s[i],
               s->seconds[i], 100 * (s->seconds[i] / c->runs.time_s[i] - 1), c->runs.energy_j[i], s->joules[i],
               100 * (s->joules[i] / c->runs.energy_j[i] - 1),
               learn[i]                                  ? "  learned"
               : i == 0 && fl_pipeline_warm_up(&c->runs) ? "  warm-up, not scored"
                                                         : "");
    printf("\nlearned from %zu plan%s, %zu left out\n", s->learned, s->learned == 1 ? "" : "s", s->left_out);
    if (s->left_out)
        print_error("left out", &s->time, &s->energy);
    if (s->left_out && !isnan(s->near_time.mean))
        print_error("neighbours", &s->near_time, &s->near_energy);
    if (s->limited) {
        printf("power limits of %g W and more, %zu runs:\n", least_limit_w, s->limited);
        print_error("limits", &s->cap_time, &s->cap_energy);
    }
    printf("\nblocked     %.1f W; end of an iteration %.1f ms\ntransfers  ", f->blocked_w, 1e3 * f->tail_s);
    for (uint32_t k = 0; k + 1 < f->p.stages; k++)
        printf(" %.1f", 1e3 * f->link_s[k]);
    printf(" ms\npower      ");
    for (uint32_t rank = 0; rank < f->p.ranks; rank++)
        printf(" %.0f", f->power_w[rank]);
    printf(" W at %.0f MHz\n", FL_STAGE_F0 * c->runs.top_mhz);
}

static void put_error(cJSON *json, const char *name, const fl_pipeline_error *e) {
    cJSON *o = cJSON_AddObjectToObject(json, name);
    fl_json_add_real(o, "mean_pct", e->mean);
    fl_json_add_real(o, "p95_pct", e->p95);
    fl_json_add_real(o, "worst_pct", e->worst);
}

static void print_json(const fl_pipeline_score *s) {
    cJSON *json = cJSON_CreateObject();
    fl_json_add_real(json, "learned", (double)s->learned);
    fl_json_add_real(json, "left_out", (double)s->left_out);
    put_error(json, "time", &s->time);
    put_error(json, "energy", &s->energy);
    put_error(json, "neighbours_time", &s->near_time);
    put_error(json, "neighbours_energy", &s->near_energy);
    put_error(json, "limits_time", &s->cap_time);
    put_error(json, "limits_energy", &s->cap_energy);
    fl_json_print(json, stdout);
    cJSON_Delete(json);
}

static size_t folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Names the list of instructions as seen from `out`: by its name alone where both are in one folder, else by its whole
 * path. */
static void name_order(const char *order, const char *out, fl_head *head) {
    const size_t folder = folder_of(order);
    char *whole = fl_must(folder == folder_of(out) && !strncmp(order, out, folder) ? strdup(order + folder)
                                                                                   : realpath(order, NULL));
    fl_must_have(fl_head_set(head, "schedule", "list") && fl_head_set(head, "order", whole));
    free(whole);
}

/* A row at each clock that a plan asked for, where times are known. */
static fl_status write_pipeline(const options *o, cell *c, const bool *learn, const fl_pipeline_beliefs *b,
                                fl_diag *d) {
    enum { CLOCKS_MAX = 512 };
    double mhz[CLOCKS_MAX];
    size_t n = 0;
    char text[64];
    fl_pipeline p = {0};
    for (size_t i = 0; i < c->runs.asked_count && n < CLOCKS_MAX; i++) {
        size_t k = 0;
        while (k < n && mhz[k] != c->runs.asked[i].sm_mhz)
            k++;
        if (k == n)
            mhz[n++] = c->runs.asked[i].sm_mhz;
    }
    fl_status s = o->twins ? fl_pipeline_fit_twins(&c->fit, learn, b, (uint32_t)o->twins, &p, mhz, n, d)
                           : fl_pipeline_fit_rows(&c->fit, mhz, n, &p, d);
    if (s)
        return s;
    const struct {
        const char *key;
        uint32_t value;
    } head[] = {{"stages", p.stages},
                {"microbatches", p.microbatches},
                {"data_parallel", p.data_parallel},
                {"tensor_parallel", p.tensor_parallel}};
    fl_must_have(fl_head_set(&p.head, "schedule", fl_pipeline_schedule_name[FL_PIPELINE_1F1B]));
    if (c->fit.p.schedule == FL_PIPELINE_LIST)
        name_order(c->fit.p.order, o->out, &p.head);
    for (size_t k = 0; k < sizeof head / sizeof *head; k++) {
        snprintf(text, sizeof text, "%u", head[k].value);
        fl_must_have(fl_head_set(&p.head, head[k].key, text));
    }
    snprintf(text, sizeof text, "%g", o->limit_w);
    fl_must_have(fl_head_set(&p.head, "power_limit_w", text));
    snprintf(text, sizeof text, "%.40s", o->base.item[0]);
    fl_must_have(fl_head_set(&p.head, "source", text));
    s = fl_pipeline_write(o->out, &p, d);
    fl_pipeline_free(&p);
    return s;
}

static fl_pipeline_learn find_learn(const char *name) {
    size_t k = 0;
    while (strcmp(name, fl_pipeline_learn_name[k]) != 0)
        k++;
    return (fl_pipeline_learn)k;
}

/* The files that BASE names are inputs, too: no output may be one. */
static fl_status spare_files(const fl_texts *bases, const fl_option *option, size_t count, fl_diag *d) {
    static const char *const ending[] = {"plans", "measured", "instructions", "order", "caps"};
    fl_status s = FL_OK;
    for (size_t i = 0; i < bases->count; i++)
        for (size_t k = 0; !s && k < sizeof ending / sizeof *ending; k++) {
            char *path = fl_must_print("%s.%s.csv", bases->item[i], ending[k]);
            s = fl_args_spare(option, count, path, d);
            free(path);
        }
    return s;
}

int fl_cmd_fit_pipeline(int argc, char **argv) {
    options o = {.learn = "all", .tensor = 1, .twins = -1, .limit_w = 300, .least_limit_w = 225};
    const fl_option option[] = {
        {"learn", "all|half|others|three|first|slow", FL_OPTION_CHOICE, &o.learn, 0, 0,
         "plans to learn from; others: those that half leaves out (all)"},
        {"like", "BASE", FL_OPTION_LIST, &o.like, 0, 0, "another pipeline measured on the same chip (may be repeated)",
         FL_FOR_INPUT},
        {"stages", "N", FL_OPTION_INT, &o.stages, 1, FL_PIPELINE_RANKS_MAX,
         "where no list of instructions tells (a stage for each rank)", FL_FOR_INPUT},
        {"tensor-parallel", "N", FL_OPTION_INT, &o.tensor, 1, FL_PIPELINE_RANKS_MAX,
         "ranks that work on one stage together (1)", FL_FOR_MACHINE},
        {"limit", "W", FL_OPTION_REAL, &o.limit_w, 1, 1e5, "the boards' power limit while the plans ran (300)"},
        {"least-limit", "W", FL_OPTION_REAL, &o.least_limit_w, 1, 1e5,
         "runs under lower power limits than this are not scored (225)"},
        {"o", "FILE", FL_OPTION_OUTPUT, &o.out, 0, 0, "the fitted pipeline, for run and plan", FL_FOR_OUTPUT},
        {"twins", "N", FL_OPTION_INT, &o.twins, 0, 1000,
         "-o: mean of N fits, each to half of the plans, drawn by chance; 0: the fit that is scored (" FL_AS_TEXT(
             TWINS) ")"},
        FL_JSON_OPTION(&o.json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &o.base, &status))
        return status;
    fl_diag d = {0};
    cell c = {0};
    fl_pipeline_beliefs b;
    fl_pipeline_learn how = FL_LEARN_ALL;
    fl_pipeline_score score = {0};
    bool *learn = NULL;
    fl_status s = o.base.count == 1 ? FL_OK : fl_refuse(&d, "expected one BASE, the beginning of the files' names");
    if (!s && o.twins >= 0 && !o.out)
        s = fl_refuse(&d, "--twins has no effect without -o, expected both");
    o.twins = o.twins < 0 ? TWINS : o.twins;
    if (!s)
        how = find_learn(o.learn);
    if (!s)
        s = spare_files(&o.base, option, sizeof option / sizeof *option, &d);
    if (!s)
        s = spare_files(&o.like, option, sizeof option / sizeof *option, &d);
    if (!s)
        s = believe(&o, &b, &d);
    if (!s)
        s = open_cell(&o, o.base.item[0], &c, &d);
    if (!s)
        s = learn_from(&c, how, &b, &learn, &d);
    if (!s)
        s = fl_pipeline_score_make(&c.fit, learn, o.least_limit_w, &score, &d);
    if (!s && o.json)
        print_json(&score);
    else if (!s)
        print_text(&c, &score, learn, o.least_limit_w);
    if (!s && o.out)
        s = write_pipeline(&o, &c, learn, &b, &d);
    if (s)
        status = fl_command_fail(help.name, &d);
    if (!s && o.out && o.twins && !o.json)
        printf("%s: the mean of %lld fits to halves of these plans; the errors above are of one fit to all\n", o.out,
               (long long)o.twins);
    fl_pipeline_score_free(&score);
    free(learn);
    cell_free(&c);
    fl_command_end(option, sizeof option / sizeof *option, &o.base);
    return status;
}
