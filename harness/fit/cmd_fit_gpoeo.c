/* The six models of GPOEO, trained on simulated programs. */
#include "harness/base/command.h"
#include "harness/base/grid.h"
#include "harness/base/json_out.h"
#include "harness/base/pool.h"
#include "harness/fit/fit.h"
#include "harness/fit/fit_scenes.h"
#include "harness/fit/fit_trees.h"
#include "policies/gpoeo_model.h"
#include "sim/run.h"
#include "traces/writing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "fit gpoeo", "PROGRAMS.csv ... --platform NAME -o TREES.csv",
    "Trains the six models of the policy gpoeo: energy and time relative to the default clocks, in three bands of SM "
    "clocks.",
    "The authors published neither models nor data. foldline runs every program at the default clocks, and at 450 to "
    "1995 MHz in steps of --step at the default memory clock. The trees learn energy and time relative to the default "
    "clocks. They are gradient-boosted, three splits deep, with a rate of 0.3 and lambda 1. Every fifth program serves "
    "only as a test.\n\n"
    "The inputs are the clock divided by 1800 MHz and substitutes for some of the released program's fifteen counters, "
    "read at 1800 MHz with the memory at 9251 MHz: the sum of all kernel times divided by the run time (at most 1, for "
    "how busy the SMs are), and the shares of kernel time in kernels whose names suggest tensor work (gemm, conv, "
    "attention, mma) or FP64 work (dgemm, double, fp64, f64). Kernel records hold no IPC, no L1 and L2 misses and no "
    "other pipes, so the models do without them.\n\n"
    "harness/experiments/gpoeo.trees.csv is made by\n"
    "  for n in 1001 1002 1003; do foldline synth --apps 57 --seed $n -o $n.programs.csv; done\n"
    "  foldline fit gpoeo 100[123].programs.csv --platform rtx3080ti --match 'gnn_*' --seconds 30 -o TREES.csv\n"
    "which leaves out the programs that stand for published ones."};

static const double lowest_mhz = 450, top_mhz = 1995;

typedef struct program {
    double feature[FL_GPOEO_FEATURES]; /* all features but the clock */
    double *energy, *time;             /* clock_count entries, relative to those at the default clocks */
} program;

typedef struct fit {
    double step_mhz;
    uint32_t clocks;
    int64_t trees;
    program *program;
    size_t count;
    double *cell; /* FL_GPOEO_MODELS x trees x FL_TREE_NODES x 2 */
} fit;

/* ---- measuring ----------------------------------------------------------------------------------------------------
 */

static fl_status run_at(fl_scene *s, double sm_mhz, double mem_mhz, fl_run_result *r, fl_diag *d) {
    const fl_run_options o = {.w = s->w,
                              .rates = s->rates,
                              .spec = &s->platform.node,
                              .facts = &s->facts,
                              .first_sm_mhz = sm_mhz,
                              .first_mem_mhz = mem_mhz,
                              .classes = true};
    return fl_run(&o, r, d);
}

static fl_status read_features(fl_scene *s, program *p, fl_diag *d) {
    fl_run_result r = {0};
    double busy = 0, of[3] = {0};
    fl_status status = run_at(s, FL_GPOEO_CLOCK_MHZ, FL_GPOEO_COUNTERS_MEM_MHZ, &r, d);
    if (status)
        return status;
    for (uint32_t c = 0; c < r.class_count; c++) {
        if (s->w->class[c].copy)
            continue;
        busy += r.class_time_s[c];
        of[fl_gpoeo_pipe_of(s->w->class[c].kind.name)] += r.class_time_s[c];
    }
    p->feature[FL_GPOEO_BUSY] = fmin(busy / r.makespan_s, 1);
    p->feature[FL_GPOEO_TENSOR] = busy > 0 ? of[FL_GPOEO_TENSOR_PIPE] / busy : 0;
    p->feature[FL_GPOEO_FP64] = busy > 0 ? of[FL_GPOEO_FP64_PIPE] / busy : 0;
    fl_run_result_free(&r);
    return FL_OK;
}

