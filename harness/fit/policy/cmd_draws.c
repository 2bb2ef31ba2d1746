/* Run times, core/uncore ratio and deviation of a distribution replay, from published energies of other policies. */
#include "harness/fit/policy/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "fit policy draws", "PUBLISHED.json [-o SWEEP.csv] [--draws FILE.json]",
    "Finds what a distribution replay needs and a published table of energies does not say: run times from the row of "
    "a round robin, the law of the core/uncore ratio from the row of epsilon-greedy, the scale of the ratio and the "
    "deviation of the draws from two published regrets. EnergyUCB's energies are not looked at.",
    "-o writes the sweep, --draws the object \"draws\" of an experiment. PUBLISHED.json is made like "
    "traces/samples/energyucb-published.json. Grids and seeds are fixed, so the same file gives the same result.\n\n"
    "The ratio grows with a power of the run time. Where a best clock, and a cost that grows by a share of it with "
    "each "
    "100 MHz from there, make the row of epsilon-greedy much likelier, they replace the exponent."};

/* ---- reports ---- */

static fl_status write_sweep(const fl_draws_fit *f, const char *from, const char *path, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d->status;
    FILE *out = fl_output_file(o);
    const char *name = strrchr(from, '/');
    fprintf(out, "# foldline-sweep 1\n# source: foldline fit policy draws %s, which names the publication\n",
            name ? name + 1 : from);
    fprintf(out, "# times: T(f) = T(%d) ((c %d/f)^p + 1 - c^p)^(1/p), assumed\n", f->mhz[f->clock_count - 1],
            f->mhz[f->clock_count - 1]);
    fprintf(out, "# core share c, sharpness p: ");
    for (uint32_t i = 0; i < f->row_count; i++)
        fprintf(out, "%s%s %g %g", i ? ", " : "", f->row[i].name, f->row[i].core_share, f->row[i].sharpness);
    fprintf(out, "\nworkload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j\n");
    for (uint32_t i = 0; i < f->row_count; i++)
        for (uint32_t k = 0; k < f->clock_count; k++) {
            const fl_draws_row *w = &f->row[i];
            fl_csv_put(out, w->name);
            fprintf(out, ",,%d,,,%.2f,%.2f,%.0f\n", f->mhz[k], w->time_s[k], w->energy_j[k] / w->time_s[k],
                    w->energy_j[k]);
        }
    return fl_output_commit(o, d);
}

static double digits(double x, int n) { /* rounds to n significant digits */
    char text[40];
    snprintf(text, sizeof text, "%.*g", n, x);
    return strtod(text, NULL);
}

static cJSON *draws_json(const fl_draws_fit *f) {
    cJSON *root = cJSON_CreateObject();
    fl_json_add_real(root, "step_ms", f->step_ms);
    fl_json_add_real(root, "energy_cv", f->cv);
    fl_json_add_real(root, "ratio", digits(f->ratio, 4));
    cJSON *exponent = cJSON_AddObjectToObject(root, "ratio_exponent"),
          *best = cJSON_AddObjectToObject(root, "ratio_best_mhz"),
          *slope = cJSON_AddObjectToObject(root, "ratio_slope");
    for (uint32_t i = 0; i < f->row_count; i++) {
        const fl_draws_row *w = &f->row[i];
        fl_json_add_real(exponent, w->name, digits(w->exponent, 4));
        fl_json_add_real(best, w->name, w->best_mhz);
        fl_json_add_real(slope, w->name, digits(w->slope, 4));
    }
    fl_json_add_real(root, "ratio_cv", f->cv);
    return root;
}

static fl_status write_draws(const fl_draws_fit *f, const char *path, fl_diag *d) {
    cJSON *root = draws_json(f);
    const fl_status s = fl_json_write(path, root, d);
    cJSON_Delete(root);
    return s;
}

static void print_text(const fl_draws_fit *f) {
    static const char *const head[] = {"workload", "sharpness", "core share", "RRFreq kJ", "published",
                                       "exponent", "best MHz",  "slope",      "greedy kJ", "published"};
    fl_grid g = FL_GRID_HEADED(head);
    for (uint32_t i = 0; i < f->row_count; i++) {
        const fl_draws_row *w = &f->row[i];
        fl_grid_add(&g, "%s\t%g\t%.4g\t%.2f\t%.2f", w->name, w->sharpness, w->core_share, w->round_robin_fit_j * 1e-3,
                    w->round_robin_j * 1e-3);
        if (w->best_mhz > 0)
            fl_grid_add(&g, "-\t%g\t%.2f", w->best_mhz, w->slope);
        else
            fl_grid_add(&g, "%.2f\t-\t-", w->exponent);
        fl_grid_add(&g, "%.2f\t%.2f", w->epsilon_greedy_fit_j * 1e-3, w->epsilon_greedy_j * 1e-3);
    }
    fl_grid_print(&g, 1, stdout);
    printf(
        "\nratio %.4g at the top clock, deviation %.3g %% of energy and of ratio: EnergyUCB's regret in %s after %llu "
        "steps is %.0f, published %.0f\n",
        f->ratio, 100 * f->cv, f->row[f->regret_row].name, (unsigned long long)f->regret_steps, f->energyucb_regret_fit,
        f->energyucb_regret);
}

int fl_cmd_fit_policy_draws(int argc, char **argv) {
    fl_texts rest = {0};
    const char *out = NULL, *draws = NULL;
    int64_t threads = 0;
    bool json = false;
    const fl_option option[] = {
        {"o", "FILE", FL_OPTION_OUTPUT, &out, 0, 0, "writes the sweep: run time and energy at each clock",
         FL_FOR_OUTPUT},
        {"draws", "FILE", FL_OPTION_OUTPUT, &draws, 0, 0, "writes the object \"draws\" of an experiment",
         FL_FOR_OUTPUT},
        FL_THREADS_OPTION(&threads),
        FL_JSON_OPTION(&json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    cJSON *tree = NULL;
    fl_draws_fit *f = fl_must(calloc(1, sizeof *f));
    fl_status s = rest.count == 1 ? fl_draws_read(rest.item[0], &tree, f, &d)
                                  : fl_refuse(&d, "expected one file of published rows");
    if (!s)
        s = fl_draws_fit_run(f, (unsigned)threads, &d);
    if (!s && json) {
        cJSON *root = draws_json(f);
        fl_json_tell(root);
    } else if (!s) {
        print_text(f);
    }
    if (!s && out)
        s = write_sweep(f, rest.item[0], out, &d);
    if (!s && draws)
        s = write_draws(f, draws, &d);
    cJSON_Delete(tree);
    free(f);
    return fl_command_close(help.name, s, &d, option, sizeof option / sizeof *option, &rest);
}
