/* `foldline fit workload`: predicts a workload's other settings from a few measured ones, on a device that `fit device`
 * described, or by laws of the workload's own. */
#include "harness/fit/chip/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "harness/input/platform/platform.h"
#include "models/chip/chip.h"
#include "models/math/math.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "fit workload", "SWEEP ... [--device DEV.json] [--at LIST] [--clocks LIST]",
    "Fits a workload to the named settings only, predicts every other row of the sweep and compares.",
    "LIST names the settings that the fit may use: ends (lowest and highest SM clock at the highest memory clock), "
    "corners (the same at the lowest and the highest memory clock), sm=952,1530, sm=952,1530/mem=405,877, or all. Of "
    "two runs, those at the top clock and at about 70 % of it tell most of the clocks in between; foldline advise and "
    "tune say which clock to measure next.\n\n"
    "Without --device two laws of the workload's own, at one memory clock, predict its other SM clocks.\n\n"
    "Each pair of workload and kernel is fitted by itself. The device gives what all workloads of the chip share: "
    "V(f), A, A0, B, B0, C, sharpness, how far measurements lie from the law, and which terms its other workloads "
    "have; so two settings are enough. Interpolated: between the lowest and the highest clocks that were looked at. "
    "A platform without a calibration serves too, with its "
    "constants and no knowledge of other workloads.\n\n"
    "--clocks names settings that were not measured. The command predicts them too and writes them to --rows and -o "
    "with the others; calibrated means all settings of the device's calibration. That is the default if the sweep "
    "holds no setting beyond those of --at.\n\n"
    "By default the command neither predicts nor uses rows outside the clocks of the device's calibration. With "
    "--extrapolate it does both and marks them: by beyond_calibration in --rows, and by a line in the head of -o, "
    "which every result based on that file repeats.\n\n"
    "A power limit binds where a lower one changes power or time. Rows under one that does are no rows of their clock: "
    "they are predicted as the board does it, with the clock lowered until the mean power is crest times the limit. "
    "--crest run: from one capped run of the workload, the one in the middle of the limits at its highest clock; "
    "device: the device's own; or a number. They stand in --rows, with their limit, and are scored apart.\n\n"
    "A sweep of power limits alone (no SM clocks) is predicted along its limits, by laws of each workload's own: --at "
    "ends, all, or caps=150,250. The highest limit, a middle one and the lowest tell most; a note says which is worth "
    "measuring. Rows whose limit the board did not hold are left out.\n\n"
    "Rows that did not run at the clock they name (throttled, not reached, mislabelled) are found from the sweep "
    "itself, told with file and line, and left out; a clock that is wrong throughout is taken as what it was, and told "
    "by the name under which one sets it (405 MHz, which runs at 214): so are clocks that --clocks asks for."};

typedef struct workload_options {
    const char *device, *at, *clocks, *crest, *rows, *out;
    fl_texts sweeps, only;
    bool json, extrapolate;
} workload_options;

/* Reads the calibration of a device file or, where it has none, its constants. Corrects the clocks of rows. */
static fl_status read_chip(const char *path, fl_chip *chip, bool *mem_known, fl_fit_marks *marks, fl_fit_rows *rows,
                           fl_diag *d) {
    cJSON *tree = NULL;
    if (!path) {
        *mem_known = rows->mem_known;
        *chip = (fl_chip){.law = FL_CHIP_OWN, .has_power = 1};
        if (rows->latent)
            return FL_OK;
        return fl_chip_of_rows(rows->row, rows->count, chip) == FL_MODEL_OK
                   ? FL_OK
                   : fl_fail(d, FL_BAD_INPUT, rows->file[0], 0, 0,
                             "no workload has two SM clocks at one memory clock, expected such, or --device");
    }
    const bool file = fl_is_standard(path) || strchr(path, '/') || fl_name_ends(path, ".json");
    *mem_known = true;
    fl_status s = file ? fl_json_read(path, &tree, d) : FL_OK;
    bool calibrated = false;
    if (!s && tree) {
        const fl_json root = fl_json_root(tree, path);
        calibrated = fl_json_has(&root, "calibration");
        fl_json at;
        if (calibrated)
            s = fl_json_get_object(&root, "calibration", &at, d);
        if (!s && calibrated)
            s = fl_chip_from_json(&at, chip, mem_known, d);
        if (!s && calibrated)
            s = fl_fit_marks_from_json(&at, marks, d);
        if (!s && calibrated)
            s = fl_fit_clocks_apply(&at, rows, d);
    }
    cJSON_Delete(tree);
    if (s || calibrated)
        return s;
    fl_platform p = {0};
    s = fl_platform_open(path, 1, &p, d);
    if (!s) {
        const fl_model_status m = fl_chip_of_device(&p.node.device[0], chip);
        if (m != FL_MODEL_OK)
            s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no device model fits this sweep: %s", fl_model_text(m));
    }
    fl_platform_free(&p);
    return s;
}

