/* A platform file of a board of which only data are known. */
#include "harness/fit/chip/inside.h"

#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "harness/fit/chip/chip.h"
#include "harness/input/platform/platform.h"
#include "models/chip/chip.h"
#include "models/laws/device.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the parts of the file ---- */

static void set_item(cJSON *object, const char *key, cJSON *value) {
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    cJSON_AddItemToObject(object, key, value);
}

__attribute__((format(printf, 3, 4))) static void note(cJSON *notes, const char *key, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    set_item(notes, key, cJSON_CreateString(text));
}

/* The base's notes, marked as coming from the base; notes on its policies go with the policies. */
static cJSON *assumed_notes(const cJSON *notes, const char *base) {
    cJSON *fresh = cJSON_CreateObject();
    const cJSON *e = NULL;
    cJSON_ArrayForEach(e, notes) if (strncmp(e->string, "policies", 8) != 0)
        note(fresh, e->string, "assumed: as platform %s has it (%s)", base, e->valuestring);
    return fresh;
}

/* Sets a fact that the board's file gives, with the board's own source; false where it does not give it. */
static bool of_board(const fl_fit_facts *f, fl_board_fact id, cJSON *object, const char *key, cJSON *notes,
                     const char *path) {
    const fl_board *b = &f->board;
    if (!b->name || isnan(b->fact[id]))
        return false;
    set_item(object, key, cJSON_CreateNumber(b->fact[id]));
    note(notes, path, "board %s: %s", b->name, fl_board_source(b, fl_board_rows[id].key));
    return true;
}

/* Facts of a board besides its ladders and limit. */
static void write_board(const fl_fit_facts *f, cJSON *gpu, cJSON *notes) {
    const fl_board *b = &f->board;
    const double *fact = b->fact;
    const char *low = fl_board_source(b, f->low_assumed ? "sm_idle_mhz" : "sm_min_mhz");
    (void)of_board(f, FL_BOARD_sms, gpu, "sms", notes, "gpu.sms");
    (void)of_board(f, FL_BOARD_peak_gb_s, gpu, "peak_gb_s", notes, "gpu.peak_gb_s");
    (void)of_board(f, FL_BOARD_cores_per_sm, gpu, "cores_per_sm", notes, "gpu.cores_per_sm");
    if (fl_ladder_index(f->sm, f->known.sm_count, fact[FL_BOARD_sm_default_mhz]) >= 0)
        (void)of_board(f, FL_BOARD_sm_default_mhz, gpu, "default_sm_mhz", notes, "gpu.default_sm_mhz");
    if (b->sm_count)
        note(notes, "gpu.sm_mhz", "board %s: %s", b->name, fl_board_source(b, "sm_mhz"));
    else
        note(notes, "gpu.sm_mhz", "%sboard %s: up to %g (%s) from %d (%s%s) by %s",
             f->step_assumed ? "assumed steps; " : "", b->name, fact[FL_BOARD_sm_max_mhz],
             fl_board_source(b, "sm_max_mhz"), f->sm[0],
             f->low_assumed ? "assumed the lowest, as it idles there: " : "", low,
             f->step_assumed ? "15, assumed as on other boards" : fl_board_source(b, "sm_step_mhz"));
    note(notes, "gpu.mem_mhz", "board %s: %s", b->name, fl_board_source(b, "mem_mhz"));
    note(notes, "gpu.default_mem_mhz", "assumed: the highest that board %s has", b->name);
    note(notes, "gpu.tdp_w", "board %s: %s", b->name, fl_board_source(b, "limit_default_w"));
    cJSON *limits = cJSON_GetObjectItemCaseSensitive(gpu, "limits");
    (void)of_board(f, FL_BOARD_limit_min_w, limits, "min_w", notes, "gpu.limits.min_w");
    (void)of_board(f, FL_BOARD_limit_max_w, limits, "max_w", notes, "gpu.limits.max_w");
    (void)of_board(f, FL_BOARD_limit_default_w, limits, "default_w", notes, "gpu.limits.default_w");
    cJSON *sensors = cJSON_GetObjectItemCaseSensitive(gpu, "sensors");
    static const struct {
        fl_board_fact window;
        const char *sensor, *refresh, *mean;
    } meter[] = {{FL_BOARD_power_window_ms, "power", "gpu.sensors.power.refresh_ms", "gpu.sensors.power.window_ms"},
                 {FL_BOARD_instant_window_ms, "power_instant", "gpu.sensors.power_instant.refresh_ms",
                  "gpu.sensors.power_instant.window_ms"}};
    for (size_t i = 0; i < sizeof meter / sizeof *meter; i++) {
        cJSON *sensor = cJSON_GetObjectItemCaseSensitive(sensors, meter[i].sensor);
        if (sensor && of_board(f, meter[i].window, sensor, "window_ms", notes, meter[i].mean))
            (void)of_board(f, FL_BOARD_power_refresh_ms, sensor, "refresh_ms", notes, meter[i].refresh);
    }
}

