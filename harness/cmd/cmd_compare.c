#include "harness/base/command.h"
#include "harness/cmd/commands.h"
#include "harness/input/scene_text.h"
#include "harness/study/draws_compare.h"
#include "harness/study/model_error.h"
#include "harness/study/provenance.h"
#include "harness/study/published.h"
#include "harness/study/result_beside.h"
#include "harness/study/setup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "compare", "[TRACE.csv ...] [EXPERIMENT.json] [--programs FILE] [--sweep FILE] --platform NAME --policy SPEC ...",
    "Runs every policy over every workload and scores it against the driver's default, the best static clock, the best "
    "clock\n"
    "per kind of kernel and the clairvoyant schedule. Workloads are kernel traces, programs made of kinds, or the rows "
    "of a measured sweep.",
    "SPEC is a policy name or a path to a .so, with parameters after a colon: "
    "assure:theta=0.9,probe_mhz=855/1050/1245/1440.\n"
    "\n"
    "The CSV holds a row per workload and policy (and seed), then rows whose workload is 'mean'. slowdown is a "
    "fraction of the\n"
    "default's makespan; regrets are in joules (or J s, J s^2) and percent against the best that holds --bound; n/a "
    "where a row\n"
    "violates the bound; regret_at_own_slowdown_j is defined for every row. In a mean, violated counts and n/a cells "
    "are left\n"
    "out. Beside FILE.csv, FILE.provenance.json says what the result stands on; FILE.published.json and "
    "FILE.regret.csv\n"
    "are for foldline report. energy_j and both powers are the GPUs', on an APU the node's; peak_power_w adds the "
    "peaks "
    "of their\n"
    "parts, so that of several it is at most so much.\n"
    "\n"
    "An experiment that replays a paper ends in a table of published and simulated results; exit status 1 where one of "
    "its\n"
    "gates does not hold. With policies or workloads of your own it is left out."};

static fl_status write_results(const fl_setup *u, const fl_comparison *c, const fl_published *published,
                               const char *csv, cJSON *record, fl_diag *d) {
    fl_status s = fl_comparison_write(c, csv, d);
    if (!s)
        s = fl_provenance_write(csv, record, d);
    return s ? s : fl_report_beside_write(u, c, published, csv, d);
}

static void print_notes(const fl_comparison *c, const fl_scenes *scenes, const char *csv) {
    putchar('\n');
    fl_scene_notes(scenes, stdout);
    if (c->ignored_sets)
        printf("note: %llu sets of controls that this simulated node does not have were left without effect\n",
               (unsigned long long)c->ignored_sets);
    if (c->faults)
        printf("note: %llu faulty commands (0, NaN, infinity, a control not declared) were counted and left out\n",
               (unsigned long long)c->faults);
    if (csv)
        printf("written: %s\n", csv);
}

static void print_json(const fl_comparison *c, const fl_published *published, cJSON *record) {
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "rows");
    for (size_t i = 0; i < c->count; i++) {
        cJSON *row = cJSON_CreateObject();
        fl_row_json(row, &c->row[i]);
        cJSON_AddItemToArray(rows, row);
    }
    if (published)
        cJSON_AddItemToObject(root, "published", fl_published_json(published));
    cJSON_AddItemReferenceToObject(root, "provenance", record);
    fl_json_print(root, stdout);
    cJSON_Delete(root);
}

int fl_cmd_compare(int argc, char **argv) {
    fl_setup_options so = FL_SETUP_STANDARD;
    const char *csv = NULL;
    int64_t draws_of_model = 0;
    double time_error = NAN, power_error = NAN;
    bool each = false, json = false;
    const fl_option option[] = {
        FL_SETUP_OPTIONS(so),
        {"csv", "FILE", FL_OPTION_OUTPUT, &csv, 0, 0, "writes all rows, and FILE.provenance.json beside it"},
        {"each", NULL, FL_OPTION_FLAG, &each, 0, 0, "prints every row, not only the means"},
        {"json", NULL, FL_OPTION_FLAG, &json, 0, 0, "prints all rows and the provenance as JSON"},
        {"model-error", "N", FL_OPTION_INT, &draws_of_model, 1, 1e6,
         "moves the model within its error N times, 1000 say: which policy is first how often"},
        {"time-error", "PCT", FL_OPTION_REAL, &time_error, 0, 100, "mean error in time (what the model says)"},
        {"power-error", "PCT", FL_OPTION_REAL, &power_error, 0, 100, "mean error in power (what the model says)"},
    };
    int exit_status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &so.rest, &exit_status))
        return exit_status;

    fl_diag d = {0};
    fl_setup u = {0};
    fl_comparison c = {0};
    fl_published *published = NULL;
    fl_ranking *ranking = NULL;
    cJSON *record = NULL;
    fl_status s = fl_setup_open(&u, &so, &d);
    if (!s)
        s = fl_scenes_spare(&u.scenes, option, sizeof option / sizeof *option, &d);
    if (!s)
        fl_scene_warnings(&u.scenes);
    if (!s && !u.own) /* published results belong to the experiment's own policies and workloads */
        s = fl_published_open(&u.experiment, &u.labels, &published, &d);
    if (!s && published)
        s = fl_experiment_window(&u.experiment, &u.o.watch_ns, &d);
    const bool draws = fl_experiment_draws(&u.experiment);
    if (!s)
        s = draws ? fl_draws_compare(&u.experiment, &u.o, &c, &d) : fl_comparison_run(&u.o, &c, &d);
    if (!s && published)
        s = fl_published_solve(published, &c, &d);
    const fl_model_error_options error = {
        .draws = (size_t)draws_of_model, .time_pct = time_error, .power_pct = power_error, .seed = u.o.seed};
    if (!s && error.draws && draws)
        s = fl_refuse(&d, "--model-error: a distribution replay has no model to move");
    if (!s && error.draws && !(ranking = calloc(u.o.spec_count, sizeof *ranking)))
        s = fl_no_memory(&d, "the ranking");
    if (!s && error.draws)
        s = fl_model_error_run(&u.o, &error, ranking, &d);
    if (!s && !(record = fl_provenance(&u.scenes, u.spec, u.o.spec_count, u.o.seed)))
        s = fl_no_memory(&d, "the provenance");
    if (!s)
        fl_report_about(&u, record);
    if (!s && csv)
        s = write_results(&u, &c, published, csv, record, &d);
    if (s) {
        exit_status = fl_command_fail("compare", &d);
    } else if (json) {
        print_json(&c, published, record);
    } else {
        if (draws)
            fl_draws_print(&c, &u.o, each, stdout);
        else
            fl_comparison_print(&c, &u.o, each || (u.variants && !u.o.draws), stdout);
        print_notes(&c, &u.scenes, csv);
        if (ranking) {
            putchar('\n');
            fl_model_error_print(&u.o, &error, ranking, stdout);
        }
        if (published) {
            putchar('\n');
            fl_published_print(published, stdout);
        }
    }
    if (!s && published && fl_published_failed(published)) {
        fprintf(stderr, "foldline compare: %zu gate%s of the experiment did not hold\n", fl_published_failed(published),
                fl_published_failed(published) == 1 ? "" : "s");
        exit_status = FL_EXIT_GATE;
    }
    fl_published_free(published);
    free(ranking);
    cJSON_Delete(record);
    fl_comparison_free(&c);
    fl_setup_free(&u);
    fl_setup_options_free(&so);
    return exit_status;
}
