#include "harness/commands.h"
#include "harness/draws_compare.h"
#include "harness/published.h"

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
    "out. Beside FILE.csv, FILE.provenance.json says what the result stands on.\n"
    "\n"
    "An experiment that replays a paper ends in a table of published and simulated results; exit status 1 where one of "
    "its\n"
    "gates does not hold. With policies or workloads of your own it is left out."};

static fl_status write_results(const fl_comparison *c, const fl_comparison_options *o, const char *csv, cJSON *record,
                               fl_diag *d) {
    fl_status s = fl_comparison_write(c, csv, d);
    char *path = s ? NULL : fl_provenance_path(csv);
    if (path)
        s = fl_json_write(path, record, d);
    (void)o;
    free(path);
    return s;
}

static void print_json(const fl_comparison *c, const fl_published *published, cJSON *record) {
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "rows");
    for (size_t i = 0; i < c->count; i++) {
        const fl_row_result *r = &c->row[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "workload", r->workload);
        cJSON_AddStringToObject(row, "policy", r->policy);
        fl_json_add_real(row, "energy_j", r->score.energy_j);
        fl_json_add_real(row, "makespan_s", r->score.makespan_s);
        fl_json_add_real(row, "mean_power_w", r->score.mean_power_w);
        fl_json_add_real(row, "slowdown", r->score.slowdown);
        fl_json_add_real(row, "worst_window_slowdown", r->score.worst_window_slowdown);
        fl_json_add_real(row, "regret_static_j", r->score.regret_static_j);
        fl_json_add_real(row, "regret_static_pct", r->score.regret_static_pct);
        fl_json_add_real(row, "regret_clairvoyant_pct", r->score.regret_clairvoyant_pct);
        fl_json_add_real(row, "regret_at_own_slowdown_j", r->score.regret_at_own_slowdown_j);
        fl_json_add_real(row, "violated", r->violated);
        cJSON_AddNumberToObject(row, "switches", (double)r->score.switches);
        cJSON_AddItemToArray(rows, row);
    }
    if (published)
        cJSON_AddItemToObject(root, "published", fl_published_json(published));
    cJSON_AddItemReferenceToObject(root, "provenance", record);
    fl_json_print(root, stdout);
    cJSON_Delete(root);
}