static void write_facts(const fl_fit_facts *f, cJSON *gpu, cJSON *notes) {
    const uint32_t top = f->known.sm_count - 1;
    set_item(gpu, "name", cJSON_CreateString(f->name));
    set_item(gpu, "sm_mhz", cJSON_CreateIntArray(f->sm, (int)f->known.sm_count));
    set_item(gpu, "mem_mhz", cJSON_CreateIntArray(f->mem, (int)f->known.mem_count));
    set_item(gpu, "default_sm_mhz", cJSON_CreateNumber(f->sm[top]));
    set_item(gpu, "default_mem_mhz", cJSON_CreateNumber(f->known.default_mem_mhz));
    set_item(gpu, "tdp_w", cJSON_CreateNumber(f->known.tdp_w));
    for (size_t i = 0; i < 4; i++)
        note(notes, (const char *[]){"gpu.sm_mhz", "gpu.mem_mhz", "gpu.tdp_w", "gpu.default_mem_mhz"}[i], "as stated");
    note(notes, "gpu.default_sm_mhz", "assumed: the top of the ladder");
    if (!isnan(f->peak_gb_s)) {
        set_item(gpu, "peak_gb_s", cJSON_CreateNumber(f->peak_gb_s));
        note(notes, "gpu.peak_gb_s", "as stated");
    }
    cJSON *limits = cJSON_CreateObject();
    cJSON_AddNumberToObject(limits, "min_w", f->known.tdp_w / 2);
    cJSON_AddNumberToObject(limits, "max_w", f->known.tdp_w);
    cJSON_AddNumberToObject(limits, "default_w", f->known.tdp_w);
    set_item(gpu, "limits", limits);
    note(notes, "gpu.limits", "assumed: from half of the TDP to the TDP");
    if (f->board.name)
        write_board(f, gpu, notes);
}

/* One constant and the interval of its part of the law. scale: the constant where the part is 1. */
static void write_part(const fl_fit_facts *f, cJSON *power, cJSON *notes, const char *key, double value, int part) {
    char path[64];
    const double two = f->after.factor[part] * f->after.factor[part];
    snprintf(path, sizeof path, "gpu.power.%s", key);
    set_item(power, key, cJSON_CreateNumber(value));
    note(notes, path, "assumed: chips alike (%zu known)%s%s: %.3g, two deviations from %.3g to %.3g", f->kin,
         f->idle_clocks ? ", an idle log" : "", f->run_rows ? ", a run" : "", value, value / two, value * two);
}

