/* What `foldline tune` ends with: the clock or limit, and how sure that is. */
#include "harness/cmd/machine/inside.h"

#include "harness/advise/advise.h"
#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ONE_SIDED 1.645  /* standard deviations by which the bound is lowered: one side, 5 % */
#define UNKNOWN_SD 0.005 /* of one run each: how well times usually repeat (FL_ROW_NOISE_TIME) */
#define NOISY_SD 0.02    /* a larger one prints a note */
#define SHORT_S 2        /* of shorter runs the steps of a sensor leave more than a percent open */
#define SAME_TIME 0.002  /* of a slowdown below it a clock costs nothing */

const char *fl_tune_unit(const fl_tuner *t) { return t->caps ? "W" : "MHz"; }

fl_advise_commands fl_tune_commands(const fl_tuner *t, double value) {
    fl_advise_commands c = {.set = ""};
    if (t->caps)
        fl_advise_add_limit(&c, t->device, t->index, value, t->ladder[t->clocks - 1]);
    else
        c = fl_advise_commands_of(t->device, t->index, (fl_setting_clocks){.sm_mhz = value, .mem_mhz = NAN}, false);
    return c;
}

double fl_tune_mean(const double *value, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += value[i];
    return sum / (double)count;
}

/* Relative deviation of single runs, of all clocks together; NAN: no clock has two runs. */
static double noise(const fl_tuner *t, bool energy, size_t *freedom) {
    double sum = 0;
    *freedom = 0;
    for (size_t i = 0; i < t->points; i++) {
        const double *value = energy ? t->at[i].energy_j : t->at[i].time_s, m = fl_tune_mean(value, t->at[i].runs);
        for (size_t k = 0; k < t->at[i].runs; k++)
            sum += (value[k] / m - 1) * (value[k] / m - 1);
        *freedom += t->at[i].runs - 1;
    }
    return *freedom ? sqrt(sum / (double)*freedom) : (double)NAN;
}

static const fl_tune_point *top_of(const fl_tuner *t) {
    const fl_tune_point *top = &t->at[0];
    for (size_t i = 1; i < t->points; i++)
        top = t->at[i].mhz > top->mhz ? &t->at[i] : top;
    return top;
}

/* The bound that a mean of the usual number of runs must hold, so that noise alone seldom breaks the user's. */
double fl_tune_bound(const fl_tuner *t) {
    size_t freedom;
    const double sd = noise(t, false, &freedom), one = isnan(sd) ? UNKNOWN_SD : sd;
    return fmax(0, (1 + t->bound) * exp(-ONE_SIDED * one * sqrt(2 / (double)t->runs)) - 1);
}

/* Student's 0.975 quantile. */
static double student(size_t freedom) {
    static const double q[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23};
    const size_t count = sizeof q / sizeof *q;
    return freedom < 1 ? (double)NAN : freedom <= count ? q[freedom - 1] : 2 + 2.3 / (double)freedom;
}

const fl_tune_point *fl_tune_best(const fl_tuner *t) {
    const fl_tune_point *top = top_of(t), *best = top;
    const double bound = fl_tune_bound(t), top_s = fl_tune_mean(top->time_s, top->runs);
    for (size_t i = 0; i < t->points; i++) {
        const fl_tune_point *p = &t->at[i];
        if (fl_tune_mean(p->time_s, p->runs) <= (1 + bound) * top_s &&
            fl_tune_mean(p->energy_j, p->runs) < fl_tune_mean(best->energy_j, best->runs))
            best = p;
    }
    return best;
}

static int by_clock(const void *a, const void *b) {
    const double x = ((const fl_tune_point *)a)->mhz, y = ((const fl_tune_point *)b)->mhz;
    return (x < y) - (x > y);
}

static void tell_clock(const fl_tuner *t) {
    const fl_advise_commands c = fl_tune_commands(t, fl_tune_best(t)->mhz);
    if (*c.set)
        printf("set   %s\nundo  %s\n", c.set, c.undo);
}

static void add_mean(fl_grid *g, double value, double sd, int digits) {
    if (isnan(sd))
        fl_grid_add(g, "%.*f", digits, value);
    else
        fl_grid_add(g, "%.*f ± %.*f", digits, value, digits, value * sd);
}

