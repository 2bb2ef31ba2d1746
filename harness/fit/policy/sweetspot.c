/* `foldline fit policy sweetspot`: SweetSpot's alpha, from a frequency sweep. */
#include "harness/fit/policy/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "models/math/math.h"
#include "sim/base/base.h"
#include "sim/oracle/oracle.h"
#include "sim/workload/workload.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the runs over clocks ---- */

static void add_spot(fl_spots *all, const char *name) {
    fl_must_grow(&all->item, &all->room, all->count + 1, sizeof *all->item);
    all->item[all->count++] = (fl_spot){.name = fl_must(strdup(name))};
}

static void add_point(fl_spot *s, double mhz, double time_s, double energy_j) {
    fl_must_grow(&s->point, &s->room, s->count + 1, sizeof *s->point);
    s->point[s->count++] = (fl_slope_point){.mhz = mhz, .time_s = time_s, .power_w = energy_j / time_s};
}

void fl_spots_free(fl_spots *all) {
    for (size_t i = 0; i < all->count; i++) {
        free(all->item[i].name);
        free(all->item[i].point);
    }
    free(all->item);
    *all = (fl_spots){0};
}

static int by_clock(const void *a, const void *b) {
    const double x = ((const fl_slope_point *)a)->mhz, y = ((const fl_slope_point *)b)->mhz;
    return x < y ? -1 : x > y;
}

/* ---- measured ---- */

static double or_infinite(double x) {
    return isnan(x) ? (double)INFINITY : x;
} /* a limit that is not set does not limit */

/* The rows of a workload that remain: those of one memory clock, at the highest power limit there. */
typedef struct setting {
    double mem_mhz, cap_w;
} setting;

static bool belongs(const fl_sweep_row *r, uint32_t name, const setting *at) {
    return r->workload == name && (isnan(r->mem_mhz) || r->mem_mhz == at->mem_mhz) &&
           or_infinite(r->power_cap_w) == at->cap_w;
}

static setting choose_setting(const fl_sweep *s, uint32_t name, double mem_mhz) {
    setting at = {mem_mhz, 0};
    for (size_t i = 0; !(mem_mhz > 0) && i < s->row_count; i++)
        if (s->rows[i].workload == name && s->rows[i].mem_mhz > at.mem_mhz)
            at.mem_mhz = s->rows[i].mem_mhz;
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (r->workload == name && (isnan(r->mem_mhz) || r->mem_mhz == at.mem_mhz))
            at.cap_w = fmax(at.cap_w, or_infinite(r->power_cap_w));
    }
    return at;
}

/* Time and energy of the whole workload at one clock: its kernels one after the other, each with the mean of its
 * repeated rows. False where a kernel was not measured at that clock. */
static bool whole(const fl_sweep *s, uint32_t name, const setting *at, double mhz, double *time_s, double *energy_j) {
    *time_s = *energy_j = 0;
    for (size_t i = 0; i < s->row_count; i++) {
        double time = 0, energy = 0, n = 0;
        bool first = s->rows[i].workload == name;
        for (size_t k = 0; first && k < i; k++)
            first = s->rows[k].workload != name || s->rows[k].kernel != s->rows[i].kernel;
        if (!first)
            continue;
        for (size_t k = 0; k < s->row_count; k++)
            if (s->rows[k].kernel == s->rows[i].kernel && belongs(&s->rows[k], name, at) && s->rows[k].sm_mhz == mhz) {
                time += s->rows[k].time_s;
                energy += s->rows[k].energy_j;
                n++;
            }
        if (!(n > 0))
            return false;
        *time_s += time / n;
        *energy_j += energy / n;
    }
    return true;
}

static fl_status measured_one(const fl_sweep *s, const char *path, uint32_t name, double mem_mhz, fl_spot *into,
                              fl_diag *d) {
    const setting at = choose_setting(s, name, mem_mhz);
    fl_status status = FL_OK;
    for (size_t i = 0; !status && i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        double time_s, energy_j;
        bool seen = false;
        if (!belongs(r, name, &at))
            continue;
        if (isnan(r->sm_mhz))
            return fl_fail(d, FL_BAD_INPUT, path, r->line, 0, "no sm_mhz, expected the SM clock of the measurement");
        for (size_t k = 0; !seen && k < into->count; k++)
            seen = into->point[k].mhz == r->sm_mhz;
        if (!seen && whole(s, name, &at, r->sm_mhz, &time_s, &energy_j))
            add_point(into, r->sm_mhz, time_s, energy_j);
    }
    if (!status && !into->count)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                         "%s: no clock has measurements of all its kernels, expected at least one", s->names[name]);
    if (!status)
        qsort(into->point, into->count, sizeof *into->point, by_clock);
    return status;
}