static void write_power(const fl_fit_facts *f, const fl_chip *c, cJSON *power, cJSON *notes) {
    cJSON *volts = cJSON_CreateArray(), *b0 = cJSON_CreateArray();
    write_part(f, power, notes, "a_w", c->a_w, FL_KIN_A);
    write_part(f, power, notes, "a0_w", c->a0_w, FL_KIN_A0);
    write_part(f, power, notes, "b_w", c->b_w, FL_KIN_B);
    write_part(f, power, notes, "c_w", c->c_w, FL_KIN_C);
    for (uint32_t i = 0; i < c->knots; i++)
        cJSON_AddItemToArray(volts,
                             cJSON_CreateDoubleArray((double[]){c->knot_mhz[i], round(c->volt[i] * 1e5) / 1e5}, 2));
    set_item(power, "voltage", volts);
    const double knee = f->after.middle[FL_KIN_KNEE] * c->sm_ref, rise = f->after.middle[FL_KIN_RISE];
    const double knee_two = f->after.factor[FL_KIN_KNEE] * f->after.factor[FL_KIN_KNEE];
    const double rise_two = f->after.factor[FL_KIN_RISE] * f->after.factor[FL_KIN_RISE];
    note(notes, "gpu.power.voltage",
         "assumed: chips alike (%zu known)%s%s: 1 up to %.0f MHz (two deviations from %.0f to %.0f), %.2f at the top "
         "(%.2f to %.2f)",
         f->kin, f->idle_clocks ? ", an idle log" : "", f->run_rows ? ", a run" : "", knee, knee / knee_two,
         fmin(c->sm_ref, knee * knee_two), 1 + rise, 1 + rise / rise_two, 1 + rise * rise_two);
    for (uint32_t i = 0; i < f->known.mem_count; i++)
        cJSON_AddItemToArray(b0, cJSON_CreateNumber(fl_chip_b0(c, f->mem[i])));
    write_part(f, power, notes, "b0_w", fl_chip_b0(c, c->mem_ref), FL_KIN_B0);
    set_item(power, "b0_w", b0);
    set_item(power, "no_context_w", cJSON_CreateNumber(fl_chip_b0(c, f->mem[0]) + c->c_w));
    note(notes, "gpu.power.no_context_w", "assumed: B0 at the lowest memory clock and C at the lowest voltage");
    (void)of_board(f, FL_BOARD_idle_min_w, power, "no_context_w", notes, "gpu.power.no_context_w");
}

fl_status fl_fit_facts_device(const fl_fit_facts *f, const fl_chip *chip, const char *base, cJSON **root, fl_diag *d) {
    fl_platform p = {0};
    char title[160];
    *root = NULL;
    fl_status s = fl_platform_open(base, 1, &p, d);
    if (!s)
        s = fl_json_read(p.path, root, d);
    cJSON *gpu = s ? NULL : cJSON_GetObjectItemCaseSensitive(*root, "gpu");
    cJSON *power = gpu ? cJSON_GetObjectItemCaseSensitive(gpu, "power") : NULL;
    if (!s && !power)
        s = fl_fail(d, FL_BAD_INPUT, p.path, 0, 0, "the base has several kinds of GPU, expected one");
    if (!s) {
        cJSON *calibration = fl_must(fl_chip_to_json(chip, true));
        cJSON *notes = assumed_notes(cJSON_GetObjectItemCaseSensitive(*root, "notes"), p.name);
        snprintf(title, sizeof title, "%s, never measured: from its facts and %zu known chips", f->name, f->kin);
        set_item(*root, "title", cJSON_CreateString(title));
        cJSON_DeleteItemFromObjectCaseSensitive(*root, "policies"); /* their clocks belong to another chip */
        write_facts(f, gpu, notes);
        write_power(f, chip, power, notes);
        set_item(gpu, "sharpness", cJSON_CreateNumber(chip->sharpness));
        note(notes, "gpu.sharpness", "assumed: as V100 and PVC prefer, give or take half");
        note(notes, "calibration",
             "made-up workloads on made-up chips, as far as chips alike differ; none was measured on this one");
        set_item(*root, "notes", notes);
        set_item(*root, "calibration", calibration);
    }
    fl_platform_free(&p);
    return s;
}

/* ---- the platform of a board ---- */

fl_status fl_fit_board_platform(const char *board, const char *base, const char *path, fl_diag *d) {
    fl_fit_facts facts = {0};
    cJSON *root = NULL;
    fl_chip *chip = fl_must(calloc(1, sizeof *chip));
    fl_status s = fl_fit_facts_read(board, &facts, d);
    if (!s)
        s = fl_fit_facts_chip(&facts, NULL, NULL, chip, d);
    if (!s)
        s = fl_fit_facts_device(&facts, chip, base, &root, d);
    if (!s)
        s = fl_json_write(path, root, d);
    cJSON_Delete(root);
    fl_fit_facts_free(&facts);
    free(chip);
    return s;
}
