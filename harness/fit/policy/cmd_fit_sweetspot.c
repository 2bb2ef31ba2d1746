/* SweetSpot's frequency sensitivity and its choice of alpha, from measured sweeps or from sweeps simulated here. */
#include "harness/base/cli/command.h"
#include "harness/base/cli/grid.h"
#include "harness/base/json/json_out.h"
#include "harness/base/work/pool.h"
#include "harness/base/cli/fit.h"
#include "harness/fit/policy/sweetspot_sweep.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/scene/text.h"
#include "traces/io/writing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "fit sweetspot", "[TRACE.csv ...] [EXPERIMENT.json] [--sweep FILE] [--platform NAME]",
    "Shows how much performance each step of the SM clock adds, and finds the clock above which it adds little: alpha "
    "of the policy sweetspot, per workload and as the median.",
    "--sweep alone takes the rows as they were measured: at one memory clock, the highest power limit. With --platform "
    "every workload is run here at every SM clock that the platform has and the workload is known at.\n\n"
    "performance is that at the highest clock's over this one's time, power and efficiency likewise: 1 at the top. "
    "slope, of SweetSpot's Eq. 6: the performance that the next clock adds, over the share of the top clock that it "
    "adds. The choice is the lowest clock with performance >= 1 - delta and slope <= epsilon, alpha that clock over "
    "the top. Where none qualifies alpha is 1. Close clocks make slopes of noise: --step thins a measured sweep."};

typedef struct spot_options {
    double delta, epsilon, mem_mhz, step_mhz;
} spot_options;

/* ---- the choice ---------------------------------------------------------------------------------------------------
 */

/* Keeps the highest clock, and below it clocks at least step_mhz apart. */
static void thin(fl_spot *s, double step_mhz) {
    size_t kept = s->count;
    for (size_t i = s->count; i-- > 0;)
        if (kept == s->count || s->point[kept].mhz - s->point[i].mhz >= step_mhz)
            s->point[--kept] = s->point[i];
    memmove(s->point, s->point + kept, (s->count - kept) * sizeof *s->point);
    s->count -= kept;
}

static fl_status choose(fl_spots *all, const spot_options *o, fl_diag *d) {
    for (size_t i = 0; i < all->count; i++) {
        fl_spot *s = &all->item[i];
        thin(s, o->step_mhz);
        fl_model_status m = fl_slope_fill(s->point, s->count);
        if (m == FL_MODEL_OK)
            m = fl_slope_choose(s->point, s->count, o->delta, o->epsilon, &s->choice);
        if (m != FL_MODEL_OK)
            return fl_refuse(d, "%s: %s", s->name, fl_model_text(m));
    }
    return FL_OK;
}

static const fl_slope_point *chosen(const fl_spot *s) { return &s->point[s->choice.index]; }

static double median_alpha(const fl_spots *all) {
    double *alpha = malloc((all->count + 1) * sizeof *alpha), median = NAN;
    for (size_t i = 0; alpha && i < all->count; i++)
        alpha[i] = all->item[i].choice.alpha;
    if (alpha)
        median = fl_slope_median(alpha, all->count);
    free(alpha);
    return median;
}

/* ---- reports ------------------------------------------------------------------------------------------------------
 */

static void add_point_cells(fl_grid *g, const fl_slope_point *p) {
    fl_grid_add(g, "%.4f\t%.4f\t%.4f", p->performance, p->power, p->efficiency);
    if (isnan(p->slope))
        fl_grid_add(g, "-");
    else
        fl_grid_add(g, "%.3f", p->slope);
}

static void print_each(const fl_spot *s) {
    static const char *const head[] = {"  SM MHz", "time s", "power W", "time",  "performance",
                                       "power",    "perf/W", "slope",   "choice"};
    fl_grid g = FL_GRID_HEADED(head);
    for (size_t i = 0; i < s->count; i++) {
        const fl_slope_point *p = &s->point[i];
        fl_grid_add(&g, "  %g\t%.5g\t%.2f\t%.4f", p->mhz, p->time_s, p->power_w, 1 / p->performance);
        add_point_cells(&g, p);
        fl_grid_add(&g, "%s", i != s->choice.index ? "" : s->choice.found ? "<" : "none qualifies");
    }
    printf("%s\n", s->name);
    fl_grid_print(&g, 0, stdout);
    fputc('\n', stdout);
    fl_grid_free(&g);
}

static void print_text(const fl_spots *all, const spot_options *o, bool each) {
    static const char *const head[] = {"workload",    "clocks", "top MHz", "choice MHz", "alpha",
                                       "performance", "power",  "perf/W",  "slope",      ""};
    fl_grid g = FL_GRID_HEADED(head);
    size_t none = 0;
    for (size_t i = 0; each && i < all->count; i++)
        print_each(&all->item[i]);
    for (size_t i = 0; i < all->count; i++) {
        const fl_spot *s = &all->item[i];
        fl_grid_add(&g, "%s\t%zu\t%g\t%g\t%.3f", s->name, s->count, s->point[s->count - 1].mhz, chosen(s)->mhz,
                    s->choice.alpha);
        add_point_cells(&g, chosen(s));
        fl_grid_add(&g, "%s", s->choice.found ? "" : "no clock qualifies");
        none += !s->choice.found;
    }
    fl_grid_print(&g, 1, stdout);
    printf("\nmedian of alpha over %zu workload%s: %.3f (performance at least %g, slope at most %g)\n", all->count,
           all->count == 1 ? "" : "s", median_alpha(all), 1 - o->delta, o->epsilon);
    if (none)
        printf("note: for %zu of %zu workloads no clock qualifies, so their alpha is 1\n", none, all->count);
}