/* ---- reports ---- */

static void add_pct(fl_grid *g, double x) {
    if (isnan(x))
        fl_grid_add(g, "-");
    else
        fl_grid_add(g, "%.2f", x);
}

static void add_means(fl_grid *g, const fl_fit_means *m) {
    add_pct(g, m->time_mape);
    add_pct(g, m->time_p95);
    add_pct(g, m->power_mape);
    add_pct(g, m->power_p95);
    add_pct(g, m->energy_mape);
    add_pct(g, m->energy_p95);
}

static void print_text(const fl_fit_rows *r, const fl_fit_result_of *result, const fl_fit_score *all, const char *at) {
    static const char *const head[] = {"workload", "fitted", "predicted", "core %",  "memory %", "rest %",   "alpha",
                                       "beta",     "time %", "p95",       "power %", "p95",      "energy %", "p95"};
    fl_grid g = FL_GRID_HEADED(head);
    char name[128];
    for (size_t i = 0; i < r->entities; i++) {
        const fl_fit_result_of *o = &result[i];
        const double sum = o->load.tc + o->load.tm + o->load.tl;
        const fl_fit_means m = fl_fit_score_means(&o->score, FL_FIT_BOTH);
        if (!o->guess)
            continue;
        fl_grid_add(&g, "%s\t%zu\t%zu", fl_fit_entity_name(&r->entity[i], name, sizeof name), o->score.fitted, m.rows);
        if (isnan(sum)) /* laws of the workload's own have no such parts */
            fl_grid_add(&g, "-\t-\t-\t-\t-");
        else
            fl_grid_add(&g, "%.0f\t%.0f\t%.0f\t%.3f\t%.3f", 100 * o->load.tc / sum, 100 * o->load.tm / sum,
                        100 * o->load.tl / sum, o->load.alpha, o->load.beta);
        add_means(&g, &m);
    }
    static const char *const class[] = {"interpolated", "extrapolated", "all predicted rows", "capped"};
    static const int which[] = {FL_FIT_INSIDE, FL_FIT_OUTSIDE, FL_FIT_BOTH, FL_FIT_CAPPED};
    for (size_t k = 0; k < 4; k++) {
        const fl_fit_means m = fl_fit_score_means(all, which[k]);
        if (which[k] == FL_FIT_CAPPED && !m.rows)
            continue;
        fl_grid_add(&g, "%s", class[k]);
        fl_grid_add(&g, "%zu\t%zu", all->fitted, m.rows);
        for (int c = 0; c < 5; c++)
            fl_grid_add(&g, "%s", "");
        add_means(&g, &m);
    }
    fl_grid_print(&g, 1, stdout);
    printf("\nfitted at %s; mean absolute errors in percent, and their 95th percentiles\n", at);
}

static size_t count_seen(const fl_fit_rows *r, const fl_fit_result_of *result) {
    size_t seen = 0;
    for (size_t i = 0; i < r->entities; i++)
        seen += result[i].seen ? 1 : 0;
    return seen;
}

/* The clocks at which a workload's rows under limits were predicted to run, and the rows that gave the crest. */
static void add_capped(fl_grid *g, const fl_fit_rows *r, const fl_fit_capped_result *c) {
    double low = INFINITY, high = 0;
    size_t looked = c->count;
    for (size_t k = 0; k < c->count; k++) {
        looked = c->row[k].looked ? k : looked;
        if (!isnan(c->row[k].guess.time_s)) {
            low = fmin(low, c->row[k].ran_mhz);
            high = fmax(high, c->row[k].ran_mhz);
        }
    }
    fl_grid_add(g, "%zu", c->count);
    add_pct(g, c->crest);
    if (looked < c->count)
        fl_grid_add(g, "%g W, %g MHz asked", r->capped[c->first + looked].limit_w,
                    fl_fit_asked_mhz(r, r->capped[c->first + looked].sm_mhz));
    else
        fl_grid_add(g, "-");
    if (high > 0)
        fl_grid_add(g, "%.0f to %.0f", low, high);
    else
        fl_grid_add(g, "-");
    fl_grid_add(g, "%s", isnan(c->crest) ? "all: no crest is known" : c->refused ? "some: below the calibration" : "");
}

