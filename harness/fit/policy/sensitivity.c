/* DynaCo's Table 2: frequency sensitivity of CPU and GPU against metrics, from runs over all pairs of states. */
#include "harness/fit/policy/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/scene/scene.h"
#include "models/fit/fit.h"
#include "models/math/math.h"
#include "traces/io/io.h"
#include "traces/open/open.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "fit policy sensitivity", "RUNS.csv | PROGRAMS.csv --platform NAME",
    "Shows how well WeightedALUBusy, Global_MemUtil and ClockWeightedUPC predict the CPU and GPU frequency sensitivity "
    "of kernels (DynaCo, SC '13, section 4.1 and Table 2), by linear regression over runs at all pairs of states.",
    "RUNS.csv: kernel,cpu_mhz,sm_mhz,time_s,energy_j,weighted_alu_busy,global_mem_util,clock_weighted_upc, and where "
    "known alu_busy,gpu_clock_busy; head '# foldline-state-runs 1'. Of programs the runs are simulated here, each "
    "kernel alone; -o keeps them.\n\n"
    "One observation of the GPU's sensitivity for each kernel and CPU state: time at the lowest GPU clock over that at "
    "the highest, less 1, per the clocks' ratio, less 1; its metrics are those at the highest. The CPU's likewise. "
    "inflation: how much the other metrics inflate the variance of a weight; above 10 the data hardly tell it, and "
    "where they do not tell it at all it says so. Of Table 2's fourteen metrics five are here: the three of the "
    "regression, ALUBusy and GPUClockBusy. The others stand in the table with the reason why they cannot be had. "
    "--table writes the pair of least energy x delay^2 of each kernel, for the policy ideal-static."};

/* The paper's correlation of each metric alone with sensitivity, and of all metrics together. */
static const double published[2][FL_METRICS_ALL] = {{0.85, -0.63, -0.83, 0.76, 0.06},
                                                    {-0.62, -0.56, 0.70, -0.54, -0.13}};
#define PUBLISHED_MULTIPLE 0.97

/* The nine metrics of Table 2 that no signal here provides. */
#define NO_INSTRUCTIONS "kernels have times and shares, no instructions"
#define NO_UNITS "memory is one share of time, without units for reads and writes"
static const struct {
    const char *name;
    double published[2];
    const char *why;
} missing[] = {{"ALUInsts PTI", {0.78, -0.54}, NO_INSTRUCTIONS},
               {"ALUFetchRatio", {0.57, -0.31}, NO_INSTRUCTIONS},
               {"L2 cache miss/cycle", {0.13, -0.41}, "the CPU has one rate of traffic, no caches"},
               {"ALUPacking", {0.11, -0.22}, NO_INSTRUCTIONS},
               {"FetchUnitBusy", {-0.28, -0.01}, NO_UNITS},
               {"FetchUnitStalled", {-0.49, -0.15}, NO_UNITS},
               {"WriteUnitStalled", {-0.51, 0.12}, NO_UNITS},
               {"Writes to memory PTI", {-0.60, -0.28}, NO_INSTRUCTIONS},
               {"Fetch from memory PTI", {-0.62, -0.23}, NO_INSTRUCTIONS}};
enum { MISSING = sizeof missing / sizeof *missing };

enum { GPU, CPU };
static const char *const sides[2] = {"GPU", "CPU"};

typedef struct observations {
    double *metric, *sensitivity; /* count x FL_METRICS; count */
    size_t count;
} observations;

static double own_mhz(const fl_state_run *r, int side) { return side == GPU ? r->sm_mhz : r->cpu_mhz; }
static double other_mhz(const fl_state_run *r, int side) { return side == GPU ? r->cpu_mhz : r->sm_mhz; }

/* For a run at the highest clock of its side: the run at the lowest, all else equal. NULL where the run is not at the
 * highest clock, or is the only one. */
static const fl_state_run *lowest_of(const fl_state_runs *r, const fl_state_run *high, int side) {
    const fl_state_run *low = high;
    for (size_t i = 0; i < r->count; i++) {
        const fl_state_run *run = &r->run[i];
        if (other_mhz(run, side) != other_mhz(high, side) || strcmp(run->kernel, high->kernel) != 0)
            continue;
        if (own_mhz(run, side) > own_mhz(high, side))
            return NULL;
        if (own_mhz(run, side) < own_mhz(low, side))
            low = run;
    }
    return low == high ? NULL : low;
}

