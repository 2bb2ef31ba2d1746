/* Clocks for a pipeline of training, for one time or for all. */
#include "harness/plan/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/scene/scene.h"
#include "harness/plan/plan.h"
#include "harness/study/trial/trial.h"
#include "models/laws/device.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/pipeline/pipeline.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- `foldline import` of executed plans ---- */

bool fl_import_is_executed(const fl_texts *files) {
    for (size_t i = 0; i < files->count; i++)
        if (fl_executed_is(files->item[i]))
            return true;
    return false;
}

static void print_json(const fl_executed *e, const char *base) {
    cJSON *root = cJSON_CreateObject(), *plans = cJSON_AddObjectToObject(root, "plans");
    cJSON_AddNumberToObject(plans, "count", (double)e->plans.plan_count);
    cJSON_AddNumberToObject(plans, "ranks", e->ranks);
    cJSON_AddNumberToObject(plans, "stages", e->stages);
    cJSON_AddNumberToObject(plans, "microbatches", e->microbatches);
    if (base)
        cJSON_AddStringToObject(plans, "base", base);
    fl_json_tell(root);
}

fl_status fl_import_executed(const fl_texts *files, const char *base, bool json, fl_diag *d) {
    fl_executed e;
    fl_status s = fl_executed_read(files, &e, d);
    if (s)
        return s;
    fl_must_have(fl_head_set(&e.plans.head, "source", "executed plans, imported as perseus"));
    if (base)
        s = fl_executed_write(base, &e, d);
    if (!s && json)
        print_json(&e, base);
    if (!s && !json) {
        printf("plans       %zu executed on %u ranks: 1F1B, %u stages, %u microbatches\n", e.plans.plan_count, e.ranks,
               e.stages, e.microbatches);
        if (base)
            printf("written: %s.plans.csv, .measured.csv and .instructions.csv, for fit pipeline %s\n", base, base);
        else
            printf("nothing was written; -o BASE writes BASE.plans.csv, BASE.measured.csv and BASE.instructions.csv\n");
    }
    fl_executed_free(&e);
    return s;
}

/* ---- `foldline plan` ---- */

#define POINTS_STANDARD 40

static const fl_command_help help = {
    "plan", "PIPELINE [--time S | --slowdown X | --frontier] [-o FILE.plan.csv]",
    "Plans a clock for every forward and backward of a pipeline of training, for the least energy within a time.",
    "PIPELINE is a file as fit pipeline writes it (harness/manual/formats/pipelines.md). Without a time, it is the "
    "plan of "
    "least energy "
    "of all.\n"
    "'bound' is what no plan as fast can beat, whatever its clocks, 'gap' how far the plan "
    "is "
    "above "
    "it\n"
    "at most. The plan stands beside the driver's default, one clock for all, and one clock for each rank; time and "
    "energy\n"
    "of each are those of a run on the engine, of one iteration, until all ranks end. Clocks change at once there.\n\n"
    "--frontier gives a plan for each of --points times, from the shortest to that of the least energy. With "
    "--measured plans\n"
    "that were executed stand beside it. Plans make use of what their pipeline gets\n"
    "wrong; --judge asks another one, fitted to other plans, what it says of each plan.\n\n"
    "A rank that computes slower than it was measured is --slow rank=3:1.2; --power-limit rank=3:250 keeps clocks out "
    "at which\n"
    "a rank draws more. Plans are replayed by the policy plan."};

typedef struct options {
    fl_texts pipeline, slow, limit;
    const char *platform, *measured, *judge, *objective, *out, *rows;
    double time_s, slowdown;
    int64_t points;
    bool frontier, wide, json;
} options;

/* What a rank may draw while it computes, by the limit of its board in a run. */
static double board_limit_w(const fl_device *dev) {
    const bool held = dev->wall.period_ns > 0 && dev->power_default_w > 0;
    return held ? fl_wall_allows_w(&dev->wall, dev->power_default_w) * (1 + 1e-9) : (double)INFINITY;
}

static fl_status read_limits(const options *o, const fl_training *t, double **limit_w, fl_diag *d) {
    const uint32_t ranks = t->p.ranks;
    fl_status s = FL_OK;
    *limit_w = fl_must(calloc(ranks, sizeof **limit_w));
    for (uint32_t rank = 0; rank < ranks; rank++)
        (*limit_w)[rank] = board_limit_w(&t->node->device[t->node->gpu[rank]]);
    for (size_t i = 0; !s && i < o->limit.count; i++) {
        uint32_t rank;
        double watts;
        s = fl_rank_value_parse("--power-limit", o->limit.item[i], &rank, &watts, d);
        if (!s && rank >= ranks)
            s = fl_refuse(d, "--power-limit %s: no such rank, expected 0 to %u", o->limit.item[i], ranks - 1);
        if (!s)
            (*limit_w)[rank] = fmin((*limit_w)[rank], watts);
    }
    return s;
}

static fl_status check(const options *o, fl_diag *d) {
    if (o->pipeline.count != 1)
        return fl_refuse(d, "expected one PIPELINE, see --help");
    if (!isnan(o->time_s) && !isnan(o->slowdown))
        return fl_refuse(d, "--time and --slowdown both bound the time, expected one of them");
    if (o->frontier && (!isnan(o->time_s) || !isnan(o->slowdown)))
        return fl_refuse(d, "--frontier is of all times, expected it without --time and --slowdown");
    if (o->measured && !o->frontier)
        return fl_refuse(d, "--measured plans stand beside a frontier, expected --frontier, too");
    return FL_OK;
}

