/* `foldline fit device`: the constants of a chip, from measured sweeps of several workloads, as a device file. */
#include "harness/fit/chip/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "harness/input/platform/platform.h"
#include "models/chip/chip.h"
#include "models/laws/device.h"
#include "models/math/math.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "fit device", "SWEEP ... -o DEV.json | --facts FILE -o DEV.json [--idle LOG] [--base PLATFORM]",
    "Finds what the workloads of a chip share, from settings at which they were measured: V(f), A, A0, B, B0(m), C, "
    "time sharpness, how far measurements lie from the law, and which terms workloads have.",
    "The command fits two models. \"gpu\" holds the simulator's own. \"calibration\", which `fit workload` reads, adds "
    "two effects: memory-bound kernels slow down below some SM clock, since their bytes cross a link on that clock, "
    "and stalled units draw less. It leaves both out if the simulator's own model predicts held-out workloads "
    "significantly better. Both models ignore single bad readings. What a sweep does not show (ladders beyond the "
    "measured clocks, sensors, actuators, limits) comes from --base and is marked as assumed. Each value carries a "
    "note: where it comes from and how well it is known, or why it is not identifiable.\n\n"
    "Sweeps only limit the power A0 of the idle clock tree from above. --idle LOG determines it from a log in which "
    "the GPU idles at several SM clocks with a context open: A0 is how much the idle power rises with V^2 f. The power "
    "of kernels stays the same.\n\n"
    "A power limit binds where a lower one changes power or time; rows under one that does are left out of the laws, "
    "and tell the crest: mean power over a limit that binds. The sweep's limits become the device's. Where --base is "
    "the platform of the GPU, its clocks below the measured ones, down to half of the lowest, are kept, so that the "
    "device can hold lower limits, as its board can: results say for how long they went there.\n\n"
    "A sweep of power limits alone (no SM clocks) needs --base with the platform of the GPU: a row's clock is where "
    "that power law has its power, relative to the highest limit, which counts as the highest clock.\n\n"
    "Rows that did not run at the clock they name (throttled, not reached, mislabelled) are found from the sweep "
    "itself, told with file and line, and left out; a clock that is wrong throughout is taken as what it was.\n\n"
    "--facts FILE describes a GPU without measurements: from its ladders and TDP (fit workload --help shows such "
    "a file), from what the bundled chips are like, an idle log and --run, a sweep of one workload. The spread among "
    "known chips is the uncertainty: the notes state it for each value, and predictions include it in their "
    "deviations."};

typedef struct device_options {
    const char *out, *base, *name, *idle, *facts, *run;
    fl_texts sweeps, only;
    bool json, base_given;
} device_options;

typedef struct maker {
    const device_options *o;
    const fl_fit_rows *rows;
    double lowest;          /* lowest clock of the ladder */
    double off_mhz;         /* a measured clock that the board's ladder does not have; 0 = none */
    const fl_device *board; /* device of the platform that was named as the GPU's; NULL = none was */
    fl_chip full, plain;
    fl_idle_log idle; /* clocks 0 = none was given */
    char files[256];  /* names of the sweeps, without folders */
    cJSON *root, *gpu, *power, *notes;
} maker;

__attribute__((format(printf, 3, 4))) static void note(maker *m, const char *key, const char *format, ...) {
    char text[768];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cJSON_DeleteItemFromObjectCaseSensitive(m->notes, key);
    cJSON_AddStringToObject(m->notes, key, text);
}

static void set_item(cJSON *object, const char *key, cJSON *value) {
    if (cJSON_HasObjectItem(object, key))
        cJSON_ReplaceItemInObjectCaseSensitive(object, key, value);
    else
        cJSON_AddItemToObject(object, key, value);
}

/* "fitted from v100.csv: 20.1 +- 0.3", or that the data do not determine the value. why: what hides it. */
static void note_value(maker *m, const char *key, double value, double sd, const char *unit, const char *why) {
    if (isfinite(sd) && sd <= FL_FIT_UNKNOWN * value)
        note(m, key, "fitted from %s: %.4g +- %.2g %s", m->files, value, sd, unit);
    else if (isfinite(sd))
        note(m, key, "not identifiable: %.4g +- %.2g %s in %s; %s", value, sd, unit, m->files, why);
    else
        note(m, key, "not identifiable: %s leaves no degree of freedom to tell; %s", m->files, why);
}