/* The workloads whose rows under limits were predicted, and with which crest. */
static void print_capped(const fl_fit_rows *r, const fl_fit_capped_result *capped) {
    static const char *const head[] = {"under limits", "rows", "crest", "from a run at", "ran at MHz", "not predicted"};
    char name[128];
    size_t rows = 0;
    for (size_t i = 0; i < r->entities; i++)
        rows += capped[i].count;
    if (!rows || r->latent)
        return;
    fl_grid g = FL_GRID_HEADED(head);
    for (size_t i = 0; i < r->entities; i++)
        if (capped[i].count) {
            fl_grid_add(&g, "%s", fl_fit_entity_name(&r->entity[i], name, sizeof name));
            add_capped(&g, r, &capped[i]);
        }
    printf("\n");
    fl_grid_print(&g, 1, stdout);
}

#define FEW 4 /* workloads for which a limit to measure is named */

static void print_limits(const fl_fit_rows *r, const fl_fit_capped_result *capped) {
    char name[128];
    size_t told = 0;
    for (size_t i = 0; r->latent && i < r->entities && told < FEW; i++) {
        const double watts = fl_fit_latent_next(r, &capped[i]);
        if (isnan(watts))
            continue;
        printf("note: measure next: %s: a run under a power limit of %g W tells most of the others\n",
               fl_fit_entity_name(&r->entity[i], name, sizeof name), watts);
        told++;
    }
}

static void print_notes(const fl_fit_rows *r, const fl_fit_result_of *result, size_t seen, size_t left, size_t beyond,
                        bool extrapolate, const fl_chip *chip) {
    char range[128];
    if (r->latent)
        printf(
            "note: the sweep has power limits and no SM clocks: laws of each workload's own predict its limits, and a "
            "device tells nothing more\n");
    if (!r->mem_known)
        printf("note: the sweep names no memory clocks, so one memory clock is assumed for all rows\n");
    size_t untaught = 0;
    fl_fit_rows_notes(r);
    fl_fit_sound_notes(r);
    for (size_t i = 0; i < r->entities; i++)
        untaught += result[i].untaught;
    if (untaught)
        printf("note: the fit leaves out %zu of its rows, which lie outside the clocks of the device's calibration\n",
               untaught);
    if (seen)
        printf("note: the device was fitted to %zu of these %zu workloads, so their errors look too small; fit "
               "device --only fits it to others\n",
               seen, r->entities);
    if (left)
        printf("note: %zu workloads have none of the named settings and are left out\n", left);
    if (beyond)
        printf("note: %zu rows lie outside the clocks that the device was calibrated at (%s)%s\n", beyond,
               fl_fit_range_text(chip, r, range, sizeof range),
               extrapolate ? "" : ": not predicted, --extrapolate does");
    if (chip->law == FL_CHIP_OWN)
        printf(
            "note: no device: two laws of each workload's own rows predict its other SM clocks, at a memory clock at "
            "which the fit may use two\n");
    else if (!chip->workloads && !r->latent)
        printf("note: %s\n", chip->settings ? "no sweep of this device was measured: its model comes from similar chips"
                                            : "the device has no calibration: the fit takes its constants as they are");
    if (!chip->has_power)
        printf("note: the device has no power model, so no power is predicted\n");
}

