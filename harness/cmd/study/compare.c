/* `foldline compare`. */
#include "harness/cmd/study/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/scene/scene.h"
#include "harness/report/data/data.h"
#include "harness/study/compare/compare.h"
#include "harness/study/trial/trial.h"
#include "policies/policy.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "compare", "FILE ... | SERVER REQUESTS [EXPERIMENT.json] --platform NAME [--policy SPEC ...]",
    "Runs every policy over every workload and scores it against the driver's default, the best static clock, the best "
    "clock per kernel class and the clairvoyant schedule. Without a policy it shows these baselines: what there is "
    "to gain. FILE is a kernel trace, programs or a measured sweep; a server of a language model is two files, "
    "as in foldline compare model.serving.csv requests.csv --platform h100.",
    "The clairvoyant schedule knows the future and may set any clock at any instant. No policy and no schedule that "
    "holds --bound reaches a lower objective than its bound; the schedule found is above it by at most 'gap'. With "
    "several streams the schedule is a reference and no bound is certified. --positions makes it coarser, and the gap "
    "shows the cost. The best clock per kernel gives one clock to each kernel class, together with the host time "
    "before it, so that the objective of the whole run is least. Of a server and without a policy, the command "
    "lists, for each number of servers from 1 to --servers, the best static clock that meets --ttft and --tbt. Servers "
    "that are switched off draw no power.\n\n"
    "SPEC is a policy name or a path to a .so, with parameters after a colon: "
    "assure:theta=0.9,probe_mhz=855/1050/1245/1440.\n\n"
    "-o writes a row per workload and policy (and seed), then rows whose workload is 'mean'. slowdown is a "
    "fraction of the default's makespan. Regrets are in joules (or J s, J s^2) and in percent of the best choice that "
    "holds --bound; a row that violates the bound has n/a there, but every row has regret_at_own_slowdown_j. In a mean "
    "row, violated counts rows, and n/a cells are left out: the text marks such a mean with *, and regret_static_rows "
    "and regret_clairvoyant_rows count the rows in it. objective_unit is the unit of regrets and of oracle_objective. "
    "clock is the clock of baseline:static. FILE.provenance.json, beside FILE.csv, records the inputs and parameters "
    "of the result; FILE.published.json and FILE.regret.csv serve foldline report. energy_j and both powers are those "
    "of the GPUs, on an APU those of the node. peak_power_w adds the peaks of several parts, so it is an upper "
    "limit.\n\n"
    "An experiment that names no workload, such as harness/experiments/power-wall.json, needs a sweep, programs "
    "or a trace as well; its \"about\" says which at its beginning.\n\n"
    "An experiment that replays a paper has a table of published and simulated results. It begins with the claims of "
    "the paper's system and a verdict on each, and ends with a score over the predictions. --all, --each and --wide "
    "print everything else. The exit status is 1 if a verdict differs from the one that the experiment records, for "
    "the better or the worse. The table is left out if you give policies or workloads of your own."};

typedef struct compare_options {
    fl_setup_options setup;
    fl_model_error_options error; /* draws 0: the model is not moved */
    const char *out;
    bool each, wide, all, json, kernels;
} compare_options;

typedef struct compared { /* and what is told of it */
    fl_setup u;
    fl_comparison c;
    fl_published *published;  /* NULL: the experiment has none, or it is not about this comparison */
    fl_result_tables *tables; /* as published */
    fl_ranking *ranking;      /* NULL: not asked for */
    fl_lock_caps locks;       /* of the sweep, if it has locks and power limits */
    cJSON *record;
    bool draws; /* a distribution replay */
} compared;

/* A policy that did not come to decide is named once, whatever the seeds and workloads. */
static void put_unstepped(const fl_comparison *c, FILE *out) {
    size_t named = 0;
    for (size_t i = 0; i < c->mean_first; i++) {
        size_t k = 0;
        while (k < i && (!c->row[k].unstepped || strcmp(c->row[k].policy, c->row[i].policy) != 0))
            k++;
        if (c->row[i].unstepped && k == i)
            fprintf(out, "%s%s", named++ ? ", " : "", c->row[i].policy);
    }
}