static fl_status unknown_workload(const fl_sweep *s, const char *path, const uint32_t *names, size_t count,
                                  const char *wanted, fl_diag *d) {
    const char **all = fl_must(malloc((count + 1) * sizeof *all));
    for (size_t i = 0; i < count; i++)
        all[i] = s->names[names[i]];
    const fl_status status = fl_fail_unknown(d, path, "workload", wanted, all, count);
    free(all);
    return status;
}

fl_status fl_spots_measured(const char *path, const fl_texts *only, double mem_mhz, fl_spots *all, fl_diag *d) {
    fl_sweep sweep = {0};
    uint32_t *names = NULL;
    size_t count = 0;
    fl_left_out left;
    fl_status s = fl_sweep_open(path, false, &sweep, &left, d);
    if (!s)
        fl_left_tell(path, &left);
    if (!s)
        s = fl_sweep_check_units(path, &sweep, d);
    if (!s)
        s = fl_sweep_workloads(&sweep, &names, &count, d);
    for (size_t k = 0; !s && k < only->count; k++) {
        size_t i = 0;
        while (i < count && strcmp(sweep.names[names[i]], only->item[k]) != 0)
            i++;
        if (i == count)
            s = unknown_workload(&sweep, path, names, count, only->item[k], d);
    }
    for (size_t i = 0; !s && i < count; i++) {
        bool wanted = !only->count;
        for (size_t k = 0; !wanted && k < only->count; k++)
            wanted = strcmp(sweep.names[names[i]], only->item[k]) == 0;
        if (!wanted)
            continue;
        add_spot(all, sweep.names[names[i]]);
        s = measured_one(&sweep, path, names[i], mem_mhz, &all->item[all->count - 1], d);
    }
    free(names);
    fl_sweep_free(&sweep);
    return s;
}

/* ---- simulated ---- */

typedef struct run_place {
    size_t spot, point;
    fl_choice at;
} run_place;

typedef struct simulation {
    const fl_scenes *scenes;
    fl_spots *all;
    run_place *run;
    size_t run_count, run_room;
} simulation;

static fl_status plan(simulation *m, size_t scene, double mem_mhz, fl_diag *d) {
    const fl_scene *s = m->scenes->item[scene];
    const fl_device *dev = &s->platform.node.device[s->platform.node.gpu[0]];
    const double mem = mem_mhz > 0 ? mem_mhz : dev->default_mem_mhz;
    fl_choice *choice = NULL;
    size_t choices = 0;
    add_spot(m->all, s->w->name);
    fl_status status = fl_oracle_choices(s->w, &s->platform.node, &choice, &choices, d);
    for (size_t i = 0; !status && i < choices; i++) {
        fl_spot *into = &m->all->item[scene];
        if (choice[i].mem_mhz != mem)
            continue;
        fl_must_grow(&m->run, &m->run_room, m->run_count + 1, sizeof *m->run);
        m->run[m->run_count++] = (run_place){scene, into->count, choice[i]};
        add_point(into, choice[i].sm_mhz, 1, 1);
    }
    free(choice);
    if (!status && !m->all->item[scene].count)
        status = fl_fail(d, FL_BAD_INPUT, s->source, 0, 0, "%s has no data at the memory clock of %g MHz of %s",
                         s->w->name, mem, s->platform.name);
    return status;
}

static fl_status simulate_one(void *user, size_t i, fl_diag *d) {
    const simulation *m = user;
    const run_place *at = &m->run[i];
    const fl_scene *s = m->scenes->item[at->spot];
    fl_static_point out = {0};
    const fl_status status = fl_static_run(s->w, s->rates, &s->platform.node, &s->facts, &at->at, &out, d);
    if (status)
        return status;
    fl_slope_point *p = &m->all->item[at->spot].point[at->point];
    p->time_s = fl_seconds(out.makespan_ps);
    p->power_w = fl_joules(out.energy_fj) / p->time_s;
    return FL_OK;
}