static void describe_files(maker *m) {
    size_t used = 0;
    for (size_t i = 0; i < m->o->sweeps.count && used < sizeof m->files; i++) {
        const char *slash = strrchr(m->o->sweeps.item[i], '/');
        used += (size_t)snprintf(m->files + used, sizeof m->files - used, "%s%s", i ? ", " : "",
                                 slash ? slash + 1 : m->o->sweeps.item[i]);
    }
}

/* The base's notes, each now marked as coming from the base. */
static void assume_notes(maker *m, const char *base) {
    cJSON *fresh = cJSON_CreateObject(), *e = NULL;
    cJSON_ArrayForEach(e, m->notes) {
        char text[768];
        if (!strncmp(e->string, "policies", 8))
            continue;
        (void)snprintf(text, sizeof text, "assumed: as platform %s has it (%s)", base, e->valuestring);
        cJSON_AddStringToObject(fresh, e->string, text);
    }
    cJSON_ReplaceItemInObjectCaseSensitive(m->root, "notes", fresh);
    m->notes = fresh;
}

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Measured clocks in whole MHz, without repeats. A clock that a user reaches only under another name is none of them,
 * but for the highest: that is where a board runs that was asked for more. */
static cJSON *ladder(const fl_fit_rows *r, bool memory) {
    double top = 0;
    int *list = fl_must(malloc((r->count + 1) * sizeof *list));
    cJSON *out = cJSON_CreateArray();
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++)
        top = fmax(top, r->row[i].sm_mhz);
    for (size_t i = 0; i < r->count; i++)
        if (memory || r->row[i].sm_mhz >= top || fl_fit_asked_mhz(r, r->row[i].sm_mhz) == r->row[i].sm_mhz)
            list[count++] = (int)lround(memory ? r->row[i].mem_mhz : r->row[i].sm_mhz);
    qsort(list, count, sizeof *list, ascending);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || list[i] > list[i - 1])
            cJSON_AddItemToArray(out, cJSON_CreateNumber(list[i]));
    free(list);
    return out;
}

#define BELOW_LEAST 0.5 /* of the lowest measured clock: the laws become wrong further down */

#define SAME_CLOCK 1.0 /* MHz: tools round steps of 7.5 to whole ones */

/* The first clock that is not a step of the platform's ladder: the sweep is then of another GPU, or of one with other
 * steps. 0: all clocks are steps. */
static double clock_off(const fl_device *board, const cJSON *measured) {
    const cJSON *e = NULL;
    cJSON_ArrayForEach(e, measured) {
        uint32_t i = 0;
        while (i < board->sm_count && fabs(board->sm_mhz[i] - e->valuedouble) > SAME_CLOCK)
            i++;
        if (i == board->sm_count)
            return e->valuedouble;
    }
    return 0;
}

/* The ladder. A power limit may take the board to clocks that were not measured. If the platform is that of the GPU,
 * its clocks below the measured ones therefore come first, *below of them. If clocks did not run as requested, the
 * clocks below are just as uncertain. */
static cJSON *whole_ladder(maker *m, double *first, int *below) {
    cJSON *measured = ladder(m->rows, false), *all = cJSON_CreateArray(), *e = NULL;
    *below = 0;
    *first = m->lowest = cJSON_GetNumberValue(cJSON_GetArrayItem(measured, 0));
    const bool extends = m->board && !m->rows->clocks && !m->rows->latent;
    m->off_mhz = extends ? clock_off(m->board, measured) : 0;
    for (uint32_t i = 0; extends && !(m->off_mhz > 0) && i < m->board->sm_count; i++)
        if (m->board->sm_mhz[i] < *first && m->board->sm_mhz[i] >= BELOW_LEAST * *first) {
            m->lowest = *below ? m->lowest : m->board->sm_mhz[i];
            cJSON_AddItemToArray(all, cJSON_CreateNumber(m->board->sm_mhz[i]));
            ++*below;
        }
    cJSON_ArrayForEach(e, measured) cJSON_AddItemToArray(all, cJSON_CreateNumber(e->valuedouble));
    cJSON_Delete(measured);
    return all;
}