static fl_status write_plans(const options *o, fl_planned *r, fl_diag *d) {
    fl_must_have(fl_head_set(&r->plans.head, "pipeline", fl_input_name(o->pipeline.item[0])) &&
                 fl_head_set(&r->plans.head, "source", "foldline plan"));
    return fl_plans_write(o->out, &r->plans, d);
}

/* The table takes its place when the plans have: neither is there without the other. */
static fl_status write_files(const options *o, fl_planned *r, fl_diag *d) {
    fl_output *rows = o->rows ? fl_output_open(o->rows, d) : NULL;
    if (o->rows && !rows)
        return d->status;
    if (rows)
        fl_plan_tell_csv(r, fl_output_file(rows));
    const fl_status s = o->out ? write_plans(o, r, d) : FL_OK;
    if (s && rows)
        fl_output_abort(rows);
    return s || !rows ? s : fl_output_commit(rows, d);
}

static fl_status work(const options *o, fl_plan_ask *ask, const fl_option *option, size_t count, fl_diag *d) {
    fl_training t = {0}, judge = {0};
    fl_planned r = {0};
    double *limit_w = NULL;
    fl_status s = fl_training_open(o->pipeline.item[0], o->platform, &o->slow, &t, d);
    if (!s && o->judge)
        s = fl_training_open(o->judge, o->platform, &o->slow, &judge, d);
    if (!s)
        s = fl_args_spare(option, count, t.p.order, d);
    if (!s && o->judge)
        s = fl_args_spare(option, count, judge.p.order, d);
    if (!s && o->measured) {
        char *plans = fl_must_print("%s.plans.csv", o->measured);
        s = fl_args_spare(option, count, plans, d);
        if (!s)
            s = fl_args_spare(option, count, o->measured, d);
        free(plans);
    }
    if (!s)
        s = read_limits(o, &t, &limit_w, d);
    ask->t = &t;
    ask->judge = o->judge ? &judge : NULL;
    ask->limit_w = limit_w;
    if (!s)
        s = fl_planned_make(ask, &r, d);
    if (!s && o->json)
        fl_plan_tell_json(&r, ask);
    else if (!s)
        fl_plan_tell_text(&r, ask, o->wide);
    if (!s)
        s = write_files(o, &r, d);
    fl_planned_free(&r);
    free(limit_w);
    fl_training_free(&judge);
    fl_training_free(&t);
    return s;
}

int fl_cmd_plan(int argc, char **argv) {
    options o = {.time_s = NAN, .slowdown = NAN, .points = POINTS_STANDARD, .objective = FL_OBJECTIVE_STANDARD};
    const fl_option option[] = {
        {"platform", "NAME", FL_OPTION_TEXT, &o.platform, 0, 0,
         "its ladder, and its default clock (the clocks that PIPELINE states, and the top one)",
         FL_FOR_MACHINE | FL_MOST_USED},
        {"time", "S", FL_OPTION_REAL, &o.time_s, 1e-9, 1e9, "at most so many seconds an iteration", FL_MOST_USED},
        {"slowdown", "X", FL_OPTION_SHARE, &o.slowdown, 0, 1e3, "at most so much slower than the default clocks",
         FL_MOST_USED},
        {"objective", "energy|edp|ed2p", FL_OPTION_CHOICE, &o.objective, 0, 0,
         "what the plan has least of (" FL_OBJECTIVE_STANDARD ")", FL_FOR_POLICIES},
        {"frontier", NULL, FL_OPTION_FLAG, &o.frontier, 0, 0, "plans for all times", FL_MOST_USED},
        {"points", "N", FL_OPTION_INT, &o.points, 2, 100000,
         "of the frontier, at most (" FL_AS_TEXT(POINTS_STANDARD) ")"},
        {"slow", "rank=R:X", FL_OPTION_LIST, &o.slow, 0, 0, "rank R takes X times as long to compute (may be repeated)",
         FL_FOR_INPUT},
        {"power-limit", "rank=R:W", FL_OPTION_LIST, &o.limit, 0, 0,
         "rank R draws at most W while it computes (may be repeated)"},
        {"measured", "BASE", FL_OPTION_TEXT, &o.measured, 0, 0, "executed plans: the beginning of their files' names",
         FL_FOR_INPUT},
        {"judge", "FILE", FL_OPTION_TEXT, &o.judge, 0, 0, "another pipeline, which says what it makes of every plan",
         FL_FOR_INPUT},
        {"o", "FILE", FL_OPTION_OUTPUT, &o.out, 0, 0, "the plan, or all of the frontier, for --policy plan",
         FL_FOR_OUTPUT | FL_MOST_USED},
        {"rows", "FILE", FL_OPTION_OUTPUT, &o.rows, 0, 0, "all rows, for plot frontier", FL_FOR_OUTPUT},
        FL_WIDE_OPTION(&o.wide),
        FL_JSON_OPTION(&o.json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &o.pipeline, &status))
        return status;
    fl_diag d = {0};
    fl_plan_ask ask = {.frontier = o.frontier,
                       .points = (size_t)o.points,
                       .measured = o.measured,
                       .time_s = isnan(o.time_s) ? (double)INFINITY : o.time_s,
                       .slowdown = isnan(o.slowdown) ? (double)INFINITY : o.slowdown};
    fl_status s = check(&o, &d);
    if (!s)
        s = fl_objective_parse(o.objective, &ask.objective, &d);
    if (!s)
        s = work(&o, &ask, option, sizeof option / sizeof *option, &d);
    return fl_command_close(help.name, s, &d, option, sizeof option / sizeof *option, &o.pipeline);
}