static cJSON *to_json(const fl_fit_rows *r, const fl_fit_result_of *result, const fl_fit_score *all, const char *at,
                      size_t left, size_t beyond, bool extrapolate, const fl_chip *chip) {
    cJSON *root = cJSON_CreateObject();
    fl_fit_means m = fl_fit_score_means(all, FL_FIT_BOTH);
    cJSON_AddStringToObject(root, "at", at);
    cJSON_AddNumberToObject(root, "rows_fitted", (double)all->fitted);
    fl_fit_means_json(&m, root);
    m = fl_fit_score_means(all, FL_FIT_INSIDE);
    fl_fit_means_json(&m, cJSON_AddObjectToObject(root, "interpolated"));
    m = fl_fit_score_means(all, FL_FIT_OUTSIDE);
    fl_fit_means_json(&m, cJSON_AddObjectToObject(root, "extrapolated"));
    m = fl_fit_score_means(all, FL_FIT_CAPPED);
    fl_fit_means_json(&m, cJSON_AddObjectToObject(root, "capped"));
    double untaught = 0;
    for (size_t i = 0; i < r->entities; i++)
        untaught += (double)result[i].untaught;
    cJSON_AddNumberToObject(root, "rows_untaught", untaught);
    cJSON_AddItemToObject(root, "unsound", fl_fit_sound_json(r));
    cJSON_AddNumberToObject(root, "rows_limited", (double)r->limited);
    cJSON_AddNumberToObject(root, "rows_repeated", (double)r->repeated);
    cJSON_AddNumberToObject(root, "rows_outside_calibration", (double)beyond);
    cJSON_AddNumberToObject(root, "rows_refused", extrapolate ? 0 : (double)beyond);
    cJSON_AddNumberToObject(root, "workloads_left_out", (double)left);
    cJSON_AddNumberToObject(root, "device_workloads", chip->workloads);
    cJSON_AddNumberToObject(root, "workloads_seen_by_device", (double)count_seen(r, result));
    cJSON *list = cJSON_AddArrayToObject(root, "workloads");
    for (size_t i = 0; i < r->entities; i++) {
        const fl_fit_result_of *o = &result[i];
        if (!o->guess)
            continue;
        cJSON *w = fl_json_add_row(list);
        cJSON_AddStringToObject(w, "workload", r->entity[i].workload);
        cJSON_AddStringToObject(w, "kernel", r->entity[i].kernel);
        cJSON_AddBoolToObject(w, "seen_by_device", o->seen);
        cJSON_AddNumberToObject(w, "rows_fitted", (double)o->score.fitted);
        m = fl_fit_score_means(&o->score, FL_FIT_BOTH);
        fl_fit_means_json(&m, w);
        m = fl_fit_score_means(&o->score, FL_FIT_INSIDE);
        fl_fit_means_json(&m, cJSON_AddObjectToObject(w, "interpolated"));
        m = fl_fit_score_means(&o->score, FL_FIT_OUTSIDE);
        fl_fit_means_json(&m, cJSON_AddObjectToObject(w, "extrapolated"));
        fl_fit_laws_json(r, i, chip->sharpness, w);
        fl_json_add_real(w, "tc_s", o->load.tc);
        fl_json_add_real(w, "tm_s", o->load.tm);
        fl_json_add_real(w, "tl_s", o->load.tl);
        fl_json_add_real(w, "alpha", chip->has_power ? o->load.alpha : NAN);
        fl_json_add_real(w, "beta", chip->has_power ? o->load.beta : NAN);
        double time_sd = 0, power_sd = 0, n = 0;
        for (size_t k = 0; k < r->entity[i].count; k++)
            if (!isnan(o->guess[k].time_sd_pct)) {
                time_sd += o->guess[k].time_sd_pct;
                power_sd += o->guess[k].power_sd_pct;
                n++;
            }
        fl_json_add_real(w, "time_expected_sd_pct", n > 0 ? time_sd / n : NAN);
        fl_json_add_real(w, "power_expected_sd_pct", n > 0 ? power_sd / n : NAN);
    }
    return root;
}

/* The prediction may use every row, so none is left to predict. */
static bool all_named(const fl_fit_at *at, const fl_fit_rows *r) {
    for (size_t i = 0; i < r->entities; i++)
        for (size_t k = 0; k < r->entity[i].count; k++)
            if (!fl_fit_at_has(at, r, &r->entity[i], &r->row[r->entity[i].first + k]))
                return false;
    return true;
}