void fl_tune_json(const fl_tuner *t) {
    const fl_tune_point *top = top_of(t), *best = fl_tune_best(t);
    const fl_advise_commands c = fl_tune_commands(t, best->mhz);
    const char *key = t->caps ? "power_limit_w" : "sm_mhz";
    cJSON *root = cJSON_CreateObject(), *clocks = cJSON_AddArrayToObject(root, t->caps ? "limits" : "clocks");
    const double top_s = fl_tune_mean(top->time_s, top->runs), top_j = fl_tune_mean(top->energy_j, top->runs);
    fl_json_add_real(root, key, best->mhz);
    fl_json_add_real(root, t->caps ? "reference_power_limit_w" : "reference_sm_mhz", top->mhz);
    fl_json_add_real(root, "bound", t->bound);
    fl_json_add_real(root, "saving_pct", 100 * (1 - fl_tune_mean(best->energy_j, best->runs) / top_j));
    fl_json_add_real(root, "slowdown_pct", 100 * (fl_tune_mean(best->time_s, best->runs) / top_s - 1));
    cJSON_AddStringToObject(root, "set", best == top ? "" : c.set);
    cJSON_AddStringToObject(root, "undo", best == top ? "" : c.undo);
    for (size_t i = 0; i < t->points; i++) {
        cJSON *p = cJSON_CreateObject();
        cJSON_AddItemToArray(clocks, p);
        fl_json_add_real(p, key, t->at[i].mhz);
        fl_json_add_real(p, "runs", (double)t->at[i].runs);
        fl_json_add_real(p, "time_s", fl_tune_mean(t->at[i].time_s, t->at[i].runs));
        fl_json_add_real(p, "energy_j", fl_tune_mean(t->at[i].energy_j, t->at[i].runs));
    }
    fl_json_print(root, stdout);
    cJSON_Delete(root);
}

void fl_tune_notes(const fl_tuner *t) {
    size_t ignored;
    const double time_sd = noise(t, false, &ignored), energy_sd = noise(t, true, &ignored),
                 top_s = fl_tune_mean(top_of(t)->time_s, top_of(t)->runs);
    if (fmax(time_sd, energy_sd) > NOISY_SD)
        fl_terminal_say(stderr, "note: %s at one clock differ by %.1f %%: more --runs, or a quieter machine",
                        time_sd > NOISY_SD ? "runs" : "energies of runs",
                        100 * (time_sd > NOISY_SD ? time_sd : energy_sd));
    if (top_s < SHORT_S)
        fl_terminal_say(stderr,
                        "note: a run takes %.2g s, of which a sensor's steps leave percents open: a longer one tells "
                        "more",
                        top_s);
    const fl_tune_point *best = fl_tune_best(t);
    if (best != top_of(t) && fabs(fl_tune_mean(best->time_s, best->runs) / top_s - 1) < SAME_TIME)
        fl_terminal_say(stderr,
                        "note: the time does not depend on the clock: the host or the memory sets the pace, or the "
                        "command does not wait for the GPU");
    for (size_t i = 0; i < t->points; i++)
        if (t->at[i].ran_mhz < t->at[i].mhz - FL_TUNE_STEP_MHZ)
            fl_terminal_say(stderr, "note: at %g MHz the GPU ran at %g MHz: a limit of power or heat held it down%s",
                            t->at[i].mhz, t->at[i].ran_mhz, t->session ? "" : ", or another clock was set");
}