static double sensitivity_at(const fl_state_runs *r, const fl_state_run *high, int side) {
    const fl_state_run *low = lowest_of(r, high, side);
    return low ? fl_sensitivity(own_mhz(low, side), low->time_s, own_mhz(high, side), high->time_s) : (double)NAN;
}

static observations observe(const fl_state_runs *r, int side) {
    observations o = {.metric = fl_must(malloc((r->count + 1) * FL_METRICS * sizeof *o.metric)),
                      .sensitivity = fl_must(malloc((r->count + 1) * sizeof *o.sensitivity))};
    for (size_t i = 0; i < r->count; i++) {
        const double s = sensitivity_at(r, &r->run[i], side);
        bool known = !isnan(s);
        for (int m = 0; m < FL_METRICS; m++)
            known = known && !isnan(o.metric[o.count * FL_METRICS + (size_t)m] = r->run[i].metric[m]);
        if (known)
            o.sensitivity[o.count++] = s;
    }
    return o;
}

static fl_status fit_side(const fl_state_runs *r, int side, fl_sensitivity_fit *fit, fl_diag *d) {
    const observations o = observe(r, side);
    fl_status s = FL_OK;
    const fl_model_status m = fl_fit_sensitivity_linear(o.metric, o.sensitivity, o.count, FL_METRICS, fit);
    fl_must_have(m != FL_MODEL_NO_MEMORY);
    if (m != FL_MODEL_OK)
        s = fl_refuse(d, "%s sensitivity, %zu observations: %s", sides[side], o.count,
                      m == FL_MODEL_NO_FIT
                          ? "too few, or all the same; expected kernels that differ, at two states or more"
                          : fl_model_text(m));
    free(o.metric);
    free(o.sensitivity);
    return s;
}

/* Correlation of one metric alone with sensitivity, over the runs that have it; NAN where it is undefined. */
static double alone(const fl_state_runs *r, int side, int metric) {
    double *x = fl_must(malloc((r->count + 1) * sizeof *x)), *y = fl_must(malloc((r->count + 1) * sizeof *y));
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++) {
        x[n] = r->run[i].metric[metric];
        y[n] = sensitivity_at(r, &r->run[i], side);
        n += !isnan(x[n]) && !isnan(y[n]);
    }
    fl_sensitivity_fit fit;
    const bool told = n && fl_fit_sensitivity_linear(x, y, n, 1, &fit) == FL_MODEL_OK;
    free(x);
    free(y);
    return told ? fit.correlation[0] : (double)NAN;
}

/* ---- reports ---- */

static void print_fit(const fl_state_runs *r, const fl_sensitivity_fit *f, int side) {
    static const char *const head[] = {"metric",         "correlation",     "published", "weight",
                                       "standard error", "weight x spread", "inflation"};
    fl_grid g = FL_GRID_HEADED(head);
    for (size_t m = 0; m < FL_METRICS; m++) {
        fl_grid_add(&g, "%s\t%.2f\t%.2f\t%.4g\t%.2g\t%.3f", fl_metric_names[m], f->correlation[m], published[side][m],
                    f->weight[m], f->error[m], f->weight[m] * f->spread[m]);
        if (isfinite(f->inflation[m]))
            fl_grid_add(&g, "%.1f", f->inflation[m]);
        else
            fl_grid_add(&g, "not told");
    }
    for (int m = FL_METRICS; m < FL_METRICS_ALL; m++) {
        const double correlation = alone(r, side, m);
        fl_grid_add(&g, "%s", fl_metric_names[m]);
        fl_grid_add(&g, isnan(correlation) ? "n/a" : "%.2f", correlation);
        fl_grid_add(&g, "%.2f", published[side][m]);
        for (size_t k = 3; k < g.columns; k++)
            fl_grid_add(&g, k == 3 ? "alone" : "");
    }
    for (size_t m = 0; m < MISSING; m++) {
        fl_grid_add(&g, "%s\tn/a\t%.2f", missing[m].name, missing[m].published[side]);
        for (size_t k = 3; k < g.columns; k++)
            fl_grid_add(&g, "%s", "");
    }
    printf("%s frequency sensitivity, %zu observations\n", sides[side], f->count);
    fl_grid_print(&g, 1, stdout);
    printf("intercept %.4g; all together: correlation %.3f (published %.2f), rms %.3f; condition %.3g, %zu of %d "
           "directions told apart\n\n",
           f->intercept, f->multiple, PUBLISHED_MULTIPLE, f->rms, f->condition, f->rank, FL_METRICS);
}