#define OFF_LADDER "%g MHz is no clock of platform %s, which is taken to be another GPU's"

static void make_clocks(maker *m) {
    double first = 0;
    int below = 0;
    set_item(m->gpu, "sm_mhz", whole_ladder(m, &first, &below));
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(m->gpu, "sm_mhz");
    const double top = cJSON_GetNumberValue(cJSON_GetArrayItem(steps, cJSON_GetArraySize(steps) - 1));
    set_item(m->gpu, "default_sm_mhz", cJSON_CreateNumber(top));
    if (m->rows->latent)
        note(m, "gpu.sm_mhz",
             "inferred: %s names power limits and no clocks; laws of each workload's own give them from its powers, "
             "relative to %s's highest clock",
             m->files, m->o->base);
    else
        note(m, "gpu.sm_mhz", "the clocks measured in %s%s; the chip may have others", m->files,
             m->rows->clocks ? ", as they ran: calibration.asked_ran_mhz tells what was asked" : "");
    if (below)
        note(m, "gpu.sm_mhz",
             "from %g MHz the clocks measured in %s; below, platform %s's: a power limit may take the board there. "
             "Nobody measured them: they are extrapolated, V is as at %g MHz, and no static choice takes them",
             first, m->files, m->o->base, first);
    if (m->off_mhz > 0)
        note(m, "gpu.sm_mhz", OFF_LADDER ": the clocks measured in %s, and none of its own", m->off_mhz, m->o->base,
             m->files);
    note(m, "gpu.default_sm_mhz", "assumed: the highest clock measured");
    if (m->rows->mem_known) {
        set_item(m->gpu, "mem_mhz", ladder(m->rows, true));
        set_item(m->gpu, "default_mem_mhz", cJSON_CreateNumber(round(m->full.mem_ref)));
        note(m, "gpu.mem_mhz", "the clocks measured in %s; the chip may have others", m->files);
        note(m, "gpu.default_mem_mhz", "assumed: the highest clock measured");
    } else {
        const cJSON *at = cJSON_GetObjectItemCaseSensitive(m->gpu, "default_mem_mhz");
        set_item(m->gpu, "mem_mhz", cJSON_CreateIntArray((int[]){at ? at->valueint : 1000}, 1));
        note(m, "gpu.mem_mhz", "not identifiable: %s names no memory clock; one, as the base's default", m->files);
        note(m, "gpu.default_mem_mhz", "not identifiable: %s names no memory clock", m->files);
    }
}

static void make_voltage(maker *m) {
    const fl_chip *c = &m->plain;
    cJSON *list = cJSON_CreateArray();
    if (m->lowest < floor(c->knot_mhz[0]))
        cJSON_AddItemToArray(list, cJSON_CreateDoubleArray((double[]){m->lowest, round(c->volt[0] * 1e5) / 1e5}, 2));
    for (uint32_t i = 0; i < c->knots; i++) {
        double at = c->knot_mhz[i];
        at = i == 0 ? fmin(at, round(at)) : i + 1 == c->knots ? fmax(at, round(at)) : at;
        cJSON_AddItemToArray(list, cJSON_CreateDoubleArray((double[]){at, round(c->volt[i] * 1e5) / 1e5}, 2));
    }
    set_item(m->power, "voltage", list);
    const double top = c->volt[c->knots - 1], sd = c->volt_sd[c->knots - 1];
    const double floor = fl_voltage_floor_mhz(c->knot_mhz, c->volt, c->knots, 0.02);
    if (!isfinite(sd) || sd > 0.1 * top)
        note(m, "gpu.power.voltage",
             "not identifiable: V/V(f_min) = %.3f +- %.2g at %g MHz in %s; a steeper V and a smaller A fit alike", top,
             sd, c->sm_ref, m->files);
    else if (c->knots < 3 || floor < c->knot_mhz[1])
        note(m, "gpu.power.voltage",
             "fitted from %s: V(f_min) = 1 by convention, %.3f +- %.2g at %g MHz; no floor shows in these clocks, so "
             "the scale of V is not identifiable apart from A",
             m->files, top, sd, c->sm_ref);
    else
        note(m, "gpu.power.voltage", "fitted from %s: 1 (within 2 %%) up to %g MHz, %.3f +- %.2g at %g MHz", m->files,
             floor, top, sd, c->sm_ref);
}