/* A policy that aims at a loss of its own does not read --bound, by which its runs are judged. */
static void put_own_bounds(const fl_setup *u, FILE *out) {
    for (size_t i = 0; i < u->o.spec_count && isfinite(u->o.bound); i++) {
        const fl_spec *spec = &u->spec[i];
        for (uint32_t k = 0; k < spec->policy->param_count && !spec->twin_of; k++) {
            const fl_param *row = &spec->policy->param[k];
            const char *text = row->standard;
            double own;
            if (strcmp(row->name, "bound") != 0 && strcmp(row->name, "con_perf") != 0)
                continue;
            for (size_t j = 0; j < spec->layer.count; j++)
                if (!strcmp(spec->layer.setting[j].name, row->name))
                    text = spec->layer.setting[j].text;
            if (fl_real_parse(text, &own) == FL_NUMBER_OK && fabs(own - u->o.bound) > 1e-9)
                fprintf(out,
                        "note: %s aims at a loss of %g %%, its parameter %s; runs are judged by %g %% "
                        "(--policy %s:%s=%g aims at that)\n",
                        spec->label, 100 * own, row->name, 100 * u->o.bound, spec->policy->name, row->name, u->o.bound);
        }
    }
}

static void put_notes(const void *of, FILE *out) {
    const compared *r = of;
    const fl_comparison *c = &r->c;
    put_own_bounds(&r->u, out);
    fl_best_known_print(c->row, c->mean_first, out);
    fl_lock_caps_put(&r->locks, out);
    fl_scene_notes(&r->u.scenes, out);
    fl_put_lost_commands(c->ignored_sets, c->faults, out);
    if (c->unstepped) {
        fprintf(out,
                "note: %zu run%s ended before %s policy looked a second time: its period is longer than all of %s (",
                c->unstepped, c->unstepped == 1 ? "" : "s", c->unstepped == 1 ? "the" : "their",
                c->unstepped == 1 ? "it" : "them");
        put_unstepped(c, out);
        fputs(")\n", out);
    }
}

static void print_json(const compared *r) {
    const fl_objective objective = r->draws ? FL_MIN_ENERGY : r->u.o.objective;
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "objective", fl_objective_names[objective]);
    cJSON_AddStringToObject(root, "objective_unit", fl_objective_unit[objective]);
    cJSON *rows = cJSON_AddArrayToObject(root, "rows");
    for (size_t i = 0; i < r->c.count; i++) {
        cJSON *row = fl_json_add_row(rows);
        fl_row_json(row, &r->c.row[i]);
    }
    if (r->published) {
        cJSON_AddItemToObject(root, "published", fl_published_json(r->published));
        cJSON_AddItemToObject(root, "score", fl_published_score_json(r->published));
    }
    if (r->tables)
        cJSON_AddItemToObject(root, "tables", fl_result_tables_json(r->tables));
    fl_json_add_notes(root, put_notes, r);
    cJSON_AddItemReferenceToObject(root, "provenance", r->record);
    fl_json_tell(root);
}

static void print_text(const compared *r, const compare_options *o) {
    const bool claims = r->published && fl_published_claims(r->published), all = o->all || o->each || o->wide;
    if (claims)
        fl_published_print(r->published, all, stdout);
    if (claims && !all) {
        put_notes(r, stdout);
        return;
    }
    if (claims)
        putchar('\n');
    fl_comparison_print(&r->c, &r->u.o, o->each || (r->u.variants && r->u.o.draws == 1 && !r->draws), o->wide, stdout);
    putchar('\n');
    put_notes(r, stdout);
    if (r->ranking) {
        putchar('\n');
        fl_model_error_print(&r->u.o, &o->error, r->ranking, stdout);
    }
    if (r->tables) {
        putchar('\n');
        fl_result_tables_print(r->tables, stdout);
    }
    if (r->published && !claims) {
        putchar('\n');
        fl_published_print(r->published, all, stdout);
    }
}