fl_status fl_spots_simulated(const fl_scenes *scenes, double mem_mhz, unsigned threads, fl_spots *all, fl_diag *d) {
    simulation m = {.scenes = scenes, .all = all};
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < scenes->count; i++)
        s = plan(&m, i, mem_mhz, d);
    if (!s)
        s = fl_pool_run(simulate_one, &m, m.run_count, threads, "clocks", d);
    free(m.run);
    return s;
}

/* SweetSpot's frequency sensitivity and its choice of alpha, from measured sweeps or from sweeps simulated here. */

static const fl_command_help help = {
    "fit policy sweetspot", "FILE ... [EXPERIMENT.json] [--platform NAME]",
    "Shows how much performance each step of the SM clock adds, and finds the clock above which it adds little: alpha "
    "of the policy sweetspot, per workload and as the median.",
    "A sweep alone is taken as it was measured: at one memory clock, the highest power limit. With --platform "
    "every workload is run here at every SM clock that the platform has and the workload is known at.\n\n"
    "performance is that at the highest clock's over this one's time, power and efficiency likewise: 1 at the top. "
    "slope, of SweetSpot's Eq. 6: the performance that the next clock adds, over the share of the top clock that it "
    "adds. The choice is the lowest clock with performance >= 1 - delta and slope <= epsilon, alpha that clock over "
    "the top. Where none qualifies alpha is 1. Close clocks make slopes of noise: --step thins a measured sweep."};

typedef struct spot_options {
    double delta, epsilon, mem_mhz, step_mhz;
} spot_options;

/* ---- the choice ---- */

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
    double *alpha = fl_must(malloc((all->count + 1) * sizeof *alpha));
    for (size_t i = 0; i < all->count; i++)
        alpha[i] = all->item[i].choice.alpha;
    const double median = fl_slope_median(alpha, all->count);
    free(alpha);
    return median;
}

/* ---- reports ---- */

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

int fl_cmd_fit_policy_sweetspot(int argc, char **argv) {
    fl_scene_options so = {0};
    spot_options o = {.delta = 0.05, .epsilon = 0.3};
    fl_texts rest = {0}, traces = {0};
    const char *out = NULL, *objective = NULL;
    int64_t threads = 0, seeds = 0;
    bool json = false, each = false;
    const fl_option option[] = {
        FL_SCENE_OPTIONS(so),
        {"delta", "X", FL_OPTION_REAL, &o.delta, 0, 1, "performance that may be lost, as a fraction (0.05)"},
        {"epsilon", "X", FL_OPTION_REAL, &o.epsilon, -1e6, 1e6, "largest slope at the choice (0.3)"},
        {"mem-mhz", "X", FL_OPTION_REAL, &o.mem_mhz, 1, 1e6,
         "memory clock (simulated: the default; measured: the highest)"},
        {"step", "MHZ", FL_OPTION_REAL, &o.step_mhz, 0, 1e6, "leaves out clocks that are closer than this (0)"},
        {"each", NULL, FL_OPTION_FLAG, &each, 0, 0, "prints every clock of every workload",
         FL_FOR_OUTPUT | FL_MOST_USED},
        {"o", "FILE", FL_OPTION_OUTPUT, &out, 0, 0, "writes every clock of every workload",
         FL_FOR_OUTPUT | FL_MOST_USED},
        FL_THREADS_OPTION(&threads),
        FL_JSON_OPTION(&json),
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
    if (!s)
        s = fl_scene_sort(&so, &traces, &d);
    if (!s && ex.tree)
        s = fl_experiment_apply(&ex, &so, &traces, &objective, &seeds, &d);
    if (!s && so.sweep && !so.platform && !so.programs && !traces.count)
        s = fl_spots_measured(so.sweep, &so.only, o.mem_mhz, &all, &d);
    else if (!s && !(s = fl_experiment_scenes(&ex, &so, &traces, &scenes, &variants, &d)))
        s = fl_spots_simulated(&scenes, o.mem_mhz, (unsigned)threads, &all, &d);
    if (!s)
        s = choose(&all, &o, &d);
    if (!s && json) {
        print_json(&all, &o);
    } else if (!s) {
        print_text(&all, &o, each);
        if (scenes.count)
            fl_scene_notes(&scenes, stdout);
    }
    if (!s && out && !(s = write_csv(&all, out, &d)) && !json)
        printf("written: %s\n", out);
    fl_spots_free(&all);
    fl_scenes_free(&scenes);
    fl_experiment_free(&ex);
    fl_texts_free(&traces);
    return fl_command_close(help.name, s, &d, option, sizeof option / sizeof *option, &rest);
}