void fl_tune_tell(fl_tuner *t) {
    size_t freedom = 0, ignored;
    qsort(t->at, t->points, sizeof *t->at, by_clock);
    const fl_tune_point *top = top_of(t), *best = fl_tune_best(t);
    const double top_s = fl_tune_mean(top->time_s, top->runs), top_j = fl_tune_mean(top->energy_j, top->runs);
    const double time_sd = noise(t, false, &freedom), energy_sd = noise(t, true, &ignored), q = student(freedom);
    fl_grid g = {0};
    fl_grid_column(&g, fl_tune_unit(t), "%s that was set", t->caps ? "power limit" : "SM clock");
    fl_grid_column(&g, "runs", "number of runs, the warm-up left out");
    fl_grid_column(&g, "time s", "mean, and deviation of a single run");
    fl_grid_column(&g, "energy J", "mean, and deviation of a single run");
    fl_grid_column(&g, "slowdown %", "time above that at the highest");
    fl_grid_column(&g, "saved %", "energy saved against the highest");
    fl_grid_column(&g, "", "%s", "");
    for (size_t i = 0; i < t->points; i++) {
        const fl_tune_point *p = &t->at[i];
        const double time = fl_tune_mean(p->time_s, p->runs), energy = fl_tune_mean(p->energy_j, p->runs);
        fl_grid_add(&g, "%g\t%zu", p->mhz, p->runs);
        add_mean(&g, time, time_sd, 3);
        add_mean(&g, energy, energy_sd, 1);
        fl_grid_add(&g, "%.2f\t%.2f\t%s", 100 * (time / top_s - 1), 100 * (1 - energy / top_j),
                    p == best ? "<- the answer" : "");
    }
    putchar('\n');
    fl_grid_print(&g, 0, stdout);
    if (best == top) {
        printf("\n%g %s, as it is: no other %s that was measured saves energy within the bound of %g %%\n", best->mhz,
               fl_tune_unit(t), t->caps ? "limit" : "clock", 100 * t->bound);
    } else {
        const double few = sqrt(1 / (double)best->runs + 1 / (double)top->runs);
        const double time = fl_tune_mean(best->time_s, best->runs) / top_s,
                     energy = fl_tune_mean(best->energy_j, best->runs) / top_j;
        printf("\n%g %s instead of %g: saves %.1f", best->mhz, fl_tune_unit(t), top->mhz, 100 * (1 - energy));
        if (freedom)
            printf(" ± %.1f", 100 * energy * q * energy_sd * few);
        printf(" %% of the energy, takes %.1f", fabs(100 * (time - 1)));
        if (freedom)
            printf(" ± %.1f", 100 * time * q * time_sd * few);
        printf(" %% %s (95 %%%s)\n", time < 1 ? "less time" : "longer", freedom ? "" : ": unknown, one run each");
        if (freedom && 1 - energy < energy * q * energy_sd * few)
            fl_terminal_say(stderr, "note: the saving is within the noise of the runs, and may be none");
        tell_clock(t);
    }
}

fl_status fl_tune_write(const fl_tuner *t, fl_diag *d) {
    char none[] = "", *name = strdup(basename(t->command[0])), *names[] = {name, none};
    fl_sweep sweep = {.names = names, .name_count = 2};
    fl_status s = name ? FL_OK : fl_no_memory(d, "the rows");
    bool ok = fl_head_set(&sweep.head, "source", "foldline tune") && fl_head_set(&sweep.head, "device", t->device);
    for (size_t i = 0; !s && ok && i < t->points; i++)
        for (size_t k = 0; !s && k < t->at[i].runs; k++) {
            if (fl_grow(&sweep.rows, &sweep.row_room, sweep.row_count + 1, sizeof *sweep.rows)) {
                s = fl_no_memory(d, "the rows");
                break;
            }
            sweep.rows[sweep.row_count++] = (fl_sweep_row){.kernel = 1,
                                                           .sm_mhz = t->caps ? (double)NAN : t->at[i].mhz,
                                                           .mem_mhz = NAN,
                                                           .power_cap_w = t->caps ? t->at[i].mhz : (double)NAN,
                                                           .time_s = t->at[i].time_s[k],
                                                           .power_w = t->at[i].energy_j[k] / t->at[i].time_s[k],
                                                           .energy_j = t->at[i].energy_j[k],
                                                           .energy_cv = NAN,
                                                           .ratio = NAN,
                                                           .ratio_cv = NAN,
                                                           .time_sd_pct = NAN,
                                                           .power_sd_pct = NAN};
        }
    if (!s && !ok)
        s = fl_no_memory(d, "the rows");
    if (!s)
        s = fl_sweep_write(t->out, &sweep, d);
    fl_head_free(&sweep.head);
    free(sweep.rows);
    free(name);
    return s;
}