/* 4.1: "note the improvement in correlation between line 3 and line 1 in Table 2": the effect of weighting ALUBusy. */
static void print_order(const fl_state_runs *r, const fl_sensitivity_fit *gpu) {
    const double weighted = gpu->correlation[FL_METRIC_ALU], plain = alone(r, GPU, FL_METRIC_ALU_BUSY);
    if (!isnan(plain))
        printf("order of Table 2: weighted_alu_busy correlates better with the GPU's sensitivity than alu_busy, "
               "published 0.85 against 0.76; here %.2f against %.2f: %s\n",
               weighted, plain, weighted > plain ? "holds" : "FAILED, the order is reversed");
    for (size_t m = 0; m < MISSING; m++)
        printf("n/a: %s: %s\n", missing[m].name, missing[m].why);
    putchar('\n');
}

static void print_kernels(const fl_state_runs *r) {
    static const char *const head[] = {
        "kernel", "GPU sensitivity", "CPU sensitivity", "weighted ALU busy", "global mem util",
        "UPC",    "best CPU MHz",    "best GPU MHz",    "ED2 saved %",       "slowdown %"};
    size_t count, *first = fl_state_runs_kernels(r, &count);
    fl_grid g = FL_GRID_HEADED(head);
    for (size_t k = 0; k < count; k++) {
        const fl_state_run *top = &r->run[first[k]]; /* highest clocks of both */
        for (size_t i = first[k]; i < r->count; i++)
            if (!strcmp(r->run[i].kernel, top->kernel) && r->run[i].cpu_mhz >= top->cpu_mhz &&
                r->run[i].sm_mhz >= top->sm_mhz)
                top = &r->run[i];
        fl_grid_add(&g, "%s\t%.3f\t%.3f", top->kernel, sensitivity_at(r, top, GPU), sensitivity_at(r, top, CPU));
        for (int m = 0; m < FL_METRICS; m++)
            fl_grid_add(&g, m == FL_METRIC_UPC ? "%.2f" : "%.1f", top->metric[m]);
        const size_t best = fl_state_runs_best(r, first[k], 0);
        const fl_state_run *b = best < r->count ? &r->run[best] : NULL;
        const double ratio = b ? b->time_s / top->time_s : (double)NAN;
        fl_grid_add(&g, b ? "%g" : "n/a", b ? b->cpu_mhz : 0);
        fl_grid_add(&g, b ? "%g" : "n/a", b ? b->sm_mhz : 0);
        fl_grid_add(&g, "%.1f", b ? 100 * (1 - b->energy_j / top->energy_j * ratio * ratio) : (double)NAN);
        fl_grid_add(&g, "%.2f", 100 * (ratio - 1));
    }
    fl_grid_print(&g, 1, stdout);
    free(first);
}

static void print_json(const fl_state_runs *r, const fl_sensitivity_fit fit[2]) {
    cJSON *root = cJSON_CreateObject();
    for (int side = 0; side < 2; side++) {
        const fl_sensitivity_fit *f = &fit[side];
        cJSON *o = cJSON_AddObjectToObject(root, sides[side]);
        fl_json_add_real(o, "observations", (double)f->count);
        fl_json_add_real(o, "intercept", f->intercept);
        fl_json_add_real(o, "multiple_correlation", f->multiple);
        fl_json_add_real(o, "rms", f->rms);
        fl_json_add_real(o, "condition", f->condition);
        fl_json_add_real(o, "rank", (double)f->rank);
        for (size_t m = 0; m < FL_METRICS; m++) {
            cJSON *k = cJSON_AddObjectToObject(o, fl_metric_names[m]);
            fl_json_add_real(k, "correlation", f->correlation[m]);
            fl_json_add_real(k, "published_correlation", published[side][m]);
            fl_json_add_real(k, "weight", f->weight[m]);
            fl_json_add_real(k, "standard_error", f->error[m]);
            fl_json_add_real(k, "inflation", f->inflation[m]);
        }
        for (int m = FL_METRICS; m < FL_METRICS_ALL; m++) {
            cJSON *k = cJSON_AddObjectToObject(o, fl_metric_names[m]);
            fl_json_add_real(k, "correlation", alone(r, side, m));
            fl_json_add_real(k, "published_correlation", published[side][m]);
        }
    }
    fl_json_tell(root);
}