/* ---- the comparison ---- */

static fl_status rank(compared *r, const fl_model_error_options *error, fl_diag *d) {
    if (r->u.promises.count)
        return fl_refuse(d, "--model-error supports only a bound on the slowdown, expected no other bound");
    if (r->draws)
        return fl_refuse(d, "--model-error: a distribution replay has no model to vary");
    if (r->u.draw_count > 1)
        return fl_refuse(d, "--model-error: the applications are drawn more than once, expected one seed");
    r->ranking = fl_must(calloc(r->u.o.spec_count, sizeof *r->ranking));
    return fl_model_error_run(&r->u.o, error, r->ranking, d);
}

/* Draw by draw, so that the kernels of one draw alone are held at a time. */
static fl_status run_draws(compared *r, fl_setup_options *o, fl_diag *d) {
    fl_setup *u = &r->u;
    fl_status s = FL_OK;
    for (size_t first = 0, last; !s; first = last) {
        last = u->scenes.count;
        fl_scenes part = {.item = u->scenes.item + first, .count = last - first};
        fl_comparison_options one = u->o;
        one.scenes = &part;
        s = fl_comparison_scenes(&one, &r->c, d);
        if (s || u->draws_open >= u->draw_count)
            break;
        fl_scenes_forget(&u->scenes, first);
        s = fl_setup_next(u, o, d);
    }
    if (!s)
        fl_comparison_means(&r->c);
    return s;
}

static fl_status compare(compared *r, compare_options *o, const fl_option *option, size_t count, fl_diag *d) {
    fl_setup *u = &r->u;
    o->setup.scene.hold = o->error.draws ? FL_SCENES_AT_ONCE : FL_SCENES_IN_TURN; /* which go through them again */
    fl_status s = fl_setup_open(u, &o->setup, d);
    if (s || (s = fl_scenes_spare(&u->scenes, u->spec, u->o.spec_count, option, count, d)))
        return s;
    fl_scene_warnings(&u->scenes);
    if (!u->own) /* published results belong to the experiment's own policies and workloads */
        s = fl_published_open(&u->experiment, &u->labels, &r->published, d);
    if (!s && !u->own)
        s = fl_result_tables_open(&u->experiment, &u->labels, &r->tables, d);
    if (!s && (r->published || r->tables))
        s = fl_experiment_window(&u->experiment, &u->o.watch_ns, d);
    r->draws = fl_experiment_draws(&u->experiment);
    if (!s && r->draws && u->o.objective != FL_MIN_ENERGY)
        s = fl_refuse(d, "--objective %s has no effect in a distribution replay, which minimises energy",
                      fl_objective_names[u->o.objective]);
    if (!s)
        s = r->draws ? fl_draws_compare(&u->experiment, &u->o, &r->c, d) : run_draws(r, &o->setup, d);
    if (!s && r->published)
        s = fl_published_solve(r->published, &r->c, d);
    if (!s && r->tables)
        s = fl_result_tables_solve(r->tables, &r->c, d);
    if (!s && o->setup.scene.sweep && !r->draws)
        s = fl_lock_caps_read(o->setup.scene.sweep, &r->locks, d);
    o->error.seed = u->o.seed;
    if (!s && o->error.draws)
        s = rank(r, &o->error, d);
    if (!s) {
        r->record = fl_report_record(u);
        fl_report_about(u, r->record);
    }
    return s;
}

static fl_status write_results(const compared *r, const char *out, fl_diag *d) {
    fl_status s = fl_comparison_write(&r->c, out, d);
    if (!s)
        s = fl_provenance_write(out, r->record, d);
    return s ? s : fl_report_beside_write(&r->u, &r->c, r->published, out, d);
}

/* An experiment brings policies of its own. */
static bool has_policies(const fl_setup_options *o) {
    bool any = o->policies.count > 0;
    for (size_t i = 0; i < o->rest.count; i++)
        any |= fl_is_experiment(o->rest.item[i]);
    return any;
}