static double clock_of(const fit *f, uint32_t i) { return fmin(lowest_mhz + i * f->step_mhz, top_mhz); }

static fl_status measure(void *user, fl_scene *s, size_t index, fl_diag *d) {
    fit *f = user;
    program *p = &f->program[index];
    const fl_device *dev = &s->platform.node.device[s->platform.node.gpu[0]];
    fl_run_result r = {0};
    p->energy = calloc(f->clocks, sizeof *p->energy);
    p->time = calloc(f->clocks, sizeof *p->time);
    if (!p->energy || !p->time)
        return fl_no_memory(d, "the runs");
    for (uint32_t i = 0; i < f->clocks; i++)
        if (fl_ladder_index(dev->sm_mhz, dev->sm_count, clock_of(f, i)) < 0)
            return fl_refuse(d, "%s has no SM clock of %g MHz, expected the clocks of an RTX 3080 Ti", dev->name,
                             clock_of(f, i));
    if (fl_ladder_index(dev->mem_mhz, dev->mem_count, FL_GPOEO_COUNTERS_MEM_MHZ) < 0)
        return fl_refuse(d, "%s has no memory clock of %g MHz, expected those of an RTX 3080 Ti", dev->name,
                         FL_GPOEO_COUNTERS_MEM_MHZ);
    fl_status status = read_features(s, p, d);
    if (!status)
        status = run_at(s, 0, 0, &r, d);
    if (status)
        return status;
    const double energy = r.gpu_energy_j, time = r.makespan_s;
    fl_run_result_free(&r);
    for (uint32_t i = 0; !status && i < f->clocks; i++) {
        status = run_at(s, clock_of(f, i), 0, &r, d);
        if (status)
            break;
        p->energy[i] = r.gpu_energy_j / energy;
        p->time[i] = r.makespan_s / time;
        fl_run_result_free(&r);
    }
    return status;
}

/* ---- training -----------------------------------------------------------------------------------------------------
 */

/* Collects the rows of one band and their targets; returns how many. */
static size_t rows_of(const fit *f, uint32_t model, bool tests, double *x, double *y) {
    size_t n = 0;
    for (size_t k = 0; k < f->count; k++) {
        if ((k % FL_FIT_HELD_OUT == FL_FIT_HELD_OUT - 1) != tests)
            continue;
        for (uint32_t i = 0; i < f->clocks; i++) {
            const double mhz = clock_of(f, i);
            if (fl_gpoeo_band(mhz) != model / 2)
                continue;
            memcpy(&x[n * FL_GPOEO_FEATURES], f->program[k].feature, sizeof f->program[k].feature);
            x[n * FL_GPOEO_FEATURES + FL_GPOEO_CLOCK] = mhz / FL_GPOEO_CLOCK_MHZ;
            y[n++] = model % 2 == FL_GPOEO_ENERGY ? f->program[k].energy[i] : f->program[k].time[i];
        }
    }
    return n;
}

static double rms_of(const fit *f, uint32_t model, bool tests, double *x, double *y, double *spread) {
    const fl_table t = {
        .cell = f->cell, .row_count = (uint32_t)(FL_GPOEO_MODELS * f->trees * FL_TREE_NODES), .column_count = 2};
    const size_t n = rows_of(f, model, tests, x, y);
    double mean = 0, sum = 0, off = 0;
    for (size_t i = 0; i < n; i++)
        mean += y[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        sum += (y[i] - mean) * (y[i] - mean) / (double)n;
        off += pow(fl_trees_predict(&t, (uint32_t)f->trees, model, &x[i * FL_GPOEO_FEATURES]) - y[i], 2) / (double)n;
    }
    *spread = sqrt(sum);
    return sqrt(off);
}