int fl_cmd_compare(int argc, char **argv) {
    fl_scene_options so = {0};
    fl_texts rest = {0}, policies = {0}, traces = {0}, labels = {0};
    const char *csv = NULL, *objective = "energy";
    double bound = INFINITY;
    int64_t threads = 0, seeds = 1, positions = 0;
    bool each = false, json = false, no_oracle = false;
    const fl_option option[] = {
        FL_SCENE_OPTIONS(so),
        {"policy", "SPEC", FL_OPTION_LIST, &policies, 0, 0, "policy with parameters (may be repeated)"},
        {"bound", "X", FL_OPTION_REAL, &bound, 0, 100, "largest slowdown allowed, as a fraction: 0.10 (none)"},
        {"objective", "NAME", FL_OPTION_TEXT, &objective, 0, 0, "energy, edp or ed2p (energy)"},
        {"seeds", "N", FL_OPTION_INT, &seeds, 1, 100000, "runs of each policy, with seeds from --seed on (1)"},
        {"positions", "N", FL_OPTION_INT, &positions, 1, 1e6, "work positions of the clairvoyant schedule (4096)"},
        {"windows", "N", FL_OPTION_INT, &so.windows, 1, 1e6, "windows of work for the worst-window slowdown (20)"},
        {"threads", "N", FL_OPTION_INT, &threads, 1, 1024, "threads (all); the result does not depend on it"},
        {"csv", "FILE", FL_OPTION_TEXT, &csv, 0, 0, "writes all rows, and FILE.provenance.json beside it"},
        {"each", NULL, FL_OPTION_FLAG, &each, 0, 0, "prints every row, not only the means"},
        {"json", NULL, FL_OPTION_FLAG, &json, 0, 0, "prints all rows and the provenance as JSON"},
        {"no-oracle", NULL, FL_OPTION_FLAG, &no_oracle, 0, 0, "leaves out oracles and regrets (faster)"},
    };
    const size_t options = sizeof option / sizeof *option;
    int exit_status = FL_EXIT_OK;
    if (!fl_begin(argc, argv, &help, option, options, &rest, &exit_status))
        return exit_status;

    fl_diag d = {0};
    fl_scenes scenes = {0};
    fl_comparison c = {0};
    fl_spec *spec = NULL;
    size_t specs = 0, variants = 0;
    cJSON *record = NULL;
    fl_experiment ex = {0};
    fl_published *published = NULL;
    fl_comparison_options o = {.bound = bound, .threads = (unsigned)threads, .oracles = !no_oracle};
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < rest.count; i++) { /* an experiment gives what the command line does not */
        const char *dot = strrchr(rest.item[i], '.');
        if (!dot || strcmp(dot, ".json"))
            s = fl_texts_add(&traces, rest.item[i], &d);
        else if (ex.tree)
            s = fl_fail(&d, FL_BAD_INPUT, NULL, 0, 0, "more than one experiment, expected one");
        else
            s = fl_experiment_open(rest.item[i], &ex, &d);
    }
    const bool own = traces.count || policies.count || so.sweep || so.programs || so.only.count;
    if (!s && ex.tree)
        s = fl_experiment_apply(&ex, &so, &traces, &policies, &o.bound, &objective, &seeds, &d);
    if (!s)
        s = fl_objective_parse(objective, &o.objective, &d);
    if (!s && !policies.count)
        s = fl_fail(&d, FL_BAD_INPUT, NULL, 0, 0,
                    "no policy given, expected --policy NAME (foldline policies lists them)");
    spec = s ? NULL : calloc(policies.count, sizeof *spec);
    for (size_t i = 0; !s && spec && i < policies.count; i++, specs += !s)
        if (!(s = fl_spec_open(policies.item[i], &spec[i], &d)) && !(s = fl_experiment_spec(&ex, i, &spec[i], &d)))
            s = fl_texts_add(&labels, spec[i].label, &d);
    if (!s && !own) /* published results belong to the experiment's own policies and workloads */
        s = fl_published_open(&ex, &labels, &published, &d);
    if (!s && published)
        s = fl_experiment_window(&ex, &o.watch_ns, &d);
    if (!s)
        s = fl_experiment_scenes(&ex, &so, &traces, &scenes, &variants, &d);
    const bool each_asked = each;
    each |= variants > 0;
    o.oracles &= fl_experiment_oracles(&ex);
    if (!s)
        s = fl_experiment_positions(&ex, &positions, &d);
    o.positions = (size_t)positions;
    o.scenes = &scenes;
    o.spec = spec;
    o.spec_count = specs;
    o.seed = so.seed ? (uint64_t)so.seed : 1;
    o.seeds = (uint32_t)seeds;
    const bool draws = fl_experiment_draws(&ex);
    if (!s)
        s = draws ? fl_draws_compare(&ex, &o, &c, &d) : fl_comparison_run(&o, &c, &d);
    if (!s && published)
        s = fl_published_solve(published, &c, &d);
    if (!s && !(record = fl_provenance(&scenes, spec, specs, o.seed)))
        s = fl_fail(&d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the provenance");
    if (!s && csv)
        s = write_results(&c, &o, csv, record, &d);
    if (s) {
        exit_status = fl_report("compare", &d);
    } else if (json) {
        print_json(&c, published, record);
    } else {
        if (draws)
            fl_draws_print(&c, &o, each_asked, stdout);
        else
            fl_comparison_print(&c, &o, each, stdout);
        fputc('\n', stdout);
        fl_scene_notes(&scenes, stdout);
        if (c.ignored_sets)
            printf("note: %llu sets of controls that this simulated node does not have were left without effect\n",
                   (unsigned long long)c.ignored_sets);
        if (c.faults)
            printf("note: %llu faulty commands (0, NaN, infinity, a control not declared) were counted and left out\n",
                   (unsigned long long)c.faults);
        if (csv)
            printf("written: %s\n", csv);
        if (published) {
            fputc('\n', stdout);
            fl_published_print(published, stdout);
        }
    }
    if (!s && published && fl_published_failed(published)) {
        fprintf(stderr, "foldline compare: %zu gate%s of the experiment did not hold\n", fl_published_failed(published),
                fl_published_failed(published) == 1 ? "" : "s");
        exit_status = FL_EXIT_GATE;
    }
    fl_published_free(published);
    cJSON_Delete(record);
    fl_comparison_free(&c);
    fl_scenes_free(&scenes);
    for (size_t i = 0; spec && i < policies.count; i++)
        fl_spec_free(&spec[i]);
    free(spec);
    fl_experiment_free(&ex);
    fl_texts_free(&rest);
    fl_texts_free(&policies);
    fl_texts_free(&labels);
    fl_texts_free(&so.only);
    fl_texts_free(&traces);
    return exit_status;
}