/* Predicted settings without measurements: there are no errors, only the deviations that the fit expects. */
static void print_asked(const fl_fit_rows *r, const fl_fit_result_of *result) {
    static const char *const head[] = {"workload", "SM MHz",  "mem MHz", "time s",
                                       "+- %",     "power W", "+- %",    "energy J"};
    fl_grid g = FL_GRID_HEADED(head);
    char name[128];
    for (size_t i = 0; i < r->entities; i++)
        for (size_t k = 0; result[i].guess && k < r->entity[i].count; k++) {
            const fl_chip_row *row = &r->row[r->entity[i].first + k];
            const fl_chip_guess *p = &result[i].guess[k];
            if (!isnan(row->time_s) || isnan(p->time_s))
                continue;
            fl_grid_add(&g, "%s", fl_fit_entity_name(&r->entity[i], name, sizeof name));
            fl_grid_add(&g, "%g", fl_fit_asked_mhz(r, row->sm_mhz));
            if (r->mem_known)
                fl_grid_add(&g, "%g", row->mem_mhz);
            else
                fl_grid_add(&g, "-");
            fl_grid_add(&g, "%.5g\t%.1f\t%.5g\t%.1f\t%.5g", p->time_s, 2 * p->time_sd_pct, p->power_w,
                        2 * p->power_sd_pct, p->time_s * p->power_w);
        }
    printf("\n"
           "predictions for settings without a measurement, +- two standard deviations\n\n");
    fl_grid_print(&g, 1, stdout);
}

/* One workload, from the rows that the prediction may use. Where it has none of them, the result has no guesses. */
static fl_status predict_one(const workload_options *o, const fl_chip *chip, const fl_fit_rows *rows, size_t i,
                             const fl_fit_at *at, const fl_fit_crest *crest, fl_fit_result_of *result,
                             fl_fit_capped_result *capped, fl_diag *d) {
    const fl_fit_entity *e = &rows->entity[i];
    size_t named = 0;
    if (rows->latent)
        return fl_fit_latent_run(rows, i, at, &result->score, capped, d);
    for (size_t k = 0; k < e->count; k++)
        named += fl_fit_at_has(at, rows, e, &rows->row[e->first + k]) ? 1 : 0;
    if (named == 0)
        return FL_OK;
    const fl_status s = fl_fit_entity_run(chip, rows, e, at, o->extrapolate, result, d);
    return s || !result->guess ? s
                               : fl_fit_capped_run(chip, rows, i, at, crest, o->extrapolate, &result->score, capped, d);
}

static void free_results(const fl_fit_rows *rows, fl_fit_result_of *result, fl_fit_capped_result *capped) {
    for (size_t i = 0; result && capped && i < rows->entities; i++) {
        fl_fit_result_free(&result[i]);
        fl_fit_capped_free(&capped[i]);
    }
    free(result);
    free(capped);
}