static fl_status train(fit *f, bool json, fl_diag *d) {
    static const char *const head[] = {
        "band", "quantity", "spread", "rms of the trees", "held out: spread", "rms of the trees"};
    static const char *const band[FL_GPOEO_BANDS] = {"to 1019 MHz", "to 1424 MHz", "above"};
    static const char *const key[] = {"spread", "rms_trees", "held_out_spread", "held_out_rms_trees"};
    const size_t all = f->count * f->clocks, one = (size_t)f->trees * FL_TREE_NODES * 2;
    double *x = malloc((all + 1) * FL_GPOEO_FEATURES * sizeof *x), *y = malloc((all + 1) * sizeof *y);
    f->cell = calloc(FL_GPOEO_MODELS * one, sizeof *f->cell);
    fl_status s = x && y && f->cell ? FL_OK : fl_no_memory(d, "the models");
    for (uint32_t m = 0; !s && m < FL_GPOEO_MODELS; m++) {
        const size_t n = rows_of(f, m, false, x, y);
        s = n ? fl_fit_trees(x, y, n, FL_GPOEO_FEATURES, (uint32_t)f->trees, f->cell + m * one, d)
              : fl_refuse(d, "no clock in the band %s, expected a smaller --step", band[m / 2]);
    }
    fl_grid g = FL_GRID_HEADED(head);
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "rows");
    for (uint32_t m = 0; !s && m < FL_GPOEO_MODELS; m++) {
        const char *quantity = m % 2 == FL_GPOEO_ENERGY ? "energy" : "time";
        cJSON *row = fl_json_add_row(rows);
        double value[4]; /* spread and rms, of the training rows and of the held-out rows */
        value[1] = rms_of(f, m, false, x, y, &value[0]);
        value[3] = rms_of(f, m, true, x, y, &value[2]);
        fl_grid_add(&g, "%s\t%s", band[m / 2], quantity);
        cJSON_AddStringToObject(row, "band", band[m / 2]);
        cJSON_AddStringToObject(row, "quantity", quantity);
        for (size_t k = 0; k < 4; k++) {
            fl_grid_add(&g, "%.4f", value[k]);
            fl_json_add_real(row, key[k], value[k]);
        }
    }
    if (!s && json)
        fl_json_print(root, stdout);
    else if (!s)
        fl_grid_print(&g, 2, stdout);
    cJSON_Delete(root);
    fl_grid_free(&g);
    free(x);
    free(y);
    return s;
}

static fl_status write_trees(const fit *f, const char *path, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d->status;
    fputs("feature,value\n", fl_output_file(o));
    for (size_t i = 0; i < (size_t)FL_GPOEO_MODELS * (size_t)f->trees * FL_TREE_NODES; i++)
        fprintf(fl_output_file(o), "%g,%.7g\n", f->cell[2 * i], f->cell[2 * i + 1]);
    return fl_output_commit(o, d);
}

int fl_cmd_fit_gpoeo(int argc, char **argv) {
    fl_scene_options so = {0};
    fl_texts files = {0};
    const char *out = NULL, *match = NULL;
    int64_t threads = 0;
    bool json = false;
    fit f = {.step_mhz = 45, .trees = 40};
    const fl_option option[] = {
        FL_SCENE_OPTIONS(so),
        FL_FIT_MATCH_OPTION(&match),
        {"step", "MHZ", FL_OPTION_REAL, &f.step_mhz, 1, 1e4, "between the clocks that are learnt from (45)"},
        {"trees", "N", FL_OPTION_INT, &f.trees, 1, 10000, "of each model (40)"},
        {"o", "FILE", FL_OPTION_OUTPUT, &out, 0, 0, "the trees to write"},
        {"json", NULL, FL_OPTION_FLAG, &json, 0, 0, "prints the result as JSON"},
        FL_THREADS_OPTION(&threads),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &files, &status))
        return status;
    fl_diag d = {0};
    f.clocks = (uint32_t)ceil((top_mhz - lowest_mhz) / f.step_mhz - 1e-9) + 1;
    fl_status s =
        fl_fit_scenes(&so, match, &files, (unsigned)threads, &f.program, sizeof *f.program, &f.count, measure, &f, &d);
    if (!s)
        s = train(&f, json, &d);
    if (!s && out)
        s = write_trees(&f, out, &d);
    for (size_t i = 0; i < f.count; i++) {
        free(f.program[i].energy);
        free(f.program[i].time);
    }
    free(f.program);
    free(f.cell);
    return fl_command_close(help.name, s, &d, option, sizeof option / sizeof *option, &files);
}
