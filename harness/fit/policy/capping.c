/* The tables of hybrid power capping's static method, from measured sweeps or from sweeps simulated here. */
#include "harness/fit/policy/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "harness/input/scene/scene.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

static const fl_command_help help = {
    "fit policy capping", "SWEEP.csv | PROGRAMS.csv --platform NAME [--measured FILE] [-o PREFIX]",
    "The model of the policies cap-static, cap-hybrid1 and cap-hybrid2 (power-capping 3.2), one table per application.",
    "Step one, of the machine: A, B, C and V(f) from the workloads memory-bound and compute-bound at every clock, of "
    "the CPU from cpu-memory-bound and cpu-compute-bound. Step two, of each other workload: alpha, beta and T from its "
    "rows at the lowest and the highest clock; the rest of its rows only test the model.\n\n"
    "The sweep: column kernel is gpu, cpu, comm or static (the part of the run), power_w by how much node power "
    "exceeds P_static then, sm_mhz the clock of the processor at work; the row static holds P_static. With --platform "
    "and programs that sweep is taken on the simulated node; --measured keeps it. -o writes PREFIX.NAME.csv."};

static void print_chips(const fl_capping *c) {
    static const char *const head[] = {"processor", "A W/V2GHz", "B W",   "C W/V",
                                       "sd of C %", "V top",     "rms %", "worst %"};
    fl_grid g = FL_GRID_HEADED(head);
    for (int k = 0; k < 2; k++) {
        const fl_capping_processor *chip = &c->chip[k];
        if (!chip->count)
            continue;
        fl_grid_add(&g, "%s\t%.4g\t%.4g\t%.4g\t%.2g\t%.4g\t%.3f\t%.3f", fl_capping_part[k], chip->fit.a_w,
                    chip->fit.b_w, chip->fit.c_w, chip->fit.c_sd_pct, chip->volt[chip->count - 1], chip->fit.rms_pct,
                    chip->fit.worst_pct);
    }
    printf("P_static %.4g W, P_comm %.4g W; of the benchmarks against Eq. 2:\n\n", c->static_w, c->comm_w);
    fl_grid_print(&g, 1, stdout);
}

static void add_error(fl_grid *g, double x) {
    if (isnan(x))
        fl_grid_add(g, "n/a");
    else
        fl_grid_add(g, "%+.2f", x);
}

static void print_apps(const fl_capping *c) {
    static const char *const head[] = {"application", "part",     "alpha",         "beta",
                                       "T low s",     "T high s", "power error W", "time error %"};
    fl_grid g = FL_GRID_HEADED(head);
    for (size_t i = 0; i < c->app_count; i++)
        for (int k = 0; k < 2; k++) {
            const fl_capping_application *a = &c->app[i];
            const fl_capping_points *p = &a->at[k];
            double w, t;
            if (p->count < 2 || !c->chip[k].count)
                continue;
            fl_capping_errors(c, a, k, &w, &t);
            fl_grid_add(&g, "%s\t%s\t%.4f\t%.4f\t%.4g\t%.4g", a->name, fl_capping_part[k], a->fit[k].alpha,
                        a->fit[k].beta, p->time_s[0], p->time_s[p->count - 1]);
            add_error(&g, w);
            add_error(&g, t);
        }
    printf("\nOf the applications, from two runs; errors: the largest at the clocks between them, which were not used:"
           "\n\n");
    fl_grid_print(&g, 2, stdout);
}