static void print_json(const fl_spots *all, const spot_options *o) {
    cJSON *root = cJSON_CreateObject();
    fl_json_add_real(root, "delta", o->delta);
    fl_json_add_real(root, "epsilon", o->epsilon);
    fl_json_add_real(root, "alpha_median", median_alpha(all));
    cJSON *list = cJSON_AddArrayToObject(root, "workloads");
    for (size_t i = 0; i < all->count; i++) {
        const fl_spot *s = &all->item[i];
        cJSON *w = fl_json_add_row(list);
        cJSON_AddStringToObject(w, "workload", s->name);
        fl_json_add_real(w, "alpha", s->choice.alpha);
        cJSON_AddBoolToObject(w, "qualified", s->choice.found);
        fl_json_add_real(w, "sm_mhz", chosen(s)->mhz);
        cJSON *points = cJSON_AddArrayToObject(w, "clocks");
        for (size_t k = 0; k < s->count; k++) {
            const fl_slope_point *p = &s->point[k];
            cJSON *at = fl_json_add_row(points);
            fl_json_add_real(at, "sm_mhz", p->mhz);
            fl_json_add_real(at, "time_s", p->time_s);
            fl_json_add_real(at, "power_w", p->power_w);
            fl_json_add_real(at, "performance", p->performance);
            fl_json_add_real(at, "power", p->power);
            fl_json_add_real(at, "efficiency", p->efficiency);
            fl_json_add_real(at, "slope", p->slope);
        }
    }
    fl_json_tell(root);
}

static fl_status write_csv(const fl_spots *all, const char *path, fl_diag *d) {
    fl_output *out = fl_output_open(path, d);
    if (!out)
        return d ? d->status : FL_IO;
    FILE *f = fl_output_file(out);
    fputs("workload,sm_mhz,time_s,power_w,performance,power,efficiency,slope,chosen,qualified\n", f);
    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; k < all->item[i].count; k++) {
            const fl_spot *s = &all->item[i];
            const fl_slope_point *p = &s->point[k];
            const double value[] = {p->mhz, p->time_s, p->power_w, p->performance, p->power, p->efficiency, p->slope};
            char text[32];
            fl_csv_put(f, s->name);
            for (size_t c = 0; c < sizeof value / sizeof *value; c++)
                fprintf(f, ",%s", fl_cell_text(value[c], text));
            fprintf(f, ",%d,%d\n", k == s->choice.index, k == s->choice.index && s->choice.found);
        }
    return fl_output_commit(out, d);
}

int fl_cmd_fit_sweetspot(int argc, char **argv) {
    fl_scene_options so = {0};
    spot_options o = {.delta = 0.05, .epsilon = 0.3};
    fl_texts rest = {0}, traces = {0};
    const char *csv = NULL, *objective = NULL;
    int64_t threads = 0, seeds = 0;
    bool json = false, each = false;
    const fl_option option[] = {
        FL_SCENE_OPTIONS(so),
        {"delta", "X", FL_OPTION_REAL, &o.delta, 0, 1, "performance that may be lost, as a fraction (0.05)"},
        {"epsilon", "X", FL_OPTION_REAL, &o.epsilon, -1e6, 1e6, "largest slope at the choice (0.3)"},
        {"mem-mhz", "X", FL_OPTION_REAL, &o.mem_mhz, 1, 1e6,
         "memory clock (simulated: the default; measured: the highest)"},
        {"step", "MHZ", FL_OPTION_REAL, &o.step_mhz, 0, 1e6, "leaves out clocks that are closer than this (0)"},
        {"each", NULL, FL_OPTION_FLAG, &each, 0, 0, "prints every clock of every workload"},
        {"csv", "FILE", FL_OPTION_OUTPUT, &csv, 0, 0, "writes every clock of every workload"},
        FL_THREADS_OPTION(&threads),
        {"json", NULL, FL_OPTION_FLAG, &json, 0, 0, "prints the result as JSON"},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    fl_scenes scenes = {0};
    fl_experiment ex = {0};
    fl_spots all = {0};
    size_t variants = 0;
    fl_status s = fl_experiment_find(&rest, &ex, &traces, &d);
    if (!s && ex.tree)
        s = fl_experiment_apply(&ex, &so, &traces, &objective, &seeds, &d);
    if (!s && so.sweep && !so.platform && !so.programs && !traces.count)
        s = fl_spots_measured(so.sweep, &so.only, o.mem_mhz, &all, &d);
    else if (!s && !(s = fl_experiment_scenes(&ex, &so, &traces, &scenes, &variants, &d)))
        s = fl_spots_simulated(&scenes, o.mem_mhz, (unsigned)threads, &all, &d);
    if (!s)
        s = choose(&all, &o, &d);
    if (!s && csv)
        s = write_csv(&all, csv, &d);
    if (!s && json) {
        print_json(&all, &o);
    } else if (!s) {
        print_text(&all, &o, each);
        if (scenes.count)
            fl_scene_notes(&scenes, stdout);
        if (csv)
            printf("written: %s\n", csv);
    }
    fl_spots_free(&all);
    fl_scenes_free(&scenes);
    fl_experiment_free(&ex);
    fl_texts_free(&traces);
    return fl_command_close(help.name, s, &d, option, sizeof option / sizeof *option, &rest);
}