static fl_status run_all(const workload_options *o, fl_diag *d) {
    fl_chip chip = {0};
    bool chip_knows = true;
    fl_fit_rows rows = {0};
    fl_fit_at at;
    fl_fit_crest crest;
    fl_fit_score all = {0};
    fl_fit_marks marks = {0};
    fl_status s = fl_fit_at_parse(o->at, &at, d);
    if (!s)
        s = fl_fit_crest_parse(o->crest, &crest, d);
    if (!s)
        s = fl_fit_rows_read(&o->sweeps, &o->only, &rows, d);
    if (!s)
        fl_fit_rows_tell(&rows);
    if (!s)
        s = read_chip(o->device, &chip, &chip_knows, &marks, &rows, d);
    if (!s)
        s = fl_fit_drop_unsound(&rows, d);
    fl_fit_result_of *result = fl_must(calloc(rows.entities + 1, sizeof *result));
    fl_fit_capped_result *capped = fl_must(calloc(rows.entities + 1, sizeof *capped));
    if (!s)
        fl_fit_rows_match(&rows, &chip, chip_knows);
    size_t left = 0, beyond = 0, asked = 0, unmeasured = 0;
    const bool unasked = !s && !o->clocks && chip.settings && !rows.latent && all_named(&at, &rows);
    if (!s && rows.latent && o->clocks)
        s = fl_refuse(d, "--clocks has no effect, since the sweep has power limits and no SM clocks, expected it "
                         "without");
    if (!s && (o->clocks || unasked))
        s = fl_fit_ask(unasked ? "calibrated" : o->clocks, &chip, &rows, &asked, d);
    for (size_t i = 0; !s && i < rows.entities; i++)
        s = predict_one(o, &chip, &rows, i, &at, &crest, &result[i], &capped[i], d);
    for (size_t i = 0; !s && i < rows.entities; i++) {
        fl_fit_score_add(&all, &result[i].score);
        left += result[i].guess || rows.latent ? 0 : 1;
        beyond += result[i].beyond;
        unmeasured += result[i].asked;
        result[i].seen = result[i].guess && fl_fit_marks_have(&marks, &rows, &rows.entity[i]);
    }
    if (!s && left == rows.entities)
        s = fl_fail(d, FL_BAD_INPUT, o->sweeps.item[0], 0, 0,
                    "no workload has any of the settings %s within the clocks that the device was calibrated at, "
                    "expected some, or --extrapolate",
                    o->at);
    const fl_fit_means any = fl_fit_score_means(&all, FL_FIT_BOTH);
    if (!s && beyond && !o->extrapolate && !any.rows && !unmeasured) {
        char range[128];
        s = fl_fail(d, FL_BAD_INPUT, o->sweeps.item[0], 0, 0,
                    "all %zu rows to predict lie outside the clocks that the device was calibrated at (%s), expected "
                    "some within, or --extrapolate",
                    beyond, fl_fit_range_text(&chip, &rows, range, sizeof range));
    }
    if (!s && o->out)
        s = fl_fit_check_twice(&rows, result, d);
    if (!s && o->json) {
        cJSON *root = to_json(&rows, result, &all, o->at, left, beyond, o->extrapolate, &chip);
        fl_json_tell(root);
    } else if (!s) {
        print_text(&rows, result, &all, o->at);
        print_capped(&rows, capped);
        print_limits(&rows, capped);
        fl_fit_laws_print(&rows, chip.sharpness);
        if (asked)
            print_asked(&rows, result);
        print_notes(&rows, result, count_seen(&rows, result), left, beyond, o->extrapolate, &chip);
    }
    if (!s && o->rows && !(s = fl_fit_write_rows(&chip, &rows, result, capped, o->rows, d)) && !o->json)
        printf("written: %s\n", o->rows);
    if (!s && o->out && !(s = fl_fit_write_sweep(&chip, &rows, result, o->extrapolate ? beyond : 0, o->out, d)) &&
        !o->json)
        printf("written: %s\n", o->out);
    free_results(&rows, result, capped);
    fl_fit_score_free(&all);
    fl_fit_marks_free(&marks);
    fl_fit_rows_free(&rows);
    return s;
}

int fl_cmd_fit_workload(int argc, char **argv) {
    workload_options o = {.at = "ends", .crest = "run"};
    fl_texts rest = {0};
    const fl_option option[] = {
        {"device", "FILE", FL_OPTION_TEXT, &o.device, 0, 0, "device file of `fit device`, or a platform (none)",
         FL_FOR_INPUT | FL_MOST_USED},
        {"at", "LIST", FL_OPTION_TEXT, &o.at, 0, 0, "settings to fit (ends)", FL_FOR_INPUT | FL_MOST_USED},
        {"clocks", "LIST", FL_OPTION_TEXT, &o.clocks, 0, 0,
         "settings to predict that were not measured: calibrated, or clocks as in --at", FL_FOR_INPUT},
        {"crest", "LIST", FL_OPTION_TEXT, &o.crest, 0, 0,
         "mean power over a power limit that binds: run, device, or a number (run)"},
        {"only", "NAME", FL_OPTION_LIST, &o.only, 0, 0, "workloads, by name or pattern; may be given several times",
         FL_FOR_INPUT},
        {"extrapolate", NULL, FL_OPTION_FLAG, &o.extrapolate, 0, 0,
         "predicts rows outside the clocks that the device was calibrated at, too"},
        {"rows", "FILE", FL_OPTION_OUTPUT, &o.rows, 0, 0, "writes every row, measured and predicted", FL_FOR_OUTPUT},
        {"o", "FILE", FL_OPTION_OUTPUT, &o.out, 0, 0,
         "writes a sweep: measured values at the settings of --at, else predictions", FL_FOR_OUTPUT | FL_MOST_USED},
        FL_STRICT_OPTION,
        FL_JSON_OPTION(&o.json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, FL_COUNT(option), &rest, &status))
        return status;
    fl_diag d = {0};
    o.sweeps = rest;
    const fl_status s = o.sweeps.count ? run_all(&o, &d) : fl_refuse(&d, "no sweep, expected SWEEP ...");
    return fl_command_close(help.name, s, &d, option, FL_COUNT(option), &rest);
}