static void print_json(const fl_capping *c) {
    cJSON *root = cJSON_CreateObject();
    fl_json_add_real(root, "static_w", c->static_w);
    fl_json_add_real(root, "comm_w", c->comm_w);
    cJSON *parts = cJSON_AddArrayToObject(root, "processors");
    for (int k = 0; k < 2; k++) {
        const fl_capping_processor *chip = &c->chip[k];
        if (!chip->count)
            continue;
        cJSON *o = fl_json_add_row(parts);
        cJSON_AddStringToObject(o, "part", fl_capping_part[k]);
        fl_json_add_real(o, "a_w", chip->fit.a_w);
        fl_json_add_real(o, "b_w", chip->fit.b_w);
        fl_json_add_real(o, "c_w", chip->fit.c_w);
        fl_json_add_real(o, "c_sd_pct", chip->fit.c_sd_pct);
        fl_json_add_real(o, "top_v", chip->volt[chip->count - 1]);
        fl_json_add_real(o, "rms_pct", chip->fit.rms_pct);
        fl_json_add_real(o, "worst_pct", chip->fit.worst_pct);
    }
    cJSON *rows = cJSON_AddArrayToObject(root, "rows");
    for (size_t i = 0; i < c->app_count; i++)
        for (int k = 0; k < 2; k++) {
            const fl_capping_application *a = &c->app[i];
            const fl_capping_points *p = &a->at[k];
            double w, t;
            if (p->count < 2 || !c->chip[k].count)
                continue;
            fl_capping_errors(c, a, k, &w, &t);
            cJSON *o = fl_json_add_row(rows);
            cJSON_AddStringToObject(o, "application", a->name);
            cJSON_AddStringToObject(o, "part", fl_capping_part[k]);
            fl_json_add_real(o, "alpha", a->fit[k].alpha);
            fl_json_add_real(o, "beta", a->fit[k].beta);
            fl_json_add_real(o, "low_s", p->time_s[0]);
            fl_json_add_real(o, "high_s", p->time_s[p->count - 1]);
            fl_json_add_real(o, "power_error_w", w);
            fl_json_add_real(o, "time_error_pct", t);
        }
    fl_json_tell(root);
}

static fl_status take_sweep(const fl_scene_options *so, const char *measured, fl_sweep *out, fl_diag *d) {
    fl_scenes scenes = {0};
    fl_texts none = {0};
    fl_status s = fl_scenes_open(so, &none, &scenes, d);
    if (!s)
        s = fl_capping_measure(&scenes, out, d);
    if (!s && measured) {
        fl_must_have(
            fl_head_set(&out->head, "source",
                        "foldline fit policy capping: drawn from the simulated node, not measured") &&
            fl_head_set(&out->head, "parts",
                        "column kernel: gpu, cpu, comm: the part of a run, power_w by how much node power exceeds "
                        "P_static in it, sm_mhz the clock of the processor at work; static: P_static"));
        s = fl_sweep_write(measured, out, d);
    }
    fl_scenes_free(&scenes);
    return s;
}

int fl_cmd_fit_policy_capping(int argc, char **argv) {
    fl_scene_options so = {0};
    fl_texts files = {0};
    const char *measured = NULL, *out = NULL;
    bool json = false;
    const fl_option option[] = {
        FL_SCENE_OPTIONS(so),
        {"measured", "FILE", FL_OPTION_OUTPUT, &measured, 0, 0, "writes the sweep that was taken", FL_FOR_INPUT},
        {"o", "PREFIX", FL_OPTION_TEXT, &out, 0, 0, "writes the table of each application as PREFIX.NAME.csv",
         FL_FOR_OUTPUT | FL_MOST_USED},
        FL_JSON_OPTION(&json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &files, &status))
        return status;
    fl_diag d = {0};
    fl_capping c = {0};
    fl_left_out left;
    fl_status s = fl_scene_sort(&so, &files, &d);
    c.path = so.sweep;
    if (!s && (files.count || (so.sweep != NULL) + (so.programs != NULL) != 1))
        s = fl_refuse(&d, "expected one sweep, or programs and --platform");
    else if (!s && !so.programs && measured)
        s = fl_refuse(&d, "--measured goes with programs, not with a sweep");
    if (!s)
        s = c.path ? fl_sweep_open(c.path, false, &c.sweep, &left, &d) : take_sweep(&so, measured, &c.sweep, &d);
    if (!s && c.path)
        fl_left_tell(c.path, &left);
    if (!s && c.path)
        s = fl_sweep_check_units(c.path, &c.sweep, &d);
    if (!c.path)
        c.path = so.programs;
    if (!s)
        s = fl_capping_fit(&c, &d);
    if (!s && json) {
        print_json(&c);
    } else if (!s) {
        print_chips(&c);
        print_apps(&c);
    }
    for (size_t i = 0; !s && out && i < c.app_count; i++)
        s = fl_capping_write(&c, &c.app[i], out, &d);
    fl_capping_free(&c);
    return fl_command_close("fit policy capping", s, &d, option, sizeof option / sizeof *option, &files);
}