static void make_b0(maker *m) {
    const fl_chip *c = &m->plain;
    cJSON *list = cJSON_CreateArray();
    char text[512];
    size_t used = 0;
    for (uint32_t i = 0; i < c->mems; i++) {
        cJSON_AddItemToArray(list, cJSON_CreateNumber(c->b0_w[i]));
        if (used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%.3g", i ? ", " : "", c->b0_w[i]);
    }
    set_item(m->power, "b0_w", list);
    if (c->mems == 1)
        note(
            m, "gpu.power.b0_w",
            "not identifiable: %s W (+- %.2g) in %s; at one memory clock it cannot be told from C and the least beta B",
            text, c->b0_sd[0], m->files);
    else
        note(
            m, "gpu.power.b0_w",
            "fitted from %s: %s W; their differences are what idle memory draws, each alone is known to +- %.2g W only",
            m->files, text, c->b0_sd[0]);
}

/* Sweeps bound it from above only: an activity that every workload has looks the same. */
static void note_a0(maker *m) {
    const fl_chip *c = &m->plain;
    const fl_idle_log *i = &m->idle;
    const char *slash = i->clocks ? strrchr(m->o->idle, '/') : NULL;
    if (i->clocks)
        note(m, "gpu.power.a0_w",
             "fitted from %s: %.4g +- %.2g W per V^2 GHz, GPU %d idling at %zu clocks of %g to %g MHz (%zu readings), "
             "within %.2g W; the sweeps allow 0 to %.3g%s",
             slash ? slash + 1 : m->o->idle, i->idle.a0_w, i->a0_sd, i->device, i->clocks, i->low_mhz, i->high_mhz,
             i->readings, i->idle.worst_w, fmax(0, c->slope_w + 2 * c->slope_sd),
             i->idle.a0_w - 2 * i->a0_sd > c->slope_w + 2 * c->slope_sd ? ": another board, or V is not as fitted"
                                                                        : "");
    else if (isfinite(c->slope_sd))
        note(m, "gpu.power.a0_w",
             "between 0 and %.3g W per V^2 GHz by %s: even the workload that gains least gains %.4g +- %.2g, of which "
             "the idle clock tree is a part; the value is all of it, or less where the law asks for less. A log of the "
             "idle GPU with a context open tells it",
             fmax(0, c->slope_w + 2 * c->slope_sd), m->files, c->slope_w, c->slope_sd);
    else
        note(m, "gpu.power.a0_w",
             "not identifiable: %.4g W per V^2 GHz; no workload in %s has the four SM clocks at one memory clock that "
             "its slope takes. A log of the idle GPU with a context open tells it",
             c->a0_w, m->files);
}

static void note_load(maker *m, const char *key, const char *share, bool known) {
    const fl_chip *c = &m->plain;
    if (known)
        note(m, key, "fitted from %s: the 95th percentile of its %u workloads has %s = 1", m->files, c->workloads,
             share);
    else if (c->power_left > 0)
        note(m, key,
             "not identifiable: V/V(f_min) = %.3f +- %.2g at the top in %s; a steeper V and a smaller A fit alike",
             c->volt[c->knots - 1], c->volt_sd[c->knots - 1], m->files);
    else
        note(m, key, "not identifiable: %s has as many numbers to fit as rows", m->files);
}

static void make_power(maker *m) {
    const fl_chip *c = &m->plain;
    if (!c->has_power) {
        note(m, "gpu.power", "assumed: %s tells no power law", m->files);
        cJSON *list = cJSON_CreateArray();
        cJSON_AddItemToArray(list, cJSON_CreateDoubleArray((double[]){fmin(m->lowest, floor(c->sm_min)), 1}, 2));
        cJSON_AddItemToArray(list, cJSON_CreateDoubleArray((double[]){ceil(c->sm_ref) + 1, 1}, 2));
        set_item(m->power, "voltage", list);
        set_item(m->power, "b0_w", cJSON_CreateNumber(20));
        return;
    }
    /* The power that is not the clock tree's is the kernels': the most active ones keep their power. */
    const double a0 = m->idle.clocks ? m->idle.idle.a0_w : c->a0_w;
    set_item(m->power, "a_w", cJSON_CreateNumber(fmax(1e-3, c->a_w + c->a0_w - a0)));
    set_item(m->power, "a0_w", cJSON_CreateNumber(a0));
    set_item(m->power, "b_w", cJSON_CreateNumber(c->b_w));
    set_item(m->power, "c_w", cJSON_CreateNumber(c->c_w));
    make_voltage(m);
    make_b0(m);
    note_load(m, "gpu.power.a_w", "alpha", fl_fit_knows_a(c));
    note_load(m, "gpu.power.b_w", "beta", fl_fit_knows_b(c));
    note_a0(m);
    note_value(m, "gpu.power.c_w", c->c_w, c->c_sd, "W per V",
               "it is told from B0 only by V, and from A only where kernels leave the SMs idle");
    set_item(m->power, "no_context_w", cJSON_CreateNumber(fl_chip_b0(c, c->mem_min) + c->c_w));
    note(m, "gpu.power.no_context_w", "assumed: B0 at the lowest memory clock and C at the lowest voltage");
}

/* The sweep's own power limits. Where it names none, the base's, raised where the sweep drew more. */
static void make_limits(maker *m) {
    const fl_fit_rows *r = m->rows;
    double highest = 0;
    for (size_t i = 0; i < r->count; i++)
        highest = fmax(highest, r->row[i].power_w);
    cJSON *limits = cJSON_GetObjectItemCaseSensitive(m->gpu, "limits");
    if (!limits && r->limit_high_w > 0)
        limits = cJSON_AddObjectToObject(m->gpu, "limits");
    const cJSON *now = cJSON_GetObjectItemCaseSensitive(limits, "default_w"); /* NULL where limits is NULL */
    if (r->limit_high_w > 0) {
        const cJSON *least = cJSON_GetObjectItemCaseSensitive(limits, "min_w");
        set_item(limits, "min_w",
                 cJSON_CreateNumber(least ? fmin(least->valuedouble, r->limit_low_w) : r->limit_low_w));
        set_item(limits, "max_w", cJSON_CreateNumber(r->limit_high_w));
        set_item(limits, "default_w", cJSON_CreateNumber(r->limit_high_w));
        note(
            m, "gpu.limits",
            "max_w and default_w: the highest power limit in %s; min_w: the least of its limits (%g W) and the base's; "
            "the board may have others",
            m->files, r->limit_low_w);
        return;
    }
    if (!now || now->valuedouble >= highest)
        return;
    const double watts = ceil(highest / 10) * 10;
    set_item(limits, "max_w", cJSON_CreateNumber(watts));
    set_item(limits, "default_w", cJSON_CreateNumber(watts));
    note(m, "gpu.limits", "assumed: just above the highest power measured in %s", m->files);
}

static void make_sharpness(maker *m) {
    const fl_chip *c = &m->plain;
    set_item(m->gpu, "sharpness", cJSON_CreateNumber(c->sharpness));
    note_value(m, "gpu.sharpness", c->sharpness, c->sharpness_sd, "",
               "no workload goes from core-bound to memory-bound within these clocks");
}

static fl_status make(maker *m, fl_diag *d) {
    fl_platform base = {0};
    fl_status s = fl_platform_open(m->o->base, 1, &base, d);
    if (!s)
        s = fl_json_read(base.path, &m->root, d);
    if (!s) {
        m->gpu = cJSON_GetObjectItemCaseSensitive(m->root, "gpu");
        m->power = m->gpu ? cJSON_GetObjectItemCaseSensitive(m->gpu, "power") : NULL;
        m->notes = cJSON_GetObjectItemCaseSensitive(m->root, "notes");
        if (!m->power || !m->notes)
            s = fl_fail(d, FL_BAD_INPUT, base.path, 0, 0, "the base has several kinds of GPU, expected one");
    }
    if (!s) {
        char title[384];
        describe_files(m);
        (void)snprintf(title, sizeof title, "%s, fitted from %s", m->o->name, m->files);
        set_item(m->root, "title", cJSON_CreateString(title));
        set_item(m->gpu, "name", cJSON_CreateString(m->o->name));
        cJSON_DeleteItemFromObjectCaseSensitive(m->root, "policies"); /* their clocks belong to another chip */
        cJSON_DeleteItemFromObjectCaseSensitive(m->root, "calibration");
        assume_notes(m, base.name);
        m->board = m->o->base_given ? &base.node.device[0] : NULL;
        make_clocks(m);
        make_power(m);
        make_sharpness(m);
        make_limits(m);
        cJSON *calibration = fl_must(fl_chip_to_json(&m->full, m->rows->mem_known));
        fl_fit_marks marks = fl_fit_marks_make(m->rows);
        cJSON_AddItemToObject(calibration, FL_FIT_MARKS_KEY, fl_fit_marks_to_json(&marks));
        if (m->rows->clocks)
            cJSON_AddItemToObject(calibration, FL_FIT_CLOCKS_KEY, fl_fit_clocks_to_json(m->rows));
        fl_fit_marks_free(&marks);
        set_item(m->root, "calibration", calibration);
        char time[32], power[32];
        note(m, "calibration",
             "fitted from %s: %u workloads, %zu rows; errors on these in percent (robust standard deviations; n/a: as "
             "many numbers to fit as rows): time %s, power %s; %zu and %zu rows far off",
             m->files, m->full.workloads, m->full.rows, fl_fit_error_text(m->full.time_rms_pct, time),
             fl_fit_error_text(m->full.has_power ? m->full.power_rms_pct : (double)NAN, power), m->full.time_outliers,
             m->full.power_outliers);
    }
    m->board = NULL;
    fl_platform_free(&base);
    return s;
}

/* A sweep that has only power limits: laws of each workload's own infer the clocks, relative to the base's highest. */
static fl_status find_latent(const device_options *o, fl_fit_rows *rows, fl_diag *d) {
    fl_platform base = {0};
    if (!rows->latent)
        return FL_OK;
    fl_status s = fl_platform_open(o->base, 1, &base, d);
    if (!s) {
        const fl_device *dev = &base.node.device[0];
        s = fl_fit_latent_fill(rows, dev->sm_mhz[dev->sm_count - 1], dev->default_mem_mhz, d);
    }
    fl_platform_free(&base);
    return s;
}

static fl_status fit_both(maker *m, fl_diag *d) {
    static const fl_chip_law law[] = {FL_CHIP_BEST, FL_CHIP_PLAIN};
    for (size_t i = 0; i < 2; i++) {
        const fl_model_status f = fl_chip_fit(m->rows->row, m->rows->count, law[i], i ? &m->plain : &m->full);
        fl_must_have(f != FL_MODEL_NO_MEMORY);
        if (f != FL_MODEL_OK)
            return fl_fail(d, FL_BAD_INPUT, m->o->sweeps.item[0], 0, 0,
                           "no model fits: %s; expected at least one workload at two settings", fl_model_text(f));
    }
    (void)fl_fit_crest_of_rows(m->rows, &m->full.crest, &m->full.crest_sd);
    return FL_OK;
}

/* Describes a GPU that no one has measured. */
static fl_status run_facts(const device_options *o, fl_diag *d) {
    fl_fit_facts facts = {0};
    cJSON *root = NULL;
    fl_chip *chip = fl_must(calloc(1, sizeof *chip));
    fl_status s = fl_fit_facts_read(o->facts, &facts, d);
    if (!s && o->name)
        snprintf(facts.name, sizeof facts.name, "%s", o->name);
    if (!s)
        s = fl_fit_facts_chip(&facts, o->idle, o->run, chip, d);
    if (!s)
        s = fl_fit_facts_device(&facts, chip, o->base, &root, d);
    if (!s && o->json) {
        fl_json_print(root, stdout);
    } else if (!s) {
        fl_fit_facts_print(&facts);
    }
    if (!s && !(s = fl_json_write(o->out, root, d)) && !o->json)
        printf("\nwritten: %s\n", o->out);
    cJSON_Delete(root);
    fl_fit_facts_free(&facts);
    free(chip);
    return s;
}

/* Describes a GPU on which workloads were measured. */
static fl_status run_sweeps(const device_options *o, fl_diag *d) {
    fl_fit_rows rows = {0};
    maker m = {.o = o, .rows = &rows};
    fl_status s = fl_fit_rows_sound(&o->sweeps, &o->only, &rows, d);
    if (!s)
        s = find_latent(o, &rows, d);
    if (!s)
        s = fit_both(&m, d);
    if (!s && o->idle && !m.plain.has_power)
        s = fl_fail(d, FL_BAD_INPUT, o->sweeps.item[0], 0, 0,
                    "the sweeps determine no power model, so there is no voltage to fit --idle to, expected sweeps "
                    "with power");
    if (!s && o->idle)
        s = fl_idle_log_fit(o->idle, &m.plain, &m.idle, d);
    if (!s)
        s = make(&m, d);
    if (!s && o->json) {
        cJSON *calibration = cJSON_GetObjectItem(m.root, "calibration");
        cJSON_AddItemToObject(calibration, "unsound", fl_fit_sound_json(&rows));
        fl_json_print(m.root, stdout);
        cJSON_DeleteItemFromObject(calibration, "unsound"); /* the file is without it */
    } else if (!s) {
        if (m.off_mhz > 0)
            printf("note: " OFF_LADDER ": the ladder has the measured clocks alone\n", m.off_mhz, o->base);
        fl_fit_device_print(&m.full, &m.plain, &rows, m.files, &m.idle);
    }
    if (!s && !(s = fl_json_write(o->out, m.root, d)) && !o->json)
        printf("written: %s\n", o->out);
    cJSON_Delete(m.root);
    fl_fit_rows_free(&rows);
    return s;
}

static fl_status run_device(device_options *o, fl_diag *d) {
    o->base_given = o->base != NULL;
    o->base = o->base_given ? o->base : "generic";
    if ((o->sweeps.count > 0) == (o->facts != NULL))
        return fl_refuse(d, "%s, expected SWEEP ... or --facts FILE", o->facts ? "a sweep and facts" : "no sweep");
    if (o->facts && o->only.count)
        return fl_refuse(d, "--only chooses among the workloads of sweeps, expected it without --facts");
    if (o->run && !o->facts)
        return fl_refuse(d, "--run belongs to --facts, expected both");
    if (!o->out)
        return fl_refuse(d, "no file to write, expected -o FILE");
    if (o->name && strlen(o->name) > 63)
        return fl_refuse(d, "--name of %zu characters, expected at most 63", strlen(o->name));
    if (!o->name && !o->facts)
        o->name = "Fitted GPU";
    return o->facts ? run_facts(o, d) : run_sweeps(o, d);
}

int fl_cmd_fit_device(int argc, char **argv) {
    device_options o = {0};
    fl_texts rest = {0};
    const fl_option option[] = {
        {"o", "FILE", FL_OPTION_OUTPUT, &o.out, 0, 0, "the device file to write", FL_FOR_OUTPUT | FL_MOST_USED},
        {"facts", "FILE", FL_OPTION_TEXT, &o.facts, 0, 0,
         "facts of a GPU without measurements, or a bundled board's name, instead of sweeps",
         FL_FOR_INPUT | FL_MOST_USED},
        {"run", "FILE", FL_OPTION_TEXT, &o.run, 0, 0, "with --facts: a sweep of one workload, one setting or more",
         FL_FOR_INPUT},
        {"idle", "LOG", FL_OPTION_TEXT, &o.idle, 0, 0,
         "log of the idle GPU at several clocks, for A0 (with --facts: V too)", FL_FOR_INPUT},
        {"base", "NAME", FL_OPTION_TEXT, &o.base, 0, 0, "platform for what sweeps do not tell (generic)",
         FL_FOR_MACHINE | FL_MOST_USED},
        {"name", "TEXT", FL_OPTION_TEXT, &o.name, 0, 0, "name of the GPU"},
        {"only", "NAME", FL_OPTION_LIST, &o.only, 0, 0, "workloads, by name or pattern; may be given several times",
         FL_FOR_INPUT},
        FL_STRICT_OPTION,
        FL_JSON_OPTION(&o.json),
    };
    int status = FL_EXIT_OK;
    fl_diag d = {0};
    if (!fl_command_begin(argc, argv, &help, option, FL_COUNT(option), &rest, &status))
        return status;
    o.sweeps = rest;
    const fl_status s = run_device(&o, &d);
    return fl_command_close(help.name, s, &d, option, FL_COUNT(option), &rest);
}