static fl_status tell_baselines(compare_options *o, const char *path, const fl_option *option, size_t count,
                                fl_diag *d) {
    fl_status s = fl_command_allow(option, count, false,
                                   "step-limit streams seeds windows no-oracle each all model-error time-error "
                                   "power-error",
                                   "without --policy", d);
    if (!s)
        s = fl_baselines_tell(&o->setup, &(fl_baselines_how){o->kernels, o->wide, o->json, o->out}, d);
    if (!s)
        fl_path_option_tell(path);
    return s;
}

int fl_cmd_compare(int argc, char **argv) {
    compare_options o = {.setup = {.bound = INFINITY, .by_draw = true}, .error = {.time_pct = NAN, .power_pct = NAN}};
    const char *path = NULL;
    int64_t error_draws = 0;
    const fl_option option[] = {
        FL_SETUP_OPTIONS(o.setup),
        FL_ORACLE_OPTIONS(o.setup),
        FL_PATH_OPTION(&path),
        {"o", "FILE", FL_OPTION_OUTPUT, &o.out, 0, 0, "writes all rows as CSV, and FILE.provenance.json beside it",
         FL_FOR_OUTPUT | FL_MOST_USED},
        {"each", NULL, FL_OPTION_FLAG, &o.each, 0, 0, "prints every workload, not only the means", FL_FOR_OUTPUT},
        FL_WIDE_OPTION(&o.wide),
        {"all", NULL, FL_OPTION_FLAG, &o.all, 0, 0,
         "of an experiment that replays a paper: prints more than its claims", FL_FOR_OUTPUT},
        FL_JSON_OPTION(&o.json),
        {"kernels", NULL, FL_OPTION_FLAG, &o.kernels, 0, 0,
         "without --policy: lists the best clock of every kernel class", FL_FOR_OUTPUT},
        {"model-error", "N", FL_OPTION_INT, &error_draws, 1, 1e6,
         "moves the model within its error N times, 1000 say: which policy is first how often"},
        {"time-error", "PCT", FL_OPTION_REAL, &o.error.time_pct, 0, 100, "mean error in time (what the model says)"},
        {"power-error", "PCT", FL_OPTION_REAL, &o.error.power_pct, 0, 100, "mean error in power (what the model says)"},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, FL_COUNT(option), &o.setup.rest, &status))
        return status;
    fl_diag d = {0};
    compared r = {0};
    o.error.draws = (size_t)error_draws;
    fl_status s = FL_OK;
    fl_path_option_use(path);
    if (!has_policies(&o.setup)) {
        s = tell_baselines(&o, path, option, FL_COUNT(option), &d);
        status = s ? fl_command_fail("compare", &d) : FL_EXIT_OK;
        fl_setup_options_free(&o.setup);
        return status;
    }
    if (!s)
        s = fl_command_allow(option, FL_COUNT(option), false, "kernels", "with --policy", &d);
    if (!s)
        s = compare(&r, &o, option, FL_COUNT(option), &d);
    if (!s && o.json)
        print_json(&r);
    else if (!s)
        print_text(&r, &o);
    if (!s && o.out && !(s = write_results(&r, o.out, &d)) && !o.json)
        printf("written: %s\n", o.out);
    const size_t failed = !s && r.published ? fl_published_failed(r.published) : 0;
    if (s)
        status = fl_command_fail("compare", &d);
    if (!s)
        fl_path_option_tell(path);
    if (failed) {
        fl_ticker_clear();
        fl_terminal_say(stderr, "foldline compare: %zu line%s of the experiment did not come out as recorded", failed,
                        failed == 1 ? "" : "s");
        status = FL_EXIT_GATE;
    }
    fl_published_free(r.published);
    fl_result_tables_free(r.tables);
    fl_lock_caps_free(&r.locks);
    free(r.ranking);
    cJSON_Delete(r.record);
    fl_comparison_free(&r.c);
    fl_setup_free(&r.u);
    fl_setup_options_free(&o.setup);
    return status;
}