/* ---- the command ---- */

/* Prints the fit also where its file cannot be written; *unwritten then says why. */
static fl_status get_runs(fl_profile_options *po, const fl_texts *rest, const char *out, fl_state_runs *r,
                          fl_diag *unwritten, fl_diag *d) {
    fl_file_type type;
    fl_diag ignored;
    if (rest->count != 1)
        return fl_refuse(d, "expected one file of runs, or programs and --platform");
    if (fl_file_type_find(rest->item[0], &type, &ignored) || type != FL_FILE_PROGRAMS)
        return fl_state_runs_read(rest->item[0], r, d);
    po->programs = rest->item[0];
    if (!po->platform)
        return fl_refuse(d, "programs without --platform, expected both");
    fl_status s = fl_profile_states(po, r, d);
    char source[1024];
    snprintf(source, sizeof source, "simulated: kernels of %s, each alone on %s, seed %llu", po->programs, po->platform,
             (unsigned long long)po->seed);
    if (!s && out && (s = fl_state_runs_write(out, r, source, d)) == FL_IO) {
        *unwritten = *d;
        s = FL_OK;
    }
    return s;
}

int fl_cmd_fit_policy_sensitivity(int argc, char **argv) {
    fl_profile_options po = {.seconds = 2};
    fl_texts rest = {0};
    const char *out = NULL, *table = NULL;
    int64_t threads = 0, seed = 1;
    double cpu_from = 0;
    bool json = false;
    const fl_option option[] = {
        {"platform", "NAME", FL_OPTION_TEXT, &po.platform, 0, 0, "platform to run them on", FL_FOR_MACHINE},
        {"seconds", "S", FL_OPTION_REAL, &po.seconds, 0.01, 1e4, "how long each kernel is repeated in a run (2)",
         FL_FOR_INPUT},
        {"seed", "N", FL_OPTION_INT, &seed, 1, 9e15, "seed of launches and sensors (1)"},
        FL_NODE_OPTIONS(po.node),
        {"o", "FILE", FL_OPTION_OUTPUT, &out, 0, 0, "writes the runs", FL_FOR_OUTPUT | FL_MOST_USED},
        {"table", "FILE", FL_OPTION_OUTPUT, &table, 0, 0, "writes the best pair of states of each kernel (ED2)",
         FL_FOR_OUTPUT},
        {"cpu-from", "MHZ", FL_OPTION_REAL, &cpu_from, 1, 1e5, "in that table only CPU clocks from here on (all)"},
        FL_THREADS_OPTION(&threads),
        FL_JSON_OPTION(&json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0}, unwritten = {0};
    fl_state_runs runs = {0};
    fl_sensitivity_fit fit[2];
    po.threads = (unsigned)threads;
    po.seed = (uint64_t)seed;
    fl_status s = get_runs(&po, &rest, out, &runs, &unwritten, &d);
    for (int side = 0; !s && side < 2; side++)
        s = fit_side(&runs, side, &fit[side], &d);
    if (!s && json)
        print_json(&runs, fit);
    for (int side = 0; !s && !json && side < 2; side++)
        print_fit(&runs, &fit[side], side);
    if (!s && !json) {
        print_order(&runs, &fit[GPU]);
        print_kernels(&runs);
    }
    if (!s && table)
        s = fl_state_runs_write_best(table, &runs, cpu_from, &d);
    if (!s && unwritten.status)
        s = (d = unwritten).status;
    fl_state_runs_free(&runs);
    return fl_command_close("fit policy sensitivity", s, &d, option, sizeof option / sizeof *option, &rest);
}
